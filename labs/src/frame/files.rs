//! Reads the reader's files up to a maximum size, and never leaves one half written.
//!
//! A new file is written under a temporary name in the same folder, then renamed. So a full disk or a killed program
//! leaves the old file, or none. Programs lock their temporary files, so the next program that writes the same file can
//! remove those of killed programs.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use drawing::printable::decoded;

/// Reads a file up to a size. Other things that a path may name, such as `/dev/zero` or a pipe, may have no end.
pub fn bytes(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    regular(file)?;
    let mut bytes = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("larger than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// Rejects a pipe, a folder or a device.
fn regular(file: &Path) -> io::Result<()> {
    match fs::metadata(file)?.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("not a regular file")),
    }
}

pub fn text(file: &Path, most: u64) -> io::Result<String> {
    let bytes = bytes(file, most)?;
    decoded(&bytes).map(str::to_owned).map_err(io::Error::other)
}

/// Writes a file unless it exists. Returns whether it wrote.
pub fn create(file: &Path, bytes: &[u8]) -> io::Result<bool> {
    let target = followed(file)?;
    if fs::symlink_metadata(&target).is_ok() {
        return Ok(false);
    }
    let temporary = Temporary::filled(&target, bytes)?;
    match fs::hard_link(&temporary.path, &target) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        // Some file systems have no hard links.
        Err(_) => create_in_place(&target, bytes),
    }
}

fn create_in_place(file: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut new = match File::create_new(file) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        new => new?,
    };
    match new.write_all(bytes).and_then(|()| new.sync_all()) {
        Ok(()) => Ok(true),
        Err(error) => {
            fs::remove_file(file)?;
            Err(error)
        }
    }
}

/// Replaces a file atomically: it has either the old bytes or the new ones. Keeps symbolic links and permissions.
/// Writes directly to non-files such as `/dev/stdout`.
pub fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = followed(file)?;
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return OpenOptions::new().write(true).open(&target)?.write_all(bytes);
    }
    let temporary = Temporary::filled(&target, bytes)?;
    if let Some(old) = old {
        temporary.file.set_permissions(old.permissions())?;
    }
    temporary.rename(&target)
}

/// As [`replace`], for a file that can be regenerated: in a folder where no file can be created, it is overwritten.
pub fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    match replace(file, bytes) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            fs::write(file, bytes)
        }
        done => done,
    }
}

/// Gives a file's contents a second name, the first unused one of `names`.
pub fn keep(file: &Path, names: impl Iterator<Item = PathBuf>) -> io::Result<PathBuf> {
    let target = followed(file)?;
    regular(&target)?;
    for name in names {
        let is_new = match fs::hard_link(&target, &name) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            // On another file system, or without hard links.
            Err(_) => create(&name, &bytes(&target, u64::MAX - 1)?)?,
        };
        if is_new {
            return Ok(name);
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Locks a file for one program, from reading to writing. Writing replaces the file, so the lock is on a second file
/// next to it, which the program that made it removes.
pub struct Lock {
    /// Dropping the lock closes the file, which unlocks it.
    _held: File,
    path: PathBuf,
}

impl Lock {
    /// Waits for another program that holds the file, but only for a while: it may have been stopped.
    pub fn of(file: &Path) -> io::Result<Lock> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let path = beside(&followed(file)?, "lock")?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let held = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)?;
            match held.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    thread::sleep(Duration::from_millis(2))
                }
                // The previous holder has removed it, and another program may have recreated it.
                Ok(()) if !is_at(&held, &path) => {}
                // If the file system has no locks, continue without one.
                Ok(()) | Err(TryLockError::Error(_)) => {
                    return Ok(Lock { _held: held, path });
                }
            }
        }
        Err(io::Error::other("another program has held it for 10 seconds"))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a path still leads to an open file.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let both = file.metadata().and_then(|file| Ok((file, fs::metadata(path)?)));
        both.is_ok_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Follows symbolic links. The file may not exist.
pub fn followed(file: &Path) -> io::Result<PathBuf> {
    let mut path = file.to_owned();
    for _ in 0..40 {
        let folder = path.parent().unwrap_or(Path::new(""));
        match fs::read_link(&path) {
            Ok(to) => path = folder.join(to),
            Err(_) if path != file && !is_there(folder) => {
                let path = path.display();
                return Err(io::Error::other(format!(
                    "a link to {path}, whose folder does not exist"
                )));
            }
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Whether a folder exists. The empty path is the current one.
fn is_there(folder: &Path) -> bool {
    folder.as_os_str().is_empty() || folder.exists()
}

/// The path of a hidden file for another: `.progress.json.lock`.
fn beside(file: &Path, ending: &str) -> io::Result<PathBuf> {
    let Some(name) = file.file_name() else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{ending}"));
    Ok(file.with_file_name(hidden))
}

/// A file with a temporary name, locked until it gets its final name.
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    /// A temporary file next to `target`, with these bytes on disk.
    fn filled(target: &Path, bytes: &[u8]) -> io::Result<Temporary> {
        let mut temporary = Temporary::new(target)?;
        temporary.file.write_all(bytes)?;
        temporary.file.sync_all()?;
        Ok(temporary)
    }

    fn new(target: &Path) -> io::Result<Temporary> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        sweep(target);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path =
                beside(target, &format!("{}-{number}{TEMPORARY}", std::process::id()))?;
            let file = match File::create_new(&path) {
                // From another computer that shares the folder.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // Another program may have removed it before it was locked.
            let is_swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock))
                || !path.exists();
            if !is_swept {
                return Ok(Temporary { file, path });
            }
        }
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.path = PathBuf::new();
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

const TEMPORARY: &str = ".new";

/// Removes temporary files that no program holds any more.
fn sweep(target: &Path) {
    let (Some(folder), Ok(prefix)) = (target.parent(), beside(target, "")) else {
        return;
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Some(prefix) =
        prefix.file_name().map(|name| name.to_string_lossy().into_owned())
    else {
        return;
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_temporary = name
            .to_str()
            .is_some_and(|name| name.starts_with(&prefix) && name.ends_with(TEMPORARY));
        if is_temporary
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir()
                .join(format!("labs-files-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            Folder(folder)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn at_once<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
        let barrier = Barrier::new(count);
        let run = |number| {
            barrier.wait();
            work(number)
        };
        thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> =
                (0..count).map(|number| scope.spawn(move || run(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn of_many_who_create_a_file_one_does() {
        let folder = Folder::new("create");
        for round in 0..20 {
            let file = folder.0.join(format!("{round}"));
            let created =
                at_once(4, |number| create(&file, &[number as u8; 5000]).unwrap());
            let by = created.iter().position(|created| *created).unwrap();
            assert_eq!(created.iter().filter(|created| **created).count(), 1);
            assert_eq!(fs::read(&file).unwrap(), [by as u8; 5000]);
        }
        assert_eq!(folder.names().len(), 20, "no temporary file is left");
    }

    #[test]
    fn one_holds_a_file_and_the_others_wait() {
        let folder = Folder::new("lock");
        let file = folder.0.join("count");
        fs::write(&file, "0").unwrap();
        at_once(8, |_| {
            for _ in 0..20 {
                let _lock = Lock::of(&file).unwrap();
                let count: u32 = text(&file, 100).unwrap().parse().unwrap();
                replace(&file, (count + 1).to_string().as_bytes()).unwrap();
            }
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), "160");
        assert_eq!(folder.names(), ["count"]);
    }

    #[test]
    fn several_who_keep_a_file_at_once_lose_none() {
        let folder = Folder::new("keep");
        let file = folder.0.join("mine");
        fs::write(&file, "mine").unwrap();
        let kept = at_once(4, |_| {
            let kept = keep(
                &file,
                (1..).map(|number| folder.0.join(format!("mine-{number}"))),
            )
            .unwrap();
            replace(&file, b"new").unwrap();
            kept
        });
        assert_eq!(folder.names(), ["mine", "mine-1", "mine-2", "mine-3", "mine-4"]);
        assert!(kept.iter().any(|kept| fs::read(kept).unwrap() == b"mine"));
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn what_a_killed_program_left_is_removed_and_what_another_writes_stays() {
        let folder = Folder::new("sweep");
        let file = folder.0.join("progress.json");
        fs::write(folder.0.join(".progress.json.1-0.new"), "half").unwrap();
        fs::write(folder.0.join(".other.json.1-0.new"), "half").unwrap();
        let written = Temporary::new(&file).unwrap();
        replace(&file, b"whole").unwrap();
        let name = written.path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(folder.names(), [".other.json.1-0.new", &name, "progress.json"]);
    }

    #[test]
    fn only_files_of_bounded_size_are_read() {
        let folder = Folder::new("read");
        let file = folder.0.join("large");
        fs::write(&file, "12345").unwrap();
        assert_eq!(text(&file, 5).unwrap(), "12345");
        assert_eq!(text(&file, 4).unwrap_err().to_string(), "larger than 4 bytes");
        assert_eq!(text(&folder.0, 4).unwrap_err().to_string(), "not a regular file");
        #[cfg(unix)]
        assert_eq!(
            text(Path::new("/dev/zero"), 4).unwrap_err().to_string(),
            "not a regular file"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_no_folder_and_a_circle_of_links_are_named() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new("dangling");
        let link = folder.0.join("link");
        symlink("no/such/file", &link).unwrap();
        symlink("circle", folder.0.join("circle")).unwrap();
        for refused in [create(&link, b"new").err(), replace(&link, b"new").err()] {
            let said = refused.unwrap().to_string();
            assert!(
                said.ends_with("no/such/file, whose folder does not exist"),
                "{said}"
            );
        }
        let said = replace(&folder.0.join("circle"), b"new").unwrap_err().to_string();
        assert_eq!(said, "too many symbolic links");
        assert_eq!(folder.names(), ["circle", "link"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_neither_read_nor_kept() {
        let folder = Folder::new("pipe");
        let pipe = folder.0.join("pipe");
        assert!(
            std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success()
        );
        let kept = keep(&pipe, [folder.0.join("kept")].into_iter());
        for refused in [text(&pipe, 10).err(), kept.err()] {
            assert_eq!(refused.unwrap().to_string(), "not a regular file");
        }
        assert_eq!(folder.names(), ["pipe"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = Folder::new("link");
        let (link, target) = (folder.0.join("link"), folder.0.join("target"));
        symlink("target", &link).unwrap();
        assert!(create(&link, b"one").unwrap() && !create(&link, b"two").unwrap());
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        // Keeps the bytes, not the link.
        let kept = keep(&link, [folder.0.join("kept")].into_iter()).unwrap();
        replace(&link, b"three").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"three");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read(kept).unwrap(), b"one");
    }
}
