//! Changing the element type, and `to`, which may change the device too.

use crate::autograd::{Context, Function, Saved};
use crate::device::Device;
use crate::dtype::{DType, with_dtype};
use crate::error::Result;
use crate::ops;
use crate::ops::elementwise::blocks::{Cost, map1};
use crate::ops::simd::kernel;
use crate::tensor::{Tensor, ToOptions};

impl Tensor {
    /// This tensor on another device, in another type, or both (`Tensor.to`).
    ///
    /// When nothing changes it is this tensor itself, not a copy:
    ///
    /// ```
    /// # use todevice::{DType, Device, Tensor};
    /// let x = Tensor::new([1.5f32, -2.5])?;
    /// assert!(x.to(Device::Cpu)?.is_same(&x));
    /// assert_eq!(x.to(DType::I64)?.to_vec::<i64>()?, [1, -2]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn to(&self, options: impl Into<ToOptions>) -> Result<Tensor> {
        let options = options.into();
        let device = options.device.unwrap_or(self.device());
        let dtype = options.dtype.unwrap_or(self.dtype());
        device.check_usable()?;
        dtype.check_supported()?;
        if dtype != self.dtype() {
            return ops::apply(Cast { dtype }, [self]);
        }
        if options.copy { self.copy() } else { Ok(self.clone()) }
    }

    /// This tensor on the CPU; itself, if it is there already.
    #[track_caller]
    pub fn cpu(&self) -> Result<Tensor> {
        self.to(Device::Cpu)
    }
}

struct Cast {
    dtype: DType,
}

impl Function<1> for Cast {
    fn name(&self) -> &'static str {
        "_to_copy"
    }

    fn backward_name(&self) -> &'static str {
        "ToCopyBackward0"
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let out = Tensor::uninit(x.sizes(), self.dtype)?;
        cpu_cast(x, &out)?;
        Ok(out)
    }

    /// The engine converts every gradient to the type of its input.
    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.clone())])
    }
}

/// Rust's `as`: floats are cut off towards zero and kept within an integer's range, NaN becomes 0.
/// For values out of range C++, and so PyTorch, defines nothing.
fn cpu_cast(x: &Tensor, out: &Tensor) -> Result<()> {
    with_dtype!(x.dtype(), From => match out.dtype() {
        DType::Bool => map1([x], out, Cost::Cheap, kernel!(|x: From| -> u8 { (x != (0 as From)) as u8 })),
        dtype => with_dtype!(dtype, To => map1([x], out, Cost::Cheap, kernel!(|x: From| -> To { x as To }))),
    })
}
