//! Operations on one tensor.

use super::error::ElementwiseError;
use super::kernels;
use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::Result;
use crate::error::dtype::{DTypeError, not_implemented};
use crate::ops;
use crate::tensor::Tensor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Neg,
    Abs,
    Sign,
    Square,
    Relu,
    Floor,
    Ceil,
    Round,
    Sqrt,
    Rsqrt,
    Reciprocal,
    Exp,
    Log,
    Sin,
    Cos,
    Tanh,
    Sigmoid,
}

impl Unary {
    /// Whether the result of an integer tensor is a float (`torch.exp` of integers is f32).
    fn makes_floats(self) -> bool {
        use Unary::*;
        matches!(self, Sqrt | Rsqrt | Reciprocal | Exp | Log | Sin | Cos | Tanh | Sigmoid)
    }

    /// Most have no meaning for truths. The names are those of PyTorch's kernels on the host, wherever the tensor is.
    fn check_bool(self, x: &Tensor) -> Result<()> {
        use Unary::*;
        if x.dtype() != DType::Bool || self.makes_floats() || matches!(self, Sign | Square) {
            return Ok(());
        }
        let operation = match self {
            Neg => return Err(ElementwiseError::NegateBool.into()),
            Relu => return Err(ElementwiseError::ReluBool.into()),
            Abs => "abs_cpu",
            Floor => "floor_vml_cpu",
            Ceil => "ceil_vml_cpu",
            Round => "round_vml_cpu",
            other => other.name(),
        };
        Err(not_implemented(operation, DType::Bool))
    }

    /// What the gradient is computed from: the result, the input, or nothing.
    fn saves(self) -> Saves {
        use Unary::*;
        match self {
            Exp | Sqrt | Rsqrt | Reciprocal | Tanh | Sigmoid | Relu => Saves::Output,
            Abs | Square | Log | Sin | Cos => Saves::Input,
            Neg | Sign | Floor | Ceil | Round => Saves::Nothing,
        }
    }
}

enum Saves {
    Input,
    Output,
    Nothing,
}

impl Function<1> for Unary {
    fn name(&self) -> &'static str {
        use Unary::*;
        match self {
            Neg => "neg",
            Abs => "abs",
            Sign => "sign",
            Square => "square",
            Relu => "relu",
            Floor => "floor",
            Ceil => "ceil",
            Round => "round",
            Sqrt => "sqrt",
            Rsqrt => "rsqrt",
            Reciprocal => "reciprocal",
            Exp => "exp",
            Log => "log",
            Sin => "sin",
            Cos => "cos",
            Tanh => "tanh",
            Sigmoid => "sigmoid",
        }
    }

    fn backward_name(&self) -> &'static str {
        use Unary::*;
        match self {
            Neg => "NegBackward0",
            Abs => "AbsBackward0",
            Sign => "SignBackward0",
            Square => "PowBackward0", // PyTorch's square is a power.
            Relu => "ReluBackward0",
            Floor => "FloorBackward0",
            Ceil => "CeilBackward0",
            Round => "RoundBackward0",
            Sqrt => "SqrtBackward0",
            Rsqrt => "RsqrtBackward0",
            Reciprocal => "ReciprocalBackward0",
            Exp => "ExpBackward0",
            Log => "LogBackward0",
            Sin => "SinBackward0",
            Cos => "CosBackward0",
            Tanh => "TanhBackward0",
            Sigmoid => "SigmoidBackward0",
        }
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        match self.saves() {
            Saves::Input => ctx.save_for_backward([x]),
            Saves::Output => ctx.save_output(),
            Saves::Nothing => {}
        }
        let dtype = x.dtype();
        self.check_bool(x)?;
        let x = match self {
            _ if self.makes_floats() && !dtype.is_floating_point() => &x.to(DType::F32)?,
            // The power of a truth and a whole number is one.
            Unary::Square if dtype == DType::Bool => &x.to(DType::I64)?,
            _ => x,
        };
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        kernels::unary(*self, x, &out)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        use Unary::*;
        let x_or_y = match self.saves() {
            Saves::Nothing => None,
            _ => Some(saved.tensors::<1>()?),
        };
        let s = x_or_y.as_ref().map(|[tensor]| tensor);
        let grad_x = match (self, s) {
            (Neg, _) => grad.neg()?,
            // Constant between its jumps.
            (Sign | Floor | Ceil | Round, _) => grad.zeros_like()?,
            (Abs, Some(x)) => grad.mul(&x.sign()?)?,
            (Square, Some(x)) => grad.mul(&x.mul(2.0)?)?,
            (Log, Some(x)) => grad.div(x)?,
            (Sin, Some(x)) => grad.mul(&x.cos()?)?,
            (Cos, Some(x)) => grad.mul(&x.sin()?.neg()?)?,
            (Exp, Some(y)) => grad.mul(y)?,
            (Sqrt, Some(y)) => grad.div(&y.mul(2.0)?)?,
            (Rsqrt, Some(y)) => grad.mul(&y.mul(y)?.mul(y)?.mul(-0.5)?)?,
            (Reciprocal, Some(y)) => grad.mul(&y.mul(y)?.neg()?)?,
            (Relu, Some(y)) => fused(kernels::Gradient::Relu, grad, y)?,
            (Tanh, Some(y)) => fused(kernels::Gradient::Tanh, grad, y)?,
            (Sigmoid, Some(y)) => fused(kernels::Gradient::Sigmoid, grad, y)?,
            (_, None) => unreachable!("saves() says what is saved"),
        };
        Ok([Some(grad_x)])
    }
}

/// The gradients that networks compute most, in one pass over memory each.
fn fused(gradient: kernels::Gradient, grad: &Tensor, y: &Tensor) -> Result<Tensor> {
    ops::call(gradient.name(), &[grad, y], |_| {
        let out = y.uninit_beside(y.sizes(), y.dtype())?;
        kernels::gradient(gradient, grad, y, &out)?;
        Ok(out)
    })
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident, $in_place:ident => $op:ident;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name(&self) -> Result<Tensor> {
                    ops::apply(Unary::$op, [self])
                }

                #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") in place.")]
                #[track_caller]
                pub fn $in_place(&self) -> Result<Tensor> {
                    unary_(Unary::$op, self)
                }
            )*
        }
    };
}

unary! {
    /// `-x`.
    neg, neg_ => Neg;
    /// `|x|`.
    abs, abs_ => Abs;
    /// −1, 0 or 1. Its gradient is 0.
    sign, sign_ => Sign;
    /// `x * x`.
    square, square_ => Square;
    /// `max(x, 0)`; the gradient at 0 is 0.
    relu, relu_ => Relu;
    /// The largest whole number not above x.
    floor, floor_ => Floor;
    /// The smallest whole number not below x.
    ceil, ceil_ => Ceil;
    /// The nearest whole number, halves to the even one.
    round, round_ => Round;
    /// `√x`; NaN below 0.
    sqrt, sqrt_ => Sqrt;
    /// `1 / √x`.
    rsqrt, rsqrt_ => Rsqrt;
    /// `1 / x`.
    reciprocal, reciprocal_ => Reciprocal;
    /// `eˣ`.
    exp, exp_ => Exp;
    /// The natural logarithm; −∞ at 0, NaN below.
    log, log_ => Log;
    /// The sine of an angle in radians.
    sin, sin_ => Sin;
    /// The cosine of an angle in radians.
    cos, cos_ => Cos;
    /// The hyperbolic tangent.
    tanh, tanh_ => Tanh;
    /// `1 / (1 + e⁻ˣ)`.
    sigmoid, sigmoid_ => Sigmoid;
}

#[track_caller]
fn unary_(op: Unary, target: &Tensor) -> Result<Tensor> {
    if op.makes_floats() && !target.dtype().is_floating_point() {
        return Err(DTypeError::InPlaceCast { result: DType::F32, output: target.dtype() }.into());
    }
    if target.dtype() == DType::Bool && op == Unary::Square {
        return Err(DTypeError::InPlaceCast { result: DType::I64, output: DType::Bool }.into());
    }
    op.check_bool(target)?;
    let values = ops::NewValues::FromOld { others: &[], anew: &|old| ops::apply(op, [old]) };
    ops::update(op.name(), target, values, || kernels::unary(op, target, target))
}

impl Tensor {
    /// `x` to the power of a number. `x.pow(2.0)` is `x * x`.
    #[track_caller]
    pub fn pow(&self, exponent: f64) -> Result<Tensor> {
        ops::apply(PowScalar { exponent }, [self])
    }

    /// Whether each element is not a number.
    #[track_caller]
    pub fn isnan(&self) -> Result<Tensor> {
        self.ne(self)
    }
}

struct PowScalar {
    exponent: f64,
}

impl Function<1> for PowScalar {
    fn name(&self) -> &'static str {
        "pow"
    }

    fn backward_name(&self) -> &'static str {
        "PowBackward0"
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        let x = if x.dtype().is_floating_point() { x } else { &x.to(DType::F32)? };
        // As in PyTorch, which makes the root of −0 a −0 and that of −∞ a NaN.
        match self.exponent {
            2.0 => return x.square(),
            0.5 | -0.5 if x.dtype() == DType::F16 => {} // But not of this type.
            0.5 => return x.sqrt(),
            -0.5 => return x.rsqrt(),
            _ => {}
        }
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        kernels::pow(x, &Tensor::full(&[], self.exponent, x.dtype())?, &out)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let grad_x = match self.exponent {
            0.0 => grad.zeros_like()?, // Also at 0, where n·xⁿ⁻¹ would be 0 · ∞.
            n => grad.mul(&x.pow(n - 1.0)?.mul(n)?)?,
        };
        Ok([Some(grad_x)])
    }
}
