//! `torch.distributed`: one program per GPU, with ranks, process groups, collectives and `DistributedDataParallel`
//! (chapter 10).
//!
//! # API notes
//!
//! * [`spawn`]`(n, |rank| …)` runs a program on `n` ranks. [`Ranks`] runs it in phases, which also works in a web page.
//! * [`init_process_group`]`("nccl" | "gloo")`, [`get_rank`], [`get_world_size`], [`new_group`],
//!   [`destroy_process_group`].
//! * [`all_reduce`], [`broadcast`], [`all_gather`], [`reduce_scatter`], [`barrier`], [`send`], [`recv`]. With
//!   [`CollectiveOptions`] `{ async_op, group }` paired with the last argument, they return a [`Work`] to wait on.
//! * [`DistributedDataParallel`]`::new(model)`, `.module()`, `.no_sync(|| …)`, `.buckets()`; options `bucket_cap_mb`,
//!   `broadcast_buffers`, `find_unused_parameters`; sampler [`DistributedSampler`](crate::data::DistributedSampler).
//! * Call `cuda::set_device(rank)` first, as in PyTorch: the first collective fails if two ranks share a GPU.
//! * `Machine::profile` around `spawn` traces all ranks of a simulated machine. A collective is a bar in each GPU's row
//!   of copies between devices, from the rank's arrival to the end of the transfer.
//! * A rank's error is [`Error::Rank`](crate::Error::Rank); `error.refusal::<DistributedError>()` returns its cause.
//! * [`collective_time`] computes a collective's time and its bottleneck.
//!
//! # Implementation
//!
//! A rank is a forked machine: it shares the host's memory and the recordings with its parent (`Machine::fork`). The
//! scheduling of ranks and collectives is in `ranks/` of `todevice-gpu`, and the simulated GPU's part in
//! `simulated/together.rs`. Collectives of real GPUs, through NCCL and processes, are planned behind
//! `Driver::collective` and `init_process_group`.

mod buckets;
mod collectives;
mod data_parallel;
mod group;
mod ranks;
mod reduce;
mod reducer;
mod work;

pub use crate::collective::{Algorithm, CollectiveKind, CollectiveTime, ReduceOp};
pub use crate::error::distributed::DistributedError;
pub use collectives::{
    CollectiveOptions, all_gather, all_gather_into_tensor, all_reduce, barrier, broadcast, collective_time,
    irecv, isend, recv, reduce_scatter, reduce_scatter_tensor, send,
};
pub(crate) use data_parallel::Averaging;
pub use data_parallel::{DistributedDataParallel, DistributedDataParallelOptions};
pub use group::{
    Backend, InitOptions, ProcessGroup, destroy_process_group, get_rank, get_world_size, init_process_group,
    is_initialized, new_group,
};
pub(crate) use ranks::RankScope;
pub use ranks::{Ranks, spawn};
pub use todevice_gpu::base::error::meeting::{Ended, MeetingError, Mismatch, Stuck, Timeout, Wait};
pub use work::Work;
