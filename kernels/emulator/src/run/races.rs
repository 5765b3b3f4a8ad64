//! Races, by happens-before: two accesses to a word, one of them a write, that nothing orders.
//!
//! Ordered are accesses of the same thread; of the same block with a barrier between them; of the same warp with a
//! warp-synchronous operation between them; of launches of which one waits for the other; and atomics among themselves, as far
//! as their scope reaches. Of each word the last write, the last atomic and the last read are kept; of reads also
//! whether several lanes, warps or blocks have read since, so that a write knows of all of them. Accesses to different
//! bytes of a word do not race; of those smaller than a word, the last one of the word is remembered, whatever its bytes.

use std::collections::HashMap;

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Access {
    pub block: u32,
    /// The time between two barriers of a block has a number of its own, over all blocks and launches; 0: never.
    pub interval: u32,
    /// The thread in its block, and how many warp-synchronous operations it had since the barrier.
    pub thread: u16,
    pub turn: u16,
    pub pc: u32,
    /// Which bytes of the word.
    pub bytes: u8,
}

#[derive(Clone, Copy, Default)]
pub struct Cell {
    pub write: Access,
    pub atomic: Access,
    pub read: Access,
    several: u8,
    /// Another thread that has read, where `several` says so.
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

/// What a launch knows of those before it.
#[derive(Clone, Default)]
pub struct Order {
    /// Intervals of this launch begin here.
    pub start: u32,
    /// Launches that may run at the same time: from, to.
    pub concurrent: Vec<(u32, u32)>,
    /// The smallest of those; `start` if there is none.
    pub unordered_from: u32,
    /// What a block knows of others by fences and atomics: the last interval that it has seen of each.
    pub seen: HashMap<u32, HashMap<u32, u32>>,
    /// What was published at an atomic's address.
    pub published: HashMap<u64, HashMap<u32, u32>>,
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

    #[cold]
    fn has_seen(&self, me: &Access, other: &Access) -> bool {
        let seen = self.seen.get(&me.block).and_then(|seen| seen.get(&other.block));
        seen.is_some_and(|until| *until >= other.interval)
    }

    #[inline(always)]
    fn conflicts(&self, me: &Access, other: &Access) -> bool {
        if me.bytes & other.bytes == 0 {
            return false;
        }
        if other.interval == me.interval {
            return other.thread != me.thread
                && (other.thread / 32 != me.thread / 32 || other.turn == me.turn);
        }
        if other.interval == 0 || self.is_past(other) {
            return false;
        }
        if other.interval < self.start {
            return true;
        }
        other.block != me.block && !self.has_seen(me, other)
    }

    /// Whether a write races with the reads since.
    #[inline(always)]
    fn conflicts_with_reads(&self, me: &Access, cell: &Cell) -> bool {
        let read = &cell.read;
        if read.interval == 0 || self.is_past(read) || read.bytes & me.bytes == 0 {
            return false;
        }
        if read.interval < self.start || cell.several & BLOCKS != 0 && !self.has_seen(me, read) {
            return true;
        }
        if read.block != me.block {
            return !self.has_seen(me, read);
        }
        if read.interval != me.interval {
            return false;
        }
        if cell.several & WARPS != 0 || read.thread / 32 != me.thread / 32 {
            return true;
        }
        read.turn == me.turn && (read.thread != me.thread || cell.several & LANES != 0)
    }

    /// Notes an access. The earlier one that it races with, and what that was.
    #[inline(always)]
    pub fn note(&self, cell: &mut Cell, me: &Access, kind: Kind) -> Option<(Access, Kind)> {
        // Another lane of the warp has just read the same, and was looked at.
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
                if read.bytes & me.bytes == 0 {
                    // Of other bytes: only the last ones are kept.
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
                    // The last reader may be this thread itself, and an earlier one another.
                    let is_own = cell.read.thread == me.thread && cell.read.interval == me.interval;
                    let thread = if is_own { cell.other } else { cell.read.thread };
                    found = Some((Access { thread, ..cell.read }, Kind::Read));
                }
                if kind == Kind::Write {
                    cell.write = *me;
                } else {
                    cell.atomic = *me;
                    cell.atomic_of_block = kind == Kind::BlockAtomic;
                }
            }
        }
        found
    }

    /// A block that has fenced publishes at an atomic what it has done, and sees what others have published there.
    pub fn exchange(&mut self, address: u64, block: u32, interval: u32, has_fenced: bool) {
        let published = self.published.entry(address).or_default();
        let seen = self.seen.entry(block).or_default();
        for (other, until) in published.iter() {
            let known = seen.entry(*other).or_insert(0);
            *known = (*known).max(*until);
        }
        if has_fenced {
            for (other, until) in seen.iter() {
                let known = published.entry(*other).or_insert(0);
                *known = (*known).max(*until);
            }
            published.insert(block, interval);
        }
    }
}
