//! Section 4: a GPU that is slower than the CPU.

use std::time::Duration;

use todevice::prelude::*;
use todevice::{Machine, cuda};

use super::pitfall::Pitfall;
use super::training::time_of_a_step;
use crate::{Cell, Lab, Prediction, Table, Text, exact, machine_figure, row, timed};

// ANCHOR: tiny
/// The time of a training step of a tiny network.
fn step_time(device: Device, rows: usize) -> Result<Duration> {
    let (hidden, last) = (nn::Linear::new(16, 64)?, nn::Linear::new(64, 1)?);
    let model = nn::Sequential::new((hidden, nn::ReLU, last));
    model.to(device)?;
    let mut optimizer = optim::SGD::new(model.parameters(), SGDOptions::default())?;
    let x = Tensor::randn(&[rows, 16])?.to(device)?;
    time_of_a_step(device, || {
        let loss = model.forward(&x)?.square()?.mean()?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        Ok(loss.detach())
    })
}
// ANCHOR_END: tiny

const SMALLEST: usize = 16;
const LARGEST: usize = 16 << 10;

pub(super) fn slower_than_the_cpu(
    lab: &mut Lab,
    device: Device,
) -> crate::Result<Pitfall> {
    lab.section(4, "Slower than the CPU");
    lab.part("two-times");
    manual_seed(lab.seed());
    // ANCHOR: doubled
    let mut times = Vec::new();
    let mut rows = SMALLEST;
    while rows <= LARGEST {
        times.push((rows, step_time(Device::Cpu, rows)?, step_time(device, rows)?));
        rows *= 4;
    }
    // ANCHOR_END: doubled
    let (_, cpu, gpu) = times[0];
    let before = Machine::current().counters();
    step_time(device, SMALLEST)?; // two steps
    let counted = Machine::current().counters() - before;
    let launches = counted.launches / 2;
    cuda::synchronize()?;
    lab.table(
        Table::new(["a step with 16 rows", "time"])
            .row(row!["on the CPU", timed("small_cpu_time", cpu)])
            .row(row!["on the GPU", timed("small_gpu_time", gpu)]),
    );
    let is_slower = gpu > cpu;
    let guess = lab.predict(
        Prediction::choice(
            "13-slower",
            "Everything is on the GPU, both clocks are right, and this is what they show. What is wrong, what proves it, and what helps?",
        )
        .or(
            "copies",
            "The copies take the time. A trace shows them as wide bars. Use pinned memory.",
            "Model and rows were moved before the clock started. A step copies nothing.",
        )
        .or(
            "launches",
            "The step is bound by launches. The same step with more rows takes as long. Give it more work.",
            "In this run the step with more rows takes longer.",
        )
        .or(
            "thread",
            "The CPU uses all its cores. One core would be slower. Limit the threads of the CPU.",
            "That makes the CPU slower, and the GPU no faster.",
        )
        .because("The host launches each kernel, and that takes longer than so little arithmetic.")
        .raced()
        .only_if(is_slower),
    );
    let mut table = Table::new(["rows", "CPU", "GPU", "CPU / GPU"]);
    for (rows, cpu, gpu) in &times {
        table = table.row(row![
            exact("rows", *rows),
            timed("cpu_step_time", *cpu),
            timed("gpu_step_time", *gpu),
            ratio("speedup", *cpu, *gpu)
        ]);
    }
    lab.table(table);
    lab.answer(guess, if times[1].2 < gpu * 3 / 2 { "launches" } else { "copies" });
    let crossover = times.iter().find(|(_, cpu, gpu)| gpu < cpu);
    let verdict = match crossover {
        Some((rows, ..)) => {
            let before = match is_slower {
                true => format!(
                    " Up to there a step of {launches} launches takes the host longer than the arithmetic would take the CPU."
                ),
                false => String::new(),
            };
            format!("With {rows} rows the GPU is faster for the first time.{before}")
        }
        None => "The GPU is faster with none of these batches.".to_owned(),
    };
    lab.prose(Text::from(verdict).raced());
    let (.., last_cpu, last_gpu) = times[times.len() - 1];
    Ok(Pitfall {
        what: "GPU slower than CPU",
        counted: "CPU time / GPU time",
        before: ratio("slow_speedup", cpu, gpu),
        after: match crossover {
            Some((_, cpu, gpu)) => ratio("fast_speedup", *cpu, *gpu),
            None => ratio("fast_speedup", last_cpu, last_gpu),
        },
    })
}

fn ratio(name: &'static str, cpu: Duration, gpu: Duration) -> Cell {
    let ratio = cpu.as_secs_f64() / gpu.as_secs_f64();
    machine_figure(name, ratio).digits(2).into()
}
