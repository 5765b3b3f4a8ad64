//! `torch.save` and `torch.load`: checkpoints, and the files they are kept in.

mod atomic;
mod checkpoint;
mod crc;
pub(crate) mod error;
mod map_location;
mod pickle;
mod rebuild;
pub mod safetensors;
mod unpickle;
mod value;
mod zip_reader;
mod zip_writer;

use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read, Seek, Write};
use std::path::Path;

pub use map_location::MapLocation;
pub use value::{Dict, Key, Value};

use crate::error::Result;

/// The bytes of a checkpoint file (`torch.save` to an `io.BytesIO`).
#[track_caller]
pub fn to_bytes(value: impl Into<Value>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    save_to(value, &mut bytes)?;
    Ok(bytes)
}

/// What the bytes of a checkpoint file stand for (`torch.load` of an `io.BytesIO`).
#[track_caller]
pub fn from_bytes(bytes: &[u8], map_location: impl Into<MapLocation>) -> Result<Value> {
    load_from(Cursor::new(bytes), map_location)
}

/// Writes a checkpoint file (`torch.save`), which replaces the one of that name as a whole, or, if anything goes wrong, not
/// at all: not if the disk is full, and not if the program ends.
#[track_caller]
pub fn save(value: impl Into<Value>, path: impl AsRef<Path>) -> Result<()> {
    let value = value.into();
    atomic::replace(path.as_ref(), |out| checkpoint::write(&value, out))
}

/// Reads a checkpoint file (`torch.load`).
#[track_caller]
pub fn load(path: impl AsRef<Path>, map_location: impl Into<MapLocation>) -> Result<Value> {
    load_from(opened(path.as_ref())?, map_location)
}

/// Writes the bytes of a checkpoint file to anything that takes them.
#[track_caller]
pub fn save_to(value: impl Into<Value>, out: impl Write) -> Result<()> {
    checkpoint::write(&value.into(), out)
}

/// Reads a checkpoint from anything that has its bytes.
#[track_caller]
pub fn load_from(mut source: impl Read + Seek, map_location: impl Into<MapLocation>) -> Result<Value> {
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
