//! The memory that a piece of work accesses.

use super::super::compiled;
use super::super::execute::gemm_accesses;
use super::super::memory::Access;
use super::super::pinned::PinnedSpace;
use super::super::task::{End, Task};
use super::stripes::Stripes;
use crate::base::kernel::{Argument, KernelParameter};

/// The name of work outside a user's operation.
pub(super) fn name_of(task: &Task) -> &'static str {
    match task {
        Task::Kernel(launch) => launch.kernel.name,
        Task::Compiled(task) => task.launch.name,
        Task::Gemm(_) => "gemm",
        Task::Convolution(_) => "conv2d",
        Task::Copy(_) => "copy",
        Task::Collective(part) => part.fingerprint.kind.label(),
        Task::Memset { .. } => "memset",
        Task::Record(_) => "record",
        Task::Wait { .. } => "wait",
    }
}

/// Calls `used` for each accessed range, from first to last byte, except staging memory, which the driver orders.
pub(super) fn each_of(task: &Task, pinned: &PinnedSpace, mut used: impl FnMut(Access, Stripes)) {
    match task {
        Task::Kernel(launch) => {
            for (parameter, argument) in launch.kernel.parameters.iter().zip(&launch.arguments) {
                let (KernelParameter::In(dtype) | KernelParameter::Out(dtype)) = parameter else { continue };
                let Argument::Tensor { pointer, view } = argument else { continue };
                let write = matches!(parameter, KernelParameter::Out(_));
                let access = Access { address: pointer.0, bytes: view.reach() * dtype.size(), write };
                used(access, Stripes::of(view, dtype.size()));
            }
        }
        Task::Compiled(task) => {
            compiled::accesses(&task.launch).for_each(|access| used(access, Stripes::whole(access.bytes)))
        }
        Task::Gemm(gemm) => {
            gemm_accesses(gemm).into_iter().for_each(|access| used(access, Stripes::whole(access.bytes)))
        }
        Task::Convolution(task) => {
            task.accesses().into_iter().for_each(|access| used(access, Stripes::whole(access.bytes)))
        }
        Task::Copy(copy) => {
            for (place, write) in [(copy.from, false), (copy.to, true)] {
                match place {
                    End::Pinned(address) if pinned.is_staging(address) => {}
                    End::Device { address, .. } | End::Pinned(address) => {
                        used(Access { address, bytes: copy.bytes, write }, Stripes::whole(copy.bytes));
                    }
                }
            }
        }
        Task::Collective(part) => {
            let of = |address, bytes, write| Access { address, bytes, write };
            let read = of(part.input.0, part.reads(), false);
            let written = of(part.output.0, part.writes(), true);
            [read, written].into_iter().for_each(|access| used(access, Stripes::whole(access.bytes)));
        }
        Task::Memset { to, bytes, .. } => {
            used(Access { address: to.0, bytes: *bytes, write: true }, Stripes::whole(*bytes))
        }
        Task::Record(_) | Task::Wait { .. } => {}
    }
}
