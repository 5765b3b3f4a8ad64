//! Safetensors: files of named tensors, without code.
//!
//! A JSON header has each tensor's name, dtype, sizes and position. There are no strides and no shared memory.
//!
//! ```
//! use todevice::nn::{Linear, Module, StateDict};
//! use todevice::serialize::safetensors::{self, Metadata};
//! use todevice::{Device, Result};
//!
//! # fn main() -> Result<()> {
//! let model = Linear::new(2, 3)?;
//! let metadata = Metadata::from([("epoch".to_owned(), "3".to_owned())]);
//! let bytes = safetensors::save(model.state_dict().iter(), &metadata)?;
//!
//! let (tensors, metadata) = safetensors::load(&bytes, Device::Cpu)?;
//! assert_eq!(metadata["epoch"], "3");
//! model.load_state_dict(&StateDict::from_iter(tensors), true)?;
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, SeekFrom, Write};
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Dtype, Metadata as Header, TensorInfo};

use super::atomic::replace;
use super::error::SerializeError;
use super::rebuild::normalize_bools;
use super::{ReadSeek, opened};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::access::access;
use crate::ops::transfer::to_host;
use crate::scope;
use crate::sort;
use crate::tensor::Tensor;

/// The string metadata of a file.
pub type Metadata = BTreeMap<String, String>;

/// The header limit of Python's library, in bytes.
const LONGEST_HEADER: u64 = 100_000_000;

/// Writes a file (`safetensors.torch.save_file`). An existing file is replaced entirely or not at all. Returns an error
/// for tensors that are not contiguous or share memory.
#[track_caller]
pub fn save_file<'t, N: Into<String>>(
    tensors: impl IntoIterator<Item = (N, &'t Tensor)>,
    metadata: &Metadata,
    path: impl AsRef<Path>,
) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    let tensors = named(tensors);
    replace(path.as_ref(), |out| write(tensors, metadata, out))
}

/// Returns the bytes of a file (`safetensors.torch.save`).
#[track_caller]
pub fn save<'t, N: Into<String>>(
    tensors: impl IntoIterator<Item = (N, &'t Tensor)>,
    metadata: &Metadata,
) -> Result<Vec<u8>> {
    let _scope = scope::on_behalf_of(Location::caller());
    let mut bytes = Vec::new();
    write(named(tensors), metadata, &mut bytes)?;
    Ok(bytes)
}

/// Reads the tensors of a file to `device`, and the metadata (`safetensors.torch.load_file`).
#[track_caller]
pub fn load_file(path: impl AsRef<Path>, device: Device) -> Result<(Vec<(String, Tensor)>, Metadata)> {
    let _scope = scope::on_behalf_of(Location::caller());
    read(&mut opened(path.as_ref())?, device)
}

/// Like [`load_file`], from bytes (`safetensors.torch.load`).
#[track_caller]
pub fn load(bytes: &[u8], device: Device) -> Result<(Vec<(String, Tensor)>, Metadata)> {
    let _scope = scope::on_behalf_of(Location::caller());
    read(&mut Cursor::new(bytes), device)
}

fn named<'t, N: Into<String>>(
    tensors: impl IntoIterator<Item = (N, &'t Tensor)>,
) -> Vec<(String, &'t Tensor)> {
    tensors.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect()
}

fn write(mut tensors: Vec<(String, &Tensor)>, metadata: &Metadata, out: &mut dyn Write) -> Result<()> {
    check(&tensors)?;
    // Widest dtypes first, so that each tensor is aligned.
    sort::by(&mut tensors, |(name, a), (other, b)| {
        b.dtype().size().cmp(&a.dtype().size()).then(name.cmp(other))
    });
    let mut end = 0;
    let mut infos = Vec::new();
    for (name, tensor) in &tensors {
        let start = end;
        end += tensor.numel() * tensor.dtype().size();
        let (dtype, shape) = (dtype(tensor.dtype()), tensor.sizes().to_vec());
        infos.push((name.clone(), TensorInfo { dtype, shape, data_offsets: (start, end) }));
    }
    let metadata = (!metadata.is_empty()).then(|| metadata.clone().into_iter().collect());
    let header = Header::new(metadata, infos).map_err(refused)?;
    let mut header = serde_json::to_vec(&header).map_err(refused)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    if header.len() as u64 > LONGEST_HEADER {
        return Err(refused("header too large"));
    }
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    for (_, tensor) in tensors {
        let host = to_host(tensor)?;
        access([&host], [], |[input], []| out.write_all(input.dense_bytes(host.dtype())))??;
    }
    Ok(out.flush()?)
}

fn check(tensors: &[(String, &Tensor)]) -> Result<()> {
    // The used ranges of each storage, with the names of their tensors.
    let mut taken: HashMap<_, Vec<(usize, usize, &str)>> = HashMap::new();
    let mut names: Vec<&String> = Vec::new();
    for (name, tensor) in tensors {
        names.push(name);
        if name == "__metadata__" {
            return Err(SerializeError::SafetensorsName { name: name.clone() }.into());
        }
        if !tensor.is_contiguous() {
            return Err(SerializeError::NonContiguous { name: name.clone() }.into());
        }
        let (start, end) = (tensor.storage_offset(), tensor.storage_offset() + tensor.numel());
        taken.entry(Arc::as_ptr(tensor.storage())).or_default().push((start, end, name));
    }
    for parts in taken.values_mut() {
        sort::by(parts, Ord::cmp);
        if let Some(pair) = parts.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            let (first, second) = (pair[0].2.to_owned(), pair[1].2.to_owned());
            return Err(SerializeError::SharedMemory { first, second }.into());
        }
    }
    sort::by(&mut names, Ord::cmp);
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(SerializeError::SafetensorsName { name: pair[0].clone() }.into()),
        None => Ok(()),
    }
}

fn read(source: &mut dyn ReadSeek, device: Device) -> Result<(Vec<(String, Tensor)>, Metadata)> {
    let length = source.seek(SeekFrom::End(0))?;
    source.seek(SeekFrom::Start(0))?;
    let mut size = [0; 8];
    source.read_exact(&mut size).map_err(|_| refused("header too small"))?;
    let size = u64::from_le_bytes(size);
    if size > LONGEST_HEADER {
        return Err(refused("header too large"));
    }
    if size > length - 8 {
        return Err(refused("invalid header length"));
    }
    let mut header = vec![0; size as usize];
    source.read_exact(&mut header)?;
    let header: Header = serde_json::from_slice(&header).map_err(refused)?;
    if header.data_len() as u64 != length - 8 - size {
        return Err(refused("incomplete metadata, file not fully covered"));
    }
    let mut tensors = Vec::new();
    // No gaps: the header was checked.
    for name in header.offset_keys() {
        let Some(TensorInfo { dtype, shape, .. }) = header.info(&name) else { continue };
        let Some(held) = held(*dtype) else {
            let dtype = dtype.to_string();
            return Err(SerializeError::SafetensorsType { name, dtype }.into());
        };
        let tensor = Tensor::uninit(shape, held)?;
        access([], [&tensor], |[], [out]| -> Result<()> {
            let bytes = out.dense_bytes(held);
            source.read_exact(bytes)?;
            normalize_bools(held, bytes);
            Ok(())
        })??;
        tensors.push((name, tensor.to(device)?));
    }
    let metadata = header.metadata().iter().flatten();
    Ok((tensors, metadata.map(|(name, text)| (name.clone(), text.clone())).collect()))
}

const TYPES: [(DType, Dtype); 8] = [
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
];

fn dtype(held: DType) -> Dtype {
    TYPES.into_iter().find(|(ours, _)| *ours == held).expect("every type is there").1
}

fn held(dtype: Dtype) -> Option<DType> {
    TYPES.into_iter().find(|(_, theirs)| *theirs == dtype).map(|(ours, _)| ours)
}

fn refused(reason: impl std::fmt::Display) -> crate::Error {
    SerializeError::SafetensorsHeader { reason: reason.to_string() }.into()
}
