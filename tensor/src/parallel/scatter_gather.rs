//! Scatter and gather, both differentiable.

use std::panic::Location;

use super::error::ParallelError;
use crate::autograd::record_list;
use crate::device::Device;
use crate::error::Result;
use crate::host_context::HostContext;
use crate::operation::Operation;
use crate::ops;
use crate::ops::transfer::ToOptions;
use crate::scope;
use crate::shape::Layout;
use crate::tensor::Tensor;

/// Splits a tensor along `dim` and copies each part to its GPU (`torch.nn.parallel.scatter`).
///
/// The parts are those of [`chunk`](Tensor::chunk): 10 rows on 4 GPUs become 3, 3, 3 and 1; 5 rows become 2, 2 and 1,
/// and the fourth GPU is idle. Copies from pinned memory are asynchronous ([`ToOptions::non_blocking`]). A part that is
/// already on its GPU is a view.
///
/// ```
/// # use todevice::{Machine, Result, Tensor, parallel};
/// # "sim:t4x4".parse::<Machine>()?.enter(|| -> Result<()> {
/// let parts = parallel::scatter(&Tensor::zeros(&[5, 3])?, 0, &[0, 1, 2, 3])?;
/// let rows: Vec<usize> = parts.iter().map(|part| part.sizes()[0]).collect();
/// assert_eq!(rows, [2, 2, 1]);
/// assert_eq!(parts[1].device().to_string(), "cuda:1");
/// # Ok(())
/// # })?;
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error for a 0-dim tensor, an invalid `dim`, missing GPUs, or full GPU memory.
#[track_caller]
pub fn scatter(input: &Tensor, dim: i64, device_ids: &[usize]) -> Result<Vec<Tensor>> {
    let _scope = scope::on_behalf_of(Location::caller());
    if device_ids.is_empty() {
        return Err(ParallelError::ScatterToNone.into());
    }
    let parts = input.chunk(device_ids.len(), dim)?;
    let send = |(part, index): (&Tensor, &usize)| {
        part.to(ToOptions { device: Some(Device::cuda(*index)), non_blocking: true, ..Default::default() })
    };
    parts.iter().zip(device_ids).map(send).collect()
}

static GATHER: Operation = Operation::new("gather").node("GatherBackward").composite();

/// Joins tensors from several GPUs along `dim` on one device (`torch.nn.parallel.gather`). 0-dim tensors become a
/// vector. Returns an error for tensors on the host, different sizes in other dimensions, or full memory.
#[track_caller]
pub fn gather(outputs: &[Tensor], dim: i64, target: Device) -> Result<Tensor> {
    let _scope = scope::on_behalf_of(Location::caller());
    if outputs.iter().any(|output| !output.is_cuda()) {
        return Err(ParallelError::GatherFromHost.into());
    }
    if dim == 0 && !outputs.is_empty() && outputs.iter().all(|output| output.ndim() == 0) {
        HostContext::warn_once("gather of scalars", || {
            "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze \
             and return a vector."
                .to_owned()
        });
        let rows = outputs.iter().map(|output| output.unsqueeze(0)).collect::<Result<Vec<_>>>()?;
        return gather_rows(&rows, dim, target);
    }
    gather_rows(outputs, dim, target)
}

#[track_caller]
fn gather_rows(rows: &[Tensor], dim: i64, target: Device) -> Result<Tensor> {
    let first = rows.first().ok_or(ParallelError::GatherFromNone)?;
    let dim = first.checked_dim(dim)?;
    let (mut sizes, mut parts) = (first.sizes().to_vec(), Vec::new());
    let mut start = 0;
    for (index, row) in rows.iter().enumerate() {
        if row.ndim() != sizes.len() {
            return Err(ParallelError::GatherDims { index, got: row.ndim(), expected: sizes.len() }.into());
        }
        sizes[dim] = row.sizes()[dim];
        if row.sizes() != sizes {
            return Err(
                ParallelError::GatherSizes { index, got: row.sizes().to_vec(), expected: sizes }.into()
            );
        }
        parts.push((row.device(), start, sizes[dim]));
        start += sizes[dim];
    }
    sizes[dim] = start;
    let rows: Vec<&Tensor> = rows.iter().collect();
    ops::call(&GATHER, &rows, |rows| {
        let out = Tensor::uninit_on(target, Layout::contiguous(&sizes)?, first.dtype())?;
        for (row, (_, start, length)) in rows.iter().zip(&parts) {
            let part = out.with_layout(out.layout().slice(dim, *start, *length, 1));
            part.copy_(&row.detach())?;
        }
        record_list(&GATHER, rows, out, move |grad| {
            let back = |(device, start, length): &(Device, usize, usize)| {
                grad.narrow(dim as i64, *start, *length)?.to(*device)
            };
            parts.iter().map(back).collect()
        })
    })
}
