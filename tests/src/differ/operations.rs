//! The table of all operations that a program can call.
//!
//! A row has: the required accuracy, a name, the parameters with their kinds, the call in Python, the call in Rust.
//! Each call is both code and text: a reported difference prints it.

use todevice::autograd::{self, BackwardOptions};
use todevice::{
    Approximate, AvgPool2dOptions, BatchNormArguments, Conv2dOptions, CrossEntropyOptions, DType, Device,
    LayerNormArguments, MaxPool2dOptions, Reduction, Result, Scalar, Tensor, TensorOptions, ToOptions,
};

use super::Argument;

/// The accuracy of a result compared with PyTorch, and the effect of inexact operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Bit-identical.
    Exact,
    /// Bit-identical, but a small error of an operand may become a large one of the result.
    Jump,
    /// Rounded differently.
    Close,
    /// Rounded differently, and a small error of an operand may become a large one of the result.
    Steep,
}

impl Nature {
    pub fn is_exact(self) -> bool {
        matches!(self, Nature::Exact | Nature::Jump)
    }

    pub fn takes_only_exact(self) -> bool {
        matches!(self, Nature::Jump | Nature::Steep)
    }
}

#[derive(Debug)]
pub struct Operation {
    pub nature: Nature,
    pub name: &'static str,
    pub parameters: &'static [(&'static str, Kind)],
    pub python: &'static str,
    pub rust: &'static str,
    pub run: fn(&[Argument], &[Tensor], Device) -> Result<Vec<Tensor>>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $type:ty;)*) => {
        /// The kind of an argument, which tells [`generate`](super::generate) how to make one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        macro_rules! rust_type {
            $(($kind) => { $type };)*
        }
    };
}

kinds! {
    /// Any tensor.
    Any: &Tensor;
    /// Usually a floating-point tensor.
    Floats: &Tensor;
    /// A tensor that broadcasts with the first.
    Beside: &Tensor;
    /// A tensor with the shape and dtype of the first.
    Like: &Tensor;
    /// A condition that broadcasts with the first.
    Truths: &Tensor;
    /// A tensor with at least one dimension, and one that it can be matrix-multiplied with.
    Matrix: &Tensor;
    Factor: &Tensor;
    /// The weight and bias of a linear layer for the first.
    LinearWeight: &Tensor;
    LinearBias: Option<&Tensor>;
    /// A vector of indices into the dimension before it; for `gather`, a tensor with as many dimensions as the input.
    Entries: &Tensor;
    EntryGrid: &Tensor;
    /// The values to add at the indices given by the argument before it.
    AtEntries: &Tensor;
    AtEntryGrid: &Tensor;
    /// Scores, the target classes, and a weight for each class.
    Scores: &Tensor;
    Classes: &Tensor;
    ClassWeight: Option<&Tensor>;
    /// Images, and the weight of a convolution with the number of groups given by the argument before it.
    Image: &Tensor;
    Filter: &Tensor;
    FilterBias: Option<&Tensor>;
    /// A batch, and one number for each of its channels.
    Batch: &Tensor;
    PerChannel: Option<&Tensor>;
    /// The same, but positive; present only if the argument before it is.
    Variance: Option<&Tensor>;
    /// The trailing sizes of the first, and parameters with this shape.
    LastSizes: &[usize];
    OfLastSizes: Option<&Tensor>;
    Dim: i64;
    /// A dimension, which may be one past the last.
    NewDim: i64;
    Dims: &[i64];
    Permutation: &[i64];
    /// Sizes with the same number of elements, sometimes with a −1.
    Reshaped: &[i64];
    /// Sizes that the tensor can be expanded to.
    Expanded: &[i64];
    Sizes: &[usize];
    /// An index into the dimension before it, or into the first; negative ones count from the end.
    Entry: i64;
    /// A count from 0, and one from 1.
    Count: usize;
    Small: usize;
    Number: Scalar;
    Real: f64;
    Exponent: f64;
    Bound: Option<Scalar>;
    Flag: bool;
    Type: DType;
    /// The dtype of a new tensor.
    OfType: TensorOptions;
    HowReduced: Reduction;
    /// The parameters of `tensor`.
    Values: &str;
}

/// Converts an argument for the call in Rust.
trait Take<'a>: Sized {
    fn take(argument: &'a Argument, variables: &'a [Tensor], device: Device) -> Self;
}

macro_rules! take {
    ($($type:ty: $pattern:pat => $value:expr, $variables:ident $device:ident;)*) => {$(
        impl<'a> Take<'a> for $type {
            fn take(argument: &'a Argument, $variables: &'a [Tensor], $device: Device) -> $type {
                match argument {
                    $pattern => $value,
                    other => panic!("{other:?} is not for a parameter of type {}", stringify!($type)),
                }
            }
        }
    )*};
}
take! {
    &'a Tensor: Argument::Tensor(variable) => &variables[*variable], variables _device;
    Option<&'a Tensor>: Argument::Optional(variable) => variable.map(|v| &variables[v]), variables _device;
    i64: Argument::Int(value) => *value, _variables _device;
    usize: Argument::Int(value) => *value as usize, _variables _device;
    f64: Argument::Float(value) => *value, _variables _device;
    bool: Argument::Bool(value) => *value, _variables _device;
    &'a [i64]: Argument::Ints(values) => values, _variables _device;
    &'a [usize]: Argument::Sizes(values) => values, _variables _device;
    &'a str: Argument::Text(text) => text, _variables _device;
    DType: Argument::Type(dtype) => *dtype, _variables _device;
    TensorOptions: Argument::Type(dtype) => (device, *dtype).into(), _variables device;
    Reduction: Argument::Text(text) => reduction(text), _variables _device;
}

impl Take<'_> for Scalar {
    fn take(argument: &Argument, _: &[Tensor], _: Device) -> Scalar {
        match argument {
            Argument::Int(value) => Scalar::Int(*value),
            Argument::Float(value) => Scalar::Float(*value),
            other => panic!("{other:?} is no number"),
        }
    }
}

impl Take<'_> for Option<Scalar> {
    fn take(argument: &Argument, _: &[Tensor], _: Device) -> Option<Scalar> {
        if let Argument::Float(value) = argument { Some((*value).into()) } else { None }
    }
}

/// The result of an operation: a tensor, several, or none.
trait Tensors {
    fn tensors(self) -> Vec<Tensor>;
}

impl Tensors for Tensor {
    fn tensors(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl Tensors for Vec<Tensor> {
    fn tensors(self) -> Vec<Tensor> {
        self
    }
}

impl Tensors for () {
    fn tensors(self) -> Vec<Tensor> {
        vec![]
    }
}

macro_rules! operations {
    ($($nature:ident $name:ident($($p:ident: $kind:ident),*) $python:literal => $rust:expr;)*) => {
        pub static OPERATIONS: &[Operation] = &[$(Operation {
            nature: Nature::$nature,
            name: stringify!($name),
            parameters: &[$((stringify!($p), Kind::$kind)),*],
            python: $python,
            rust: stringify!($rust),
            run: |arguments, variables, device| {
                let mut _rest = arguments.iter();
                $(
                    let next = _rest.next().expect("as many arguments as parameters");
                    let $p = <rust_type!($kind) as Take>::take(next, variables, device);
                )*
                let _ = (variables, device);
                Ok($rust?.tensors())
            },
        }),*];
    };
}

operations! {
    // New tensors.
    Exact tensor(t: OfType, sizes: Sizes, values: Values, grad: Flag) "" => tensor(t, sizes, values, grad);
    Exact zeros(sizes: Sizes, t: OfType) "torch.zeros(sizes, dtype=t)" => Tensor::zeros((sizes, t));
    Exact ones(sizes: Sizes, t: OfType) "torch.ones(sizes, dtype=t)" => Tensor::ones((sizes, t));
    Exact full(sizes: Sizes, n: Number, t: OfType) "torch.full(sizes, n, dtype=t)" => Tensor::full(sizes, (n, t));
    Exact eye(n: Count, t: OfType) "torch.eye(n, dtype=t)" => Tensor::eye((n, t));
    Close arange(t: OfType, a: Number, b: Number, n: Number) "torch.arange(a, b, n, dtype=t)" => Tensor::arange(a, b, (n, t));
    Close linspace(t: OfType, a: Real, b: Real, n: Count) "torch.linspace(a, b, n, dtype=t)" => Tensor::linspace(a, b, (n, t));
    Exact zeros_like(x: Any) "torch.zeros_like(x)" => x.zeros_like();
    Exact ones_like(x: Any) "torch.ones_like(x)" => x.ones_like();
    Jump to(x: Any, t: Type) "x.to(t)" => x.to(t);
    Exact copy(x: Any) "x.clone()" => x.copy();
    Exact contiguous(x: Any) "x.contiguous()" => x.contiguous();
    Exact detach(x: Any) "x.detach()" => Ok::<_, todevice::Error>(x.detach());
    Exact requires_grad_(x: Any, on: Flag) "x.requires_grad_(on)" => x.requires_grad_(on);

    // Elementwise operations.
    Exact neg(x: Any) "x.neg()" => x.neg();
    Exact abs(x: Any) "x.abs()" => x.abs();
    Jump sign(x: Any) "x.sign()" => x.sign();
    Exact square(x: Any) "x.square()" => x.square();
    Exact relu(x: Any) "x.relu()" => x.relu();
    Jump floor(x: Any) "x.floor()" => x.floor();
    Jump ceil(x: Any) "x.ceil()" => x.ceil();
    Jump round(x: Any) "x.round()" => x.round();
    Steep sqrt(x: Any) "x.sqrt()" => x.sqrt();
    Steep rsqrt(x: Any) "x.rsqrt()" => x.rsqrt();
    Jump reciprocal(x: Any) "x.reciprocal()" => x.reciprocal();
    Steep exp(x: Any) "x.exp()" => x.exp();
    Steep log(x: Any) "x.log()" => x.log();
    Steep sin(x: Any) "x.sin()" => x.sin();
    Steep cos(x: Any) "x.cos()" => x.cos();
    Close tanh(x: Any) "x.tanh()" => x.tanh();
    Close sigmoid(x: Any) "x.sigmoid()" => x.sigmoid();
    Close gelu(x: Floats) "F.gelu(x)" => x.gelu(Approximate::None);
    Close gelu_tanh(x: Floats) "F.gelu(x, approximate='tanh')" => x.gelu(Approximate::Tanh);
    Steep pow(x: Any, n: Exponent) "x.pow(n)" => x.pow(n);
    Exact isnan(x: Any) "x.isnan()" => x.isnan();
    Jump logical_not(x: Any) "x.logical_not()" => x.logical_not();
    Exact clamp(x: Floats, a: Bound, b: Bound) "x.clamp(a, b)" => x.clamp(a, b);
    Exact add(x: Any, y: Beside) "x.add(y)" => x.add(y);
    Exact sub(x: Any, y: Beside) "x.sub(y)" => x.sub(y);
    Exact mul(x: Any, y: Beside) "x.mul(y)" => x.mul(y);
    Jump div(x: Any, y: Beside) "x.div(y)" => x.div(y);
    // For 0 and −0, PyTorch returns either.
    Close maximum(x: Any, y: Beside) "torch.maximum(x, y)" => x.maximum(y);
    Close minimum(x: Any, y: Beside) "torch.minimum(x, y)" => x.minimum(y);
    Exact add_number(x: Any, n: Number) "x.add(n)" => x.add(n);
    Exact sub_number(x: Any, n: Number) "x.sub(n)" => x.sub(n);
    Exact mul_number(x: Any, n: Number) "x.mul(n)" => x.mul(n);
    Exact div_number(x: Any, n: Number) "x.div(n)" => x.div(n);
    Exact number_sub(x: Any, n: Real) "(n - x)" => (n - x);
    Jump number_div(x: Any, n: Real) "(n / x)" => (n / x);
    Jump eq(x: Any, y: Beside) "x.eq(y)" => x.eq(y);
    Jump ne(x: Any, y: Beside) "x.ne(y)" => x.ne(y);
    Jump lt(x: Any, y: Beside) "x.lt(y)" => x.lt(y);
    Jump le(x: Any, y: Beside) "x.le(y)" => x.le(y);
    Jump gt(x: Any, y: Beside) "x.gt(y)" => x.gt(y);
    Jump ge(x: Any, y: Beside) "x.ge(y)" => x.ge(y);
    Jump eq_number(x: Any, n: Number) "x.eq(n)" => x.eq(n);
    Jump gt_number(x: Any, n: Number) "x.gt(n)" => x.gt(n);
    Exact where_cond(x: Any, y: Beside, c: Truths) "torch.where(c, x, y)" => c.where_cond(x, y);
    Exact where_number(x: Any, n: Number, c: Truths) "torch.where(c, x, n)" => c.where_cond(x, n);
    Exact masked_fill(x: Any, n: Number, c: Truths) "x.masked_fill(c, n)" => x.masked_fill(c, n);

    // Reductions.
    Close sum(x: Any) "x.sum()" => x.sum();
    Close sum_dims(x: Any, dims: Dims, keep: Flag) "x.sum(dims, keepdim=keep)" => x.sum_dims(dims, keep);
    Close mean(x: Floats) "x.mean()" => x.mean();
    Close mean_dims(x: Floats, dims: Dims, keep: Flag) "x.mean(dims, keepdim=keep)" => x.mean_dims(dims, keep);
    Steep var(x: Floats, dims: Dims, n: Count, keep: Flag) "torch.var(x, dims or None, correction=n, keepdim=keep)" => x.var(dims, n, keep);
    Steep std(x: Floats, dims: Dims, n: Count, keep: Flag) "torch.std(x, dims or None, correction=n, keepdim=keep)" => x.std(dims, n, keep);
    Close norm(x: Floats) "x.norm()" => x.norm();
    Exact max(x: Any) "x.max()" => x.max();
    Exact min(x: Any) "x.min()" => x.min();
    Exact amax(x: Any, dims: Dims, keep: Flag) "x.amax(dims, keepdim=keep)" => x.amax(dims, keep);
    Exact amin(x: Any, dims: Dims, keep: Flag) "x.amin(dims, keepdim=keep)" => x.amin(dims, keep);
    Jump max_dim(x: Any, dim: Dim, keep: Flag) "x.max(dim, keepdim=keep)" => x.max_dim(dim, keep).map(|(a, b)| vec![a, b]);
    Jump min_dim(x: Any, dim: Dim, keep: Flag) "x.min(dim, keepdim=keep)" => x.min_dim(dim, keep).map(|(a, b)| vec![a, b]);
    Jump argmax(x: Any, dim: Dim, keep: Flag) "x.argmax(dim, keepdim=keep)" => x.argmax(dim, keep);
    Jump argmin(x: Any, dim: Dim, keep: Flag) "x.argmin(dim, keepdim=keep)" => x.argmin(dim, keep);
    Jump argmax_all(x: Any) "x.argmax()" => x.argmax(None, false);
    Jump all(x: Any) "x.all()" => x.all();
    Jump any(x: Any) "x.any()" => x.any();
    Close softmax(x: Floats, dim: Dim) "x.softmax(dim)" => x.softmax(dim);
    Close log_softmax(x: Floats, dim: Dim) "x.log_softmax(dim)" => x.log_softmax(dim);

    // Views.
    Exact view(x: Any, sizes: Reshaped) "x.view(sizes)" => x.view(sizes);
    Exact reshape(x: Any, sizes: Reshaped) "x.reshape(sizes)" => x.reshape(sizes);
    Exact flatten(x: Any, a: Dim, b: Dim) "x.flatten(a, b)" => x.flatten(a, b);
    Exact unsqueeze(x: Any, dim: NewDim) "x.unsqueeze(dim)" => x.unsqueeze(dim);
    Exact squeeze(x: Any, dim: Dim) "x.squeeze(dim)" => x.squeeze(dim);
    Exact expand(x: Any, sizes: Expanded) "x.expand(sizes)" => x.expand(sizes);
    Exact permute(x: Any, dims: Permutation) "x.permute(dims)" => x.permute(dims);
    Exact transpose(x: Any, a: Dim, b: Dim) "x.transpose(a, b)" => x.transpose(a, b);
    Exact t(x: Any) "x.t()" => x.t();
    Exact select(x: Any, dim: Dim, i: Entry) "x.select(dim, i)" => x.select(dim, i);
    Exact get(x: Any, i: Entry) "x[i]" => x.get(i);
    Exact narrow(x: Any, dim: Dim, a: Count, n: Count) "x.narrow(dim, a, n)" => x.narrow(dim, a, n);
    Exact slice(x: Any, dim: Dim, a: Entry, b: Entry, n: Small) "torch.ops.aten.slice(x, dim, a, b, n)" => x.slice(dim, a, b, n);
    Exact unfold(x: Any, dim: Dim, n: Small, step: Small) "x.unfold(dim, n, step)" => x.unfold(dim, n, step);
    Exact split(x: Any, n: Small, dim: Dim) "x.split(n, dim)" => x.split(n, dim);
    Exact chunk(x: Any, n: Small, dim: Dim) "x.chunk(n, dim)" => x.chunk(n, dim);
    Exact cat(x: Any, y: Like, dim: Dim) "torch.cat([x, y], dim)" => Tensor::cat(&[x, y], dim);
    Exact stack(x: Any, y: Like, dim: NewDim) "torch.stack([x, y], dim)" => Tensor::stack(&[x, y], dim);

    // Indexing.
    Exact index(x: Any, i: Entries) "x[i]" => x.index(i);
    Exact index_select(x: Any, dim: Dim, i: Entries) "x.index_select(dim, i)" => x.index_select(dim, i);
    Exact gather(x: Any, dim: Dim, i: EntryGrid) "x.gather(dim, i)" => x.gather(dim, i);
    Close index_add(x: Any, dim: Dim, i: Entries, y: AtEntries) "x.index_add(dim, i, y)" => x.index_add(dim, i, y);
    Close scatter_add(x: Any, dim: Dim, i: EntryGrid, y: AtEntryGrid) "x.scatter_add(dim, i, y)" => x.scatter_add(dim, i, y);

    // Products, losses, layers.
    Close matmul(x: Matrix, y: Factor) "x.matmul(y)" => x.matmul(y);
    Close mm(x: Matrix, y: Factor) "x.mm(y)" => x.mm(y);
    Close bmm(x: Matrix, y: Factor) "x.bmm(y)" => x.bmm(y);
    Close linear(x: Matrix, w: LinearWeight, b: LinearBias) "F.linear(x, w, b)" => x.linear(w, b);
    Close mse_loss(x: Floats, y: Like, how: HowReduced) "F.mse_loss(x, y, reduction=how)" => x.mse_loss(y, how);
    Close l1_loss(x: Floats, y: Like, how: HowReduced) "F.l1_loss(x, y, reduction=how)" => x.l1_loss(y, how);
    Close cross_entropy(x: Scores, y: Classes, w: ClassWeight, how: HowReduced)
        "F.cross_entropy(x, y, weight=w, reduction=how)"
        => x.cross_entropy((y, CrossEntropyOptions { weight: w.cloned(), reduction: how, ..Default::default() }));
    Close nll_loss(x: Scores, y: Classes, w: ClassWeight, how: HowReduced)
        "F.nll_loss(x, y, weight=w, reduction=how)"
        => x.nll_loss((y, CrossEntropyOptions { weight: w.cloned(), reduction: how, ..Default::default() }));
    Close conv2d(x: Image, g: Small, w: Filter, b: FilterBias, s: Small, p: Count, d: Small)
        "F.conv2d(x, w, b, s, p, d, g)"
        => x.conv2d(w, (b, Conv2dOptions { stride: s.into(), padding: p.into(), dilation: d.into(), groups: g, ..Default::default() }));
    Exact max_pool2d(x: Image, k: Small, s: Small, p: Count, up: Flag)
        "F.max_pool2d(x, k, s, p, ceil_mode=up)"
        => x.max_pool2d((k, MaxPool2dOptions { stride: Some(s.into()), padding: p.into(), ceil_mode: up, ..Default::default() }));
    Close avg_pool2d(x: Image, k: Small, s: Small, p: Count, up: Flag, pad: Flag)
        "F.avg_pool2d(x, k, s, p, up, pad)"
        => x.avg_pool2d((k, AvgPool2dOptions { stride: Some(s.into()), padding: p.into(), ceil_mode: up, count_include_pad: pad, ..Default::default() }));
    Close adaptive_avg_pool2d(x: Image, a: Small, b: Small) "F.adaptive_avg_pool2d(x, (a, b))" => x.adaptive_avg_pool2d((a, b));
    Steep batch_norm(x: Batch, m: PerChannel, v: Variance, w: PerChannel, b: PerChannel, on: Flag)
        "F.batch_norm(x, m, v, w, b, training=on)"
        => x.batch_norm(BatchNormArguments {
            running_mean: m.cloned(), running_var: v.cloned(), weight: w.cloned(), bias: b.cloned(), training: on, ..Default::default()
        });
    Steep layer_norm(x: Floats, sizes: LastSizes, w: OfLastSizes, b: OfLastSizes)
        "F.layer_norm(x, sizes, w, b)" => x.layer_norm((sizes, LayerNormArguments { weight: w.cloned(), bias: b.cloned(), ..Default::default() }));

    // In-place operations.
    Exact add_(x: Any, y: Beside) "x.add_(y)" => x.add_(y);
    Exact sub_(x: Any, y: Beside) "x.sub_(y)" => x.sub_(y);
    Exact mul_(x: Any, y: Beside) "x.mul_(y)" => x.mul_(y);
    Jump div_(x: Any, y: Beside) "x.div_(y)" => x.div_(y);
    Exact add_number_(x: Any, n: Number) "x.add_(n)" => x.add_(n);
    Exact mul_number_(x: Any, n: Number) "x.mul_(n)" => x.mul_(n);
    Exact neg_(x: Any) "x.neg_()" => x.neg_();
    Exact abs_(x: Any) "x.abs_()" => x.abs_();
    Exact relu_(x: Any) "x.relu_()" => x.relu_();
    Jump floor_(x: Any) "x.floor_()" => x.floor_();
    Steep exp_(x: Any) "x.exp_()" => x.exp_();
    Close tanh_(x: Any) "x.tanh_()" => x.tanh_();
    Exact clamp_(x: Floats, a: Bound, b: Bound) "x.clamp_(a, b)" => x.clamp_(a, b);
    Exact masked_fill_(x: Any, n: Number, c: Truths) "x.masked_fill_(c, n)" => x.masked_fill_(c, n);
    Exact fill_(x: Any, n: Number) "x.fill_(n)" => x.fill_(n);
    Exact zero_(x: Any) "x.zero_()" => x.zero_();
    Exact copy_(x: Any, y: Beside) "x.copy_(y)" => x.copy_(y);

    Close backward(x: Any) "x.backward(weights(x))"
        => autograd::backward(x, BackwardOptions { gradient: weights(x)?, ..Default::default() });
}

pub fn named(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.name == name)
}

fn reduction(name: &str) -> Reduction {
    match name {
        "mean" => Reduction::Mean,
        "sum" => Reduction::Sum,
        _ => Reduction::None,
    }
}

/// The Rust name of a named choice.
pub fn rust_name(text: &str) -> String {
    format!("Reduction::{:?}", reduction(text))
}

/// The Rust type in which a tensor's values are written.
pub fn written_as(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        dtype if dtype.is_floating_point() => "f64",
        _ => "i64",
    }
}

/// A tensor of the values in `text`.
fn tensor(options: TensorOptions, sizes: &[usize], text: &str, grad: bool) -> Result<Tensor> {
    fn numbers<T: std::str::FromStr>(text: &str) -> Vec<T> {
        text.split_whitespace().map(|word| word.parse().ok().expect("a number")).collect()
    }
    let wide = match written_as(options.dtype.unwrap_or(DType::F32)) {
        "f64" => Tensor::from_slice(&numbers::<f64>(text), sizes)?,
        _ => Tensor::from_slice(&numbers::<i64>(text), sizes)?,
    };
    let tensor =
        wide.to(ToOptions { device: Some(options.device), dtype: options.dtype, ..Default::default() })?;
    if grad { tensor.requires_grad_(true) } else { Ok(tensor) }
}

/// An initial gradient: numbers that are exact in every dtype, as in `pytorch.py`.
pub fn weights(x: &Tensor) -> Result<Option<Tensor>> {
    if x.numel() == 1 {
        return Ok(None);
    }
    let values: Vec<f64> = (0..x.numel()).map(|i| (i * 37 + 11) as f64 % 61.0 / 32.0 - 0.9375).collect();
    Tensor::from_slice(&values, x.sizes())?.to(x.dtype())?.to(x.device()).map(Some)
}
