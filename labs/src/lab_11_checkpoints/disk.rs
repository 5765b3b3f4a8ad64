//! The lab's files. They are in memory, so that the lab also runs on a page, which has no disk.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use todevice::Result;
use todevice::serialize::{self, MapLocation, Value};

use crate::Lab;

pub(super) struct Disk {
    /// A folder to write the files to as well.
    folder: Option<PathBuf>,
    files: RefCell<BTreeMap<&'static str, Vec<u8>>>,
}

impl Disk {
    pub fn new(folder: Option<PathBuf>) -> Disk {
        Disk { folder, files: RefCell::default() }
    }

    // ANCHOR: disk
    /// As `serialize::save`, but keeps the file in memory.
    pub fn save(&self, value: impl Into<Value>, name: &'static str) -> Result<()> {
        let value = value.into();
        if let Some(folder) = &self.folder {
            serialize::save(&value, folder.join(name))?;
        }
        let bytes = serialize::to_bytes(value)?;
        self.files.borrow_mut().insert(name, bytes);
        Ok(())
    }

    /// As `serialize::load`.
    pub fn load(
        &self,
        name: &'static str,
        map_location: impl Into<MapLocation>,
    ) -> Result<Value> {
        serialize::from_bytes(&self.files.borrow()[name], map_location)
    }
    // ANCHOR_END: disk

    pub fn hand_to(&self, lab: &mut Lab) {
        for (name, bytes) in &*self.files.borrow() {
            lab.file(name, bytes);
        }
    }

    pub fn size(&self, name: &str) -> usize {
        self.files.borrow()[name].len()
    }
}

pub(super) fn folder(name: &str) -> Result<PathBuf, String> {
    let folder = PathBuf::from(name);
    match folder.is_dir() {
        true => Ok(folder),
        false => Err("there is no such folder".to_owned()),
    }
}
