//! Serializes pages between processes. The local server builds them in a child process, which returns its memory to the
//! system when it exits.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

/// Packs the pages: the path and content of each, both preceded by their length.
pub fn pack(pages: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut packed = Vec::new();
    for part in pages.iter().flat_map(|(path, bytes)| [path.as_bytes(), bytes]) {
        packed.extend_from_slice(&(part.len() as u64).to_le_bytes());
        packed.extend_from_slice(part);
    }
    packed
}

/// Reverses [`pack`]. Returns `None` if the data is truncated.
pub fn unpack(mut packed: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut next = || {
        let length;
        (length, packed) = packed.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let part;
        (part, packed) = packed.split_at_checked(length)?;
        Some((part, packed.is_empty()))
    };
    let mut pages = BTreeMap::new();
    loop {
        let (path, _) = next()?;
        let (bytes, is_last) = next()?;
        pages.insert(String::from_utf8(path.to_vec()).ok()?, bytes.to_vec());
        if is_last {
            return Some(pages);
        }
    }
}

/// Builds the pages in a child process of this program. The error lists their mistakes.
pub fn pages_of_another_process(course: Option<&Path>) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let cannot = |error: io::Error| format!("the pages cannot be built: {error}");
    let mut command = Command::new(this_program().map_err(cannot)?);
    if let Some(course) = course {
        command.arg("--course").arg(course);
    }
    let output = command.arg("pages").output().map_err(cannot)?;
    match output.status.success() {
        true => unpack(&output.stdout).ok_or_else(|| "the pages did not arrive completely".to_owned()),
        false => match String::from_utf8_lossy(&output.stderr).trim() {
            "" => Err(format!(
                "the pages cannot be built: the process that builds them ended with {}",
                output.status
            )),
            mistakes => Err(mistakes.to_owned()),
        },
    }
}

/// The path of this program. Its file may have been replaced since the start; on Linux, the running one is still
/// accessible.
fn this_program() -> io::Result<OsString> {
    match cfg!(target_os = "linux") {
        true => Ok("/proc/self/exe".into()),
        false => env::current_exe().map(OsString::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_arrive_whole_or_not_at_all() {
        let page = |path: &str, bytes: &[u8]| (path.to_owned(), bytes.to_vec());
        let pages = BTreeMap::from([
            page("index.html", b"<h1>"),
            page("empty.txt", b""),
            page("ä/b.wasm", &[0, 255]),
        ]);
        let packed = pack(&pages);
        assert_eq!(unpack(&packed), Some(pages));
        for length in 0..packed.len() {
            let part = unpack(&packed[..length]);
            assert!(part.is_none_or(|pages| pages.len() < 3), "{length}");
        }
        assert_eq!(unpack(&[255; 16]), None);
    }
}
