//! CRC-32, the checksum of zip files.

use std::sync::LazyLock;

/// Table `n`: the checksum of a byte and `n` zeros, so that one step takes eight bytes. Computed on first use:
/// constants would add 8 KiB of incompressible data to a web page.
static TABLES: LazyLock<[[u32; 256]; 8]> = LazyLock::new(tables);

fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    for byte in 0..256 {
        let mut crc = byte as u32;
        for table in &mut tables {
            for _ in 0..8 {
                crc = (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
            }
            table[byte] = crc;
        }
    }
    tables
}

/// `zlib.crc32`
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let tables = &*TABLES;
    let mut crc = !0u32;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let low = crc ^ u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]);
        let of = |table: usize, byte: u8| tables[table][byte as usize];
        let [a, b, c, d] = low.to_le_bytes();
        crc = of(7, a) ^ of(6, b) ^ of(5, c) ^ of(4, d);
        crc ^= of(3, eight[4]) ^ of(2, eight[5]) ^ of(1, eight[6]) ^ of(0, eight[7]);
    }
    for byte in rest {
        crc = (crc >> 8) ^ tables[0][(crc as u8 ^ byte) as usize];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Python's `zlib.crc32`.
    #[test]
    fn checksums_are_zlibs() {
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(crc32(&all), 0x2905_8C73);
    }
}
