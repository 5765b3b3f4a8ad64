//! Takes zip files apart and puts them together, to change their contents.

/// The records of a file without compression, by name.
pub(super) fn records(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let number = |at: usize, bytes: usize| {
        file[at..at + bytes].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let end = file.windows(4).rposition(|end| end == b"PK\x05\x06").unwrap();
    let mut at = number(end + 16, 4);
    let mut records = Vec::new();
    for _ in 0..number(end + 10, 2) {
        let (size, name, extra, header) =
            (number(at + 24, 4), number(at + 28, 2), number(at + 30, 2), number(at + 42, 4));
        let start = header + 30 + number(header + 26, 2) + number(header + 28, 2);
        let text = String::from_utf8(file[at + 46..at + 46 + name].to_vec()).unwrap();
        records.push((text, file[start..start + size].to_vec()));
        at += 46 + name + extra + number(at + 32, 2);
    }
    records
}

/// A file with these records.
pub(super) fn zip(records: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in records {
        let start = file.len() as u32;
        let size = (bytes.len() as u32).to_le_bytes();
        let common =
            [&[0; 8], &crc32(bytes).to_le_bytes()[..], &size, &size, &(name.len() as u16).to_le_bytes()];
        file.extend([&b"PK\x03\x04\x14\0"[..], &common.concat(), &[0; 2], name.as_bytes(), bytes].concat());
        directory.extend([&b"PK\x01\x02\x14\0\x14\0"[..], &common.concat(), &[0; 12]].concat());
        directory.extend([&start.to_le_bytes(), name.as_bytes()].concat());
    }
    let (start, size) = ((file.len() as u32).to_le_bytes(), (directory.len() as u32).to_le_bytes());
    let count = (records.len() as u16).to_le_bytes();
    [&file[..], &directory, b"PK\x05\x06\0\0\0\0", &count, &count, &size, &start, &[0; 2]].concat()
}

/// The file with every checksum set to 0.
pub(super) fn without_checksums(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for (signature, place) in [(b"PK\x03\x04", 14), (b"PK\x01\x02", 16)] {
        let found: Vec<usize> = (0..file.len()).filter(|at| file[*at..].starts_with(signature)).collect();
        found.into_iter().for_each(|at| file[at + place..at + place + 4].fill(0));
    }
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[test]
fn what_is_taken_apart_can_be_put_together() {
    let records_of = records(include_bytes!("files/torch-2.11.0.pt"));
    assert_eq!(records(&zip(&records_of)), records_of);
}
