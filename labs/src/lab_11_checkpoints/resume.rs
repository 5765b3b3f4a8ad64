//! A training run that was interrupted and resumes.

use std::sync::Arc;

use todevice::nn::StateDict;
use todevice::optim::Adam;
use todevice::optim::lr_scheduler::StepLR;
use todevice::prelude::*;
use todevice::serialize::{self, Dict, Value};
use todevice::{Machine, cuda, get_rng_state, set_rng_state};

use super::files::yes_or_no;
use super::{Disk, Options};
use crate::frame::given;
use crate::{Figure, Lab, Prediction, Table, exact, rounded_by, row};

struct Training {
    device: Device,
    epoch: i64,
    net: nn::Sequential,
    optimizer: Adam,
    scheduler: StepLR,
    loader: DataLoader<TensorDataset<2>>,
}

impl Training {
    /// Deterministic for a seed. With dropout, it draws random numbers on its device.
    fn new(seed: u64, dropout: f64, device: Device) -> Result<Training> {
        let of_data = Generator::new().manual_seed(1);
        let x = Tensor::randn((&[64, 10], &of_data))?;
        let y = x.sum_dims(&[1], true)?;
        manual_seed(seed);
        let options =
            DataLoaderOptions { batch_size: 16, shuffle: true, ..Default::default() };
        let loader = DataLoader::new(TensorDataset::new([x, y])?, options)?;
        let hidden = nn::Linear::new(10, 32)?;
        let dropout = nn::Dropout::new(dropout)?;
        let out = nn::Linear::new(32, 1)?;
        let net = nn::Sequential::new((hidden, nn::ReLU, dropout, out));
        net.to(device)?;
        let optimizer = Adam::new(
            net.parameters(),
            AdamOptions { lr: 0.02, ..Default::default() },
        )?;
        let scheduler = StepLR::new(&optimizer, 1, 0.8)?;
        Ok(Training { device, epoch: 0, net, optimizer, scheduler, loader })
    }

    // ANCHOR: epochs
    /// Trains until `epochs` epochs are done. Returns the mean loss of each.
    fn train(&mut self, epochs: i64) -> Result<Vec<f64>> {
        let loss_fn = nn::MSELoss::default();
        let mut losses = Vec::new();
        while self.epoch < epochs {
            let mut sum = 0.0;
            for batch in &self.loader {
                let [x, y] = batch?;
                let (x, y) = (x.to(self.device)?, y.to(self.device)?);
                let loss = loss_fn.forward(&self.net.forward(&x)?, &y)?;
                self.optimizer.zero_grad();
                loss.backward()?;
                self.optimizer.step()?;
                sum += loss.item()?;
            }
            self.scheduler.step();
            self.epoch += 1;
            losses.push(sum / self.loader.len() as f64);
        }
        Ok(losses)
    }
    // ANCHOR_END: epochs

    // ANCHOR: checkpoint
    /// All state that is needed to resume.
    fn checkpoint(&self) -> Result<Dict> {
        let mut checkpoint = Dict::from_iter([
            ("epoch", Value::from(self.epoch)),
            ("model", self.net.state_dict().into()),
            ("optimizer", self.optimizer.state_dict().into()),
            ("scheduler", self.scheduler.state_dict().into()),
            ("rng_state", get_rng_state()?.into()),
        ]);
        if let Device::Cuda { index, .. } = self.device {
            checkpoint.insert("cuda_rng_state", cuda::get_rng_state(index)?);
        }
        Ok(checkpoint)
    }

    /// Resumes from a checkpoint. Copies tensors on the CPU to where they are needed.
    fn resume(&mut self, checkpoint: &Dict) -> Result<()> {
        let state = StateDict::try_from(checkpoint.at("model")?)?;
        self.net.load_state_dict(&state, true)?;
        if let Some(state) = checkpoint.get("optimizer") {
            self.optimizer.load_state_dict(state.as_dict()?)?;
        }
        self.scheduler.load_state_dict(checkpoint.at("scheduler")?.as_dict()?)?;
        self.epoch = checkpoint.at("epoch")?.as_int()?;
        if let Some(state) = checkpoint.get("rng_state") {
            set_rng_state(state.as_tensor()?)?;
        }
        let state = checkpoint.get("cuda_rng_state");
        if let (Device::Cuda { index, .. }, Some(state)) = (self.device, state) {
            cuda::set_rng_state(state.as_tensor()?, index)?;
        }
        Ok(())
    }
    // ANCHOR_END: checkpoint
}

// ANCHOR: rest
/// Resumes a training run. Returns the losses of the remaining epochs.
fn rest(
    checkpoint: &Dict,
    dropout: f64,
    epochs: i64,
    device: Device,
) -> Result<Vec<f64>> {
    let mut training = Training::new(OTHER_SEED, dropout, device)?;
    training.resume(checkpoint)?;
    training.train(epochs)
}
// ANCHOR_END: rest

/// A resumed program has drawn other random numbers before it loads.
const OTHER_SEED: u64 = 7;

pub(super) fn resumed(
    lab: &mut Lab,
    disk: &Disk,
    options: &Options,
) -> crate::Result<()> {
    lab.section(7, "Resume");
    let device = lab.device();
    let epochs = options.epochs as i64;
    let half = epochs / 2;
    let guess = lab.predict(
        Prediction::choice(
            "11-resume",
            "A training run is interrupted half-way, and is resumed from a checkpoint. Leave out the optimizer's state or the \
             state of the random numbers. Which of the two changes the losses that follow?",
        )
        .or("none", "Neither of these two. The model is enough.", MODEL_IS_NOT_ENOUGH)
        .or("optimizer", "The optimizer's state.", "The data are shuffled, too, and the order comes from the random numbers.")
        .or("rng_state", "The state of the random numbers.", "Adam's moments are lost, too, if nobody saves them.")
        .or("both", "Either of the two.", MODEL_IS_NOT_ENOUGH)
        .because(
            "Adam's moments would begin at zero again, and the data would come in another order.",
        ),
    );
    let seed = lab.seed();
    // ANCHOR: interrupted
    let mut training = Training::new(seed, 0.0, device)?;
    training.train(half)?;
    disk.save(training.checkpoint()?, "training.pt")?;
    let straight = training.train(epochs)?; // without an interruption
    // ANCHOR_END: interrupted

    // ANCHOR: resumed
    let loaded = disk.load("training.pt", Device::Cpu)?;
    let resumed = rest(loaded.as_dict()?, 0.0, epochs, device)?;

    // Again, with the same loaded state.
    let resumed_twice = rest(loaded.as_dict()?, 0.0, epochs, device)?;
    // ANCHOR_END: resumed

    let mut rows = vec![
        ("not interrupted".to_owned(), straight.clone()),
        (format!("resumed on {device}"), resumed),
    ];
    if lab.gpu().is_some() {
        let loaded = disk.load("training.pt", Device::Cpu)?;
        let on_cpu = rest(loaded.as_dict()?, 0.0, epochs, Device::Cpu)?;
        rows.push(("resumed on cpu".to_owned(), on_cpu));
    }
    // ANCHOR: elsewhere
    let loaded = disk.load("training.pt", Device::Cpu)?;
    let elsewhere: Machine = "sim:rtx4090".parse()?;
    let on_another_card =
        elsewhere.enter(|| rest(loaded.as_dict()?, 0.0, epochs, Device::cuda(0)))?;
    // ANCHOR_END: elsewhere
    rows.push(("resumed on a simulated RTX 4090".to_owned(), on_another_card));
    if let Some(bytes) = &options.resume {
        let of_file = serialize::from_bytes(bytes, Device::Cpu)?;
        let losses = rest(of_file.as_dict()?, 0.0, epochs, device)?;
        rows.push(("resumed from the file of --resume".to_owned(), losses));
    }
    for part in ["optimizer", "rng_state"] {
        let loaded = disk.load("training.pt", Device::Cpu)?;
        let mut less = loaded.as_dict()?.clone();
        less.remove(part);
        rows.push((format!("without {part}"), rest(&less, 0.0, epochs, device)?));
    }
    rows.push(("resumed twice from one load".to_owned(), resumed_twice));
    let mut table = Table::new(["training run", "last loss", "the same bits"]);
    for (name, losses) in &rows {
        table = table.row(row![
            name.as_str(),
            last_loss(losses),
            same_bits(*losses == straight, device)
        ]);
    }
    lab.table(table);
    let differs = |name: &str| {
        rows.iter().any(|(row, losses)| {
            row == &format!("without {name}") && *losses != straight
        })
    };
    lab.answer(
        guess,
        match (differs("optimizer"), differs("rng_state")) {
            (true, true) => "both",
            (true, false) => "optimizer",
            (false, true) => "rng_state",
            (false, false) => "none",
        },
    );

    let guess = lab.predict(
        Prediction::yes_no(
            "11-dropout",
            "Now the network has dropout, which draws random numbers where its input is. The checkpoint has the state of that \
             generator, too. The run is resumed on the CPU. Are its losses the same?",
        )
        .because(lab.gpu_or_cpu(
            "The CPU draws other numbers than a GPU, whatever state it is given.",
            "The CPU draws the same numbers from the same state.",
        )),
    );
    let mut training = Training::new(seed, 0.2, device)?;
    training.train(half)?;
    disk.save(training.checkpoint()?, "dropout.pt")?;
    let straight = training.train(epochs)?;
    let loaded = disk.load("dropout.pt", Device::Cpu)?;
    let again = rest(loaded.as_dict()?, 0.2, epochs, device)?;
    let loaded = disk.load("dropout.pt", Device::Cpu)?;
    let on_cpu = rest(loaded.as_dict()?, 0.2, epochs, Device::Cpu)?;
    let mut rows = vec![
        ("not interrupted".to_owned(), &straight),
        (format!("resumed on {device}"), &again),
    ];
    if lab.gpu().is_some() {
        rows.push(("resumed on cpu".to_owned(), &on_cpu));
    }
    let is_same = on_cpu == straight;
    let mut table = Table::new(["with dropout", "last loss", "the same bits"]);
    for (name, losses) in rows {
        let same = same_bits(*losses == straight, device);
        table = table.row(row![name, last_loss(losses), same]);
    }
    lab.table(table);
    lab.answer(guess, is_same);
    lab.prose(if is_same {
        "The CPU draws the numbers that the first run drew."
    } else {
        "The CPU draws other numbers than a GPU, whatever state it is given."
    });
    Ok(())
}

const MODEL_IS_NOT_ENOUGH: &str =
    "Compare the two rows that leave something out with the first row of the table.";

fn last_loss(losses: &[f64]) -> Figure {
    exact("last_loss", losses.last().copied().unwrap_or(f64::NAN))
}

/// A real GPU rounds differently.
fn same_bits(same: bool, device: Device) -> Figure {
    rounded_by("same_bits", yes_or_no(same), device)
}

/// A checkpoint of this section, from another run.
pub(super) fn file(name: &str) -> Result<Arc<[u8]>, String> {
    let bytes = given::read(name).map_err(|error| format!("{name}: {error}"))?;
    let missing = |what: Error| format!("{name}: {what}");
    let loaded = serialize::from_bytes(&bytes, Device::Cpu).map_err(missing)?;
    let checkpoint = loaded.as_dict().map_err(missing)?;
    for key in ["epoch", "model", "scheduler"] {
        checkpoint.at(key).map_err(|_| {
            format!(
                "{name}: it has no {key}: take the training.pt that this lab leaves in --folder"
            )
        })?;
    }
    Ok(bytes.into())
}
