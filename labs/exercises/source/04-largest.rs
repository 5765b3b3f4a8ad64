//! The largest batch, without a crash.

use std::cell::RefCell;

use todevice::cuda;
use todevice::prelude::*;

use crate::{Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// The largest batch whose training step needs at most `budget` bytes of the GPU's
    /// memory. `step` trains with a batch of that many samples, and returns its peak.
    pub fn largest_batch(
        budget: u64,
        step: &mut dyn FnMut(u64) -> Result<u64>,
    ) -> Result<u64> {
        let small = step(8)?;
        let larger = step(24)?;
        let per_sample = (larger - small) as f64 / 16.0;
        let fixed = small as f64 - 8.0 * per_sample;
        Ok(((budget as f64 - fixed) / per_sample) as u64)
    }
    // END
}

type LargestBatch = fn(u64, &mut dyn FnMut(u64) -> Result<u64>) -> Result<u64>;

const SMALL: &str = "    let small = step(8)?;\n";
const LARGER: &str = "    let larger = step(24)?;\n";
const PER_SAMPLE: &str = "    let per_sample = (larger - small) as f64 / 16.0;\n";
const FIXED: &str = "    let fixed = small as f64 - 8.0 * per_sample;\n";
const LARGEST: &str = "    Ok(((budget as f64 - fixed) / per_sample) as u64)\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "04-dies";

pub static EXERCISE: Exercise = Exercise {
    id: "04-largest",
    title: "The largest batch, without a crash",
    kind: Kind::Write,
    task: "Write `largest_batch`. It may try a step two or three times, each time with at most 64 samples, and then it has to know the \
           largest batch whose peak is at most `budget`. Being 1 % below that is fine. Being above it is not.",
    hints: [
        "The peak has a part that is there for any batch, and a part for each sample. How many runs tell two numbers?",
        "What the peaks of two runs differ by is the activations of the samples that they differ by.",
        "`per_sample` is the difference of the peaks over the difference of the batches, `fixed` is a peak without its samples, and \
         the answer is `(budget - fixed) / per_sample`, rounded down.",
    ],
    afterwards: "Leave some room all the same: fragmentation, a longer sequence, or another program's memory come on top.",
    source: include_str!("04-largest.rs"),
    functions: &[(
        "largest_batch",
        "pub fn largest_batch(budget: u64, step: &mut dyn FnMut(u64) -> Result<u64>) -> Result<u64>",
    )],
    skeleton: &[
        (SMALL, "    let _small = step(8)?;\n"),
        (LARGER, ""),
        (PER_SAMPLE, "    // What does each sample add, and what is there without any?\n"),
        (FIXED, ""),
        (LARGEST, "    let _ = budget;\n    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "whole_numbers",
            edits: &[
                (SMALL, "    let small = step(16)?;\n"),
                (LARGER, "    let larger = step(48)?;\n"),
                (PER_SAMPLE, "    let of_32 = larger - small;\n"),
                (FIXED, ""),
                (LARGEST, "    Ok(48 + 32 * (budget - larger) / of_32)\n"),
            ],
        },
        Style {
            name: "from_the_larger",
            edits: &[(FIXED, "    let fixed = larger as f64 - 24.0 * per_sample;\n")],
        },
        Style {
            name: "a_little_less",
            edits: &[(LARGEST, "    Ok((0.995 * (budget as f64 - fixed) / per_sample) as u64)\n")],
        },
    ],
    wrong: &[
        Wrong {
            name: "one_run",
            what: "One run is taken for all: the peak is divided by its samples.",
            edits: &[
                (LARGER, ""),
                (PER_SAMPLE, "    let per_sample = small as f64 / 8.0;\n"),
                (FIXED, "    let fixed = 0.0;\n"),
            ],
            diagnosis: "one-run",
        },
        Wrong {
            name: "fixed_forgotten",
            what: "The part that is there for any batch is forgotten.",
            edits: &[(FIXED, "    let fixed = 0.0;\n")],
            diagnosis: "fixed-forgotten",
        },
        Wrong {
            name: "small_run_is_fixed",
            what: "The whole peak of the small run is taken for the fixed part.",
            edits: &[(FIXED, "    let fixed = small as f64;\n")],
            diagnosis: "small-run-is-fixed",
        },
        Wrong {
            name: "averages",
            what: "Peak per sample is computed for the larger run, fixed part included.",
            edits: &[
                (PER_SAMPLE, "    let per_sample = larger as f64 / 24.0;\n"),
                (FIXED, "    let fixed = 0.0;\n    let _ = small;\n"),
            ],
            diagnosis: "average-of-the-larger",
        },
        Wrong {
            name: "wrong_difference",
            what: "The difference of the peaks is divided by the larger batch.",
            edits: &[(PER_SAMPLE, "    let per_sample = (larger - small) as f64 / 24.0;\n")],
            diagnosis: "too-large",
        },
        Wrong {
            name: "rounded_up",
            what: "The result is rounded up, and so it needs more than there is.",
            edits: &[(LARGEST, "    Ok(((budget as f64 - fixed) / per_sample).ceil() as u64 + 1)\n")],
            diagnosis: "just-too-large",
        },
        Wrong {
            name: "until_it_fails",
            what: "Larger and larger batches are tried until one does not fit.",
            edits: &[
                (SMALL, "    let mut samples = 8;\n    while step(2 * samples)? <= budget {\n        samples *= 2;\n    }\n"),
                (LARGER, ""),
                (PER_SAMPLE, ""),
                (FIXED, ""),
                (LARGEST, "    Ok(samples)\n"),
            ],
            diagnosis: "tries-large-batches",
        },
        Wrong {
            name: "one_by_one",
            what: "Many small batches are tried.",
            edits: &[
                (
                    LARGER,
                    "    let mut larger = small;\n    for samples in 9..=24 {\n        larger = step(samples)?;\n    }\n",
                ),
            ],
            diagnosis: "too-many-runs",
        },
        Wrong {
            name: "the_same_twice",
            what: "The same batch is tried twice, and two equal runs tell no difference.",
            edits: &[(LARGER, "    let larger = step(8)?;\n")],
            diagnosis: "no-difference",
        },
        Wrong {
            name: "half_to_be_safe",
            what: "Half of the result is returned, to be safe.",
            edits: &[(LARGEST, "    Ok(((budget as f64 - fixed) / per_sample / 2.0) as u64)\n")],
            diagnosis: "far-below",
        },
        Wrong {
            name: "fixed_added",
            what: "The fixed part is added to the budget.",
            edits: &[(LARGEST, "    Ok(((budget as f64 + fixed) / per_sample) as u64)\n")],
            diagnosis: "fixed-added",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200"],
    sizes: &[24, 40],
    observe: |case| observe(case, solution::largest_batch),
    judge,
};

const WIDTH: usize = 16;

/// Parameters that are small, so that activations decide where the peak is, for a small batch as for a large one.
fn network() -> Result<nn::Sequential> {
    let layers = (nn::Linear::new(WIDTH, 32)?, nn::ReLU, nn::Linear::new(32, WIDTH)?, nn::ReLU, nn::Linear::new(WIDTH, 4)?);
    Ok(nn::Sequential::new(layers))
}

/// The size of a case is the length of a sample, which has `WIDTH` numbers at each place.
pub fn observe(case: &Case, largest_batch: LargestBatch) -> Seen {
    case.machine().enter(|| {
        manual_seed(case.seed);
        let device = case.device();
        let net = network().expect("it is small");
        net.to(device).expect("it is small");
        let peak_of = |samples: u64| -> Result<u64> {
            let x = Tensor::zeros((&[samples as usize, case.size, WIDTH], device))?;
            cuda::reset_peak_memory_stats();
            net.forward(&x)?.square()?.mean()?.backward()?;
            net.zero_grad();
            Ok(cuda::max_memory_allocated())
        };
        // What some hundreds of samples need. The first run also makes the library's workspace.
        let budget = (|| {
            peak_of(1)?;
            let [one, more] = [peak_of(1)?, peak_of(33)?];
            Ok::<u64, Error>(one + (300 + 40 * (case.seed % 5)) * (more - one) / 32)
        })();
        let budget = budget.expect("it is small");
        let (tried, peaks) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let mut seen = crate::observe(
            case,
            || {
                largest_batch(budget, &mut |samples| {
                    tried.borrow_mut().push(samples as f64);
                    if samples == 0 || samples > MOST {
                        return Err(Error::custom(format!("a batch of {samples} samples was tried")));
                    }
                    let peak = peak_of(samples)?;
                    peaks.borrow_mut().push(peak as f64);
                    Ok(peak)
                })
            },
            |_| Ok(()),
        );
        let fact = |value: Result<Value>| value.unwrap_or(Value::None);
        seen.facts.insert("tried".to_owned(), fact(tried.take().into_value()));
        seen.facts.insert("budget".to_owned(), Value::Number(budget as f64));
        seen.facts.insert("peaks".to_owned(), fact(peaks.take().into_value()));
        let answer = seen.value().number().unwrap_or(0.0) as u64;
        if (1..2_000).contains(&answer) {
            let needed = [answer, answer + answer.div_ceil(100)].map(|samples| peak_of(samples).map(|peak| peak as f64));
            let needed: Result<Vec<f64>> = needed.into_iter().collect();
            seen.facts.insert("needed".to_owned(), fact(needed.and_then(IntoValue::into_value)));
        }
        seen
    })
}

/// No larger batch may be tried.
const MOST: u64 = 64;

fn judge(_: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let list = |name: &str| seen.fact(name).list().iter().filter_map(Value::number).collect::<Vec<_>>();
    let tried = list("tried");
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("samples was tried")
    {
        return Err(Diagnosis::new("tries-large-batches", "Large batches are tried.")
            .seen(message)
            .expected(format!("two or three runs of 1 to {MOST} samples"))
            .idea("A batch that does not fit ends the program, and maybe those of others. Two small runs tell what a large one needs."));
    }
    let answer = seen.returned()?.number().unwrap_or(f64::NAN);
    let wanted = right.value().number().unwrap_or(f64::NAN);
    let budget = right.fact("budget").number().unwrap_or(f64::NAN);
    let told = |id: &str, says: &str, idea: &str| {
        let needed = list("needed").first().map_or_else(String::new, |bytes| format!(", which need {} KiB", (bytes / 1024.0) as u64));
        Err(Diagnosis::new(id, says)
            .seen(if answer < 1e6 { format!("{answer} samples{needed}") } else { "more than a million samples".to_owned() })
            .expected(format!("about {wanted} samples, which need at most {} KiB", (budget / 1024.0) as u64))
            .idea(idea))
    };
    if tried.len() > 3 {
        return Err(Diagnosis::new("too-many-runs", "Too many steps are tried.")
            .seen(format!("{} runs", tried.len()))
            .expected("two or three")
            .idea("Two points determine a line. More runs tell nothing new."));
    }
    let fits = list("needed").first().is_some_and(|bytes| *bytes <= budget);
    let larger_fits = list("needed").get(1).is_some_and(|bytes| *bytes <= budget);
    if fits && !larger_fits {
        return Ok(());
    }
    if tried.len() < 2 {
        return told(
            "one-run",
            "One run cannot tell the samples from the rest.",
            "A peak has two parts: parameters and their gradients, and the activations of each sample. Two runs tell them apart.",
        );
    }
    if tried.iter().all(|samples| *samples == tried[0]) {
        return told("no-difference", "All runs have the same batch.", "Let the batches differ: then the peaks differ by some samples.");
    }
    if !fits && answer < 1.01 * wanted {
        return told("just-too-large", "The batch is too large by a little.", "Round down: a part of a sample needs the whole memory of one.");
    }
    // What each mistake would give, from the peaks of these very runs.
    let (first, last) = (tried[0], tried[tried.len() - 1]);
    let peaks = list("peaks");
    let (small, large) = (peaks[0], peaks[peaks.len() - 1]);
    let per_sample = (large - small) / (last - first);
    let fixed = small - first * per_sample;
    let is = |value: f64| (answer - value).abs() <= 1.0;
    if is(budget / per_sample) {
        return told(
            "fixed-forgotten",
            "The part that is there for any batch is forgotten.",
            "Parameters and gradients take memory, too. What is left of the budget is for the samples.",
        );
    }
    if is((budget - small) / per_sample) {
        return told(
            "small-run-is-fixed",
            "The whole peak of the small run is taken for the fixed part.",
            "That run had samples as well. Take away what they need.",
        );
    }
    if is(budget * last / large) {
        return told(
            "average-of-the-larger",
            "A peak is divided by its samples, and the fixed part with it.",
            "Only the difference of two peaks is due to samples alone.",
        );
    }
    if is((budget + fixed) / per_sample) {
        return told("fixed-added", "The fixed part is added to the budget.", "It is a part of what the step needs. Subtract it.");
    }
    if fits {
        return told("far-below", "A much larger batch fits as well.", "Compute what is left for samples, and use it.");
    }
    told("too-large", "The batch does not fit.", "Divide the difference of the peaks by the difference of the batches.")
}
