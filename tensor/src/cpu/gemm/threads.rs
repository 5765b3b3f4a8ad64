//! A product on several threads: C is halved until there is one part per thread. The parts share only memory that they
//! read, so threads wait only at the end. Some of A or B is packed more than once.

use std::sync::Mutex;

use smallvec::SmallVec;

use super::GemmElement;
use super::block::{Matrix, Product};
use crate::cpu::pool::{on_threads, threads_for};
use crate::lock::lock;

/// The number of multiply-adds (100 µs of one core) below which waking a second thread (15 µs) costs too much.
const WORTH_SHARING: usize = 8_000_000;

// SAFETY: a product shares only its reads; nothing else accesses its writes.
unsafe impl<T: Sync> Send for Product<T> {}

/// Computes `product`, on several threads if it is large.
///
/// # Safety
/// Every element of `product` is in bounds, and nothing else accesses its C.
pub(super) unsafe fn run<T: GemmElement>(product: Product<T>) {
    let work = work(&product);
    // Smaller parts would finish before many threads are awake.
    let worth_it = work.div_ceil(WORTH_SHARING / 4).max(2);
    let threads = threads_for(work, WORTH_SHARING).min(worth_it);
    // SAFETY: the caller's promise.
    unsafe { run_on(threads, product) }
}

pub(super) unsafe fn run_on<T: GemmElement>(threads: usize, product: Product<T>) {
    let mut parts = SmallVec::<[Product<T>; 4]>::new();
    cut(threads, product, &mut parts);
    let (count, parts) = (parts.len(), Mutex::new(parts));
    on_threads(count, &|| {
        let next = || lock(&parts).pop();
        while let Some(part) = next() {
            // SAFETY: the caller's promise holds for each part, because the parts share no element of C.
            unsafe { T::run(&part) }
        }
    });
}

fn cut<T>(threads: usize, product: Product<T>, parts: &mut SmallVec<[Product<T>; 4]>) {
    if threads == 1 {
        return parts.push(product);
    }
    let (first, second) = halves(product);
    cut(threads - threads / 2, first, parts);
    cut(threads / 2, second, parts);
}

/// The number of multiply-adds, including those on unused lanes of a vector.
fn work<T>(product: &Product<T>) -> usize {
    product.m.max(4).saturating_mul(product.n.max(16)).saturating_mul(product.k)
}

/// Cuts the longer side of C, between two tiles.
fn halves<T>(product: Product<T>) -> (Product<T>, Product<T>) {
    let Product { m, n, a, b, c, c_stride, .. } = product;
    if m >= n {
        let cut = (m / 2).next_multiple_of(8).min(m);
        let below = Matrix { start: a.start.wrapping_add(cut * a.strides[0]), ..a };
        let c = c.wrapping_add(cut * c_stride);
        (Product { m: cut, ..product }, Product { m: m - cut, a: below, c, ..product })
    } else {
        let cut = (n / 2).next_multiple_of(32).min(n);
        let right = Matrix { start: b.start.wrapping_add(cut * b.strides[1]), ..b };
        let c = c.wrapping_add(cut);
        (Product { n: cut, ..product }, Product { n: n - cut, b: right, c, ..product })
    }
}
