//! Sets of named figures, and files that override some of them: `my-card.profile` for `--gpu sim:my-card.profile`, as
//! `calibrate` writes one, and `my-computer.host` for `--host my-computer.host`.
//!
//! A file begins with `like = ` and the built-in set whose figures it keeps. Each further line is `name = value`, in
//! the units of the built-in sets: times in microseconds, rates in billions per second. The text after a `#` is the
//! source of the figure; if it begins with "assumed", the figure is a guess.

use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::Mutex;

use crate::base::figure::{Figure, Status};
use crate::base::lock::lock;

/// The figures of something that is modelled: a card or a host.
pub trait FigureSet: Clone + PartialEq + Send + Sync + 'static {
    /// The kind of set, for messages: "profile".
    const KIND: &'static str;

    /// The extension of its files.
    const ENDING: &'static str;

    /// The names of its figures, in display order.
    const NAMES: &'static [&'static str];

    /// The built-in sets, the default first.
    fn built_in() -> &'static [&'static Self];

    /// The sets read from files. They live as long as the program, like the built-in ones.
    fn loaded() -> &'static Mutex<Vec<&'static Self>>;

    /// The name that users give: a word, or the path of a file.
    fn key(&self) -> &'static str;

    /// The same set under another key.
    fn with_key(self, key: &'static str) -> Self;

    /// The figure of this name.
    fn figure(&self, name: &str) -> Option<&Figure>;

    /// The figure of this name, mutably.
    fn figure_mut(&mut self, name: &str) -> Option<&mut Figure>;

    /// Whether a figure may be 0: the thing does not exist, or takes no time.
    fn may_be_zero(name: &str) -> bool;

    /// Sets an entry that is not a figure, such as a name; `None` if there is no such entry.
    fn set_word(&mut self, name: &str, value: &'static str) -> Option<Result<(), String>>;
}

/// Defines the lookup of figures by name: three items of a [`FigureSet`].
macro_rules! figures_by_name {
    ($($name:ident)*) => {
        const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

        fn figure(&self, name: &str) -> Option<&$crate::base::figure::Figure> {
            match name {
                $(stringify!($name) => Some(&self.$name),)*
                _ => None,
            }
        }

        fn figure_mut(&mut self, name: &str) -> Option<&mut $crate::base::figure::Figure> {
            match name {
                $(stringify!($name) => Some(&mut self.$name),)*
                _ => None,
            }
        }
    };
}
pub(crate) use figures_by_name;

/// The figures of a set, with their names.
pub fn figures<S: FigureSet>(set: &S) -> impl Iterator<Item = (&'static str, &Figure)> {
    S::NAMES.iter().filter_map(|name| Some((*name, set.figure(name)?)))
}

/// Finds a set that is built in or already loaded.
pub fn find<S: FigureSet>(key: &str) -> Option<&'static S> {
    let loaded = lock(S::loaded());
    S::built_in().iter().chain(loaded.iter().rev()).find(|set| set.key() == key).copied()
}

/// Finds a built-in set, or loads a file.
pub fn find_or_load<S: FigureSet>(key: &str) -> Result<&'static S, String> {
    match S::built_in().iter().find(|set| set.key() == key) {
        Some(set) => Ok(set),
        None if key.ends_with(S::ENDING) => load(key),
        None => {
            Err(format!("unknown {} '{key}', expected one of {}, or FILE{}", S::KIND, keys::<S>(), S::ENDING))
        }
    }
}

/// The keys of the built-in sets.
fn keys<S: FigureSet>() -> String {
    S::built_in().iter().map(|set| set.key()).collect::<Vec<_>>().join(", ")
}

/// Loads a file. An error is a single line that names the file.
fn load<S: FigureSet>(path: &str) -> Result<&'static S, String> {
    let text = read(path).map_err(|error| format!("{path}: {error}"))?;
    let set = parse::<S>(path, &text).map_err(|error| format!("{path}: {error}"))?;
    if let Some(known) = find::<S>(path).filter(|known| **known == set) {
        return Ok(known);
    }
    let set: &'static S = Box::leak(Box::new(set));
    lock(S::loaded()).push(set);
    Ok(set)
}

/// The maximum size of a file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Reads the text of a file. Other things that a path may name, such as `/dev/zero`, may never end.
fn read(path: &str) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("larger than {LARGEST} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

fn parse<S: FigureSet>(path: &str, text: &str) -> Result<S, String> {
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let (content, source) = line.split_once('#').unwrap_or((line, ""));
        (!content.trim().is_empty()).then_some((index + 1, content.trim(), source.trim()))
    });
    let mut lines = lines.map(|(number, line, source)| match line.split_once('=') {
        Some((name, value)) => Ok((number, name.trim(), value.trim(), source)),
        None => Err(format!("line {number} is not of the form name = value")),
    });

    let base = match lines.next().transpose()? {
        Some((_, "like", key, _)) => {
            let base = S::built_in().iter().find(|set| set.key() == key);
            base.ok_or_else(|| format!("like is one of {}", keys::<S>()))?
        }
        _ => return Err(format!("it begins with like = and one of {}", keys::<S>())),
    };
    let mut set = S::clone(base).with_key(leak(path));
    let mut seen = vec!["like"];
    for line in lines {
        let (number, name, value, source) = line?;
        if seen.contains(&name) {
            return Err(format!("line {number}: {name} is there twice"));
        }
        seen.push(name);
        if let Some(taken) = set.set_word(name, leak(value)) {
            taken.map_err(|wrong| format!("line {number}: {wrong}"))?;
            continue;
        }
        let unknown = || format!("line {number}: '{name}' is no figure; they are {}", S::NAMES.join(", "));
        let figure = set.figure_mut(name).ok_or_else(unknown)?;
        let least = if S::may_be_zero(name) { 0.0 } else { f64::MIN_POSITIVE };
        let value = value.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= least);
        let value = value.ok_or_else(|| format!("line {number}: {name} is no positive number"))?;
        let status = if source.starts_with("assumed") { Status::Guess } else { Status::Measured };
        let source = if source.is_empty() { "a file of the user's" } else { leak(source) };
        *figure = Figure { value, unit: figure.unit, source, status };
    }
    Ok(set)
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::host::host_profile::HostProfile;

    /// Every figure of a kind of set can be overridden by name, and each has a source.
    pub(crate) fn every_figure_can_be_named<S: FigureSet + std::fmt::Debug>() {
        for set in S::built_in() {
            assert_eq!(format!("{set:?}").matches("Figure {").count(), S::NAMES.len(), "{}", set.key());
            assert!(figures(*set).all(|(_, figure)| !figure.source.is_empty()), "{}", set.key());
            assert!(find::<S>(set.key()).is_some_and(|found| found == *set));
        }
        let base = S::built_in()[0];
        for name in S::NAMES {
            let file = format!("like = {}\n{name} = 123.5 # seen\n", base.key());
            let set = parse::<S>("a.file", &file).unwrap();
            let figure = set.figure(name).unwrap();
            let expected = (123.5, base.figure(name).unwrap().unit, "seen", Status::Measured);
            assert_eq!((figure.value, figure.unit, figure.source, figure.status), expected, "{name}");
            let others = figures(&set).filter(|(other, _)| other != name);
            assert!(others.eq(figures(base).filter(|(other, _)| other != name)), "{name} alone");
        }
    }

    #[test]
    fn what_a_file_names_replaces_the_figures_of_another_set() {
        let file =
            "like = pytorch # the only one\n\nlaunch = 7.5 # µs\nnode = 0\nstep=2 # assumed to be little\n";
        let host: HostProfile = parse("my.host", file).unwrap();
        let pytorch = find::<HostProfile>("pytorch").unwrap();
        assert_eq!((host.key, host.launch.value, host.launch.source), ("my.host", 7.5, "µs"));
        assert_eq!((host.node.value, host.node.source), (0.0, "a file of the user's"));
        assert_eq!((host.launch.status, host.step.status), (Status::Measured, Status::Guess));
        assert_eq!(host.dispatch, pytorch.dispatch);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = [
            ("", "it begins with like = and one of laptop, pytorch"),
            ("launch = 5", "it begins with like = and one of laptop, pytorch"),
            ("like = desktop", "like is one of laptop, pytorch"),
            ("like = laptop\n\nfast", "line 3 is not of the form name = value"),
            ("like = laptop\nlaunch = 5\nlaunch = 6", "line 3: launch is there twice"),
            ("like = laptop\nlike = laptop", "line 2: like is there twice"),
            ("like = laptop\nlaunch = fast", "line 2: launch is no positive number"),
            ("like = laptop\nlaunch = 0", "line 2: launch is no positive number"),
            ("like = laptop\nlaunch = -3", "line 2: launch is no positive number"),
            ("like = laptop\nlaunch = inf", "line 2: launch is no positive number"),
            ("like = laptop\nnode = -1", "line 2: node is no positive number"),
        ];
        for (text, message) in wrong {
            assert_eq!(parse::<HostProfile>("a.host", text).unwrap_err(), message, "{text}");
        }
        let unknown = parse::<HostProfile>("a.host", "like = laptop\nwarp = 9").unwrap_err();
        assert!(unknown.starts_with("line 2: 'warp' is no figure; they are launch, "), "{unknown}");
    }

    #[test]
    fn only_a_file_of_bounded_size_is_read() {
        let refused = |path: &str| find_or_load::<HostProfile>(path).unwrap_err();
        let folder = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
        let file = |name: &str| folder.join(name).display().to_string();
        // A folder stands for everything that is not a regular file; reading an endless device would never return.
        fs::create_dir_all(file("folder.host")).unwrap();
        fs::write(file("large.host"), vec![b'#'; LARGEST as usize + 1]).unwrap();
        fs::write(file("utf-16.host"), b"\xff\xfel\0i\0k\0e\0").unwrap();
        let refusals = ["folder.host", "large.host", "utf-16.host"].map(|name| refused(&file(name)));
        fs::remove_dir_all(&folder).unwrap();
        assert!(refusals[0].ends_with("folder.host: not a regular file"), "{refusals:?}");
        assert!(refusals[1].ends_with("large.host: larger than 1048576 bytes"), "{refusals:?}");
        assert!(refusals[2].ends_with("utf-16.host: not UTF-8 text"), "{refusals:?}");
    }

    #[test]
    fn what_is_neither_built_in_nor_a_file_is_refused_with_what_there_is() {
        let message = |key: &str| find_or_load::<HostProfile>(key).unwrap_err();
        assert_eq!(message("fast"), "unknown host 'fast', expected one of laptop, pytorch, or FILE.host");
        assert!(message("none-there.host").starts_with("none-there.host: "));
        assert_eq!(find_or_load::<HostProfile>("laptop").unwrap().key, "laptop");
    }
}
