//! Parses the name of a submitted file: the student, the exercise, and the attempt.
//!
//! Learning platforms rename files: `Anna Müller_12345_assignsubmission_file_04-accumulate (1).rs` (Moodle),
//! `muelleranna_LATE_12345_678_04-accumulate-1.rs` (Canvas),
//! `Homework_amueller_attempt_2026-11-28-10-00-00_04-accumulate.rs` (Blackboard). Browsers add ` (1)`, editors `.txt`,
//! and students `_v2`.

use exercises::assessment;
use unicode_normalization::UnicodeNormalization;

use crate::assessment::ID as FINAL;

#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The id of an exercise, or `final`.
    pub id: &'static str,
    pub student: Option<Student>,
    /// Whether the student's name precedes the exercise, as on platforms. Any text may follow the exercise.
    pub is_before: bool,
    pub attempt: Attempt,
    pub is_late: bool,
}

/// A student's name, and the number assigned by a platform.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Student {
    pub name: String,
    pub number: Option<String>,
}

impl Student {
    /// Ignores case and spaces.
    pub fn key(&self) -> String {
        self.name.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Attempts are ordered by the time in the name, then by the number in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Attempt {
    pub time: String,
    pub number: u64,
}

/// Words that are never part of a student's name.
const NOT_A_NAME: [&str; 42] = [
    "abgabe",
    "and",
    "assignment",
    "assignments",
    "assignsubmission",
    "attempt",
    "attempts",
    "attachment",
    "attachments",
    "copia",
    "copie",
    "copy",
    "corrected",
    "de",
    "draft",
    "exercise",
    "exercises",
    "file",
    "files",
    "final",
    "fixed",
    "homework",
    "kopie",
    "lösung",
    "loesung",
    "my",
    "neu",
    "new",
    "of",
    "onlinetext",
    "resubmission",
    "rs",
    "solution",
    "submission",
    "submissions",
    "todevice",
    "txt",
    "v",
    "version",
    "versuch",
    "von",
    "übung",
];

const LATE: [&str; 6] = ["late", "verspätet", "verspaetet", "spät", "retard", "tarde"];

/// Parses a file name. Returns `None` for another kind of file, such as `.pdf`, and for a file without an exercise.
pub fn read(file: &str, ids: &[&'static str]) -> Option<Named> {
    let letters: Vec<char> = file.nfc().collect();
    let lower: Vec<char> =
        letters.iter().map(|letter| letter.to_lowercase().next().unwrap_or(*letter)).collect();
    let found = (0..lower.len()).rev().find_map(|at| {
        let ends = ids.iter().filter_map(|id| Some((end_of(id, &lower, at)?, *id)));
        ends.max().map(|(end, id)| (at, end, id))
    });
    // "final" is a common word, so exercises take precedence.
    let found = found.or_else(|| {
        let of_final =
            (0..lower.len()).rev().find_map(|at| Some((at, end_of_word(FINAL, &lower, at)?, FINAL)));
        of_final.filter(|(_, end, _)| words(&lower[*end..]).iter().all(|word| is_noise(word)))
    });
    let (begin, end, id) = found?;
    let text = |letters: &[char]| letters.iter().collect::<String>();
    let after = without_extension(&text(&letters[end..]))?;
    let mut named =
        Named { id, student: None, is_before: false, attempt: Attempt::default(), is_late: false };
    let mut name_after = Vec::new();
    let mut number_after = None;
    for word in words(&after.chars().collect::<Vec<_>>()) {
        let lower = word.to_lowercase();
        match lower.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>() {
            Ok(number) if lower.chars().filter(char::is_ascii_digit).count() > 4 => {
                number_after = Some(number.to_string())
            }
            Ok(number) if is_noise(&lower) => named.attempt.number = number,
            _ if LATE.contains(&lower.as_str()) => named.is_late = true,
            _ if is_noise(&lower) => {}
            _ => name_after.push(word),
        }
    }
    let before = person(&text(&letters[..begin]), &mut named);
    named.is_before = before.is_some();
    named.student = before.or_else(|| {
        let name = name_after.join(" ");
        (!name.is_empty()).then_some(Student { name, number: number_after })
    });
    Some(named)
}

/// The student that a folder name, or the start of a file name, refers to.
pub fn of_folder(folder: &str) -> Option<Student> {
    let mut nothing =
        Named { id: "", student: None, is_before: false, attempt: Attempt::default(), is_late: false };
    person(&folder.nfc().collect::<String>(), &mut nothing)
}

/// Whether a name contains an exercise, or names a set of exercises, such as `Chapter 04`.
pub fn is_assignment(folder: &str, ids: &[&'static str]) -> bool {
    let words = words(&folder.nfc().collect::<Vec<_>>());
    let is_set = |word: &String| {
        ["assignment", "chapter", "exercise", "homework", "session", "week", "übung", "kapitel"]
            .contains(&word.to_lowercase().as_str())
    };
    read(&format!("{folder}.rs"), ids).is_some_and(|named| named.student.is_none())
        || words.iter().any(is_set)
}

/// Parses a student's name and number, and sets the file's time and whether it is late.
fn person(text: &str, named: &mut Named) -> Option<Student> {
    let mut student = Student::default();
    let mut names: Vec<String> = Vec::new();
    for segment in text.split('_').flat_map(|segment| segment.split(" - ")) {
        let segment = segment.trim_matches(|letter: char| letter.is_whitespace() || "-.,".contains(letter));
        let lower = segment.to_lowercase();
        let digits = segment.chars().filter(char::is_ascii_digit).count();
        let letters = segment.chars().filter(|letter| letter.is_alphabetic()).count();
        if segment.is_empty() {
            continue;
        } else if lower == "attempt" {
            // Of the names before `attempt`, the last is the student, and the others are the assignment.
            names = names.pop().into_iter().collect();
        } else if letters == 0 && segment.starts_with("20") && segment.matches('-').count() >= 2 {
            named.attempt.time = segment.to_owned();
        } else if letters == 0 && digits > 0 {
            student.number.get_or_insert(segment.to_owned());
        } else if digits >= 5 && segment.contains(',') {
            // `Nov 28, 2026 1000 AM`
        } else if LATE.contains(&lower.as_str()) {
            named.is_late = true;
        } else if !words(&segment.chars().collect::<Vec<_>>()).iter().all(|word| is_noise(word)) {
            names.push(segment.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    student.name = names.join(" ");
    if student.name.is_empty() {
        student.name = student.number.clone()?;
    }
    Some(student)
}

fn words(letters: &[char]) -> Vec<String> {
    let words = letters.split(|letter| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word.iter().collect()).collect()
}

/// Whether a word is not part of a name: a number, possibly after a word such as `v`, or a word of the list.
fn is_noise(word: &str) -> bool {
    let lower = word.to_lowercase();
    let bare = lower.trim_end_matches(|letter: char| letter.is_ascii_digit());
    bare.is_empty() || NOT_A_NAME.contains(&bare) || LATE.contains(&bare)
}

/// The name without `.rs`, `.txt`, and a browser's number; `None` for another kind of file.
fn without_extension(after: &str) -> Option<String> {
    let lower = after.to_lowercase();
    let is_code = [".rs", ".txt"].iter().any(|extension| lower.contains(extension));
    // Another extension follows, as in `.rs.pdf` or `.rs.yours-1`.
    let last = lower
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .trim_end_matches(|letter: char| " ()0123456789".contains(letter));
    (is_code && ["rs", "txt"].contains(&last)).then(|| {
        let cut = lower.find(".rs").or_else(|| lower.find(".txt")).filter(|at| after.is_char_boundary(*at));
        match cut {
            Some(at) => format!("{} {}", &after[..at], &after[at..]),
            None => after.to_owned(),
        }
    })
}

/// The end of an exercise id that starts here, with any punctuation between its words.
fn end_of(id: &str, lower: &[char], begin: usize) -> Option<usize> {
    if begin > 0 && lower[begin - 1].is_alphanumeric() {
        return None;
    }
    let mut at = begin;
    for (place, word) in id.split('-').enumerate() {
        if place > 0 {
            while lower.get(at).is_some_and(|sign| "-_ .–".contains(*sign)) {
                at += 1;
            }
        }
        // The chapter number may have lost its leading zero.
        let short = if place == 0 { word.trim_start_matches('0') } else { word };
        let is_here = |word: &str| {
            word.chars().enumerate().all(|(ahead, letter)| lower.get(at + ahead) == Some(&letter))
        };
        let word = [word, short].into_iter().find(|word| !word.is_empty() && is_here(word))?;
        at += word.chars().count();
    }
    (!lower.get(at).is_some_and(|letter| letter.is_alphabetic())).then_some(at)
}

fn end_of_word(word: &str, lower: &[char], begin: usize) -> Option<usize> {
    let end = begin + word.chars().count();
    let is_here = lower.get(begin..end).is_some_and(|here| here.iter().copied().eq(word.chars()));
    let alone = |at: Option<&char>| !at.is_some_and(|letter| letter.is_alphanumeric());
    (is_here && alone(begin.checked_sub(1).and_then(|at| lower.get(at))) && alone(lower.get(end)))
        .then_some(end)
}

/// The file name used for grading: `final.rs`, or that of the exercise.
pub fn file_of(id: &str) -> String {
    if id == FINAL { assessment::FILE.to_owned() } else { format!("{id}.rs") }
}
