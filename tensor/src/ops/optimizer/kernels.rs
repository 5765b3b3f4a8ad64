use smallvec::SmallVec;

use super::{AdamStep, SgdStep};
use crate::cpu::number::Float;
use crate::cpu::parallel::for_pieces;
use crate::cpu::pool::threads_for;
use crate::cpu::simd::vectorized;
use crate::error::{Result, TensorError};
use crate::kernel::{Args, Cost, TwinResult};
use crate::ops::launch::launch;
use crate::ops::plain::{contiguous, copy_of, write};
use crate::ops::row::{Row, row, rows};
use crate::shape::Layout;
use crate::tensor::Tensor;

impl AdamStep {
    fn floats(&self) -> [f64; 7] {
        [
            self.beta1,
            self.beta2,
            self.eps,
            self.weight_decay,
            self.shrink,
            self.step_size,
            self.bias_correction2_sqrt,
        ]
    }

    fn of(args: &Args<'_, '_>) -> AdamStep {
        let [beta1, beta2, eps, weight_decay, shrink, step_size, bias_correction2_sqrt] =
            std::array::from_fn(|i| args.floats[i]);
        AdamStep { beta1, beta2, eps, weight_decay, shrink, step_size, bias_correction2_sqrt }
    }
}

impl SgdStep {
    fn floats(&self) -> [f64; 4] {
        [self.lr, self.momentum, self.dampening, self.weight_decay]
    }

    fn ints(&self) -> [i64; 2] {
        [self.nesterov.into(), self.maximize.into()]
    }

    fn of(args: &Args<'_, '_>) -> SgdStep {
        let [lr, momentum, dampening, weight_decay] = std::array::from_fn(|i| args.floats[i]);
        let [nesterov, maximize] = std::array::from_fn(|i| args.ints[i] != 0);
        SgdStep { lr, momentum, dampening, weight_decay, nesterov, maximize }
    }
}

rows! {
    static ADAM: Row = row! {
        name: "adam", types: floats, geometry: Elements, cost: Costly,
        parameters: [In(T), Out(T), Out(T), Out(T), Float, Float, Float, Float, Float, Float, Float],
        twin: |args| {
            let kernel = vectorized!(adam_lanes::<T>, (grad: &[T], written: [&mut [T]; 3], step: AdamStep));
            run_step(args, AdamStep::of, kernel)
        },
    };
    static SGD: Row = row! {
        name: "sgd", types: floats, geometry: Elements, cost: Costly,
        parameters: [In(T), Out(T), Int, Int, Float, Float, Float, Float],
        twin: |args| {
            let kernel = vectorized!(sgd_plain_lanes::<T>, (grad: &[T], written: [&mut [T]; 1], step: SgdStep));
            run_step(args, SgdStep::of, kernel)
        },
    };
    static SGD_MOMENTUM_FIRST: Row = row! {
        name: "sgd_momentum_first", refused_as: "sgd", types: floats, geometry: Elements, cost: Costly,
        parameters: [In(T), Out(T), Out(T), Int, Int, Float, Float, Float, Float],
        twin: |args| {
            let kernel = vectorized!(sgd_first_lanes::<T>, (grad: &[T], written: [&mut [T]; 2], step: SgdStep));
            run_step(args, SgdStep::of, kernel)
        },
    };
    static SGD_MOMENTUM: Row = row! {
        name: "sgd_momentum", refused_as: "sgd", types: floats, geometry: Elements, cost: Costly,
        parameters: [In(T), Out(T), Out(T), Int, Int, Float, Float, Float, Float],
        twin: |args| {
            let kernel = vectorized!(sgd_momentum_lanes::<T>, (grad: &[T], written: [&mut [T]; 2], step: SgdStep));
            run_step(args, SgdStep::of, kernel)
        },
    };
}

/// Launches a step's kernel. It walks through the memory of all tensors together, in the order of the parameter; a
/// tensor with gaps or in another order is copied, and copied back.
fn launch_step<const W: usize>(
    kernel: &Row,
    grad: &Tensor,
    written: [&Tensor; W],
    ints: &[i64],
    floats: &[f64],
) -> Result<()> {
    let parameter = written[0];
    let kernel = kernel.of(parameter.dtype())?;
    let is_apart = !grad.shares_storage(parameter);
    if is_apart && grad.is_contiguous() && written.iter().all(|tensor| tensor.is_contiguous()) {
        return launch(kernel, [grad], written, ints, floats);
    }
    if written.iter().any(|tensor| tensor.layout().overlaps_itself()) {
        return Err(TensorError::WriteOverlap.into());
    }
    let order = Layout::order_of(parameter.sizes(), &[parameter.layout()]);
    let in_order = |tensor: &Tensor| match &order {
        Some(order) => tensor.with_layout(tensor.layout().permute(order)),
        None => tensor.detach(),
    };
    let grad = in_order(grad);
    let grad = if is_apart { contiguous(&grad)? } else { copy_of(&grad)? };
    let written = written.map(in_order);
    let memory = written.iter().map(contiguous).collect::<Result<SmallVec<[Tensor; 3]>>>()?;
    launch(kernel, [&grad], std::array::from_fn::<_, W, _>(|i| &memory[i]), ints, floats)?;
    for (tensor, memory) in written.iter().zip(&memory).filter(|(tensor, memory)| !tensor.is_same(memory)) {
        write(tensor, memory)?;
    }
    Ok(())
}

pub(super) fn adam(
    parameter: &Tensor,
    grad: &Tensor,
    exp_avg: &Tensor,
    exp_avg_sq: &Tensor,
    step: AdamStep,
) -> Result<()> {
    launch_step(&ADAM, grad, [parameter, exp_avg, exp_avg_sq], &[], &step.floats())
}

pub(super) fn sgd_plain(parameter: &Tensor, grad: &Tensor, step: SgdStep) -> Result<()> {
    sgd(&SGD, grad, [parameter], step)
}

pub(super) fn sgd_first(parameter: &Tensor, grad: &Tensor, buffer: &Tensor, step: SgdStep) -> Result<()> {
    sgd(&SGD_MOMENTUM_FIRST, grad, [parameter, buffer], step)
}

pub(super) fn sgd_momentum(parameter: &Tensor, grad: &Tensor, buffer: &Tensor, step: SgdStep) -> Result<()> {
    sgd(&SGD_MOMENTUM, grad, [parameter, buffer], step)
}

fn sgd<const W: usize>(kernel: &Row, grad: &Tensor, written: [&Tensor; W], step: SgdStep) -> Result<()> {
    launch_step(kernel, grad, written, &step.ints(), &step.floats())
}

/// The twin of a step: runs `kernel(grad, [parameter, state…], step)` on matching parts of contiguous tensors of one
/// size.
fn run_step<T: Float, S: Copy + Sync, const W: usize>(
    args: Args<'_, '_>,
    step: fn(&Args<'_, '_>) -> S,
    kernel: impl Fn(&[T], [&mut [T]; W], S) + Sync,
) -> TwinResult {
    let step = step(&args);
    let grad: &[T] = args.inputs[0].elements();
    let mut outputs = args.outputs.iter_mut();
    let mut rest: [&mut [T]; W] =
        std::array::from_fn(|_| outputs.next().map_or(Default::default(), |output| output.elements()));
    let threads = threads_for(grad.len(), Cost::Costly.smallest_parallel());
    if threads == 1 {
        kernel(grad, rest, step);
        return Ok(());
    }
    let share = grad.len().div_ceil(threads);
    let mut shares: Vec<(&[T], [&mut [T]; W])> = Vec::new();
    for grad in grad.chunks(share) {
        let mut part: [&mut [T]; W] = std::array::from_fn(|_| Default::default());
        for (part, rest) in part.iter_mut().zip(&mut rest) {
            (*part, *rest) = std::mem::take(rest).split_at_mut(grad.len());
        }
        shares.push((grad, part));
    }
    for_pieces(threads, &mut shares, 1, &|_, shares| {
        shares.iter_mut().for_each(|(grad, part)| kernel(grad, part.each_mut().map(std::mem::take), step));
    });
    Ok(())
}

/// Adam (Kingma and Ba), with PyTorch's rounding: `m ← m + (1 − β₁)(g − m)`, `v ← β₂v + (1 − β₂)g²`, and
/// `p ← p − step · m / (√v / √(1 − β₂ᵗ) + ε)`.
#[inline(always)]
fn adam_lanes<T: Float>(grad: &[T], [parameter, exp_avg, exp_avg_sq]: [&mut [T]; 3], step: AdamStep) {
    let n = grad.len();
    let (parameter, exp_avg, exp_avg_sq) = (&mut parameter[..n], &mut exp_avg[..n], &mut exp_avg_sq[..n]);
    let weight = T::from_f64(1.0 - step.beta1);
    let (other_weight, small_weight) = (T::from_f64(step.beta1), 1.0 - step.beta1 < 0.5);
    let (beta2, rest2) = (T::from_f64(step.beta2), T::from_f64(1.0 - step.beta2));
    let (decay, decays) = (T::from_f64(step.weight_decay), step.weight_decay != 0.0);
    let (shrink, eps) = (T::from_f64(step.shrink), T::from_f64(step.eps));
    let (minus_step, correction) = (T::from_f64(-step.step_size), T::from_f64(step.bias_correction2_sqrt));
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

#[inline(always)]
fn decayed<T: Float>(grad: T, parameter: T, step: SgdStep) -> T {
    let grad = if step.maximize { -grad } else { grad };
    if step.weight_decay != 0.0 { parameter.fused(T::from_f64(step.weight_decay), grad) } else { grad }
}

/// Computes `p ← p − lr · g`.
#[inline(always)]
fn sgd_plain_lanes<T: Float>(grad: &[T], [parameter]: [&mut [T]; 1], step: SgdStep) {
    let minus_lr = T::from_f64(-step.lr);
    for (p, g) in parameter.iter_mut().zip(grad) {
        *p = decayed(*g, *p, step).fused(minus_lr, *p);
    }
}

/// The first step with momentum sets the buffer to the gradient.
#[inline(always)]
fn sgd_first_lanes<T: Float>(grad: &[T], [parameter, buffer]: [&mut [T]; 2], step: SgdStep) {
    let (minus_lr, momentum) = (T::from_f64(-step.lr), T::from_f64(step.momentum));
    for ((p, b), g) in parameter.iter_mut().zip(buffer).zip(grad) {
        let g = decayed(*g, *p, step);
        *b = g;
        let direction = if step.nesterov { g.fused(momentum, g) } else { g };
        *p = direction.fused(minus_lr, *p);
    }
}

/// Computes `b ← μb + (1 − dampening)g`, `p ← p − lr · b`. Nesterov's direction is `g + μb`.
#[inline(always)]
fn sgd_momentum_lanes<T: Float>(grad: &[T], [parameter, buffer]: [&mut [T]; 2], step: SgdStep) {
    let (minus_lr, momentum) = (T::from_f64(-step.lr), T::from_f64(step.momentum));
    let undamped = T::from_f64(1.0 - step.dampening);
    for ((p, b), g) in parameter.iter_mut().zip(buffer).zip(grad) {
        let g = decayed(*g, *p, step);
        *b = g.fused(undamped, *b * momentum);
        let direction = if step.nesterov { b.fused(momentum, g) } else { *b };
        *p = direction.fused(minus_lr, *p);
    }
}
