//! What a lab sees of the world: somewhere to say things, and the flags every lab has.

use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use todevice::{Device, Machine};

use super::event::{Drawing, Event, Table};
use super::figure::Figure;
use super::prediction::{Answer, Guess, Key, Prediction, Response};
use super::text::Text;
use crate::Result;

/// Where events go: a terminal, a test, a page.
pub trait Sink {
    /// Takes the next event.
    fn event(&mut self, event: Event);

    /// Asks the reader, where there is one who wants to be asked. Nobody is asked for a thought.
    fn ask(&mut self, _prediction: &Prediction) -> Option<Response> {
        None
    }

    /// Whether anything of the section of that number is passed on, so that a lab whose sections do without one another need
    /// not run it otherwise.
    fn wants_section(&self, _number: &str) -> bool {
        true
    }

    /// Learns that what `--section` names is over: nothing of it follows, and a page need not wait for the rest.
    fn section_done(&mut self) {}

    /// Takes the timeline that `--trace` asked for, to be put into a file.
    fn trace(&mut self, _file: &Path, _timeline: String) -> Result<()> {
        Ok(())
    }

    /// Takes a file that the lab has kept in memory, where there is no disk and somebody may want it.
    fn file(&mut self, _name: &str, _bytes: &[u8]) {}

    /// Draws a frame in place of the one before, where there is anyone to watch it; says whether there is.
    fn frame(&mut self, _frame: &str) -> bool {
        false
    }

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

    /// The seed, from `--seed`.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The device of `--device`; without that flag the first GPU if there is one, else the CPU.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Passes an event on, after the warnings of what happened before it.
    fn emit(&mut self, event: Event) {
        self.warnings.flush(self.sink);
        self.sink.event(event);
    }

    /// Starts a section, with the number it has in the chapter. Says whether anybody wants what follows: a section that
    /// others build on runs in any case.
    pub fn section(&mut self, number: impl Display, title: &str) -> bool {
        let number = number.to_string();
        let wanted = self.sink.wants_section(&number);
        let title = title.to_owned();
        self.emit(Event::Section { number, title, apart: None, machine: None });
        wanted
    }

    /// Starts a section that goes its own way on a real GPU, so that it cannot be compared with a simulated one. `why`
    /// follows "because".
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

    /// Starts a section that brings a machine of its own, whatever `--gpu` says.
    pub fn section_on(&mut self, number: impl Display, title: &str, machine: &Machine) {
        let (number, title) = (number.to_string(), title.to_owned());
        let machine = Some(machine.to_string());
        self.emit(Event::Section { number, title, apart: None, machine });
    }

    /// Explains something, in a paragraph.
    pub fn prose(&mut self, text: impl Into<Text>) {
        self.emit(Event::Prose(text.into()));
    }

    /// Asks the reader what will come out, before it does. What is said is compared when the lab
    /// [answers](Self::answer).
    pub fn predict(&mut self, prediction: Prediction) -> Guess {
        self.emit(Event::Prediction(prediction.clone()));
        let response =
            if prediction.gates() { self.sink.ask(&prediction) } else { None };
        Guess { prediction, response }
    }

    /// Asks something that is only to be thought about.
    pub fn think(&mut self, id: &'static str, question: impl Into<String>) {
        self.emit(Event::Prediction(Prediction::think(id, question)));
    }

    /// Begins a part of the section that the chapter shows by this name, and asks nothing.
    pub fn part(&mut self, name: &'static str) {
        self.emit(Event::Part(name));
    }

    /// Answers a prediction: with the name of a choice, a truth, a figure, an order, or a part of a line. A thought is left
    /// unanswered.
    pub fn answer(&mut self, guess: Guess, key: impl Into<Key>) {
        let Guess { prediction, response } = guess;
        if !prediction.gates() {
            return; // A thought has no key.
        }
        self.emit(Event::Answer(Answer { prediction, key: key.into(), response }));
    }

    /// Prints a line exactly as it is.
    pub fn print(&mut self, line: impl Into<Text>) {
        self.emit(Event::Line(line.into()));
    }

    /// Shows a figure on a line of its own.
    pub fn figure(&mut self, figure: Figure) {
        self.emit(Event::Figure(figure));
    }

    /// Shows a table.
    pub fn table(&mut self, table: Table) {
        self.emit(Event::Table(table));
    }

    /// Shows several lines exactly as they are: an error report, a tensor.
    pub fn report(&mut self, report: impl Display) {
        self.emit(Event::Report(report.to_string()));
    }

    /// Shows a drawing; the caption says what it shows to whoever cannot see it. A timeline and a memory map are
    /// drawn in a terminal too; of an SVG it has the caption only.
    pub fn picture(&mut self, drawing: impl Into<Drawing>, caption: &str) {
        self.emit(Event::Picture {
            drawing: drawing.into(),
            caption: caption.to_owned(),
        });
    }

    /// Hands on a file that the lab has kept in memory: a page lets its reader take it away. It is no event.
    pub fn file(&mut self, name: &str, bytes: &[u8]) {
        self.sink.file(name, bytes);
    }

    /// Shows how things are now: to a person at a terminal as a frame, which is drawn in place of the one before and is
    /// no event; elsewhere as a line.
    pub fn frame(&mut self, frame: &str, line: impl Into<Text>) {
        if !self.sink.frame(frame) {
            self.print(line);
        }
    }

    /// Starts a progress bar of `total` steps. Only a person at a terminal sees it; it is no event.
    #[must_use = "the bar ends when the handle is dropped"]
    pub fn progress(&mut self, total: usize, message: &str) -> Progress {
        self.sink.progress(total as u64, message)
    }
}

/// The machine's warnings, kept until the next event: they come from anywhere, even from other threads.
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

    /// Passes on what has come up.
    pub(crate) fn flush(&self, sink: &mut dyn Sink) {
        for message in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            sink.event(Event::Warning(message));
        }
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
