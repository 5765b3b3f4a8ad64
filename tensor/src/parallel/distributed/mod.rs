//! Several GPUs with one program each: ranks, process groups, collectives, and `DistributedDataParallel`
//! (`torch.distributed`, `torch.nn.parallel`; chapter 10).
//!
//! # API notes
//!
//! * [`spawn`]`(n, |rank| …)` runs a program on `n` ranks; [`Ranks`] runs it phase by phase, which also works in a
//!   web page.
//! * [`init_process_group`]`("nccl" | "gloo")`, [`get_rank`], [`get_world_size`], [`new_group`],
//!   [`destroy_process_group`].
//! * [`all_reduce`], [`broadcast`], [`all_gather`], [`reduce_scatter`], [`barrier`], [`send`], [`recv`]. If the
//!   last argument is a pair with [`CollectiveOptions`] `{ async_op, group }`, they return a [`Work`] on which the
//!   caller waits.
//! * [`DistributedDataParallel`]`::new(model)`, `.module()`, `.no_sync(|| …)`, `.buckets()`; its options are
//!   `bucket_cap_mb`, `broadcast_buffers`, `find_unused_parameters`. The sampler is
//!   [`DistributedSampler`](crate::data::DistributedSampler).
//! * Call `cuda::set_device(rank)` first, as in PyTorch: the first collective fails if two ranks share a GPU.
//! * Traces of a simulated machine show the work of its ranks: `Machine::profile` around `spawn` sees all ranks. A
//!   collective is a bar in each GPU's row of copies to other devices, from the arrival of that rank until all
//!   ranks have arrived and the bytes are transferred.
//! * An error of a rank is [`Error::Rank`](crate::Error::Rank); `error.refusal::<DistributedError>()` looks into it.
//! * [`collective_time`] evaluates the formula for a collective's time, and tells whether latency dominates.
//!
//! # Implementation
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
