//! Several GPUs, a program for each: ranks, process groups, collectives, and `DistributedDataParallel` (`torch.distributed`,
//! `torch.nn.parallel`; chapter 10).
//!
//! # API notes
//!
//! * [`spawn`]`(n, |rank| …)` runs a program on `n` ranks; [`Ranks`] does so phase by phase, in a page too.
//! * [`init_process_group`]`("nccl" | "gloo")`, [`get_rank`], [`get_world_size`], [`new_group`], [`destroy_process_group`].
//! * [`all_reduce`], [`broadcast`], [`all_gather`], [`reduce_scatter`], [`barrier`], [`send`], [`recv`]. A pair of the
//!   last argument and [`CollectiveOptions`] `{ async_op, group }` makes them leave the wait to the [`Work`] that they return.
//! * [`DistributedDataParallel`]`::new(model)`, `.module()`, `.no_sync(|| …)`, `.buckets()`; its options are `bucket_cap_mb`,
//!   `broadcast_buffers`, `find_unused_parameters`. The sampler is [`DistributedSampler`](crate::data::DistributedSampler).
//! * `cuda::set_device(rank)` comes first, as in PyTorch: two ranks on one GPU are an error of the first collective.
//! * What a rank of a simulated machine takes and when is in the traces of the machine: `Machine::profile` around `spawn`
//!   sees all ranks, and a collective is a bar on each GPU's row of copies to other devices, from when that rank came to it
//!   until all had and the bytes were through.
//! * An error of a rank is [`Error::Rank`](crate::Error::Rank); `error.refusal::<DistributedError>()` looks into it.
//! * [`collective_time`] is the formula, and says whether latency rules.
//!
//! # How it is made
//!
//! A rank is a machine of its own, that shares the host's memory and the recordings with the one that started it
//! (`Machine::fork`). Who runs, and when a collective has all it needs, is in `ranks/` of `todevice-gpu`; the simulated GPU's
//! part is `simulated/together.rs`. On real GPUs collectives will be NCCL's, and ranks processes, started by a launcher and
//! connected by TCP; they get in by the same names, behind `Driver::collective` and `init_process_group`.

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
pub use data_parallel::{DistributedDataParallel, DistributedDataParallelOptions};
pub use group::{
    Backend, InitOptions, ProcessGroup, destroy_process_group, get_rank, get_world_size, init_process_group,
    is_initialized, new_group,
};
pub use ranks::{Ranks, spawn};
pub use todevice_gpu::base::error::meeting::{Ended, MeetingError, Mismatch, Stuck, Timeout, Wait};
pub use work::Work;
