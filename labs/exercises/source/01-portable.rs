//! A program for every machine.

use std::cell::RefCell;

use todevice::prelude::*;
use todevice::cuda;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Where to compute: on the current GPU if there is one, else on the CPU.
    pub fn pick() -> Result<Device> {
        Ok(Device::cuda_if_available())
    }

    /// The squares of 0, 1, 2 and so on, `n` of them. They are made and computed on the
    /// picked device. The result is on the CPU.
    pub fn squares(n: usize) -> Result<Tensor> {
        let device = pick()?;
        let x = Tensor::arange(0.0, n as f64, (1.0, device))?;
        let squares = (&x * &x)?;
        squares.cpu()
    }
    // END
}

type Pick = fn() -> Result<Device>;
type Squares = fn(usize) -> Result<Tensor>;

const PICK: &str = "    Ok(Device::cuda_if_available())\n";
const DEVICE: &str = "    let device = pick()?;\n";
const MAKE: &str = "    let x = Tensor::arange(0.0, n as f64, (1.0, device))?;\n";
const SQUARE: &str = "    let squares = (&x * &x)?;\n";
const BACK: &str = "    squares.cpu()\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "01-one-by-one";

pub static EXERCISE: Exercise = Exercise {
    id: "01-portable",
    title: "Runs anywhere",
    kind: Kind::Write,
    task: "This program has to run on any machine, whether it has no GPU, one, or two. `pick` says where to compute: on the current GPU if there is one, otherwise on the CPU. `squares(n)` returns the squares of 0, 1, …, n − 1 as a tensor on \
           the CPU. Make its numbers on the picked device and square them there. None of them may come from the host.",
    hints: [
        "Which functions that ask about GPUs always answer, and which fail on a machine that has none?",
        "`Device::cuda(0)` is the first GPU, not the current one. A tensor that is made on a device need not be moved there: \
         look for the functions that take a device.",
        "`Device::cuda_if_available()` does the whole of `pick`. For `squares`, make `Tensor::arange(0.0, n as f64, (1.0, pick()?))?`, \
         multiply it by itself, and call `.cpu()`.",
    ],
    afterwards: "The long form asks `cuda::is_available()` and then `cuda::current_device()?`. Now you know why it asks in this order.",
    source: include_str!("01-portable.rs"),
    functions: &[
        ("pick", "pub fn pick() -> Result<Device>"),
        ("squares", "pub fn squares(n: usize) -> Result<Tensor>"),
    ],
    skeleton: &[
        (PICK, "    // The current GPU if there is one, else the CPU.\n    todo!(\"pick a device\")\n"),
        (MAKE, "    // Make the numbers on the device, square them there, and return them on the CPU.\n"),
        (SQUARE, "    todo!(\"compute the squares of {n} numbers on {device}\")\n"),
        (BACK, ""),
    ],
    styles: &[
        Style {
            name: "in_full",
            edits: &[
                ("use todevice::prelude::*;\n", "use todevice::cuda;\nuse todevice::prelude::*;\n"),
                (
                    PICK,
                    "    if cuda::is_available() {\n        Ok(Device::cuda(cuda::current_device()?))\n    } else {\n        \
                     Ok(Device::Cpu)\n    }\n",
                ),
                (SQUARE, "    let squares = x.pow(2.0)?;\n"),
                (BACK, "    squares.to(Device::Cpu)\n"),
            ],
        },
        Style {
            name: "by_name",
            edits: &[
                (
                    PICK,
                    "    let name = if todevice::cuda::is_available() { \"cuda\" } else { \"cpu\" };\n    Ok(name.parse()?)\n",
                ),
                (MAKE, "    let x = Tensor::ones((&[n], device))?;\n    let x = (x.cumsum(0)? - 1.0)?;\n"),
            ],
        },
        Style {
            name: "or_else",
            edits: &[
                (PICK, "    Ok(todevice::cuda::current_device().map_or(Device::Cpu, Device::cuda))\n"),
                (MAKE, "    let x = Tensor::arange(0, n as i64, (1, (device, DType::F64)))?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "hard_coded",
            what: "`pick` names the first GPU, whether it is there or not.",
            edits: &[(PICK, "    Ok(Device::cuda(0))\n")],
            diagnosis: "hard-coded",
        },
        Wrong {
            name: "asked_too_early",
            what: "`pick` asks for the current device before it knows that there is a GPU.",
            edits: &[(
                PICK,
                "    let current = Device::cuda(todevice::cuda::current_device()?);\n    \
                 Ok(if todevice::cuda::is_available() { current } else { Device::Cpu })\n",
            )],
            diagnosis: "asked-too-early",
        },
        Wrong {
            name: "always_cpu",
            what: "`pick` returns the CPU everywhere.",
            edits: &[(PICK, "    Ok(Device::Cpu)\n")],
            diagnosis: "always-cpu",
        },
        Wrong {
            name: "first_gpu",
            what: "`pick` returns the first GPU instead of the current one.",
            edits: &[(PICK, "    Ok(if todevice::cuda::is_available() { Device::cuda(0) } else { Device::Cpu })\n")],
            diagnosis: "first-gpu",
        },
        Wrong {
            name: "last_gpu",
            what: "`pick` returns the last GPU instead of the current one.",
            edits: &[(
                PICK,
                "    let count = todevice::cuda::device_count();\n    \
                 Ok(if count > 0 { Device::cuda(count - 1) } else { Device::Cpu })\n",
            )],
            diagnosis: "last-gpu",
        },
        Wrong {
            name: "current_changed",
            what: "`pick` makes the first GPU the current one.",
            edits: &[(
                PICK,
                "    if !todevice::cuda::is_available() {\n        return Ok(Device::Cpu);\n    }\n    \
                 todevice::cuda::set_device(0)?;\n    Ok(Device::cuda(0))\n",
            )],
            diagnosis: "current-changed",
        },
        Wrong {
            name: "made_on_the_host",
            what: "The numbers are made on the host, and moved.",
            edits: &[(MAKE, "    let x = Tensor::arange(0.0, n as f64, (1.0, Device::Cpu))?.to(device)?;\n")],
            diagnosis: "made-on-the-host",
        },
        Wrong {
            name: "picked_in_vain",
            what: "`pick` is right, but `squares` computes on the CPU.",
            edits: &[(DEVICE, "    let device = Device::Cpu;\n")],
            diagnosis: "picked-in-vain",
        },
        Wrong {
            name: "other_gpu",
            what: "`squares` itself asks whether there is a GPU, and takes the first.",
            edits: &[(DEVICE, "    let device = if pick()?.is_cuda() { Device::cuda(0) } else { Device::Cpu };\n")],
            diagnosis: "other-gpu",
        },
        Wrong {
            name: "squared_on_the_cpu",
            what: "The numbers are made on the device, and squared on the CPU.",
            edits: &[(SQUARE, "    let x = x.relu()?.cpu()?;\n    let squares = (&x * &x)?;\n"), (BACK, "    Ok(squares)\n")],
            diagnosis: "squared-on-the-cpu",
        },
        Wrong {
            name: "one_by_one",
            what: "The host squares the numbers, and the GPU gets them one by one.",
            edits: &[
                (
                    MAKE,
                    "    let one = |i: usize| Tensor::full(&[], ((i * i) as f64, device));\n    \
                     let all = (0..n).map(one).collect::<Result<Vec<_>>>()?;\n",
                ),
                (SQUARE, "    let squares = Tensor::stack(&all, 0)?;\n"),
            ],
            diagnosis: "one-by-one",
        },
        Wrong {
            name: "left_there",
            what: "The result stays on the device.",
            edits: &[(BACK, "    Ok(squares)\n")],
            diagnosis: "left-there",
        },
        Wrong {
            name: "from_one",
            what: "The numbers begin at 1.",
            edits: &[(MAKE, "    let x = Tensor::arange(1.0, n as f64 + 1.0, (1.0, device))?;\n")],
            diagnosis: "squares",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "none", "sim:t4x2", "sim:h200"],
    sizes: &[10, 300],
    observe: |case| observe(case, solution::pick, solution::squares),
    judge,
};

/// The size of a case is how many squares there are. Which of two GPUs is the current one depends on the seed.
pub fn observe(case: &Case, pick: Pick, squares: Squares) -> Seen {
    case.machine().enter(|| {
        let current = current(case);
        if let Some(index) = current {
            cuda::set_device(index).expect("it is there");
        }
        let picked = RefCell::new(Value::None);
        let code = || {
            let device = pick()?;
            *picked.borrow_mut() = Value::Text(device.to_string());
            squares(case.size)
        };
        let mut seen = crate::observe(case, code, |facts| {
            // Each GPU is new: whatever memory it has given out was for this code.
            for index in 0..cuda::device_count() {
                let is_used = cuda::device(index, cuda::max_memory_allocated)? > 0;
                facts.insert(format!("cuda:{index}"), Value::Flag(is_used));
            }
            let is_as_before = current.is_none_or(|index| cuda::current_device().is_ok_and(|now| now == index));
            facts.insert("current is as before".to_owned(), Value::Flag(is_as_before));
            Ok(())
        });
        // Of code that failed, too.
        seen.facts.insert("picked".to_owned(), picked.into_inner());
        seen
    })
}

/// The index of the current GPU.
fn current(case: &Case) -> Option<usize> {
    match cuda::device_count() {
        0 => None,
        count => Some(case.seed as usize % count),
    }
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        _ => "nothing".to_owned(),
    };
    let (picked, expected) = (text(seen.fact("picked")), text(right.fact("picked")));
    if case.gpu == "none"
        && let Ended::Failed { message, .. } = &seen.ended
    {
        let diagnosis = match picked.starts_with("cuda") {
            true => Diagnosis::new("hard-coded", "Your program picks a GPU on a machine that has none.").idea(
                "A device is only a name, so picking one always works. The first tensor on it fails. Ask whether there is a GPU.",
            ),
            false => Diagnosis::new("asked-too-early", "Your program asks something that fails where there is no GPU.").idea(
                "`is_available()` and `device_count()` never fail. Ask the others, `current_device()` among them, only when you know that there is a GPU.",
            ),
        };
        return Err(diagnosis.seen(message).expected("cpu"));
    }
    let squares = seen.returned()?;
    if picked != expected {
        let diagnosis = match (picked.as_str(), expected.as_str()) {
            ("cpu", _) => Diagnosis::new("always-cpu", "There is a GPU, but the CPU is picked.")
                .idea("Take the CPU only when `cuda::is_available()` is false."),
            ("cuda:0", "cuda:1") if seen.fact("current is as before") == &Value::Flag(false) => {
                Diagnosis::new("current-changed", "Your program makes another GPU the current one.")
                    .idea("The current GPU belongs to the whole program. If you only want to know which one it is, ask.")
            }
            ("cuda:0", "cuda:1") => Diagnosis::new("first-gpu", "The first GPU is picked, but the second is the current one.")
                .idea("Somebody has chosen a GPU for this program. `Device::cuda(0)` overrules that choice; `cuda::current_device()` asks for it."),
            ("cuda:1", "cuda:0") => Diagnosis::new("last-gpu", "The last GPU is picked, but the first is the current one.")
                .idea("The number of GPUs does not tell you which one to use. `cuda::current_device()` does."),
            _ => Diagnosis::new("not-there", "The picked device is not the one to compute on.")
                .idea("Pick the current GPU if there is one, otherwise the CPU."),
        };
        return Err(diagnosis.seen(picked).expected(expected));
    }
    if seen.fact("current is as before") == &Value::Flag(false) {
        return Err(Diagnosis::new("current-changed", "Another GPU is the current one afterwards.")
            .expected(expected)
            .idea("`set_device` holds until somebody changes it. Name the device that you mean instead."));
    }
    if case.gpu != "none" {
        let used: Vec<&str> =
            ["cuda:0", "cuda:1"].into_iter().filter(|name| seen.fact(name) == &Value::Flag(true)).collect();
        let told = |diagnosis: Diagnosis| {
            let used = if used.is_empty() { "no memory of a GPU".to_owned() } else { format!("memory of {}", used.join(" and ")) };
            diagnosis.seen(format!("{used} is used")).expected(format!("memory of {expected}"))
        };
        if used.is_empty() {
            return Err(told(Diagnosis::new("picked-in-vain", "A GPU is picked, but `squares` does not use it."))
                .idea("`Tensor::arange` makes its numbers on the device that it is given, and an operation runs where its tensors are."));
        }
        if used != [expected.as_str()] {
            return Err(told(Diagnosis::new("other-gpu", "`squares` uses another GPU than the picked one."))
                .idea("Decide once. Everything else uses the device that `pick` returns."));
        }
        // Each number has at least a byte. A scalar or two may come from the host.
        let bytes = seen.bytes(CallKind::ToDevice);
        if bytes >= case.size as u64 {
            return Err(Diagnosis::new("made-on-the-host", "The numbers come from the host.")
                .seen(format!("{bytes} bytes copied to the GPU"))
                .expected("none")
                .idea("If you make a tensor on the device, you need not move it there. The functions that make tensors take a device.")
                .at(seen.line(CallKind::ToDevice)));
        }
    }
    if squares.device().is_some_and(|device| device != "cpu") {
        return Err(Diagnosis::new("left-there", "The result is still on the GPU.")
            .seen(format!("a tensor on {}", squares.device().unwrap_or_default()))
            .expected("a tensor on the CPU")
            .idea("The caller does not know which device was picked. `.cpu()` brings the result to where it can be used."));
    }
    // One kernel makes the numbers, and one squares them. Roundabout ways need a few more, but not one for each number: there
    // are at least 10.
    let launches = seen.count(CallKind::Launch);
    if case.gpu != "none" && launches >= 10 {
        return Err(Diagnosis::new("one-by-one", "The GPU gets its numbers one by one.")
            .seen(format!("{launches} kernels for {} numbers", case.size))
            .expected("2: one that makes the numbers, and one that squares them")
            .idea("A launch has its price, and one launch can make or square all of the numbers. Numbers that the host has squared still come from the host.")
            .at(seen.line(CallKind::Launch)));
    }
    // Whatever squares: a product, a power, or a sum of sums.
    let squares_there = seen.of(CallKind::Launch).any(|call| {
        let operation = call.operation.as_deref().unwrap_or_default();
        let names = ["mul", "pow", "square", "cumsum", "mm", "dot", "prod", "outer", "einsum", "div", "exp", "loss"];
        call.name == "gemm" || names.iter().any(|name| operation.contains(name))
    });
    if case.gpu != "none" && !squares_there {
        return Err(Diagnosis::new("squared-on-the-cpu", "The numbers are made on the GPU, and squared on the CPU.")
            .seen(format!("{} on the GPU, and none that squares", if launches == 1 { "1 kernel".to_owned() } else { format!("{launches} kernels") }))
            .expected("one that makes the numbers, and one that squares them")
            .idea("An operation runs where its tensors are. Bring back the result of the last one."));
    }
    // All of them are whole numbers below 2²⁴, which f32 holds exactly. `pow` may be off in the last digit.
    if !squares.is_near(right.value(), 1e-5) {
        return Err(Diagnosis::new("squares", "The result is not the squares of 0, 1, 2 and so on.")
            .seen(first(squares))
            .expected(first(right.value()))
            .idea("There are `n` numbers, and the first of them is 0."));
    }
    Ok(())
}

/// How many numbers a tensor has, and the first of them.
fn first(value: &Value) -> String {
    match value {
        Value::Tensor { values, sizes, .. } => {
            let first: Vec<String> = values.iter().take(4).map(f64::to_string).collect();
            format!("{}, … in a tensor of sizes {sizes:?}", first.join(", "))
        }
        _ => "no tensor".to_owned(),
    }
}
