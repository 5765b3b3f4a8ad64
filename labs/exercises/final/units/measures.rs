//! Units for a model's outputs, their measures, and its weights.

use std::cell::Cell;

use todevice::nn::StateDict;
use todevice::prelude::*;

use super::super::numbers::numbers;
use super::inputs::*;
use super::{Program, REFERENCE};
use crate::{Case, Seen, Value, observe};

pub(super) fn evaluate(case: &Case, program: &Program) -> Seen {
    let (model, [x, _]) = given(case, 192);
    // Two of three rows are classified correctly, and none of the last batch: a wrong way to count does not come to the same by
    // chance.
    let y = made(|| {
        model.eval();
        let outputs = no_grad(|| model.forward(&x.to(device(case))?)?.cpu())?;
        model.train();
        let mut classes = outputs.argmax(1, false)?.to_vec::<i64>()?;
        let full = ROWS / BATCH * BATCH;
        for (row, class) in classes.iter_mut().enumerate().filter(|(row, _)| row % 3 == 0 || *row >= full) {
            *class = (*class + 1 + row as i64 % 2) % CLASSES;
        }
        Tensor::new(classes)
    });
    observe(case, || (program.evaluate)(&model, &batches(&x, &y)?, device(case)), |_| Ok(()))
}

pub(super) fn predict(case: &Case, program: &Program) -> Seen {
    let (model, [x, _]) = given(case, 192);
    observe(case, || (program.predict)(&model, &x.narrow(0, 0, 290)?, device(case)), |_| Ok(()))
}

pub(super) fn center(case: &Case, program: &Program) -> Seen {
    let (model, [x, y]) = given(case, 192);
    observe(case, || (program.center)(&model, &batches(&x, &y)?, device(case)), |_| Ok(()))
}

pub(super) fn confusion(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    made(|| warm(device));
    manual_seed(case.seed);
    let labels = || Tensor::randint(0, CLASSES, &[4096])?.to(device);
    let (predicted, actual) = made(|| Ok((labels()?, labels()?)));
    made(|| (REFERENCE.confusion)(&predicted, &actual));
    observe(case, || (program.confusion)(&predicted, &actual), |_| Ok(()))
}

pub(super) fn recall(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    made(|| warm(device));
    manual_seed(case.seed);
    let counts =
        made(|| Tensor::randint(1, 50, &[CLASSES as usize, CLASSES as usize])?.to(DType::F32)?.to(device));
    made(|| (REFERENCE.recall)(&counts));
    observe(case, || (program.recall)(&counts), |_| Ok(()))
}

pub(super) fn average(case: &Case, program: &Program) -> Seen {
    let (model, _) = given(case, 192);
    let kept = Cell::new(None);
    observe(
        case,
        || {
            let mut mean = (program.average)(None, &model)?;
            for _ in 0..3 {
                // Training changes the weights meanwhile.
                no_grad(|| {
                    model.parameters().iter().try_for_each(|one| one.tensor().mul_(1.25).map(|_| ()))
                })?;
                mean = (program.average)(Some(mean), &model)?;
            }
            kept.set(Some(mean));
            Ok(())
        },
        |facts| {
            let Some(mean) = kept.take() else { return Ok(()) };
            for (name, tensor) in mean.iter() {
                note(facts, name, tensor)?;
            }
            note(facts, "model", model.parameters()[1].tensor())
        },
    )
}

pub(super) fn keep_best(case: &Case, program: &Program) -> Seen {
    let (model, _) = given(case, 192);
    let numbers = numbers();
    observe(
        case,
        || {
            let mut best = (0.0, StateDict::default());
            let mut told = Vec::new();
            let margin = numbers.margin;
            for score in [0.5, 0.5 + 0.9 * margin, 0.5 + 1.1 * margin, 0.3, 0.5 + 1.5 * margin] {
                no_grad(|| {
                    model.parameters().iter().try_for_each(|one| one.tensor().mul_(1.25).map(|_| ()))
                })?;
                (program.keep_best)(&mut best, score, &model)?;
                told.push((best.0, best.1.get("3.bias").cloned().unwrap_or(Tensor::zeros(&[1])?)));
            }
            // Kept weights stay as they are.
            no_grad(|| model.parameters().iter().try_for_each(|one| one.tensor().zero_().map(|_| ())))?;
            let all = told.into_iter().map(|(score, bias)| Ok((score, bias.norm()?.item()?)));
            let all = all.collect::<Result<Vec<(f64, f64)>>>()?;
            let kept =
                best.1.iter().map(|(_, tensor)| tensor.norm()?.item()).collect::<Result<Vec<f64>>>()?;
            let homes: Vec<Value> = best
                .1
                .iter()
                .map(|(name, tensor)| Value::Text(format!("{name} {}", tensor.device())))
                .collect();
            Ok(Value::List(vec![
                crate::IntoValue::into_value(all)?,
                crate::IntoValue::into_value(kept)?,
                Value::List(homes),
            ]))
        },
        |_| Ok(()),
    )
}
