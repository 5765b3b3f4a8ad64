//! Functions that create tensors: `torch.zeros`, `torch.tensor`, `x.new_zeros`, …

use todevice::{DType, MemoryFormat, Scalar, Tensor, TensorOptions};

use super::shape::memory_format;
use super::table;
use crate::arguments::Arguments;
use crate::fault::{Result, raise};
use crate::tensor::lists;

/// The dtype of numbers whose dtype is not given: int64, unless one of them is a float.
fn of_numbers(options: TensorOptions, numbers: &[Scalar]) -> TensorOptions {
    let is_float = numbers.iter().any(|number| matches!(number, Scalar::Float(_)));
    let dtype = options.dtype.unwrap_or(if is_float { DType::F32 } else { DType::I64 });
    TensorOptions { dtype: Some(dtype), ..options }
}

fn arange(a: &Arguments, start: Scalar, end: Scalar, step: Scalar, from: usize) -> Result<Tensor> {
    if step.to_f64() == 0.0 {
        return Err(raise("RuntimeError", "step must be nonzero"));
    }
    let options = of_numbers(a.options(from), &[start, end, step]);
    Ok(Tensor::arange(start, end, (step, options))?)
}

fn full(a: &Arguments, sizes: &[usize], value: Scalar, from: usize) -> Result<Tensor> {
    let options = a.options(from);
    let dtype = options.dtype.unwrap_or(value.dtype());
    a.finish(Tensor::full(sizes, (value, TensorOptions { dtype: Some(dtype), ..options }))?, from)
}

/// A tensor like the first argument. `new` makes a contiguous one; for strides to keep, `like` makes one from a tensor of
/// the dtype and the device that are asked for.
pub(super) fn like(
    a: &Arguments,
    from: usize,
    new: impl FnOnce(&[usize], TensorOptions) -> todevice::Result<Tensor>,
    like: impl FnOnce(&Tensor) -> todevice::Result<Tensor>,
) -> Result<Tensor> {
    let x = a.t(0);
    let options = a.options_like(from, &x);
    let format = memory_format(a, from + 5, MemoryFormat::Preserve)?;
    let x = if format == MemoryFormat::Preserve { x } else { x.detach().contiguous_in(format)? };
    let made = if x.is_contiguous() {
        new(x.sizes(), options)?
    } else {
        like(&x.detach().to((options.device, options.dtype.unwrap_or(x.dtype())))?)?
    };
    a.finish(made, from)
}

fn full_like(a: &Arguments, value: Scalar, from: usize) -> Result<Tensor> {
    like(a, from, |sizes, options| Tensor::full(sizes, (value, options)), |x| x.full_like(value))
}

fn new_full(a: &Arguments, sizes: &[usize], value: Scalar, from: usize) -> Result<Tensor> {
    a.finish(Tensor::full(sizes, (value, a.options_like(from, &a.t(0))))?, from)
}

fn tensor(a: &Arguments, data: usize, from: usize) -> Result<Tensor> {
    let options = a.options(from);
    let data = a.any(data).ok_or_else(|| raise("RuntimeError", "Could not infer dtype of NoneType"))?;
    let tensor = lists::tensor(data, options.dtype, a.vm)?;
    let given_device = a.device(from + 2);
    let tensor = match given_device {
        Some(device) => tensor.to(device)?,
        None => match data.downcast_ref::<crate::tensor::PyTensor>() {
            Some(of) => tensor.to(of.get().device())?,
            None => tensor,
        },
    };
    a.finish(tensor.detach(), from)
}

/// A tensor is taken as it is where nothing changes.
fn as_tensor(a: &Arguments) -> Result<Tensor> {
    match a.any(0).and_then(|data| data.downcast_ref::<crate::tensor::PyTensor>()) {
        Some(tensor) => {
            let tensor = tensor.get();
            Ok(tensor.to((a.device(2).unwrap_or(tensor.device()), a.dtype(1).unwrap_or(tensor.dtype())))?)
        }
        None => {
            let data = a.any(0).ok_or_else(|| raise("RuntimeError", "Could not infer dtype of NoneType"))?;
            let tensor = lists::tensor(data, a.dtype(1), a.vm)?;
            Ok(tensor.to(a.device(2).unwrap_or_default())?)
        }
    }
}

table! {
    Function "empty(int[] size, **options, any? memory_format=None)" => |a| {
        let x = Tensor::empty((&a.sizes(0)?[..], a.options(1)))?;
        a.finish(x.contiguous_in(memory_format(a, 6, MemoryFormat::Contiguous)?)?, 1)?
    };
    Function "zeros(int[] size, **options)" => |a| a.finish(Tensor::zeros((&a.sizes(0)?[..], a.options(1)))?, 1)?;
    Function "ones(int[] size, **options)" => |a| a.finish(Tensor::ones((&a.sizes(0)?[..], a.options(1)))?, 1)?;
    Function "full(int[] size, Scalar fill_value, **options)" => |a| full(a, &a.sizes(0)?, a.scalar(1), 2)?;
    Function "empty_like(Tensor input, **options, any? memory_format=None)" => |a| like(a, 1, |sizes, options| Tensor::empty((sizes, options)), Tensor::empty_like)?;
    Function "zeros_like(Tensor input, **options, any? memory_format=None)" => |a| like(a, 1, |sizes, options| Tensor::zeros((sizes, options)), Tensor::zeros_like)?;
    Function "ones_like(Tensor input, **options, any? memory_format=None)" => |a| like(a, 1, |sizes, options| Tensor::ones((sizes, options)), Tensor::ones_like)?;
    Function "full_like(Tensor input, Scalar fill_value, **options, any? memory_format=None)" => |a| full_like(a, a.scalar(1), 2)?;
    Method "new_empty(Tensor input, int[] size, **options)" => |a| a.finish(Tensor::empty((&a.sizes(1)?[..], a.options_like(2, &a.t(0))))?, 2)?;
    Method "new_zeros(Tensor input, int[] size, **options)" => |a| a.finish(Tensor::zeros((&a.sizes(1)?[..], a.options_like(2, &a.t(0))))?, 2)?;
    Method "new_ones(Tensor input, int[] size, **options)" => |a| a.finish(Tensor::ones((&a.sizes(1)?[..], a.options_like(2, &a.t(0))))?, 2)?;
    Method "new_full(Tensor input, int[] size, Scalar fill_value, **options)" => |a| new_full(a, &a.sizes(1)?, a.scalar(2), 3)?;
    Method "new_tensor(Tensor input, any data, **options)" => |a| {
        let like = a.options_like(2, &a.t(0));
        let data = a.any(1).ok_or_else(|| raise("RuntimeError", "Could not infer dtype of NoneType"))?;
        a.finish(lists::tensor(data, like.dtype, a.vm)?.to(like.device)?.detach(), 2)?
    };
    Function "tensor(any data, **options)" => |a| tensor(a, 0, 1)?;
    Function "as_tensor(any data, dtype? dtype=None, Device? device=None)" => |a| as_tensor(a)?;
    Function "scalar_tensor(Scalar s, **options)" => |a| full(a, &[], a.scalar(0), 1)?;
    Function "arange(Scalar end, **options)" => |a| a.finish(arange(a, Scalar::Int(0), a.scalar(0), Scalar::Int(1), 1)?, 1)?;
    Function "arange(Scalar start, Scalar end, Scalar step=1, **options)" => |a| a.finish(arange(a, a.scalar(0), a.scalar(1), a.scalar(2), 3)?, 3)?;
    Function "linspace(float start, float end, int steps, **options)" => |a| {
        let steps = a.count(2, |_| "number of steps must be non-negative".to_owned())?;
        a.finish(Tensor::linspace(a.float(0), a.float(1), (steps, a.options(3)))?, 3)?
    };
    Function "eye(int n, **options)" => |a| a.finish(Tensor::eye((a.count(0, |n| format!("n must be greater or equal to 0, got {n}"))?, a.options(1)))?, 1)?;
}
