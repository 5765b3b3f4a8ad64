//! Part A, section 5: the effect of `eval()` and `no_grad` on an evaluation.

use std::time::Duration;

use todevice::inference_mode;
use todevice::prelude::*;
use todevice::time::Instant;

use super::memory_allocated;
use crate::frame::clock::{modelled_or_measured, wait_for};
use crate::{Lab, Table, Text, bytes, exact, row, timed};

pub(super) fn section(lab: &mut Lab) -> crate::Result<()> {
    lab.section(5, "eval() × no_grad");
    lab.think(
        "04-eval",
        "`eval()` or `no_grad`: which of them makes two passes over the same input give the same output?",
    );
    let device = lab.device();
    // ANCHOR: dropout
    let model = nn::Sequential::new((
        nn::Linear::new(256, 1024)?,
        nn::ReLU,
        nn::Dropout::new(0.5)?,
        nn::Linear::new(1024, 256)?,
    ));
    model.to(device)?;
    let x = Tensor::randn(&[512, 256])?.to(device)?;
    // ANCHOR_END: dropout

    let mut table = Table::new(["mode", "recorded", "kept", "same output twice"]);
    model.forward(&x)?; // the first pass allocates memory that stays
    for training in [true, false] {
        // ANCHOR: modes
        if training {
            model.train()
        } else {
            model.eval()
        }
        let with_grad = sample(device, || model.forward(&x))?;
        let without = sample(device, || no_grad(|| model.forward(&x)))?;
        let inference = sample(device, || inference_mode(|| model.forward(&x)))?;
        // ANCHOR_END: modes
        let mode = if training { "train()" } else { "eval()" };
        for (recorded, Sample { kept, same }) in
            [("yes", with_grad), ("no_grad", without), ("inference_mode", inference)]
        {
            let same = exact("same_output", if same { "yes" } else { "no" });
            table = table.row(row![mode, recorded, bytes("bytes_kept", kept), same]);
        }
    }
    lab.table(table);
    lab.prose(
        "The two switches do different things. eval() switches dropout off, which makes outputs repeatable, and it still keeps \
         the activations of the other layers. no_grad keeps nothing but the output, in either mode. An evaluation wants both.",
    );
    is_it_faster(lab, &model)?;

    lab.part("keeps");
    let leaf = Tensor::zeros((&[1 << 18], device))?.requires_grad_(true)?;
    let operations: [(&str, fn(&Tensor, &Tensor) -> Result<Tensor>, &str); 7] = [
        ("x + 1", |x, _| x + 1.0, "nothing"),
        ("x + y", |x, y| x + y, "nothing"),
        ("x * 2", |x, _| x * 2.0, "nothing: 2 is not a tensor"),
        ("x * y", |x, y| x * y, "both"),
        ("x.square()", |x, _| x.square(), "x"),
        ("x.relu()", |x, _| x.relu(), "its result"),
        ("x.exp()", |x, _| x.exp(), "its result"),
    ];
    let mut table = Table::new(["operation", "tensors kept", "which"]);
    for (name, operation, which) in operations {
        let kept = kept_by(&leaf, operation)?;
        table = table.row(row![name, exact("tensors_kept", kept), which]);
    }
    lab.table(table);
    lab.prose(
        "The forward pass keeps only what the formula of a gradient asks for. All other results die with their variables.",
    );
    Ok(())
}

struct Sample {
    kept: u64,
    same: bool,
}

// ANCHOR: look
/// The memory that a forward pass keeps, including its output; and whether a second
/// pass gives the same result.
fn sample(device: Device, forward: impl Fn() -> Result<Tensor>) -> Result<Sample> {
    let before = memory_allocated(device);
    let output = forward()?;
    let kept = memory_allocated(device) - before;

    let again = forward()?;
    let same = output.to_vec::<f32>()? == again.to_vec::<f32>()?;
    Ok(Sample { kept, same })
}
// ANCHOR_END: look

/// Times passes with and without a graph, for a tiny batch and for a large one.
fn is_it_faster(lab: &mut Lab, model: &nn::Sequential) -> crate::Result<()> {
    let device = lab.device();
    let mut table = Table::new(["one pass in eval()", "recorded", "no_grad"]);
    let mut saves = Vec::new();
    for batch in [1, 512] {
        let x = Tensor::randn(&[batch, 256])?.to(device)?;
        let recorded = shortest(device, || model.forward(&x))?;
        let unrecorded = shortest(device, || no_grad(|| model.forward(&x)))?;
        table = table.row(row![
            format!("a batch of {batch}"),
            timed("recorded_time", recorded),
            timed("no_grad_time", unrecorded)
        ]);
        saves.push(recorded * 10 > unrecorded * 11);
    }
    lab.table(table);
    let on_gpu = match saves[..] {
        [true, true] => {
            "no_grad is faster at both sizes here: recording is work for the host, and the host sets the pace."
        }
        [true, false] => {
            "With a single sample no_grad is faster, because recording is work for the host and there is little else to do. With \
             the larger batch you do not see it: the arithmetic is the same."
        }
        _ => {
            "no_grad saves no time that you could see here. The arithmetic is the same, and only the recording falls away, which \
             is a little work for the host in each operation."
        }
    };
    let on_cpu = "The arithmetic is the same. Only the recording falls away, which is a little work for each operation: \
                  look for it in the first row.";
    let verdict = modelled_or_measured(
        "The times are alike because this model charges the host as much for an operation that is recorded as for one that \
         is not. In truth recording costs the host a little work for each operation. You see it where launches set the pace, \
         and not where the arithmetic does.",
        lab.gpu_or_cpu(on_gpu, on_cpu),
    );
    lab.prose(Text::from(verdict).raced());
    Ok(())
}

fn shortest(device: Device, forward: impl Fn() -> Result<Tensor>) -> Result<Duration> {
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        wait_for(device)?;
        let start = Instant::now();
        forward()?;
        wait_for(device)?;
        shortest = shortest.min(start.elapsed());
    }
    Ok(shortest)
}

// ANCHOR: kept_by
/// The number of tensors that an operation's graph keeps alive.
fn kept_by(
    leaf: &Tensor,
    operation: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<u64> {
    let device = leaf.device();
    let before = memory_allocated(device);
    let (x, y) = ((leaf + 1.0)?, (leaf + 2.0)?);
    let loss = operation(&x, &y)?.sum()?;
    drop((x, y));
    let kept = memory_allocated(device) - before;
    drop(loss);
    Ok(kept >> 20) // in tensors of 1 MiB; the loss is less than that
}
// ANCHOR_END: kept_by
