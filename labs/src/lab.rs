//! What a lab sees of the world: somewhere to say things, and the flags every lab has.

use std::fmt::Display;

use crate::cli::Common;
use crate::event::{Event, Table};
use crate::figure::Figure;
use crate::text::Text;

/// Where events go: a terminal, a test, a page.
pub trait Sink {
    /// Takes the next event.
    fn event(&mut self, event: Event);

    /// Starts a progress bar, where there is anyone to watch it.
    fn progress(&mut self, _total: u64, _message: &str) -> Progress {
        Progress::hidden()
    }
}

/// A test keeps every event and looks at them afterwards.
impl Sink for Vec<Event> {
    fn event(&mut self, event: Event) {
        self.push(event);
    }
}

/// What a lab talks to. Every method but the first few says one thing: see [`Event`].
pub struct Lab<'a> {
    common: &'a Common,
    sink: &'a mut dyn Sink,
}

impl<'a> Lab<'a> {
    /// A lab with these flags, talking to this sink.
    pub fn new(common: &'a Common, sink: &'a mut dyn Sink) -> Lab<'a> {
        Lab { common, sink }
    }

    /// The seed, from `--seed`.
    pub fn seed(&self) -> u64 {
        self.common.seed
    }

    /// The device asked for with `--device`, if any.
    pub fn device(&self) -> Option<&str> {
        self.common.device.as_deref()
    }

    /// Starts a section, with the number it has in the chapter.
    pub fn section(&mut self, number: impl Display, title: &str) {
        self.sink.event(Event::Section { number: number.to_string(), title: title.to_owned() });
    }

    /// Explains something, in a paragraph.
    pub fn prose(&mut self, text: impl Into<Text>) {
        self.sink.event(Event::Prose(text.into()));
    }

    /// Asks the reader what will come out, before it does.
    pub fn predict(&mut self, question: &str) {
        self.sink.event(Event::Prediction(question.to_owned()));
    }

    /// Prints a line exactly as it is.
    pub fn print(&mut self, line: impl Into<Text>) {
        self.sink.event(Event::Line(line.into()));
    }

    /// Shows a figure on a line of its own.
    pub fn figure(&mut self, figure: Figure) {
        self.sink.event(Event::Figure(figure));
    }

    /// Shows a table.
    pub fn table(&mut self, table: Table) {
        self.sink.event(Event::Table(table));
    }

    /// Shows several lines exactly as they are: an error report, a tensor.
    pub fn report(&mut self, report: impl Display) {
        self.sink.event(Event::Report(report.to_string()));
    }

    /// Shows a drawing; the caption says what it shows to whoever cannot see it.
    pub fn picture(&mut self, svg: impl Into<String>, caption: &str) {
        self.sink.event(Event::Picture { svg: svg.into(), caption: caption.to_owned() });
    }

    /// Starts a progress bar of `total` steps. Only a person at a terminal sees it; it is no event.
    #[must_use = "the bar ends when the handle is dropped"]
    pub fn progress(&mut self, total: usize, message: &str) -> Progress {
        self.sink.progress(total as u64, message)
    }
}

/// How a sink draws a progress bar.
pub trait Bar {
    /// Advances the bar by `steps`.
    fn inc(&self, steps: u64);
    /// Removes the bar.
    fn finish(&self);
}

/// A running progress bar; it disappears when finished or dropped.
pub struct Progress(Option<Box<dyn Bar>>);

impl Progress {
    /// A bar that the sink draws.
    pub fn new(bar: impl Bar + 'static) -> Progress {
        Progress(Some(Box::new(bar)))
    }

    /// A bar that nobody sees.
    pub fn hidden() -> Progress {
        Progress(None)
    }

    /// Advances the bar by `steps`.
    pub fn inc(&self, steps: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(steps as u64);
        }
    }

    /// Ends the bar.
    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish();
        }
    }
}
