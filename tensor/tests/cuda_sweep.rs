//! Everything the crate computes gives the same bits on a simulated GPU as on the CPU: every operation, every dtype,
//! sizes around block boundaries, every memory layout, forward and backward.

use crate::each_case::each_case;
use std::collections::BTreeSet;

use sweep::{Case, bits, case, edges, finite_values, one, run, same_bits, see, sizes, sweep, values};
use todevice::amp::{GradScaler, GradScalerOptions};
use todevice::backends::cudnn;
use todevice::cuda::operations;
use todevice::cuda::{caching_allocator_enable, kernel_signatures};
use todevice::nn::StateDict;
use todevice::nn::utils::{ClipGradNormOptions, clip_grad_norm_};
use todevice::optim::lr_scheduler::StepLR;
use todevice::prelude::*;
use todevice::{
    Approximate, AvgPool2dOptions, BatchNormArguments, CopyOptions, LayerNormArguments, Machine,
    MaxPool2dOptions, TensorOptions,
};

/// The machine to compare with the CPU: a simulated T4, unless `TEST_GPU` names another.
fn machine() -> Machine {
    let gpu = std::env::var("TEST_GPU").unwrap_or("sim:t4".to_owned());
    gpu.parse().unwrap_or_else(|error| panic!("TEST_GPU={gpu}: {error}"))
}

/// Runs a test on that machine. With `TEST_UNCACHED`, each tensor has its own allocation, whose end tools can see:
/// `compute-sanitizer`, or the guards of the stand-ins.
pub fn on_gpu<R>(test: impl FnOnce() -> R) -> R {
    machine().enter(|| {
        caching_allocator_enable(std::env::var_os("TEST_UNCACHED").is_none());
        test()
    })
}

/// One case for each method without arguments.
macro_rules! methods {
    ($sizes:expr; $($name:ident)*) => { [$(case(stringify!($name), $sizes, |x| one(x[0].$name()))),*] };
}

/// One case for each method that takes another tensor, and three with a number.
macro_rules! operands {
    ($($name:ident)*) => { [$(
        case(stringify!($name), pairs(), |x| one(x[0].$name(&x[1]))),
        case(concat!(stringify!($name), " itself"), edges(1), |x| one(x[0].$name(&x[0]))),
        case(concat!(stringify!($name), " float"), edges(1), |x| one(x[0].$name(1.5))),
        case(concat!(stringify!($name), " int"), edges(1), |x| one(x[0].$name(-3))),
    )*] };
}

/// Sizes of two operands: equal, broadcastable, and not broadcastable.
fn pairs() -> Vec<Vec<Vec<usize>>> {
    let broadcast: [&[&[usize]]; 11] = [
        &[&[], &[257]],
        &[&[257], &[]],
        &[&[1], &[0]],
        &[&[3, 1], &[1, 4]],
        &[&[2, 3], &[3]],
        &[&[3], &[2, 3]],
        &[&[0, 3], &[1, 3]],
        &[&[2, 1, 5], &[4, 1]],
        &[&[31, 33], &[31, 1]],
        &[&[3], &[4]],
        &[&[2, 3], &[2]],
    ];
    [edges(2), sizes(&broadcast)].concat()
}

/// The dtype and device of a tensor, for creating a similar one.
fn like(x: &Tensor) -> TensorOptions {
    x.into()
}

fn indices(count: usize, below: usize, beside: &Tensor) -> Result<Tensor> {
    let indices: Vec<i64> = (0..count).map(|i| (i * 7 + 3) as i64 % below.max(1) as i64).collect();
    Tensor::from_slice(&indices, &[count])?.to(beside.device())
}

/// A bool result as a tensor next to the input.
fn answer(answer: Result<bool>, beside: &Tensor) -> Result<Vec<Tensor>> {
    one(Tensor::new(answer?)?.to(beside.device()))
}

fn elementwise() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(methods!(edges(1);
        neg abs sign square relu floor ceil round sqrt rsqrt reciprocal exp log sin cos tanh sigmoid
        neg_ abs_ sign_ square_ relu_ floor_ ceil_ round_ sqrt_ rsqrt_ reciprocal_ exp_ log_ sin_ cos_ tanh_
        sigmoid_ isnan logical_not));
    cases.extend([
        case("pow 3", edges(1), |x| one(x[0].pow(3.0))),
        case("pow 2", edges(1), |x| one(x[0].pow(2.0))),
        case("pow root", edges(1), |x| one(x[0].pow(0.5))),
        case("pow rsqrt", edges(1), |x| one(x[0].pow(-0.5))),
        case("pow 0", edges(1), |x| one(x[0].pow(0.0))),
        case("pow -1.7", edges(1), |x| one(x[0].pow(-1.7))),
        case("clamp both", edges(1), |x| one(x[0].clamp(-1.0, 1.5))),
        case("clamp min", edges(1), |x| one(x[0].clamp(0.25, None))),
        case("clamp max", edges(1), |x| one(x[0].clamp(None, 0.25))),
        case("clamp whole", edges(1), |x| one(x[0].clamp(-1, 2))),
        case("clamp whole min", edges(1), |x| one(x[0].clamp(1, None))),
        case("clamp_ whole", edges(1), |x| one(x[0].clamp_(None, 1))),
        case("clamp crossed", edges(1), |x| one(x[0].clamp(2.0, -2.0))),
        case("clamp by nan", edges(1), |x| one(x[0].clamp(-1.0, f64::NAN))),
        case("clamp_", edges(1), |x| one(x[0].clamp_(-1.0, 1.5))),
        case("leaky_relu", edges(1), |x| one(x[0].leaky_relu(0.01))),
        case("leaky_relu downwards", edges(1), |x| one(x[0].leaky_relu(-1.7))),
        case("leaky_relu flat", edges(1), |x| one(x[0].leaky_relu(0.0))),
        case("silu", edges(1), |x| one(x[0].silu())),
        case("silu far", edges(1), |x| one(x[0].mul(30.0)?.silu())),
        case("softplus", edges(1), |x| one(x[0].softplus(1.0, 20.0))),
        case("softplus far", edges(1), |x| one(x[0].mul(20.0)?.softplus(0.7, 11.0))),
        case("softplus downwards", edges(1), |x| one(x[0].softplus(-2.0, 1.0))),
        case("dropout off", edges(1), |x| one(x[0].dropout(0.5, false))),
        case("dropout none", edges(1), |x| one(x[0].dropout(0.0, true))),
        case("dropout all", edges(1), |x| one(x[0].dropout(1.0, true))),
    ]);
    cases
}

fn binary() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(operands!(add sub mul div maximum minimum eq ne lt le gt ge));
    cases.extend(operands!(add_ sub_ mul_ div_ maximum_ minimum_));
    let three: [&[&[usize]]; 5] = [
        &[&[3, 1], &[1, 4], &[4]],
        &[&[], &[5], &[5]],
        &[&[5], &[], &[]],
        &[&[2, 0], &[2, 1], &[1]],
        &[&[2], &[3], &[2]],
    ];
    cases.extend([
        case("where_cond", [edges(3), sizes(&three)].concat(), |x| one(x[0].gt(0)?.where_cond(&x[1], &x[2]))),
        case("where_cond given", edges(3), |x| one(x[0].where_cond(&x[1], &x[2]))),
        case("where_cond number", pairs(), |x| one(x[0].gt(0)?.where_cond(&x[1], 1.5))),
        case("where_cond numbers", edges(1), |x| one(x[0].gt(0)?.where_cond(-3, 1.5))),
        case("masked_fill", pairs(), |x| one(x[0].masked_fill(&x[1].gt(0)?, 2))),
        case("masked_fill tensor", pairs(), |x| one(x[0].masked_fill(&x[1].gt(0)?, &x[1].sum()?))),
        case("masked_fill given", edges(2), |x| one(x[0].masked_fill(&x[1], 2))),
        case("masked_fill_", pairs(), |x| one(x[0].masked_fill_(&x[1].gt(0)?, 2))),
        case("masked_fill_ tensor", pairs(), |x| one(x[0].masked_fill_(&x[1].gt(0)?, &x[1].sum()?))),
        case("equal", pairs(), |x| answer(x[0].equal(&x[1]), &x[0])),
        case("equal itself", edges(1), |x| answer(x[0].equal(&x[0].copy()?), &x[0])),
        case("isclose", pairs(), |x| one(x[0].isclose(&x[1], 0.5, 0.25))),
        case("allclose", pairs(), |x| answer(x[0].allclose(&x[1], 1e-5, 1e-8), &x[0])),
        case("allclose itself", edges(1), |x| answer(x[0].allclose(&x[0].copy()?, 1e-5, 1e-8), &x[0])),
        case("mul operators", edges(2), |x| one(((2.0 - &x[0])? * &x[1])? / 3)),
        case("div operators", edges(1), |x| one((1.7 * (3 / &x[0])?)? + 1)),
    ]);
    cases
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend([
        case("cumsum 0", edges(1), |x| one(x[0].cumsum(0))),
        case("cumsum -1", edges(1), |x| one(x[0].cumsum(-1))),
        case("cumsum in between", sizes(&[&[&[3, 33, 2]], &[&[2, 0, 3]]]), |x| one(x[0].cumsum(1))),
    ]);
    cases.extend(methods!(edges(1); sum mean norm max min all any));
    let boxes = || {
        let boxes: [&[&[usize]]; 10] = [
            &[&[3, 5]],
            &[&[0, 4]],
            &[&[4, 0]],
            &[&[2, 3, 4]],
            &[&[257, 3]],
            &[&[3, 1025]],
            &[&[1, 1]],
            &[&[7]],
            &[&[1024]],
            &[&[]],
        ];
        sizes(&boxes)
    };
    cases.extend([
        case("sum_dims 0", boxes(), |x| one(x[0].sum_dims(&[0], false))),
        case("sum_dims -1 keep", boxes(), |x| one(x[0].sum_dims(&[-1], true))),
        case("sum_dims 0 -1", boxes(), |x| one(x[0].sum_dims(&[0, -1], false))),
        case("mean_dims 0", boxes(), |x| one(x[0].mean_dims(&[0], true))),
        case("mean_dims -1", boxes(), |x| one(x[0].mean_dims(&[-1], false))),
        case("var", boxes(), |x| one(x[0].var(&[], 1, false))),
        case("var 0", boxes(), |x| one(x[0].var(&[0], 0, true))),
        case("std", boxes(), |x| one(x[0].std(&[-1], 1, false))),
        case("amax", boxes(), |x| one(x[0].amax(&[0], false))),
        case("amax all", boxes(), |x| one(x[0].amax(&[], true))),
        case("amin", boxes(), |x| one(x[0].amin(&[-1], true))),
        case("max_dim", boxes(), |x| x[0].max_dim(0, false).map(|(a, b)| vec![a, b])),
        case("max_dim keep", boxes(), |x| x[0].max_dim(-1, true).map(|(a, b)| vec![a, b])),
        case("min_dim", boxes(), |x| x[0].min_dim(-1, false).map(|(a, b)| vec![a, b])),
        case("argmax", boxes(), |x| one(x[0].argmax(None, false))),
        case("argmax 0", boxes(), |x| one(x[0].argmax(0, true))),
        case("argmin", boxes(), |x| one(x[0].argmin(-1, false))),
        case("softmax 0", boxes(), |x| one(x[0].softmax(0))),
        case("softmax -1", boxes(), |x| one(x[0].softmax(-1))),
        case("log_softmax 0", boxes(), |x| one(x[0].log_softmax(0))),
        case("log_softmax -1", boxes(), |x| one(x[0].log_softmax(-1))),
    ]);
    cases
}

fn products() -> Vec<Case> {
    let matrices = || {
        let all: [&[&[usize]]; 12] = [
            &[&[1, 1], &[1, 1]],
            &[&[2, 3], &[3, 4]],
            &[&[0, 3], &[3, 2]],
            &[&[2, 3], &[3, 0]],
            &[&[2, 0], &[0, 3]],
            &[&[3, 257], &[257, 2]],
            &[&[31, 33], &[33, 17]],
            &[&[65, 64], &[64, 63]],
            &[&[1, 1025], &[1025, 1]],
            &[&[255, 2], &[2, 3]],
            &[&[2, 3], &[2, 3]],
            &[&[3], &[3, 2]],
        ];
        sizes(&all)
    };
    let others: [&[&[usize]]; 15] = [
        &[&[5], &[5]],
        &[&[0], &[0]],
        &[&[1025], &[1025]],
        &[&[5], &[4]],
        &[&[3, 5], &[5]],
        &[&[3, 5], &[4]],
        &[&[5], &[5, 3]],
        &[&[2, 3, 4], &[4, 5]],
        &[&[2, 3, 4], &[2, 4, 5]],
        &[&[2, 1, 3, 4], &[3, 4, 2]],
        &[&[4], &[3, 4, 2]],
        &[&[3, 2, 4], &[4]],
        &[&[0, 2, 4], &[0, 4, 3]],
        &[&[], &[3]],
        &[&[2, 3, 4], &[3, 4, 5]],
    ];
    let batches: [&[&[usize]]; 6] = [
        &[&[2, 3, 4], &[2, 4, 5]],
        &[&[0, 3, 4], &[0, 4, 5]],
        &[&[3, 2, 0], &[3, 0, 2]],
        &[&[1, 31, 33], &[1, 33, 9]],
        &[&[2, 3, 4], &[3, 4, 5]],
        &[&[2, 3], &[3, 4]],
    ];
    let layers: [&[&[usize]]; 8] = [
        &[&[4, 3], &[2, 3], &[2]],
        &[&[0, 3], &[2, 3], &[2]],
        &[&[4, 0], &[2, 0], &[2]],
        &[&[33, 257], &[31, 257], &[31]],
        &[&[2, 4, 3], &[5, 3], &[5]],
        &[&[3], &[2, 3], &[2]],
        &[&[4, 3], &[2, 4], &[2]],
        &[&[4, 3], &[2, 3], &[3]],
    ];
    let cases = vec![
        case("mm", matrices(), |x| one(x[0].mm(&x[1]))),
        case("matmul", [matrices(), sizes(&others)].concat(), |x| one(x[0].matmul(&x[1]))),
        case("bmm", sizes(&batches), |x| one(x[0].bmm(&x[1]))),
        case("linear", sizes(&layers), |x| one(x[0].linear(&x[1], Some(&x[2])))),
        case("linear without bias", sizes(&layers), |x| one(x[0].linear(&x[1], None))),
    ];
    cases.into_iter().map(Case::by_library).collect()
}

fn losses() -> Vec<Case> {
    let scores = || {
        let all: [&[&[usize]]; 8] =
            [&[&[4, 5]], &[&[1, 1]], &[&[0, 5]], &[&[257, 3]], &[&[3, 1025]], &[&[7]], &[&[2, 3, 4]], &[&[]]];
        sizes(&all)
    };
    fn target(x: &Tensor) -> Result<Tensor> {
        let classes = *x.sizes().get(usize::from(x.ndim() > 1)).unwrap_or(&1);
        let sizes: Vec<i64> = match x.ndim() {
            0 | 1 => vec![],
            _ => x.sizes().iter().enumerate().filter(|(dim, _)| *dim != 1).map(|(_, n)| *n as i64).collect(),
        };
        indices(sizes.iter().product::<i64>() as usize, classes, x)?.reshape(&sizes)
    }
    fn weighted(x: &Tensor, reduction: Reduction) -> Result<CrossEntropyOptions> {
        let classes = *x.sizes().get(usize::from(x.ndim() > 1)).unwrap_or(&1);
        let weight = Tensor::linspace(0.25, 2.0, (classes * 2, like(x)))?.slice(0, 1, i64::MAX, 2)?;
        Ok(CrossEntropyOptions { weight: Some(weight), ignore_index: 1, reduction, ..Default::default() })
    }
    vec![
        case("mse_loss mean", pairs(), |x| one(x[0].mse_loss(&x[1], Reduction::Mean))),
        case("mse_loss sum", pairs(), |x| one(x[0].mse_loss(&x[1], Reduction::Sum))),
        case("mse_loss none", pairs(), |x| one(x[0].mse_loss(&x[1], Reduction::None))),
        case("l1_loss mean", pairs(), |x| one(x[0].l1_loss(&x[1], Reduction::Mean))),
        case("l1_loss sum", pairs(), |x| one(x[0].l1_loss(&x[1], Reduction::Sum))),
        case("l1_loss none", pairs(), |x| one(x[0].l1_loss(&x[1], Reduction::None))),
        case("cross_entropy", scores(), |x| one(x[0].cross_entropy(&target(&x[0])?))),
        case("cross_entropy weighted", scores(), |x| {
            one(x[0].cross_entropy((&target(&x[0])?, weighted(&x[0], Reduction::Mean)?)))
        }),
        case("cross_entropy weighted sum", scores(), |x| {
            one(x[0].cross_entropy((&target(&x[0])?, weighted(&x[0], Reduction::Sum)?)))
        }),
        case("cross_entropy weighted none", scores(), |x| {
            one(x[0].cross_entropy((&target(&x[0])?, weighted(&x[0], Reduction::None)?)))
        }),
        case("cross_entropy all ignored", scores(), |x| {
            let none = CrossEntropyOptions { ignore_index: 0, ..Default::default() };
            one(x[0].cross_entropy((&target(&x[0])?.zeros_like()?, none.clone())))
        }),
        case("nll_loss", scores(), |x| one(x[0].nll_loss(&target(&x[0])?))),
        case("nll_loss weighted sum", scores(), |x| {
            one(x[0].nll_loss((&target(&x[0])?, weighted(&x[0], Reduction::Sum)?)))
        }),
        case("nll_loss weighted none", scores(), |x| {
            one(x[0].nll_loss((&target(&x[0])?, weighted(&x[0], Reduction::None)?)))
        }),
        case("nll_loss all ignored", scores(), |x| {
            let none = CrossEntropyOptions { ignore_index: 0, ..Default::default() };
            one(x[0].nll_loss((&target(&x[0])?.zeros_like()?, none.clone())))
        }),
    ]
}

fn pools() -> Vec<Case> {
    let images = || {
        let all: [&[&[usize]]; 10] = [
            &[&[1, 1, 1]],
            &[&[2, 4, 4]],
            &[&[2, 3, 5, 7]],
            &[&[0, 2, 4, 4]],
            &[&[1, 2, 33, 18]],
            &[&[3, 1, 8, 65]],
            &[&[2, 1, 1, 9]],
            &[&[2, 0, 4, 4]],
            &[&[2, 2, 0, 4]],
            &[&[4, 4]],
        ];
        sizes(&all)
    };
    vec![
        case("max_pool2d", images(), |x| one(x[0].max_pool2d(2))),
        case("max_pool2d of all", images(), |x| one(x[0].max_pool2d(1))),
        case("max_pool2d overlapping", images(), |x| {
            let options =
                MaxPool2dOptions { stride: Some(1.into()), padding: 1.into(), ..Default::default() };
            one(x[0].max_pool2d(((3, 2), options)))
        }),
        case("max_pool2d with holes", images(), |x| {
            let (stride, dilation) = (Some((2, 3).into()), (1, 2).into());
            let padding = (0, 1).into();
            one(x[0].max_pool2d(((1, 2), MaxPool2dOptions { stride, padding, dilation, ceil_mode: true })))
        }),
        case("avg_pool2d", images(), |x| one(x[0].avg_pool2d(2))),
        case("avg_pool2d overlapping", images(), |x| {
            let options = AvgPool2dOptions {
                stride: Some((1, 2).into()),
                padding: (1, 0).into(),
                count_include_pad: false,
                ..Default::default()
            };
            one(x[0].avg_pool2d(((3, 1), options)))
        }),
        case("avg_pool2d hanging over", images(), |x| {
            let stride = Some((3, 2).into());
            let options =
                AvgPool2dOptions { stride, padding: 1.into(), ceil_mode: true, ..Default::default() };
            one(x[0].avg_pool2d(((2, 3), options)))
        }),
        case("avg_pool2d divided", images(), |x| {
            let options = AvgPool2dOptions { divisor_override: Some(-3), ..Default::default() };
            one(x[0].avg_pool2d(((1, 2), options)))
        }),
        case("adaptive_avg_pool2d", images(), |x| one(x[0].adaptive_avg_pool2d((3, 2)))),
        case("adaptive_avg_pool2d to more", images(), |x| one(x[0].adaptive_avg_pool2d((Some(9), None)))),
        case("adaptive_avg_pool2d to one", images(), |x| one(x[0].adaptive_avg_pool2d(1))),
    ]
}

/// The other dtype that weights for `x` may have: f32 for half-precision inputs.
fn parameter_type(x: &Tensor) -> DType {
    if matches!(x.dtype(), DType::F16 | DType::BF16) { DType::F32 } else { x.dtype() }
}

fn in_f32(x: &Tensor) -> Result<Tensor> {
    x.to(parameter_type(x))
}

fn norms() -> Vec<Case> {
    let batches = || {
        let all: [&[&[usize]]; 9] = [
            &[&[4, 3], &[3], &[3]],
            &[&[2, 3, 5], &[3], &[3]],
            &[&[3, 2, 4, 7], &[2], &[2]],
            &[&[1, 3, 1, 1], &[3], &[3]],
            &[&[9, 2, 5, 23], &[2], &[2]],
            &[&[5, 1, 33, 64], &[1], &[1]],
            &[&[0, 3, 2], &[3], &[3]],
            &[&[4, 3], &[2], &[3]],
            &[&[3], &[3], &[3]],
        ];
        sizes(&all)
    };
    let rows = || {
        let all: [&[&[usize]]; 11] = [
            &[&[4, 3], &[3], &[3]],
            &[&[1, 1], &[1], &[1]],
            &[&[2, 3, 5], &[3, 5], &[3, 5]],
            &[&[3, 1024], &[1024], &[1024]],
            &[&[3, 1025], &[1025], &[1025]],
            &[&[40, 33], &[33], &[33]],
            &[&[2100, 3], &[3], &[3]],
            &[&[0, 4], &[4], &[4]],
            &[&[4, 0], &[0], &[0]],
            &[&[6], &[6], &[6]],
            &[&[4, 3], &[4], &[4]],
        ];
        sizes(&all)
    };
    vec![
        case("batch_norm", batches(), |x| {
            let training = BatchNormArguments { training: true, ..Default::default() };
            one(x[0].batch_norm(training.clone()))
        }),
        case("batch_norm affine", batches(), |x| {
            let (weight, bias) = (Some(x[1].clone()), Some(x[2].clone()));
            one(x[0].batch_norm(BatchNormArguments { weight, bias, training: true, ..Default::default() }))
        }),
        case("batch_norm running", batches(), |x| {
            let [mean, var] = [&x[1], &x[2]].map(|x| Tensor::ones((x.sizes(), x)));
            let (mean, var) = (mean?, var?);
            let (running_mean, running_var) = (Some(mean.clone()), Some(var.clone()));
            let arguments = BatchNormArguments {
                running_mean,
                running_var,
                training: true,
                momentum: 0.3,
                ..Default::default()
            };
            let out = x[0].batch_norm(arguments.clone())?;
            Ok(vec![out, mean, var])
        }),
        case("batch_norm evaluation", batches(), |x| {
            let (running_mean, running_var) = (Some(x[2].detach()), Some(x[1].detach().abs()?));
            let weight = Some(x[2].clone());
            let arguments =
                BatchNormArguments { running_mean, running_var, weight, eps: 0.5, ..Default::default() };
            one(x[0].batch_norm(arguments.clone()))
        }),
        // Half-precision inputs may have f32 weights.
        case("batch_norm of f32 weights", batches(), |x| {
            let (weight, bias) = (in_f32(&x[1]), in_f32(&x[2]));
            let options = (x[2].device(), parameter_type(&x[2]));
            let (mean, var) =
                (Tensor::zeros((x[2].sizes(), options))?, Tensor::ones((x[2].sizes(), options))?);
            let arguments = BatchNormArguments {
                running_mean: Some(mean.clone()),
                running_var: Some(var.clone()),
                weight: Some(weight?),
                bias: Some(bias?),
                training: true,
                ..Default::default()
            };
            let out = x[0].batch_norm(arguments.clone())?;
            let evaluated = x[0].batch_norm(BatchNormArguments { training: false, ..arguments })?;
            Ok(vec![out, evaluated, mean, var])
        }),
        case("layer_norm of f32 weights", rows(), |x| {
            one(x[0].layer_norm((
                x[1].sizes(),
                LayerNormArguments {
                    weight: Some(in_f32(&x[1])?),
                    bias: Some(in_f32(&x[2])?),
                    ..Default::default()
                },
            )))
        }),
        case("layer_norm", rows(), |x| one(x[0].layer_norm(x[1].sizes()))),
        case("layer_norm affine", rows(), |x| {
            one(x[0].layer_norm((
                x[1].sizes(),
                LayerNormArguments {
                    weight: Some(x[1].clone()),
                    bias: Some(x[2].clone()),
                    ..Default::default()
                },
            )))
        }),
        case("layer_norm bias", rows(), |x| {
            one(x[0].layer_norm((
                x[1].sizes(),
                LayerNormArguments { bias: Some(x[2].clone()), eps: 0.1, ..Default::default() },
            )))
        }),
        case("gelu", edges(1), |x| one(x[0].gelu(Approximate::None))),
        case("gelu far", edges(1), |x| one(x[0].mul(5.0)?.gelu(Approximate::None))),
        case("gelu tanh", edges(1), |x| one(x[0].gelu(Approximate::Tanh))),
    ]
}

fn indexing() -> Vec<Case> {
    let boxes = || {
        let all: [&[&[usize]]; 9] = [
            &[&[5]],
            &[&[257]],
            &[&[1025]],
            &[&[3, 5]],
            &[&[31, 33]],
            &[&[2, 3, 4]],
            &[&[3, 0]],
            &[&[1, 1]],
            &[&[]],
        ];
        sizes(&all)
    };
    let crowds = || sizes(&[&[&[3, 70, 2]], &[&[40, 3, 33]], &[&[2, 33, 70]], &[&[65, 31, 2]]]);
    /// Indices with the shape of a tensor, along a dimension, not contiguous in memory.
    fn everywhere(x: &Tensor, dim: i64) -> Result<Tensor> {
        let back: Vec<i64> = (0..x.ndim() as i64).rev().collect();
        let reversed: Vec<i64> = x.sizes().iter().rev().map(|size| *size as i64).collect();
        indices(x.numel(), x.size(dim)?, x)?.view(&reversed)?.permute(&back)
    }
    vec![
        case("index_select 0", boxes(), |x| one(x[0].index_select(0, &indices(7, x[0].size(0)?, &x[0])?))),
        case("index_select -1", boxes(), |x| {
            let index = indices(x[0].size(-1)? * 2, x[0].size(-1)?, &x[0])?.slice(0, 0, i64::MAX, 2)?;
            one(x[0].index_select(-1, &index.to(DType::I32)?))
        }),
        case("index", boxes(), |x| one(x[0].index(&indices(6, x[0].size(0)?, &x[0])?.reshape(&[2, 3])?))),
        case("index by a mask", boxes(), |x| one(x[0].index(&x[0].gt(0)?))),
        case("masked_select", boxes(), |x| one(x[0].masked_select(&x[0].gt(0)?))),
        case("nonzero", boxes(), |x| one(x[0].nonzero())),
        case("index_put_", boxes(), |x| {
            let x = x[0].copy()?;
            one(x.index_put_(&x.detach().gt(0)?, &x.detach().gt(0)?.to(x.dtype())?.max()?))
        }),
        case("index from the end", sizes(&[&[&[5]], &[&[3, 2]]]), |x| {
            one(x[0].index(&Tensor::new([[-1, 0], [1, -3]])?)) // An index on the host is allowed.
        }),
        case("index_select none", boxes(), |x| one(x[0].index_select(0, &indices(0, 1, &x[0])?))),
        case("index_select by floats", sizes(&[&[&[5]], &[&[0]]]), |x| match x[0].numel() {
            0 => one(x[0].copy()),
            _ => one(x[0].index_select(0, &Tensor::zeros((&[2], x[0].device()))?)),
        }),
        case("gather 0", boxes(), |x| one(x[0].gather(0, &everywhere(&x[0], 0)?))),
        case("gather -1", boxes(), |x| one(x[0].gather(-1, &everywhere(&x[0], -1)?))),
        case("embedding", boxes(), |x| {
            let rows = indices(12, x[0].size(0)?, &x[0])?.reshape(&[2, 2, 3])?;
            one(rows.transpose(0, 2)?.embedding(&x[0], None))
        }),
        case("embedding padded", boxes(), |x| {
            one(indices(70, x[0].size(0)?, &x[0])?.to(DType::I32)?.embedding(&x[0], -1))
        }),
        case("take_along_dim", boxes(), |x| {
            one(x[0].take_along_dim(&everywhere(&x[0], 0)?.sub(2 * x[0].size(0)? as i64)?, 0))
        }),
        case("take_along_dim broadcast", boxes(), |x| {
            let chosen = indices(9, 1000, &x[0])?.sub(20)?;
            let sizes: Vec<i64> =
                (0..x[0].ndim()).map(|dim| if dim + 1 == x[0].ndim() { -1 } else { 1 }).collect();
            one(x[0].take_along_dim(&chosen.reshape(&sizes)?, -1))
        }),
        case("take_along_dim of all", boxes(), |x| {
            one(x[0].take_along_dim(&indices(x[0].numel().min(7), x[0].numel(), &x[0])?, None))
        }),
        case("index_add", boxes(), |x| {
            let source = x[0].index_select(0, &indices(7, x[0].size(0)?, &x[0])?)?;
            one(x[0].index_add(0, &indices(7, x[0].size(0)?, &x[0])?, &source))
        }),
        // More indices than a warp reads at a time, most of them repeated; slices with many elements, and with few.
        case("index_add many", crowds(), |x| {
            let index = indices(100, x[0].size(0)? - 1, &x[0])?;
            one(x[0].index_add(0, &index, &x[0].index_select(0, &index)?))
        }),
        case("index_add many inside", crowds(), |x| {
            let index = indices(100, x[0].size(1)? - 1, &x[0])?;
            one(x[0].index_add(1, &index, &x[0].index_select(1, &index)?))
        }),
        case("scatter_add many", crowds(), |x| {
            let index = everywhere(&x[0], 1)?;
            one(x[0].scatter_add(1, &Tensor::cat(&[&index, &index], 1)?, &Tensor::cat(&[&x[0], &x[0]], 1)?))
        }),
        case("scatter_add few", crowds(), |x| {
            let some = x[0].narrow(0, 0, 2)?.narrow(2, 0, x[0].size(2)? - 1)?;
            one(x[0].scatter_add(1, &everywhere(&some, 1)?, &some))
        }),
        case("scatter_add none", crowds(), |x| {
            let none = x[0].narrow(1, 0, 0)?;
            one(x[0].scatter_add(1, &none.to(DType::I64)?, &none))
        }),
        case("scatter_add", boxes(), |x| one(x[0].scatter_add(0, &everywhere(&x[0], 0)?, &x[0].mul(1)?))),
        case("scatter_add -1", boxes(), |x| {
            one(x[0].scatter_add(-1, &everywhere(&x[0], -1)?, &x[0].mul(1)?))
        }),
    ]
}

fn shapes() -> Vec<Case> {
    let boxes = || {
        let all: [&[&[usize]]; 8] =
            [&[&[]], &[&[0]], &[&[6]], &[&[257]], &[&[3, 5]], &[&[0, 4]], &[&[2, 3, 4]], &[&[1, 4, 1]]];
        sizes(&all)
    };
    let joined: [&[&[usize]]; 9] = [
        &[&[3], &[4]],
        &[&[0], &[4]],
        &[&[2, 3], &[0]],
        &[&[2, 3], &[1, 3]],
        &[&[2, 3], &[2, 4]],
        &[&[2, 3], &[2, 3]],
        &[&[1023], &[1024]],
        &[&[0, 3], &[2, 3]],
        &[&[], &[3]],
    ];
    let mut cases = Vec::new();
    cases.extend(methods!(boxes(); t copy contiguous zeros_like ones_like zero_));
    cases.extend([
        case("detach", boxes(), |x| Ok(vec![x[0].detach()])),
        case("view flat", boxes(), |x| one(x[0].view(&[-1]))),
        case("reshape flat", boxes(), |x| one(x[0].reshape(&[-1]))),
        case("reshape column", boxes(), |x| one(x[0].select(-1, 0)?.reshape(&[1, -1]))),
        case("reshape pairs", boxes(), |x| one(x[0].reshape(&[-1, 2]))),
        case("flatten", boxes(), |x| one(x[0].flatten(0, -1))),
        case("flatten 1", boxes(), |x| one(x[0].flatten(1, -1))),
        case("unsqueeze", boxes(), |x| one(x[0].unsqueeze(-1)?.unsqueeze(0))),
        case("squeeze", boxes(), |x| one(x[0].squeeze(0)?.squeeze(-1))),
        case("expand", boxes(), |x| {
            one(x[0].unsqueeze(0)?.expand(&[&[3], &vec![-1; x[0].ndim()][..]].concat()))
        }),
        case("permute", boxes(), |x| one(x[0].permute(&(0..x[0].ndim() as i64).rev().collect::<Vec<_>>()))),
        case("transpose", boxes(), |x| one(x[0].transpose(0, -1))),
        case("select", boxes(), |x| one(x[0].select(-1, -1))),
        case("get", boxes(), |x| one(x[0].get(0))),
        case("narrow", boxes(), |x| one(x[0].narrow(-1, 1, 2))),
        case("slice", boxes(), |x| one(x[0].slice(0, -4, i64::MAX, 2))),
        case("unfold", boxes(), |x| one(x[0].unfold(-1, 3, 2))),
        case("unfold overlapping", boxes(), |x| one(x[0].unfold(0, 2, 1))),
        case("split", boxes(), |x| x[0].split(2, 0)),
        case("chunk", boxes(), |x| x[0].chunk(2, -1)),
        case("unbind", boxes(), |x| x[0].unbind(0)),
        case("cat", sizes(&joined), |x| one(Tensor::cat(&[&x[0], &x[1], &x[0]], 0))),
        case("cat -1", sizes(&joined), |x| one(Tensor::cat(&[&x[0], &x[1]], -1))),
        case("stack", pairs(), |x| one(Tensor::stack(&[&x[0], &x[1]], 0))),
        case("stack -1", pairs(), |x| one(Tensor::stack(&[&x[0], &x[1]], -1))),
        case("copy_", pairs(), |x| one(x[0].copy_(&x[1]))),
        case("copy_with_", pairs(), |x| one(x[0].copy_with_(&x[1], CopyOptions { non_blocking: true }))),
        case("copy_ from the host", pairs(), |x| one(x[0].copy_(&x[1].cpu()?))),
        case("fill_ float", edges(1), |x| one(x[0].fill_(2.5))),
        case("fill_ int", edges(1), |x| one(x[0].fill_(-3))),
        case("fill_ too much", edges(1), |x| one(x[0].fill_(1e300))),
        case("to f32", edges(1), |x| one(x[0].to(DType::F32))),
        case("to f64", edges(1), |x| one(x[0].to(DType::F64))),
        case("to i64", edges(1), |x| one(x[0].to(DType::I64))),
        case("to i32", edges(1), |x| one(x[0].to(DType::I32))),
        case("to u8", edges(1), |x| one(x[0].to(DType::U8))),
        case("to u8 of large ones", edges(1), |x| one(x[0].mul(3e9)?.to(DType::U8))),
        case("to i32 of large ones", edges(1), |x| one(x[0].mul(3e9)?.to(DType::I32))),
        case("to i64 of large ones", edges(1), |x| one(x[0].mul(1e19)?.to(DType::I64))),
        case("to bool", edges(1), |x| one(x[0].to(DType::Bool))),
        case("to here", edges(1), |x| one(x[0].to(x[0].device()))),
        case("zeros", boxes(), |x| one(Tensor::zeros((x[0].sizes(), like(&x[0]))))),
        case("ones", boxes(), |x| one(Tensor::ones((x[0].sizes(), like(&x[0]))))),
        case("full", boxes(), |x| one(Tensor::full(x[0].sizes(), (7.5, like(&x[0]))))),
        case("arange", boxes(), |x| one(Tensor::arange(3, 40, (2, like(&x[0]))))),
        case("linspace", boxes(), |x| one(Tensor::linspace(-1.0, 5.0, (9, like(&x[0]))))),
        case("eye", boxes(), |x| one(Tensor::eye((5, like(&x[0]))))),
    ]);
    cases
}

fn all_cases() -> Vec<Case> {
    [elementwise(), binary(), reductions(), products(), losses(), pools(), norms(), indexing(), shapes()]
        .into_iter()
        .flatten()
        .collect()
}

/// A card sums products in another order. Then they, and the values trained with them, may differ slightly.
#[test]
#[cfg(target_os = "linux")]
fn what_is_added_up_in_another_order_differs_by_little() {
    if std::env::var_os("TEST_GPU").is_some() {
        return; // This is the child process.
    }
    let with_products = [
        "cuda_sweep::matrix_products",
        "cuda_sweep::five_steps",
        "cuda_sweep::learning",
        "cuda_sweep::large",
    ];
    let run = |wrong: &str| {
        let mut this = std::process::Command::new(std::env::current_exe().unwrap());
        let variables = [("TEST_GPU", "real"), ("TEST_SWEEP", "short"), ("FAKE_CUBLAS_BACKWARDS", wrong)];
        crate::stand_ins::stand_ins(kernel_signatures)
            .on(&mut this)
            .args(with_products)
            .envs(variables)
            .output()
            .unwrap()
    };
    let output = run("1");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("5 passed"), "{said}");
    // A kernel that omits a term is detected.
    let output = run("short");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("0 passed; 5 failed"), "{said}");
}

/// The swept families of operations, the most common first.
pub const FAMILIES: [(&str, fn() -> Vec<Case>); 9] = [
    ("elementwise", elementwise),
    ("binary", binary),
    ("products", products),
    ("shapes", shapes),
    ("reductions", reductions),
    ("losses", losses),
    ("indexing", indexing),
    ("norms", norms),
    ("pools", pools),
];

#[test]
fn operations_on_one_tensor_are_those_of_the_cpu() {
    on_gpu(|| sweep(&elementwise()));
}

#[test]
fn operations_on_two_tensors_and_numbers_are_those_of_the_cpu() {
    on_gpu(|| sweep(&binary()));
}

#[test]
fn reductions_are_those_of_the_cpu() {
    on_gpu(|| sweep(&reductions()));
}

#[test]
fn matrix_products_are_those_of_the_cpu() {
    on_gpu(|| sweep(&products()));
}

#[test]
fn losses_are_those_of_the_cpu() {
    on_gpu(|| sweep(&losses()));
}

#[test]
fn pools_are_those_of_the_cpu() {
    on_gpu(|| sweep(&pools()));
}

#[test]
fn norms_are_those_of_the_cpu() {
    on_gpu(|| sweep(&norms()));
}

#[test]
fn indexing_is_that_of_the_cpu() {
    on_gpu(|| sweep(&indexing()));
}

#[test]
fn shapes_copies_and_conversions_are_those_of_the_cpu() {
    on_gpu(|| sweep(&shapes()));
}

/// Enough elements for a CPU operation to run on several threads.
#[test]
fn large_results_are_those_of_the_cpu() -> Result<()> {
    on_gpu(|| {
        let device = Device::cuda(0);
        let cases: [fn(&Tensor) -> Result<Tensor>; 13] = [
            // Few columns and many rows: the gradient of a bias.
            |x| x.reshape(&[-1, 10])?.sum_dims(&[0], false),
            |x| x.reshape(&[-1, 300, 2])?.sum_dims(&[0, 1], false),
            |x| x.reshape(&[-1, 50])?.slice(1, 3, 45, 1)?.amax(&[0], false),
            |x| x.reshape(&[-1, 50])?.slice(1, 3, 45, 2)?.sum_dims(&[0], false),
            |x| x.narrow(0, 0, 240)?.reshape(&[2, -1, 30])?.sum_dims(&[1], false),
            |x| x.add(x),
            |x| x.exp(),
            |x| x.sum(),
            |x| x.t()?.sum_dims(&[0], false),
            |x| x.t()?.contiguous(),
            |x| x.softmax(0),
            |x| x.mean(),
            |x| x.argmax(None, false),
        ];
        each_case([values, finite_values], |numbers| -> Result<()> {
            let x = numbers(&[600, 503], DType::F32, 0);
            let xd = x.to(device)?;
            for (i, case) in cases.iter().enumerate() {
                let (cpu, cuda) = (see(&case(&x)?, Device::Cpu)?, see(&case(&xd)?, device)?);
                assert!(cpu == cuda, "case {i}");
            }
            let product = |x: &Tensor| x.t()?.mm(x);
            assert!(see(&product(&x)?, Device::Cpu)?.is_same_product(&see(&product(&xd)?, device)?));
            Ok(())
        });
        Ok(())
    })
}

/// Optimizer steps with a gradient scaler: some overflow, and the scale grows after two that do not. Returns the
/// parameter and the scale after each step.
fn scaled_steps(device: Device, dtype: DType) -> Result<Vec<Vec<u64>>> {
    let numbers = |sizes: &[usize], seed: usize| {
        let numbers: Vec<f64> = (0..37 * 29).map(|i| ((i * 37 + seed) % 61) as f64 / 13.0 - 2.25).collect();
        Tensor::from_slice(&numbers, sizes)?.to((device, dtype))
    };
    let parameter = nn::Parameter::new(&numbers(&[37, 29], 1)?)?;
    let mut optimizer =
        optim::SGD::new(vec![parameter.clone()], SGDOptions { lr: 0.1, ..Default::default() })?;
    let mut scaler = GradScaler::new(GradScalerOptions {
        device: device.device_type(),
        init_scale: 3.0,
        growth_factor: 1.7,
        backoff_factor: 0.3,
        growth_interval: 2,
        ..Default::default()
    })?;
    let mut seen = Vec::new();
    for (step, factor) in [1.0, 0.5, f64::INFINITY, 0.25, f64::NAN, 1.5, 1.0].into_iter().enumerate() {
        scaler.scale(&Tensor::ones((&[], device))?)?;
        let grad = numbers(&[29, 37], 2 + step)?;
        grad.get(28)?.narrow(0, 36, 1)?.fill_(factor)?;
        parameter.set_grad(Some(grad.t()?))?;
        assert_eq!(scaler.step(&mut optimizer)?, factor.is_finite());
        scaler.update()?;
        seen.push([bits(&parameter.tensor())?, bits(&grad)?, vec![scaler.get_scale()?.to_bits()]].concat());
    }
    Ok(seen)
}

#[test]
fn steps_with_a_gradient_scaler_are_those_of_the_cpu() -> Result<()> {
    on_gpu(|| {
        each_case([DType::F32, DType::F64, DType::BF16], |dtype| -> Result<()> {
            assert!(scaled_steps(Device::Cpu, dtype)? == scaled_steps(Device::cuda(0), dtype)?, "{dtype}");
            Ok(())
        });
        Ok(())
    })
}

/// Each step reads and writes overlapping parts of one tensor.
#[test]
fn in_place_operations_on_overlapping_views_are_those_of_the_cpu() -> Result<()> {
    type Step = fn(&Tensor) -> Result<Tensor>;
    let steps: [(&str, Step); 12] = [
        ("up", |x| x.narrow(0, 1, x.size(0)? - 1)?.copy_(&x.narrow(0, 0, x.size(0)? - 1)?)),
        ("down", |x| x.narrow(0, 0, x.size(0)? - 1)?.copy_(&x.narrow(0, 1, x.size(0)? - 1)?)),
        ("add up", |x| x.narrow(0, 1, x.size(0)? - 1)?.add_(&x.narrow(0, 0, x.size(0)? - 1)?)),
        ("mul down", |x| x.narrow(0, 0, x.size(0)? - 1)?.mul_(&x.narrow(0, 1, x.size(0)? - 1)?)),
        ("itself", |x| x.add_(x)),
        ("transposed", |x| x.sub_(&x.t()?)),
        ("copy of transposed", |x| x.copy_(&x.t()?)),
        ("first", |x| x.mul_(&x.get(0)?)),
        ("a number of it", |x| x.maximum_(&x.get(-1)?.reshape(&[-1])?.get(0)?)),
        ("every second", |x| x.slice(0, 0, i64::MAX, 2)?.minimum_(&x.get(0)?)),
        ("view of view", |x| x.reshape(&[-1])?.slice(0, 1, i64::MAX, 2)?.exp_()),
        ("onto itself expanded", |x| x.get(0)?.unsqueeze(0)?.expand(&[3, -1])?.add_(x)),
    ];
    on_gpu(|| {
        each_case([2, 3, 16, 17, 33], |n| -> Result<()> {
            for dtype in sweep::ALL {
                for (name, step) in steps {
                    let run = |device: Device| {
                        let x = values(&[n, n], dtype, n).to(device)?.copy()?;
                        let result = step(&x)?;
                        Ok((see(&result, device)?, see(&x, device)?))
                    };
                    let text = |outcome: Result<_>| outcome.map_err(|error: Error| error.to_string());
                    assert!(text(run(Device::Cpu)) == text(run(Device::cuda(0))), "{name} {dtype:?} {n}");
                }
            }
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn numbers_truths_hooks_and_modes_are_those_of_the_cpu() -> Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    on_gpu(|| {
        let device = Device::cuda(0);
        each_case(sweep::ALL, |dtype| -> Result<()> {
            let x = values(&[1, 1], dtype, 0);
            let xd = x.to(device)?;
            assert_eq!(x.item()?.to_bits(), xd.item()?.to_bits());
            assert_eq!(x.is_nonzero()?, xd.is_nonzero()?);
            assert_eq!(x.to_string(), xd.to_string().replace(", device='cuda:0'", ""));
            Ok(())
        });
        let two = Tensor::zeros((&[2], device))?;
        assert_eq!(two.item().unwrap_err().to_string(), Tensor::zeros(&[2])?.item().unwrap_err().to_string());
        assert!(two.is_nonzero().unwrap_err().to_string().contains("ambiguous"));

        let calls = Arc::new(AtomicUsize::new(0));
        let (w, seen) = (Tensor::ones((&[3], device))?.requires_grad_(true)?, calls.clone());
        w.register_post_accumulate_grad_hook(move |grad| {
            assert!(grad.is_cuda());
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })?;
        w.square()?.sum()?.backward()?;
        w.square()?.sum()?.backward()?;
        assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [4.0; 3]);
        assert_eq!(calls.load(Ordering::Relaxed), 2);

        let y = todevice::inference_mode(|| w.exp())?;
        assert!(y.is_inference() && !y.requires_grad() && y.device() == device);
        assert!(y.add_(1.0).unwrap_err().to_string().starts_with("Inplace update to inference tensor"));
        assert!(no_grad(|| w.exp())?.grad_fn().is_none());
        let z = w.exp()?;
        let loss = z.sum()?;
        no_grad(|| z.zero_())?;
        assert!(loss.backward().unwrap_err().to_string().contains("modified by an inplace operation"));
        Ok(())
    })
}

// Layers and optimizers.

fn network() -> Result<nn::Sequential> {
    let head = nn::Sequential::new((nn::Linear::new(8, 6)?, nn::Tanh, nn::Dropout::new(0.0)?));
    let no_bias = nn::LinearOptions { bias: false, ..Default::default() };
    let tail = nn::Linear::new(6, (4, no_bias))?;
    Ok(nn::Sequential::new((nn::Flatten::default(), head, nn::ReLU, nn::Sigmoid, tail)))
}

/// A common interface for optimizers with any options.
type MakeOptimizer = fn(Vec<nn::Parameter>) -> Result<Box<dyn DynOptimizer>>;

trait DynOptimizer {
    fn step(&mut self) -> Result<()>;
    fn zero_grad(&self);
    fn schedule(&self) -> Result<StepLR>;
}

impl<O: Optimizer> DynOptimizer for O {
    fn step(&mut self) -> Result<()> {
        Optimizer::step(self)
    }

    fn zero_grad(&self) {
        Optimizer::zero_grad(self);
    }

    fn schedule(&self) -> Result<StepLR> {
        StepLR::new(self, 2, 0.5)
    }
}

const OPTIMIZERS: [(&str, MakeOptimizer); 8] = [
    ("SGD", |p| Ok(Box::new(optim::SGD::new(p, SGDOptions { lr: 0.1, ..Default::default() })?))),
    ("SGD momentum", |p| {
        Ok(Box::new(optim::SGD::new(
            p,
            SGDOptions { lr: 0.1, momentum: 0.9, dampening: 0.1, ..Default::default() },
        )?))
    }),
    ("SGD nesterov", |p| {
        let options = SGDOptions { lr: 0.1, momentum: 0.9, nesterov: true, ..Default::default() };
        Ok(Box::new(optim::SGD::new(p, options)?))
    }),
    ("SGD decay", |p| {
        let options = SGDOptions { lr: 0.1, weight_decay: 0.01, maximize: true, ..Default::default() };
        Ok(Box::new(optim::SGD::new(p, options)?))
    }),
    ("Adam", |p| Ok(Box::new(optim::Adam::new(p, AdamOptions { lr: 0.01, ..Default::default() })?))),
    ("Adam decay", |p| {
        let options = AdamOptions { lr: 0.01, weight_decay: 0.1, betas: (0.8, 0.9), ..Default::default() };
        Ok(Box::new(optim::Adam::new(p, options)?))
    }),
    ("AdamW", |p| Ok(Box::new(optim::AdamW::new(p, AdamWOptions { lr: 0.01, ..Default::default() })?))),
    ("AdamW groups", |p| {
        let (first, rest) = p.split_at(1);
        let group = |params: &[nn::Parameter], lr| optim::ParamGroup {
            params: params.to_vec(),
            options: AdamWOptions { lr, ..Default::default() },
        };
        Ok(Box::new(optim::AdamW::with_groups(vec![group(first, 0.1), group(rest, 0.01)])?))
    }),
];

const LOSSES: [(&str, fn(&Tensor, &Tensor) -> Result<Tensor>); 6] = [
    ("CrossEntropyLoss", |y, t| nn::CrossEntropyLoss::default().forward(y, t)),
    ("CrossEntropyLoss weighted", |y, t| {
        let weight = Some(Tensor::new([1.0f32, 0.5, 2.0, 0.25])?.to(y.device())?);
        let options = CrossEntropyOptions { weight, ignore_index: 2, ..Default::default() };
        nn::CrossEntropyLoss::new(options).forward(y, t)
    }),
    ("NLLLoss", |y, t| nn::NLLLoss::default().forward(&y.log_softmax(1)?, t)),
    ("NLLLoss sum", |y, t| {
        let options =
            CrossEntropyOptions { ignore_index: 0, reduction: Reduction::Sum, ..Default::default() };
        nn::NLLLoss::new(options).forward(&y.log_softmax(1)?, t)
    }),
    ("MSELoss", |y, t| nn::MSELoss::default().forward(&y.get(0)?, &t.slice(0, 0, 4, 1)?.to(y.dtype())?)),
    ("L1Loss", |y, t| {
        nn::L1Loss { reduction: Reduction::Sum }.forward(&y.get(0)?, &t.slice(0, 0, 4, 1)?.to(y.dtype())?)
    }),
];

/// Five steps on a device. Returns the bits of all losses, norms, gradients and parameters.
fn train(
    device: Device,
    make: MakeOptimizer,
    loss_of: fn(&Tensor, &Tensor) -> Result<Tensor>,
    optimizer_first: bool,
) -> Result<Vec<Vec<u64>>> {
    manual_seed(7);
    let model = network()?;
    let (x, target) = (Tensor::randn(&[9, 2, 4])?.to(device)?, Tensor::randint(0, 4, &[9])?.to(device)?);
    let early = optimizer_first.then(|| make(model.parameters())).transpose()?;
    model.to(device)?;
    let mut optimizer = early.map_or_else(|| make(model.parameters()), Ok)?;
    let mut schedule = optimizer.schedule()?;
    let mut seen = Vec::new();
    for step in 0..5 {
        let loss = loss_of(&model.forward(&x)?, &target)?;
        optimizer.zero_grad();
        loss.backward()?;
        let norm_type = [2.0, f64::INFINITY, 3.0][step % 3];
        let options = ClipGradNormOptions { norm_type, error_if_nonfinite: true };
        let norm = clip_grad_norm_(&model.parameters(), 0.5, options)?;
        assert!(loss.device() == device && norm.device() == device);
        seen.extend([bits(&loss)?, bits(&norm)?]);
        for parameter in model.parameters() {
            let grad = parameter.grad().unwrap();
            assert!(grad.device() == device && parameter.tensor().device() == device);
            seen.push(bits(&grad)?);
        }
        optimizer.step()?;
        schedule.step();
    }
    for (_, value) in model.state_dict().iter() {
        seen.push(bits(value)?);
    }
    Ok(seen)
}

#[test]
fn five_steps_of_every_optimizer_on_every_loss_are_those_of_the_cpu() -> Result<()> {
    on_gpu(|| {
        each_case(OPTIMIZERS, |(optimizer, make)| -> Result<()> {
            for (loss, loss_of) in LOSSES {
                let cpu = train(Device::Cpu, make, loss_of, false)?;
                assert!(cpu[0] != cpu[8], "{optimizer}, {loss}: nothing was learned");
                for first in [true, false] {
                    let cuda = train(Device::cuda(0), make, loss_of, first)?;
                    assert!(same_training(&cpu, &cuda), "{optimizer}, {loss}, made before the move: {first}");
                }
            }
            Ok(())
        });
        Ok(())
    })
}

/// Whether two training runs agree in f32. A card rounds products differently, and some steps amplify that.
fn same_training(cpu: &[Vec<u64>], cuda: &[Vec<u64>]) -> bool {
    cpu.len() == cuda.len() && cpu.iter().zip(cuda).all(|(a, b)| same_bits(a, b, DType::F32, 1e-3))
}

/// Image layers, between two that learn.
fn image_network() -> Result<nn::Sequential> {
    let slow = nn::BatchNormOptions { momentum: None, ..Default::default() };
    let plain = nn::LayerNormOptions { elementwise_affine: false, ..Default::default() };
    Ok(nn::Sequential::new((
        nn::MaxPool2d::new(2),
        nn::BatchNorm2d::new(3)?,
        nn::AvgPool2d::new((1, 2)),
        nn::Sequential::new((nn::Linear::new(4, 9)?, nn::LayerNorm::new(&[4, 9])?, nn::GELU::default())),
        nn::AdaptiveAvgPool2d::new((3, 2)),
        nn::Flatten::default(),
        nn::BatchNorm1d::new((18, slow))?,
        nn::LayerNorm::new((&[18], plain))?,
        nn::Linear::new(18, 4)?,
    )))
}

/// Embeddings with a padding index.
fn word_network() -> Result<nn::Sequential> {
    let padded = nn::EmbeddingOptions { padding_idx: Some(0), ..Default::default() };
    let words = nn::Embedding::new(12, (6, padded))?;
    Ok(nn::Sequential::new((words, nn::Flatten::default(), nn::Linear::new(24, 4)?)))
}

#[test]
fn learning_from_images_is_that_of_the_cpu() -> Result<()> {
    assert_learns_as_on_the_cpu(image_network, || Tensor::randn(&[5, 3, 8, 16]))
}

#[test]
fn learning_from_words_is_that_of_the_cpu() -> Result<()> {
    assert_learns_as_on_the_cpu(word_network, || Tensor::randint(0, 12, &[5, 4]))
}

fn assert_learns_as_on_the_cpu(
    network: fn() -> Result<nn::Sequential>,
    input: fn() -> Result<Tensor>,
) -> Result<()> {
    on_gpu(|| {
        let learn = |device: Device| -> Result<Vec<Vec<u64>>> {
            manual_seed(11);
            let model = network()?;
            model.to(device)?;
            let x = input()?.to(device)?;
            let target = Tensor::randint(0, 4, &[5])?.to(device)?;
            let options = SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
            let mut optimizer = optim::SGD::new(model.parameters(), options)?;
            let mut seen = Vec::new();
            for _ in 0..3 {
                let loss = nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &target)?;
                Optimizer::zero_grad(&optimizer);
                loss.backward()?;
                Optimizer::step(&mut optimizer)?;
                seen.push(bits(&loss)?);
            }
            model.eval();
            seen.push(bits(&model.forward(&x)?)?);
            for (_, value) in model.state_dict().iter() {
                seen.push(bits(value)?);
            }
            Ok(seen)
        };
        let cpu = learn(Device::Cpu)?;
        assert!(cpu[0] != cpu[2], "nothing was learned");
        assert!(same_training(&cpu, &learn(Device::cuda(0))?));
        Ok(())
    })
}

#[test]
fn moving_a_model_twice_copies_nothing_the_second_time() -> Result<()> {
    let machine = machine();
    machine.enter(|| {
        let model = network()?;
        let before = machine.counters();
        model.to(Device::cuda(0))?;
        let moved = machine.counters() - before;
        assert_eq!(moved.copies_to_device, 3);
        assert_eq!(
            moved.bytes_to_device,
            model.parameters().iter().map(|p| p.numel() as u64 * 4).sum::<u64>()
        );
        let (tensors, before) =
            (model.parameters().iter().map(nn::Parameter::tensor).collect::<Vec<_>>(), machine.counters());
        model.to(Device::cuda(0))?;
        assert_eq!(machine.counters(), before);
        for (parameter, tensor) in model.parameters().iter().zip(&tensors) {
            assert!(parameter.tensor().is_same(tensor));
        }
        Ok(())
    })
}

#[test]
fn a_model_takes_its_gradients_and_frozen_parameters_along() -> Result<()> {
    on_gpu(|| {
        manual_seed(3);
        let model = nn::Linear::new(3, 2)?;
        let x = Tensor::randn(&[4, 3])?;
        model.forward(&x)?.sum()?.backward()?;
        model.weight.requires_grad_(false)?;
        let grads: Vec<_> =
            model.parameters().iter().map(|p| bits(&p.grad().unwrap())).collect::<Result<_>>()?;
        model.to(Device::cuda(0))?;
        for (parameter, grad) in model.parameters().iter().zip(grads) {
            let moved = parameter.grad().unwrap();
            assert!(moved.is_cuda() && bits(&moved)? == grad);
        }
        assert!(!model.weight.requires_grad() && model.bias.as_ref().unwrap().requires_grad());
        model.to(Device::Cpu)?;
        assert!(model.parameters().iter().all(|p| !p.is_cuda() && !p.grad().unwrap().is_cuda()));
        Ok(())
    })
}

#[test]
fn a_state_dict_crosses_devices_in_both_directions() -> Result<()> {
    on_gpu(|| {
        let values = |state: &StateDict| -> Result<Vec<_>> { state.iter().map(|(_, t)| bits(t)).collect() };
        let (cuda, cpu) = (network()?, network()?);
        cuda.to(Device::cuda(0))?;
        each_case([(&cuda, &cpu), (&cpu, &cuda)], |(from, to)| -> Result<()> {
            for parameter in from.parameters() {
                no_grad(|| parameter.tensor().add_(0.5))?;
            }
            let devices: Vec<_> = to.parameters().iter().map(nn::Parameter::is_cuda).collect();
            assert_ne!(values(&from.state_dict())?, values(&to.state_dict())?);
            to.load_state_dict(&from.state_dict(), true)?;
            assert_eq!(values(&from.state_dict())?, values(&to.state_dict())?);
            assert_eq!(devices, to.parameters().iter().map(nn::Parameter::is_cuda).collect::<Vec<_>>());
            Ok(())
        });
        let kept = cuda.state_dict().copy()?;
        assert!(kept.iter().all(|(_, tensor)| tensor.is_cuda()));
        no_grad(|| cuda.parameters()[0].tensor().zero_())?;
        assert_ne!(values(&kept)?, values(&cuda.state_dict())?);
        Ok(())
    })
}

/// Runs everything that this file compares, once on a device. Returns the recorded graph nodes.
fn everything_compared() -> Result<BTreeSet<&'static str>> {
    let device = Device::cuda(0);
    let nodes = run(&all_cases());
    for (_, make) in OPTIMIZERS {
        for dtype in sweep::FLOATS {
            let parameter = nn::Parameter::new(&Tensor::ones((&[3], (device, dtype)))?)?;
            let mut optimizer = make(vec![parameter.clone()])?;
            for _ in 0..2 {
                parameter.tensor().sum()?.backward()?;
                optimizer.step()?;
            }
        }
    }
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        scaled_steps(device, dtype)?;
    }
    Ok(nodes)
}

/// Other kernels that are launched.
fn everything_else() -> Result<()> {
    let device = Device::cuda(0);
    for dtype in sweep::ALL {
        let options = TensorOptions::from((device, dtype));
        // Long rows are reduced in two steps.
        let long = Tensor::zeros((&[8192], options))?;
        for reduce in [Tensor::sum, Tensor::max, Tensor::min] {
            reduce(&long)?;
        }
        Tensor::randint(0, 2, (&[3], options))?;
        for other in sweep::ALL {
            long.to(other)?;
        }
        if dtype.is_floating_point() {
            let x = Tensor::rand((&[3], options))?;
            x.randn_like()?.dropout(0.5, true)?;
            x.bernoulli(None)?;
            // A convolution without cuDNN.
            let image = Tensor::ones((&[1, 2, 4, 4], options))?.requires_grad_(true)?;
            let weight = Tensor::ones((&[3, 2, 3, 3], options))?;
            let without = cudnn::Flags { enabled: false, ..cudnn::current() };
            cudnn::flags(without, || image.conv2d(&weight, None)?.sum()?.backward())?;
        }
    }
    Ok(())
}

/// Operations and nodes that do not occur when all of this runs, and the reasons.
const NOT_SEEN: [(&str, &str); 5] = [
    (
        "rand randn randint bernoulli uniform_ normal_ random_ UniformBackward0 NormalBackward0 RandomBackward0 \
         RandomBackward2",
        "a device has random numbers of its own: devices.rs",
    ),
    ("_pin_memory PinMemoryBackward0", "pinned.rs"),
    ("conv2d ConvolutionBackward0", "a device adds up in other orders: convolutions_on_devices.rs, cudnn.rs"),
    ("addmm dot remainder", "parts of linear, matmul and take_along_dim"),
    (
        "view unsqueeze squeeze expand permute transpose select slice unbind unfold",
        "views launch nothing; their nodes are seen",
    ),
];

/// Checks that this file compares every operation of the registry and launches every kernel, and that every launched
/// kernel is in the list against which the CUDA C++ is tested.
#[test]
fn the_list_of_kernels_and_that_of_operations_are_complete() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    let (nodes, compared) = machine.enter(|| machine.profile(everything_compared));
    let (others, not_compared) = machine.enter(|| machine.profile(everything_else));
    others?;
    let compared = compared.kernels(0);

    let seen: BTreeSet<&str> = compared.iter().map(|kernel| kernel.operation).chain(nodes?).collect();
    // Backward operations show up as their graph nodes, and their kernels are checked below.
    let all = operations().filter(|operation| !operation.name.contains("_backward"));
    let known: BTreeSet<&str> =
        all.flat_map(|operation| [operation.name].into_iter().chain(operation.node)).collect();
    let missing: BTreeSet<&str> = known.difference(&seen).copied().collect();
    let excepted = NOT_SEEN.iter().flat_map(|(names, _)| names.split(' ')).collect();
    assert_eq!(missing, excepted, "operations without a case, and those that need none");

    let kernels = compared.into_iter().chain(not_compared.kernels(0)).map(|kernel| kernel.name);
    let launched: BTreeSet<String> = kernels.filter(|name| name != "gemm").collect();
    let listed: BTreeSet<String> = kernel_signatures().into_iter().map(|(symbol, _)| symbol).collect();
    let missing: Vec<&String> = launched.difference(&listed).collect();
    let unused: Vec<&String> = listed.difference(&launched).collect();
    assert!(
        missing.is_empty() && unused.is_empty(),
        "not in the list: {missing:?}; never launched: {unused:?}"
    );
    Ok(())
}
