//! A temporary folder that survives no longer than its owner.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PREFIX: &str = "own-";
/// The name of a file in each folder, which the owner keeps locked.
const LOCK: &str = "lock";

/// A new folder, removed on drop. If its owner is killed, the next folder created next to it removes it.
pub struct OwnFolder {
    path: PathBuf,
    _lock: File,
}

impl OwnFolder {
    pub fn new(parent: &Path) -> Result<OwnFolder, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        OwnFolder::create(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn create(path: &Path) -> io::Result<OwnFolder> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
            sweep(parent);
        }
        fs::create_dir(path)?;
        let lock = File::create_new(path.join(LOCK))?;
        lock.lock()?;
        Ok(OwnFolder { path: path.to_owned(), _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of dead owners. Folders that cannot be removed are left for the next time.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && is_abandoned(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        // The folder may have been created a moment ago.
        Err(_) => {
            let made = fs::metadata(folder).and_then(|metadata| metadata.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > Duration::from_secs(60)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_owner_or_with_the_next_one() {
        let parent = std::env::temp_dir().join(format!("to-device-own-folders-{}", std::process::id()));
        let first = OwnFolder::new(&parent).unwrap();
        let abandoned = parent.join(format!("{PREFIX}0-0"));
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        let second = OwnFolder::new(&parent).unwrap();
        assert!(first.path().exists() && second.path().exists() && !abandoned.exists());
        let paths = [first.path().to_owned(), second.path().to_owned()];
        drop((first, second));
        assert!(!paths.iter().any(|path| path.exists()));
        fs::remove_dir(parent).unwrap();
    }
}
