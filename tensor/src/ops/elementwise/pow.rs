use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::Float;
use crate::dtype::{DType, Scalar, result_type};
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

// PyTorch's names for the two other kinds of powers.
static POW_TENSORS: Operation = POW_SCALAR.node("PowBackward1");
static POW_OF_NUMBER: Operation = POW_SCALAR.node("PowBackward2");

impl Tensor {
    /// Raises `x` to a power. `x.pow(2.0)` is `x * x`.
    #[track_caller]
    pub fn pow(&self, exponent: f64) -> Result<Tensor> {
        ops::apply(PowScalar { exponent }, [self])
    }

    /// Raises each element of `x` to the power that is the element of `exponent`.
    #[track_caller]
    pub fn pow_tensor(&self, exponent: &Tensor) -> Result<Tensor> {
        ops::apply(PowTensor(&POW_TENSORS), [self, exponent])
    }

    /// Raises a number to the powers in `exponent`: `2 ** x`.
    #[track_caller]
    pub fn pow_of_number(base: impl Into<Scalar>, exponent: &Tensor) -> Result<Tensor> {
        let base = base.into();
        let dtype = result_type(&[(exponent.dtype(), exponent.ndim())], &[base]);
        let base = Tensor::full(&[], (base.to_f64(), dtype))?;
        ops::apply(PowTensor(&POW_OF_NUMBER), [&base, exponent])
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

/// A power whose exponent is a tensor.
#[derive(Clone, Copy)]
struct PowTensor(&'static Operation);

impl Function<2> for PowTensor {
    fn operation(&self) -> &'static Operation {
        self.0
    }

    fn forward(&self, ctx: &mut Context<2>, [x, exponent]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([x, exponent]);
        let dtype = result_type(&[(x.dtype(), x.ndim()), (exponent.dtype(), exponent.ndim())], &[]);
        let [x, exponent] = [&x.to(dtype)?, &exponent.to(dtype)?];
        let out = Tensor::uninit_result(&[x, exponent], dtype)?;
        launch(POW.of(dtype)?, [x, exponent], [&out], &[], &[])?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [x, exponent] = saved.tensors()?;
        let of_x = || {
            let slope = exponent.mul(&x.pow_tensor(&exponent.sub(1)?)?)?;
            exponent.eq(0)?.where_cond(0, &grad.mul(&slope)?)
        };
        let of_exponent = || {
            // 0ʸ stays 0 near y, though its logarithm is infinite.
            let is_flat = x.eq(0)?.minimum(&exponent.ge(0)?)?;
            grad.mul(&is_flat.where_cond(0, &x.pow_tensor(&exponent)?.mul(&x.log()?)?)?)
        };
        Ok([
            saved.needs_input_grad(0).then(of_x).transpose()?,
            saved.needs_input_grad(1).then(of_exponent).transpose()?,
        ])
    }
}
