//! From a lab's flags to its events: the same way in a terminal, a test and a page.

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
use super::prediction::{Prediction, Said};
use super::{render_json, render_text};
use crate::Result;

/// What makes a function a lab: its name, its title, and flags of its own (`O`).
pub struct Entry<O> {
    /// The name of its binary, `lab-03`. Its number is the chapter's, and never changes.
    pub name: &'static str,
    /// The title of its chapter.
    pub title: &'static str,
    /// The lab itself.
    pub run: fn(&mut Lab, &O) -> Result<()>,
}

/// Why a program ends: it was only to print its help or version, a flag is wrong, or it failed. (Whether there is the
/// section of `--section` a lab finds out at its end.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// What to tell the reader, in whole lines. When a flag is wrong, a single one, `error: …`.
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
    /// What its flags are.
    pub fn command(&self) -> Command {
        command(self.name, self.title, O::augment_args)
    }

    /// Reads the flags (without the name of the program).
    pub fn parse<I>(&self, flags: I) -> Result<(Common, O), Stop>
    where
        I: IntoIterator,
        I::Item: Into<OsString> + Clone,
    {
        let flags = flags.into_iter().map(Into::into).collect();
        let matches = matches(self.command(), flags)?;
        let common = Common::from_arg_matches(&matches).map_err(stop)?;
        let options = O::from_arg_matches(&matches).map_err(stop)?;
        Ok((checked(self.name, common)?, options))
    }

    /// Runs the lab on a machine that nothing else runs on. It tells `sink` all that happens, its failure
    /// included, but for a [`Stop`].
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

// The next are functions of their own so that they are not compiled once for each lab.

/// The flags of every lab and those of this one.
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
    command.try_get_matches_from(flags).map_err(stop)
}

/// The flags of every lab, with the host in the description of the machine, if they make sense.
fn checked(lab: &str, mut common: Common) -> Result<Common, Stop> {
    if let Some(section) = &common.section {
        has_not_moved(lab, section)?;
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
        true => cuda::device(device.index(), run)?, // what `synchronize()` waits for, among others
        false => run(),
    });
    result = result.and_then(|()| sections.check(name));
    warnings.tell(&mut sections);
    if let Some(file) = &common.trace {
        // Of a lab that failed too: what happened until then may be why.
        let taken = sink.trace(file, Timeline::of(&machine.trace()).to_chrome_json());
        result = result.and(taken);
    }
    if let Err(error) = &result
        && !error.is::<Stop>()
    {
        sink.event(Event::Failure { lab: name.to_owned(), message: story(&**error) });
    }
    result
}

/// Sections that stand in another lab than they once did: which they were, and which they are now.
const MOVED: [((&str, &str), (&str, &str)); 2] =
    [(("lab-05", "6"), ("lab-09", "7")), (("lab-05", "7"), ("lab-09", "8"))];

/// Says where a section is that has moved to another lab, or one of its parts.
fn has_not_moved(lab: &str, section: &str) -> Result<(), Stop> {
    let (number, part) = section.split_at(section.find('.').unwrap_or(section.len()));
    match MOVED.iter().find(|(was, _)| *was == (lab, number)) {
        Some((_, (lab, number))) => Err(wrong(format!(
            "--section {section}: this section is now in {lab}: cargo run --bin {lab} -- --section {number}{part}"
        ))),
        None => Ok(()),
    }
}

/// Passes on what `--section` names: a section by its number, `6`, or what follows a prediction in it, by its place or its
/// name, `6.2` or `6.peak`. Without the flag everything is passed on.
struct Sections<'a> {
    /// The number of a section, and the part of it.
    wanted: Option<(&'a str, Option<&'a str>)>,
    /// The sections there were until now.
    seen: Vec<String>,
    /// The parts of the wanted one until now.
    parts: Vec<&'static str>,
    /// Whether the lab is where it was asked for, and whether it ever was.
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

    /// Notes where the lab has come to.
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
            self.sink.over();
        }
    }

    /// Whether there was such a section.
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

    fn wants(&self, number: &str) -> bool {
        self.wanted.is_none_or(|(wanted, _)| wanted == number)
    }

    fn ask(&mut self, prediction: &Prediction) -> Option<Said> {
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

/// What to say of an error: one of the tensor crate's may have more to tell than its message.
fn story(error: &(dyn std::error::Error + 'static)) -> String {
    error.downcast_ref::<Error>().map_or_else(|| error.to_string(), Error::report)
}

/// All that a run of a lab produced.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// What a reader sees in a terminal without colours: standard output.
    pub text: String,
    /// What goes to standard error: warnings, and why a lab failed or did not start.
    pub errors: String,
    /// JSON Lines.
    pub json: String,
    pub events: Vec<Event>,
    /// Which of the two `--format` asked for.
    pub format: Format,
    /// The timeline that `--trace` asks for.
    pub trace: Option<String>,
    pub exit_code: u8,
}

/// Runs a lab in this process and keeps what it says, for tests and the book. Both show the same whatever the
/// environment asks for.
pub fn run_captured<O: Args>(lab: &Entry<O>, flags: &[&str]) -> Captured {
    run_prepared(lab, flags, |_| ())
}

/// The same on a machine that has been prepared: by what a person's environment would ask of it, for one.
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

/// Runs a lab in this process and tells `sink` what it says as it comes: for a page.
pub fn run_streamed<O: Args>(
    lab: &Entry<O>,
    flags: &[&str],
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let (common, options) = lab.parse(flags)?;
    let machine = common.gpu.bare_machine().map_err(wrong)?;
    ended(lab.start(&common, &options, &machine, sink))
}

/// How a lab ends, with what its sink was not told.
pub(crate) fn ended(result: Result<()>) -> Result<(), Stop> {
    result.map_err(|error| match error.downcast() {
        Ok(stop) => *stop,
        Err(_) => Stop { message: String::new(), exit_code: 1 },
    })
}

/// Keeps what it is told.
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

/// Why a device is not there, in one line: which devices are.
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

/// What clap has to say. Help stays as it is; of an error, which comes in paragraphs (error, tip, usage),
/// one line is made.
pub(crate) fn stop(error: clap::Error) -> Stop {
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

/// The first line of what went wrong in a program that had begun.
pub fn failed(error: impl ToString) -> Stop {
    let error = error.to_string();
    let first = error.lines().next().unwrap_or_default();
    Stop { exit_code: 1, ..wrong(first.to_owned()) }
}

/// One line whatever the flag, or the variable of the environment, contained.
pub fn wrong(message: impl std::fmt::Display) -> Stop {
    Stop {
        message: format!("error: {}\n", printable::line(&message.to_string())),
        exit_code: 2,
    }
}
