//! The labs as a WebAssembly module, for a web page or Node.
//!
//! There is no command line there, and a function of a module takes and returns numbers only. So the caller requests
//! memory with [`input`], writes the lab's name and flags into it, separated by NULs, and calls [`run`]. [`output`] and
//! [`errors`] then hold what a terminal would show. A page calls [`stream`] instead: it gets the lab's output as HTML
//! while the lab runs, through a function that it lends the module (`page.tell`). Each run has its own instance, so all
//! its memory is freed with the instance.
//!
//! The book's builder compiles it with the profile `player` and splits it: see the package `modules`. The resulting
//! sizes are listed next to the profile, in the workspace's `Cargo.toml`.

use std::cell::RefCell;
use std::path::Path;

use labs::cli::Format;
use labs::render_html::{Piece, Shows, Stream};
use labs::{Captured, Event, Listed, Sink, Stop, given, knobs, what_if};

thread_local! {
    // A module has one thread, so this is all the state.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
    static ERRORS: RefCell<String> = const { RefCell::new(String::new()) };
    static TRACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Allocates `length` bytes of input and returns their address. They may be written until the next call.
// Not mangled: the caller looks the function up by this name, which is unique. The same holds below.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; length];
        input.as_mut_ptr()
    })
}

/// Runs the lab that the input names, with the flags in the input. Returns its exit code: 0 for success, 1 if the lab
/// failed, 2 if there is no such lab or a flag was wrong.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> u32 {
    let input = INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned());
    let mut words = input.split('\0');
    let name = words.next().unwrap_or_default();
    let flags: Vec<&str> = words.collect();
    let captured = match Listed::named(name) {
        Some(lab) => (lab.run)(&flags),
        None => {
            let errors = format!("error: there is no lab '{name}'\n");
            Captured { errors, exit_code: 2, ..Captured::default() }
        }
    };
    OUTPUT.set(if captured.format == Format::Json { captured.json } else { captured.text });
    ERRORS.set(captured.errors);
    TRACE.set(captured.trace.unwrap_or_default());
    captured.exit_code.into()
}

#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Sends the page a message: its kind, and the address of its text in UTF-8. The page copies the text before it
    /// returns.
    #[link_name = "tell"]
    safe fn tell_page(kind: u32, start: *const u8, length: usize);
}

/// Other targets have no page.
#[cfg(not(target_family = "wasm"))]
fn tell_page(_kind: u32, _start: *const u8, _length: usize) {}

/// The kinds of message to a page. `run-worker.js` knows these numbers.
#[derive(Clone, Copy)]
enum Told {
    /// HTML that continues the previous block of text.
    Text = 0,
    /// HTML that begins a block of text.
    Begin = 1,
    /// HTML that stands on its own.
    Block = 2,
    /// The reason why the lab did not start, in words.
    Trouble = 3,
    /// The name of a file; its bytes follow.
    FileName = 4,
    File = 5,
    /// The requested section is complete, so the page may end the run.
    Over = 6,
    /// The machine that the lab runs on, and the seed: `machine: Tesla T4 (simulated), seed: 42`.
    Machine = 7,
}

fn tell(kind: Told, bytes: &[u8]) {
    tell_page(kind as u32, bytes.as_ptr(), bytes.len());
}

/// Shows a lab on a page.
struct Page(Stream);

impl Sink for Page {
    fn event(&mut self, event: Event) {
        if let Event::Header(header) = &event {
            tell(Told::Machine, header.machine_and_seed().as_bytes());
        }
        match self.0.render(&event) {
            Some(Piece::Text { html, begins }) => {
                tell(if begins { Told::Begin } else { Told::Text }, html.as_bytes());
            }
            Some(Piece::Block(html)) => tell(Told::Block, html.as_bytes()),
            None => {}
        }
    }

    fn section_done(&mut self) {
        tell(Told::Over, b"");
    }

    fn file(&mut self, name: &str, bytes: &[u8]) {
        tell(Told::FileName, name.as_bytes());
        tell(Told::File, bytes);
    }

    fn trace(&mut self, file: &Path, timeline: String) -> labs::Result<()> {
        self.file(&file.to_string_lossy(), timeline.as_bytes());
        Ok(())
    }
}

/// Runs the lab that the input names, and sends the page its output as it comes: `all` of it, or only its `results`.
/// The input is one of these words, the lab's name and its flags. Returns the exit code.
#[unsafe(no_mangle)]
pub extern "C" fn stream() -> u32 {
    let input = INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned());
    let mut words = input.split('\0');
    let shows = if words.next() == Some("results") { Shows::Results } else { Shows::All };
    let name = words.next().unwrap_or_default();
    let flags: Vec<&str> = words.collect();
    let ended = match Listed::named(name) {
        Some(lab) => (lab.run_streamed)(&flags, &mut Page(Stream::new(shows))),
        None => Err(Stop { message: format!("error: there is no lab '{name}'\n"), exit_code: 2 }),
    };
    let Err(Stop { message, exit_code }) = ended else { return 0 };
    if !message.is_empty() {
        tell(Told::Trouble, message.as_bytes());
    }
    exit_code.into()
}

/// Stores a file for the next lab that runs. The input is its name, a NUL and its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn give() {
    let input = INPUT.take();
    if let Some(end) = input.iter().position(|&byte| byte == 0) {
        given::give(&String::from_utf8_lossy(&input[..end]), input[end + 1..].to_vec());
    }
}

/// The controls that a page offers for the lab that the input names, as JSON: see `labs::knobs`. Returns 0, or 2 if
/// there is no such lab.
#[unsafe(no_mangle)]
pub extern "C" fn knobs_of() -> u32 {
    let name = INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned());
    let Some(lab) = Listed::named(&name) else { return 2 };
    OUTPUT.set(knobs::to_json(&knobs::knobs(&(lab.command)())).to_string());
    0
}

/// Answers a question of the page, such as an experiment with its knobs: see [`what_if::answer`]. The answer becomes
/// the output, as JSON. Returns 0, or 1 if there is no answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> u32 {
    let input = INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned());
    let answer = what_if::answer(&input.split('\0').collect::<Vec<_>>());
    let code = u32::from(answer.is_err());
    OUTPUT.set(answer.as_ref().map(|json| json.to_string()).unwrap_or_default());
    ERRORS.set(answer.err().map(|error| format!("error: {error}\n")).unwrap_or_default());
    TRACE.set(String::new());
    code
}

/// The address of the last run's output, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// The length of the output in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(|output| output.len())
}

/// The address of the last run's errors and warnings, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn errors() -> *const u8 {
    ERRORS.with_borrow(|errors| errors.as_ptr())
}

/// The length of the errors and warnings in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn errors_length() -> usize {
    ERRORS.with_borrow(|errors| errors.len())
}

/// The address of the last run's timeline, if `--trace` asked for one.
#[unsafe(no_mangle)]
pub extern "C" fn trace() -> *const u8 {
    TRACE.with_borrow(|trace| trace.as_ptr())
}

/// The length of the timeline in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn trace_length() -> usize {
    TRACE.with_borrow(|trace| trace.len())
}
