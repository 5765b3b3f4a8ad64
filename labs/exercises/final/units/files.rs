//! Units for saving and loading.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::serialize::{self, Dict, Value as Saved};

use super::super::numbers::numbers;
use super::Program;
use super::inputs::*;
use crate::{Case, IntoValue, Seen, Value, observe};

/// Tensors of a saved value, by their paths, with where they were saved from.
fn listed(value: &Saved, path: &str, all: &mut Vec<Value>) -> Result<()> {
    match value {
        Saved::Dict(dict) => {
            for (key, value) in dict.iter() {
                listed(value, &format!("{path}/{key:?}"), all)?;
            }
        }
        Saved::List(list) => {
            for (place, value) in list.iter().enumerate() {
                listed(value, &format!("{path}/{place}"), all)?;
            }
        }
        Saved::Tensor(tensor) => all.push(Value::Text(format!(
            "{path} {:?} {:.4}",
            tensor.sizes(),
            tensor.to(DType::F64)?.norm()?.item()?
        ))),
        other => all.push(Value::Text(format!("{path} {other:?}"))),
    }
    Ok(())
}

pub(super) fn checkpoint(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (model, optimizer) = made(|| used(512, device));
    let kept = Cell::new(None);
    observe(
        case,
        || {
            kept.set(Some((program.checkpoint)(&model, &optimizer, 7)?));
            Ok(())
        },
        |facts| {
            let Some(bytes) = kept.take() else { return Ok(()) };
            let saved = serialize::from_bytes(&bytes, Device::Cpu)?;
            for (key, value) in saved.as_dict()?.iter() {
                let mut all = Vec::new();
                listed(value, "", &mut all)?;
                facts.insert(format!("{key:?}"), Value::List(all));
            }
            Ok(())
        },
    )
}

/// The effect of loading a whole file. To load one that lacks an entry has to be an error.
fn loaded(
    case: &Case,
    file: &[u8],
    broken: &[u8],
    load: impl Fn(&[u8]) -> Result<Value>,
    look: impl FnOnce(&mut BTreeMap<String, Value>) -> Result<()>,
) -> Seen {
    // A panic is one in the run that is looked at, too.
    let refused = catch_unwind(AssertUnwindSafe(|| load(broken))).is_ok_and(|loaded| loaded.is_err());
    observe(
        case,
        || load(file),
        |facts| {
            facts.insert("a missing entry is an error".to_owned(), Value::Flag(refused));
            look(facts)
        },
    )
}

/// Bytes made on another machine, by its second GPU.
fn elsewhere(make: impl FnOnce(Device) -> Result<Vec<u8>>) -> Vec<u8> {
    let machine: todevice::Machine = "sim:t4x2".parse().expect("a machine");
    machine.enter(|| made(|| make(Device::cuda(1))))
}

fn without(state: &StateDict, name: &str) -> StateDict {
    let mut state = state.clone();
    state.remove(name);
    state
}

pub(super) fn resume(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    let round = numbers().round;
    let file = |is_whole: bool| {
        elsewhere(|there| {
            manual_seed(case.seed);
            let (model, optimizer) = used(512, there)?;
            let state = if is_whole { model.state_dict() } else { without(&model.state_dict(), "3.bias") };
            serialize::to_bytes(Dict::from_iter([
                ("model", Saved::from(state)),
                ("optimizer", optimizer.state_dict().into()),
                (round, 7.into()),
            ]))
        })
    };
    manual_seed(case.seed + 2);
    let model = made(|| model(512, if device.is_cuda() { device } else { Device::Cpu }));
    let optimizer = RefCell::new(made(|| sgd(&model)));
    made(|| warm(device));
    loaded(
        case,
        &file(true),
        &file(false),
        |file| {
            IntoValue::into_value((program.resume)(file, &model, &mut optimizer.borrow_mut(), device)? as u64)
        },
        |facts| {
            for (name, parameter) in model.named_parameters() {
                note(facts, &name, parameter.tensor())?;
                let momentum = optimizer.borrow().state(&parameter).map(|state| state.momentum_buffer);
                note(facts, &format!("momentum of {name}"), momentum)?;
            }
            Ok(())
        },
    )
}

pub(super) fn restore(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    let key = numbers().weights;
    let file = |is_whole: bool| {
        elsewhere(|there| {
            manual_seed(case.seed);
            let model = model(512, there)?;
            let state = if is_whole { model.state_dict() } else { without(&model.state_dict(), "3.bias") };
            serialize::to_bytes(Dict::from_iter([(key, Saved::from(state))]))
        })
    };
    manual_seed(case.seed + 2);
    // The model has not been moved yet.
    let model = made(|| model(512, Device::Cpu));
    made(|| warm(device));
    loaded(
        case,
        &file(true),
        &file(false),
        |file| (program.restore)(file, &model, device).map(|()| Value::None),
        |facts| {
            for (name, parameter) in model.named_parameters() {
                note(facts, &name, parameter.tensor())?;
            }
            Ok(())
        },
    )
}

pub(super) fn statistics(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    let file = |is_whole: bool| {
        elsewhere(|there| {
            manual_seed(case.seed);
            let mean = Saved::from(Tensor::randn(&[FEATURES])?.to(there)?);
            let deviation = Saved::from(Tensor::rand(&[FEATURES])?.to(there)?);
            let all = [("mean", mean), ("deviation", deviation)];
            serialize::to_bytes(Dict::from_iter(all.into_iter().take(if is_whole { 2 } else { 1 })))
        })
    };
    made(|| warm(device));
    loaded(
        case,
        &file(true),
        &file(false),
        |file| IntoValue::into_value((program.statistics)(file, device)?),
        |_| Ok(()),
    )
}
