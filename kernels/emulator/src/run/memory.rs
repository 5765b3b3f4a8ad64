//! Bytes of memory, each with its state.

use crate::ir::space;

/// The state bits of a byte.
pub const ALLOCATED: u8 = 1;
pub const WRITTEN: u8 = 2;
/// Accessible to host code.
pub const OF_HOST: u8 = 4;
pub const CONSTANT: u8 = 8;
/// Accessible to device code.
pub const OF_DEVICE: u8 = 16;

#[derive(Clone, Default, PartialEq, Eq)]
pub struct Space {
    pub bytes: Vec<u8>,
    pub states: Vec<u8>,
}

impl Space {
    pub fn resize(&mut self, size: usize) {
        // Padding: accesses read up to 8 bytes at once.
        self.bytes.resize(size + 16, 0);
        self.states.resize(size + 16, 0);
    }

    pub fn mark(&mut self, from: u64, size: u64, state: u8) {
        let range = from as usize..(from + size) as usize;
        if let Some(states) = self.states.get_mut(range) {
            states.fill(state);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// `cudaMalloc`
    Device,
    /// `malloc`
    Host,
    /// `cudaMallocHost`
    Pinned,
    /// `cudaMallocManaged`
    Managed,
    Global,
}

/// An allocation. Its memory is never reused, so that a use after free is detected.
#[derive(Clone, Debug)]
pub struct Allocation {
    pub offset: u64,
    pub size: u64,
    pub owner: Owner,
    /// The address that the device gave it. 0 for memory of the host.
    pub on_device: u64,
    pub is_freed: bool,
    pub name: String,
    /// The line that reports of stream-ordered frees and leaks name.
    pub span: crate::source::Span,
}

/// The maximum number of bytes of an emulated program.
pub const MOST_MEMORY: u64 = 512 << 20;

/// All memory of the device and the host except shared and local memory.
#[derive(Clone, Default)]
pub struct Heap {
    pub space: Space,
    pub allocations: Vec<Allocation>,
    pub used: u64,
}

impl Heap {
    /// The range of the next allocation, if there is room for it.
    fn place(&self, size: u64) -> Option<(u64, u64)> {
        // A gap of at least 256 bytes, so that addresses just past an allocation are not in another.
        let offset = (self.used + 256).next_multiple_of(256);
        let end = offset.checked_add(size).filter(|end| *end <= MOST_MEMORY)?;
        Some((offset, end))
    }

    pub fn fits(&self, size: u64) -> bool {
        self.place(size).is_some()
    }

    pub fn allocate(
        &mut self,
        size: u64,
        owner: Owner,
        name: &str,
        span: crate::source::Span,
    ) -> Option<u64> {
        let (offset, end) = self.place(size)?;
        self.space.resize(end as usize + 256);
        self.used = end;
        let state = ALLOCATED
            | match owner {
                Owner::Host => OF_HOST,
                Owner::Pinned | Owner::Managed => OF_HOST | OF_DEVICE,
                Owner::Device | Owner::Global => OF_DEVICE,
            };
        self.space.mark(offset, size, state);
        self.allocations.push(Allocation {
            offset,
            size,
            owner,
            on_device: 0,
            is_freed: false,
            name: name.to_owned(),
            span,
        });
        Some(space::HEAP + offset)
    }

    pub fn place_global(&mut self, global: &crate::ir::Global) {
        let offset = global.address - space::HEAP;
        let end = offset + global.size;
        if self.space.bytes.len() < end as usize + 256 {
            self.space.resize(end as usize + 256);
        }
        self.used = self.used.max(end);
        let mut state = ALLOCATED;
        if global.init.is_some() || global.name == "<stack>" {
            state |= WRITTEN;
        }
        state |= match (global.is_constant, global.on_device) {
            (true, _) => CONSTANT | OF_HOST | OF_DEVICE,
            (false, true) => OF_DEVICE,
            (false, false) => OF_HOST,
        };
        self.space.mark(offset, global.size, state);
        if let Some(init) = &global.init {
            self.space.bytes[offset as usize..end as usize].copy_from_slice(init);
        }
        self.allocations.push(Allocation {
            offset,
            size: global.size,
            owner: Owner::Global,
            on_device: 0,
            is_freed: false,
            name: global.name.clone(),
            span: crate::source::Span::default(),
        });
    }

    pub fn at(&self, address: u64) -> Option<usize> {
        let offset = address.wrapping_sub(space::HEAP);
        self.allocations.iter().position(|known| known.offset == offset)
    }

    /// The allocation that contains an address, or the nearest one.
    pub fn nearest(&self, offset: u64) -> Option<(&Allocation, u64, bool)> {
        let distance = |known: &Allocation| {
            if offset < known.offset {
                (known.offset - offset, false)
            } else if offset >= known.offset + known.size {
                (offset - (known.offset + known.size) + 1, true)
            } else {
                (0, true)
            }
        };
        let best = self.allocations.iter().min_by_key(|known| distance(known).0)?;
        let (bytes, is_after) = distance(best);
        Some((best, bytes, is_after))
    }

    /// Returns a range of bytes at an address if all of them are allocated.
    pub fn range(&self, address: u64, size: u64) -> Option<std::ops::Range<usize>> {
        let start = address.checked_sub(space::HEAP)?;
        let end = start.checked_add(size)?;
        if end as usize > self.space.bytes.len() {
            return None;
        }
        let range = start as usize..end as usize;
        self.space.states[range.clone()].iter().all(|state| state & ALLOCATED != 0).then_some(range)
    }

    pub fn is_of_host(&self, range: &std::ops::Range<usize>) -> bool {
        self.space.states[range.clone()].iter().all(|state| state & OF_HOST != 0)
    }

    pub fn is_of_device(&self, range: &std::ops::Range<usize>) -> bool {
        self.space.states[range.clone()].iter().all(|state| state & OF_DEVICE != 0)
    }

    /// Reads a null-terminated string.
    pub fn text(&self, address: u64) -> Option<String> {
        let start = address.checked_sub(space::HEAP)? as usize;
        let mut bytes = Vec::new();
        for at in start..start.checked_add(1 << 16)? {
            if self.space.states.get(at)? & ALLOCATED == 0 {
                return None;
            }
            match self.space.bytes[at] {
                0 => return Some(String::from_utf8_lossy(&bytes).into_owned()),
                byte => bytes.push(byte),
            }
        }
        None
    }
}
