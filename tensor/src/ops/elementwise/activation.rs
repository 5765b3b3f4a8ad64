//! Activations that have numbers of their own, or are products with what is between 0 and 1. They are for floats alone.

use super::unary::in_one;
use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::Float;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops;
use crate::ops::launch::launch;
use crate::ops::plain::number;
use crate::ops::row::{row, rows};
use crate::ops::shape::check_fits;
use crate::tensor::Tensor;

/// A number beside the elements of a tensor, in the type that those are calculated with: beside halves f32.
fn beside(x: &Tensor, value: f64) -> Result<Tensor> {
    let dtype = if x.dtype().is_half() { DType::F32 } else { x.dtype() };
    check_fits(value.into(), dtype)?;
    number(value.into(), dtype)
}

// ---------------------------------------------------------------------------------------------------- softplus

impl Tensor {
    /// `ln(1 + e^(beta · x)) / beta`: a [`relu`](Self::relu) without a kink, positive everywhere. Where `beta · x` is above
    /// `threshold` it is x itself, from which it could hardly be told (`torch.nn.functional.softplus`, whose defaults are
    /// 1 and 20).
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let y = Tensor::new([-30.0f32, 0.0, 30.0])?.softplus(1.0, 20.0)?;
    /// assert!(y.allclose(&Tensor::new([9.3576e-14f32, 0.693147, 30.0])?, 1e-4, 0.0)?);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn softplus(&self, beta: f64, threshold: f64) -> Result<Tensor> {
        ops::apply(Softplus { beta, threshold }, [self])
    }
}

struct Softplus {
    beta: f64,
    threshold: f64,
}

impl Function<1> for Softplus {
    fn name(&self) -> &'static str {
        "softplus"
    }

    fn backward_name(&self) -> &'static str {
        "SoftplusBackward0"
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        let kernel = SOFTPLUS.of(x.dtype())?;
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        launch(kernel, [x, &beside(x, self.beta)?, &beside(x, self.threshold)?], [&out], &[], &[])?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let grad_x = ops::call("softplus_backward", &[grad, &x], |_| {
            let out = x.uninit_beside(x.sizes(), x.dtype())?;
            let (beta, threshold) = (beside(&x, self.beta)?, beside(&x, self.threshold)?);
            launch(SOFTPLUS_BACKWARD.of(x.dtype())?, [grad, &x, &beta, &threshold], [&out], &[], &[])?;
            Ok(out)
        })?;
        Ok([Some(grad_x)])
    }
}

/// `ln(1 + x)`. Of a small x the sum keeps but a part, and its logarithm is off by the ratio of the two.
#[inline(always)]
fn log_of_one_and<T: Float>(x: T) -> T {
    let one = T::count(1);
    let sum = one + x;
    let kept = sum - one;
    let log = if kept == x { sum.ln() } else { sum.ln() * (x / kept) };
    if sum == one { x } else { log }
}

// -------------------------------------------------------------------------------------------------------- silu

impl Tensor {
    /// `x · sigmoid(x)`: about x where it is large, about 0 where it is far below, and a little less than 0 in between
    /// (`torch.nn.functional.silu`, also called swish).
    #[track_caller]
    pub fn silu(&self) -> Result<Tensor> {
        ops::apply(Silu, [self])
    }
}

struct Silu;

impl Function<1> for Silu {
    fn name(&self) -> &'static str {
        "silu"
    }

    fn backward_name(&self) -> &'static str {
        "SiluBackward0"
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        let kernel = SILU.of(x.dtype())?;
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        launch(kernel, [x], [&out], &[], &[])?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        Ok([Some(in_one("silu_backward", &SILU_BACKWARD, grad, &x)?)])
    }
}

// -------------------------------------------------------------------------------------------------- leaky_relu

impl Tensor {
    /// x above 0, and `negative_slope · x` below: a [`relu`](Self::relu) that lets some gradient through everywhere
    /// (`torch.nn.functional.leaky_relu`, whose default is 0.01). The gradient at 0 is the slope below.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([-2.0f32, 0.0, 3.0])?;
    /// assert_eq!(x.leaky_relu(0.25)?.to_vec::<f32>()?, [-0.5, 0.0, 3.0]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn leaky_relu(&self, negative_slope: f64) -> Result<Tensor> {
        ops::apply(LeakyRelu { negative_slope }, [self])
    }
}

struct LeakyRelu {
    negative_slope: f64,
}

impl Function<1> for LeakyRelu {
    fn name(&self) -> &'static str {
        "leaky_relu"
    }

    fn backward_name(&self) -> &'static str {
        "LeakyReluBackward0"
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        let kernel = LEAKY_RELU.of(x.dtype())?;
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        launch(kernel, [x, &beside(x, self.negative_slope)?], [&out], &[], &[])?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let grad_x = ops::call("leaky_relu_backward", &[grad, &x], |_| {
            let out = x.uninit_beside(x.sizes(), x.dtype())?;
            let slope = beside(&x, self.negative_slope)?;
            launch(LEAKY_RELU_BACKWARD.of(x.dtype())?, [grad, &x, &slope], [&out], &[], &[])?;
            Ok(out)
        })?;
        Ok([Some(grad_x)])
    }
}

rows! {
    SOFTPLUS: row!("softplus", floats, Costly, |x: T, beta: C, threshold: C| -> T {{
        let scaled = x * beta;
        if scaled > threshold { x } else { log_of_one_and(Float::exp(scaled)) / beta }
    }}).refused_as("softplus_cpu");
    SOFTPLUS_BACKWARD: row!("softplus_backward", floats, Costly, |grad: T, x: T, beta: C, threshold: C| -> T {{
        let scaled = x * beta;
        let power = Float::exp(scaled);
        if scaled > threshold { grad } else { grad * power / (power + 1.0) }
    }});
    // As PyTorch divides: far below 0 that is −0 already where the product with the sigmoid is not.
    SILU: row!("silu", floats, Costly, |x: T| -> T { x / (1.0 + Float::exp(-x)) }).refused_as("silu_cpu");
    SILU_BACKWARD: row!("silu_backward", floats, Costly, |grad: T, x: T| -> T {{
        let sigmoid = 1.0 / (1.0 + Float::exp(-x));
        grad * sigmoid * (1.0 + x * (1.0 - sigmoid))
    }});
    LEAKY_RELU: row!("leaky_relu", floats, Cheap, |x: T, slope: C| -> T { if x > 0.0 { x } else { x * slope } })
        .refused_as("leaky_relu_cpu");
    LEAKY_RELU_BACKWARD: row!("leaky_relu_backward", floats, Cheap, |grad: T, x: T, slope: C| -> T {
        if x > 0.0 { grad } else { grad * slope }
    });
}
