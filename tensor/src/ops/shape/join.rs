use std::panic::Location;

use smallvec::SmallVec;

use super::error::ShapeError;
use super::views::{SPLIT, SPLIT_WITH_SIZES};
use crate::autograd::record_list;
use crate::cpu::reserve::reserve;
use crate::error::{LayoutError, Result};
use crate::host_context::HostContext;
use crate::kernel::{Cost, KernelWork};
use crate::ops::access::access_all;
use crate::ops::launch::work_on;
use crate::ops::plain::write;
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::scope;
use crate::shape::{self, Layout, normalize_dim};
use crate::tensor::Tensor;

operations! {
    static CAT: Operation =
        Operation::new("cat").node("CatBackward0").composite().autocast_on_cpu(CastPolicy::Promote);
    static STACK: Operation =
        Operation::new("cat").node("StackBackward0").composite().autocast_on_cpu(CastPolicy::Promote);
    // The operation inside both.
    static JOIN: Operation =
        Operation::new("cat").arguments("wrapper_CUDA_cat", &["tensors"])
            .autocast_on_cpu(CastPolicy::Promote);
}

impl Tensor {
    /// Joins tensors along an existing dimension (`torch.cat`).
    #[track_caller]
    pub fn cat<T: AsRef<Tensor>>(tensors: &[T], dim: i64) -> Result<Tensor> {
        let tensors: Vec<&Tensor> = tensors.iter().map(AsRef::as_ref).collect();
        ops::call(&CAT, &tensors, |tensors| {
            cat(tensors, dim, &CAT, &|sizes, parts| Layout::joined(sizes, parts))
        })
    }

    /// Joins tensors of one shape along a new dimension (`torch.stack`).
    #[track_caller]
    pub fn stack<T: AsRef<Tensor>>(tensors: &[T], dim: i64) -> Result<Tensor> {
        let _scope = scope::operation("stack", Location::caller());
        let Some(first) = tensors.first().map(AsRef::as_ref) else {
            return Err(ShapeError::EmptyList { operation: "stack" }.into());
        };
        let dim = normalize_dim(dim, first.ndim() + 1)? as i64;
        let mut rows = Vec::with_capacity(tensors.len());
        for (index, tensor) in tensors.iter().map(AsRef::as_ref).enumerate() {
            if tensor.sizes() != first.sizes() {
                let (expected, got) = (first.sizes().to_vec(), tensor.sizes().to_vec());
                return Err(ShapeError::StackSizes { expected, got, index }.into());
            }
            rows.push(tensor.unsqueeze(dim)?);
        }
        let rows: Vec<&Tensor> = rows.iter().collect();
        // PyTorch joins along an existing dimension and splits it, unless the new one is the last. So images keep their
        // memory format.
        let new = dim as usize;
        let layout = |sizes: &[usize], rows: &[Layout]| {
            if new + 1 == sizes.len() {
                return Layout::joined(sizes, rows);
            }
            let mut joined = sizes.to_vec();
            let count = joined.remove(new);
            joined[new] *= count;
            let parts: Vec<Layout> = rows.iter().map(|row| row.remove_dim(new)).collect();
            Ok(Layout::joined(&joined, &parts)?.view(sizes)?.expect("the new dimension splits one"))
        };
        ops::call(&STACK, &rows, |rows| cat(rows, dim, &STACK, &layout))
    }

    /// Splits a dimension into views of `size` entries, of which the last may be shorter (`torch.split`).
    #[track_caller]
    pub fn split(&self, size: usize, dim: i64) -> Result<Vec<Tensor>> {
        if self.ndim() == 0 {
            return Err(ShapeError::PartsOfNumber { operation: "split" }.into());
        }
        let total = self.size(dim)?;
        match (size, total) {
            (0, 0) => return Ok(vec![self.narrow(dim, 0, 0)?]),
            (0, _) => return Err(ShapeError::SplitSize { size: total }.into()),
            _ => {}
        }
        let along = self.checked_dim(dim)?;
        let mut parts = Vec::new();
        for start in (0..total.max(1)).step_by(size) {
            let part = self.part(along, start, size.min(total - start), &SPLIT)?;
            parts.push(part.among_several(parts.len()));
        }
        Ok(parts)
    }

    /// Splits a dimension into at most `chunks` views of equal size, of which the last may be shorter (`torch.chunk`).
    #[track_caller]
    pub fn chunk(&self, chunks: usize, dim: i64) -> Result<Vec<Tensor>> {
        if self.ndim() == 0 {
            return Err(ShapeError::PartsOfNumber { operation: "chunk" }.into());
        }
        if chunks == 0 {
            return Err(ShapeError::NoChunks.into());
        }
        match self.size(dim)? {
            // An empty dimension gives exactly `chunks` equal parts.
            0 => {
                let mut parts = reserve(chunks)?;
                parts.resize(chunks, self.part(self.checked_dim(dim)?, 0, 0, &SPLIT_WITH_SIZES)?);
                Ok(parts)
            }
            size => self.split(size.div_ceil(chunks), dim),
        }
    }
}

#[track_caller]
fn cat(
    tensors: &[&Tensor],
    dim: i64,
    operation: &'static Operation,
    layout: &dyn Fn(&[usize], &[Layout]) -> shape::Result<Layout>,
) -> Result<Tensor> {
    // A 1-D tensor without elements joins any tensor, for code that starts from an empty tensor.
    let joins = |tensor: &Tensor| tensor.sizes() != [0];
    let Some(first) = tensors.iter().copied().find(|tensor| joins(tensor)).or(tensors.first().copied())
    else {
        return Err(ShapeError::EmptyCat.into());
    };
    if let Some(position) = tensors.iter().position(|tensor| tensor.ndim() == 0) {
        return Err(ShapeError::ZeroDimCat { position }.into());
    }
    // If all tensors are empty vectors, there is no dimension to join along.
    let dim = if joins(first) { first.checked_dim(dim)? } else { 0 };
    let mut sizes = first.sizes().to_vec();
    sizes[dim] = 0;
    let mut dtype = first.dtype();
    for (index, tensor) in tensors.iter().enumerate() {
        dtype = dtype.promote(tensor.dtype());
        if !joins(tensor) {
            continue;
        }
        if tensor.ndim() != first.ndim() {
            return Err(ShapeError::CatDims { expected: first.ndim(), got: tensor.ndim() }.into());
        }
        for (other, (expected, got)) in first.sizes().iter().zip(tensor.sizes()).enumerate() {
            if other != dim && expected != got {
                return Err(ShapeError::CatSizes { dim, expected: *expected, got: *got, index }.into());
            }
        }
        let joined = sizes[dim].checked_add(tensor.sizes()[dim]);
        sizes[dim] = joined.ok_or_else(|| LayoutError::TooLarge { sizes: sizes.clone() })?;
    }
    ops::call(&JOIN, tensors, |tensors| {
        let layouts: SmallVec<[Layout; 4]> = tensors.iter().map(|tensor| *tensor.layout()).collect();
        let out = first.uninit_with(layout(&sizes, &layouts)?, dtype)?;
        let is_small = !out.is_cuda() && out.numel() < Cost::Cheap.smallest_parallel();
        let in_order = |tensor: &&Tensor| tensor.is_contiguous() && tensor.dtype() == dtype;
        let at_once = is_small && out.is_contiguous() && tensors.iter().all(in_order);
        let mut places = Vec::new();
        let mut start = 0;
        for tensor in tensors {
            if !joins(tensor) {
                places.push(None);
                continue;
            }
            let length = tensor.sizes()[dim];
            if !at_once {
                let part = out.with_layout(out.layout().slice(dim, start, length, 1));
                write(&part, &tensor.detach().to(dtype)?)?;
            }
            places.push(Some((start, length)));
            start += length;
        }
        if at_once {
            join(tensors, dim, &out)?;
        }
        record_list(operation, tensors, out, move |grad| {
            let part = |place: &Option<(usize, usize)>| match *place {
                Some((start, length)) => grad.narrow(dim as i64, start, length),
                None => grad.new_full(&[0], 0),
            };
            places.iter().map(part).collect()
        })
    })
}

/// Joins contiguous tensors in host memory. For many small ones, launches would take longer than the copy.
fn join(tensors: &[&Tensor], dim: usize, out: &Tensor) -> Result<()> {
    for tensor in tensors {
        let work = work_on(tensor, Cost::Cheap);
        HostContext::charge(|host| host.kernel_time(&KernelWork { bytes: 2 * work.bytes, ..work }));
    }
    let dtype = out.dtype();
    let blocks = out.sizes()[..dim].iter().product();
    access_all(tensors, &[out], &mut |inputs, outputs| {
        let mut rest = outputs[0].dense_bytes(dtype);
        for block in 0..blocks {
            for input in inputs {
                let bytes = input.dense_bytes(dtype);
                let length = bytes.len() / blocks;
                let (now, later) = rest.split_at_mut(length);
                now.copy_from_slice(&bytes[block * length..][..length]);
                rest = later;
            }
        }
        Ok(())
    })
}

impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}
