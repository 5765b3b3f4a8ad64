//! The bytes of a view between its first and its last.

use smallvec::SmallVec;

use crate::base::shape::{Layout, MAX_DIMS};
use crate::base::sort;

/// Evenly spaced runs of bytes that contain a view. Two streams may use different columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stripes {
    run: u64,
    /// The distance between the starts of two runs. 0 for a single run.
    pitch: u64,
}

impl Stripes {
    pub(super) fn whole(bytes: usize) -> Stripes {
        Stripes { run: bytes as u64, pitch: 0 }
    }

    /// The stripes of a view with elements of `size` bytes. A view of another shape counts as a single run.
    pub(super) fn of(view: &Layout, size: usize) -> Stripes {
        if view.is_contiguous() {
            return Stripes::whole(view.reach() * size);
        }
        let dims = view.strides().iter().zip(view.sizes());
        let mut dims: SmallVec<[(&usize, &usize); MAX_DIMS]> = dims.filter(|(_, size)| **size > 1).collect();
        sort::few(&mut dims, |dim| *dim);
        // Dimensions without gaps form a run, ...
        let mut run = 1;
        let mut gaps = dims.iter().skip_while(|(stride, size)| {
            let leaves_no_gap = **stride <= run;
            run += if leaves_no_gap { (**size - 1) * **stride } else { 0 };
            leaves_no_gap
        });
        // ... and the next dimension moves it. All others must move it by a multiple of that.
        match gaps.next() {
            Some((pitch, _)) if gaps.all(|(stride, _)| stride.is_multiple_of(**pitch)) => {
                Stripes { run: (run * size) as u64, pitch: (**pitch * size) as u64 }
            }
            _ => Stripes::whole(view.reach() * size),
        }
    }

    /// The bytes from the runs of `self` to those of `other`, and the common pitch. Without one, the offset varies.
    fn offset_to(&self, start: u64, other: &Stripes, other_start: u64) -> Option<(u64, u64)> {
        let pitch = self.pitch.max(other.pitch);
        let fits = |stripes: &Stripes| stripes.pitch == pitch || stripes.pitch == 0;
        (pitch > 0 && fits(self) && fits(other))
            .then(|| ((other_start % pitch + pitch - start % pitch) % pitch, pitch))
    }

    /// Whether all runs of `other` are in the gaps between the runs of `self`.
    pub(super) fn is_apart_from(&self, start: u64, other: &Stripes, other_start: u64) -> bool {
        let between = |(offset, pitch)| self.run <= offset && offset + other.run <= pitch;
        self.offset_to(start, other, other_start).is_some_and(between)
    }

    /// Whether each run of `other` is within a run of `self`, in the range that both span.
    pub(super) fn covers(&self, start: u64, other: &Stripes, other_start: u64) -> bool {
        let within = |(offset, _)| offset + other.run <= self.run;
        self.pitch == 0 || self.offset_to(start, other, other_start).is_some_and(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripes(run: u64, pitch: u64) -> Stripes {
        Stripes { run, pitch }
    }

    #[test]
    fn views_are_runs_at_equal_distances() {
        let whole = Layout::contiguous(&[3, 4, 10]).unwrap();
        assert_eq!(Stripes::of(&whole, 4), Stripes::whole(480));
        assert_eq!(Stripes::of(&whole.slice(0, 1, 2, 1), 4), Stripes::whole(320), "some rows are one piece");
        assert_eq!(Stripes::of(&whole.transpose(0, 2), 4), Stripes::whole(480), "so is all, in any order");
        assert_eq!(Stripes::of(&whole.slice(2, 3, 2, 1), 4), stripes(8, 40), "some columns");
        assert_eq!(Stripes::of(&whole.slice(1, 1, 2, 1), 4), stripes(80, 160));
        assert_eq!(Stripes::of(&whole.slice(2, 3, 2, 1).transpose(0, 1), 4), stripes(8, 40));
        assert_eq!(Stripes::of(&whole.slice(2, 0, 5, 2), 4), stripes(4, 8), "every other column");
        let odd = whole.slice(2, 0, 4, 3);
        assert_eq!(Stripes::of(&odd, 4), Stripes::whole(odd.reach() * 4), "10 is no multiple of 3");
    }

    #[test]
    fn stripes_are_apart_where_no_byte_is_in_both() {
        let [a, b] = [stripes(8, 40), stripes(16, 40)];
        let apart = |from| a.is_apart_from(100, &b, from);
        let expected = |from: u64| (0..8).all(|byte| (100 + byte + 4000 - from) % 40 >= 16);
        for from in 60..180 {
            assert_eq!(apart(from), expected(from), "{from}");
            assert_eq!(b.is_apart_from(from, &a, 100), expected(from), "{from}");
        }
        let [short, long] = [16, 33].map(Stripes::whole);
        assert!(a.is_apart_from(100, &short, 108) && short.is_apart_from(108, &a, 100));
        assert!(!a.is_apart_from(100, &long, 108) && !a.is_apart_from(100, &stripes(8, 80), 108));
        assert!(b.covers(100, &a, 148) && !b.covers(100, &a, 149) && !a.covers(100, &b, 100));
        assert!(short.covers(0, &a, 0) && b.covers(100, &short, 140) && !a.covers(100, &short, 140));
    }
}
