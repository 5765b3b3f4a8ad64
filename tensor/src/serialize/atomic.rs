//! Files that are replaced as a whole or not at all.
//!
//! The new file is written beside the old one under a temporary name, brought to the disk, and then given the old one's name,
//! which is one step of the file system. Whatever stops the program, there is the old file or the new one, and at worst a
//! temporary one beside it, which the next save removes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::error::SerializeError;
use crate::error::{Error, Result};
use crate::python::python_str;

/// What the names of temporary files end with.
const SUFFIX: &str = ".todevice-tmp";

/// The longest part of a file's name that the name of its temporary file repeats: file systems allow 255 bytes.
const LONGEST_STEM: usize = 180;

/// Replaces the file at `path` by what `write` writes. If that fails, or the program ends, the file is what it was.
///
/// A symbolic link stays one: what it leads to is replaced. The permissions of the file stay too, and one that nobody may
/// write to is refused. What is no file, such as `/dev/null`, is written to as it is.
pub(super) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let named = |error: io::Error| in_file(path, error);
    let target = followed(path).map_err(named)?;
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(SerializeError::NoParent { folder: folder.display().to_string() }.into());
    }
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        let out = OpenOptions::new().write(true).open(&target).map_err(named)?;
        return fill(&out, write, named);
    }
    if old.as_ref().is_some_and(|old| old.permissions().readonly()) {
        return Err(named(ErrorKind::PermissionDenied.into()));
    }
    let Some(name) = target.file_name() else { return Err(named(ErrorKind::InvalidInput.into())) };
    let prefix = prefix(&name.to_string_lossy());
    sweep(folder, &prefix);
    let temporary = Temporary::create(folder, &prefix).map_err(named)?;
    if let Some(old) = old {
        // Who owns it only root can say, and need not.
        #[cfg(unix)]
        let _ = {
            use std::os::unix::fs::{MetadataExt, fchown};
            fchown(&temporary.file, Some(old.uid()), Some(old.gid()))
        };
        temporary.file.set_permissions(old.permissions()).map_err(named)?;
    }
    fill(&temporary.file, write, named)?;
    temporary.file.sync_all().map_err(named)?;
    temporary.become_(&target).map_err(named)?;
    // The new name must reach the disk too. Where a folder cannot be opened, it does by itself.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(named)?;
    Ok(())
}

/// An error of the system with the name of the file, as Python has it: `[Errno 28] No space left on device: 'model.pt'`.
pub(super) fn in_file(path: &Path, error: io::Error) -> Error {
    let text = error.to_string();
    let reason = match error.raw_os_error() {
        Some(code) => {
            let text = text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text);
            format!("[Errno {code}] {text}")
        }
        None if error.kind() == ErrorKind::IsADirectory => "[Errno 21] Is a directory".to_owned(),
        None => text,
    };
    SerializeError::File { reason, path: python_str(&path.display().to_string()), kind: error.kind() }.into()
}

/// Writes to a file what `write` writes; an error of the file is given its name.
fn fill(
    file: &File,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
    named: impl Fn(io::Error) -> Error,
) -> Result<()> {
    let mut watched = Watched { file, error: None };
    let mut out = BufWriter::new(&mut watched);
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    drop(out.into_parts()); // Without another attempt to write what is left.
    match watched.error {
        Some(error) => Err(named(error)),
        None => written,
    }
}

/// A file that keeps the error which a write to it ended in, for whoever knows its name.
struct Watched<'f> {
    file: &'f File,
    error: Option<io::Error>,
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| {
            let kind = error.kind();
            if kind != ErrorKind::Interrupted {
                self.error = Some(error);
            }
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What a path leads to, through symbolic links, whether that is there or not.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "too many symbolic links"))
}

/// What the names of a file's temporary files begin with.
fn prefix(name: &str) -> String {
    let mut end = name.len().min(LONGEST_STEM);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}.", &name[..end])
}

/// A file under a temporary name, locked for as long as it is one: so it is told from one that a program left behind.
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    fn create(folder: &Path, prefix: &str) -> io::Result<Temporary> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{prefix}{}-{number}{SUFFIX}", std::process::id()));
            let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                // Of a program that had this one's number, or of another computer that shares the folder.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // Another program may have swept it up before it was locked. Where files cannot be locked, nobody sweeps.
            let swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !path.exists();
            if !swept {
                return Ok(Temporary { file, path });
            }
        }
    }

    /// Gives the file its name for good.
    fn become_(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.path = PathBuf::new(); // There is nothing left to remove.
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // If it cannot be removed, the next save will try again.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the temporary files that programs left behind which were ended while they saved the same file.
fn sweep(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_temporary =
            name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(SUFFIX));
        // Whoever still writes to it has locked it.
        if is_temporary && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
