//! Methods that ask about a tensor, move it, or read it.

use todevice::{DType, Device, MemoryFormat, Tensor, ToOptions, autograd};

use super::shape::{dim_of, memory_format};
use super::table;
use crate::arguments::{Arguments, of_element};
use crate::fault::{Result, raise};
use crate::tensor::not_here;
use crate::value::Value;

/// `x.cuda()`: without a device, to the current GPU.
fn cuda(a: &Arguments) -> Result<Tensor> {
    let x = a.t(0);
    match a.device(1) {
        Some(Device::Cpu) => Err(raise("RuntimeError", "Invalid device, must be cuda device")),
        device => {
            let device =
                device.unwrap_or_else(|| Device::cuda(todevice::cuda::current_device().unwrap_or(0)));
            Ok(x.to(ToOptions { device: Some(device), non_blocking: a.bool(2), ..Default::default() })?)
        }
    }
}

fn to(a: &Arguments, device: Option<Device>, dtype: Option<DType>, from: usize) -> Result<Tensor> {
    let memory_format = memory_format(a, from + 2, MemoryFormat::Preserve)?;
    Ok(a.t(0).to(ToOptions {
        device,
        dtype,
        memory_format,
        non_blocking: a.bool(from),
        copy: a.bool(from + 1),
    })?)
}

fn cast(a: &Arguments, dtype: DType) -> Result<Tensor> {
    Ok(a.t(0).to(dtype)?)
}

fn numpy(a: &Arguments) -> Result<Value> {
    let x = a.t(0);
    if x.is_cuda() {
        return Err(raise(
            "TypeError",
            format!(
                "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
                x.device()
            ),
        ));
    }
    if x.requires_grad() && !a.bool(1) {
        return Err(raise(
            "RuntimeError",
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        ));
    }
    match crate::shared::registered("numpy") {
        Some(numpy) => {
            let object = a.object(0);
            Ok(Value::Object(numpy.call((object,), a.vm)?))
        }
        None => Err(not_here("NumPy")),
    }
}

/// `torch.cuda.FloatTensor`
pub fn type_name(x: &Tensor) -> String {
    let on = if x.is_cuda() { "cuda." } else { "" };
    format!("torch.{on}{}Tensor", x.dtype().scalar_type())
}

/// Whether both are the same view of one storage.
fn is_set_to(x: &Tensor, y: &Tensor) -> bool {
    x.shares_storage(y)
        && x.storage_offset() == y.storage_offset()
        && x.sizes() == y.sizes()
        && x.strides() == y.strides()
}

fn backward(a: &Arguments) -> Result<()> {
    let options = autograd::BackwardOptions { gradient: a.opt_t(1), retain_graph: a.bool(2) };
    if a.bool(3) {
        return Err(not_here("create_graph=True"));
    }
    Ok(autograd::backward(&a.t(0), options)?)
}

table! {
    Method "size(Tensor input)" => |a| Value::Size(a.t(0).sizes().to_vec());
    Method "size(Tensor input, int dim)" => |a| a.t(0).size(a.int(1))?;
    Method "stride(Tensor input)" => |a| Value::Ints(a.t(0).strides().iter().map(|stride| *stride as i64).collect());
    Method "stride(Tensor input, int dim)" => |a| { let x = a.t(0); x.strides()[dim_of(&x, a.int(1))?] };
    Method "storage_offset(Tensor input)" => |a| a.t(0).storage_offset();
    Method "dim(Tensor input)" => |a| a.t(0).ndim();
    Method "ndimension(Tensor input)" => |a| a.t(0).ndim();
    Both "numel(Tensor input)" => |a| a.t(0).numel();
    Method "nelement(Tensor input)" => |a| a.t(0).numel();
    Method "element_size(Tensor input)" => |a| a.t(0).element_size();
    Method "is_contiguous(Tensor input, *, any? memory_format=None)" => |a| a.t(0).is_contiguous_in(memory_format(a, 1, MemoryFormat::Contiguous)?);
    Method "is_pinned(Tensor input)" => |a| a.t(0).is_pinned();
    Method "get_device(Tensor input)" => |a| { let x = a.t(0); if x.is_cuda() { x.device().index() as i64 } else { -1 } };
    Both "is_floating_point(Tensor input)" => |a| a.t(0).dtype().is_floating_point();
    Both "is_complex(Tensor input)" => |_a| false;
    Both "is_nonzero(Tensor input)" => |a| a.t(0).is_nonzero()?;
    Both "is_inference(Tensor input)" => |a| a.t(0).is_inference();
    Method "_is_view(Tensor input)" => |a| a.t(0).is_view();
    Method "is_same_size(Tensor input, Tensor other)" => |a| a.t(0).sizes() == a.t(1).sizes();
    Method "is_set_to(Tensor input, Tensor tensor)" => |a| is_set_to(&a.t(0), &a.t(1));
    Method "data_ptr(Tensor input)" => |a| { let x = a.t(0); x.storage_address().map_or(0, |address| address + (x.storage_offset() * x.element_size()) as u64) };
    Method "item(Tensor input)" => |a| of_element(&a.t(0))?;
    Method "type(Tensor input)" => |a| type_name(&a.t(0));
    Method "type(Tensor input, dtype dtype, bool non_blocking=False)" => |a| a.t(0).to(a.dtype(1).unwrap_or(DType::F32))?;

    Method "to(Tensor input, dtype dtype, bool non_blocking=False, bool copy=False, *, any? memory_format=None)" => |a| to(a, None, a.dtype(1), 2)?;
    Method "to(Tensor input, Tensor other, bool non_blocking=False, bool copy=False, *, any? memory_format=None)" => |a| { let like = a.t(1); to(a, Some(like.device()), Some(like.dtype()), 2)? };
    Method "to(Tensor input, Device? device=None, dtype? dtype=None, bool non_blocking=False, bool copy=False, *, any? memory_format=None)" => |a| to(a, a.device(1), a.dtype(2), 3)?;
    Method "cpu(Tensor input)" => |a| a.t(0).cpu()?;
    Method "cuda(Tensor input, Device? device=None, bool non_blocking=False)" => |a| cuda(a)?;
    Method "float(Tensor input)" => |a| cast(a, DType::F32)?;
    Method "double(Tensor input)" => |a| cast(a, DType::F64)?;
    Method "half(Tensor input)" => |a| cast(a, DType::F16)?;
    Method "bfloat16(Tensor input)" => |a| cast(a, DType::BF16)?;
    Method "long(Tensor input)" => |a| cast(a, DType::I64)?;
    Method "int(Tensor input)" => |a| cast(a, DType::I32)?;
    Method "bool(Tensor input)" => |a| cast(a, DType::Bool)?;
    Method "byte(Tensor input)" => |a| cast(a, DType::U8)?;
    Method "numpy(Tensor input, *, bool force=False)" => |a| numpy(a)?;

    Method "requires_grad_(Tensor input, bool requires_grad=True)" => |a| a.t(0).requires_grad_(a.bool(1))?;
    Method "backward(Tensor input, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False)" => |a| backward(a)?;
    Method "record_stream(Tensor input, any stream)" => |a| match a.any(1).and_then(|stream| stream.downcast_ref::<crate::cuda::PyStream>()) {
        Some(stream) => a.t(0).record_stream(stream.stream())?,
        None => return Err(raise("TypeError", "record_stream(): argument 'stream' must be torch.Stream")),
    };
}
