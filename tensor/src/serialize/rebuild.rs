//! Tensors from what a file says of them.

use std::rc::Rc;

use super::error::SerializeError;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Layout;
use crate::tensor::Tensor;

/// How a pickle names the memory of a tensor.
pub(super) struct StorageId {
    /// The name of its record.
    pub(super) key: Rc<str>,
    pub(super) dtype: DType,
    /// Where it was when it was saved.
    pub(super) location: Rc<str>,
    /// How many elements it has.
    pub(super) numel: usize,
}

/// A tensor in the memory of `storage`, a vector of all there is in it.
pub(super) fn tensor(
    storage: &Tensor,
    offset: usize,
    sizes: &[usize],
    strides: &[usize],
    requires_grad: bool,
) -> Result<Tensor> {
    let layout = Layout::strided(sizes, strides, offset)?;
    let needed = layout.offset.checked_add(layout.reach());
    if needed.is_none_or(|needed| needed > storage.numel()) {
        return Err(SerializeError::OutOfBounds {
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
            offset,
            dtype: storage.dtype(),
            numel: storage.numel(),
        }
        .into());
    }
    let tensor = Tensor::made_of(storage.storage().clone(), layout, storage.dtype());
    if requires_grad { tensor.requiring_grad() } else { Ok(tensor) }
}

/// All there is in a tensor's storage, as a vector; autograd does not see it.
pub(super) fn whole(tensor: &Tensor) -> Result<Tensor> {
    let layout = Layout::contiguous(&[tensor.storage().bytes() / tensor.dtype().size()])?;
    Ok(Tensor::made_of(tensor.storage().clone(), layout, tensor.dtype()))
}

/// Makes every byte of a bool tensor 0 or 1. A file may hold other bytes, which PyTorch reads as True; kernels count on 1.
pub(super) fn normalize_bools(dtype: DType, bytes: &mut [u8]) {
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
}
