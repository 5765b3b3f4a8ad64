//! The entry point of every binary: flags from the command line, events to the terminal.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::cli::{Color, Common, Format};
use super::entry::{Entry, Stop, clap_stop, ended, wrong};
use super::event::Event;
use super::lab::{Bar, Progress, Sink};
use super::prediction::{Answer, Prediction, Response};
use super::progress::Record;
use super::render_text::{Palette, Renderer, without_ticks};
use super::score::Score;
use super::stdio::{line, shown, to_stderr, to_stdout, to_stdout_as_it_is};
use super::{files, render_json, render_text};
use crate::Result;

/// Runs the lab of this binary. Exits with 0, with 1 if the lab failed, with 2 if a flag was wrong.
pub fn main<O: clap::Args>(lab: &Entry<O>) -> ExitCode {
    exit_with(run(lab))
}

/// Runs a program that is not a lab. Exits with 0, or with the code of its [`Stop`].
pub fn program<F: clap::Parser>(run: impl FnOnce(F) -> Result<(), Stop>) -> ExitCode {
    exit_with(F::try_parse().map_err(clap_stop).and_then(run))
}

/// Reports why a program stops, and returns its exit code.
fn exit_with(result: Result<(), Stop>) -> ExitCode {
    let Err(Stop { message, exit_code }) = result else { return ExitCode::SUCCESS };
    if exit_code == 0 {
        to_stdout(&message)
    } else {
        to_stderr(&message)
    }
    exit_code.into()
}

fn run<O: clap::Args>(lab: &Entry<O>) -> Result<(), Stop> {
    let (common, options) = lab.parse(std::env::args_os().skip(1))?;
    if let Some(file) = &common.trace {
        can_be_written("--trace", file)?;
    }
    let machine = common.gpu.machine().map_err(wrong)?;
    if let Some(reason) = common.gpu.why_simulated() {
        to_stderr(&format!(
            "note: this run uses a simulated GPU, not this computer's. {reason}\n"
        ));
    }
    let mut terminal = Terminal::new(&common)?;
    let result = ended(lab.start(&common, &options, &machine, &mut terminal));
    if common.ask {
        let score = terminal.score.summary(lab.name);
        // Standard output has JSON only.
        if common.format == Format::Json {
            to_stderr(&score)
        } else {
            to_stdout(&score)
        }
    }
    result
}

/// Rejects a file that cannot be written before the lab runs. Its contents stay.
pub(crate) fn can_be_written(flag: &str, file: &Path) -> Result<(), Stop> {
    let refused = |error| wrong(format!("{flag} {}: {error}", file.display()));
    // A link may lead to a file that does not exist yet.
    let target = files::followed(file).map_err(refused)?;
    let is_new = fs::symlink_metadata(&target).is_err();
    File::options().append(true).create(true).open(&target).map_err(refused)?;
    if is_new {
        let _ = fs::remove_file(target); // The run may fail, with nothing to write.
    }
    Ok(())
}

struct Terminal {
    format: Format,
    renderer: Renderer,
    watched: bool,
    /// Whether to ask the reader. Cleared at the end of the input.
    asks: bool,
    score: Score,
    kept: Option<PathBuf>,
    bar: Option<ProgressBar>,
    /// The number of lines of the frame at the end of the terminal's output.
    frame: usize,
}

impl Terminal {
    fn new(common: &Common) -> Result<Terminal, Stop> {
        let watched = io::stdout().is_terminal();
        let coloured =
            coloured(common.color, watched, |variable| std::env::var_os(variable));
        let palette = if coloured { Palette::Coloured } else { Palette::Plain };
        let kept = match &common.progress {
            Some(file) => {
                let refused =
                    |what| wrong(format!("--progress {}: {what}", file.display()));
                Record::read(file).map_err(refused)?;
                can_be_written("--progress", file)?;
                Some(file.clone())
            }
            None => None,
        };
        Ok(Terminal {
            format: common.format,
            renderer: Renderer::new(palette),
            watched,
            asks: common.ask,
            score: Score::default(),
            kept,
            bar: None,
            frame: 0,
        })
    }

    /// Stores an answer at once, since the reader may leave at the next question.
    fn store_answer(&mut self, event: &Event) {
        let (Event::Answer(answer @ Answer { response: Some(_), .. }), Some(file)) =
            (event, &self.kept)
        else {
            return;
        };
        if let Err(error) = Record::change(file, |record| record.add_prediction(answer))
        {
            to_stderr(&format!("warning: --progress {}: {error}\n", file.display()));
            self.kept = None;
        }
    }

    /// Gives a reader who is asked the time to think, since the answer follows at once.
    fn pause(&mut self) {
        if self.asks && self.format == Format::Text && io::stdin().is_terminal() {
            to_stdout("Enter to read on: ");
            self.asks = line().is_some();
        }
    }

    fn write(&mut self, event: &Event) {
        if self.format == Format::Json {
            to_stdout(&render_json::line(event));
        }
        if event.is_trouble() {
            to_stderr(&render_text::render(std::slice::from_ref(event)));
        } else if self.format == Format::Text {
            to_stdout(&self.renderer.render(event));
        }
    }
}

impl Sink for Terminal {
    fn event(&mut self, event: Event) {
        self.frame = 0; // It stays on the screen.
        match self.bar.clone() {
            // The bar makes room, and returns below the text.
            Some(bar) => bar.suspend(|| self.write(&event)),
            None => self.write(&event),
        }
        self.store_answer(&event);
        self.score.note(&event);
        if matches!(event, Event::Header(_))
            && self.watched
            && self.format == Format::Text
            && !self.asks
        {
            to_stdout("To make your own predictions first, add --ask.\n");
        }
        if matches!(&event, Event::Prediction(prediction) if !prediction.gates()) {
            self.pause();
        }
    }

    /// Asks until there is an answer, or none is wanted. If standard output is JSON, questions go to standard error.
    /// Asks at most three times, for programs such as `yes`.
    fn ask(&mut self, prediction: &Prediction) -> Option<Response> {
        if !self.asks {
            return None;
        }
        let tell = if self.format == Format::Json { to_stderr } else { to_stdout };
        if self.format == Format::Json {
            to_stderr(&format!("{}\n", without_ticks(&prediction.question)));
        }
        tell(&without_ticks(&prediction.listed()));
        let tries = if io::stdin().is_terminal() { usize::MAX } else { 3 };
        for _ in 0..tries {
            tell(&format!("Your answer ({}; Enter to skip): ", prediction.expects()));
            let Some(line) = line() else {
                self.asks = false; // The input has ended.
                tell("\n");
                return None;
            };
            if line.trim().is_empty() {
                return None;
            }
            match prediction.parse(&line) {
                Ok(response) => return Some(response),
                Err(what) => tell(&format!("{what}\n")),
            }
        }
        tell(&format!("Skipped after {tries} invalid answers.\n"));
        None
    }

    fn trace(&mut self, file: &Path, timeline: String) -> Result<()> {
        files::write(file, timeline.as_bytes())
            .map_err(|error| format!("--trace {}: {error}", file.display()).into())
    }

    fn frame(&mut self, frame: &str) -> bool {
        let movable =
            std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb");
        if self.format == Format::Json || !self.watched || !movable {
            return false;
        }
        to_stdout_as_it_is(&redrawn(self.frame, &shown(frame)));
        self.frame = frame.lines().count();
        std::thread::sleep(FRAME);
        true
    }

    fn progress(&mut self, total: u64, message: &str) -> Progress {
        if self.format == Format::Json || !self.watched {
            return Progress::hidden();
        }
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar =
            ProgressBar::new(total).with_style(style).with_message(message.to_owned());
        self.bar = Some(bar.clone());
        Progress::new(bar)
    }
}

/// The minimum time of a frame: simulated time passes too fast to watch.
const FRAME: Duration = Duration::from_millis(100);

/// Replaces a frame of `lines` lines at the end of the output. A line that is too long for the terminal is cut:
/// wrapped, it would count as two.
fn redrawn(lines: usize, frame: &str) -> String {
    let back = if lines > 0 { format!("\x1b[{lines}F\x1b[J") } else { String::new() };
    format!("{back}\x1b[?7l{}\x1b[?7h\n", frame.trim_end_matches('\n'))
}

impl Bar for ProgressBar {
    fn inc(&self, steps: u64) {
        self.inc(steps);
    }

    fn finish(&self) {
        self.finish_and_clear();
    }
}

/// Whether to use colours: decided by the flag, else by the terminal and the environment.
fn coloured(
    when: Color,
    watched: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> bool {
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
            let incapable = variable("TERM").is_some_and(|terminal| terminal == "dumb");
            watched && !refused && !incapable
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_the_place_of_the_one_before() {
        assert_eq!(redrawn(0, "a\nb"), "\x1b[?7la\nb\x1b[?7h\n");
        assert_eq!(redrawn(2, "c\n"), "\x1b[2F\x1b[J\x1b[?7lc\x1b[?7h\n");
    }

    #[test]
    fn no_color_and_dumb_terminals_are_respected() {
        let auto = |name: &'static str, value: &'static str| {
            coloured(Color::Auto, true, move |variable| {
                (variable == name).then(|| value.into())
            })
        };
        assert!(auto("TERM", "xterm"));
        assert!(auto("NO_COLOR", "")); // empty counts as unset
        assert!(!auto("NO_COLOR", "1"));
        assert!(!auto("TERM", "dumb"));
        assert!(!coloured(Color::Auto, false, |_| None));
    }
}
