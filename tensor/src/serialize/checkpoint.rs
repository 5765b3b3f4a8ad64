//! PyTorch's checkpoint files: a pickle in a zip file, and beside it the memory of its tensors, a record a storage.

use std::collections::HashMap;
use std::io::{Read, SeekFrom, Write};

use super::Source;
use super::error::SerializeError;
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

/// The order of bytes that this computer has its numbers in, and therefore its checkpoints.
const BYTE_ORDER: &str = if cfg!(target_endian = "little") { "little" } else { "big" };

/// The newest version of the file format that PyTorch can read.
const NEWEST_VERSION: u32 = 10;

/// Writes the records that `torch.save` writes, in its order.
pub(super) fn write(value: &Value, out: impl Write) -> Result<()> {
    let (pickle, storages) = pickle(value)?;
    let mut zip = ZipWriter::new(out);
    // A number that tells one checkpoint's contents from another's, which nobody reads.
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

/// Reads a checkpoint, of which each storage goes where `map_location` says.
pub(super) fn read(source: &mut dyn Source, map_location: &MapLocation) -> Result<Value> {
    refuse_other_formats(source)?;
    let mut zip = ZipReader::open(source)?;
    if zip.has("constants.pkl") {
        return Err(SerializeError::TorchScript.into());
    }
    if zip.has("version") {
        let version = String::from_utf8_lossy(&zip.read("version", 64)?).trim().to_owned();
        if version.parse().is_ok_and(|version: u32| version > NEWEST_VERSION) {
            return Err(SerializeError::Version { version, newest: NEWEST_VERSION }.into());
        }
    }
    // Before 2.1 there was none, and all were little.
    let order = if zip.has("byteorder") { zip.read("byteorder", 64)? } else { b"little".to_vec() };
    if order != b"little" && order != b"big" {
        return Err(SerializeError::ByteOrder { found: String::from_utf8_lossy(&order).into_owned() }.into());
    }
    let swap = order != BYTE_ORDER.as_bytes();
    let pickle = zip.read("data.pkl", MOST_TEXT as u64)?;
    let mut storages: HashMap<String, Tensor> = HashMap::new();
    unpickle(&pickle, &mut |id| {
        if let Some(storage) = storages.get(&*id.key) {
            let same = storage.dtype() == id.dtype;
            return if same { Ok(storage.clone()) } else { Err(SerializeError::TwoTypes.into()) };
        }
        let device = map_location.device(&id.location)?;
        let storage = storage(&mut zip, &id, swap)?.to(device)?;
        storages.insert(id.key.to_string(), storage.clone());
        Ok(storage)
    })
}

/// The memory of tensors, as a vector on the host.
fn storage(zip: &mut ZipReader, id: &StorageId, swap: bool) -> Result<Tensor> {
    let name = format!("data/{}", id.key);
    let bytes = zip.size(&name)?;
    if (id.numel as u64).checked_mul(id.dtype.size() as u64) != Some(bytes) {
        let (key, numel, dtype) = (id.key.to_string(), id.numel, id.dtype);
        return Err(SerializeError::StorageSize { key, numel, dtype, bytes }.into());
    }
    let storage = Tensor::uninit(&[id.numel], id.dtype)?;
    access([], [&storage], |[], [out]| -> Result<()> {
        let bytes = out.dense_bytes(id.dtype);
        zip.read_into(&name, bytes)?;
        if swap {
            bytes.chunks_exact_mut(id.dtype.size()).for_each(<[u8]>::reverse);
        }
        normalize_bools(id.dtype, bytes);
        Ok(())
    })??;
    Ok(storage)
}

/// Names what the source is, if it is no zip file.
fn refuse_other_formats(source: &mut dyn Source) -> Result<()> {
    let mut head = Vec::new();
    source.seek(SeekFrom::Start(0))?;
    Read::take(&mut *source, 512).read_to_end(&mut head)?;
    // Pickles of the number that files of PyTorch 0.4 to 1.5 begin with, and of what came before: a tar file.
    const MAGIC: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";
    match head.as_slice() {
        [] => Err(SerializeError::Empty.into()),
        [b'P', b'K', ..] => Ok(()),
        head if head.starts_with(MAGIC) => {
            Err(SerializeError::Legacy { format: "one pickle after another" }.into())
        }
        head if head.get(257..262) == Some(b"ustar") => {
            Err(SerializeError::Legacy { format: "a tar file" }.into())
        }
        [_, _, _, _, _, _, _, _, b'{', ..] => Err(SerializeError::Safetensors.into()),
        head => {
            let head = format!("{}", head[..head.len().min(8)].escape_ascii());
            Err(SerializeError::NotACheckpoint { head }.into())
        }
    }
}
