//! Copies and fills, the building blocks of operations. Autograd does not record them.

use crate::cpu::blocks::{for_blocks, map1};
use crate::cpu::transpose;
use crate::dtype::{DType, Memory, Scalar};
use crate::error::Result;
use crate::kernel::Cost;
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, rows};
use crate::shape::Layout;
use crate::tensor::Tensor;

rows! {
    pub(in crate::ops) static COPY: Row = row! {
        name: "copy", types: each, geometry: Elements, cost: Cheap,
        parameters: [In(T), Out(T)],
        twin: |mut args| {
            if transpose::copied::<T>(&mut args) {
                return Ok(());
            }
            map1::<T, T>(args, Cost::Cheap, |x, out| out.copy_from_slice(x))
        },
    };
    // Fills with the float in floating-point tensors, with the integer in others.
    static FILL: Row = row! {
        name: "fill", types: each, geometry: Elements, cost: Cheap,
        parameters: [Out(T), Int, Float],
        twin: |args| {
            let value = if T::DTYPE.is_floating_point() { args.floats[0] as C } else { args.ints[0] as C };
            let value = T::narrow(value);
            for_blocks(&mut args.outputs[0], Cost::Cheap, &|_, out: &mut [T]| out.fill(value));
            Ok(())
        },
    };
}

/// A copy with the same strides, without gaps (`Tensor.clone`).
pub(crate) fn copy_of(x: &Tensor) -> Result<Tensor> {
    copy_in(x.layout().like()?, x)
}

/// Returns the tensor if it is contiguous, else a contiguous copy.
pub(crate) fn contiguous(x: &Tensor) -> Result<Tensor> {
    if x.is_contiguous() { Ok(x.clone()) } else { copy_in(Layout::contiguous(x.sizes())?, x) }
}

/// Returns the elements in a row-major result: the tensor's memory if it is contiguous, else a copy. It is not a view.
pub(crate) fn row_major(x: &Tensor) -> Result<Tensor> {
    let layout = Layout::contiguous(x.sizes())?;
    match x.is_contiguous() && x.storage_offset() == 0 {
        true => Ok(Tensor::made_of(x.storage().clone(), layout, x.dtype())),
        false => copy_in(layout, x),
    }
}

/// A copy in another layout of the same sizes.
pub(crate) fn copy_in(layout: Layout, x: &Tensor) -> Result<Tensor> {
    let out = x.uninit_with(layout, x.dtype())?;
    write(&out, x)?;
    Ok(out)
}

/// Views a contiguous tensor in other sizes with as many elements.
pub(crate) fn reshaped(x: &Tensor, sizes: &[usize]) -> Tensor {
    let mut layout = Layout::contiguous(sizes).expect("it has as many elements as there are");
    layout.offset = x.storage_offset();
    x.with_layout(layout)
}

/// Writes `source`, broadcast, to a target of the same dtype and any layout.
pub(crate) fn write(target: &Tensor, source: &Tensor) -> Result<()> {
    launch(COPY.of(target.dtype())?, [source], [target], &[], &[])
}

/// Returns a number as a 0-dim tensor. Out-of-range numbers wrap around, as in PyTorch.
pub(crate) fn number(value: Scalar, dtype: DType) -> Result<Tensor> {
    let tensor = Tensor::uninit(&[], dtype)?;
    fill(&tensor, value)?;
    Ok(tensor)
}

pub(crate) fn fill(target: &Tensor, value: Scalar) -> Result<()> {
    let value = if target.dtype() == DType::Bool { Scalar::Bool(value.to_f64() != 0.0) } else { value };
    // Through i64, −1 becomes 255 in u8 as in PyTorch, not 0.
    let (int, float) = match value {
        Scalar::Float(value) if target.dtype().is_floating_point() => (0, value),
        whole if target.dtype().is_floating_point() => (0, whole.to_i64() as f64),
        other => (other.to_i64(), 0.0),
    };
    let kernel = FILL.of(target.dtype())?;
    match target.layout().strides().contains(&0) {
        true => launch(kernel, [], [&without_repeats(target)], &[int], &[float]),
        false => launch(kernel, [], [target], &[int], &[float]),
    }
}

/// Views only the first element of each expanded dimension, so a kernel writes each element of memory once.
fn without_repeats(target: &Tensor) -> Tensor {
    let mut layout = *target.layout();
    for dim in 0..layout.ndim() {
        if layout.strides()[dim] == 0 && layout.sizes()[dim] > 1 {
            layout = layout.slice(dim, 0, 1, 1);
        }
    }
    target.with_layout(layout)
}
