//! Recently moved modules. They show why a parameter or buffer stayed behind: which module does not list it.

use std::panic::Location;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::Device;
use crate::error::{Forgetful, Unlisted};
use crate::lock::lock;
use crate::machine::Machine;
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
    place: &'static Location<'static>,
    at: u64,
    modules: Vec<Forgetful>,
}

const KEPT: usize = 4;

/// The recent calls on one machine: a tensor's device belongs to one machine only.
#[derive(Default)]
struct Lately(Mutex<Vec<Moved>>);

/// Numbers moves and parameters: a move cannot include a parameter made after it.
fn next() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn note(device: Device, place: &'static Location<'static>, modules: Vec<Forgetful>) {
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
pub(crate) fn unlisted(tensor: &Tensor, device: Device) -> Option<Unlisted> {
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
