//! `torch.save` and `torch.load`: checkpoint files.
//!
//! A checkpoint is a [`Value`]. [`save`] and [`load`] use PyTorch's `.pt` format.
//!
//! ```
//! use todevice::nn::{Linear, Module, StateDict};
//! use todevice::serialize::{self, Dict, MapLocation};
//! use todevice::{Device, Result};
//!
//! # fn main() -> Result<()> {
//! # let folder = std::env::temp_dir().join(format!("todevice-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("model.pt");
//! let model = Linear::new(2, 3)?;
//! let mut checkpoint = Dict::new();
//! checkpoint.insert("epoch", 3);
//! checkpoint.insert("model", model.state_dict());
//! serialize::save(checkpoint, &path)?;
//!
//! // On another machine, whatever the model was trained on:
//! let checkpoint = serialize::load(&path, Device::Cpu)?;
//! let checkpoint = checkpoint.as_dict()?;
//! println!("epoch {}", checkpoint.at("epoch")?.as_int()?);
//! model.load_state_dict(&StateDict::try_from(checkpoint.at("model")?)?, true)?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # The contents of a `.pt` file
//!
//! An uncompressed zip file. List its records with `unzip -l model.pt`.
//!
//! | record | contents |
//! | --- | --- |
//! | `data.pkl` | the checkpoint as a pickle, without the elements of its tensors |
//! | `data/0`, `data/1`, … | the storages of the tensors, as raw bytes aligned to 64 bytes in the file |
//! | `byteorder` | `little`: the byte order of their numbers |
//! | `version`, `.format_version`, `.storage_alignment`, `.data/serialization_id` | the file format, and an id of the contents |
//!
//! In the pickle a tensor is a call: `_rebuild_tensor_v2(storage, offset, sizes, strides, …)`. A storage is a record
//! name, dtype, length and *location*: its device. Tensors that share memory share it again after loading. A small view
//! is saved with its whole storage: save a `copy()` of it instead. [`MapLocation`] overrides the location.
//!
//! # Why not any pickle
//!
//! A pickle is a program that can call any Python function: to load it is to run it. PyTorch's `weights_only=True`, the
//! default since 2.6, calls only functions that rebuild tensors. This crate supports nothing else, and rejects other
//! names. [`safetensors`] has no pickle at all.
//!
//! This crate reads every file that PyTorch reads this way, including recompressed zip files and the format before
//! PyTorch 1.6. It rejects unsupported tensors by name, such as `torch.int16` or sparse ones. A truncated, damaged or
//! malicious file is a [`SerializeError`](crate::errors::SerializeError), and takes memory in proportion to its length.
//!
//! # Conversion of Python's values
//!
//! A `torch.Size` becomes a tuple, and a `Parameter` a tensor that requires grad. A list that is referenced twice
//! becomes two lists. Attributes of tensors are dropped. A tensor with the negative bit, such as `torch.complex(a,
//! b).conj().imag`, is copied.

mod atomic;
mod big_int;
mod calls;
mod checkpoint;
mod crc;
mod dict;
pub(crate) mod error;
mod field;
mod inflate;
mod key;
mod legacy;
mod map_location;
mod names;
mod pickle;
mod rebuild;
pub mod safetensors;
mod unpickle;
mod unpickled;
mod value;
mod zip_reader;
mod zip_writer;

use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read, Seek, Write};
use std::panic::Location;
use std::path::Path;

pub use big_int::BigInt;
pub use dict::Dict;
pub use key::Key;
pub use map_location::MapLocation;
pub use value::Value;

pub(crate) use field::{count, field, number, optional, whole};

use crate::error::Result;
use crate::scope;

/// Returns the bytes of a checkpoint file (`torch.save` to an `io.BytesIO`), for example in a web page.
///
/// ```
/// use todevice::serialize::{MapLocation, from_bytes, to_bytes};
///
/// let bytes = to_bytes(vec!["a", "b"])?;
/// assert_eq!(from_bytes(&bytes, MapLocation::None)?.to_string(), "['a', 'b']");
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error for values that could not be read again: nested more than 200 deep, or several million.
#[track_caller]
pub fn to_bytes(value: impl Into<Value>) -> Result<Vec<u8>> {
    let _scope = scope::on_behalf_of(Location::caller());
    let mut bytes = Vec::new();
    save_to(value, &mut bytes)?;
    Ok(bytes)
}

/// Reads a checkpoint from the bytes of a file (`torch.load` from an `io.BytesIO`) to the devices of `map_location`.
#[track_caller]
pub fn from_bytes(bytes: &[u8], map_location: impl Into<MapLocation>) -> Result<Value> {
    let _scope = scope::on_behalf_of(Location::caller());
    load_from(Cursor::new(bytes), map_location)
}

/// Writes a checkpoint file (`torch.save`). An existing file is replaced entirely or not at all, even if the disk is
/// full or the program is killed, so the folder needs room for both. A killed program leaves a file
/// `.model.pt.…todevice-tmp`, which the next save of the same file removes. The file is on disk when `save` returns.
#[track_caller]
pub fn save(value: impl Into<Value>, path: impl AsRef<Path>) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    let value = value.into();
    atomic::replace(path.as_ref(), |out| checkpoint::write(&value, out))
}

/// Reads a checkpoint file (`torch.load`) to the devices of `map_location`, by way of the host.
#[track_caller]
pub fn load(path: impl AsRef<Path>, map_location: impl Into<MapLocation>) -> Result<Value> {
    let _scope = scope::on_behalf_of(Location::caller());
    load_from(opened(path.as_ref())?, map_location)
}

/// Writes a checkpoint to a writer.
#[track_caller]
pub fn save_to(value: impl Into<Value>, mut out: impl Write) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    checkpoint::write(&value.into(), &mut out)
}

/// Reads a checkpoint from a seekable reader.
#[track_caller]
pub fn load_from(mut source: impl Read + Seek, map_location: impl Into<MapLocation>) -> Result<Value> {
    let _scope = scope::on_behalf_of(Location::caller());
    checkpoint::read(&mut source, &map_location.into())
}

trait ReadSeek: Read + Seek {}
impl<S: Read + Seek> ReadSeek for S {}

fn opened(path: &Path) -> Result<BufReader<File>> {
    let file = match path.is_dir() {
        true => Err(ErrorKind::IsADirectory.into()),
        false => File::open(path),
    };
    Ok(BufReader::new(file.map_err(|error| atomic::in_file(path, error))?))
}
