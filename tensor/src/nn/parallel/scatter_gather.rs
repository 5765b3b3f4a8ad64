//! A batch in parts, one for each GPU, and the parts of a result as one. Gradients flow back through both.

use std::panic::Location;

use crate::ambient::Ambient;
use crate::device::Device;
use crate::error::Result;
use crate::scope;
use crate::tensor::Tensor;

/// Cuts a tensor along `dim` and copies each part to its GPU (`torch.nn.parallel.scatter`).
///
/// The parts are those of [`chunk`](Tensor::chunk): 10 rows on 4 GPUs are 3, 3, 3 and 1, and 5 rows are 2, 2 and
/// 1, which leaves the fourth GPU without work.
///
/// ```
/// # use todevice::{Machine, Result, Tensor, nn::parallel};
/// # "sim:t4x4".parse::<Machine>().unwrap().enter(|| -> Result<()> {
/// let parts = parallel::scatter(&Tensor::zeros(&[5, 3])?, &[0, 1, 2, 3], 0)?;
/// let rows: Vec<usize> = parts.iter().map(|part| part.sizes()[0]).collect();
/// assert_eq!(rows, [2, 2, 1]);
/// assert_eq!(parts[1].device().to_string(), "cuda:1");
/// # Ok(())
/// # })?;
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Errors if `dim` is not one of the tensor's, if there is no such GPU, or if its memory is full.
#[track_caller]
pub fn scatter(input: &Tensor, device_ids: &[usize], dim: i64) -> Result<Vec<Tensor>> {
    let _scope = scope::on_behalf_of(Location::caller());
    let parts = input.chunk(device_ids.len(), dim)?;
    parts.iter().zip(device_ids).map(|(part, index)| part.to(Device::cuda(*index))).collect()
}

/// Copies tensors to one device and joins them along `dim` (`torch.nn.parallel.gather`). Numbers become a vector.
///
/// Errors if their sizes differ elsewhere than in `dim`, or if the memory of the device is full.
#[track_caller]
pub fn gather(outputs: &[Tensor], target: Device, dim: i64) -> Result<Tensor> {
    let _scope = scope::on_behalf_of(Location::caller());
    let scalars = dim == 0 && outputs.iter().all(|output| output.ndim() == 0);
    if scalars {
        Ambient::warn_once("gather of scalars", || {
            "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze \
             and return a vector."
                .to_owned()
        });
    }
    let here = outputs.iter().map(|output| {
        let output = output.to(target)?;
        if scalars { output.unsqueeze(0) } else { Ok(output) }
    });
    Tensor::cat(&here.collect::<Result<Vec<_>>>()?, dim)
}
