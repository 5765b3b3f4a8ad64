//! Changing the element type, and `to`, which may change the device too.

use crate::autograd::{Context, Function, Saved};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu;
use crate::ops::elementwise::cast;
use crate::ops::launch::launch;
use crate::ops::transfer::{ToDevice, check_way};
use crate::ops::{self, Operation, operations};
use crate::tensor::{Tensor, ToOptions};

operations! {
    CONVERT: Operation::new("_to_copy").node("ToCopyBackward0");
}

impl Tensor {
    /// This tensor on another device, in another type, or both (`Tensor.to`).
    ///
    /// The host waits for a copy, unless [`ToOptions::non_blocking`] says that it need not.
    ///
    /// When nothing changes it is this tensor itself, not a copy:
    ///
    /// ```
    /// # use todevice::{DType, Device, Tensor};
    /// let x = Tensor::new([1.5, -2.5])?;
    /// assert!(x.to(Device::Cpu)?.is_same(&x));
    /// assert_eq!(x.to(DType::I64)?.to_vec::<i64>()?, [1, -2]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn to(&self, options: impl Into<ToOptions>) -> Result<Tensor> {
        let options = options.into();
        let device = options.device.unwrap_or(self.device());
        let dtype = options.dtype.unwrap_or(self.dtype());
        if device == self.device() {
            return match dtype == self.dtype() {
                true if options.copy => self.copy(),
                true => Ok(self.clone()),
                false => ops::apply(Cast { dtype }, [self]),
            };
        }
        device.check_usable()?;
        check_way(self.device(), device)?;
        let converted = if dtype == self.dtype() { self } else { &ops::apply(Cast { dtype }, [self])? };
        Ok(ToDevice::run(converted, device, options.non_blocking)?.moved_from(self))
    }

    /// This tensor on the CPU; itself, if it is there already.
    #[track_caller]
    pub fn cpu(&self) -> Result<Tensor> {
        self.to(Device::Cpu)
    }

    /// This tensor on the current CUDA device (`Tensor.cuda`).
    #[track_caller]
    pub fn cuda(&self) -> Result<Tensor> {
        self.to(Device::cuda(gpu::current_index()))
    }
}

struct Cast {
    dtype: DType,
}

impl Function<1> for Cast {
    fn operation(&self) -> &'static Operation {
        &CONVERT
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let out = x.uninit_beside(x.sizes(), self.dtype)?;
        launch(cast(x.dtype(), self.dtype)?, [x], [&out], &[], &[])?;
        Ok(out)
    }

    /// The engine converts every gradient to the type of its input.
    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.clone())])
    }
}
