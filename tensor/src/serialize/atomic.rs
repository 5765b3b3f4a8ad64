//! Atomic file replacement: the new file is written under a temporary name in the same folder, synced to disk and
//! renamed. A stopped program leaves the old or the new file, and at worst a temporary one, which the next save
//! removes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::error::SerializeError;
use crate::error::{Error, Result};
use crate::python::python_str;

const SUFFIX: &str = ".todevice-tmp";

/// The maximum bytes of the file's name in the temporary name: file systems allow 255 in total.
const LONGEST_STEM: usize = 180;

/// Replaces the file at `path` with the output of `write`. On failure the old file stays. A symbolic link and the
/// file's permissions are kept. Anything but a regular file, such as `/dev/null`, is written to directly.
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
        // Only root can set the owner, so failure is ignored.
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
    // The new name must reach the disk, too. Systems without folder handles do this automatically.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(named)?;
    Ok(())
}

/// Formats a system error like Python: `[Errno 28] No space left on device: 'model.pt'`.
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

fn fill(
    file: &File,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
    named: impl Fn(io::Error) -> Error,
) -> Result<()> {
    let mut watched = Watched { file, error: None };
    let mut out = BufWriter::new(&mut watched);
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    drop(out.into_parts()); // Do not retry the rest.
    match watched.error {
        Some(error) => Err(named(error)),
        None => written,
    }
}

/// A file that remembers a write error, so that the caller can add the file's name.
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

fn prefix(name: &str) -> String {
    let mut end = name.len().min(LONGEST_STEM);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}.", &name[..end])
}

/// A temporary file, locked while in use: the lock distinguishes it from leftovers.
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
                // A leftover with the same process id, or the file of another computer that shares the folder.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // Another program may have removed it before the lock. Without file locks, no program removes files.
            let swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !path.exists();
            if !swept {
                return Ok(Temporary { file, path });
            }
        }
    }

    fn rename_to(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.path = PathBuf::new(); // Nothing to remove.
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes leftovers of interrupted saves of the same file.
fn sweep(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_temporary =
            name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(SUFFIX));
        // Its lock is held while a program writes it.
        if is_temporary && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
