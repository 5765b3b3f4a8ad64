//! Matrix product of f32 and f64 on the CPU, in our own code.
//!
//! The idea is that of every fast matrix product (Goto and van de Geijn, 2008): a processor multiplies far
//! faster than it reads memory, so whatever has been read must be used many times before it is let go.
//! There are three levels of that, from the inside out:
//!
//! * a *tile* of C, a few rows by two vectors, stays in registers while `k` runs ([`kernel`]);
//! * a *panel* of B, as wide as a tile, stays in the first-level cache while rows of A pass it ([`block`]);
//! * a *block* of A stays in the second-level cache while the panels of B pass it ([`block`]).
//!
//! # Which bits come out
//!
//! Each element of C is computed as if it were alone: its `k` products are cut into runs of [`KC`]; a run is
//! a chain of fused multiply-adds in increasing `k`, begun at zero; the runs are added up in order. Neither
//! threads nor shapes, strides or vector widths have a say in that, so a given row times a given column is
//! the same number everywhere. The one exception is a processor without fused multiply-add (WebAssembly, x86
//! before 2013): there the product is rounded before it is added, as the fused operation in software would
//! cost a hundred times as much.

mod block;
mod kernel;

use block::Product;
use std::ops::{Add, Mul};

/// Length of a run over `k`. It is part of the definition of the result, hence the same on every machine. A
/// panel of B of that length and 128 bytes wide fills two thirds of a first-level cache.
pub(crate) const KC: usize = 256;

/// Multiply-adds below which a second thread costs more than it brings: to wake one takes about 15 µs, and
/// this many take one core about 100 µs.
const PARALLEL_WORK: usize = 8_000_000;

/// The element types that [`gemm`] multiplies.
pub(crate) trait GemmElement: sealed::Sealed {}
impl GemmElement for f32 {}
impl GemmElement for f64 {}

mod sealed {
    use super::*;

    pub(crate) trait Sealed:
        bytemuck::Pod + Send + Sync + Add<Output = Self> + Mul<Output = Self>
    {
        /// `a · b + c`, fused where the processor can.
        fn mul_add(a: Self, b: Self, c: Self) -> Self;

        /// Computes a product on this thread with the widest vectors the processor has.
        ///
        /// # Safety
        /// Every element that `product` names is in bounds, and no other thread touches its `c`.
        unsafe fn run(product: &Product<Self>);
    }
}

/// Whether plain code may use fused multiply-add.
const FUSED: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

macro_rules! element {
    ($element:ty, $avx512:ident, $avx2:ident) => {
        impl sealed::Sealed for $element {
            #[inline(always)]
            fn mul_add(a: Self, b: Self, c: Self) -> Self {
                if FUSED { a.mul_add(b, c) } else { a * b + c }
            }

            unsafe fn run(product: &Product<Self>) {
                // SAFETY: the processor was asked for the instructions; the rest is the caller's promise.
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    if is_x86_feature_detected!("avx512f") {
                        return run_avx512::<std::arch::x86_64::$avx512>(product);
                    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        return run_avx2::<std::arch::x86_64::$avx2>(product);
                    }
                    run_portable(product)
                }
            }
        }
    };
}
element!(f32, __m512, __m256);
element!(f64, __m512d, __m256d);

// The tiles are as high as there are registers for: AVX-512 and NEON have 32, AVX2 and SSE2 have 16.

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn run_avx512<V: kernel::Vector>(product: &Product<V::Element>) {
    // SAFETY: the caller's promise.
    unsafe { block::run::<V, 8, 4>(product) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<V: kernel::Vector>(product: &Product<V::Element>) {
    // SAFETY: the caller's promise.
    unsafe { block::run::<V, 6, 3>(product) }
}

unsafe fn run_portable<T: GemmElement>(product: &Product<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        if cfg!(target_arch = "aarch64") {
            block::run::<[T; 4], 8, 4>(product)
        } else {
            block::run::<[T; 4], 4, 2>(product)
        }
    }
}

/// `c = a · b`, or `c += a · b` to accumulate.
///
/// `a` is `m`×`k` and `b` is `k`×`n`, by row and column strides in elements, so a transpose costs nothing
/// to name and a stride of 0 repeats; `c` is `m`×`n`, row-major and contiguous.
///
/// # Panics
/// If a slice is too short for its shape.
pub(crate) fn gemm<T: GemmElement>(
    m: usize,
    n: usize,
    k: usize,
    a: &[T],
    a_strides: [usize; 2],
    b: &[T],
    b_strides: [usize; 2],
    c: &mut [T],
    accumulate: bool,
) {
    assert_eq!(Some(c.len()), m.checked_mul(n), "c is {m}×{n}");
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if !accumulate {
            c.fill(bytemuck::Zeroable::zeroed());
        }
        return;
    }
    assert!(reaches([m, k], a_strides) < a.len(), "a is {m}×{k} with strides {a_strides:?}");
    assert!(reaches([k, n], b_strides) < b.len(), "b is {k}×{n} with strides {b_strides:?}");

    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    let product = if n == 1 {
        // Vectors run along the rows of C. A single column has none to speak of, so it is computed as the
        // single row Cᵀ = Bᵀ·Aᵀ, which lies in memory just the same.
        let (a_strides, b_strides) = ([a_strides[1], a_strides[0]], [b_strides[1], b_strides[0]]);
        Product {
            m: 1,
            n: m,
            k,
            a: b,
            a_strides: b_strides,
            b: a,
            b_strides: a_strides,
            c,
            c_stride: m,
            accumulate,
        }
    } else {
        Product { m, n, k, a, a_strides, b, b_strides, c, c_stride: n, accumulate }
    };
    // SAFETY: the asserts above.
    unsafe { product.run() }
}

/// Offset of the last element of a matrix (at least one by one).
fn reaches(shape: [usize; 2], strides: [usize; 2]) -> usize {
    let along = |axis: usize| (shape[axis] - 1).checked_mul(strides[axis]);
    along(0).zip(along(1)).and_then(|(rows, columns)| rows.checked_add(columns)).expect("offset overflows")
}

// SAFETY: a product may move to another thread: what it reads is shared and what it writes is its own.
unsafe impl<T: Sync> Send for Product<T> {}

impl<T: GemmElement> Product<T> {
    /// Computes the product, on several threads if it is large.
    ///
    /// # Safety
    /// Every element it names is in bounds, and nobody else touches its `c`.
    unsafe fn run(self) {
        #[cfg(not(target_family = "wasm"))]
        if self.work() >= PARALLEL_WORK {
            // SAFETY: the caller's promise.
            return unsafe { self.run_on(rayon::current_num_threads()) };
        }
        // SAFETY: the caller's promise.
        unsafe { T::run(&self) }
    }

    /// Multiply-adds, counting those spent on the unused lanes of a vector.
    fn work(&self) -> usize {
        self.m.max(4).saturating_mul(self.n.max(16)).saturating_mul(self.k)
    }

    /// Halves C, and each half again, until there is a part for each thread or parts get too small.
    #[cfg(not(target_family = "wasm"))]
    unsafe fn run_on(self, threads: usize) {
        if threads == 1 || self.work() < PARALLEL_WORK / 2 {
            // SAFETY: the caller's promise.
            return unsafe { T::run(&self) };
        }
        let (here, there) = self.halve();
        // Unlike `join`, this lets a thread from outside the pool do its half itself, at once.
        rayon::in_place_scope(|scope| {
            // SAFETY: the halves are parts of this product, and have no element of C in common.
            scope.spawn(move |_| unsafe { there.run_on(threads / 2) });
            unsafe { here.run_on(threads - threads / 2) };
        })
    }

    /// Cuts the longer side of C, at a multiple of every tile width.
    fn halve(self) -> (Self, Self) {
        let Product { m, n, a, b, c, .. } = self;
        if m >= n {
            let half = m.div_ceil(2).next_multiple_of(8).min(m);
            let (a, c) = (a.wrapping_add(half * self.a_strides[0]), c.wrapping_add(half * self.c_stride));
            (Product { m: half, ..self }, Product { m: m - half, a, c, ..self })
        } else {
            let half = n.div_ceil(2).next_multiple_of(32).min(n);
            let (b, c) = (b.wrapping_add(half * self.b_strides[1]), c.wrapping_add(half));
            (Product { n: half, ..self }, Product { n: n - half, b, c, ..self })
        }
    }
}
