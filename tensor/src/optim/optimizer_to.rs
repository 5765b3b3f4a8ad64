//! Moving the state of an optimizer after its parameters.

use std::panic::Location;

use super::Optimizer;
use crate::device::Device;
use crate::error::Result;
use crate::scope;

/// Moves the whole state of an optimizer to a device, like the function `optimizer_to` found in many Python programs
/// but not in PyTorch itself.
///
/// When a model moves, the optimizer sees its moved parameters, but the optimizer's state stays behind, and the next step
/// fails with GPU0001. This function fixes that. It is not needed if [`load_state_dict`](Optimizer::load_state_dict) is called
/// after `model.to(device)`, because that follows the parameters.
///
/// It moves `step` as well, which is better left on the CPU: from then on every step reads it from the device, once for
/// each parameter, and each time the host waits. (PyTorch's `foreach` steps, the usual ones on CUDA, read it twice.)
///
/// Errors, leaving the state unchanged, if there is not enough memory for all of it.
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
