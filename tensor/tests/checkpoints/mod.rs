//! Checkpoints and their files. `files/` contains files of PyTorch and of Python's safetensors, written by its
//! `make.py`.

mod allocations;
mod changed;
mod contents;
mod kinds;
mod of_pytorch;
mod python;
mod replaced;
mod safetensors;
mod zip;

use std::path::{Path, PathBuf};

/// A temporary folder for a test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The sorted names of the files in it.
    fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
