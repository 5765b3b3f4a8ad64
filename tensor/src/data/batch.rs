//! Batches as the loader sees them: containers of tensors that can be pinned or copied to a device.

use std::collections::HashMap;
use std::hash::Hash;

use super::collate::columns;
use crate::error::Result;
use crate::tensor::Tensor;

/// A batch: tensors, or a type that contains some.
///
/// For a type without tensors, `impl Batch for Mine {}` is enough. Others implement `map_tensors` for pinning and
/// [`DevicePrefetcher`](super::DevicePrefetcher), as PyTorch's batches implement `pin_memory`.
///
/// ```
/// use todevice::data::Batch;
/// use todevice::{Result, Tensor};
///
/// struct Sentences {
///     words: Tensor,
///     text: Vec<String>,
/// }
///
/// impl Batch for Sentences {
///     fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Sentences> {
///         Ok(Sentences { words: map(self.words)?, ..self })
///     }
/// }
/// ```
pub trait Batch: Sized + Send + 'static {
    /// Applies `map` to each tensor in the batch.
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Self> {
        let _ = map;
        Ok(self)
    }
}

impl Batch for Tensor {
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Tensor> {
        map(self)
    }
}

macro_rules! without_tensors {
    ($($T:ty),*) => {$( impl Batch for $T {} )*};
}
without_tensors!(
    (),
    f64,
    f32,
    i64,
    i32,
    i16,
    i8,
    isize,
    u64,
    u32,
    u16,
    u8,
    usize,
    bool,
    char,
    String,
    &'static str
);

impl<B: Batch, const N: usize> Batch for [B; N] {
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<[B; N]> {
        columns(self, |part| part.map_tensors(map))
    }
}

impl<A: Batch, B: Batch> Batch for (A, B) {
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<(A, B)> {
        Ok((self.0.map_tensors(map)?, self.1.map_tensors(map)?))
    }
}

impl<A: Batch, B: Batch, C: Batch> Batch for (A, B, C) {
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<(A, B, C)> {
        Ok((self.0.map_tensors(map)?, self.1.map_tensors(map)?, self.2.map_tensors(map)?))
    }
}

impl<B: Batch> Batch for Vec<B> {
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Vec<B>> {
        self.into_iter().map(|part| part.map_tensors(map)).collect()
    }
}

impl<B: Batch> Batch for Option<B> {
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Option<B>> {
        self.map(|part| part.map_tensors(map)).transpose()
    }
}

impl<K: Eq + Hash + Send + 'static, B: Batch> Batch for HashMap<K, B> {
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<HashMap<K, B>> {
        self.into_iter().map(|(key, part)| Ok((key, part.map_tensors(map)?))).collect()
    }
}

pub(super) fn pin<B: Batch>(batch: B) -> Result<B> {
    batch.map_tensors(&mut |tensor| tensor.pin_memory())
}
