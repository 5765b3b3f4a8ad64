//! The path of reading as Markdown. Lists, because a screen reader reads them well and a narrow screen wraps them.

use crate::document::Page;
use crate::path::{Path, Step, minutes as sum};

/// How long a chapter takes.
pub fn minutes(path: &Path, page: &Page) -> Result<String, String> {
    let steps = path.steps_of(page.path)?;
    let optional = |step: &Step| if step.optional { " (optional)" } else { "" };
    let parts: Vec<String> = steps
        .iter()
        .filter(|step| !step.part().is_empty())
        .map(|step| format!("part {} {}{}", step.part(), step.minutes(), optional(step)))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    Ok(format!("<p class=\"minutes\">About {} minutes{parts}</p>\n\n", sum(steps)))
}

/// The whole path: `up` leads to the folder of the chapters.
pub fn path(path: &Path, up: &str) -> String {
    let mut markdown = String::from("<div class=\"path\">\n\n");
    for group in &path.group {
        markdown += &format!("### {}\n\n<p class=\"minutes\">{}</p>\n\n", group.name, together(&group.step));
        for step in &group.step {
            markdown += &format!("- {}. {}\n", line(step, up), step.then);
        }
        markdown += "\n";
    }
    markdown += "### Beside the path\n\n";
    for beside in &path.beside {
        markdown += &format!("- {}: {}. {}\n", line(&beside.step, up), beside.when, beside.step.then);
    }
    let steps = path.group.iter().flat_map(|group| &group.step);
    markdown += &format!("\n<p class=\"minutes\">The whole path: {}</p>\n\n</div>\n\n", together(steps));
    markdown
}

/// The lessons of a class.
pub fn sessions(path: &Path, up: &str) -> String {
    let mut markdown = String::from("<div class=\"sessions\">\n\n");
    let mut taught = Vec::new();
    for session in &path.session {
        let session = session.get_ref();
        let steps = path.steps_in(session);
        markdown += &format!("1. **{}**: {}\n", session.name, hours(sum(steps.iter().copied())));
        for step in &steps {
            markdown += &format!("   - {}\n", line(step, up));
        }
        if session.quiz {
            markdown += "   - Then the questions of these chapters\n";
        }
        taught.extend(steps.iter().map(|step| step.name()));
    }
    let left = path.steps().filter(|step| !taught.contains(&step.name()));
    let left: Vec<String> = left.map(|step| format!("{} {}", step.name(), step.title)).collect();
    if !left.is_empty() {
        markdown += &format!("\nNot in class: {}.\n", left.join("; "));
    }
    markdown + "\n</div>\n\n"
}

/// A step without what it is good for.
fn line(step: &Step, up: &str) -> String {
    let title = format!("{} {}", step.name(), step.title);
    let (title, to_come) = match step.page() {
        Some(page) => (format!("[{title}]({up}{page})"), ""),
        None => (title, ", to come"),
    };
    let optional = if step.optional { ", optional" } else { "" };
    format!("{title}, {}{optional}{to_come}", plural(step.minutes().into(), "minute"))
}

/// `2 hours 15 minutes, and 25 minutes more with what is optional`
fn together<'a>(steps: impl IntoIterator<Item = &'a Step>) -> String {
    let (optional, needed): (Vec<&Step>, Vec<&Step>) = steps.into_iter().partition(|step| step.optional);
    match (sum(needed), sum(optional)) {
        (needed, 0) => hours(needed),
        (0, optional) => format!("{}, all of it optional", hours(optional)),
        (needed, optional) => {
            format!("{}, and {} more with what is optional", hours(needed), hours(optional))
        }
    }
}

/// `1 hour 30 minutes`
fn hours(minutes: u32) -> String {
    let parts = [(minutes / 60, "hour"), (minutes % 60, "minute")];
    let parts = parts.iter().filter(|part| part.0 > 0).map(|part| plural(part.0, part.1));
    parts.collect::<Vec<_>>().join(" ")
}

fn plural(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
