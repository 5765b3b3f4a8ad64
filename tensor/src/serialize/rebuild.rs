//! Tensors from what a file says of them.

use std::rc::Rc;

use super::error::SerializeError;
use crate::autograd::no_grad;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Layout;
use crate::tensor::Tensor;

/// How a pickle names the memory of tensors.
#[derive(Clone)]
pub(super) struct StorageId {
    /// The name of its record.
    pub(super) key: Rc<str>,
    pub(super) dtype: DType,
    /// Where it was when it was saved.
    pub(super) location: Rc<str>,
    /// How many elements it has.
    pub(super) numel: usize,
    /// From which element on it is seen: old files have storages that are parts of others.
    pub(super) start: usize,
    /// How many elements are seen of it.
    pub(super) seen: usize,
}

/// A tensor of a pickle, to be made once the memory is there.
#[derive(Clone)]
pub(super) struct Rebuild {
    pub(super) storage: StorageId,
    pub(super) offset: usize,
    pub(super) sizes: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) requires_grad: bool,
    /// Whether its elements are those of the memory with the other sign, as in `torch.complex(a, b).conj().imag`.
    pub(super) negative: bool,
}

impl Rebuild {
    /// The tensor in the memory of `storage`, a vector of all there is in it.
    pub(super) fn tensor(&self, storage: &Tensor) -> Result<Tensor> {
        let Rebuild { sizes, strides, storage: StorageId { dtype, .. }, .. } = self;
        let offset = self.offset.checked_add(self.storage.start).ok_or_else(|| self.out_of_bounds())?;
        let mut layout = Layout::strided(sizes, strides, offset)?;
        if sizes.contains(&0) && offset <= storage.numel() {
            layout.offset = offset; // Nothing is there.
        }
        let needed = layout.offset.checked_add(layout.reach());
        if needed.is_none_or(|needed| needed > storage.numel()) {
            return Err(self.out_of_bounds().into());
        }
        let mut tensor = Tensor::made_of(storage.storage().clone(), layout, *dtype);
        if self.negative {
            // There are no tensors here that change the sign as they are read: this one has memory of its own.
            let negated = no_grad(|| whole(&tensor)?.neg())?;
            tensor = Tensor::made_of(negated.storage().clone(), *tensor.layout(), *dtype);
        }
        if self.requires_grad { tensor.requiring_grad() } else { Ok(tensor) }
    }

    fn out_of_bounds(&self) -> SerializeError {
        SerializeError::OutOfBounds {
            sizes: self.sizes.clone(),
            strides: self.strides.clone(),
            offset: self.offset,
            dtype: self.storage.dtype,
            numel: self.storage.numel,
        }
    }
}

/// All there is in a tensor's storage, as a vector; autograd does not see it.
pub(super) fn whole(tensor: &Tensor) -> Result<Tensor> {
    let layout = Layout::contiguous(&[tensor.storage().bytes() / tensor.dtype().size()])?;
    Ok(Tensor::made_of(tensor.storage().clone(), layout, tensor.dtype()))
}

/// Makes every byte of a bool tensor 0 or 1. A file may hold other bytes, which PyTorch reads as True; kernels count on 1.
pub(super) fn normalize_bools(dtype: DType, bytes: &mut [u8]) {
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
}
