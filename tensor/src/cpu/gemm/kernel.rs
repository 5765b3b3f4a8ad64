//! The innermost part of a matrix product: vectors, and the tile of C in registers. With plain arrays, the compiler's
//! vectoriser makes [`tile`] thirty times slower at some sizes. Hence the explicit vectors from `std::arch`.

use super::GemmElement;
use super::block::Matrix;
use bytemuck::Zeroable;

/// A vector register and its operations.
///
/// # Safety
/// The methods for an instruction set may only run on a processor that has it, and must be inlined into a function that
/// enables it (hence `inline(always)` from there down to here). Pointers must be valid for the elements read or
/// written, but need not be aligned.
pub(crate) unsafe trait Vector: Copy {
    type Element: GemmElement;
    const LANES: usize;
    /// The side of the square for [`Vector::transpose`].
    const SQUARE: usize;

    unsafe fn splat(value: Self::Element) -> Self;
    unsafe fn load(from: *const Self::Element) -> Self;
    unsafe fn store(self, to: *mut Self::Element);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// Writes the columns of a square at `from` as the rows of one at `to`. The strides are between rows.
    unsafe fn transpose(
        from: *const Self::Element,
        from_stride: usize,
        to: *mut Self::Element,
        to_stride: usize,
    );
}

/// The destination of a tile of C: first element, stride between rows, and whether the tile is added to the old values.
#[derive(Clone, Copy)]
pub(super) struct Tile<T> {
    pub start: *mut T,
    pub stride: usize,
    pub add: bool,
}

/// Computes a tile of `ROWS` rows by `VECTORS` vectors from a strip of A and a strip of B.
///
/// Each of the `depth` steps multiplies one column of A with one row of B. With 8 rows and 2 vectors, 10 reads feed 16
/// vector multiply-adds. All sums stay in registers. At least 8 sums are needed to keep a processor busy: it begins two
/// multiply-adds per cycle, and each waits four cycles for the previous one on the same sum.
///
/// # Safety
/// As for [`Vector`]. A is valid for `ROWS` by `depth`, B for `depth` by `VECTORS` vectors with contiguous rows, C for
/// `ROWS` by `VECTORS` vectors that nothing else accesses.
// Called instead of inlined in a browser page (see `cpu/simd.rs`).
#[cfg_attr(not(target_family = "wasm"), inline(always))]
#[cfg_attr(target_family = "wasm", inline(never))]
pub(super) unsafe fn tile<V: Vector, const ROWS: usize, const VECTORS: usize>(
    depth: usize,
    a: Matrix<V::Element>,
    b: Matrix<V::Element>,
    c: Tile<V::Element>,
) {
    // SAFETY: every address is within the ranges that the caller guarantees.
    unsafe {
        let place = |i: usize, v: usize| c.start.add(i * c.stride + v * V::LANES);
        // C is needed only at the end.
        for i in 0..ROWS {
            for v in 0..VECTORS {
                prefetch(place(i, v));
            }
        }
        let zero = V::splat(V::Element::zeroed());
        let mut sums = [[zero; VECTORS]; ROWS];
        for p in 0..depth {
            let mut b_row = [zero; VECTORS];
            for (v, vector) in b_row.iter_mut().enumerate() {
                *vector = V::load(b.start.add(p * b.strides[0] + v * V::LANES));
            }
            for (i, row) in sums.iter_mut().enumerate() {
                let factor = V::splat(*a.at(i, p).start);
                for (sum, vector) in row.iter_mut().zip(b_row) {
                    *sum = factor.mul_add(vector, *sum);
                }
            }
        }
        // Read before the first write, because a write delays reads that are 4096 bytes apart, as rows often are.
        if c.add {
            for (i, row) in sums.iter_mut().enumerate() {
                for (v, sum) in row.iter_mut().enumerate() {
                    *sum = V::load(place(i, v)).add(*sum);
                }
            }
        }
        for (i, row) in sums.iter().enumerate() {
            for (v, sum) in row.iter().enumerate() {
                sum.store(place(i, v));
            }
        }
    }
}

/// Prefetches a cache line. The address need not be in bounds.
#[inline(always)]
pub(super) unsafe fn prefetch<T>(_line: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch affects nothing but speed.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(_line.cast())
    }
}

/// The vectors of processors without an implementation below. WebAssembly's hold 16 bytes. Elsewhere the compiler maps
/// arrays to registers: NEON on ARM, SSE2 on old x86.
#[cfg(target_feature = "simd128")]
pub(crate) use wasm::{Doubles, Floats};
#[cfg(not(target_feature = "simd128"))]
pub(crate) type Floats = [f32; 4];
#[cfg(not(target_feature = "simd128"))]
pub(crate) type Doubles = [f64; 4];

// SAFETY: needs no instruction set.
unsafe impl<T: GemmElement> Vector for [T; 4] {
    type Element = T;
    const LANES: usize = 4;
    const SQUARE: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        [value; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller guarantees four elements.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller guarantees four elements.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + other[lane])
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
        std::array::from_fn(|lane| T::mul_add(self[lane], factor[lane], addend[lane]))
    }

    #[inline(always)]
    unsafe fn transpose(from: *const T, from_stride: usize, to: *mut T, to_stride: usize) {
        // SAFETY: the caller guarantees a square at either end.
        unsafe {
            for i in 0..4 {
                for j in 0..4 {
                    *to.add(j * to_stride + i) = *from.add(i * from_stride + j);
                }
            }
        }
    }
}

#[cfg(target_feature = "simd128")]
mod wasm {
    use std::arch::wasm32::*;

    macro_rules! vector {
        ($vector:ident: $lanes:literal of $element:ty, $splat:ident $add:ident $mul:ident, $transpose:ident) => {
            #[derive(Clone, Copy)]
            pub(crate) struct $vector(v128);

            // SAFETY: without the instructions, the module would not have been loaded.
            unsafe impl super::Vector for $vector {
                type Element = $element;
                const LANES: usize = $lanes;
                const SQUARE: usize = $lanes;

                #[inline(always)]
                unsafe fn splat(value: $element) -> Self {
                    $vector($splat(value))
                }

                #[inline(always)]
                unsafe fn load(from: *const $element) -> Self {
                    // SAFETY: the caller guarantees 16 bytes.
                    $vector(unsafe { v128_load(from.cast()) })
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut $element) {
                    // SAFETY: the caller guarantees 16 bytes.
                    unsafe { v128_store(to.cast(), self.0) }
                }

                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    $vector($add(self.0, other.0))
                }

                #[inline(always)]
                unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
                    $vector($add($mul(self.0, factor.0), addend.0))
                }

                #[inline(always)]
                unsafe fn transpose(
                    from: *const $element,
                    from_stride: usize,
                    to: *mut $element,
                    to_stride: usize,
                ) {
                    // SAFETY: the caller guarantees a square at either end.
                    unsafe { $transpose(from, from_stride, to, to_stride) }
                }
            }
        };
    }

    vector!(Floats: 4 of f32, f32x4_splat f32x4_add f32x4_mul, transpose_f32);
    vector!(Doubles: 2 of f64, f64x2_splat f64x2_add f64x2_mul, transpose_f64);

    #[inline(always)]
    unsafe fn transpose_f32(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the caller guarantees a 4×4 square at either end.
        unsafe {
            let row = |i: usize| v128_load(from.add(i * from_stride).cast());
            let rows = [row(0), row(1), row(2), row(3)];
            let low = [
                i32x4_shuffle::<0, 4, 1, 5>(rows[0], rows[1]),
                i32x4_shuffle::<0, 4, 1, 5>(rows[2], rows[3]),
            ];
            let high = [
                i32x4_shuffle::<2, 6, 3, 7>(rows[0], rows[1]),
                i32x4_shuffle::<2, 6, 3, 7>(rows[2], rows[3]),
            ];
            v128_store(to.cast(), i64x2_shuffle::<0, 2>(low[0], low[1]));
            v128_store(to.add(to_stride).cast(), i64x2_shuffle::<1, 3>(low[0], low[1]));
            v128_store(to.add(2 * to_stride).cast(), i64x2_shuffle::<0, 2>(high[0], high[1]));
            v128_store(to.add(3 * to_stride).cast(), i64x2_shuffle::<1, 3>(high[0], high[1]));
        }
    }

    #[inline(always)]
    unsafe fn transpose_f64(from: *const f64, from_stride: usize, to: *mut f64, to_stride: usize) {
        // SAFETY: the caller guarantees a 2×2 square at either end.
        unsafe {
            let rows = [v128_load(from.cast()), v128_load(from.add(from_stride).cast())];
            v128_store(to.cast(), i64x2_shuffle::<0, 2>(rows[0], rows[1]));
            v128_store(to.add(to_stride).cast(), i64x2_shuffle::<1, 3>(rows[0], rows[1]));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($vector:ty: $lanes:literal of $element:ty, $splat:ident $load:ident $store:ident $add:ident
         $mul_add:ident,
         $transpose:ident of $square:literal) => {
            // SAFETY: each method is the instruction it is named after, with the requirements that the trait states.
            unsafe impl super::Vector for $vector {
                type Element = $element;
                const LANES: usize = $lanes;
                const SQUARE: usize = $square;

                #[inline(always)]
                unsafe fn splat(value: $element) -> Self {
                    // SAFETY: see above.
                    unsafe { $splat(value) }
                }

                #[inline(always)]
                unsafe fn load(from: *const $element) -> Self {
                    // SAFETY: see above.
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut $element) {
                    // SAFETY: see above.
                    unsafe { $store(to, self) }
                }

                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { $add(self, other) }
                }

                #[inline(always)]
                unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
                    // SAFETY: see above.
                    unsafe { $mul_add(self, factor, addend) }
                }

                #[inline(always)]
                unsafe fn transpose(
                    from: *const $element,
                    from_stride: usize,
                    to: *mut $element,
                    to_stride: usize,
                ) {
                    // SAFETY: see above.
                    unsafe { $transpose(from, from_stride, to, to_stride) }
                }
            }
        };
    }

    vector!(__m512: 16 of f32, _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_fmadd_ps,
        transpose_f32 of 8);
    vector!(__m512d: 8 of f64, _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_fmadd_pd,
        transpose_f64 of 4);
    vector!(__m256: 8 of f32, _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_fmadd_ps,
        transpose_f32 of 8);
    vector!(__m256d: 4 of f64, _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_fmadd_pd,
        transpose_f64 of 4);

    /// Each register takes four elements of row `i` and four of row `i + 4`. Two 4×4 squares remain to be transposed.
    #[inline(always)]
    unsafe fn transpose_f32(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the caller has AVX and guarantees an 8×8 square at either end.
        unsafe {
            for half in [0, 4] {
                let mut rows = [_mm256_setzero_ps(); 4];
                for (i, pair) in rows.iter_mut().enumerate() {
                    let row = from.add(i * from_stride + half);
                    let low = _mm256_castps128_ps256(_mm_loadu_ps(row));
                    *pair = _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(row.add(4 * from_stride)));
                }
                let (low01, high01) =
                    (_mm256_unpacklo_ps(rows[0], rows[1]), _mm256_unpackhi_ps(rows[0], rows[1]));
                let (low23, high23) =
                    (_mm256_unpacklo_ps(rows[2], rows[3]), _mm256_unpackhi_ps(rows[2], rows[3]));
                let to = to.add(half * to_stride);
                _mm256_storeu_ps(to, _mm256_shuffle_ps::<0b01_00_01_00>(low01, low23));
                _mm256_storeu_ps(to.add(to_stride), _mm256_shuffle_ps::<0b11_10_11_10>(low01, low23));
                _mm256_storeu_ps(to.add(2 * to_stride), _mm256_shuffle_ps::<0b01_00_01_00>(high01, high23));
                _mm256_storeu_ps(to.add(3 * to_stride), _mm256_shuffle_ps::<0b11_10_11_10>(high01, high23));
            }
        }
    }

    /// Like [`transpose_f32`], with two elements instead of four.
    #[inline(always)]
    unsafe fn transpose_f64(from: *const f64, from_stride: usize, to: *mut f64, to_stride: usize) {
        // SAFETY: the caller has AVX and guarantees a 4×4 square at either end.
        unsafe {
            for half in [0, 2] {
                let mut rows = [_mm256_setzero_pd(); 2];
                for (i, pair) in rows.iter_mut().enumerate() {
                    let row = from.add(i * from_stride + half);
                    let low = _mm256_castpd128_pd256(_mm_loadu_pd(row));
                    *pair = _mm256_insertf128_pd::<1>(low, _mm_loadu_pd(row.add(2 * from_stride)));
                }
                let to = to.add(half * to_stride);
                _mm256_storeu_pd(to, _mm256_unpacklo_pd(rows[0], rows[1]));
                _mm256_storeu_pd(to.add(to_stride), _mm256_unpackhi_pd(rows[0], rows[1]));
            }
        }
    }
}
