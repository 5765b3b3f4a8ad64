//! The plan as Markdown lists, which screen readers read well and narrow screens wrap.

use crate::plan::{Chapter, Plan};

/// All chapters. `up` is the path to the chapters folder.
pub fn plan(plan: &Plan, up: &str) -> String {
    let mut markdown = String::from("<div class=\"plan\">\n\n");
    for chapter in &plan.chapter {
        markdown += &format!("- {}. {}\n", line(chapter, up), chapter.then);
    }
    let appendix = &plan.appendix;
    markdown += &format!("\nThe last chapter of the book is {}. {}\n", line(appendix, up), appendix.then);
    let together = total_time(&plan.chapter);
    markdown + &format!("\n<p class=\"minutes\">All chapters: {together}</p>\n\n</div>\n\n")
}

pub fn session_page(number: usize) -> String {
    format!("teaching/session-{number}.md")
}

/// The sessions of a class, each with its minutes in class and at home.
pub fn sessions(plan: &Plan, up: &str) -> String {
    let longest = plan.session.iter().map(|session| plan.minutes_of(session.get_ref()).0).max().unwrap_or(0);
    let mut markdown = format!(
        "<div class=\"sessions\">\n\n{}, the longest of {longest} minutes:\n\n",
        plural(plan.session.len() as u32, "session")
    );
    let mut taught = Vec::new();
    for (number, session) in (1..).zip(&plan.session) {
        let session = session.get_ref();
        let (in_class, at_home) = plan.minutes_of(session);
        markdown += &format!(
            "1. **[{}]({up}{})**: {} in class{}\n",
            session.name,
            session_page(number),
            plural(in_class, "minute"),
            match at_home {
                0 => String::new(),
                at_home => format!(", {} at home", hours(at_home)),
            }
        );
        for chapter in plan.chapters_before(session) {
            markdown += &format!("   - at home, before: {}\n", link(chapter, up));
        }
        for chapter in plan.chapters_in(session) {
            let work = chapter.work();
            let minutes = match chapter.page() {
                None => ", not written yet".to_owned(),
                Some(_) => format!(", {}", plural(work.in_class().minutes_if_any(), "minute")),
            };
            markdown += &format!("   - {}{minutes}\n", link(chapter, up));
        }
        for step in &session.step {
            markdown += &format!("   - {}, {}\n", step.title, plural(step.minutes, "minute"));
        }
        let chapters = plan.chapters_before(session).into_iter().chain(plan.chapters_in(session));
        taught.extend(chapters.map(|chapter| chapter.number()));
    }
    let left = plan.chapter.iter().filter(|chapter| !taught.contains(&chapter.number()));
    let left: Vec<String> = left.map(|chapter| format!("{} {}", chapter.number(), chapter.title)).collect();
    if !left.is_empty() {
        markdown += &format!("\nNot in class: {}.\n", left.join("; "));
    }
    markdown + "\n</div>\n\n"
}

/// A link to a chapter and to its pages for a class.
fn link(chapter: &Chapter, up: &str) -> String {
    let title = format!("{} {}", chapter.number(), chapter.title);
    let Some(page) = chapter.page() else { return title };
    let parts = chapter.part.iter().filter(|part| !part.optional);
    let parts = parts.map(|part| format!("; [{} {}]({up}{})", chapter.number(), part.title, part.page()));
    format!("[{title}]({up}{page}){}", parts.collect::<String>())
}

/// A chapter's link, minutes and parts, without its learning outcome.
fn line(chapter: &Chapter, up: &str) -> String {
    let title = format!("{} {}", chapter.number(), chapter.title);
    let optional = if chapter.optional { ", optional" } else { "" };
    let Some(page) = chapter.page() else { return format!("{title}{optional}, not written yet") };
    let mut line = format!("[{title}]({up}{page}), {}{optional}", plural(chapter.minutes, "minute"));
    for part in &chapter.part {
        let (number, title, page) = (chapter.number(), &part.title, part.page());
        let optional = if part.optional { ", optional" } else { "" };
        line += &format!("; [{number} {title}]({up}{page}), {}{optional}", plural(part.minutes, "minute"));
    }
    line
}

/// `2 hours 15 minutes, and 25 minutes more for the optional chapters, without the chapters to come`
fn total_time<'a>(chapters: impl IntoIterator<Item = &'a Chapter>) -> String {
    let (mut needed, mut optional, mut to_come) = (0, 0, false);
    for chapter in chapters {
        let parts = chapter.part.iter().map(|part| (chapter.optional || part.optional, part.minutes));
        for (is_optional, minutes) in [(chapter.optional, chapter.minutes)].into_iter().chain(parts) {
            *if is_optional { &mut optional } else { &mut needed } += minutes;
        }
        to_come |= chapter.page().is_none();
    }
    let more = match optional {
        0 => String::new(),
        optional => format!(", and {} more for the optional chapters", hours(optional)),
    };
    let without = if to_come { ", without the chapters to come" } else { "" };
    format!("{}{more}{without}", hours(needed))
}

/// `1 hour 30 minutes`
pub fn hours(minutes: u32) -> String {
    let parts = [(minutes / 60, "hour"), (minutes % 60, "minute")];
    let parts: Vec<String> =
        parts.iter().filter(|part| part.0 > 0).map(|part| plural(part.0, part.1)).collect();
    if parts.is_empty() { "no time yet".to_owned() } else { parts.join(" ") }
}

pub fn plural(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
