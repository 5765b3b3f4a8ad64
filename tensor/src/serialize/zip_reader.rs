//! Reads zip files from untrusted sources, as PyTorch writes them or recompressed. Sizes are checked against the file
//! before allocation, so false sizes cost no more memory than the file's length and the limits below.

use std::collections::HashMap;
use std::io::SeekFrom;

use super::ReadSeek;
use super::crc::crc32;
use super::error::SerializeError;
use super::inflate::inflate;
use crate::error::Result;

/// The maximum bytes of the directory: enough for half a million records.
const LONGEST_DIRECTORY: u64 = 64 << 20;

/// Marks a 32-bit field whose number is stored elsewhere.
const ZIP64_SENTINEL: u64 = u32::MAX as u64;

/// Deflate's maximum expansion.
const MOST_INFLATED: u64 = 1032;

pub(super) struct ZipReader<'s> {
    source: &'s mut dyn ReadSeek,
    records: HashMap<String, ZipEntry>,
    /// The start of the directory, where the records end.
    end: u64,
}

struct ZipEntry {
    /// The position of the local header.
    header: u64,
    size: u64,
    /// The compressed size.
    stored: u64,
    crc: u32,
    packing: Packing,
}

#[derive(Clone, Copy, PartialEq)]
enum Packing {
    AsTheyAre,
    Deflated,
    Other(&'static str),
}

impl<'s> ZipReader<'s> {
    pub(super) fn open(source: &'s mut dyn ReadSeek) -> Result<ZipReader<'s>> {
        let length = source.seek(SeekFrom::End(0))?;
        let (entries, size, start) = directory(source, length)?;
        let end = start.checked_add(size).filter(|end| *end <= length);
        if end.is_none() || size > LONGEST_DIRECTORY || entries > size / 46 {
            return Err(broken("invalid header or archive is corrupted"));
        }
        let directory = bytes(source, start, size as usize)?;
        let mut records = HashMap::new();
        let (mut folder, mut total, mut rest) = (None, 0u64, FieldReader(&directory));
        for _ in 0..entries {
            let (name, record) = entry(&mut rest)?;
            // Overlapping records would let a small file expand.
            total = total.saturating_add(record.stored);
            if total > start || record.header >= start {
                return Err(broken("invalid header or archive is corrupted"));
            }
            let (of, inner) =
                name.split_once('/').map_or(("", ""), |(of, inner)| (&name[..=of.len()], inner));
            let folder = folder.get_or_insert_with(|| of.to_owned());
            if of.is_empty() || of != *folder {
                return Err(SerializeError::NotInSubdirectory { folder: folder.clone(), name }.into());
            }
            if !inner.is_empty() && records.insert(inner.to_owned(), record).is_some() {
                return Err(SerializeError::RecordTwice { name: inner.to_owned() }.into());
            }
        }
        Ok(ZipReader { source, records, end: start })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.records.contains_key(name)
    }

    pub(super) fn size(&self, name: &str) -> Result<u64> {
        Ok(self.find(name)?.size)
    }

    fn find(&self, name: &str) -> Result<&ZipEntry> {
        match self.records.get(name) {
            None => Err(SerializeError::NoRecord { name: name.to_owned() }.into()),
            Some(ZipEntry { packing: Packing::Other(how), .. }) => {
                Err(SerializeError::NotStored { name: name.to_owned(), how }.into())
            }
            Some(record) => Ok(record),
        }
    }

    pub(super) fn place(&mut self, name: &str) -> Result<u64> {
        let &ZipEntry { header, stored, .. } = self.find(name)?;
        let local = bytes(self.source, header, 30)?;
        let mut fields = FieldReader(&local);
        if fields.number(4)? != 0x0403_4b50 {
            return Err(broken("invalid header or archive is corrupted"));
        }
        fields.take(22)?;
        let start = header + 30 + fields.number(2)? + fields.number(2)?;
        if start + stored > self.end {
            return Err(broken("invalid header or archive is corrupted"));
        }
        Ok(start)
    }

    pub(super) fn read(&mut self, name: &str, most: u64) -> Result<Vec<u8>> {
        let size = self.size(name)?;
        if size > most {
            return Err(SerializeError::RecordTooLarge { name: name.to_owned(), size, most }.into());
        }
        if let Some(bytes) = self.inflated(name)? {
            return Ok(bytes);
        }
        let mut bytes = vec![0; size as usize];
        self.read_into(name, &mut bytes)?;
        Ok(bytes)
    }

    /// Decompresses a record; `None` if it is not compressed.
    pub(super) fn inflated(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        let &ZipEntry { size, stored, packing, .. } = self.find(name)?;
        if packing != Packing::Deflated {
            return Ok(None);
        }
        let place = self.place(name)?;
        let inflated = inflate(&bytes(self.source, place, stored as usize)?, size as usize)?;
        self.check(name, &inflated)?;
        Ok(Some(inflated))
    }

    /// Reads an uncompressed record into `into`, of the record's length, and checks the checksum.
    pub(super) fn read_into(&mut self, name: &str, into: &mut [u8]) -> Result<()> {
        let place = self.place(name)?;
        self.source.seek(SeekFrom::Start(place))?;
        self.source.read_exact(into)?;
        self.check(name, into)
    }

    /// Checks the checksum, which is 0 after `torch.serialization.set_crc32_options(False)`.
    fn check(&self, name: &str, bytes: &[u8]) -> Result<()> {
        match self.find(name)?.crc {
            0 => Ok(()),
            crc if crc == crc32(bytes) => Ok(()),
            _ => Err(SerializeError::Checksum { name: name.to_owned() }.into()),
        }
    }
}

fn directory(source: &mut dyn ReadSeek, length: u64) -> Result<(u64, u64, u64)> {
    // The end of the file, with a comment of up to 65,535 bytes.
    let tail_start = length.saturating_sub(22 + 65_535);
    let tail = bytes(source, tail_start, (length - tail_start) as usize)?;
    let at = tail.windows(22).rposition(|end| end.starts_with(b"PK\x05\x06"));
    let at = at.ok_or_else(|| broken("failed finding central directory"))?;
    let mut fields = FieldReader(&tail[at + 8..]);
    fields.take(2)?;
    let short = (fields.number(2)?, fields.number(4)?, fields.number(4)?);
    let is_long = short.0 == u64::from(u16::MAX) || [short.1, short.2].contains(&ZIP64_SENTINEL);
    let Some(locator) = (tail_start + at as u64).checked_sub(20).filter(|_| is_long) else {
        return Ok(short);
    };
    let locator = bytes(source, locator, 20)?;
    if !locator.starts_with(b"PK\x06\x07") {
        return Ok(short);
    }
    let long = FieldReader(&locator[8..]).number(8)?;
    if long.checked_add(56).is_none_or(|end| end > length) {
        return Err(broken("invalid header or archive is corrupted"));
    }
    let long = bytes(source, long, 56)?;
    let mut fields = FieldReader(&long[32..]);
    match long.starts_with(b"PK\x06\x06") {
        true => Ok((fields.number(8)?, fields.number(8)?, fields.number(8)?)),
        false => Err(broken("invalid header or archive is corrupted")),
    }
}

fn entry(fields: &mut FieldReader) -> Result<(String, ZipEntry)> {
    if fields.number(4)? != 0x0201_4b50 {
        return Err(broken("invalid header or archive is corrupted"));
    }
    fields.take(4)?;
    let (flags, method) = (fields.number(2)?, fields.number(2)?);
    fields.take(4)?;
    let crc = fields.number(4)? as u32;
    let (mut stored, mut size) = (fields.number(4)?, fields.number(4)?);
    let [name, extra, comment] = [fields.number(2)?, fields.number(2)?, fields.number(2)?];
    fields.take(8)?;
    let mut header = fields.number(4)?;
    let name = String::from_utf8_lossy(fields.take(name as usize)?).into_owned();
    let mut extra = FieldReader(fields.take(extra as usize)?);
    fields.take(comment as usize)?;
    while extra.0.len() >= 4 {
        let (kind, length) = (extra.number(2)?, extra.number(2)?);
        let mut extra = FieldReader(extra.take(length as usize)?);
        // Fields of more than 32 bits, in this order.
        if kind == 1 {
            for number in [&mut size, &mut stored, &mut header] {
                if *number == ZIP64_SENTINEL {
                    *number = extra.number(8)?;
                }
            }
        }
    }
    let packing = match method {
        _ if flags & 1 != 0 => Packing::Other("encrypted"),
        0 if stored == size => Packing::AsTheyAre,
        8 if size <= stored.saturating_mul(MOST_INFLATED) => Packing::Deflated,
        0 | 8 => return Err(broken("invalid header or archive is corrupted")),
        12 => Packing::Other("compressed by bzip2"),
        14 => Packing::Other("compressed by LZMA"),
        93 => Packing::Other("compressed by Zstandard"),
        _ => Packing::Other("compressed in another way"),
    };
    Ok((name, ZipEntry { header, size, stored, crc, packing }))
}

struct FieldReader<'b>(&'b [u8]);

impl<'b> FieldReader<'b> {
    #[inline(never)]
    fn take(&mut self, bytes: usize) -> Result<&'b [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(bytes).ok_or_else(|| broken("invalid header or archive is corrupted"))?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline(never)]
    fn number(&mut self, bytes: usize) -> Result<u64> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(number))
    }
}

/// Reads `count` bytes, which must be within the file.
fn bytes(source: &mut dyn ReadSeek, from: u64, count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    source.seek(SeekFrom::Start(from))?;
    source.read_exact(&mut bytes).map_err(|_| broken("invalid header or archive is corrupted"))?;
    Ok(bytes)
}

#[cold]
#[inline(never)]
fn broken(why: &'static str) -> crate::Error {
    SerializeError::Zip { why }.into()
}
