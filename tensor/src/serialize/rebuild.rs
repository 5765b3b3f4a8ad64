use std::rc::Rc;

use super::error::SerializeError;
use crate::autograd::no_grad;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Layout;
use crate::tensor::Tensor;

#[derive(Clone)]
pub(super) struct StorageId {
    pub(super) key: Rc<str>,
    pub(super) dtype: DType,
    pub(super) location: Rc<str>,
    pub(super) numel: usize,
    /// The first visible element: in old files a storage can be a part of another.
    pub(super) start: usize,
    pub(super) seen: usize,
}

/// A tensor in a pickle, before its memory is loaded.
#[derive(Clone)]
pub(super) struct Rebuild {
    pub(super) storage: StorageId,
    pub(super) offset: usize,
    pub(super) sizes: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) requires_grad: bool,
    /// The negative bit: values are the negated elements, as in `torch.complex(a, b).conj().imag`.
    pub(super) negative: bool,
}

impl Rebuild {
    /// Builds the tensor in `storage`, a 1-D tensor of the whole storage.
    pub(super) fn tensor(&self, storage: &Tensor) -> Result<Tensor> {
        let Rebuild { sizes, strides, storage: StorageId { dtype, .. }, .. } = self;
        let offset = self.offset.checked_add(self.storage.start).ok_or_else(|| self.out_of_bounds())?;
        let mut layout = Layout::strided(sizes, strides, offset)?;
        if sizes.contains(&0) && offset <= storage.numel() {
            layout.offset = offset; // No elements.
        }
        let needed = layout.offset.checked_add(layout.reach());
        if needed.is_none_or(|needed| needed > storage.numel()) {
            return Err(self.out_of_bounds().into());
        }
        let mut tensor = Tensor::made_of(storage.storage().clone(), layout, *dtype);
        if self.negative {
            // This crate has no negative bit, so the tensor is copied.
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

/// Returns the whole storage as a 1-D tensor, without history.
pub(super) fn whole(tensor: &Tensor) -> Result<Tensor> {
    let layout = Layout::contiguous(&[tensor.storage().bytes() / tensor.dtype().size()])?;
    Ok(Tensor::made_of(tensor.storage().clone(), layout, tensor.dtype()))
}

/// Sets every byte to 0 or 1. PyTorch reads other bytes as True; kernels rely on 1.
pub(super) fn normalize_bools(dtype: DType, bytes: &mut [u8]) {
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
}
