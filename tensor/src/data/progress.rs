//! The progress of an epoch, so that another run can resume it. An epoch follows from the workers' seed and the
//! generators of its order, so the order is not saved and samplers need not support resuming.

use std::sync::{Mutex, MutexGuard};

use crate::error::Result;
use crate::lock::lock;
use crate::machine::Machine;
use crate::random::Generator;
use crate::serialize::{Dict, Value, count, field};
use crate::tensor::Tensor;

#[derive(Clone)]
pub(super) struct Epoch {
    pub base_seed: u64,
    pub generators: Generators,
    pub yielded: u64,
}

/// The states, before the order is drawn, of the default generator and the loader's generator.
#[derive(Clone)]
pub(super) struct Generators {
    default: Vec<u8>,
    own: Option<Vec<u8>>,
}

impl Generators {
    pub fn now(own: Option<&Generator>) -> Generators {
        Generators { default: Machine::default_generator().get_state(), own: own.map(Generator::get_state) }
    }

    /// Runs `draw` from these states. Then restores the default generator, which others have used since; the loader's
    /// generator keeps the state after `draw`.
    pub fn replay<R>(&self, own: Option<&Generator>, draw: impl FnOnce() -> R) -> R {
        let default = Machine::default_generator();
        let now = default.get_state();
        // Valid: loading checks the states.
        let _ = default.set_state(&self.default);
        if let (Some(generator), Some(state)) = (own, &self.own) {
            let _ = generator.set_state(state);
        }
        let drawn = draw();
        let _ = default.set_state(&now);
        drawn
    }
}

/// The epoch that started last.
#[derive(Default)]
pub(super) struct Progress(Mutex<ProgressState>);

#[derive(Default)]
struct ProgressState {
    begun: u64,
    epoch: Option<Epoch>,
    /// The state to resume from.
    loaded: Option<Epoch>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        lock(&self.0)
    }

    pub fn take_loaded(&self) -> Option<Epoch> {
        self.lock().loaded.take()
    }

    /// Starts an epoch and returns its number.
    pub fn begin(&self, epoch: Epoch) -> u64 {
        let mut state = self.lock();
        state.begun += 1;
        state.epoch = Some(epoch);
        state.begun
    }

    pub fn count(&self, number: u64) {
        let mut state = self.lock();
        if state.begun == number
            && let Some(epoch) = &mut state.epoch
        {
            epoch.yielded += 1;
        }
    }

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
            ("_num_yielded", Value::Int(epoch.yielded as i64)), // It stays below 2⁶³.
            ("_base_seed", Value::Int(epoch.base_seed as i64)), // It is below 2⁶³.
            ("rng_state", bytes(&epoch.generators.default)?.into()),
            ("generator", epoch.generators.own.as_deref().map(bytes).transpose()?.into()),
        ]))
    }

    pub fn load_state_dict(&self, state: &Dict) -> Result<()> {
        let mut loaded = None;
        if !field(state, "_iterator_finished", Value::as_bool)? {
            let own = Some(state.at("generator")?).filter(|own| !own.is_none());
            loaded = Some(Epoch {
                base_seed: field(state, "_base_seed", count)?,
                generators: Generators {
                    default: rng_state(field(state, "rng_state", Value::as_tensor)?)?,
                    own: own.map(|_| rng_state(field(state, "generator", Value::as_tensor)?)).transpose()?,
                },
                yielded: field(state, "_num_yielded", count)?,
            });
        }
        self.lock().loaded = loaded;
        Ok(())
    }
}

fn bytes(state: &[u8]) -> Result<Tensor> {
    Tensor::from_slice(state, &[state.len()])
}

fn rng_state(bytes: &Tensor) -> Result<Vec<u8>> {
    let state = bytes.to_vec()?;
    Generator::new().set_state(&state)?;
    Ok(state)
}
