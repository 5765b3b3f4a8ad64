//! Units for training: the network, its data, and the loops.

use std::cell::Cell;

use todevice::amp::GradScaler;
use todevice::prelude::*;

use super::inputs::*;
use super::{Program, REFERENCE};
use crate::{Case, Seen, Value, observe};

pub(super) fn network(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    made(|| warm(device));
    let kept = Cell::new(None);
    observe(
        case,
        || {
            manual_seed(case.seed);
            let model = (program.network)(device)?;
            let x = Tensor::ones((&[64, FEATURES], device))?;
            // Whether dropout is at work shows when the same rows go through twice.
            let [once, again] = [model.forward(&x)?, model.forward(&x)?];
            let is_random = !once.equal(&again)?;
            kept.set(Some((model, is_random)));
            Ok(())
        },
        |facts| {
            let Some((model, is_random)) = kept.take() else { return Ok(()) };
            note(facts, "dropout", is_random)?;
            let tensors = model.parameters().iter().map(|parameter| parameter.tensor()).collect::<Vec<_>>();
            let described = tensors.iter().map(|tensor| {
                Value::Text(format!(
                    "{:?} {} {} {}",
                    tensor.sizes(),
                    tensor.dtype(),
                    tensor.device(),
                    tensor.requires_grad()
                ))
            });
            facts.insert("parameters".to_owned(), Value::List(described.collect()));
            Ok(())
        },
    )
}

pub(super) fn loader(case: &Case, program: &Program) -> Seen {
    manual_seed(case.seed);
    // A label is a row's number, so that each can be told apart.
    let [x, y] = made(|| {
        Ok([Tensor::randn(&[ROWS, 4])?, Tensor::linspace(0.0, (ROWS - 1) as f64, (ROWS, DType::I64))?])
    });
    observe(
        case,
        || {
            let loader = (program.loader)(&x, &y)?;
            let mut epochs = Vec::new();
            for _epoch in 0..2 {
                let mut seen = Vec::new();
                for batch in &loader {
                    let [x, y] = batch?;
                    seen.push((x.is_pinned(), y.to_vec::<i64>()?));
                }
                epochs.push(seen);
            }
            let sizes = epochs[0].iter().map(|(_, labels)| labels.len() as f64).collect::<Vec<_>>();
            let pinned = epochs[0].iter().all(|(is_pinned, _)| *is_pinned);
            let labels = |epoch: usize| {
                epochs[epoch].iter().flat_map(|(_, labels)| labels.clone()).collect::<Vec<_>>()
            };
            let mut sorted = labels(0);
            sorted.sort_unstable();
            sorted.dedup();
            let all = sorted.len() as f64;
            Ok(Value::List(vec![
                Value::List(sizes.into_iter().map(Value::Number).collect()),
                Value::Flag(pinned),
                Value::Flag(labels(0) != labels(1)),
                Value::Number(all),
            ]))
        },
        |_| Ok(()),
    )
}

pub(super) fn normalize(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    made(|| warm(device));
    manual_seed(case.seed);
    let x = made(|| (Tensor::randn(&[512, FEATURES])?.mul(1.5)? + 0.7)?.to(device));
    let before = made(|| x.copy());
    made(|| (REFERENCE.normalize)(&x));
    observe(case, || (program.normalize)(&x), |facts| note(facts, "input", x.equal(&before)?))
}

pub(super) fn augment(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    made(|| warm(device));
    manual_seed(case.seed);
    let x = made(|| Tensor::randn(&[512, FEATURES])?.to(device));
    let before = made(|| x.copy());
    made(|| (REFERENCE.augment)(&x));
    let kept = Cell::new(None);
    observe(
        case,
        || {
            kept.set(Some((program.augment)(&x)?));
            Ok(())
        },
        |facts| {
            let Some(noisy) = kept.take() else { return Ok(()) };
            note(facts, "input", x.equal(&before)?)?;
            facts.insert("device".to_owned(), Value::Text(format!("{} {}", noisy.device(), noisy.dtype())));
            // The numbers are random, their form is not.
            let noise = (noisy.to(device)?.to(DType::F32)? - before)?;
            let round = |x: f64, digits: f64| (x * digits).round() / digits;
            let deviation = noise.std(&[0, 1], 1, false)?.item()?;
            note(facts, "deviation", round(deviation.log2(), 10.0))?;
            let rows = noise.std(&[0], 1, false)?.min()?.item()? > deviation / 2.0;
            note(facts, "of each feature", rows)?;
            note(facts, "of each row", noise.std(&[1], 1, false)?.min()?.item()? > deviation / 2.0)?;
            note(facts, "centered", noise.mean()?.item()?.abs() < deviation / 10.0)
        },
    )
}

/// The effects of training: on the weights, on the scaler, and on the result.
fn trained(
    case: &Case,
    width: usize,
    has_small_gradients: bool,
    run: impl Fn(&nn::Sequential, &mut optim::SGD, &mut GradScaler, &[Tensor; 2], &Tensor) -> Result<Tensor>,
) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (model, data) = made(|| Ok((model(width, device)?, uneven()?)));
    if has_small_gradients {
        made(|| small_gradients(&model));
    }
    let (mut optimizer, mut scaler, weights) = made(|| Ok((sgd(&model)?, scaler()?, weights()?)));
    made(|| warm(device));
    // An earlier step has left gradients, and the mode of evaluation.
    made(|| {
        let x = data[0].narrow(0, 0, 16)?.to(device)?;
        scaler.scale(&model.forward(&x)?.sum()?)?.backward()?;
        model.eval();
        Ok(())
    });
    let before = made(|| model.state_dict().copy());
    let kept = Cell::new(None);
    let mut seen = observe(
        case,
        || {
            manual_seed(case.seed + 1);
            kept.set(Some(run(&model, &mut optimizer, &mut scaler, &data, &weights)?));
            Ok(())
        },
        |facts| {
            let Some(loss) = kept.take() else { return Ok(()) };
            facts.insert("graph".to_owned(), Value::Flag(loss.requires_grad()));
            note(facts, "loss", loss)?;
            facts.insert("changes".to_owned(), direction(&changes(&model, &before)?)?);
            Ok(())
        },
    );
    seen.facts.insert("scale".to_owned(), Value::Number(scaler.get_scale().unwrap_or(0.0)));
    seen
}

pub(super) fn train(case: &Case, program: &Program) -> Seen {
    trained(case, 256, false, |model, optimizer, scaler, [x, y], weights| {
        (program.train)(model, optimizer, scaler, &batches(x, y)?, weights, device(case))
    })
}

pub(super) fn accumulate(case: &Case, program: &Program) -> Seen {
    let run = |times: usize| {
        trained(case, 256, times == 1, move |model, optimizer, scaler, [x, y], weights| {
            let batches: Vec<[Tensor; 2]> = x
                .narrow(0, 0, 450)?
                .split(75, 0)?
                .into_iter()
                .zip(y.narrow(0, 0, 450)?.split(75, 0)?)
                .map(|(x, y)| [x, y])
                .collect();
            for _ in 1..times {
                (program.accumulate)(model, optimizer, scaler, &batches, weights, device(case))?;
            }
            (program.accumulate)(model, optimizer, scaler, &batches, weights, device(case))
        })
    };
    let mut seen = run(2);
    // Clipping hides how large a gradient is, so it is looked at where clipping does nothing, too.
    if let Value::List(told) = run(1).fact("changes")
        && let Some(Value::Number(size)) = told.first()
    {
        // The tolerance is about a tenth, for values around 25.
        seen.facts.insert("size".to_owned(), Value::Number(25.0 + size.max(1e-30).ln()));
    }
    seen
}

/// Makes the gradients of a model so small that clipping leaves them alone: those of each layer are as large as the other's weights.
/// Those of the last biases are not, and are left out.
fn small_gradients(model: &nn::Sequential) -> Result<()> {
    let parameters = model.parameters();
    no_grad(|| parameters.iter().try_for_each(|one| one.tensor().mul_(0.005).map(|_| ())))?;
    parameters.last().map_or(Ok(()), |last| last.requires_grad_(false))
}

pub(super) fn fine_tune(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (body, head) = made(|| {
        let layer = |from| nn::Linear::new(from, 256);
        let body =
            nn::Sequential::new((layer(FEATURES)?, nn::ReLU, nn::Dropout::new(0.2)?, layer(256)?, nn::ReLU));
        body.to(device)?;
        let head = nn::Linear::new(256, CLASSES as usize)?;
        head.to(device)?;
        Ok((body, head))
    });
    let ([x, y], mut scaler, weights) = made(|| Ok((rows(ROWS)?, scaler()?, weights()?)));
    made(|| warm(device));
    body.train();
    // An earlier step has left gradients.
    made(|| {
        head.parameters().iter().try_for_each(|one| one.set_grad(Some(one.tensor().detach().full_like(1e3)?)))
    });
    let (body_before, head_before) = made(|| Ok((body.state_dict().copy()?, head.state_dict().copy()?)));
    let kept = Cell::new(None);
    observe(
        case,
        || {
            manual_seed(case.seed + 1);
            kept.set(Some((program.fine_tune)(&body, &head, &mut scaler, [&x, &y], &weights, device)?));
            Ok(())
        },
        |facts| {
            let Some(losses) = kept.take() else { return Ok(()) };
            facts.insert("graph".to_owned(), Value::Flag(losses.requires_grad()));
            note(facts, "losses", losses)?;
            facts.insert("head".to_owned(), direction(&changes(&head, &head_before)?)?);
            facts.insert(
                "body".to_owned(),
                Value::Flag(changes(&body, &body_before)?.abs()?.sum()?.item()? == 0.0),
            );
            let has_grad = body.parameters().iter().any(|parameter| parameter.grad().is_some());
            note(facts, "gradients of the body", has_grad)
        },
    )
}

/// How many rows `fit` learns from, and how many others it is tried on.
const LEARNED: usize = 256;
const OTHERS: usize = 1024;

pub(super) fn fit(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let [x, y] = made(|| rows(LEARNED + OTHERS));
    let part = |start, count| {
        made(|| Ok([x.narrow(0, start, count)?.contiguous()?, y.narrow(0, start, count)?.contiguous()?]))
    };
    let ([x, y], [others, classes]) = (part(0, LEARNED), part(LEARNED, OTHERS));
    made(|| warm(device));
    let kept = Cell::new(None);
    observe(
        case,
        || {
            manual_seed(case.seed + 1);
            kept.set(Some((program.fit)(&x, &y, device)?));
            Ok(())
        },
        |facts| {
            let Some(model) = kept.take() else { return Ok(()) };
            model.eval();
            let home = model.parameters().first().map_or(Device::Cpu, |one| one.tensor().device());
            let outputs = no_grad(|| model.forward(&others.to(home)?)?.cpu())?;
            let hits = outputs.to(DType::F32)?.argmax(1, false)?.eq(&classes)?.to(DType::F32)?.mean()?;
            note(facts, "right", hits.item()?)?;
            facts.insert("device".to_owned(), Value::Text(home.to_string()));
            Ok(())
        },
    )
}
