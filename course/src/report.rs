//! What a student has done, for people and for programs.

use std::io;

use exercises::EXERCISES;
use labs::Stop;
use labs::stdio::to_stdout;
use quick_xml::Writer;
use quick_xml::events::BytesText;
use serde_json::json;

use crate::show::{count, text};
use crate::standing::{Objective, Standing};
use crate::workplace::{Workplace, failed};

/// The formats of a report.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
    Csv,
    Junit,
    /// `result.json`, as Gradescope and Classroom 50 take it
    Result,
}

/// An exercise in a report.
pub struct Row {
    pub id: String,
    pub title: String,
    pub passed: bool,
    /// What is said of it.
    pub says: String,
}

/// A report of what was kept of a student.
pub fn report(place: &Workplace, format: Format) -> Result<(), Stop> {
    let rows: Vec<Row> = EXERCISES
        .iter()
        .map(|exercise| {
            let passed = place.record.passed(exercise.id);
            let checks = place.record.count(exercise.id, "checks");
            let says = match (passed, checks) {
                (false, 0) => "not begun".to_owned(),
                (_, checks) => {
                    let state = if passed { "passed" } else { "not yet" };
                    format!("{state}, {}", count(checks as usize, "check", "checks"))
                }
            };
            Row { id: exercise.id.to_owned(), title: exercise.title.to_owned(), passed, says }
        })
        .collect();
    let standing = Standing::read(place)?;
    to_stdout(&written(&rows, standing.as_ref(), format)?);
    Ok(())
}

/// Rows in a format, and what came of the final assessment, if it was begun.
pub fn written(rows: &[Row], standing: Option<&Standing>, format: Format) -> Result<String, Stop> {
    let passed = rows.iter().filter(|row| row.passed).count();
    let of_final = standing.map(of_final).unwrap_or_default();
    match format {
        Format::Text => {
            let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
            let lines = rows.iter().map(|row| format!("{:width$}  {}\n", row.id, row.says));
            let last = standing.map(objectives).unwrap_or_default();
            Ok(format!("{}\n{passed} of {} passed\n{last}", lines.collect::<String>(), rows.len()))
        }
        Format::Json => {
            let rows: Vec<_> = rows
                .iter()
                .map(
                    |row| json!({ "id": row.id, "title": row.title, "passed": row.passed, "says": row.says }),
                )
                .collect();
            let mut report = json!({ "passed": passed, "exercises": rows });
            if let Some(standing) = standing {
                report["final"] = standing.json();
            }
            Ok(format!("{report:#}\n"))
        }
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            let mut write = |fields: [&str; 4]| writer.write_record(fields).map_err(failed);
            write(["id", "title", "passed", "says"])?;
            for row in rows.iter().chain(&of_final) {
                write([&row.id, &row.title, if row.passed { "true" } else { "false" }, &row.says])?;
            }
            let bytes = writer.into_inner().map_err(failed)?;
            String::from_utf8(bytes).map_err(failed)
        }
        Format::Junit => junit(rows, &of_final).map_err(failed),
        Format::Result => {
            let test = |row: &Row, score: f64, output: &str| {
                json!({
                    "name": format!("{} {}", row.id, row.title),
                    "score": score,
                    "max_score": 1.0,
                    "status": if row.passed { "passed" } else { "failed" },
                    "output": output,
                })
            };
            let score = |row: &Row| if row.passed { 1.0 } else { 0.0 };
            let mut tests: Vec<_> = rows.iter().map(|row| test(row, score(row), &row.says)).collect();
            let mut sum = json!(passed);
            if let (Some(standing), Some(row)) = (standing, of_final.first()) {
                // As much as an exercise, and a part of it for a part of the points.
                let share = standing.points as f64 / 100.0;
                sum = json!(passed as f64 + share);
                tests.push(test(row, share, &objectives(standing)));
            }
            Ok(format!("{:#}\n", json!({ "score": sum, "tests": tests })))
        }
    }
}

/// The final assessment, and each of its objectives, as rows.
fn of_final(standing: &Standing) -> Vec<Row> {
    let title = crate::assessment::TITLE.to_owned();
    let mut rows =
        vec![Row { id: "final".to_owned(), title, passed: standing.passed, says: standing.says() }];
    rows.extend(standing.objectives.iter().enumerate().map(|(at, objective)| Row {
        id: format!("final-{:02}", at + 1),
        title: format!("Chapter {}: {}", objective.chapter, objective.text),
        passed: objective.met,
        says: met_or_not(objective),
    }));
    rows
}

fn met_or_not(objective: &Objective) -> String {
    match objective.met {
        true => "met".to_owned(),
        false => format!("open; read again: {}", objective.sections.join("; ")),
    }
}

/// The same as text: what is met, then what is open, with what to read again.
fn objectives(standing: &Standing) -> String {
    let state = if standing.passed { "passed" } else { "not yet" };
    let mut told = format!("\nThe final assessment: {state}, {}\n", standing.says());
    for (heading, met) in [("Objectives met", true), ("Objectives still open", false)] {
        let of: Vec<&Objective> = standing.objectives.iter().filter(|one| one.met == met).collect();
        if of.is_empty() {
            continue;
        }
        told += &format!("\n{heading}\n\n");
        for objective in of {
            let line = format!("Chapter {}: {}", objective.chapter, objective.text);
            told += &format!("  - {}", text(&line, "    ").trim_start());
            for section in &objective.sections {
                told += &text(&format!("read again: {section}"), "      ");
            }
        }
    }
    told
}

/// The schema is that of Jenkins, `junit-10.xsd`: an exercise is a test case.
fn junit(exercises: &[Row], of_final: &[Row]) -> io::Result<String> {
    let rows: Vec<&Row> = exercises.iter().chain(of_final).collect();
    let count = rows.len().to_string();
    let failures = rows.iter().filter(|row| !row.passed).count().to_string();
    let counts = [("tests", count.as_str()), ("failures", &failures), ("errors", "0")];
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 4);
    xml.create_element("testsuites")
        .with_attribute(("name", "to-device"))
        .with_attributes(counts)
        .write_inner_content(|xml| {
            let suite = xml.create_element("testsuite").with_attribute(("name", "exercises"));
            suite.with_attributes(counts).write_inner_content(|xml| {
                for row in &rows {
                    let names = [("name", row.id.as_str()), ("classname", "to-device"), ("time", "0")];
                    let case = xml.create_element("testcase").with_attributes(names);
                    if row.passed {
                        case.write_empty()?;
                        continue;
                    }
                    case.write_inner_content(|xml| {
                        let failure =
                            xml.create_element("failure").with_attribute(("message", row.says.as_str()));
                        failure.write_text_content(BytesText::new(&row.says))?;
                        Ok(())
                    })?;
                }
                Ok(())
            })?;
            Ok(())
        })?;
    let body = String::from_utf8_lossy(&xml.into_inner()).into_owned();
    Ok(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n"))
}
