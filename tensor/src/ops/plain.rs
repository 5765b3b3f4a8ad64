//! Copying and filling, the building blocks of operations; autograd does not see them.

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
    // Copies elements unchanged, from any layout to any other.
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
    // Fills with the integer, or, in a floating-point tensor, with the float.
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

/// A contiguous copy that autograd does not see.
pub(crate) fn copy_of(x: &Tensor) -> Result<Tensor> {
    let out = x.uninit_beside(x.sizes(), x.dtype())?;
    launch(COPY.of(x.dtype())?, [x], [&out], &[], &[])?;
    Ok(out)
}

/// The tensor itself if it is contiguous, else a contiguous copy; autograd does not see it.
pub(crate) fn dense(x: &Tensor) -> Result<Tensor> {
    if x.is_contiguous() { Ok(x.clone()) } else { copy_of(x) }
}

/// A contiguous tensor viewed in other sizes with the same number of elements; autograd does not see it.
pub(crate) fn reshaped(x: &Tensor, sizes: &[usize]) -> Tensor {
    let mut layout = Layout::contiguous(sizes).expect("it has as many elements as there are");
    layout.offset = x.storage_offset();
    x.with_layout(layout)
}

/// Writes the elements of `source`, which has the same dtype and is broadcast to the target's shape, to a target of any
/// layout. Autograd does not see it.
pub(crate) fn write(target: &Tensor, source: &Tensor) -> Result<()> {
    launch(COPY.of(target.dtype())?, [source], [target], &[], &[])
}

/// A number as a 0-dim tensor. A number that the dtype cannot hold wraps around, as in PyTorch.
pub(crate) fn number(value: Scalar, dtype: DType) -> Result<Tensor> {
    let tensor = Tensor::uninit(&[], dtype)?;
    fill(&tensor, value)?;
    Ok(tensor)
}

/// Sets every element that the layout reaches.
pub(crate) fn fill(target: &Tensor, value: Scalar) -> Result<()> {
    // Any number but 0 is true, which is stored as 1.
    let value = if target.dtype() == DType::Bool { Scalar::Bool(value.to_f64() != 0.0) } else { value };
    // By way of i64, so that −1 becomes 255 in u8, as it does in PyTorch, and not 0.
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

/// A view of only the first of the elements that each expanded dimension repeats, so that a kernel writes each place
/// once.
fn without_repeats(target: &Tensor) -> Tensor {
    let mut layout = *target.layout();
    for dim in 0..layout.ndim() {
        if layout.strides()[dim] == 0 && layout.sizes()[dim] > 1 {
            layout = layout.slice(dim, 0, 1, 1);
        }
    }
    target.with_layout(layout)
}
