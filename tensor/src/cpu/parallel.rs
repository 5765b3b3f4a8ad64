//! Threads that share the pieces of an output. The work on a piece is `dyn`, so this is compiled for each element type,
//! not for each kernel. The assignment of pieces to threads does not affect the result.

use std::sync::Mutex;

use super::pool::{on_threads, threads_for};
use crate::kernel::Cost;
use crate::lock::lock;

/// Calls `work(number, piece)` for each piece of `size` elements of `out`, on `threads` threads. The last may be
/// shorter.
pub(crate) fn for_pieces<T: Send>(
    threads: usize,
    out: &mut [T],
    size: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let size = size.max(1);
    let pieces = out.len().div_ceil(size);
    if threads == 1 || pieces < 2 {
        return out.chunks_mut(size).enumerate().for_each(|(number, piece)| work(number, piece));
    }
    // Other threads take the pieces that a delayed thread has not begun.
    let at_a_time = (pieces / (8 * threads)).max(1);
    let next = Mutex::new(out.chunks_mut(at_a_time * size).enumerate());
    let take = || lock(&next).next();
    let help = || {
        while let Some((turn, share)) = take() {
            for (i, piece) in share.chunks_mut(size).enumerate() {
                work(turn * at_a_time + i, piece);
            }
        }
    };
    on_threads(threads, &help);
}

/// Calls `run` with the number and the elements of each row of `out`, on several threads if that is faster.
pub(crate) fn for_rows<T: Send>(out: &mut [T], length: usize, run: impl Fn(usize, &mut [T]) + Sync) {
    for_pieces(threads_for(out.len(), Cost::Costly.smallest_parallel()), out, length, &run);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::pool::threads;

    #[test]
    fn every_piece_is_made_once_with_its_number() {
        for length in [0, 1, 2, 7, 64, 1000, 1001] {
            for size in [1, 2, 3, 64, 1000, 5000] {
                let mut out = vec![(0, 0); length];
                for_pieces(threads(), &mut out, size, &|number, piece: &mut [(usize, usize)]| {
                    piece.iter_mut().for_each(|(times, of)| (*times, *of) = (*times + 1, number));
                });
                let expected: Vec<_> = (0..length).map(|i| (1, i / size)).collect();
                assert_eq!(out, expected, "{length} in pieces of {size}");
            }
        }
    }
}
