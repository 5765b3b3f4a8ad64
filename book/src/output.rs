//! What a lab prints: compared with its snapshot, and cut into the sections of its chapter.

use labs::render_text::{self, Column};
use labs::{Cell, Drawing, Event, Table, without_measured};

use crate::html;
use crate::mistake::choices;

/// Compares a snapshot with what the lab prints now. The error is the place of the first difference.
pub fn check(snapshot: &str, now: &str) -> Result<(), String> {
    // insta writes a head of its own between two lines of dashes.
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

/// Letters that a block of code shows on a page without being scrolled.
const PAGE_WIDTH: usize = 80;

/// How much of a section to show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// All of it, as a terminal has it.
    All,
    /// Without its title, explanations and questions, which the chapter has its own words for.
    Results,
}

/// The events of a section, by its number; of it only the part that follows a prediction, up to the next, if it is named: by
/// the words of the prediction's id. The error says what there is.
pub fn section<'a>(events: &'a [Event], number: &str, part: Option<&str>) -> Result<&'a [Event], String> {
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

    let part_of = |event: &Event| match event {
        Event::Prediction(prediction) => Some(prediction.part()),
        _ => None,
    };
    let parts = section.chunk_by(|_, next| part_of(next).is_none());
    let named = parts.filter_map(|events| Some((part_of(events.first()?)?, events)));
    let named: Vec<(&str, &[Event])> = named.collect();
    let found = named.iter().find(|(name, _)| *name == part).map(|(_, events)| *events);
    found.ok_or_else(|| match named.is_empty() {
        true => format!("no prediction in section {number}, and so no part `{part}`"),
        false => format!(
            "no part `{part}` in section {number}: say part={}",
            choices(named.iter().map(|(name, _)| *name))
        ),
    })
}

/// Events as Markdown: blocks of text as a terminal shows them, and pictures and tables where they come.
pub fn markdown(events: &[Event], show: Show) -> String {
    let shown = |event: &Event| {
        let words = matches!(
            event,
            Event::Section { .. } | Event::Prose(_) | Event::Prediction(_) | Event::Answer(_)
        );
        show == Show::All || !words
    };
    let events: Vec<Event> = without_measured(events).into_iter().filter(shown).collect();
    let mut markdown = String::new();
    for part in events.chunk_by(|one, next| !is_apart(one) && !is_apart(next)) {
        match part {
            [Event::Table(shown)] => markdown += &table(shown),
            [Event::Picture { drawing, caption }] => markdown += &picture(drawing, caption),
            part => {
                let text = render_text::render(&folded(part));
                let notes: Vec<(String, String)> = part
                    .iter()
                    .flat_map(Event::figures)
                    .filter_map(|figure| Some((figure.printed(), figure.exact_bytes()?)))
                    .collect();
                // A drawing in letters, such as the table of nvidia-smi, means nothing if its lines are broken.
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

/// A picture with its caption.
pub fn picture(drawing: &Drawing, caption: &str) -> String {
    let caption = html::escape(caption);
    let svg = match &drawing.narrow {
        None => svg(&drawing.svg, "", &caption),
        Some(narrow) => svg(&drawing.svg, "wide", &caption) + "\n" + &svg(narrow, "narrow", &caption),
    };
    format!("<div class=\"picture\">\n{svg}\n<p>{caption}</p>\n</div>\n\n")
}

/// A block of text as HTML, in which figures have notes: each with what is printed, in the order in which they come.
fn with_notes(language: &str, text: &str, notes: &[(String, String)]) -> String {
    let classes: String = language.split(',').map(|word| format!("{word} ")).collect();
    let mut html = format!("<pre><code class=\"language-{classes}nohighlight hljs\">");
    let mut rest = text;
    for (printed, exact) in notes {
        // Lines may be broken between number and unit.
        let broken = printed.replacen(' ', "\n", 1);
        let Some(at) = rest.find(printed.as_str()).or_else(|| rest.find(&broken)) else { continue };
        let (before, found) = rest.split_at(at);
        let (printed, after) = found.split_at(printed.len());
        html += &html::escape(before);
        html += &html::bytes(&html::escape(printed), Some(exact));
        rest = after;
    }
    format!("{html}{}\n</code></pre>\n\n", html::escape(rest))
}

/// A picture with the words for whoever cannot see it. The page shows a `wide` one, or on a phone a `narrow` one.
fn svg(svg: &str, class: &str, caption: &str) -> String {
    // An empty line would end the HTML.
    let lines: Vec<&str> = svg.lines().filter(|line| !line.trim().is_empty()).collect();
    let class = if class.is_empty() { String::new() } else { format!("class=\"{class}\" ") };
    lines.join("\n").replacen("<svg ", &format!("<svg {class}aria-label=\"{caption}\" "), 1)
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

/// A table of its own kind: a screen reader knows its columns, and a narrow screen scrolls it alone.
pub fn table(table: &Table) -> String {
    let columns = render_text::columns(table);
    let class = |column: &Column| if column.numbers { " class=\"number\"" } else { "" };
    let heads = columns.iter().map(|column| match breakable(&html::escape(&column.header)) {
        // A heading that says nothing is none.
        head if head.is_empty() => "<td></td>".to_owned(),
        head => format!("<th scope=\"col\"{}>{head}</th>", class(column)),
    });
    let row = |row: usize| {
        let cells = columns.iter().enumerate().map(|(index, column)| {
            let cell = &column.cells[row];
            let exact = match table.rows[row].get(index) {
                Some(Cell::Figure(figure)) => figure.exact_bytes(),
                _ => None,
            };
            // What is part of the row above stands further in.
            let part =
                if !column.numbers && cell.starts_with("  ") { " class=\"part\"" } else { class(column) };
            let cell = breakable(&html::escape(cell.trim()));
            format!("<td{part}>{}</td>", html::bytes(&cell, exact.as_deref()))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    format!(
        "<div class=\"table-wrapper\">\n<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n\n",
        heads.collect::<String>(),
        (0..table.rows.len()).map(row).collect::<String>()
    )
}

/// With places in names, as in `backends::cudnn` and `exp_avg_sq`, where a narrow column may break them.
fn breakable(text: &str) -> String {
    let mut broken = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let within = !broken.is_empty() && !broken.ends_with(' ');
        broken.push(letter);
        let is_name = letters.peek().is_some_and(|next| next.is_alphabetic());
        if within && is_name && ['.', '_', ':', '('].contains(&letter) {
            broken += "<wbr>";
        }
    }
    broken
}

/// What is no text on a page.
fn is_apart(event: &Event) -> bool {
    matches!(event, Event::Picture { .. } | Event::Table(_))
}

#[cfg(test)]
mod tests {
    use labs::{bytes, row, text};

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
        // Where all have one unit, it stands in the head.
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

    #[test]
    fn a_name_may_be_broken_and_a_number_not() {
        assert_eq!(breakable("x.to(copy: true)"), "x.<wbr>to(<wbr>copy: true)");
        assert_eq!(breakable("exp_avg: 0.25 (modelled)"), "exp_<wbr>avg: 0.25 (modelled)");
    }
}
