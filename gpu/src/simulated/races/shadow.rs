//! The shadow of the memory: the last uses of each byte.
//!
//! Memory is divided into pieces with the same uses. A use is forgotten if it comes before a later one and can race
//! with nothing that the later one cannot race with: a read before another use, or a write before another write.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::clock::VectorClock;
use super::stripes::Stripes;
use crate::contract::driver::OpId;
use crate::host::scope::Place;

#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) actor: usize,
    pub(super) op: OpId,
    pub(super) write: bool,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) stripes: Stripes,
    pub(super) site: Site,
    /// Whether the memory now belongs to another tensor.
    pub(super) is_past: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) operation: &'static str,
    pub(super) place: Option<Place>,
}

impl Use {
    /// Whether it comes before all later work.
    fn is_before(&self, before: &VectorClock) -> bool {
        self.op < before.of(self.actor)
    }

    fn is_apart_from(&self, other: &Use) -> bool {
        self.stripes.is_apart_from(self.start, &other.stripes, other.start)
    }

    fn covers(&self, other: &Use) -> bool {
        self.stripes.covers(self.start, &other.stripes, other.start)
    }
}

/// The maximum number of uses of a piece, each with different stripes. Earlier ones are forgotten.
const MOST_USES: usize = 32;

#[derive(Default)]
pub(super) struct Shadow {
    /// By start address, without overlap.
    pieces: BTreeMap<u64, ShadowRange>,
}

struct ShadowRange {
    end: u64,
    uses: SmallVec<[Use; 2]>,
}

impl Shadow {
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Adds a use, and calls `race` for every earlier use that it races with. `before` is the work before it.
    pub(super) fn add(&mut self, new: Use, before: &VectorClock, mut race: impl FnMut(&Use)) {
        // Most memory is used in the same pieces again and again.
        if let Some(piece) = self.pieces.get_mut(&new.start)
            && piece.end == new.end
        {
            return piece.add(new, before, race);
        }
        self.cut(new.start);
        self.cut(new.end);
        let mut gaps = SmallVec::<[(u64, u64); 4]>::new();
        let mut covered = new.start;
        for (start, piece) in self.pieces.range_mut(new.start..new.end) {
            if covered < *start {
                gaps.push((covered, *start));
            }
            piece.add(new, before, &mut race);
            covered = piece.end;
        }
        if covered < new.end {
            gaps.push((covered, new.end));
        }
        for (start, end) in gaps {
            self.pieces.insert(start, ShadowRange { end, uses: SmallVec::from_slice(&[new]) });
        }
    }

    pub(super) fn uses(&mut self, start: u64, end: u64) -> impl Iterator<Item = &mut Use> {
        self.cut(start);
        self.cut(end);
        self.pieces.range_mut(start..end.max(start)).flat_map(|(_, piece)| &mut piece.uses)
    }

    /// Forgets a range without an owner.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        self.cut(start);
        self.cut(end);
        while let Some(piece) = self.pieces.range(start..end.max(start)).next().map(|(piece, _)| *piece) {
            self.pieces.remove(&piece);
        }
    }

    /// Forgets uses that come before all later work, and uses older than `oldest`.
    pub(super) fn prune(&mut self, before: &VectorClock, oldest: OpId) {
        self.pieces.retain(|_, piece| {
            piece.uses.retain(|used| !used.is_before(before) && used.op >= oldest);
            !piece.uses.is_empty()
        });
    }

    fn cut(&mut self, at: u64) {
        if let Some((_, piece)) = self.pieces.range_mut(..at).next_back()
            && piece.end > at
        {
            let right = ShadowRange { end: piece.end, uses: piece.uses.clone() };
            piece.end = at;
            self.pieces.insert(at, right);
        }
    }
}

impl ShadowRange {
    fn add(&mut self, new: Use, before: &VectorClock, mut race: impl FnMut(&Use)) {
        let crowded = self.uses.len() >= MOST_USES;
        self.uses.retain(|used| {
            let is_before = used.actor == new.actor || used.is_before(before);
            if !is_before && (used.write || new.write) && !used.is_apart_from(&new) {
                race(used);
            }
            !is_before || (used.write && !new.write) || !(crowded || new.covers(used))
        });
        self.uses.push(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(actor: usize, op: OpId, write: bool, start: u64, end: u64) -> Use {
        let site = Site { operation: "test", place: None };
        let stripes = Stripes::whole((end - start) as usize);
        Use { actor, op, write, start, end, stripes, site, is_past: false }
    }

    fn racing(shadow: &mut Shadow, new: Use, before: &VectorClock) -> Vec<OpId> {
        let mut found = Vec::new();
        shadow.add(new, before, |used| found.push(used.op));
        found
    }

    #[test]
    fn uses_meet_where_their_ranges_do() {
        let (mut shadow, nothing) = (Shadow::default(), VectorClock::default());
        assert!(racing(&mut shadow, used(0, 0, true, 0, 10), &nothing).is_empty());
        assert!(racing(&mut shadow, used(0, 1, true, 20, 30), &nothing).is_empty());
        assert!(racing(&mut shadow, used(1, 2, false, 10, 20), &nothing).is_empty());
        assert_eq!(racing(&mut shadow, used(1, 3, false, 5, 25), &nothing), [0, 1]);
        assert_eq!(racing(&mut shadow, used(2, 4, false, 0, 5), &nothing), [0]);
        assert_eq!(racing(&mut shadow, used(2, 5, true, 19, 26), &nothing), [3, 1, 3, 1]);
    }

    #[test]
    fn what_comes_before_is_no_race_and_is_forgotten_behind_a_write() {
        let mut shadow = Shadow::default();
        let mut before = VectorClock::default();
        racing(&mut shadow, used(0, 0, true, 0, 8), &before);
        racing(&mut shadow, used(1, 1, false, 0, 8), &before);
        before.advance(0, 1);
        assert_eq!(racing(&mut shadow, used(2, 2, true, 0, 8), &before), [1]);
        assert_eq!(shadow.uses(0, 8).map(|used| used.op).collect::<Vec<_>>(), [1, 2]);
        before.advance(1, 2);
        shadow.prune(&before, 0);
        assert_eq!(shadow.uses(2, 4).map(|used| used.op).collect::<Vec<_>>(), [2]);
        shadow.forget(2, 4);
        assert_eq!((shadow.len(), shadow.uses(0, 8).count()), (2, 2));
        shadow.prune(&before, 3);
        assert_eq!(shadow.len(), 0);
    }
}
