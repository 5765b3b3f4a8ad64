//! Kernels compiled by the program. They have no twin: an interpreter runs them.
//!
//! The interpreter determines the duration, so it runs when the kernel begins, on a copy of the tensors. The changed
//! bytes are written when the kernel ends. (Other work may have written other bytes of the same tensor.)

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::errors;
use super::memory::{Access, AddressSpace};
use crate::base::compiled::{CompiledLaunch, Passed};
use crate::base::sort;
use crate::contract::driver::DriverResult;
use crate::contract::interpreter::{InterpretedKernel, Region, RunCost};

pub(super) struct Compiled {
    pub(super) launch: CompiledLaunch,
    kernel: Arc<dyn InterpretedKernel>,
    /// Set when it begins.
    pub(super) cost: RunCost,
    /// Its tensors before and after the run, set when it begins.
    ran: DriverResult<Vec<[Region; 2]>>,
}

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
        Compiled { launch, kernel, cost: RunCost::default(), ran: Ok(Vec::new()) }
    }

    /// Interprets the kernel on the current memory. Returns its duration.
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
        // As for a twin, a panic becomes a failed launch.
        let ran = catch_unwind(AssertUnwindSafe(|| self.kernel.run(&self.launch, &mut after)));
        self.cost = ran.unwrap_or_else(|_| Err(errors::launch_failure(self.launch.name.to_owned())))?;
        let both = |(after, bytes): (Region, Vec<u8>)| [Region { address: after.address, bytes }, after];
        Ok(after.into_iter().zip(before).map(both).collect())
    }

    /// Writes the changed bytes, or returns the kernel's error.
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

/// The addresses and sizes of a launch's tensors. Overlapping ones are merged.
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
