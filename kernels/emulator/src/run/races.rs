//! Race detection by happens-before. A race is two unordered accesses to a word, at least one of them a write.
//!
//! Two accesses are ordered if a barrier separates them in one block, a warp-synchronous operation in one warp, the end
//! of a launch that the other launch waits for, or a release and an acquire (see [`super::clocks`]). A thread's own
//! accesses are always ordered, and atomics among each other as far as their scope reaches. Each word keeps its last
//! write, last atomic and last read, and whether several lanes, warps or blocks have read since the last write, so that
//! a write is checked against all of them. Accesses to different bytes of a word do not race. A word keeps only the
//! last of its accesses smaller than a word, whatever their bytes.

use super::clocks::Clocks;

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Access {
    pub block: u32,
    /// The number of the interval between two barriers of a block, unique over all blocks and launches; 0 before the
    /// first access.
    pub interval: u32,
    /// The thread's index in its block, and its number of warp-synchronous operations since the barrier.
    pub thread: u16,
    pub turn: u16,
    pub pc: u32,
    /// A mask of the accessed bytes of the word.
    pub bytes: u8,
    /// The number of fences of the thread so far.
    pub step: u16,
}

#[derive(Clone, Copy, Default)]
pub struct Cell {
    pub write: Access,
    pub atomic: Access,
    pub read: Access,
    several: u8,
    /// Another thread that has read, if `several` is set.
    other: u16,
    atomic_of_block: bool,
}

const LANES: u8 = 1;
const WARPS: u8 = 2;
const BLOCKS: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Read,
    Write,
    Atomic,
    BlockAtomic,
}

/// The order between a launch and earlier ones.
#[derive(Default)]
pub struct Order {
    pub start: u32,
    /// Launches that may run concurrently: their first and last interval.
    pub concurrent: Vec<(u32, u32)>,
    /// The smallest interval of these launches; `start` if there are none.
    pub unordered_from: u32,
    /// Synchronisation by fences and atomics, if the kernel has both.
    pub clocks: Option<Box<Clocks>>,
}

impl Order {
    #[inline(always)]
    fn is_past(&self, access: &Access) -> bool {
        access.interval < self.start && (access.interval < self.unordered_from || !self.is_concurrent(access))
    }

    #[cold]
    fn is_concurrent(&self, access: &Access) -> bool {
        self.concurrent.iter().any(|(from, to)| (*from..*to).contains(&access.interval))
    }

    #[inline(always)]
    fn has_seen(&self, me: &Access, other: &Access) -> bool {
        self.clocks.as_ref().is_some_and(|clocks| clocks.covers(me, other))
    }

    #[inline(always)]
    fn conflicts(&self, me: &Access, other: &Access) -> bool {
        if me.bytes & other.bytes == 0 {
            return false;
        }
        if other.interval == me.interval {
            return other.thread != me.thread
                && (other.thread / 32 != me.thread / 32 || other.turn == me.turn)
                && !self.has_seen(me, other);
        }
        if other.interval == 0 || self.is_past(other) {
            return false;
        }
        if other.interval < self.start {
            return true;
        }
        other.block != me.block && !self.has_seen(me, other)
    }

    #[inline(always)]
    fn conflicts_with_reads(&self, me: &Access, cell: &Cell) -> bool {
        let read = &cell.read;
        if read.interval == 0 || self.is_past(read) || read.bytes & me.bytes == 0 {
            return false;
        }
        if read.interval < self.start {
            return true;
        }
        let races = if cell.several & BLOCKS != 0 || read.block != me.block {
            true
        } else if read.interval != me.interval {
            false
        } else if cell.several & WARPS != 0 || read.thread / 32 != me.thread / 32 {
            true
        } else {
            read.turn == me.turn && (read.thread != me.thread || cell.several & LANES != 0)
        };
        races && !self.has_seen(me, read)
    }

    /// Notes an access. Returns the earlier access that it races with, and its kind.
    #[inline(always)]
    pub fn note(&self, cell: &mut Cell, me: &Access, kind: Kind) -> Option<(Access, Kind)> {
        // Another lane of the warp has just read the same word and was checked.
        let read = &cell.read;
        if kind == Kind::Read
            && read.interval == me.interval
            && read.turn == me.turn
            && read.thread / 32 == me.thread / 32
            && cell.several & LANES != 0
            && read.bytes == me.bytes
        {
            return None;
        }
        let mut found = None;
        if self.conflicts(me, &cell.write) {
            found = Some((cell.write, Kind::Write));
        } else if kind != Kind::Atomic || cell.atomic_of_block {
            let other_block = cell.atomic.block != me.block;
            let unordered = match kind {
                Kind::Atomic | Kind::BlockAtomic => other_block,
                _ => true,
            };
            if unordered && self.conflicts(me, &cell.atomic) {
                found = Some((cell.atomic, Kind::Atomic));
            }
        }
        match kind {
            Kind::Read => {
                let read = &mut cell.read;
                if read.bytes & me.bytes == 0 || self.has_seen(me, read) {
                    // The earlier read is of other bytes or ordered before this one, so only this one is kept.
                    cell.several = 0;
                } else {
                    if read.interval == me.interval && read.thread != me.thread {
                        cell.other = read.thread;
                    }
                    if read.interval == me.interval {
                        if read.thread / 32 != me.thread / 32 {
                            cell.several |= WARPS;
                        } else if read.turn != me.turn {
                            cell.several &= !LANES;
                        } else if read.thread != me.thread {
                            cell.several |= LANES;
                        }
                    } else if read.interval == 0 || self.is_past(read) {
                        cell.several = 0;
                    } else if read.block != me.block {
                        cell.several |= BLOCKS;
                    } else {
                        cell.several &= BLOCKS;
                    }
                }
                *read = *me;
            }
            _ => {
                if found.is_none() && self.conflicts_with_reads(me, cell) {
                    // The last reader may be this thread, and an earlier reader another thread.
                    let is_own = cell.read.thread == me.thread && cell.read.interval == me.interval;
                    let thread = if is_own { cell.other } else { cell.read.thread };
                    found = Some((Access { thread, ..cell.read }, Kind::Read));
                }
                if kind == Kind::Write {
                    // A race with an earlier read is also a race with this write.
                    if found.is_none() && cell.read.bytes & !me.bytes == 0 {
                        cell.read = Access::default();
                        cell.several = 0;
                    }
                    cell.write = *me;
                } else {
                    cell.atomic = *me;
                    cell.atomic_of_block = kind == Kind::BlockAtomic;
                }
            }
        }
        found
    }
}
