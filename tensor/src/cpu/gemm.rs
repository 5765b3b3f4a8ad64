//! Matrix products of f32 and f64 on the CPU.
//!
//! A processor multiplies far faster than it reads memory, so data must be used many times before it leaves the cache
//! (Goto and van de Geijn, 2008). From the inside out:
//!
//! * [`kernel`]: a *tile* of C, a few rows by two vectors, stays in registers while `k` runs;
//! * [`block`]: strips of A and B stay in a cache for many tiles;
//! * [`pack`]: a strip is copied if a tile cannot read its layout fast;
//! * [`threads`]: C is cut into one part per thread.
//!
//! A browser page has a single thread, so `alike` looks for equal rows there.
//!
//! # Reproducibility
//!
//! Each element of C is computed independently: its `k` products are cut into runs of [`KC`]. A run is a chain of fused
//! multiply-adds in increasing `k`, starting at zero, and the runs are added in order. Threads, shapes, strides and
//! vector widths do not affect this, so a given row times a given column is the same number everywhere. The only
//! exception is a processor without fused multiply-add (WebAssembly, x86 before 2013), which rounds products before
//! adding them: fusing in software would cost a hundred times as much.

#[cfg(any(target_family = "wasm", test))]
mod alike;
mod block;
pub(crate) mod kernel;
pub(crate) mod pack;
#[cfg(not(target_family = "wasm"))]
mod threads;

pub(crate) use block::Matrix;
use block::Product;
use std::ops::{Add, Mul};

/// The length of a run over `k`. It affects the result, so it is the same on every machine. A strip of B of this
/// length, 128 bytes wide, fills two thirds of an L1 cache.
pub(crate) const KC: usize = 256;

pub(crate) trait GemmElement: sealed::Sealed {}
impl GemmElement for f32 {}
impl GemmElement for f64 {}

mod sealed {
    use super::{Add, Mul, Product};

    pub(crate) trait Sealed:
        bytemuck::Pod + Send + Sync + Add<Output = Self> + Mul<Output = Self>
    {
        /// Computes `a · b + c`, fused if the processor can.
        fn mul_add(a: Self, b: Self, c: Self) -> Self;

        /// Computes a product on this thread, with the processor's widest vectors.
        ///
        /// # Safety
        /// Every element of `product` is in bounds, and nothing else accesses its C.
        unsafe fn run(product: &Product<Self>);
    }
}

/// `impl_gemm_element!(f32, __m512, __m256, Floats)`: the element, and its vectors with AVX-512, with AVX2, and elsewhere.
macro_rules! impl_gemm_element {
    ($element:ty, $avx512:ident, $avx2:ident, $portable:ident) => {
        impl sealed::Sealed for $element {
            #[inline(always)]
            fn mul_add(a: Self, b: Self, c: Self) -> Self {
                if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
                    a.mul_add(b, c)
                } else {
                    a * b + c
                }
            }

            unsafe fn run(product: &Product<Self>) {
                // SAFETY: the processor has the detected instructions; the rest is the caller's promise.
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    if is_x86_feature_detected!("avx512f") {
                        return run_avx512::<std::arch::x86_64::$avx512>(product);
                    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        return run_avx2::<std::arch::x86_64::$avx2>(product);
                    }
                    run_portable::<kernel::$portable>(product)
                }
            }
        }
    };
}
impl_gemm_element!(f32, __m512, __m256, Floats);
impl_gemm_element!(f64, __m512d, __m256d, Doubles);

/// `c = a · b`, or `c += a · b` to accumulate.
///
/// `a` is `m`×`k` and `b` is `k`×`n`, with row and column strides in elements, so a transpose is free and a stride of 0
/// repeats. `c` is `m`×`n`, row-major and contiguous.
///
/// # Panics
/// If a slice is too short for its shape, or if the length of `c` does not match its shape.
#[allow(clippy::too_many_arguments)] // The usual signature of BLAS.
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
    assert_eq!(m.checked_mul(n), Some(c.len()), "c is {m}×{n}");
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if !accumulate {
            c.fill(bytemuck::Zeroable::zeroed());
        }
        return;
    }
    assert!(last_element([m, k], a_strides) < a.len(), "a is {m}×{k} with strides {a_strides:?}");
    assert!(last_element([k, n], b_strides) < b.len(), "b is {k}×{n} with strides {b_strides:?}");

    #[cfg(target_family = "wasm")]
    if !accumulate {
        let matrices = [(a, a_strides), (b, b_strides)];
        return alike::compute([m, n, k], matrices, c, |m, n, c| {
            // SAFETY: the asserts above; this is the product, or one row or column of it.
            unsafe { checked(m, n, k, a, a_strides, b, b_strides, c, false) }
        });
    }
    // SAFETY: the asserts above.
    unsafe { checked(m, n, k, a, a_strides, b, b_strides, c, accumulate) }
}

// Tiles are as high as the registers allow: AVX-512 and NEON have 32, AVX2 and SSE2 have 16. A second, lower tile
// handles the remaining rows.

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

unsafe fn run_portable<V: kernel::Vector>(product: &Product<V::Element>) {
    // SAFETY: the caller's promise.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        block::run::<V, 8, 4>(product)
    }
    // SAFETY: the caller's promise.
    #[cfg(not(target_arch = "aarch64"))]
    unsafe {
        block::run::<V, 4, 2>(product)
    }
}

/// [`gemm`] for slices that were checked.
///
/// # Safety
/// The slices are as long as shapes and strides require, and not empty.
#[allow(clippy::too_many_arguments)]
unsafe fn checked<T: GemmElement>(
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
    let a = Matrix { start: a.as_ptr(), strides: a_strides };
    let b = Matrix { start: b.as_ptr(), strides: b_strides };
    let c = c.as_mut_ptr();
    let product = if n == 1 {
        // Vectors run along the rows of C. A single column is computed as the row Bᵀ·Aᵀ, in the same memory layout.
        Product { m: 1, n: m, k, a: b.transposed(), b: a.transposed(), c, c_stride: m, accumulate }
    } else {
        Product { m, n, k, a, b, c, c_stride: n, accumulate }
    };
    // SAFETY: the caller's promise; `c` is borrowed for writing.
    unsafe {
        #[cfg(not(target_family = "wasm"))]
        threads::run(product);
        #[cfg(target_family = "wasm")]
        T::run(&product);
    }
}

/// The offset of the last element of a matrix that is not empty.
fn last_element(shape: [usize; 2], strides: [usize; 2]) -> usize {
    let along = |axis: usize| (shape[axis] - 1).checked_mul(strides[axis]);
    let offset = along(0).zip(along(1)).and_then(|(rows, columns)| rows.checked_add(columns));
    offset.expect("a matrix larger than memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;

    /// The definition at the top of the file.
    #[allow(clippy::too_many_arguments)]
    fn naive<T: GemmElement>(
        [m, n, k]: [usize; 3],
        a: &[T],
        a_strides: [usize; 2],
        b: &[T],
        b_strides: [usize; 2],
        c: &mut [T],
        accumulate: bool,
        mul_add: fn(T, T, T) -> T,
    ) {
        for i in 0..m {
            for j in 0..n {
                let element = &mut c[i * n + j];
                if !accumulate && k == 0 {
                    *element = T::zeroed();
                }
                for start in (0..k).step_by(KC) {
                    let mut run = T::zeroed();
                    for p in start..k.min(start + KC) {
                        let (x, y) =
                            (a[i * a_strides[0] + p * a_strides[1]], b[p * b_strides[0] + j * b_strides[1]]);
                        run = mul_add(x, y, run);
                    }
                    *element = if accumulate || start > 0 { *element + run } else { run };
                }
            }
        }
    }

    fn fuses() -> bool {
        #[cfg(target_arch = "x86_64")]
        return is_x86_feature_detected!("fma");
        #[cfg(not(target_arch = "x86_64"))]
        return cfg!(target_arch = "aarch64");
    }

    fn mul_add_f32() -> fn(f32, f32, f32) -> f32 {
        if fuses() { f32::mul_add } else { |a, b, c| a * b + c }
    }

    fn mul_add_f64() -> fn(f64, f64, f64) -> f64 {
        if fuses() { f64::mul_add } else { |a, b, c| a * b + c }
    }

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i + 1) * (7919 + 2 * seed) % 10007) as f32 / 10007.0 - 0.5).collect()
    }

    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|x| x.to_bits()).collect()
    }

    fn check(shape: [usize; 3], a_strides: [usize; 2], b_strides: [usize; 2], accumulate: bool) {
        let [m, n, k] = shape;
        let length = |rows: usize, columns: usize, strides| match rows * columns {
            0 => 0,
            _ => last_element([rows, columns], strides) + 1,
        };
        let (a, b) = (numbers(length(m, k, a_strides), 1), numbers(length(k, n, b_strides), 2));
        let mut c = numbers(m * n, 3);
        let mut expected = c.clone();
        naive(shape, &a, a_strides, &b, b_strides, &mut expected, accumulate, mul_add_f32());
        gemm(m, n, k, &a, a_strides, &b, b_strides, &mut c, accumulate);
        assert_eq!(bits(&c), bits(&expected), "{shape:?} {a_strides:?} {b_strides:?} {accumulate}");
    }

    fn check_forms(shape: [usize; 3], accumulate: bool) {
        let [m, n, k] = shape;
        for a_strides in [[k, 1], [1, m]] {
            for b_strides in [[n, 1], [1, k]] {
                check(shape, a_strides, b_strides, accumulate);
            }
        }
    }

    #[test]
    fn agrees_with_the_definition_at_the_edges_of_tiles() {
        // Tiles are 3, 4, 6 and 8 rows high, and 4 to 32 columns wide.
        for m in [0, 1, 2, 3, 4, 5, 7, 8, 9, 17] {
            for n in [0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 65] {
                for k in [0, 1, 2, 9] {
                    check_forms([m, n, k], false);
                    check_forms([m, n, k], true);
                }
            }
        }
    }

    #[test]
    fn agrees_with_the_definition_at_the_edges_of_runs_and_blocks() {
        for k in [KC - 1, KC, KC + 1, 2 * KC + 3] {
            for (m, n) in [(1, 1), (1, 40), (40, 1), (20, 36), (3, 100)] {
                check_forms([m, n, k], false);
                check_forms([m, n, k], true);
            }
        }
        for (m, n) in [(127, 5), (128, 33), (129, 33), (261, 70), (6, 1023), (17, 1024), (130, 1025)] {
            check_forms([m, n, 20], false);
            check_forms([m, n, KC + 1], true);
        }
    }

    #[test]
    fn agrees_with_the_definition_for_any_strides() {
        for shape in [[5, 7, 9], [20, 70, 30], [150, 40, 300]] {
            let [m, n, k] = shape;
            for a_strides in [[0, 1], [1, 0], [0, 0], [1, 1], [k + 3, 1], [3 * k, 3], [2, 2 * m + 1]] {
                check(shape, a_strides, [n, 1], false);
                check(shape, a_strides, [1, k], true);
            }
            for b_strides in [[0, 1], [1, 0], [0, 0], [1, 1], [n + 3, 1], [3 * n, 3], [2, 2 * k + 1]] {
                check(shape, [k, 1], b_strides, false);
                check(shape, [1, m], b_strides, true);
            }
        }
    }

    #[test]
    fn agrees_with_the_definition_in_f64() {
        each_case([[1, 1, 1], [7, 9, 5], [9, 17, 300], [130, 40, 257], [40, 1, 70]], |shape| {
            let [m, n, k] = shape;
            let wide =
                |numbers: Vec<f32>| numbers.into_iter().map(f64::from).map(|x| x / 3.0).collect::<Vec<_>>();
            let (a, b) = (wide(numbers(m * k, 1)), wide(numbers(k * n, 2)));
            for (a_strides, b_strides) in [([k, 1], [n, 1]), ([k, 1], [1, k]), ([1, m], [n, 1])] {
                let mut c = wide(numbers(m * n, 3));
                let mut expected = c.clone();
                naive(shape, &a, a_strides, &b, b_strides, &mut expected, true, mul_add_f64());
                gemm(m, n, k, &a, a_strides, &b, b_strides, &mut c, true);
                let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&c), bits(&expected), "{shape:?} {a_strides:?} {b_strides:?}");
            }
        });
    }

    /// Includes vectors that this machine would not choose.
    #[test]
    fn agrees_with_the_definition_with_every_kind_of_vector() {
        type Run = unsafe fn(&Product<f32>);
        let separate: fn(f32, f32, f32) -> f32 = |a, b, c| sealed::Sealed::mul_add(a, b, c);
        let mut kinds = vec![(run_portable::<kernel::Floats> as Run, separate)];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            kinds.push((|product| unsafe { run_avx2::<std::arch::x86_64::__m256>(product) }, f32::mul_add));
        }
        for (run, mul_add) in kinds {
            for shape in [[1, 1, 1], [6, 16, 5], [7, 17, 9], [9, 40, 300], [135, 40, 257], [20, 9, 256]] {
                let [m, n, k] = shape;
                for (a_strides, b_strides) in [([k, 1], [n, 1]), ([k, 1], [1, k]), ([1, m], [n, 1])] {
                    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
                    let (mut c, mut expected) = (vec![0.0; m * n], vec![0.0; m * n]);
                    naive(shape, &a, a_strides, &b, b_strides, &mut expected, false, mul_add);
                    let (a, b) = (a.as_ptr(), b.as_ptr());
                    let a = Matrix { start: a, strides: a_strides };
                    let b = Matrix { start: b, strides: b_strides };
                    let product =
                        Product { m, n, k, a, b, c: c.as_mut_ptr(), c_stride: n, accumulate: false };
                    // SAFETY: the processor has the instructions; shapes and strides match the slices.
                    unsafe { run(&product) };
                    assert_eq!(bits(&c), bits(&expected), "{shape:?} {a_strides:?} {b_strides:?}");
                }
            }
        }
    }

    #[test]
    fn gives_the_same_bits_on_any_number_of_threads() {
        each_case(
            [(300, 200, 300), (130, 1100, 70), (5000, 9, 300), (3, 20000, 260), (90000, 1, 130)],
            |(m, n, k)| {
                let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
                let [one, two, five] = [1, 2, 5].map(|threads| {
                    let mut c = vec![f32::NAN; m * n];
                    let a = Matrix { start: a.as_ptr(), strides: [k, 1] };
                    let b = Matrix { start: b.as_ptr(), strides: [n, 1] };
                    let product =
                        Product { m, n, k, a, b, c: c.as_mut_ptr(), c_stride: n, accumulate: false };
                    // SAFETY: shapes and strides match the slices.
                    unsafe { threads::run_on(threads, product) };
                    bits(&c)
                });
                assert!(one == two && one == five, "{m}×{n}×{k}");
            },
        );
    }

    #[test]
    fn gives_the_same_bits_wherever_an_element_stands() {
        let (m, n, k) = (37, 75, 600);
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let mut c = vec![0.0; m * n];
        gemm(m, n, k, &a, [k, 1], &b, [n, 1], &mut c, false);
        each_case([(0, 0), (36, 74), (17, 33), (32, 64)], |(i, j)| {
            let mut alone = [0.0];
            gemm(1, 1, k, &a[i * k..], [k, 1], &b[j..], [n, 1], &mut alone, false);
            assert_eq!(bits(&alone), bits(&c[i * n + j..][..1]));
        });
    }

    #[test]
    fn nan_and_infinity_reach_their_rows_and_columns_only() {
        let (m, n, k) = (11, 37, 20);
        let (mut a, mut b) = (vec![1.0f32; m * k], vec![1.0f32; k * n]);
        a[3 * k + 5] = f32::NAN;
        b[7 * n + 34] = f32::INFINITY;
        a[10 * k + 7] = 0.0;
        let mut c = vec![0.0; m * n];
        gemm(m, n, k, &a, [k, 1], &b, [n, 1], &mut c, false);
        for i in 0..m {
            for j in 0..n {
                let value = c[i * n + j];
                match (i, j) {
                    (3, _) | (10, 34) => assert!(value.is_nan()), // 0 · ∞ is NaN.
                    (_, 34) => assert_eq!(value, f32::INFINITY),
                    (10, _) => assert_eq!(value, 19.0),
                    _ => assert_eq!(value, 20.0),
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "b is 4×3")]
    fn refuses_a_slice_too_short() {
        gemm(2, 3, 4, &[0.0f32; 8], [4, 1], &[0.0; 11], [3, 1], &mut [0.0; 6], false);
    }
}
