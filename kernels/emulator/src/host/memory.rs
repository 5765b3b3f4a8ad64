//! Device memory in the emulator: allocations, copies and their checks. The device only counts the memory and models the
//! time of copies.

use super::calls::{Call, Host};
use super::device::Answer;
use super::errors::{self, INVALID_DIRECTION, INVALID_VALUE, OUT_OF_MEMORY};
use crate::ir::{Global, space};
use crate::run::amounts;
use crate::run::interpreter::Stop;
use crate::run::launch::Machine;
use crate::run::memory::{MOST_MEMORY, Owner, WRITTEN};
use crate::source::Span;
use std::ops::Range;

/// One side of a copy, as the device sees it.
#[derive(Clone, Copy)]
enum Side {
    Device(u64),
    /// The device's address of page-locked memory.
    Pinned(u64),
    Pageable,
}

impl Side {
    fn pinned(self) -> Option<u64> {
        if let Side::Pinned(at) = self { Some(at) } else { None }
    }
}

impl Host<'_> {
    pub(super) fn allocate(&mut self, machine: &mut Machine, call: Call, owner: Owner) -> Result<u64, Stop> {
        let Call { name, span, .. } = call;
        let (pointer, size) = (call.argument(0), call.argument(1));
        if pointer == 0 {
            return Ok(self.error(INVALID_VALUE));
        }
        if size == 0 {
            self.store(machine, call, pointer, &[0; 8])?;
            return Ok(0);
        }
        // Page-locked memory belongs to the computer, so only the emulator limits it.
        let (is_pinned, fits) = (owner == Owner::Pinned, machine.heap.fits(size));
        let answer = match is_pinned {
            false => self.device.malloc(size),
            true if fits => self.device.malloc_host(size),
            true => Ok(0),
        };
        let on_device = match answer {
            Ok(on_device) => on_device,
            Err(code) => return Ok(self.failed(code, name)),
        };
        let Some(at) = machine.heap.allocate(size, owner, name, span) else {
            let mut notes = vec![format!("the emulator holds {} MiB at most", MOST_MEMORY >> 20)];
            if !is_pinned {
                let size = amounts::bytes(size);
                notes = vec![format!("the GPU has memory for {size}, but {}", notes[0])];
                if let Err(code) = self.device.free(on_device) {
                    return Ok(self.failed(code, name));
                }
            }
            self.misuse(machine, span, errors::report(OUT_OF_MEMORY, name), notes);
            return Ok(self.error(OUT_OF_MEMORY));
        };
        if let Some(allocation) = machine.heap.allocations.last_mut() {
            allocation.on_device = on_device;
        }
        self.store(machine, call, pointer, &at.to_le_bytes())?;
        Ok(0)
    }

    pub(super) fn free(&mut self, machine: &mut Machine, call: Call, owners: &[Owner]) -> u64 {
        let at = call.argument(0);
        let known = machine.heap.at(at);
        let code = self.release(machine, call, owners);
        let Some(known) = known.filter(|_| at != 0 && code == 0) else { return self.error(code as u32) };
        let known = &machine.heap.allocations[known];
        let freed = match known.owner {
            Owner::Pinned => self.device.free_host(known.on_device),
            _ => self.device.free(known.on_device),
        };
        freed.map_or_else(|code| self.failed(code, call.name), |()| 0)
    }

    /// Releases memory of the emulator. Returns the number of a CUDA error, or 0.
    pub(super) fn release(&mut self, machine: &mut Machine, call: Call, owners: &[Owner]) -> u64 {
        let Call { name, span, .. } = call;
        let at = call.argument(0);
        if at == 0 {
            return 0;
        }
        let found = machine.heap.at(at);
        match found {
            Some(number)
                if owners.contains(&machine.heap.allocations[number].owner)
                    && !machine.heap.allocations[number].is_freed =>
            {
                let known = &mut machine.heap.allocations[number];
                known.is_freed = true;
                let (offset, size) = (known.offset, known.size);
                machine.heap.space.mark(offset, size, 0);
                0
            }
            Some(number) if machine.heap.allocations[number].is_freed => {
                self.misuse(machine, span, format!("`{name}` of memory that was freed before"), Vec::new());
                1
            }
            _ => {
                self.misuse(
                    machine,
                    span,
                    format!("`{name}` of {at:#x}, which is not the start of such memory"),
                    Vec::new(),
                );
                1
            }
        }
    }

    /// Copies memory, with CUDA's checks and some more.
    pub(super) fn copy(&mut self, machine: &mut Machine, call: Call) -> Result<u64, Stop> {
        let Call { operands, span, .. } = call;
        let [to, from, size, kind, ..] = *operands else { return Ok(0) };
        if size == 0 {
            return Ok(0);
        }
        if kind > 4 {
            return Ok(self.error(INVALID_DIRECTION));
        }
        let sides = [("source", from, matches!(kind, 0 | 1)), ("destination", to, matches!(kind, 0 | 2))];
        let mut ranges = Vec::new();
        for (name, at, is_host) in sides {
            let Some(range) = machine.heap.range(at, size) else {
                let notes = vec![format!("not all of {} at {at:#x} are allocated", amounts::bytes(size))];
                self.misuse(machine, span, format!("the {name} of `cudaMemcpy` is out of bounds"), notes);
                return Ok(self.error(INVALID_VALUE));
            };
            let wrong = kind != 4
                && if is_host {
                    !machine.heap.is_of_host(&range)
                } else {
                    !machine.heap.is_of_device(&range)
                };
            if wrong {
                let (is, wanted) =
                    if is_host { ("the device", "the host") } else { ("the host", "the device") };
                let notes =
                    vec![format!("its direction requires memory of {wanted}, but {at:#x} is memory of {is}")];
                self.misuse(machine, span, format!("the {name} of `cudaMemcpy` is on the wrong side"), notes);
                return Ok(self.error(INVALID_VALUE));
            }
            ranges.push(range);
        }
        if machine.sample.is_some()
            && machine.heap.is_of_host(&ranges[1])
            && !machine.heap.is_of_host(&ranges[0])
        {
            return Err(Stop::Exit(0));
        }
        if machine.checks().init
            && machine.heap.is_of_device(&ranges[0])
            && machine.heap.is_of_host(&ranges[1])
        {
            self.check_source(machine, from, &ranges[0], span);
        }
        let (from, to) = (ranges[0].clone(), ranges[1].clone());
        if let Err(code) = self.time_copy(machine, call, [&to, &from]) {
            return Ok(self.failed(code, call.name));
        }
        // A byte that was uninitialised before the copy remains so after it.
        let states: Vec<u8> =
            machine.heap.space.states[from.clone()].iter().map(|state| state & WRITTEN).collect();
        machine.heap.space.bytes.copy_within(from, to.start);
        for (state, written) in machine.heap.space.states[to].iter_mut().zip(states) {
            *state = *state & !WRITTEN | written;
        }
        Ok(0)
    }

    /// Queues a copy on the device. `cudaMemcpy` waits for it if the host takes part.
    fn time_copy(&mut self, machine: &mut Machine, call: Call, [to, from]: [&Range<usize>; 2]) -> Answer<()> {
        let stream = call.argument(4);
        let sides = (self.side(machine, to)?, self.side(machine, from)?);
        let bytes = &mut machine.heap.space.bytes;
        match sides {
            (Side::Device(to), Side::Device(at)) => {
                return self.device.copy(stream, to, at, from.len() as u64);
            }
            (Side::Device(at), host) => self.device.write(stream, at, &bytes[from.clone()], host.pinned())?,
            (host, Side::Device(at)) => {
                self.device.read(stream, at, &mut bytes[to.clone()], host.pinned())?;
            }
            _ => return Ok(()),
        }
        let is_pinned = [sides.0, sides.1].iter().any(|side| side.pinned().is_some());
        if is_pinned && call.name == "cudaMemcpy" { self.device.synchronize(Some(stream)) } else { Ok(()) }
    }

    /// Finds the device's view of a range, which is part of one allocation.
    fn side(&mut self, machine: &Machine, range: &Range<usize>) -> Answer<Side> {
        let start = range.start as u64;
        let inside = |offset: u64, size: u64| start >= offset && start < offset + size;
        let mut allocations = machine.heap.allocations.iter();
        let Some(known) = allocations.rfind(|known| inside(known.offset, known.size)) else {
            return Ok(Side::Pageable);
        };
        let at = |on_device: u64| on_device.wrapping_add(start - known.offset);
        Ok(match known.owner {
            Owner::Device | Owner::Managed => Side::Device(at(known.on_device)),
            Owner::Pinned => Side::Pinned(at(known.on_device)),
            Owner::Global if machine.heap.is_of_device(range) => {
                let address = space::HEAP + known.offset;
                let is_it = |global: &&Global| global.address == address && global.symbol.is_some();
                match self.globals.iter().find(is_it) {
                    Some(global) => Side::Device(at(self.device.variable(global)?)),
                    None => Side::Pageable,
                }
            }
            Owner::Host | Owner::Global => Side::Pageable,
        })
    }

    /// Reports the first byte that the host copies although nothing was written there.
    fn check_source(&self, machine: &mut Machine, at: u64, range: &Range<usize>, span: Span) {
        let states = &machine.heap.space.states[range.clone()];
        let Some(first) = states.iter().position(|state| state & WRITTEN == 0) else { return };
        let size = amounts::bytes(range.len() as u64);
        let title = format!("Host API memory access error at host access to {at:#x} of size {size}");
        let missing = states.iter().filter(|state| **state & WRITTEN == 0).count();
        let missing = amounts::bytes(missing as u64);
        let notes = vec![
            format!("Uninitialized access at {:#x} on access by cudaMemcpy source", at + first as u64),
            format!("{missing} of {size} were never written, from byte {first} on"),
        ];
        self.find("initcheck", machine, span, title, notes);
    }

    pub(super) fn set(&mut self, machine: &mut Machine, call: Call) -> u64 {
        let [at, value, size, ..] = *call.operands else { return 0 };
        let Some(range) = machine.heap.range(at, size).filter(|range| machine.heap.is_of_device(range))
        else {
            let size = amounts::bytes(size);
            let notes = vec![format!("not all of {size} at {at:#x} are memory of the device")];
            let title = "the destination of `cudaMemset` is out of bounds".to_owned();
            self.misuse(machine, call.span, title, notes);
            return self.error(INVALID_VALUE);
        };
        let timed = match self.side(machine, &range) {
            Ok(Side::Device(at)) => self.device.set(call.argument(3), at, value as u8, size),
            other => other.map(drop),
        };
        if let Err(code) = timed {
            return self.failed(code, call.name);
        }
        machine.heap.space.bytes[range.clone()].fill(value as u8);
        machine.heap.space.states[range].iter_mut().for_each(|state| *state |= WRITTEN);
        0
    }
}
