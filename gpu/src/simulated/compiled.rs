//! Kernels that the program has compiled itself. They have no twin: an interpreter runs them.
//!
//! The interpreter tells a kernel's duration from what the kernel does, so it runs when the kernel begins, on a copy of
//! its tensors. The bytes that have changed are written when the kernel ends. (Other work may have written to other bytes
//! of the same tensor.)

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::errors;
use super::memory::{Access, AddressSpace};
use crate::base::compiled::{CompiledLaunch, Passed};
use crate::base::sort;
use crate::contract::driver::DriverResult;
use crate::contract::interpreter::{Cost, InterpretedKernel, Region};

/// A launch that is queued or running.
pub(super) struct Compiled {
    pub(super) launch: CompiledLaunch,
    kernel: Arc<dyn InterpretedKernel>,
    /// Its cost, once it has begun.
    pub(super) cost: Cost,
    /// Its tensors before and after it, once it has begun.
    ran: DriverResult<Vec<[Region; 2]>>,
}

/// The memory of a launch's tensors.
pub(super) fn accesses(launch: &CompiledLaunch) -> impl Iterator<Item = Access> {
    launch.arguments.iter().filter_map(|argument| match argument {
        Passed::Memory { pointer, bytes, is_written } if *bytes > 0 => {
            Some(Access { address: pointer.0, bytes: *bytes, write: *is_written })
        }
        _ => None,
    })
}

impl Compiled {
    pub(super) fn new(launch: CompiledLaunch, kernel: Arc<dyn InterpretedKernel>) -> Compiled {
        Compiled { launch, kernel, cost: Cost::default(), ran: Ok(Vec::new()) }
    }

    /// Interprets it on the memory as it is now. Returns its duration.
    pub(super) fn begin(&mut self, memory: &mut AddressSpace) -> u64 {
        self.ran = self.interpret(memory);
        self.cost.nanoseconds
    }

    fn interpret(&mut self, memory: &mut AddressSpace) -> DriverResult<Vec<[Region; 2]>> {
        let mut after = Vec::new();
        for (address, bytes) in regions(&self.launch) {
            let bytes = memory.bytes(address, bytes)?.to_vec();
            after.push(Region { address, bytes });
        }
        let before: Vec<_> = after.iter().map(|region| region.bytes.clone()).collect();
        // As for a twin: a panic is a bug of the interpreter, and becomes a failed launch.
        let ran = catch_unwind(AssertUnwindSafe(|| self.kernel.run(&self.launch, &mut after)));
        self.cost = ran.unwrap_or_else(|_| Err(errors::launch_failure(self.launch.name.to_owned())))?;
        let both = |(after, bytes): (Region, Vec<u8>)| [Region { address: after.address, bytes }, after];
        Ok(after.into_iter().zip(before).map(both).collect())
    }

    /// Writes the bytes that it has changed, or returns its error.
    pub(super) fn end(&self, memory: &mut AddressSpace) -> DriverResult<()> {
        for [before, after] in self.ran.as_ref().map_err(Clone::clone)? {
            if before.bytes != after.bytes {
                let bytes = memory.bytes_mut(after.address, after.bytes.len())?;
                for ((byte, old), new) in bytes.iter_mut().zip(&before.bytes).zip(&after.bytes) {
                    *byte = if old == new { *byte } else { *new };
                }
            }
        }
        Ok(())
    }
}

/// The addresses and sizes of a launch's tensors, with those that overlap merged.
fn regions(launch: &CompiledLaunch) -> Vec<(u64, usize)> {
    let mut ranges: Vec<(u64, usize)> =
        accesses(launch).map(|access| (access.address, access.bytes)).collect();
    sort::few(&mut ranges, |(address, _)| *address);
    let mut merged: Vec<(u64, usize)> = Vec::new();
    for (address, bytes) in ranges {
        match merged.last_mut() {
            Some((start, size)) if address < *start + *size as u64 => {
                *size = (*size).max((address - *start) as usize + bytes);
            }
            _ => merged.push((address, bytes)),
        }
    }
    merged
}
