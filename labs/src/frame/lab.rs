//! A lab's interface: its events' sink, and the flags of every lab.

use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use todevice::{Device, Machine};

use super::event::{Drawing, Event, Table};
use super::figure::Figure;
use super::prediction::{Answer, Guess, Key, Prediction, Response};
use super::text::Text;
use crate::Result;

/// The receiver of events: a terminal, a test, a page.
pub trait Sink {
    fn event(&mut self, event: Event);

    /// Asks the reader, if there is one who wants to be asked. Questions to think about are not asked.
    fn ask(&mut self, _prediction: &Prediction) -> Option<Response> {
        None
    }

    /// Whether it needs any event of a section. If not, a lab with independent sections can skip the section.
    fn wants_section(&self, _number: &str) -> bool {
        true
    }

    /// Called when the part that `--section` selects is over, so that a page need not wait for the rest.
    fn section_done(&mut self) {}

    /// Takes the timeline for `--trace`, to be written to a file.
    fn trace(&mut self, _file: &Path, _timeline: String) -> Result<()> {
        Ok(())
    }

    /// Takes a file that the lab has kept in memory, for a sink without a disk.
    fn file(&mut self, _name: &str, _bytes: &[u8]) {}

    /// Draws a frame in place of the previous one, if a reader is watching. Returns whether one is.
    fn frame(&mut self, _frame: &str) -> bool {
        false
    }

    /// Starts a progress bar, if a reader is watching.
    fn progress(&mut self, _total: u64, _message: &str) -> Progress {
        Progress::hidden()
    }
}

/// Keeps every event, for tests.
impl Sink for Vec<Event> {
    fn event(&mut self, event: Event) {
        self.push(event);
    }
}

/// A lab's handle to its sink and its flags. Most methods emit one [`Event`].
pub struct Lab<'a> {
    seed: u64,
    device: Device,
    warnings: Warnings,
    sink: &'a mut dyn Sink,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(
        seed: u64,
        device: Device,
        warnings: Warnings,
        sink: &'a mut dyn Sink,
    ) -> Lab<'a> {
        Lab { seed, device, warnings, sink }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The device of `--device`. Default: the first GPU, or the CPU without one.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Emits an event, after earlier warnings.
    fn emit(&mut self, event: Event) {
        self.warnings.flush(self.sink);
        self.sink.event(event);
    }

    /// Starts a section, with its number in the chapter. Returns whether its events are needed. A section that others
    /// build on runs in any case.
    pub fn section(&mut self, number: impl Display, title: &str) -> bool {
        let number = number.to_string();
        let wanted = self.sink.wants_section(&number);
        let title = title.to_owned();
        self.emit(Event::Section { number, title, apart: None, machine: None });
        wanted
    }

    /// Starts a section that differs on a real GPU, so that it cannot be compared with a simulated one. `why` follows
    /// "because".
    pub fn section_apart(
        &mut self,
        number: impl Display,
        title: &str,
        why: &'static str,
    ) -> bool {
        let (number, title) = (number.to_string(), title.to_owned());
        let wanted = self.sink.wants_section(&number);
        self.emit(Event::Section { number, title, apart: Some(why), machine: None });
        wanted
    }

    /// Starts a section with its own machine, whatever `--gpu` selects.
    pub fn section_on(&mut self, number: impl Display, title: &str, machine: &Machine) {
        let (number, title) = (number.to_string(), title.to_owned());
        let machine = Some(machine.to_string());
        self.emit(Event::Section { number, title, apart: None, machine });
    }

    /// Prints a paragraph of explanation.
    pub fn prose(&mut self, text: impl Into<Text>) {
        self.emit(Event::Prose(text.into()));
    }

    /// Asks the reader to predict a result. The guess is compared when the lab [answers](Self::answer).
    pub fn predict(&mut self, prediction: Prediction) -> Guess {
        self.emit(Event::Prediction(prediction.clone()));
        let response =
            if prediction.gates() { self.sink.ask(&prediction) } else { None };
        Guess { prediction, response }
    }

    pub fn think(&mut self, id: &'static str, question: impl Into<String>) {
        self.emit(Event::Prediction(Prediction::think(id, question)));
    }

    /// Begins a part of the section, which the chapter shows by this name, without a question.
    pub fn part(&mut self, name: &'static str) {
        self.emit(Event::Part(name));
    }

    /// Answers a prediction: with the name of a choice, a bool, a figure, an order, or a part of a line. Has no effect
    /// for a question to think about.
    pub fn answer(&mut self, guess: Guess, key: impl Into<Key>) {
        let Guess { prediction, response } = guess;
        if !prediction.gates() {
            return; // A question to think about has no key.
        }
        self.emit(Event::Answer(Answer { prediction, key: key.into(), response }));
    }

    /// Prints a line verbatim.
    pub fn print(&mut self, line: impl Into<Text>) {
        self.emit(Event::Line(line.into()));
    }

    /// Shows a figure on a separate line.
    pub fn figure(&mut self, figure: Figure) {
        self.emit(Event::Figure(figure));
    }

    pub fn table(&mut self, table: Table) {
        self.emit(Event::Table(table));
    }

    /// Shows several lines verbatim: an error report, a tensor.
    pub fn report(&mut self, report: impl Display) {
        self.emit(Event::Report(report.to_string()));
    }

    /// Shows a drawing; the caption is its text alternative. A terminal draws a timeline and a memory map, but shows
    /// only the caption of an SVG.
    pub fn picture(&mut self, drawing: impl Into<Drawing>, caption: &str) {
        self.emit(Event::Picture {
            drawing: drawing.into(),
            caption: caption.to_owned(),
        });
    }

    /// Passes on a file that the lab has kept in memory, for a page to offer as a download. It is not an event.
    pub fn file(&mut self, name: &str, bytes: &[u8]) {
        self.sink.file(name, bytes);
    }

    /// Shows the current state: in a terminal, as a frame that replaces the previous one and is not an event;
    /// elsewhere, as a line.
    pub fn frame(&mut self, frame: &str, line: impl Into<Text>) {
        if !self.sink.frame(frame) {
            self.print(line);
        }
    }

    /// Starts a progress bar of `total` steps. Only a terminal shows it; it is not an event.
    #[must_use = "the bar ends when the handle is dropped"]
    pub fn progress(&mut self, total: usize, message: &str) -> Progress {
        self.sink.progress(total as u64, message)
    }
}

/// The machine's warnings until the next event. They may come from other threads.
#[derive(Clone)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Collects the warnings of this machine from now on.
    pub(crate) fn of(machine: &Machine) -> Warnings {
        let warnings = Warnings(Arc::default());
        let kept = warnings.0.clone();
        machine.on_warning(move |message| {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(message.to_owned());
        });
        warnings
    }

    pub(crate) fn flush(&self, sink: &mut dyn Sink) {
        for message in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            sink.event(Event::Warning(message));
        }
    }
}

/// The drawing of a progress bar by a sink.
pub trait Bar {
    fn inc(&self, steps: u64);
    fn finish(&self);
}

/// A running progress bar. It disappears when finished or dropped.
pub struct Progress(Option<Box<dyn Bar>>);

impl Progress {
    pub fn new(bar: impl Bar + 'static) -> Progress {
        Progress(Some(Box::new(bar)))
    }

    pub fn hidden() -> Progress {
        Progress(None)
    }

    pub fn inc(&self, steps: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(steps as u64);
        }
    }

    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish();
        }
    }
}
