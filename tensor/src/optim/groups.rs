use std::sync::{Arc, Mutex};

use super::error::OptimError;
use crate::autograd::no_grad;
use crate::error::{HalfDone, Result};
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::nn::Parameter;
use crate::scope;
use crate::serialize::Dict;
use crate::tensor::Tensor;

/// Parameters and their options, for an optimizer with several groups.
#[derive(Clone, Debug)]
pub struct ParamGroup<O> {
    /// The parameters of the group.
    pub params: Vec<Parameter>,
    /// The options of all parameters.
    pub options: O,
}

/// The part of the groups that depends on the optimizer: its options, and the `N` state tensors per parameter.
pub(super) trait GroupOptions<const N: usize>: Clone {
    const OPTIMIZER: &'static str;
    const STATE: [&'static str; N];

    fn lr(&self) -> f64;
    fn check(&self) -> Result<()>;
    /// All options but the learning rate, under PyTorch's names and in its order.
    fn to_dict(&self) -> Dict;
    /// Reads a checkpoint's options. Errors on missing and unknown options.
    fn from_dict(lr: f64, options: &Dict) -> Result<Self>;

    /// Prepares the state of a parameter for the next step, with all memory that the step needs. `None` without state.
    fn prepare(
        &self,
        parameter: &Tensor,
        grad: &Tensor,
        state: Option<&[Tensor; N]>,
    ) -> Result<Option<[Tensor; N]>>;
    /// Updates a parameter and its state. `is_first` means that the state is new.
    fn update(
        &self,
        lr: f64,
        parameter: &Tensor,
        grad: &Tensor,
        state: Option<&[Tensor; N]>,
        is_first: bool,
    ) -> Result<()>;
}

#[derive(Debug)]
pub(super) struct ParamGroups<O, const N: usize> {
    pub(super) groups: Vec<Group<O, N>>,
    pub(super) learning_rates: LearningRates,
}

#[derive(Debug)]
pub(super) struct Group<O, const N: usize> {
    pub(super) params: Vec<Parameter>,
    pub(super) options: O,
    /// The state of each parameter, or `None` before its first step with a gradient.
    pub(super) state: Vec<Option<[Tensor; N]>>,
}

const REPEATED: &str = "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; \
                        see github.com/pytorch/pytorch/issues/40967 for more information";

impl<O: GroupOptions<N>, const N: usize> ParamGroups<O, N> {
    pub(super) fn new(groups: Vec<ParamGroup<O>>) -> Result<ParamGroups<O, N>> {
        if groups.iter().all(|group| group.params.is_empty()) {
            return Err(OptimError::NoParameters.into());
        }
        let mut seen: Vec<&Parameter> = Vec::new();
        for group in &groups {
            group.options.check()?;
            let known = seen.len();
            let is_repeated = |(i, parameter): (usize, &Parameter)| {
                group.params[..i].iter().any(|other| other.is_same(parameter))
            };
            if group.params.iter().enumerate().any(is_repeated) {
                HostContext::warn_once_at("duplicate parameters", scope::current_place(), || {
                    REPEATED.to_owned()
                });
            }
            for parameter in &group.params {
                if seen[..known].iter().any(|other| other.is_same(parameter)) {
                    return Err(OptimError::RepeatedParameter.into());
                }
                seen.push(parameter);
            }
        }
        let learning_rates = LearningRates::new(groups.iter().map(|group| group.options.lr()).collect());
        let groups = groups
            .into_iter()
            .map(|ParamGroup { params, options }| {
                let state = params.iter().map(|_| None).collect();
                Group { params, options, state }
            })
            .collect();
        Ok(ParamGroups { groups, learning_rates })
    }

    /// Updates every parameter that has a gradient. Running out of memory changes nothing: it is allocated first.
    pub(super) fn step(&mut self) -> Result<()> {
        self.learning_rates.count_step();
        HostContext::spend(|host| &host.step);
        no_grad(|| {
            let mut ready = Vec::new();
            for (i, Group { params, options, state }) in self.groups.iter_mut().enumerate() {
                let (lr, _) = self.learning_rates.of_group(i);
                for (parameter, kept) in params.iter().zip(state) {
                    if let Some(grad) = parameter.grad() {
                        let parameter = parameter.tensor();
                        let state = options.prepare(&parameter, &grad, kept.as_ref())?;
                        ready.push((lr, &*options, parameter, grad, state, kept));
                    }
                }
            }
            let of = ready.len();
            for (done, (lr, options, parameter, grad, state, kept)) in ready.into_iter().enumerate() {
                options.update(lr, &parameter, &grad, state.as_ref(), kept.is_none()).map_err(
                    HalfDone::after(
                        done,
                        of,
                        "parameters were updated: go on from a checkpoint, since \
                         another step would update these twice",
                    ),
                )?;
                *kept = state;
            }
            Ok(())
        })
    }

    pub(super) fn state(&self, parameter: &Parameter) -> Option<&[Tensor; N]> {
        let known = self.groups.iter().flat_map(|group| group.params.iter().zip(&group.state));
        known.into_iter().find(|(known, _)| known.is_same(parameter))?.1.as_ref()
    }

    /// Replaces every state tensor by the result of `change`: all of them, or none if one fails.
    pub(super) fn map_state(&mut self, change: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<()> {
        let mut kept: Vec<&mut Tensor> =
            self.groups.iter_mut().flat_map(|group| group.state.iter_mut().flatten().flatten()).collect();
        let changed: Vec<Tensor> = kept.iter().map(|tensor| change(tensor)).collect::<Result<_>>()?;
        kept.iter_mut().zip(changed).for_each(|(kept, changed)| **kept = changed);
        Ok(())
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.groups.iter().flat_map(|group| &group.params)
    }

    pub(super) fn zero_grad(&self) {
        HostContext::spend(|host| &host.zero_grad);
        self.parameters().for_each(Parameter::zero_grad);
    }
}

/// The learning rates of an optimizer's groups. Clones share them, so a scheduler changes the optimizer's rates.
#[derive(Clone, Debug)]
pub struct LearningRates(Arc<Mutex<Rates>>);

#[derive(Debug)]
struct Rates {
    current: Vec<f64>,
    /// The rates that the schedules started from, if any.
    initial: Vec<Option<f64>>,
    /// The number of optimizer steps, for the warning about a scheduler that steps first.
    steps: u64,
}

impl LearningRates {
    /// Creates the initial learning rates, for your own optimizer.
    pub fn new(current: Vec<f64>) -> LearningRates {
        let initial = vec![None; current.len()];
        LearningRates(Arc::new(Mutex::new(Rates { current, initial, steps: 0 })))
    }

    pub(crate) fn is_same(&self, other: &LearningRates) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the learning rates of all groups.
    pub fn all(&self) -> Vec<f64> {
        self.lock().current.clone()
    }

    /// Replaces the learning rates of all groups. Errors, without a change, unless there is one per group.
    pub fn set_all(&self, rates: &[f64]) -> Result<()> {
        let current = &mut self.lock().current;
        if rates.len() != current.len() {
            return Err(OptimError::LearningRates { given: rates.len(), groups: current.len() }.into());
        }
        current.copy_from_slice(rates);
        Ok(())
    }

    /// The rates that the groups' first schedules found (`initial_lr`), possibly in the run that saved a checkpoint.
    pub(super) fn initial(&self) -> Vec<f64> {
        let Rates { current, initial, .. } = &mut *self.lock();
        initial.iter_mut().zip(current).map(|(initial, current)| *initial.get_or_insert(*current)).collect()
    }

    /// The learning rate of a group, and the rate its schedule started from, if any.
    pub(super) fn of_group(&self, index: usize) -> (f64, Option<f64>) {
        let rates = self.lock();
        (rates.current[index], rates.initial[index])
    }

    pub(super) fn restore(&self, rates: Vec<(f64, Option<f64>)>) {
        let mut own = self.lock();
        (own.current, own.initial) = rates.into_iter().unzip();
    }

    /// Records a step of the optimizer.
    pub fn count_step(&self) {
        self.lock().steps += 1;
    }

    pub(super) fn steps(&self) -> u64 {
        self.lock().steps
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Rates> {
        lock(&self.0)
    }
}
