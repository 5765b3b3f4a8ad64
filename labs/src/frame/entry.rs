//! Runs a lab from its flags to its events: the same in a terminal, a test and a page.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use drawing::{Timeline, printable};
use todevice::{Error, Machine, cuda};

use super::cli::{Common, Format};
use super::event::{Event, Header};
use super::lab::{Lab, Progress, Sink, Warnings};
use super::prediction::{Prediction, Response};
use super::{render_json, render_text};
use crate::Result;

/// A lab's name, title, function, and its own flags (`O`).
pub struct Entry<O> {
    /// The name of the binary, `lab-03`. Its number is the chapter's, and never changes.
    pub name: &'static str,
    pub title: &'static str,
    pub run: fn(&mut Lab, &O) -> Result<()>,
}

/// The end of a program: help or version, a wrong flag, or a failure. (A lab checks `--section` at its end.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The message, in whole lines; for a wrong flag, one line: `error: …`.
    pub message: String,
    /// 0 for help and version, 1 for a failure, 2 for a wrong flag.
    pub exit_code: u8,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stop {}

impl<O: Args> Entry<O> {
    /// The clap command with all flags.
    pub fn command(&self) -> Command {
        command(self.name, self.title, O::augment_args)
    }

    /// Parses the flags (without the program's name).
    pub fn parse<I>(&self, flags: I) -> Result<(Common, O), Stop>
    where
        I: IntoIterator,
        I::Item: Into<OsString> + Clone,
    {
        let flags = flags.into_iter().map(Into::into).collect();
        let matches = matches(self.command(), flags)?;
        let common = Common::from_arg_matches(&matches).map_err(clap_stop)?;
        let options = O::from_arg_matches(&matches).map_err(clap_stop)?;
        Ok((checked(self.name, common)?, options))
    }

    /// Runs the lab alone on a machine. Sends all events to `sink`, including its failure, but not a [`Stop`].
    pub fn start(
        &self,
        common: &Common,
        options: &O,
        machine: &Machine,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let Entry { name, title, run } = *self;
        start(name, title, common, machine, sink, &|lab| run(lab, options))
    }
}

// The next functions are not generic, so that they are compiled once for all labs.

/// The flags of every lab and of this one.
fn command(
    name: &'static str,
    title: &'static str,
    augment: fn(Command) -> Command,
) -> Command {
    let command =
        Command::new(name).version(env!("CARGO_PKG_VERSION")).no_binary_name(true);
    Common::augment_args(augment(command))
        .about(title) // after the flags, whose docs would replace it
        .mut_args(|arg| {
            // `--epochs -1` is a wrong value, not a flag named -1.
            let takes_value = arg.get_action().takes_values();
            arg.allow_negative_numbers(takes_value)
        })
}

fn matches(command: Command, flags: Vec<OsString>) -> Result<ArgMatches, Stop> {
    command.try_get_matches_from(flags).map_err(clap_stop)
}

/// Checks the flags of every lab, and adds the host to the machine's description.
fn checked(lab: &str, mut common: Common) -> Result<Common, Stop> {
    if let Some(section) = &common.section {
        check_moved(lab, section)?;
    }
    if let Some(host) = &common.host {
        let with_host = common.gpu.with_host(host);
        common.gpu = with_host.map_err(|what| wrong(format!("--host: {what}")))?;
    }
    let machine = common.gpu.bare_machine().map_err(wrong)?;
    common.device_of(&machine).map_err(|error| {
        let name = common.device.as_deref().unwrap_or_default();
        wrong(format!("--device {name}: {}", missing(&machine, error)))
    })?;
    Ok(common)
}

fn start(
    name: &str,
    title: &str,
    common: &Common,
    machine: &Machine,
    sink: &mut dyn Sink,
    run: &dyn Fn(&mut Lab) -> Result<()>,
) -> Result<()> {
    let device = common.device_of(machine)?;
    sink.event(Event::Header(Header {
        lab: name.to_owned(),
        title: title.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine.to_string(),
        device: device.to_string(),
        seed: common.seed,
    }));
    let warnings = Warnings::of(machine);
    if common.trace.is_some() {
        machine.start_trace();
    }
    let mut sections = Sections::new(common.section.as_deref(), sink);
    let mut run =
        || run(&mut Lab::new(common.seed, device, warnings.clone(), &mut sections));
    let mut result = machine.enter(|| match device.is_cuda() {
        true => cuda::device(device.index(), run)?, // the device of `synchronize()`, among others
        false => run(),
    });
    result = result.and_then(|()| sections.check(name));
    warnings.flush(&mut sections);
    if let Some(file) = &common.trace {
        // Also for a failed lab: the trace may show why.
        let taken = sink.trace(file, Timeline::of(&machine.trace()).to_chrome_json());
        result = result.and(taken);
    }
    if let Err(error) = &result
        && !error.is::<Stop>()
    {
        sink.event(Event::Failure {
            lab: name.to_owned(),
            message: error_report(&**error),
        });
    }
    result
}

/// Sections that moved to another lab: the old place and the new one.
const MOVED: [((&str, &str), (&str, &str)); 2] =
    [(("lab-05", "6"), ("lab-09", "7")), (("lab-05", "7"), ("lab-09", "8"))];

/// Returns an error with the new place if a section, or one of its parts, has moved to another lab.
fn check_moved(lab: &str, section: &str) -> Result<(), Stop> {
    let (number, part) = section.split_at(section.find('.').unwrap_or(section.len()));
    match MOVED.iter().find(|(was, _)| *was == (lab, number)) {
        Some((_, (lab, number))) => Err(wrong(format!(
            "--section {section}: this section is now in {lab}: cargo run --bin {lab} -- --section {number}{part}"
        ))),
        None => Ok(()),
    }
}

/// Passes on the events that `--section` selects: a section by its number, `6`, or the part after a prediction, by its
/// place or its name, `6.2` or `6.peak`. Without the flag, it passes on all events.
struct Sections<'a> {
    /// The number of the section, and the part.
    wanted: Option<(&'a str, Option<&'a str>)>,
    seen: Vec<String>,
    /// The parts of the wanted section so far.
    parts: Vec<&'static str>,
    /// Whether the lab is in the wanted part, and whether it has been.
    is_there: bool,
    was_there: bool,
    sink: &'a mut dyn Sink,
}

impl<'a> Sections<'a> {
    fn new(wanted: Option<&'a str>, sink: &'a mut dyn Sink) -> Sections<'a> {
        let part = |wanted: &'a str| match wanted.split_once('.') {
            Some((number, part)) => (number, Some(part)),
            None => (wanted, None),
        };
        let (seen, parts) = (Vec::new(), Vec::new());
        Sections {
            wanted: wanted.map(part),
            seen,
            parts,
            is_there: wanted.is_none(),
            was_there: false,
            sink,
        }
    }

    fn advance(&mut self, event: &Event) {
        let Some((number, part)) = self.wanted else { return };
        let was = self.is_there;
        match event {
            Event::Section { number: now, .. } => {
                self.seen.push(now.clone());
                self.is_there = now == number && part.is_none();
            }
            event if self.seen.last().is_some_and(|now| now == number) => {
                if let Some(name) = event.part() {
                    self.parts.push(name);
                    self.is_there = part.is_none_or(|part| {
                        part == name || part.parse() == Ok(self.parts.len())
                    });
                }
            }
            _ => {}
        }
        self.was_there |= self.is_there;
        if was && !self.is_there {
            self.sink.section_done();
        }
    }

    /// Returns an error if the wanted section does not exist.
    fn check(&self, lab: &str) -> Result<()> {
        match self.wanted {
            Some((number, Some(part))) if !self.parts.is_empty() && !self.was_there => {
                let parts = self.parts.iter().map(|part| format!("{number}.{part}"));
                Err(wrong(format!(
                    "--section {number}.{part}: {lab} has {}",
                    parts.collect::<Vec<_>>().join(", ")
                ))
                .into())
            }
            Some((number, part)) if !self.was_there => {
                let wanted =
                    part.map_or(number.to_owned(), |part| format!("{number}.{part}"));
                Err(wrong(format!(
                    "--section {wanted}: {lab} has {}",
                    self.seen.join(", ")
                ))
                .into())
            }
            _ => Ok(()),
        }
    }
}

impl Sink for Sections<'_> {
    fn event(&mut self, event: Event) {
        self.advance(&event);
        if self.is_there || matches!(event, Event::Failure { .. }) {
            self.sink.event(event);
        }
    }

    fn wants_section(&self, number: &str) -> bool {
        self.wanted.is_none_or(|(wanted, _)| wanted == number)
    }

    fn ask(&mut self, prediction: &Prediction) -> Option<Response> {
        if self.is_there { self.sink.ask(prediction) } else { None }
    }

    fn file(&mut self, name: &str, bytes: &[u8]) {
        self.sink.file(name, bytes);
    }

    fn frame(&mut self, frame: &str) -> bool {
        self.sink.frame(frame)
    }

    fn progress(&mut self, total: u64, message: &str) -> Progress {
        self.sink.progress(total, message)
    }
}

/// The text of an error. An error of the tensor crate may have a longer report than its message.
fn error_report(error: &(dyn std::error::Error + 'static)) -> String {
    error.downcast_ref::<Error>().map_or_else(|| error.to_string(), Error::report)
}

#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Standard output, as in a terminal without colours.
    pub text: String,
    /// Standard error: warnings, and why a lab failed or did not start.
    pub errors: String,
    /// JSON Lines.
    pub json: String,
    pub events: Vec<Event>,
    pub format: Format,
    /// The timeline for `--trace`.
    pub trace: Option<String>,
    pub exit_code: u8,
}

/// Runs a lab in this process and captures its output, for tests and the book. The environment has no effect.
pub fn run_captured<O: Args>(lab: &Entry<O>, flags: &[&str]) -> Captured {
    run_prepared(lab, flags, |_| ())
}

/// As [`run_captured`], on a machine that `prepare` has changed, for example by settings from a user's environment.
pub fn run_prepared<O: Args>(
    lab: &Entry<O>,
    flags: &[&str],
    prepare: fn(&Machine),
) -> Captured {
    match lab.parse(flags) {
        Ok((common, options)) => captured(&common, prepare, &|machine, sink| {
            lab.start(&common, &options, machine, sink)
        }),
        Err(Stop { message, exit_code }) => {
            let (text, errors) = if exit_code == 0 {
                (message, String::new())
            } else {
                (String::new(), message)
            };
            Captured { text, errors, exit_code, ..Captured::default() }
        }
    }
}

fn captured(
    common: &Common,
    prepare: fn(&Machine),
    start: &dyn Fn(&Machine, &mut dyn Sink) -> Result<()>,
) -> Captured {
    let mut kept = Kept::default();
    let machine = common.gpu.bare_machine().map_err(crate::Error::from);
    let result = machine.and_then(|machine| {
        prepare(&machine);
        start(&machine, &mut kept)
    });
    let Stop { message, exit_code } = ended(result).err().unwrap_or_default();
    let Kept { events, trace } = kept;
    let (trouble, output): (Vec<Event>, Vec<Event>) =
        events.iter().cloned().partition(Event::is_trouble);
    Captured {
        text: render_text::render(&output),
        errors: trouble
            .iter()
            .map(|event| render_text::render(std::slice::from_ref(event)))
            .chain([message])
            .collect(),
        json: events.iter().map(render_json::line).collect(),
        events,
        format: common.format,
        trace,
        exit_code,
    }
}

/// Runs a lab in this process and sends its events to `sink` as they occur, for a page.
pub fn run_streamed<O: Args>(
    lab: &Entry<O>,
    flags: &[&str],
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let (common, options) = lab.parse(flags)?;
    let machine = common.gpu.bare_machine().map_err(wrong)?;
    ended(lab.start(&common, &options, &machine, sink))
}

/// The end of a lab, with the error that its sink has not seen.
pub(crate) fn ended(result: Result<()>) -> Result<(), Stop> {
    result.map_err(|error| match error.downcast() {
        Ok(stop) => *stop,
        Err(_) => Stop { message: String::new(), exit_code: 1 },
    })
}

#[derive(Default)]
struct Kept {
    events: Vec<Event>,
    trace: Option<String>,
}

impl Sink for Kept {
    fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    fn trace(&mut self, _file: &Path, timeline: String) -> Result<()> {
        self.trace = Some(timeline);
        Ok(())
    }
}

/// A one-line error for a missing device, with the existing devices.
fn missing(machine: &Machine, error: Error) -> String {
    match machine.enter(cuda::device_count) {
        0 => error.to_string(),
        count => {
            let devices: Vec<String> =
                (0..count).map(|index| format!("cuda:{index}")).collect();
            format!("this machine ({machine}) has cpu, {}", devices.join(", "))
        }
    }
}

/// Converts clap's message. Help is unchanged; an error, which has paragraphs (error, tip, usage), becomes one line.
pub(crate) fn clap_stop(error: clap::Error) -> Stop {
    let message = error.to_string();
    if !error.use_stderr() {
        return Stop { message, exit_code: 0 };
    }
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .collect();
    if error.kind() == ErrorKind::UnknownArgument && lines.len() == 1 {
        lines.push("tip: --help lists the flags");
    }
    let message = lines.join(" ").replace(" tip: ", "; ");
    wrong(message.trim_start_matches("error: ").to_owned())
}

/// The end of a program that fails, with the first line of its error.
pub fn failed(error: impl ToString) -> Stop {
    let error = error.to_string();
    let first = error.lines().next().unwrap_or_default();
    Stop { exit_code: 1, ..wrong(first.to_owned()) }
}

/// The end of a program with wrong input, in one line whatever the flag or environment variable contained.
pub fn wrong(message: impl std::fmt::Display) -> Stop {
    Stop {
        message: format!("error: {}\n", printable::line(&message.to_string())),
        exit_code: 2,
    }
}
