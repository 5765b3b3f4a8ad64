//! Happens-before by fences and atomics. A fence and then an atomic release all that the thread has done and acquired
//! so far; an atomic at the same address acquires it. So a lock orders the accesses under it, and the last block of a
//! grid sees the results of the others.
//!
//! Each address has a list of releases that only grows. A thread stores the length of the list at its last acquire,
//! which costs the same for a million threads as for two.

use std::collections::HashMap;

use super::races::Access;

type ThreadId = (u32, u16);
/// For each address, the length of its list at the last acquire.
type Known = HashMap<u64, u32>;

const MOST_KNOWN: usize = 4096;

/// A release by a thread. It covers the thread's work before its fence, its warp's work before the last `__syncwarp`,
/// and its block's work before the last barrier.
#[derive(Clone)]
struct Release {
    thread: u16,
    interval: u32,
    turn: u16,
    step: u16,
    /// Whether the fence and the atomic both reach other blocks.
    is_wide: bool,
}

/// The releases at an address.
#[derive(Default)]
struct Handed {
    count: u32,
    /// The releases of each block, each with the length of the list at the time.
    by_block: HashMap<u32, Vec<(u32, Release)>>,
    /// The lengths that releasing threads had acquired of other lists: pairs of this list's length at the time, and the
    /// other's.
    known: HashMap<u64, Vec<(u32, u32)>>,
}

#[derive(Default)]
pub struct Clocks {
    handed: HashMap<u64, Handed>,
    threads: HashMap<ThreadId, Known>,
    /// The common knowledge of a block's threads since a barrier.
    blocks: HashMap<u32, Known>,
    fenced: HashMap<ThreadId, (Release, Known)>,
}

impl Clocks {
    /// Handles a fence. The thread's work up to its current step, and its knowledge, can be released from here on.
    pub fn fence(&mut self, me: &Access, is_wide: bool) {
        let release =
            Release { thread: me.thread, interval: me.interval, turn: me.turn, step: me.step, is_wide };
        let known = self.known(me);
        self.fenced.insert((me.block, me.thread), (release, known));
    }

    /// Handles an atomic: acquires the releases at the address, and releases the fenced work of the thread.
    pub fn atomic(&mut self, me: &Access, address: u64, is_wide: bool) {
        let id = (me.block, me.thread);
        let released = self.fenced.get(&id).cloned();
        let count = self.handed.get(&address).map_or(0, |handed| handed.count);
        if count > 0 {
            let known = self.threads.entry(id).or_default();
            if known.len() < MOST_KNOWN || known.contains_key(&address) {
                known.insert(address, count);
            }
        }
        let Some((release, known)) = released else { return };
        let handed = self.handed.entry(address).or_default();
        handed.count += 1;
        let count = handed.count;
        let release = Release { is_wide: release.is_wide && is_wide, ..release };
        handed.by_block.entry(me.block).or_default().push((count, release));
        for (other, length) in known {
            let list = handed.known.entry(other).or_default();
            let most = list.last().map_or(0, |(_, most)| *most);
            if length > most {
                list.push((count, length));
            }
        }
    }

    /// Merges the knowledge of lanes that synchronise.
    pub fn meet(&mut self, block: u32, threads: impl Iterator<Item = u16> + Clone) {
        let mut all = Known::new();
        for thread in threads.clone() {
            join(&mut all, self.threads.get(&(block, thread)));
        }
        if !all.is_empty() {
            for thread in threads {
                self.threads.insert((block, thread), all.clone());
            }
        }
    }

    /// Merges the knowledge of a block's threads at a barrier.
    pub fn barrier(&mut self, block: u32, threads: u32) {
        let mut all = self.blocks.remove(&block).unwrap_or_default();
        for thread in 0..threads {
            join(&mut all, self.threads.remove(&(block, thread as u16)).as_ref());
        }
        self.blocks.insert(block, all);
    }

    fn known(&self, me: &Access) -> Known {
        let mut known = self.threads.get(&(me.block, me.thread)).cloned().unwrap_or_default();
        join(&mut known, self.blocks.get(&me.block));
        known
    }

    /// Whether an earlier access happens before all later work of a thread.
    #[cold]
    pub fn covers(&self, me: &Access, other: &Access) -> bool {
        let mut known = self.known(me);
        let mut open: Vec<u64> = known.keys().copied().collect();
        while let Some(address) = open.pop() {
            let length = known[&address];
            let Some(handed) = self.handed.get(&address) else { continue };
            let of_block = handed.by_block.get(&other.block).into_iter().flatten().rev();
            let mut seen = of_block.filter(|(at, _)| *at <= length).map(|(_, release)| release);
            if seen.any(|release| (release.is_wide || me.block == other.block) && release.covers(other)) {
                return true;
            }
            for (next, list) in &handed.known {
                let Some((_, most)) = list.iter().rev().find(|(at, _)| *at <= length) else { continue };
                if known.get(next).is_none_or(|known| known < most) {
                    known.insert(*next, *most);
                    open.push(*next);
                }
            }
        }
        false
    }
}

impl Release {
    fn covers(&self, other: &Access) -> bool {
        if other.interval != self.interval {
            return other.interval < self.interval;
        }
        // Saturated step counts count as past: a missed race is better than a false one.
        other.thread == self.thread && (other.step <= self.step || other.step == u16::MAX)
            || other.thread / 32 == self.thread / 32 && other.turn < self.turn
    }
}

fn join(all: &mut Known, other: Option<&Known>) {
    for (address, length) in other.into_iter().flatten() {
        let known = all.entry(*address).or_insert(0);
        *known = (*known).max(*length);
    }
}
