//! `--watch`: a training run on the monitor, sample by sample.

use drawing::smi::{self, mebibytes, watts};
use todevice::cuda;
use todevice::monitor::{self, Gpu, Host};
use todevice::prelude::*;
use todevice::time::Instant;

use super::{Training, pictures, reading};
use crate::frame::clock::wait_for;
use crate::{Lab, hardware, measured, text};

/// The latest samples, to be drawn.
#[derive(Default)]
struct History {
    utilization: Vec<f64>,
    memory: Vec<f64>,
    cpu: Vec<f64>,
}

/// A fifth of the samples are before the run, a fifth after it: at least one after its tensors are freed, and the last
/// one with an empty cache too.
pub(super) fn section(lab: &mut Lab, samples: usize) -> crate::Result<()> {
    lab.section(1, "A training run on the monitor");
    let device = lab.device();
    let mut history = History::default();
    let mut look = |lab: &mut Lab, what: &str, before: Host| -> Result<Host> {
        let host = monitor::host();
        match device {
            Device::Cuda { index, .. } => {
                gpu_sample(lab, what, &monitor::gpu(index)?, &mut history)
            }
            Device::Cpu => host_sample(
                lab,
                what,
                &host,
                host.cpu_usage_since(&before),
                &mut history,
            ),
        }
        Ok(host)
    };
    let [before, after] = [1, 2].map(|least| (samples / 5).max(least));
    let mut host = monitor::host();
    for _ in 0..before {
        todevice::time::sleep(period(device));
        host = look(lab, "nothing", host)?;
    }
    let mut training = Training::new(lab.seed(), device)?;
    let (x, y) = pictures(512)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    for _ in before..samples - after {
        let start = Instant::now();
        while start.elapsed() < period(device) {
            training.step(&x, &y)?;
        }
        host = look(lab, "training", host)?;
    }
    wait_for(device)?;
    drop((training, x, y));
    for sample in 1..=after {
        let what = if sample == after { "emptied" } else { "dropped" };
        if sample == after {
            cuda::empty_cache()?;
        }
        todevice::time::sleep(period(device));
        host = look(lab, what, host)?;
    }
    Ok(())
}

/// A sample lasts as long as the counters' window; without a GPU, long enough to be seen.
fn period(device: Device) -> std::time::Duration {
    if device.is_cuda() {
        monitor::sample_period()
    } else {
        std::time::Duration::from_millis(100)
    }
}

fn gpu_sample(lab: &mut Lab, what: &str, gpu: &Gpu, history: &mut History) {
    let used = gpu.memory_used as f64 / gpu.memory_total as f64;
    history.memory.push(used);
    history.utilization.push(f64::from(gpu.utilization.unwrap_or(0)) / 100.0);
    let frame = format!(
        "{}\nGPU-Util  0-100 %  {}\nMemory    0-{} MiB  {}\n{what}",
        smi::table(std::slice::from_ref(gpu)),
        bars(&history.utilization, 1.0),
        mebibytes((largest(&history.memory) * gpu.memory_total as f64) as u64),
        bars(&history.memory, largest(&history.memory)),
    );
    let line = text!(
        "{what:<8}  GPU-Util {}  Memory {}  Pwr {}",
        reading("utilization", gpu.utilization).unit("%"),
        hardware("memory_used", mebibytes(gpu.memory_used)).unit("MiB"),
        reading("power", watts(gpu.power_draw)).unit("W"),
    );
    lab.frame(&frame, line);
}

fn host_sample(
    lab: &mut Lab,
    what: &str,
    host: &Host,
    cpu: Option<f64>,
    history: &mut History,
) {
    history.cpu.push(cpu.unwrap_or(0.0) / 100.0);
    history.memory.push(host.memory.unwrap_or(0) as f64);
    let frame = format!(
        "CPU     0-{:.0} %  {}\nMemory  0-{} MiB  {}\n{what}",
        100.0 * largest(&history.cpu),
        bars(&history.cpu, largest(&history.cpu)),
        mebibytes(largest(&history.memory) as u64),
        bars(&history.memory, largest(&history.memory)),
    );
    let line = text!(
        "{what:<8}  CPU {}  RSS {}",
        reading("cpu_usage", cpu.map(|percent| percent.round() as i64)).unit("%"),
        measured("memory", mebibytes(host.memory.unwrap_or(0))).unit("MiB"),
    );
    lab.frame(&frame, line);
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// A chart one line high: a bar for each of the latest values, from 0 to `top`.
fn bars(values: &[f64], top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const LATEST: usize = 50;
    let bar = |value: &f64| {
        let height = if top > 0.0 { value / top } else { 0.0 };
        BARS[((height * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    values[values.len().saturating_sub(LATEST)..].iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::bars;

    #[test]
    fn bars_are_as_high_as_their_values_and_the_latest_fifty() {
        assert_eq!(bars(&[0.0, 0.5, 1.0, 2.0], 1.0), "▁▅██");
        assert_eq!(bars(&[0.0, 0.0], 0.0), "▁▁");
        assert_eq!(bars(&[], 1.0), "");
        assert_eq!(bars(&[1.0; 60], 1.0).chars().count(), 50);
    }
}
