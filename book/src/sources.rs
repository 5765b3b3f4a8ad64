//! The sources that determine the output of the labs, and those of the exercises. `build.rs` includes this file too,
//! and stores the hashes.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;

/// Relative to the root of the checkout.
pub const FOLDERS: [&str; 5] = ["labs/src", "labs/exercises/source", "drawing/src", "tensor/src", "gpu/src"];

pub fn hashes(root: &Path) -> io::Result<BTreeMap<String, u64>> {
    let mut hashes = BTreeMap::new();
    for folder in FOLDERS {
        collect(root, folder, &mut hashes)?;
    }
    Ok(hashes)
}

fn collect(root: &Path, folder: &str, hashes: &mut BTreeMap<String, u64>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(root, &path, hashes)?;
        } else if path.ends_with(".rs") {
            let mut hasher = DefaultHasher::new();
            // On Windows, Git may convert line endings.
            fs::read_to_string(entry.path())?.replace("\r\n", "\n").hash(&mut hasher);
            hashes.insert(path, hasher.finish());
        }
    }
    Ok(())
}
