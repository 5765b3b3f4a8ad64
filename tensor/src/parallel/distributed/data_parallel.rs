//! `DistributedDataParallel`: every rank trains a copy of the model on its part of each batch.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::collectives::{CollectiveOptions, broadcast, exchange};
use super::group::{ProcessGroup, default_group};
use super::reducer::{BUCKET, FIRST_BUCKET, Reducer};
use crate::autograd::{is_grad_enabled, no_grad};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::distributed::DistributedError;
use crate::error::{Error, Result};
use crate::nn::{Buffer, Module, Parameter};
use crate::options::{AndOptions, Keywords};
use crate::scope;
use crate::sort;
use crate::tensor::Tensor;

/// The keyword arguments of `torch.nn.parallel.DistributedDataParallel`.
#[derive(Clone, Debug)]
pub struct DistributedDataParallelOptions {
    /// The participating ranks (`process_group`). Default: all.
    pub process_group: Option<ProcessGroup>,
    /// The size of a bucket in MiB. Default: 1 for the first bucket and 25 for the others.
    pub bucket_cap_mb: Option<f64>,
    /// Whether every forward pass starts with rank 0's buffers, such as batch norm statistics.
    pub broadcast_buffers: bool,
    /// Whether each forward pass searches for unused parameters, so that no rank waits for their gradients.
    pub find_unused_parameters: bool,
}

impl Keywords for DistributedDataParallelOptions {}

impl Default for DistributedDataParallelOptions {
    fn default() -> DistributedDataParallelOptions {
        DistributedDataParallelOptions {
            process_group: None,
            bucket_cap_mb: None,
            broadcast_buffers: true,
            find_unused_parameters: false,
        }
    }
}

/// A model trained by several ranks (`torch.nn.parallel.DistributedDataParallel`).
///
/// Each rank has the model on its device, and calls `forward`, `backward` and `step` on its share of the data
/// ([`DistributedSampler`](crate::data::DistributedSampler)). The constructor copies rank 0's parameters to all ranks.
/// `backward` averages the gradients over all ranks, bucket by bucket, so all ranks take the same step and stay equal.
///
/// ```
/// use todevice::distributed::{self as dist, DistributedDataParallel};
/// use todevice::nn::{self, Module};
/// use todevice::optim::{Optimizer, SGD, SGDOptions};
/// use todevice::{Device, Machine, Tensor, cuda, manual_seed};
///
/// let machine: Machine = "sim:t4x2".parse()?;
/// let weights = machine.enter(|| {
///     dist::spawn(2, |rank| {
///         cuda::set_device(rank)?;
///         dist::init_process_group("nccl")?;
///         manual_seed(rank as u64); // other weights and data on each
///         let model = nn::Linear::new(4, 1)?;
///         model.to(Device::cuda(rank))?;
///         let model = DistributedDataParallel::new(model)?; // from here on those of rank 0
///         let mut optimizer = SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;
///         for _ in 0..3 {
///             let x = Tensor::randn(&[8, 4])?.cuda()?;
///             optimizer.zero_grad();
///             model.forward(&x)?.square()?.mean()?.backward()?;
///             optimizer.step()?;
///         }
///         model.module().weight.tensor().to_vec::<f32>()
///     })
/// })?;
/// assert_eq!(weights[0], weights[1]);
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// The loss on a rank is the mean over its share. Averaging is exact for the whole batch only if the shares are equal.
pub struct DistributedDataParallel<M: Module> {
    module: M,
    averaging: Averaging,
}

impl<M: Module> DistributedDataParallel<M> {
    /// Wraps `module`, which is on this rank's device, with rank 0's parameters and buffers.
    ///
    /// Returns an error without a process group, if no parameter requires grad, if the parameters are on several types
    /// of devices, and, on every rank, if parameters or buffers differ between ranks in number, sizes or dtypes.
    #[track_caller]
    pub fn new(
        module: impl AndOptions<M, DistributedDataParallelOptions>,
    ) -> Result<DistributedDataParallel<M>> {
        let (module, options) = module.split();
        let _scope = scope::on_behalf_of(Location::caller());
        let buffers = module.named_buffers().into_iter().map(|(name, buffer)| (name, buffer.tensor()));
        let averaging = Averaging::new(module.named_parameters(), buffers.collect(), options)?;
        Ok(DistributedDataParallel { module, averaging })
    }

    /// The older form of [`new`](Self::new) with options.
    #[deprecated(note = "write DistributedDataParallel::new((module, options))")]
    #[track_caller]
    pub fn with_options(
        module: M,
        options: DistributedDataParallelOptions,
    ) -> Result<DistributedDataParallel<M>> {
        DistributedDataParallel::new((module, options))
    }

    /// Returns the wrapped model (`DistributedDataParallel.module`), for saving, or for running on one rank.
    pub fn module(&self) -> &M {
        &self.module
    }

    /// Runs `scope` without averaging (`DistributedDataParallel.no_sync`). Gradients accumulate locally; the first
    /// backward pass of a forward pass outside averages them.
    pub fn no_sync<R>(&self, scope: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a Averaging, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set_sync(self.1);
            }
        }
        let _restore = Restore(&self.averaging, self.averaging.set_sync(false));
        scope()
    }

    /// Returns each bucket's bytes and parameters, in sending order. Buckets are rebuilt before the second step.
    pub fn buckets(&self) -> Vec<(usize, Vec<String>)> {
        self.averaging.buckets()
    }
}

impl<M: Module> Module for DistributedDataParallel<M> {
    fn name(&self) -> &'static str {
        "DistributedDataParallel"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _scope = scope::on_behalf_of(Location::caller());
        let averages = self.averaging.before_forward(|| {
            let buffers = self.module.named_buffers();
            buffers.iter().map(|(_, buffer): &(String, Buffer)| buffer.tensor()).collect()
        })?;
        let output = self.module.forward(input)?;
        self.averaging.after_forward(averages, &[&output])?;
        Ok(output)
    }

    fn children(&self) -> Vec<(String, &dyn Module)> {
        vec![("module".to_owned(), &self.module)]
    }
}

/// The averaging of a model's gradients over ranks, apart from the model.
pub struct Averaging {
    group: ProcessGroup,
    reducer: Arc<Reducer>,
    broadcast_buffers: bool,
    sync: AtomicBool,
}

impl Averaging {
    /// See [`DistributedDataParallel::new`].
    pub fn new(
        parameters: Vec<(String, Parameter)>,
        buffers: Vec<(String, Tensor)>,
        options: DistributedDataParallelOptions,
    ) -> Result<Averaging> {
        let group = options.process_group.map_or_else(default_group, Ok)?;
        group.place()?; // Outside the group there are no other ranks to average with.
        let mut types: Vec<&str> =
            parameters.iter().map(|(_, parameter)| parameter.tensor().device().kind()).collect();
        sort::by(&mut types, Ord::cmp);
        types.dedup();
        if types.len() > 1 {
            let types = types.iter().map(|kind| format!("'{kind}'")).collect::<Vec<_>>().join(", ");
            return Err(DistributedError::SeveralDeviceTypes { types }.into());
        }
        let (learned, frozen): (Vec<(String, Parameter)>, Vec<_>) =
            parameters.into_iter().partition(|(_, parameter)| parameter.requires_grad());
        if learned.is_empty() {
            return Err(DistributedError::NothingToTrain.into());
        }
        let detached = |(name, parameter): &(String, Parameter)| (name.clone(), parameter.tensor().detach());
        let lists = [
            ("params", learned.iter().map(detached).collect()),
            ("frozen params", frozen.iter().map(detached).collect()),
            ("buffers", buffers),
        ];
        check_models(&group, &lists)?;
        let tensors: Vec<Tensor> =
            lists.iter().flat_map(|(_, list)| list).map(|(_, tensor)| tensor.clone()).collect();
        broadcast_together(&group, &tensors)?;
        let limits = match options.bucket_cap_mb {
            Some(mebibytes) => vec![(mebibytes * 1048576.0) as usize],
            None => vec![FIRST_BUCKET, BUCKET],
        };
        let reducer = Reducer::new(group.clone(), learned, limits, options.find_unused_parameters)?;
        let (broadcast_buffers, sync) = (options.broadcast_buffers, AtomicBool::new(true));
        Ok(Averaging { group, reducer, broadcast_buffers, sync })
    }

    /// Switches averaging on or off for the next forward passes. Returns the earlier state.
    pub fn set_sync(&self, sync: bool) -> bool {
        self.sync.swap(sync, Ordering::Relaxed)
    }

    /// See [`DistributedDataParallel::buckets`].
    pub fn buckets(&self) -> Vec<(usize, Vec<String>)> {
        self.reducer.buckets()
    }

    /// Begins a forward pass with rank 0's buffers. Returns whether its backward pass averages.
    pub fn before_forward(&self, buffers: impl FnOnce() -> Vec<Tensor>) -> Result<bool> {
        let averages = is_grad_enabled() && self.sync.load(Ordering::Relaxed);
        if averages {
            self.reducer.check()?;
        }
        if self.broadcast_buffers {
            broadcast_together(&self.group, &buffers())?;
        }
        Ok(averages)
    }

    /// Ends a forward pass with these results.
    pub fn after_forward(&self, averages: bool, outputs: &[&Tensor]) -> Result<()> {
        match averages {
            true => self.reducer.prepare(outputs),
            false => {
                self.reducer.expect_nothing();
                Ok(())
            }
        }
    }
}

type NamedTensors = (&'static str, Vec<(String, Tensor)>);

/// Dtypes by number.
const DTYPES: [DType; 8] =
    [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

/// Rejects models that differ between ranks, on every rank. Without threads, ranks cannot wait here: the first
/// collective rejects them instead. The first list has the parameters that require grad.
fn check_models(group: &ProcessGroup, lists: &[NamedTensors; 3]) -> Result<()> {
    if !group.0.member.world.has_threads() || group.size() < 2 {
        return Ok(());
    }
    let (own, size) = (group.place()?, group.size());
    let tensors: Vec<(&str, usize, &String, &Tensor)> = lists
        .iter()
        .flat_map(|(list, of)| of.iter().enumerate().map(|(index, (name, x))| (*list, index, name, x)))
        .collect();
    let dims = tensors.iter().map(|(.., tensor)| tensor.ndim()).max().unwrap_or(0);
    let [learned, frozen, buffers] = [0, 1, 2].map(|list: usize| lists[list].1.len());
    let counts = exchange(group, &[learned, frozen, buffers, dims].map(|count| count as i64))?;
    for (i, (list, _)) in lists.iter().enumerate() {
        if let Some(other) = (0..size).find(|other| counts[*other][i] != counts[own][i]) {
            let [own_count, others] = [own, other].map(|rank| counts[rank][i]);
            return Err(
                DistributedError::OtherModel { rank: own, own: own_count, list, other, others }.into()
            );
        }
    }
    // A tensor's description: dtype, number of dimensions, and sizes and strides, padded to the largest number of
    // dimensions.
    let dims = counts.iter().map(|counts| counts[3]).max().unwrap_or(0) as usize;
    let width = 2 + 2 * dims;
    let mut words = vec![0; width * tensors.len()];
    for (words, (.., tensor)) in words.chunks_mut(width).zip(&tensors) {
        words[0] = tensor.dtype() as i64;
        words[1] = tensor.ndim() as i64;
        let (sizes, strides) = words[2..].split_at_mut(dims);
        for (words, numbers) in [(sizes, tensor.sizes()), (strides, tensor.strides())] {
            for (word, number) in words.iter_mut().zip(numbers) {
                *word = *number as i64;
            }
        }
    }
    let words = exchange(group, &words)?;
    let of = |rank: usize, i: usize, what: &str| {
        let words = &words[rank][i * width..][..width];
        match what {
            "dtype" => &words[..1],
            "sizes" => &words[2..][..words[1] as usize],
            _ => &words[2 + dims..][..words[1] as usize],
        }
    };
    // PyTorch first checks the sizes and strides of parameters that require grad.
    let looks = (0..learned).flat_map(|i| [(i, "sizes"), (i, "strides")]);
    let looks = looks.chain((0..tensors.len()).flat_map(|i| [(i, "dtype"), (i, "sizes")]));
    // A mismatch of this rank comes first.
    for rank in [own].into_iter().chain(0..size) {
        if let Some((i, what)) = looks.clone().find(|(i, what)| of(rank, *i, what) != of(0, *i, what)) {
            let said = |rank: usize| match of(rank, i, what) {
                [dtype] if what == "dtype" => DTYPES[*dtype as usize].to_string(),
                numbers => format!("{numbers:?}"),
            };
            let (list, index, name, _) = tensors[i];
            let (own, first) = (said(rank), said(0));
            let one = if list == "buffers" { "buffer" } else { "param" };
            return Err(Error::custom(format!(
                "[{rank}]: {list}[{index}] in this process with {what} {own} appears not to match {what} of the same {one} in \
                 process 0.\n   = {name:?} has {what} {own} on rank {rank} of the group, and {first} on rank 0"
            )));
        }
    }
    Ok(())
}

/// Broadcasts the first rank's tensors, in one message per dtype and device.
fn broadcast_together(group: &ProcessGroup, tensors: &[Tensor]) -> Result<()> {
    let root = group.ranks().first().copied().unwrap_or(0);
    let mut kinds: Vec<(DType, Device)> = Vec::new();
    for tensor in tensors {
        let kind = (tensor.dtype(), tensor.device());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    no_grad(|| {
        for kind in kinds {
            let of_kind = |tensor: &&Tensor| (tensor.dtype(), tensor.device()) == kind;
            let of_kind: Vec<&Tensor> = tensors.iter().filter(of_kind).collect();
            let rows = of_kind.iter().map(|tensor| tensor.reshape(&[-1])).collect::<Result<Vec<_>>>()?;
            let flat = Tensor::cat(&rows, 0)?;
            let options = CollectiveOptions { group: Some(group.clone()), async_op: false };
            broadcast(&flat, (root, options))?.wait()?;
            if group.rank() == Some(0) {
                continue; // Rank 0 has them.
            }
            let mut start = 0;
            for tensor in of_kind {
                let sizes: Vec<i64> = tensor.sizes().iter().map(|size| *size as i64).collect();
                tensor.copy_(&flat.narrow(0, start, tensor.numel())?.reshape(&sizes)?)?;
                start += tensor.numel();
            }
        }
        Ok(())
    })
}
