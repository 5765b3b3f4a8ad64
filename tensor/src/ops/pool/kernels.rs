//! The kernels of pooling, on contiguous planes (planes, height, width).
//!
//! The elements of a window are combined row by row, from left to right. The host handles a whole row of windows
//! together: it combines the first element of each window, then the second, and so on. To make these elements adjacent
//! for the inner loop, a row is first split into [`Phases`]. Gradients are summed in the order of the windows on both
//! sides: the host goes from window to window, and a device thread goes from its element to the windows over it.

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
    // The blocks describe the windows down the planes, then those across.
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

/// Ordered numbers, which have a largest. Half types are compared without conversion.
trait Ordered: Pod + Send + Sync {
    /// The maximum of no elements.
    const LOWEST: Self;
    /// Whether this number is larger than the one found before, or a NaN.
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
                // Compare the bits as integers in the same order, with those of negative numbers counting down from 0.
                let [place, found_place] = [x, found].map(|bits| ((bits & i16::MAX) ^ (bits >> 15)) - (bits >> 15));
                let [is_nan, found_nan] = [x, found].map(|bits| (bits & i16::MAX) as u16 > INFINITY);
                ((place > found_place) & !found_nan) | is_nan
            }
        })*
    };
}
impl_ordered!(f32: f32::NEG_INFINITY, f64: f64::NEG_INFINITY, i64: i64::MIN, i32: i32::MIN, u8: u8::MIN; f16, bf16);

/// One or more rows, sorted by the remainder of the position modulo the stride of the windows: phase `p` has elements
/// `p`, `p + stride`, `p + 2 · stride`, …. Elements at the same place in neighbouring windows are neighbours in a
/// phase.
struct Phases<T> {
    stride: usize,
    /// Elements of a phase. The last phases may end with an unused element.
    length: usize,
    values: Vec<T>,
}

impl<T: Pod> Phases<T> {
    fn new(rows: usize, columns: usize, stride: usize) -> Phases<T> {
        // No second window begins within a row that is shorter than the stride.
        let stride = stride.min(columns.max(1));
        let length = columns.div_ceil(stride);
        Phases { stride, length, values: vec![T::zeroed(); rows * length * stride] }
    }

    /// The elements of `count` windows in a row, where the first window has element `first`.
    #[inline(always)]
    fn of(&mut self, row: usize, first: usize, count: usize) -> &mut [T] {
        let start = (row * self.stride + first % self.stride) * self.length + first / self.stride;
        &mut self.values[start..start + count]
    }

    /// Splits a row into phases.
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

    /// Joins the phases of a row again.
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

/// Writes the first of each pair to one slice and the second to another.
#[inline(always)]
fn split_pairs<T: Pod>(pairs: &[[T; 2]], even: &mut [T], odd: &mut [T]) {
    let n = pairs.len();
    let (even, odd) = (&mut even[..n], &mut odd[..n]);
    for i in 0..n {
        [even[i], odd[i]] = pairs[i];
    }
}

/// The maximum of each window and its position in the plane. Of equal elements the first wins, but a NaN wins over
/// everything; the position is −1 for a window that is all padding.
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
                // Too few windows for a loop over them to pay off.
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

/// Keeps the larger of each window's element and its maximum so far, with its position: `first`, `first + step`, and so
/// on. It is a separate function so that the compiler knows that its slices do not overlap.
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
        at = at.wrapping_add(step); // After the last window this may not be a valid position.
    }
}

/// The gradient of each element: the sum of the gradients of the windows whose maximum it is.
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
            // Skip zeros, so that a negative zero stays +0, as it does in a sum.
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
    /// The divisor of a window's sum.
    pub(super) struct Divisor {
        /// Whether the padding counts.
        pub(super) count_include_pad: i64,
        /// One divisor for all windows, or 0 if there is none.
        pub(super) fixed: i64,
    }
}

impl Divisor {
    /// The factor that is common to all windows in row `o`.
    fn of_row(self, down: &Windows, o: usize) -> i64 {
        match self {
            Divisor { fixed, .. } if fixed != 0 => fixed,
            Divisor { count_include_pad: 0, .. } => down.elements(o).len() as i64,
            _ => down.padded_elements(o),
        }
    }

    /// The factor for the windows in column `o`.
    fn of_column(self, across: &Windows, o: usize) -> i64 {
        match self {
            Divisor { fixed, .. } if fixed != 0 => 1,
            Divisor { count_include_pad: 0, .. } => across.elements(o).len() as i64,
            _ => across.padded_elements(o),
        }
    }
}

/// The windows of an average pooling, and their divisors.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Means {
    pub(super) grid: Grid,
    pub(super) divisor: Divisor,
}

/// The mean of each window.
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

/// The divisors of a row of windows, usually the same as those of the row before.
struct Divisors<T> {
    of: Means,
    of_row: i64,
    values: Vec<T>,
}

impl<T: Float> Divisors<T> {
    fn new(of: Means) -> Divisors<T> {
        Divisors { of, of_row: 0, values: Vec::new() } // 0 is no row's divisor.
    }

    /// Divides the values of the windows of row `o`.
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

/// The gradient of each element: the sum of the gradients of its windows, each divided as its mean was.
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
            // From the last element of the windows to the first, so that the windows over one element of x come in
            // order.
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

/// The mean of each window of a grid that covers the plane. Window `o` of `count` begins at `⌊o · size / count⌋` and
/// ends before `⌈(o + 1) · size / count⌉`.
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

/// The gradient of each element: the sum of the gradients of its windows, each divided as its mean was.
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
