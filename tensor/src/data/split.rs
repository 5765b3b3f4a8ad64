use std::sync::Arc;

use super::collate::{Collate, columns};
use super::dataset::{BatchOf, Dataset};
use super::error::DataError;
use super::sampler::check_order_fits;
use crate::cpu::random::randperm;
use crate::error::Result;
use crate::host_context::HostContext;
use crate::machine::Machine;
use crate::random::Generator;

/// Selected samples of a dataset (`torch.utils.data.Subset`): sample `i` is sample `indices[i]` of the dataset.
#[derive(Clone, Debug)]
pub struct Subset<D> {
    dataset: D,
    indices: Vec<usize>,
}

impl<D: Dataset> Subset<D> {
    /// Creates a subset. Pass an `Arc` to share the dataset. Indices are checked on access.
    pub fn new(dataset: D, indices: Vec<usize>) -> Subset<D> {
        Subset { dataset, indices }
    }

    /// Returns the whole dataset.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// Returns the indices of the samples in the whole dataset.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    fn in_whole(&self, index: usize) -> Result<usize> {
        let len = self.indices.len();
        Ok(*self.indices.get(index).ok_or(DataError::DatasetIndex { index, len })?)
    }

    fn all_in_whole(&self, indices: &[usize]) -> Result<Vec<usize>> {
        indices.iter().map(|index| self.in_whole(*index)).collect()
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        self.dataset.get(self.in_whole(index)?)
    }

    fn get_items(&self, indices: &[usize]) -> Result<Vec<D::Sample>> {
        self.dataset.get_items(&self.all_in_whole(indices)?)
    }

    fn get_batch(&self, indices: &[usize]) -> Result<BatchOf<D>>
    where
        D::Sample: Collate,
    {
        self.dataset.get_batch(&self.all_in_whole(indices)?)
    }
}

/// Concatenated datasets (`torch.utils.data.ConcatDataset`). `D` may be `Arc<dyn Dataset<Sample = …>>`.
#[derive(Clone, Debug)]
pub struct ConcatDataset<D> {
    datasets: Vec<D>,
    /// The end of each dataset.
    cumulative_sizes: Vec<usize>,
}

impl<D: Dataset> ConcatDataset<D> {
    /// Returns an error if there are no datasets.
    pub fn new(datasets: Vec<D>) -> Result<ConcatDataset<D>> {
        if datasets.is_empty() {
            return Err(DataError::NoDatasets.into());
        }
        let mut end = 0usize;
        let mut ends = Vec::with_capacity(datasets.len());
        for dataset in &datasets {
            end = end.saturating_add(dataset.len());
            ends.push(end);
        }
        Ok(ConcatDataset { datasets, cumulative_sizes: ends })
    }

    /// Returns the concatenated datasets.
    pub fn datasets(&self) -> &[D] {
        &self.datasets
    }
}

impl<D: Dataset> Dataset for ConcatDataset<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        *self.cumulative_sizes.last().expect("there is at least one dataset")
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        let which = self.cumulative_sizes.partition_point(|end| *end <= index);
        let Some(dataset) = self.datasets.get(which) else {
            return Err(DataError::DatasetIndex { index, len: self.len() }.into());
        };
        let start = if which == 0 { 0 } else { self.cumulative_sizes[which - 1] };
        dataset.get(index - start)
    }
}

/// A unit of lengths in [`random_split`]: samples (`usize`) or fractions (`f64`).
pub trait SplitLength: Copy {
    /// Returns the lengths in samples, for a dataset of `len`.
    fn lengths(parts: &[Self], len: usize) -> Result<Vec<usize>>;
}

impl SplitLength for usize {
    fn lengths(parts: &[usize], len: usize) -> Result<Vec<usize>> {
        let sum = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(*part));
        if sum == Some(len) { Ok(parts.to_vec()) } else { Err(DataError::SplitLengths.into()) }
    }
}

impl SplitLength for f64 {
    /// Rounds down, and distributes the remaining samples in turn.
    fn lengths(parts: &[f64], len: usize) -> Result<Vec<usize>> {
        let sum: f64 = parts.iter().sum();
        // Python's `math.isclose(sum, 1) and sum <= 1`: 0.7 + 0.2 + 0.1 is slightly below 1.
        if !(1.0 - 1e-9..=1.0).contains(&sum) {
            return Err(DataError::SplitLengths.into());
        }
        if let Some(index) = parts.iter().position(|part| !(0.0..=1.0).contains(part)) {
            return Err(DataError::SplitFraction { index }.into());
        }
        let mut lengths: Vec<usize> = parts.iter().map(|part| (len as f64 * part).floor() as usize).collect();
        let left_over = len.checked_sub(lengths.iter().sum()).ok_or(DataError::SplitLengths)?;
        let parts = lengths.len();
        for turn in 0..left_over {
            lengths[turn % parts] += 1;
        }
        if let Some(index) = lengths.iter().position(|length| *length == 0) {
            HostContext::warn_once("random_split", || {
                format!("Length of split at index {index} is 0. This might result in an empty dataset.")
            });
        }
        Ok(lengths)
    }
}

/// Cuts a random permutation into parts that share the dataset (`torch.utils.data.random_split`).
///
/// ```
/// # use todevice::data::{Dataset, random_split};
/// # use todevice::{Generator, Tensor};
/// # use todevice::data::TensorDataset;
/// let dataset = TensorDataset::new([Tensor::zeros(&[10, 3])?])?;
/// let generator = Generator::new().manual_seed(42);
/// let [train, valid] = random_split(dataset, [0.7, 0.3], Some(&generator))?;
/// assert_eq!(train.indices(), [2, 6, 1, 8, 4, 5, 0]);
/// assert_eq!(valid.indices(), [9, 3, 7]);
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error if the sum of the lengths is not the dataset's length, or the sum of the fractions is not 1.
pub fn random_split<D: Dataset, L: SplitLength, const N: usize>(
    dataset: D,
    lengths: [L; N],
    generator: Option<&Generator>,
) -> Result<[Subset<Arc<D>>; N]> {
    check_order_fits(dataset.len())?;
    let lengths = L::lengths(&lengths, dataset.len())?;
    let generator = generator.cloned().unwrap_or_else(Machine::default_generator);
    let order = randperm(&mut generator.lock(), dataset.len());
    let mut order = order.into_iter().map(|index| index as usize);
    let dataset = Arc::new(dataset);
    let mut parts = lengths.into_iter();
    columns([(); N], |()| {
        let length = parts.next().expect("as many lengths as parts");
        Ok(Subset::new(dataset.clone(), order.by_ref().take(length).collect()))
    })
}
