use std::io;

use super::unpickle::{DEEPEST, MOST_VALUES};
use crate::dtype::DType;
use crate::error::Refusal;

/// An error in a checkpoint's values or in its file.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum SerializeError {
    #[error("expected {expected}, found {found}")]
    Kind { expected: &'static str, found: &'static str },
    #[error("{key}")]
    Key { key: String },
    #[error("'{key}': {error}")]
    Field { key: &'static str, error: String },
    #[error("expected a count, found {number}")]
    Negative { number: i64 },

    #[error("{reason}: {path}")]
    File { reason: String, path: String, kind: io::ErrorKind },
    #[error("Parent directory {folder} does not exist.")]
    NoParent { folder: String },

    #[error("This file is empty: a save that was cut short, or nothing that torch.save wrote")]
    Empty,
    #[error(
        "This is a checkpoint in the legacy .tar format, of PyTorch before 0.4: load it in Python with \
         torch.load(weights_only=False), and save it again"
    )]
    Tar,
    #[error("Invalid protocol version: {version}")]
    LegacyVersion { version: String },
    #[error("storage key {key} not found in deserialized_objects")]
    LegacyKey { key: String },
    #[error("storage has wrong byte size: expected {expected} got {found}")]
    LegacySize { expected: u64, found: u64 },
    #[error("unexpected EOF, expected {missing} more bytes. The file might be corrupted.")]
    LegacyEnd { missing: u64 },
    #[error("This is a safetensors file: serialize::safetensors::load_file reads it")]
    Safetensors,
    #[error(
        "This is a TorchScript archive, of torch.jit.save, which holds a program: save its state_dict() with torch.save"
    )]
    TorchScript,
    #[error(
        "This is no checkpoint: torch.save writes a zip file, which begins with PK, and this begins with {head}"
    )]
    NotACheckpoint { head: String },

    #[error("PytorchStreamReader failed reading zip archive: {why}")]
    Zip { why: &'static str },
    #[error("file in archive is not in a subdirectory{}: {name}", spaced(.folder))]
    NotInSubdirectory { folder: String, name: String },
    #[error("PytorchStreamReader failed locating file {name}: file not found")]
    NoRecord { name: String },
    #[error("the archive has two records of the name {name}")]
    RecordTwice { name: String },
    #[error("the record {name} is {how}: a checkpoint's records are stored, or compressed by deflate")]
    NotStored { name: String, how: &'static str },
    #[error("the record {name} has {size} bytes, and may have at most {most}")]
    RecordTooLarge { name: String, size: u64, most: u64 },
    #[error("PytorchStreamReader failed reading file {name}: CRC-32 check failed, so the file is damaged")]
    Checksum { name: String },
    #[error("Unknown endianness type: {found}, expected little or big")]
    ByteOrder { found: String },
    #[error(
        "Attempted to read a PyTorch file with version {version}, but the maximum supported version for reading is {newest}."
    )]
    Version { version: String, newest: u32 },

    #[error("Weights only load failed. The pickle is damaged: {why}")]
    Pickle { why: &'static str },
    #[error(
        "Weights only load failed. Unsupported operand {operand}: torch.save writes the pickle protocol 2"
    )]
    Operand { operand: u8 },
    #[error(
        "Weights only load failed. Unsupported global: GLOBAL {name} was not an allowed global: a checkpoint is made of tensors \
         of this crate's types, numbers, strings, lists, tuples and dicts, such as model.state_dict()"
    )]
    Global { name: String },
    #[error(
        "Weights only load failed. Trying to load unsupported GLOBAL {name} whose module {module} is blocked."
    )]
    BlockedGlobal { name: String, module: String },
    #[error("Weights only load failed. {why}")]
    Refused { why: String },
    #[error(
        "the checkpoint has {tensor}, which this crate does not have: convert it in PyTorch, and save it again"
    )]
    Lacks { tensor: String },
    #[error("a str has half of a surrogate pair, which text in Rust cannot have")]
    Surrogate,
    #[error("Python int too large to convert to C long: {number}")]
    Overflow { number: String },
    #[error("unhashable type: '{class}'")]
    Unhashable { class: &'static str },
    #[error("lists, tuples and dicts are more than {DEEPEST} deep within each other")]
    TooDeep,
    #[error(
        "the pickle stands for more than {MOST_VALUES} values, or for many more, or much more text, than it has bytes"
    )]
    TooManyValues,
    #[error("the storage {key} has {numel} elements of {dtype}, but its record has {bytes} bytes")]
    StorageSize { key: String, numel: usize, dtype: DType, bytes: u64 },
    /// On reading or writing.
    #[error("Cannot save multiple tensors or storages that view the same data as different types")]
    TwoTypes,
    #[error(
        "setStorage: sizes {sizes:?}, strides {strides:?}, storage offset {offset}, and itemsize {} are out of bounds for storage \
         of size {}",
        .dtype.size(), .numel * .dtype.size()
    )]
    OutOfBounds { sizes: Vec<usize>, strides: Vec<usize>, offset: usize, dtype: DType, numel: usize },

    #[error(
        "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a \
         CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
    )]
    NoCuda,
    #[error(
        "Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {count}. Please use torch.load \
         with map_location to map your storages to an existing device."
    )]
    NoSuchDevice { index: usize, count: usize },
    #[error(
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
    )]
    UnknownLocation { location: String },

    #[error("Error while deserializing header: {reason}")]
    SafetensorsHeader { reason: String },
    #[error("the tensor `{name}` is of the type {dtype}, which this crate has no tensors of")]
    SafetensorsType { name: String, dtype: String },
    #[error("a tensor cannot have the name `{name}`, which a safetensors file has for something else")]
    SafetensorsName { name: String },
    #[error(
        "Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them \
         again: {first}, {second}. Save one of them, or all with serialize::save, after which they share it again"
    )]
    SharedMemory { first: String, second: String },
    #[error(
        "You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are trying to save \
         tensors which are reference of each other in which case it's recommended to save only the full tensors, and reslice at \
         load time, or simply call `.contiguous()` on your tensor to pack it before saving."
    )]
    NonContiguous { name: String },
}

todevice_gpu::debug_is_message!(SerializeError);

/// ` folder/`, or nothing without a folder.
fn spaced(folder: &str) -> String {
    if folder.is_empty() { String::new() } else { format!(" {folder}") }
}

impl Refusal for SerializeError {
    fn kind(&self) -> &'static str {
        match self {
            SerializeError::Kind { .. }
            | SerializeError::Field { .. }
            | SerializeError::Unhashable { .. } => "TypeError",
            SerializeError::Key { .. } => "KeyError",
            SerializeError::File { kind: io::ErrorKind::NotFound, .. } => "FileNotFoundError",
            SerializeError::File { kind: io::ErrorKind::IsADirectory, .. } => "IsADirectoryError",
            SerializeError::File { kind: io::ErrorKind::PermissionDenied, .. } => "PermissionError",
            SerializeError::File { .. } => "OSError",
            SerializeError::Pickle { .. }
            | SerializeError::Operand { .. }
            | SerializeError::BlockedGlobal { .. }
            | SerializeError::Refused { .. }
            | SerializeError::Global { .. } => "UnpicklingError",
            SerializeError::Overflow { .. } => "OverflowError",
            SerializeError::Negative { .. }
            | SerializeError::ByteOrder { .. }
            | SerializeError::NonContiguous { .. } => "ValueError",
            _ => "RuntimeError",
        }
    }
}
