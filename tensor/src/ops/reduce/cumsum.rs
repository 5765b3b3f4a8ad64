//! Cumulative sums. Floats are summed in f64, and each sum is rounded once. The order is a warp's scan of 32 elements:
//! each adds the one before it, then the partial sums 2, 4, 8 and 16 places before, then all before the 32.

use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::Number;
use crate::cpu::parallel::for_rows;
use crate::cpu::tree::LANES;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Args, TwinResult};
use crate::ops::launch::launch;
use crate::ops::plain::{contiguous, copy_of, row_major};
use crate::ops::row::{Row, row, rows};
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::tensor::Tensor;

operations! {
    static CUMSUM_ALONG: Operation =
        Operation::new("cumsum").node("CumsumBackward0").autocast_on_cuda(CastPolicy::Fp32);
    static CUMSUM_BACKWARD: Operation = Operation::new("cumsum_backward");
}

impl Tensor {
    /// Sums each element and all before it along a dimension (`torch.cumsum`). Sums of integers and bools are i64.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([[1, 2, 3], [10, 20, 30]])?;
    /// assert_eq!(x.cumsum(1)?.to_vec::<i64>()?, [1, 3, 6, 10, 30, 60]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn cumsum(&self, dim: i64) -> Result<Tensor> {
        let dim = self.layout().dim(dim)?;
        ops::apply(Cumsum { dim }, [self])
    }
}

struct Cumsum {
    dim: usize,
}

impl Cumsum {
    /// Moves `dim` to the end and back, because the kernel takes contiguous rows.
    fn run(&self, x: &Tensor, from_the_end: bool) -> Result<Tensor> {
        if x.ndim() == 0 {
            return copy_of(x);
        }
        let (dim, last) = (self.dim as i64, x.ndim() as i64 - 1);
        let rows = contiguous(&x.transpose(dim, last)?)?;
        let out = rows.uninit_beside(rows.sizes(), rows.dtype())?;
        launch(CUMSUM.of(rows.dtype())?, [&rows], [&out], &[from_the_end.into()], &[])?;
        row_major(&out.transpose(dim, last)?)
    }
}

impl Function<1> for Cumsum {
    fn operation(&self) -> &'static Operation {
        &CUMSUM_ALONG
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let x = if x.dtype().is_floating_point() { x } else { &x.to(DType::I64)? };
        self.run(x, false)
    }

    /// An element is part of its own sum and of all later ones.
    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(ops::call(&CUMSUM_BACKWARD, &[grad], |_| self.run(grad, true))?)])
    }
}

rows! {
    // The integer is 1 to sum rows from their end.
    static CUMSUM: Row = row! {
        name: "cumsum", types: sums, geometry: LastDim, cost: Cheap,
        parameters: [In(T), Out(T), Int],
        twin: cumsum_twin::<T>,
    };
}

/// A type to sum, and the type of its sums.
trait Summand: bytemuck::Pod + Send + Sync {
    type Sum: Number + Default;
    fn widen(self) -> Self::Sum;
    fn round(sum: Self::Sum) -> Self;
}

macro_rules! impl_summand {
    ($($T:ty: $Sum:ty),*) => {$(
        impl Summand for $T {
            type Sum = $Sum;
            fn widen(self) -> $Sum {
                self as $Sum
            }
            fn round(sum: $Sum) -> $T {
                sum as $T
            }
        }
    )*};
}
impl_summand!(f32: f64, f64: f64, i64: i64);

fn cumsum_twin<T: Summand>(args: Args<'_, '_>) -> TwinResult {
    let from_the_end = args.ints[0] != 0;
    let values: &[T] = args.inputs[0].elements();
    let length = args.outputs[0].layout.sizes().last().copied().unwrap_or(1);
    for_rows(args.outputs[0].elements(), length, |row, out: &mut [T]| {
        let x = &values[row * length..(row + 1) * length];
        let mut before = T::Sum::default();
        for start in (0..length).step_by(LANES) {
            let count = LANES.min(length - start);
            let at = |lane| if from_the_end { length - 1 - start - lane } else { start + lane };
            let mut sums = [T::Sum::default(); LANES];
            for (lane, sum) in sums.iter_mut().enumerate().take(count) {
                *sum = x[at(lane)].widen();
            }
            for distance in [1, 2, 4, 8, 16] {
                for lane in (distance..LANES).rev() {
                    sums[lane] = sums[lane].plus(sums[lane - distance]);
                }
            }
            for (lane, sum) in sums.iter_mut().enumerate().take(count) {
                *sum = sum.plus(before);
                out[at(lane)] = T::round(*sum);
            }
            before = sums[count - 1];
        }
    });
    Ok(())
}
