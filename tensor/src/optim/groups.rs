//! Parameter groups: parameters that share options, each with a state of its own.

use std::sync::{Arc, Mutex, PoisonError};

use super::error::OptimError;
use crate::ambient::Ambient;
use crate::error::Result;
use crate::nn::Parameter;

/// Parameters and their options, for an optimizer with several groups.
#[derive(Clone, Debug)]
pub struct ParamGroup<O> {
    /// The parameters of the group.
    pub params: Vec<Parameter>,
    /// What they share.
    pub options: O,
}

/// What an optimizer's options must be able to say for the groups.
pub(super) trait GroupOptions: Clone {
    /// The learning rate to start with.
    fn lr(&self) -> f64;
    /// Errors on values that make no sense.
    fn check(&self) -> Result<()>;
}

/// The groups of an optimizer, with a state `S` for each parameter.
#[derive(Debug)]
pub(super) struct Groups<O, S> {
    pub(super) groups: Vec<Group<O, S>>,
    pub(super) learning_rates: LearningRates,
}

#[derive(Debug)]
pub(super) struct Group<O, S> {
    pub(super) params: Vec<Parameter>,
    pub(super) options: O,
    pub(super) state: Vec<S>,
}

impl<O: GroupOptions, S: Default> Groups<O, S> {
    pub(super) fn new(groups: Vec<ParamGroup<O>>) -> Result<Groups<O, S>> {
        if groups.iter().all(|group| group.params.is_empty()) {
            return Err(OptimError::NoParameters.into());
        }
        let mut seen: Vec<&Parameter> = Vec::new();
        for group in &groups {
            group.options.check()?;
            let known = seen.len();
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
                let state = params.iter().map(|_| S::default()).collect();
                Group { params, options, state }
            })
            .collect();
        Ok(Groups { groups, learning_rates })
    }

    /// The state of a parameter; none if it is of no group.
    pub(super) fn state(&self, parameter: &Parameter) -> Option<&S> {
        let known = self.groups.iter().flat_map(|group| group.params.iter().zip(&group.state));
        known.into_iter().find(|(known, _)| known.is_same(parameter)).map(|(_, state)| state)
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.groups.iter().flat_map(|group| &group.params)
    }

    pub(super) fn zero_grad(&self) {
        Ambient::spend(|host| &host.zero_grad);
        self.parameters().for_each(Parameter::zero_grad);
    }
}

/// The learning rates of an optimizer's groups. Clones share them, so a scheduler changes what the
/// optimizer uses.
#[derive(Clone, Debug)]
pub struct LearningRates(Arc<Mutex<Rates>>);

#[derive(Debug)]
struct Rates {
    current: Vec<f64>,
    /// How often the optimizer stepped: a scheduler that goes first gets a warning.
    steps: u64,
}

impl LearningRates {
    /// The learning rates an optimizer of your own starts with.
    pub fn new(current: Vec<f64>) -> LearningRates {
        LearningRates(Arc::new(Mutex::new(Rates { current, steps: 0 })))
    }

    /// Whether both are those of one optimizer.
    pub(crate) fn is_same(&self, other: &LearningRates) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The learning rate of group `index`.
    pub(super) fn get(&self, index: usize) -> f64 {
        self.lock().current[index]
    }

    /// The learning rates of all groups.
    pub fn all(&self) -> Vec<f64> {
        self.lock().current.clone()
    }

    /// Replaces the learning rates of all groups.
    pub fn set_all(&self, rates: &[f64]) {
        for (current, rate) in self.lock().current.iter_mut().zip(rates) {
            *current = *rate;
        }
    }

    /// Notes that the optimizer stepped.
    pub fn count_step(&self) {
        self.lock().steps += 1;
    }

    pub(super) fn steps(&self) -> u64 {
        self.lock().steps
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Rates> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
