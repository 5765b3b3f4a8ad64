//! Collectives, as requests to a driver. Each rank calls a collective separately, with its memory. Calls match by
//! order: the n-th call in a group on one rank belongs to the n-th call on every other rank.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::device::DevicePtr;
use crate::base::dtype::DType;

/// The reduction of the ranks' values (`torch.distributed.ReduceOp`), in rank order, with reproducible bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReduceOp {
    #[default]
    Sum,
    Avg,
    Max,
    Min,
}

/// The joint operation of a group. Ranks are numbered within the group.
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
    /// Of a rank's input.
    pub sizes: SmallVec<[usize; 4]>,
    pub dtype: DType,
}

impl Fingerprint {
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

/// Identifies a collective on all its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectiveKey {
    pub group: u32,
    /// Sender and receiver. Each pair numbers its transfers separately.
    pub pair: Option<(usize, usize)>,
    /// Counted from 1, like PyTorch's `SeqNum`.
    pub number: u64,
}

/// Reduces the ranks' inputs into `first`, in rank order.
pub type Reduce = fn(ReduceOp, DType, first: &mut [u8], others: &[&[u8]]);

/// One rank's part in a collective on device memory.
#[derive(Clone, Debug)]
pub struct Collective {
    pub key: CollectiveKey,
    pub fingerprint: Arc<Fingerprint>,
    /// The rank's position in the group, and the group's size.
    pub place: usize,
    pub of: usize,
    /// The rank's input, ...
    pub input: DevicePtr,
    /// ... and its output, which may be the same.
    pub output: DevicePtr,
    pub reduce: Reduce,
}

impl Collective {
    /// Bytes that this rank reads.
    pub fn reads(&self) -> usize {
        match self.fingerprint.kind {
            CollectiveKind::Broadcast { root } if root != self.place => 0,
            CollectiveKind::PointToPoint if self.place != 0 => 0,
            _ => self.fingerprint.bytes(),
        }
    }

    /// Bytes that this rank writes.
    pub fn writes(&self) -> usize {
        match self.fingerprint.kind {
            CollectiveKind::PointToPoint if self.place == 0 => 0,
            kind => gets(kind, self.place, self.of, result_bytes(&self.fingerprint, self.of)).len(),
        }
    }
}

fn result_bytes(fingerprint: &Fingerprint, of: usize) -> usize {
    match fingerprint.kind {
        CollectiveKind::AllGather => of * fingerprint.bytes(),
        CollectiveKind::Barrier => 0,
        _ => fingerprint.bytes(),
    }
}

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

/// The operation, if reducing pair by pair gives the same result as reducing all inputs at once. `None` for an average,
/// which is divided once, and for half types, which are rounded once.
pub fn in_pairs(fingerprint: &Fingerprint) -> Option<ReduceOp> {
    match fingerprint.kind {
        CollectiveKind::AllReduce(op) | CollectiveKind::ReduceScatter(op) => {
            (op != ReduceOp::Avg && !fingerprint.dtype.is_half()).then_some(op)
        }
        _ => None,
    }
}

/// The range of the combined result that a rank gets.
pub fn gets(kind: CollectiveKind, place: usize, of: usize, bytes: usize) -> Range<usize> {
    match kind {
        CollectiveKind::ReduceScatter(_) => place * (bytes / of)..(place + 1) * (bytes / of),
        _ => 0..bytes,
    }
}

/// The pattern in which a collective moves data between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each device passes parts to its neighbor. All links are busy, in as many steps as ranks.
    Ring,
    /// Pairs of pairs: few steps, for small inputs.
    Tree,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveTime {
    pub algorithm: Algorithm,
    /// Nanoseconds for the steps, independent of the size.
    pub latency: u64,
    /// Nanoseconds for moving the bytes over the links.
    pub transfer: u64,
}

impl CollectiveTime {
    pub fn total(&self) -> u64 {
        self.latency + self.transfer
    }

    /// Whether latency dominates, so that doubling the bytes would hardly change the duration.
    pub fn latency_rules(&self) -> bool {
        self.latency > self.transfer
    }
}
