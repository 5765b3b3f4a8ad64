//! Managed memory on a real device. Host code here cannot access memory of the device, so each allocation has a copy
//! in the program's memory. All copies move to the device before a launch, and back when no work is left, as on cards
//! without concurrent managed access.

use super::device::{Answer, Device};
use crate::ir::Program;
use crate::run::memory::{Heap, WRITTEN};

/// A managed allocation: its addresses in the program and on the device.
struct Copy {
    host: u64,
    device: u64,
    bytes: u64,
}

/// All managed allocations of a program.
#[derive(Default)]
pub struct Managed {
    copies: Vec<Copy>,
    /// Whether the copies on the device are the current ones.
    is_on_device: bool,
}

impl Managed {
    pub fn add(&mut self, host: u64, device: u64, bytes: u64) {
        self.copies.push(Copy { host, device, bytes });
    }

    /// Removes an allocation of the program. Returns its address on the device.
    pub fn remove(&mut self, host: u64) -> Option<u64> {
        let at = self.copies.iter().position(|copy| copy.host == host)?;
        Some(self.copies.swap_remove(at).device)
    }

    pub fn contains(&self, address: u64) -> bool {
        self.on_device(address).is_some()
    }

    /// The address on the device of an address in the program. An address just past the end is one, too.
    fn on_device(&self, address: u64) -> Option<u64> {
        let of = |copy: &&Copy| (copy.host..=copy.host + copy.bytes).contains(&address);
        self.copies.iter().find(of).map(|copy| copy.device + (address - copy.host))
    }

    /// Prepares a launch: moves the memory to the device, and replaces the addresses among the parameters.
    pub fn before_launch(
        &mut self,
        device: &mut dyn Device,
        heap: &Heap,
        kernel: &Program,
        parameters: &mut [u8],
    ) -> Answer<()> {
        for parameter in kernel.parameters.iter().filter(|parameter| parameter.size == 8) {
            let at = parameter.offset as usize;
            let bytes = &mut parameters[at..at + 8];
            let address = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            if let Some(address) = self.on_device(address) {
                bytes.copy_from_slice(&address.to_le_bytes());
            }
        }
        if self.is_on_device {
            return Ok(());
        }
        for copy in &self.copies {
            if let Some(range) = heap.range(copy.host, copy.bytes) {
                device.write(0, copy.device, &heap.space.bytes[range])?;
            }
        }
        // Streams that do not wait for the default one need the data as well.
        if !self.copies.is_empty() {
            device.synchronize(Some(0))?;
        }
        self.is_on_device = !self.copies.is_empty();
        Ok(())
    }

    /// Moves the memory back, after all work has run.
    pub fn after_work(&mut self, device: &mut dyn Device, heap: &mut Heap) -> Answer<()> {
        if !std::mem::take(&mut self.is_on_device) {
            return Ok(());
        }
        for copy in &self.copies {
            if let Some(range) = heap.range(copy.host, copy.bytes) {
                device.read(0, copy.device, &mut heap.space.bytes[range.clone()])?;
                heap.space.states[range].iter_mut().for_each(|state| *state |= WRITTEN);
            }
        }
        Ok(())
    }
}
