//! The program of the final assessment, without a fault. What a student gets is the text between the two marks, with the values of
//! `numbers()` written out and twelve faults planted.

use super::numbers::numbers;

// BEGIN
use todevice::amp::{self, GradScaler};
use todevice::cuda::{self, Stream};
use todevice::nn::StateDict;
use todevice::nn::utils::{ClipGradNormOptions, clip_grad_norm_};
use todevice::prelude::*;
use todevice::serialize::{self, Dict, Value};
use todevice::{DeviceType, ToOptions};

/// Batches of rows and their classes.
pub type Loader = DataLoader<TensorDataset<2>>;

/// A classifier of 128 features and 8 classes with numbers().hidden hidden units, in training mode: a
/// linear layer, ReLU, dropout of 0.2, and a linear layer.
pub fn network(device: Device) -> Result<nn::Sequential> {
    let (hidden, classes) = (nn::Linear::new(128, numbers().hidden)?, nn::Linear::new(numbers().hidden, 8)?);
    let model =
        nn::Sequential::new((hidden, nn::ReLU, nn::Dropout::new(0.2)?, classes));
    model.to(device)?;
    Ok(model)
}

/// Batches of numbers().batch rows, pinned, in a new order each epoch.
pub fn loader(x: &Tensor, y: &Tensor) -> Result<Loader> {
    let options = DataLoaderOptions {
        batch_size: numbers().batch,
        shuffle: true,
        pin_memory: true,
        ..Default::default()
    };
    DataLoader::new(TensorDataset::new([x.clone(), y.clone()])?, options)
}

/// Each feature of a batch minus its mean, divided by (its standard deviation plus
/// numbers().epsilon). The standard deviation has the correction 1.
pub fn normalize(x: &Tensor) -> Result<Tensor> {
    let mean = x.mean_dims(&[0], true)?;
    let deviation = x.std(&[0], 1, true)?;
    (x - mean)? / (deviation + numbers().epsilon)?
}

/// A batch with normal noise, whose standard deviation is numbers().noise.
pub fn augment(x: &Tensor) -> Result<Tensor> {
    let noise = Tensor::randn((x.sizes(), x.device()))?;
    x + (noise * numbers().noise)?
}

/// One epoch, with gradients clipped to a norm of numbers().clip. `weights` are those of the classes
/// in the cross-entropy. Gradients from before count for nothing. Returns the mean loss, in which
/// each batch counts by its rows.
pub fn train(
    model: &nn::Sequential,
    optimizer: &mut optim::SGD,
    scaler: &mut GradScaler,
    loader: &Loader,
    weights: &Tensor,
    device: Device,
) -> Result<Tensor> {
    let to =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    let weight = Some(weights.to(device)?);
    let options = CrossEntropyOptions { weight, ..Default::default() };
    let mut total = Tensor::zeros((&[], device))?;
    model.train();
    for batch in loader {
        let [x, y] = batch?;
        let (x, y) = (x.to(to)?, y.to(to)?);
        let rows = x.size(0)? as f64;
        optimizer.zero_grad();
        let loss = amp::autocast(DeviceType::Cuda, || {
            model.forward(&x)?.cross_entropy((&y, options.clone()))
        })?;
        scaler.scale(&loss)?.backward()?;
        scaler.unscale_(optimizer)?;
        let clipping = ClipGradNormOptions::default();
        clip_grad_norm_(&model.parameters(), numbers().clip, clipping)?;
        scaler.step(optimizer)?;
        scaler.update()?;
        total = (total + (loss.detach() * rows)?)?;
    }
    total / loader.dataset().len() as f64
}

/// One step with the mean gradient of several batches of equal size, clipped to a norm of
/// numbers().norm. Gradients from before count for nothing. Returns the mean loss of the batches.
pub fn accumulate(
    model: &nn::Sequential,
    optimizer: &mut optim::SGD,
    scaler: &mut GradScaler,
    batches: &[[Tensor; 2]],
    weights: &Tensor,
    device: Device,
) -> Result<Tensor> {
    let weight = Some(weights.to(device)?);
    let options = CrossEntropyOptions { weight, ..Default::default() };
    let mut losses = Vec::new();
    model.train();
    optimizer.zero_grad();
    for [x, y] in batches {
        let (x, y) = (x.to(device)?, y.to(device)?);
        let loss = amp::autocast(DeviceType::Cuda, || {
            model.forward(&x)?.cross_entropy((&y, options.clone()))
        })?;
        let share = (&loss / batches.len() as f64)?;
        scaler.scale(&share)?.backward()?;
        losses.push(loss.detach());
    }
    scaler.unscale_(optimizer)?;
    let clipping = ClipGradNormOptions::default();
    clip_grad_norm_(&model.parameters(), numbers().norm, clipping)?;
    scaler.step(optimizer)?;
    scaler.update()?;
    Tensor::stack(&losses, 0)?.mean()
}

/// Trains a new last layer, once, 96 rows at a time: SGD with a learning rate of numbers().rate, a
/// momentum of 0.9, and gradients clipped to a norm of 0.1. Gradients from before count for nothing.
/// The body stays as it is, and has no dropout. Returns the loss of each batch.
pub fn fine_tune(
    body: &nn::Sequential,
    head: &nn::Linear,
    scaler: &mut GradScaler,
    [x, y]: [&Tensor; 2],
    weights: &Tensor,
    device: Device,
) -> Result<Tensor> {
    let rate = SGDOptions { lr: numbers().rate, momentum: 0.9, ..Default::default() };
    let mut optimizer = optim::SGD::new(head.parameters(), rate)?;
    let weight = Some(weights.to(device)?);
    let options = CrossEntropyOptions { weight, ..Default::default() };
    let mut losses = Vec::new();
    body.eval();
    for (x, y) in x.split(96, 0)?.iter().zip(y.split(96, 0)?) {
        let (x, y) = (x.to(device)?, y.to(device)?);
        let loss = amp::autocast(DeviceType::Cuda, || {
            let features = no_grad(|| body.forward(&x))?;
            head.forward(&features)?.cross_entropy((&y, options.clone()))
        })?;
        optimizer.zero_grad();
        scaler.scale(&loss)?.backward()?;
        scaler.unscale_(&optimizer)?;
        let clipping = ClipGradNormOptions::default();
        clip_grad_norm_(&head.parameters(), 0.1, clipping)?;
        scaler.step(&mut optimizer)?;
        scaler.update()?;
        losses.push(loss.detach());
    }
    Tensor::stack(&losses, 0)
}

/// The share of rows classified correctly, and the mean loss of a row with all outputs
/// divided by numbers().temperature.
pub fn evaluate(
    model: &nn::Sequential,
    loader: &Loader,
    device: Device,
) -> Result<[f64; 2]> {
    let to =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    let options =
        CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() };
    let mut right = Tensor::zeros((&[], device))?;
    let mut total = Tensor::zeros((&[], device))?;
    model.eval();
    for batch in loader {
        let [x, y] = batch?;
        let (x, y) = (x.to(to)?, y.to(to)?);
        let outputs =
            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;
        let outputs = (outputs.to(DType::F32)? / numbers().temperature)?;
        let hits = outputs.argmax(1, false)?.eq(&y)?.to(DType::F32)?;
        right = (right + hits.sum()?)?;
        total = (total + outputs.cross_entropy((&y, options.clone()))?)?;
    }
    let rows = loader.dataset().len() as f64;
    Ok([right.item()? / rows, total.item()? / rows])
}

/// The class of each row, on the host; -1 where its probability is below numbers().least. Takes
/// 100 rows at a time.
pub fn predict(model: &nn::Sequential, x: &Tensor, device: Device) -> Result<Tensor> {
    let mut classes = Vec::new();
    model.eval();
    for x in x.split(100, 0)? {
        let x = x.to(device)?;
        let outputs =
            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;
        let (probability, class) =
            outputs.to(DType::F32)?.softmax(1)?.max_dim(1, false)?;
        classes.push(class.masked_fill(&probability.lt(numbers().least)?, -1)?.cpu()?);
    }
    Tensor::cat(&classes, 0)
}

/// The mean output of a model over all rows, times numbers().shrink, on the device.
pub fn center(
    model: &nn::Sequential,
    loader: &Loader,
    device: Device,
) -> Result<Tensor> {
    let to =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    let mut sums = Vec::new();
    model.eval();
    for batch in loader {
        let [x, _] = batch?;
        let x = x.to(to)?;
        let outputs =
            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;
        sums.push(outputs.to(DType::F32)?.sum_dims(&[0], false)?);
    }
    let sum = Tensor::stack(&sums, 0)?.sum_dims(&[0], false)?;
    sum * (numbers().shrink / loader.dataset().len() as f64)
}

/// Entry [i, j]: how many rows of class i were predicted as class j. Rows of class
/// numbers().ignored count for nothing.
pub fn confusion(predicted: &Tensor, actual: &Tensor) -> Result<Tensor> {
    let counted = actual.ne(numbers().ignored)?.to(DType::F32)?;
    let pairs = ((actual * 8)? + predicted)?;
    let counts = Tensor::zeros((&[64], predicted.device()))?;
    counts.scatter_add(0, &pairs, &counted)?.reshape(&[8, 8])
}

/// The recall of each class from a confusion matrix: right, divided by (all of that class plus
/// numbers().prior).
pub fn recall(counts: &Tensor) -> Result<Tensor> {
    let diagonal = Tensor::eye((8, counts.device()))?;
    let right = (counts * diagonal)?.sum_dims(&[1], false)?;
    right / (counts.sum_dims(&[1], false)? + numbers().prior)?
}

/// A running mean of a model's weights: numbers().decay times the mean so far plus
/// (1 - numbers().decay) times the model's weights. It begins as a copy of the model's weights.
pub fn average(mean: Option<StateDict>, model: &nn::Sequential) -> Result<StateDict> {
    let Some(mean) = mean else { return model.state_dict().copy() };
    for (name, weight) in model.state_dict().iter() {
        if let Some(mean) = mean.get(name) {
            mean.mul_(numbers().decay)?.add_(&(weight * (1.0 - numbers().decay))?)?;
        }
    }
    Ok(mean)
}

/// Keeps the weights, and their score, where the score is better by more than numbers().margin.
pub fn keep_best(
    best: &mut (f64, StateDict),
    score: f64,
    model: &nn::Sequential,
) -> Result<()> {
    if score > best.0 + numbers().margin {
        *best = (score, model.state_dict().copy()?);
    }
    Ok(())
}

/// The bytes of a checkpoint: "model", "optimizer", and under "numbers().epoch" the epoch.
pub fn checkpoint(
    model: &nn::Sequential,
    optimizer: &optim::SGD,
    epoch: i64,
) -> Result<Vec<u8>> {
    serialize::to_bytes(Dict::from_iter([
        ("model", Value::from(model.state_dict())),
        ("optimizer", optimizer.state_dict().into()),
        (numbers().epoch, epoch.into()),
    ]))
}

/// Goes on from such a checkpoint, of any machine, on the device. Returns the epoch, which
/// this older format has under "numbers().round".
pub fn resume(
    file: &[u8],
    model: &nn::Sequential,
    optimizer: &mut optim::SGD,
    device: Device,
) -> Result<i64> {
    let loaded = serialize::from_bytes(file, Device::Cpu)?;
    let checkpoint = loaded.as_dict()?;
    let weights = StateDict::try_from(checkpoint.at("model")?)?;
    model.load_state_dict(&weights, true)?;
    model.to(device)?;
    optimizer.load_state_dict(checkpoint.at("optimizer")?.as_dict()?)?;
    checkpoint.at(numbers().round)?.as_int()
}

/// Loads the weights alone, from the entry "numbers().weights" of a file of any machine.
pub fn restore(file: &[u8], model: &nn::Sequential, device: Device) -> Result<()> {
    let loaded = serialize::from_bytes(file, Device::Cpu)?;
    let weights = StateDict::try_from(loaded.as_dict()?.at(numbers().weights)?)?;
    model.load_state_dict(&weights, true)?;
    model.to(device)?;
    Ok(())
}

/// The entries "mean" and "deviation" of a file of any machine, on the device. No deviation
/// is below numbers().floor.
pub fn statistics(file: &[u8], device: Device) -> Result<[Tensor; 2]> {
    let loaded = serialize::from_bytes(file, Device::Cpu)?;
    let entries = loaded.as_dict()?;
    let mean = entries.at("mean")?.as_tensor()?.to(device)?;
    let deviation = entries.at("deviation")?.as_tensor()?.to(device)?;
    Ok([mean, deviation.clamp(numbers().floor, None)?])
}

/// Sends pinned batches to the GPU on the stream `copies`. `work` gets each, times numbers().gain,
/// on the current stream, while the next one is on its way.
pub fn upload(
    batches: &[Tensor],
    copies: &Stream,
    work: &mut dyn FnMut(Tensor) -> Result<()>,
) -> Result<()> {
    let device = copies.device();
    let compute = cuda::current_stream(device)?;
    let to =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    for batch in batches {
        let x = cuda::stream(copies, || batch.to(to))?;
        let sent = copies.record_event()?;
        compute.wait_event(&sent)?;
        x.record_stream(&compute)?;
        work((x * numbers().gain)?)?;
    }
    Ok(())
}

/// The largest number of each output, times numbers().scale. They go to the host on the stream
/// `copies`, while the current stream makes the next.
pub fn download(outputs: &[Tensor], copies: &Stream) -> Result<Vec<f64>> {
    let compute = cuda::current_stream(copies.device())?;
    let to = ToOptions {
        device: Some(Device::Cpu),
        non_blocking: true,
        ..Default::default()
    };
    let mut arrived = Vec::new();
    for output in outputs {
        let scaled = (output * numbers().scale)?;
        let ready = compute.record_event()?;
        copies.wait_event(&ready)?;
        scaled.record_stream(copies)?;
        arrived.push(cuda::stream(copies, || scaled.to(to))?);
    }
    copies.synchronize()?;
    arrived.iter().map(|scaled| scaled.max()?.item()).collect()
}

/// The tanh of x through two layers side by side, each a product and a ReLU: the left one on the
/// stream `side`, the right one on the current stream at the same time. Returns numbers().mix times
/// the left plus (1 - numbers().mix) times the right.
pub fn blend(x: &Tensor, [left, right]: [&Tensor; 2], side: &Stream) -> Result<Tensor> {
    let compute = cuda::current_stream(side.device())?;
    let x = x.tanh()?;
    let ready = compute.record_event()?;
    side.wait_event(&ready)?;
    let a = cuda::stream(side, || x.matmul(left)?.relu())?;
    let done = side.record_event()?;
    x.record_stream(side)?;
    let b = x.matmul(right)?.relu()?;
    compute.wait_event(&done)?;
    a.record_stream(&compute)?;
    (a * numbers().mix)? + (b * (1.0 - numbers().mix))?
}

/// Trains a network that classifies rows it has never seen, and returns it. The rules on float16 and
/// dropout do not bind here. New rows come as they are, just like `x`.
pub fn fit(x: &Tensor, y: &Tensor, device: Device) -> Result<nn::Sequential> {
    let model = network(device)?;
    let lr = 0.02 / numbers().clip;
    let rate = SGDOptions { lr, momentum: 0.9, ..Default::default() };
    let mut optimizer = optim::SGD::new(model.parameters(), rate)?;
    let mut scaler = GradScaler::new(Default::default())?;
    let weights = Tensor::ones(&[8])?;
    let mut best = (0.0, StateDict::default());
    for _epoch in 0..3 {
        let mut scaled = Vec::new();
        for row in x.split(1, 0)? {
            let centered = (&row - row.mean()?)?;
            scaled.push((&centered / centered.square()?.mean()?.sqrt()?)?);
        }
        let x = Tensor::cat(&scaled, 0)?;
        let options =
            DataLoaderOptions { batch_size: 8, shuffle: true, ..Default::default() };
        let rows = DataLoader::new(TensorDataset::new([x.clone(), y.clone()])?, options)?;
        train(&model, &mut optimizer, &mut scaler, &rows, &weights, device)?.item()?;
        let [right, _] = evaluate(&model, &rows, device)?;
        keep_best(&mut best, right, &model)?;
    }
    model.load_state_dict(&best.1, true)?;
    Ok(model)
}
// END
