//! Writes zip files like PyTorch: uncompressed, with records aligned to 64 bytes.

use std::io::Write;

use super::crc::crc32;
use crate::error::Result;

/// The alignment of records, which allows memory-mapping.
pub(super) const ALIGNMENT: u64 = 64;

/// 1 January 1980, the zip epoch. A fixed date makes equal checkpoints equal files.
const DATE: u16 = 0x21;

pub(super) struct ZipWriter<'w> {
    out: &'w mut dyn Write,
    at: u64,
    directory: Vec<u8>,
    records: u64,
    /// The first number too large for a 32-bit field. Lower in tests.
    limit: u64,
}

impl<'w> ZipWriter<'w> {
    pub(super) fn new(out: &'w mut dyn Write) -> ZipWriter<'w> {
        ZipWriter { out, at: 0, directory: Vec::new(), records: 0, limit: u32::MAX.into() }
    }

    pub(super) fn record(&mut self, name: &str, bytes: &[u8]) -> Result<u32> {
        let (crc, size, start) = (crc32(bytes), bytes.len() as u64, self.at);
        let long = |number: u64| number >= self.limit;
        let short = |number: u64| if long(number) { u32::MAX } else { number as u32 };

        // The 64-bit sizes, if necessary, and the padding that aligns the record.
        let mut extra = Vec::new();
        if long(size) {
            (&mut extra).fields(&[(1, 2), (16, 2), (size, 8), (size, 8)]);
        }
        let unpadded = start + 30 + name.len() as u64 + extra.len() as u64 + 4;
        let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
        (&mut extra).fields(&[(u16::from_le_bytes(*b"FB").into(), 2), (padding, 2)]);
        extra.resize(extra.len() + padding as usize, b'Z');

        let version = if long(size) || long(start) { 45 } else { 20 };
        let common = [
            (version, 2),
            (0, 2), // No flags.
            (0, 2), // Stored uncompressed.
            (0, 2), // The time.
            (DATE.into(), 2),
            (crc.into(), 4),
            (short(size).into(), 4),
            (short(size).into(), 4),
            (name.len() as u64, 2),
        ];
        let mut header = Vec::new();
        (&mut header).fields(&[(0x0403_4b50, 4)]).fields(&common).fields(&[(extra.len() as u64, 2)]);
        header.extend_from_slice(name.as_bytes());
        header.extend_from_slice(&extra);

        let mut wide: Vec<u8> = Vec::new();
        for number in [size, size, start].into_iter().filter(|number| long(*number)) {
            (&mut wide).fields(&[(number, 8)]);
        }
        if !wide.is_empty() {
            let length = wide.len() as u64;
            wide.splice(0..0, (1u16.to_le_bytes().into_iter()).chain((length as u16).to_le_bytes()));
        }
        let directory = &mut self.directory;
        directory.fields(&[(0x0201_4b50, 4), (version, 2)]).fields(&common).fields(&[
            (wide.len() as u64, 2),
            (0, 2), // No comment.
            (0, 2), // The first disk.
            (0, 2), // No attributes.
            (0, 4),
            (short(start).into(), 4),
        ]);
        directory.extend_from_slice(name.as_bytes());
        directory.extend_from_slice(&wide);

        self.write(&header)?;
        self.write(bytes)?;
        self.records += 1;
        Ok(crc)
    }

    pub(super) fn finish(mut self) -> Result<&'w mut dyn Write> {
        let directory = std::mem::take(&mut self.directory);
        let (start, size, records) = (self.at, directory.len() as u64, self.records);
        self.write(&directory)?;
        let mut end = Vec::new();
        let end_of_directory = &mut end;
        let is_long = start >= self.limit || size >= self.limit || records >= u16::MAX.into();
        if is_long {
            end_of_directory.fields(&[
                (0x0606_4b50, 4),
                (44, 8), // The number of bytes that follow.
                (45, 2),
                (45, 2),
                (0, 4),
                (0, 4),
                (records, 8),
                (records, 8),
                (size, 8),
                (start, 8),
            ]);
            end_of_directory.fields(&[(0x0706_4b50, 4), (0, 4), (start + size, 8), (1, 4)]);
        }
        let [records, size, start] = match is_long {
            true => [u16::MAX.into(), u32::MAX.into(), u32::MAX.into()],
            false => [records, size, start],
        };
        let disks = [(0x0605_4b50, 4), (0, 2), (0, 2), (records, 2), (records, 2)];
        end_of_directory.fields(&disks).fields(&[(size, 4), (start, 4), (0, 2)]);
        self.write(&end)?;
        Ok(self.out)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

trait WriteFields {
    /// Appends numbers with their sizes in bytes.
    fn fields(self, fields: &[(u64, usize)]) -> Self;
}

impl WriteFields for &mut Vec<u8> {
    fn fields(self, fields: &[(u64, usize)]) -> Self {
        for (number, bytes) in fields {
            self.extend_from_slice(&number.to_le_bytes()[..*bytes]);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::zip_reader::ZipReader;
    use super::*;

    #[test]
    fn what_is_written_is_read_whether_its_numbers_are_long_or_short() {
        for limit in [u32::MAX.into(), 5, 200, 300, 1] {
            let mut written = Vec::new();
            let mut zip = ZipWriter { limit, ..ZipWriter::new(&mut written) };
            let records =
                [("a/one", "first".repeat(40)), ("a/two", "".to_owned()), ("a/three", "x".to_owned())];
            for (name, text) in &records {
                zip.record(name, text.as_bytes()).unwrap();
            }
            zip.finish().unwrap();
            let mut bytes = Cursor::new(written);
            let mut zip = ZipReader::open(&mut bytes).unwrap();
            for (name, text) in &records {
                let name = name.strip_prefix("a/").unwrap();
                assert_eq!(zip.read(name, 1000).unwrap(), text.as_bytes(), "{limit}");
                assert_eq!(zip.place(name).unwrap() % ALIGNMENT, 0);
            }
        }
    }
}
