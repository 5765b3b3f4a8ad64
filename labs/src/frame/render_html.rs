//! Renders events as HTML for the book, in its builder and in a page that runs the lab.

use super::event::{Cell, Drawing, Event, Table};
use super::render_text::{self, Column, Palette, Renderer};

/// The number of characters that a code block shows on a page without scrolling.
const PAGE_WIDTH: usize = 80;

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A figure in MiB or another large unit, with the exact count in a note for mouse, touch, keyboard and screen reader.
/// Without a count, the text unchanged.
pub fn bytes(text: &str, exact: Option<&str>) -> String {
    match exact {
        Some(exact) => {
            format!(
                "<span class=\"bytes\" tabindex=\"0\" title=\"{exact}\">{text}{NOTE} ({exact})</span></span>"
            )
        }
        None => text.to_owned(),
    }
}

/// The start of a note, which is not part of the sentence.
pub const NOTE: &str = "<span class=\"exact\">";

pub fn picture(drawing: &Drawing, caption: &str) -> String {
    let caption = escape(caption);
    let svg = match &drawing.narrow {
        None => svg(&drawing.svg, "", &caption),
        Some(narrow) => {
            svg(&drawing.svg, "wide", &caption)
                + "\n"
                + &svg(narrow, "narrow", &caption)
        }
    };
    format!("<div class=\"picture\">\n{svg}\n<p>{caption}</p>\n</div>\n\n")
}

/// Renders a code block whose figures have notes. `notes` has their printed texts in order.
pub fn with_notes(language: &str, text: &str, notes: &[(String, String)]) -> String {
    let classes: String = language.split(',').map(|word| format!("{word} ")).collect();
    format!(
        "<pre><code class=\"language-{classes}nohighlight hljs\">{}\n</code></pre>\n\n",
        noted(text, notes)
    )
}

fn noted(text: &str, notes: &[(String, String)]) -> String {
    let mut html = String::new();
    let mut rest = text;
    for (printed, exact) in notes {
        // A line break may be between number and unit.
        let broken = printed.replacen(' ', "\n", 1);
        let Some(at) = rest.find(printed.as_str()).or_else(|| rest.find(&broken))
        else {
            continue;
        };
        let (before, found) = rest.split_at(at);
        let (printed, after) = found.split_at(printed.len());
        html += &escape(before);
        html += &bytes(&escape(printed), Some(exact));
        rest = after;
    }
    html + &escape(rest)
}

/// The notes of figures: printed text and exact value.
pub fn notes(events: &[Event]) -> Vec<(String, String)> {
    let figures = events.iter().flat_map(Event::figures);
    figures
        .filter_map(|figure| Some((figure.printed(), figure.exact_bytes()?)))
        .collect()
}

/// A picture with its text alternative. The page shows the `wide` one, or on a phone the `narrow` one.
fn svg(svg: &str, class: &str, caption: &str) -> String {
    // An empty line would end the HTML.
    let lines: Vec<&str> = svg.lines().filter(|line| !line.trim().is_empty()).collect();
    let class =
        if class.is_empty() { String::new() } else { format!("class=\"{class}\" ") };
    lines.join("\n").replacen(
        "<svg ",
        &format!("<svg {class}aria-label=\"{caption}\" "),
        1,
    )
}

/// The events with long report lines folded. A terminal would fold them, a page would cut them.
pub fn folded(events: &[Event]) -> Vec<Event> {
    events.iter().map(folded_event).collect()
}

fn folded_event(event: &Event) -> Event {
    match event {
        Event::Report(report) => {
            Event::Report(report.lines().map(fold_line).collect::<Vec<_>>().join("\n"))
        }
        event => event.clone(),
    }
}

fn fold_line(line: &str) -> String {
    if line.chars().count() <= PAGE_WIDTH {
        return line.to_owned();
    }
    // The rest of a line is indented a little more than its beginning.
    let indent = line.chars().take_while(|letter| *letter == ' ').count() + 4;
    let mut folded = String::new();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        // A first word that is too long stays in place.
        if column + width > PAGE_WIDTH && !folded.trim_start().is_empty() {
            folded = format!("{}\n{:indent$}", folded.trim_end(), "");
            column = indent;
        }
        folded += word;
        column += word.chars().count();
    }
    folded
}

/// An HTML table, so that a screen reader announces its columns and a narrow screen scrolls it alone.
pub fn table(table: &Table) -> String {
    let columns = render_text::columns(table);
    let class = |column: &Column| if column.numbers { " class=\"number\"" } else { "" };
    let heads = columns.iter().map(|column| match breakable(&escape(&column.header)) {
        // An empty heading.
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
            // An indented cell belongs to the row above.
            let part = if !column.numbers && cell.starts_with("  ") {
                " class=\"part\""
            } else {
                class(column)
            };
            let cell = breakable(&escape(cell.trim()));
            format!("<td{part}>{}</td>", bytes(&cell, exact.as_deref()))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    format!(
        "<div class=\"table-wrapper\">\n<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n\n",
        heads.collect::<String>(),
        (0..table.rows.len()).map(row).collect::<String>()
    )
}

/// Adds break opportunities to names such as `backends::cudnn` and `exp_avg_sq`, for narrow columns.
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

/// Whether an event is not text on a page.
pub fn is_apart(event: &Event) -> bool {
    matches!(event, Event::Picture { .. } | Event::Table(_))
}

#[derive(Debug)]
pub struct Stream {
    renderer: Renderer,
    shows: Shows,
    /// Whether the current text block continues. A table or a picture ends it.
    in_text: bool,
}

/// The parts of a lab's output to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// All of it, as in a terminal.
    All,
    /// Without title, explanations and questions, for which the chapter has its own words.
    Results,
}

impl Shows {
    pub fn shows(self, event: &Event) -> bool {
        let words = matches!(
            event,
            Event::Section { .. }
                | Event::Prose(_)
                | Event::Prediction(_)
                | Event::Answer(_)
        );
        let is_said = !matches!(event, Event::Part(_));
        is_said && (self == Shows::All || !words)
    }
}

/// The next piece of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Continues the current text block, or begins one.
    Text { html: String, begins: bool },
    /// Separate from text: a table, a picture.
    Block(String),
}

impl Stream {
    pub fn new(shows: Shows) -> Stream {
        Stream { renderer: Renderer::new(Palette::Plain), shows, in_text: false }
    }

    /// Renders the next event, if it is shown.
    pub fn render(&mut self, event: &Event) -> Option<Piece> {
        // The lab and its machine are shown above the output.
        let is_head = matches!(event, Event::Header(_)) && self.shows == Shows::Results;
        if is_head || !self.shows.shows(event) {
            return None;
        }
        let text = self.renderer.render(&folded_event(event));
        let block = match event {
            Event::Table(shown) => table(shown),
            Event::Picture { drawing, caption } => picture(drawing, caption),
            _ if text.is_empty() => return None,
            _ => {
                let begins = !std::mem::replace(&mut self.in_text, true);
                let text = if begins { text.trim_start_matches('\n') } else { &text };
                let html = noted(text, &notes(std::slice::from_ref(event)));
                let class = match event {
                    Event::Header(_) | Event::Section { .. } => "said-title",
                    Event::Prediction(_) | Event::Answer(_) => "said-question",
                    Event::Warning(_) | Event::Failure { .. } => "said-trouble",
                    _ => "",
                };
                let html = if class.is_empty() {
                    html
                } else {
                    format!("<span class=\"{class}\">{html}</span>")
                };
                return Some(Piece::Text { html, begins });
            }
        };
        self.in_text = false;
        Some(Piece::Block(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bytes as of_bytes, row, text};

    #[test]
    fn the_rest_of_a_long_line_is_indented_and_a_long_word_stays_where_it_is() {
        let address = format!("(https://{})", "long-".repeat(20));
        assert_eq!(fold_line(&address), address);
        let words = "word ".repeat(30);
        let folded = fold_line(&format!("      fix: {words}"));
        let lines: Vec<&str> = folded.lines().collect();
        assert!(
            lines.iter().all(|line| line.chars().count() <= PAGE_WIDTH),
            "{folded}"
        );
        assert!(lines[0].starts_with("      fix: word"), "{folded}");
        assert!(
            lines[1..].iter().all(|line| line.starts_with("          word")),
            "{folded}"
        );
        assert_eq!(folded.matches("word").count(), 30);
    }

    #[test]
    fn a_name_may_be_broken_and_a_number_not() {
        assert_eq!(breakable("x.to(copy: true)"), "x.<wbr>to(<wbr>copy: true)");
        assert_eq!(
            breakable("exp_avg: 0.25 (modelled)"),
            "exp_<wbr>avg: 0.25 (modelled)"
        );
    }

    #[test]
    fn text_goes_on_until_a_table_comes() {
        let mut stream = Stream::new(Shows::All);
        let line = |text: &str| Event::Line(text.into());
        let text =
            |html: &str, begins| Some(Piece::Text { html: html.to_owned(), begins });
        assert_eq!(stream.render(&line("a < b")), text("a &lt; b\n", true));
        assert_eq!(
            stream.render(&Event::Line(text!("{}", of_bytes("peak", 108_000_256)))),
            text(
                &format!("{}\n", bytes("103.0 MiB", Some("108,000,256 bytes"))),
                false
            )
        );
        let rows = Table::new(["a"]).row(row!["b"]);
        assert_eq!(
            stream.render(&Event::Table(rows.clone())),
            Some(Piece::Block(table(&rows)))
        );
        assert_eq!(stream.render(&line("on")), text("on\n", true));
        assert_eq!(stream.render(&Event::Prose("why".into())), text("\nwhy\n", false));
    }

    #[test]
    fn results_leave_out_the_words_of_the_lab() {
        let mut stream = Stream::new(Shows::Results);
        let title = Event::Section {
            number: "1".to_owned(),
            title: "Training".to_owned(),
            apart: None,
            machine: None,
        };
        assert_eq!(stream.render(&title), None);
        assert_eq!(stream.render(&Event::Prose("why".into())), None);
        let trouble = Event::Warning("it is slow".to_owned());
        let html =
            "<span class=\"said-trouble\">warning: it is slow\n</span>".to_owned();
        assert_eq!(stream.render(&trouble), Some(Piece::Text { html, begins: true }));
    }
}
