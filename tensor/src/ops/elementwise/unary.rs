//! Operations on one tensor, such as `relu`: each a row of the table at the end.
//!
//! A row defines an operation completely: its kernel, its node's name, its gradient, and how it treats integers and
//! bools. `row!("relu", each, Cheap, |x: T| …)` declares the kernel once for each dtype that `each` stands for, in that
//! dtype. In a row of `numbers` or `floats` the kernel for f16 and bf16 is the f32 kernel between two conversions;
//! `row.rs` lists these groups.
//!
//! `Saves` says what is kept for backward: `relu` keeps its output, and its gradient is one kernel, `relu_backward`.
//!
//! Not here: broadcasting and dtype promotion, which need two tensors (`binary.rs`). Next in the spine:
//! `base/kernel.rs` of `todevice-gpu`.

use super::error::ElementwiseError;
use super::fused::{FusedOp, table};
use crate::autograd::{Context, Function, Saved};
use crate::cpu::blocks::map1;
use crate::cpu::number::{Float, Number, Rectified};
use crate::dtype::DType;
use crate::error::dtype::{DTypeError, not_implemented};
use crate::error::{Error, Result};
use crate::kernel::Cost;
use crate::ops::launch::launch;
use crate::ops::row::{Row, row};
use crate::ops::{self, CastPolicy, Operation};
use crate::tensor::Tensor;
use Saves::{Input, Nothing, Output};

/// An operation that computes each element of the result from one element of the input.
pub(super) struct Unary {
    operation: Operation,
    kernel: Row,
    saves: Saves,
    ints: IntInput,
    bools: BoolInput,
}

/// The tensor saved for backward, with the function that computes the input's gradient from the result's gradient and
/// that tensor.
#[derive(Clone, Copy)]
enum Saves {
    Nothing(fn(&Tensor) -> Result<Tensor>),
    Input(fn(&Tensor, &Tensor) -> Result<Tensor>),
    Output(fn(&Tensor, &Tensor) -> Result<Tensor>),
}

/// How integer inputs are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IntInput {
    /// The kernel takes integers.
    Native,
    /// Integers are returned unchanged.
    Identity,
    /// `torch.exp` of integers is f32.
    PromoteToF32,
}

/// How bool inputs are treated. Most operations refuse them, each with PyTorch's error message.
#[derive(Clone, Copy)]
enum BoolInput {
    /// Bools are treated like integers.
    AsInteger,
    /// The power of a bool and an integer is an integer.
    PromoteToI64,
    Refused(fn() -> Error),
}

impl Unary {
    const fn new(kernel: Row, node: &'static str, saves: Saves, ints: IntInput) -> Unary {
        let operation = Operation::new(kernel.name).node(node);
        Unary { operation, kernel, saves, ints, bools: BoolInput::AsInteger }
    }

    /// An operation with a kernel for integers.
    const fn of_numbers(kernel: Row, node: &'static str, saves: Saves) -> Unary {
        Unary::new(kernel, node, saves, IntInput::Native)
    }

    /// An operation that turns integers into floats.
    const fn of_floats(kernel: Row, node: &'static str, saves: Saves) -> Unary {
        Unary::new(kernel, node, saves, IntInput::PromoteToF32)
    }

    /// A rounding operation: it is piecewise constant, so its gradient is 0.
    const fn rounding(kernel: Row, node: &'static str, refused: fn() -> Error) -> Unary {
        let saves = Nothing(|grad| grad.zeros_like());
        Unary::new(kernel, node, saves, IntInput::Identity).on_bools(BoolInput::Refused(refused))
    }

    /// Makes autocast run the operation in f32 on CUDA devices.
    const fn in_f32_on_cuda(self) -> Unary {
        Unary { operation: self.operation.autocast_on_cuda(CastPolicy::Fp32), ..self }
    }

    const fn on_bools(self, bools: BoolInput) -> Unary {
        Unary { bools, ..self }
    }

    fn check_bools(&self, x: &Tensor) -> Result<()> {
        match self.bools {
            BoolInput::Refused(error) if x.dtype() == DType::Bool => Err(error()),
            _ => Ok(()),
        }
    }

    fn compute(&self, x: &Tensor, out: &Tensor) -> Result<()> {
        if self.ints == IntInput::Identity && !x.dtype().is_floating_point() {
            return ops::plain::write(out, x);
        }
        launch(self.kernel.of(x.dtype())?, [x], [out], &[], &[])
    }
}

impl Function<1> for &'static Unary {
    fn operation(&self) -> &'static Operation {
        &self.operation
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        match self.saves {
            Input(_) => ctx.save_for_backward([x]),
            Output(_) => ctx.save_output(),
            Nothing(_) => {}
        }
        self.check_bools(x)?;
        let x = match (self.ints, self.bools, x.dtype()) {
            (IntInput::PromoteToF32, _, dtype) if !dtype.is_floating_point() => &x.to(DType::F32)?,
            (_, BoolInput::PromoteToI64, DType::Bool) => &x.to(DType::I64)?,
            _ => x,
        };
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        self.compute(x, &out)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let grad_x = match self.saves {
            Nothing(gradient) => gradient(grad)?,
            Input(gradient) | Output(gradient) => {
                let [x_or_y] = saved.tensors()?;
                gradient(grad, &x_or_y)?
            }
        };
        Ok([Some(grad_x)])
    }
}

#[track_caller]
fn unary_(op: &'static Unary, target: &Tensor) -> Result<Tensor> {
    if op.ints == IntInput::PromoteToF32 && !target.dtype().is_floating_point() {
        return Err(DTypeError::InPlaceCast { result: DType::F32, output: target.dtype() }.into());
    }
    if target.dtype() == DType::Bool && matches!(op.bools, BoolInput::PromoteToI64) {
        return Err(DTypeError::InPlaceCast { result: DType::I64, output: DType::Bool }.into());
    }
    op.check_bools(target)?;
    let values = ops::NewValues::FromOld { others: &[], anew: &|old| ops::apply(op, [old]) };
    ops::update(&op.operation, target, values, || op.compute(target, target))
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident, $in_place:ident: $NAME:ident = $op:expr;)*) => {
        table! {
            $($NAME: Unary = $op;)*

            // The gradients that networks compute most often, each in one pass over memory, from the gradient of the
            // result and the result itself. A NaN result passes its gradient on, so that the problem stays visible.
            RELU_BACKWARD: FusedOp = FusedOp::new(
                row!("relu_backward", each_float, Cheap, |g: T, y: T| -> T { g.where_rectified(y) })
            ).called("threshold_backward");
            TANH_BACKWARD: FusedOp = FusedOp::new(
                row!("tanh_backward", floats, Cheap, |g: T, y: T| -> T { g * (1.0 - y * y) })
            );
            SIGMOID_BACKWARD: FusedOp = FusedOp::new(
                row!("sigmoid_backward", floats, Cheap, |g: T, y: T| -> T { g * ((1.0 - y) * y) })
            );
        }

        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name(&self) -> Result<Tensor> {
                    ops::apply(&$NAME, [self])
                }

                #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") in place.")]
                #[track_caller]
                pub fn $in_place(&self) -> Result<Tensor> {
                    unary_(&$NAME, self)
                }
            )*
        }
    };
}

unary! {
    /// `-x`.
    neg, neg_: NEG = Unary::of_numbers(
        row!("neg", numbers, Cheap, |x: T| -> T { x.negative() }),
        "NegBackward0",
        Nothing(|grad| grad.neg()),
    ).on_bools(BoolInput::Refused(|| ElementwiseError::NegateBool.into()));
    /// `|x|`.
    abs, abs_: ABS = Unary::of_numbers(
        row!("abs", numbers, Cheap, |x: T| -> T { x.absolute() }),
        "AbsBackward0",
        Input(|grad, x| grad.mul(&x.sign()?)),
    ).on_bools(BoolInput::Refused(|| not_implemented("abs_cpu", DType::Bool)));
    /// −1, 0 or 1. Its gradient is 0.
    sign, sign_: SIGN = Unary::of_numbers(
        row!("sign", numbers, Cheap, |x: T| -> T { x.sign() }),
        "SignBackward0",
        Nothing(|grad| grad.zeros_like()),
    );
    /// `x * x`. In PyTorch it is a power.
    square, square_: SQUARE = Unary::of_numbers(
        row!("square", numbers, Cheap, |x: T| -> T { x.times(x) }),
        "PowBackward0",
        Input(|grad, x| grad.mul(&x.mul(2.0)?)),
    ).on_bools(BoolInput::PromoteToI64).in_f32_on_cuda();
    /// `max(x, 0)`; the gradient at 0 is 0.
    // ANCHOR: relu
    relu, relu_: RELU = Unary::of_numbers(
        row!("relu", each, Cheap, |x: T| -> T { x.rectified() }),
        "ReluBackward0",
        Output(|grad, y| RELU_BACKWARD.gradient(grad, y, &[])),
    ).on_bools(BoolInput::Refused(|| ElementwiseError::ReluBool.into()));
    // ANCHOR_END: relu
    /// The largest integer not above x.
    floor, floor_: FLOOR = Unary::rounding(
        row!("floor", floats, Cheap, |x: T| -> T { x.floor() }),
        "FloorBackward0",
        || not_implemented("floor_vml_cpu", DType::Bool),
    );
    /// The smallest integer not below x.
    ceil, ceil_: CEIL = Unary::rounding(
        row!("ceil", floats, Cheap, |x: T| -> T { x.ceil() }),
        "CeilBackward0",
        || not_implemented("ceil_vml_cpu", DType::Bool),
    );
    /// The nearest integer, with ties to even.
    round, round_: ROUND = Unary::rounding(
        row!("round", floats, Cheap, |x: T| -> T { x.round_ties_even() }),
        "RoundBackward0",
        || not_implemented("round_vml_cpu", DType::Bool),
    );
    /// `√x`; NaN below 0.
    sqrt, sqrt_: SQRT = Unary::of_floats(
        row!("sqrt", floats, Costly, |x: T| -> T { x.sqrt() }),
        "SqrtBackward0",
        Output(|grad, y| grad.div(&y.mul(2.0)?)),
    );
    /// `1 / √x`.
    rsqrt, rsqrt_: RSQRT = Unary::of_floats(
        row!("rsqrt", floats, Costly, |x: T| -> T { 1.0 / x.sqrt() }),
        "RsqrtBackward0",
        Output(|grad, y| grad.mul(&y.mul(y)?.mul(y)?.mul(-0.5)?)),
    ).in_f32_on_cuda();
    /// `1 / x`.
    reciprocal, reciprocal_: RECIPROCAL = Unary::of_floats(
        row!("reciprocal", floats, Costly, |x: T| -> T { 1.0 / x }),
        "ReciprocalBackward0",
        Output(|grad, y| grad.mul(&y.mul(y)?.neg()?)),
    ).in_f32_on_cuda();
    /// `eˣ`.
    exp, exp_: EXP = Unary::of_floats(
        row!("exp", floats, Costly, |x: T| -> T { Float::exp(x) }),
        "ExpBackward0",
        Output(|grad, y| grad.mul(y)),
    ).in_f32_on_cuda();
    /// The natural logarithm; −∞ at 0, NaN below.
    log, log_: LOG = Unary::of_floats(
        row!("log", floats, Costly, |x: T| -> T { Float::ln(x) }),
        "LogBackward0",
        Input(|grad, x| grad.div(x)),
    ).in_f32_on_cuda();
    /// The sine of an angle in radians.
    sin, sin_: SIN = Unary::of_floats(
        row!("sin", floats, [In(T), Out(T)], Elements, Costly, |args| map1::<T, T>(args, Cost::Costly, Float::sin_all)),
        "SinBackward0",
        Input(|grad, x| grad.mul(&x.cos()?)),
    );
    /// The cosine of an angle in radians.
    cos, cos_: COS = Unary::of_floats(
        row!("cos", floats, [In(T), Out(T)], Elements, Costly, |args| map1::<T, T>(args, Cost::Costly, Float::cos_all)),
        "CosBackward0",
        Input(|grad, x| grad.mul(&x.sin()?.neg()?)),
    );
    /// The hyperbolic tangent.
    tanh, tanh_: TANH = Unary::of_floats(
        row!("tanh", floats, Costly, |x: T| -> T { Float::tanh(x) }),
        "TanhBackward0",
        Output(|grad, y| TANH_BACKWARD.gradient(grad, y, &[])),
    );
    /// `1 / (1 + e⁻ˣ)`.
    sigmoid, sigmoid_: SIGMOID = Unary::of_floats(
        row!("sigmoid", floats, Costly, |x: T| -> T { Float::sigmoid(x) }),
        "SigmoidBackward0",
        Output(|grad, y| SIGMOID_BACKWARD.gradient(grad, y, &[])),
    );
}
