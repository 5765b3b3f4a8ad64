//! The inputs that functions are given, and facts about their results.

use std::collections::BTreeMap;

use todevice::amp::{GradScaler, GradScalerOptions};
use todevice::cuda;
use todevice::nn::StateDict;
use todevice::prelude::*;

use super::{Loader, TWO};
use crate::{Case, Value};

pub(super) const ROWS: usize = 487;
pub(super) const FEATURES: usize = 128;
pub(super) const CLASSES: i64 = 8;
/// Batches that the check makes itself: the last one has fewer rows.
pub(super) const BATCH: usize = 90;

pub(super) fn device(case: &Case) -> Device {
    match case.gpu.as_str() {
        TWO => Device::cuda(1),
        _ => case.device(),
    }
}

/// Inputs are made before the function is looked at. That they can be is a matter of this file.
pub(super) fn made<T>(make: impl FnOnce() -> Result<T>) -> T {
    make().unwrap_or_else(|error| panic!("the inputs of a unit cannot be made: {error}"))
}

/// Rows with a class each, in such a way that it can be learned: a feature of the class is larger.
pub(super) fn rows(count: usize) -> Result<[Tensor; 2]> {
    let y = Tensor::randint(0, CLASSES, &[count])?;
    let centers = (Tensor::randn(&[CLASSES as usize, FEATURES])? * 0.5)?;
    let x = (Tensor::randn(&[count, FEATURES])? + centers.index_select(0, &y)?)?;
    Ok([x, y])
}

/// Rows whose last batch, which is not full, is not like the others.
pub(super) fn uneven() -> Result<[Tensor; 2]> {
    let [x, y] = rows(ROWS)?;
    let full = ROWS / BATCH * BATCH;
    x.narrow(0, full, ROWS - full)?.mul_(10.0)?;
    Ok([x, y])
}

pub(super) fn model(hidden: usize, device: Device) -> Result<nn::Sequential> {
    let (first, last) = (nn::Linear::new(FEATURES, hidden)?, nn::Linear::new(hidden, CLASSES as usize)?);
    let model = nn::Sequential::new((first, nn::ReLU, nn::Dropout::new(0.2)?, last));
    model.to(device)?;
    Ok(model)
}

pub(super) fn sgd(model: &nn::Sequential) -> Result<optim::SGD> {
    optim::SGD::new(model.parameters(), SGDOptions { lr: 0.5, momentum: 0.9, ..Default::default() })
}

pub(super) fn scaler() -> Result<GradScaler> {
    GradScaler::new(GradScalerOptions { init_scale: 1024.0, ..Default::default() })
}

/// A loader of the check's own, whose batches all have their turn in the same order.
pub(super) fn batches(x: &Tensor, y: &Tensor) -> Result<Loader> {
    let options = DataLoaderOptions { batch_size: BATCH, pin_memory: true, ..Default::default() };
    DataLoader::new(TensorDataset::new([x.clone(), y.clone()])?, options)
}

pub(super) fn weights() -> Result<Tensor> {
    Tensor::linspace(0.5, 1.5, (CLASSES as usize, DType::F32))
}

/// The first product takes memory for its workspace, and the first of all work takes a context. What is dropped here stays in the
/// cache.
pub(super) fn warm(device: Device) -> Result<()> {
    if device.is_cuda() {
        let x = Tensor::ones((&[16, 16], device))?;
        x.matmul(&x)?;
        Tensor::zeros((&[3 << 20], device))?;
        cuda::device(device.index(), cuda::synchronize)??;
    }
    Ok(())
}

/// Notes the values of tensors, and where they are.
pub(super) fn note(
    facts: &mut BTreeMap<String, Value>,
    name: &str,
    value: impl crate::IntoValue,
) -> Result<()> {
    facts.insert(name.to_owned(), value.into_value()?);
    Ok(())
}

/// How parameters have changed.
pub(super) fn changes(model: &impl Module, before: &StateDict) -> Result<Tensor> {
    let now = model.state_dict();
    let changes = now.iter().map(|(name, tensor)| {
        let before = before.get(name).cloned().ok_or_else(|| Error::custom("a parameter is new"))?;
        (tensor.detach() - before)?.reshape(&[-1])
    });
    Tensor::cat(&changes.collect::<Result<Vec<_>>>()?, 0)
}

/// The size and direction of many numbers together. Numbers that were rounded in another place
/// look the same.
pub(super) fn direction(changes: &Tensor) -> Result<Value> {
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
            // The tolerance is a few hundredths, for values around 8.
            told.push(Value::Number(8.0 + cosine));
        }
        Ok(Value::List(told))
    })
}

/// A model to be looked at, which is in training mode, and rows.
pub(super) fn given(case: &Case, width: usize) -> (nn::Sequential, [Tensor; 2]) {
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

/// A model that has been trained a little, and its optimizer.
pub(super) fn used(width: usize, device: Device) -> Result<(nn::Sequential, optim::SGD)> {
    let model = model(width, device)?;
    let mut optimizer = sgd(&model)?;
    let [x, y] = rows(32)?;
    model.forward(&x.to(device)?)?.cross_entropy(&y.to(device)?)?.backward()?;
    optimizer.step()?;
    optimizer.zero_grad();
    Ok((model, optimizer))
}
