use bytemuck::Pod;
use half::bf16;

use crate::cpu::blocks::Runs;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernel::{Args, TwinResult};
use crate::ops::launch::launch;
use crate::ops::row::{row, rows};
use crate::tensor::Tensor;

/// The element type of a gradient. f16 is missing, because its parameters should be f32.
trait ScaledNumber: Pod + Element {
    fn is_finite(self) -> bool;
    fn times(self, factor: f32) -> Self;
}

impl ScaledNumber for f32 {
    fn is_finite(self) -> bool {
        self.is_finite()
    }

    fn times(self, factor: f32) -> f32 {
        self * factor
    }
}

impl ScaledNumber for f64 {
    fn is_finite(self) -> bool {
        self.is_finite()
    }

    fn times(self, factor: f32) -> f64 {
        self * f64::from(factor)
    }
}

impl ScaledNumber for bf16 {
    fn is_finite(self) -> bool {
        bf16::is_finite(self)
    }

    fn times(self, factor: f32) -> bf16 {
        bf16::from_f32(self.to_f32() * factor)
    }
}

pub(super) fn unscale(grad: &Tensor, inv_scale: &Tensor, found_inf: &Tensor) -> Result<()> {
    launch(UNSCALE.of(grad.dtype())?, [inv_scale], [grad, found_inf], &[], &[])
}

rows! {
    UNSCALE: row!("amp_unscale", [f32 f64 bf16], [In(f32), Out(T), Out(f32)], Indexed, Cheap, unscale_twin::<T>)
        .refused_as("_amp_foreach_non_finite_check_and_unscale_cuda");
    UPDATE_SCALE: row!("amp_update_scale", none, [
        In(f32), Out(f32), Out(i32), Int, Float, Float,
    ], Elements, Cheap, update_scale_twin);
}

fn unscale_twin<T: ScaledNumber>(args: Args<'_, '_>) -> TwinResult {
    let factor = args.inputs[0].elements::<f32>()[0];
    let [grad, found_inf] = args.outputs else { unreachable!("it has two outputs") };
    let values: &mut [T] = bytemuck::cast_slice_mut(grad.bytes);
    let mut finite = true;
    Runs::of(grad.layout).visit(0, grad.layout.numel(), |start, stride, length| {
        for i in 0..length {
            let value = &mut values[start + i * stride];
            finite &= value.is_finite();
            *value = value.times(factor);
        }
    });
    if !finite {
        found_inf.elements::<f32>()[0] = 1.0;
    }
    Ok(())
}

pub(super) fn update_scale(
    scale: &Tensor,
    growth_tracker: &Tensor,
    found_inf: &Tensor,
    factors: [f64; 2],
    growth_interval: u32,
) -> Result<()> {
    launch(UPDATE_SCALE.only(), [found_inf], [scale, growth_tracker], &[i64::from(growth_interval)], &factors)
}

fn update_scale_twin(args: Args<'_, '_>) -> TwinResult {
    let found_inf = args.inputs[0].elements::<f32>()[0];
    let [scale, growth_tracker] = args.outputs else { unreachable!("it has two outputs") };
    let (scale, growth_tracker) = (&mut scale.elements::<f32>()[0], &mut growth_tracker.elements::<i32>()[0]);
    let &[growth_factor, backoff_factor] = args.floats else { unreachable!("it has two factors") };
    let times = |factor: f64| (f64::from(*scale) * factor) as f32;
    if found_inf != 0.0 {
        *scale = times(backoff_factor);
        *growth_tracker = 0;
    } else if i64::from(*growth_tracker) + 1 == args.ints[0] {
        let grown = times(growth_factor);
        if grown.is_finite() {
            *scale = grown;
        }
        *growth_tracker = 0;
    } else {
        *growth_tracker += 1;
    }
    Ok(())
}
