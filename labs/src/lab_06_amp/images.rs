//! A network of convolutions on images, which profits from mixed precision.

use std::time::Duration;

use todevice::amp::{self, GradScaler};
use todevice::data::Subset;
use todevice::data::vision::{self, Sets, Transform};
use todevice::prelude::*;

use super::scaling::scaler_of;
use super::training::casting;
use super::{Options, median, peak_of, time_of};
use crate::Progress;
use crate::frame::clock::modelled_or_measured;
use crate::{Lab, Table, Text, exact, observed, rounded_by, row, text, timed};

pub(super) fn in_folder(folder: &str) -> Result<Sets, String> {
    vision::open(Some(folder.as_ref())).map_err(|error| error.to_string())
}

// ANCHOR: images
/// Images with pixels from -2 to 2: from files, or made here.
fn images(files: Option<&Sets>) -> Result<Sets> {
    let sets = files.cloned().map_or_else(|| vision::open(None), Ok)?;
    let channels = sets.train.shape()[0];
    let normalize =
        Transform::Normalize { mean: vec![0.5; channels], std: vec![0.25; channels] };
    Ok(Sets {
        train: sets.train.with_transform(normalize.clone())?,
        test: sets.test.with_transform(normalize)?,
    })
}
// ANCHOR_END: images

// ANCHOR: convolutions
fn convolutions(
    seed: u64,
    [channels, height, width]: [usize; 3],
    device: Device,
) -> Result<nn::Sequential> {
    manual_seed(seed);
    let padded =
        |by: usize| nn::Conv2dOptions { padding: by.into(), ..Default::default() };
    let model = nn::Sequential::new((
        nn::Conv2d::new(channels, 8, (5, padded(2)))?,
        nn::ReLU,
        nn::MaxPool2d::new(2), // half as high and half as wide
        nn::Conv2d::new(8, 16, (3, padded(1)))?,
        nn::ReLU,
        nn::MaxPool2d::new((height / 2, width / 2)), // the maximum, wherever it is
        nn::Flatten::default(),
        nn::Linear::new(16, 10)?,
    ));
    model.to(device)?;
    Ok(model)
}
// ANCHOR_END: convolutions

/// Images per batch in learning: few, so that there are many steps.
const LEARNED_FROM: usize = 8;

/// Images, and the class of each.
type Images = (Tensor, Tensor);

struct Trained {
    loss: f64,
    skipped: usize,
    times: Vec<Duration>,
}

fn train(
    model: &nn::Sequential,
    half: Option<DType>,
    scale: f64,
    batches: impl Iterator<Item = Result<Images>>,
    progress: &Progress,
    device: Device,
) -> crate::Result<Trained> {
    // ANCHOR: train_images
    let options = AdamOptions { lr: 0.01, ..Default::default() };
    let mut optimizer = optim::Adam::new(model.parameters(), options)?;
    let mut scaler =
        GradScaler::new(scaler_of(half == Some(DType::F16), scale, device))?;
    let mut step = |x: &Tensor, y: &Tensor| {
        optimizer.zero_grad();
        let loss = amp::autocast(casting(half, device), || {
            model.forward(x)?.cross_entropy(y)
        })?;
        scaler.scale(&loss)?.backward()?;
        let taken = scaler.step(&mut optimizer)?;
        scaler.update()?;
        Ok((loss.detach(), taken))
    };
    // ANCHOR_END: train_images
    let (mut last, mut skipped, mut times) = (None, 0, Vec::new());
    for batch in batches {
        let (x, y) = batch?;
        let (x, y) = (x.to(device)?, y.to(device)?);
        let ((loss, taken), time) = time_of(device, || step(&x, &y))?;
        skipped += usize::from(!taken);
        times.push(time);
        last = Some(loss);
        progress.inc(1);
    }
    let loss = last.ok_or("there is no batch")?.item()?;
    Ok(Trained { loss, skipped, times })
}

fn share_right(
    model: &nn::Sequential,
    half: Option<DType>,
    loader: &DataLoader<Subset<vision::Images>>,
    device: Device,
) -> Result<f64> {
    let (mut right, mut images) = (0.0, 0);
    for batch in loader {
        let (x, y) = batch?;
        let scores = no_grad(|| {
            amp::autocast(casting(half, device), || model.forward(&x.to(device)?))
        })?;
        right += scores
            .argmax(1, false)?
            .eq(&y.to(device)?)?
            .to(DType::F32)?
            .sum()?
            .item()?;
        images += y.numel();
    }
    Ok(right / images as f64)
}

const WAYS: [(&str, Option<DType>); 3] = [
    ("float32", None),
    ("float16, scaler", Some(DType::F16)),
    ("bfloat16", Some(DType::BF16)),
];

pub(super) fn on_images(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.think(
        "06-images",
        "A network with two convolutions learns to tell images apart. Which type is faster here, float32 or float16?",
    );
    let sets = images(options.data.as_ref())?;
    learn(lab, options, &sets)?;
    let times = steps(lab, options, &sets.train)?;
    if !lab.has_gpu_or("A CPU has no tensor cores, so it converts. With --gpu sim:t4 the same network gains.") {
        return Ok(());
    }
    let pace = match times[1].as_secs_f64() / times[0].as_secs_f64() {
        ratio if ratio < 0.95 => {
            "A convolution uses each number that it loads many times over, so the work on the card sets the pace, and \
             float16 shortens it."
        }
        ratio if ratio > 1.05 => {
            "This card is done before the host has asked for the next step, so the launches set the pace as in section 7, \
             and with float16 there are more of them. Try a larger --batch-size."
        }
        _ => "In float16 a step takes about as long as in float32.",
    };
    lab.prose(Text::from(pace).raced());
    lab.prose(
        "Activations are most of the memory, and most of them halve. The places that max_pool2d remembers for the backward \
         pass do not: they are integers.",
    );
    Ok(())
}

/// Trains the network in each dtype, and prints its accuracy.
fn learn(lab: &mut Lab, options: &Options, sets: &Sets) -> crate::Result<()> {
    let (device, seed, shape) = (lab.device(), lab.seed(), sets.train.shape());
    let count = options.images.min(sets.train.len());
    let train_images = Subset::new(sets.train.clone(), (0..count).collect());
    let test_count = count.div_ceil(4).min(sets.test.len());
    let test_images = Subset::new(sets.test.clone(), (0..test_count).collect());
    let [channels, height, width] = shape;
    lab.prose(text!(
        "Images: {}, each {}. {} of {} are for training, and {} of {} for testing.",
        exact("set", sets.train.name()),
        exact("image_sizes", format!("{channels} x {height} x {width}")),
        exact("train_images", count),
        exact("all_train_images", sets.train.len()),
        exact("test_images", test_count),
        exact("all_test_images", sets.test.len())
    ));
    let batches = |of: &Subset<vision::Images>, batch_size, shuffle| {
        let options = DataLoaderOptions { batch_size, shuffle, ..Default::default() };
        DataLoader::new(of.clone(), options)
    };
    let test_loader = batches(&test_images, 64, false)?;
    let mut table = Table::new(["trained in", "loss", "share right", "steps skipped"]);
    let steps = options.epochs * count.div_ceil(LEARNED_FROM);
    let progress = lab.progress(WAYS.len() * steps, "training");
    for (name, half) in WAYS {
        let model = convolutions(seed, shape, device)?;
        let train_loader = batches(&train_images, LEARNED_FROM, true)?; // the seed was set: each way has the same batches
        let shown = (0..options.epochs).flat_map(|_| &train_loader);
        let trained = train(&model, half, 65536.0, shown, &progress, device)?;
        let right = share_right(&model, half, &test_loader, device)?;
        // On a real GPU, this depends on the installed cuDNN, if any.
        let skipped = rounded_by("image_skipped", trained.skipped, device);
        table = table.row(row![
            name,
            exact("image_loss", trained.loss).digits(1),
            exact("image_accuracy", right).digits(1),
            skipped
        ]);
    }
    progress.finish();
    lab.table(table);
    Ok(())
}

/// The cost of a step in each dtype, with a batch that is large enough to keep a card busy.
fn steps(
    lab: &mut Lab,
    options: &Options,
    images: &vision::Images,
) -> crate::Result<Vec<Duration>> {
    let (device, seed) = (lab.device(), lab.seed());
    // Repeats the images if there are too few.
    let indices: Vec<usize> =
        (0..options.batch_size).map(|i| i % images.len()).collect();
    let batch = images.get_batch(&indices)?;
    // All modelled steps take the same time.
    let repeated = modelled_or_measured(1, 5);
    lab.print(text!(
        "A step with a batch of {}:",
        exact("batch_size", options.batch_size)
    ));
    let memory = lab.gpu().map(|_| "memory");
    let mut table = Table::new(["trained in", "a step"].into_iter().chain(memory));
    let mut times = Vec::new();
    for (name, half) in WAYS {
        let model = convolutions(seed, images.shape(), device)?;
        let batches = std::iter::repeat_n(&batch, 1 + repeated).cloned().map(Ok);
        let (trained, peak) = peak_of(device, || {
            // With a scale that skips no step.
            train(&model, half, 1024.0, batches, &Progress::hidden(), device)
        })?;
        let time = median(trained.times[1..].to_vec()); // the first step allocates memory
        let mut cells = row![name, timed("image_step", time).digits(2)];
        let memory =
            |peak: u64| observed("image_memory", peak.div_ceil(1024)).unit("KiB");
        cells.extend(peak.map(|peak| memory(peak).into()));
        table = table.row(cells);
        times.push(time);
    }
    lab.table(table);
    Ok(times)
}
