//! Collectives: what several ranks do together, as a driver is asked for it.
//!
//! Each rank calls a collective by itself, on its own memory. The first call of a group on one rank belongs to the first
//! call on every other, the second to the second, and so on: that is all that says which calls meet.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::dtype::DType;
use crate::base::handles::DevicePtr;

/// How the numbers of several ranks become one (`torch.distributed.ReduceOp`).
///
/// They are taken in the order of the ranks, so that all get the same bits, in every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReduceOp {
    /// Their sum.
    #[default]
    Sum,
    /// Their sum divided by how many there are.
    Avg,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// What the ranks of a group do together. Ranks are counted within the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// Every rank gets the reduction of what all have.
    AllReduce(ReduceOp),
    /// Every rank gets what `root` has.
    Broadcast { root: usize },
    /// Every rank gets what all have, one after the other.
    AllGather,
    /// What all have is reduced, and every rank gets a part of that.
    ReduceScatter(ReduceOp),
    /// Nobody goes on before all are there.
    Barrier,
    /// The first of two ranks sends, and the second receives.
    PointToPoint,
}

impl CollectiveKind {
    /// What PyTorch calls it where it tells of collectives.
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

    /// What a timeline calls it: the function of NCCL's.
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

/// What must be the same on all ranks for a collective to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub kind: CollectiveKind,
    /// The sizes of what a rank brings.
    pub sizes: SmallVec<[usize; 4]>,
    pub dtype: DType,
}

impl Fingerprint {
    /// How many bytes a rank brings.
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

/// Which collective it is: the same on all ranks that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub group: u32,
    /// The sender and the receiver, which count what passes between them by themselves.
    pub pair: Option<(usize, usize)>,
    /// Counted from 1, as PyTorch's `SeqNum`.
    pub number: u64,
}

/// Reduces what the ranks have brought, in their order, in the memory of what the first has brought.
pub type Reduce = fn(ReduceOp, DType, first: &mut [u8], others: &[&[u8]]);

/// The part of one rank in a collective on the memory of a device.
#[derive(Clone, Debug)]
pub struct Collective {
    pub key: Key,
    pub fingerprint: Arc<Fingerprint>,
    /// Where this rank is in the group, and how many there are.
    pub place: usize,
    pub of: usize,
    /// What it brings, ...
    pub input: DevicePtr,
    /// ... and where what it gets goes. They may be the same.
    pub output: DevicePtr,
    pub reduce: Reduce,
}

impl Collective {
    /// How many bytes are read.
    pub fn reads(&self) -> usize {
        match self.fingerprint.kind {
            CollectiveKind::Broadcast { root } if root != self.place => 0,
            CollectiveKind::PointToPoint if self.place != 0 => 0,
            _ => self.fingerprint.bytes(),
        }
    }

    /// How many bytes are written.
    pub fn writes(&self) -> usize {
        match self.fingerprint.kind {
            CollectiveKind::PointToPoint if self.place == 0 => 0,
            kind => gets(kind, self.place, self.of, result_bytes(&self.fingerprint, self.of)).len(),
        }
    }
}

/// How many bytes there are when all have met.
fn result_bytes(fingerprint: &Fingerprint, of: usize) -> usize {
    match fingerprint.kind {
        CollectiveKind::AllGather => of * fingerprint.bytes(),
        CollectiveKind::Barrier => 0,
        _ => fingerprint.bytes(),
    }
}

/// What all ranks make of what they have brought.
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

/// How two inputs are reduced to one, if that one and a third give the same as all three at once. An average is divided once,
/// and halves are rounded once.
pub fn in_pairs(fingerprint: &Fingerprint) -> Option<ReduceOp> {
    match fingerprint.kind {
        CollectiveKind::AllReduce(op) | CollectiveKind::ReduceScatter(op) => {
            (op != ReduceOp::Avg && !fingerprint.dtype.is_half()).then_some(op)
        }
        _ => None,
    }
}

/// Which part of that a rank gets.
pub fn gets(kind: CollectiveKind, place: usize, of: usize, bytes: usize) -> Range<usize> {
    match kind {
        CollectiveKind::ReduceScatter(_) => place * (bytes / of)..(place + 1) * (bytes / of),
        _ => 0..bytes,
    }
}

/// In which steps a collective goes from device to device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each passes on to its neighbour a part at a time: all links are busy, and there are as many steps as ranks.
    Ring,
    /// Pairs of pairs: few steps, for what is small.
    Tree,
}

/// How long a collective takes once all ranks are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveTime {
    pub algorithm: Algorithm,
    /// Nanoseconds that its steps take, however few the bytes.
    pub latency: u64,
    /// Nanoseconds that its bytes take on the links.
    pub transfer: u64,
}

impl CollectiveTime {
    /// In nanoseconds.
    pub fn total(&self) -> u64 {
        self.latency + self.transfer
    }

    /// Whether the steps take longer than the bytes: twice as many bytes would then take hardly longer.
    pub fn latency_rules(&self) -> bool {
        self.latency > self.transfer
    }
}
