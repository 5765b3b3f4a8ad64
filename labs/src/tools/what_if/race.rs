//! The race of the first page: a training step on the CPU and on a GPU.

use std::time::Duration;

use drawing::Timeline;
use serde_json::{Value as Json, json};

use super::{CARD, bits};
use crate::format_float;
use crate::lab_03_training_loop::step::{Step, one_step};

/// The cards: their names for `--gpu`, and for people.
pub const CARDS: &[(&str, &str)] = CARD.values;
/// The batch of lab 03.
pub const BATCH: usize = 64;
/// The batches of a live race.
pub const LIVE: [usize; 5] = [BATCH, 256, 1024, 4096, 16384];

#[derive(Clone, Debug)]
pub struct Raced {
    pub card: &'static str,
    pub name: &'static str,
    pub batch: usize,
    pub pinned: bool,
    pub cpu: Step,
    pub gpu: Step,
    /// The CPU's time with the batch of lab 03.
    small: Duration,
}

impl Raced {
    /// Runs the race. The error names invalid input.
    pub fn run(card: &str, batch: usize, pinned: bool) -> crate::Result<Raced> {
        let known = CARDS.iter().find(|known| known.0 == card);
        let (card, name) =
            *known.ok_or_else(|| format!("there is no card '{card}' here"))?;
        if !LIVE.contains(&batch) {
            return Err(format!("there is no batch of {batch} here").into());
        }
        let cpu = one_step(None, batch, false)?;
        let small =
            if batch == BATCH { cpu.done } else { one_step(None, BATCH, false)?.done };
        let gpu = one_step(Some(&format!("sim:{card}")), batch, pinned)?;
        Ok(Raced { card, name, batch, pinned, cpu, gpu, small })
    }

    /// `cpu` or `gpu`
    pub fn winner(&self) -> &'static str {
        if self.cpu.done < self.gpu.done { "cpu" } else { "gpu" }
    }

    /// The end of an axis for both, so that a quarter of it is a round number.
    pub fn end(&self) -> Duration {
        let longest = self.cpu.done.max(self.gpu.done);
        Duration::from_micros((longest.as_micros() as u64).div_ceil(40) * 40)
    }

    pub fn to_json(&self) -> Json {
        let end = self.end();
        let lane = |step: &Step| json!({ "done": step.done.as_nanos() as u64, "strips": strips(step, end) });
        json!({
            "end": end.as_nanos() as u64,
            "winner": self.winner(),
            "verdict": self.verdict(),
            "cpu": lane(&self.cpu),
            "gpu": lane(&self.gpu),
        })
    }

    pub fn verdict(&self) -> String {
        let Raced { card, name, batch, pinned, cpu, gpu, small } = self;
        let ratio = gpu.done.as_secs_f64() / cpu.done.as_secs_f64();
        let (cpu_time, gpu_time) = (microseconds(cpu.done), microseconds(gpu.done));
        let share = 100.0 * gpu.computed.as_secs_f64() / gpu.done.as_secs_f64();
        let result = match ratio {
            ratio if ratio >= 1.1 => {
                format!(
                    "The CPU is {ratio:.1} times as fast: {cpu_time} for a step, against {gpu_time} on the {name} (modelled)."
                )
            }
            ratio if ratio >= 1.0 => {
                format!(
                    "The CPU is ahead by a nose: {cpu_time} for a step, against {gpu_time} on the {name} (modelled)."
                )
            }
            ratio if ratio > 0.9 => {
                format!(
                    "The GPU is ahead by a nose: {gpu_time} for a step on the {name}, against {cpu_time} on the CPU (modelled)."
                )
            }
            ratio => format!(
                "The GPU is {:.1} times as fast: {gpu_time} for a step on the {name}, against {cpu_time} on the CPU (modelled).",
                1.0 / ratio
            ),
        };
        let why = match (*batch == BATCH, *card == CARDS[0].0) {
            (true, true) => format!(
                "The GPU computes for {share:.0} % of that time. For the rest it waits while the host copies the batch \
                 and starts {} kernels (functions that run on the GPU) one after another, and starting one usually takes \
                 longer than running it.",
                gpu.launches
            ),
            (true, false) => format!(
                "A far better card gains next to nothing. It is done sooner with each kernel, and then waits for the next of {} \
                 launches: it computes for {share:.0} % of the time.",
                gpu.launches
            ),
            (false, _) => format!(
                "{} as many samples cost the CPU {:.1} times the time. The GPU has been waiting for work anyway: it \
                 gets the same {} launches with more to do in each, and computes for {share:.0} % of the time.",
                times(*batch),
                cpu.done.as_secs_f64() / small.as_secs_f64(),
                gpu.launches
            ),
        };
        let copies = if *pinned {
            " The batch is in pinned memory, so the host does not wait for the copies."
        } else {
            ""
        };
        let same = match bits(&[cpu.loss]) == bits(&[gpu.loss]) {
            true => format!(
                "Both get the same loss, {}, to the last bit.",
                format_float(cpu.loss, 4)
            ),
            false => format!(
                "Their losses are not the same: {} on the CPU, {} on the GPU.",
                cpu.loss, gpu.loss
            ),
        };
        format!("{result} {why}{copies} {same}")
    }
}

/// The rows of a step's timeline as HTML.
pub fn strips(step: &Step, end: Duration) -> String {
    let strips = Timeline::of(&step.trace).to_strips(end);
    let strip = |strip: &drawing::Strip| {
        format!(
            "<div class=\"strip\"><span class=\"strip-name\">{}</span><div class=\"strip-bars\">{}</div></div>",
            strip.name, strip.svg
        )
    };
    strips.iter().map(strip).collect()
}

/// `412 µs`
pub fn microseconds(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

/// The ratio to lab 03's batch, as the start of a sentence.
fn times(batch: usize) -> String {
    match batch / BATCH {
        4 => "Four times".to_owned(),
        16 => "Sixteen times".to_owned(),
        64 => "Sixty-four times".to_owned(),
        256 => "Two hundred and fifty-six times".to_owned(),
        times => format!("{times} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_is_told_by_its_figures_and_the_loss_is_the_same() {
        for card in ["t4", "h200"] {
            for batch in LIVE {
                let raced = Raced::run(card, batch, card == "h200").unwrap();
                let words = raced.verdict();
                assert!(
                    words.contains("(modelled)") && words.contains(" to the last bit."),
                    "{words}"
                );
                let ahead =
                    if raced.winner() == "cpu" { "The CPU is " } else { "The GPU is " };
                assert!(words.starts_with(ahead), "{words}");
                assert!(raced.end() >= raced.cpu.done.max(raced.gpu.done));
            }
        }
        assert!(
            Raced::run("a100", 64, false).is_err()
                && Raced::run("t4", 65, false).is_err()
        );
    }
}
