//! Copies from device to device, the host being one: what `to` does when the device changes.

use crate::autograd::{Context, Function, Saved};
use crate::cuda::runtime::memory_of;
use crate::device::Device;
use crate::error::Result;
use crate::ops;
use crate::ops::shape::dense;
use crate::storage::access;
use crate::tensor::Tensor;

/// The tensor on the host; itself, if it is there. Autograd does not see it.
pub(crate) fn to_host(x: &Tensor) -> Result<Tensor> {
    if x.is_cuda() { copy_to(x, Device::Cpu) } else { Ok(x.clone()) }
}

/// A contiguous copy on another device. Elements out of order are put in order where they are, so that one
/// copy does.
fn copy_to(x: &Tensor, device: Device) -> Result<Tensor> {
    let x = dense(x)?;
    let out = Tensor::uninit_on(device, x.sizes(), x.dtype())?;
    let bytes = x.numel() * x.dtype().size();
    if bytes == 0 {
        return Ok(out);
    }
    let offset = x.storage_offset() * x.dtype().size();
    match (x.storage().device(), out.storage().device()) {
        (None, Some(target)) => access([&x], [], |[input], []| {
            target.cuda().upload(target, &input.values::<u8>()[offset..offset + bytes])
        })??,
        (Some(source), None) => {
            access([], [&out], |[], [out]| source.cuda().download(&mut out.bytes[..bytes], source, offset))??
        }
        (Some(source), Some(_)) => source.cuda().copy_peer(memory_of(&out)?, source, offset, bytes)?,
        (None, None) => unreachable!("there is one host"),
    }
    Ok(out)
}

/// `to` another device.
pub(crate) struct ToDevice {
    pub(crate) from: Device,
    pub(crate) to: Device,
}

impl ToDevice {
    #[track_caller]
    pub(crate) fn run(x: &Tensor, to: Device) -> Result<Tensor> {
        Ok(ops::apply(ToDevice { from: x.device(), to }, [x])?.moved_from(x))
    }
}

impl Function<1> for ToDevice {
    fn name(&self) -> &'static str {
        "_to_copy"
    }

    fn backward_name(&self) -> &'static str {
        "ToCopyBackward0"
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        copy_to(x, self.to)
    }

    /// The gradient goes back the way the value came.
    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.to(self.from)?)])
    }
}
