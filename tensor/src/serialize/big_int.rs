use std::fmt;

/// An `int` of more than 64 bits, without arithmetic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigInt(Vec<u8>);

impl BigInt {
    /// Creates the number from little-endian two's complement bytes.
    pub fn from_le_bytes(bytes: &[u8]) -> BigInt {
        BigInt(bytes.to_vec())
    }

    /// Returns the little-endian two's complement bytes.
    pub fn to_le_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the nearest `f64`; infinity beyond the largest.
    pub fn to_f64(&self) -> f64 {
        // The 64 highest bits. The lowest one is also set for any lower bit, which makes the rounding exact.
        let mut bytes = self.magnitude();
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        let lower = bytes.len().saturating_sub(9);
        let top = bytes[lower..].iter().rev().fold(0u128, |top, byte| top << 8 | u128::from(*byte));
        let shift = (128 - top.leading_zeros()).saturating_sub(64);
        let is_inexact = top & ((1 << shift) - 1) != 0 || bytes[..lower].iter().any(|byte| *byte != 0);
        let top = (top >> shift) as u64 | u64::from(is_inexact);
        let exponent = i32::try_from(8 * lower).map_or(i32::MAX, |bits| bits + shift as i32);
        let magnitude = top as f64 * 2f64.powi(exponent.min(1024));
        if self.is_negative() { -magnitude } else { magnitude }
    }

    fn is_negative(&self) -> bool {
        self.0.last().is_some_and(|last| last >> 7 == 1)
    }

    /// Returns the absolute value in little-endian bytes.
    fn magnitude(&self) -> Vec<u8> {
        let mut bytes = self.0.clone();
        if self.is_negative() {
            let mut carry = true;
            for byte in &mut bytes {
                (*byte, carry) = (!*byte).overflowing_add(carry.into());
            }
        }
        bytes
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Digits in base 10⁹, lowest first. Each byte multiplies the previous value by 256.
        const BASE: u64 = 1_000_000_000;
        let mut digits = vec![0];
        for byte in self.magnitude().into_iter().rev() {
            let mut carry = u64::from(byte);
            for digit in &mut digits {
                let number = *digit * 256 + carry;
                (*digit, carry) = (number % BASE, number / BASE);
            }
            if carry > 0 {
                digits.push(carry);
            }
        }
        let sign = if self.is_negative() { "-" } else { "" };
        let (highest, lower) = digits.split_last().expect("there is one from the start");
        write!(f, "{sign}{highest}")?;
        lower.iter().rev().try_for_each(|digit| write!(f, "{digit:09}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_in_decimal() {
        for (bytes, text) in [
            (vec![0, 0, 0, 0, 0, 0, 0, 0, 1], "18446744073709551616"),
            (vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe], "-18446744073709551617"),
            (vec![0, 0, 0, 0, 0, 0, 0, 0x80, 0], "9223372036854775808"),
            (vec![0, 0, 0, 0, 0, 0, 0, 0x80], "-9223372036854775808"),
            (vec![0xfe], "-2"),
            (vec![], "0"),
        ] {
            assert_eq!(BigInt::from_le_bytes(&bytes).to_string(), text);
        }
    }

    /// Rust's parser rounds to the nearest float, ties to even.
    #[test]
    fn the_nearest_float_is_that_of_the_digits() {
        let mut numbers = vec![vec![], vec![5], vec![0xfe], vec![0; 20], vec![0xff; 9]];
        for zeros in [1, 7, 8, 9, 20, 100, 125, 126, 127, 128, 129, 200] {
            for top in [0x01, 0x10, 0x7f, 0x80, 0xff] {
                for low in [0x00, 0x01, 0x80] {
                    // Just above, at, and just below a tie.
                    for middle in [
                        [0; 7],
                        [0, 0x08, 0, 0, 0, 0, 0],
                        [0, 0x18, 0, 0, 0, 0, 0],
                        [0xff; 7],
                        [0xff, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff],
                    ] {
                        let bytes = [&vec![low; zeros][..], &middle, &[top]].concat();
                        numbers.push([&bytes[..], &[0]].concat());
                        numbers.push(bytes);
                    }
                }
            }
        }
        for bytes in numbers {
            let number = BigInt::from_le_bytes(&bytes);
            let expected: f64 = number.to_string().parse().unwrap();
            assert_eq!(number.to_f64(), expected, "{number}");
        }
    }
}
