//! Adam and AdamW (Kingma and Ba, arXiv 1412.6980; Loshchilov and Hutter, arXiv 1711.05101).

use std::panic::Location;

use super::error::OptimError;
use super::groups::LearningRates;
use super::state_dict::{check_choice, option};
use super::{GroupOptions, Optimizer, ParamGroup, ParamGroups, check, impl_optimizer_by_groups};
use crate::error::Result;
use crate::host_context::HostContext;
use crate::nn::Parameter;
use crate::ops::optimizer::{AdamStep, adam, check_alike, check_counts, count_step, no_steps};
use crate::scope;
use crate::serialize::{Dict, Value, number};
use crate::tensor::Tensor;

/// The keyword arguments of `torch.optim.Adam`.
#[derive(Clone, Copy, Debug)]
pub struct AdamOptions {
    /// The learning rate, roughly the size of a step.
    pub lr: f64,
    /// The decay rates of the running means of the gradient and its square.
    pub betas: (f64, f64),
    /// Added to the divisor to avoid a division by zero.
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
    /// The learning rate, roughly the size of a step.
    pub lr: f64,
    /// The decay rates of the running means of the gradient and its square.
    pub betas: (f64, f64),
    /// Added to the divisor to avoid a division by zero.
    pub eps: f64,
    /// Shrinks the parameter by `lr · weight_decay` before the step, independently of the gradient.
    pub weight_decay: f64,
}

impl Default for AdamWOptions {
    fn default() -> AdamWOptions {
        AdamWOptions { lr: 1e-3, betas: (0.9, 0.999), eps: 1e-8, weight_decay: 1e-2 }
    }
}

/// The options of Adam or AdamW, which differ only in their weight decay.
trait AdamVariant: Copy {
    const NAME: &'static str;
    /// Whether weight decay shrinks the parameter instead of adding to the gradient.
    const DECOUPLED: bool;
    fn new(hyperparameters: Hyperparameters) -> Self;
    fn hyperparameters(&self) -> Hyperparameters;
}

struct Hyperparameters {
    lr: f64,
    betas: (f64, f64),
    eps: f64,
    weight_decay: f64,
}

impl AdamVariant for AdamOptions {
    const NAME: &'static str = "Adam";
    const DECOUPLED: bool = false;

    fn new(Hyperparameters { lr, betas, eps, weight_decay }: Hyperparameters) -> AdamOptions {
        AdamOptions { lr, betas, eps, weight_decay }
    }

    fn hyperparameters(&self) -> Hyperparameters {
        let AdamOptions { lr, betas, eps, weight_decay } = *self;
        Hyperparameters { lr, betas, eps, weight_decay }
    }
}

impl AdamVariant for AdamWOptions {
    const NAME: &'static str = "AdamW";
    const DECOUPLED: bool = true;

    fn new(Hyperparameters { lr, betas, eps, weight_decay }: Hyperparameters) -> AdamWOptions {
        AdamWOptions { lr, betas, eps, weight_decay }
    }

    fn hyperparameters(&self) -> Hyperparameters {
        let AdamWOptions { lr, betas, eps, weight_decay } = *self;
        Hyperparameters { lr, betas, eps, weight_decay }
    }
}

impl<V: AdamVariant> GroupOptions<3> for V {
    const OPTIMIZER: &'static str = V::NAME;
    const STATE: [&'static str; 3] = ["step", "exp_avg", "exp_avg_sq"];

    fn lr(&self) -> f64 {
        self.hyperparameters().lr
    }

    fn check(&self) -> Result<()> {
        let Hyperparameters { lr, betas, eps, weight_decay } = self.hyperparameters();
        check("learning rate", lr, lr >= 0.0)?;
        check("epsilon value", eps, eps >= 0.0)?;
        check("beta parameter at index 0", betas.0, (0.0..1.0).contains(&betas.0))?;
        check("beta parameter at index 1", betas.1, (0.0..1.0).contains(&betas.1))?;
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
    }

    fn to_dict(&self) -> Dict {
        let Hyperparameters { betas, eps, weight_decay, .. } = self.hyperparameters();
        Dict::from_iter([
            ("betas", Value::from(betas)),
            ("eps", eps.into()),
            ("weight_decay", weight_decay.into()),
            ("amsgrad", false.into()),
            ("maximize", false.into()),
            ("foreach", Value::None),
            ("capturable", false.into()),
            ("differentiable", false.into()),
            ("fused", Value::None),
            ("decoupled_weight_decay", V::DECOUPLED.into()),
        ])
    }

    fn from_dict(lr: f64, saved: &Dict) -> Result<V> {
        for choice in ["amsgrad", "maximize", "differentiable"] {
            check_choice::<V, 3>(saved, choice)?;
        }
        // AdamW ignores the state's value, as in PyTorch.
        if !V::DECOUPLED {
            check_choice::<V, 3>(saved, "decoupled_weight_decay")?;
        }
        let hyper = |name| option::<V, 3, f64>(saved, name, number);
        let options = V::new(Hyperparameters {
            lr,
            betas: option::<V, 3, _>(saved, "betas", pair)?,
            eps: hyper("eps")?,
            weight_decay: hyper("weight_decay")?,
        });
        options.check().map(|()| options)
    }

    fn prepare(
        &self,
        parameter: &Tensor,
        grad: &Tensor,
        state: Option<&[Tensor; 3]>,
    ) -> Result<Option<[Tensor; 3]>> {
        prepare(parameter, grad, state).map(Some)
    }

    fn update(
        &self,
        lr: f64,
        parameter: &Tensor,
        grad: &Tensor,
        state: Option<&[Tensor; 3]>,
        _is_first: bool,
    ) -> Result<()> {
        let Some(state) = state else { return Ok(()) };
        let Hyperparameters { betas, eps, weight_decay, .. } = self.hyperparameters();
        let (weight_decay, shrink) = match V::DECOUPLED {
            true => (0.0, 1.0 - lr * weight_decay),
            false => (weight_decay, 1.0),
        };
        update(parameter, grad, state, lr, betas, eps, [weight_decay, shrink])
    }
}

fn pair(value: &Value) -> Result<(f64, f64)> {
    match value.as_list()? {
        [a, b] => Ok((number(a)?, number(b)?)),
        other => Err(OptimError::Pair { len: other.len() }.into()),
    }
}

fn prepare(parameter: &Tensor, grad: &Tensor, state: Option<&[Tensor; 3]>) -> Result<[Tensor; 3]> {
    check_alike(parameter, [("grad", grad)])?;
    let state = match state {
        // The means follow the dtype of a converted parameter, but not its device. They must be moved explicitly.
        Some([step, exp_avg, exp_avg_sq]) => {
            check_counts(step)?;
            [step.clone(), exp_avg.to(parameter.dtype())?, exp_avg_sq.to(parameter.dtype())?]
        }
        None => [no_steps()?, parameter.zeros_like()?, parameter.zeros_like()?],
    };
    check_alike(parameter, [("exp_avg", &state[1]), ("exp_avg_sq", &state[2])])?;
    Ok(state)
}

/// Updates one parameter. If its step count is on a device, the host waits for it.
fn update(
    parameter: &Tensor,
    grad: &Tensor,
    [step, exp_avg, exp_avg_sq]: &[Tensor; 3],
    lr: f64,
    (beta1, beta2): (f64, f64),
    eps: f64,
    [weight_decay, shrink]: [f64; 2],
) -> Result<()> {
    HostContext::spend(|host| &host.adam_parameter);
    let taken = step.item()? + 1.0;
    let constants = AdamStep {
        beta1,
        beta2,
        eps,
        weight_decay,
        shrink,
        step_size: lr / (1.0 - libm::pow(beta1, taken)),
        bias_correction2_sqrt: (1.0 - libm::pow(beta2, taken)).sqrt(),
    };
    adam(parameter, grad, exp_avg, exp_avg_sq, constants)?;
    count_step(step, taken)
}

/// A step of Adam or AdamW on one parameter, with its state (`torch.optim.adam.adam`). With `decoupled`, the weight decay
/// is that of AdamW.
#[doc(hidden)]
#[track_caller]
pub fn adam_step(
    parameter: &Tensor,
    grad: &Tensor,
    state: &[Tensor; 3],
    options: AdamOptions,
    decoupled: bool,
) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    let [step, exp_avg, exp_avg_sq] = state;
    check_alike(parameter, [("grad", grad)])?;
    check_counts(step)?;
    check_alike(parameter, [("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)])?;
    let AdamOptions { lr, betas, eps, weight_decay } = options;
    let decay = if decoupled { [0.0, 1.0 - lr * weight_decay] } else { [weight_decay, 1.0] };
    update(parameter, grad, state, lr, betas, eps, decay)
}

/// The state of a parameter in Adam and AdamW (`optimizer.state[p]`).
#[derive(Clone, Debug)]
pub struct AdamState {
    /// The number of steps with a gradient, as an f32. As in PyTorch, it stays on the CPU unless it is moved explicitly
    /// ([`optimizer_to`](super::optimizer_to)). It keeps the dtype set by [`map_state`](super::Optimizer::map_state).
    pub step: Tensor,
    /// The running mean of the gradient, with the sizes, dtype and device of the parameter.
    pub exp_avg: Tensor,
    /// The running mean of the squared gradient.
    pub exp_avg_sq: Tensor,
}

/// Declares an optimizer, as `pub struct Adam { groups: ParamGroups<AdamOptions, 3> }`, with its methods.
macro_rules! adam_optimizer {
    ($(#[$doc:meta])* $Adam:ident, $Options:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Adam {
            groups: ParamGroups<$Options, 3>,
        }

        impl $Adam {
            /// Creates an optimizer with one group of parameters. Errors if it is empty, or an option is out of range.
            pub fn new(params: Vec<Parameter>, options: $Options) -> Result<$Adam> {
                $Adam::with_groups(vec![ParamGroup { params, options }])
            }

            /// Creates an optimizer with several groups, each with its options.
            pub fn with_groups(groups: Vec<ParamGroup<$Options>>) -> Result<$Adam> {
                Ok($Adam { groups: ParamGroups::new(groups)? })
            }

            /// Returns the state of a parameter (`optimizer.state[p]`), sharing its tensors. `None` before the first
            /// step with a gradient, and for a parameter outside this optimizer.
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
            /// assert_eq!((state.step.item()?, state.exp_avg.sizes()), (1.0, &[1, 2][..]));
            /// # Ok::<(), todevice::Error>(())
            /// ```
            pub fn state(&self, parameter: &Parameter) -> Option<AdamState> {
                let [step, exp_avg, exp_avg_sq] = self.groups.state(parameter)?.clone();
                Some(AdamState { step, exp_avg, exp_avg_sq })
            }
        }

        impl Optimizer for $Adam {
            impl_optimizer_by_groups!();
        }
    };
}

adam_optimizer!(
    /// Takes steps of roughly `lr`, whatever the size of the gradients (`torch.optim.Adam`).
    ///
    /// Both means have the dtype of their parameter, as in PyTorch. Those of half types are rounded at each step,
    /// although the step is computed in f32. In f16 the mean square of gradients below 0.005 stays 0. Keep parameters
    /// in f32, and use [`autocast`](crate::amp::autocast) for products in half types.
    Adam,
    AdamOptions
);
adam_optimizer!(
    /// Adam with weight decay independent of the gradient (`torch.optim.AdamW`). Its means are those of [`Adam`].
    AdamW,
    AdamWOptions
);
