//! One training step, fast enough for a live page (less than a tenth of a second). The lab runs it, the book draws it.

use std::time::Duration;

use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::{Trace, record_function};
use todevice::{Machine, ToOptions};

/// A training step of the network of [the lab](super), after a warm-up step.
#[derive(Clone, Debug)]
pub struct Step {
    pub trace: Trace,
    /// The times at which the host had moved the batch, queued all other work, and read the loss.
    pub moved: Duration,
    pub queued: Duration,
    pub done: Duration,
    /// The number of launched kernels, and their total time; 0 on the CPU.
    pub launches: u64,
    pub computed: Duration,
    pub loss: f64,
}

/// Trains one step on a simulated card, named as for `--gpu`, or on its host's CPU: see [`step_on`].
///
/// ```
/// use labs::lab_03_training_loop::step::one_step;
/// let cpu = one_step(None, 64, false)?;
/// let gpu = one_step(Some("sim:t4"), 64, false)?;
/// assert!(cpu.done < gpu.done);
/// # Ok::<(), labs::Error>(())
/// ```
pub fn one_step(gpu: Option<&str>, batch: usize, pinned: bool) -> crate::Result<Step> {
    // Each card has the same host, and only a card's host has modelled times.
    let machine: Machine = gpu.unwrap_or("sim:t4").parse()?;
    machine.enter(|| {
        manual_seed(0);
        let device = if gpu.is_some() { Device::cuda(0) } else { Device::Cpu };
        step_on(batch, pinned, device)
    })
}

/// Trains one step on a device of the current machine. If `pinned`, a batch for a GPU is in pinned memory, and its copy
/// does not block the host.
pub fn step_on(batch: usize, pinned: bool, device: Device) -> crate::Result<Step> {
    let model = nn::Sequential::new((
        nn::Linear::new(16, 64)?,
        nn::ReLU,
        nn::Linear::new(64, 1)?,
    ));
    model.to(device)?;
    let mut optimizer = optim::Adam::new(
        model.parameters(),
        AdamOptions { lr: 1e-3, ..Default::default() },
    )?;
    let mut batch = [Tensor::randn(&[batch, 16])?, Tensor::randn(&[batch, 1])?];
    let pinned = pinned && device.is_cuda();
    if pinned {
        batch = [batch[0].pin_memory()?, batch[1].pin_memory()?];
    }
    let to =
        ToOptions { device: Some(device), non_blocking: pinned, ..Default::default() };

    // ANCHOR: profile
    // Not recorded: the first step allocates memory.
    train_step(&model, &mut optimizer, &batch, to)?;
    let before = Machine::current().counters();
    let (times, trace) =
        Machine::current().profile(|| train_step(&model, &mut optimizer, &batch, to));
    let (queued, done, loss) = times?;
    let launches = (Machine::current().counters() - before).launches;
    // ANCHOR_END: profile
    let to_the_device =
        trace.ranges.iter().find(|range| range.name == "batch to the device");
    let moved = to_the_device.map_or(0, |range| range.end - range.begin);
    let moved = Duration::from_nanos(moved);
    let computed = if device.is_cuda() {
        trace.compute_time(device.index())
    } else {
        Duration::ZERO
    };
    Ok(Step { trace, moved, queued, done, launches, computed, loss })
}

// ANCHOR: one_step
/// Runs one training step with named parts. Returns the host time until all work is
/// queued, the time until the loss is read, and the loss.
fn train_step(
    model: &nn::Sequential,
    optimizer: &mut optim::Adam,
    [x, y]: &[Tensor; 2],
    to: ToOptions, // the device, and how to copy
) -> Result<(Duration, Duration, f64)> {
    let loss_fn = nn::MSELoss::default();
    let start = Instant::now();

    let (x, y) = record_function("batch to the device", || (x.to(to), y.to(to)));
    let (x, y) = (x?, y?);
    record_function("zero_grad", || optimizer.zero_grad());
    let prediction = record_function("forward", || model.forward(&x))?;
    let loss = record_function("loss", || loss_fn.forward(&prediction, &y))?;
    record_function("backward", || loss.backward())?;
    record_function("optimizer step", || optimizer.step())?;
    let queued = start.elapsed();

    let loss = record_function("reading the loss", || loss.item())?;
    Ok((queued, start.elapsed(), loss))
}
// ANCHOR_END: one_step

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_wins_with_a_small_batch_and_the_gpu_with_a_large_one() {
        let done = |gpu, batch| one_step(gpu, batch, false).unwrap().done;
        assert!(2 * done(None, 64) < done(Some("sim:t4"), 64));
        assert!(done(None, 1024) > done(Some("sim:t4"), 1024));
    }

    #[test]
    fn the_loss_is_the_same_wherever_the_step_runs() {
        let loss = |gpu, pinned| one_step(gpu, 64, pinned).unwrap().loss.to_bits();
        let on_the_cpu = loss(None, false);
        for gpu in ["sim:t4", "sim:h200"] {
            assert_eq!(
                [false, true].map(|pinned| loss(Some(gpu), pinned)),
                [on_the_cpu; 2]
            );
        }
    }

    #[test]
    fn it_is_the_same_step_every_time() {
        let step = || one_step(Some("sim:t4"), 64, true).unwrap();
        let (one, other) = (step(), step());
        assert_eq!((one.done, one.launches), (other.done, other.launches));
        assert!(one.queued < one.done && one.computed < one.done && one.launches > 0);
    }
}
