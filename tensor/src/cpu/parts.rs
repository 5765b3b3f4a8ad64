use super::parallel::for_pieces;
use super::pool::threads_for;
use crate::kernel::Cost;

/// Calls `work(number, part of a, part of b)` for each of `parts` equal parts. `elements` is the total work.
pub(crate) fn for_parts_of_two<A: Send, B: Send>(
    a: &mut [A],
    b: &mut [B],
    parts: usize,
    elements: usize,
    work: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) {
    let (of_a, of_b) = (a.len() / parts.max(1), b.len() / parts.max(1));
    for_shares(a, b, parts, elements, &|first, a, b| {
        let both = a.chunks_mut(of_a).zip(b.chunks_mut(of_b));
        both.enumerate().for_each(|(i, (a, b))| work(first + i, a, b));
    });
}

/// Calls `work(number of the first part, parts of a, parts of b)` for each thread's parts, so it can reuse its buffers.
pub(crate) fn for_shares<A: Send, B: Send>(
    a: &mut [A],
    b: &mut [B],
    parts: usize,
    elements: usize,
    work: &(dyn Fn(usize, &mut [A], &mut [B]) + Sync),
) {
    if a.is_empty() || b.is_empty() {
        return;
    }
    let threads = threads_for(elements, Cost::Cheap.smallest_parallel());
    if threads == 1 {
        return work(0, a, b);
    }
    let share = parts.div_ceil(threads);
    let (of_a, of_b) = (a.len() / parts * share, b.len() / parts * share);
    let mut shares: Vec<(&mut [A], &mut [B])> = a.chunks_mut(of_a).zip(b.chunks_mut(of_b)).collect();
    for_pieces(threads, &mut shares, 1, &|i, shares| {
        shares.iter_mut().for_each(|(a, b)| work(i * share, a, b));
    });
}

pub(crate) fn for_parts<T: Send>(
    out: &mut [T],
    parts: usize,
    elements: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let nothing = &mut vec![(); parts][..]; // Takes no memory.
    for_parts_of_two(out, nothing, parts, elements, |part, out, _| work(part, out));
}

pub(crate) fn part<T>(all: &[T], parts: usize, i: usize) -> &[T] {
    let length = all.len() / parts;
    &all[i * length..(i + 1) * length]
}
