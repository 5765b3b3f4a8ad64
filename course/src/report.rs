//! Reports of a student's results, for people and for programs.

use std::io;

use labs::Stop;
use labs::stdio::to_stdout;
use quick_xml::Writer;
use quick_xml::events::BytesText;
use serde_json::json;

use crate::own::all;
use crate::show::{count, text};
use crate::standing::{Objective, Standing};
use crate::workplace::{Workplace, failed};

/// The formats of a report.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people
    Text,
    /// One JSON object
    Json,
    /// A table of comma-separated values
    Csv,
    /// XML in JUnit's format
    Junit,
    /// A `result.json` for Gradescope or Classroom 50
    Result,
}

pub struct Row {
    pub id: String,
    pub title: String,
    pub passed: bool,
    pub message: String,
    pub seconds: f64,
}

pub fn report(place: &Workplace, format: Format) -> Result<(), Stop> {
    let rows: Vec<Row> = all()
        .into_iter()
        .map(|exercise| {
            let passed = place.record.has_passed(exercise.id);
            let checks = place.record.count(exercise.id, "checks");
            let message = match (passed, checks) {
                (false, 0) => "not begun".to_owned(),
                (_, checks) => {
                    let state = if passed { "passed" } else { "not yet" };
                    format!("{state}, {}", count(checks as usize, "check", "checks"))
                }
            };
            Row {
                id: exercise.id.to_owned(),
                title: exercise.title.to_owned(),
                passed,
                message,
                seconds: 0.0,
            }
        })
        .collect();
    let standing = Standing::read(place)?;
    to_stdout(&format_rows(&rows, standing.as_ref(), format)?);
    Ok(())
}

/// Formats rows, and the result of the final assessment if it was started.
pub fn format_rows(rows: &[Row], standing: Option<&Standing>, format: Format) -> Result<String, Stop> {
    let passed = rows.iter().filter(|row| row.passed).count();
    let of_final = standing.map(of_final).unwrap_or_default();
    match format {
        Format::Text => {
            let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
            let lines = rows.iter().map(|row| format!("{:width$}  {}\n", row.id, row.message));
            let last = standing.map(objectives).unwrap_or_default();
            Ok(format!("{}\n{passed} of {} passed\n{last}", lines.collect::<String>(), rows.len()))
        }
        Format::Json => {
            let rows: Vec<_> = rows
                .iter()
                .map(
                    |row| json!({ "id": row.id, "title": row.title, "passed": row.passed, "says": row.message }),
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
                write([&row.id, &row.title, if row.passed { "true" } else { "false" }, &row.message])?;
            }
            let bytes = writer.into_inner().map_err(failed)?;
            String::from_utf8(bytes).map_err(failed)
        }
        Format::Junit => {
            let rows: Vec<&Row> = rows.iter().chain(&of_final).collect();
            junit(&[("exercises", rows)]).map_err(failed)
        }
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
            let mut tests: Vec<_> = rows.iter().map(|row| test(row, score(row), &row.message)).collect();
            let mut sum = json!(passed);
            if let (Some(standing), Some(row)) = (standing, of_final.first()) {
                // Weighted as one exercise, in proportion to the points.
                let share = standing.points as f64 / 100.0;
                sum = json!(passed as f64 + share);
                tests.push(test(row, share, &objectives(standing)));
            }
            Ok(format!("{:#}\n", json!({ "score": sum, "tests": tests })))
        }
    }
}

/// The final assessment and each of its objectives, as rows.
pub fn of_final(standing: &Standing) -> Vec<Row> {
    let title = crate::assessment::TITLE.to_owned();
    let mut rows = vec![Row {
        id: "final".to_owned(),
        title,
        passed: standing.passed,
        message: standing.summary(),
        seconds: 0.0,
    }];
    rows.extend(standing.objectives.iter().enumerate().map(|(at, objective)| Row {
        id: format!("final-{:02}", at + 1),
        title: format!("Chapter {}: {}", objective.chapter, objective.text),
        passed: objective.met,
        message: met_label(objective),
        seconds: 0.0,
    }));
    rows
}

fn met_label(objective: &Objective) -> String {
    match objective.met {
        true => "met".to_owned(),
        false => format!("open; read again: {}", objective.sections.join("; ")),
    }
}

/// The same as text: the met objectives, then the open ones with sections to reread.
fn objectives(standing: &Standing) -> String {
    let state = if standing.passed { "passed" } else { "not yet" };
    let mut output = format!("\nThe final assessment: {state}, {}\n", standing.summary());
    for (heading, met) in [("Objectives met", true), ("Objectives still open", false)] {
        let of: Vec<&Objective> = standing.objectives.iter().filter(|one| one.met == met).collect();
        if of.is_empty() {
            continue;
        }
        output += &format!("\n{heading}\n\n");
        for objective in of {
            let line = format!("Chapter {}: {}", objective.chapter, objective.text);
            output += &format!("  - {}", text(&line, "    ").trim_start());
            for section in &objective.sections {
                output += &text(&format!("read again: {section}"), "      ");
            }
        }
    }
    output
}

/// JUnit XML in Jenkins's schema, `junit-10.xsd`. An exercise is a test case in the suite of its student.
pub fn junit(suites: &[(&str, Vec<&Row>)]) -> io::Result<String> {
    let counts = |rows: &[&Row]| {
        let failures = rows.iter().filter(|row| !row.passed).count();
        let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
        [
            ("tests", rows.len().to_string()),
            ("failures", failures.to_string()),
            ("errors", "0".to_owned()),
            ("time", format!("{seconds:.3}")),
        ]
    };
    fn attributes<'a>(pairs: &'a [(&'static str, String)]) -> impl Iterator<Item = (&'a str, &'a str)> {
        pairs.iter().map(|(name, value)| (*name, value.as_str()))
    }
    let all: Vec<&Row> = suites.iter().flat_map(|(_, rows)| rows.iter().copied()).collect();
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 4);
    let of_all = counts(&all);
    xml.create_element("testsuites")
        .with_attribute(("name", "to-device"))
        .with_attributes(attributes(&of_all))
        .write_inner_content(|xml| {
            for (name, rows) in suites {
                let of_suite = counts(rows);
                let suite = xml.create_element("testsuite").with_attribute(("name", *name));
                suite.with_attributes(attributes(&of_suite)).write_inner_content(|xml| {
                    for row in rows {
                        let seconds = format!("{:.3}", row.seconds);
                        let names = [
                            ("name", row.id.as_str()),
                            ("classname", "to-device"),
                            ("time", seconds.as_str()),
                        ];
                        let case = xml.create_element("testcase").with_attributes(names);
                        if row.passed {
                            case.write_empty()?;
                            continue;
                        }
                        case.write_inner_content(|xml| {
                            let failure = xml
                                .create_element("failure")
                                .with_attribute(("message", row.message.as_str()));
                            failure.write_text_content(BytesText::new(&row.message))?;
                            Ok(())
                        })?;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })?;
    let body = String::from_utf8_lossy(&xml.into_inner()).into_owned();
    Ok(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n"))
}
