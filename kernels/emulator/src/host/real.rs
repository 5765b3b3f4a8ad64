//! Memory and launches on a real device. Only host code is checked.
//!
//! Device memory has the device's addresses. They are outside the memory that host code can access here, so host code
//! that dereferences one is reported as usual.
//!
//! Managed and page-locked memory is the program's *and* the device's: host code here accesses only the program's, so
//! each allocation has a counterpart. Managed memory moves to the device before a launch, and back when no work is left,
//! as on cards without concurrent managed access. Page-locked memory moves if a kernel or a copy uses it.

use super::calls::{Call, Host};
use super::device::Answer;
use super::errors::{INVALID_DIRECTION, INVALID_VALUE};
use crate::ir::{Global, Prim, space};
use crate::run::interpreter::Stop;
use crate::run::launch::{Machine, Shape};
use crate::run::memory::{Allocation, MOST_MEMORY, Owner, WRITTEN};
use std::ops::Range;

/// The program's memory with a counterpart on the device.
#[derive(Default)]
pub struct Counterparts {
    /// Whether managed memory is on the device.
    is_on_device: bool,
    /// Page-locked ranges that queued work may write: the range, the stream, and the number of the work in the stream.
    awaited: Vec<(Range<usize>, u64, u64)>,
}

/// A side of a copy.
enum Side {
    Device(u64),
    Host(Range<usize>),
}

impl Host<'_> {
    /// `cudaMalloc`, at an address that the program's memory does not use.
    pub(super) fn malloc_on_device(&mut self, machine: &mut Machine, call: Call) -> Result<u64, Stop> {
        let (pointer, bytes) = (call.argument(0), call.argument(1));
        let mut answer = if bytes == 0 { Ok(0) } else { self.device.malloc(bytes) };
        // An address in the program's memory stays allocated, or the driver would return it again.
        while let Ok(at) = answer
            && at < space::HEAP + MOST_MEMORY
            && at.saturating_add(bytes) > space::HEAP
        {
            answer = self.device.malloc(bytes);
        }
        match answer {
            Ok(at) => self.store(machine, call, pointer, &at.to_le_bytes()).map(|()| 0),
            Err(code) => Ok(self.failed(code, call.name)),
        }
    }

    /// `cudaMemcpy(to, from, bytes, kind)`, on a stream if there is one. Managed memory is valid with every kind.
    pub(super) fn copy_on_device(&mut self, machine: &mut Machine, call: Call) -> Answer<()> {
        self.print_on_device(machine);
        let [to, from, bytes, kind, ..] = *call.operands else { return Err(INVALID_VALUE) };
        let stream = call.argument(4);
        if bytes == 0 {
            return Ok(());
        }
        let is_managed = [to, from].iter().any(|at| self.is_managed(machine, *at));
        if is_managed {
            self.wait(machine, None)?;
        }
        let kind = if is_managed && kind < 4 { 4 } else { kind };
        self.streams.begin(stream);
        match (self.side_of(machine, to, bytes)?, self.side_of(machine, from, bytes)?, kind) {
            (Side::Device(to), Side::Host(from), 1 | 4) => {
                let pinned = pinned(&machine.heap.allocations, &from);
                self.device.write(stream, to, &machine.heap.space.bytes[from], pinned)?;
            }
            (Side::Host(to), Side::Device(from), 2 | 4) => {
                let pinned = pinned(&machine.heap.allocations, &to);
                self.device.read(stream, from, &mut machine.heap.space.bytes[to.clone()], pinned)?;
                if pinned.is_some() {
                    self.counterparts.awaited.push((to, stream, self.streams.latest(stream)));
                } else {
                    machine.heap.space.states[to].iter_mut().for_each(|state| *state |= WRITTEN);
                }
            }
            (Side::Device(to), Side::Device(from), 3 | 4) => self.device.copy(stream, to, from, bytes)?,
            (Side::Host(to), Side::Host(from), 0 | 4) => {
                machine.heap.space.bytes.copy_within(from, to.start);
                machine.heap.space.states[to].iter_mut().for_each(|state| *state |= WRITTEN);
            }
            _ if kind > 4 => return Err(INVALID_DIRECTION),
            // The direction does not match the pointers.
            _ => return Err(INVALID_VALUE),
        }
        if call.name == "cudaMemcpy" {
            if self.counterparts.awaited.iter().any(|(_, on, _)| *on == stream) {
                self.device.synchronize(Some(stream))?;
            }
            self.streams.wait_for_stream(stream);
        }
        self.after_work(machine)
    }

    /// `cudaMemset(to, value, bytes)`, on a stream if there is one.
    pub(super) fn set_on_device(&mut self, machine: &mut Machine, call: Call) -> Answer<()> {
        let [to, value, bytes, ..] = *call.operands else { return Err(INVALID_VALUE) };
        if !self.is_managed(machine, to) {
            let stream = call.argument(3);
            self.streams.begin(stream);
            let Side::Device(to) = self.side_of(machine, to, bytes)? else { return Err(INVALID_VALUE) };
            return self.device.set(stream, to, value as u8, bytes);
        }
        // The program has its managed memory again when all work has run.
        self.wait(machine, None)?;
        let range = machine.heap.range(to, bytes).ok_or(INVALID_VALUE)?;
        machine.heap.space.bytes[range.clone()].fill(value as u8);
        machine.heap.space.states[range].iter_mut().for_each(|state| *state |= WRITTEN);
        Ok(())
    }

    fn is_managed(&self, machine: &Machine, address: u64) -> bool {
        managed(&machine.heap.allocations).any(|known| is_inside(known, address))
    }

    /// A range in the program's memory, unless it is a variable of the device; or an address of the device.
    fn side_of(&mut self, machine: &Machine, address: u64, bytes: u64) -> Answer<Side> {
        let is_in =
            |global: &&Global| global.symbol.is_some() && address.wrapping_sub(global.address) < global.size;
        if let Some(variable) = self.globals.iter().find(is_in) {
            let offset = address - variable.address;
            if bytes > variable.size - offset {
                return Err(INVALID_VALUE);
            }
            return Ok(Side::Device(self.device.variable(variable)? + offset));
        }
        match machine.heap.range(address, bytes).filter(|range| machine.heap.is_of_host(range)) {
            Some(range) => Ok(Side::Host(range)),
            None if address.wrapping_sub(space::HEAP) < MOST_MEMORY => Err(INVALID_VALUE),
            None => Ok(Side::Device(address)),
        }
    }

    /// Launches a kernel. Pointers among its arguments become the device's.
    pub(super) fn launch_on_device(
        &mut self,
        machine: &mut Machine,
        (kernel, shape, stream): (u32, Shape, u64),
        arguments: &[(Prim, u64)],
    ) -> Answer<()> {
        let kernel = &self.kernels[kernel as usize];
        let mut arguments = arguments.to_vec();
        for (ty, bits) in &mut arguments {
            let has_counterpart = |known: &&Allocation| known.on_device != 0 && is_inside(known, *bits);
            let allocations = machine.heap.allocations.iter();
            let Some(known) = allocations.rev().find(has_counterpart).filter(|_| *ty == Prim::U64) else {
                continue;
            };
            if known.owner == Owner::Pinned {
                let range = range(known);
                self.device.write_host(known.on_device, &machine.heap.space.bytes[range.clone()])?;
                self.counterparts.awaited.push((range, stream, self.streams.latest(stream)));
            }
            *bits = known.on_device + (*bits - space::HEAP - known.offset);
        }
        if !self.counterparts.is_on_device {
            for known in managed(&machine.heap.allocations) {
                self.device.write(0, known.on_device, &machine.heap.space.bytes[range(known)], None)?;
                self.counterparts.is_on_device = true;
            }
            // Streams that do not wait for the default one need the data as well.
            if self.counterparts.is_on_device {
                self.device.synchronize(Some(0))?;
            }
        }
        let parameters = super::calls::packed(kernel, &arguments);
        self.device.launch(stream, kernel, shape, &parameters, None)
    }

    /// Moves memory back to the program, as far as the host has waited for the work that may write it.
    pub(super) fn after_work(&mut self, machine: &mut Machine) -> Answer<()> {
        if !self.is_real() {
            return Ok(());
        }
        let space = &mut machine.heap.space;
        let streams = &self.streams;
        let awaited = std::mem::take(&mut self.counterparts.awaited);
        let (done, awaited): (Vec<_>, _) =
            awaited.into_iter().partition(|(_, stream, number)| streams.has_waited(*stream, *number));
        self.counterparts.awaited = awaited;
        for (range, ..) in done {
            if let Some(at) = pinned(&machine.heap.allocations, &range) {
                self.device.read_host(at, &mut space.bytes[range.clone()])?;
                space.states[range].iter_mut().for_each(|state| *state |= WRITTEN);
            }
        }
        if self.counterparts.is_on_device && !self.streams.is_busy() {
            self.counterparts.is_on_device = false;
            for known in managed(&machine.heap.allocations) {
                self.device.read(0, known.on_device, &mut space.bytes[range(known)], None)?;
                space.states[range(known)].iter_mut().for_each(|state| *state |= WRITTEN);
            }
        }
        Ok(())
    }

    /// Prints the program's output so far, before kernels on the device print theirs.
    pub(super) fn print_on_device(&mut self, machine: &mut Machine) {
        if self.is_real() {
            self.device.print(&std::mem::take(&mut machine.output));
        }
    }
}

/// The managed memory that is not freed.
fn managed(allocations: &[Allocation]) -> impl Iterator<Item = &Allocation> {
    allocations.iter().filter(|known| known.owner == Owner::Managed && !known.is_freed)
}

/// Whether an address is in an allocation or just past its end.
fn is_inside(known: &Allocation, address: u64) -> bool {
    let start = space::HEAP + known.offset;
    !known.is_freed && (start..=start + known.size).contains(&address)
}

fn range(known: &Allocation) -> Range<usize> {
    known.offset as usize..(known.offset + known.size) as usize
}

/// The device's address of page-locked memory. `None` for other memory.
fn pinned(allocations: &[Allocation], range: &Range<usize>) -> Option<u64> {
    let start = range.start as u64;
    let is_it = |known: &&Allocation| {
        known.owner == Owner::Pinned && !known.is_freed && start.wrapping_sub(known.offset) < known.size
    };
    allocations.iter().find(is_it).map(|known| known.on_device + (start - known.offset))
}
