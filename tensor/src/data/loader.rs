//! The data loader: its options, the samplers and workers they select, and PyTorch's warnings.

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
    /// Samples per batch; the last batch may have fewer.
    pub batch_size: usize,
    /// Shuffles the samples, in a new order each epoch.
    pub shuffle: bool,
    /// A custom order, instead of `shuffle`.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// Custom batches, instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
    pub batch_sampler: Option<Arc<dyn Sampler<Vec<usize>>>>,
    /// The number of threads that make batches ahead of time. With 0 the caller makes each batch when it asks for
    /// it.
    pub num_workers: usize,
    /// Copies batches to pinned memory, from which a GPU copies faster
    /// ([`Tensor::pin_memory`](crate::Tensor::pin_memory)). With workers this happens in the background, and the
    /// caller does not wait for it. On a machine without a GPU batches stay as they are, with a warning.
    pub pin_memory: bool,
    /// Drops the last batch if it is not full.
    pub drop_last: bool,
    /// Seconds to wait for a batch from a worker; 0 waits forever.
    pub timeout: f64,
    /// Called in each worker before its first batch.
    pub worker_init_fn: Option<WorkerInitFn>,
    /// The generator from which the order and the workers' seeds are drawn; the default generator if `None`.
    pub generator: Option<Generator>,
    /// The number of batches each worker makes ahead; 2 by default.
    pub prefetch_factor: Option<usize>,
    /// Keeps the workers running from one epoch to the next; their random numbers continue.
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

/// Iterates over a dataset in batches, epoch after epoch (`torch.utils.data.DataLoader`).
///
/// Iterate over a reference, as often as you like. Each iteration is one epoch, and each item a `Result`: an error
/// in the dataset replaces its batch, and the batches after it still follow.
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
    /// Persistent workers between two epochs.
    idle: Mutex<Option<WorkerPool<B>>>,
    pub(crate) threads: bool,
    progress: Progress,
}

impl<D> DataLoader<D>
where
    D: Dataset + 'static,
    D::Sample: Collate,
{
    /// Creates a loader that collates batches as [`Collate`] defines. Returns an error if the options contradict
    /// each other.
    pub fn new(dataset: D, options: DataLoaderOptions) -> Result<DataLoader<D>> {
        let dataset = Arc::new(dataset);
        let source = dataset.clone();
        DataLoader::build(dataset, Arc::new(move |indices| source.get_batch(indices)), options)
    }
}

impl<D: Dataset + 'static, B: Batch> DataLoader<D, B> {
    /// Creates a loader that makes batches with a custom function (`collate_fn`).
    ///
    /// The function runs where the batch is made. A function that puts batches on a GPU works only without workers,
    /// since a worker may not use CUDA, and only without pinning, since GPU tensors cannot be pinned.
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
            // A timeout too long for a `Duration` means forever.
            timeout: Duration::try_from_secs_f64(options.timeout).unwrap_or(Duration::ZERO),
            worker_init_fn: options.worker_init_fn,
            generator: options.generator,
            persistent_workers: options.persistent_workers,
            idle: Mutex::new(None),
            threads: THREADS,
            progress: Progress::default(),
        })
    }

    /// Starts an epoch. `for batch in &loader` calls it for you.
    ///
    /// Draws the epoch's base seed and, if there are workers, starts them on the first batches. Several iterators
    /// may be active at once.
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
                // Drawn even without workers, where it is not used, so that the random numbers after it stay the
                // same.
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

    /// Returns the position in the current epoch (the `state_dict` of torchdata's `StatefulDataLoader`), for a
    /// checkpoint in the middle of an epoch, made while iterating over its batches. Between epochs it is empty but
    /// for a flag.
    ///
    /// Behind a [`DevicePrefetcher`](super::DevicePrefetcher), which is one batch ahead, that batch counts too.
    pub fn state_dict(&self) -> Result<Dict> {
        self.progress.state_dict()
    }

    /// Makes the next iteration resume from a [`state_dict`](Self::state_dict): the same epoch, without the batches
    /// already returned. It does not restore the default generator: see [`get_rng_state`](crate::get_rng_state).
    ///
    /// Without workers, the skipped batches are not made again. Workers make and discard them, because each worker
    /// has its own random numbers. The resumed epoch is bitwise the same if the sampler draws its order at the
    /// start, as all samplers in this module do; a sampler with its own generator must find it in the state it had
    /// then. With `persistent_workers` it is the same only if the samples draw no random numbers.
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
    /// The dataset.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// The number of batches in an epoch.
    pub fn len(&self) -> usize {
        self.batch_sampler.len()
    }

    /// Whether an epoch has no batches.
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
    /// PyTorch's checks in its order, plus two that it makes only when an epoch starts.
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

/// Warns about more workers than cores, which only take turns.
fn warn_of_many_workers(num_workers: usize) {
    if num_workers == 0 || !THREADS {
        return;
    }
    let cores = match Machine::current().time_is_modelled() {
        true => Some(MODELLED_CORES), // So that a program prints the same on every computer.
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
