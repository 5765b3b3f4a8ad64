//! The student's folder: the files and the progress.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use exercises::library::Library;
use exercises::{Exercise, printable};
use labs::progress::Record;
use labs::{Stop, files, stdio::to_stderr};

use crate::own::all;
use crate::show::name;

pub struct Workplace {
    pub folder: PathBuf,
    pub record: Record,
    pub scratch: PathBuf,
}

/// The root of the checkout that this program was built from.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// A one-line error of the user's, with the exit code.
pub fn wrong(message: impl std::fmt::Display) -> Stop {
    labs::wrong(message.to_string())
}

/// As [`wrong`], for other errors. A compiler's failure may have several lines.
pub fn failed(message: impl std::fmt::Display) -> Stop {
    Stop { message: format!("error: {}\n", printable::lines(&message.to_string())), exit_code: 1 }
}

impl Workplace {
    /// As [`Workplace::open`], for a command that only reads: creates no folder.
    pub fn open_existing(folder: Option<PathBuf>) -> Result<Workplace, Stop> {
        if let Some(folder) = &folder
            && !folder.is_dir()
        {
            return Err(wrong(format!("--work {}: there is no such folder", name(folder))));
        }
        Workplace::open(folder)
    }

    /// Opens the folder of `--work`. Default: the checkout's.
    pub fn open(folder: Option<PathBuf>) -> Result<Workplace, Stop> {
        let folder = folder.unwrap_or_else(|| root().join("exercises"));
        fs::create_dir_all(&folder).map_err(|error| wrong(format!("--work {}: {error}", name(&folder))))?;
        let folder = fs::canonicalize(&folder).unwrap_or(folder);
        let progress = folder.join("progress.json");
        let record =
            Record::read(&progress).map_err(|error| wrong(format!("{}: {error}", name(&progress))))?;
        let scratch = scratch(&folder);
        tidy(&scratch);
        Ok(Workplace { scratch, folder, record })
    }

    pub fn progress(&self) -> PathBuf {
        self.folder.join("progress.json")
    }

    pub fn file(&self, exercise: &Exercise) -> PathBuf {
        self.folder.join(exercise.file())
    }

    /// Returns the student's file, and whether it is new. Creates a missing file from the skeleton, but does not
    /// overwrite one that an editor writes at the same moment.
    pub fn start_file(&self, exercise: &Exercise) -> Result<(PathBuf, bool), Stop> {
        let file = self.file(exercise);
        match files::create(&file, exercise.skeleton().as_bytes()) {
            Ok(is_new) => Ok((file, is_new)),
            Err(error) => Err(cannot_be_written(&file, &error, "")),
        }
    }

    /// Resets a student's file to the skeleton. Returns the name of the backup.
    pub fn reset_file(&self, exercise: &Exercise) -> Result<PathBuf, Stop> {
        self.replace_with_backup(&self.file(exercise), exercise.skeleton().as_bytes())
    }

    /// Rewrites a file, and keeps the old one under another name. Returns that name.
    pub fn replace_with_backup(&self, file: &Path, bytes: &[u8]) -> Result<PathBuf, Stop> {
        let unchanged = |error| cannot_be_written(file, &error, "; your work is unchanged, in that file");
        let of_file = file.file_name().unwrap_or_default().to_string_lossy();
        let names = (1..).map(|number| self.folder.join(format!("{of_file}.yours-{number}")));
        let kept = files::keep(file, names).map_err(unchanged)?;
        if let Err(error) = files::replace(file, bytes) {
            let _ = fs::remove_file(&kept); // The same file under another name, or a copy.
            return Err(unchanged(error));
        }
        Ok(kept)
    }

    /// Stores progress. Prints a warning if that fails, without losing anything else.
    pub fn update(&mut self, change: impl Fn(&mut Record)) {
        let file = self.progress();
        match Record::change(&file, &change) {
            Ok(record) => self.record = record,
            Err(error) => {
                change(&mut self.record);
                to_stderr(&format!("warning: your progress was not saved: {}: {error}\n", name(&file)));
            }
        }
    }

    pub fn refresh(&mut self) {
        if let Ok(record) = Record::read(&self.progress()) {
            self.record = record;
        }
    }

    pub fn library(&self) -> Result<Library, Stop> {
        Library::find(&self.scratch).map(crate::own::with_hosts).map_err(failed)
    }

    pub fn next(&self) -> Option<&'static Exercise> {
        all().into_iter().find(|exercise| !self.record.has_passed(exercise.id))
    }

    /// The next unpassed exercise after this one, or the first one.
    pub fn after(&self, exercise: &Exercise) -> Option<&'static Exercise> {
        let mut after = all().into_iter().skip_while(|other| other.id != exercise.id).skip(1);
        let next = after.find(|other| !self.record.has_passed(other.id)).or_else(|| self.next());
        next.filter(|next| next.id != exercise.id)
    }

    /// The student's exercise: by its id, the end of its id, or its chapter number, for the first unpassed exercise of
    /// the chapter. Without a name, the first unpassed exercise.
    pub fn named(&self, name: Option<&str>) -> Result<&'static Exercise, Stop> {
        let Some(name) = name else {
            return Ok(self.next().unwrap_or(all()[0]));
        };
        let all = all_named(name)?;
        Ok(all.iter().copied().find(|exercise| !self.record.has_passed(exercise.id)).unwrap_or(all[0]))
    }
}

fn cannot_be_written(file: &Path, error: &io::Error, but: &str) -> Stop {
    failed(format!("{}: {error}{but}; --work DIR chooses another folder", name(file)))
}

/// All exercises of a name: one, or those of a chapter.
pub fn all_named(name: &str) -> Result<Vec<&'static Exercise>, Stop> {
    let name = name.trim_end_matches(".rs");
    if name == crate::assessment::ID {
        return Err(wrong(
            "`final` is the final assessment, not an exercise: cargo course final begins it; it has no hints and no solution",
        ));
    }
    if let Some(exercise) = crate::own::find(name) {
        return Ok(vec![exercise]);
    }
    let of_chapter = |exercise: &&Exercise| {
        name.parse::<u32>().is_ok_and(|number| exercise.chapter().parse() == Ok(number))
    };
    let ends = |exercise: &&Exercise| exercise.id.get(3..) == Some(name);
    let found: Vec<_> = all().into_iter().filter(|exercise| of_chapter(exercise) || ends(exercise)).collect();
    if found.is_empty() {
        let near = all().into_iter().find(|exercise| exercise.id.contains(name) && !name.is_empty());
        let tip = near.map_or("`cargo course list` shows all".to_owned(), |near| {
            format!("did you mean `{}`?", near.id)
        });
        return Err(wrong(format!("there is no exercise `{name}`; {tip}")));
    }
    Ok(found)
}

/// A scratch folder next to this program, or another writable one.
fn scratch(folder: &Path) -> PathBuf {
    let beside =
        std::env::current_exe().ok().and_then(|program| Some(program.parent()?.parent()?.join("course")));
    let other = || {
        let name = format!(
            "to-device-{:016x}",
            questions::hash(folder.as_os_str().as_encoded_bytes().iter().copied())
        );
        std::env::temp_dir().join(name)
    };
    beside.filter(|folder| fs::create_dir_all(folder).is_ok() && is_writable(folder)).unwrap_or_else(other)
}

fn is_writable(folder: &Path) -> bool {
    let file = folder.join(format!("{}.new", std::process::id()));
    fs::write(&file, "").and_then(|()| fs::remove_file(&file)).is_ok()
}

/// Removes programs, reports and folders of interrupted checks that are older than any running check.
fn tidy(scratch: &Path) {
    const LONG_AGO: Duration = Duration::from_secs(3600);
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let is_old =
            metadata.modified().is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed > LONG_AGO));
        // Keep the cached library paths.
        let stays =
            ["library.json", "probe.rs", "libprobe.rmeta"].iter().any(|name| entry.file_name() == *name);
        if is_old && !stays {
            let _ = match metadata.is_dir() {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            };
        }
    }
}
