//! Renders events as text, for a terminal, a snapshot, or the book.

use colored::{ColoredString, Colorize, control};
use drawing::printable;

use super::event::{Cell, Event, Table};
use super::figure::{Figure, Value};
use super::prediction::Answer;
use super::text::WIDTH;

/// The text styles: with colours, or plain for pipes, files and snapshots.
#[derive(Clone, Copy, Debug)]
pub enum Palette {
    Plain,
    Coloured,
}

impl Palette {
    fn title(self, text: &str) -> String {
        self.painted(text.bold())
    }

    fn question(self, text: &str) -> String {
        self.painted(text.cyan())
    }

    fn faint(self, text: &str) -> String {
        self.painted(text.dimmed())
    }

    /// A drawing in characters, in the colours of all pictures.
    fn drawn(self, text: &str) -> String {
        drawing::painted(text, |colour, signs| {
            let part = |at| u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0);
            self.painted(signs.truecolor(part(1), part(3), part(5)))
        })
    }

    fn painted(self, mut text: ColoredString) -> String {
        text.input = printable::lines(&text.input);
        match self {
            Palette::Plain => text.input,
            Palette::Coloured => {
                // Otherwise `colored` would check the environment, which the caller has done by its own rules.
                control::set_override(true);
                text.to_string()
            }
        }
    }
}

/// Renders several events at once, without colours.
///
/// ```
/// use labs::{Event, Text, render_text};
/// let events = [
///     Event::Section { number: "1".to_owned(), title: "Setting up the device".to_owned(), apart: None, machine: None },
///     Event::Line(Text::from("The selected device is: cpu")),
/// ];
/// assert_eq!(render_text::render(&events), "1. Setting up the device\nThe selected device is: cpu\n");
/// ```
pub fn render<'a>(events: impl IntoIterator<Item = &'a Event>) -> String {
    let mut renderer = Renderer::new(Palette::Plain);
    events.into_iter().map(|event| renderer.render(event)).collect()
}

#[derive(Debug)]
pub struct Renderer {
    palette: Palette,
    previous: Block,
    /// The number of the chapter, after the header.
    chapter: Option<String>,
}

/// The blocks between blank lines.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Block {
    Start,
    Title,
    Output,
    Other,
}

impl Renderer {
    pub fn new(palette: Palette) -> Renderer {
        Renderer { palette, previous: Block::Start, chapter: None }
    }

    /// Renders the next event as whole lines, after a blank line if needed.
    pub fn render(&mut self, event: &Event) -> String {
        if matches!(event, Event::Answer(Answer { response: None, .. })) {
            return String::new(); // The reader was not asked.
        }
        if matches!(event, Event::Part(_)) {
            if self.previous == Block::Output {
                self.previous = Block::Other; // Separates the next event.
            }
            return String::new();
        }
        if let Event::Header(header) = event {
            self.chapter = header.lab.strip_prefix("lab-").map(str::to_owned);
        }
        let block = match event {
            Event::Section { .. } => Block::Title,
            Event::Line(_) | Event::Figure(_) => Block::Output,
            _ => Block::Other,
        };
        let together = match (self.previous, block) {
            (Block::Start, _) | (Block::Output, Block::Output) => true,
            (Block::Title, next) => next != Block::Title,
            _ => false,
        };
        self.previous = block;
        format!("{}{}\n", if together { "" } else { "\n" }, self.lines(event))
    }

    fn lines(&self, event: &Event) -> String {
        let palette = self.palette;
        match event {
            Event::Header(header) => {
                let chapter =
                    palette.title(&format!("{}: {}", header.lab, header.title));
                let machine = palette.faint(&header.machine_and_seed());
                format!("{chapter}\n{machine}")
            }
            Event::Section { number, title, machine, .. } => {
                let title = palette.title(&format!("{number}. {title}"));
                machine.as_ref().map_or(title.clone(), |machine| {
                    format!(
                        "{title}\n{}",
                        palette.faint(&format!("machine: {machine}"))
                    )
                })
            }
            Event::Prose(text) => wrap(&printable::lines(&text.printed())),
            Event::Prediction(prediction) => {
                let word = if prediction.gates() { "Predict" } else { "Think" };
                palette.question(&wrap(&format!(
                    "{word}: {}",
                    without_ticks(&prediction.question)
                )))
            }
            Event::Answer(answer) => {
                let compared = answer
                    .response
                    .as_ref()
                    .map(|response| answer.compared(response))
                    .unwrap_or_default();
                palette.question(&wrap(&without_ticks(&compared)))
            }
            Event::Part(_) => String::new(),
            Event::Line(text) => printable::lines(&text.printed()),
            Event::Figure(figure) => {
                printable::lines(&format!("{}: {}", figure.label, figure.printed()))
            }
            Event::Table(table) => self.table(table),
            Event::Report(report) => printable::lines(report.trim_end_matches('\n')),
            Event::Picture { drawing, caption } => match &drawing.text {
                Some(text) => {
                    format!(
                        "{}\n{}",
                        palette.faint(&wrap(caption)),
                        palette.drawn(text)
                    )
                }
                None => {
                    let chapter = self
                        .chapter
                        .as_ref()
                        .map(|chapter| format!(" in chapter {chapter} of the book"));
                    palette.faint(&wrap(&format!(
                        "[picture{}: {caption}]",
                        chapter.unwrap_or_default()
                    )))
                }
            },
            Event::Warning(message) => {
                format!("warning: {}", printable::lines(message))
            }
            Event::Failure { lab, message } => {
                format!("error: {lab} failed: {}", printable::lines(message))
            }
        }
    }

    fn table(&self, table: &Table) -> String {
        let mut columns = columns(table);
        let folded = fold_last(&mut columns);
        let widths: Vec<usize> = columns.iter().map(Column::width).collect();

        let mut lines = vec![
            self.palette.title(&line(
                columns.iter().map(|column| column.aligned(&column.header)),
            )),
            self.palette.faint(&line(widths.iter().map(|width| "─".repeat(*width)))),
        ];
        for (row, rest_of_last) in folded.iter().enumerate() {
            lines.push(line(
                columns.iter().map(|column| column.aligned(&column.cells[row])),
            ));
            for rest in rest_of_last {
                let before =
                    widths[..widths.len() - 1].iter().map(|width| " ".repeat(*width));
                lines.push(line(before.chain([rest.clone()])));
            }
        }
        lines.join("\n")
    }
}

/// The maximum width of a table. If the last column of a wider one is text, it is folded.
const WIDEST_TABLE: usize = 100;

/// Folds the cells of the last column to the maximum width. Each keeps its first line; the others are returned, row by
/// row.
fn fold_last(columns: &mut [Column]) -> Vec<Vec<String>> {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let [before @ .., last] = columns else { return Vec::new() };
    let room = before
        .iter()
        .fold(WIDEST_TABLE, |room, column| room.saturating_sub(column.width() + 2));
    if last.numbers || room < LEAST_FOLDED || last.width() <= room {
        return vec![Vec::new(); rows];
    }
    let fold = |cell: &mut String| {
        let mut lines = filled(cell, room).into_iter();
        *cell = lines.next().unwrap_or_default();
        lines.collect()
    };
    last.cells.iter_mut().map(fold).collect()
}

/// The minimum width of a folded column.
const LEAST_FOLDED: usize = 24;

pub fn columns(table: &Table) -> Vec<Column> {
    let columns =
        table.rows.iter().map(Vec::len).chain([table.header.len()]).max().unwrap_or(0);
    (0..columns).map(|index| Column::new(table, index)).collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub header: String,
    pub cells: Vec<String>,
    /// Whether it has numbers, which are right-aligned.
    pub numbers: bool,
}

impl Column {
    fn new(table: &Table, index: usize) -> Column {
        let cells = || table.rows.iter().map(|row| row.get(index));
        let shared = shared_note(cells().flatten());

        let mut header = table.header.get(index).cloned().unwrap_or_default();
        if let Some(note) = shared.as_deref().filter(|note| !note.is_empty()) {
            header = format!("{header} ({note})");
        }
        let printed = |cell: Option<&Cell>| match cell {
            Some(Cell::Figure(figure)) if shared.is_some() => figure.printed_value(),
            Some(Cell::Figure(figure)) => figure.printed(),
            Some(Cell::Text(text)) => text.clone(),
            Some(Cell::Count(count)) => count.to_string(),
            None => String::new(),
        };
        Column {
            header,
            cells: cells().map(printed).collect(),
            numbers: cells().flatten().any(is_number),
        }
    }

    fn width(&self) -> usize {
        self.cells
            .iter()
            .chain([&self.header])
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    }

    fn aligned(&self, cell: &str) -> String {
        let width = self.width();
        if self.numbers { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    }
}

/// The text after every figure of a column, such as `ms, modelled`. If it is the same for all of them, the header shows
/// it once.
fn shared_note<'a>(cells: impl Iterator<Item = &'a Cell>) -> Option<String> {
    let mut notes = cells.filter_map(|cell| match cell {
        Cell::Figure(figure) => Some(note(figure)),
        Cell::Text(_) | Cell::Count(_) => None,
    });
    let first = notes.next()?;
    notes.all(|other| other == first).then_some(first)
}

fn note(figure: &Figure) -> String {
    let unit = Some(figure.unit).filter(|unit| !unit.is_empty());
    unit.into_iter().chain(figure.kind.warning()).collect::<Vec<_>>().join(", ")
}

fn is_number(cell: &Cell) -> bool {
    match cell {
        Cell::Text(_) => false,
        Cell::Count(_) => true,
        Cell::Figure(figure) => !matches!(figure.value, Value::Text(_)),
    }
}

/// Joins cells, without trailing blanks.
fn line(cells: impl Iterator<Item = String>) -> String {
    printable::line(cells.collect::<Vec<_>>().join("  ").trim_end())
}

/// Removes backticks: a terminal shows code as plain text.
pub fn without_ticks(text: &str) -> String {
    text.replace('`', "")
}

/// Wraps text. Line breaks in the text stay.
pub(crate) fn wrap(text: &str) -> String {
    text.split('\n').map(fill).collect::<Vec<_>>().join("\n")
}

fn fill(paragraph: &str) -> String {
    filled(paragraph, WIDTH).join("\n")
}

fn filled(paragraph: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::event::Drawing;
    use crate::frame::prediction::Prediction;

    #[test]
    fn a_palette_decides_alone_whether_there_are_colours() {
        let events = [
            Event::Section {
                number: "1".to_owned(),
                title: "Training".to_owned(),
                apart: None,
                machine: None,
            },
            Event::Prediction(Prediction::yes_no("03-learns", "Does it learn?")),
            Event::Table(Table::new(["loss"])),
        ];
        let rendered = |palette| -> String {
            let mut renderer = Renderer::new(palette);
            events.iter().map(|event| renderer.render(event)).collect()
        };
        let plain = "1. Training\nPredict: Does it learn?\n\nloss\n────\n";
        let coloured = "\u{1b}[1m1. Training\u{1b}[0m\n\u{1b}[36mPredict: Does it learn?\u{1b}[0m\n\n\
                        \u{1b}[1mloss\u{1b}[0m\n\u{1b}[2m────\u{1b}[0m\n";
        for elsewhere in [true, false] {
            control::set_override(elsewhere);
            assert_eq!(
                (rendered(Palette::Plain), rendered(Palette::Coloured)),
                (plain.into(), coloured.into())
            );
        }
    }

    #[test]
    fn a_timeline_has_the_colours_of_all_pictures() {
        let picture = Event::Picture {
            drawing: Drawing {
                svg: String::new(),
                narrow: None,
                text: Some("host, calls  █ ░".to_owned()),
            },
            caption: "A step.".to_owned(),
        };
        let rendered = |palette| Renderer::new(palette).render(&picture);
        assert_eq!(rendered(Palette::Plain), "A step.\nhost, calls  █ ░\n");
        // A terminal with few colours gets the nearest.
        let coloured = rendered(Palette::Coloured);
        assert_eq!(coloured.matches('\u{1b}').count(), 6, "{coloured:?}");
    }
}
