//! Lab 03: the training loop. A complete one for numbers, then one for classes.

use todevice::Machine;
use todevice::cuda;
use todevice::prelude::*;
use todevice::time::Instant;

use crate::cli::count;
use crate::{Entry, Lab, Table, exact, row, text, timed};

pub const LAB: Entry<Options> = Entry { name: "lab-03", title: "The training loop", run };

/// The knobs of this lab, with PyTorch's names.
#[derive(clap::Args)]
pub struct Options {
    /// Samples per batch
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(1..=65_536))]
    pub batch_size: usize,

    /// Passes over the dataset
    #[arg(long, value_name = "N", default_value = "3", value_parser = count(1..=1000))]
    pub epochs: usize,

    /// Threads that load batches; 0 loads them in the loop itself
    #[arg(long, value_name = "N", default_value = "2", value_parser = count(0..=64))]
    pub num_workers: usize,

    /// Whether batches are put in pinned memory, from where copies to a GPU are fast
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub pin_memory: bool,

    /// What the network is to learn: random numbers, or a linear function of the features
    #[arg(long, value_name = "TARGET", default_value = "noise")]
    pub target: Target,
}

/// What the network is to learn.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Noise,
    Linear,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let Options { batch_size, epochs, num_workers, pin_memory, target } = *options;

    lab.section(1, "The device");
    lab.predict(
        "The same program trains with a GPU and without one. On which does it train here, and will its losses be \
         the same on the other?",
    );
    // ANCHOR: device
    manual_seed(lab.seed());
    let device = lab.device();
    lab.print(text!("Training on device: {device}"));
    // ANCHOR_END: device

    lab.section(2, "The data");
    // ANCHOR: data
    let x = Tensor::randn(&[1024, 16])?;
    let y = match target {
        Target::Noise => Tensor::randn(&[1024, 1])?,
        Target::Linear => (x.matmul(&Tensor::randn(&[16, 1])?)? / 4.0)?,
    };
    // Two errors of an answer that needs no network: always 0.
    let zero_mse = y.square()?.mean()?.item()?;
    let zero_mae = y.abs()?.mean()?.item()?;

    let loader = DataLoader::new(
        TensorDataset::new([x, y])?,
        DataLoaderOptions { batch_size, shuffle: true, num_workers, pin_memory, ..Default::default() },
    )?;
    // ANCHOR_END: data
    lab.figure(exact("num_samples", loader.dataset().len()));
    let num_batches = loader.len();
    lab.figure(exact("num_batches", num_batches));

    lab.section(3, "The model, the loss and the optimizer");
    // ANCHOR: model
    let model = nn::Sequential::new((nn::Linear::new(16, 64)?, nn::ReLU, nn::Linear::new(64, 1)?));
    model.to(device)?; // once, before the loop

    let loss_fn = nn::MSELoss::default();
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions { lr: 1e-3, ..Default::default() })?;
    // ANCHOR_END: model
    lab.report(&model);
    let num_parameters: usize = model.parameters().iter().map(|parameter| parameter.numel()).sum();
    lab.figure(exact("num_parameters", num_parameters));

    lab.section(4, "Training");
    lab.predict("Each line shows a loss. After the last epoch, will it be lower than after the first?");
    let progress = lab.progress(epochs * loader.len(), "training");
    let mut means = Table::new(["epoch", "loss of the last batch", "mean loss of the epoch"]);
    let (before, start) = (Machine::current().counters(), Instant::now());
    // ANCHOR: train
    for epoch in 1..=epochs {
        model.train();
        let mut losses = Vec::new();
        for batch in &loader {
            let [x, y] = batch?;
            let (x, y) = (x.to(device)?, y.to(device)?); // every batch

            let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;

            losses.push(loss.detach());
            progress.inc(1);
        }
        let last = losses[losses.len() - 1].item()?;
        lab.print(text!("Epoch [{epoch}/{epochs}], Loss: {:.4}", exact("loss", last)));

        let mean = Tensor::stack(&losses, 0)?.mean()?.item()?;
        means = means.row(row![
            exact("epoch", epoch),
            exact("last_loss", last),
            exact("mean_loss", mean).digits(3)
        ]);
    }
    // ANCHOR_END: train
    progress.finish();
    let (during, time) = (Machine::current().counters() - before, start.elapsed());

    lab.section(5, "Evaluation");
    // ANCHOR: evaluate
    model.eval();
    let error = no_grad(|| mean_absolute_error(&model, &loader, device))?;
    // ANCHOR_END: evaluate
    lab.print(text!(
        "Evaluation complete. Mean Absolute Error on the dataset: {:.4}",
        exact("mean_absolute_error", error)
    ));

    lab.section(6, "Is it learning?");
    lab.prose(
        "The loss printed after an epoch is that of its last batch alone. The mean over the epoch is steadier, \
         and both mean little without something to compare with: what would a model get that always answers 0?",
    );
    lab.table(means);
    lab.table(
        Table::new(["always answering 0", "error"])
            .row(row!["mean squared error (the loss)", exact("zero_mean_squared_error", zero_mse)])
            .row(row!["mean absolute error", exact("zero_mean_absolute_error", zero_mae)]),
    );
    lab.prose(match target {
        Target::Noise => {
            "The targets are random numbers that have nothing to do with the features, so there is nothing to \
             learn but the samples themselves. Try --target linear."
        }
        Target::Linear => "The targets are a linear function of the features, so there is something to learn.",
    });

    lab.section(7, "The same loop for classes");
    classify(lab, options)?;

    lab.section(8, "What the GPU did in section 4");
    if !device.is_cuda() {
        lab.prose("Nothing: the model and its data stayed on the CPU.");
        if !cuda::is_available() {
            lab.prose("This machine has no GPU. --gpu sim:t4 simulates one.");
        }
        return Ok(());
    }
    lab.predict("Each step copies one batch to the GPU. How many numbers come back to the CPU in an epoch?");
    let steps = epochs * num_batches;
    let per_step = during.launches as f64 / steps as f64;
    lab.table(
        Table::new(["counted in training", ""])
            .row(row!["steps", exact("steps", steps)])
            .row(row!["copies to the GPU", exact("copies_to_device", during.copies_to_device)])
            .row(row!["  their bytes", exact("bytes_to_device", during.bytes_to_device)])
            .row(row!["copies to the CPU", exact("copies_to_host", during.copies_to_host)])
            .row(row!["  their bytes", exact("bytes_to_host", during.bytes_to_host)])
            .row(row!["kernels launched", exact("launches", during.launches)])
            .row(row!["  in a step", exact("launches_per_step", per_step).digits(1)])
            .row(row!["time of a step", timed("step_time", time / steps as u32)]),
    );
    lab.prose(
        "Two copies to the GPU in each step: the features and the targets of a batch. The kernels are those of the \
         forward pass, the backward pass and the optimizer. The losses stay on the GPU \
         until an epoch is over; then two numbers come back, the last loss and the mean. Each of those reads \
         makes the CPU wait until the GPU has caught up, which is why the loop does not read the loss in every \
         step.",
    );
    Ok(())
}

// ANCHOR: mean_absolute_error
fn mean_absolute_error(
    model: &impl Module,
    loader: &DataLoader<TensorDataset<2>>,
    device: Device,
) -> Result<f64> {
    let (mut total, mut num_samples) = (0.0, 0);
    for batch in loader {
        let [x, y] = batch?;
        let (x, y) = (x.to(device)?, y.to(device)?);
        let predictions = model.forward(&x)?;
        total += (predictions - &y)?.abs()?.sum()?.item()?;
        num_samples += x.size(0)?;
    }
    Ok(total / num_samples as f64)
}
// ANCHOR_END: mean_absolute_error

/// Four classes, and a network that gives each a score.
fn classify(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let Options { batch_size, epochs, num_workers, pin_memory, .. } = *options;
    let device = lab.device();

    // ANCHOR: classes
    manual_seed(lab.seed());
    let x = Tensor::randn(&[1024, 16])?;
    // The class of a sample is the direction, of four random ones, that it points to most.
    let y = x.matmul(&Tensor::randn(&[16, 4])?)?.argmax(1, false)?;
    let loader = DataLoader::new(
        TensorDataset::new([x, y])?,
        DataLoaderOptions { batch_size, shuffle: true, num_workers, pin_memory, ..Default::default() },
    )?;

    let model = nn::Sequential::new((nn::Linear::new(16, 64)?, nn::ReLU, nn::Linear::new(64, 4)?));
    model.to(device)?;
    let loss_fn = nn::CrossEntropyLoss::default();
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions { lr: 1e-3, ..Default::default() })?;
    // ANCHOR_END: classes

    lab.predict("Four classes, and a network that knows nothing yet. What is its first loss?");
    let every = loader.len().div_ceil(4);
    // ANCHOR: train_classes
    let size = loader.dataset().len();
    for epoch in 1..=epochs {
        lab.print(text!("Epoch {epoch}"));
        model.train();
        for (batch, samples) in loader.iter().enumerate() {
            let [x, y] = samples?;
            let (x, y) = (x.to(device)?, y.to(device)?);

            let prediction = model.forward(&x)?;
            let loss = loss_fn.forward(&prediction, &y)?;

            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;

            if batch % every == 0 {
                let current = batch * batch_size;
                let loss = exact("cross_entropy", loss.item()?);
                lab.print(text!("loss: {:.3}  [{current:>5}/{size:>5}]", loss));
            }
        }
    }
    // ANCHOR_END: train_classes

    // ANCHOR: accuracy
    model.eval();
    let correct = no_grad(|| count_correct(&model, &loader, device))?;
    let accuracy = 100.0 * correct as f64 / size as f64;
    // ANCHOR_END: accuracy
    lab.print(text!("Accuracy: {:.1} %", exact("accuracy", accuracy)));
    lab.prose(
        "Guessing one of four classes costs ln 4 = 1.3863: about where the loss starts, and 25 % would be right \
         by chance.",
    );
    Ok(())
}

// ANCHOR: count_correct
fn count_correct(
    model: &impl Module,
    loader: &DataLoader<TensorDataset<2>>,
    device: Device,
) -> Result<usize> {
    let mut correct = 0;
    for batch in loader {
        let [x, y] = batch?;
        let (x, y) = (x.to(device)?, y.to(device)?);
        let classes = model.forward(&x)?.argmax(1, false)?;
        correct += classes.eq(&y)?.sum()?.item()? as usize;
    }
    Ok(correct)
}
// ANCHOR_END: count_correct
