//! The kernels of random numbers on a device. The host uses PyTorch's sequence, which only one thread can follow (see
//! [`crate::random`]). Each element has two numbers in the generator's sequence, even if it needs fewer.

use bytemuck::Pod;

use crate::cpu::blocks::{BLOCK, Runs, for_blocks};
use crate::cpu::number::Float;
use crate::cpu::reserve::reserve;
use crate::dtype::{DType, Memory, Scalar};
use crate::error::{Error, Result};
use crate::kernel::{Args, Cost, TwinResult};
use crate::ops::launch::launch;
use crate::ops::plain::number;
use crate::ops::row::{Row, row, rows};
use crate::random::philox_fill;
use crate::tensor::Tensor;

const DRAWS: usize = 2;

/// Calls `set` for each element of the output, with its two random numbers and its position.
fn draw<O: Pod + Send>(args: &mut Args<'_, '_>, set: impl Fn([u32; DRAWS], usize, &mut O) + Sync) {
    let (seed, first) = (args.ints[0] as u64, args.ints[1] as u64);
    for_blocks(&mut args.outputs[0], Cost::Costly, &|start, out: &mut [O]| {
        let mut draws = [[0; DRAWS]; BLOCK];
        let draws = &mut draws[..out.len()];
        philox_fill(seed, first.wrapping_add((DRAWS * start) as u64), draws.as_flattened_mut());
        for (i, (out, draws)) in out.iter_mut().zip(draws).enumerate() {
            set(*draws, start + i, out);
        }
    });
}

fn take(target: &Tensor) -> [i64; 2] {
    match target.storage().device() {
        Some(memory) => memory.cuda().draw(target.device().index(), (DRAWS * target.numel()) as u64),
        None => unreachable!("the host has numbers of its own"),
    }
}

/// Uniform numbers in [0, 1), with as many bits as the type holds, so that none rounds to 1.
trait Uniform: Float {
    fn uniform(draws: [u32; 2]) -> Self;
}

impl Uniform for f32 {
    fn uniform([a, _]: [u32; 2]) -> f32 {
        (a >> 8) as f32 / 16_777_216.0
    }
}

impl Uniform for f64 {
    fn uniform([a, b]: [u32; 2]) -> f64 {
        ((u64::from(a) << 32 | u64::from(b)) >> 11) as f64 / 9_007_199_254_740_992.0
    }
}

rows! {
    // The integers are the seed and a position in its sequence. Two numbers from the caller follow.
    static UNIFORM: Row = row! {
        name: "uniform", refused_as: "check_uniform_bounds",
        types: each_float, geometry: Elements, cost: Costly,
        parameters: [Out(T), Int, Int, Float, Float],
        twin: uniform_twin::<T>,
    };
    static NORMAL: Row = row! {
        name: "normal", refused_as: "normal_kernel_cpu", types: floats, geometry: Elements, cost: Costly,
        parameters: [Out(T), Int, Int, Float, Float],
        twin: normal_twin::<T>,
    };
    static RANDOM: Row = row! {
        name: "random", types: numbers, geometry: Elements, cost: Costly,
        parameters: [Out(T), Int, Int, Int, Int],
        twin: |mut args| {
            let (low, range) = (args.ints[2], args.ints[3] as u64);
            draw(&mut args, |[a, b], _, out: &mut T| {
                let bits = u64::from(a) << 32 | u64::from(b);
                let bits = if range == 0 { bits } else { bits % range };
                *out = low.wrapping_add_unsigned(bits) as T;
            });
            Ok(())
        },
    };
    static BERNOULLI: Row = row! {
        name: "bernoulli", types: none, geometry: Elements, cost: Costly,
        parameters: [In(f64), Out(bool), Int, Int],
        twin: bernoulli_twin,
    };
}

pub(super) fn uniform(target: &Tensor, from: f64, to: f64) -> Result<()> {
    launch(UNIFORM.of(target.dtype())?, [], [target], &take(target), &[from, to])
}

fn uniform_twin<T: Memory<Math: Uniform>>(mut args: Args<'_, '_>) -> TwinResult {
    let [from, to] = [args.floats[0], args.floats[1]].map(|end| T::narrow(T::Math::from_f64(end)));
    let (low, range) = (from.widen(), to.widen() - from.widen());
    draw(&mut args, |draws, _, out: &mut T| {
        let value = T::narrow(T::Math::uniform(draws) * range + low);
        // Rounding may reach the upper end, which is not in the range.
        *out = if value == to { from } else { value };
    });
    Ok(())
}

/// The Box–Muller transform: one number gives the radius, the other the angle.
pub(super) fn normal(target: &Tensor, mean: f64, std: f64) -> Result<()> {
    launch(NORMAL.of(target.dtype())?, [], [target], &take(target), &[mean, std])
}

fn normal_twin<T: Uniform + std::ops::Mul<Output = T> + std::ops::Add<Output = T>>(
    mut args: Args<'_, '_>,
) -> TwinResult {
    let (mean, std) = (T::from_f64(args.floats[0]), T::from_f64(args.floats[1]));
    draw(&mut args, |[a, b], _, out: &mut T| {
        // In (0, 1], because 0 has no logarithm.
        let distance = (f64::from(a) + 1.0) / 4_294_967_296.0;
        let angle = f64::from(b) / 4_294_967_296.0;
        let radius = (-2.0 * Float::ln(distance)).sqrt();
        *out = T::from_f64(radius * Float::cos(std::f64::consts::TAU * angle)) * std + mean;
    });
    Ok(())
}

/// Draws integers from `range` values starting at `low`. A `range` of 0 means 2⁶⁴.
pub(super) fn integers(target: &Tensor, low: i64, range: u64) -> Result<()> {
    let [seed, first] = take(target);
    launch(RANDOM.of(target.dtype())?, [], [target], &[seed, first, low, range as i64], &[])
}

fn bernoulli_twin(mut args: Args<'_, '_>) -> TwinResult {
    let output = args.outputs[0].layout;
    let numel = output.numel();
    let mut probabilities: Vec<f64> = reserve(numel)?;
    probabilities.resize(numel, 0.0);
    let layout = args.inputs[0].layout.expand(output.sizes())?;
    Runs::of(&layout).gather(args.inputs[0].values(), 0, &mut probabilities);
    if let Some(p) = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(Error::custom(format!("Expected p_in >= 0 && p_in <= 1 to be true, but got {p}")).into());
    }
    draw(&mut args, |draws, element, out: &mut u8| {
        *out = (f64::uniform(draws) < probabilities[element]).into();
    });
    Ok(())
}

/// Draws 1 with each element's `probability`, which is broadcast, else 0.
pub(super) fn bernoulli(probability: &Tensor, target: &Tensor) -> Result<()> {
    let probability = &probability.detach().to(DType::F64)?;
    launch(BERNOULLI.only(), [probability], [target], &take(target), &[])
}

pub(super) fn bernoulli_scalar(p: f64, target: &Tensor) -> Result<()> {
    bernoulli(&number(Scalar::Float(p), DType::F64)?, target)
}
