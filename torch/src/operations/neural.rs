//! `torch.nn.functional`

use todevice::{
    AvgPool2dOptions, BatchNormArguments, Conv2dOptions, CrossEntropyOptions, LayerNormArguments,
    MaxPool2dOptions, Padding, Pair, Reduction, Tensor,
};

use super::elementwise::gelu;
use super::table;
use crate::arguments::{Arg, Arguments};
use crate::fault::{Result, raise};
use crate::tensor::not_here;

/// The reduction of a loss. The old arguments `size_average` and `reduce` take precedence, with PyTorch's warning.
pub(super) fn reduction(a: &Arguments, i: usize) -> Result<Reduction> {
    let place = |name| a.signature.parameters.iter().position(|parameter| parameter.name == name);
    let old =
        ["size_average", "reduce"].map(|name| place(name).filter(|i| !a.is_none(*i)).map(|i| a.bool(i)));
    if old != [None, None] {
        let (name, reduction) = match old {
            [_, Some(false)] => ("none", Reduction::None),
            [Some(false), _] => ("sum", Reduction::Sum),
            _ => ("mean", Reduction::Mean),
        };
        crate::run::warn(&format!(
            "size_average and reduce args will be deprecated, please use reduction='{name}' instead."
        ));
        return Ok(reduction);
    }
    match a.str(i) {
        "mean" => Ok(Reduction::Mean),
        "sum" => Ok(Reduction::Sum),
        "none" => Ok(Reduction::None),
        other => Err(raise("ValueError", format!("{other} is not a valid value for reduction"))),
    }
}

fn pair(a: &Arguments, i: usize, otherwise: Pair) -> Result<Pair> {
    pair_of(a, a.ints(i), otherwise)
}

fn pair_of(a: &Arguments, sizes: &[i64], otherwise: Pair) -> Result<Pair> {
    let size = |value: i64| {
        usize::try_from(value).map_err(|_| {
            raise("RuntimeError", format!("{}(): negative sizes are not supported", a.signature.name))
        })
    };
    match sizes {
        [] => Ok(otherwise),
        [both] => Ok(Pair::Both(size(*both)?)),
        [height, width] => Ok(Pair::Each(size(*height)?, size(*width)?)),
        more => Err(raise(
            "RuntimeError",
            format!("{}() expects one or two sizes, and got {}", a.signature.name, more.len()),
        )),
    }
}

fn conv2d(a: &Arguments) -> Result<Tensor> {
    let padding = match a.arg(4) {
        Arg::Any(object) => match object.downcast_ref::<rustpython_vm::builtins::PyStr>() {
            Some(name) => match name.to_string().as_str() {
                "same" => Padding::Same,
                "valid" => 0.into(),
                _ => {
                    return Err(raise(
                        "RuntimeError",
                        "Unrecognized padding string. Must be one of 'valid' or 'same'.",
                    ));
                }
            },
            None => match (crate::arguments::int(object, a.vm), crate::arguments::ints(object, a.vm)) {
                (Some(both), _) => Padding::Zeros(pair_of(a, &[both], Pair::Both(0))?),
                (None, Some(ints)) => Padding::Zeros(pair_of(a, &ints, Pair::Both(0))?),
                _ => {
                    return Err(raise(
                        "TypeError",
                        "conv2d(): argument 'padding' must be int, tuple of ints or str",
                    ));
                }
            },
        },
        _ => 0.into(),
    };
    let options = Conv2dOptions {
        stride: pair(a, 3, Pair::Both(1))?,
        padding,
        dilation: pair(a, 5, Pair::Both(1))?,
        groups: a.count(6, |_| "non-positive groups is not supported".to_owned())?,
        ..Default::default()
    };
    let bias = a.opt_t(2);
    Ok(a.t(0).conv2d(&a.t(1), (bias.as_ref(), options))?)
}

fn max_pool2d(a: &Arguments) -> Result<Tensor> {
    if a.bool(6) {
        return Err(not_here("return_indices=True"));
    }
    let stride = if a.ints(2).is_empty() { None } else { Some(pair(a, 2, Pair::Both(1))?) };
    let options = MaxPool2dOptions {
        stride,
        padding: pair(a, 3, Pair::Both(0))?,
        dilation: pair(a, 4, Pair::Both(1))?,
        ceil_mode: a.bool(5),
    };
    Ok(a.t(0).max_pool2d((pair(a, 1, Pair::Both(1))?, options))?)
}

fn avg_pool2d(a: &Arguments) -> Result<Tensor> {
    let stride = if a.ints(2).is_empty() { None } else { Some(pair(a, 2, Pair::Both(1))?) };
    let options = AvgPool2dOptions {
        stride,
        padding: pair(a, 3, Pair::Both(0))?,
        ceil_mode: a.bool(4),
        count_include_pad: a.bool(5),
        divisor_override: a.opt_int(6),
    };
    Ok(a.t(0).avg_pool2d((pair(a, 1, Pair::Both(1))?, options))?)
}

fn adaptive_avg_pool2d(a: &Arguments) -> Result<Tensor> {
    let sizes = match a.any(1) {
        Some(object) => match crate::arguments::int(object, a.vm) {
            Some(both) => vec![Some(both as usize); 2],
            None => {
                let items: Vec<rustpython_vm::PyObjectRef> = a.vm.extract_elements_with(object, Ok)?;
                items.iter().map(|item| crate::arguments::int(item, a.vm).map(|size| size as usize)).collect()
            }
        },
        None => vec![None; 2],
    };
    match sizes[..] {
        [height, width] => Ok(a.t(0).adaptive_avg_pool2d(Pair::Each(height, width))?),
        _ => Err(raise("RuntimeError", "adaptive_avg_pool2d(): output_size must be 2")),
    }
}

/// An activation, which writes to its input if argument `i` is true. Its gradient needs the old values: it gets a copy.
fn perhaps_in_place(
    a: &Arguments,
    i: usize,
    of: impl Fn(&Tensor) -> todevice::Result<Tensor>,
) -> Result<Tensor> {
    let x = a.t(0);
    match a.bool(i) {
        true => Ok(x.copy_(&of(&x.copy()?)?)?),
        false => Ok(of(&x)?),
    }
}

fn classes(
    a: &Arguments,
    weight: usize,
    ignore: usize,
    reduce: usize,
    smoothing: Option<usize>,
) -> Result<CrossEntropyOptions> {
    Ok(CrossEntropyOptions {
        weight: a.opt_t(weight),
        ignore_index: a.int(ignore),
        reduction: reduction(a, reduce)?,
        label_smoothing: smoothing.map_or(0.0, |i| a.float(i)),
    })
}

table! {
    Functional "linear(Tensor input, Tensor weight, Tensor? bias=None)" => |a| a.t(0).linear(&a.t(1), a.opt_t(2).as_ref())?;
    Functional "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, any padding=0, int[] dilation=1, int groups=1)" => |a| conv2d(a)?;
    Functional "relu(Tensor input, bool inplace=False)" => |a| if a.bool(1) { a.t(0).relu_()? } else { a.t(0).relu()? };
    Functional "tanh(Tensor input)" => |a| a.t(0).tanh()?;
    Functional "sigmoid(Tensor input)" => |a| a.t(0).sigmoid()?;
    Functional "gelu(Tensor input, *, str approximate='none')" => |a| gelu(&a.t(0), a.str(1))?;
    Functional "silu(Tensor input, bool inplace=False)" => |a| perhaps_in_place(a, 1, |x| x.silu())?;
    Functional "leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False)" => |a| perhaps_in_place(a, 2, |x| x.leaky_relu(a.float(1)))?;
    Functional "softplus(Tensor input, float beta=1, float threshold=20)" => |a| a.t(0).softplus(a.float(1), a.float(2))?;
    Functional "dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False)" => |a| {
        perhaps_in_place(a, if a.bool(2) { 3 } else { 2 }, |x| x.dropout(a.float(1), a.bool(2)))?
    };
    Functional "embedding(Tensor input, Tensor weight, int? padding_idx=None)" => |a| a.t(0).embedding(&a.t(1), a.opt_int(2))?;
    Functional "max_pool2d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] dilation=1, bool ceil_mode=False, bool return_indices=False)" => |a| max_pool2d(a)?;
    Functional "avg_pool2d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)" => |a| avg_pool2d(a)?;
    Functional "adaptive_avg_pool2d(Tensor input, any output_size)" => |a| adaptive_avg_pool2d(a)?;
    Functional "mse_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str reduction='mean')" => |a| a.t(0).mse_loss(&a.t(1), reduction(a, 4)?)?;
    Functional "l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str reduction='mean')" => |a| a.t(0).l1_loss(&a.t(1), reduction(a, 4)?)?;
    Functional "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0)"
        => |a| a.t(0).cross_entropy((&a.t(1), classes(a, 2, 4, 6, Some(7))?))?;
    Functional "nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean')"
        => |a| a.t(0).nll_loss((&a.t(1), classes(a, 2, 4, 6, None)?))?;
    Functional "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05)" => |a| {
        let sizes: Vec<usize> = a.sizes(1)?;
        a.t(0).layer_norm((&sizes[..], LayerNormArguments { weight: a.opt_t(2), bias: a.opt_t(3), eps: a.float(4) }))?
    };
    Functional "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05)" => |a| {
        a.t(0).batch_norm(BatchNormArguments {
            running_mean: a.opt_t(1),
            running_var: a.opt_t(2),
            weight: a.opt_t(3),
            bias: a.opt_t(4),
            training: a.bool(5),
            momentum: a.float(6),
            eps: a.float(7),
        })?
    };
}
