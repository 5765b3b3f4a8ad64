//! Copying, and overwriting with given values.

use half::{bf16, f16};

use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, Element, Memory, Scalar, with_dtype};
use crate::error::{Error, Result};
use crate::ops;
use crate::ops::elementwise::blocks::for_blocks;
use crate::ops::elementwise::copy;
use crate::ops::kernel::{Cost, Geometry, KernelDef, Parameter, launch};
use crate::ops::transfer::copy_over;
use crate::shape::{Layout, broadcast};
use crate::tensor::Tensor;

/// How [`Tensor::copy_with_`] copies.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyOptions {
    /// Does not wait for a copy between pinned memory of the host and a GPU, which the GPU can make by itself. Until it
    /// has run, the host must neither write to its source nor read its target.
    pub non_blocking: bool,
}

impl Tensor {
    /// A copy in fresh memory, recorded by autograd (`Tensor.clone`; in Rust `clone` copies the handle).
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        ops::apply(Copy, [self])
    }

    /// This tensor if its elements lie in order without gaps, else a copy for which they do.
    #[track_caller]
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.copy() }
    }

    /// Overwrites this tensor with the values of `source`, broadcast and converted as needed. It may be on any device
    /// (`Tensor.copy_`).
    #[track_caller]
    pub fn copy_(&self, source: &Tensor) -> Result<Tensor> {
        self.copy_with_(source, CopyOptions::default())
    }

    /// The same with options (`Tensor.copy_(source, non_blocking=True)`).
    ///
    /// Between the host and a GPU the bytes go where they belong in one copy, if this tensor is contiguous and, on the
    /// host, of the type of the source: a buffer that is used again and again takes no new memory.
    ///
    /// ```
    /// use todevice::{CopyOptions, Device, Machine, Tensor};
    ///
    /// let machine: Machine = "sim:t4".parse().unwrap();
    /// machine.enter(|| {
    ///     let batch = Tensor::ones(&[1000])?.pin_memory()?;
    ///     let buffer = Tensor::zeros_with(&[1000], Device::cuda(0))?;
    ///     buffer.copy_with_(&batch, CopyOptions { non_blocking: true })?; // Returns at once.
    ///     assert_eq!(buffer.sum()?.item()?, 1000.0); // The sum comes after the copy, and this waits for it.
    ///     Ok::<(), todevice::Error>(())
    /// }).unwrap();
    /// ```
    #[track_caller]
    pub fn copy_with_(&self, source: &Tensor, options: CopyOptions) -> Result<Tensor> {
        let CopyOptions { non_blocking } = options;
        let shape = broadcast(self.sizes(), source.sizes())?;
        if shape != self.sizes() {
            return Err(Error::InPlaceBroadcast { output: self.sizes().to_vec(), broadcast: shape });
        }
        let device = self.device();
        ops::replace("copy_", "CopyBackwards", self, Some(source), || match source.device() == device {
            true => write(self, &source.detach().to(self.dtype())?),
            false => copy_over(self, &source.detach(), non_blocking),
        })
    }

    /// Sets every element.
    #[track_caller]
    pub fn fill_(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        let value = value.into();
        check_fits(value, self.dtype())?;
        ops::replace("fill_", "FillBackward2", self, None, || fill(self, value))
    }

    /// Sets every element to zero.
    #[track_caller]
    pub fn zero_(&self) -> Result<Tensor> {
        ops::replace("zero_", "ZeroBackward0", self, None, || fill(self, Scalar::Int(0)))
    }
}

struct Copy;

impl Function<1> for Copy {
    fn name(&self) -> &'static str {
        "clone"
    }

    fn backward_name(&self) -> &'static str {
        "CloneBackward0"
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        copy_of(x)
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.clone())])
    }
}

/// A contiguous copy that autograd does not see.
pub(crate) fn copy_of(x: &Tensor) -> Result<Tensor> {
    let out = x.uninit_beside(x.sizes(), x.dtype())?;
    launch(copy(x.dtype())?, [x], [&out], &[], &[])?;
    Ok(out)
}

/// The tensor itself if it is contiguous, else a copy that is; autograd does not see it.
pub(crate) fn dense(x: &Tensor) -> Result<Tensor> {
    if x.is_contiguous() { Ok(x.clone()) } else { copy_of(x) }
}

/// A tensor that lies in order, seen in other sizes of as many elements; autograd does not see it.
pub(crate) fn seen_as(x: &Tensor, sizes: &[usize]) -> Tensor {
    let mut layout = Layout::contiguous(sizes).expect("it has as many elements as there are");
    layout.offset = x.storage_offset();
    x.with_layout(layout)
}

/// Writes the elements of `source`, of the same type and broadcast to the target's shape, wherever the
/// target's layout puts them. Autograd does not see it.
pub(crate) fn write(target: &Tensor, source: &Tensor) -> Result<()> {
    launch(copy(target.dtype())?, [source], [target], &[], &[])
}

/// A number beside a tensor, as a 0-dim tensor: one the type cannot hold wraps around, as in PyTorch.
pub(crate) fn number(value: Scalar, dtype: DType) -> Result<Tensor> {
    let tensor = Tensor::uninit(&[], dtype)?;
    fill(&tensor, value)?;
    Ok(tensor)
}

/// The kernel that fills: with the whole number, or with the other one in a tensor of floats.
macro_rules! fill_kernel {
    ($T:ident) => {{
        const KERNEL: &KernelDef = &KernelDef {
            name: "fill",
            types: &[$T::DTYPE],
            parameters: &[Parameter::Out($T::DTYPE), Parameter::Int, Parameter::Float],
            geometry: Geometry::Elements,
            cost: Cost::Cheap,
            twin: |args| {
                type Math = <$T as Memory>::Math;
                let is_float = $T::DTYPE.is_floating_point();
                let value = if is_float { args.floats[0] as Math } else { args.ints[0] as Math };
                let value = $T::narrow(value);
                for_blocks(&mut args.outputs[0], Cost::Cheap, &|_, out: &mut [$T]| out.fill(value));
                Ok(())
            },
        };
        KERNEL
    }};
}

pub(super) fn fill_kernel(dtype: DType) -> Result<&'static KernelDef> {
    Ok(with_dtype!(dtype, T => fill_kernel!(T)))
}

/// Sets every element the layout reaches.
pub(crate) fn fill(target: &Tensor, value: Scalar) -> Result<()> {
    // Any number but 0 is true, which is kept as 1.
    let value = if target.dtype() == DType::Bool { Scalar::Bool(value.to_f64() != 0.0) } else { value };
    // Through i64, so that −1 becomes 255 in u8 as it does in PyTorch, not 0.
    let (int, float) = match value {
        Scalar::Float(value) if target.dtype().is_floating_point() => (0, value),
        whole if target.dtype().is_floating_point() => (0, whole.to_i64() as f64),
        other => (other.to_i64(), 0.0),
    };
    launch(fill_kernel(target.dtype())?, [], [target], &[int], &[float])
}

/// Refuses a number that the type cannot hold, rather than storing another one.
pub(crate) fn check_fits(value: Scalar, dtype: DType) -> Result<()> {
    let number = value.to_f64();
    let fits = match (dtype, value) {
        // A negative whole number wraps around, as in C++.
        (DType::U8, Scalar::Int(value)) => (-255..256).contains(&value),
        (DType::U8, _) => (0.0..=255.0).contains(&number),
        (DType::I32, _) => (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number),
        (DType::I64, Scalar::Float(value)) => (i64::MIN as f64..2f64.powi(63)).contains(&value),
        (DType::F32, _) => !number.is_finite() || number.abs() <= f64::from(f32::MAX),
        (DType::F16, _) => !number.is_finite() || number.abs() <= f64::from(f16::MAX),
        (DType::BF16, _) => !number.is_finite() || number.abs() <= f64::from(bf16::MAX),
        _ => true,
    };
    let name = match dtype {
        DType::U8 => "uint8_t",
        DType::I64 => "int64_t",
        other => other.cpp_name(),
    };
    if fits {
        Ok(())
    } else {
        Err(Error::custom(format!("value cannot be converted to type {name} without overflow")))
    }
}
