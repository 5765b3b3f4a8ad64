//! Files that a lab reads: from the disk, or in a page, which has no disk, from memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::files;

thread_local! {
    static GIVEN: RefCell<BTreeMap<String, Vec<u8>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Stores a file for the labs that this thread runs from now on.
pub fn give(name: &str, bytes: Vec<u8>) {
    GIVEN.with_borrow_mut(|given| given.insert(name.to_owned(), bytes));
}

const LARGEST: u64 = 1 << 30;

/// Reads a stored file, or one from the disk.
pub(crate) fn read(name: &str) -> io::Result<Vec<u8>> {
    match GIVEN.with_borrow(|given| given.get(name).cloned()) {
        Some(bytes) => Ok(bytes),
        None if cfg!(target_family = "wasm") => {
            Err(io::Error::other("the page has not been given this file"))
        }
        None => files::bytes(Path::new(name), LARGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_read_before_the_disk() {
        assert!(read("no/such/file").is_err());
        assert!(read(".").unwrap_err().to_string().contains("not a regular file"));
        give("no/such/file", vec![1, 2]);
        assert_eq!(read("no/such/file").unwrap(), [1, 2]);
    }
}
