//! Times of work, and the lines of a profile.

use std::time::Duration;

use todevice::Machine;
use todevice::cuda::{self, Event, EventOptions};
use todevice::prelude::*;
use todevice::time::Instant;

/// The number of measurements. The shortest counts, since every disturbance makes a time longer. Modelled times have
/// none.
pub(super) fn rounds() -> usize {
    if Machine::current().time_is_modelled() { 1 } else { 5 }
}

pub(super) fn shortest(mut time: impl FnMut() -> Result<f64>) -> Result<f64> {
    time()?; // The first run allocates memory and loads code.
    let times: Vec<f64> = (0..rounds()).map(|_| time()).collect::<Result<_>>()?;
    Ok(times.into_iter().fold(f64::INFINITY, f64::min))
}

pub(super) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The rows and columns of a matrix whose product keeps a GPU busy for a while. A simulated GPU multiplies on the CPU,
/// so it gets a smaller one.
pub(super) fn side() -> usize {
    if Machine::current().time_is_modelled() { 1024 } else { 8192 }
}

/// A matrix to keep a GPU busy. Its numbers are random, because a card multiplies ones faster.
pub fn busy(device: Device) -> Result<Tensor> {
    Tensor::randn((&[side(), side()], device))
}

/// The GPU time, in microseconds, of work that is queued while the GPU is busy.
pub fn on_device(busy: &Tensor, work: impl Fn() -> Result<()>) -> Result<f64> {
    shortest(|| {
        let [start, end] =
            [(); 2].map(|()| Event::new(EventOptions { enable_timing: true }));
        for _ in 0..4 {
            busy.matmul(busy)?;
        }
        start.record()?;
        work()?;
        end.record()?;
        end.synchronize()?;
        Ok(start.elapsed_time(&end)? * 1e3)
    })
}

/// The host time, in microseconds, of work and of waiting for it.
pub(super) fn on_host(work: impl Fn() -> Result<()>) -> Result<f64> {
    shortest(|| {
        cuda::synchronize()?;
        let start = Instant::now();
        work()?;
        cuda::synchronize()?;
        Ok(microseconds(start.elapsed()))
    })
}

/// The measured figures, one line of a profile each.
#[derive(Default)]
pub(super) struct Lines(pub(super) String);

impl Lines {
    pub(super) fn add(&mut self, name: &str, value: f64, how: &str) {
        self.0 += &format!("{name} = {} # {how}\n", significant(value));
    }
}

fn significant(value: f64) -> String {
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_that_count() {
        let texts = [12345.678, 12.0, 0.70004, 0.00012345, 53.0].map(significant);
        assert_eq!(texts, ["12346", "12", "0.7", "0.0001234", "53"]);
    }
}
