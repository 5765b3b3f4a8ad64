//! Moving models and states between devices, and their condition after running out of memory halfway.

use crate::each_case::each_case;
use std::ops::Range;

use todevice::autograd::{self, BackwardOptions};
use todevice::nn::{Buffer, Parameter};
use todevice::optim::{Adam, SGD, optimizer_to};
use todevice::prelude::*;
use todevice::serialize::{Dict, Value};
use todevice::{HalfDone, Machine, cuda};

use crate::state::{bits, signed};

fn gpu() -> Device {
    Device::cuda(0)
}

fn on<R>(gpus: &str, test: impl FnOnce() -> Result<R>) -> R {
    gpus.parse::<Machine>().unwrap().enter(test).unwrap()
}

/// The device of a tensor in a state.
fn device_of(state: &Dict, id: usize, name: &str) -> Result<Device> {
    let kept = state.at("state")?.as_dict()?.at(id)?.as_dict()?;
    Ok(kept.at(name)?.as_tensor()?.device())
}

fn backward(model: &impl Module) -> Result<()> {
    let x = Tensor::ones((&[2, 3], model.parameters()[0].tensor().device()))?;
    model.forward(&x)?.square()?.sum()?.backward()
}

#[test]
fn a_state_goes_where_the_parameters_are_when_it_is_loaded_and_stays_there() -> Result<()> {
    on("sim:t4", || {
        let model = nn::Linear::new(3, 2)?;
        let mut saved = Adam::new(model.parameters(), AdamOptions::default())?;
        backward(&model)?;
        saved.step()?;
        let checkpoint = saved.state_dict();
        let new = || Adam::new(model.parameters(), AdamOptions::default());

        // Create, load, move: the state stays on the old device.
        let mut behind = new()?;
        behind.load_state_dict(&checkpoint)?;
        model.to(gpu())?;
        assert_eq!(device_of(&behind.state_dict(), 0, "exp_avg")?, Device::Cpu);
        model.zero_grad();
        backward(&model)?;
        let before = bits(&model.weight.tensor())?;
        let error = behind.step().unwrap_err();
        assert_eq!(
            error.to_string(),
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        );
        let report = error.report();
        assert!(report.starts_with("error[GPU0001]: "), "{report}");
        assert!(
            report.contains("= parameter  [2, 3] on cuda:0") && report.contains("= exp_avg    [2, 3] on cpu"),
            "{report}"
        );
        let fix = "fix: exp_avg is on cpu, and its parameter on cuda:0: move the optimizer's state to its \
                   parameters with `optim::optimizer_to(&mut optimizer, device)?`";
        assert!(report.ends_with(fix), "{report}");
        assert_eq!(bits(&model.weight.tensor())?, before);
        optimizer_to(&mut behind, gpu())?;
        behind.step()?;

        // Create, move, load; move, create, load: it is on the right device. Only `step` never moves.
        let mut followed = new()?;
        followed.load_state_dict(&checkpoint)?;
        each_case(["exp_avg", "exp_avg_sq"], |name| -> Result<()> {
            assert_eq!(device_of(&followed.state_dict(), 0, name)?, gpu());
            Ok(())
        });
        assert_eq!(device_of(&followed.state_dict(), 0, "step")?, Device::Cpu);
        followed.step()?;

        // And back: now the state is on the wrong device again.
        model.to(Device::Cpu)?;
        let report = followed.step().unwrap_err().report();
        assert!(report.contains("fix: exp_avg is on cuda:0, and its parameter on cpu"), "{report}");
        optimizer_to(&mut followed, Device::Cpu)?;
        followed.step()
    });
    Ok(())
}

#[test]
fn a_count_of_steps_on_the_device_is_read_at_each_step() -> Result<()> {
    let steps = |moved: bool| {
        let machine: Machine = "sim:t4".parse().unwrap();
        machine.enter(|| {
            manual_seed(0);
            let model = nn::Sequential::new((nn::Linear::new(3, 4)?, nn::ReLU, nn::Linear::new(4, 1)?));
            model.to(gpu())?;
            let mut optimizer = Adam::new(model.parameters(), AdamOptions::default())?;
            backward(&model)?;
            optimizer.step()?;
            if moved {
                optimizer_to(&mut optimizer, gpu())?;
            }
            cuda::synchronize()?;
            let before = machine.counters();
            for _ in 0..5 {
                optimizer.step()?;
            }
            let during = machine.counters() - before;
            let state = optimizer.state(&model.parameters()[0]).unwrap();
            assert_eq!((state.step.item()?, state.step.is_cuda()), (6.0, moved));
            let values = model.parameters().iter().map(|p| bits(&p.tensor())).collect::<Result<Vec<_>>>()?;
            Ok::<_, Error>((during.copies_to_host, during.launches, values))
        })
    };
    let ((reads, launches, values), (hidden_reads, more_launches, same)) = (steps(false)?, steps(true)?);
    assert_eq!((reads, launches), (0, 5 * 4));
    // Four parameters, five steps: the host reads `step` twenty times, and as many more kernels increment it.
    assert_eq!((hidden_reads, more_launches), (5 * 4, 2 * 5 * 4));
    assert_eq!(values, same);
    Ok(())
}

#[test]
fn a_model_moved_between_forward_and_backward_is_told_of_by_the_step() -> Result<()> {
    on("sim:t4", || {
        manual_seed(1);
        let model = nn::Sequential::new((nn::Linear::new(3, 4)?, nn::Linear::new(4, 1)?));
        let mut optimizer = SGD::new(model.parameters(), SGDOptions::default())?;
        let loss = model.forward(&Tensor::ones(&[2, 3])?)?.sum()?;
        let expected = {
            autograd::backward(&loss, BackwardOptions { retain_graph: true, ..Default::default() })?;
            model.parameters().iter().map(|p| bits(&p.grad().unwrap())).collect::<Result<Vec<_>>>()?
        };
        model.zero_grad();
        model.to(gpu())?;
        let values = model.parameters().iter().map(|p| bits(&p.tensor())).collect::<Result<Vec<_>>>()?;

        // The graph keeps the original tensors, so the gradients are right, and on the original device.
        loss.backward()?;
        let grads = model.parameters().iter().map(|p| p.grad().unwrap()).collect::<Vec<_>>();
        assert!(grads.iter().all(|grad| !grad.is_cuda()));
        assert_eq!(grads.iter().map(bits).collect::<Result<Vec<_>>>()?, expected);
        let report = optimizer.step().unwrap_err().report();
        let fix = "fix: grad is on cpu, and its parameter on cuda:0: the model was moved after its forward \
                   pass: clear the gradients with `zero_grad()`, and call forward again";
        assert!(report.starts_with("error[GPU0001]: ") && report.ends_with(fix), "{report}");
        let after = model.parameters().iter().map(|p| bits(&p.tensor())).collect::<Result<Vec<_>>>()?;
        assert_eq!(after, values, "no parameter was updated");

        model.zero_grad();
        backward(&model)?;
        optimizer.step()
    });
    Ok(())
}

/// Parameters of 12 MiB and a buffer, each with its own segment on a device.
struct Big {
    parameters: Vec<Parameter>,
    buffer: Buffer,
}

const BLOCK: usize = 3 << 20;

impl Big {
    fn new() -> Result<Big> {
        let made = |value: usize| Parameter::new(&Tensor::full(&[BLOCK], (value as f64, DType::F32))?);
        let parameters = (1..4).map(made).collect::<Result<_>>()?;
        Ok(Big { parameters, buffer: Buffer::new(&Tensor::full(&[BLOCK], (9.0, DType::F32))?) })
    }

    fn tensors(&self) -> Vec<Tensor> {
        self.parameters.iter().map(Parameter::tensor).chain([self.buffer.tensor()]).collect()
    }

    /// The first and last value of each tensor, which represent all others.
    fn values(&self) -> Result<Vec<[f64; 2]>> {
        let ends = |tensor: &Tensor| Ok([tensor.get(0)?.item()?, tensor.get(-1)?.item()?]);
        self.tensors().iter().map(ends).collect()
    }
}

impl Module for Big {
    fn name(&self) -> &'static str {
        "Big"
    }

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Ok(input.clone())
    }

    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        ["a", "b", "c"].into_iter().zip(self.parameters.iter().cloned()).collect()
    }

    fn own_buffers(&self) -> Vec<(&'static str, Buffer)> {
        vec![("d", self.buffer.clone())]
    }
}

/// Runs `program` with memory for `blocks` more blocks, and then with all memory.
fn with_room<R>(blocks: usize, mut program: impl FnMut() -> R) -> Result<(R, R)> {
    let mut ballast = Vec::new();
    while let Ok(block) = Tensor::empty((&[BLOCK], gpu())) {
        ballast.push(block);
    }
    assert!(ballast.len() > blocks, "{}", ballast.len());
    ballast.truncate(ballast.len() - blocks);
    cuda::empty_cache()?;
    let first = program();
    drop(ballast);
    cuda::empty_cache()?;
    Ok((first, program()))
}

const CARD: &str = "sim:t4,mem=512MiB";

/// Fails each allocation of `program` in turn: the state made by `start` must be unchanged according to `seen`, and
/// then the program must succeed. Returns the number of failures.
fn each_allocation_fails<S, R: PartialEq + std::fmt::Debug>(
    start: impl Fn() -> Result<S>,
    program: impl Fn(&mut S) -> Result<()>,
    seen: impl Fn(&S) -> Result<R>,
) -> Range<usize> {
    for room in 0.. {
        let is_enough = on(CARD, || {
            let mut subject = start()?;
            let (before, allocated) = (seen(&subject)?, cuda::memory_allocated());
            let mut is_first = true;
            let (first, second) = with_room(room, || {
                let result = program(&mut subject);
                if let (true, Err(error)) = (is_first, &result) {
                    assert_eq!(error.code(), Some("GPU0002"), "{error}");
                    assert!(!matches!(error, Error::HalfDone(_)), "{error}");
                    assert_eq!(seen(&subject).unwrap(), before, "room for {room}");
                }
                is_first = false;
                result
            })?;
            if first.is_err() {
                second?;
                assert!(cuda::memory_allocated() > allocated);
            }
            Ok(first.is_ok())
        });
        if is_enough {
            return 0..room;
        }
    }
    unreachable!("there is an end to any program's memory")
}

#[test]
fn a_model_that_does_not_fit_stays_where_it_was() {
    let seen =
        |model: &Big| Ok((model.tensors().iter().map(Tensor::device).collect::<Vec<_>>(), model.values()?));
    let failed = each_allocation_fails(Big::new, |model| model.to(gpu()).map(drop), seen);
    assert_eq!(failed, 0..4);
}

#[test]
fn a_step_that_finds_no_memory_updates_nothing() {
    let start = |with_momentum: bool| {
        move || {
            let model = Big::new()?;
            model.to(gpu())?;
            let grad = Tensor::full(&[BLOCK], (0.5, gpu()))?;
            model.parameters.iter().try_for_each(|p| p.set_grad(Some(grad.clone())))?;
            let sgd = SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
            let optimizer: Box<dyn Optimizer> = match with_momentum {
                true => Box::new(SGD::new(model.parameters(), sgd)?),
                false => Box::new(Adam::new(model.parameters(), AdamOptions::default())?),
            };
            Ok((model, optimizer))
        }
    };
    type Subject = (Big, Box<dyn Optimizer>);
    let step = |(_, optimizer): &mut Subject| optimizer.step();
    let seen = |(model, optimizer): &Subject| {
        Ok((model.values()?, optimizer.state_dict().at("state")?.as_dict()?.len()))
    };
    assert_eq!(each_allocation_fails(start(false), step, seen), 0..6);
    assert_eq!(each_allocation_fails(start(true), step, seen), 0..3);
}

#[test]
fn a_state_that_does_not_fit_on_the_device_stays_where_it_was() {
    let start = || {
        let model = Big::new()?;
        let grad = Tensor::full(&[BLOCK], (0.5, DType::F32))?;
        model.parameters.iter().try_for_each(|p| p.set_grad(Some(grad.clone())))?;
        let mut optimizer = Adam::new(model.parameters(), AdamOptions::default())?;
        optimizer.step()?;
        Ok((model, optimizer))
    };
    type Subject = (Big, Adam);
    let seen = |(_, optimizer): &Subject| {
        let state = optimizer.state_dict();
        (0..3)
            .map(|id| Ok((device_of(&state, id, "exp_avg")?, device_of(&state, id, "step")?)))
            .collect::<Result<Vec<_>>>()
    };
    let failed = each_allocation_fails(start, |(_, optimizer)| optimizer_to(optimizer, gpu()), seen);
    assert_eq!(failed, 0..6);

    let start = || {
        let (model, optimizer) = start()?;
        model.to(gpu())?;
        let other = Adam::new(model.parameters(), AdamOptions { lr: 0.5, ..Default::default() })?;
        Ok((optimizer.state_dict(), other))
    };
    let load = |(state, other): &mut (Dict, Adam)| other.load_state_dict(state);
    let seen = |(_, other): &(Dict, Adam)| {
        Ok((other.learning_rates().all(), other.state_dict().at("state")?.as_dict()?.len()))
    };
    assert_eq!(each_allocation_fails(start, load, seen), 0..6);
}

#[test]
fn a_conversion_makes_room_as_it_goes_and_says_how_far_it_came() -> Result<()> {
    on(CARD, || {
        let model = Big::new()?;
        model.to(gpu())?;
        let values = model.values()?;
        let types = || model.tensors().iter().map(Tensor::dtype).collect::<Vec<_>>();
        // Room for a single f64 tensor, which the freed f32 tensor leaves.
        let mut first = true;
        let (half, whole) = with_room(2, || {
            let result = model.to(DType::F64).map(drop);
            if std::mem::take(&mut first) {
                assert_eq!(types(), [DType::F64, DType::F32, DType::F32, DType::F32]);
                assert_eq!(model.values().unwrap(), values);
            }
            result
        })?;
        let error = half.unwrap_err();
        assert_eq!((error.code(), error.kind()), (Some("GPU0002"), "RuntimeError"));
        let Error::HalfDone(half) = &error else { panic!("{error}") };
        assert!(matches!(**half, HalfDone { done: 1, of: 4, .. }));
        let (text, report) = (error.to_string(), error.report());
        assert!(text.starts_with("CUDA out of memory. Tried to allocate 24.00 MiB."), "{text}");
        each_case([text, report], |said| {
            let says = "\n   = half done: 1 of 4 parameters and buffers were converted: the same call, with \
                        enough memory, converts the rest";
            assert!(said.ends_with(says), "{said}");
        });
        whole?;
        assert_eq!((types(), model.values()?), (vec![DType::F64; 4], values));
        Ok(())
    });
    Ok(())
}

/// Fails each operation of `program` in turn, on what `start` has made. `program` reports the number of parameters it
/// has changed.
fn each_operation_fails<S>(
    start: impl Fn() -> Result<S>,
    program: impl Fn(&mut S) -> Result<()>,
    changed: impl Fn(&S) -> Result<usize>,
) -> Vec<usize> {
    let mut halves = Vec::new();
    for count in 0.. {
        let machine: Machine = "sim:t4".parse().unwrap();
        let ended = machine.enter(|| {
            let mut subject = start()?;
            machine.limit_operations(count);
            let result = program(&mut subject);
            machine.limit_operations(u64::MAX);
            let changed = changed(&subject)?;
            match result {
                Ok(()) => return Ok(true),
                Err(Error::HalfDone(half)) => {
                    assert_eq!(half.done, changed, "{half}");
                    halves.push(changed);
                }
                Err(error) => assert_eq!(changed, 0, "{error}"),
            }
            Ok::<_, Error>(false)
        });
        if ended.unwrap() {
            return halves;
        }
    }
    unreachable!("there is an end to any program's operations")
}

#[test]
fn whatever_fails_in_a_step_or_on_loading_it_is_said_what_was_done() {
    let start = || {
        let model = nn::Sequential::new((nn::Linear::new(3, 4)?, nn::Linear::new(4, 1)?));
        model.to(gpu())?;
        backward(&model)?;
        let values = model.parameters().iter().map(|p| p.tensor().copy()).collect::<Result<Vec<_>>>()?;
        let adam = Adam::new(model.parameters(), AdamOptions::default())?;
        Ok((model, values, adam))
    };
    type Subject = (nn::Sequential, Vec<Tensor>, Adam);
    let changed = |(model, values, _): &Subject| {
        let pairs = model.parameters().into_iter().zip(values);
        let changed = pairs.map(|(parameter, value)| Ok(!parameter.tensor().equal(value)?));
        Ok(changed.collect::<Result<Vec<_>>>()?.into_iter().filter(|changed| *changed).count())
    };
    let halves = each_operation_fails(start, |(_, _, adam)| adam.step(), changed);
    assert!([1, 2, 3].iter().all(|done| halves.contains(done)), "{halves:?}");

    let zeros = |sizes: &[usize]| Tensor::zeros(sizes)?.reshape(&signed(sizes));
    let load = |(model, _, _): &mut Subject| {
        let mut state = model.state_dict();
        for (name, tensor) in model.state_dict().iter() {
            state.insert(name, zeros(tensor.sizes())?);
        }
        model.load_state_dict(&state, true).map(drop)
    };
    let halves = each_operation_fails(start, load, changed);
    assert!([1, 2, 3].iter().all(|done| halves.contains(done)), "{halves:?}");
}

/// Every state converts to a `Value`.
#[test]
fn a_checkpoint_holds_them_all() -> Result<()> {
    let model = nn::Linear::new(3, 2)?;
    let optimizer = Adam::new(model.parameters(), AdamOptions::default())?;
    let checkpoint = Dict::from_iter([
        ("model", Value::from(model.state_dict())),
        ("optimizer", optimizer.state_dict().into()),
        ("epoch", 3.into()),
    ]);
    let state = nn::StateDict::try_from(checkpoint.at("model")?)?;
    assert_eq!(state.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["weight", "bias"]);
    assert!(checkpoint.at("model")?.as_dict()?.is_ordered());
    let wrong = nn::StateDict::try_from(&Value::Dict(checkpoint)).unwrap_err();
    let says = "While copying the parameter named \"model\", expected torch.Tensor or Tensor-like object from checkpoint but \
                received <class 'collections.OrderedDict'>";
    assert_eq!(wrong.to_string(), says);
    Ok(())
}
