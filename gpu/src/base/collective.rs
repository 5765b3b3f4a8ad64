//! Collectives: work that several ranks do together, as it is requested from a driver.
//!
//! Each rank calls a collective on its own, with its own memory. Calls are matched by order alone: the first call in a
//! group on one rank belongs to the first call on every other rank, the second to the second, and so on.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::device::DevicePtr;
use crate::base::dtype::DType;

/// How the values of several ranks are reduced to one (`torch.distributed.ReduceOp`).
///
/// Values are reduced in rank order, so every rank gets the same bits in every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReduceOp {
    /// The sum.
    #[default]
    Sum,
    /// The sum divided by the number of ranks.
    Avg,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// The operation that the ranks of a group perform together. Ranks are numbered within the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// Every rank gets the reduction of all inputs.
    AllReduce(ReduceOp),
    /// Every rank gets the input of `root`.
    Broadcast { root: usize },
    /// Every rank gets all inputs, concatenated.
    AllGather,
    /// All inputs are reduced, and every rank gets its part of the result.
    ReduceScatter(ReduceOp),
    /// No rank continues before all have arrived.
    Barrier,
    /// The first of two ranks sends, and the second receives.
    PointToPoint,
}

impl CollectiveKind {
    /// PyTorch's name in messages about collectives.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::AllReduce(_) => "ALLREDUCE",
            CollectiveKind::Broadcast { .. } => "BROADCAST",
            CollectiveKind::AllGather => "ALLGATHER",
            CollectiveKind::ReduceScatter(_) => "REDUCE_SCATTER",
            CollectiveKind::Barrier => "BARRIER",
            CollectiveKind::PointToPoint => "SEND/RECV",
        }
    }

    /// The name in a timeline: that of the NCCL function.
    pub fn label(self) -> &'static str {
        match self {
            CollectiveKind::AllReduce(_) => "all_reduce",
            CollectiveKind::Broadcast { .. } => "broadcast",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::ReduceScatter(_) => "reduce_scatter",
            CollectiveKind::Barrier => "barrier",
            CollectiveKind::PointToPoint => "send/recv",
        }
    }
}

/// The properties that must agree on all ranks of a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub kind: CollectiveKind,
    /// The sizes of a rank's input.
    pub sizes: SmallVec<[usize; 4]>,
    pub dtype: DType,
}

impl Fingerprint {
    /// The size of a rank's input in bytes.
    pub fn bytes(&self) -> usize {
        self.numel() * self.dtype.size()
    }

    pub fn numel(&self) -> usize {
        self.sizes.iter().product()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, sizes, dtype) = (self.kind.name(), &self.sizes[..], self.dtype);
        write!(f, "OpType={name}, TensorShape={sizes:?}, TensorDtypes={dtype}")
    }
}

/// Identifies a collective: the same on all ranks that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub group: u32,
    /// The sender and the receiver, which number the transfers between them separately.
    pub pair: Option<(usize, usize)>,
    /// Counted from 1, as PyTorch's `SeqNum`.
    pub number: u64,
}

/// Reduces the inputs of the ranks, in rank order, in place in the first.
pub type Reduce = fn(ReduceOp, DType, first: &mut [u8], others: &[&[u8]]);

/// The part of one rank in a collective on the memory of a device.
#[derive(Clone, Debug)]
pub struct Collective {
    pub key: Key,
    pub fingerprint: Arc<Fingerprint>,
    /// The position of this rank in the group, and the size of the group.
    pub place: usize,
    pub of: usize,
    /// The input of this rank, ...
    pub input: DevicePtr,
    /// ... and its output. The two may be the same.
    pub output: DevicePtr,
    pub reduce: Reduce,
}

impl Collective {
    /// The number of bytes that this rank reads.
    pub fn reads(&self) -> usize {
        match self.fingerprint.kind {
            CollectiveKind::Broadcast { root } if root != self.place => 0,
            CollectiveKind::PointToPoint if self.place != 0 => 0,
            _ => self.fingerprint.bytes(),
        }
    }

    /// The number of bytes that this rank writes.
    pub fn writes(&self) -> usize {
        match self.fingerprint.kind {
            CollectiveKind::PointToPoint if self.place == 0 => 0,
            kind => gets(kind, self.place, self.of, result_bytes(&self.fingerprint, self.of)).len(),
        }
    }
}

/// The size of the combined result in bytes.
fn result_bytes(fingerprint: &Fingerprint, of: usize) -> usize {
    match fingerprint.kind {
        CollectiveKind::AllGather => of * fingerprint.bytes(),
        CollectiveKind::Barrier => 0,
        _ => fingerprint.bytes(),
    }
}

/// Computes the combined result from the inputs of all ranks.
pub fn result(fingerprint: &Fingerprint, mut inputs: Vec<Vec<u8>>, reduce: Reduce) -> Vec<u8> {
    match fingerprint.kind {
        CollectiveKind::AllReduce(op) | CollectiveKind::ReduceScatter(op) => {
            let Some((first, others)) = inputs.split_first_mut() else { return Vec::new() };
            let others: Vec<&[u8]> = others.iter().map(Vec::as_slice).collect();
            reduce(op, fingerprint.dtype, first, &others);
            inputs.swap_remove(0)
        }
        CollectiveKind::Broadcast { root } => inputs.swap_remove(root),
        CollectiveKind::PointToPoint => inputs.swap_remove(0),
        CollectiveKind::AllGather => inputs.concat(),
        CollectiveKind::Barrier => Vec::new(),
    }
}

/// The operation, if reducing the inputs pair by pair gives the same result as reducing them all at once. `None` for an
/// average, which is divided once, and for half types, which are rounded once.
pub fn in_pairs(fingerprint: &Fingerprint) -> Option<ReduceOp> {
    match fingerprint.kind {
        CollectiveKind::AllReduce(op) | CollectiveKind::ReduceScatter(op) => {
            (op != ReduceOp::Avg && !fingerprint.dtype.is_half()).then_some(op)
        }
        _ => None,
    }
}

/// The part of the combined result that a rank gets.
pub fn gets(kind: CollectiveKind, place: usize, of: usize, bytes: usize) -> Range<usize> {
    match kind {
        CollectiveKind::ReduceScatter(_) => place * (bytes / of)..(place + 1) * (bytes / of),
        _ => 0..bytes,
    }
}

/// The pattern in which a collective moves data between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each device passes one part at a time to its neighbor: all links are busy, and there are as many steps as ranks.
    Ring,
    /// Pairs of pairs: few steps, for small inputs.
    Tree,
}

/// The duration of a collective once all ranks have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveTime {
    pub algorithm: Algorithm,
    /// Nanoseconds for the steps, independent of the size.
    pub latency: u64,
    /// Nanoseconds for moving the bytes over the links.
    pub transfer: u64,
}

impl CollectiveTime {
    /// In nanoseconds.
    pub fn total(&self) -> u64 {
        self.latency + self.transfer
    }

    /// Whether the steps take longer than the bytes: doubling the bytes would then hardly change the duration.
    pub fn latency_rules(&self) -> bool {
        self.latency > self.transfer
    }
}
