//! A lab's output: compares it with its snapshot, and divides it into the sections of its chapter.

pub use labs::render_html::{Shows as Show, picture, table};
use labs::render_html::{folded, is_apart, notes, with_notes};
use labs::{Event, render_text, without_measured};

use crate::html;
use crate::mistake::choices;

/// Compares a snapshot with the lab's current output. The error is the place of the first difference.
pub fn check(snapshot: &str, now: &str) -> Result<(), String> {
    // insta writes a header between two lines of dashes.
    let head = snapshot.strip_prefix("---\n").and_then(|rest| rest.find("\n---\n")).map_or(0, |end| end + 9);
    let before = snapshot[..head].lines().count();
    let (tested, now) = (snapshot[head..].trim_end(), now.trim_end());

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

/// The machine of a section in words, if the section has its own.
pub fn machine<'a>(events: &'a [Event], wanted: &str) -> Option<&'a str> {
    events.iter().find_map(|event| match event {
        Event::Section { number, machine, .. } if number == wanted => machine.as_deref(),
        _ => None,
    })
}

/// The events of a section, by its number, or of a part, by its name. A prediction begins a part named after its id,
/// and so does [`labs::Lab::part`]. The error lists the available names.
pub fn section<'a>(events: &'a [Event], number: &str, part: Option<&str>) -> Result<&'a [Event], String> {
    let number_of = |event: &'a Event| match event {
        Event::Section { number, .. } => Some(number.as_str()),
        _ => None,
    };
    let Some(start) = events.iter().position(|event| number_of(event) == Some(number)) else {
        let numbers: Vec<&str> = events.iter().filter_map(number_of).collect();
        return Err(format!("no section `{number}`: write {}", numbers.join(" | ")));
    };
    let rest = &events[start + 1..];
    let length = rest.iter().position(|event| number_of(event).is_some()).unwrap_or(rest.len());
    let section = &events[start..=start + length];
    let Some(part) = part else { return Ok(section) };

    let parts = section.chunk_by(|_, next| next.part().is_none());
    let named = parts.filter_map(|events| Some((events.first()?.part()?, events)));
    let named: Vec<(&str, &[Event])> = named.collect();
    let found = named.iter().find(|(name, _)| *name == part).map(|(_, events)| *events);
    found.ok_or_else(|| match named.is_empty() {
        true => format!("no prediction in section {number}, and so no part `{part}`"),
        false => format!(
            "no part `{part}` in section {number}: write part={}",
            choices(named.iter().map(|(name, _)| *name))
        ),
    })
}

/// Events as Markdown: blocks of terminal text, with pictures and tables in between.
pub fn markdown(events: &[Event], show: Show) -> String {
    let events: Vec<Event> = without_measured(events).into_iter().filter(|event| show.shows(event)).collect();
    let mut markdown = String::new();
    for part in events.chunk_by(|one, next| !is_apart(one) && !is_apart(next)) {
        match part {
            [Event::Table(shown)] => markdown += &table(shown),
            [Event::Picture { drawing, caption }] => markdown += &picture(drawing, caption),
            part => {
                let text = render_text::render(&folded(part));
                let notes = notes(part);
                // A text drawing, such as the table of nvidia-smi, must not be wrapped.
                let is_drawn =
                    |line: &str| line.starts_with('|') || line.starts_with("+-") || line.contains("###");
                let language = if text.lines().any(is_drawn) { "text,columns" } else { "text" };
                markdown += &match notes.is_empty() {
                    true => html::fence(language, &text) + "\n",
                    false => with_notes(language, text.trim_end(), &notes),
                };
            }
        }
    }
    markdown
}

#[cfg(test)]
mod tests {
    use labs::{Table, bytes, row, text};

    use super::*;

    #[test]
    fn bytes_have_their_count_in_a_note() {
        let peak = || bytes("peak", 108_000_256);
        let note = "<span class=\"bytes\" tabindex=\"0\" title=\"108,000,256 bytes\">103.0 MiB<span class=\"exact\"> (108,000,256 bytes)</span></span>";
        let line = markdown(&[Event::Line(text!("it is {} <now>", peak()))], Show::All);
        assert_eq!(
            line,
            format!(
                "<pre><code class=\"language-text nohighlight hljs\">it is {note} &lt;now&gt;\n</code></pre>\n\n"
            )
        );
        let prose =
            text!("{} a line that is as long as a terminal is wide, or nearly so, and {}.", peak(), peak());
        let folded = markdown(&[Event::Prose(prose)], Show::All);
        assert_eq!(folded.matches("(108,000,256 bytes)").count(), 2, "{folded}");
        // The header has a unit that all cells share.
        let table = Table::new(["", "peak"]).row(row!["a", peak()]).row(row!["b", peak().digits(2)]);
        let table = markdown(&[Event::Table(table)], Show::All);
        assert!(
            table.contains("peak (MiB)</th>")
                && table.contains(">103.00<span class=\"exact\"> (108,000,256 bytes)"),
            "{table}"
        );
        let small = markdown(&[Event::Line(text!("{}", bytes("block", 512)))], Show::All);
        assert_eq!(small, "```text\n512 bytes\n```\n\n");
    }
}
