//! Mixed precision: the dtype of each operation, weights and gradients, and gradient scaling.

use crate::each_case::each_case;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use todevice::amp::{self, AutocastOptions, GradScaler, GradScalerOptions};
use todevice::autograd::{self, BackwardOptions, CastPolicy, Context, Function, Operation, Saved};
use todevice::cuda::operations;
use todevice::errors::TensorError;
use todevice::nn::Parameter;
use todevice::nn::utils::clip_grad_norm_;
use todevice::optim::lr_scheduler::StepLR;
use todevice::prelude::*;
use todevice::serialize::Key;
use todevice::{DType::BF16, DType::F16, DType::F32, DType::F64};
use todevice::{
    DeviceType, LayerNormArguments, Machine, TensorOptions, ToOptions, cuda, inference_mode,
    use_deterministic_algorithms,
};

use crate::seeded;

const CPU: DeviceType = DeviceType::Cpu;
const CUDA: DeviceType = DeviceType::Cuda;

fn on_t4<R>(test: impl FnOnce() -> R) -> R {
    "sim:t4".parse::<Machine>().unwrap().enter(test)
}

fn with(device_type: DeviceType, dtype: DType) -> AutocastOptions {
    AutocastOptions { dtype: Some(dtype), ..device_type.into() }
}

fn off(device_type: DeviceType) -> AutocastOptions {
    AutocastOptions { enabled: false, ..device_type.into() }
}

/// A matrix of small numbers.
fn matrix(rows: usize, columns: usize, of: impl Into<TensorOptions>) -> Result<Tensor> {
    let numbers: Vec<f32> = (0..rows * columns).map(|i| (i % 7) as f32 / 8.0 - 0.25).collect();
    let TensorOptions { dtype, device, .. } = of.into();
    Tensor::from_slice(&numbers, &[rows, columns])?.to(ToOptions {
        device: Some(device),
        dtype,
        ..Default::default()
    })
}

// ---------------------------------------------------------------------------------------------- which type

type OfTwo = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// The dtype of an operation's result, according to the table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Runs {
    /// The region's dtype.
    Low,
    /// In f32.
    F32,
    /// The dtype of its first operand.
    AsGiven,
    /// The widest dtype of its operands.
    Widest,
}
use Runs::{AsGiven, Low, Widest};

fn classes(of: &Tensor) -> Result<Tensor> {
    Tensor::new([0, 2, 1, 3])?.to(of.device())
}

/// Operations on an activation (half, 4 × 4) and an f32 matrix, and the dtype in which they run: on the CPU, on CUDA
/// devices. The CPU's column is PyTorch 2.11's observed behaviour; the other is from its lists.
const TABLE: [(&str, OfTwo, [Runs; 2]); 47] = [
    ("matmul", |y, x| y.matmul(x), [Low, Low]),
    ("matmul of f32", |_, x| x.matmul(x), [Low, Low]),
    ("matmul of vectors", |y, x| y.get(0)?.matmul(&x.get(0)?), [Low, Low]),
    ("matmul with a vector", |_, x| x.matmul(&x.get(0)?), [Low, Low]),
    ("mm", |y, x| x.mm(y), [Low, Low]),
    ("bmm", |y, x| y.unsqueeze(0)?.bmm(&x.unsqueeze(0)?), [Low, Low]),
    ("linear", |y, x| y.linear(x, Some(&x.get(0)?)), [Low, Low]),
    ("linear without bias", |_, x| x.linear(x, None), [Low, Low]),
    ("linear of a batch", |y, x| y.unsqueeze(0)?.linear(x, Some(&x.get(0)?)), [Low, Low]),
    (
        "conv2d",
        |y, x| {
            let image = y.reshape(&[1, 1, 4, 4])?;
            let kernel = x.narrow(0, 0, 1)?.reshape(&[1, 1, 2, 2])?;
            image.conv2d(&kernel, Some(&x.narrow(0, 1, 1)?.flatten(0, -1)?.narrow(0, 0, 1)?))
        },
        [Low, Low],
    ),
    ("cross_entropy", |y, _| y.cross_entropy(&classes(y)?), [Runs::F32, Runs::F32]),
    (
        "cross_entropy with weights",
        |y, x| {
            let weight = Some(x.get(0)?.abs()?);
            let options = CrossEntropyOptions { weight, ..Default::default() };
            y.cross_entropy((&classes(y)?, options.clone()))
        },
        [Runs::F32, Runs::F32],
    ),
    (
        "nll_loss with weights of halves",
        |y, x| {
            let options = CrossEntropyOptions { weight: Some(y.get(0)?), ..Default::default() };
            x.nll_loss((&classes(y)?, options.clone()))
        },
        [Runs::F32, Runs::F32],
    ),
    ("nll_loss", |y, _| y.nll_loss(&classes(y)?), [Runs::F32, Runs::F32]),
    ("mse_loss", |y, x| y.mse_loss(x, Reduction::Mean), [Runs::F32, Runs::F32]),
    ("l1_loss", |y, _| y.l1_loss(y, Reduction::Sum), [Runs::F32, Runs::F32]),
    ("softmax", |y, _| y.softmax(1), [AsGiven, Runs::F32]),
    ("log_softmax", |y, _| y.log_softmax(0), [AsGiven, Runs::F32]),
    ("exp", |y, _| y.exp(), [AsGiven, Runs::F32]),
    ("log", |y, _| y.abs()?.log(), [AsGiven, Runs::F32]),
    ("pow", |y, _| y.pow(3.0), [AsGiven, Runs::F32]),
    ("pow 0.5", |y, _| y.pow(0.5), [AsGiven, Runs::F32]),
    ("square", |y, _| y.square(), [AsGiven, Runs::F32]),
    ("reciprocal", |y, _| y.reciprocal(), [AsGiven, Runs::F32]),
    ("rsqrt", |y, _| y.rsqrt(), [AsGiven, Runs::F32]),
    ("sum", |y, _| y.sum(), [AsGiven, Runs::F32]),
    ("sum over a dimension", |y, _| y.sum_dims(&[0], true), [AsGiven, Runs::F32]),
    ("norm", |y, _| y.norm(), [AsGiven, Runs::F32]),
    (
        "layer_norm",
        |y, x| y.layer_norm((&[4], LayerNormArguments { weight: Some(x.get(0)?), ..Default::default() })),
        [AsGiven, Runs::F32],
    ),
    ("cumsum", |y, _| y.cumsum(0), [AsGiven, Runs::F32]),
    ("softplus", |y, _| y.softplus(1.0, 20.0), [AsGiven, Runs::F32]),
    ("mean", |y, _| y.mean(), [AsGiven, AsGiven]),
    ("var", |y, _| y.var(&[], 1, false), [AsGiven, AsGiven]),
    ("std", |y, _| y.std(&[0], 1, false), [AsGiven, AsGiven]),
    ("relu", |y, _| y.relu(), [AsGiven, AsGiven]),
    ("gelu", |y, _| y.gelu(Default::default()), [AsGiven, AsGiven]),
    ("sigmoid", |y, _| y.sigmoid(), [AsGiven, AsGiven]),
    ("sqrt", |y, _| y.abs()?.sqrt(), [AsGiven, AsGiven]),
    ("dropout", |y, _| y.dropout(0.5, true), [AsGiven, AsGiven]),
    ("max_pool2d", |y, _| y.reshape(&[1, 1, 4, 4])?.max_pool2d(2), [AsGiven, AsGiven]),
    (
        "batch_norm",
        |y, _| {
            let arguments = todevice::BatchNormArguments { training: true, ..Default::default() };
            y.batch_norm(arguments.clone())
        },
        [AsGiven, AsGiven],
    ),
    ("add", |y, x| y.add(x), [Widest, Widest]),
    ("mul", |y, _| y.mul(y), [Widest, Widest]),
    ("maximum", |y, x| y.maximum(x), [Widest, Widest]),
    ("cat", |y, x| Tensor::cat(&[y, x], 0), [Runs::F32, Runs::F32]),
    ("stack of halves", |y, _| Tensor::stack(&[y, y], 0), [AsGiven, AsGiven]),
    (
        "scatter_add",
        |y, x| {
            let source = if y.is_cuda() { x } else { y }; // Without casts, mixed dtypes are rejected.
            y.scatter_add(0, &Tensor::new([[0, 1, 2, 3]])?.to(y.device())?, &source.narrow(0, 0, 1)?)
        },
        [AsGiven, Runs::F32],
    ),
];

fn assert_table(device: Device, low: DType) -> Result<()> {
    let device_type = device.device_type();
    let x = matrix(4, 4, device)?;
    let y = x.to(low)?;
    for (name, operation, runs) in TABLE {
        let runs = runs[usize::from(device_type == CUDA)];
        let result = amp::autocast(with(device_type, low), || operation(&y, &x))
            .unwrap_or_else(|error| panic!("{name} on {device} in {low}: {error}"));
        let expected = match runs {
            Low | AsGiven => low,
            Runs::F32 => F32,
            // The two that also have an f32 matrix.
            Widest if name == "mul" => low,
            Widest => F32,
        };
        assert_eq!(result.dtype(), expected, "{name} on {device} in {low}");
    }
    // Doubles and integers are left alone, and so are in-place operations.
    let doubles = x.to(F64)?;
    let whole = Tensor::full(&[2, 2], (3, (device, DType::I64)))?;
    amp::autocast(with(device_type, low), || -> Result<()> {
        assert_eq!(doubles.mm(&doubles)?.dtype(), F64);
        assert_eq!(doubles.softmax(0)?.dtype(), F64);
        assert_eq!(whole.mm(&whole)?.dtype(), DType::I64);
        assert_eq!(whole.sum()?.dtype(), DType::I64);
        assert_eq!(y.copy()?.exp_()?.dtype(), low);
        assert_eq!(y.copy()?.mul_(&x)?.dtype(), low);
        assert_eq!(x.add(&x)?.dtype(), F32, "nothing asks for halves here");
        Ok(())
    })
}

#[test]
fn every_operation_runs_in_the_type_of_its_list() -> Result<()> {
    on_t4(|| {
        each_case([F16, BF16], |low| -> Result<()> {
            assert_table(Device::Cpu, low)?;
            assert_table(Device::cuda(0), low)?;
            Ok(())
        });
        Ok(())
    })
}

/// PyTorch's lists (`aten/src/ATen/autocast_mode.h`) of operations that may exist here: for the CPU, and for CUDA
/// devices. A `square` counts as `pow`, and a `norm` as `linalg_vector_norm`.
const LISTS: [[(CastPolicy, &str); 3]; 2] = [
    [
        (
            CastPolicy::LowerPrecision,
            "conv1d conv2d conv3d bmm mm linalg_vecdot baddbmm addmm addbmm linear matmul conv_transpose1d \
             conv_transpose2d conv_transpose3d prelu scaled_dot_product_attention",
        ),
        (
            CastPolicy::Fp32,
            "binary_cross_entropy grid_sampler prod quantile cdist trace mse_loss cosine_embedding_loss nll_loss \
             hinge_embedding_loss poisson_nll_loss smooth_l1_loss cross_entropy l1_loss huber_loss \
             margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss",
        ),
        (CastPolicy::Promote, "stack cat index_copy"),
    ],
    [
        (
            CastPolicy::LowerPrecision,
            "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d prelu addmm addmv addr matmul \
             einsum mm mv linalg_vecdot linear addbmm baddbmm bmm scaled_dot_product_attention",
        ),
        (
            CastPolicy::Fp32,
            "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow square softplus \
             layer_norm group_norm cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss cross_entropy \
             hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss \
             soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist cdist renorm \
             logsumexp prod softmax log_softmax cumprod cumsum sum norm",
        ),
        (
            CastPolicy::Promote,
            "addcdiv addcmul atan2 bilinear cross dot vdot grid_sample index_put tensordot scatter_add",
        ),
    ],
];

#[test]
fn every_operation_is_on_the_list_that_it_is_on_in_pytorch() {
    for operation in operations() {
        let listed = LISTS.map(|lists| {
            let is_on =
                |(_, names): &&(CastPolicy, &str)| names.split(' ').any(|name| name == operation.name);
            lists.iter().find(is_on).map_or(CastPolicy::AsGiven, |(cast, _)| *cast)
        });
        assert_eq!(operation.casts, listed, "{}", operation.name);
    }
}

#[test]
fn every_operation_that_is_cast_is_in_the_table() {
    let tried: BTreeSet<&str> = TABLE.iter().map(|(name, ..)| name.split(' ').next().unwrap()).collect();
    // These are cast only as parts of others: `linear`, and `matmul` of vectors.
    let parts = ["addmm", "dot"];
    let cast = operations().filter(|operation| operation.casts != [CastPolicy::AsGiven; 2]);
    let names: BTreeSet<&str> =
        cast.map(|operation| operation.name).filter(|name| !parts.contains(name)).collect();
    let missing: Vec<_> = names.difference(&tried).collect();
    assert!(names.len() > 20 && missing.is_empty(), "{missing:?} of {names:?}");
}

#[test]
fn the_results_are_those_of_operands_cast_by_hand() -> Result<()> {
    on_t4(|| {
        each_case([(Device::Cpu, BF16), (Device::cuda(0), F16)], |(device, low)| -> Result<()> {
            let (x, weight, bias) =
                (matrix(3, 5, device)?, matrix(2, 5, device)?, matrix(1, 2, device)?.get(0)?);
            let (product, loss) = amp::autocast(device, || -> Result<_> {
                let product = x.linear(&weight, Some(&bias))?;
                Ok((product.clone(), product.softmax(1)?.mse_loss(&x.narrow(1, 0, 2)?, Reduction::Mean)?))
            })?;
            let by_hand = x.to(low)?.linear(&weight.to(low)?, Some(&bias.to(low)?))?;
            assert_eq!(product.dtype(), low);
            assert_eq!(product.to(F32)?.to_vec::<f32>()?, by_hand.to(F32)?.to_vec::<f32>()?);
            // On a device softmax runs in f32, on the host in half precision.
            let probabilities =
                if device.is_cuda() { by_hand.to(F32)? } else { by_hand }.softmax(1)?.to(F32)?;
            let expected = probabilities.mse_loss(&x.narrow(1, 0, 2)?, Reduction::Mean)?;
            assert_eq!(loss.item()?, expected.item()?);
            Ok(())
        });
        Ok(())
    })
}

// ------------------------------------------------------------------------------------------------- regions

fn product(device: Device) -> Result<DType> {
    let x = matrix(2, 2, device)?;
    Ok(x.mm(&x)?.dtype())
}

#[test]
fn regions_nest_and_each_type_of_device_has_its_own() -> Result<()> {
    on_t4(|| {
        let (cpu, gpu) = (Device::Cpu, Device::cuda(0));
        assert!(!amp::is_autocast_enabled(CPU) && !amp::is_autocast_enabled(CUDA));
        assert_eq!((amp::get_autocast_dtype(CPU), amp::get_autocast_dtype(CUDA)), (BF16, F16));
        amp::autocast(gpu, || -> Result<()> {
            assert!(amp::is_autocast_enabled(CUDA) && !amp::is_autocast_enabled(CPU));
            assert_eq!((product(gpu)?, product(cpu)?), (F16, F32));
            amp::autocast(CPU, || -> Result<()> {
                assert_eq!((product(gpu)?, product(cpu)?), (F16, BF16));
                amp::autocast(with(CUDA, BF16), || -> Result<()> {
                    assert_eq!((product(gpu)?, amp::get_autocast_dtype(CUDA)), (BF16, BF16));
                    amp::autocast(off(CUDA), || -> Result<()> {
                        assert_eq!((product(gpu)?, product(cpu)?), (F32, BF16));
                        // Options that are not given are inherited from the outer region.
                        amp::autocast(CUDA, || -> Result<()> {
                            let _: () = assert_eq!(product(gpu)?, BF16);
                            Ok(())
                        })
                    })
                })?;
                let _: () = assert_eq!((product(gpu)?, product(cpu)?), (F16, BF16));
                Ok(())
            })?;
            let _: () = assert_eq!(product(cpu)?, F32);
            Ok(())
        })?;
        let _: () = assert_eq!((product(gpu)?, product(cpu)?), (F32, F32));
        Ok(())
    })
}

#[test]
fn a_region_ends_with_a_panic_too_and_belongs_to_its_thread() {
    amp::autocast(CPU, || {
        assert_eq!(product(Device::Cpu).unwrap(), BF16);
        thread::scope(|scope| scope.spawn(|| assert_eq!(product(Device::Cpu).unwrap(), F32)).join()).unwrap();
    });
    let panicked = catch_unwind(AssertUnwindSafe(|| amp::autocast(CPU, || panic!("on purpose"))));
    assert!(panicked.is_err() && !amp::is_autocast_enabled(CPU));
    assert_eq!(product(Device::Cpu).unwrap(), F32);
    // A region inside an operation leaves no trace either.
    amp::autocast(CPU, || {
        let wide = Tensor::ones(&[2, 3]).unwrap();
        assert!(wide.mm(&wide).is_err());
        assert_eq!(product(Device::Cpu).unwrap(), BF16);
    });
    assert_eq!(amp::autocast(CPU, || 7), 7);
}

#[test]
fn halves_made_inside_do_not_fit_a_layer_of_f32_where_nothing_is_cast() -> Result<()> {
    let layer = nn::Linear::new(2, 2)?;
    let x = matrix(3, 2, F32)?;
    let error = amp::autocast(CPU, || {
        let y = layer.forward(&x)?;
        amp::autocast(off(CPU), || layer.forward(&y))
    });
    let says = "mat1 and mat2 must have the same dtype, but got BFloat16 and Float";
    assert_eq!(error.unwrap_err().to_string(), says);
    Ok(())
}

#[test]
fn where_nothing_can_be_cast_a_warning_says_why() -> Result<()> {
    let warned = |gpus: &str, options: AutocastOptions| {
        let machine: Machine = gpus.parse().unwrap();
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let heard = warnings.clone();
        machine.on_warning(move |warning: &str| heard.lock().unwrap().push(warning.to_owned()));
        let result = machine.enter(|| amp::autocast(options, || product(Device::Cpu))).unwrap();
        (result, warnings.lock().unwrap().join("|"))
    };
    let says = "CUDA is not available or torch_xla is imported. Disabling autocast.";
    assert_eq!(warned("none", CUDA.into()), (F32, says.to_owned()));
    let says = "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports \
                dtypes of torch.bfloat16, torch.float16 currently.";
    assert_eq!(warned("none", with(CPU, F32)), (F32, says.to_owned()));
    assert_eq!(warned("none", CPU.into()), (BF16, String::new()));
    Ok(())
}

/// PyTorch requires 16 bits only on the CPU.
#[test]
fn on_a_gpu_a_region_may_be_of_any_type() -> Result<()> {
    on_t4(|| {
        amp::autocast(with(CUDA, F32), || {
            assert!(amp::is_autocast_enabled(CUDA));
            let half = Tensor::ones(&[2, 2])?.to(F16)?.to(Device::cuda(0))?;
            assert_eq!(half.matmul(&half)?.dtype(), F32);
            // Inside, a region without a dtype inherits f32.
            amp::autocast(CUDA, || assert_eq!(amp::get_autocast_dtype(CUDA), F32));
            Ok(())
        })
    })
}

#[test]
fn a_gradient_that_overlaps_itself_is_not_unscaled() -> Result<()> {
    let parameters = [Parameter::new(&Tensor::ones(&[2])?)?, Parameter::new(&Tensor::ones(&[4])?)?];
    let optimizer = optim::SGD::new(parameters.to_vec(), Default::default())?;
    let mut scaler = GradScaler::new(GradScalerOptions { init_scale: 1024.0, ..on_cpu() })?;
    scaler.scale(&parameters[0].tensor().sum()?)?.backward()?;
    parameters[1].tensor().set_grad(Some(Tensor::new([2048f32])?.expand(&[4])?))?;
    let error = scaler.unscale_(&optimizer).unwrap_err();
    assert!(matches!(error.refusal(), Some(TensorError::WriteOverlap)), "{error}");
    for (parameter, grad) in parameters.iter().zip([1024.0, 2048.0]) {
        assert_eq!(parameter.grad().unwrap().to_vec::<f32>()?, vec![grad; parameter.tensor().numel()]);
    }
    Ok(())
}

#[test]
fn bfloat16_is_calculated_with_from_compute_capability_8_on_and_emulated_before() -> Result<()> {
    each_case(
        [("sim:t4", false), ("sim:rtx4090", true), ("sim:h200", true)],
        |(gpu, itself)| -> Result<()> {
            gpu.parse::<Machine>().unwrap().enter(|| -> Result<()> {
                assert_eq!(cuda::is_bf16_supported(false)?, itself, "{gpu}");
                assert!(cuda::is_bf16_supported(true)?);
                // So PyTorch accepts it everywhere.
                let result = amp::autocast(with(CUDA, BF16), || product(Device::cuda(0)))?;
                let _: () = assert_eq!(result, BF16);
                Ok(())
            })?;
            Ok(())
        },
    );
    assert!("none".parse::<Machine>().unwrap().enter(|| cuda::is_bf16_supported(true)).is_err());
    Ok(())
}

// ------------------------------------------------------------------------------------------- the weight cache

/// The number of conversions that run on the device.
fn casts(run: impl FnOnce() -> Result<()>) -> Result<usize> {
    let (result, trace) = Machine::current().profile(run);
    result?;
    Ok(trace.kernels(0).iter().filter(|kernel| kernel.name.starts_with("cast_")).count())
}

#[test]
fn a_weight_is_cast_once_in_the_outermost_region() -> Result<()> {
    on_t4(|| {
        let layer = nn::Linear::new(4, 4)?;
        let gpu = Device::cuda(0);
        layer.to(gpu)?;
        let x = matrix(2, 4, gpu)?;
        let twice = || layer.forward(&x).and_then(|_| layer.forward(&x)).map(drop);
        let region = |options: AutocastOptions| casts(|| amp::autocast(options, twice));
        assert_eq!(casts(twice)?, 0);
        assert_eq!(region(CUDA.into())?, 4, "the weight, the bias, and the input twice");
        assert_eq!(region(CUDA.into())?, 4, "they were forgotten meanwhile");
        assert_eq!(region(AutocastOptions { cache_enabled: Some(false), ..CUDA.into() })?, 6);
        let inner = casts(|| amp::autocast(CUDA, || amp::autocast(CUDA, twice).and_then(|()| twice())))?;
        assert_eq!(inner, 6, "the inner region's end is not the outer one's");
        let inherited = AutocastOptions { cache_enabled: Some(false), ..CUDA.into() };
        assert_eq!(casts(|| amp::autocast(inherited, || amp::autocast(CUDA, twice)))?, 6);
        // Activations are not weights; nor are frozen tensors, nor anything under no_grad.
        assert_eq!(casts(|| amp::autocast(CUDA, || no_grad(twice)))?, 4);
        assert_eq!(casts(|| amp::autocast(CUDA, || inference_mode(twice)))?, 6);
        layer.parameters().iter().try_for_each(|parameter| parameter.requires_grad_(false))?;
        assert_eq!(region(CUDA.into())?, 6);

        // The cached copies are freed at the end.
        layer.parameters().iter().try_for_each(|parameter| parameter.requires_grad_(true))?;
        let before = cuda::memory_allocated();
        amp::autocast(CUDA, twice)?;
        let _: () = assert_eq!(cuda::memory_allocated(), before);
        Ok(())
    })
}

#[test]
fn a_weight_that_is_changed_inside_counts_as_it_was() -> Result<()> {
    let weight = Tensor::ones(&[1, 1])?.requires_grad_(true)?;
    let x = Tensor::ones(&[1, 1])?;
    let twice = |options: AutocastOptions| {
        amp::autocast(options, || -> Result<_> {
            let before = x.mm(&weight)?.to(F32)?.item()?;
            no_grad(|| weight.add_(1.0))?;
            Ok((before, x.mm(&weight)?.to(F32)?.item()?))
        })
    };
    assert_eq!(twice(CPU.into())?, (1.0, 1.0));
    assert_eq!(twice(AutocastOptions { cache_enabled: Some(false), ..CPU.into() })?, (2.0, 3.0));
    assert_eq!(twice(CPU.into())?, (3.0, 3.0));
    Ok(())
}

#[test]
fn a_region_of_another_type_gets_the_weight_as_it_was_cast_first() -> Result<()> {
    let layer = nn::Linear::new(2, 2)?;
    let x = matrix(3, 2, F32)?;
    let nested = |cache_enabled| {
        let outer = AutocastOptions { cache_enabled, ..CPU.into() };
        amp::autocast(outer, || {
            layer.forward(&x)?;
            amp::autocast(with(CPU, F16), || layer.forward(&x)?.to(F32))
        })
    };
    let says = "mat1 and mat2 must have the same dtype, but got Half and BFloat16";
    assert_eq!(nested(None).unwrap_err().to_string(), says);
    nested(Some(false))?;
    Ok(())
}

#[test]
fn a_weight_that_was_used_without_grad_first_still_gets_its_gradient() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let x = Tensor::ones(&[1, 2])?;
    let y = amp::autocast(CPU, || {
        no_grad(|| layer.forward(&x))?;
        layer.forward(&x)
    })?;
    y.sum()?.backward()?;
    assert_eq!(layer.weight.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

// ------------------------------------------------------------------------------------------------- gradients

#[test]
fn gradients_are_of_the_type_of_their_parameters_and_backward_runs_in_that_of_forward() -> Result<()> {
    on_t4(|| {
        // cuDNN may sum the parts of a weight's gradient in a different order each time.
        use_deterministic_algorithms(true);
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            let padded = nn::Conv2dOptions { padding: 1.into(), ..Default::default() };
            let model = nn::Sequential::new((
                nn::Conv2d::new(1, 2, (3, padded))?,
                nn::ReLU,
                nn::MaxPool2d::new(2),
                nn::Flatten::default(),
                nn::Linear::new(8, 4)?,
            ));
            model.to(device)?;
            let x = matrix(4, 16, device)?.reshape(&[4, 1, 4, 4])?;
            let y = Tensor::new([0, 1, 2, 3])?.to(device)?;
            let output = amp::autocast(device, || model.forward(&x))?;
            assert_eq!(output.grad_fn(), Some("AddmmBackward0"));
            let loss = amp::autocast(device, || output.cross_entropy(&y))?;
            loss.backward()?;
            let outside: Vec<Tensor> = model.parameters().iter().filter_map(Parameter::grad).collect();
            assert!(outside.len() == 4 && outside.iter().all(|grad| grad.dtype() == F32));

            // Backward inside the region gives the same result, as in PyTorch. An f32 forward pass has an f32 backward
            // pass; PyTorch casts the products of its backward instead.
            model.zero_grad();
            amp::autocast(device, || model.forward(&x)?.cross_entropy(&y)?.backward())?;
            for (parameter, outside) in model.parameters().iter().zip(&outside) {
                assert!(parameter.grad().unwrap().equal(outside)?);
            }
            model.zero_grad();
            let loss = model.forward(&x)?.cross_entropy(&y)?;
            let options = BackwardOptions { retain_graph: true, ..Default::default() };
            autograd::backward(&loss, options)?;
            let plain: Vec<Tensor> = model.parameters().iter().filter_map(Parameter::grad).collect();
            model.zero_grad();
            amp::autocast(device, || loss.backward())?;
            for (parameter, plain) in model.parameters().iter().zip(&plain) {
                assert!(parameter.grad().unwrap().equal(plain)?);
            }
            Ok(())
        });
        Ok(())
    })
}

/// A custom function is made of operations that are cast like any other.
struct Product;

impl Function<2> for Product {
    fn operation(&self) -> &'static Operation {
        const { &Operation::new("product").node("ProductBackward") }
    }

    fn forward(&self, ctx: &mut Context<2>, [a, b]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([a, b]);
        a.mm(b)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [a, b] = saved.tensors()?;
        let grad = grad.to(a.dtype())?;
        Ok([Some(grad.mm(&b.t()?)?), Some(a.t()?.mm(&grad)?)])
    }
}

#[test]
fn what_a_function_of_ones_own_is_made_of_is_cast() -> Result<()> {
    let (a, b) = (matrix(2, 3, F32)?.requires_grad_(true)?, matrix(3, 2, F32)?);
    let y = amp::autocast(CPU, || Product.apply([&a, &b]))?;
    assert_eq!(y.dtype(), BF16);
    y.to(F32)?.sum()?.backward()?;
    assert_eq!(a.grad().unwrap().dtype(), F32);
    Ok(())
}

#[test]
fn a_trace_tells_which_operation_ran_in_which_type() -> Result<()> {
    on_t4(|| {
        let layer = nn::Linear::new(4, 4)?;
        let gpu = Device::cuda(0);
        layer.to(gpu)?;
        let (x, y) = (matrix(4, 4, gpu)?, Tensor::new([0, 1, 2, 3])?.to(gpu)?);
        let (result, trace) = Machine::current()
            .profile(|| amp::autocast(gpu, || layer.forward(&x)?.relu()?.cross_entropy(&y)));
        result?;
        let kernels = trace.kernels(0);
        let ran: Vec<(&str, &str, &[DType])> = kernels
            .iter()
            .map(|kernel| (kernel.operation, kernel.name.as_str(), &kernel.types[..]))
            .collect();
        let expected: [(&str, &str, &[DType]); 8] = [
            ("linear", "cast_f32_f16", &[F32, F16]),
            ("linear", "cast_f32_f16", &[F32, F16]),
            ("linear", "cast_f32_f16", &[F32, F16]),
            ("linear", "gemm", &[F16]),
            ("relu", "relu_f16", &[F16]),
            ("cross_entropy", "cast_f16_f32", &[F16, F32]),
            ("cross_entropy", "cross_entropy_f32", &[F32]),
            ("cross_entropy", "cross_entropy_mean_f32", &[F32]),
        ];
        let without_bias: Vec<_> =
            ran.iter().filter(|(_, name, _)| !name.starts_with("copy")).copied().collect();
        assert_eq!(without_bias, expected, "{ran:?}");
        Ok(())
    })
}

// ------------------------------------------------------------------------------------------------- GradScaler

fn on_cpu() -> GradScalerOptions {
    GradScalerOptions { device: CPU, ..Default::default() }
}

/// A parameter of one element, and an optimizer that subtracts an eighth of the gradient.
fn one_number(device: Device) -> Result<(Parameter, optim::SGD)> {
    let parameter = Parameter::new(&Tensor::new([1.0f32])?.to(device)?)?;
    let options = SGDOptions { lr: 0.125, ..Default::default() };
    Ok((parameter.clone(), optim::SGD::new(vec![parameter], options)?))
}

fn says<T: std::fmt::Debug>(result: Result<T>, words: &str) {
    assert_eq!(result.unwrap_err().to_string(), words);
}

#[test]
fn a_step_with_an_overflow_is_skipped_and_the_scale_grows_after_enough_without() -> Result<()> {
    on_t4(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            let (parameter, mut optimizer) = one_number(device)?;
            let mut scaler = GradScaler::new(GradScalerOptions {
                device: device.device_type(),
                growth_interval: 3,
                ..Default::default()
            })?;
            assert_eq!(scaler.get_scale()?, 65536.0, "before there is one");
            let (mut scales, mut skipped) = (Vec::new(), Vec::new());
            for step in 1..=12 {
                let before = parameter.tensor().item()?;
                optimizer.zero_grad();
                let loss =
                    parameter.tensor().mul(if step == 5 || step == 6 { f64::INFINITY } else { 1.0 })?;
                let scaled = scaler.scale(&loss)?;
                assert_eq!((scaled.dtype(), scaled.device()), (F32, device));
                scaled.sum()?.backward()?;
                let taken = scaler.step(&mut optimizer)?;
                let after = parameter.tensor().item()?;
                assert_eq!(after, if taken { before - 0.125 } else { before });
                if !taken {
                    skipped.push(step);
                }
                scaler.update()?;
                scales.push(scaler.get_scale()?);
            }
            let k = [64, 64, 128, 128, 64, 32, 32, 32, 64, 64, 64, 128];
            assert_eq!(scales, k.map(|k| f64::from(k) * 1024.0));
            assert_eq!(skipped, [5, 6]);
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn nothing_but_the_step_waits_for_the_device() -> Result<()> {
    on_t4(|| {
        let gpu = Device::cuda(0);
        let model = nn::Sequential::new((nn::Linear::new(4, 8)?, nn::Linear::new(8, 1)?));
        model.to(gpu)?;
        let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
        let mut scaler = GradScaler::new(Default::default())?;
        scaler.scale(&model.forward(&matrix(2, 4, gpu)?)?.sum()?)?.backward()?;
        let counted = |before: todevice::trace::Counters| {
            let done = Machine::current().counters() - before;
            (done.synchronizations + done.copies_to_host, done.launches)
        };
        let before = Machine::current().counters();
        scaler.unscale_(&optimizer)?;
        // Three launches for the reciprocal, one for the flag, and one for each gradient.
        assert_eq!(counted(before), (0, 3 + 1 + 4));
        let before = Machine::current().counters();
        assert!(scaler.step(&mut optimizer)?);
        assert_eq!(counted(before).0, 1);
        let before = Machine::current().counters();
        scaler.update()?;
        assert_eq!(counted(before), (0, 1));
        Ok(())
    })
}

#[test]
fn misuse_is_told_in_pytorchs_words() -> Result<()> {
    let none = |function| {
        format!(
            "Attempted {function} but _scale is None.  This may indicate your script did not use scaler.scale(loss or \
             outputs) earlier in the iteration."
        )
    };
    let (parameter, mut optimizer) = one_number(Device::Cpu)?;
    let mut scaler = GradScaler::new(on_cpu())?;
    says(scaler.unscale_(&optimizer), &none("unscale_"));
    says(scaler.step(&mut optimizer), &none("step"));
    says(scaler.update(), &none("update"));
    says(scaler.update_to(2.0), &none("update"));

    scaler.scale(&parameter.tensor().sum()?)?;
    says(scaler.update(), "No inf checks were recorded prior to update.");
    says(scaler.step(&mut optimizer), "No inf checks were recorded for this optimizer.");
    let (parameter, mut optimizer) = one_number(Device::Cpu)?;
    scaler.scale(&parameter.tensor().sum()?)?.backward()?;
    scaler.unscale_(&optimizer)?;
    let twice = "unscale_() has already been called on this optimizer since the last update().";
    says(scaler.unscale_(&optimizer), twice);
    scaler.step(&mut optimizer)?;
    says(scaler.unscale_(&optimizer), "unscale_() is being called after step().");
    says(scaler.step(&mut optimizer), "step() has already been called since the last update().");
    scaler.update()?;
    scaler.step(&mut optimizer)?; // Now it is allowed again.
    scaler.update()?;

    let halves = Parameter::new(&Tensor::ones((&[2], F16))?)?;
    let optimizer = optim::SGD::new(vec![halves.clone()], SGDOptions::default())?;
    scaler.scale(&halves.tensor().to(F32)?.sum()?)?.backward()?;
    says(scaler.unscale_(&optimizer), "Attempting to unscale FP16 gradients.");

    let factors = |growth_factor, backoff_factor| {
        GradScaler::new(GradScalerOptions { growth_factor, backoff_factor, ..on_cpu() })
    };
    says(factors(1.0, 0.5), "The growth factor must be > 1.0.");
    says(factors(2.0, 1.0), "The backoff factor must be < 1.0.");
    let empty = "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.";
    says(scaler.load_state_dict(&Default::default()), empty);
    let mut state = scaler.state_dict()?;
    state.remove("_growth_tracker");
    says(scaler.load_state_dict(&state), "'_growth_tracker'"); // Python raises `KeyError`.
    state.insert("_growth_tracker", -1);
    let count = "the state of a GradScaler has -1 for '_growth_tracker', which is not a count";
    says(scaler.load_state_dict(&state), count);
    Ok(())
}

#[test]
fn one_that_is_not_enabled_passes_everything_through() -> Result<()> {
    let (parameter, mut optimizer) = one_number(Device::Cpu)?;
    let mut scaler = GradScaler::new(GradScalerOptions { enabled: false, growth_factor: 0.0, ..on_cpu() })?;
    let loss = parameter.tensor().sum()?;
    assert!(scaler.scale(&loss)?.is_same(&loss));
    loss.backward()?;
    scaler.unscale_(&optimizer)?;
    scaler.unscale_(&optimizer)?;
    parameter.set_grad(Some(Tensor::new([f32::INFINITY])?))?;
    assert!(scaler.step(&mut optimizer)?);
    scaler.update()?;
    assert_eq!(parameter.tensor().item()?, f64::NEG_INFINITY);
    assert_eq!((scaler.get_scale()?, scaler.is_enabled()), (1.0, false));
    assert!(scaler.state_dict()?.is_empty());
    scaler.load_state_dict(&Default::default())?;

    // A scaler for a GPU disables itself if there is none.
    "none".parse::<Machine>().unwrap().enter(|| {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let heard = warnings.clone();
        Machine::current().on_warning(move |warning: &str| heard.lock().unwrap().push(warning.to_owned()));
        assert!(!GradScaler::new(Default::default())?.is_enabled());
        let says = "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.";
        assert_eq!(*warnings.lock().unwrap(), [says]);
        Ok(())
    })
}

#[test]
fn gradients_are_clipped_once_they_are_unscaled() -> Result<()> {
    let clipped = |scaled: bool| {
        seeded(3, || -> Result<(f64, Vec<f32>)> {
            let model = nn::Linear::new(4, 2)?;
            let mut optimizer =
                optim::SGD::new(model.parameters(), SGDOptions { lr: 0.5, ..Default::default() })?;
            let mut scaler = GradScaler::new(GradScalerOptions { enabled: scaled, ..on_cpu() })?;
            let loss = model.forward(&Tensor::ones(&[1, 4])?)?.square()?.sum()?;
            scaler.scale(&loss)?.backward()?;
            scaler.unscale_(&optimizer)?;
            let norm = clip_grad_norm_(&model.parameters(), 0.1, Default::default())?.item()?;
            scaler.step(&mut optimizer)?;
            scaler.update()?;
            Ok((norm, model.weight.tensor().to_vec::<f32>()?))
        })
    };
    let (plain, scaled) = (clipped(false)?, clipped(true)?);
    assert!(plain.0 > 0.1);
    assert_eq!(scaled, plain, "powers of two change no digit");
    Ok(())
}

#[test]
fn several_optimizers_share_a_scaler_and_each_is_skipped_for_itself() -> Result<()> {
    on_t4(|| {
        let gpu = Device::cuda(0);
        let ((a, mut first), (b, second)) = (one_number(gpu)?, one_number(gpu)?);
        let mut second: Box<dyn Optimizer> = Box::new(second);
        let mut scaler = GradScaler::new(Default::default())?;
        let losses = [a.tensor().mul(2.0)?.sum()?, b.tensor().mul(f64::NAN)?.sum()?];
        for loss in &losses {
            scaler.scale(loss)?.backward()?;
        }
        assert_eq!([scaler.step(&mut first)?, scaler.step(&mut *second)?], [true, false]);
        scaler.update()?;
        assert_eq!(scaler.get_scale()?, 32768.0, "one that overflows is enough");
        assert_eq!([a.tensor().item()?, b.tensor().item()?], [0.75, 1.0]);

        // It is found again after it has moved.
        scaler.scale(&a.tensor().sum()?)?.backward()?;
        scaler.unscale_(&first)?;
        let mut moved = first;
        assert!(scaler.step(&mut moved)?);
        Ok(())
    })
}

#[test]
fn a_scaler_goes_on_from_its_state() -> Result<()> {
    let run = |resume: bool| -> Result<Vec<f64>> {
        let (parameter, mut optimizer) = one_number(Device::Cpu)?;
        let options = GradScalerOptions { growth_interval: 3, ..on_cpu() };
        let mut scaler = GradScaler::new(options)?;
        let mut scales = Vec::new();
        for step in 0..8 {
            if resume && step == 5 {
                let state = scaler.state_dict()?;
                let keys: Vec<String> = state.keys().map(Key::to_string).collect();
                let all = ["scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"];
                assert_eq!(keys, all.map(|key| format!("'{key}'")));
                scaler = GradScaler::new(on_cpu())?;
                scaler.load_state_dict(&state)?;
                assert_eq!(scaler.get_growth_interval(), 3);
            }
            optimizer.zero_grad();
            let factor = if step == 1 { f64::INFINITY } else { 1.0 };
            scaler.scale(&parameter.tensor().mul(factor)?.sum()?)?.backward()?;
            scaler.step(&mut optimizer)?;
            scaler.update()?;
            scales.push(scaler.get_scale()?);
        }
        Ok(scales)
    };
    let (straight, resumed) = (run(false)?, run(true)?);
    assert_eq!(straight, resumed);
    assert_eq!(straight[7], 131072.0);

    // Whatever the interval.
    let options = GradScalerOptions { growth_interval: u32::MAX, ..on_cpu() };
    let state = GradScaler::new(options)?.state_dict()?;
    let mut other = GradScaler::new(on_cpu())?;
    other.load_state_dict(&state)?;
    assert_eq!(other.get_growth_interval(), u32::MAX);

    // A loaded state takes effect immediately in a scaler already in use; the scale may also be set by hand.
    let (parameter, _) = one_number(Device::Cpu)?;
    let mut scaler = GradScaler::new(on_cpu())?;
    let state = scaler.state_dict()?;
    scaler.scale(&parameter.tensor().sum()?)?;
    scaler.update_to(8.0)?;
    assert_eq!(scaler.get_scale()?, 8.0);
    assert_eq!(scaler.scale(&parameter.tensor())?.item()?, 8.0);
    scaler.load_state_dict(&state)?;
    assert_eq!(scaler.get_scale()?, 65536.0);
    scaler.set_growth_factor(4.0);
    scaler.set_backoff_factor(0.25);
    scaler.set_growth_interval(1);
    assert_eq!((scaler.get_growth_factor(), scaler.get_backoff_factor()), (4.0, 0.25));
    parameter.set_grad(Some(Tensor::new([1.0f32])?))?;
    scaler.unscale_(&optim::SGD::new(vec![parameter], SGDOptions::default())?)?;
    scaler.update()?;
    assert_eq!(scaler.get_scale()?, 262_144.0);
    Ok(())
}

#[test]
fn a_gradient_of_any_type_and_layout_is_unscaled() -> Result<()> {
    on_t4(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            for dtype in [F32, F64, BF16] {
                for (bad, taken) in [(None, true), (Some(f64::INFINITY), false), (Some(f64::NAN), false)] {
                    let parameter = Parameter::new(&Tensor::zeros((&[3, 2], (device, dtype)))?)?;
                    let optimizer = &mut optim::SGD::new(
                        vec![parameter.clone()],
                        SGDOptions { lr: 1.0, ..Default::default() },
                    )?;
                    let mut scaler = GradScaler::new(GradScalerOptions {
                        device: device.device_type(),
                        init_scale: 4.0,
                        ..Default::default()
                    })?;
                    scaler.scale(&parameter.tensor().to(F32)?.sum()?)?;
                    let grad = matrix(2, 3, (device, dtype))?;
                    if let Some(bad) = bad {
                        grad.get(1)?.narrow(0, 2, 1)?.fill_(bad)?;
                    }
                    let version = grad.version();
                    parameter.set_grad(Some(grad.t()?))?;
                    assert_eq!(scaler.step(optimizer)?, taken, "{dtype} on {device}");
                    assert_eq!(grad.version(), version + 1);
                    if taken {
                        let quarter = matrix(2, 3, (device, dtype))?.t()?.div(-4.0)?;
                        assert!(parameter.tensor().equal(&quarter)?, "{dtype} on {device}");
                    }
                }
            }
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn a_first_step_that_is_skipped_lets_the_scheduler_warn() -> Result<()> {
    let machine = Machine::new();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = warnings.clone();
    machine.on_warning(move |warning: &str| heard.lock().unwrap().push(warning.to_owned()));
    machine.enter(|| -> Result<()> {
        let (parameter, mut optimizer) = one_number(Device::Cpu)?;
        let mut scheduler = StepLR::new(&optimizer, 1, 0.5)?;
        let mut scaler = GradScaler::new(on_cpu())?;
        scaler.scale(&parameter.tensor().mul(f64::INFINITY)?.sum()?)?.backward()?;
        assert!(!scaler.step(&mut optimizer)?);
        scaler.update()?;
        scheduler.step();
        Ok(())
    })?;
    let warnings = warnings.lock().unwrap();
    assert!(warnings.len() == 1 && warnings[0].starts_with("Detected call of `lr_scheduler.step()` before"));
    Ok(())
}

/// Images of four classes, each with a different bright quarter.
fn images(n: usize) -> Result<(Tensor, Tensor)> {
    let x = Tensor::randn(&[n, 1, 8, 8])?;
    let classes: Vec<i64> = (0..n as i64).map(|i| i % 4).collect();
    for i in 0..n {
        let [row, column] = [i % 4 / 2 * 4, i % 2 * 4];
        x.get(i as i64)?.get(0)?.narrow(0, row, 4)?.narrow(1, column, 4)?.add_(1.0)?;
    }
    Ok((x, Tensor::from_slice(&classes, &[n])?))
}

#[test]
fn a_network_in_f16_overflows_backs_off_and_learns() -> Result<()> {
    on_t4(|| {
        manual_seed(0);
        let gpu = Device::cuda(0);
        let model = nn::Sequential::new((
            nn::Conv2d::new(1, 16, 3)?,
            nn::BatchNorm2d::new(16)?,
            nn::ReLU,
            nn::MaxPool2d::new(2),
            nn::Flatten::default(),
            nn::Linear::new(144, 64)?,
            nn::LayerNorm::new(&[64])?,
            nn::ReLU,
            nn::Linear::new(64, 4)?,
        ));
        model.to(gpu)?;
        let (x, y) = images(64)?;
        let (x, y) = (x.to(gpu)?, y.to(gpu)?);
        let mut optimizer =
            optim::Adam::new(model.parameters(), AdamOptions { lr: 1e-2, ..Default::default() })?;
        // A scale with which the gradients must overflow.
        let options =
            GradScalerOptions { init_scale: 2f64.powi(24), growth_interval: 8, ..Default::default() };
        let mut scaler = GradScaler::new(options)?;
        let (mut losses, mut taken, mut scales) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..30 {
            let loss = amp::autocast(CUDA, || -> Result<_> {
                let output = model.forward(&x)?;
                assert_eq!(output.dtype(), F16);
                output.cross_entropy(&y)
            })?;
            let before: Vec<Tensor> = model
                .parameters()
                .iter()
                .map(|parameter| parameter.tensor().detach().copy())
                .collect::<Result<_>>()?;
            optimizer.zero_grad();
            scaler.scale(&loss)?.backward()?;
            taken.push(scaler.step(&mut optimizer)?);
            scaler.update()?;
            losses.push(loss.item()?);
            scales.push(scaler.get_scale()?);
            if taken.last() == Some(&false) {
                for (parameter, before) in model.parameters().iter().zip(&before) {
                    assert!(parameter.tensor().equal(before)?, "a step was taken after all");
                }
            }
        }
        let skipped = taken.iter().filter(|taken| !**taken).count();
        assert!(!taken[0] && (3..=15).contains(&skipped), "{taken:?}");
        assert!(scales[skipped] < 2f64.powi(24), "{scales:?}");
        assert!(scales.windows(2).any(|pair| pair[1] > pair[0]), "it grows again: {scales:?}");
        assert!(losses.iter().all(|loss| loss.is_finite()), "{losses:?}");
        assert!(losses[29] < 0.2 * losses[0], "{losses:?}");
        let finite =
            |parameter: &Parameter| parameter.tensor().dtype() == F32 && parameter.tensor().sum().is_ok();
        assert!(model.parameters().iter().all(finite));
        Ok(())
    })
}
