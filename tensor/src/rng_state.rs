use crate::dtype::DType;
use crate::error::Result;
use crate::gpu;
use crate::machine::Machine;
use crate::ops::random::error::RandomError;
use crate::random::Philox;
use crate::tensor::Tensor;

/// Returns the state of the CPU's default generator (`torch.get_rng_state`): 5056 bytes that PyTorch can load.
///
/// ```
/// use todevice::{Tensor, get_rng_state, set_rng_state};
///
/// let state = get_rng_state()?;
/// let x = Tensor::rand(&[3])?;
/// set_rng_state(&state)?;
/// assert!(Tensor::rand(&[3])?.equal(&x)?);
/// # Ok::<(), todevice::Error>(())
/// ```
#[track_caller]
pub fn get_rng_state() -> Result<Tensor> {
    bytes(&Machine::default_generator().get_state())
}

/// Restores the CPU's default generator (`torch.set_rng_state`). An invalid state is an error and changes nothing.
#[track_caller]
pub fn set_rng_state(state: &Tensor) -> Result<()> {
    Ok(Machine::default_generator().set_state(&bytes_of(state)?)?)
}

/// Returns the state of a device's generator (`torch.cuda.get_rng_state`): 16 bytes, the seed and the number of draws.
/// The layout is PyTorch's, but the numbers drawn are not: see [`Tensor::rand`].
#[track_caller]
pub fn get_cuda_rng_state(index: usize) -> Result<Tensor> {
    bytes(&gpu::check_ordinal(index)?.generator(index).state())
}

/// Restores a device's generator from a state of any device (`torch.cuda.set_rng_state`).
#[track_caller]
pub fn set_cuda_rng_state(state: &Tensor, index: usize) -> Result<()> {
    let cuda = gpu::check_ordinal(index)?;
    let Some(generator) = Philox::from_state(&bytes_of(state)?) else {
        return Err(RandomError::State("RNG state is wrong size".to_owned()).into());
    };
    *cuda.generator(index) = generator;
    Ok(())
}

/// Returns the states of all devices (`torch.cuda.get_rng_state_all`); empty without a device.
///
/// ```
/// use todevice::{Device, Machine, Tensor, cuda};
///
/// let machine: Machine = "sim:t4x2".parse()?;
/// machine.enter(|| {
///     let states = cuda::get_rng_state_all()?;
///     let x = Tensor::rand((&[3], Device::cuda(1)))?;
///     cuda::set_rng_state_all(&states)?;
///     assert!(Tensor::rand((&[3], Device::cuda(1)))?.equal(&x)?);
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
#[track_caller]
pub fn get_rng_state_all() -> Result<Vec<Tensor>> {
    (0..gpu::device_count()).map(get_cuda_rng_state).collect()
}

/// Restores the generators of the first devices, in order (`torch.cuda.set_rng_state_all`).
#[track_caller]
pub fn set_rng_state_all(states: &[Tensor]) -> Result<()> {
    states.iter().enumerate().try_for_each(|(index, state)| set_cuda_rng_state(state, index))
}

/// Seeds the current device's generator (`torch.cuda.manual_seed`). Does nothing without a device.
///
/// ```
/// use todevice::{Device, Machine, Tensor, cuda};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     cuda::manual_seed(7);
///     let x = Tensor::rand((&[3], Device::cuda(0)))?;
///     cuda::manual_seed(7);
///     assert!(Tensor::rand((&[3], Device::cuda(0)))?.equal(&x)?);
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn cuda_manual_seed(seed: u64) {
    let index = gpu::current_index();
    if let Some(cuda) = Machine::current().cuda().filter(|cuda| index < cuda.device_count()) {
        *cuda.generator(index) = Philox::new(seed);
    }
}

/// Seeds the generators of all devices (`torch.cuda.manual_seed_all`), but not the CPU's:
/// [`manual_seed`](crate::manual_seed) seeds both. Also affects machines that this thread enters later.
pub fn cuda_manual_seed_all(seed: u64) {
    Machine::current().seed_gpus(seed);
}

fn bytes(state: &[u8]) -> Result<Tensor> {
    Tensor::from_slice(state, &[state.len()])
}

fn bytes_of(state: &Tensor) -> Result<Vec<u8>> {
    if state.dtype() != DType::U8 || state.is_cuda() {
        return Err(RandomError::StateType.into());
    }
    state.to_vec()
}
