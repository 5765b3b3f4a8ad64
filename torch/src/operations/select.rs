//! Operations that choose elements by an index or a mask.

use todevice::{DType, Tensor};

use super::table;
use crate::arguments::Arguments;
use crate::fault::{Result, raise};
use crate::tensor::not_here;
use crate::value::Value;

fn nonzero(a: &Arguments) -> Result<Value> {
    let found = a.t(0).nonzero()?;
    if !a.bool(1) {
        return Ok(Value::Tensor(found));
    }
    let columns = (0..found.sizes()[1] as i64).map(|dim| found.select(1, dim));
    Ok(Value::Tuple(columns.collect::<todevice::Result<_>>()?))
}

/// `scatter` of a number or a tensor: the sum of what is not there and what is.
fn scatter(a: &Arguments) -> Result<Tensor> {
    let (x, dim, index) = (a.t(0), a.int(1), a.t(2));
    let ones = Tensor::ones((index.sizes(), (x.device(), x.dtype())))?;
    let source = match a.opt_t(3) {
        Some(source) if source.sizes() == index.sizes() => source.to(x.dtype())?,
        Some(_) => return Err(not_here("scatter of a tensor with other sizes than the index")),
        None => ones.mul(a.scalar(3))?,
    };
    let zeros = Tensor::zeros((x.sizes(), (x.device(), x.dtype())))?;
    let written = zeros.scatter_add(dim, &index, &ones)?;
    if written.gt(1i64)?.any()?.item()? != 0.0 {
        return Err(not_here("scatter that writes an element twice"));
    }
    let values = zeros.scatter_add(dim, &index, &source)?;
    Ok(written.gt(0i64)?.where_cond(&values, &x)?)
}

fn one_hot(a: &Arguments) -> Result<Tensor> {
    let x = a.t(0);
    let wrong = |text: &str| Err(raise("RuntimeError", text));
    if x.dtype() != DType::I64 {
        return wrong("one_hot is only applicable to index tensor of type LongTensor.");
    }
    let largest = match (x.numel(), a.int(1)) {
        (0, -1) => return wrong("Can not infer total number of classes from empty tensor."),
        (0, _) => -1,
        _ if x.min()?.item()? < 0.0 => return wrong("Class values must be non-negative."),
        _ => x.max()?.item()? as i64,
    };
    let classes = match a.int(1) {
        -1 => largest + 1,
        classes if classes <= largest => return wrong("Class values must be smaller than num_classes."),
        classes => classes,
    };
    let range = Tensor::arange(0i64, classes, (1i64, x.device()))?;
    Ok(x.unsqueeze(-1)?.eq(&range)?.to(DType::I64)?)
}

table! {
    Both "index_select(Tensor input, int dim, Tensor index)" => |a| a.t(0).index_select(a.int(1), &a.t(2))?;
    Both "gather(Tensor input, int dim, Tensor index)" => |a| a.t(0).gather(a.int(1), &a.t(2))?;
    Both "index_add(Tensor input, int dim, Tensor index, Tensor source)" => |a| a.t(0).index_add(a.int(1), &a.t(2), &a.t(3))?;
    Both "scatter_add(Tensor input, int dim, Tensor index, Tensor src)" => |a| a.t(0).scatter_add(a.int(1), &a.t(2), &a.t(3))?;
    Method "scatter_add_(Tensor input, int dim, Tensor index, Tensor src)" => |a| { let x = a.t(0); x.copy_(&x.scatter_add(a.int(1), &a.t(2), &a.t(3))?)? };
    Both "scatter(Tensor input, int dim, Tensor index, Operand src)" => |a| scatter(a)?;
    Both "scatter(Tensor input, int dim, Tensor index, Operand value)" => |a| scatter(a)?;
    Method "scatter_(Tensor input, int dim, Tensor index, Operand src)" => |a| { let x = a.t(0); x.copy_(&scatter(a)?)? };
    Method "scatter_(Tensor input, int dim, Tensor index, Operand value)" => |a| { let x = a.t(0); x.copy_(&scatter(a)?)? };
    Both "take_along_dim(Tensor input, Tensor indices, int? dim=None)" => |a| a.t(0).take_along_dim(&a.t(1), a.opt_int(2))?;
    Both "masked_select(Tensor input, Tensor mask)" => |a| a.t(0).masked_select(&a.t(1))?;
    Both "nonzero(Tensor input, *, bool as_tuple=False)" => |a| nonzero(a)?;
    Functional "one_hot(Tensor input, int num_classes=-1)" => |a| one_hot(a)?;
}
