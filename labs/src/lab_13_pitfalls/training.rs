//! The training of the first sections, and section 3: memory that grows until it is full.

use std::time::Duration;

use drawing::Role;
use drawing::chart::{Stack, stacked};
use todevice::cuda;
use todevice::prelude::*;
use todevice::time::Instant;

use super::pitfall::Pitfall;
use crate::frame::clock::wait_for;
use crate::frame::render_text::wrap;
use crate::{Lab, Prediction, Table, bytes, exact, row, text};

// ANCHOR: network
/// A network for images of 32 × 32 pixels, and its optimizer.
pub(super) fn network() -> Result<(nn::Sequential, optim::SGD)> {
    let (hidden, last) = (nn::Linear::new(1024, 128)?, nn::Linear::new(128, 10)?);
    let model = nn::Sequential::new((hidden, nn::ReLU, last));
    let options = SGDOptions { lr: 0.1, ..Default::default() };
    let optimizer = optim::SGD::new(model.parameters(), options)?;
    Ok((model, optimizer))
}

/// Runs one training step. Returns the loss, on the device.
pub(super) fn train_step(
    model: &nn::Sequential,
    optimizer: &mut optim::SGD,
    x: &Tensor,
    y: &Tensor,
) -> Result<Tensor> {
    let loss_fn = nn::CrossEntropyLoss::default();
    let loss = loss_fn.forward(&model.forward(x)?, y)?;
    optimizer.zero_grad();
    loss.backward()?;
    optimizer.step()?;
    Ok(loss.detach())
}
// ANCHOR_END: network

pub(super) fn pictures(n: usize) -> Result<(Tensor, Tensor)> {
    let classes: Vec<i64> = (0..n as i64).map(|index| index % 10).collect();
    Ok((Tensor::rand(&[n, 1024])?, Tensor::from_slice(&classes, &[n])?))
}

/// The time of a step on this device, after a warm-up.
pub(super) fn time_of_a_step(
    device: Device,
    mut step: impl FnMut() -> Result<Tensor>,
) -> Result<Duration> {
    step()?; // the first step allocates memory
    wait_for(device)?;
    let start = Instant::now();
    step()?;
    wait_for(device)?;
    Ok(start.elapsed())
}

/// The limit of section 3 in MiB.
const LIMIT: u64 = 48;
const BATCHES: usize = 60;

// ANCHOR: kept
/// Adds up the losses of all batches. Returns the allocated memory after each batch,
/// and the result.
fn evaluate(model: &nn::Sequential, x: &Tensor) -> (Vec<u64>, Result<f64>) {
    let mut curve = Vec::new();
    let outcome = (|| {
        let mut total = Tensor::zeros((&[], x.device()))?;
        for _ in 0..BATCHES {
            let loss = model.forward(x)?.square()?.mean()?;
            total = (&total + &loss)?;
            curve.push(cuda::memory_allocated());
        }
        total.item()
    })();
    (curve, outcome)
}
// ANCHOR_END: kept

fn drawn(curve: &[u64]) -> String {
    let last = curve.len().saturating_sub(1);
    let batches = (0..last).step_by(3).chain([last]);
    let named: Vec<(String, u64)> =
        batches.map(|batch| (format!("batch {}", batch + 1), curve[batch])).collect();
    let bars: Vec<Stack> =
        named.iter().map(|(name, bytes)| Stack { name, parts: vec![*bytes] }).collect();
    stacked(&[("allocated", Role::Activation)], &bars)
}

pub(super) fn graphs_are_kept(lab: &mut Lab, device: Device) -> crate::Result<Pitfall> {
    lab.section(3, "A memory curve");
    lab.part("grows");
    manual_seed(lab.seed());
    let (hidden, last) = (nn::Linear::new(16, 1024)?, nn::Linear::new(1024, 10)?);
    let model = nn::Sequential::new((hidden, nn::ReLU, last));
    model.to(device)?;
    let x = Tensor::randn(&[256, 16])?.to(device)?;
    let (_, total) = cuda::mem_get_info()?;
    cuda::empty_cache()?;
    let limit = (LIMIT << 20) as f64;
    cuda::set_per_process_memory_fraction(limit / total as f64)?;
    lab.print(text!("The program may reserve {}.", exact("limit", LIMIT).unit("MiB")));
    let (curve, outcome) = evaluate(&model, &x);
    let ran = curve.len();
    let mut table = Table::new(["after batch", "memory_allocated()"]);
    for batch in [1, 2, 3, ran / 2, ran] {
        table =
            table.row(row![exact("batch", batch), bytes("curve", curve[batch - 1])]);
    }
    lab.table(table);
    lab.picture(
        drawn(&curve),
        "What is allocated after some of the batches, and after the last that fits.",
    );
    let Err(error) = outcome else { return Err("the memory was enough".into()) };
    let message = error.to_string();
    let first = message.split_inclusive(". ").take(2).collect::<String>();
    lab.report(wrap(first.trim_end()));

    let guess = lab.predict(
        Prediction::choice(
            "13-curve",
            "A validation loop dies like this. What is wrong, what proves it, and what helps?",
        )
        .or(
            "batch",
            "The batch is too large. `max_memory_allocated()` of one batch is near the limit. Make it smaller.",
            "Then the first batch would not fit. This loop dies at a later one, and with a smaller batch at one that is later still.",
        )
        .or(
            "fragments",
            "Memory is in pieces. `memory_reserved()` is far above `memory_allocated()`. Call `empty_cache()`.",
            "What grows is `memory_allocated()`: tensors that the program holds. `empty_cache()` gives back only what nobody holds.",
        )
        .or(
            "graphs",
            "Something is kept. `memory_allocated()` grows by the same amount with each batch. Use `no_grad`, and keep numbers.",
            "Here memory does not grow by as much with each batch.",
        )
        .because("`total` is computed from every loss, and every loss holds the graph of its batch."),
    );
    let growth = |batch: usize| curve[batch] - curve[batch - 1];
    let grows_evenly = growth(ran - 1) > 0 && growth(ran - 1) == growth(ran - 2);
    drop(error);
    // ANCHOR: no_graphs
    cuda::empty_cache()?;
    let (cured, outcome) = no_grad(|| evaluate(&model, &x));
    // ANCHOR_END: no_graphs
    outcome?;
    cuda::set_per_process_memory_fraction(1.0)?;
    lab.table(
        Table::new(["the loop", "batches that run", "grows by, at the end"])
            .row(row![
                "as it was",
                exact("batches_before", ran),
                bytes("growth_before", growth(ran - 1))
            ])
            .row(row![
                "with no_grad",
                exact("batches_after", cured.len()),
                bytes("growth_after", cured[BATCHES - 1] - cured[BATCHES - 2])
            ]),
    );
    lab.answer(guess, if grows_evenly { "graphs" } else { "batch" });
    Ok(Pitfall {
        what: "out of memory",
        counted: "batches that run",
        before: exact("batches_before", ran).into(),
        after: exact("batches_after", cured.len()).into(),
    })
}
