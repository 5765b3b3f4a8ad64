//! Numbers and strings as Python prints them.

/// `0.1`, `1e-05`, `1e+17`, `nan`
pub(crate) fn python_float(number: f64) -> String {
    let size = number.abs();
    if number.is_nan() {
        "nan".to_owned()
    } else if size != 0.0 && size.is_finite() && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}"); // The shortest digits that identify the number, as in Python.
        let (digits, exponent) = text.split_once('e').expect("it was asked for");
        let exponent: i32 = exponent.parse().expect("an exponent is an integer");
        format!("{digits}e{exponent:+03}")
    } else {
        format!("{number:?}")
    }
}

/// Quotes like Python's `repr`: in single quotes, or in double quotes if that avoids escapes.
pub(crate) fn python_str(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut repr = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => repr.push_str("\\n"),
            '\r' => repr.push_str("\\r"),
            '\t' => repr.push_str("\\t"),
            '\\' => repr.push_str("\\\\"),
            _ if c == quote => repr.extend(['\\', c]),
            _ if c.is_control() => repr.push_str(&format!("\\x{:02x}", c as u32)),
            _ => repr.push(c),
        }
    }
    repr.push(quote);
    repr
}

/// `b'abc\xff'`
pub(crate) fn python_bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    let mut repr = format!("b{}", char::from(quote));
    for &byte in bytes {
        match byte {
            b'\n' => repr.push_str("\\n"),
            b'\r' => repr.push_str("\\r"),
            b'\t' => repr.push_str("\\t"),
            b'\\' => repr.push_str("\\\\"),
            _ if byte == quote => repr.extend(['\\', char::from(quote)]),
            b' '..=b'~' => repr.push(char::from(byte)),
            _ => repr.push_str(&format!("\\x{byte:02x}")),
        }
    }
    repr.push(char::from(quote));
    repr
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from Python 3's `repr`.
    #[test]
    fn numbers_are_pythons() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.1, "-0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.5e-7, "-1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e100, "1.25e+100"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(python_float(number), text);
        }
    }

    /// Expected values are from Python 3's `repr`.
    #[test]
    fn strings_are_pythons() {
        for (text, repr) in [
            ("weight", "'weight'"),
            ("it's", "\"it's\""),
            ("\"it's\"", r#"'"it\'s"'"#),
            ("a\n\t\\\0é", r"'a\n\t\\\x00é'"),
        ] {
            assert_eq!(python_str(text), repr);
        }
    }
}
