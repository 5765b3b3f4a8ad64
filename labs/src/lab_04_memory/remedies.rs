//! Part A, the end of section 6: remedies for activations that do not fit.

use std::sync::Arc;
use std::time::Duration;

use todevice::autograd::checkpoint;
use todevice::prelude::*;
use todevice::time::Instant;

use super::{max_memory_allocated, memory_allocated, reset_peak_memory_stats};
use crate::frame::clock::wait_for;
use crate::{Lab, Table, Text, bytes, exact, row, timed};

/// Four of these blocks make a small network with many activations.
// ANCHOR: block
fn block() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((
        nn::Linear::new(64, 512)?,
        nn::ReLU,
        nn::Linear::new(512, 64)?,
    )))
}
// ANCHOR_END: block

type Blocks = [Arc<nn::Sequential>];

// ANCHOR: at_once
fn at_once(blocks: &Blocks, x: &Tensor, y: &Tensor) -> Result<()> {
    let mut output = x.clone();
    for block in blocks {
        output = block.forward(&output)?;
    }
    nn::MSELoss::default().forward(&output, y)?.backward()
}
// ANCHOR_END: at_once

// ANCHOR: in_parts
/// Gradient accumulation: `backward` adds to existing gradients.
fn in_parts(blocks: &Blocks, x: &Tensor, y: &Tensor) -> Result<()> {
    let rows = x.size(0)? / 4;
    for (x, y) in x.split(rows, 0)?.iter().zip(&y.split(rows, 0)?) {
        let mut output = x.clone();
        for block in blocks {
            output = block.forward(&output)?;
        }
        let loss = nn::MSELoss::default().forward(&output, y)?;
        (loss / 4.0)?.backward()?; // the mean of four means
    }
    Ok(())
}
// ANCHOR_END: in_parts

// ANCHOR: with_checkpoints
/// Activation checkpointing: a block keeps its input, and `backward` runs it again.
fn with_checkpoints(blocks: &Blocks, x: &Tensor, y: &Tensor) -> Result<()> {
    let mut output = x.clone();
    for block in blocks {
        let block = block.clone(); // the same block: the graph shares it
        output = checkpoint(move |input| block.forward(input), &output)?;
    }
    nn::MSELoss::default().forward(&output, y)?.backward()
}
// ANCHOR_END: with_checkpoints

type Step = fn(&Blocks, &Tensor, &Tensor) -> Result<()>;

pub(super) fn two_remedies(lab: &mut Lab) -> crate::Result<()> {
    lab.think(
        "04-remedies",
        "The activations of a batch do not fit. You can send the batch through in four parts, and add up their gradients. Or you can \
         keep only the input of each block of layers, and compute the rest again in the backward pass. Which of the two changes \
         the gradients that you end up with?",
    );
    let device = lab.device();
    let blocks = (0..4).map(|_| Ok(Arc::new(block()?))).collect::<Result<Vec<_>>>()?;
    for block in &blocks {
        block.to(device)?;
    }
    let [x, y] = [Tensor::randn(&[512, 64])?, Tensor::randn(&[512, 64])?];
    let (x, y) = (x.to(device)?, y.to(device)?);

    let steps: [(&str, Step); 3] = [
        ("the whole batch at once", at_once),
        ("in four parts", in_parts),
        ("with checkpoints", with_checkpoints),
    ];
    let mut table = Table::new(["forward and backward", "peak", "time", "gradients"]);
    let mut costs = Vec::new();
    for (way, step) in steps {
        let cost = cost_of(step, &blocks, &x, &y)?;
        let first = costs.first().unwrap_or(&cost);
        let same = match difference(&first.gradients, &cost.gradients) {
            _ if costs.is_empty() => "",
            0.0 => "equal bit for bit",
            off if off < 1e-4 => "equal except for rounding",
            _ => "others",
        };
        table = table.row(row![
            way,
            bytes("remedy_peak", cost.peak),
            timed("remedy_time", cost.time),
            exact("remedy_gradients", same)
        ]);
        costs.push(cost);
    }
    lab.table(table);
    let [at_once, in_parts, again] = &costs[..] else { return Ok(()) };
    lab.prose(
        "Neither changes the gradients. A gradient is a sum over samples, which may be added up part by part; and what is computed \
         twice from the same input comes out the same.",
    );
    lab.prose(
        "Both need less memory; the peak here is what comes on top of the model. Parts divide the activations by their number, and they help until a part is a single sample. \
         Checkpoints help even there: what a block keeps lives only while backward is at that block.",
    );
    let dearer = |cost: &Cost| cost.time * 10 > at_once.time * 11;
    let verdict = match (dearer(in_parts), dearer(again)) {
        (true, true) if device.is_cuda() => {
            "Both cost time here. Four parts take four times as many calls, each with a quarter of the work, and a checkpoint \
             costs a second forward pass."
        }
        _ => {
            "A checkpoint costs a second forward pass. Parts do the same work in smaller pieces."
        }
    };
    lab.prose(Text::from(verdict).raced());
    Ok(())
}

struct Cost {
    peak: u64,
    time: Duration,
    gradients: Vec<Vec<f32>>,
}

fn cost_of(step: Step, blocks: &Blocks, x: &Tensor, y: &Tensor) -> Result<Cost> {
    let device = x.device();
    let parameters = || blocks.iter().flat_map(|block| block.parameters());
    step(blocks, x, y)?; // not measured: the first step requests memory from the driver
    parameters().for_each(|parameter| parameter.zero_grad());
    wait_for(device)?;

    reset_peak_memory_stats(device);
    let (before, start) = (memory_allocated(device), Instant::now());
    step(blocks, x, y)?;
    wait_for(device)?;
    let (time, peak) = (start.elapsed(), max_memory_allocated(device) - before);

    let gradients = parameters().filter_map(|parameter| parameter.grad());
    let gradients =
        gradients.map(|gradient| gradient.to_vec()).collect::<Result<_>>()?;
    parameters().for_each(|parameter| parameter.zero_grad());
    Ok(Cost { peak, time, gradients })
}

/// The largest difference between two sets of gradients, relative to the largest gradient.
fn difference(one: &[Vec<f32>], other: &[Vec<f32>]) -> f32 {
    let (one, other) = (one.concat(), other.concat());
    let largest = one.iter().fold(0.0f32, |largest, number| largest.max(number.abs()));
    let off = one.iter().zip(&other).map(|(one, other)| (one - other).abs());
    off.fold(0.0, f32::max) / largest
}
