//! What a lab prints: compared with its snapshot, and cut into the sections of its chapter.

use labs::{Event, render_text, without_measured};

use crate::html;

/// Compares a snapshot with what the lab says now. The error is the place of the first difference.
pub fn check(snapshot: &str, events: &[Event]) -> Result<(), String> {
    // insta writes a head of its own between two lines of dashes.
    let head = snapshot.strip_prefix("---\n").and_then(|rest| rest.find("\n---\n")).map_or(0, |end| end + 9);
    let before = snapshot[..head].lines().count();
    let (tested, now) = (snapshot[head..].trim_end(), render_text::render(&without_measured(events)));
    let now = now.trim_end();

    let (mut tested_lines, mut now_lines) = (tested.lines(), now.lines());
    for line in before + 1.. {
        match (tested_lines.next(), now_lines.next()) {
            (None, None) => break,
            (tested, now) if tested == now => {}
            (tested, now) => {
                let shown =
                    |line: Option<&str>| line.map_or("the end".to_owned(), |line| format!("`{line}`"));
                return Err(format!(":{line}: it says {}, the lab says {}", shown(tested), shown(now)));
            }
        }
    }
    Ok(())
}

/// Letters that a block of code shows on a page without being scrolled.
const PAGE_WIDTH: usize = 84;

/// How much of a section to show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// All of it, as a terminal has it.
    All,
    /// Without its title, explanations and questions, which the chapter has its own words for.
    Results,
}

/// The events of a section, by its number; `1.3` is what follows its third prediction, up to the next. The error
/// says what there is.
pub fn section<'a>(events: &'a [Event], number: &str) -> Result<&'a [Event], String> {
    let (number, part) = number.split_once('.').map_or((number, None), |(number, part)| (number, Some(part)));
    let number_of = |event: &'a Event| match event {
        Event::Section { number, .. } => Some(number.as_str()),
        _ => None,
    };
    let Some(start) = events.iter().position(|event| number_of(event) == Some(number)) else {
        let numbers: Vec<&str> = events.iter().filter_map(number_of).collect();
        return Err(format!("no section `{number}`: say {}", numbers.join(" | ")));
    };
    let rest = &events[start + 1..];
    let length = rest.iter().position(|event| number_of(event).is_some()).unwrap_or(rest.len());
    let section = &events[start..=start + length];
    let Some(part) = part else { return Ok(section) };

    let is_prediction = |event: &&[Event]| matches!(event.first(), Some(Event::Prediction(_)));
    let parts = section.chunk_by(|_, next| !matches!(next, Event::Prediction(_))).filter(is_prediction);
    let parts: Vec<&[Event]> = parts.collect();
    let found = part.parse().ok().filter(|&part: &usize| part > 0).and_then(|part| parts.get(part - 1));
    found.copied().ok_or_else(|| match parts.len() {
        0 => format!("no prediction in section {number}, and so no part `{part}`"),
        count => format!("no part `{part}` in section {number}: say {number}.1 to {number}.{count}"),
    })
}

/// Events as Markdown: blocks of text as a terminal shows them, and pictures where they come.
pub fn markdown(events: &[Event], show: Show) -> String {
    let shown = |event: &Event| {
        let words = matches!(event, Event::Section { .. } | Event::Prose(_) | Event::Prediction(_));
        show == Show::All || !words
    };
    let events: Vec<Event> = without_measured(events).into_iter().filter(shown).collect();
    let mut markdown = String::new();
    for part in events.chunk_by(|one, next| !is_picture(one) && !is_picture(next)) {
        match part {
            [Event::Picture { drawing, caption }] => {
                let caption = html::escape(caption);
                // An empty line would end the HTML.
                let svg: Vec<&str> = drawing.svg.lines().filter(|line| !line.trim().is_empty()).collect();
                markdown += &format!(
                    "<div class=\"picture\">\n{}\n<p>{caption}</p>\n</div>\n\n",
                    svg.join("\n").replacen("<svg ", &format!("<svg aria-label=\"{caption}\" "), 1)
                );
            }
            part => markdown += &(html::fence("text", &render_text::render(&folded(part))) + "\n"),
        }
    }
    markdown
}

/// The events with the long lines of reports folded: a terminal would do it, a page would cut them.
fn folded(events: &[Event]) -> Vec<Event> {
    let fold = |event: &Event| match event {
        Event::Report(report) => Event::Report(report.lines().map(fold_line).collect::<Vec<_>>().join("\n")),
        event => event.clone(),
    };
    events.iter().map(fold).collect()
}

fn fold_line(line: &str) -> String {
    if line.chars().count() <= PAGE_WIDTH {
        return line.to_owned();
    }
    let mut folded = String::new();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if column + width > PAGE_WIDTH {
            folded = folded.trim_end().to_owned() + "\n    ";
            column = 4;
        }
        folded += word;
        column += word.chars().count();
    }
    folded
}

fn is_picture(event: &Event) -> bool {
    matches!(event, Event::Picture { .. })
}
