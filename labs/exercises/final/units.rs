//! Each function of the program, run by itself on inputs of its own: a *unit*. What it was seen to do is plain data.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use todevice::amp::{GradScaler, GradScalerOptions};
use todevice::cuda::{self, Stream};
use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::serialize::{self, Dict, Value as Saved};

use super::numbers::with_numbers;
use super::{Loader, draw, program};
use crate::{Case, Seen, Value, observe};

/// Declares the functions of a program, and for each the machines that its unit runs on and how it is run.
macro_rules! units {
    ($($name:ident: $type:ty, on $gpus:expr, $observe:ident;)+) => {
        /// The functions of one program.
        #[derive(Clone, Copy)]
        pub struct Program {
            $(pub $name: $type,)+
        }

        /// The program without a fault.
        pub const REFERENCE: Program = Program { $($name: program::$name,)+ };

        /// All functions.
        pub static UNITS: &[Unit] = &[$(Unit { name: stringify!($name), gpus: $gpus, observe: $observe },)+];
    };
}

/// A function of the program, and how to look at it.
pub struct Unit {
    pub name: &'static str,
    pub gpus: &'static [&'static str],
    pub observe: fn(&Case, &Program) -> Seen,
}

const ONE: &[&str] = &["sim:t4", TWO];
/// A file may be of any machine, and come to any.
const ANY: &[&str] = &["sim:t4", TWO, "none"];
const STREAMS: &[&str] = &["sim:t4"];
/// On this machine the device is the GPU that nobody takes unless told to.
const TWO: &str = "sim:t4x2";

units! {
    network: fn(Device) -> Result<nn::Sequential>, on ONE, network;
    loader: fn(&Tensor, &Tensor) -> Result<Loader>, on STREAMS, loader;
    normalize: fn(&Tensor) -> Result<Tensor>, on ONE, normalize;
    augment: fn(&Tensor) -> Result<Tensor>, on ONE, augment;
    train: for<'a> fn(&'a nn::Sequential, &mut optim::SGD, &mut GradScaler, &'a Loader, &Tensor, Device) -> Result<Tensor>, on ONE, train;
    accumulate: for<'a> fn(&'a nn::Sequential, &mut optim::SGD, &mut GradScaler, &'a [[Tensor; 2]], &Tensor, Device) -> Result<Tensor>, on ONE, accumulate;
    fine_tune: for<'a> fn(&nn::Sequential, &nn::Linear, &mut GradScaler, [&'a Tensor; 2], &Tensor, Device) -> Result<Tensor>, on ONE, fine_tune;
    evaluate: fn(&nn::Sequential, &Loader, Device) -> Result<[f64; 2]>, on ONE, evaluate;
    predict: fn(&nn::Sequential, &Tensor, Device) -> Result<Tensor>, on ONE, predict;
    center: fn(&nn::Sequential, &Loader, Device) -> Result<Tensor>, on ONE, center;
    confusion: fn(&Tensor, &Tensor) -> Result<Tensor>, on ONE, confusion;
    recall: fn(&Tensor) -> Result<Tensor>, on ONE, recall;
    average: fn(Option<StateDict>, &nn::Sequential) -> Result<StateDict>, on ONE, average;
    keep_best: fn(&mut (f64, StateDict), f64, &nn::Sequential) -> Result<()>, on ONE, keep_best;
    checkpoint: fn(&nn::Sequential, &optim::SGD, i64) -> Result<Vec<u8>>, on ONE, checkpoint;
    resume: fn(&[u8], &nn::Sequential, &mut optim::SGD, Device) -> Result<i64>, on ANY, resume;
    restore: fn(&[u8], &nn::Sequential, Device) -> Result<()>, on ANY, restore;
    statistics: fn(&[u8], Device) -> Result<[Tensor; 2]>, on ANY, statistics;
    upload: fn(&[Tensor], &Stream, &mut dyn FnMut(Tensor) -> Result<()>) -> Result<()>, on STREAMS, upload;
    download: fn(&[Tensor], &Stream) -> Result<Vec<f64>>, on STREAMS, download;
    blend: for<'a> fn(&Tensor, [&'a Tensor; 2], &Stream) -> Result<Tensor>, on STREAMS, blend;
    fit: fn(&Tensor, &Tensor, Device) -> Result<nn::Sequential>, on STREAMS, fit;
}

impl Unit {
    pub fn find(name: &str) -> Option<&'static Unit> {
        UNITS.iter().find(|unit| unit.name == name)
    }

    /// Its runs for a program, with inputs that depend on `run`.
    pub fn cases(&'static self, seed: u64, run: u64) -> impl Iterator<Item = Case> {
        let size = UNITS.iter().position(|unit| unit.name == self.name).unwrap_or(0);
        let case = move |gpu: &&str| Case { gpu: (*gpu).to_owned(), seed: run * draw::SEEDS + seed, size };
        self.gpus.iter().map(case)
    }

    /// The unit that a case is about.
    pub fn of(case: &Case) -> &'static Unit {
        &UNITS[case.size % UNITS.len()]
    }
}

/// Runs the unit of a case, with the numbers of the student whose seed it is.
pub fn look(case: &Case, program: &Program) -> Seen {
    let unit = Unit::of(case);
    with_numbers(draw::numbers(case.seed % draw::SEEDS), || {
        case.machine().enter(|| (unit.observe)(case, program))
    })
}

const ROWS: usize = 487;
const FEATURES: usize = 128;
const CLASSES: i64 = 8;
/// Batches that the check makes itself: the last one has fewer rows.
const BATCH: usize = 90;

fn device(case: &Case) -> Device {
    match case.gpu.as_str() {
        TWO => Device::cuda(1),
        _ => case.device(),
    }
}

/// Inputs are made before the function is looked at. That they can be is a matter of this file.
fn made<T>(make: impl FnOnce() -> Result<T>) -> T {
    make().unwrap_or_else(|error| panic!("the inputs of a unit cannot be made: {error}"))
}

/// Rows with a class each, in such a way that it can be learned: a feature of the class is larger.
pub fn rows(count: usize) -> Result<[Tensor; 2]> {
    let y = Tensor::randint(0, CLASSES, &[count])?;
    let centers = (Tensor::randn(&[CLASSES as usize, FEATURES])? * 0.5)?;
    let x = (Tensor::randn(&[count, FEATURES])? + centers.index_select(0, &y)?)?;
    Ok([x, y])
}

/// Rows whose last batch, which is not full, is not like the others.
fn uneven() -> Result<[Tensor; 2]> {
    let [x, y] = rows(ROWS)?;
    let full = ROWS / BATCH * BATCH;
    x.narrow(0, full, ROWS - full)?.mul_(10.0)?;
    Ok([x, y])
}

fn model(hidden: usize, device: Device) -> Result<nn::Sequential> {
    let (first, last) = (nn::Linear::new(FEATURES, hidden)?, nn::Linear::new(hidden, CLASSES as usize)?);
    let model = nn::Sequential::new((first, nn::ReLU, nn::Dropout::new(0.2)?, last));
    model.to(device)?;
    Ok(model)
}

fn sgd(model: &nn::Sequential) -> Result<optim::SGD> {
    optim::SGD::new(model.parameters(), SGDOptions { lr: 0.5, momentum: 0.9, ..Default::default() })
}

fn scaler() -> Result<GradScaler> {
    GradScaler::new(GradScalerOptions { init_scale: 1024.0, ..Default::default() })
}

/// A loader of the check's own, whose batches all have their turn in the same order.
fn batches(x: &Tensor, y: &Tensor) -> Result<Loader> {
    let options = DataLoaderOptions { batch_size: BATCH, pin_memory: true, ..Default::default() };
    DataLoader::new(TensorDataset::new([x.clone(), y.clone()])?, options)
}

fn weights() -> Result<Tensor> {
    Tensor::linspace(0.5, 1.5, (CLASSES as usize, DType::F32))
}

/// The first product takes memory for its workspace, and the first of all work takes a context. What is dropped here stays in the
/// cache.
fn warm(device: Device) -> Result<()> {
    if device.is_cuda() {
        let x = Tensor::ones((&[16, 16], device))?;
        x.matmul(&x)?;
        Tensor::zeros((&[3 << 20], device))?;
        cuda::device(device.index(), cuda::synchronize)??;
    }
    Ok(())
}

/// Notes the values of tensors, and where they are.
fn note(facts: &mut BTreeMap<String, Value>, name: &str, value: impl crate::IntoValue) -> Result<()> {
    facts.insert(name.to_owned(), value.into_value()?);
    Ok(())
}

/// How parameters have changed.
fn changes(model: &impl Module, before: &StateDict) -> Result<Tensor> {
    let now = model.state_dict();
    let changes = now.iter().map(|(name, tensor)| {
        let before = before.get(name).cloned().ok_or_else(|| Error::custom("a parameter is new"))?;
        (tensor.detach() - before)?.reshape(&[-1])
    });
    Tensor::cat(&changes.collect::<Result<Vec<_>>>()?, 0)
}

/// What many numbers look like: how large they are together, and which way they point. Numbers that were rounded in another place
/// look the same.
fn direction(changes: &Tensor) -> Result<Value> {
    no_grad(|| {
        let changes = changes.detach().cpu()?.to(DType::F64)?;
        let size = changes.norm()?.item()?;
        let mut told = vec![Value::Number(size)];
        for seed in 0..3 {
            let generator = Generator::new();
            generator.manual_seed(seed);
            let other = Tensor::randn((
                &[changes.numel()],
                todevice::RandomOptions {
                    dtype: Some(DType::F64),
                    generator: Some(&generator),
                    ..Default::default()
                },
            ))?;
            let cosine = (&changes * other)?.sum()?.item()? / size.max(1e-30);
            // Beside 8 the tolerance is a few hundredths.
            told.push(Value::Number(8.0 + cosine));
        }
        Ok(Value::List(told))
    })
}

fn network(case: &Case, program: &Program) -> Seen {
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

fn loader(case: &Case, program: &Program) -> Seen {
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

fn normalize(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    made(|| warm(device));
    manual_seed(case.seed);
    let x = made(|| (Tensor::randn(&[512, FEATURES])?.mul(1.5)? + 0.7)?.to(device));
    let before = made(|| x.copy());
    made(|| (REFERENCE.normalize)(&x));
    observe(case, || (program.normalize)(&x), |facts| note(facts, "input", x.equal(&before)?))
}

fn augment(case: &Case, program: &Program) -> Seen {
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
            // The numbers are random, what they look like is not.
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

fn train(case: &Case, program: &Program) -> Seen {
    trained(case, 256, false, |model, optimizer, scaler, [x, y], weights| {
        (program.train)(model, optimizer, scaler, &batches(x, y)?, weights, device(case))
    })
}

fn accumulate(case: &Case, program: &Program) -> Seen {
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
        // Beside 25 the tolerance is about a tenth of the size.
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

fn fine_tune(case: &Case, program: &Program) -> Seen {
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

/// A model to be looked at, which is in training mode, and rows.
fn given(case: &Case, width: usize) -> (nn::Sequential, [Tensor; 2]) {
    let device = device(case);
    manual_seed(case.seed);
    let given = made(|| {
        let layer = |from, to| nn::Linear::new(from, to);
        let model = nn::Sequential::new((
            layer(FEATURES, width)?,
            nn::ReLU,
            nn::Dropout::new(0.2)?,
            layer(width, width)?,
            nn::ReLU,
            layer(width, width)?,
            nn::ReLU,
            layer(width, CLASSES as usize)?,
        ));
        model.to(device)?;
        Ok((model, uneven()?))
    });
    // Outputs that differ more than those of a new model.
    made(|| no_grad(|| given.0.parameters()[6].tensor().mul_(16.0)));
    made(|| warm(device));
    given.0.train();
    given
}

fn evaluate(case: &Case, program: &Program) -> Seen {
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

fn predict(case: &Case, program: &Program) -> Seen {
    let (model, [x, _]) = given(case, 192);
    observe(case, || (program.predict)(&model, &x.narrow(0, 0, 290)?, device(case)), |_| Ok(()))
}

fn center(case: &Case, program: &Program) -> Seen {
    let (model, [x, y]) = given(case, 192);
    observe(case, || (program.center)(&model, &batches(&x, &y)?, device(case)), |_| Ok(()))
}

fn confusion(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    made(|| warm(device));
    manual_seed(case.seed);
    let labels = || Tensor::randint(0, CLASSES, &[4096])?.to(device);
    let (predicted, actual) = made(|| Ok((labels()?, labels()?)));
    made(|| (REFERENCE.confusion)(&predicted, &actual));
    observe(case, || (program.confusion)(&predicted, &actual), |_| Ok(()))
}

fn recall(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    made(|| warm(device));
    manual_seed(case.seed);
    let counts =
        made(|| Tensor::randint(1, 50, &[CLASSES as usize, CLASSES as usize])?.to(DType::F32)?.to(device));
    made(|| (REFERENCE.recall)(&counts));
    observe(case, || (program.recall)(&counts), |_| Ok(()))
}

fn average(case: &Case, program: &Program) -> Seen {
    let (model, _) = given(case, 192);
    let kept = Cell::new(None);
    observe(
        case,
        || {
            let mut mean = (program.average)(None, &model)?;
            for _ in 0..3 {
                // What training does to the weights meanwhile.
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

fn keep_best(case: &Case, program: &Program) -> Seen {
    let (model, _) = given(case, 192);
    let numbers = super::numbers::numbers();
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
            // What is kept stays as it is.
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

/// A model that has been trained a little, and its optimizer.
fn used(width: usize, device: Device) -> Result<(nn::Sequential, optim::SGD)> {
    let model = model(width, device)?;
    let mut optimizer = sgd(&model)?;
    let [x, y] = rows(32)?;
    model.forward(&x.to(device)?)?.cross_entropy(&y.to(device)?)?.backward()?;
    optimizer.step()?;
    optimizer.zero_grad();
    Ok((model, optimizer))
}

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

fn checkpoint(case: &Case, program: &Program) -> Seen {
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

/// What loading did, from a file whole, and from one that lacks an entry: that has to be an error.
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

fn resume(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    let round = super::numbers::numbers().round;
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
    let optimizer = std::cell::RefCell::new(made(|| sgd(&model)));
    made(|| warm(device));
    loaded(
        case,
        &file(true),
        &file(false),
        |file| {
            crate::IntoValue::into_value(
                (program.resume)(file, &model, &mut optimizer.borrow_mut(), device)? as u64
            )
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

fn restore(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    let key = super::numbers::numbers().weights;
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

fn statistics(case: &Case, program: &Program) -> Seen {
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
        |file| crate::IntoValue::into_value((program.statistics)(file, device)?),
        |_| Ok(()),
    )
}

/// Runs code twice, and looks at the second time: taking memory for the first time makes the GPU wait, and hides races.
fn twice<T: crate::IntoValue>(case: &Case, run: impl Fn() -> Result<T>) -> Seen {
    observe(case, &run, |_| Ok(()));
    observe(case, &run, |_| Ok(()))
}

fn upload(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (copies, batches, other) = made(|| {
        let batches: Result<Vec<Tensor>> = (0..9).map(|_| Tensor::randn(&[256, 512])?.pin_memory()).collect();
        Ok((Stream::new(device)?, batches?, Tensor::randn(&[512, 512])?.to(device)?))
    });
    made(|| warm(device));
    twice(case, || {
        let mut results = Vec::new();
        (program.upload)(&batches, &copies, &mut |x| {
            let y = x.matmul(&other)?.relu()?;
            results.push((
                Tensor::stack(&[x.sum()?, y.mean()?], 0)?,
                cuda::current_stream(device)?.record_event()?,
            ));
            // The host is three batches ahead at most, so no more than a few need be there.
            match results.len().checked_sub(4) {
                Some(earlier) => results[earlier].1.synchronize(),
                None => Ok(()),
            }
        })?;
        // New work on the stream of the copies: memory that was given back too early is used again.
        cuda::stream(&copies, || Tensor::zeros((&[256, 512], device)))?;
        results
            .iter()
            .map(|(result, _)| {
                result.to_vec::<f32>().map(|both| both.into_iter().map(f64::from).collect::<Vec<_>>())
            })
            .collect::<Result<Vec<_>>>()
    })
}

fn download(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (copies, outputs) = made(|| {
        let outputs: Result<Vec<Tensor>> = (0..6).map(|_| Tensor::randn(&[256, 512])?.to(device)).collect();
        Ok((Stream::new(device)?, outputs?))
    });
    made(|| warm(device));
    twice(case, || (program.download)(&outputs, &copies))
}

fn blend(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (side, x, left, right) = made(|| {
        let square = || (Tensor::randn(&[512, 512])? * 0.05)?.to(device);
        Ok((Stream::new(device)?, Tensor::randn(&[256, 512])?.to(device)?, square()?, square()?))
    });
    made(|| warm(device));
    twice(case, || {
        let y = (program.blend)(&x, [&left, &right], &side)?;
        // New work on both streams.
        let zeros = || (0..3).map(|_| Tensor::zeros((&[256, 512], device))).collect::<Result<Vec<_>>>();
        cuda::stream(&side, zeros)?;
        let told = y.sum_dims(&[1], false)?.narrow(0, 0, 32)?;
        Tensor::ones((&[256, 512], device))?;
        Ok(told)
    })
}

/// How many rows `fit` learns from, and how many others it is tried on.
const LEARNED: usize = 256;
const OTHERS: usize = 1024;

fn fit(case: &Case, program: &Program) -> Seen {
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
