//! Whether it fits, asked before it is made.

use todevice::cuda::{self, BlockState};
use todevice::monitor;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::cuda::{self, BlockState};
    use todevice::prelude::*;

    /// Whether a tensor of `bytes` bytes, 10 MiB or more, could be made on a GPU now. A new
    /// segment for it would be as large, rounded up to a multiple of 2 MiB.
    pub fn fits(bytes: u64, device: Device) -> Result<bool> {
        let index = device.index();
        let (mut room, _) = cuda::device(index, cuda::mem_get_info)??;
        for segment in cuda::memory_snapshot() {
            if segment.device != index {
                continue;
            }
            for block in &segment.blocks {
                if block.state == BlockState::Inactive && block.size >= bytes {
                    return Ok(true);
                }
            }
            if segment.allocated_size == 0 {
                room += segment.total_size;
            }
        }
        Ok(bytes.next_multiple_of(2 << 20) <= room)
    }
    // END
}

type Fits = fn(u64, Device) -> Result<bool>;

const USES: &str = "use todevice::cuda::{self, BlockState};\n";
const INDEX: &str = "    let index = device.index();\n";
const ROOM: &str = "    let (mut room, _) = cuda::device(index, cuda::mem_get_info)??;\n";
const LOOP: &str = "    for segment in cuda::memory_snapshot() {
        if segment.device != index {
            continue;
        }
        for block in &segment.blocks {
            if block.state == BlockState::Inactive && block.size >= bytes {
                return Ok(true);
            }
        }
        if segment.allocated_size == 0 {
            room += segment.total_size;
        }
    }
";
const HERE: &str = "        if segment.device != index {
            continue;
        }
";
const GAPS: &str = "        for block in &segment.blocks {
            if block.state == BlockState::Inactive && block.size >= bytes {
                return Ok(true);
            }
        }
";
const EMPTY: &str = "        if segment.allocated_size == 0 {
            room += segment.total_size;
        }
";
const ANSWER: &str = "    Ok(bytes.next_multiple_of(2 << 20) <= room)\n";

/// `use` without what only the snapshot needs.
const PLAIN: crate::Edit = (USES, "use todevice::cuda;\n");

/// The exercise before this one in the chapter.
pub const AFTER: &str = "05-reading";

pub static EXERCISE: Exercise = Exercise {
    id: "05-fits",
    title: "Room for one more",
    kind: Kind::Fix,
    task: "A program that wants to make a large tensor asks `fits` first, and takes a smaller batch if the answer is \
           no. But `fits` says yes to tensors that do not fit. Fix it: it should say yes whenever \
           `Tensor::empty` would succeed at that moment, and no whenever that call would run out of memory. It only \
           looks: it makes no tensor, and leaves the allocator's cache and the current device as they are. It is \
           checked on cards with little memory, one of them shared with another program, and on a machine with two \
           GPUs. All work is on the default stream.",
    hints: [
        "Who else holds memory of this GPU? `memory_allocated` knows of your tensors, and of nothing else. The driver knows \
         what everybody has.",
        "A tensor lies in one piece: either in a gap that the allocator has already, or in a new segment. Before the \
         allocator gives up, it returns every empty segment to the driver. So the two questions are: how large is the \
         largest gap, and how much would the driver have free once those segments are returned?",
        "Begin with `cuda::device(device.index(), cuda::mem_get_info)??.0`. Go through `cuda::memory_snapshot()`: skip segments of \
         another `device`, return `Ok(true)` for a block that is `BlockState::Inactive` and large enough, and add the \
         `total_size` of each segment whose `allocated_size` is 0. Compare that with `bytes.next_multiple_of(2 << 20)`.",
    ],
    afterwards: "Between your question and the allocation another program may take what was free. So a program that has to \
                 go on simply tries, and handles the error.",
    source: include_str!("05-fits.rs"),
    functions: &[("fits", "pub fn fits(bytes: u64, device: Device) -> Result<bool>")],
    skeleton: &[
        PLAIN,
        (ROOM, "    let total = cuda::get_device_properties(index)?.total_memory;\n"),
        (LOOP, "    let used = cuda::device(index, cuda::memory_allocated)?;\n"),
        (ANSWER, "    Ok(bytes <= total - used)\n"),
    ],
    styles: &[
        Style {
            name: "with_iterators",
            edits: &[
                (INDEX, ""),
                (ROOM, "    let free = cuda::device(device.index(), cuda::mem_get_info)??.0;\n"),
                (
                    LOOP,
                    "    let mut segments = cuda::memory_snapshot();\n    \
                     segments.retain(|segment| segment.device == device.index());\n    \
                     let empty = segments.iter().filter(|segment| segment.active_size == 0);\n    \
                     let free = free + empty.map(|segment| segment.total_size).sum::<u64>();\n    \
                     let blocks = segments.iter().flat_map(|segment| &segment.blocks);\n    \
                     let free_blocks = blocks.filter(|block| block.state == BlockState::Inactive);\n    \
                     let largest = free_blocks.map(|block| block.size).max().unwrap_or(0);\n",
                ),
                (ANSWER, "    Ok(bytes <= largest || bytes <= free / (2 << 20) * (2 << 20))\n"),
            ],
        },
        Style {
            name: "from_the_counters",
            edits: &[
                PLAIN,
                (
                    ROOM,
                    "    let (mut room, _) = cuda::device(index, cuda::mem_get_info)??;\n    \
                     let stats = cuda::device(index, cuda::memory_stats)?;\n    \
                     let bytes_of = |name: &str| stats[&format!(\"{name}_bytes.all.current\")] as u64;\n    \
                     room += bytes_of(\"reserved\") - bytes_of(\"active\") - bytes_of(\"inactive_split\");\n",
                ),
                (
                    LOOP,
                    "    let segments = cuda::memory_snapshot().into_iter();\n    \
                     let mut blocks = segments.filter(|s| s.device == index).flat_map(|s| s.blocks);\n    \
                     let gap = blocks.any(|block| block.requested_size == 0 && block.size >= bytes);\n",
                ),
                (ANSWER, "    Ok(gap || bytes.div_ceil(2 << 20) <= room >> 21)\n"),
            ],
        },
        Style {
            name: "from_the_monitor",
            edits: &[(
                ROOM,
                "    let gpu = todevice::monitor::gpu(index)?;\n    \
                 let mut room = gpu.memory_total - gpu.memory_used;\n",
            )],
        },
    ],
    wrong: &[
        Wrong {
            name: "total_less_allocated",
            what: "Whatever no tensor of this program holds is counted as free.",
            edits: &[
                PLAIN,
                (ROOM, "    let total = cuda::get_device_properties(index)?.total_memory;\n"),
                (LOOP, "    let used = cuda::device(index, cuda::memory_allocated)?;\n"),
                (ANSWER, "    Ok(bytes <= total - used)\n"),
            ],
            diagnosis: "total-less-allocated",
        },
        Wrong {
            name: "total_less_reserved",
            what: "Whatever this program has not reserved is counted as free.",
            edits: &[
                PLAIN,
                (ROOM, "    let total = cuda::get_device_properties(index)?.total_memory;\n"),
                (LOOP, "    let used = cuda::device(index, cuda::memory_reserved)?;\n"),
                (ANSWER, "    Ok(bytes <= total - used)\n"),
            ],
            diagnosis: "total-less-reserved",
        },
        Wrong {
            name: "driver_alone",
            what: "Only the driver's free memory is counted.",
            edits: &[PLAIN, (ROOM, "    let (room, _) = cuda::device(index, cuda::mem_get_info)??;\n"), (LOOP, "")],
            diagnosis: "driver-alone",
        },
        Wrong {
            name: "free_and_allocated",
            what: "What tensors hold is added, as if it were free.",
            edits: &[PLAIN, (LOOP, "    room += cuda::device(index, cuda::memory_allocated)?;\n")],
            diagnosis: "tensors-counted-as-free",
        },
        Wrong {
            name: "all_reserved",
            what: "All that is reserved is taken for cache.",
            edits: &[PLAIN, (LOOP, "    room += cuda::device(index, cuda::memory_reserved)?;\n")],
            diagnosis: "all-reserved",
        },
        Wrong {
            name: "gaps_added_up",
            what: "All free memory is added up, wherever it lies.",
            edits: &[
                PLAIN,
                (
                    LOOP,
                    "    let reserved = cuda::device(index, cuda::memory_reserved)?;\n    \
                     room += reserved - cuda::device(index, cuda::memory_allocated)?;\n",
                ),
            ],
            diagnosis: "gaps-added-up",
        },
        Wrong {
            name: "cache_alone",
            what: "Only the allocator's free memory is counted.",
            edits: &[
                PLAIN,
                (ROOM, "    let reserved = cuda::device(index, cuda::memory_reserved)?;\n"),
                (LOOP, ""),
                (ANSWER, "    Ok(bytes <= reserved - cuda::device(index, cuda::memory_allocated)?)\n"),
            ],
            diagnosis: "cache-alone",
        },
        Wrong {
            name: "no_gaps",
            what: "Gaps between live tensors are left out.",
            edits: &[PLAIN, (GAPS, "")],
            diagnosis: "gap-forgotten",
        },
        Wrong {
            name: "nothing_given_back",
            what: "Empty segments are not counted, although the driver can have them back.",
            edits: &[("(mut room, _)", "(room, _)"), (EMPTY, "")],
            diagnosis: "empty-segments-forgotten",
        },
        Wrong {
            name: "gap_and_room",
            what: "The largest gap is added to the driver's free memory.",
            edits: &[
                (ROOM, "    let (mut room, _) = cuda::device(index, cuda::mem_get_info)??;\n    let mut largest = 0;\n"),
                (
                    "            if block.state == BlockState::Inactive && block.size >= bytes {\n                \
                     return Ok(true);\n            }\n",
                    "            if block.state == BlockState::Inactive && segment.allocated_size > 0 {\n                \
                     largest = block.size.max(largest);\n            }\n",
                ),
                (ANSWER, "    Ok(bytes.next_multiple_of(2 << 20) <= room + largest)\n"),
            ],
            diagnosis: "gap-added",
        },
        Wrong {
            name: "others_forgotten",
            what: "What this program has is subtracted, but not what other programs hold.",
            edits: &[(
                ROOM,
                "    let gpu = todevice::monitor::gpu(index)?;\n    \
                 let this = gpu.processes.iter().find(|process| process.is_this);\n    \
                 let used = this.and_then(|process| process.used_memory).unwrap_or(0);\n    \
                 let mut room = gpu.memory_total - used;\n",
            )],
            diagnosis: "others-forgotten",
        },
        Wrong {
            name: "percent",
            what: "`memory_usage()` is taken for how full the memory is.",
            edits: &[
                PLAIN,
                (ROOM, "    let total = cuda::get_device_properties(index)?.total_memory;\n"),
                (LOOP, "    let used = total / 100 * u64::from(cuda::memory_usage()?);\n"),
                (ANSWER, "    Ok(bytes <= total - used)\n"),
            ],
            diagnosis: "all-there-is",
        },
        Wrong {
            name: "elements",
            what: "Bytes are taken for elements of four bytes each.",
            edits: &[
                (INDEX, "    let index = device.index();\n    let bytes = bytes * 4;\n"),
            ],
            diagnosis: "elements",
        },
        Wrong {
            name: "not_rounded",
            what: "A segment is taken to be as large as the tensor.",
            edits: &[(ANSWER, "    Ok(bytes <= room)\n")],
            diagnosis: "not-rounded",
        },
        Wrong {
            name: "rounded_first",
            what: "The size is rounded up to 2 MiB for gaps as well.",
            edits: &[(
                INDEX,
                "    let index = device.index();\n    let bytes = bytes.next_multiple_of(2 << 20);\n",
            )],
            diagnosis: "rounded-for-a-gap",
        },
        Wrong {
            name: "less_than",
            what: "A tensor that fits exactly is refused.",
            edits: &[
                ("block.size >= bytes", "block.size > bytes"),
                (ANSWER, "    Ok(bytes.next_multiple_of(2 << 20) < room)\n"),
            ],
            diagnosis: "exactly",
        },
        Wrong {
            name: "other_gpu",
            what: "The free memory is that of the current GPU, whichever GPU is meant.",
            edits: &[(ROOM, "    let (mut room, _) = cuda::mem_get_info()?;\n")],
            diagnosis: "other-gpu",
        },
        Wrong {
            name: "all_gpus",
            what: "Segments of all GPUs are counted.",
            edits: &[(HERE, "")],
            diagnosis: "segments-of-all-gpus",
        },
        Wrong {
            name: "set_device",
            what: "The GPU is made the current one, and is not switched back.",
            edits: &[(
                ROOM,
                "    cuda::set_device(index)?;\n    let (mut room, _) = cuda::mem_get_info()?;\n",
            )],
            diagnosis: "current-device",
        },
        Wrong {
            name: "emptied",
            what: "The cache is emptied, and then the driver is asked.",
            edits: &[(INDEX, "    cuda::empty_cache()?;\n    let index = device.index();\n")],
            diagnosis: "cache-emptied",
        },
        Wrong {
            name: "tried",
            what: "The tensor is made to see whether that works.",
            edits: &[
                (USES, ""),
                (INDEX, ""),
                (ROOM, ""),
                (LOOP, ""),
                (ANSWER, "    Ok(Tensor::empty((&[bytes as usize / 4], device)).is_ok())\n"),
            ],
            diagnosis: "tried",
        },
    ],
    // Its check fills gigabytes of memory, more than a page has.
    places: &[],
    // What others hold is no multiple of 2 MiB on the first, and the GPU that is asked about is not the current one on the second.
    gpus: &["sim:t4,mem=1GiB,others=301MiB", "sim:h200x2,mem=2GiB", "sim:rtx4090,mem=1GiB"],
    sizes: &[64, 160],
    observe: |case| observe(case, solution::fits),
    judge,
};

const MIB: u64 = 1 << 20;

/// The size of a case is that of the largest gap, in MiB: one is less than the driver would have, the other is more. How much
/// is free, and in which pieces, depends on the seed.
pub fn observe(case: &Case, fits: Fits) -> Seen {
    let (mut seen, questions) = case.machine().enter(|| {
        let (device, live) = given(case).expect("the machine is new and has the room");
        let current = cuda::current_device().expect("it has one");
        let memory = [device.index(), current].map(|index| Memory::of(index).expect("it can be monitored"));
        let questions = questions(case, memory);
        let answers = || questions.iter().map(|&bytes| fits(bytes, device)).collect::<Result<Vec<_>>>();
        let mut seen = crate::observe(case, answers, |facts| {
            let moved = cuda::current_device()? != current;
            facts.insert("current device moved".to_owned(), Value::Flag(moved));
            Ok(())
        });
        drop(live);
        seen.facts.insert("memory".to_owned(), Value::List(memory.map(Memory::to_value).into()));
        (seen, questions)
    });
    // Each is tried where nothing has been tried before: a failure empties the cache, and a success may reserve more.
    let tried = questions.iter().map(|&bytes| Value::Flag(succeeds(case, bytes)));
    seen.facts.insert("tried".to_owned(), Value::List(tried.collect()));
    let questions = questions.iter().map(|&bytes| Value::Number(bytes as f64));
    seen.facts.insert("questions".to_owned(), Value::List(questions.collect()));
    seen
}

/// What happens if a tensor of so many bytes is made.
fn succeeds(case: &Case, bytes: u64) -> bool {
    case.machine().enter(|| {
        let (device, _live) = given(case).expect("the machine is new and has the room");
        match Tensor::empty((&[bytes as usize / 4], device)) {
            Ok(_) => true,
            Err(error) if error.code() == Some("GPU0002") => false,
            Err(error) => panic!("{error}"),
        }
    })
}

/// The GPU that is asked about, and what lives on the machine. It is the last GPU; the current one is the first.
fn given(case: &Case) -> Result<(Device, Vec<Tensor>)> {
    let seed = case.seed as usize;
    let last = cuda::device_count() - 1;
    let mut live = Vec::new();
    if last > 0 {
        live.extend(filled(Device::cuda(0), 32, [26, 40], 80)?);
    }
    let device = Device::cuda(last);
    let whole = [22 + 2 * (seed % 4), 30];
    live.extend(filled(device, case.size, whole, 44 + 2 * (seed % 7))?);
    Ok((device, live))
}

/// Fills a GPU with tensors until the driver has `left` MiB free, or one more. There are gaps: one of a MiB less than `gap`, and
/// ten of 2 MiB. In two segments of `whole` MiB nothing lives.
fn filled(device: Device, gap: usize, whole: [usize; 2], left: usize) -> Result<Vec<Tensor>> {
    let mebibytes = |count: usize| Tensor::empty((&[count << 18], device));
    let mut live = vec![Tensor::empty((&[1], device))?];
    let pieces = (0..20).map(|_| mebibytes(2)).collect::<Result<Vec<_>>>()?;
    let whole = [mebibytes(whole[0])?, mebibytes(whole[1])?];
    let cut = mebibytes(gap + 2)?;
    loop {
        let more = (cuda::device(device.index(), cuda::mem_get_info)??.0 / MIB) as usize - left;
        match more {
            ..10 => break,
            10..140 => live.push(mebibytes(more / 2 * 2)?),
            // Not all in one piece: the computer may have little memory itself.
            _ => live.push(mebibytes(128)?),
        }
    }
    drop(cut);
    live.push(mebibytes(3)?); // in what was just dropped
    live.extend(pieces.into_iter().step_by(2));
    drop(whole);
    Ok(live)
}

/// What decides, on one GPU, in bytes.
#[derive(Clone, Copy)]
struct Memory {
    total: u64,
    /// What the driver has.
    free: u64,
    others: u64,
    reserved: u64,
    allocated: u64,
    /// All segments in which nothing lives.
    empty: u64,
    /// The largest free block beside something that lives.
    gap: u64,
}

impl Memory {
    fn of(index: usize) -> Result<Memory> {
        let (free, total) = cuda::device(index, cuda::mem_get_info)??;
        let mut memory = Memory {
            total,
            free,
            others: monitor::gpu(index)?
                .processes
                .iter()
                .filter(|process| !process.is_this)
                .filter_map(|process| process.used_memory)
                .sum(),
            reserved: cuda::device(index, cuda::memory_reserved)?,
            allocated: cuda::device(index, cuda::memory_allocated)?,
            empty: 0,
            gap: 0,
        };
        for segment in cuda::memory_snapshot().iter().filter(|segment| segment.device == index) {
            if segment.allocated_size == 0 {
                memory.empty += segment.total_size;
                continue;
            }
            let free = segment.blocks.iter().filter(|block| block.state == BlockState::Inactive);
            memory.gap = free.map(|block| block.size).fold(memory.gap, u64::max);
        }
        Ok(memory)
    }

    fn to_value(self) -> Value {
        let Memory { total, free, others, reserved, allocated, empty, gap } = self;
        let all = [total, free, others, reserved, allocated, empty, gap];
        Value::List(all.map(|bytes| Value::Number(bytes as f64)).into())
    }

    fn from_value(value: &Value) -> Memory {
        let number = |at: usize| value.list().get(at).and_then(Value::number).unwrap_or(0.0) as u64;
        let [total, free, others, reserved, allocated, empty, gap] = [0, 1, 2, 3, 4, 5, 6].map(number);
        Memory { total, free, others, reserved, allocated, empty, gap }
    }

    /// The largest tensor that fits.
    fn most(&self) -> u64 {
        self.gap.max((self.free + self.empty) / (2 * MIB) * (2 * MIB))
    }
}

/// A way to answer that people come up with.
struct Way {
    id: &'static str,
    says: &'static str,
    idea: String,
    forms: Vec<Form>,
}

/// A form that such a way may have.
struct Form {
    /// What it says is the largest that fits.
    limit: u64,
    answer: Box<dyn Fn(u64) -> bool>,
}

impl Form {
    fn new(limit: u64, answer: impl Fn(u64) -> bool + 'static) -> Form {
        Form { limit, answer: Box::new(answer) }
    }

    /// Anything up to a limit fits.
    fn up_to(limit: u64) -> Form {
        Form::new(limit, move |bytes| bytes <= limit)
    }

    /// It fits in a gap, or in a segment of its own.
    fn in_either(gap: u64, room: u64) -> Form {
        Form::new(gap.max(room), move |bytes| bytes <= gap || rounded(bytes) <= room)
    }
}

/// The ways that are wrong, for what is on the GPU that is asked about and on the current one. Some of them are right where
/// there is nothing to forget, as others that hold no memory.
fn wrong_ways([here, current]: [Memory; 2]) -> Vec<Way> {
    let way = |id, says, idea: &str, forms| Way { id, says, idea: idea.to_owned(), forms };
    let Memory { total, free, others, reserved, allocated, empty, gap } = here;
    let (room, most) = (free + empty, here.most());
    let fits = move |bytes| bytes <= gap || rounded(bytes) <= room;
    vec![
        way(
            "always-yes",
            "It says yes to everything, even to more than the GPU has.",
            "`utilization()` and `memory_usage()` are shares of time. Neither says how full the memory is.",
            vec![Form::new(total + 64 * MIB, |_| true)],
        ),
        way(
            "all-there-is",
            "It compares with all the memory there is.",
            "What is in use has to be subtracted. `memory_usage()` is not that: it is the share of time in which memory was \
             read or written.",
            vec![Form::up_to(total)],
        ),
        way(
            "total-less-allocated",
            "It counts as free whatever no tensor of this program holds.",
            &format!(
                "Your tensors hold {} of {}. But CUDA's context takes some, other programs do, and so does what the \
                 allocator keeps in pieces that are too small. Only the driver knows what everybody has.",
                mebibytes(allocated),
                mebibytes(total)
            ),
            vec![Form::up_to(total - allocated)],
        ),
        way(
            "total-less-reserved",
            "It counts as free whatever this program has not reserved.",
            "Reserved is what the allocator has. CUDA's context is not part of it, and neither is what other programs hold. \
             (And some of what is reserved is free for your next tensor.)",
            vec![Form::up_to(total - reserved)],
        ),
        way(
            "driver-alone",
            "It counts only the driver's free memory.",
            "That is what another program could have. Yours has more: the allocator keeps what dropped tensors held, for \
             the next tensor of this program.",
            vec![Form::up_to(free)],
        ),
        way(
            "tensors-counted-as-free",
            "It counts as free what tensors hold.",
            "Allocated is what live tensors hold, and they need it. What the allocator can give to a new tensor is in the \
             rest of what it has reserved.",
            vec![Form::up_to(free + allocated)],
        ),
        way(
            "all-reserved",
            "It counts as free all that is reserved.",
            &format!(
                "Reserved is what the allocator has from the driver, including what live tensors hold: {} of {}.",
                mebibytes(allocated),
                mebibytes(reserved)
            ),
            vec![Form::up_to(free + reserved)],
        ),
        way(
            "gaps-added-up",
            "It adds up all free memory, wherever it lies.",
            "A tensor needs one piece. What is free between live tensors cannot be moved together, and cannot be given back \
             to the driver: a segment goes back whole, or not at all.",
            vec![Form::up_to(free + reserved - allocated)],
        ),
        way(
            "cache-alone",
            "It counts only the allocator's free memory.",
            "A tensor need not lie in the cache: the allocator can ask the driver for a new segment. And what it has free \
             is in pieces, of which a tensor needs one.",
            vec![Form::up_to(reserved - allocated)],
        ),
        way(
            "gap-forgotten",
            "It says no to a tensor for which there is a gap.",
            &format!(
                "A segment in which something lives cannot be given back. But what is free in it can still be handed out, \
                 in one piece of {} here.",
                mebibytes(gap)
            ),
            vec![Form::in_either(0, room)],
        ),
        way(
            "empty-segments-forgotten",
            "It forgets what the allocator can give back to the driver.",
            &format!(
                "Before the allocator gives up, it returns all segments in which nothing lives to the driver, {} here, and \
                 asks once more.",
                mebibytes(empty)
            ),
            vec![Form::in_either(gap, free)],
        ),
        way(
            "gap-added",
            "It adds a gap to the driver's free memory.",
            "A gap and the driver's memory do not become one piece. A tensor lies in the one or in the other.",
            vec![Form::in_either(gap, room + gap), Form::in_either(gap, free + gap)],
        ),
        way(
            "others-forgotten",
            "It forgets that other programs hold memory of this GPU.",
            &format!(
                "Another program holds {}. What this program has and what it can get do not add up to all there is.",
                mebibytes(others)
            ),
            vec![Form::in_either(gap, room + others), Form::up_to(free + others)],
        ),
        way(
            "elements",
            "It takes bytes for elements.",
            "`bytes` is the size of the tensor already, whatever the type of its elements.",
            vec![
                Form::new(most / 4, move |bytes| fits(4 * bytes)),
                Form::new(4 * most, move |bytes| fits(bytes / 4)),
            ],
        ),
        way(
            "not-rounded",
            "It forgets that a segment is a multiple of 2 MiB.",
            "The driver's free memory is not a multiple of 2 MiB here, and a segment cannot use the rest.",
            vec![Form::new(room, move |bytes| bytes <= gap || bytes <= room)],
        ),
        way(
            "rounded-for-a-gap",
            "It rounds up to 2 MiB even where there is a gap.",
            "Only segments are multiples of 2 MiB. In a gap a tensor takes what it needs, rounded up to 512 bytes.",
            vec![Form::new(most, move |bytes| fits(rounded(bytes)))],
        ),
        way(
            "exactly",
            "It says no to a tensor that fits exactly.",
            "A tensor may be as large as the gap, or as the room.",
            vec![
                Form::new(most, move |bytes| bytes < gap || rounded(bytes) < room),
                Form::new(most, move |bytes| bytes < gap || rounded(bytes) <= room),
                Form::new(most, move |bytes| bytes <= gap || rounded(bytes) < room),
            ],
        ),
        way(
            "other-gpu",
            "It looks at the current GPU, but was asked about another one.",
            "Functions like `mem_get_info` tell you about the current device. Those that end in `_device` tell you about \
             the one that you name.",
            vec![
                Form::in_either(gap, current.free + empty),
                Form::in_either(current.gap, current.free + current.empty),
                Form::in_either(gap.max(current.gap), current.free + current.empty + empty),
            ],
        ),
        way(
            "segments-of-all-gpus",
            "It counts segments of another GPU.",
            "`memory_snapshot()` lists the segments of all GPUs. The field `device` says whose each is.",
            vec![Form::in_either(gap.max(current.gap), room + current.empty)],
        ),
    ]
}

fn rounded(bytes: u64) -> u64 {
    bytes.next_multiple_of(2 * MIB)
}

/// What is asked: something between any two limits of those ways, and the edges of the right one. In no order.
fn questions(case: &Case, memory: [Memory; 2]) -> Vec<u64> {
    let [Memory { free, empty, gap, total, .. }, _] = memory;
    let edges = [gap, (free + empty) / (2 * MIB) * (2 * MIB)];
    let ways = wrong_ways(memory);
    let mut limits: Vec<u64> = ways.iter().flat_map(|way| &way.forms).map(|form| form.limit).collect();
    limits.extend(edges);
    limits.extend([10 * MIB, total + 128 * MIB]);
    limits.sort();
    limits.dedup();
    let mut questions: Vec<u64> = limits
        .windows(2)
        .map(|limits| {
            let middle = (limits[0] + limits[1]) / 2;
            let whole = middle / MIB * MIB;
            if whole > limits[0] { whole } else { middle / 512 * 512 }
        })
        .filter(|&bytes| bytes >= 10 * MIB && bytes <= total + 128 * MIB)
        .collect();
    let count = questions.len();
    questions.rotate_left(case.seed as usize % count);
    questions.extend(edges.iter().flat_map(|&edge| [edge, edge + 4, edge - 512]));
    questions
}

/// Bytes for people: `100 MiB`, `99.5 MiB`, `63 MiB + 4 bytes`.
fn mebibytes(bytes: u64) -> String {
    match bytes % MIB {
        0 => format!("{} MiB", bytes / MIB),
        rest if rest < 512 => format!("{} MiB + {rest} bytes", bytes / MIB),
        _ => format!("{} MiB", (bytes as f64 / MIB as f64 * 100.0).round() / 100.0),
    }
}

fn judge(_: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let ran_out = matches!(&seen.ended, Ended::Failed { code: Some(code), .. } if code == "GPU0002");
    let allocations = seen.count(CallKind::Allocate);
    if allocations > 0 || ran_out {
        return Err(Diagnosis::new("tried", "It makes a tensor to find out whether that works.")
            .seen(match allocations {
                0 => "an error: out of memory".to_owned(),
                1 => "1 tensor made on the GPU".to_owned(),
                _ => format!("{allocations} tensors made on the GPU"),
            })
            .expected("none")
            .idea(
                "Trying changes what you ask about: where it succeeds, the allocator may have reserved more than before, \
                 and where it fails, it has emptied the cache. What there is can be read without taking any of it.",
            )
            .at(seen.line(CallKind::Allocate).or(seen.line(CallKind::Driver))));
    }
    let of_the_driver = seen.count(CallKind::Driver);
    if of_the_driver > 0 {
        return Err(Diagnosis::new("cache-emptied", "It empties the allocator's cache.")
            .seen(format!("{of_the_driver} segments given back to the driver"))
            .expected("none")
            .idea(
                "The next tensors of this program would have come from the cache. Now the program has to ask the driver, \
                 which is slow. What could be given back can be seen without doing it.",
            )
            .at(seen.line(CallKind::Driver)));
    }
    let answers = seen.returned()?.list();
    if seen.fact("current device moved") == &Value::Flag(true) {
        return Err(Diagnosis::new("current-device", "It changes the current device.")
            .seen("another current device than before")
            .expected("the same")
            .idea("Whatever the program makes next on \"the GPU\" goes to another one now. Ask about a device by its number instead."));
    }

    let facts = right.fact("memory").list();
    let memory = [0, 1].map(|at| Memory::from_value(facts.get(at).unwrap_or(&Value::None)));
    let questions = right.fact("questions").list().iter().map(|value| value.number().unwrap_or(0.0) as u64);
    let questions: Vec<u64> = questions.collect();
    let tried = right.fact("tried").list();
    let is_wrong = |&at: &usize| answers.get(at) != tried.get(at);
    // The most telling one: a whole number of MiB, and far from what fits.
    let telling = |&at: &usize| (questions[at].is_multiple_of(MIB), questions[at].abs_diff(memory[0].most()));
    let Some(at) = (0..questions.len()).filter(is_wrong).max_by_key(telling) else {
        return Ok(());
    };
    let says_this = |form: &Form| {
        let said = questions.iter().map(|&bytes| Value::Flag((form.answer)(bytes)));
        said.eq(answers.iter().cloned())
    };
    let too_much = tried[at] == Value::Flag(false);
    let diagnosis = match wrong_ways(memory).into_iter().find(|way| way.forms.iter().any(says_this)) {
        Some(way) => Diagnosis::new(way.id, way.says).idea(way.idea),
        None if too_much => Diagnosis::new("too-much", "It says yes to a tensor that does not fit.")
            .idea("Count only what can be had in one piece: a gap, or what the driver would have for a new segment."),
        None => Diagnosis::new("too-little", "It says no to a tensor that fits.")
            .idea("A gap may be large enough, or what the driver has once empty segments are returned."),
    };
    let (answer, truth) = if too_much { ("yes", "no") } else { ("no", "yes") };
    Err(diagnosis
        .seen(format!("{answer} for a tensor of {}", mebibytes(questions[at])))
        .expected(format!("{truth}: the largest that fits has {}", mebibytes(memory[0].most()))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_solution_says_what_happens() {
        for case in EXERCISE.cases(&[1, 5, 90_210]) {
            let seen = observe(&case, solution::fits);
            assert_eq!(seen.value(), seen.fact("tried"), "{case:?}");
        }
    }

    /// Else one mistake would be told as another.
    #[test]
    fn questions_tell_apart_whatever_differs() {
        let seeds: Vec<u64> = (0..28).collect(); // what is on a GPU repeats then
        for case in EXERCISE.cases(&seeds) {
            let memory = case.machine().enter(|| {
                let (device, _live) = given(&case).unwrap();
                [device.index(), 0].map(|index| Memory::of(index).unwrap())
            });
            let questions = questions(&case, memory);
            let everything = (10 * MIB..memory[0].total + 128 * MIB).step_by(MIB as usize / 4);
            let everything: Vec<u64> = everything.chain(questions.clone()).collect();
            let said = |form: &Form, bytes: &[u64]| -> Vec<bool> {
                bytes.iter().map(|&bytes| (form.answer)(bytes)).collect()
            };
            let mut forms = BTreeMap::new();
            for way in wrong_ways(memory) {
                for form in way.forms {
                    let (told, all) = (said(&form, &questions), said(&form, &everything));
                    let (id, same) = forms.entry(told).or_insert((way.id, all.clone()));
                    assert!(*same == all || *id == way.id, "{case:?}: {id} and {}", way.id);
                }
            }
        }
    }
}
