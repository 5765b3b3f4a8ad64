//! GPU0001, operands on two devices: PyTorch's message and the origin of both operands.
//!
//! If a parameter or buffer stayed behind because its module does not list it, the error names the module and the list.
//! This takes the tensor's [`Owner`] and a record of recently moved modules.

use crate::place::Place;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::Device;
use crate::error::{DeviceMismatch, Error, Forgetful, GpuError, MismatchedTensor, Unlisted};
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::machine::Machine;
use crate::operation::ArgumentNames;
use crate::scope;
use crate::tensor::Tensor;

/// The module that a parameter or buffer belongs to.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Its name in its layer, or "parameter" or "buffer".
    pub name: &'static str,
    /// The layer that made it; `None` if the user did.
    pub layer: Option<&'static str>,
    /// The module method that should list it, if the user made it.
    pub list: &'static str,
    made: u64,
}

impl Owner {
    pub(crate) fn new(name: &'static str, layer: Option<&'static str>, list: &'static str) -> Owner {
        Owner { name, layer, list, made: next() }
    }
}

/// A call of `.to`, and the moved modules with possibly incomplete lists.
struct Moved {
    device: Device,
    place: Place,
    at: u64,
    modules: Vec<Forgetful>,
}

const KEPT: usize = 4;

/// The recent calls on one machine: a tensor's device belongs to one machine only.
#[derive(Default)]
struct Lately(Mutex<Vec<Moved>>);

#[cold]
pub(crate) fn mismatch(
    name: &'static str,
    arguments: Option<ArgumentNames>,
    inputs: &[&Tensor],
    pair: [usize; 2],
) -> Error {
    let [a, b] = pair.map(|i| inputs[i].device());
    // Devices of two machines may share a name: "cuda:0 and cuda:0" would explain nothing.
    if let (Device::Cuda { machine, .. }, Device::Cuda { machine: other, .. }) = (a, b)
        && machine != other
    {
        let here = other == HostContext::current_id();
        return GpuError::OtherMachine { device: if here { a } else { b } }.into();
    }
    let called = |i: usize| match arguments {
        Some(ArgumentNames { names, .. }) => names[i.min(names.len() - 1)].to_string(),
        None => ["self", "other"].get(i).map_or(format!("argument {i}"), |name| name.to_string()),
    };
    let sentence = match arguments {
        Some(ArgumentNames { method, .. }) => format!(
            "Expected all tensors to be on the same device, but got {} is on {b}, different from other tensors on \
             {a} (when checking argument in method {method})",
            called(pair[1])
        ),
        None => {
            // PyTorch names the GPU first.
            let (a, b) = if a.is_cuda() { (a, b) } else { (b, a) };
            format!(
                "Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!"
            )
        }
    };
    let operands = pair.map(|i| operand(called(i), inputs[i]));
    let behind = if b.is_cuda() && !a.is_cuda() { pair[0] } else { pair[1] };
    let unlisted = unlisted(inputs[behind], if behind == pair[0] { b } else { a });
    Error::DeviceMismatch(Box::new(DeviceMismatch {
        sentence,
        operation: name,
        place: scope::here(),
        operands,
        fix: None,
        unlisted,
    }))
}

fn operand(name: String, tensor: &Tensor) -> MismatchedTensor {
    MismatchedTensor {
        name,
        sizes: tensor.sizes().to_vec(),
        device: tensor.device(),
        made: tensor.place(),
        moved: tensor.moved(),
        learned: tensor.is_leaf() && tensor.requires_grad(),
    }
}

pub(crate) fn note_move(device: Device, place: Place, modules: Vec<Forgetful>) {
    if modules.is_empty() {
        return;
    }
    let lately = Machine::current().kept::<Lately>();
    let mut lately = lock(&lately.0);
    if lately.len() == KEPT {
        lately.remove(0);
    }
    lately.push(Moved { device, place, at: next(), modules });
}

/// Finds the module that moved to `device` without `tensor`, if the tensor belongs to a module and never moved.
fn unlisted(tensor: &Tensor, device: Device) -> Option<Unlisted> {
    let tensor = tensor.base().unwrap_or(tensor);
    let owner = tensor.owner().filter(|_| tensor.moved().is_none())?;
    let lately = Machine::current().kept::<Lately>();
    let lately = lock(&lately.0);
    let moved = lately.iter().rfind(|moved| moved.device == device && moved.at > owner.made)?;
    Some(Unlisted {
        name: owner.name,
        layer: owner.layer,
        list: owner.list,
        made: tensor.place(),
        moved: moved.place,
        modules: moved.modules.clone(),
    })
}

/// Numbers moves and parameters: a move cannot include a parameter made after it.
fn next() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}
