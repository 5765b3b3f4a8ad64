//! How far a loader's epoch has come, so that another run can go on from there.
//!
//! An epoch is made again from what it began with: the seed of its workers, and the state of the generator that its order was
//! drawn from. So the order need not be kept, nor does a sampler have to know of this.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::ops::random::error::RandomError;
use crate::random::Generator;
use crate::serialize::{Dict, Value, count, field};
use crate::tensor::Tensor;

/// What an epoch began with, and how many batches were handed over since.
#[derive(Clone)]
pub(super) struct Epoch {
    pub base_seed: u64,
    /// Of the generator that the order is drawn from, before anything of it was.
    pub rng_state: Vec<u8>,
    pub yielded: u64,
}

/// The epoch under way: the last one that was begun, if there are several.
#[derive(Default)]
pub(super) struct Progress(Mutex<State>);

#[derive(Default)]
struct State {
    begun: u64,
    epoch: Option<Epoch>,
    /// What the next epoch is to go on from.
    loaded: Option<Epoch>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take_loaded(&self) -> Option<Epoch> {
        self.lock().loaded.take()
    }

    /// Begins an epoch, and returns its number.
    pub fn begin(&self, epoch: Epoch) -> u64 {
        let mut state = self.lock();
        state.begun += 1;
        state.epoch = Some(epoch);
        state.begun
    }

    /// Notes that epoch `number` handed a batch over.
    pub fn count(&self, number: u64) {
        let mut state = self.lock();
        if state.begun == number
            && let Some(epoch) = &mut state.epoch
        {
            epoch.yielded += 1;
        }
    }

    /// Notes that epoch `number` is over.
    pub fn end(&self, number: u64) {
        let mut state = self.lock();
        if state.begun == number {
            state.epoch = None;
        }
    }

    pub fn state_dict(&self) -> Result<Dict> {
        let Some(epoch) = self.lock().epoch.clone() else {
            return Ok(Dict::from_iter([("_iterator_finished", true)]));
        };
        Ok(Dict::from_iter([
            ("_iterator_finished", Value::from(false)),
            ("_num_yielded", Value::Int(epoch.yielded as i64)), // Nobody counts to 2⁶³.
            ("_base_seed", Value::Int(epoch.base_seed as i64)), // It is below 2⁶³.
            ("rng_state", Tensor::from_slice(&epoch.rng_state, &[epoch.rng_state.len()])?.into()),
        ]))
    }

    pub fn load_state_dict(&self, state: &Dict) -> Result<()> {
        let mut loaded = None;
        if !field(state, "_iterator_finished", Value::as_bool)? {
            let rng_state = field(state, "rng_state", Value::as_tensor)?.to_vec()?;
            Generator::new().set_state(&rng_state).map_err(RandomError::State)?; // Whether it is one.
            let yielded = field(state, "_num_yielded", count)?;
            loaded = Some(Epoch { base_seed: field(state, "_base_seed", count)?, rng_state, yielded });
        }
        self.lock().loaded = loaded;
        Ok(())
    }
}
