//! The report of `verify --report FILE`: results, card and driver, to be sent by anyone. It does not identify the
//! sender: no path, no name of a user or a computer.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use todevice::cuda::{self, Finding, probe};
use todevice::monitor::nvml_versions;
use todevice::{Machine, Result};

use crate::files;
use crate::frame::entry::{Stop, failed};

/// A report in progress. The file is written after each lab, so an interrupted run has a report too.
pub struct Report {
    file: PathBuf,
    secrets: Secrets,
    text: String,
    /// The number of labs with the same results, and of all labs.
    same: [usize; 2],
}

impl Report {
    /// Begins a report on this machine, compared with a simulated reference.
    pub fn new(file: &Path, machine: &Machine, reference: &str) -> Result<Report> {
        let date = drawing::smi::date(SystemTime::now());
        let version = env!("CARGO_PKG_VERSION");
        let text = format!(
            "To Device {version}, verify, {date} UTC\n{}compared with: {reference}\n\n",
            machine.enter(facts)?
        );
        Ok(Report {
            file: file.to_owned(),
            secrets: Secrets::of_this_computer(),
            text,
            same: [0, 0],
        })
    }

    pub fn add(
        &mut self,
        lab: &str,
        differences: &[String],
        left_out: &[(String, String)],
    ) -> Result<(), Stop> {
        self.same[0] += usize::from(differences.is_empty());
        self.same[1] += 1;
        self.text += &format!(
            "{lab}: {}\n",
            if differences.is_empty() { "the same" } else { "differs" }
        );
        for difference in differences {
            let difference = self.secrets.left_out_of(difference);
            // Each is one line, even if the lab's text has several.
            self.text += &format!(
                "  {}\n",
                difference.split_whitespace().collect::<Vec<_>>().join(" ")
            );
        }
        for (section, why) in left_out {
            self.text += &format!("  not compared: section {section}, because {why}\n");
        }
        let [same, all] = self.same;
        let text = format!("{}result: {same} of {all} labs are the same\n", self.text);
        files::write(&self.file, text.as_bytes()).map_err(|error| {
            failed(format!("--report {}: {error}", self.file.display()))
        })
    }
}

/// The card, the driver and the libraries, by their own names.
fn facts() -> Result<String> {
    let system =
        format!("system: {} {}\n", std::env::consts::OS, std::env::consts::ARCH);
    if !cuda::is_available() {
        return Ok(format!("card: none\n{system}"));
    }
    let card = cuda::get_device_properties(0)?;
    let facts = format!(
        "card: {}, compute capability {}.{}, {} MiB, {} multiprocessors\n",
        card.name,
        card.major,
        card.minor,
        card.total_memory >> 20,
        card.multi_processor_count
    );
    if Machine::current().time_is_modelled() {
        return Ok(format!("{facts}driver: none, the card is simulated\n{system}"));
    }
    let version = |finding: &Finding| match finding {
        Finding::Found { version, .. } => version.clone(),
        Finding::Missing { .. } => "missing".to_owned(),
    };
    let probe = probe();
    Ok(format!(
        "{facts}driver: {}, CUDA {}; NVRTC {}, cuBLAS {}, cuDNN {}\n{system}",
        nvml_versions().driver.unwrap_or("unknown".to_owned()),
        version(&probe.driver),
        version(&probe.nvrtc),
        version(&probe.cublas),
        version(&probe.cudnn)
    ))
}

struct Secrets {
    /// Hidden everywhere.
    folders: Vec<String>,
    /// Hidden as whole words.
    names: Vec<String>,
}

const HIDDEN: &str = "…";

impl Secrets {
    fn of_this_computer() -> Secrets {
        let variables = |names: &[&str]| -> Vec<String> {
            names.iter().filter_map(|name| std::env::var(name).ok()).collect()
        };
        let mut folders = variables(&["HOME", "USERPROFILE", "PWD", "TMPDIR", "TEMP"]);
        let here = [std::env::current_dir(), std::env::current_exe()];
        folders
            .extend(here.into_iter().flatten().map(|path| path.display().to_string()));
        folders.push(concat!(env!("CARGO_MANIFEST_DIR"), "/").replace("/labs/", ""));
        let mut names = variables(&[
            "USER",
            "LOGNAME",
            "USERNAME",
            "HOSTNAME",
            "HOST",
            "COMPUTERNAME",
        ]);
        for file in ["/etc/hostname", "/proc/sys/kernel/hostname"] {
            names.extend(std::fs::read_to_string(file));
        }
        // A home folder has its owner's name.
        names.extend(variables(&["HOME", "USERPROFILE"]).iter().filter_map(|home| {
            Some(Path::new(home).file_name()?.to_string_lossy().into_owned())
        }));
        Secrets::new(folders, names)
    }

    fn new(folders: Vec<String>, names: Vec<String>) -> Secrets {
        let told = |words: Vec<String>| {
            let mut words: Vec<String> = words
                .iter()
                .map(|word| word.trim().to_owned())
                .filter(|word| word.len() > 1)
                .collect();
            // Longest first: one may be a prefix of another.
            words.sort_by_key(|word| std::cmp::Reverse(word.len()));
            words.dedup();
            words
        };
        Secrets { folders: told(folders), names: told(names) }
    }

    /// Removes folders, names, and other text that looks like a path.
    fn left_out_of(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for folder in &self.folders {
            text = text.replace(folder, HIDDEN);
        }
        text = without_paths(&text);
        for name in &self.names {
            text = without_word(&text, name);
        }
        text
    }
}

/// Whether a character can continue a path, which ends at white space, quotes and brackets.
fn is_of_path(letter: char) -> bool {
    !letter.is_whitespace() && !"\"'`()[]{}<>,;|".contains(letter)
}

/// Removes paths that begin at the root, at home, on a drive or on another computer. A path within a removed folder is
/// removed entirely.
fn without_paths(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|letter| !is_of_path(letter)).unwrap_or(rest.len());
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let word = &rest[..length];
        // In `file:/home/…`, `path=/home/…`, or `left:right` with two paths, any part may be a path.
        let at = word.char_indices().map(|(at, _)| at).find(|at| {
            let begins = *at == 0 || word[..*at].ends_with(['=', ':', '@']);
            begins && is_path(&word[*at..])
        });
        match at {
            Some(at) => {
                out += &word[..at];
                out += HIDDEN;
            }
            None => out += word,
        }
        rest = &rest[length..];
    }
    out
}

fn is_path(word: &str) -> bool {
    let letters: Vec<char> = word.chars().take(4).collect();
    match letters[..] {
        ['/', '/', '/', _] => true, // In a file URL.
        ['/', next, ..] => next.is_alphanumeric() || "._-~".contains(next),
        ['~', '/' | '\\', ..] | ['\\', '\\', ..] => true,
        [drive, ':', '\\' | '/', ..] => {
            drive.is_ascii_alphabetic() && !word[2..].starts_with("//")
        }
        ['…', '/' | '\\', ..] => true,
        _ => false,
    }
}

/// Removes a word with neither a letter nor a digit next to it.
fn without_word(text: &str, word: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let beside = |letter: Option<char>| {
            letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
        };
        let alone = !beside(before.chars().next_back().or(out.chars().next_back()))
            && !beside(after.chars().next());
        out += before;
        out += if alone { HIDDEN } else { word };
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let own = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
        Secrets::new(
            own(&["/home/ada", "/home/ada/to-device", r"C:\Users\Ada Lovelace", "/"]),
            own(&["ada", "engine\n", "Ada Lovelace", ""]),
        )
    }

    #[test]
    fn nothing_of_an_owner_is_left() {
        for (said, told) in [
            ("cannot open /home/ada/to-device/x.rs: no", "cannot open … no"),
            ("no file `/home/ada/.cache/kernel.bin`, really", "no file `…`, really"),
            (r"at C:\Users\Ada Lovelace\x\y.rs:3", "at …"),
            (r"at D:\other\place and \\server\share", "at … and …"),
            ("PATH=/usr/bin:/opt/cuda of ada@engine", "PATH=… of …@…"),
            ("~/.cache/to-device is full; /tmp/x too", "… is full; … too"),
            ("(file:/srv/data) and <file:///srv/data>", "(file:…) and <file:…>"),
            ("by Ada Lovelace on engine.local", "by … on ….local"),
        ] {
            let found = secrets().left_out_of(said);
            assert!(!found.contains("ada") && !found.contains("engine"), "{found}");
            assert_eq!(found, told, "{said}");
        }
    }

    #[test]
    fn what_is_no_path_and_no_name_stays() {
        for said in [
            "section 4: line: expected \"0.5000 / 2\", found \"1/2 µs/step\"",
            "the Canada engines of nevada, 3:2, and/or, a//b",
            "labs/src/lab_08.rs:12 says CUDA error: out of memory",
        ] {
            assert_eq!(secrets().left_out_of(said), said);
        }
    }
}
