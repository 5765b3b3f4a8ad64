//! Modules that were moved lately. When the golden rule is broken with a parameter or a buffer that stayed behind, they tell
//! which list of which module lacks it.

use std::panic::Location;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::Device;
use crate::error::{Forgetful, Unlisted};
use crate::lock::lock;
use crate::machine::Machine;
use crate::tensor::Tensor;

/// Whose a tensor is, for parameters and buffers of modules.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Its name in the layer that made it, or what it is.
    pub name: &'static str,
    /// That layer's name, unless the user made it.
    pub layer: Option<&'static str>,
    /// The list of a module that it would be in, if no layer made it.
    pub list: &'static str,
    made: u64,
}

impl Owner {
    pub(crate) fn new(name: &'static str, layer: Option<&'static str>, list: &'static str) -> Owner {
        Owner { name, layer, list, made: next() }
    }
}

/// A call of `.to`, and what it moved that may have forgotten something.
struct Moved {
    device: Device,
    place: &'static Location<'static>,
    at: u64,
    modules: Vec<Forgetful>,
}

/// How many calls are kept: a program moves few models.
const KEPT: usize = 4;

/// The calls of a machine's program. A tensor of a GPU is compared with those of its own machine only.
#[derive(Default)]
struct Lately(Mutex<Vec<Moved>>);

/// Numbers what happens, since a parameter that was made after a move could not take part in it.
fn next() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// Notes that modules of such lists were moved.
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

/// Which module moved to `device` without `tensor`, if the tensor is a module's and was never moved itself.
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
