//! States of older PyTorch versions, compared with how PyTorch 2.11 loads them.

use crate::each_case::each_case;
use todevice::nn::{BatchNorm1d, Linear, Module, Parameter, Sequential, StateDict};
use todevice::optim::lr_scheduler::{CosineAnnealingLR, StepLR};
use todevice::optim::{Adam, AdamW, AdamWOptions, SGD, SGDOptions};
use todevice::prelude::*;
use todevice::serialize::{Dict, Key, MapLocation, Value, from_bytes, to_bytes};
use todevice::{DType, Machine};

type Make = fn(Vec<Parameter>, f64) -> Result<Box<dyn Optimizer>>;

fn sgd(params: Vec<Parameter>, lr: f64) -> Result<Box<dyn Optimizer>> {
    Ok(Box::new(SGD::new(params, SGDOptions { lr, momentum: 0.9, ..Default::default() })?))
}

fn nesterov(params: Vec<Parameter>, lr: f64) -> Result<Box<dyn Optimizer>> {
    Ok(Box::new(SGD::new(params, SGDOptions { lr, momentum: 0.9, nesterov: true, ..Default::default() })?))
}

fn adam(params: Vec<Parameter>, lr: f64) -> Result<Box<dyn Optimizer>> {
    Ok(Box::new(Adam::new(params, AdamOptions { lr, ..Default::default() })?))
}

fn decaying_adam(params: Vec<Parameter>, lr: f64) -> Result<Box<dyn Optimizer>> {
    Ok(Box::new(Adam::new(params, AdamOptions { lr, weight_decay: 0.01, ..Default::default() })?))
}

fn adamw(params: Vec<Parameter>, lr: f64) -> Result<Box<dyn Optimizer>> {
    Ok(Box::new(AdamW::new(params, AdamWOptions { lr, ..Default::default() })?))
}

/// A state with changes to its only group and to the state of its only parameter.
fn changed(state: &Dict, group: impl Fn(&mut Dict), kept: impl Fn(&mut Dict)) -> Result<Dict> {
    let mut first_group = state.at("param_groups")?.as_list()?[0].as_dict()?.clone();
    let mut first_kept = state.at("state")?.as_dict()?.at(0)?.as_dict()?.clone();
    group(&mut first_group);
    kept(&mut first_kept);
    let id = Key::Int(first_group.at("params")?.as_list()?[0].as_int()?);
    let state = Dict::from_iter([(id, first_kept)]);
    Ok(Dict::from_iter([("state", Value::from(state)), ("param_groups", vec![first_group].into())]))
}

const GRADIENTS: [[f32; 3]; 3] = [[0.5, 0.25, -1.0], [-0.25, 1.0, 0.5], [1.0, -0.5, 0.25]];

/// Takes two steps, then a third with another optimizer that continues from the changed state.
fn third_step(
    [first, second]: [Make; 2],
    change: &dyn Fn(&Dict) -> Result<Dict>,
    device: Device,
) -> Result<Vec<f32>> {
    let parameter = Parameter::new(&Tensor::new([1.0f32, -2.0, 3.0])?.to(device)?)?;
    let step = |optimizer: &mut dyn Optimizer, gradient: [f32; 3]| {
        optimizer.zero_grad();
        parameter.tensor().mul(&Tensor::new(gradient)?.to(device)?)?.sum()?.backward()?;
        optimizer.step()
    };
    let mut optimizer = first(vec![parameter.clone()], 0.1)?;
    step(&mut *optimizer, GRADIENTS[0])?;
    step(&mut *optimizer, GRADIENTS[1])?;
    // Through a file, like real old states.
    let file = to_bytes(change(&optimizer.state_dict())?)?;
    let state = from_bytes(&file, MapLocation::None)?;
    let mut optimizer = second(vec![parameter.clone()], 1.0)?;
    optimizer.load_state_dict(state.as_dict()?)?;
    step(&mut *optimizer, GRADIENTS[2])?;
    parameter.tensor().to_vec::<f32>()
}

/// The keys that groups have today, but not in older versions.
const NEW: [&str; 6] =
    ["maximize", "foreach", "differentiable", "fused", "capturable", "decoupled_weight_decay"];

fn without(names: &'static [&'static str]) -> impl Fn(&mut Dict) {
    move |group| NEW.iter().chain(names).for_each(|name| drop(group.remove(*name)))
}

#[test]
fn states_of_older_optimizers_go_on_as_in_pytorch() -> Result<()> {
    let step = |convert: fn(f64) -> Value| {
        move |kept: &mut Dict| {
            let count = kept.at("step").unwrap().as_tensor().unwrap().item().unwrap();
            kept.insert("step", convert(count));
        }
    };
    let unchanged = |_: &mut Dict| {};
    let momentum = [0.812_f32, -2.20775, 3.151];
    let of_adam = [0.8075552_f32, -2.2220473, 3.1327724];
    type Change = Box<dyn Fn(&Dict) -> Result<Dict>>;
    let cases: [(&str, [Make; 2], Change, [f32; 3]); 11] = [
        (
            "SGD before 1.11",
            [sgd, sgd],
            Box::new(move |state| changed(state, without(&[]), unchanged)),
            momentum,
        ),
        (
            "SGD without nesterov",
            [sgd, sgd],
            Box::new(move |state| changed(state, without(&["nesterov"]), unchanged)),
            momentum,
        ),
        (
            "SGD without a buffer",
            [sgd, sgd],
            Box::new(move |state| {
                changed(state, without(&[]), |kept| drop(kept.insert("momentum_buffer", Value::None)))
            }),
            [0.83, -2.0975, 3.115],
        ),
        (
            "truths as numbers",
            [nesterov, sgd],
            Box::new(move |state| {
                let numbers = |group: &mut Dict| {
                    ["nesterov", "maximize", "weight_decay"]
                        .into_iter()
                        .for_each(|name| drop(group.insert(name, i64::from(name == "nesterov"))));
                };
                changed(state, numbers, unchanged)
            }),
            [0.7058, -2.2619748, 3.1609],
        ),
        (
            "a learning rate that is a tensor",
            [sgd, sgd],
            Box::new(move |state| {
                changed(state, |group| drop(group.insert("lr", Tensor::new(0.1f32).unwrap())), unchanged)
            }),
            momentum,
        ),
        (
            "parameters that have addresses",
            [sgd, sgd],
            Box::new(move |state| {
                changed(state, |group| drop(group.insert("params", vec![140_234_234_234_i64])), unchanged)
            }),
            momentum,
        ),
        (
            "Adam before 1.12",
            [adam, adam],
            Box::new(move |state| {
                changed(state, without(&["amsgrad"]), step(|count| Value::Int(count as i64)))
            }),
            of_adam,
        ),
        (
            "steps as a float",
            [adam, adam],
            Box::new(move |state| changed(state, without(&[]), step(Value::Float))),
            of_adam,
        ),
        (
            "betas in a list",
            [adam, adam],
            Box::new(move |state| {
                changed(state, |group| drop(group.insert("betas", vec![0.9, 0.999])), unchanged)
            }),
            of_adam,
        ),
        (
            "AdamW before 1.12",
            [adamw, adamw],
            Box::new(move |state| {
                changed(state, without(&["amsgrad"]), step(|count| Value::Int(count as i64)))
            }),
            [0.8047847, -2.215765, 3.123555],
        ),
        (
            "Adam's state in AdamW",
            [decaying_adam, adamw],
            Box::new(|state| Ok(state.clone())),
            [0.80378705, -2.21786, 3.123159],
        ),
    ];
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            for (name, optimizers, change, expected) in &cases {
                let found = third_step(*optimizers, change, device)?;
                let near =
                    found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6);
                assert!(near, "{name} on {device}: {found:?}, and PyTorch has {expected:?}");
            }
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn states_of_older_schedules_go_on_as_in_pytorch() -> Result<()> {
    let optimizer = || sgd(vec![Parameter::new(&Tensor::zeros(&[1])?)?], 0.5);
    // The keys missing from each state, the learning rate that the scheduler reports, and those of the next epochs.
    let steps = [0.005000000000000001, 0.005000000000000001, 0.0005000000000000001];
    let cosines = [0.04774575140626316, 0.0, 0.04774575140626314];
    let cases: [(&[&str], f64, f64); 4] = [
        (&[], 0.05, 0.17274575140626314),
        (&["_last_lr"], 0.5, 0.5), // Before 1.4.
        (&["_last_lr", "_step_count", "_is_initial", "_get_lr_called_within_step"], 0.5, 0.5),
        (&["step_size", "gamma", "T_max", "eta_min", "base_lrs"], 0.05, 0.17274575140626314),
    ];
    each_case(cases, |(missing, last_step, last_cosine)| -> Result<()> {
        let cut = |mut state: Dict| {
            missing.iter().for_each(|name| drop(state.remove(*name)));
            state.insert("verbose", false); // From 1.4 to 2.6.
            state
        };
        let (mut old, mut new) = (optimizer()?, optimizer()?);
        let mut schedule = StepLR::new(&*old, 2, 0.1)?;
        let mut resumed = StepLR::new(&*new, 2, 0.1)?;
        for _ in 0..3 {
            old.step()?;
            schedule.step();
        }
        resumed.load_state_dict(&cut(schedule.state_dict()))?;
        new.load_state_dict(&old.state_dict())?;
        assert_eq!(resumed.get_last_lr(), [last_step], "without {missing:?}");
        for rate in steps {
            new.step()?;
            resumed.step();
            assert_eq!(resumed.get_last_lr(), [rate], "without {missing:?}");
        }

        let (mut old, mut new) = (optimizer()?, optimizer()?);
        let mut schedule = CosineAnnealingLR::new(&*old, 5, 0.0)?;
        let mut resumed = CosineAnnealingLR::new(&*new, 5, 0.0)?;
        for _ in 0..3 {
            old.step()?;
            schedule.step();
        }
        resumed.load_state_dict(&cut(schedule.state_dict()))?;
        new.load_state_dict(&old.state_dict())?;
        assert_eq!(resumed.get_last_lr(), [last_cosine], "without {missing:?}");
        for rate in cosines {
            new.step()?;
            resumed.step();
            assert!((resumed.get_last_lr()[0] - rate).abs() < 1e-15, "without {missing:?}");
        }
        Ok(())
    });
    Ok(())
}

const BATCHES: &str = "1.num_batches_tracked";

/// A model that has seen this many batches.
fn model(batches: i64) -> Result<Sequential> {
    let model = Sequential::new((Linear::new(2, 2)?, BatchNorm1d::new(2)?));
    model.state_dict().get(BATCHES).unwrap().fill_(batches)?;
    Ok(model)
}

/// A state as an `OrderedDict`, with the metadata of the second module replaced.
fn with_metadata(of_module: Option<Dict>) -> Result<Dict> {
    let Value::Dict(mut state) = Value::from(model(7)?.state_dict()) else {
        unreachable!("a state is a dict")
    };
    let mut metadata = state.attributes().unwrap().at("_metadata")?.as_dict()?.clone();
    metadata.remove("1");
    if let Some(of_module) = of_module {
        metadata.insert("1", of_module);
    }
    state.set_attributes(Dict::from_iter([("_metadata", metadata)]));
    Ok(state)
}

/// Loads a state from a file, and returns the number of batches.
fn load(state: impl Into<Value>, strict: bool) -> Result<i64, String> {
    let load = || {
        let value = from_bytes(&to_bytes(state)?, MapLocation::None)?;
        let model = model(3)?;
        model.load_state_dict(&StateDict::try_from(&value)?, strict)?;
        Ok::<_, Error>(model.state_dict().get(BATCHES).unwrap().to_vec::<i64>()?[0])
    };
    load().map_err(|error| error.to_string())
}

#[test]
fn states_without_num_batches_tracked_load_if_they_are_old() -> Result<()> {
    let missing = "Error(s) in loading state_dict for Sequential:\n\tMissing key(s) in state_dict: \
                   \"1.num_batches_tracked\". ";
    let cut = |mut state: Dict| {
        state.remove(BATCHES);
        state
    };
    let version = |version: i64| Some(Dict::from_iter([("version", version)]));
    // A state of version 2 must have the buffer, so its absence is an error. A plain dict has no version.
    assert_eq!(load(cut(with_metadata(version(2))?), true), Err(missing.to_owned()));
    assert_eq!(load(cut(with_metadata(version(2))?), false), Ok(3));
    assert_eq!(load(cut(with_metadata(version(1))?), true), Ok(3));
    assert_eq!(load(cut(with_metadata(Some(Dict::new()))?), true), Ok(3));
    assert_eq!(load(cut(with_metadata(None)?), true), Ok(3));
    assert_eq!(
        load(cut(Value::from(model(7)?.state_dict()).as_dict()?.clone()), true),
        Err(missing.to_owned())
    );
    let plain: Dict = Value::from(model(7)?.state_dict()).as_dict()?.clone().into_iter().collect();
    assert_eq!(load(cut(plain), true), Ok(3));
    assert_eq!(load(model(7)?.state_dict(), true), Ok(7));

    // Other missing keys are errors.
    let mut state = cut(with_metadata(version(1))?);
    state.remove("1.running_mean");
    let words = missing.replace("num_batches_tracked", "running_mean");
    assert_eq!(load(state, true), Err(words));

    // Without a file: a state knows its versions. One assembled by hand does not, and a copy counts as such.
    let mut state = model(7)?.state_dict();
    state.remove(BATCHES);
    assert_eq!(model(3)?.load_state_dict(&state, true).unwrap_err().to_string(), missing);
    let state: StateDict = state.iter().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
    assert!(model(3)?.load_state_dict(&state, true)?.missing_keys.is_empty());
    let mut state = model(7)?.state_dict().copy()?;
    state.remove(BATCHES);
    assert!(model(3)?.load_state_dict(&state, true)?.missing_keys.is_empty());
    Ok(())
}

/// PyTorch before 0.4 had no zero-dimensional tensors.
#[test]
fn a_number_may_be_saved_as_one_element() -> Result<()> {
    let with = |batches: Tensor| {
        let mut state = model(7)?.state_dict();
        state.insert(BATCHES, batches);
        Ok::<_, Error>(load(state, true))
    };
    assert_eq!(with(Tensor::new([5])?)?, Ok(5));
    let words = "Error(s) in loading state_dict for Sequential:\n\tsize mismatch for 1.num_batches_tracked: copying a param \
                 with shape torch.Size([2]) from checkpoint, the shape in current model is torch.Size([]).";
    assert_eq!(with(Tensor::zeros((&[2], DType::I64))?)?, Err(words.to_owned()));
    Ok(())
}

/// PyTorch's `_metadata`.
#[test]
fn a_state_has_the_versions_of_its_modules() -> Result<()> {
    let state = from_bytes(&to_bytes(model(7)?.state_dict())?, MapLocation::None)?;
    assert_eq!(
        state.as_dict()?.attributes().unwrap().to_string(),
        "{'_metadata': OrderedDict([('', {'version': 1}), ('0', {'version': 1}), ('1', {'version': 2})])}"
    );
    Ok(())
}
