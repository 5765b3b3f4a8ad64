use std::panic::Location;

use super::Optimizer;
use crate::device::Device;
use crate::error::Result;
use crate::scope;

/// Moves the whole state of an optimizer to a device. PyTorch has no such function, but many Python programs define it.
///
/// When a model moves, the optimizer's state stays behind, and the next step fails with GPU0001. Call this function
/// then, or [`load_state_dict`](Optimizer::load_state_dict) after `model.to(device)`.
///
/// It moves `step`, too, which is better on the CPU: every later step waits for the device to read it, once per
/// parameter. (PyTorch's `foreach` steps, the default on CUDA, read it twice.)
///
/// Errors, without a change, if there is not enough memory for the whole state.
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
