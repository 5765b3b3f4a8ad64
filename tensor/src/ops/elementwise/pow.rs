use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::Float;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, rows};
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::tensor::Tensor;

rows! {
    static CUBE: Row = row! {
        name: "cube", types: [f32 f64], cost: Cheap,
        element: |x: T| -> T { x * x * x },
    };
    static POW: Row = row! {
        name: "pow", types: floats, cost: Costly,
        element: |x: T, n: T| -> T { Float::pow(x, n) },
    };
}

operations! {
    static POW_SCALAR: Operation =
        Operation::new("pow").node("PowBackward0").autocast_on_cuda(CastPolicy::Fp32);
}

impl Tensor {
    /// Raises `x` to a power. `x.pow(2.0)` is `x * x`.
    #[track_caller]
    pub fn pow(&self, exponent: f64) -> Result<Tensor> {
        ops::apply(PowScalar { exponent }, [self])
    }
}

struct PowScalar {
    exponent: f64,
}

impl Function<1> for PowScalar {
    fn operation(&self) -> &'static Operation {
        &POW_SCALAR
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        let x = if x.dtype().is_floating_point() { x } else { &x.to(DType::F32)? };
        let out = || Tensor::uninit_result(&[x], x.dtype());
        // As in PyTorch, where √−0 is −0 and √−∞ is NaN.
        match self.exponent {
            1.0 => {
                let out = out()?;
                ops::plain::write(&out, x)?;
                return Ok(out);
            }
            2.0 => return x.square(),
            3.0 if !x.dtype().is_half() => {
                let out = out()?;
                launch(CUBE.of(x.dtype())?, [x], [&out], &[], &[])?;
                return Ok(out);
            }
            0.5 | -0.5 | -1.0 if x.dtype() == DType::F16 => {} // `POW` computes f16.
            0.5 => return x.sqrt(),
            -0.5 => return x.rsqrt(),
            -1.0 => return x.reciprocal(),
            _ => {}
        }
        let out = out()?;
        launch(POW.of(x.dtype())?, [x, &Tensor::full(&[], (self.exponent, x.dtype()))?], [&out], &[], &[])?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let grad_x = match self.exponent {
            0.0 => grad.zeros_like()?, // At 0, n·xⁿ⁻¹ would be 0 · ∞.
            n => grad.mul(&x.pow(n - 1.0)?.mul(n)?)?,
        };
        Ok([Some(grad_x)])
    }
}
