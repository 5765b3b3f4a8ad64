//! GELU: x times the probability that a number drawn from the normal distribution is below x.

use crate::autograd::{Context, Function, Saved};
use crate::cpu::blocks::elementwise;
use crate::cpu::half::InHalves;
use crate::cpu::number::Float;
use crate::dtype::{DType, with_float};
use crate::error::Result;
use crate::error::dtype::not_implemented;
use crate::kernel::{FLOATS, KernelDef};
use crate::ops;
use crate::ops::launch::launch;
use crate::tensor::Tensor;

/// How that probability is calculated: the `approximate` of `torch.nn.functional.gelu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximate {
    /// As it is, with the error function.
    #[default]
    None,
    /// By the hyperbolic tangent of a polynomial, which differs by up to 0.0005.
    Tanh,
}

impl Tensor {
    /// `x · Φ(x)`: about x where it is large, about 0 where it is small, and smooth in between
    /// (`torch.nn.functional.gelu`).
    #[track_caller]
    pub fn gelu(&self, approximate: Approximate) -> Result<Tensor> {
        if !self.dtype().is_floating_point() {
            return Err(not_implemented("GeluKernelImpl", self.dtype()));
        }
        ops::apply(Gelu { approximate }, [self])
    }
}

struct Gelu {
    approximate: Approximate,
}

impl Function<1> for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn backward_name(&self) -> &'static str {
        "GeluBackward0"
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        launch(gelu_kernel(self.approximate, x.dtype())?, [x], [&out], &[], &[])?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let grad_x = ops::call("gelu_backward", &[grad, &x], |_| {
            let out = x.uninit_beside(x.sizes(), x.dtype())?;
            launch(gelu_backward_kernel(self.approximate, x.dtype())?, [grad, &x], [&out], &[], &[])?;
            Ok(out)
        })?;
        Ok([Some(grad_x)])
    }
}

/// Every kernel of this file.
pub(super) fn every_kernel() -> Vec<&'static KernelDef> {
    let each = [Approximate::None, Approximate::Tanh].into_iter().flat_map(|approximate| {
        FLOATS.into_iter().flat_map(move |dtype| {
            [gelu_kernel(approximate, dtype), gelu_backward_kernel(approximate, dtype)]
        })
    });
    each.flatten().collect()
}

/// √(2/π), and what x³ is multiplied by: tanh(√(2/π) · (x + 0.044715 · x³)) stands for erf(x / √2).
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
const CUBE: f64 = 0.044715;

fn gelu_kernel(approximate: Approximate, dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => Ok(match approximate {
        Approximate::None => elementwise!("gelu"<T>, Costly, |x: T| -> T { x * Float::normal_cdf(x) }),
        Approximate::Tanh => elementwise!("gelu_tanh"<T>, Costly, |x: T| -> T {
            0.5 * x * (1.0 + Float::tanh(SLOPE as T * (x + CUBE as T * (x * x * x))))
        }),
    }.storing(dtype)), else Err(not_implemented("GeluKernelImpl", dtype)))
}

fn gelu_backward_kernel(approximate: Approximate, dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => Ok(match approximate {
        // Φ(x) + x φ(x), with the density φ(x) = e^(−x²/2) / √(2π)
        Approximate::None => elementwise!("gelu_backward"<T>, Costly, |grad: T, x: T| -> T {{
            let density = Float::exp(-0.5 * x * x) * (0.5 * SLOPE) as T;
            grad * (Float::normal_cdf(x) + x * density)
        }}),
        Approximate::Tanh => elementwise!("gelu_tanh_backward"<T>, Costly, |grad: T, x: T| -> T {{
            let square = x * x;
            let tanh = Float::tanh(SLOPE as T * (x + CUBE as T * (square * x)));
            let slope = SLOPE as T * (1.0 + (3.0 * CUBE) as T * square);
            grad * (0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * slope)
        }}),
    }.storing(dtype)), else Err(not_implemented("GeluKernelImpl", dtype)))
}
