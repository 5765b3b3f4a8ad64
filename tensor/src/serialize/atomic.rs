//! Atomic file replacement: a file is replaced entirely or not at all.
//!
//! The new file is written next to the old one under a temporary name, synced to disk, and then renamed to the old
//! name, which is atomic in the file system. Whenever the program is stopped, either the old or the new file
//! exists, and at worst a temporary file beside it, which the next save removes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::error::SerializeError;
use crate::error::{Error, Result};
use crate::python::python_str;

/// The end of temporary files' names.
const SUFFIX: &str = ".todevice-tmp";

/// The maximum number of bytes of a file's name that its temporary file's name repeats: file systems allow 255 bytes.
const LONGEST_STEM: usize = 180;

/// Replaces the file at `path` with the output of `write`. If that fails, or the program is stopped, the old file stays.
///
/// A symbolic link stays, and its target is replaced. The file's permissions stay too, and replacing a read-only
/// file is an error. Anything but a regular file, such as `/dev/null`, is written to directly.
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
        // Only root can set the owner. A failure is ignored.
        #[cfg(unix)]
        let _ = {
            use std::os::unix::fs::{MetadataExt, fchown};
            fchown(&temporary.file, Some(old.uid()), Some(old.gid()))
        };
        temporary.file.set_permissions(old.permissions()).map_err(named)?;
    }
    fill(&temporary.file, write, named)?;
    temporary.file.sync_all().map_err(named)?;
    temporary.rename_to(&target).map_err(named)?;
    // The new name must reach the disk too. Where a folder cannot be opened, this happens automatically.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(named)?;
    Ok(())
}

/// A system error with the file's name, formatted like Python's: `[Errno 28] No space left on device: 'model.pt'`.
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

/// Writes the output of `write` to a file, and adds the file's name to its errors.
fn fill(
    file: &File,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
    named: impl Fn(io::Error) -> Error,
) -> Result<()> {
    let mut watched = Watched { file, error: None };
    let mut out = BufWriter::new(&mut watched);
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    drop(out.into_parts()); // Without trying again to write the rest.
    match watched.error {
        Some(error) => Err(named(error)),
        None => written,
    }
}

/// A file that keeps the error of a failed write, so that a caller that knows the file's name can report it.
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

/// Follows symbolic links, whether or not their target exists.
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

/// The start of the names of a file's temporary files.
fn prefix(name: &str) -> String {
    let mut end = name.len().min(LONGEST_STEM);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}.", &name[..end])
}

/// A temporary file, locked while it is in use. The lock distinguishes it from files left behind by stopped programs.
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
                // Left by a program that had the same process id, or by another computer that shares the folder.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // Another program may have removed it before it was locked. Where files cannot be locked, no program
            // removes them.
            let swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !path.exists();
            if !swept {
                return Ok(Temporary { file, path });
            }
        }
    }

    /// Renames the file to its final name.
    fn rename_to(mut self, target: &Path) -> io::Result<()> {
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

/// Removes temporary files left behind by programs that were stopped while saving the same file.
fn sweep(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_temporary =
            name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(SUFFIX));
        // A program that is still writing the file holds its lock.
        if is_temporary && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
