//! The state of an optimizer, moved after its parameters.

use std::panic::Location;

use super::Optimizer;
use crate::device::Device;
use crate::error::Result;
use crate::scope;

/// Moves everything that an optimizer keeps of its parameters to a device, as the function `optimizer_to` of many a Python
/// program does, which PyTorch itself has not.
///
/// Parameters take their place in the optimizer along when their model moves; what the optimizer keeps of them stays behind,
/// and the next step is GPU0001. This is the cure for when it has come to that. The need does not arise if
/// [`load_state_dict`](Optimizer::load_state_dict) comes after `model.to(device)`, since it looks where the parameters are.
///
/// It moves `step` as well, which is better left on the CPU: from then on every step reads it from the device, once for each
/// parameter, and each time the host waits. (PyTorch's `foreach` steps, the usual ones on CUDA, read it twice.)
///
/// Errors, with the state as it was, if there is no memory for all of it.
///
/// ```
/// use todevice::prelude::*;
/// use todevice::{Machine, optim::optimizer_to};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let model = nn::Linear::new(3, 2)?;
///     let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
///     let mut train = |device: Device| {
///         optimizer.zero_grad();
///         model.forward(&Tensor::ones((&[1, 3], device))?)?.sum()?.backward()?;
///         optimizer.step()
///     };
///     train(Device::Cpu)?;
///
///     let device = Device::cuda(0);
///     model.to(device)?;
///     let error = train(device).unwrap_err();
///     assert_eq!(error.code(), Some("GPU0001"));
///     optimizer_to(&mut optimizer, device)?;
///     optimizer.step()
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
#[track_caller]
pub fn optimizer_to(optimizer: &mut (impl Optimizer + ?Sized), device: Device) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    optimizer.map_state(&mut |tensor| tensor.to(device))
}
