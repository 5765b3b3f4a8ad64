//! Sets of named figures, and files that override some of them: `my-card.profile` for `--gpu sim:my-card.profile`, as
//! `calibrate` writes one, and `my-computer.host` for `--host my-computer.host`.
//!
//! A file begins with `like = ` and the built-in set whose figures it keeps. Each further line is `name = value`, in
//! the units of the built-in sets: times in microseconds, rates in billions per second. The text after a `#` is the
//! source of the figure; if it begins with "assumed", the figure is a guess.

use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::figure::{Figure, Status};

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
#[macro_export]
macro_rules! figures_by_name {
    ($($name:ident)*) => {
        const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

        fn figure(&self, name: &str) -> Option<&$crate::figure::Figure> {
            match name {
                $(stringify!($name) => Some(&self.$name),)*
                _ => None,
            }
        }

        fn figure_mut(&mut self, name: &str) -> Option<&mut $crate::figure::Figure> {
            match name {
                $(stringify!($name) => Some(&mut self.$name),)*
                _ => None,
            }
        }
    };
}
pub use crate::figures_by_name;

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
pub const LARGEST: u64 = 1 << 20;

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

/// Locks the loaded sets. A panic while they were locked has left a complete list.
fn lock<S>(sets: &'static Mutex<Vec<&'static S>>) -> MutexGuard<'static, Vec<&'static S>> {
    sets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the text of a file. `path` becomes the key of the set.
pub fn parse<S: FigureSet>(path: &str, text: &str) -> Result<S, String> {
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let (content, source) = line.split_once('#').unwrap_or((line, ""));
        (!content.trim().is_empty()).then_some((index + 1, content.trim(), source.trim()))
    });
    let mut lines = lines.map(|(number, line, source)| match line.split_once('=') {
        Some((name, value)) => Ok((number, name.trim(), value.trim(), source)),
        None => Err(format!("line {number} must have the form name = value")),
    });

    let base = match lines.next().transpose()? {
        Some((_, "like", key, _)) => {
            let base = S::built_in().iter().find(|set| set.key() == key);
            base.ok_or_else(|| format!("like must be one of {}", keys::<S>()))?
        }
        _ => return Err(format!("it must begin with like = and one of {}", keys::<S>())),
    };
    let mut set = S::clone(base).with_key(leak(path));
    let mut seen = vec!["like"];
    for line in lines {
        let (number, name, value, source) = line?;
        if seen.contains(&name) {
            return Err(format!("line {number}: {name} occurs twice"));
        }
        seen.push(name);
        if let Some(taken) = set.set_word(name, leak(value)) {
            taken.map_err(|wrong| format!("line {number}: {wrong}"))?;
            continue;
        }
        let unknown =
            || format!("line {number}: unknown figure '{name}', expected one of {}", S::NAMES.join(", "));
        let figure = set.figure_mut(name).ok_or_else(unknown)?;
        let least = if S::may_be_zero(name) { 0.0 } else { f64::MIN_POSITIVE };
        let value = value.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= least);
        let value = value.ok_or_else(|| format!("line {number}: {name} must be a positive number"))?;
        let status = if source.starts_with("assumed") { Status::Guess } else { Status::Measured };
        let source = if source.is_empty() { "a file of the user's" } else { leak(source) };
        *figure = Figure { value, unit: figure.unit, source, status };
    }
    Ok(set)
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}
