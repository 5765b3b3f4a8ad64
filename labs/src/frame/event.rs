pub use drawing::Drawing;

use super::figure::{Figure, Kind, Value};
use super::prediction::{Answer, Prediction};
use super::text::Text;

/// An event of a lab. Printed text, JSON, pages and comparisons between machines are all renderings of events.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The lab and its machine. Always the first event.
    Header(Header),
    /// The start of a section, with its number in the chapter.
    Section {
        number: String,
        title: String,
        /// Why it differs on a real GPU, if it does.
        apart: Option<&'static str>,
        /// The machine in words, if the section has its own.
        machine: Option<String>,
    },
    Prose(Text),
    /// A question that the reader answers before reading on. A part of the section begins with it.
    Prediction(Prediction),
    /// The start of a part of the section, which the chapter shows by this name. Prints nothing.
    Part(&'static str),
    /// The answer to a prediction, as soon as the lab has it.
    Answer(Answer),
    /// A line of output, printed verbatim.
    Line(Text),
    /// A figure, on a separate line.
    Figure(Figure),
    Table(Table),
    /// Several lines printed verbatim: an error report, a tensor.
    Report(String),
    /// A drawing with its text alternative.
    Picture {
        drawing: Drawing,
        caption: String,
    },
    /// A warning in PyTorch's words.
    Warning(String),
    /// The failure of the lab. Always the last event.
    Failure {
        lab: String,
        message: String,
    },
}

impl Event {
    /// Whether it belongs on standard error.
    pub fn is_trouble(&self) -> bool {
        matches!(self, Event::Warning(_) | Event::Failure { .. })
    }

    /// The part of a section that begins with it.
    pub fn part(&self) -> Option<&'static str> {
        match self {
            Event::Prediction(prediction) => Some(prediction.part()),
            Event::Part(name) => Some(name),
            _ => None,
        }
    }

    pub fn figures(&self) -> Vec<&Figure> {
        match self {
            Event::Prose(text) | Event::Line(text) => text.figures().collect(),
            Event::Figure(figure) => vec![figure],
            Event::Table(table) => table.figures().collect(),
            _ => Vec::new(),
        }
    }

    fn figures_mut(&mut self) -> Vec<&mut Figure> {
        match self {
            Event::Prose(text) | Event::Line(text) => text.figures_mut().collect(),
            Event::Figure(figure) => vec![figure],
            Event::Table(table) => table.figures_mut().collect(),
            _ => Vec::new(),
        }
    }
}

/// The events with `…` for every measured figure: the rest is the same in every run.
pub fn without_measured(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    for figure in events.iter_mut().flat_map(Event::figures_mut) {
        if figure.kind == Kind::Measured {
            figure.value = Value::Text("…".to_owned());
        }
    }
    events
}

#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The name of the binary, `lab-03`.
    pub lab: String,
    pub title: String,
    pub version: String,
    /// The machine in words: `no GPU`.
    pub machine: String,
    /// The device of the lab: `cpu`.
    pub device: String,
    pub seed: u64,
}

impl Header {
    /// `machine: Tesla T4 (simulated), seed: 42`: the conditions of a run besides its flags.
    pub fn machine_and_seed(&self) -> String {
        format!("machine: {}, seed: {}", self.machine, self.seed)
    }
}

/// A header and rows of cells.
///
/// ```
/// use labs::{Table, exact, row};
/// let table = Table::new(["target", "MAE"])
///     .row(row!["noise", exact("mae", 0.7924)])
///     .row(row!["linear", exact("mae", 0.0151)]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub header: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// Whether times decided the order of the rows.
    pub ranked: bool,
}

/// A cell of a [`Table`]. (A bare float is not a cell: only a figure has a number of digits.)
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    Count(i64),
    Figure(Figure),
}

/// A row of a [`Table`] from texts, integers and figures.
#[macro_export]
macro_rules! row {
    ($($cell:expr),* $(,)?) => { ::std::vec![$($crate::Cell::from($cell)),*] };
}

impl Table {
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Table {
        Table {
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            ranked: false,
        }
    }

    /// Marks a table whose rows are ordered by time.
    pub fn ranked(self) -> Table {
        Table { ranked: true, ..self }
    }

    /// Appends a row, made by [`row!`](crate::row!).
    pub fn row(mut self, cells: Vec<Cell>) -> Table {
        self.rows.push(cells);
        self
    }

    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.rows.iter().flatten().filter_map(|cell| match cell {
            Cell::Figure(figure) => Some(figure),
            Cell::Text(_) | Cell::Count(_) => None,
        })
    }

    fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
        self.rows.iter_mut().flatten().filter_map(|cell| match cell {
            Cell::Figure(figure) => Some(figure),
            Cell::Text(_) | Cell::Count(_) => None,
        })
    }
}

impl From<Figure> for Cell {
    fn from(figure: Figure) -> Cell {
        Cell::Figure(figure)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<i32> for Cell {
    fn from(count: i32) -> Cell {
        Cell::Count(i64::from(count))
    }
}

impl From<i64> for Cell {
    fn from(count: i64) -> Cell {
        Cell::Count(count)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Cell {
        Cell::Count(i64::try_from(count).unwrap_or(i64::MAX))
    }
}
