//! The results of a class as one page: each student's progress, and common mistakes. It needs no network and no script.

use labs::render_html::escape;

use super::work::Outcome;
use super::{Class, Graded};
use crate::show::count;

const STYLE: &str = "
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; padding: 0 1rem; max-width: 80rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border: 1px solid #8886; text-align: left; vertical-align: top; }
thead th { vertical-align: bottom; }
tbody th { position: sticky; left: 0; background: Canvas; white-space: nowrap; font-weight: 600; }
.ok { background: #1a7f3730; } .no { background: #c2410c30; } .none { opacity: .6; }
.no small { display: block; }
.bar { display: inline-block; height: .8rem; background: #c2410c; vertical-align: middle; }
.part { display: inline-block; height: .8rem; background: #1a7f37; vertical-align: middle; }
details { margin: .25rem 0; }
@media print { body { max-width: none; margin: 0; } details > * { display: revert; } .no { border-width: 2px; } }
";

pub fn page(class: &Class) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>A class of {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>A class of {}</h1>\n<p>{}.</p>\n",
        class.students.len(),
        class.students.len(),
        escape(&class.summary())
    );
    html += &student_table(class);
    html += &mistakes(class);
    html += "<h2>Each student</h2>\n";
    for (number, student) in class.students.iter().enumerate() {
        html += &student_details(class, number, student);
    }
    if !class.notes.is_empty() {
        html += "<h2>Notes</h2>\n<ul>\n";
        for note in &class.notes {
            html += &format!("<li>{}</li>\n", escape(note));
        }
        html += "</ul>\n";
    }
    html + "</main>\n</body>\n</html>\n"
}

fn student_table(class: &Class) -> String {
    let mut html = "<h2>Progress of each student</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Progress of each student\">\n<table>\n<thead>\n<tr><th scope=\"col\">Student</th><th scope=\"col\">Passed</th>".to_owned();
    for column in &class.columns {
        html += &format!("<th scope=\"col\" title=\"{}\">{}</th>", escape(column.title), escape(column.id));
    }
    html += "</tr>\n</thead>\n<tbody>\n";
    for (number, student) in class.students.iter().enumerate() {
        let (passed, all) = (student.passed_count(), class.columns.len());
        html += &format!(
            "<tr><th scope=\"row\"><a href=\"#student-{number}\">{}</a></th><td>{passed} of {all}<br>{}</td>",
            escape(&student.name),
            bar("part", passed, all)
        );
        for cell in &student.cells {
            let late = if cell.is_late { " <small>late</small>" } else { "" };
            html += &match &cell.done.outcome {
                Outcome::Missing => "<td class=\"none\">not there</td>".to_owned(),
                Outcome::Passed => format!("<td class=\"ok\">passed{late}</td>"),
                Outcome::Final(standing) => {
                    let class = if standing.passed { "ok" } else { "no" };
                    format!("<td class=\"{class}\">{} points{late}</td>", standing.points)
                }
                Outcome::Failed { diagnosis, message, .. } => {
                    let shown = if diagnosis.is_empty() { message } else { diagnosis };
                    format!(
                        "<td class=\"no\" title=\"{}\">not yet <small>{}</small>{late}</td>",
                        escape(message),
                        escape(shown)
                    )
                }
                Outcome::Unchecked(why) => {
                    format!("<td class=\"none\" title=\"{}\">not checked</td>", escape(why))
                }
            };
        }
        html += "</tr>\n";
    }
    html += "</tbody>\n<tfoot>\n<tr><th scope=\"row\">Passed</th><td></td>";
    for at in 0..class.columns.len() {
        let passed =
            class.students.iter().filter(|student| student.cells[at].done.outcome.is_passed()).count();
        html += &format!("<td>{passed} of {}</td>", class.students.len());
    }
    html + "</tr>\n</tfoot>\n</table>\n</div>\n"
}

fn mistakes(class: &Class) -> String {
    let common = class.common();
    let mut html = "<h2>Mistakes, the most common first</h2>\n".to_owned();
    if common.is_empty() {
        return html + "<p>None: everything handed in is right.</p>\n";
    }
    let most = common.iter().map(|one| one.students.len()).max().unwrap_or(1);
    html += "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Mistakes\">\n<table>\n<thead>\n<tr><th scope=\"col\">Exercise</th><th scope=\"col\">Diagnosis</th><th scope=\"col\">Students</th><th scope=\"col\">Message, and its students</th></tr>\n</thead>\n<tbody>\n";
    for one in &common {
        let diagnosis = one.label();
        html += &format!(
            "<tr><td>{}</td><td><code>{}</code></td><td>{}<br>{}</td><td>{}<br><small>{}</small></td></tr>\n",
            escape(one.id),
            escape(&diagnosis),
            one.students.len(),
            bar("bar", one.students.len(), most),
            escape(one.message),
            escape(&one.students.join(", "))
        );
    }
    html + "</tbody>\n</table>\n</div>\n"
}

fn student_details(class: &Class, number: usize, student: &Graded) -> String {
    let mut html = format!(
        "<details id=\"student-{number}\" open>\n<summary>{}: {} of {}</summary>\n<ul>\n",
        escape(&student.name),
        student.passed_count(),
        class.columns.len()
    );
    for (column, cell) in class.columns.iter().zip(&student.cells) {
        let line = match &cell.done.outcome {
            Outcome::Missing => continue,
            Outcome::Failed { line: Some(line), .. } => format!(" (line {line})"),
            _ => String::new(),
        };
        let several = match cell.attempts {
            0 | 1 => String::new(),
            several => format!(", {}", count(several, "file", "files")),
        };
        let late = if cell.is_late { ", late" } else { "" };
        html += &format!(
            "<li>{} {}: {}{line}; {:.1} s{several}{late}</li>\n",
            escape(column.id),
            escape(column.title),
            escape(&cell.done.outcome.summary()),
            cell.done.seconds
        );
    }
    html + "</ul>\n</details>\n"
}

/// A bar of `part` out of `all`. The full length is six characters.
fn bar(class: &str, part: usize, all: usize) -> String {
    let width = 6.0 * part as f64 / all.max(1) as f64;
    format!("<span class=\"{class}\" style=\"width:{width:.2}rem\"></span>")
}
