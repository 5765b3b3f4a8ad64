//! Regression tests. Each would have caught a former bug.

use crate::each_case::each_case;
use std::sync::{Arc, Mutex};

use todevice::autograd::{self, BackwardOptions, Context, Function, GradOptions, Operation, Saved, grad};
use todevice::nn::Parameter;
use todevice::prelude::*;
use todevice::{Machine, enable_grad};

fn leaf(values: &[f32]) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len()])?.requires_grad_(true)
}

#[test]
fn a_hook_sees_the_whole_gradient_of_a_leaf_used_twice() -> Result<()> {
    let x = leaf(&[1.0])?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    x.register_post_accumulate_grad_hook(move |grad| {
        kept.lock().unwrap().push(grad.item()?);
        Ok(())
    })?;
    (x.mul(2.0)? + x.mul(3.0)?.mul(1.0)?)?.sum()?.backward()?;
    assert_eq!(*seen.lock().unwrap(), [5.0]);
    Ok(())
}

#[test]
fn a_backward_pass_that_fails_leaves_the_gradients_that_were_complete() -> Result<()> {
    let (x, y) = (leaf(&[1.0])?, leaf(&[2.0])?);
    let square = y.mul(&y)?;
    let loss = (x.mul(3.0)? + square.exp()?)?.sum()?;
    no_grad(|| y.zero_())?;
    assert!(loss.backward().is_err());
    // As in PyTorch: the path to `x` came first.
    assert_eq!(x.grad().unwrap().item()?, 3.0);
    assert!(y.grad().is_none());
    Ok(())
}

#[test]
fn a_gradient_of_another_type_is_refused() -> Result<()> {
    let parameter = Parameter::new(&Tensor::ones(&[2])?)?;
    let wide = Tensor::full(&[2], (1.0, DType::F64))?;
    let error = parameter.set_grad(Some(wide)).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'."
        ),
        "{error}"
    );
    Ok(())
}

#[test]
fn an_optimizer_survives_a_model_converted_between_forward_and_step() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let mut optimizer = optim::SGD::new(layer.parameters(), SGDOptions::default())?;
    let loss = layer.forward(&Tensor::ones(&[1, 2])?)?.sum()?;
    layer.to(DType::F64)?;
    loss.backward()?;
    // The graph has f32 weights, so its gradient is f32: an error, not garbage or a panic.
    let error = optimizer.step().unwrap_err().to_string();
    assert_eq!(error, "expected scalar type Double but found Float");
    Ok(())
}

#[test]
fn optimizer_state_follows_a_converted_model() -> Result<()> {
    each_case([(DType::F32, DType::F64), (DType::F64, DType::F32)], |(from, to)| -> Result<()> {
        let parameter = Parameter::new(&Tensor::full(&[2], (1.0, from))?)?;
        let holder = Holder(parameter.clone());
        let options = AdamOptions { lr: 0.1, ..Default::default() };
        let mut adam = optim::Adam::new(vec![parameter.clone()], options)?;
        let options = SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
        let mut sgd = optim::SGD::new(vec![parameter.clone()], options)?;
        for dtype in [from, to] {
            holder.to(dtype)?;
            parameter.set_grad(Some(Tensor::full(&[2], (1.0, dtype))?))?;
            adam.step()?;
            sgd.step()?;
        }
        // Adam: 0.1 in each step. SGD: 0.1, then 0.1 · 1.9.
        let values = parameter.tensor().detach().to(DType::F64)?.to_vec::<f64>()?;
        assert!(values.iter().all(|value| (value - 0.51).abs() < 1e-5), "{values:?}");
        Ok(())
    });
    Ok(())
}

struct Holder(Parameter);

impl Module for Holder {
    fn name(&self) -> &'static str {
        "Holder"
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.mul(&self.0.tensor())
    }
    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("weight", self.0.clone())]
    }
}

#[test]
fn a_gradient_that_is_the_parameter_itself_can_be_stepped_on() -> Result<()> {
    let parameter = Parameter::new(&Tensor::new([1.0f32, 2.0])?)?;
    parameter.set_grad(Some(parameter.tensor().detach()))?;
    optim::SGD::new(vec![parameter.clone()], SGDOptions { lr: 0.5, ..Default::default() })?.step()?;
    assert_eq!(parameter.tensor().to_vec::<f32>()?, [0.5, 1.0]);
    Ok(())
}

#[test]
fn freezing_keeps_the_gradient_and_thawing_goes_on_collecting_in_it() -> Result<()> {
    let x = leaf(&[2.0])?;
    let (before, grads) = (x.mul(3.0)?, || x.grad().unwrap().item());
    x.mul(5.0)?.backward()?;
    x.requires_grad_(false)?;
    assert!(!x.requires_grad() && !x.mul(1.0)?.requires_grad());
    assert_eq!(grads()?, 5.0);
    x.requires_grad_(true)?;
    before.backward()?;
    assert_eq!(grads()?, 8.0);
    Ok(())
}

#[test]
fn a_leaf_that_was_frozen_after_the_forward_pass_collects_nothing() -> Result<()> {
    let (x, y) = (leaf(&[2.0])?, leaf(&[5.0])?);
    let seen = Arc::new(Mutex::new(0));
    let count = seen.clone();
    x.register_post_accumulate_grad_hook(move |_| {
        *count.lock().unwrap() += 1;
        Ok(())
    })?;
    let loss = x.mul(&y)?;
    let retained = || BackwardOptions { retain_graph: true, ..Default::default() };
    x.requires_grad_(false)?;
    autograd::backward(&loss, retained())?;
    assert!(x.grad().is_none());
    assert_eq!((y.grad().unwrap().item()?, *seen.lock().unwrap()), (2.0, 0));

    x.requires_grad_(true)?;
    autograd::backward(&loss, retained())?;
    assert_eq!((x.grad().unwrap().item()?, *seen.lock().unwrap()), (5.0, 1));

    x.requires_grad_(false)?;
    loss.backward()?;
    assert_eq!((x.grad().unwrap().item()?, *seen.lock().unwrap()), (5.0, 1));

    // A parameter is a single leaf, through any of its tensors.
    let layer = nn::Linear::new(1, 1)?;
    let before = layer.weight.tensor();
    layer.to(DType::F64)?;
    before.requires_grad_(false)?;
    assert!(!layer.weight.requires_grad());
    Ok(())
}

#[test]
fn gradients_of_extremes_are_pytorchs_at_the_edges() -> Result<()> {
    let (infinity, nan) = (f32::INFINITY, f32::NAN);
    let pairs = [([1.0f32, 2.0], infinity), ([2.0, 2.0], 1.0), ([nan, 1.0], 1.0), ([3.0, 1.0], infinity)];
    // PyTorch 2.11's gradients of a and b in maximum(a, b).
    let expected = [[0.0, infinity], [0.5, 0.5], [1.0, 1.0], [infinity, 0.0]];
    each_case(pairs.into_iter().zip(expected), |(([a, b], gradient), expected)| -> Result<()> {
        let (a, b) = (leaf(&[a])?, leaf(&[b])?);
        let options = GradOptions { grad_output: Some(Tensor::new([gradient])?), ..Default::default() };
        let grads = grad(&a.maximum(&b)?, &[&a, &b], options)?;
        let grads: Vec<f32> = grads.into_iter().map(|grad| grad.unwrap().item().unwrap() as f32).collect();
        assert_eq!(grads, expected);
        Ok(())
    });
    Ok(())
}

#[test]
fn a_warning_handler_may_warn_and_be_replaced_from_within() -> Result<()> {
    let machine = Machine::new();
    let inner = machine.clone();
    machine.on_warning(move |_| inner.on_warning(|_| {}));
    machine.enter(|| Tensor::ones(&[2, 1])?.mse_loss(&Tensor::ones(&[2])?, Default::default())).map(drop)
}

/// A function whose backward runs backward on its own graph, as gradient checkpointing does.
struct Checkpoint;

impl Function<1> for Checkpoint {
    fn operation(&self) -> &'static Operation {
        const { &Operation::new("checkpoint").node("CheckpointBackward") }
    }
    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        x.exp()
    }
    fn backward(&self, saved: &Saved<1>, gradient: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let x = x.detach().requires_grad_(true)?;
        let again = enable_grad(|| x.exp())?;
        let options = GradOptions { grad_output: Some(gradient.clone()), ..Default::default() };
        Ok([grad(&again, &[&x], options)?.remove(0)])
    }
}

#[test]
fn a_backward_may_run_another_backward() -> Result<()> {
    let x = leaf(&[0.0, 1.0])?;
    Checkpoint.apply([&x])?.sum()?.backward()?;
    assert!(x.grad().unwrap().allclose(&x.detach().exp()?, 1e-6, 0.0)?);
    Ok(())
}

#[test]
fn a_tensor_multiplied_by_itself_in_place_frees_its_graph() -> Result<()> {
    let machine = Machine::new();
    machine.enter(|| -> Result<()> {
        let x = leaf(&[3.0])?;
        let y = x.mul(1.0)?;
        y.mul_(&y)?;
        y.backward()?;
        assert_eq!(x.grad().unwrap().item()?, 6.0);
        let z = x.mul(1.0)?;
        z.mul_(&z)?; // Never traversed.
        Ok(())
    })?;
    assert_eq!(machine.host_memory().allocated(), 0);
    Ok(())
}

/// A thread-pool job that waits picks up other jobs of the pool. If an operation waited for its parts on such a thread,
/// the next job would run inside it: under its locks, and unrecorded.
#[test]
fn training_in_the_jobs_of_a_thread_pool_records_and_ends() -> Result<()> {
    let w = Tensor::full(&[1 << 19], (1.0, DType::F32))?;
    let losses = Mutex::new(Vec::new());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    pool.scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|_| {
                let step = || -> Result<f64> {
                    let w = w.detach().requires_grad_(true)?;
                    w.mul(2.0)?.sum()?.backward()?;
                    w.grad().unwrap().mean()?.item()
                };
                losses.lock().unwrap().push(step());
            });
        }
    });
    for loss in losses.into_inner().unwrap() {
        assert_eq!(loss?, 2.0);
    }
    Ok(())
}

#[test]
fn empty_and_overflowing_views_are_refused_or_empty_but_never_panic() -> Result<()> {
    let empty = Tensor::zeros(&[0, 1, 1])?;
    let huge = 1i64 << 40;
    let wide = empty.expand(&[0, huge, huge])?;
    assert_eq!(wide.numel(), 0);
    assert_eq!(wide.permute(&[1, 2, 0])?.numel(), 0);
    assert_eq!(wide.transpose(0, 2)?.to_vec::<f32>()?, [0.0; 0]);
    assert!(Tensor::zeros(&[1, 1])?.expand(&[huge, huge]).is_err());
    Ok(())
}

#[test]
fn truths_added_by_index_stay_truths() -> Result<()> {
    let truths = Tensor::new([true, false, false])?;
    let added = truths.index_add(0, &Tensor::new([0, 0, 1])?, &Tensor::new([true, true, true])?)?;
    assert_eq!(added.to_vec::<bool>()?, [true, true, false]);
    assert_eq!(added.sum()?.item()?, 2.0);
    assert!(added.equal(&Tensor::new([true, true, false])?)?);
    let scattered = truths.scatter_add(0, &Tensor::new([0, 2])?, &Tensor::new([true, true])?)?;
    assert_eq!(scattered.to(DType::I64)?.to_vec::<i64>()?, [1, 0, 1]);
    Ok(())
}

#[test]
fn the_extreme_of_a_number_is_a_tensor_of_its_own() -> Result<()> {
    let number = Tensor::new(1.0f32)?;
    number.max_dim(0, false)?.0.add_(5.0)?;
    assert_eq!(number.item()?, 1.0);
    Ok(())
}

#[test]
fn ranges_of_whole_numbers_are_counted_as_whole_numbers() -> Result<()> {
    let large = 1i64 << 53;
    assert_eq!(
        Tensor::arange(large, large + 3, (1, DType::I64))?.to_vec::<i64>()?,
        [large, large + 1, large + 2]
    );
    assert_eq!(Tensor::arange(i64::MAX - 2, i64::MAX, (1, DType::I64))?.numel(), 2);
    assert_eq!(Tensor::arange(5, 0, (-2, DType::I64))?.to_vec::<i64>()?, [5, 3, 1]);
    assert!(Tensor::arange(0, 5, (0.5, DType::I64)).is_err());
    assert!(Tensor::arange(0, 2, (1, DType::Bool)).is_err());
    Ok(())
}

#[test]
fn numbers_a_type_cannot_hold_are_refused() {
    each_case(
        [(300.0, DType::U8), (-1.0, DType::U8), (f64::NAN, DType::I64), (1e300, DType::F32)],
        |(value, dtype)| {
            let error = Tensor::full(&[1], (value, dtype)).unwrap_err().to_string();
            assert!(error.starts_with("value cannot be converted to type "), "{error}");
        },
    );
    assert!(Tensor::full(&[1], (f64::INFINITY, DType::F32)).is_ok());
    // Small negative numbers wrap around, as in PyTorch.
    assert_eq!(Tensor::full(&[1], (-1, DType::U8)).unwrap().item().unwrap(), 255.0);
    assert!(Tensor::full(&[1], (i64::MAX, DType::I64)).is_ok());
}

#[test]
fn a_target_of_another_type_is_noticed_in_backward() -> Result<()> {
    let prediction = leaf(&[1.0, 2.0])?;
    let loss = prediction.mse_loss(&Tensor::full(&[2], (1.0, DType::F64))?, Default::default())?;
    assert_eq!(loss.backward().unwrap_err().to_string(), "Found dtype Double but expected Float");
    Ok(())
}

/// Requests tensors that it never saved.
struct Confused(u8);

impl Function<1> for Confused {
    fn operation(&self) -> &'static Operation {
        const { &Operation::new("confused").node("ConfusedBackward") }
    }
    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        assert!(!ctx.needs_input_grad(3));
        ctx.save_for_backward([(self.0 == 0).then_some(x)]);
        x.copy()
    }
    fn backward(&self, saved: &Saved<1>, gradient: &Tensor) -> Result<[Option<Tensor>; 1]> {
        assert!(!saved.needs_input_grad(5) && saved.input_sizes(5).is_empty());
        match self.0 {
            0 => saved.tensors::<2>()?.len(),
            _ => saved.tensors::<1>()?.len(),
        };
        Ok([Some(gradient.clone())])
    }
}

#[test]
fn a_function_of_the_users_own_that_errs_gets_an_error() -> Result<()> {
    each_case(
        [(0, "requests 2 saved tensors, but saved 1"), (1, "it saved as None")],
        |(mistake, message)| -> Result<()> {
            let error = Confused(mistake).apply([&leaf(&[1.0])?])?.sum()?.backward().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            Ok(())
        },
    );
    Ok(())
}

#[test]
fn views_with_more_elements_than_can_be_counted_are_refused() -> Result<()> {
    let wide = Tensor::zeros(&[1])?.expand(&[1 << 40])?;
    assert!(wide.unfold(0, 1 << 39, 1).is_err());
    Ok(())
}

struct Endless(usize);

impl todevice::data::Dataset for Endless {
    type Sample = f32;
    fn len(&self) -> usize {
        self.0
    }
    fn get(&self, _: usize) -> Result<f32> {
        Ok(0.0)
    }
}

#[test]
fn a_dataset_longer_than_memory_is_refused_when_an_order_is_made() {
    use todevice::data::{DistributedSampler, random_split};
    each_case([1 << 60, usize::MAX], |len| {
        let options = DataLoaderOptions { shuffle: true, ..Default::default() };
        assert!(DataLoader::new(Endless(len), options).is_err());
        assert!(DistributedSampler::new(&Endless(len), 2, 0, Default::default()).is_err());
        assert!(random_split(Endless(len), [0.5, 0.5], None).is_err());
    });
}

#[test]
fn a_copied_state_is_not_changed_by_training() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let (shared, best) = (layer.state_dict(), layer.state_dict().copy()?);
    let before = best.get("weight").unwrap().to_vec::<f32>()?;
    no_grad(|| layer.weight.tensor().add_(1.0))?;
    assert_eq!(best.get("weight").unwrap().to_vec::<f32>()?, before);
    assert_ne!(shared.get("weight").unwrap().to_vec::<f32>()?, before);
    Ok(())
}

/// The divisor of the mean was rounded to half precision: 70,000 samples gave infinity, and all gradients were 0.
#[test]
fn the_cross_entropy_of_many_samples_has_gradients_in_halves_too() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            let scores = Tensor::zeros((&[70_000, 2], (device, DType::F16)))?.requires_grad_(true)?;
            let target = Tensor::zeros((&[70_000], (device, DType::I64)))?;
            let loss = scores.cross_entropy(&target)?;
            assert_eq!(loss.to(DType::F32)?.item()?, f64::from(todevice::f16::from_f32(2f32.ln())));
            loss.backward()?;
            let expected = todevice::f16::from_f32(0.5 / 70_000.0);
            let grad = scores.grad().unwrap().get(69_999)?.to_vec::<todevice::f16>()?;
            assert_eq!(grad, [-expected, expected], "{device}");
            Ok(())
        });
        Ok(())
    })
}
