//! Datasets: numbered collections of samples.

use std::sync::Arc;

use super::collate::{Collate, columns};
use super::error::DataError;
use super::worker;
use crate::error::Result;
use crate::host_context::HostContext;
use crate::ops::index::error::IndexError;
use crate::tensor::Tensor;

/// The default batch of a dataset.
pub type BatchOf<D> = <<D as Dataset>::Sample as Collate>::Batch;

/// A numbered collection of samples (`torch.utils.data.Dataset`, the map style).
///
/// Methods take `&self` and the trait requires `Sync`, because workers call it from several threads.
///
/// ```
/// use todevice::Result;
/// use todevice::data::{DataLoader, DataLoaderOptions, Dataset};
///
/// struct Squares;
///
/// impl Dataset for Squares {
///     type Sample = (i64, f32);
///
///     fn len(&self) -> usize {
///         5
///     }
///
///     fn get(&self, index: usize) -> Result<(i64, f32)> {
///         Ok((index as i64, (index * index) as f32))
///     }
/// }
///
/// let loader = DataLoader::new(Squares, DataLoaderOptions { batch_size: 3, ..Default::default() })?;
/// let batches = loader.iter().collect::<Result<Vec<_>>>()?;
/// let (numbers, squares) = &batches[1];
/// assert_eq!(numbers.to_vec::<i64>()?, [3, 4]);
/// assert_eq!(squares.to_vec::<f32>()?, [9.0, 16.0]);
/// # Ok::<(), todevice::Error>(())
/// ```
pub trait Dataset: Send + Sync {
    /// The type of a sample: often `[Tensor; 2]` or `(Tensor, i64)`, an image and its label.
    type Sample: Send;

    /// Returns the number of samples (`__len__`).
    fn len(&self) -> usize;

    /// Returns one sample (`__getitem__`): reads, decodes, augments. An error replaces the sample's batch.
    fn get(&self, index: usize) -> Result<Self::Sample>;

    /// Returns whether the dataset has no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns several samples (`__getitems__`). Override it if one large request is cheaper than many small ones.
    fn get_items(&self, indices: &[usize]) -> Result<Vec<Self::Sample>> {
        let get = |index: &usize| {
            worker::check_wanted()?;
            HostContext::spend(|host| &host.fetch);
            self.get(*index)
        };
        indices.iter().map(get).collect()
    }

    /// Returns a batch: [`get_items`](Self::get_items), then [`collate`](Collate::collate). Implement it if the dataset
    /// can produce the same batch without intermediate samples.
    fn get_batch(&self, indices: &[usize]) -> Result<BatchOf<Self>>
    where
        Self::Sample: Collate,
    {
        Collate::collate(self.get_items(indices)?)
    }
}

/// Tensors with corresponding rows, such as inputs and targets (`torch.utils.data.TensorDataset`). Sample `i` is
/// `[Tensor; N]`, views of row `i`; a batch is `[Tensor; N]`, too.
///
/// ```
/// # use todevice::Tensor;
/// # use todevice::data::{Dataset, TensorDataset};
/// let x = Tensor::new([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
/// let y = Tensor::new([10, 20, 30])?;
/// let dataset = TensorDataset::new([x, y])?;
/// let [x, y] = dataset.get(2)?;
/// assert_eq!((x.to_vec::<f32>()?, y.item()?), (vec![5.0, 6.0], 30.0));
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorDataset<const N: usize> {
    tensors: [Tensor; N],
    len: usize,
}

impl<const N: usize> TensorDataset<N> {
    /// Returns an error if the tensors differ in their numbers of rows, or if one has no dimensions.
    pub fn new(tensors: [Tensor; N]) -> Result<TensorDataset<N>> {
        const { assert!(N > 0, "a TensorDataset needs a tensor") };
        let len = tensors[0].size(0)?;
        for tensor in &tensors {
            if tensor.size(0)? != len {
                return Err(DataError::DatasetSizes.into());
            }
        }
        Ok(TensorDataset { tensors, len })
    }

    /// Returns the dataset's tensors.
    pub fn tensors(&self) -> &[Tensor; N] {
        &self.tensors
    }

    fn check(&self, index: usize) -> Result<i64> {
        let signed = i64::try_from(index).unwrap_or(i64::MAX);
        if index < self.len {
            return Ok(signed);
        }
        Err(IndexError::OutOfBounds { index: signed, dim: 0, size: self.len }.into())
    }
}

impl<const N: usize> Dataset for TensorDataset<N> {
    type Sample = [Tensor; N];

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<[Tensor; N]> {
        let index = self.check(index)?;
        columns(self.tensors.each_ref(), |tensor| tensor.select(0, index))
    }

    /// `index_select` per tensor equals stacked views, but is an order of magnitude faster.
    fn get_batch(&self, indices: &[usize]) -> Result<BatchOf<Self>> {
        // `index_select` copies a non-contiguous tensor as a whole. `collate` rejects an empty batch.
        if indices.is_empty() || !self.tensors.iter().all(Tensor::is_contiguous) {
            return Collate::collate(self.get_items(indices)?);
        }
        HostContext::spend_on_each(indices.len(), |host| &host.row);
        let rows = indices.iter().map(|index| self.check(*index)).collect::<Result<Vec<i64>>>()?;
        let rows = Tensor::from_slice(&rows, &[indices.len()])?;
        columns(self.tensors.each_ref(), |tensor| tensor.index_select(0, &rows))
    }
}

impl<D: Dataset + ?Sized> Dataset for Arc<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        (**self).get(index)
    }

    fn get_items(&self, indices: &[usize]) -> Result<Vec<D::Sample>> {
        (**self).get_items(indices)
    }

    fn get_batch(&self, indices: &[usize]) -> Result<BatchOf<D>>
    where
        D::Sample: Collate,
    {
        (**self).get_batch(indices)
    }
}
