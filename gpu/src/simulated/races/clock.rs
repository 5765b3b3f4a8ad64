//! Vector clocks, which record the order of work.

use smallvec::SmallVec;

use crate::contract::driver::OpId;

/// For each actor (a stream with work), the work that comes before something: all work with a smaller number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VectorClock(SmallVec<[OpId; 4]>);

impl VectorClock {
    pub(super) fn of(&self, actor: usize) -> OpId {
        self.0.get(actor).copied().unwrap_or(0)
    }

    /// Adds an actor's work before number `to`.
    pub(super) fn advance(&mut self, actor: usize, to: OpId) {
        if self.0.len() <= actor {
            self.0.resize(actor + 1, 0);
        }
        self.0[actor] = self.0[actor].max(to);
    }

    /// Adds the work of another clock. Returns whether any of it is new.
    pub(super) fn join(&mut self, other: &VectorClock) -> bool {
        let mut is_new = false;
        for (actor, to) in other.0.iter().enumerate() {
            if self.of(actor) < *to {
                self.advance(actor, *to);
                is_new = true;
            }
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_takes_the_later_of_each_and_says_whether_it_knew() {
        let (mut a, mut b) = (VectorClock::default(), VectorClock::default());
        a.advance(0, 5);
        b.advance(0, 3);
        b.advance(6, 9);
        assert!(a.join(&b) && !a.join(&b));
        assert_eq!([a.of(0), a.of(1), a.of(6), a.of(7)], [5, 0, 9, 0]);
        assert!(b.join(&a) && a == b);
    }
}
