//! A network of convolutions on images: where mixed precision has something to gain.

use std::time::Duration;

use todevice::amp::{self, GradScaler};
use todevice::data::vision::{self, Sets, Transform};
use todevice::prelude::*;

use super::scaling::scaler_of;
use super::training::casting;
use super::{Options, median, peak_of, time_of};
use crate::lab::Progress;
use crate::{Lab, Table, Text, exact, observed, row, text, timed};

/// The images of `--data DIR`.
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
    let padded = nn::Conv2dOptions { padding: 1.into(), ..Default::default() };
    let model = nn::Sequential::new((
        nn::Conv2d::with_options(channels, 8, 3, padded)?,
        nn::ReLU,
        nn::MaxPool2d::new(2), // half as high and half as wide
        nn::Conv2d::with_options(8, 16, 3, padded)?,
        nn::ReLU,
        nn::MaxPool2d::new(2),
        nn::Flatten::default(),
        nn::Linear::new(16 * (height / 4) * (width / 4), 10)?,
    ));
    model.to(device)?;
    Ok(model)
}
// ANCHOR_END: convolutions

/// What a training run came to.
struct Trained {
    loss: f64,
    skipped: usize,
    step_time: Duration,
}

fn train(
    model: &nn::Sequential,
    device: Device,
    half: Option<DType>,
    loader: &DataLoader<vision::Images>,
    epochs: usize,
    progress: &Progress,
) -> crate::Result<Trained> {
    // ANCHOR: train_images
    let options = AdamOptions { lr: 0.003, ..Default::default() };
    let mut optimizer = optim::Adam::new(model.parameters(), options)?;
    let mut scaler =
        GradScaler::new(scaler_of(device, half == Some(DType::F16), 65536.0))?;
    let mut step = |x: &Tensor, y: &Tensor| {
        optimizer.zero_grad();
        let loss = amp::autocast(casting(device, half), || {
            model.forward(x)?.cross_entropy(y, &CrossEntropyOptions::default())
        })?;
        scaler.scale(&loss)?.backward()?;
        let taken = scaler.step(&mut optimizer)?;
        scaler.update()?;
        Ok((loss.detach(), taken))
    };
    // ANCHOR_END: train_images
    let (mut last, mut skipped, mut times) = (None, 0, Vec::new());
    for _ in 0..epochs {
        for batch in loader {
            let (x, y) = batch?;
            let (x, y) = (x.to(device)?, y.to(device)?);
            let ((loss, taken), time) = time_of(device, || step(&x, &y))?;
            skipped += usize::from(!taken);
            times.push(time);
            last = Some(loss);
            progress.inc(1);
        }
    }
    let loss = last.ok_or("there is no batch")?.item()?;
    Ok(Trained { loss, skipped, step_time: median(times) })
}

/// The share of images whose class the network says.
fn share_right(
    model: &nn::Sequential,
    device: Device,
    half: Option<DType>,
    loader: &DataLoader<vision::Images>,
) -> Result<f64> {
    let (mut right, mut images) = (0.0, 0);
    for batch in loader {
        let (x, y) = batch?;
        let scores = no_grad(|| {
            amp::autocast(casting(device, half), || model.forward(&x.to(device)?))
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

pub(super) fn on_images(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let (device, seed) = (lab.device(), lab.seed());
    lab.think(
        "06-images",
        "A network with two convolutions learns to tell images apart. Which type is faster here, float32 or float16?",
    );
    let sets = images(options.data.as_ref())?;
    let [channels, height, width] = sets.train.shape();
    lab.print(text!(
        "Images: {}, {} for training, {} for testing, each of {}",
        exact("set", sets.train.name()),
        exact("train_images", sets.train.len()),
        exact("test_images", sets.test.len()),
        exact("image_sizes", format!("{channels} x {height} x {width}"))
    ));
    let batches = |of: &vision::Images, shuffle| {
        let batch_size = options.batch_size;
        DataLoader::new(
            of.clone(),
            DataLoaderOptions { batch_size, shuffle, ..Default::default() },
        )
    };
    let test = batches(&sets.test, false)?;
    let warm = Tensor::ones_with(&[8, 8], device)?;
    warm.matmul(&warm)?; // with its first product the library takes memory of its own
    let mut learned =
        Table::new(["trained in", "loss", "share right", "steps skipped"]);
    let memory = device.is_cuda().then_some("memory");
    let mut took = Table::new(["trained in", "a step"].into_iter().chain(memory));
    let ways = [
        ("float32", None),
        ("float16, scaler", Some(DType::F16)),
        ("bfloat16", Some(DType::BF16)),
    ];
    let mut times = Vec::new();
    let steps = options.epochs * sets.train.len().div_ceil(options.batch_size);
    let progress = lab.progress(ways.len() * steps, "training");
    for (name, half) in ways {
        let model = convolutions(seed, sets.train.shape(), device)?;
        let train_loader = batches(&sets.train, true)?; // the seed was set: each run has the same batches
        let (trained, peak) = peak_of(device, || {
            train(&model, device, half, &train_loader, options.epochs, &progress)
        })?;
        times.push(trained.step_time);
        let right = share_right(&model, device, half, &test)?;
        // On a real GPU it depends on the cuDNN that is there, if any is.
        let skipped = if device.is_cuda() { observed } else { exact }(
            "image_skipped",
            trained.skipped,
        );
        learned = learned.row(row![
            name,
            exact("image_loss", trained.loss).digits(1),
            exact("image_accuracy", right).digits(1),
            skipped
        ]);
        let mut cells = row![name, timed("image_step", trained.step_time).digits(2)];
        if device.is_cuda() {
            cells
                .push(observed("image_memory", peak.div_ceil(1024)).unit("KiB").into());
        }
        took = took.row(cells);
    }
    progress.finish();
    lab.table(learned);
    lab.table(took);
    if !device.is_cuda() {
        lab.prose("A CPU has no tensor cores, so it converts. With --gpu sim:t4 the same network gains.");
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
