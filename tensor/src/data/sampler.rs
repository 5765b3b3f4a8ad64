//! Samplers: the order of samples. Other code draws from the same generator, so iterators are lazy, like Python's
//! generators: they draw nothing before the first index is requested, and then only as much as needed.

use std::iter;
use std::sync::Arc;

use super::dataset::Dataset;
use super::error::DataError;
use crate::cpu::random::{fill_randint_i64, fill_random_i64, randperm};
use crate::cpu::reserve::reserve;
use crate::error::Result;
use crate::machine::Machine;
use crate::ops::random::error::RandomError;
use crate::random::Generator;

/// The indices of one epoch.
pub type SamplerIter<'a, Index = usize> = Box<dyn Iterator<Item = Index> + Send + 'a>;

/// An order of samples (`torch.utils.data.Sampler`). `Index` is `Vec<usize>` for batches, as in [`BatchSampler`].
///
/// ```
/// use todevice::data::{Sampler, SamplerIter};
///
/// struct Backwards(usize);
///
/// impl Sampler for Backwards {
///     fn iter(&self) -> SamplerIter<'_> {
///         Box::new((0..self.0).rev())
///     }
///     fn len(&self) -> usize {
///         self.0
///     }
/// }
///
/// assert!(Backwards(3).iter().eq([2, 1, 0]));
/// ```
pub trait Sampler<Index = usize>: Send + Sync {
    /// Starts an epoch (`__iter__`).
    fn iter(&self) -> SamplerIter<'_, Index>;

    /// Returns the number of indices per epoch (`__len__`).
    fn len(&self) -> usize;

    /// Returns whether an epoch has no indices.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Draws a seed like `torch.empty((), dtype=torch.int64).random_()`, from 0 to the largest i64.
pub(super) fn random_i64(generator: Option<&Generator>) -> u64 {
    let generator = generator.cloned().unwrap_or_else(Machine::default_generator);
    let mut drawn = [0];
    fill_random_i64(&mut generator.lock(), &mut drawn);
    drawn[0] as u64
}

/// The order of the dataset (`torch.utils.data.SequentialSampler`).
pub struct SequentialSampler {
    len: usize,
}

impl SequentialSampler {
    /// Creates a sampler for the current length of the dataset.
    pub fn new<D: Dataset + ?Sized>(data_source: &D) -> SequentialSampler {
        SequentialSampler { len: data_source.len() }
    }
}

impl Sampler for SequentialSampler {
    fn iter(&self) -> SamplerIter<'_> {
        Box::new(0..self.len)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// The keyword arguments of `RandomSampler(...)`.
#[derive(Clone, Debug, Default)]
pub struct RandomSamplerOptions {
    /// Whether to draw with replacement.
    pub replacement: bool,
    /// The number of samples per epoch. Default: the length of the dataset.
    pub num_samples: Option<usize>,
    /// The generator of the order. Default: a new generator per epoch, seeded from the default generator.
    pub generator: Option<Generator>,
}

/// Random order (`torch.utils.data.RandomSampler`), as for `shuffle: true`.
///
/// ```
/// # use todevice::data::{RandomSampler, RandomSamplerOptions, Sampler, TensorDataset};
/// # use todevice::{Generator, Tensor};
/// let dataset = TensorDataset::new([Tensor::zeros(&[5, 3])?])?;
/// let generator = Some(Generator::new().manual_seed(0));
/// let sampler = RandomSampler::new(&dataset, RandomSamplerOptions { generator, ..Default::default() })?;
/// assert!(sampler.iter().eq([4, 0, 1, 3, 2]));
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct RandomSampler {
    n: usize,
    num_samples: usize,
    replacement: bool,
    generator: Option<Generator>,
}

impl RandomSampler {
    /// Returns an error if the dataset is empty or there is nothing to draw.
    pub fn new<D: Dataset + ?Sized>(data_source: &D, options: RandomSamplerOptions) -> Result<RandomSampler> {
        let RandomSamplerOptions { replacement, num_samples, generator } = options;
        let n = data_source.len();
        let num_samples = num_samples.unwrap_or(n);
        match (num_samples, n, replacement) {
            (0, _, _) => Err(DataError::NotPositive { option: "num_samples", value: 0 }.into()),
            (_, 0, true) => Err(RandomError::EmptyRange { low: 0, high: 0 }.into()),
            (_, 0, false) => Err(DataError::ZeroDivision.into()),
            _ => {
                check_order_fits(if replacement { 0 } else { n })?;
                Ok(RandomSampler { n, num_samples, replacement, generator })
            }
        }
    }

    fn draw(&self, generator: &Generator, count: usize) -> Vec<usize> {
        let drawn = if self.replacement {
            let mut drawn = vec![0; count];
            fill_randint_i64(&mut generator.lock(), &mut drawn, 0, self.n as i64);
            drawn
        } else {
            // Always a full permutation: even an unused last draw of an epoch advances the generator.
            let mut drawn = randperm(&mut generator.lock(), self.n);
            drawn.truncate(count);
            drawn
        };
        drawn.into_iter().map(|index| index as usize).collect()
    }
}

impl Sampler for RandomSampler {
    fn iter(&self) -> SamplerIter<'_> {
        let own = || Generator::new().manual_seed(random_i64(None));
        let generator = iter::once_with(move || self.generator.clone().unwrap_or_else(own));
        // PyTorch draws 32 indices, or one permutation, at a time, and then the rest.
        let portion = if self.replacement { 32 } else { self.n };
        let counts = iter::repeat_n(portion, self.num_samples / portion);
        let counts = counts.chain([self.num_samples % portion]);
        Box::new(
            generator.flat_map(move |generator| {
                counts.clone().flat_map(move |count| self.draw(&generator, count))
            }),
        )
    }

    fn len(&self) -> usize {
        self.num_samples
    }
}

/// Given indices in random order (`torch.utils.data.SubsetRandomSampler`).
pub struct SubsetRandomSampler {
    indices: Vec<usize>,
    generator: Option<Generator>,
}

impl SubsetRandomSampler {
    /// Without a generator, draws from the default generator directly.
    pub fn new(indices: Vec<usize>, generator: Option<Generator>) -> SubsetRandomSampler {
        SubsetRandomSampler { indices, generator }
    }
}

impl Sampler for SubsetRandomSampler {
    fn iter(&self) -> SamplerIter<'_> {
        let order = iter::once_with(|| {
            let generator = self.generator.clone().unwrap_or_else(Machine::default_generator);
            randperm(&mut generator.lock(), self.indices.len())
        });
        Box::new(order.flatten().map(|place| self.indices[place as usize]))
    }

    fn len(&self) -> usize {
        self.indices.len()
    }
}

/// Batches of a sampler's indices (`torch.utils.data.BatchSampler`).
pub struct BatchSampler<S> {
    sampler: S,
    batch_size: usize,
    drop_last: bool,
}

impl<S: Sampler> BatchSampler<S> {
    /// `drop_last` drops an incomplete last batch. Returns an error if `batch_size` is 0.
    pub fn new(sampler: S, batch_size: usize, drop_last: bool) -> Result<BatchSampler<S>> {
        if batch_size == 0 {
            return Err(DataError::NotPositive { option: "batch_size", value: 0 }.into());
        }
        Ok(BatchSampler { sampler, batch_size, drop_last })
    }
}

impl<S: Sampler> Sampler<Vec<usize>> for BatchSampler<S> {
    fn iter(&self) -> SamplerIter<'_, Vec<usize>> {
        let mut indices = iter::once_with(|| self.sampler.iter()).flatten();
        let batches = iter::from_fn(move || {
            let batch: Vec<usize> = indices.by_ref().take(self.batch_size).collect();
            let good = if self.drop_last { batch.len() == self.batch_size } else { !batch.is_empty() };
            good.then_some(batch)
        });
        Box::new(batches.fuse())
    }

    fn len(&self) -> usize {
        let indices = self.sampler.len();
        if self.drop_last { indices / self.batch_size } else { indices.div_ceil(self.batch_size) }
    }
}

impl<Index, S: Sampler<Index> + ?Sized> Sampler<Index> for Arc<S> {
    fn iter(&self) -> SamplerIter<'_, Index> {
        (**self).iter()
    }

    fn len(&self) -> usize {
        (**self).len()
    }
}

/// Checks that an order of `n` samples fits in memory: an iterator could not return that error.
pub(super) fn check_order_fits(n: usize) -> Result<()> {
    reserve::<[i64; 2]>(n).map(drop)
}
