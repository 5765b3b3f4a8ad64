//! Process groups: participating ranks and their backend.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::collective::CollectiveKey;
use crate::device::Device;
use crate::error::Result;
use crate::error::distributed::DistributedError;
use crate::gpu::Stream;
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::machine::Machine;
use crate::options::{AndOptions, Keywords};
use crate::ranks::Member;
use crate::sort;
use crate::tensor::Tensor;

/// The backend of collectives (`backend`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// For GPU tensors.
    Nccl,
    /// For host tensors.
    Gloo,
    /// Chosen by the tensor's device (`cpu:gloo,cuda:nccl`): PyTorch's default.
    Both,
}

impl Backend {
    fn named(name: &str) -> Result<Backend> {
        match name {
            "nccl" => Ok(Backend::Nccl),
            "gloo" => Ok(Backend::Gloo),
            "" | "cpu:gloo,cuda:nccl" => Ok(Backend::Both),
            other => Err(DistributedError::UnknownBackend(other.to_owned()).into()),
        }
    }

    pub(super) fn check(self, device: Device) -> Result<()> {
        match (self, device.is_cuda()) {
            (Backend::Nccl, false) | (Backend::Gloo, true) => {
                Err(DistributedError::NoBackend { device_type: device.kind() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// The keyword arguments of `torch.distributed.init_process_group`.
#[derive(Clone, Copy, Debug, Default)]
pub struct InitOptions {
    /// The maximum wait in a collective, on the machine's clock. Default: 10 minutes on GPUs, 30 on the host.
    pub timeout: Option<Duration>,
}

impl Keywords for InitOptions {}

/// A set of ranks (`torch.distributed.ProcessGroup`). Clones are the same group.
#[derive(Clone)]
pub struct ProcessGroup(pub(super) Arc<GroupInner>);

pub(super) struct GroupInner {
    id: u32,
    pub(super) member: Member,
    pub(super) backend: Backend,
    timeout: Option<Duration>,
    /// The global ranks, by rank in the group.
    pub(super) members: Arc<[usize]>,
    calls: AtomicU64,
    pairs: Mutex<HashMap<(usize, usize), u64>>,
    streams: Mutex<Vec<(StreamOf, Stream)>>,
}

/// A device index, and the pair of ranks for messages between two.
type StreamOf = (usize, Option<(usize, usize)>);

#[derive(Default)]
struct ProcessGroups(Mutex<Vec<ProcessGroup>>);

/// Creates the group of all ranks (`torch.distributed.init_process_group`): `"nccl"` for GPU tensors, `"gloo"` for host
/// tensors, `""` for both. Every rank calls it once. Unlike PyTorch's, it does not wait for the others; the first
/// collective does.
///
/// Returns an error outside of [`spawn`](super::spawn) and [`Ranks::run`](super::Ranks::run), for an unknown backend,
/// and on a second call.
pub fn init_process_group<'a>(backend: impl AndOptions<&'a str, InitOptions>) -> Result<()> {
    let (backend, options) = backend.split();
    init(backend, options)
}

/// Not generic, so that it is compiled once.
fn init(backend: &str, options: InitOptions) -> Result<()> {
    let backend = Backend::named(backend)?;
    let member = Machine::current().member().ok_or(DistributedError::NoRank)?;
    let groups = groups();
    let mut groups = lock(&groups.0);
    if !groups.is_empty() {
        return Err(DistributedError::InitializedTwice.into());
    }
    let members = (0..member.world.size()).collect();
    let id = member.world.group(0, &members);
    groups.push(ProcessGroup::made(id, member, backend, options.timeout, members));
    Ok(())
}

/// Returns whether this rank has a process group (`torch.distributed.is_initialized`).
pub fn is_initialized() -> bool {
    default_group().is_ok()
}

/// Deletes all groups of this rank (`torch.distributed.destroy_process_group`). Returns an error without one.
pub fn destroy_process_group() -> Result<()> {
    default_group()?;
    lock(&groups().0).clear();
    Ok(())
}

/// Returns this rank, from 0 (`torch.distributed.get_rank`), or an error before [`init_process_group`].
pub fn get_rank() -> Result<usize> {
    Ok(default_group()?.0.member.rank)
}

/// Returns the number of ranks (`torch.distributed.get_world_size`), or an error before [`init_process_group`].
pub fn get_world_size() -> Result<usize> {
    Ok(default_group()?.size())
}

/// Creates a group of some ranks (`torch.distributed.new_group`). Every rank must call it, member or not, in the same
/// order and with the same members: the order identifies the group.
///
/// ```
/// use todevice::distributed::{self as dist, CollectiveOptions, ReduceOp};
/// use todevice::Tensor;
///
/// let sums = dist::spawn(4, |rank| {
///     dist::init_process_group("gloo")?;
///     let groups = [dist::new_group(&[0, 1])?, dist::new_group(&[2, 3])?];
///     let group = Some(groups[rank / 2].clone());
///     let x = Tensor::new([rank as f32])?;
///     dist::all_reduce(&x, (ReduceOp::Sum, CollectiveOptions { group, ..Default::default() }))?;
///     x.item()
/// })?;
/// assert_eq!(sums, [1.0, 1.0, 5.0, 5.0]);
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error for an empty list, or for a rank that does not exist.
pub fn new_group(ranks: &[usize]) -> Result<ProcessGroup> {
    let default = default_group()?;
    let size = default.size();
    if ranks.is_empty() {
        return Err(DistributedError::EmptyGroup.into());
    }
    if ranks.len() > size {
        return Err(DistributedError::NewGroupSize.into());
    }
    if ranks.iter().any(|rank| *rank >= size) {
        return Err(DistributedError::NewGroupRank.into());
    }
    let mut members = ranks.to_vec();
    sort::by(&mut members, Ord::cmp);
    members.dedup();
    let groups = groups();
    let mut groups = lock(&groups.0);
    let GroupInner { member, backend, .. } = &*default.0;
    let members = members.into();
    let id = member.world.group(groups.len(), &members);
    let group = ProcessGroup::made(id, member.clone(), *backend, None, members);
    groups.push(group.clone());
    Ok(group)
}

pub(super) fn default_group() -> Result<ProcessGroup> {
    let groups = groups();
    let first = lock(&groups.0).first().cloned();
    first.ok_or_else(|| DistributedError::NotInitialized.into())
}

fn groups() -> Arc<ProcessGroups> {
    Machine::current().kept()
}

impl ProcessGroup {
    fn made(
        id: u32,
        member: Member,
        backend: Backend,
        timeout: Option<Duration>,
        members: Arc<[usize]>,
    ) -> ProcessGroup {
        let (calls, pairs, streams) = (AtomicU64::new(0), Mutex::default(), Mutex::default());
        ProcessGroup(Arc::new(GroupInner { id, member, backend, timeout, members, calls, pairs, streams }))
    }

    /// Returns the number of ranks (`ProcessGroup.size()`).
    pub fn size(&self) -> usize {
        self.0.members.len()
    }

    /// Returns this rank's index in the group, if it is a member (`ProcessGroup.rank()`).
    pub fn rank(&self) -> Option<usize> {
        self.0.members.iter().position(|member| *member == self.0.member.rank)
    }

    /// Returns the members' global ranks.
    pub fn ranks(&self) -> &[usize] {
        &self.0.members
    }

    pub(super) fn is_default(&self) -> bool {
        default_group().is_ok_and(|default| Arc::ptr_eq(&self.0, &default.0))
    }

    pub(super) fn backend_for(&self, tensor: &Tensor) -> &'static str {
        if tensor.is_cuda() { "ProcessGroupNCCL" } else { "ProcessGroupGloo" }
    }

    /// Like [`rank`](Self::rank), but returns an error for a non-member.
    pub(super) fn place(&self) -> Result<usize> {
        self.rank().ok_or_else(|| DistributedError::NotInGroup.into())
    }

    pub(super) fn next_key(&self) -> CollectiveKey {
        let number = self.0.calls.fetch_add(1, Ordering::Relaxed) + 1;
        CollectiveKey { group: self.0.id, pair: None, number }
    }

    pub(super) fn next_key_of(&self, pair: (usize, usize)) -> CollectiveKey {
        let mut pairs = lock(&self.0.pairs);
        let number = pairs.entry(pair).or_insert(0);
        *number += 1;
        CollectiveKey { group: self.0.id, pair: Some(pair), number: *number }
    }

    /// In nanoseconds.
    pub(super) fn timeout(&self, device: Device) -> u64 {
        let minutes = if device.is_cuda() { 10 } else { 30 };
        let timeout = self.0.timeout.unwrap_or(Duration::from_secs(60 * minutes));
        // In real time, timeouts compare running times, which only ranks with threads have.
        let is_compared = HostContext::lane().is_virtual() || self.0.member.world.has_threads();
        if is_compared { timeout.as_nanos() as u64 } else { u64::MAX }
    }

    pub(super) fn stream(&self, device: Device, pair: Option<(usize, usize)>) -> Result<Stream> {
        let of = (device.index(), pair);
        let mut streams = lock(&self.0.streams);
        if let Some((_, stream)) = streams.iter().find(|(known, _)| *known == of) {
            return Ok(stream.clone());
        }
        let stream = Stream::new(device)?;
        streams.push((of, stream.clone()));
        Ok(stream)
    }
}

impl fmt::Debug for ProcessGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessGroup(backend={:?}, ranks={:?})", self.0.backend, self.ranks())
    }
}
