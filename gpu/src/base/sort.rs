//! Sorting that is compiled once for all types.
//!
//! The standard library's sort is compiled for each type and order, at 6 KB each: a twentieth of a page's download.
//! Here one function sorts indices through a `dyn` comparison, a few times slower, for short or rare sorts.

use std::cmp::Ordering;

/// Sorts by `order`, stably.
///
/// ```
/// let mut words = ["to", "the", "device", "at", "once"];
/// todevice_gpu::base::sort::by(&mut words, |a, b| b.len().cmp(&a.len()));
/// assert_eq!(words, ["device", "once", "the", "to", "at"]);
/// ```
pub fn by<T>(values: &mut [T], order: impl Fn(&T, &T) -> Ordering) {
    let mut from = places(values.len(), &|a, b| order(&values[a], &values[b]));
    // Fill each position with its value, along the cycles of the permutation.
    for start in 0..values.len() {
        let mut at = start;
        loop {
            let next = std::mem::replace(&mut from[at], at);
            if next == start {
                break;
            }
            values.swap(at, next);
            at = next;
        }
    }
}

pub fn by_key<T, K: Ord>(values: &mut [T], key: impl Fn(&T) -> K) {
    by(values, |a, b| key(a).cmp(&key(b)));
}

/// Sorts a few values stably by swapping neighbors. It allocates nothing, so a launch can afford it.
pub fn few<T, K: Ord>(values: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..values.len() {
        for at in (1..=end).rev() {
            if key(&values[at - 1]) <= key(&values[at]) {
                break;
            }
            values.swap(at - 1, at);
        }
    }
}

fn places(count: usize, order: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|a, b| order(*a, *b));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_as_the_library_does() {
        for count in 0..60 {
            for kinds in [1, 2, 5, 100] {
                let values: Vec<(usize, usize)> = (0..count).map(|i| (i * 7919 % 101 % kinds, i)).collect();
                let [mut ours, mut few_of_ours, mut theirs] = [values.clone(), values.clone(), values];
                by_key(&mut ours, |value| value.0);
                few(&mut few_of_ours, |value| value.0);
                theirs.sort_by_key(|value| value.0);
                assert_eq!(ours, theirs);
                assert_eq!(few_of_ours, theirs);
            }
        }
    }
}
