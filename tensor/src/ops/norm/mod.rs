//! Normalisation to mean 0 and variance 1, over a batch or a layer.

use std::panic::Location;

use smallvec::SmallVec;

use crate::autograd::error::AutogradError;
use crate::autograd::{Context, Function, Saved, is_grad_enabled, is_inference_mode_enabled, no_grad};
use crate::dtype::{DType, Scalar};
use crate::error::{DTypeError, Error, Result, not_implemented};
use crate::ops::plain::{contiguous, number, reshaped, write};
use crate::ops::{self, ArgumentNames, CastPolicy, Operation, operations};
use crate::options::{AndOptions, Keywords};
use crate::scope;
use crate::tensor::Tensor;

pub(crate) mod error;
mod kernels;

use error::NormError;
pub(in crate::ops) use kernels::ROWS;

/// The arguments of `torch.nn.functional.batch_norm` after the first.
#[derive(Clone, Debug)]
pub struct BatchNormArguments {
    /// The running mean, of shape (channels). Evaluation subtracts it; training updates it.
    pub running_mean: Option<Tensor>,
    /// The running variance, of the same shape and use.
    pub running_var: Option<Tensor>,
    /// The factor of each channel after normalisation, of shape (channels).
    pub weight: Option<Tensor>,
    /// The bias of each channel, added last.
    pub bias: Option<Tensor>,
    /// Whether the mean and variance are computed from this batch.
    pub training: bool,
    /// The weight of this batch in the update of the running mean and variance.
    pub momentum: f64,
    /// Added to the variance to keep it above 0.
    pub eps: f64,
}

impl Default for BatchNormArguments {
    fn default() -> BatchNormArguments {
        BatchNormArguments {
            running_mean: None,
            running_var: None,
            weight: None,
            bias: None,
            training: false,
            momentum: 0.1,
            eps: 1e-5,
        }
    }
}

/// The keyword arguments of [`Tensor::layer_norm`].
#[derive(Clone, Debug)]
pub struct LayerNormArguments {
    /// The factor of each element after normalisation, of the normalised shape.
    pub weight: Option<Tensor>,
    /// The bias of each element, added last.
    pub bias: Option<Tensor>,
    /// Added to the variance to keep it above 0.
    pub eps: f64,
}

impl Default for LayerNormArguments {
    fn default() -> LayerNormArguments {
        LayerNormArguments { weight: None, bias: None, eps: 1e-5 }
    }
}

impl Keywords for LayerNormArguments {}

operations! {
    static BATCH_NORM: Operation = Operation::new("batch_norm").node("NativeBatchNormBackward0");
    static BATCH_NORM_BACKWARD: Operation = Operation::new("native_batch_norm_backward");
    static LAYER_NORM: Operation =
        Operation::new("layer_norm").composite().autocast_on_cuda(CastPolicy::Fp32);
    static NATIVE_LAYER_NORM: Operation =
        Operation::new("layer_norm").node("NativeLayerNormBackward0").autocast_on_cuda(CastPolicy::Fp32);
    static LAYER_NORM_BACKWARD: Operation = Operation::new("native_layer_norm_backward");
}

const BATCH_NORM_ARGUMENTS: ArgumentNames = ArgumentNames {
    method: "wrapper_CUDA__cudnn_batch_norm",
    names: &["input", "weight", "bias", "running_mean", "running_var"],
};
const LAYER_NORM_ARGUMENTS: ArgumentNames =
    ArgumentNames { method: "wrapper_CUDA__native_layer_norm", names: &["input", "weight", "bias"] };

impl Tensor {
    /// Normalises each channel (dimension 1) to mean 0 and variance 1 (`torch.nn.functional.batch_norm`). Training uses
    /// the batch's mean and variance; evaluation uses the running ones.
    ///
    /// Training updates the running mean and variance in place, the latter with the sample variance.
    #[track_caller]
    pub fn batch_norm(&self, arguments: BatchNormArguments) -> Result<Tensor> {
        let _scope = scope::operation(BATCH_NORM.name, Location::caller());
        let BatchNormArguments { running_mean, running_var, weight, bias, training, momentum, eps } =
            &arguments;
        if running_mean.is_some() != running_var.is_some() {
            return Err(NormError::BatchNormRunning.into());
        }
        if *eps <= 0.0 {
            return Err(NormError::BatchNormEps { eps: *eps }.into());
        }
        if self.ndim() < 2 {
            return Err(NormError::BatchNormDims.into());
        }
        let [batch, channels, positions] = channels(self);
        if *training && batch * positions == 1 {
            return Err(NormError::BatchNormBatch { sizes: self.sizes().to_vec() }.into());
        }
        if self.numel() == 0 {
            return self.affine_of_nothing([weight, bias]);
        }
        if !training && running_mean.is_none() {
            return Err(NormError::BatchNormEvaluation.into());
        }
        let parameters = [weight, bias, running_mean, running_var];
        let in_order = [2, 3, 0, 1].map(|i| (BATCH_NORM_ARGUMENTS.names[1 + i], parameters[i]));
        for (name, parameter) in in_order {
            if let Some(got) = parameter.as_ref().map(Tensor::numel)
                && got != channels
            {
                return Err(NormError::BatchNormChannels { name, channels, got }.into());
            }
        }
        if is_grad_enabled() {
            for (i, argument) in [(2, "running_mean"), (3, "running_var")] {
                if parameters[i].as_ref().is_some_and(Tensor::requires_grad) {
                    let function = "native_batch_norm";
                    return Err(AutogradError::NotDifferentiable { function, argument }.into());
                }
            }
        }
        check_batch_norm(self, &parameters.map(Option::as_ref), *training)?;
        for (name, parameter) in in_order {
            if let Some(sizes) = parameter.as_ref().map(Tensor::sizes)
                && sizes.len() != 1
            {
                return Err(Error::custom(format!("{name} should be of shape [{channels}] not {sizes:?}")));
            }
        }
        let running = running_mean.clone().zip(running_var.clone());
        let function = BatchNormFunction { running, training: *training, momentum: *momentum, eps: *eps };
        let dtype = parameters.into_iter().flatten().next().map_or(self.dtype(), Tensor::dtype);
        let [weight, bias] = affine([weight.as_ref(), bias.as_ref()], dtype)?;
        ops::apply(function, [self, &weight, &bias])
    }

    /// Normalises the last dimensions together, of sizes `normalized_shape`, to mean 0 and variance 1. Then multiplies
    /// by the weight and adds the bias, both of that shape (`torch.nn.functional.layer_norm`).
    ///
    /// ```
    /// # use todevice::{LayerNormArguments, Tensor};
    /// let x = Tensor::new([[1.0, 2.0, 3.0]])?;
    /// let plain = x.layer_norm(&[3])?;
    /// let weight = Some(Tensor::full(&[3], (2.0, &x))?);
    /// let twice = x.layer_norm((&[3], LayerNormArguments { weight, ..Default::default() }))?;
    /// assert!(twice.equal(&(plain * 2.0)?)?);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm<'a>(
        &self,
        normalized_shape: impl AndOptions<&'a [usize], LayerNormArguments>,
    ) -> Result<Tensor> {
        let (normalized_shape, LayerNormArguments { weight, bias, eps }) = normalized_shape.split();
        let (weight, bias) = (weight.as_ref(), bias.as_ref());
        let operands: SmallVec<[&Tensor; 3]> = [self].into_iter().chain(weight).chain(bias).collect();
        ops::call(&LAYER_NORM, &operands, |operands| {
            let mut affine = operands[1..].iter().copied();
            let [weight, bias] = [weight, bias].map(|given| given.and_then(|_| affine.next()));
            layer_norm(operands[0], normalized_shape, weight, bias, eps)
        })
    }

    /// PyTorch's result for an empty batch has weight and bias in its graph.
    fn affine_of_nothing(&self, affine: [&Option<Tensor>; 2]) -> Result<Tensor> {
        let mut out = self.copy()?;
        if let [Some(weight), _] = affine {
            out = out.mul(&weight.select(0, 0)?)?;
        }
        if let [_, Some(bias)] = affine {
            out = out.add(&bias.select(0, 0)?)?;
        }
        Ok(out)
    }
}

#[track_caller]
fn layer_norm(
    x: &Tensor,
    normalized_shape: &[usize],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    let parameters = [weight, bias];
    check_devices("layer_norm", LAYER_NORM_ARGUMENTS, x, &parameters)?;
    if !x.is_cuda() {
        check_mixed(x, &parameters)?;
    }
    if normalized_shape.is_empty() {
        return Err(NormError::LayerNormNoShape.into());
    }
    for (name, tensor) in [("weight", weight), ("bias", bias)] {
        if let Some(tensor) = tensor
            && tensor.sizes() != normalized_shape
        {
            let (got, normalized_shape) = (tensor.sizes().to_vec(), normalized_shape.to_vec());
            return Err(NormError::LayerNormParameter { name, got, normalized_shape }.into());
        }
    }
    if !x.sizes().ends_with(normalized_shape) {
        let (input, normalized_shape) = (x.sizes().to_vec(), normalized_shape.to_vec());
        return Err(NormError::LayerNormShape { input, normalized_shape }.into());
    }
    if x.is_cuda() || !is_mixed(x, &parameters) {
        check_one_type("LayerNormKernelImpl", x, &parameters)?;
    }
    let dtype = weight.or(bias).map_or(x.dtype(), Tensor::dtype);
    let [weight, bias] = affine([weight, bias], dtype)?;
    ops::apply(LayerNormFunction { dims: normalized_shape.len(), eps }, [x, &weight, &bias])
}

#[track_caller]
fn check_batch_norm(input: &Tensor, parameters: &[Option<&Tensor>; 4], training: bool) -> Result<()> {
    check_devices("batch_norm", BATCH_NORM_ARGUMENTS, input, parameters)?;
    let &[weight, bias, mean, var] = parameters;
    // PyTorch's order of checks on the host and on a GPU.
    let in_order = match (input.is_cuda(), training) {
        (true, _) => [bias, weight, mean, var],
        (false, true) => [mean, var, weight, bias],
        (false, false) => *parameters,
    };
    if !input.is_cuda() && input.dtype().is_floating_point() && is_mixed(input, parameters) {
        return check_mixed(input, parameters);
    }
    check_one_type("batch_norm", input, &in_order)
}

#[track_caller]
fn check_devices(
    operation: &'static str,
    arguments: ArgumentNames,
    input: &Tensor,
    parameters: &[Option<&Tensor>],
) -> Result<()> {
    // The input stands in for absent parameters, so the others keep their names.
    let on = [input].into_iter().chain(parameters.iter().map(|parameter| parameter.unwrap_or(input)));
    let name = scope::current_operation().unwrap_or(operation);
    ops::same_device(name, Some(arguments), &on.collect::<SmallVec<[&Tensor; 5]>>())
}

fn is_mixed(input: &Tensor, parameters: &[Option<&Tensor>]) -> bool {
    parameters.iter().flatten().next().is_some_and(|first| first.dtype() != input.dtype())
}

/// On the CPU, only f32 parameters with a half-type input may have another dtype than the input.
fn check_mixed(input: &Tensor, parameters: &[Option<&Tensor>]) -> Result<()> {
    if !is_mixed(input, parameters) {
        return Ok(());
    }
    if parameters.iter().flatten().any(|parameter| parameter.dtype() != DType::F32) {
        return Err(NormError::MixedParameterType.into());
    }
    if input.dtype().is_half() { Ok(()) } else { Err(NormError::MixedTypes.into()) }
}

/// Refuses integers, and parameters of another dtype than the input, except f32 for half types on a GPU.
fn check_one_type(operation: &'static str, input: &Tensor, parameters: &[Option<&Tensor>]) -> Result<()> {
    if !input.dtype().is_floating_point() {
        return Err(not_implemented(operation, input.dtype()));
    }
    let is_f32 = |parameter: &&Tensor| parameter.dtype() == DType::F32;
    let expected = match input.is_cuda() && input.dtype().is_half() && parameters.iter().flatten().any(is_f32)
    {
        true => DType::F32,
        false => input.dtype(),
    };
    match parameters.iter().flatten().find(|parameter| parameter.dtype() != expected) {
        Some(other) => Err(DTypeError::Expected { expected, got: other.dtype() }.into()),
        None => Ok(()),
    }
}

/// The dtype of the statistics saved for backward.
fn kept(x: &Tensor) -> DType {
    if x.dtype().is_half() { DType::F32 } else { x.dtype() }
}

/// Returns weight and bias, or 1 and 0.
fn affine([weight, bias]: [Option<&Tensor>; 2], dtype: DType) -> Result<[Tensor; 2]> {
    let or = |tensor: Option<&Tensor>, value| match tensor {
        Some(tensor) => Ok(tensor.clone()),
        None => number(Scalar::Int(value), dtype),
    };
    Ok([or(weight, 1)?, or(bias, 0)?])
}

struct BatchNormFunction {
    running: Option<(Tensor, Tensor)>,
    training: bool,
    momentum: f64,
    eps: f64,
}

/// (batch, channels, positions)
fn channels(x: &Tensor) -> [usize; 3] {
    [x.sizes()[0], x.sizes()[1], x.sizes()[2..].iter().product()]
}

impl BatchNormFunction {
    fn update(&self, stats: [&Tensor; 2], count: usize) -> Result<()> {
        let Some((mean, var)) = &self.running else { return Ok(()) };
        if (mean.is_inference() || var.is_inference()) && !is_inference_mode_enabled() {
            return Err(AutogradError::InferenceInPlace.into());
        }
        let [new_mean, new_var] = [contiguous(mean)?, contiguous(var)?];
        kernels::running_stats(stats, [&new_mean, &new_var], self.momentum, count)?;
        for (running, new) in [(mean, &new_mean), (var, &new_var)] {
            if !running.is_same(new) {
                write(running, new)?;
            }
            running.storage().bump_version();
        }
        Ok(())
    }
}

impl Function<3> for BatchNormFunction {
    fn operation(&self) -> &'static Operation {
        &BATCH_NORM
    }

    fn forward(&self, ctx: &mut Context<3>, [x, weight, bias]: [&Tensor; 3]) -> Result<Tensor> {
        ctx.save_for_backward([x, weight]);
        let (sizes, x) = (channels(x), &contiguous(x)?);
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        let stat = || x.uninit_beside(&sizes[1..2], kept(x));
        let [mean, squares, invstd] = [stat()?, stat()?, stat()?];
        let given = match &self.running {
            Some((mean, var)) if !self.training => [contiguous(mean)?, contiguous(var)?],
            _ => affine([None, None], weight.dtype())?, // Ignored.
        };
        kernels::batch_norm(
            &reshaped(x, &sizes),
            [&contiguous(weight)?, &contiguous(bias)?],
            given.each_ref(),
            [&mean, &squares, &invstd],
            &reshaped(&out, &sizes),
            self.training,
            self.eps,
        )?;
        ctx.save_for_backward([&mean, &invstd]);
        if self.training {
            no_grad(|| self.update([&mean, &squares], sizes[0] * sizes[2]))?;
        }
        Ok(out)
    }

    fn backward(&self, saved: &Saved<3>, grad: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let [x, weight, mean, invstd] = saved.tensors()?;
        let mut grads = [None, None, None];
        ops::call(&BATCH_NORM_BACKWARD, &[grad, &x, &weight, &mean, &invstd], |_| {
            let sizes = channels(&x);
            let grad_x = x.uninit_beside(x.sizes(), x.dtype())?;
            let of_channels = || x.uninit_beside(&sizes[1..2], weight.dtype());
            let [grad_weight, grad_bias] = [of_channels()?, of_channels()?];
            kernels::batch_norm_backward(
                [
                    &reshaped(&contiguous(grad)?, &sizes),
                    &reshaped(&contiguous(&x)?, &sizes),
                    &contiguous(&weight)?,
                ],
                [&mean, &invstd],
                [&grad_weight, &grad_bias, &reshaped(&grad_x, &sizes)],
                self.training,
            )?;
            grads = [Some(grad_x.clone()), Some(grad_weight), Some(grad_bias)];
            Ok(grad_x)
        })?;
        Ok(asked_for(saved, grads))
    }
}

fn asked_for(saved: &Saved<3>, mut grads: [Option<Tensor>; 3]) -> [Option<Tensor>; 3] {
    for (i, grad) in grads.iter_mut().enumerate() {
        if !saved.needs_input_grad(i) {
            *grad = None;
        }
    }
    grads
}

struct LayerNormFunction {
    dims: usize,
    eps: f64,
}

impl LayerNormFunction {
    /// (rows, elements of a row)
    fn rows(&self, x: &Tensor) -> [usize; 2] {
        let (outer, inner) = x.sizes().split_at(x.ndim() - self.dims);
        [outer.iter().product(), inner.iter().product()]
    }
}

/// Flattens weight or bias to a vector. A number stays a number.
fn vector(x: &Tensor) -> Result<Tensor> {
    if x.ndim() == 0 { Ok(x.clone()) } else { Ok(reshaped(&contiguous(x)?, &[x.numel()])) }
}

impl Function<3> for LayerNormFunction {
    fn operation(&self) -> &'static Operation {
        &NATIVE_LAYER_NORM
    }

    fn forward(&self, ctx: &mut Context<3>, [x, weight, bias]: [&Tensor; 3]) -> Result<Tensor> {
        let rows = self.rows(x);
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        let stats = x.uninit_beside(&[rows[0], 2], kept(x))?;
        if x.numel() > 0 {
            let affine = [&vector(weight)?, &vector(bias)?];
            kernels::layer_norm(
                &reshaped(&contiguous(x)?, &rows),
                affine,
                &reshaped(&out, &rows),
                &stats,
                self.eps,
            )?;
        }
        ctx.save_for_backward([x, weight, &stats]);
        Ok(out)
    }

    fn backward(&self, saved: &Saved<3>, grad: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let [x, weight, stats] = saved.tensors()?;
        let mut grads = [None, None, None];
        ops::call(&LAYER_NORM_BACKWARD, &[grad, &x, &weight, &stats], |_| {
            let [rows, length] = self.rows(&x);
            let matrix = |x: &Tensor| contiguous(x).map(|x| reshaped(&x, &[rows, length]));
            let (grad, matrix) = (matrix(grad)?, matrix(&x)?);
            let grad_x = x.uninit_beside(x.sizes(), x.dtype())?;
            let inputs = [&grad, &matrix, &vector(&weight)?, &stats];
            kernels::layer_norm_backward(inputs, &reshaped(&grad_x, &[rows, length]))?;
            grads[0] = Some(grad_x.clone());
            if saved.needs_input_grad(1) || saved.needs_input_grad(2) {
                let chunks = rows.div_ceil(kernels::ROWS_OF_A_CHUNK);
                let sizes = [&x.sizes()[x.ndim() - self.dims..], &[chunks]].concat();
                let of_chunks = || x.uninit_beside(&sizes, stats.dtype());
                let of_chunks = [of_chunks()?, of_chunks()?];
                let sums = of_chunks.each_ref().map(|sums| reshaped(sums, &[length, chunks]));
                kernels::layer_norm_sums([&grad, &matrix, &stats], sums.each_ref())?;
                for (i, of_chunks) in (1..).zip(of_chunks) {
                    if saved.needs_input_grad(i) {
                        grads[i] = Some(of_chunks.sum_dims(&[-1], false)?.to(weight.dtype())?);
                    }
                }
            }
            Ok(grad_x)
        })?;
        Ok(asked_for(saved, grads))
    }
}
