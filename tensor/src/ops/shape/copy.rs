//! Copying, and overwriting with given values.

use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, Scalar, with_dtype};
use crate::error::{Error, Result};
use crate::ops;
use crate::ops::elementwise::blocks::{Cost, Runs, elements_mut, map1};
use crate::ops::simd::kernel;
use crate::shape::{broadcast, signed};
use crate::storage::access;
use crate::tensor::Tensor;

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

    /// Overwrites this tensor with the values of `source`, broadcast and converted as needed.
    #[track_caller]
    pub fn copy_(&self, source: &Tensor) -> Result<Tensor> {
        let shape = broadcast(self.sizes(), source.sizes())?;
        if shape != self.sizes() {
            return Err(Error::InPlaceBroadcast { output: self.sizes().to_vec(), broadcast: shape });
        }
        ops::update(
            "copy_",
            self,
            &[source],
            // What was there before no longer matters, so the gradient goes to the source alone.
            |_| source.expand(&signed(self.sizes()))?.copy(),
            || write(self, &source.detach().to(self.dtype())?),
        )
    }

    /// Sets every element.
    #[track_caller]
    pub fn fill_(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        let value = value.into();
        check_fits(value, self.dtype())?;
        let filled = |old: &Tensor| Tensor::full(old.sizes(), value, self.dtype());
        ops::update("fill_", self, &[], filled, || fill(self, value))
    }

    /// Sets every element to zero.
    #[track_caller]
    pub fn zero_(&self) -> Result<Tensor> {
        self.fill_(0)
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
    let out = Tensor::uninit(x.sizes(), x.dtype())?;
    with_dtype!(x.dtype(), T => map1([x], &out, Cost::Cheap, kernel!(|x: T| -> T { x })))?;
    Ok(out)
}

/// The tensor itself if it is contiguous, else a copy that is; autograd does not see it.
pub(crate) fn dense(x: &Tensor) -> Result<Tensor> {
    if x.is_contiguous() { Ok(x.clone()) } else { copy_of(x) }
}

/// Writes the elements of `source`, of the same type and broadcast to the target's shape, wherever the
/// target's layout puts them. Autograd does not see it.
pub(crate) fn write(target: &Tensor, source: &Tensor) -> Result<()> {
    if target.is_contiguous() {
        return with_dtype!(target.dtype(),
            T => map1([source], target, Cost::Cheap, kernel!(|x: T| -> T { x })));
    }
    with_dtype!(target.dtype(), T => access([source], [target], |[source], [bytes]| {
        // The target itself as its own source: nothing to do.
        let Some((source, tensor)) = source else { return Ok(()) };
        let source: &[T] = bytemuck::cast_slice(source);
        let target_values: &mut [T] = bytemuck::cast_slice_mut(bytes);
        let from = Runs::of(&tensor.layout().expand(target.sizes())?);
        let mut row = Vec::new();
        let mut done = 0;
        Runs::of(target.layout()).visit(0, target.numel(), |position, stride, length| {
            row.resize(length, T::default());
            from.gather(source, done, &mut row);
            for (i, value) in row.iter().enumerate() {
                target_values[position + i * stride] = *value;
            }
            done += length;
        });
        Ok(())
    })?)
}

/// A number beside a tensor, as a 0-dim tensor: one the type cannot hold wraps around, as in PyTorch.
pub(crate) fn number(value: Scalar, dtype: DType) -> Result<Tensor> {
    let tensor = Tensor::uninit(&[], dtype)?;
    fill(&tensor, value)?;
    Ok(tensor)
}

/// Sets every element the layout reaches.
pub(crate) fn fill(target: &Tensor, value: Scalar) -> Result<()> {
    if !target.is_contiguous() {
        return write(target, &number(value, target.dtype())?);
    }
    // Any number but 0 is true, which is kept as 1.
    let value = if target.dtype() == DType::Bool { Scalar::Bool(value.to_f64() != 0.0) } else { value };
    with_dtype!(target.dtype(), T => access([], [target], |[], [bytes]| {
        // Through i64, so that −1 becomes 255 in u8 as it does in PyTorch, not 0.
        let value = match value {
            Scalar::Float(value) if target.dtype().is_floating_point() => value as T,
            other => other.to_i64() as T,
        };
        elements_mut::<T>(bytes, target).fill(value);
    }))
}

/// Refuses a number that the type cannot hold, rather than storing another one.
pub(super) fn check_fits(value: Scalar, dtype: DType) -> Result<()> {
    let number = value.to_f64();
    let fits = match dtype {
        // A negative whole number wraps around, as in C++.
        DType::U8 => number < 256.0 && number > if matches!(value, Scalar::Float(_)) { -1.0 } else { -256.0 },
        DType::I32 => (i32::MIN as f64..2f64.powi(31)).contains(&number),
        DType::I64 => matches!(value, Scalar::Int(_)) || (i64::MIN as f64..2f64.powi(63)).contains(&number),
        DType::F32 => !number.is_finite() || number.abs() <= f64::from(f32::MAX),
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
