//! A student's file.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use drawing::printable::decoded;

use crate::verdict::Diagnosis;

/// Larger than any exercise.
pub const LARGEST: u64 = 1 << 20;

/// Reads a file, which must be a regular file: a device may never end, and a pipe may never begin.
pub fn bytes(file: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(io::Error::other(format!("it is larger than {LARGEST} bytes"))),
        false => Ok(bytes),
    }
}

/// The text of a file, or the student's mistake in it. A missing file is an error.
pub fn text(file: &Path) -> Result<Result<String, Diagnosis>, String> {
    let wrong = |what: &str| {
        Diagnosis::new("file", "Your file cannot be read.")
            .seen(what)
            .expected("a file of Rust code, saved as UTF-8")
    };
    match bytes(file) {
        Ok(bytes) => Ok(decoded(&bytes).map(str::to_owned).map_err(|what| {
            wrong(&format!("it is {what}")).idea(
                "Save it as UTF-8. In PowerShell, `>` writes UTF-16. Editors offer the encoding when you \
                 save a file under another name.",
            )
        })),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(format!("{}: {error}", file.display())),
        Err(error) => Ok(Err(wrong(&error.to_string()))),
    }
}
