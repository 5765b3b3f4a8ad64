//! The kernels of pooling, on contiguous planes (planes, height, width). The elements of a window are combined row by
//! row, from left to right. The host processes a row of windows together: the first element of each window, then the
//! second, and so on. [`Phases`] make these elements adjacent. Gradients are summed in window order: the host loops
//! over windows, a device thread over the windows of its element.

use std::hint::select_unpredictable;
use std::ops::Range;
use std::slice::from_mut;

use bytemuck::{Pod, Zeroable, cast_slice};
use half::{bf16, f16};

use super::window::{Grid, Windows};
use crate::cpu::half::Stored;
use crate::cpu::number::Float;
use crate::cpu::parts::{for_parts, for_parts_of_two, part};
use crate::cpu::simd::vectorized;
use crate::error::Result;
use crate::kernel::{Args, TwinResult};
use crate::ops::launch::launch;
use crate::ops::row::{Row, block, row, rows};
use crate::tensor::Tensor;

rows! {
    // The blocks describe the windows down the planes, then across.
    static MAX_POOL2D: Row = row! {
        name: "max_pool2d", types: each, geometry: Indexed, cost: Cheap,
        parameters: [In(T), Out(T), Out(i32), Block(Windows), Block(Windows)],
        twin: max_pool2d_twin::<T>,
    };
    static MAX_POOL2D_BACKWARD: Row = row! {
        name: "max_pool2d_backward", refused_as: "max_pool2d",
        types: each_float, geometry: Indexed, cost: Cheap,
        parameters: [In(T), In(i32), Out(T), Block(Windows), Block(Windows)],
        twin: max_pool2d_backward_twin::<T>,
    };
    static AVG_POOL2D: Row = row! {
        name: "avg_pool2d", types: floats, geometry: Indexed, cost: Cheap,
        parameters: [In(T), Out(T), Block(Windows), Block(Windows), Block(Divisor)],
        twin: avg_pool2d_twin::<T>,
    };
    static AVG_POOL2D_BACKWARD: Row = row! {
        name: "avg_pool2d_backward", refused_as: "avg_pool2d", types: floats, geometry: Indexed, cost: Cheap,
        parameters: [In(T), Out(T), Block(Windows), Block(Windows), Block(Divisor)],
        twin: avg_pool2d_backward_twin::<T>,
    };
    static ADAPTIVE_AVG_POOL2D: Row = row! {
        name: "adaptive_avg_pool2d", types: floats, geometry: Indexed, cost: Cheap,
        parameters: [In(T), Out(T)],
        twin: adaptive_avg_pool2d_twin::<T>,
    };
    static ADAPTIVE_AVG_POOL2D_BACKWARD: Row = row! {
        name: "adaptive_avg_pool2d_backward", refused_as: "adaptive_avg_pool2d",
        types: floats, geometry: Indexed, cost: Cheap,
        parameters: [In(T), Out(T)],
        twin: adaptive_avg_pool2d_backward_twin::<T>,
    };
}

/// Ordered numbers. Half types are compared without conversion.
trait Ordered: Pod + Send + Sync {
    /// The maximum of no elements.
    const LOWEST: Self;
    /// Whether this number is a NaN or exceeds the one found before.
    fn displaces(self, found: Self) -> bool;
}

macro_rules! impl_ordered {
    ($($T:ty: $lowest:expr),*; $($Half:ty),*) => {
        $(impl Ordered for $T {
            const LOWEST: $T = $lowest;
            #[inline(always)]
            #[allow(clippy::eq_op)] // Only a NaN differs from itself.
            fn displaces(self, found: $T) -> bool {
                (self > found) | (self != self)
            }
        })*
        $(impl Ordered for $Half {
            const LOWEST: $Half = <$Half>::NEG_INFINITY;
            #[inline(always)]
            fn displaces(self, found: $Half) -> bool {
                const INFINITY: u16 = <$Half>::INFINITY.to_bits();
                let [x, found] = [self, found].map(|half| half.to_bits() as i16);
                // The bits, as integers in the floats' order: those of negative numbers count down from 0.
                let [place, found_place] = [x, found].map(|bits| ((bits & i16::MAX) ^ (bits >> 15)) - (bits >> 15));
                let [is_nan, found_nan] = [x, found].map(|bits| (bits & i16::MAX) as u16 > INFINITY);
                ((place > found_place) & !found_nan) | is_nan
            }
        })*
    };
}
impl_ordered!(f32: f32::NEG_INFINITY, f64: f64::NEG_INFINITY, i64: i64::MIN, i32: i32::MIN, u8: u8::MIN; f16, bf16);

/// Rows sorted by position modulo the windows' stride. Phase `p` has elements `p`, `p + stride`, `p + 2 · stride`, ….
/// Elements at the same place in neighbouring windows are adjacent in a phase.
struct Phases<T> {
    stride: usize,
    /// The elements of a phase. The last phases may end with an unused element.
    length: usize,
    values: Vec<T>,
}

impl<T: Pod> Phases<T> {
    fn new(rows: usize, columns: usize, stride: usize) -> Phases<T> {
        // A row shorter than the stride has no second window.
        let stride = stride.min(columns.max(1));
        let length = columns.div_ceil(stride);
        Phases { stride, length, values: vec![T::zeroed(); rows * length * stride] }
    }

    /// The elements of `count` windows in a row, of which the first has element `first`.
    #[inline(always)]
    fn of(&mut self, row: usize, first: usize, count: usize) -> &mut [T] {
        let start = (row * self.stride + first % self.stride) * self.length + first / self.stride;
        &mut self.values[start..start + count]
    }

    #[inline(always)]
    fn split(&mut self, x: &[T]) {
        match self.stride {
            1 => self.values.copy_from_slice(x),
            2 => {
                let (even, odd) = self.values.split_at_mut(self.length);
                let (pairs, rest) = x.as_chunks();
                if let [last] = rest {
                    even[self.length - 1] = *last;
                }
                split_pairs(pairs, even, odd);
            }
            stride => {
                for (phase, values) in self.values.chunks_mut(self.length).enumerate() {
                    for (value, x) in values.iter_mut().zip(x.iter().skip(phase).step_by(stride)) {
                        *value = *x;
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn join(&self, row: usize, out: &mut [T]) {
        let width = self.length * self.stride;
        let values = &self.values[row * width..(row + 1) * width];
        match self.stride {
            1 => out.copy_from_slice(values),
            2 => {
                let (even, odd) = values.split_at(self.length);
                let (pairs, rest) = out.as_chunks_mut();
                if let [last] = rest {
                    *last = even[self.length - 1];
                }
                let (even, odd) = (&even[..pairs.len()], &odd[..pairs.len()]);
                for i in 0..pairs.len() {
                    pairs[i] = [even[i], odd[i]];
                }
            }
            stride => {
                for (phase, values) in values.chunks(self.length).enumerate() {
                    for (out, value) in out.iter_mut().skip(phase).step_by(stride).zip(values) {
                        *out = *value;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn split_pairs<T: Pod>(pairs: &[[T; 2]], even: &mut [T], odd: &mut [T]) {
    let n = pairs.len();
    let (even, odd) = (&mut even[..n], &mut odd[..n]);
    for i in 0..n {
        [even[i], odd[i]] = pairs[i];
    }
}

/// Computes the maximum of each window and its position in the plane. The first of equal elements wins, and a NaN wins
/// over all. A window of padding only has position −1.
pub(super) fn max_pool2d(x: &Tensor, grid: &Grid, out: &Tensor, index: &Tensor) -> Result<()> {
    launch(MAX_POOL2D.of(x.dtype())?, [x], [out, index], cast_slice(&[*grid]), &[])
}

fn max_pool2d_twin<T: Ordered>(Args { inputs, outputs, ints, .. }: Args<'_, '_>) -> TwinResult {
    let largest =
        vectorized!([T: Ordered] largest::<T>, (x: &[T], grid: Grid, out: &mut [T], index: &mut [i32]));
    let [out, index] = outputs else { unreachable!("the kernel has two outputs") };
    let (x, sizes) = (inputs[0].elements::<T>(), inputs[0].layout.sizes());
    let (planes, grid) = (sizes[0], cast_slice(ints)[0]);
    for_parts_of_two(out.elements(), index.elements(), planes, x.len(), |i, out, index| {
        largest(part(x, planes, i), grid, out, index);
    });
    Ok(())
}

#[inline(always)]
fn largest<T: Ordered>(x: &[T], Grid { down, across }: Grid, out: &mut [T], index: &mut [i32]) {
    let (width, stride, windows) = (across.size as usize, across.stride as usize, across.count as usize);
    let mut row = Phases::new(1, width, stride);
    out.fill(T::LOWEST);
    index.fill(-1);
    for (o, (out, index)) in out.chunks_mut(windows).zip(index.chunks_mut(windows)).enumerate() {
        for y in (0..down.kernel).filter_map(|k| down.element(o, k)) {
            let x = &x[y * width..(y + 1) * width];
            if across.count < across.kernel {
                // Too few windows for a loop over them.
                for (o, (out, index)) in out.iter_mut().zip(&mut *index).enumerate() {
                    for column in (0..across.kernel).filter_map(|k| across.element(o, k)) {
                        keep_larger(
                            &x[column..=column],
                            (y * width + column) as i32,
                            0,
                            from_mut(out),
                            from_mut(index),
                        );
                    }
                }
                continue;
            }
            row.split(x);
            for k in 0..across.kernel {
                let (windows, first) = across.inside(k);
                let found = row.of(0, first, windows.len());
                let (out, index) = (&mut out[windows.clone()], &mut index[windows]);
                keep_larger(found, (y * width + first) as i32, stride as i32, out, index);
            }
        }
    }
}

/// Updates maxima and their positions `first`, `first + step`, …. As arguments, its slices are known not to overlap.
#[inline(always)]
fn keep_larger<T: Ordered>(x: &[T], first: i32, step: i32, out: &mut [T], index: &mut [i32]) {
    let n = x.len();
    let (out, index) = (&mut out[..n], &mut index[..n]);
    let mut at = first;
    for i in 0..n {
        let x = x[i];
        let larger = x.displaces(out[i]) | (index[i] < 0);
        // Store both unconditionally: a loop with conditional stores is not vectorised.
        out[i] = select_unpredictable(larger, x, out[i]);
        index[i] = select_unpredictable(larger, at, index[i]);
        at = at.wrapping_add(step); // May be no valid position after the last window.
    }
}

/// Sums, for each element, the gradients of the windows whose maximum it is.
pub(super) fn max_pool2d_backward(grad: &Tensor, index: &Tensor, grid: &Grid, grad_x: &Tensor) -> Result<()> {
    launch(MAX_POOL2D_BACKWARD.of(grad.dtype())?, [grad, index], [grad_x], cast_slice(&[*grid]), &[])
}

fn max_pool2d_backward_twin<T: Stored>(Args { inputs, outputs, ints, .. }: Args<'_, '_>) -> TwinResult {
    let (grad, index) = (inputs[0].elements::<T>(), inputs[1].elements::<i32>());
    let (planes, grid): (_, Grid) = (inputs[0].layout.sizes()[0], cast_slice(ints)[0]);
    let grad_x = outputs[0].elements::<T>();
    let elements = grad_x.len();
    let may_share = grid.down.overlap() | grid.across.overlap();
    for_parts(grad_x, planes, elements, |i, grad_x| {
        let (grad, index) = (part(grad, planes, i), part(index, planes, i));
        let found = index.iter().enumerate().filter(|(_, at)| **at >= 0);
        if !may_share {
            grad_x.fill(T::zeroed());
            // Skip zeros, so that −0 becomes +0, as in a sum.
            found.filter(|(i, _)| grad[*i] != T::zeroed()).for_each(|(i, at)| grad_x[*at as usize] = grad[i]);
            return;
        }
        let (mut grad_room, mut sums) = (Vec::new(), Vec::new());
        let grad = T::read(grad, &mut grad_room);
        T::write(grad_x, &mut sums, |grad_x| {
            grad_x.fill(T::Math::zero());
            found.for_each(|(i, at)| grad_x[*at as usize] += grad[i]);
        });
    });
    Ok(())
}

block! {
    pub(super) struct Divisor {
        pub(super) count_include_pad: i64,
        /// One divisor for all windows, or 0.
        pub(super) fixed: i64,
    }
}

impl Divisor {
    /// The factor of all windows in row `o`.
    fn of_row(self, down: &Windows, o: usize) -> i64 {
        match self {
            Divisor { fixed, .. } if fixed != 0 => fixed,
            Divisor { count_include_pad: 0, .. } => down.elements(o).len() as i64,
            _ => down.padded_elements(o),
        }
    }

    fn of_column(self, across: &Windows, o: usize) -> i64 {
        match self {
            Divisor { fixed, .. } if fixed != 0 => 1,
            Divisor { count_include_pad: 0, .. } => across.elements(o).len() as i64,
            _ => across.padded_elements(o),
        }
    }
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Means {
    pub(super) grid: Grid,
    pub(super) divisor: Divisor,
}

pub(super) fn avg_pool2d(x: &Tensor, means: &Means, out: &Tensor) -> Result<()> {
    launch(AVG_POOL2D.of(x.dtype())?, [x], [out], cast_slice(&[*means]), &[])
}

fn avg_pool2d_twin<T: Float>(Args { inputs, outputs, ints, .. }: Args<'_, '_>) -> TwinResult {
    let means = vectorized!([T: Float] means::<T>, (x: &[T], of: Means, out: &mut [T]));
    let (x, sizes) = (inputs[0].elements::<T>(), inputs[0].layout.sizes());
    let of = cast_slice(ints)[0];
    for_parts(outputs[0].elements(), sizes[0], x.len(), |i, out| {
        means(part(x, sizes[0], i), of, out);
    });
    Ok(())
}

#[inline(always)]
fn means<T: Float>(x: &[T], of: Means, out: &mut [T]) {
    let Grid { down, across } = of.grid;
    let width = across.size as usize;
    let mut row = Phases::new(1, width, across.stride as usize);
    let mut divisors = Divisors::new(of);
    out.fill(T::zeroed());
    for (o, out) in out.chunks_mut(across.count as usize).enumerate() {
        for y in down.elements(o) {
            row.split(&x[y * width..(y + 1) * width]);
            for k in 0..across.kernel {
                let (windows, first) = across.inside(k);
                let (x, n) = (row.of(0, first, windows.len()), windows.len());
                let (x, out) = (&x[..n], &mut out[windows][..n]);
                for i in 0..n {
                    out[i] += x[i];
                }
            }
        }
        divisors.divide(out, o);
    }
}

/// The divisors of a row of windows, usually equal to those of the previous row.
struct Divisors<T> {
    of: Means,
    of_row: i64,
    values: Vec<T>,
}

impl<T: Float> Divisors<T> {
    fn new(of: Means) -> Divisors<T> {
        Divisors { of, of_row: 0, values: Vec::new() } // 0 is no row's divisor.
    }

    #[inline(always)]
    fn divide(&mut self, row: &mut [T], o: usize) {
        let Means { grid: Grid { down, across }, divisor } = &self.of;
        let of_row = divisor.of_row(down, o);
        if of_row != self.of_row {
            let columns = (0..row.len()).map(|column| divisor.of_column(across, column));
            self.values = columns.map(|of_column| T::from_f64((of_row * of_column) as f64)).collect();
            self.of_row = of_row;
        }
        for (value, divisor) in row.iter_mut().zip(&self.values) {
            *value = *value / *divisor;
        }
    }
}

/// Sums, for each element, the gradients of its windows, divided as the means were.
pub(super) fn avg_pool2d_backward(grad: &Tensor, means: &Means, grad_x: &Tensor) -> Result<()> {
    launch(AVG_POOL2D_BACKWARD.of(grad.dtype())?, [grad], [grad_x], cast_slice(&[*means]), &[])
}

fn avg_pool2d_backward_twin<T: Float>(Args { inputs, outputs, ints, .. }: Args<'_, '_>) -> TwinResult {
    let spread = vectorized!([T: Float] spread::<T>, (grad: &[T], of: Means, grad_x: &mut [T]));
    let (grad, sizes) = (inputs[0].elements::<T>(), inputs[0].layout.sizes());
    let of = cast_slice(ints)[0];
    let elements = outputs[0].layout.numel();
    for_parts(outputs[0].elements(), sizes[0], elements, |i, grad_x| {
        spread(part(grad, sizes[0], i), of, grad_x);
    });
    Ok(())
}

#[inline(always)]
fn spread<T: Float>(grad: &[T], of: Means, grad_x: &mut [T]) {
    let Grid { down, across } = of.grid;
    let (height, width) = (down.size as usize, across.size as usize);
    let mut sums = Phases::new(height, width, across.stride as usize);
    let mut divisors = Divisors::new(of);
    let mut divided = vec![T::zeroed(); across.count as usize];
    for (o, grad) in grad.chunks(across.count as usize).enumerate() {
        divided.copy_from_slice(grad);
        divisors.divide(&mut divided, o);
        for y in down.elements(o) {
            // Backwards, so that each element of x gets its windows in order.
            for k in (0..across.kernel).rev() {
                let (windows, first) = across.inside(k);
                let (sums, divided) = (sums.of(y, first, windows.len()), &divided[windows]);
                for (sum, grad) in sums.iter_mut().zip(divided) {
                    *sum += *grad;
                }
            }
        }
    }
    for (y, out) in grad_x.chunks_mut(width).enumerate() {
        sums.join(y, out);
    }
}

/// Computes the mean of each window: `o` of `count` covers `⌊o · size / count⌋` up to `⌈(o + 1) · size / count⌉`.
pub(super) fn adaptive_avg_pool2d(x: &Tensor, out: &Tensor) -> Result<()> {
    launch(ADAPTIVE_AVG_POOL2D.of(x.dtype())?, [x], [out], &[], &[])
}

#[inline(always)]
fn adaptive(o: usize, size: usize, count: usize) -> Range<usize> {
    o * size / count..((o + 1) * size).div_ceil(count)
}

fn adaptive_avg_pool2d_twin<T: Float>(Args { inputs, outputs, .. }: Args<'_, '_>) -> TwinResult {
    let (x, sizes) = (inputs[0].elements::<T>(), inputs[0].layout.sizes());
    let [rows, columns] = [1, 2].map(|dim| outputs[0].layout.sizes()[dim]);
    for_parts(outputs[0].elements::<T>(), sizes[0], x.len(), |i, out| {
        let x = part(x, sizes[0], i);
        for (o, out) in out.iter_mut().enumerate() {
            let ys = adaptive(o / columns, sizes[1], rows);
            let xs = adaptive(o % columns, sizes[2], columns);
            let mut sum = T::zeroed();
            for y in ys.clone() {
                for x in &x[y * sizes[2]..][xs.clone()] {
                    sum += *x;
                }
            }
            *out = sum / T::count(ys.len()) / T::count(xs.len());
        }
    });
    Ok(())
}

pub(super) fn adaptive_avg_pool2d_backward(grad: &Tensor, grad_x: &Tensor) -> Result<()> {
    launch(ADAPTIVE_AVG_POOL2D_BACKWARD.of(grad.dtype())?, [grad], [grad_x], &[], &[])
}

fn adaptive_avg_pool2d_backward_twin<T: Float>(Args { inputs, outputs, .. }: Args<'_, '_>) -> TwinResult {
    let (grad, sizes) = (inputs[0].elements::<T>(), inputs[0].layout.sizes());
    let [height, width] = [1, 2].map(|dim| outputs[0].layout.sizes()[dim]);
    let elements = outputs[0].layout.numel();
    for_parts(outputs[0].elements::<T>(), sizes[0], elements, |i, grad_x| {
        grad_x.fill(T::zeroed());
        for (o, grad) in part(grad, sizes[0], i).iter().enumerate() {
            let ys = adaptive(o / sizes[2], height, sizes[1]);
            let xs = adaptive(o % sizes[2], width, sizes[2]);
            let grad = *grad / T::count(ys.len()) / T::count(xs.len());
            for y in ys {
                for sum in &mut grad_x[y * width..][xs.clone()] {
                    *sum += grad;
                }
            }
        }
    });
    Ok(())
}
