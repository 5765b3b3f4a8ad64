//! `torch.save` and `torch.load`: checkpoints, and the files they are kept in.
//!
//! A checkpoint is a [`Value`]: tensors, numbers and text in lists and dicts. [`save`] writes the `.pt` files that PyTorch
//! writes, and [`load`] reads PyTorch's own.
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
//! # What is in a `.pt` file
//!
//! A zip file of which nothing is compressed: `unzip -l model.pt` lists it.
//!
//! | record | is |
//! | --- | --- |
//! | `data.pkl` | the checkpoint as a pickle: all but the numbers in its tensors |
//! | `data/0`, `data/1`, … | the memory of tensors, as it is, at a multiple of 64 bytes of the file |
//! | `byteorder` | `little`: the order of the bytes of a number there |
//! | `version`, `.format_version`, `.storage_alignment`, `.data/serialization_id` | of which form the file is, and of which contents |
//!
//! In the pickle a tensor is a call, `_rebuild_tensor_v2(storage, offset, sizes, strides, …)`, and a storage is its record's name,
//! its type, its length, and its *location*: the device it was on. So tensors that share memory share it again after
//! loading, and a small view brings with it all that it is a view of: save a `copy()` of it if that is not meant. And so a
//! file wants back to the device it came from, unless [`MapLocation`] says otherwise.
//!
//! # Why not any pickle
//!
//! A pickle is a program, which names functions and calls them, any that Python has: to load one is to run it. PyTorch's
//! `weights_only=True` calls none but those that rebuild tensors, and has been the default since 2.6. Here there is nothing else:
//! other names are refused. [`safetensors`] has no pickle at all.
//!
//! All that PyTorch reads this way is read here: also files that were zipped again and compressed, and those of the format before
//! PyTorch 1.6. A tensor that this crate does not have, of `torch.int16` or a sparse one, is refused by that name.
//!
//! What a file says of itself is believed only as far as its length bears it out: one that was cut, damaged or made to harm is
//! a [`SerializeError`](crate::errors::SerializeError), and takes memory in proportion to its length.
//!
//! # What becomes of Python's values
//!
//! A `torch.Size` becomes a tuple, and a `Parameter` a tensor that requires a gradient. A list that is in two places becomes two.
//! The attributes of a tensor are left out. One whose elements change the sign as they are read, as those of
//! `torch.complex(a, b).conj().imag` do, gets memory of its own.

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

/// The bytes of a checkpoint file (`torch.save` to an `io.BytesIO`): for a page of a browser, which has no files.
///
/// ```
/// use todevice::serialize::{MapLocation, from_bytes, to_bytes};
///
/// let bytes = to_bytes(vec!["a", "b"])?;
/// assert_eq!(from_bytes(&bytes, MapLocation::None)?.to_string(), "['a', 'b']");
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Errors for what could not be read again: values more than 200 deep within each other, and several million of them.
#[track_caller]
pub fn to_bytes(value: impl Into<Value>) -> Result<Vec<u8>> {
    let _scope = scope::on_behalf_of(Location::caller());
    let mut bytes = Vec::new();
    save_to(value, &mut bytes)?;
    Ok(bytes)
}

/// What the bytes of a checkpoint file stand for (`torch.load` of an `io.BytesIO`), with each tensor where `map_location` says.
#[track_caller]
pub fn from_bytes(bytes: &[u8], map_location: impl Into<MapLocation>) -> Result<Value> {
    let _scope = scope::on_behalf_of(Location::caller());
    load_from(Cursor::new(bytes), map_location)
}

/// Writes a checkpoint file (`torch.save`), which replaces the one of that name as a whole, or, if anything goes wrong, not
/// at all: not if the disk is full, and not if the program ends. The new file is on the disk when this returns.
///
/// The folder has both files for a while, so it must have room for them. What a program leaves there that ended while it saved,
/// `.model.pt.…todevice-tmp`, the next save of the same file removes.
///
/// Tensors of a GPU are copied to the host one after another; each copy waits for the work that was queued before.
#[track_caller]
pub fn save(value: impl Into<Value>, path: impl AsRef<Path>) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    let value = value.into();
    atomic::replace(path.as_ref(), |out| checkpoint::write(&value, out))
}

/// Reads a checkpoint file (`torch.load`), with each tensor where `map_location` says. Each is loaded to the host, and moved
/// from there.
#[track_caller]
pub fn load(path: impl AsRef<Path>, map_location: impl Into<MapLocation>) -> Result<Value> {
    let _scope = scope::on_behalf_of(Location::caller());
    load_from(opened(path.as_ref())?, map_location)
}

/// Writes the bytes of a checkpoint file to anything that takes them.
#[track_caller]
pub fn save_to(value: impl Into<Value>, mut out: impl Write) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    checkpoint::write(&value.into(), &mut out)
}

/// Reads a checkpoint from anything that has its bytes.
#[track_caller]
pub fn load_from(mut source: impl Read + Seek, map_location: impl Into<MapLocation>) -> Result<Value> {
    let _scope = scope::on_behalf_of(Location::caller());
    checkpoint::read(&mut source, &map_location.into())
}

/// What a checkpoint can be read from.
trait Source: Read + Seek {}
impl<S: Read + Seek> Source for S {}

/// A file to read.
fn opened(path: &Path) -> Result<BufReader<File>> {
    let file = match path.is_dir() {
        true => Err(ErrorKind::IsADirectory.into()),
        false => File::open(path),
    };
    Ok(BufReader::new(file.map_err(|error| atomic::in_file(path, error))?))
}
