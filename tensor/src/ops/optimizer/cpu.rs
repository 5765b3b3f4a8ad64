//! Optimizer steps on the host.

use bytemuck::Pod;
use rayon::prelude::*;

use super::{AdamStep, SgdStep};
use crate::dtype::with_float;
use crate::error::{Error, Result};
use crate::ops::elementwise::blocks::elements_mut;
use crate::ops::simd::{threads, vectorized};
use crate::storage::access;
use crate::tensor::Tensor;

/// From this many elements on a second thread pays.
const SMALLEST_PARALLEL: usize = 1 << 16;

/// A float with the fused multiply-add that PyTorch's kernels use.
trait Real:
    Pod
    + Send
    + Sync
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
{
    /// `self · factor + addend`, rounded once.
    fn fused(self, factor: Self, addend: Self) -> Self;
    fn root(self) -> Self;
    fn rounded(value: f64) -> Self;
}

macro_rules! real {
    ($($T:ty),*) => {$(
        impl Real for $T {
            #[inline(always)]
            fn fused(self, factor: $T, addend: $T) -> $T {
                self.mul_add(factor, addend)
            }
            #[inline(always)]
            fn root(self) -> $T {
                self.sqrt()
            }
            #[inline(always)]
            fn rounded(value: f64) -> $T {
                value as $T
            }
        }
    )*};
}
real!(f32, f64);

/// Runs `kernel(grad, [written…])` on matching parts of contiguous tensors of one size.
fn on_parts<T: Real, const W: usize>(
    grad: &Tensor,
    written: [&Tensor; W],
    kernel: impl Fn(&[T], [&mut [T]; W]) + Sync,
) -> Result<()> {
    if written.iter().any(|tensor| !tensor.is_contiguous()) {
        return Err(Error::custom("an optimizer's parameters must be contiguous"));
    }
    access([grad], written, |[grad], bytes| {
        let (values, grad) = grad.expect("the gradient is none of the tensors written");
        let start = grad.storage_offset();
        let grad = &bytemuck::cast_slice::<u8, T>(values)[start..start + grad.numel()];
        let mut tensors = written.into_iter();
        let parts = bytes.map(|bytes| elements_mut::<T>(bytes, tensors.next().expect("one for each")));
        if grad.len() < SMALLEST_PARALLEL || threads() == 1 {
            return kernel(grad, parts);
        }
        let share = grad.len().div_ceil(threads());
        let mut shares: Vec<(&[T], [&mut [T]; W])> = Vec::new();
        let mut rest = parts;
        for grad in grad.chunks(share) {
            let mut part: [&mut [T]; W] = std::array::from_fn(|_| Default::default());
            for (part, rest) in part.iter_mut().zip(&mut rest) {
                (*part, *rest) = std::mem::take(rest).split_at_mut(grad.len());
            }
            shares.push((grad, part));
        }
        shares.into_par_iter().for_each(|(grad, part)| kernel(grad, part));
    })
}

macro_rules! step {
    ($(#[$doc:meta])* $name:ident, $lanes:ident, $Step:ty, $($written:ident),+) => {
        $(#[$doc])*
        pub(super) fn $name(parameter: &Tensor, grad: &Tensor, $($written: &Tensor,)+ step: $Step) -> Result<()> {
            with_float!(parameter.dtype(), T => {
                const WRITTEN: usize = [stringify!(parameter), $(stringify!($written)),+].len();
                let kernel = vectorized!(
                    $lanes::<T>,
                    (grad: &[T], written: [&mut [T]; WRITTEN], step: $Step)
                );
                on_parts(grad, [parameter, $($written),+], |grad, written| kernel(grad, written, step))
            }, else Err(Error::NotImplemented { operation: stringify!($name), dtype: parameter.dtype() }))
        }
    };
}
step!(adam, adam_lanes, AdamStep, exp_avg, exp_avg_sq);
step!(sgd_first, sgd_first_lanes, SgdStep, buffer);
step!(sgd_momentum, sgd_momentum_lanes, SgdStep, buffer);

pub(super) fn sgd_plain(parameter: &Tensor, grad: &Tensor, step: SgdStep) -> Result<()> {
    with_float!(parameter.dtype(), T => {
        let kernel = vectorized!(sgd_plain_lanes::<T>, (grad: &[T], written: [&mut [T]; 1], step: SgdStep));
        on_parts(grad, [parameter], |grad, written| kernel(grad, written, step))
    }, else Err(Error::NotImplemented { operation: "sgd", dtype: parameter.dtype() }))
}

/// Kingma and Ba, with PyTorch's rounding:
/// `m ← m + (1 − β₁)(g − m)`, `v ← β₂v + (1 − β₂)g²`, `p ← p − step · m / (√v / √(1 − β₂ᵗ) + ε)`.
#[inline(always)]
fn adam_lanes<T: Real>(grad: &[T], [parameter, exp_avg, exp_avg_sq]: [&mut [T]; 3], step: AdamStep) {
    let n = grad.len();
    let (parameter, exp_avg, exp_avg_sq) = (&mut parameter[..n], &mut exp_avg[..n], &mut exp_avg_sq[..n]);
    let weight = T::rounded(1.0 - step.beta1);
    let (other_weight, small_weight) = (T::rounded(step.beta1), 1.0 - step.beta1 < 0.5);
    let (beta2, rest2) = (T::rounded(step.beta2), T::rounded(1.0 - step.beta2));
    let (decay, decays) = (T::rounded(step.weight_decay), step.weight_decay != 0.0);
    let (shrink, eps) = (T::rounded(step.shrink), T::rounded(step.eps));
    let (minus_step, correction) = (T::rounded(-step.step_size), T::rounded(step.bias_correction2_sqrt));
    for i in 0..n {
        let p = parameter[i] * shrink;
        let g = if decays { p.fused(decay, grad[i]) } else { grad[i] };
        // PyTorch's lerp starts from the nearer end.
        let m = match small_weight {
            true => (g - exp_avg[i]).fused(weight, exp_avg[i]),
            false => g - (g - exp_avg[i]) * other_weight,
        };
        let v = (rest2 * g).fused(g, exp_avg_sq[i] * beta2);
        let denominator = v.root() / correction + eps;
        parameter[i] = p + (minus_step * m) / denominator;
        exp_avg[i] = m;
        exp_avg_sq[i] = v;
    }
}

/// The gradient with its sign and weight decay.
#[inline(always)]
fn decayed<T: Real>(grad: T, parameter: T, step: SgdStep) -> T {
    let grad = if step.maximize { -grad } else { grad };
    if step.weight_decay != 0.0 { parameter.fused(T::rounded(step.weight_decay), grad) } else { grad }
}

/// `p ← p − lr · g`
#[inline(always)]
fn sgd_plain_lanes<T: Real>(grad: &[T], [parameter]: [&mut [T]; 1], step: SgdStep) {
    let minus_lr = T::rounded(-step.lr);
    for (p, g) in parameter.iter_mut().zip(grad) {
        *p = decayed(*g, *p, step).fused(minus_lr, *p);
    }
}

/// The first step with momentum: the buffer becomes the gradient.
#[inline(always)]
fn sgd_first_lanes<T: Real>(grad: &[T], [parameter, buffer]: [&mut [T]; 2], step: SgdStep) {
    let (minus_lr, momentum) = (T::rounded(-step.lr), T::rounded(step.momentum));
    for ((p, b), g) in parameter.iter_mut().zip(buffer).zip(grad) {
        let g = decayed(*g, *p, step);
        *b = g;
        let direction = if step.nesterov { g.fused(momentum, g) } else { g };
        *p = direction.fused(minus_lr, *p);
    }
}

/// `b ← μb + (1 − dampening)g`, `p ← p − lr · b`; Nesterov's form takes `g + μb` for the direction.
#[inline(always)]
fn sgd_momentum_lanes<T: Real>(grad: &[T], [parameter, buffer]: [&mut [T]; 2], step: SgdStep) {
    let (minus_lr, momentum) = (T::rounded(-step.lr), T::rounded(step.momentum));
    let undamped = T::rounded(1.0 - step.dampening);
    for ((p, b), g) in parameter.iter_mut().zip(buffer).zip(grad) {
        let g = decayed(*g, *p, step);
        *b = g.fused(undamped, *b * momentum);
        let direction = if step.nesterov { b.fused(momentum, g) } else { *b };
        *p = direction.fused(minus_lr, *p);
    }
}
