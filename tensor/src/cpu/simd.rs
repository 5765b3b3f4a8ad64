//! One source, compiled for the vector units of the computer.
//!
//! The compiler vectorises a plain loop only for the instructions of every x86-64. [`vectorized!`] compiles the loop a
//! second time with AVX2 and FMA and chooses at run time. Kernels with more computation than reads are compiled a third
//! time with AVX-512. Operations are neither reordered nor fused, so all versions give the same bits.
//!
//! A browser page has one kind of vector. There, such a function is compiled once, and called instead of inlined. That
//! keeps it small, and a browser switches from quickly compiled to optimised code only at a call.

/// A function that calls `$lanes`, which must be `#[inline(always)]`, compiled for this computer.
///
/// `vectorized!(lanes, (x: &[f32]) -> f32)`; a generic one is `vectorized!([T: Float] lanes::<T>, …)`.
/// `vectorized!(Costly lanes, …)` also uses AVX-512 if available.
macro_rules! vectorized {
    (Cheap $lanes:path, $($signature:tt)*) => {
        $crate::cpu::simd::vectorized!($lanes, $($signature)*)
    };
    (
        Costly $lanes:path,
        ($($argument:ident: $Argument:ty),* $(,)?) $(-> $Output:ty)?
    ) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn with_avx512($($argument: $Argument),*) $(-> $Output)? {
            $lanes($($argument),*)
        }
        #[allow(unsafe_code)]
        #[cfg_attr(target_family = "wasm", inline(never))]
        fn best($($argument: $Argument),*) $(-> $Output)? {
            #[cfg(target_arch = "x86_64")]
            if $crate::cpu::simd::has_avx512() {
                // SAFETY: the function needs only the CPU features just detected.
                return unsafe { with_avx512($($argument),*) };
            }
            $crate::cpu::simd::vectorized!($lanes, ($($argument: $Argument),*) $(-> $Output)?)($($argument),*)
        }
        best
    }};
    (
        $([$G:ident: $Bound:path])? $lanes:path,
        ($($argument:ident: $Argument:ty),* $(,)?) $(-> $Output:ty)?
    ) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn with_avx2$(<$G: $Bound>)?($($argument: $Argument),*) $(-> $Output)? {
            $lanes($($argument),*)
        }
        #[allow(unsafe_code)]
        #[cfg_attr(target_family = "wasm", inline(never))]
        fn best$(<$G: $Bound>)?($($argument: $Argument),*) $(-> $Output)? {
            #[cfg(target_arch = "x86_64")]
            if $crate::cpu::simd::has_avx2() {
                // SAFETY: the function needs only the CPU features just detected.
                return unsafe { with_avx2$(::<$G>)?($($argument),*) };
            }
            $lanes($($argument),*)
        }
        best$(::<$G>)?
    }};
}

/// An elementwise kernel on blocks of equal length: `kernel!(Cheap, |a: f32, b: f32| -> f32 { a + b })`.
macro_rules! kernel {
    ($cost:ident, |$($x:ident: $X:ty),+| -> $O:ty { $body:expr }) => {{
        #[inline(always)]
        fn lanes($($x: &[$X],)+ out: &mut [$O]) {
            let n = out.len();
            $(let $x = &$x[..n];)+
            for i in 0..n {
                $(let $x = $x[i];)+
                out[i] = $body;
            }
        }
        $crate::cpu::simd::vectorized!($cost lanes, ($($x: &[$X],)+ out: &mut [$O]))
    }};
}

pub(crate) use {kernel, vectorized};

#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}
