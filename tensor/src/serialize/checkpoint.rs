//! PyTorch's checkpoint files: a zip file of a pickle and one record per storage.

use std::collections::HashMap;
use std::io::{Read, SeekFrom, Write};
use std::rc::Rc;

use super::ReadSeek;
use super::error::SerializeError;
use super::legacy;
use super::map_location::MapLocation;
use super::pickle::pickle;
use super::rebuild::{StorageId, normalize_bools};
use super::unpickle::{MOST_TEXT, unpickle};
use super::value::Value;
use super::zip_reader::ZipReader;
use super::zip_writer::{ALIGNMENT, ZipWriter};
use crate::error::Result;
use crate::ops::access::access;
use crate::ops::transfer::to_host;
use crate::tensor::Tensor;

const BYTE_ORDER: &str = if cfg!(target_endian = "little") { "little" } else { "big" };

/// The newest file format that PyTorch can read.
const NEWEST_VERSION: u32 = 10;

pub(super) fn write(value: &Value, out: &mut dyn Write) -> Result<()> {
    let (pickle, storages) = pickle(value)?;
    let mut zip = ZipWriter::new(out);
    // Identifies the contents of a checkpoint. Readers ignore it.
    let mut contents = zip.record("archive/data.pkl", &pickle)?.into();
    zip.record("archive/.format_version", b"1")?;
    zip.record("archive/.storage_alignment", ALIGNMENT.to_string().as_bytes())?;
    zip.record("archive/byteorder", BYTE_ORDER.as_bytes())?;
    for (key, storage) in storages.iter().enumerate() {
        let host = to_host(storage)?;
        let crc = access([&host], [], |[input], []| {
            zip.record(&format!("archive/data/{key}"), input.dense_bytes(storage.dtype()))
        })??;
        contents = mixed(contents, crc);
    }
    zip.record("archive/version", b"3\n")?;
    zip.record("archive/.data/serialization_id", format!("{contents:040}").as_bytes())?;
    zip.finish()?.flush()?;
    Ok(())
}

fn mixed(contents: u64, crc: u32) -> u64 {
    (contents ^ u64::from(crc)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31)
}

pub(super) fn read(source: &mut dyn ReadSeek, map_location: &MapLocation) -> Result<Value> {
    if is_legacy(source)? {
        return legacy::read(source, map_location);
    }
    let mut zip = ZipReader::open(source)?;
    if zip.has("constants.pkl") {
        return Err(SerializeError::TorchScript.into());
    }
    let version = String::from_utf8_lossy(&zip.read("version", 64)?).trim().to_owned();
    if version.parse().is_ok_and(|version: u32| version > NEWEST_VERSION) {
        return Err(SerializeError::Version { version, newest: NEWEST_VERSION }.into());
    }
    // Files before 2.1 lack the record and are little-endian.
    let order = if zip.has("byteorder") { zip.read("byteorder", 64)? } else { b"little".to_vec() };
    if order != b"little" && order != b"big" {
        return Err(SerializeError::ByteOrder { found: String::from_utf8_lossy(&order).into_owned() }.into());
    }
    let pickle = zip.read("data.pkl", MOST_TEXT as u64)?;
    let (read, _) = unpickle(&pickle)?;
    let mut storages = Storages::new(map_location, order != BYTE_ORDER.as_bytes());
    read.into_value(&mut |id| storages.get(id, &mut zip))
}

pub(super) trait Records {
    /// Checks that the record has the storage's length. Returns the bytes if they were compressed.
    fn checked(&mut self, id: &StorageId) -> Result<Option<Vec<u8>>>;
    /// Reads uncompressed bytes.
    fn read_into(&mut self, id: &StorageId, into: &mut [u8]) -> Result<()>;
}

impl Records for ZipReader<'_> {
    fn checked(&mut self, id: &StorageId) -> Result<Option<Vec<u8>>> {
        let name = format!("data/{}", id.key);
        let bytes = self.size(&name)?;
        if (id.numel as u64).checked_mul(id.dtype.size() as u64) != Some(bytes) {
            let (key, numel, dtype) = (id.key.to_string(), id.numel, id.dtype);
            return Err(SerializeError::StorageSize { key, numel, dtype, bytes }.into());
        }
        self.inflated(&name)
    }

    fn read_into(&mut self, id: &StorageId, into: &mut [u8]) -> Result<()> {
        ZipReader::read_into(self, &format!("data/{}", id.key), into)
    }
}

pub(super) struct Storages<'m> {
    map_location: &'m MapLocation,
    swap: bool,
    loaded: HashMap<Rc<str>, Tensor>,
}

impl<'m> Storages<'m> {
    pub(super) fn new(map_location: &'m MapLocation, swap: bool) -> Storages<'m> {
        Storages { map_location, swap, loaded: HashMap::new() }
    }

    /// Returns a storage as a 1-D tensor.
    pub(super) fn get(&mut self, id: &StorageId, records: &mut dyn Records) -> Result<Tensor> {
        if let Some(storage) = self.loaded.get(&id.key) {
            let same = storage.dtype() == id.dtype;
            return if same { Ok(storage.clone()) } else { Err(SerializeError::TwoTypes.into()) };
        }
        let device = self.map_location.device(&id.location)?;
        let decompressed = records.checked(id)?;
        let host = Tensor::uninit(&[id.numel], id.dtype)?;
        access([], [&host], |[], [out]| -> Result<()> {
            let bytes = out.dense_bytes(id.dtype);
            match &decompressed {
                Some(decompressed) => bytes.copy_from_slice(decompressed),
                None => records.read_into(id, bytes)?,
            }
            if self.swap {
                bytes.chunks_exact_mut(id.dtype.size()).for_each(<[u8]>::reverse);
            }
            normalize_bools(id.dtype, bytes);
            Ok(())
        })??;
        let storage = host.to(device)?;
        self.loaded.insert(id.key.clone(), storage.clone());
        Ok(storage)
    }
}

/// Returns whether the source has the format of `torch.save` before 1.6, still written with
/// `_use_new_zipfile_serialization=False`. Returns an error that names any other unsupported format.
fn is_legacy(source: &mut dyn ReadSeek) -> Result<bool> {
    let mut head = Vec::new();
    source.seek(SeekFrom::Start(0))?;
    Read::take(&mut *source, 512).read_to_end(&mut head)?;
    match head.as_slice() {
        [] => Err(SerializeError::Empty.into()),
        [b'P', b'K', ..] => Ok(false),
        [0x80, _, rest @ ..] if rest.starts_with(legacy::MAGIC) => Ok(true),
        [0x80, _, frame @ 0x95, ..] => Err(SerializeError::Operand { operand: *frame }.into()), // Protocol 4.
        head if head.get(257..262) == Some(b"ustar") => Err(SerializeError::Tar.into()),
        [_, _, _, _, _, _, _, _, b'{', ..] => Err(SerializeError::Safetensors.into()),
        head => {
            let head = format!("{}", head[..head.len().min(8)].escape_ascii());
            Err(SerializeError::NotACheckpoint { head }.into())
        }
    }
}
