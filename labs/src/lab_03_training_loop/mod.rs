//! Lab 03: the training loop. A complete loop for regression, then one for classification.

use std::cmp::Reverse;
use std::time::Duration;

use drawing::placement::{Role, Thing, picture};
use drawing::words;
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::{Call, Counters, EventKind, Trace};
use todevice::{Machine, cuda};

use self::step::{Step, step_on};
use crate::frame::cli::count;
use crate::frame::clock::{host_runs_ahead, launches_wait, wait_for};
use crate::{
    Cell, Entry, Figure, Lab, Prediction, Run, Table, Text, Value, exact,
    machine_figure, row, text, timed,
};

pub mod step;

pub const LAB: Entry<Options> =
    Entry { name: "lab-03", title: "The training loop", run };

/// The knobs of this lab, with PyTorch's names.
#[derive(clap::Args)]
pub struct Options {
    /// Samples per batch
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(1..=65_536))]
    pub batch_size: usize,

    /// Passes over the dataset
    #[arg(long, value_name = "N", default_value = "3", value_parser = count(1..=1000))]
    pub epochs: usize,

    /// Threads that load batches; 0 loads them in the training loop
    #[arg(long, value_name = "N", default_value = "2", value_parser = count(0..=64))]
    pub num_workers: usize,

    /// Whether batches are in pinned memory, which makes copies to a GPU faster
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub pin_memory: bool,

    /// Target to learn: random numbers (noise), or a linear function of the features
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
    // The error of a model that always answers 0, measured in two ways.
    let zero_mse = y.square()?.mean()?.item()?;
    let zero_mae = y.abs()?.mean()?.item()?;

    let loader = DataLoader::new(
        TensorDataset::new([x, y])?,
        DataLoaderOptions {
            batch_size,
            shuffle: true,
            num_workers,
            pin_memory,
            ..Default::default()
        },
    )?;
    // ANCHOR_END: data
    lab.figure(exact("num_samples", loader.dataset().len()));
    let num_batches = loader.len();
    lab.figure(exact("num_batches", num_batches));

    lab.section(3, "The model, the loss and the optimizer");
    // ANCHOR: model
    let model = nn::Sequential::new((
        nn::Linear::new(16, 64)?,
        nn::ReLU,
        nn::Linear::new(64, 1)?,
    ));
    model.to(device)?; // once, before the loop

    let loss_fn = nn::MSELoss::default();
    let mut optimizer = optim::Adam::new(
        model.parameters(),
        AdamOptions { lr: 1e-3, ..Default::default() },
    )?;
    // ANCHOR_END: model
    lab.report(&model);
    let num_parameters: usize =
        model.parameters().iter().map(|parameter| parameter.numel()).sum();
    lab.figure(exact("num_parameters", num_parameters));

    lab.section(4, "Training");
    let lower = lab.predict(if epochs > 1 {
        Prediction::yes_no(
            "03-lower",
            "After each epoch the loop prints a loss. Is the last of these lower than the first?",
        )
        .because("Each is the loss of a single batch, and batches differ by chance.")
    } else {
        Prediction::think(
            "03-lower",
            "One epoch, and so one line with a loss. Can you tell from it whether the network learns?",
        )
    });
    let progress = lab.progress(epochs * loader.len(), "training");
    let mut means =
        Table::new(["epoch", "loss of the last batch", "mean loss of the epoch"]);
    let (before, start) = (Machine::current().counters(), Instant::now());
    for epoch in 1..=epochs {
        let (last, mean) =
            train_epoch(&model, &loader, &loss_fn, &mut optimizer, device)?;
        progress.inc(loader.len());
        lab.print(text!("Epoch [{epoch}/{epochs}], Loss: {:.4}", exact("loss", last)));
        means = means.row(row![
            exact("epoch", epoch),
            exact("last_loss", last),
            exact("mean_loss", mean).digits(3)
        ]);
    }
    progress.finish();
    let (during, time) = (Machine::current().counters() - before, start.elapsed());
    let losses =
        |column: usize| means.rows.iter().filter_map(move |row| number(&row[column]));
    let (first_line, last_line) = (losses(1).next(), losses(1).next_back());
    let last_mean = losses(2).next_back().unwrap_or_default();
    lab.answer(lower, last_line < first_line);

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
    let zero = lab.predict(
        Prediction::choice(
            "03-zero",
            "Compare two losses: the mean of the network's last epoch, and that of a model that has \
             learned nothing and always answers 0. Which is lower?",
        )
        .or(
            "network",
            "The network's, clearly.",
            "A loop that runs and prints losses need not have learned a thing.",
        )
        .or(
            "equal",
            "Neither: they are within 10 % of each other.",
            "Training has lowered the loss, so there was something to learn.",
        )
        .or(
            "zero",
            "That of the model that answers 0, clearly.",
            "A network soon learns to answer about 0, so it is rarely worse for long.",
        )
        .because(match target {
            Target::Noise => "The targets are random: there is nothing to learn but the samples themselves.",
            Target::Linear => "The targets are a linear function of the features, which a network can find.",
        }),
    );
    lab.table(means);
    lab.table(
        Table::new(["always answering 0", "error"])
            .row(row![
                "mean squared error (the loss)",
                exact("zero_mean_squared_error", zero_mse)
            ])
            .row(row![
                "mean absolute error",
                exact("zero_mean_absolute_error", zero_mae)
            ]),
    );
    lab.answer(
        zero,
        match last_mean / zero_mse {
            ..0.9 => "network",
            ..=1.1 => "equal",
            _ => "zero",
        },
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
    what_the_gpu_did(lab, epochs * num_batches, during, time);

    lab.section(9, "Where everything lives");
    where_everything_lives(lab, &model, &loader, &optimizer)?;

    lab.section(10, "One step, drawn");
    one_step_drawn(lab, batch_size.min(loader.dataset().len()))?;

    lab.section(11, "When to stop the clock");
    when_to_stop_the_clock(lab)
}

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Figure(Figure { value: Value::Float(number), .. }) => Some(*number),
        _ => None,
    }
}

// ANCHOR: train
/// Trains on every batch once. Returns the loss of the last batch, and the mean of all.
fn train_epoch(
    model: &impl Module,
    loader: &DataLoader<TensorDataset<2>>,
    loss_fn: &nn::MSELoss,
    optimizer: &mut optim::Adam,
    device: Device,
) -> Result<(f64, f64)> {
    model.train();
    let mut losses = Vec::new();
    for batch in loader {
        let [x, y] = batch?;
        let (x, y) = (x.to(device)?, y.to(device)?); // every batch

        let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;

        losses.push(loss.detach()); // stays on the device
    }
    let last = losses[losses.len() - 1].item()?;
    let mean = Tensor::stack(&losses, 0)?.mean()?.item()?;
    Ok((last, mean))
}
// ANCHOR_END: train

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

fn classify(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let Options { batch_size, epochs, num_workers, pin_memory, .. } = *options;
    let device = lab.device();

    manual_seed(lab.seed());
    // ANCHOR: classes
    let x = Tensor::randn(&[1024, 16])?;
    // A sample's class is the one of four random directions that it points in most.
    let y = x.matmul(&Tensor::randn(&[16, 4])?)?.argmax(1, false)?;
    let loader = DataLoader::new(
        TensorDataset::new([x, y])?,
        DataLoaderOptions {
            batch_size,
            shuffle: true,
            num_workers,
            pin_memory,
            ..Default::default()
        },
    )?;

    let model = nn::Sequential::new((
        nn::Linear::new(16, 64)?,
        nn::ReLU,
        nn::Linear::new(64, 4)?,
    ));
    model.to(device)?;
    let loss_fn = nn::CrossEntropyLoss::default();
    let mut optimizer = optim::Adam::new(
        model.parameters(),
        AdamOptions { lr: 1e-3, ..Default::default() },
    )?;
    // ANCHOR_END: classes

    let guess = lab.predict(
        Prediction::number(
            "03-first-loss",
            "There are four classes, and the network knows nothing yet. What is its first loss, the cross-entropy?",
        )
        .tolerance(0.1)
        .because("Each class has a chance of about ¼, and the loss is the negative logarithm of the chance given to the right one."),
    );
    let size = loader.dataset().len();
    let mut first_loss = None;
    for epoch in 1..=epochs {
        lab.print(text!("Epoch {epoch}"));
        let losses = train_classes(&model, &loader, &loss_fn, &mut optimizer, device)?;
        for (batch, loss) in losses {
            let current = ((batch + 1) * batch_size).min(size);
            let loss = exact("cross_entropy", loss);
            first_loss.get_or_insert(loss.clone());
            lab.print(text!("loss: {:.3}  [{current:>5}/{size:>5}]", loss));
        }
    }

    lab.answer(guess, first_loss.ok_or("the loader has no batches")?.digits(3));

    // ANCHOR: accuracy
    model.eval();
    let correct = no_grad(|| count_correct(&model, &loader, device))?;
    let accuracy = 100.0 * correct as f64 / size as f64;
    // ANCHOR_END: accuracy
    lab.print(text!("Accuracy: {:.1} %", exact("accuracy", accuracy)));
    lab.prose(text!(
        "Guessing one of four classes costs ln 4 = {}, which is about where the loss starts. By chance 25 % of the \
         answers would be right.",
        exact("chance_loss", 4f64.ln())
    ));
    Ok(())
}

// ANCHOR: train_classes
/// Trains on every batch once. Returns four of the losses on the way, each with the
/// number of its batch.
fn train_classes(
    model: &impl Module,
    loader: &DataLoader<TensorDataset<2>>,
    loss_fn: &nn::CrossEntropyLoss,
    optimizer: &mut optim::Adam,
    device: Device,
) -> Result<Vec<(usize, f64)>> {
    let every = loader.len().div_ceil(4);
    let mut shown = Vec::new();
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
            shown.push((batch, loss.item()?));
        }
    }
    Ok(shown)
}
// ANCHOR_END: train_classes

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

fn what_the_gpu_did(lab: &mut Lab, steps: usize, during: Counters, time: Duration) {
    if !lab.has_gpu_or("Nothing: the model and its data stayed on the CPU.") {
        if !cuda::is_available() {
            lab.prose("This machine has no GPU. --gpu sim:t4 simulates one.");
        }
        return;
    }
    let guess = lab.predict(
        Prediction::number("03-launches", "How many kernels did a training step launch, on average?")
            .unit("kernels")
            .tolerance(0.25)
            .because(
                "The backward pass launches more than the forward pass, and this crate's Adam launches at least one for each of \
                 the four parameter tensors. (On a GPU PyTorch's Adam handles all of them together.)",
            ),
    );
    let per_step = during.launches as f64 / steps as f64;
    lab.table(
        Table::new(["counted in training", ""])
            .row(row!["steps", exact("steps", steps)])
            .row(row![
                "copies to the GPU",
                exact("copies_to_device", during.copies_to_device)
            ])
            .row(row![
                "  their bytes",
                exact("bytes_to_device", during.bytes_to_device)
            ])
            .row(row![
                "copies to the CPU",
                exact("copies_to_host", during.copies_to_host)
            ])
            .row(row!["  their bytes", exact("bytes_to_host", during.bytes_to_host)])
            .row(row!["kernels launched", exact("launches", during.launches)])
            .row(row!["  in a step", exact("launches_per_step", per_step).digits(1)])
            .row(row!["time of a step", timed("step_time", time / steps as u32)]),
    );
    lab.answer(guess, exact("launches_of_a_step", per_step).unit("kernels").digits(1));
    lab.prose(
        "Each step copies twice to the GPU: the features of a batch, and its targets. Its kernels are those of the forward \
         pass, the backward pass and the optimizer. A few more stack and average the losses of an epoch, and prepare \
         Adam. The losses stay on the GPU until an epoch is over, and then two numbers come back, the last loss and the \
         mean. Each of these reads makes the CPU wait until the GPU has caught up, which is why the loop does not read \
         the loss in every step.",
    );
}

/// The uses of memory in a step, as answers to a question.
const PARAMETERS: &str = "the model's parameters";
const THE_BATCH: &str = "the batch";
const HIDDEN: &str = "the outputs of the hidden layer";
const STATE: &str = "the gradients and Adam's two averages";

/// Every tensor of the training above, with the memory that it is in.
fn where_everything_lives(
    lab: &mut Lab,
    model: &nn::Sequential,
    loader: &DataLoader<TensorDataset<2>>,
    optimizer: &optim::Adam,
) -> crate::Result<()> {
    let device = lab.device();
    let names = [PARAMETERS, THE_BATCH, HIDDEN, STATE];
    let guess = lab.predict(
        Prediction::order(
            "03-largest",
            format!(
                "What takes the most memory on {device} in a step? Put these in order, the largest first."
            ),
            names,
        )
        .because(
            "Gradients and averages take three times the bytes of the parameters, whatever the batch. The outputs of the \
             hidden layer grow with the batch: 64 numbers for each sample, which itself has 17.",
        ),
    );

    // ANCHOR: places
    let [all_x, all_y] = loader.dataset().tensors().clone();
    let batch = loader.iter().next().ok_or("no batch")?;
    let [host_x, host_y] = batch?;
    let (x, y) = (host_x.to(device)?, host_y.to(device)?);

    let layers = model.children();
    let hidden = layers[1].1.forward(&layers[0].1.forward(&x)?)?;
    let loss = nn::MSELoss::default().forward(&layers[2].1.forward(&hidden)?, &y)?;

    let (mut parameters, mut gradients) = (Vec::new(), Vec::new());
    let (mut exp_avg, mut exp_avg_sq, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for parameter in model.parameters() {
        parameters.push(parameter.tensor());
        gradients.extend(parameter.grad());
        if let Some(state) = optimizer.state(&parameter) {
            exp_avg.push(state.exp_avg);
            exp_avg_sq.push(state.exp_avg_sq);
            steps.push(state.step);
        }
    }
    // ANCHOR_END: places
    let hidden_bytes =
        Thing::of("", Role::Activation, std::slice::from_ref(&hidden)).bytes;
    let batch_bytes = Thing::of("", Role::Data, &[x.clone(), y.clone()]).bytes;

    let mut things = vec![
        Thing::of("data set, x", Role::Data, &[all_x]),
        Thing::of("data set, y", Role::Data, &[all_y]),
        Thing::of("batch, x", Role::Data, &[host_x]),
        Thing::of("batch, y", Role::Data, &[host_y]),
        Thing {
            sizes: format!("{} numbers", steps.len()),
            ..Thing::of("step counts", Role::Optimizer, &steps)
        },
    ];
    if device.is_cuda() {
        things.push(Thing::of("batch, x", Role::Data, &[x]));
        things.push(Thing::of("batch, y", Role::Data, &[y]));
    }
    let model_of = |name: &str, role, tensors: &[Tensor]| Thing {
        name: format!("{} {name}", tensors.len()),
        ..Thing::of(name, role, tensors)
    };
    things.extend([
        model_of("parameters", Role::Parameter, &parameters),
        model_of("gradients", Role::Gradient, &gradients),
        model_of("exp_avg", Role::Optimizer, &exp_avg),
        model_of("exp_avg_sq", Role::Optimizer, &exp_avg_sq),
        Thing::of("hidden layer", Role::Activation, &[hidden]),
        Thing::of("the loss", Role::Activation, &[loss]),
    ]);
    let mut table = Table::new(["what", "sizes", "bytes", "device"]);
    for Thing { name, sizes, bytes, device, .. } in &things {
        table = table.row(row![
            name.clone(),
            sizes.clone(),
            exact("bytes", *bytes),
            device.to_string()
        ]);
    }
    lab.table(table);
    lab.picture(picture(&things), "The same list as a picture: each memory, with the things that live in it during a step.");

    let bytes = |tensors: &[Tensor]| Thing::of("", Role::Data, tensors).bytes;
    let trained =
        [&parameters, &gradients, &exp_avg, &exp_avg_sq].map(|tensors| bytes(tensors));
    let mut by_size = vec![
        (trained[0], PARAMETERS),
        (batch_bytes, THE_BATCH),
        (hidden_bytes, HIDDEN),
        (trained[1..].iter().sum(), STATE),
    ];
    by_size.sort_by_key(|(bytes, _)| Reverse(*bytes));
    lab.answer(
        guess,
        by_size.into_iter().map(|(_, name)| name.to_owned()).collect::<Vec<_>>(),
    );
    lab.prose(text!(
        "A gradient and Adam's two averages are as large as their parameter: three times the model's bytes. With the \
         model itself that is {} bytes, {} times the model.",
        exact("training_bytes", trained.iter().sum::<usize>()),
        exact("times_the_model", trained.iter().sum::<usize>() / trained[0])
    ));
    lab.prose(lab.gpu_or_cpu(
        "So not everything happens on the GPU. The data set stays on the host, where the loader shuffles it and puts \
         batches together, and so do the optimizer's step counts.",
        "Here all of it is in the memory of the host. With a GPU the data set and the step counts would still be \
         there, and each batch would start out there.",
    ));
    Ok(())
}

/// Draws a step like those of the training above, under the profiler.
fn one_step_drawn(lab: &mut Lab, batch_size: usize) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(lab.gpu_or_cpu(
        Prediction::number(
            "03-busy",
            "A step begins when its batch is moved, and ends when its loss has been read. During what \
             share of it does the GPU compute?",
        )
        .unit("%")
        .tolerance(0.25)
        .because("The rest of the time it waits for the batch, or for the host to launch the next kernel.")
        .raced(),
        Prediction::think(
            "03-busy",
            "A batch is 16 times as large. Does a step take 16 times as long?",
        ),
    ));
    let Step { trace, moved, queued, done, launches, computed, .. } =
        step_on(batch_size, false, device)?;
    let large_done = step_on(16 * batch_size, false, device)?.done;
    if lab.gpu().is_none() {
        lab.table(
            Table::new(["batch", "time of a step"])
                .row(row![batch_size, timed("one_step_time", done)])
                .row(row![16 * batch_size, timed("large_step_time", large_done)]),
        );
        lab.prose(
            "There is no timeline of a device to draw here: on the CPU the work is done when a call \
             returns. --gpu sim:t4 has one.",
        );
        return Ok(());
    }
    lab.picture(&trace, &what_the_step_shows(&trace, done, computed));
    let share = 100.0 * computed.as_secs_f64() / done.as_secs_f64();
    lab.table(
        Table::new(["one step", ""])
            .row(row!["kernels launched", exact("step_launches", launches)])
            .row(row!["until the batch is there", timed("moved_time", moved)])
            .row(row![
                "until the host has queued the rest",
                timed("queued_time", queued)
            ])
            .row(row!["until the loss is read", timed("step_done_time", done)])
            .row(row![
                "share in which the GPU computes",
                machine_figure("compute_share", share).unit("%").digits(0)
            ]),
    );
    lab.answer(guess, machine_figure("share_of_a_step", share).unit("%").digits(0));
    let verdict = if queued - moved > 2 * computed {
        "For most of the step the GPU waits for the host, which takes longer to launch the kernels than the GPU takes to \
         run them. The step is bound by launches."
    } else if 4 * queued > 3 * done {
        "The GPU waits for its batch first, and then again and again for the host to launch the next kernel. The \
         step is bound by launches."
    } else {
        "The GPU waits for its batch, and then it is busy: the host has queued everything long before the GPU is done. \
         The step is bound by the GPU's own work."
    };
    lab.prose(Text::from(verdict).raced());

    const FEW: &str =
        "A step with few samples is bound by its launches, and the CPU has none.";
    const MANY: &str = "With 16 times as many samples the GPU has no more launches than before, while the CPU has 16 times as much work.";
    let guess = lab.predict(
        Prediction::choice(
            "03-crossover",
            "The same step runs on the CPU of this machine. Which of the two is faster with this batch, and which with one 16 \
             times as large?",
        )
        .or("cpu, cpu", "The CPU with both.", MANY)
        .or("cpu, gpu", "The CPU with this batch, and the GPU with the large one.", "The same one is faster with both.")
        .or("gpu, cpu", "The GPU with this batch, and the CPU with the large one.", MANY)
        .or("gpu, gpu", "The GPU with both.", FEW)
        .raced(),
    );
    // ANCHOR: both
    let cpu_done = step_on(batch_size, false, Device::Cpu)?.done;
    let cpu_large_done = step_on(16 * batch_size, false, Device::Cpu)?.done;
    // ANCHOR_END: both
    lab.table(
        Table::new(["batch", "a step on the CPU", "a step on the GPU"])
            .row(row![
                batch_size,
                timed("cpu_step_time", cpu_done),
                timed("one_step_time", done)
            ])
            .row(row![
                16 * batch_size,
                timed("large_cpu_step_time", cpu_large_done),
                timed("large_step_time", large_done)
            ]),
    );
    let faster = |on_cpu, on_gpu| if on_cpu < on_gpu { "cpu" } else { "gpu" };
    let both = [faster(cpu_done, done), faster(cpu_large_done, large_done)];
    lab.answer(guess, both.join(", ").as_str());
    let ratio =
        |large: Duration, small: Duration| large.as_secs_f64() / small.as_secs_f64();
    lab.prose(text!(
        "With 16 times as many samples a step takes {} times as long on the CPU, and {} times as long on the GPU: it \
         has as many launches as before, with more work in each.",
        machine_figure("large_cpu_step_ratio", ratio(cpu_large_done, cpu_done)).digits(2),
        machine_figure("large_step_ratio", ratio(large_done, done)).digits(2)
    ));
    Ok(())
}

fn what_the_step_shows(trace: &Trace, done: Duration, computed: Duration) -> String {
    let kind = timed("", done).kind.name();
    let says =
        "The timeline of one training step shows the host above and the GPU below.";
    if trace.work.is_empty() {
        return format!("{says} The step takes {} ({kind}).", words::time(done));
    }
    let is_launch = |call: &&Call| {
        matches!(call.kind, EventKind::Launch { .. } | EventKind::Gemm { .. })
    };
    let launches: Vec<&Call> = trace.calls.iter().filter(is_launch).collect();
    let launched =
        Duration::from_nanos(launches.iter().map(|call| call.end - call.begin).sum());
    let average = |sum: Duration| words::time(sum / launches.len().max(1) as u32);
    let (launch, run) = (average(launched), average(computed));
    let verdict = if launched > computed {
        format!(
            "at first for the batch, then for the host, which takes {launch} on average to launch a kernel that runs for {run}"
        )
    } else {
        format!(
            "above all for the batch, since a launch takes the host {launch} on average and the kernel then runs for {run}"
        )
    };
    format!(
        "{says} The step takes {} ({kind}), and for {} of that the GPU computes. The rest of the time it waits, {verdict}.",
        words::time(done),
        words::time(computed),
    )
}

/// Times one forward pass in three ways.
fn when_to_stop_the_clock(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    // ANCHOR: wide
    let model = nn::Sequential::new((
        nn::Linear::new(512, 1024)?,
        nn::ReLU,
        nn::Linear::new(1024, 512)?,
    ));
    model.to(device)?;
    let x = Tensor::randn(&[512, 512])?.to(device)?;
    // ANCHOR_END: wide
    let guess = lab.predict(
        Prediction::number(
            "03-clock",
            "The forward pass of a wide network is timed, and the clock is stopped as soon as `forward` \
             returns. How much of the real time of the pass does the clock show?",
        )
        .unit("%")
        .tolerance(0.25)
        .because(if host_runs_ahead(device)? {
            "A call on a GPU returns when its kernels are launched, and not when they are done."
        } else {
            "Here a call returns when its work is done."
        })
        .raced(),
    );

    // ANCHOR: clock
    model.forward(&x)?; // not timed: the first takes memory and loads code

    wait_for(device)?; // no earlier work is left to be timed
    let start = Instant::now();
    model.forward(&x)?;
    let returned = start.elapsed();

    wait_for(device)?;
    let start = Instant::now();
    model.forward(&x)?;
    wait_for(device)?;
    let synchronized = start.elapsed();

    let start = Instant::now();
    let output = model.forward(&x)?;
    output.select(0, 0)?.select(0, 0)?.item()?;
    let read = start.elapsed();
    // ANCHOR_END: clock
    lab.table(
        Table::new(["the clock is stopped", "time"])
            .row(row!["when forward() returns", timed("returned_time", returned)])
            .row(row!["after synchronize()", timed("synchronized_time", synchronized)])
            .row(row!["after item() has read a number", timed("read_time", read)]),
    );
    // On a CPU, the two passes take about the same time, and either may be shorter.
    let share =
        (100.0 * returned.as_secs_f64() / synchronized.as_secs_f64()).min(100.0);
    lab.answer(guess, machine_figure("share_shown", share).unit("%").digits(0));
    lab.prose(if host_runs_ahead(device)? {
        "Calls return before the work is done, so the first clock shows only the time to ask. synchronize() waits for the \
         GPU, and so does anything that reads a number from it. No clock ran during the very first pass, which takes memory \
         from the driver and, on a real GPU, loads code as well."
    } else if launches_wait(device)? {
        "CUDA_LAUNCH_BLOCKING=1 is set, so every launch waits and all three clocks show the work. Without it the first \
         clock shows only the time to ask."
    } else {
        "On the CPU a call returns when its work is done, so all three clocks show the work. On a GPU, as with --gpu \
         sim:t4, the first one does not. No clock ran during the very first pass, which takes memory from the system."
    });
    Ok(())
}

/// With few cores, workers would cause a warning; without a GPU, pinned memory would.
const STEADY: &[&str] = &["--num-workers", "0", "--pin-memory", "false"];

pub const RUNS: &[Run] = &[
    Run { steady: STEADY, ..Run::NONE },
    Run {
        name: "linear",
        flags: &["--gpu", "none", "--target", "linear", "--epochs", "5"],
        steady: STEADY,
        what: "on the CPU, with something to learn",
    },
    Run::T4,
    Run::T4X2,
];
