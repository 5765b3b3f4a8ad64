//! Three waits that nobody asked for.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Prepares batches that are on the device: each gets a mean of 0, its weights, and
    /// no number beyond 1.
    pub fn prepare(
        batches: &[Tensor],
        weights: &[f32],
        device: Device,
    ) -> Result<Vec<Tensor>> {
        let weights = Tensor::from_slice(weights, &[weights.len()])?.to(device)?;
        let mut prepared = Vec::new();
        for batch in batches {
            let x = (batch - batch.mean()?)?;
            let x = (x * &weights)?;
            let largest = x.abs()?.max()?;
            let scale = largest.maximum(&largest.ones_like()?)?;
            prepared.push((x / scale)?);
        }
        Ok(prepared)
    }
    // END
}

type Prepare = fn(&[Tensor], &[f32], Device) -> Result<Vec<Tensor>>;

const WEIGHTS: &str = "    let weights = Tensor::from_slice(weights, &[weights.len()])?.to(device)?;\n";
const MEAN: &str = "        let x = (batch - batch.mean()?)?;\n";
const WEIGHED: &str = "        let x = (x * &weights)?;\n";
const LARGEST: &str = "        let largest = x.abs()?.max()?;\n";
const SCALE: &str = "        let scale = largest.maximum(&largest.ones_like()?)?;\n";
const PUSH: &str = "        prepared.push((x / scale)?);\n";

const MEAN_READ: crate::Edit = (MEAN, "        let x = (batch - batch.mean()?.item()?)?;\n");
const WEIGHTS_EACH: &[crate::Edit] = &[
    (WEIGHTS, ""),
    (WEIGHED, "        let w = Tensor::from_slice(weights, &[weights.len()])?.to(device)?;\n        let x = (x * &w)?;\n"),
];
const CONDITION: &[crate::Edit] = &[
    (LARGEST, "        let largest = x.abs()?.max()?.item()?;\n"),
    (SCALE, "        let scale = if largest > 1.0 { largest } else { 1.0 };\n"),
];

/// The exercise before this one in the chapter.
pub const AFTER: &str = "08-line";

pub static EXERCISE: Exercise = Exercise {
    id: "08-waits",
    title: "Three waits that nobody asked for",
    kind: Kind::Fix,
    task: "`prepare` is right, and slow: three lines of its loop make the host wait for the GPU. Find them, and write them so that \
           nothing in the loop waits. The batches must come out as they do now, and stay on the device.",
    hints: [
        "`SyncDebugMode::Error` names such a line. Or ask of each line: whose number does it need, the host's or the GPU's?",
        "A number that is used on the GPU may stay there: subtract the tensor `batch.mean()?`. A copy of the same numbers needs to be made \
         only once. And a condition on a number of the GPU can be an operation.",
        "Move the weights before the loop. `largest.maximum(&largest.ones_like()?)?` is the larger of `largest` and 1.",
    ],
    afterwards: "The one copy before the loop still waits. It does so once, and not once for each batch.",
    source: include_str!("08-waits.rs"),
    functions: &[("prepare", "pub fn prepare(batches: &[Tensor], weights: &[f32], device: Device) -> Result<Vec<Tensor>>")],
    skeleton: &[MEAN_READ, WEIGHTS_EACH[0], WEIGHTS_EACH[1], CONDITION[0], CONDITION[1]],
    styles: &[
        Style {
            name: "clamp",
            edits: &[(SCALE, "        let scale = largest.clamp(1.0, None)?;\n")],
        },
        Style {
            name: "where_cond",
            edits: &[(
                SCALE,
                "        let one = largest.ones_like()?;\n        let scale = Tensor::where_cond(&largest.gt(1.0)?, &largest, &one)?;\n",
            )],
        },
        Style {
            name: "in_two_steps",
            edits: &[(MEAN, "        let mean = batch.sum()?.div(batch.numel() as f64)?;\n        let x = batch.sub(&mean)?;\n")],
        },
    ],
    wrong: &[
        Wrong {
            name: "all_three",
            what: "Each of the three lines waits.",
            edits: &[MEAN_READ, WEIGHTS_EACH[0], WEIGHTS_EACH[1], CONDITION[0], CONDITION[1]],
            diagnosis: "several",
        },
        Wrong {
            name: "mean_read",
            what: "The mean is read, and sent back as a number.",
            edits: &[MEAN_READ],
            diagnosis: "mean-read",
        },
        Wrong {
            name: "weights_each_time",
            what: "The weights are copied for each batch.",
            edits: WEIGHTS_EACH,
            diagnosis: "weights-each-time",
        },
        Wrong {
            name: "condition",
            what: "The host decides whether a batch is scaled.",
            edits: CONDITION,
            diagnosis: "condition",
        },
        Wrong {
            name: "asks_is_nonzero",
            what: "`is_nonzero` looks like a question to a tensor, and is a copy to the host.",
            edits: &[(
                SCALE,
                "        let scale = match largest.gt(1.0)?.is_nonzero()? {\n            true => largest,\n            \
                 false => largest.ones_like()?,\n        };\n",
            )],
            diagnosis: "question",
        },
        Wrong {
            name: "printed",
            what: "A number is printed in each step.",
            edits: &[(PUSH, "        println!(\"{largest}\");\n        prepared.push((x / scale)?);\n")],
            diagnosis: "printed",
        },
        Wrong {
            name: "synchronized",
            what: "The host waits after each batch, to be safe.",
            edits: &[(PUSH, "        prepared.push((x / scale)?);\n        cuda::synchronize()?;\n")],
            diagnosis: "synchronized",
        },
        Wrong {
            name: "on_the_cpu",
            what: "The batches are prepared on the CPU, where nobody waits for a GPU.",
            edits: &[
                (WEIGHTS, "    let weights = Tensor::from_slice(weights, &[weights.len()])?;\n"),
                (MEAN, "        let batch = batch.cpu()?;\n        let x = (&batch - batch.mean()?)?;\n"),
                (PUSH, "        prepared.push((x / scale)?.to(device)?);\n"),
            ],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "always_scaled",
            what: "The condition is left out, and small batches grow.",
            edits: &[(SCALE, "        let scale = largest;\n")],
            diagnosis: "always-scaled",
        },
        Wrong {
            name: "never_scaled",
            what: "Numbers are cut off at 1 instead of being scaled.",
            edits: &[(LARGEST, ""), (SCALE, ""), (PUSH, "        prepared.push(x.clamp(-1.0, 1.0)?);\n")],
            diagnosis: "other-numbers",
        },
        Wrong {
            name: "mean_left_out",
            what: "The mean stays in the batch.",
            edits: &[(MEAN, "        let x = batch.clone();\n")],
            diagnosis: "mean-left",
        },
    ],
    places: &[
        ("The mean", &[&[], &[MEAN_READ]]),
        ("The weights", &[&[], WEIGHTS_EACH]),
        ("The scale", &[&[], CONDITION]),
    ],
    gpus: &["sim:t4", "sim:h200"],
    sizes: &[16, 40],
    observe: |case| observe(case, solution::prepare),
    judge,
};

const WIDTH: usize = 8;

fn count(case: &Case) -> usize {
    6 + case.seed as usize % 3
}

/// Every other batch has no number beyond 1.
fn given(case: &Case) -> Result<Vec<Tensor>> {
    manual_seed(case.seed);
    let batch = |number: usize| {
        let size = if number.is_multiple_of(2) { 0.1 } else { 3.0 };
        (((Tensor::randn(&[case.size, WIDTH])? * 0.2)? + 1.0)? * size)?.to(case.device())
    };
    (0..count(case)).map(batch).collect()
}

fn weights() -> Vec<f32> {
    (0..WIDTH).map(|column| 0.5 + 0.125 * column as f32).collect()
}

/// The size of a case is the number of rows of a batch.
pub fn observe(case: &Case, prepare: Prepare) -> Seen {
    case.machine().enter(|| {
        let batches = given(case).expect("they are small");
        crate::observe(
            case,
            || prepare(&batches, &weights(), case.device()),
            |facts| {
                let means = batches.iter().map(|batch| batch.mean()?.item()).collect::<Result<Vec<_>>>()?;
                facts.insert("means".to_owned(), means.into_value()?);
                Ok(())
            },
        )
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let result = seen.returned()?;
    let (own, wanted) = (result.list(), right.value().list());
    let bytes = seen.bytes(CallKind::ToHost);
    let batch = (4 * case.size * WIDTH) as u64;
    if !seen.computed_on_the_gpu(right) || bytes >= batch * count(case) as u64 {
        return Err(Diagnosis::new("on-the-cpu", "The batches are prepared on the CPU.")
            .seen(format!("{bytes} bytes to the host"))
            .expected("none")
            .idea("To copy a batch to the host, the host waits for it. The GPU can do each of these steps.")
            .at(seen.line(CallKind::ToHost)));
    }
    if own.first().and_then(Value::device) != wanted.first().and_then(Value::device) {
        return Err(Diagnosis::new("elsewhere", "The batches are not on the device.")
            .seen(own.first().and_then(Value::device).unwrap_or("no batch"))
            .expected(wanted[0].device().unwrap_or_default())
            .idea("The training goes on with them there."));
    }
    if !result.is_near(right.value(), 1e-4) {
        return Err(wrong_numbers(own, wanted));
    }
    // Which lines wait, and for what: by the operation before each.
    let mut waits: Vec<(&str, Option<u32>, CallKind)> = Vec::new();
    let mut before = "";
    for call in &seen.calls {
        if call.kind == CallKind::Launch {
            before = call.operation.as_deref().unwrap_or_default();
        }
        if call.waits || matches!(call.kind, CallKind::ToDevice | CallKind::ToHost) {
            waits.push((before, call.line, call.kind));
        }
    }
    let allowed = right.count(CallKind::ToDevice);
    if waits.len() <= allowed {
        return Ok(());
    }
    let to_device = seen.count(CallKind::ToDevice);
    let in_loop = waits.iter().find(|(.., kind)| *kind != CallKind::ToDevice);
    let (id, says, idea, line) = match in_loop {
        Some(_) if to_device > allowed => (
            "several",
            "Several lines of the loop make the host wait.",
            "What the GPU has computed can stay on the GPU, and what never changes is copied once.",
            None,
        ),
        None => (
            "weights-each-time",
            "The weights are copied for each batch.",
            "They are the same for all. Copy them once, before the loop.",
            seen.line(CallKind::ToDevice),
        ),
        Some((_, line, CallKind::Wait)) => (
            "synchronized",
            "The host waits after each batch.",
            "The stream keeps the order. Nobody reads a batch here, so nobody has to wait for it.",
            *line,
        ),
        Some((before, line, _)) => {
            let (id, says, idea) = told_of_read(seen, before);
            (id, says, idea, *line)
        }
    };
    Err(Diagnosis::new(id, says)
        .seen(format!("{} waits in {} batches", waits.len(), count(case)))
        .expected("one copy before the loop, and no wait in it")
        .idea(idea)
        .at(line)
        .timelines(seen, right))
}

/// What a copy of one number to the host is for, by the operation before it.
fn told_of_read(seen: &Seen, before: &str) -> (&'static str, &'static str, &'static str) {
    let operation = |name: &str| seen.of(CallKind::ToHost).any(|call| call.operation.as_deref() == Some(name));
    if ["gt", "ge", "lt", "le"].contains(&before) {
        return (
            "question",
            "The host asks whether a number is zero, and waits for the answer.",
            "A condition on the GPU's numbers can be computed there: `clamp`, `maximum`, or `where_cond`.",
        );
    }
    if !operation("item") {
        return (
            "printed",
            "A number of the GPU is printed for each batch.",
            "To print a number is to read it. Print every hundred steps, or after the loop.",
        );
    }
    match ["mean", "sum", "div"].contains(&before) {
        true => (
            "mean-read",
            "The mean is read, only to be used on the GPU again.",
            "`batch - batch.mean()?` subtracts a tensor of one number, which stays where it is.",
        ),
        false => (
            "condition",
            "The host decides whether to scale, and waits for the number to decide by.",
            "Let the GPU decide: `largest.maximum(&largest.ones_like()?)?` is the larger of the number and 1.",
        ),
    }
}

fn wrong_numbers(own: &[Value], wanted: &[Value]) -> Diagnosis {
    let numbers = |value: Option<&Value>| match value {
        Some(Value::Tensor { values, .. }) => values.clone(),
        _ => Vec::new(),
    };
    // The first batch has no large number.
    let small = (numbers(own.first()), numbers(wanted.first()));
    let largest = |numbers: &[f64]| numbers.iter().fold(0.0, |largest: f64, number| largest.max(number.abs()));
    let near = |(own, wanted): &(Vec<f64>, Vec<f64>)| {
        own.len() == wanted.len() && own.iter().zip(wanted).all(|(own, wanted)| (own - wanted).abs() < 1e-3)
    };
    let (id, says, idea) = if (largest(&small.0) - 1.0).abs() < 1e-4 {
        (
            "always-scaled",
            "A batch without large numbers is scaled, too, and grows.",
            "Divide by the largest number only if it is more than 1: by the larger of the two.",
        )
    } else if near(&small) {
        ("other-numbers", "A batch with large numbers comes out otherwise.", "All its numbers are divided by the largest.")
    } else {
        ("mean-left", "The batches do not have a mean of 0.", "Subtract the mean before the weights.")
    };
    Diagnosis::new(id, says)
        .seen(format!("numbers up to {:.4} in the first batch", largest(&small.0)))
        .expected(format!("{:.4}", largest(&small.1)))
        .idea(idea)
}
