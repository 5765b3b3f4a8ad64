use std::collections::HashMap;
use std::fmt;

use super::error::SerializeError;
use crate::device::Device;
use crate::error::Result;
use crate::host_context::HostContext;

/// The devices of loaded tensors (`map_location` of `torch.load`). A saved tensor has a location: `cpu`, `cuda:1`.
///
/// ```
/// use todevice::serialize::{MapLocation, from_bytes, to_bytes};
/// use todevice::{Device, Machine, Tensor};
///
/// let two: Machine = "sim:t4x2".parse()?;
/// let bytes = two.enter(|| to_bytes(Tensor::ones(&[2])?.to(Device::cuda(1))?))?;
///
/// // On a laptop without a GPU:
/// let error = from_bytes(&bytes, MapLocation::None).unwrap_err().to_string();
/// assert!(error.starts_with("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."));
/// assert!(!from_bytes(&bytes, Device::Cpu)?.as_tensor()?.is_cuda());
///
/// // On a machine with one GPU:
/// let one: Machine = "sim:t4".parse()?;
/// one.enter(|| {
///     assert!(from_bytes(&bytes, MapLocation::None).is_err());
///     for map in [MapLocation::map([("cuda:1", "cuda:0")]), MapLocation::function(|_| Some(Device::cuda(0)))] {
///         assert_eq!(from_bytes(&bytes, map)?.as_tensor()?.device(), Device::cuda(0));
///     }
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub enum MapLocation {
    /// Loads tensors to the devices in the file, which the machine must have.
    None,
    /// Loads all tensors to one device.
    Device(Device),
    /// Replaces some locations by others.
    Map(HashMap<String, String>),
    /// Calls a function per location; `None` keeps it. (PyTorch's function also receives and moves the storage.)
    Function(Box<dyn Fn(&str) -> Option<Device>>),
}

impl MapLocation {
    /// Creates a map such as `{"cuda:1": "cuda:0"}`.
    pub fn map<F: Into<String>, T: Into<String>>(locations: impl IntoIterator<Item = (F, T)>) -> MapLocation {
        MapLocation::Map(locations.into_iter().map(|(from, to)| (from.into(), to.into())).collect())
    }

    /// Wraps a function, like `lambda storage, location: …`.
    pub fn function(function: impl Fn(&str) -> Option<Device> + 'static) -> MapLocation {
        MapLocation::Function(Box::new(function))
    }

    pub(super) fn device(&self, location: &str) -> Result<Device> {
        let device = match self {
            MapLocation::None => named(location)?,
            MapLocation::Device(device) => *device,
            MapLocation::Map(map) => named(map.get(location).map_or(location, String::as_str))?,
            MapLocation::Function(function) => match function(location) {
                Some(device) => device,
                None => named(location)?,
            },
        };
        match HostContext::gpus() {
            _ if !device.is_cuda() => Ok(device),
            0 => Err(SerializeError::NoCuda.into()),
            count if device.index() >= count => {
                Err(SerializeError::NoSuchDevice { index: device.index(), count }.into())
            }
            _ => Ok(device),
        }
    }
}

fn named(location: &str) -> Result<Device> {
    location.parse().map_err(|_| SerializeError::UnknownLocation { location: location.to_owned() }.into())
}

impl From<Device> for MapLocation {
    fn from(device: Device) -> MapLocation {
        MapLocation::Device(device)
    }
}

impl fmt::Debug for MapLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapLocation::None => f.write_str("None"),
            MapLocation::Device(device) => write!(f, "Device({device})"),
            MapLocation::Map(map) => f.debug_tuple("Map").field(map).finish(),
            MapLocation::Function(_) => f.write_str("Function"),
        }
    }
}
