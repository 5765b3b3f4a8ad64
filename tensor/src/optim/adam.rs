//! Adam and AdamW (Kingma and Ba, arXiv 1412.6980; Loshchilov and Hutter, arXiv 1711.05101).

use std::panic::Location;

use super::groups::LearningRates;
use super::{GroupOptions, Groups, Optimizer, ParamGroup, check, for_each_with_grad};
use crate::ambient::Ambient;
use crate::error::Result;
use crate::nn::Parameter;
use crate::ops::optimizer::{AdamStep, adam};
use crate::scope;
use crate::tensor::Tensor;

/// The keyword arguments of `torch.optim.Adam`.
#[derive(Clone, Copy, Debug)]
pub struct AdamOptions {
    /// The learning rate: about the size of a step.
    pub lr: f64,
    /// How slowly the means of the gradient and of its square forget.
    pub betas: (f64, f64),
    /// Added to the divisor, against division by zero.
    pub eps: f64,
    /// Added to the gradient as `weight_decay · p`.
    pub weight_decay: f64,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions { lr: 1e-3, betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0 }
    }
}

/// The keyword arguments of `torch.optim.AdamW`.
#[derive(Clone, Copy, Debug)]
pub struct AdamWOptions {
    /// The learning rate: about the size of a step.
    pub lr: f64,
    /// How slowly the means of the gradient and of its square forget.
    pub betas: (f64, f64),
    /// Added to the divisor, against division by zero.
    pub eps: f64,
    /// Shrinks the parameter by `lr · weight_decay` before the step, apart from the gradient.
    pub weight_decay: f64,
}

impl Default for AdamWOptions {
    fn default() -> AdamWOptions {
        AdamWOptions { lr: 1e-3, betas: (0.9, 0.999), eps: 1e-8, weight_decay: 1e-2 }
    }
}

macro_rules! adam_options {
    ($($Options:ty),*) => {$(
        impl GroupOptions for $Options {
            fn lr(&self) -> f64 {
                self.lr
            }

            fn check(&self) -> Result<()> {
                check("learning rate", self.lr, self.lr >= 0.0)?;
                check("epsilon value", self.eps, self.eps >= 0.0)?;
                check("beta parameter at index 0", self.betas.0, (0.0..1.0).contains(&self.betas.0))?;
                check("beta parameter at index 1", self.betas.1, (0.0..1.0).contains(&self.betas.1))?;
                check("weight_decay value", self.weight_decay, self.weight_decay >= 0.0)
            }
        }
    )*};
}
adam_options!(AdamOptions, AdamWOptions);

/// The running means of one parameter's gradient and of its square.
#[derive(Debug, Default)]
struct Moments {
    /// Steps taken; a parameter without a gradient does not advance.
    step: i32,
    averages: Option<[Tensor; 2]>,
}

impl Moments {
    fn update(
        &mut self,
        parameter: &Tensor,
        grad: &Tensor,
        lr: f64,
        (beta1, beta2): (f64, f64),
        eps: f64,
        decay: Decay,
    ) -> Result<()> {
        Ambient::spend(|host| &host.adam_parameter);
        // The averages follow a parameter that was converted since. To another device they must be moved.
        let averages = match &self.averages {
            Some([exp_avg, exp_avg_sq]) => {
                [exp_avg.to(parameter.dtype())?, exp_avg_sq.to(parameter.dtype())?]
            }
            None => [parameter.zeros_like()?, parameter.zeros_like()?],
        };
        let t = self.step + 1;
        let (weight_decay, shrink) = match decay {
            Decay::OfGradient(weight_decay) => (weight_decay, 1.0),
            Decay::OfParameter(weight_decay) => (0.0, 1.0 - lr * weight_decay),
        };
        let step = AdamStep {
            beta1,
            beta2,
            eps,
            weight_decay,
            shrink,
            step_size: lr / (1.0 - libm::pow(beta1, f64::from(t))),
            bias_correction2_sqrt: (1.0 - libm::pow(beta2, f64::from(t))).sqrt(),
        };
        adam(parameter, grad, &averages[0], &averages[1], step)?;
        (self.step, self.averages) = (t, Some(averages));
        Ok(())
    }
}

/// What Adam and AdamW keep of a parameter (`optimizer.state[p]`).
#[derive(Clone, Debug)]
pub struct AdamState {
    /// Steps taken with a gradient. It is a number of the host, wherever the parameter is; PyTorch keeps it on
    /// the CPU too.
    pub step: u32,
    /// The running mean of the gradient: sizes, type and device of the parameter.
    pub exp_avg: Tensor,
    /// The running mean of its square.
    pub exp_avg_sq: Tensor,
}

impl Moments {
    fn state(&self) -> Option<AdamState> {
        let [exp_avg, exp_avg_sq] = self.averages.clone()?;
        Some(AdamState { step: self.step.unsigned_abs(), exp_avg, exp_avg_sq })
    }
}

/// Where weight decay enters: that is all the difference between Adam and AdamW.
enum Decay {
    OfGradient(f64),
    OfParameter(f64),
}

macro_rules! adam_optimizer {
    ($(#[$doc:meta])* $Adam:ident, $Options:ident, $Decay:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Adam {
            groups: Groups<$Options, Moments>,
        }

        impl $Adam {
            /// One group of parameters. Errors on options out of range, and if there is no parameter.
            pub fn new(params: Vec<Parameter>, options: $Options) -> Result<$Adam> {
                $Adam::with_groups(vec![ParamGroup { params, options }])
            }

            /// Several groups, each with its own options.
            pub fn with_groups(groups: Vec<ParamGroup<$Options>>) -> Result<$Adam> {
                Ok($Adam { groups: Groups::new(groups)? })
            }

            /// What is kept of a parameter (`optimizer.state[p]`): the tensors themselves, not copies. None
            /// before its first step with a gradient, and of a parameter that is not this optimizer's.
            ///
            /// ```
            /// # use todevice::{Tensor, nn, nn::Module, optim::{self, Optimizer}};
            /// let model = nn::Linear::new(2, 1)?;
            #[doc = concat!("let mut optimizer = optim::", stringify!($Adam), "::new(model.parameters(), Default::default())?;")]
            /// let weight = &model.parameters()[0];
            /// assert!(optimizer.state(weight).is_none());
            ///
            /// model.forward(&Tensor::ones(&[1, 2])?)?.sum()?.backward()?;
            /// optimizer.step()?;
            /// let state = optimizer.state(weight).unwrap();
            /// assert_eq!((state.step, state.exp_avg.sizes()), (1, &[1, 2][..]));
            /// # Ok::<(), todevice::Error>(())
            /// ```
            pub fn state(&self, parameter: &Parameter) -> Option<AdamState> {
                self.groups.state(parameter)?.state()
            }
        }

        impl Optimizer for $Adam {
            #[track_caller]
            fn step(&mut self) -> Result<()> {
                let _scope = scope::on_behalf_of(Location::caller());
                for_each_with_grad(&mut self.groups, |parameter, grad, options, lr, moments| {
                    let decay = Decay::$Decay(options.weight_decay);
                    moments.update(&parameter.tensor(), grad, lr, options.betas, options.eps, decay)
                })
            }

            fn parameters(&self) -> Vec<Parameter> {
                self.groups.parameters().cloned().collect()
            }

            fn zero_grad(&self) {
                self.groups.zero_grad();
            }

            fn learning_rates(&self) -> &LearningRates {
                &self.groups.learning_rates
            }
        }
    };
}

adam_optimizer!(
    /// Steps of about `lr` in every direction, whatever the size of the gradients (`torch.optim.Adam`).
    ///
    /// Both means have the type of their parameter, as in PyTorch: those of halves are kept in halves, and rounded at
    /// each step, though the step itself is calculated in f32. In f16 the mean square of gradients below 0.005 stays 0.
    /// Keep parameters in f32 and see [`autocast`](crate::amp::autocast) for products of halves.
    Adam,
    AdamOptions,
    OfGradient
);
adam_optimizer!(
    /// Adam with weight decay apart from the gradient (`torch.optim.AdamW`). Of the type of its means [`Adam`] says more.
    AdamW,
    AdamWOptions,
    OfParameter
);
