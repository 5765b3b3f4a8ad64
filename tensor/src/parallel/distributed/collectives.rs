use std::sync::Arc;

use smallvec::SmallVec;

use super::group::{ProcessGroup, default_group};
use super::reduce::reduce;
use super::work::Work;
use crate::autograd::no_grad;
use crate::collective::{Collective, CollectiveKey, CollectiveKind, Fingerprint, ReduceOp};
use crate::device::{Device, DevicePtr};
use crate::dtype::DType;
use crate::error::distributed::DistributedError;
use crate::error::{Error, Result};
use crate::host_context::HostContext;
use crate::host_profile::HostProfile;
use crate::machine::Machine;
use crate::operation::{Operation, enter};
use crate::ops::access::access;
use crate::ops::plain::contiguous;
use crate::options::{AndOptions, Keywords, impl_and_options};
use crate::ranks::{Arrival, CollectiveCall};
use crate::scope;
use crate::shape::{Layout, signed};
use crate::tensor::{Tensor, memory_of, pointer_of};

static ALL_REDUCE: Operation = Operation::new("all_reduce");
static BROADCAST: Operation = Operation::new("broadcast");
static ALL_GATHER: Operation = Operation::new("all_gather");
static REDUCE_SCATTER: Operation = Operation::new("reduce_scatter");
static BARRIER: Operation = Operation::new("barrier");
static SEND: Operation = Operation::new("send");
static RECV: Operation = Operation::new("recv");

/// The keyword arguments common to all collectives.
#[derive(Clone, Debug, Default)]
pub struct CollectiveOptions {
    /// The participating ranks. Default: all.
    pub group: Option<ProcessGroup>,
    /// Returns immediately: the caller waits on the [`Work`].
    pub async_op: bool,
}

impl Keywords for CollectiveOptions {}

impl_and_options!(ReduceOp);

/// Replaces every rank's `tensor` with the reduction over all ranks (`torch.distributed.all_reduce`).
///
/// The reduction is in rank order, so all ranks get the same bits. On a GPU it runs after the work on the current
/// stream, and later work waits for it; the host does not. Returns an error without a process group, for a
/// non-contiguous `tensor`, for a device without a backend, and, on the rank that detects it, for a different call on
/// another rank.
#[track_caller]
pub fn all_reduce(tensor: &Tensor, op: impl AndOptions<ReduceOp, CollectiveOptions>) -> Result<Work> {
    let (op, options) = op.split();
    let _scope = enter(&ALL_REDUCE, &[tensor])?;
    let group = group_of(&options)?;
    if is_outside(&group, "all_reduce") {
        return Ok(Work::of_nobody());
    }
    check_average(op, tensor, &group)?;
    run(&group, CollectiveKind::AllReduce(op), [tensor, tensor], options.async_op)
}

/// Replaces every rank's `tensor` with that of global rank `src` (`torch.distributed.broadcast`). Returns the errors of
/// [`all_reduce`], and an error if `src` is not a rank.
#[track_caller]
pub fn broadcast(tensor: &Tensor, src: impl AndOptions<usize, CollectiveOptions>) -> Result<Work> {
    let (src, options) = src.split();
    let _scope = enter(&BROADCAST, &[tensor])?;
    let group = group_of(&options)?;
    let Some(root) = group.ranks().iter().position(|member| *member == src) else {
        group.place()?;
        return Err(match group.is_default() {
            true => DistributedError::InvalidRoot { backend: group.backend_for(tensor), root: src },
            false => DistributedError::NotPartOfGroup { rank: src },
        }
        .into());
    };
    if is_outside(&group, "broadcast") {
        return Ok(Work::of_nobody());
    }
    run(&group, CollectiveKind::Broadcast { root }, [tensor, tensor], options.async_op)
}

/// Returns the tensors of all ranks, in rank order and of equal shape and dtype (`torch.distributed.all_gather`).
/// Returns the errors of [`all_reduce`].
#[track_caller]
pub fn all_gather(tensor: &Tensor) -> Result<Vec<Tensor>> {
    let _scope = enter(&ALL_GATHER, &[tensor])?;
    let group = default_group()?;
    let sizes: SmallVec<[usize; 4]> =
        [group.size()].into_iter().chain(tensor.sizes().iter().copied()).collect();
    let all = tensor.uninit_beside(&sizes, tensor.dtype())?;
    run(&group, CollectiveKind::AllGather, [tensor, &all], false)?.wait()?;
    (0..group.size()).map(|rank| all.select(0, rank as i64)).collect()
}

/// Like [`all_gather`], into one concatenated tensor (`torch.distributed.all_gather_into_tensor`). Returns an error for
/// another dtype or number of elements in `output`; with gloo also for other sizes than the concatenation's.
#[track_caller]
pub fn all_gather_into_tensor(output: &Tensor, input: &Tensor, options: CollectiveOptions) -> Result<Work> {
    let _scope = enter(&ALL_GATHER, &[input, output])?;
    let group = group_of(&options)?;
    if is_outside(&group, "all_gather_into_tensor") {
        return Ok(Work::of_nobody());
    }
    check_gather(&group, output, input)?;
    run(&group, CollectiveKind::AllGather, [input, output], options.async_op)
}

/// Fills every rank's `output` with the reduction of the parts for that rank (`torch.distributed.reduce_scatter`).
/// Returns the errors of [`all_reduce`], and an error unless `inputs` has one part per rank and this rank's part has
/// the size and dtype of `output`.
#[track_caller]
pub fn reduce_scatter(output: &Tensor, inputs: &[&Tensor], op: ReduceOp) -> Result<()> {
    let tensors: Vec<&Tensor> = [output].into_iter().chain(inputs.iter().copied()).collect();
    let _scope = enter(&REDUCE_SCATTER, &tensors)?;
    let group = default_group()?;
    let (place, is_gloo) = (group.place()?, !output.is_cuda());
    if let Some(pair) = tensors.windows(2).find(|pair| pair[0].dtype() != pair[1].dtype()) {
        return Err(DistributedError::DifferentTypes { last: pair[0].dtype(), next: pair[1].dtype() }.into());
    }
    group.0.backend.check(output.device())?;
    if inputs.len() != group.size() {
        return Err(match is_gloo {
            true => DistributedError::GlooScatterList.into(),
            false => DistributedError::ScatterSize.into(),
        });
    }
    let (sizes, own) = (output.sizes(), inputs[place].sizes());
    if is_gloo && sizes != own {
        let words = |sizes: &[usize]| sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let check = "outputs[0].sizes().vec() == inputs[0][i].sizes().vec()";
        return Err(gloo_check(&group, 2250, check, [words(sizes), words(own)]));
    }
    if output.numel() != inputs[place].numel() {
        return Err(DistributedError::ScatterSize.into());
    }
    check_average(op, output, &group)?;
    if inputs.iter().all(|input| input.sizes() == own) {
        let input = Tensor::stack(inputs, 0)?;
        return run(&group, CollectiveKind::ReduceScatter(op), [&input, output], false).map(drop);
    }
    // Parts of different sizes are reduced one by one.
    for (to, input) in inputs.iter().enumerate() {
        let part = input.detach().copy()?;
        run(&group, CollectiveKind::AllReduce(op), [&part; 2], false)?.wait()?;
        if to == place {
            no_grad(|| output.copy_(&part.view(&signed(output.sizes()))?))?;
        }
    }
    Ok(())
}

/// Like [`reduce_scatter`], with the parts concatenated in one tensor (`torch.distributed.reduce_scatter_tensor`).
#[track_caller]
pub fn reduce_scatter_tensor(
    output: &Tensor,
    input: &Tensor,
    op: ReduceOp,
    options: CollectiveOptions,
) -> Result<Work> {
    let _scope = enter(&REDUCE_SCATTER, &[input, output])?;
    let group = group_of(&options)?;
    if is_outside(&group, "reduce_scatter_tensor") {
        return Ok(Work::of_nobody());
    }
    check_scatter(&group, output, input)?;
    check_average(op, input, &group)?;
    run(&group, CollectiveKind::ReduceScatter(op), [input, output], options.async_op)
}

/// Makes all hosts wait until all ranks arrive (`torch.distributed.barrier`). With `nccl` it runs on the current
/// device, after the work on the current stream.
#[track_caller]
pub fn barrier() -> Result<()> {
    let _scope = enter(&BARRIER, &[])?;
    let group = default_group()?;
    let on_gpu = group.0.backend != super::Backend::Gloo && HostContext::gpus() > 0;
    let device = if on_gpu { Device::cuda(HostContext::current_device()) } else { Device::Cpu };
    let nothing = Tensor::uninit_on(device, Layout::contiguous(&[1])?, DType::U8)?;
    run(&group, CollectiveKind::Barrier, [&nothing, &nothing], true)?.synchronize()
}

/// Sends `tensor` to rank `dst`, which calls [`recv`] (`torch.distributed.send`). Returns the errors of [`all_reduce`],
/// and an error if `dst` is not another rank.
#[track_caller]
pub fn send(tensor: &Tensor, dst: usize) -> Result<()> {
    isend(tensor, dst)?.wait()
}

/// Like [`send`], but the caller waits (`torch.distributed.isend`).
#[track_caller]
pub fn isend(tensor: &Tensor, dst: usize) -> Result<Work> {
    let _scope = enter(&SEND, &[tensor])?;
    let group = default_group()?;
    let pair = (group.0.member.rank, place_of(&group, dst, "dst")?);
    pass(&group, pair, tensor, "destination")
}

/// Receives `tensor` from rank `src` (`torch.distributed.recv`). Returns the errors of [`all_reduce`], and an error if
/// `src` is not another rank.
#[track_caller]
pub fn recv(tensor: &Tensor, src: usize) -> Result<()> {
    irecv(tensor, src)?.wait()
}

/// Like [`recv`], but the caller waits (`torch.distributed.irecv`).
#[track_caller]
pub fn irecv(tensor: &Tensor, src: usize) -> Result<Work> {
    let _scope = enter(&RECV, &[tensor])?;
    let group = default_group()?;
    let pair = (place_of(&group, src, "src")?, group.0.member.rank);
    pass(&group, pair, tensor, "source")
}

fn pass(group: &ProcessGroup, pair: (usize, usize), tensor: &Tensor, what: &'static str) -> Result<Work> {
    if pair.0 == pair.1 {
        return Err(DistributedError::SameRank { what }.into());
    }
    group.0.backend.check(tensor.device())?;
    if !tensor.is_cuda() && !tensor.is_contiguous() {
        return Err(DistributedError::GlooMessage.into());
    }
    let place = usize::from(group.0.member.rank == pair.1);
    let part = RankPart {
        key: group.next_key_of(pair),
        members: Arc::new([pair.0, pair.1]),
        place,
        kind: CollectiveKind::PointToPoint,
        pair: Some(pair),
    };
    start(group, part, [tensor, tensor])
}

/// Returns whether this rank is outside the group. As in PyTorch, that is only a warning.
fn is_outside(group: &ProcessGroup, name: &'static str) -> bool {
    let is_outside = group.rank().is_none();
    if is_outside {
        let rank = group.0.member.rank;
        HostContext::warn_once(name, || {
            format!("Running {name} on global rank {rank} which does not belong to the given group.")
        });
    }
    is_outside
}

/// Gloo splits the output into one tensor per rank, and checks each.
fn check_gather(group: &ProcessGroup, output: &Tensor, input: &Tensor) -> Result<()> {
    group.0.backend.check(input.device())?;
    let (size, is_of_type) = (group.size(), output.dtype() == input.dtype());
    if input.is_cuda() {
        return match is_of_type {
            false => Err(DistributedError::GatherType.into()),
            true if output.numel() != size * input.numel() => Err(DistributedError::GatherSize.into()),
            true => Ok(()),
        };
    }
    let fits = |first: usize, rest: &[usize]| output.sizes().split_first() == Some((&(size * first), rest));
    if is_of_type && input.sizes().split_first().is_some_and(|(first, rest)| fits(*first, rest)) {
        return Ok(());
    }
    if output.ndim() == 0 {
        return Err(Error::custom("chunk expects at least a 1-dimensional tensor"));
    }
    let parts = output.chunk(size, 0)?;
    let list = |x: &Tensor| x.sizes().iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let other = (0..parts.len()).find(|i| parts[*i].sizes() != input.sizes()).unwrap_or(0);
    let (what, at, expected, got) = if parts.len() != size {
        ("output tensor list", 0, format!("length {size}"), parts.len().to_string())
    } else if !is_of_type {
        let [expected, got] = [input, output].map(|tensor| {
            let name = tensor.dtype().cpp_name();
            format!(
                "TensorOptions(dtype={name}, device=cpu, layout=Strided, requires_grad=false (default), \
                 pinned_memory=false (default), memory_format=(nullopt))"
            )
        });
        ("tensor type", 0, expected, got)
    } else {
        ("tensor size", other, format!("({})", list(input)), format!("({})", list(&parts[other])))
    };
    Err(Error::custom(format!(
        "ProcessGroupGloo::allgather: invalid {what} at index {at} (expected {expected}, got {got})"
    )))
}

fn check_scatter(group: &ProcessGroup, output: &Tensor, input: &Tensor) -> Result<()> {
    group.0.backend.check(input.device())?;
    let (size, is_gloo) = (group.size(), !input.is_cuda());
    if output.dtype() != input.dtype() {
        let types = [output, input].map(|tensor| tensor.dtype().cpp_name().to_owned());
        return Err(match is_gloo {
            true => gloo_check(group, 1535, "outputTensors[i].dtype() == inputTensors[i].dtype()", types),
            false => DistributedError::OutputType.into(),
        });
    }
    for dim in (0..output.ndim().max(1)).filter(|_| is_gloo) {
        let [out, of_input] = [output, input].map(|tensor| tensor.sizes().get(dim).copied().unwrap_or(0));
        let (out, line, check) = match dim {
            0 => (out * size, 1536, "outputShape[0] * worldSize == inputShape[0]"),
            _ => (out, 1538, "outputShape[i] == inputShape[i]"),
        };
        if out != of_input {
            return Err(gloo_check(group, line, check, [out, of_input].map(|size| size.to_string())));
        }
    }
    if is_gloo && input.ndim() > output.ndim() {
        output.copy_(&input.narrow(0, 0, input.sizes()[0] / size)?)?; // More dimensions than `output`: an error.
    }
    match input.numel() == size * output.numel() {
        true => Ok(()),
        false => Err(DistributedError::ScatterSize.into()),
    }
}

/// The error of a failed check in gloo, in PyTorch's words without the time.
fn gloo_check(group: &ProcessGroup, line: u32, check: &str, [a, b]: [String; 2]) -> Error {
    let rank = group.0.member.rank;
    Error::custom(format!(
        "[rank{rank}]:[F ProcessGroupGloo.cpp:{line}] Check failed: {check} ({a} vs. {b})."
    ))
}

fn group_of(options: &CollectiveOptions) -> Result<ProcessGroup> {
    match &options.group {
        Some(group) => Ok(group.clone()),
        None => default_group(),
    }
}

fn place_of(group: &ProcessGroup, rank: usize, what: &'static str) -> Result<usize> {
    let place = group.ranks().iter().position(|member| *member == rank);
    place.ok_or_else(|| DistributedError::InvalidRank { rank, what, size: group.size() }.into())
}

fn check_average(op: ReduceOp, tensor: &Tensor, group: &ProcessGroup) -> Result<()> {
    let dtype = tensor.dtype();
    let is_gloo = !tensor.is_cuda() && group.0.backend != super::Backend::Nccl;
    match op {
        ReduceOp::Avg if is_gloo && !dtype.is_floating_point() => {
            Err(DistributedError::AverageOnGloo { dtype }.into())
        }
        ReduceOp::Avg if dtype == DType::Bool => Err(DistributedError::AverageOfBools.into()),
        _ => Ok(()),
    }
}

struct RankPart {
    key: CollectiveKey,
    members: Arc<[usize]>,
    place: usize,
    kind: CollectiveKind,
    pair: Option<(usize, usize)>,
}

#[track_caller]
fn run(group: &ProcessGroup, kind: CollectiveKind, tensors: [&Tensor; 2], async_op: bool) -> Result<Work> {
    let place = group.place()?;
    check_contiguous(tensors)?;
    group.0.backend.check(tensors[0].device())?;
    let members = group.0.members.clone();
    let work = start(group, RankPart { key: group.next_key(), members, place, kind, pair: None }, tensors)?;
    if !async_op {
        work.wait()?;
    }
    Ok(work)
}

/// Broadcasts the first rank's host tensor, whatever the backend, as PyTorch's ranks exchange metadata.
pub(super) fn broadcast_on_host(group: &ProcessGroup, tensor: &Tensor) -> Result<Work> {
    let (kind, place) = (CollectiveKind::Broadcast { root: 0 }, group.place()?);
    let members = group.0.members.clone();
    start(group, RankPart { key: group.next_key(), members, place, kind, pair: None }, [tensor, tensor])
}

/// Exchanges words between the ranks on the host, in rank order. It is numbered apart from the collectives and takes no
/// time, so that ranks without threads, which skip it, have the same times.
pub(super) fn exchange(group: &ProcessGroup, words: &[i64]) -> Result<Vec<Vec<i64>>> {
    let pair = (usize::MAX, usize::MAX);
    let machine = Machine::current();
    machine.enter_lane(machine.worker_lane(), || {
        let own = Tensor::new(words)?;
        let all = Tensor::uninit(&[group.size() * words.len()], DType::I64)?;
        let (kind, place, members) = (CollectiveKind::AllGather, group.place()?, group.0.members.clone());
        let part = RankPart { key: group.next_key_of(pair), members, place, kind, pair: Some(pair) };
        start(group, part, [&own, &all])?.wait()?;
        Ok(all.to_vec::<i64>()?.chunks(words.len().max(1)).map(<[i64]>::to_vec).collect())
    })
}

/// NCCL requires contiguous tensors; gloo copies others.
fn check_contiguous(tensors: [&Tensor; 2]) -> Result<()> {
    match tensors.iter().any(|tensor| tensor.is_cuda() && !tensor.is_contiguous()) {
        true => Err(DistributedError::NotContiguous.into()),
        false => Ok(()),
    }
}

fn start(group: &ProcessGroup, part: RankPart, [input, output]: [&Tensor; 2]) -> Result<Work> {
    let member = &group.0.member;
    check_contiguous([input, output])?;
    let device = input.device();
    let RankPart { key, members, place, kind, pair } = part;
    let fingerprint = Fingerprint { kind, sizes: input.sizes().into(), dtype: input.dtype() };
    let of = members.len();
    let call = CollectiveCall {
        key,
        fingerprint: fingerprint.clone(),
        members,
        device: device.is_cuda().then(|| device.index()),
        timeout: group.timeout(device),
        place: scope::current_place(),
    };
    member.world.call(member.rank, call).map_err(DistributedError::Meeting)?;
    output.storage().bump_version();
    if device.is_cuda() {
        let current = crate::gpu::current_stream(device)?;
        let stream = group.stream(device, pair)?;
        stream.wait_stream(&current)?;
        let pointer = |tensor: &Tensor| match tensor.numel() {
            0 => Ok(DevicePtr::default()),
            _ => pointer_of(tensor),
        };
        let part = Collective {
            key,
            fingerprint: Arc::new(fingerprint),
            place,
            of,
            input: pointer(input)?,
            output: pointer(output)?,
            reduce,
        };
        memory_of(input)?.cuda().collective(stream.id, part)?;
        let ended = stream.record_event()?;
        return Ok(Work::on_device(stream, ended, vec![output.clone(), input.clone()]));
    }
    let brings = |bytes: &[u8]| match kind {
        CollectiveKind::Broadcast { root } if root != place => Vec::new(),
        CollectiveKind::PointToPoint if place != 0 => Vec::new(),
        _ => bytes.to_vec(),
    };
    let input = &contiguous(input)?;
    let bytes = access([input], [], |[input], []| brings(input.dense_bytes(fingerprint.dtype)))?;
    let virtual_time = HostContext::lane().is_virtual();
    let profile = Machine::current().host().host_profile();
    let duration = if virtual_time { host_time(profile, kind, fingerprint.bytes(), of) } else { 0 };
    let arrival = Arrival::new(HostContext::now(), duration, reduce);
    let arrival = if virtual_time { arrival } else { arrival.after(member.world.ran(member.rank)) };
    member.world.arrive(member.rank, key, arrival, &bytes);
    let gets_something = match kind {
        CollectiveKind::Barrier => false,
        CollectiveKind::PointToPoint => place == 1,
        _ => true,
    };
    let tensors = if gets_something { vec![output.clone()] } else { Vec::new() };
    Ok(Work::on_host(member.clone(), key, tensors))
}

/// The nanoseconds of a collective on one host: a ring of copies through shared memory.
fn host_time(host: &HostProfile, kind: CollectiveKind, bytes: usize, ranks: usize) -> u64 {
    let (n, steps) = (ranks.max(1) as f64, ranks.max(1) as u64 - 1);
    let (steps, share) = match kind {
        CollectiveKind::AllReduce(_) => (2 * steps, 2.0 * (n - 1.0) / n),
        CollectiveKind::ReduceScatter(_) => (steps, (n - 1.0) / n),
        CollectiveKind::AllGather => (steps, n - 1.0),
        CollectiveKind::Broadcast { .. } | CollectiveKind::PointToPoint => (steps, 1.0),
        CollectiveKind::Barrier => (2 * steps, 0.0),
    };
    steps * host.hand_over.nanoseconds() + host.staging.time_of((share * bytes as f64) as u64) as u64
}

/// Returns the time of a collective on this machine's GPUs after the last arrival, its steps, and its bottleneck:
/// latency or bandwidth. Each rank contributes `bytes` bytes.
///
/// ```
/// use todevice::Machine;
/// use todevice::distributed::{CollectiveKind, ReduceOp, collective_time};
///
/// let machine: Machine = "sim:h200x8".parse()?;
/// let time = |bytes| machine.enter(|| collective_time(CollectiveKind::AllReduce(ReduceOp::Sum), bytes, 8)).unwrap();
/// assert!(time(4 << 10).latency_rules());
/// assert!(!time(400 << 20).latency_rules());
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error on real GPUs: measure there.
pub fn collective_time(
    kind: CollectiveKind,
    bytes: usize,
    ranks: usize,
) -> Result<crate::collective::CollectiveTime> {
    let time = crate::gpu::of_machine()?.collective_time(kind, bytes, ranks);
    time.ok_or_else(|| Error::custom("how long a collective of real GPUs takes is to be measured"))
}
