//! The results of a class as a table, for people and for programs.

use std::collections::BTreeMap;

use labs::Stop;
use serde_json::json;

use super::work::Outcome;
use super::{Class, Graded};
use crate::report::{Format, Row, junit, of_final};
use crate::show::{count, text};
use crate::workplace::failed;

pub struct Common<'a> {
    pub id: &'static str,
    pub diagnosis: &'a str,
    pub message: &'a str,
    pub students: Vec<&'a str>,
}

impl Common<'_> {
    /// The diagnosis in words. In the final assessment, it is an objective with its chapter.
    pub fn label(&self) -> String {
        match self.diagnosis {
            "" => "file".to_owned(),
            chapter if self.id == crate::assessment::ID => format!("chapter {chapter}"),
            diagnosis => diagnosis.to_owned(),
        }
    }
}

impl Class {
    /// Mistakes by diagnosis, the most common first.
    pub fn common(&self) -> Vec<Common<'_>> {
        // The text of these diagnoses differs from file to file.
        const OF_ONE_FILE: [&str; 5] = ["", "compile", "error", "panic", "refused"];
        let mut by_diagnosis: BTreeMap<(&'static str, &str, &str), Common> = BTreeMap::new();
        for student in &self.students {
            for (column, cell) in self.columns.iter().zip(&student.cells) {
                let messages: Vec<(&str, &str)> = match &cell.done.outcome {
                    Outcome::Failed { diagnosis, message, .. } => vec![(diagnosis, message)],
                    // Grouped by chapter and open objective.
                    Outcome::Final(standing) => standing
                        .objectives
                        .iter()
                        .filter(|objective| !objective.met)
                        .map(|objective| (objective.chapter.as_str(), objective.text.as_str()))
                        .collect(),
                    _ => Vec::new(),
                };
                for (diagnosis, message) in messages {
                    let is_of_one = OF_ONE_FILE.contains(&diagnosis) || column.id == crate::assessment::ID;
                    let words = if is_of_one { message } else { "" };
                    let known = by_diagnosis.entry((column.id, diagnosis, words)).or_insert_with(|| Common {
                        id: column.id,
                        diagnosis,
                        message,
                        students: Vec::new(),
                    });
                    known.students.push(&student.name);
                }
            }
        }
        let mut common: Vec<Common> = by_diagnosis.into_values().collect();
        common.sort_by_key(|one| std::cmp::Reverse(one.students.len()));
        common
    }

    /// One line with the amount graded, the duration, and the seeds.
    pub fn summary(&self) -> String {
        let [a, b, c] = self.seeds;
        format!(
            "{}, {}, {} of them different, checked in {:.0} s with the seeds {a}, {b} and {c} (--seed {} repeats them)",
            count(self.students.len(), "student", "students"),
            count(self.files, "file", "files"),
            self.different,
            self.seconds,
            self.seed
        )
    }

    pub fn format(&self, format: Format) -> Result<String, Stop> {
        match format {
            Format::Text => Ok(self.text()),
            Format::Json => Ok(format!("{:#}\n", self.json())),
            Format::Csv => self.csv(),
            Format::Junit => {
                let all: Vec<(&str, Vec<Row>)> = self
                    .students
                    .iter()
                    .map(|student| (student.name.as_str(), self.all_rows(student)))
                    .collect();
                let suites: Vec<_> = all.iter().map(|(name, rows)| (*name, rows.iter().collect())).collect();
                junit(&suites).map_err(failed)
            }
            Format::Result => Ok(String::new()),
        }
    }

    /// A student's exercises, the final assessment, and its objectives.
    fn all_rows(&self, student: &Graded) -> Vec<Row> {
        let (mut rows, standing) = self.rows(student);
        rows.extend(standing.map(of_final).unwrap_or_default());
        rows
    }

    fn text(&self) -> String {
        let wide = self.students.iter().map(|student| student.name.chars().count()).max().unwrap_or(0).max(7);
        let short = |id: &'static str| id.split_once('-').map_or((id, ""), |(chapter, rest)| (chapter, rest));
        let cell = |student: &Graded, at: usize| match &student.cells[at].done.outcome {
            Outcome::Missing => "-".to_owned(),
            Outcome::Passed => "ok".to_owned(),
            Outcome::Failed { .. } => "no".to_owned(),
            Outcome::Final(standing) => standing.points.to_string(),
            Outcome::Unchecked(_) => "?".to_owned(),
        };
        let widths: Vec<usize> = self.columns.iter().map(|column| short(column.id).1.len().max(5)).collect();
        let mut heads = [format!("{:wide$}  passed", ""), format!("{:wide$}        ", "student")];
        for (column, width) in self.columns.iter().zip(&widths) {
            let (chapter, rest) = short(column.id);
            heads[0] += &format!("  {chapter:width$}");
            heads[1] += &format!("  {rest:width$}");
        }
        let mut told = heads.iter().map(|line| format!("{}\n", line.trim_end())).collect::<String>();
        for student in &self.students {
            // `{:wide$}` counts characters, which matches the visible width.
            let mut line =
                format!("{:wide$}  {:>2} of {:<2}", student.name, student.passed_count(), self.columns.len());
            line.pop();
            for (at, width) in widths.iter().enumerate() {
                let mut shown = cell(student, at);
                if student.cells[at].is_late {
                    shown += " late";
                }
                line += &format!(" {shown:width$} ");
            }
            told += &format!("{}\n", line.trim_end());
        }
        told += "\nok: passed, no: not passed, -: not handed in, late: marked late in the name of the file\n";
        let common = self.common();
        if !common.is_empty() {
            told += "\nMistakes, the most common first\n\n";
        }
        for one in &common {
            let diagnosis = one.label();
            told += &format!(
                "{:14}  {:24}  {}\n",
                one.id,
                diagnosis,
                count(one.students.len(), "student", "students")
            );
            told += &text(one.message, "    ");
            told += &text(&one.students.join(", "), "    ");
        }
        if !self.notes.is_empty() {
            told += "\nNotes\n\n";
            for note in &self.notes {
                told += &format!("  - {}", text(note, "    ").trim_start());
            }
        }
        told + &format!("\n{}\n", self.summary())
    }

    fn json(&self) -> serde_json::Value {
        let students: Vec<_> = self
            .students
            .iter()
            .map(|student| {
                let exercises: Vec<_> = self
                    .columns
                    .iter()
                    .zip(&student.cells)
                    .map(|(column, cell)| {
                        let mut row = json!({
                            "id": column.id, "title": column.title, "passed": cell.done.outcome.is_passed(),
                            "handed in": cell.attempts > 0, "diagnosis": cell.done.outcome.diagnosis(),
                            "says": cell.done.outcome.summary(), "late": cell.is_late, "files": cell.attempts,
                            "seconds": cell.done.seconds,
                        });
                        if let Outcome::Final(standing) = &cell.done.outcome {
                            row["final"] = standing.json();
                        }
                        if let Outcome::Failed { line: Some(line), .. } = &cell.done.outcome {
                            row["line"] = json!(line);
                        }
                        row
                    })
                    .collect();
                json!({ "name": student.name, "passed": student.passed_count(), "of": self.columns.len(), "exercises": exercises })
            })
            .collect();
        let mistakes: Vec<_> = self
            .common()
            .iter()
            .map(|one| json!({ "id": one.id, "diagnosis": one.diagnosis, "says": one.message, "students": one.students }))
            .collect();
        json!({
            "to-device-class": 1, "seed": self.seed, "seeds": self.seeds, "seconds": self.seconds, "files": self.files,
            "different": self.different, "students": students, "mistakes": mistakes, "notes": self.notes,
        })
    }

    fn csv(&self) -> Result<String, Stop> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |fields: [&str; 10]| writer.write_record(fields).map_err(failed);
        write([
            "student",
            "id",
            "title",
            "passed",
            "diagnosis",
            "says",
            "points",
            "late",
            "files",
            "seconds",
        ])?;
        for student in &self.students {
            for (column, cell) in self.columns.iter().zip(&student.cells) {
                let outcome = &cell.done.outcome;
                let points = match outcome {
                    Outcome::Final(standing) => standing.points.to_string(),
                    _ => String::new(),
                };
                write([
                    &no_formula(&student.name),
                    column.id,
                    column.title,
                    bool_text(outcome.is_passed()),
                    outcome.diagnosis().unwrap_or_default(),
                    &no_formula(&outcome.summary()),
                    &points,
                    bool_text(cell.is_late),
                    &cell.attempts.to_string(),
                    &format!("{:.3}", cell.done.seconds),
                ])?;
            }
        }
        String::from_utf8(writer.into_inner().map_err(failed)?).map_err(failed)
    }
}

fn bool_text(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}

/// Escapes text that a spreadsheet would run as a formula.
fn no_formula(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}
