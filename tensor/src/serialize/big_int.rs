//! Python's integers beyond 64 bits.

use std::fmt;

/// An `int` of more than 64 bits. Nothing is calculated with it: it is kept and printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigInt(Vec<u8>);

impl BigInt {
    /// The number in two's complement, the lowest byte first.
    pub fn from_le_bytes(bytes: &[u8]) -> BigInt {
        BigInt(bytes.to_vec())
    }

    /// The number in two's complement, the lowest byte first.
    pub fn to_le_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The nearest `f64`; infinity beyond the largest.
    pub fn to_f64(&self) -> f64 {
        self.to_string().parse().expect("digits are a number")
    }

    fn is_negative(&self) -> bool {
        self.0.last().is_some_and(|last| last >> 7 == 1)
    }

    /// The number without its sign, the lowest byte first.
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
        // Digits of base 10⁹, the lowest first: each byte multiplies what is there by 256.
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
        assert_eq!(BigInt::from_le_bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 1]).to_f64(), 18446744073709551616.0);
    }
}
