//! Three numbers for the same memory, and a fourth.

use std::cell::{Cell, RefCell};

use todevice::cuda;
use todevice::prelude::*;

use crate::{Case, Diagnosis, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::cuda;
    use todevice::prelude::*;

    /// Takes one step, and then reads four numbers, all of them in bytes: what tensors
    /// held at most during the step, what the allocator has reserved after it, what
    /// `nvidia-smi` shows as Memory-Usage then, and how much of that `empty_cache` gives
    /// back.
    pub fn ladder(step: &dyn Fn() -> Result<()>) -> Result<[u64; 4]> {
        step()?;
        let at_most = cuda::max_memory_allocated();
        let reserved = cuda::memory_reserved();
        let in_use = cuda::device_memory_used()?;
        cuda::empty_cache()?;
        let given_back = reserved - cuda::memory_reserved();
        Ok([at_most, reserved, in_use, given_back])
    }
    // END
}

type Ladder = fn(&dyn Fn() -> Result<()>) -> Result<[u64; 4]>;

const STEP: &str = "    step()?;\n";
const AT_MOST: &str = "    let at_most = cuda::max_memory_allocated();\n";
const RESERVED: &str = "    let reserved = cuda::memory_reserved();\n";
const IN_USE: &str = "    let in_use = cuda::device_memory_used()?;\n";
const EMPTY: &str = "    cuda::empty_cache()?;\n";
const GIVEN_BACK: &str = "    let given_back = reserved - cuda::memory_reserved();\n";
const ALL: &str = "    Ok([at_most, reserved, in_use, given_back])\n";

pub static EXERCISE: Exercise = Exercise {
    id: "05-reading",
    title: "Three rungs and a way down",
    kind: Kind::Write,
    task: "How much memory does a step take? Ask three counters, and you get three answers. `ladder` takes one step \
           and returns them from the smallest to the largest: what tensors held at most *during* the step, what the \
           allocator has reserved after it, and what `nvidia-smi` would show as Memory-Usage then. The fourth number \
           says how much of that memory `empty_cache()` gives back. All four are in bytes. Take the memory as you find it: \
           the program has used the GPU before, and the peak counters have been reset since.",
    hints: [
        "Each of the three has a function of its own in `todevice::cuda`. Read all three before you change anything.",
        "Not all that is free can be given back: a segment stays as long as one small tensor lives in it. So give back what you \
         can, and look at what has changed.",
        "`max_memory_allocated()`, `memory_reserved()`, `device_memory_used()?`; then `empty_cache()?`, and \
         `memory_reserved()` once more.",
    ],
    afterwards: "If someone tells you how much memory a model needs, ask which of these numbers it was.",
    source: include_str!("05-reading.rs"),
    functions: &[("ladder", "pub fn ladder(step: &dyn Fn() -> Result<()>) -> Result<[u64; 4]>")],
    skeleton: &[
        (AT_MOST, "    // What did tensors hold at most, what is reserved, what does `nvidia-smi` show?\n"),
        (RESERVED, "    // And how much of it does `cuda::empty_cache()?` give back?\n"),
        (IN_USE, "    todo!(\"read the four numbers\")\n"),
        (EMPTY, ""),
        (GIVEN_BACK, ""),
        (ALL, ""),
    ],
    styles: &[
        Style {
            name: "from_the_monitor",
            edits: &[
                (RESERVED, "    let index = cuda::current_device()?;\n    let reserved = cuda::device(index, cuda::memory_reserved)?;\n"),
                (IN_USE, "    let in_use = todevice::monitor::gpu(index)?.memory_used;\n"),
                (GIVEN_BACK, "    let given_back = in_use - todevice::monitor::gpu(index)?.memory_used;\n"),
            ],
        },
        Style {
            name: "from_the_driver",
            edits: &[
                (IN_USE, "    let (free, total) = cuda::mem_get_info()?;\n    let in_use = total - free;\n"),
                (GIVEN_BACK, "    let given_back = cuda::mem_get_info()?.0 - free;\n"),
            ],
        },
        Style {
            name: "from_a_snapshot",
            edits: &[
                (EMPTY, "    let segments = cuda::memory_snapshot();\n"),
                (
                    GIVEN_BACK,
                    "    let empty = segments.iter().filter(|segment| segment.allocated_size == 0);\n    \
                     let given_back = empty.map(|segment| segment.total_size).sum();\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "after_the_step",
            what: "The first number is what tensors hold after the step.",
            edits: &[(AT_MOST, "    let at_most = cuda::memory_allocated();\n")],
            diagnosis: "after-the-step",
        },
        Wrong {
            name: "before_the_step",
            what: "The numbers are read before the step.",
            edits: &[(STEP, ""), (EMPTY, "    step()?;\n    cuda::empty_cache()?;\n")],
            diagnosis: "before-the-step",
        },
        Wrong {
            name: "no_step",
            what: "No step is taken.",
            edits: &[(STEP, "    let _ = step;\n")],
            diagnosis: "no-step",
        },
        Wrong {
            name: "two_steps",
            what: "Two steps are taken: one to warm up, and one that is counted.",
            edits: &[(STEP, "    step()?;\n    step()?;\n")],
            diagnosis: "more-than-one-step",
        },
        Wrong {
            name: "emptied_first",
            what: "The cache is emptied before the numbers are read.",
            edits: &[
                (EMPTY, ""),
                (STEP, "    step()?;\n    let before = cuda::memory_reserved();\n    cuda::empty_cache()?;\n"),
                (GIVEN_BACK, "    let given_back = before - reserved;\n"),
            ],
            diagnosis: "emptied-first",
        },
        Wrong {
            name: "emptied_before",
            what: "The cache is emptied before the step, to begin with a clean slate.",
            edits: &[(STEP, "    todevice::cuda::empty_cache()?;\n    step()?;\n")],
            diagnosis: "emptied-before-the-step",
        },
        Wrong {
            name: "most_reserved",
            what: "The second number is the most that was ever reserved, not the memory reserved now.",
            edits: &[(RESERVED, "    let reserved = cuda::max_memory_reserved();\n")],
            diagnosis: "most-reserved",
        },
        Wrong {
            name: "swapped",
            what: "The first two numbers are swapped.",
            edits: &[(ALL, "    Ok([reserved, at_most, in_use, given_back])\n")],
            diagnosis: "order",
        },
        Wrong {
            name: "added_up",
            what: "Reserved memory and the memory of tensors are added up for Memory-Usage.",
            edits: &[(IN_USE, "    let in_use = reserved + cuda::memory_allocated();\n")],
            diagnosis: "in-use",
        },
        Wrong {
            name: "reserved_twice",
            what: "Reserved memory is taken for the number that `nvidia-smi` shows.",
            edits: &[(IN_USE, "    let in_use = reserved;\n")],
            diagnosis: "without-the-context",
        },
        Wrong {
            name: "free",
            what: "The first number of `mem_get_info` is taken for the memory in use.",
            edits: &[(IN_USE, "    let in_use = cuda::mem_get_info()?.0;\n")],
            diagnosis: "free",
        },
        Wrong {
            name: "this_program",
            what: "The line of this program among the processes is taken for Memory-Usage.",
            edits: &[(
                IN_USE,
                "    let gpu = todevice::monitor::gpu(cuda::current_device()?)?;\n    \
                 let this = gpu.processes.iter().find(|process| process.is_this);\n    \
                 let in_use = this.and_then(|process| process.used_memory).unwrap_or(0);\n",
            )],
            diagnosis: "this-program-only",
        },
        Wrong {
            name: "memory_usage",
            what: "`memory_usage()` sounds right, but is a share of time in percent.",
            edits: &[(IN_USE, "    let in_use = u64::from(cuda::memory_usage()?);\n")],
            diagnosis: "percent-of-time",
        },
        Wrong {
            name: "all_that_is_free",
            what: "All memory that no tensor holds is counted as memory to give back.",
            edits: &[(EMPTY, ""), (GIVEN_BACK, "    let given_back = reserved - cuda::memory_allocated();\n")],
            diagnosis: "free-is-not-given-back",
        },
        Wrong {
            name: "less_the_peak",
            what: "Reserved memory less the peak is counted as memory to give back.",
            edits: &[(EMPTY, ""), (GIVEN_BACK, "    let given_back = reserved - at_most;\n")],
            diagnosis: "less-the-peak",
        },
        Wrong {
            name: "counted_in_tensors",
            what: "The memory given back is looked for among the bytes of tensors.",
            edits: &[
                (EMPTY, "    let before = cuda::memory_allocated();\n    cuda::empty_cache()?;\n"),
                (GIVEN_BACK, "    let given_back = before - cuda::memory_allocated();\n"),
            ],
            diagnosis: "counted-in-tensors",
        },
        Wrong {
            name: "what_stays",
            what: "The fourth number is the memory still reserved.",
            edits: &[(GIVEN_BACK, "    let given_back = cuda::memory_reserved();\n")],
            diagnosis: "what-stays",
        },
        Wrong {
            name: "mebibytes",
            what: "The numbers are in MiB.",
            edits: &[(ALL, "    Ok([at_most, reserved, in_use, given_back].map(|bytes| bytes >> 20))\n")],
            diagnosis: "not-bytes",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200", "sim:t4,others=1GiB"],
    sizes: &[24, 40],
    observe: |case| observe(case, solution::ladder),
    judge,
};

/// The size of a case is that of the step's largest tensor, in MiB. What was on the GPU before depends on the seed.
pub fn observe(case: &Case, ladder: Ladder) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        let mebibytes = |count: usize| Tensor::empty((&[count << 18], device));
        let live = held(case, &mebibytes).expect("the machine is new and large");
        let before = [cuda::memory_allocated(), cuda::memory_reserved()];
        let (steps, at_the_step) = (Cell::new(0), Cell::new(0));
        let kept = RefCell::new(Vec::new());
        let step = || {
            steps.set(steps.get() + 1);
            at_the_step.set(cuda::memory_reserved());
            if case.seed.is_multiple_of(2) {
                // Two tensors, the second of which does not fit where the first was. Both are given back, so that less is
                // reserved afterwards than at most.
                mebibytes(case.size - 4)?;
                mebibytes(case.size)?;
                cuda::empty_cache()?;
            }
            let x = Tensor::ones((&[8, 8], device))?;
            let activations = mebibytes(case.size)?;
            // What an optimizer keeps, for instance.
            kept.borrow_mut().push(mebibytes(3)?);
            drop(activations);
            x.matmul(&x).map(drop)
        };
        let mut seen = crate::observe(case, || ladder(&step), |facts| {
            facts.insert("after".to_owned(), Value::Number(cuda::memory_allocated() as f64));
            facts.insert("most reserved".to_owned(), Value::Number(cuda::max_memory_reserved() as f64));
            facts.insert("all there is".to_owned(), Value::Number(cuda::mem_get_info()?.1 as f64));
            Ok(())
        });
        for (name, value) in [("before", before[0]), ("reserved before", before[1]), ("reserved at the step", at_the_step.get()), ("steps", steps.get())] {
            seen.facts.insert(name.to_owned(), Value::Number(value as f64));
        }
        drop(live);
        seen
    })
}

/// What another program holds, on the machine that has one.
const OTHERS: u64 = 1 << 30;

/// Tensors that live on, and gaps between them. In a segment of 20 MiB one tensor is left.
fn held(case: &Case, mebibytes: &dyn Fn(usize) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let seed = case.seed as usize;
    let small = (0..8).map(|_| mebibytes(2)).collect::<Result<Vec<_>>>()?;
    let mut live = vec![mebibytes(10 + seed % 4)?];
    mebibytes(14 + seed % 3)?; // dropped at once
    live.extend(small.into_iter().nth(seed % 8));
    Ok(live)
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let four = |seen: &Seen| -> Result<[u64; 4], Diagnosis> {
        let list = seen.returned()?.list();
        Ok([0, 1, 2, 3].map(|k| list.get(k).and_then(Value::number).unwrap_or(-1.0) as u64))
    };
    let fact = |seen: &Seen, name: &str| seen.fact(name).number().unwrap_or_default() as u64;
    let ([at_most, reserved, in_use, back], expected) = (four(seen)?, four(right)?);
    let [right_most, right_reserved, right_in_use, right_back] = expected;

    let steps = fact(seen, "steps");
    if steps == 0 {
        return Err(Diagnosis::new("no-step", "No step is taken.")
            .seen("no call of `step`")
            .expected("one")
            .idea("Counters tell you what has happened. Before the step they know nothing about it."));
    }
    if steps > 1 {
        return Err(Diagnosis::new("more-than-one-step", "More than one step is taken.")
            .seen(format!("{steps} calls of `step`"))
            .expected("1")
            .idea("A step may leave something behind, as Adam's first one does, and then the next has another peak. Measure the one that is asked for."));
    }
    let (found, at_the_step) = (fact(seen, "reserved before"), fact(seen, "reserved at the step"));
    if at_the_step < found {
        return Err(Diagnosis::new("emptied-before-the-step", "The cache was emptied before the step.")
            .seen(format!("{at_the_step} bytes reserved when the step began"))
            .expected(format!("{found} bytes, as they were found"))
            .idea("An empty cache makes the step ask the driver for memory again, and the numbers are no longer those of this program."));
    }
    if [at_most, reserved, in_use, back] == expected {
        return Ok(());
    }
    if [at_most, reserved, in_use, back] == expected.map(|bytes| bytes >> 20) {
        return Err(Diagnosis::new("not-bytes", "The numbers are in MiB.")
            .seen(format!("{at_most}, {reserved}, {in_use} and {back}"))
            .expected(format!("{right_most}, {right_reserved}, {right_in_use} and {right_back}"))
            .idea("Much can hide below a MiB. Round when you print, not when you measure."));
    }
    let sorted = |mut numbers: [u64; 4]| {
        numbers.sort_unstable();
        numbers
    };
    if sorted([at_most, reserved, in_use, back]) == sorted(expected) {
        return Err(Diagnosis::new("order", "The four numbers are right, but in another order.")
            .seen(format!("{at_most}, {reserved}, {in_use} and {back}"))
            .expected(format!("{right_most}, {right_reserved}, {right_in_use} and {right_back}"))
            .idea("In this order: the peak of the tensors, the reserved memory, the memory in use, and the memory given back."));
    }
    let of = |diagnosis: Diagnosis, seen: u64, expected: u64| {
        diagnosis.seen(format!("{seen} bytes")).expected(format!("{expected} bytes"))
    };
    if at_most == fact(right, "before") && reserved == fact(right, "reserved before") {
        return Err(of(Diagnosis::new("before-the-step", "The numbers are those from before the step."), at_most, right_most)
            .idea("A counter tells you what is there when you read it, and a peak what was there until then. Take the step first, then read."));
    }
    if at_most == fact(right, "after") {
        return Err(of(Diagnosis::new("after-the-step", "The first number is what tensors hold after the step."), at_most, right_most)
            .idea("In the middle of a step there is more: activations come and go. The peak decides whether a step fits."));
    }
    if at_most != right_most {
        return Err(of(Diagnosis::new("at-most", "The first number is not what tensors held at most."), at_most, right_most)
            .idea("Each counter of the allocator has a second one beside it, which remembers the highest value."));
    }
    let stays = right_reserved - right_back;
    if reserved == stays {
        return Err(of(Diagnosis::new("emptied-first", "The cache was emptied before the second number was read."), reserved, right_reserved)
            .idea("`empty_cache` changes what it would show. Read first."));
    }
    if reserved > right_reserved && reserved == fact(seen, "most reserved") {
        return Err(of(Diagnosis::new("most-reserved", "The second number is the most that the allocator had reserved."), reserved, right_reserved)
            .idea("This step gives some memory back. The task asks for what is reserved after it."));
    }
    if reserved != right_reserved {
        return Err(of(Diagnosis::new("reserved", "The second number is not the memory that the allocator has reserved."), reserved, right_reserved)
            .idea("Reserved is all that the allocator has from the driver, whether tensors hold it or not."));
    }
    if in_use != right_in_use {
        let total = fact(right, "all there is");
        let diagnosis = if in_use == right_reserved {
            Diagnosis::new("without-the-context", "The third number is the allocator's memory, and `nvidia-smi` shows more.")
                .idea("CUDA itself takes memory as soon as a program uses the GPU, its context. No counter of the allocator knows of it.")
        } else if in_use == total - right_in_use {
            Diagnosis::new("free", "The third number is the free memory, not the memory in use.")
                .idea("`mem_get_info()` returns two numbers: the free memory and the total.")
        } else if in_use <= 100 {
            Diagnosis::new("percent-of-time", "The third number is a percentage.")
                .idea("`memory_usage()` is the share of time in which memory was read or written. It does not say how full it is.")
        } else if in_use == right_in_use - right_back {
            Diagnosis::new("emptied-first-too", "The cache was emptied before the third number was read.")
                .idea("`empty_cache` changes what it would show. Read first.")
        } else if case.gpu.contains("others") && in_use == right_in_use - OTHERS {
            return Err(Diagnosis::new("this-program-only", "The third number leaves out what other programs hold.")
                .seen(format!("{in_use} bytes"))
                .expected(format!("{right_in_use} bytes: another program holds {OTHERS} of them"))
                .idea("Memory-Usage is what all programs use together. What this program holds is its line among the processes."));
        } else {
            Diagnosis::new("in-use", "The third number is not what `nvidia-smi` shows as Memory-Usage.")
                .idea("It is what the driver has given to all programs, with the context of each.")
        };
        return Err(of(diagnosis, in_use, right_in_use));
    }
    let free = right_reserved - fact(right, "after");
    let diagnosis = if back == free {
        Diagnosis::new("free-is-not-given-back", "The fourth number is all that no tensor holds. Not all of it can be given back.")
            .idea("Only whole segments go back to the driver. One small tensor keeps its segment, with all that is free in it.")
    } else if back == right_reserved - right_most {
        Diagnosis::new("less-the-peak", "The fourth number is the reserved memory less the peak.")
            .idea("The peak is over. What can be given back now depends on which segments are empty now.")
    } else if back == stays {
        Diagnosis::new("what-stays", "The fourth number is the memory still reserved afterwards.")
            .idea("What was given back is the difference: before, less after.")
    } else if back == 0 {
        Diagnosis::new("counted-in-tensors", "The fourth number is 0, but something was given back.")
            .idea("`empty_cache` takes nothing from tensors, so allocated stays as it is. What falls is reserved memory, and Memory-Usage with it.")
    } else {
        Diagnosis::new("given-back", "The fourth number is not what `empty_cache` gives back.")
            .idea("Read `memory_reserved()`, give back, and read it again.")
    };
    Err(of(diagnosis, back, right_back))
}
