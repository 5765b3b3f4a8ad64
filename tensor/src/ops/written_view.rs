//! Records writes to views (`torch::autograd::CopySlices`): the gradient of the written part goes to the new values, the
//! rest to the old base.

use crate::autograd::record_list;
use crate::dtype::Scalar;
use crate::error::{Result, TensorError};
use crate::ops::Operation;
use crate::ops::plain::{copy_in, fill};
use crate::shape::Layout;
use crate::tensor::Tensor;

static COPY_SLICES: Operation = Operation::new("copy_slices").node("CopySlices");

impl Tensor {
    /// Records a write to a view in the history of its base. `new` has the new values, unless they are constant.
    #[track_caller]
    pub(super) fn record_slice(&self, new: Option<&Tensor>) -> Result<()> {
        let Some(base) = self.base() else { return Ok(()) };
        let [whole, part] = [base, self].map(|tensor| *tensor.layout());
        let part = part.within(&whole);
        let (device, is_rest_needed) = (new.map(Tensor::device), base.has_history());
        let inputs: Vec<&Tensor> = [base].into_iter().chain(new).collect();
        record_list(&COPY_SLICES, &inputs, base.clone(), move |grad| {
            if is_rest_needed && part.overlaps_itself() {
                return Err(TensorError::WriteOverlap.into());
            }
            let rest = copy_in(whole.at_start(), grad)?;
            let slice = rest.with_layout(part);
            let of_new = match device {
                Some(device) => Some(copy_in(Layout::contiguous(slice.sizes())?, &slice)?.to(device)?),
                None => None,
            };
            if is_rest_needed {
                fill(&slice, Scalar::Int(0))?;
            }
            Ok([rest].into_iter().chain(of_new).collect())
        })?;
        Ok(())
    }
}
