//! Saving replaces a file atomically, whatever happens meanwhile.

use crate::each_case::each_case;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use todevice::serialize::{Dict, MapLocation, load, save};
use todevice::{DType, Result, Tensor};

use super::Folder;

/// The number of elements in the checkpoint, 2 MB.
const NUMBERS: usize = 500_000;

/// A checkpoint that states its generation in two places.
fn checkpoint(generation: i64) -> Result<Dict> {
    let mut checkpoint = Dict::new();
    checkpoint.insert("generation", generation);
    checkpoint.insert("weight", Tensor::full(&[NUMBERS], (generation, DType::I32))?);
    Ok(checkpoint)
}

/// The generation of a file, if both places agree.
fn generation(path: &Path) -> Result<i64> {
    let read = load(path, MapLocation::None)?;
    let generation = read.as_dict()?.at("generation")?.as_int()?;
    let weight = read.as_dict()?.at("weight")?.as_tensor()?.to_vec::<i32>()?;
    assert_eq!(weight, vec![generation as i32; NUMBERS]);
    Ok(generation)
}

/// This program again, to run `saves` with these environment variables.
#[cfg(unix)]
fn saving(wrapper: &[&str], path: &Path, first: i64, last: i64) -> Command {
    let this = env::current_exe().unwrap();
    let mut words: Vec<_> = wrapper.iter().map(std::ffi::OsStr::new).collect();
    words.push(this.as_os_str());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--exact", "checkpoints::replaced::saves", "--ignored", "--nocapture"]);
    command.env("SAVES_TO", path).env("SAVES", format!("{first} {last}"));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}

/// The child process of the tests below; on its own it saves a file a few times.
#[test]
#[ignore = "the tests beside it run it"]
fn saves() -> Result<()> {
    let folder = Folder::new("saves");
    let path = env::var_os("SAVES_TO").map_or(folder.file("model.pt"), Into::into);
    let range = env::var("SAVES").unwrap_or("1 3".to_owned());
    let (first, last) = range.split_once(' ').unwrap();
    for generation in first.parse().unwrap()..=last.parse().unwrap() {
        let checkpoint = checkpoint(generation)?;
        println!("saving");
        save(checkpoint, &path)?;
    }
    assert_eq!(generation(&path)?, last.parse::<i64>().unwrap());
    Ok(())
}

#[cfg(unix)]
#[test]
fn kill_9_at_a_hundred_moments_leaves_the_old_file_or_the_new_one() -> Result<()> {
    let folder = Folder::new("killed");
    let path = folder.file("model.pt");
    save(checkpoint(0)?, &path)?;
    let (mut last, mut leftovers, mut moved, mut random) = (0, 0, 0, 1u64);
    let start = Instant::now();
    (0..5).try_for_each(|_| save(checkpoint(0)?, &path))?;
    let time = start.elapsed() / 5;
    for _ in 0..100 {
        let mut child = saving(&[], &path, last + 1, i64::from(i32::MAX)).spawn().unwrap();
        let said = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        assert!(said.map(Result::unwrap).any(|line| line.ends_with("saving")));
        // It has started: kill it at a random moment of the next two saves.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(2 * time * (random >> 40) as u32 / (1 << 24));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = generation(&path)?;
        assert!(found >= last, "{found} after {last}");
        moved += i32::from(found > last);
        last = found;
        // Next to the file there is at most the temporary file of the killed program: each save removes its
        // predecessor's.
        let names = folder.names();
        assert!(names.len() <= 2, "{names:?}");
        leftovers += names.len() - 1;
    }
    println!(
        "100 kills, a save takes {time:?}: {moved} programs saved before they ended, {leftovers} left something"
    );
    assert!(moved > 10 && leftovers > 10, "{moved} saved, {leftovers} left something");
    save(checkpoint(last + 1)?, &path)?;
    assert_eq!(folder.names(), ["model.pt"]);
    Ok(())
}

/// The system kills the program at this byte or, if configured, rejects the rest of a write.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_grow_leaves_the_old_one_at_whatever_byte() -> Result<()> {
    let folder = Folder::new("full");
    let path = folder.file("model.pt");
    save(checkpoint(0)?, &path)?;
    let length = fs::metadata(&path)?.len();
    let tensor = length - NUMBERS as u64 * 4;
    // The start, headers, the pickle, the tensor, its end, the directory and the very last byte.
    each_case(
        [0, 1, 29, 64, 65, 200, tensor - 700, 5_000, length / 2, length - 800, length - 23, length - 1],
        |bytes| -> Result<()> {
            let limit = format!("--fsize={bytes}");
            let killed = saving(&["prlimit", &limit], &path, 1, 1).output().unwrap();
            assert!(!killed.status.success(), "{bytes}");
            assert_eq!(generation(&path)?, 0, "{bytes}");
            // This save first removes leftovers of the earlier one, then fails, and removes its own.
            let refused = ["bash", "-c", "trap '' XFSZ; exec prlimit \"$@\"", "bash", &limit];
            let refused = saving(&refused, &path, 1, 1).output().unwrap();
            let said = String::from_utf8_lossy(&refused.stdout) + String::from_utf8_lossy(&refused.stderr);
            let error = format!("Error: [Errno 27] File too large: '{}'\n", path.display());
            assert!(!refused.status.success() && said.contains(&error), "{bytes}: {said}");
            assert_eq!((generation(&path)?, folder.names()), (0, vec!["model.pt".to_owned()]), "{bytes}");
            Ok(())
        },
    );
    // With enough room, it is saved.
    let limit = format!("--fsize={length}");
    assert!(saving(&["prlimit", &limit], &path, 1, 1).output().unwrap().status.success());
    assert_eq!(generation(&path)?, 1);
    Ok(())
}

#[cfg(unix)]
#[test]
fn links_stay_links_and_permissions_stay() -> Result<()> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new("links");
    fs::create_dir(folder.file("real"))?;
    let (link, second, real) = (folder.file("last.pt"), folder.file("best.pt"), folder.file("real/model.pt"));
    symlink("real/model.pt", &link)?;
    symlink(&link, &second)?;
    for generation in 1..=2 {
        save(generation, &second)?;
        assert_eq!(load(&real, MapLocation::None)?.as_int()?, i64::from(generation));
        assert!(link.is_symlink() && second.is_symlink() && !real.is_symlink());
        let mode = fs::metadata(&real)?.permissions().mode() & 0o777;
        assert_eq!(mode & 0o600, 0o600);
        assert!(generation == 1 || mode == 0o640, "{mode:o}");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640))?;
    }
    fs::set_permissions(&real, fs::Permissions::from_mode(0o444))?;
    let error = save(3, &link).unwrap_err();
    assert_eq!(error.to_string(), format!("permission denied: '{}'", link.display()));
    assert_eq!((error.kind(), load(&real, MapLocation::None)?.as_int()?), ("PermissionError", 2));
    let circle = folder.file("circle.pt");
    symlink("circle.pt", &circle)?;
    let error = save(3, &circle).unwrap_err().to_string();
    assert_eq!(error, format!("too many symbolic links: '{}'", circle.display()));
    assert_eq!(folder.names(), ["best.pt", "circle.pt", "last.pt", "real"]);
    // Special files are written to, not replaced.
    save(1, "/dev/null")?;
    assert!(!fs::metadata("/dev/null")?.is_file());
    if cfg!(target_os = "linux") {
        let error = save(1, "/dev/full").unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            ("OSError", "[Errno 28] No space left on device: '/dev/full'")
        );
    }
    Ok(())
}

#[test]
fn what_the_system_refuses_is_said_with_the_name_of_the_file() -> Result<()> {
    let folder = Folder::new("refused");
    let (missing, nowhere) = (folder.file("it's missing.pt"), folder.file("no/where.pt"));
    let error = load(&missing, MapLocation::None).unwrap_err();
    assert_eq!(error.kind(), "FileNotFoundError");
    if cfg!(unix) {
        let message = format!("[Errno 2] No such file or directory: \"{}\"", missing.display());
        assert_eq!(error.to_string(), message);
    }
    let error = save(1, &nowhere).unwrap_err().to_string();
    assert_eq!(error, format!("Parent directory {} does not exist.", nowhere.parent().unwrap().display()));
    let error = load(&folder.0, MapLocation::None).unwrap_err();
    assert_eq!(error.kind(), "IsADirectoryError");
    assert_eq!(error.to_string(), format!("[Errno 21] Is a directory: '{}'", folder.0.display()));
    assert!(save(1, &folder.0).is_err() && save(1, "").is_err() && save(1, "..").is_err());
    // The longest possible name.
    let long = folder.file(&"ü".repeat(127));
    save(1, &long)?;
    assert_eq!(load(&long, MapLocation::None)?.as_int()?, 1);
    Ok(())
}

/// Two programs that save the same file simultaneously: each replaces it atomically, and neither treats the other's
/// temporary file as a leftover.
#[test]
fn several_may_save_the_same_file_at_once() -> Result<()> {
    let folder = Folder::new("together");
    let path = folder.file("model.pt");
    save(checkpoint(0)?, &path)?;
    std::thread::scope(|scope| {
        let savers: Vec<_> = (1..=3)
            .map(|generation| {
                let path = &path;
                scope.spawn(move || (0..10).try_for_each(|_| save(checkpoint(generation)?, path)))
            })
            .collect();
        for _ in 0..10 {
            assert!(generation(&path)? <= 3);
        }
        savers.into_iter().try_for_each(|saver| saver.join().unwrap())
    })?;
    assert_eq!(folder.names(), ["model.pt"]);
    Ok(())
}
