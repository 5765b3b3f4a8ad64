//! What a student has done, for people and for programs.

use std::io;

use exercises::EXERCISES;
use labs::Stop;
use labs::stdio::to_stdout;
use quick_xml::Writer;
use quick_xml::events::BytesText;
use serde_json::json;

use crate::show::count;
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
    pub id: &'static str,
    pub title: &'static str,
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
            Row { id: exercise.id, title: exercise.title, passed, says }
        })
        .collect();
    to_stdout(&written(&rows, format)?);
    Ok(())
}

/// Rows in a format.
pub fn written(rows: &[Row], format: Format) -> Result<String, Stop> {
    let passed = rows.iter().filter(|row| row.passed).count();
    match format {
        Format::Text => {
            let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
            let lines = rows.iter().map(|row| format!("{:width$}  {}\n", row.id, row.says));
            Ok(format!("{}\n{passed} of {} passed\n", lines.collect::<String>(), rows.len()))
        }
        Format::Json => {
            let rows: Vec<_> = rows
                .iter()
                .map(
                    |row| json!({ "id": row.id, "title": row.title, "passed": row.passed, "says": row.says }),
                )
                .collect();
            Ok(format!("{:#}\n", json!({ "passed": passed, "exercises": rows })))
        }
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            let mut write = |fields: [&str; 4]| writer.write_record(fields).map_err(failed);
            write(["id", "title", "passed", "says"])?;
            for row in rows {
                write([row.id, row.title, if row.passed { "true" } else { "false" }, &row.says])?;
            }
            let bytes = writer.into_inner().map_err(failed)?;
            String::from_utf8(bytes).map_err(failed)
        }
        Format::Junit => junit(rows).map_err(failed),
        Format::Result => {
            let tests: Vec<_> = rows
                .iter()
                .map(|row| {
                    json!({
                        "name": format!("{} {}", row.id, row.title),
                        "score": if row.passed { 1.0 } else { 0.0 },
                        "max_score": 1.0,
                        "status": if row.passed { "passed" } else { "failed" },
                        "output": row.says,
                    })
                })
                .collect();
            Ok(format!("{:#}\n", json!({ "score": passed, "tests": tests })))
        }
    }
}

/// The schema is that of Jenkins, `junit-10.xsd`: an exercise is a test case.
fn junit(rows: &[Row]) -> io::Result<String> {
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
                for row in rows {
                    let names = [("name", row.id), ("classname", "to-device"), ("time", "0")];
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
