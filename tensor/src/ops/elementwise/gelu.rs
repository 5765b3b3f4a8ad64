//! GELU: x times the probability that a number drawn from the normal distribution is below x.

use super::unary::in_one;
use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::Float;
use crate::error::Result;
use crate::error::dtype::not_implemented;
use crate::ops;
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, rows};
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

impl Gelu {
    /// Forward and backward.
    fn kernels(&self) -> [&'static Row; 2] {
        match self.approximate {
            Approximate::None => [&GELU, &GELU_BACKWARD],
            Approximate::Tanh => [&GELU_TANH, &GELU_TANH_BACKWARD],
        }
    }
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
        launch(self.kernels()[0].of(x.dtype())?, [x], [&out], &[], &[])?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let grad_x = in_one("gelu_backward", self.kernels()[1], grad, &x)?;
        Ok([Some(grad_x)])
    }
}

/// √(2/π), and what x³ is multiplied by: tanh(√(2/π) · (x + 0.044715 · x³)) stands for erf(x / √2).
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
const CUBE: f64 = 0.044715;

rows! {
    GELU: row!("gelu", floats, Costly, |x: T| -> T { x * Float::normal_cdf(x) });
    GELU_TANH: row!("gelu_tanh", floats, Costly, |x: T| -> T {
        0.5 * x * (1.0 + Float::tanh(SLOPE as T * (x + CUBE as T * (x * x * x))))
    });
    // Φ(x) + x φ(x), with the density φ(x) = e^(−x²/2) / √(2π)
    GELU_BACKWARD: row!("gelu_backward", floats, Costly, |grad: T, x: T| -> T {{
        let density = Float::exp(-0.5 * x * x) * (0.5 * SLOPE) as T;
        grad * (Float::normal_cdf(x) + x * density)
    }});
    GELU_TANH_BACKWARD: row!("gelu_tanh_backward", floats, Costly, |grad: T, x: T| -> T {{
        let square = x * x;
        let tanh = Float::tanh(SLOPE as T * (x + CUBE as T * (square * x)));
        let slope = SLOPE as T * (1.0 + (3.0 * CUBE) as T * square);
        grad * (0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * slope)
    }});
}
