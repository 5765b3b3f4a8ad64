//! A disk cache of compiled kernels. A file contains the hash of its inputs (the key), a checksum and the machine code.
//! A truncated file, or one of another version or program, is ignored.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process;

use kernels::{Source, headers};

/// Must change with the layout of the files.
const MAGIC: &[u8; 16] = b"todevice kernel1";

pub(super) struct CacheKey {
    /// The hash of source, headers, options, target and compiler.
    inputs: u64,
    /// A readable name: `elementwise-gelu-sm_90`.
    name: String,
}

impl CacheKey {
    pub(super) fn new(source: &Source, options: &[&str], target: &str, compiler: &str) -> CacheKey {
        let mut hasher = DefaultHasher::new();
        (source.text, options, target, compiler).hash(&mut hasher);
        for header in headers(source.text) {
            (header.name, header.text).hash(&mut hasher);
        }
        let architecture = target.rsplit('=').next().unwrap_or(target);
        let name = format!("{}-{architecture}", source.name.trim_end_matches(".cu").replace('/', "-"));
        CacheKey { inputs: hasher.finish(), name }
    }

    fn file(&self) -> Option<PathBuf> {
        Some(folder()?.join(format!("{}-{:016x}.bin", self.name, self.inputs)))
    }
}

/// The user's cache folder, which nobody else can write.
fn folder() -> Option<PathBuf> {
    let set = |variable| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME")
        .or_else(|| set("LOCALAPPDATA"))
        .or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("todevice").join("kernels"))
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn header(key: &CacheKey, image: &[u8]) -> [u8; 40] {
    let mut header = [0; 40];
    header[..16].copy_from_slice(MAGIC);
    for (place, value) in [(16, key.inputs), (24, image.len() as u64), (32, checksum(image))] {
        header[place..place + 8].copy_from_slice(&value.to_le_bytes());
    }
    header
}

/// Returns the cached machine code, if the file exists and is intact.
pub(super) fn load(key: &CacheKey) -> Option<Vec<u8>> {
    let mut file = fs::read(key.file()?).ok()?;
    let image = file.get(40..)?;
    if file[..40] != header(key, image) {
        return None;
    }
    file.drain(..40);
    Some(file)
}

/// Stores machine code. After a failure, the kernel is compiled again next time.
pub(super) fn store(key: &CacheKey, image: &[u8]) {
    let Some(file) = key.file() else { return };
    let Some(folder) = file.parent() else { return };
    // Written under another name and then renamed, so that nobody reads a partial file.
    let unfinished = folder.join(format!("{}.{}", key.name, process::id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&unfinished, [&header(key, image), image].concat()))
        .and_then(|()| fs::rename(&unfinished, &file));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source = Source { name: "a.cu", text: "one" };

    #[test]
    fn a_file_that_is_not_whole_or_not_ours_is_ignored() {
        let key = CacheKey::new(&SOURCE, &["-O3"], "--gpu-architecture=sm_90", "12.9");
        let image = b"machine code".to_vec();
        let whole = [&header(&key, &image), image.as_slice()].concat();
        let accepts = |file: &[u8]| file.get(40..).is_some_and(|image| file[..40] == header(&key, image));
        assert!(accepts(&whole));
        for length in 0..whole.len() {
            assert!(!accepts(&whole[..length]), "cut off at {length}");
        }
        for place in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[place] ^= 1;
            assert!(!accepts(&wrong), "byte {place} is another");
        }
    }

    #[test]
    fn what_is_compiled_from_something_else_has_another_file() {
        let key = |source: &Source, options: &[&str], target: &str, compiler: &str| {
            CacheKey::new(source, options, target, compiler).inputs
        };
        let other = Source { text: "two", ..SOURCE };
        let keys = [
            key(&SOURCE, &["-O3"], "sm_90", "12.9"),
            key(&other, &["-O3"], "sm_90", "12.9"),
            key(&SOURCE, &["-O2"], "sm_90", "12.9"),
            key(&SOURCE, &["-O3"], "sm_89", "12.9"),
            key(&SOURCE, &["-O3"], "sm_90", "12.8"),
        ];
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[i + 1..].iter().all(|b| a != b));
        }
    }
}
