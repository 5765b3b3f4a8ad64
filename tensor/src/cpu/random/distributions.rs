//! Turns random words into numbers: every CPU draw of PyTorch, as a function that fills a slice.
//!
//! Slices are filled in *memory* order. PyTorch fills a dense transposed tensor in the same order. Arguments are valid
//! here: a tensor operation checks them before it draws, with PyTorch's messages.

use std::f64::consts::PI;

use super::wide::{self, Law};
use crate::dtype::{DType, Memory};
use crate::random::Mt19937;

/// Draws `Tensor.uniform_(from, to)` and `torch.rand` in f32: one word per element. The 24 *low* bits of the word give
/// `u` in [0, 1) (`at::transformation::uniform_real`). Linear and Conv weights depend on the single rounding of the
/// value, `u * (to - from) + from`.
pub(crate) fn fill_uniform_f32(engine: &mut Mt19937, out: &mut [f32], from: f32, to: f32) {
    wide::fill(engine, out, Law::Uniform { from, to });
}

/// Like [`fill_uniform_f32`] in f64, with the 53 low bits of two words per element.
pub(crate) fn fill_uniform_f64(engine: &mut Mt19937, out: &mut [f64], from: f64, to: f64) {
    for slot in out {
        *slot = unit_f64(engine).mul_add(to - from, from);
    }
}

fn unit_f64(engine: &mut Mt19937) -> f64 {
    const LOW_53: u64 = (1 << 53) - 1;
    (engine.random64() & LOW_53) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// The smallest number of elements for which PyTorch fills a contiguous tensor in blocks.
const BLOCK: usize = 16;

/// Draws `Tensor.normal_(mean, std)` and `torch.randn` on a contiguous f32 tensor. The method depends on the size, and
/// so do the numbers: the first 15 values of a `randn(16)` are not those of a `randn(15)`.
pub(crate) fn fill_normal_f32(engine: &mut Mt19937, out: &mut [f32], mean: f64, std: f64) {
    if out.len() < BLOCK {
        return fill_normal_scalar_path_f32(engine, out, mean, std);
    }
    let law = Law::Normal { mean: mean as f32, std: std as f32 };
    wide::fill(engine, out, law);
    // A remainder smaller than a block is still uniforms. PyTorch draws 16 *new* uniforms over the tensor's end,
    // including finished values, and transforms them as one more block.
    if !out.len().is_multiple_of(BLOCK) {
        let last = out.len() - BLOCK;
        wide::fill(engine, &mut out[last..], law);
    }
}

/// Like [`fill_normal_f32`] in f64. PyTorch calls the C library's `log`, `cos` and `sin` here, and so does Rust. With
/// glibc the results are PyTorch's to the last bit. With another C library, or none (wasm), the last bit may differ.
pub(crate) fn fill_normal_f64(engine: &mut Mt19937, out: &mut [f64], mean: f64, std: f64) {
    if out.len() < BLOCK {
        return fill_normal_scalar_path_f64(engine, out, mean, std);
    }
    fill_uniform_f64(engine, out, 0.0, 1.0);
    for block in out.chunks_exact_mut(BLOCK) {
        normal_block_f64(block, mean, std);
    }
    if !out.len().is_multiple_of(BLOCK) {
        let last = out.len() - BLOCK;
        fill_uniform_f64(engine, &mut out[last..], 0.0, 1.0);
        normal_block_f64(&mut out[last..], mean, std);
    }
}

/// Draws normals for fewer than 16 or non-contiguous elements, in f64 (`at::normal_distribution<double>`).
pub(crate) fn fill_normal_scalar_path_f32(engine: &mut Mt19937, out: &mut [f32], mean: f64, std: f64) {
    for slot in out {
        *slot = standard_normal(engine).mul_add(std, mean) as f32;
    }
}

pub(crate) fn fill_normal_scalar_path_f64(engine: &mut Mt19937, out: &mut [f64], mean: f64, std: f64) {
    for slot in out {
        *slot = standard_normal(engine).mul_add(std, mean);
    }
}

/// Draws a N(0, 1) number by Box and Muller (1958): two uniforms give two independent normals. The engine keeps the
/// second one, through all other kinds of draws, until the next call or a new seed.
fn standard_normal(engine: &mut Mt19937) -> f64 {
    if let Some(normal) = engine.next_normal.take() {
        return normal;
    }
    let u1 = unit_f64(engine);
    let u2 = unit_f64(engine);
    let radius = (-2.0 * (-u2).ln_1p()).sqrt();
    let angle = 2.0 * PI * u1;
    engine.next_normal = Some(radius * angle.sin());
    radius * angle.cos()
}

/// Applies Box-Muller to 16 uniforms. Element j pairs with element j + 8 (`normal_fill_16` in PyTorch).
fn normal_block_f64(block: &mut [f64], mean: f64, std: f64) {
    for j in 0..BLOCK / 2 {
        // 1 - u is in (0, 1], where the logarithm is finite.
        let radius = (-2.0 * (1.0 - block[j]).ln()).sqrt();
        let angle = 2.0 * PI * block[j + 8];
        block[j] = (radius * angle.cos()).mul_add(std, mean);
        block[j + 8] = (radius * angle.sin()).mul_add(std, mean);
    }
}

/// The number of significant bits, including the leading one.
fn bits_of(dtype: DType) -> u32 {
    if dtype == DType::F16 { 11 } else { 8 }
}

fn rounded<T: Memory<Math = f32>>(value: f32) -> f32 {
    T::narrow(value).widen()
}

/// Draws `Tensor.uniform_(from, to)` and `torch.rand` in float16 or bfloat16: the lowest 11 or 8 bits of one word.
pub(crate) fn fill_uniform_half<T: Memory<Math = f32>>(
    engine: &mut Mt19937,
    out: &mut [T],
    from: f64,
    to: f64,
) {
    let bits = bits_of(T::DTYPE);
    let (from, to) = (rounded::<T>(from as f32), rounded::<T>(to as f32));
    let range = rounded::<T>(to - from);
    engine.fill_from_words(out, |word| {
        let unit = (word & ((1 << bits) - 1)) as f32 / (1_u32 << bits) as f32;
        T::narrow(unit * range + from)
    });
}

/// Draws `Tensor.normal_(mean, std)` and `torch.randn` in half types. Their method depends on size and layout, too.
pub(crate) fn fill_normal_half<T: Memory<Math = f32>>(
    engine: &mut Mt19937,
    out: &mut [T],
    mean: f64,
    std: f64,
    in_order: bool,
) {
    if out.len() < BLOCK || !in_order {
        for slot in out {
            *slot = T::narrow(standard_normal(engine).mul_add(std, mean) as f32);
        }
        return;
    }
    let (mean, std) = (rounded::<T>(mean as f32), rounded::<T>(std as f32));
    fill_uniform_half(engine, out, 0.0, 1.0);
    for block in out.chunks_exact_mut(BLOCK) {
        normal_block_half(block, mean, std);
    }
    if !out.len().is_multiple_of(BLOCK) {
        let last = out.len() - BLOCK;
        fill_uniform_half(engine, &mut out[last..], 0.0, 1.0);
        normal_block_half(&mut out[last..], mean, std);
    }
}

/// Draws `Tensor.random_()` in float16 or bfloat16: the integers that the type holds exactly, 0 to 2¹¹ or 2⁸ inclusive.
pub(crate) fn fill_random_half<T: Memory<Math = f32>>(engine: &mut Mt19937, out: &mut [T]) {
    let numbers = (1 << bits_of(T::DTYPE)) + 1;
    engine.fill_from_words(out, |word| T::narrow((word % numbers) as f32));
}

/// Like [`normal_block_f64`], with every step rounded to 16 bits: few radii and angles, nothing beyond 3.9 or 3.3.
fn normal_block_half<T: Memory<Math = f32>>(block: &mut [T], mean: f32, std: f32) {
    let rounded = rounded::<T>;
    let of_f64 = |value: f64| rounded(value as f32);
    for j in 0..BLOCK / 2 {
        let (u1, u2) = (block[j].widen(), block[j + 8].widen());
        let logarithm = of_f64(f64::from(rounded(1.0 - u1)).ln());
        let radius = rounded((-2.0 * logarithm).sqrt());
        let angle = f64::from(of_f64(2.0 * PI * f64::from(u2)));
        let number = |projection: f64| T::narrow(rounded(rounded(radius * of_f64(projection)) * std) + mean);
        (block[j], block[j + 8]) = (number(angle.cos()), number(angle.sin()));
    }
}

/// Ranges of at least this size take two words per number.
const WIDE_RANGE: u64 = 1 << 28;

/// Draws `torch.randint(low, high)` and `Tensor.random_(low, high)`; `high` is excluded. The remainder of a division
/// slightly favours small numbers, as in PyTorch. Every dtype draws the same integers, so convert them.
pub(crate) fn fill_randint_i64(engine: &mut Mt19937, out: &mut [i64], low: i64, high: i64) {
    // As u64, because high - low may exceed an i64.
    let range = high.wrapping_sub(low) as u64;
    if range >= WIDE_RANGE {
        for slot in out {
            *slot = low.wrapping_add((engine.random64() % range) as i64);
        }
    } else {
        let range = range as u32;
        engine.fill_from_words(out, |word| low.wrapping_add(i64::from(word % range)));
    }
}

/// Draws `Tensor.random_()` on int64, from 0 to the largest. DataLoader seeds come from this draw.
pub(crate) fn fill_random_i64(engine: &mut Mt19937, out: &mut [i64]) {
    for slot in out {
        *slot = (engine.random64() % (1 << 63)) as i64;
    }
}

pub(crate) fn fill_random_i32(engine: &mut Mt19937, out: &mut [i32]) {
    engine.fill_from_words(out, |word| (word % (1 << 31)) as i32);
}

pub(crate) fn fill_random_u8(engine: &mut Mt19937, out: &mut [u8]) {
    engine.fill_from_words(out, |word| (word % 256) as u8);
}

/// Draws `Tensor.random_()` on bool: the low bit.
pub(crate) fn fill_random_bool(engine: &mut Mt19937, out: &mut [bool]) {
    engine.fill_from_words(out, |word| word & 1 == 1);
}

/// Draws `Tensor.random_()` on float32: the integers that a float32 holds exactly, 0 to 2^24 inclusive.
pub(crate) fn fill_random_f32(engine: &mut Mt19937, out: &mut [f32]) {
    engine.fill_from_words(out, |word| (word % ((1 << 24) + 1)) as f32);
}

/// Draws `Tensor.random_()` on float64: 0 to 2^53 inclusive.
pub(crate) fn fill_random_f64(engine: &mut Mt19937, out: &mut [f64]) {
    for slot in out {
        *slot = (engine.random64() % ((1 << 53) + 1)) as f64;
    }
}

/// Draws `torch.randperm(n)`, the numbers 0 to n - 1 in random order. Takes n - 1 words, or none for n < 2.
pub(crate) fn randperm(engine: &mut Mt19937, n: usize) -> Vec<i64> {
    // A 32-bit word modulo n has a bias of about n / 2^32. PyTorch accepts up to one part in twenty.
    if n < u32::MAX as usize / 20 { randperm_by_swaps(engine, n) } else { randperm_inside_out(engine, n) }
}

/// The Fisher–Yates shuffle, front to back: each place swaps with a random one not before it.
fn randperm_by_swaps(engine: &mut Mt19937, n: usize) -> Vec<i64> {
    let mut order: Vec<i64> = (0..n as i64).collect();
    for i in 0..n.saturating_sub(1) {
        let z = engine.random() as usize % (n - i);
        order.swap(i, i + z);
    }
    order
}

/// The "inside-out" form, which builds the permutation as it grows, with two words per step.
pub(super) fn randperm_inside_out(engine: &mut Mt19937, n: usize) -> Vec<i64> {
    let mut order = vec![0; n];
    for i in 0..n {
        let z = (engine.random64() % (i as u64 + 1)) as usize;
        order[i] = order[z];
        order[z] = i as i64;
    }
    order
}

/// Draws `Tensor.bernoulli_(p)` for a number `p`: true with `keep_probability`. Each element takes two words.
pub(crate) fn fill_bernoulli(engine: &mut Mt19937, out: &mut [bool], keep_probability: f64) {
    for slot in out {
        *slot = unit_f64(engine) < keep_probability;
    }
}

/// Draws `torch.bernoulli(probabilities)` for f32: one f32 uniform, so one word, per element.
pub(crate) fn fill_bernoulli_from_f32(engine: &mut Mt19937, probabilities: &[f32], out: &mut [bool]) {
    assert_eq!(probabilities.len(), out.len(), "one probability per element");
    for (slot, &p) in out.iter_mut().zip(probabilities) {
        *slot = wide::unit(engine.random()) < p;
    }
}

/// Like [`fill_bernoulli_from_f32`] for f64: one f64 uniform, so two words, per element.
pub(crate) fn fill_bernoulli_from_f64(engine: &mut Mt19937, probabilities: &[f64], out: &mut [bool]) {
    assert_eq!(probabilities.len(), out.len(), "one probability per element");
    for (slot, &p) in out.iter_mut().zip(probabilities) {
        *slot = unit_f64(engine) < p;
    }
}
