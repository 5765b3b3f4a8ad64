//! The format of `torch.save` before PyTorch 1.6, still written with `_use_new_zipfile_serialization=False`.
//!
//! A file is a sequence of pickles: magic number, format version, sizes of C types, the checkpoint, and the keys of its
//! storages. The storages follow in that order: the number of elements, then the little-endian elements.

use std::collections::HashMap;
use std::io::{Read, SeekFrom};
use std::ops::Range;
use std::rc::Rc;

use super::ReadSeek;
use super::checkpoint::{Records, Storages};
use super::error::SerializeError;
use super::map_location::MapLocation;
use super::rebuild::StorageId;
use super::unpickle::{MOST_TEXT, unpickle};
use super::value::Value;
use crate::error::Result;

/// The pickled magic number, after the protocol.
pub(super) const MAGIC: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

const VERSION: &str = "1001";

pub(super) fn read(source: &mut dyn ReadSeek, map_location: &MapLocation) -> Result<Value> {
    let length = source.seek(SeekFrom::End(0))?;
    source.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    Read::take(&mut *source, MOST_TEXT as u64).read_to_end(&mut head)?;

    let rest = &head[2 + MAGIC.len()..];
    let (version, rest) = plain(rest)?;
    if version.to_string() != VERSION {
        return Err(SerializeError::LegacyVersion { version: version.to_string() }.into());
    }
    // C types do not affect the file.
    let (_, rest) = plain(rest)?;
    let (checkpoint, rest) = unpickle(rest)?;
    let (keys, rest) = plain(rest)?;

    let at = (head.len() - rest.len()) as u64;
    let places = places(source, length, at, keys.as_list()?, &checkpoint.storages)?;
    let mut records = Behind { source, places };
    let mut storages = Storages::new(map_location, cfg!(target_endian = "big"));
    checkpoint.into_value(&mut |id| storages.get(id, &mut records))
}

fn plain(bytes: &[u8]) -> Result<(Value, &[u8])> {
    let (read, rest) = unpickle(bytes)?;
    let value =
        read.into_value(&mut |id| Err(SerializeError::LegacyKey { key: id.key.to_string() }.into()))?;
    Ok((value, rest))
}

fn places(
    source: &mut dyn ReadSeek,
    length: u64,
    mut at: u64,
    keys: &[Value],
    storages: &[StorageId],
) -> Result<HashMap<Rc<str>, Range<u64>>> {
    let known: HashMap<&str, &StorageId> = storages.iter().rev().map(|id| (&*id.key, id)).collect();
    let missing = |end: Option<u64>| {
        let missing = end.map_or(u64::MAX, |end| end - length);
        crate::Error::from(SerializeError::LegacyEnd { missing })
    };
    let mut places = HashMap::new();
    for key in keys {
        let key = key.as_str()?;
        let id = known.get(key).ok_or_else(|| SerializeError::LegacyKey { key: key.to_owned() })?;
        if length - at < 8 {
            return Err(missing(Some(at + 8)));
        }
        let mut numel = [0; 8];
        source.seek(SeekFrom::Start(at))?;
        source.read_exact(&mut numel)?;
        let numel = u64::from_le_bytes(numel);
        if numel != id.numel as u64 {
            let size = id.dtype.size() as u64;
            let (expected, found) = ((id.numel as u64).saturating_mul(size), numel.saturating_mul(size));
            return Err(SerializeError::LegacySize { expected, found }.into());
        }
        let start = at + 8;
        let end = numel.checked_mul(id.dtype.size() as u64).and_then(|bytes| start.checked_add(bytes));
        at = end.filter(|end| *end <= length).ok_or_else(|| missing(end))?;
        places.insert(id.key.clone(), start..at);
    }
    Ok(places)
}

struct Behind<'s> {
    source: &'s mut dyn ReadSeek,
    places: HashMap<Rc<str>, Range<u64>>,
}

impl Records for Behind<'_> {
    fn checked(&mut self, id: &StorageId) -> Result<Option<Vec<u8>>> {
        let place =
            self.places.get(&id.key).ok_or_else(|| SerializeError::LegacyKey { key: id.key.to_string() })?;
        let expected = (id.numel as u64).saturating_mul(id.dtype.size() as u64);
        let found = place.end - place.start;
        if expected != found { Err(SerializeError::LegacySize { expected, found }.into()) } else { Ok(None) }
    }

    fn read_into(&mut self, id: &StorageId, into: &mut [u8]) -> Result<()> {
        self.source.seek(SeekFrom::Start(self.places[&id.key].start))?;
        Ok(self.source.read_exact(into)?)
    }
}
