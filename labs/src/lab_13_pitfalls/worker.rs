//! Section 7: CUDA in a data loading worker.

use todevice::prelude::*;

use super::pitfall::Pitfall;
use crate::frame::render_text::wrap;
use crate::{Lab, Table, exact, row};

// ANCHOR: on_the_gpu
/// Samples that the data set moves to the GPU.
struct OnTheGpu {
    device: Device,
}

impl Dataset for OnTheGpu {
    type Sample = Tensor;

    fn len(&self) -> usize {
        32
    }

    fn get(&self, index: usize) -> Result<Tensor> {
        Tensor::full(&[4], (index as f64, Device::Cpu))?.to(self.device)
    }
}
// ANCHOR_END: on_the_gpu

/// The number of batches, and the error that ended the loop.
fn batches(device: Device, num_workers: usize) -> Result<(usize, Option<Error>)> {
    let options =
        DataLoaderOptions { batch_size: 8, num_workers, ..Default::default() };
    let loader = DataLoader::new(OnTheGpu { device }, options)?;
    let mut came = 0;
    for batch in &loader {
        match batch {
            Ok(_) => came += 1,
            Err(error) => return Ok((came, Some(error))),
        }
    }
    Ok((came, None))
}

pub(super) fn section(lab: &mut Lab) -> crate::Result<Pitfall> {
    lab.section(7, "In a worker");
    lab.part("in-worker");
    let gpu = super::gpu(lab);
    let (before, error) = batches(gpu, 2)?;
    if let Some(error) = &error {
        lab.report(wrap(&error.to_string()));
    }
    lab.think(
        "13-fork",
        "A loop gets this instead of its first batch. What is wrong, what proves it, and what helps?",
    );
    let (alone, _) = batches(gpu, 0)?;
    let (after, _) = batches(Device::Cpu, 2)?;
    lab.table(
        Table::new(["the data set", "num_workers", "batches"])
            .row(row!["moves its samples", 2, exact("batches_before", before)])
            .row(row!["moves its samples", 0, exact("batches_alone", alone)])
            .row(row!["leaves them on the CPU", 2, exact("batches_after", after)]),
    );
    lab.prose(
        "The data set uses the GPU, and a worker may not. The same loop without workers proves it. Let the data set make \
         samples on the CPU, and move the batch in the loop.",
    );
    Ok(Pitfall {
        what: "CUDA in a worker",
        counted: "batches that arrive",
        before: exact("batches_before", before).into(),
        after: exact("batches_after", after).into(),
    })
}
