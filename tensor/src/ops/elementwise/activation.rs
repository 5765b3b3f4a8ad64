//! Activations of floats, with parameters or with a factor between 0 and 1. Each is an entry of [`activations`]: its
//! kernel, its node, and the gradient's kernel, which takes the result's gradient and the input. Parameters come last.

use smallvec::SmallVec;

use super::fused::run;
use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::Float;
use crate::error::Result;
use crate::ops::row::{FusedOp, Row, row};
use crate::ops::{self, CastPolicy, Operation};
use crate::tensor::Tensor;

struct Activation {
    operation: Operation,
    kernel: Row,
    backward: FusedOp,
}

impl Activation {
    #[track_caller]
    fn of(&'static self, x: &Tensor, numbers: &[f64]) -> Result<Tensor> {
        ops::apply(Activated { activation: self, numbers: numbers.into() }, [x])
    }
}

struct Activated {
    activation: &'static Activation,
    numbers: SmallVec<[f64; 2]>,
}

impl Function<1> for Activated {
    fn operation(&self) -> &'static Operation {
        &self.activation.operation
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        run(&self.activation.kernel, &[x], &self.numbers, Tensor::uninit_result(&[x], x.dtype())?)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        Ok([Some(self.activation.backward.gradient(grad, &x, &self.numbers)?)])
    }
}

/// Declares activations as statics, and lists them with their backwards in `ROWS` and `OPERATIONS`.
macro_rules! activations {
    ($(static $NAME:ident: Activation = $activation:expr;)+) => {
        $(static $NAME: Activation = $activation;)+

        pub(in crate::ops) const ROWS: &[&Row] = &[$(&$NAME.kernel, &$NAME.backward.kernel),+];
        pub(in crate::ops) const OPERATIONS: &[&Operation] =
            &[$(&$NAME.operation, &$NAME.backward.operation),+];
    };
}

/// How [`Tensor::gelu`] computes Φ: the `approximate` argument of `torch.nn.functional.gelu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximate {
    /// Exactly, with the error function.
    #[default]
    None,
    /// By the tanh of a polynomial, which differs by up to 0.0005.
    Tanh,
}

impl Tensor {
    /// Computes `ln(1 + e^(beta · x)) / beta`, a smooth [`relu`](Self::relu). Where `beta · x` exceeds `threshold`, the
    /// result is x, which is practically equal (`torch.nn.functional.softplus`, defaults 1 and 20).
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let y = Tensor::new([-30.0, 0.0, 30.0])?.softplus(1.0, 20.0)?;
    /// assert!(y.allclose(&Tensor::new([9.3576e-14, 0.693147, 30.0])?, 1e-4, 0.0)?);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn softplus(&self, beta: f64, threshold: f64) -> Result<Tensor> {
        SOFTPLUS.of(self, &[beta, threshold])
    }

    /// Computes `x · sigmoid(x)`, also called swish (`torch.nn.functional.silu`).
    #[track_caller]
    pub fn silu(&self) -> Result<Tensor> {
        SILU.of(self, &[])
    }

    /// Returns x above 0 and `negative_slope · x` below, so some gradient passes everywhere
    /// (`torch.nn.functional.leaky_relu`, default 0.01). The gradient at 0 is `negative_slope`.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([-2.0, 0.0, 3.0])?;
    /// assert_eq!(x.leaky_relu(0.25)?.to_vec::<f32>()?, [-0.5, 0.0, 3.0]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn leaky_relu(&self, negative_slope: f64) -> Result<Tensor> {
        LEAKY_RELU.of(self, &[negative_slope])
    }

    /// Computes `x · Φ(x)`, with the cumulative normal distribution Φ (`torch.nn.functional.gelu`).
    #[track_caller]
    pub fn gelu(&self, approximate: Approximate) -> Result<Tensor> {
        match approximate {
            Approximate::None => GELU.of(self, &[]),
            Approximate::Tanh => GELU_TANH.of(self, &[]),
        }
    }
}

activations! {
    static SOFTPLUS: Activation = Activation {
        operation: Operation::new("softplus").node("SoftplusBackward0").autocast_on_cuda(CastPolicy::Fp32),
        kernel: row! {
            name: "softplus", refused_as: "softplus_cpu", types: floats, cost: Costly,
            element: |x: T, beta: C, threshold: C| -> T {
                let scaled = x * beta;
                if scaled > threshold { x } else { log_of_one_and(Float::exp(scaled)) / beta }
            },
        },
        backward: FusedOp::new(row! {
            name: "softplus_backward", types: floats, cost: Costly,
            element: |grad: T, x: T, beta: C, threshold: C| -> T {
                let scaled = x * beta;
                let power = Float::exp(scaled);
                if scaled > threshold { grad } else { grad * power / (power + 1.0) }
            },
        }),
    };
    // PyTorch divides, too. Far below 0 the quotient is −0 before the product with the sigmoid is.
    static SILU: Activation = Activation {
        operation: Operation::new("silu").node("SiluBackward0"),
        kernel: row! {
            name: "silu", refused_as: "silu_cpu", types: floats, cost: Costly,
            element: |x: T| -> T { x / (1.0 + Float::exp(-x)) },
        },
        backward: FusedOp::new(row! {
            name: "silu_backward", types: floats, cost: Costly,
            element: |grad: T, x: T| -> T {
                let sigmoid = 1.0 / (1.0 + Float::exp(-x));
                grad * sigmoid * (1.0 + x * (1.0 - sigmoid))
            },
        }),
    };
    static LEAKY_RELU: Activation = Activation {
        operation: Operation::new("leaky_relu").node("LeakyReluBackward0"),
        kernel: row! {
            name: "leaky_relu", refused_as: "leaky_relu_cpu", types: floats, cost: Cheap,
            element: |x: T, slope: C| -> T { if x > 0.0 { x } else { x * slope } },
        },
        backward: FusedOp {
            input_first: true,
            ..FusedOp::new(row! {
                name: "leaky_relu_backward", types: floats, cost: Cheap,
                element: |grad: T, x: T, slope: C| -> T {
                    if x > 0.0 { grad } else { grad * slope }
                },
            })
        },
    };
    static GELU: Activation = Activation {
        operation: Operation::new("gelu").node("GeluBackward0"),
        kernel: row! {
            name: "gelu", refused_as: "GeluKernelImpl", types: floats, cost: Costly,
            element: |x: T| -> T { x * Float::normal_cdf(x) },
        },
        // Φ(x) + x φ(x), with the density φ(x) = e^(−x²/2) / √(2π).
        backward: FusedOp::new(row! {
            name: "gelu_backward", types: floats, cost: Costly,
            element: |grad: T, x: T| -> T {
                let density = Float::exp(-0.5 * x * x) * (0.5 * SLOPE) as T;
                grad * (Float::normal_cdf(x) + x * density)
            },
        }),
    };
    static GELU_TANH: Activation = Activation {
        operation: Operation::new("gelu").node("GeluBackward0"),
        kernel: row! {
            name: "gelu_tanh", refused_as: "GeluKernelImpl", types: floats, cost: Costly,
            element: |x: T| -> T {
                0.5 * x * (1.0 + Float::tanh(SLOPE as T * (x + CUBE as T * (x * x * x))))
            },
        },
        backward: FusedOp {
            operation: Operation::new("gelu_backward"),
            ..FusedOp::new(row! {
                name: "gelu_tanh_backward", types: floats, cost: Costly,
                element: |grad: T, x: T| -> T {
                    let square = x * x;
                    let tanh = Float::tanh(SLOPE as T * (x + CUBE as T * (square * x)));
                    let slope = SLOPE as T * (1.0 + (3.0 * CUBE) as T * square);
                    grad * (0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * slope)
                },
            })
        },
    };
}

/// √(2/π), and the coefficient of x³: tanh(√(2/π) · (x + 0.044715 · x³)) approximates erf(x / √2).
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
const CUBE: f64 = 0.044715;

/// Computes `ln(1 + x)`. For small x the sum rounds x, and the ratio corrects the logarithm.
#[inline(always)]
fn log_of_one_and<T: Float>(x: T) -> T {
    let one = T::count(1);
    let sum = one + x;
    let kept = sum - one;
    let log = if kept == x { sum.ln() } else { sum.ln() * (x / kept) };
    if sum == one { x } else { log }
}
