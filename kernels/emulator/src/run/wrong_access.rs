//! Reports of accesses that are not allowed.

use super::access::{Which, which};
use super::amounts::bytes;
use super::block::{Block, Warp};
use super::checks::{Finding, Severity, Site};
use super::interpreter::{Runner, Stop};
use super::launch::fatal;
use super::memory::OF_DEVICE;
use crate::ir::{Slot, space};

/// The memory that a wrong access was meant for. A negative index leads from one window to the end of the window below.
pub(super) fn meant(address: u64) -> Which {
    match which(address) {
        Which::Heap | Which::None => which(address),
        _ => which(address + space::WINDOW / 2),
    }
}

impl Runner<'_> {
    #[cold]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn misaligned(
        &mut self,
        block: &Block,
        warp: &Warp,
        pc: u32,
        lane: usize,
        address: u64,
        size: u64,
        what: &str,
        align: u64,
    ) -> Stop {
        if matches!(which(address), Which::None) {
            return self.out_of_bounds(block, warp, pc, lane, address, size, what);
        }
        let memory = memory_name(address);
        let title = format!("Invalid {memory} {what} of size {}", bytes(size));
        let mut notes = vec![format!("Address {address:#x} is misaligned")];
        if which(address) == Which::Heap
            && let Some((nearest, 0, _)) = self.machine.heap.nearest(address - space::HEAP)
        {
            let at = space::HEAP + nearest.offset;
            let place = format!("{at:#x} of size {}", bytes(nearest.size));
            notes.push(format!("and is inside the nearest allocation at {place}"));
        }
        notes.push(format!("It has to be a multiple of {align}"));
        let site = self.site_of("at", pc, block, warp, lane);
        self.stopped_at(site, title, notes, Stop::Misaligned)
    }

    #[cold]
    #[allow(clippy::too_many_arguments)]
    pub fn out_of_bounds(
        &mut self,
        block: &Block,
        warp: &Warp,
        pc: u32,
        lane: usize,
        address: u64,
        size: u64,
        what: &str,
    ) -> Stop {
        let memory = if self.is_host { "host" } else { memory_name(address) };
        let title = format!("Invalid {memory} {what} of size {}", bytes(size));
        let mut notes = Vec::new();
        match meant(address) {
            Which::Heap if address >= space::HEAP => self.heap_notes(address, size, what, &mut notes),
            Which::Shared => window_notes(
                "shared",
                address.wrapping_sub(space::SHARED) as i64,
                &self.program.shared,
                &mut notes,
            ),
            Which::Local => window_notes(
                "local",
                address.wrapping_sub(space::LOCAL) as i64,
                &self.program.local,
                &mut notes,
            ),
            _ if address < 4096 => {
                notes.push(format!("Address {address:#x} is out of bounds: the pointer is null"))
            }
            _ => notes.push(format!("Address {address:#x} is out of bounds")),
        }
        // An `unsigned int` below 0, times the size of an element.
        if !self.is_host && (1 << 32..space::WINDOW / 2).contains(&(address & (space::WINDOW - 1))) {
            notes.push("`threadIdx.x - 1` is unsigned: instead of -1 it is 4,294,967,295".to_owned());
        }
        let site = self.site_of("at", pc, block, warp, lane);
        self.stopped_at(site, title, notes, Stop::IllegalAddress)
    }

    /// Reports an access that ends the program. `on_device` is the reason if it is in a kernel.
    #[cold]
    fn stopped_at(&mut self, site: Site, title: String, notes: Vec<String>, on_device: Stop) -> Stop {
        let (check, stop) = if self.is_host { ("host", Stop::HostFault) } else { ("memcheck", on_device) };
        self.machine.findings.add(fatal(check, title, &self.program.name, vec![site], notes));
        stop
    }

    /// Checks host access to managed memory while a kernel may still be running. Most cards allow it; some end the
    /// program.
    #[cold]
    pub(super) fn check_managed(&mut self, pc: u32, at: usize, what: &str) {
        if self.machine.heap.space.states[at] & OF_DEVICE == 0 {
            return;
        }
        let managed = self.machine.heap.nearest(at as u64);
        if !managed.is_some_and(|(known, ..)| known.owner == super::memory::Owner::Managed) {
            return;
        }
        let title = format!("The host {what} managed memory while a kernel may still run");
        let notes = vec!["call `cudaDeviceSynchronize` first".to_owned()];
        let mut finding = fatal("racecheck", title, &self.program.name, vec![self.site("at", pc)], notes);
        finding.is_fatal = false;
        self.machine.findings.add(finding);
    }

    pub(super) fn heap_notes(&self, address: u64, size: u64, what: &str, notes: &mut Vec<String>) {
        use super::memory::Owner;
        let offset = address - space::HEAP;
        let Some((nearest, away, is_after)) = self.machine.heap.nearest(offset) else {
            notes.push(format!("Address {address:#x} is out of bounds"));
            return;
        };
        let place = format!("{:#x} of size {}", space::HEAP + nearest.offset, bytes(nearest.size));
        let is_inside = away == 0;
        if is_inside && nearest.is_freed {
            notes.push(format!("Address {address:#x} is inside the allocation at {place}, which was freed"));
            return;
        }
        let of_host = matches!(nearest.owner, Owner::Host | Owner::Pinned)
            || nearest.owner == Owner::Global && nearest.name == "<stack>";
        match (is_inside && offset + size <= nearest.offset + nearest.size, self.is_host, of_host) {
            (true, false, true) => {
                notes.push(format!("Access to {address:#x} is out of bounds: it is memory of the host"));
            }
            (true, true, false) => {
                notes.push(format!(
                    "Address {address:#x} is memory of the device: host code reaches it by `cudaMemcpy`"
                ));
            }
            (true, ..) if what == "write" => notes.push(format!("Address {address:#x} is constant memory")),
            _ => {
                notes.push(format!("Access to {address:#x} is out of bounds"));
                let side = if is_after { "after" } else { "before" };
                let away = bytes(if is_inside { 1 } else { away });
                notes.push(format!("and is {away} {side} the nearest allocation at {place}"));
            }
        }
    }

    #[cold]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn uninitialised(
        &mut self,
        block: &Block,
        warp: &Warp,
        pc: u32,
        lane: usize,
        address: u64,
        size: u64,
    ) {
        let memory = memory_name(address);
        let shown = if which(address) == Which::Shared { address - space::SHARED } else { address };
        let title = format!("Uninitialized {memory} memory read of size {}", bytes(size));
        let site = self.site_of("at", pc, block, warp, lane);
        self.machine.findings.add(Finding {
            check: "initcheck",
            severity: Severity::Error,
            title,
            function: self.program.name.clone(),
            sites: vec![site],
            notes: vec![format!("Address {shown:#x}")],
            count: 1,
            is_fatal: false,
        });
    }
}

pub(super) fn memory_name(address: u64) -> &'static str {
    match meant(address) {
        Which::Shared => "__shared__",
        Which::Local => "__local__",
        _ => "__global__",
    }
}

/// Describes how far an access to shared or local memory is from the variable before it, or from the first one: the first
/// byte past a variable is 1 byte after it.
pub(super) fn window_notes(memory: &str, offset: i64, slots: &[Slot], notes: &mut Vec<String>) {
    let sign = if offset < 0 { "-" } else { "" };
    notes.push(format!("Address {sign}{:#x} of {memory} memory is out of bounds", offset.unsigned_abs()));
    let is_before = |slot: &&Slot| slot.offset as i64 <= offset;
    let Some(slot) = slots.iter().rev().find(is_before).or(slots.first()) else { return };
    let (start, end) = (slot.offset as i64, (slot.offset + slot.size) as i64);
    let (away, side) = if offset < start { (start - offset, "before") } else { (offset + 1 - end, "after") };
    let name = slot.name.split('#').next().unwrap_or("");
    let away = bytes(away.max(1) as u64);
    notes.push(format!("and is {away} {side} `{name}` of size {}", bytes(slot.size)));
}
