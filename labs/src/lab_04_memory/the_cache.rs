//! Part B, the end of section 8: the cost of driver calls, and how rare they are.

use std::time::Duration;

use todevice::cuda;
use todevice::prelude::*;
use todevice::time::Instant;

use super::{peak_of_a_step, step};
use crate::{Lab, Table, Text, bytes, exact, row, timed};

pub(super) fn why_there_is_one(lab: &mut Lab) -> crate::Result<()> {
    what_it_saves(lab)?;
    how_often(lab)
}

// ANCHOR: driver
/// The times to get 64 MiB from the driver, to get them from the cache, and to return
/// them to the driver. `before` gives the GPU some work first.
fn three_calls(
    device: Device,
    before: impl Fn() -> Result<()>,
) -> Result<[Duration; 3]> {
    let sizes = [16 << 20]; // floats
    cuda::empty_cache()?;

    before()?;
    let start = Instant::now();
    let x = Tensor::empty((&sizes, device))?; // the cache is empty: asks the driver
    let from_the_driver = start.elapsed();
    drop(x);

    before()?;
    let start = Instant::now();
    let x = Tensor::empty((&sizes, device))?; // the same block again
    let from_the_cache = start.elapsed();
    drop(x);

    before()?;
    let start = Instant::now();
    cuda::empty_cache()?;
    let back = start.elapsed();
    Ok([from_the_driver, from_the_cache, back])
}
// ANCHOR_END: driver

fn what_it_saves(lab: &mut Lab) -> crate::Result<()> {
    lab.part("driver");
    let device = lab.device();
    let x = Tensor::ones((&[1024, 1024], device))?;
    x.matmul(&x)?; // not timed: the first product allocates memory
    let idle = three_calls(device, cuda::synchronize)?;
    let busy = three_calls(device, || {
        cuda::synchronize()?;
        x.matmul(&x).map(drop) // returns at once
    })?;

    cuda::synchronize()?;
    let start = Instant::now();
    x.matmul(&x)?;
    cuda::synchronize()?;
    let product = start.elapsed();

    let names =
        ["64 MiB from the driver", "64 MiB from the cache", "back to the driver"];
    let mut table = Table::new(["", "GPU idle", "GPU multiplies"]);
    for (name, (idle, busy)) in names.into_iter().zip(idle.into_iter().zip(busy)) {
        table =
            table.row(row![name, timed("call_idle", idle), timed("call_busy", busy)]);
    }
    lab.table(table.row(row![
        "the product itself",
        timed("product_time", product),
        ""
    ]));
    let waits = |call: usize| busy[call] > idle[call] + product / 3;
    lab.prose(
        Text::from(match (waits(0), waits(1), waits(2)) {
            (true, false, true) => {
                "Both calls to the driver wait here until the GPU has finished. The cache asks nobody and waits for nothing."
            }
            (false, false, true) => {
                "Giving memory back waits here until the GPU has finished; asking the driver does not. The cache asks nobody and \
                 waits for nothing."
            }
            (_, true, _) => "Here even the cache was slow, which says more about this host than about the cache.",
            (_, false, false) => {
                "Nothing waits for the product here: it is over too soon, or had been waited for before."
            }
        })
        .raced(),
    );
    Ok(())
}

fn how_often(lab: &mut Lab) -> crate::Result<()> {
    lab.think(
        "04-asked-again",
        "A training step takes memory again and again, and gives it back. The program takes three identical steps. How many times \
         does the third one ask the driver for memory?",
    );
    let device = lab.device();
    let model = nn::Sequential::new((
        nn::Linear::new(64, 64)?,
        nn::ReLU,
        nn::Linear::new(64, 10)?,
    ));
    model.to(device)?;
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    cuda::empty_cache()?;
    let mut of_steps = Vec::new();
    // ANCHOR: stats
    for _ in 0..3 {
        cuda::reset_peak_memory_stats();
        cuda::reset_accumulated_memory_stats(); // what is counted over time
        step(&model, &mut optimizer, 4096)?;
        of_steps.push(cuda::memory_stats());
    }
    // ANCHOR_END: stats
    let count = |step: usize, name: &str| of_steps[step][name];
    let mut table = Table::new(["memory_stats()", "first step", "third step"]);
    for (name, figure) in [
        ("allocation.all.allocated", "allocations"),
        ("num_device_alloc", "driver_asked"),
        ("num_alloc_retries", "retries"),
        ("num_ooms", "ooms"),
    ] {
        table = table.row(row![
            name,
            exact(figure, count(0, name)),
            exact(figure, count(2, name))
        ]);
    }
    for (name, figure) in [
        ("allocated_bytes.all.peak", "peak_allocated"),
        ("reserved_bytes.all.current", "now_reserved"),
        ("inactive_split_bytes.all.current", "gaps"),
    ] {
        let told = |step| bytes(figure, count(step, name) as u64);
        table = table.row(row![name, told(0), told(2)]);
    }
    lab.table(table);
    lab.prose(
        "The third step takes memory many times, and does not ask the driver once: what it needs is in the cache. If \
         num_alloc_retries grows, the allocator has had to give its cache back in order to go on. If inactive_split_bytes is \
         large, free memory lies in pieces.",
    );
    peak_of_a_step(&model, &mut optimizer, 4096)?;
    lab.report(cuda::device(device.index(), cuda::memory_summary_abbreviated)?);
    lab.prose(
        "memory_summary() prints the same counts as a table, here in its short form. Begin with the second column, which has \
         the peaks. The totals are larger than above, because another step has run since the third.",
    );
    drop((model, optimizer));
    cuda::empty_cache()?;
    Ok(())
}
