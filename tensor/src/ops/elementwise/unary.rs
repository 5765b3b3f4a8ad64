//! Operations on one tensor, such as `relu`: each a row of the table at the end.
//!
//! A row defines an operation completely: its kernel, its node's name, its gradient, and how it treats integers and
//! bools. `row! { name: "relu", types: each, … }` makes one kernel for each of f32, f64, f16, bf16, i64, i32 and u8,
//! which computes in that dtype; `each_float` stands for the first four. `types: numbers` has the same seven and `floats`
//! the same four, but f16 and bf16 use the f32 kernel between two conversions: CUDA's kernel converts each element as
//! it loads and stores it, and the twin converts blocks of them (`cpu/half.rs`).
//!
//! `Saves` names the tensor saved for backward: `relu` saves its output, and its gradient is one kernel,
//! `relu_backward`.
//!
//! Not here: broadcasting and dtype promotion, which need two tensors (`binary.rs`). Next in the spine:
//! `base/kernel.rs` of `todevice-gpu`.

use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::{Float, Number, Rectified};
use crate::dtype::DType;
use crate::error::{DTypeError, Error, Result, not_implemented};
use crate::ops::launch::launch;
use crate::ops::row::{FusedOp, Row, row, table};
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
        let out = Tensor::uninit_result(&[x], x.dtype())?;
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

/// Declares operations with their methods, and lists them in `ROWS` and `OPERATIONS`.
///
/// `fn relu, relu_ => static RELU: Unary = …;` declares the static and
///
/// ```text
/// impl Tensor {
///     pub fn relu(&self) -> Result<Tensor> { ops::apply(&RELU, [self]) }
///     pub fn relu_(&self) -> Result<Tensor> { unary_(&RELU, self) }
/// }
/// ```
macro_rules! unary {
    (
        $($(#[$doc:meta])* fn $name:ident, $in_place:ident => static $NAME:ident: Unary = $op:expr;)*
        $(static $BACKWARD:ident: FusedOp = $backward:expr;)*
    ) => {
        table! {
            $(static $NAME: Unary = $op;)*
            $(static $BACKWARD: FusedOp = $backward;)*
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
    fn neg, neg_ => static NEG: Unary = Unary {
        operation: Operation::new("neg").node("NegBackward0"),
        kernel: row! { name: "neg", types: numbers, cost: Cheap, element: |x: T| -> T { x.negative() } },
        saves: Nothing(|grad| grad.neg()),
        ints: IntInput::Native,
        bools: BoolInput::Refused(|| DTypeError::NegateBool.into()),
    };
    /// `|x|`.
    fn abs, abs_ => static ABS: Unary = Unary {
        operation: Operation::new("abs").node("AbsBackward0"),
        kernel: row! { name: "abs", types: numbers, cost: Cheap, element: |x: T| -> T { x.absolute() } },
        saves: Input(|grad, x| grad.mul(&x.sign()?)),
        ints: IntInput::Native,
        bools: BoolInput::Refused(|| not_implemented("abs_cpu", DType::Bool)),
    };
    /// −1, 0 or 1. Its gradient is 0.
    fn sign, sign_ => static SIGN: Unary = Unary {
        operation: Operation::new("sign").node("SignBackward0"),
        kernel: row! { name: "sign", types: numbers, cost: Cheap, element: |x: T| -> T { x.sign() } },
        saves: Nothing(|grad| grad.zeros_like()),
        ints: IntInput::Native,
        bools: BoolInput::AsInteger,
    };
    /// `x * x`. In PyTorch it is a power.
    fn square, square_ => static SQUARE: Unary = Unary {
        operation: Operation::new("square").node("PowBackward0").autocast_on_cuda(CastPolicy::Fp32),
        kernel: row! { name: "square", types: numbers, cost: Cheap, element: |x: T| -> T { x.times(x) } },
        saves: Input(|grad, x| grad.mul(&x.mul(2.0)?)),
        ints: IntInput::Native,
        bools: BoolInput::PromoteToI64,
    };
    /// `max(x, 0)`; the gradient at 0 is 0.
    // ANCHOR: relu
    fn relu, relu_ => static RELU: Unary = Unary {
        operation: Operation::new("relu").node("ReluBackward0"),
        kernel: row! { name: "relu", types: each, cost: Cheap, element: |x: T| -> T { x.rectified() } },
        saves: Output(|grad, y| RELU_BACKWARD.gradient(grad, y, &[])),
        ints: IntInput::Native,
        bools: BoolInput::Refused(|| DTypeError::ReluBool.into()),
    };
    // ANCHOR_END: relu
    /// The largest integer not above x.
    fn floor, floor_ => static FLOOR: Unary = Unary {
        operation: Operation::new("floor").node("FloorBackward0"),
        kernel: row! { name: "floor", types: floats, cost: Cheap, element: |x: T| -> T { x.floor() } },
        saves: Nothing(|grad| grad.zeros_like()),
        ints: IntInput::Identity,
        bools: BoolInput::Refused(|| not_implemented("floor_vml_cpu", DType::Bool)),
    };
    /// The smallest integer not below x.
    fn ceil, ceil_ => static CEIL: Unary = Unary {
        operation: Operation::new("ceil").node("CeilBackward0"),
        kernel: row! { name: "ceil", types: floats, cost: Cheap, element: |x: T| -> T { x.ceil() } },
        saves: Nothing(|grad| grad.zeros_like()),
        ints: IntInput::Identity,
        bools: BoolInput::Refused(|| not_implemented("ceil_vml_cpu", DType::Bool)),
    };
    /// The nearest integer, with ties to even.
    fn round, round_ => static ROUND: Unary = Unary {
        operation: Operation::new("round").node("RoundBackward0"),
        kernel: row! { name: "round", types: floats, cost: Cheap, element: |x: T| -> T { x.round_ties_even() } },
        saves: Nothing(|grad| grad.zeros_like()),
        ints: IntInput::Identity,
        bools: BoolInput::Refused(|| not_implemented("round_vml_cpu", DType::Bool)),
    };
    /// `√x`; NaN below 0.
    fn sqrt, sqrt_ => static SQRT: Unary = Unary {
        operation: Operation::new("sqrt").node("SqrtBackward0"),
        kernel: row! { name: "sqrt", types: floats, cost: Costly, element: |x: T| -> T { x.sqrt() } },
        saves: Output(|grad, y| grad.div(&y.mul(2.0)?)),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };
    /// `1 / √x`.
    fn rsqrt, rsqrt_ => static RSQRT: Unary = Unary {
        operation: Operation::new("rsqrt").node("RsqrtBackward0").autocast_on_cuda(CastPolicy::Fp32),
        kernel: row! { name: "rsqrt", types: floats, cost: Costly, element: |x: T| -> T { 1.0 / x.sqrt() } },
        saves: Output(|grad, y| grad.mul(&y.mul(y)?.mul(y)?.mul(-0.5)?)),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };
    /// `1 / x`.
    fn reciprocal, reciprocal_ => static RECIPROCAL: Unary = Unary {
        operation: Operation::new("reciprocal").node("ReciprocalBackward0").autocast_on_cuda(CastPolicy::Fp32),
        kernel: row! { name: "reciprocal", types: floats, cost: Costly, element: |x: T| -> T { 1.0 / x } },
        saves: Output(|grad, y| grad.mul(&y.mul(y)?.neg()?)),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };
    /// `eˣ`.
    fn exp, exp_ => static EXP: Unary = Unary {
        operation: Operation::new("exp").node("ExpBackward0").autocast_on_cuda(CastPolicy::Fp32),
        kernel: row! { name: "exp", types: floats, cost: Costly, element: |x: T| -> T { Float::exp(x) } },
        saves: Output(|grad, y| grad.mul(y)),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };
    /// The natural logarithm; −∞ at 0, NaN below.
    fn log, log_ => static LOG: Unary = Unary {
        operation: Operation::new("log").node("LogBackward0").autocast_on_cuda(CastPolicy::Fp32),
        kernel: row! { name: "log", types: floats, cost: Costly, element: |x: T| -> T { Float::ln(x) } },
        saves: Input(|grad, x| grad.div(x)),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };
    /// The sine of an angle in radians.
    fn sin, sin_ => static SIN: Unary = Unary {
        operation: Operation::new("sin").node("SinBackward0"),
        kernel: row! { name: "sin", types: floats, cost: Costly, elements: Float::sin_all },
        saves: Input(|grad, x| grad.mul(&x.cos()?)),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };
    /// The cosine of an angle in radians.
    fn cos, cos_ => static COS: Unary = Unary {
        operation: Operation::new("cos").node("CosBackward0"),
        kernel: row! { name: "cos", types: floats, cost: Costly, elements: Float::cos_all },
        saves: Input(|grad, x| grad.mul(&x.sin()?.neg()?)),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };
    /// The hyperbolic tangent.
    fn tanh, tanh_ => static TANH: Unary = Unary {
        operation: Operation::new("tanh").node("TanhBackward0"),
        kernel: row! { name: "tanh", types: floats, cost: Costly, element: |x: T| -> T { Float::tanh(x) } },
        saves: Output(|grad, y| TANH_BACKWARD.gradient(grad, y, &[])),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };
    /// `1 / (1 + e⁻ˣ)`.
    fn sigmoid, sigmoid_ => static SIGMOID: Unary = Unary {
        operation: Operation::new("sigmoid").node("SigmoidBackward0"),
        kernel: row! { name: "sigmoid", types: floats, cost: Costly, element: |x: T| -> T { Float::sigmoid(x) } },
        saves: Output(|grad, y| SIGMOID_BACKWARD.gradient(grad, y, &[])),
        ints: IntInput::PromoteToF32,
        bools: BoolInput::AsInteger,
    };

    // The gradients that networks compute most often, each in one pass over memory, from the gradient of the result and
    // the result. Where relu's result is NaN, the gradient passes through; in the other two it becomes NaN.
    static RELU_BACKWARD: FusedOp = FusedOp {
        operation: Operation::new("threshold_backward"),
        kernel: row! {
            name: "relu_backward", types: each_float, cost: Cheap,
            element: |g: T, y: T| -> T { g.where_rectified(y) },
        },
        input_first: true,
    };
    static TANH_BACKWARD: FusedOp = FusedOp::new(row! {
        name: "tanh_backward", types: floats, cost: Cheap,
        element: |g: T, y: T| -> T { g * (1.0 - y * y) },
    });
    static SIGMOID_BACKWARD: FusedOp = FusedOp::new(row! {
        name: "sigmoid_backward", types: floats, cost: Cheap,
        element: |g: T, y: T| -> T { g * ((1.0 - y) * y) },
    });
}
