use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::batch::Batch;
use super::collate::Collate;
use super::dataset::{BatchOf, Dataset};
use super::error::DataError;
use super::iterator::{BatchSource, DataLoaderIter};
use super::progress::{Epoch, Generators, Progress};
use super::sampler::{
    BatchSampler, RandomSampler, RandomSamplerOptions, Sampler, SequentialSampler, random_i64,
};
use super::worker::{Fetch, Plan, WorkerInitFn, WorkerPool};
use crate::error::Result;
use crate::gpu;
use crate::host_context::HostContext;
use crate::host_profile::MODELLED_CORES;
use crate::lock::lock;
use crate::machine::Machine;
use crate::random::Generator;
use crate::scope::{self, Place};
use crate::serialize::Dict;

/// Without threads, workers run on the caller's thread and make the same batches.
const THREADS: bool = cfg!(not(target_family = "wasm"));

/// The keyword arguments of `DataLoader(...)`.
#[derive(Clone)]
pub struct DataLoaderOptions {
    /// The number of samples per batch; the last batch may have fewer.
    pub batch_size: usize,
    /// Whether to shuffle, in a new order each epoch.
    pub shuffle: bool,
    /// A sampler instead of `shuffle`.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// A batch sampler instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
    pub batch_sampler: Option<Arc<dyn Sampler<Vec<usize>>>>,
    /// The number of worker threads that make batches ahead of time. With 0 the caller makes each batch on request.
    pub num_workers: usize,
    /// Whether to pin batches, for faster copies to a GPU ([`Tensor::pin_memory`](crate::Tensor::pin_memory)). Workers'
    /// batches are pinned in the background. Without a GPU it only warns.
    pub pin_memory: bool,
    /// Whether to drop an incomplete last batch.
    pub drop_last: bool,
    /// The timeout of a worker's batch in seconds; 0 for none.
    pub timeout: f64,
    /// A function that each worker calls before its first batch.
    pub worker_init_fn: Option<WorkerInitFn>,
    /// The generator of the order and the workers' seeds. Default: the default generator.
    pub generator: Option<Generator>,
    /// The number of batches that each worker makes ahead. Default: 2.
    pub prefetch_factor: Option<usize>,
    /// Whether to keep the workers for the next epoch. Their random numbers continue.
    pub persistent_workers: bool,
}

impl Default for DataLoaderOptions {
    fn default() -> DataLoaderOptions {
        DataLoaderOptions {
            batch_size: 1,
            shuffle: false,
            sampler: None,
            batch_sampler: None,
            num_workers: 0,
            pin_memory: false,
            drop_last: false,
            timeout: 0.0,
            worker_init_fn: None,
            generator: None,
            prefetch_factor: None,
            persistent_workers: false,
        }
    }
}

/// Iterates over a dataset in batches (`torch.utils.data.DataLoader`). Each iteration over a reference is one epoch.
/// Each item is a `Result`: an error in the dataset replaces its batch, and the next batches follow.
///
/// ```
/// # use todevice::{Result, Tensor, manual_seed};
/// # use todevice::data::{DataLoader, DataLoaderOptions, TensorDataset};
/// manual_seed(0);
/// let dataset = TensorDataset::new([Tensor::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])?])?;
/// let options = DataLoaderOptions { batch_size: 4, shuffle: true, ..Default::default() };
/// let loader = DataLoader::new(dataset, options)?;
/// let mut order = Vec::new();
/// for batch in &loader {
///     let [x] = batch?;
///     order.push(x.to_vec::<i64>()?);
/// }
/// assert_eq!(order, [vec![6, 7, 1, 4], vec![2, 0, 9, 8], vec![3, 5]]); // As in PyTorch.
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct DataLoader<D: Dataset, B = BatchOf<D>> {
    dataset: Arc<D>,
    pub(super) fetch: Fetch<B>,
    pub(super) batch_sampler: Arc<dyn Sampler<Vec<usize>>>,
    num_workers: usize,
    pub(super) capacity: usize,
    pin_memory: bool,
    timeout: Duration,
    worker_init_fn: Option<WorkerInitFn>,
    generator: Option<Generator>,
    persistent_workers: bool,
    /// Persistent workers between epochs.
    idle: Mutex<Option<WorkerPool<B>>>,
    pub(crate) threads: bool,
    progress: Progress,
}

impl<D> DataLoader<D>
where
    D: Dataset + 'static,
    D::Sample: Collate,
{
    /// Creates a loader with the default collation. Returns an error if the options contradict each other.
    pub fn new(dataset: D, options: DataLoaderOptions) -> Result<DataLoader<D>> {
        let dataset = Arc::new(dataset);
        let source = dataset.clone();
        DataLoader::build(dataset, Arc::new(move |indices| source.get_batch(indices)), options)
    }
}

impl<D: Dataset + 'static, B: Batch> DataLoader<D, B> {
    /// Creates a loader with a custom collation (`collate_fn`), which runs in the workers. It can put batches on a GPU
    /// only without workers, which may not use CUDA, and without `pin_memory`, because GPU tensors cannot be pinned.
    ///
    /// ```
    /// # use todevice::Result;
    /// # use todevice::data::{DataLoader, DataLoaderOptions, Dataset};
    /// # struct Words([&'static str; 4]);
    /// # impl Dataset for Words {
    /// #     type Sample = String;
    /// #     fn len(&self) -> usize { self.0.len() }
    /// #     fn get(&self, index: usize) -> Result<String> { Ok(self.0[index].to_string()) }
    /// # }
    /// let words = Words(["a", "list", "of", "words"]);
    /// let longest = |words: Vec<String>| Ok(words.iter().map(String::len).max().unwrap_or(0));
    /// let options = DataLoaderOptions { batch_size: 2, ..Default::default() };
    /// let loader = DataLoader::with_collate_fn(words, longest, options)?;
    /// assert_eq!(loader.iter().collect::<Result<Vec<usize>>>()?, [4, 5]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn with_collate_fn(
        dataset: D,
        collate_fn: impl Fn(Vec<D::Sample>) -> Result<B> + Send + Sync + 'static,
        options: DataLoaderOptions,
    ) -> Result<DataLoader<D, B>> {
        let dataset = Arc::new(dataset);
        let source = dataset.clone();
        let fetch = move |indices: &[usize]| collate_fn(source.get_items(indices)?);
        DataLoader::build(dataset, Arc::new(fetch), options)
    }

    fn build(dataset: Arc<D>, fetch: Fetch<B>, options: DataLoaderOptions) -> Result<DataLoader<D, B>> {
        options.check()?;
        let batch_sampler = options.batch_sampler_of(&*dataset)?;
        warn_of_many_workers(options.num_workers);
        Ok(DataLoader {
            dataset,
            fetch,
            batch_sampler,
            num_workers: options.num_workers,
            capacity: options.num_workers.saturating_mul(options.prefetch_factor.unwrap_or(2)),
            pin_memory: options.pin_memory,
            // No timeout if it is too long for a `Duration`.
            timeout: Duration::try_from_secs_f64(options.timeout).unwrap_or(Duration::ZERO),
            worker_init_fn: options.worker_init_fn,
            generator: options.generator,
            persistent_workers: options.persistent_workers,
            idle: Mutex::new(None),
            threads: THREADS,
            progress: Progress::default(),
        })
    }

    /// Starts an epoch, as `for batch in &loader` does. Draws the base seed and requests the first batches from the
    /// workers. Several iterators may be active at once.
    #[track_caller]
    pub fn iter(&self) -> DataLoaderIter<'_, B> {
        let place = scope::here();
        let pin = self.pin_memory && gpu::is_available();
        if self.pin_memory && !pin {
            HostContext::warn_once("pin_memory", || {
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory \
                 won't be used."
                    .to_string()
            });
        }
        let loaded = self.progress.take_loaded();
        let idle = lock(&self.idle).take();
        let (workers, base_seed) = match idle {
            Some(workers) => {
                let base_seed = workers.base_seed();
                (Some(workers), base_seed)
            }
            None => {
                // Drawn even without workers, as in PyTorch, so that later random numbers do not depend on them.
                let drawn = || random_i64(self.generator.as_ref());
                let base_seed = loaded.as_ref().map_or_else(drawn, |epoch| epoch.base_seed);
                let pool = || WorkerPool::new(self.plan(base_seed, pin, place));
                ((self.num_workers > 0).then(pool), base_seed)
            }
        };
        let home = self.persistent_workers.then_some(&self.idle);
        let maker = match workers {
            Some(pool) => BatchSource::Workers { pool, home, capacity: self.capacity },
            None => BatchSource::Caller { fetch: &self.fetch, pin },
        };
        let own = self.generator.as_ref();
        let begin =
            |epoch| DataLoaderIter::begin(self.batch_sampler.as_ref(), maker, &self.progress, epoch, place);
        match loaded {
            None => begin(Epoch { base_seed, generators: Generators::now(own), yielded: 0 }),
            Some(Epoch { generators, yielded, .. }) => generators.replay(own, || {
                let mut batches = begin(Epoch { base_seed, generators: generators.clone(), yielded: 0 });
                batches.skip_batches(yielded);
                batches
            }),
        }
    }

    /// Returns the position in the current epoch (`StatefulDataLoader.state_dict` of torchdata), or a flag between
    /// epochs. A batch that a [`DevicePrefetcher`](super::DevicePrefetcher) has fetched ahead counts as returned.
    pub fn state_dict(&self) -> Result<Dict> {
        self.progress.state_dict()
    }

    /// Makes the next iteration resume from a [`state_dict`](Self::state_dict), without the batches already returned.
    /// It does not restore the default generator: see [`get_rng_state`](crate::get_rng_state).
    ///
    /// The caller does not make skipped batches again. Workers do, because each has a random state. The resumed epoch
    /// is bitwise equal if the sampler draws its order at the start, as all samplers of this module do, and if a
    /// sampler's custom generator is in its earlier state. With `persistent_workers` it is equal only if the samples
    /// draw no random numbers.
    ///
    /// ```
    /// # use todevice::data::{DataLoader, DataLoaderOptions, TensorDataset};
    /// # use todevice::{Result, Tensor, get_rng_state, manual_seed, set_rng_state};
    /// let make = || {
    ///     let dataset = TensorDataset::new([Tensor::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])?])?;
    ///     DataLoader::new(dataset, DataLoaderOptions { batch_size: 4, shuffle: true, ..Default::default() })
    /// };
    /// manual_seed(0);
    /// let loader = make()?;
    /// let mut batches = loader.iter();
    /// batches.next(); // 6, 7, 1, 4
    /// let (state, rng_state) = (loader.state_dict()?, get_rng_state()?);
    ///
    /// let resumed = make()?;
    /// resumed.load_state_dict(&state)?;
    /// set_rng_state(&rng_state)?;
    /// let rest = resumed.iter().map(|batch| batch?[0].to_vec::<i64>()).collect::<Result<Vec<_>>>()?;
    /// assert_eq!(rest, [vec![2, 0, 9, 8], vec![3, 5]]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn load_state_dict(&self, state: &Dict) -> Result<()> {
        self.progress.load_state_dict(state)
    }

    fn plan(&self, base_seed: u64, pin: bool, place: Place) -> Plan<B> {
        Plan {
            place,
            fetch: self.fetch.clone(),
            worker_init_fn: self.worker_init_fn.clone(),
            num_workers: self.num_workers,
            base_seed,
            timeout: self.timeout,
            threads: self.threads,
            pin,
        }
    }
}

impl<D: Dataset, B> DataLoader<D, B> {
    /// Returns the dataset.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// Returns the number of batches per epoch.
    pub fn len(&self) -> usize {
        self.batch_sampler.len()
    }

    /// Returns whether an epoch has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, D: Dataset + 'static, B: Batch> IntoIterator for &'a DataLoader<D, B> {
    type Item = Result<B>;
    type IntoIter = DataLoaderIter<'a, B>;

    #[track_caller]
    fn into_iter(self) -> DataLoaderIter<'a, B> {
        self.iter()
    }
}

impl DataLoaderOptions {
    /// PyTorch's checks in its order, and two that PyTorch makes only when an epoch starts.
    fn check(&self) -> Result<()> {
        let refuse = |message: &str| Err(DataError::Options(message.to_string()).into());
        let workers = self.num_workers > 0;
        if self.timeout.is_nan() || self.timeout < 0.0 {
            return refuse("timeout option should be non-negative");
        }
        if !workers && self.prefetch_factor.is_some() {
            return refuse(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to \
                 enable multiprocessing, otherwise set prefetch_factor to None.",
            );
        }
        if self.persistent_workers && !workers {
            return refuse("persistent_workers option needs num_workers > 0");
        }
        if self.sampler.is_some() && self.shuffle {
            return refuse("sampler option is mutually exclusive with shuffle");
        }
        let own = self.batch_size != 1 || self.shuffle || self.sampler.is_some() || self.drop_last;
        if self.batch_sampler.is_some() && own {
            return refuse(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last",
            );
        }
        if !workers && self.timeout != 0.0 {
            return refuse("_SingleProcessDataLoaderIter requires timeout == 0");
        }
        if workers && self.prefetch_factor == Some(0) {
            return refuse("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter");
        }
        Ok(())
    }

    fn batch_sampler_of<D: Dataset>(&self, dataset: &D) -> Result<Arc<dyn Sampler<Vec<usize>>>> {
        if let Some(batch_sampler) = &self.batch_sampler {
            return Ok(batch_sampler.clone());
        }
        let sampler: Arc<dyn Sampler> = match &self.sampler {
            Some(sampler) => sampler.clone(),
            None if self.shuffle => {
                let generator = self.generator.clone();
                let options = RandomSamplerOptions { generator, ..Default::default() };
                Arc::new(RandomSampler::new(dataset, options)?)
            }
            None => Arc::new(SequentialSampler::new(dataset)),
        };
        Ok(Arc::new(BatchSampler::new(sampler, self.batch_size, self.drop_last)?))
    }
}

fn warn_of_many_workers(num_workers: usize) {
    if num_workers == 0 || !THREADS {
        return;
    }
    let cores = match Machine::current().time_is_modelled() {
        true => Some(MODELLED_CORES), // So that output does not depend on the computer.
        false => thread::available_parallelism().ok().map(|cores| cores.get()),
    };
    if cores.is_some_and(|cores| num_workers <= cores) {
        return;
    }
    HostContext::warn_once("num_workers", || {
        let suggestion = match cores {
            Some(cores) => {
                let cpuset =
                    if cfg!(target_os = "linux") { "" } else { " (`cpuset` is not taken into account)" };
                format!(
                    "Our suggested max number of worker in current system is {cores}{cpuset}, which is smaller \
                     than what this DataLoader is going to create."
                )
            }
            None => "DataLoader is not able to compute a suggested max number of worker in current system."
                .to_string(),
        };
        format!(
            "This DataLoader will create {num_workers} worker processes in total. {suggestion} Please be aware \
             that excessive worker creation might get DataLoader running slow or even freeze, lower the worker \
             number to avoid potential slowness/freeze if necessary."
        )
    });
}
