//! The labs as a WebAssembly module, for a web page or Node.
//!
//! There is no command line there, and a function of a module takes and returns numbers only. So the caller
//! asks for memory with [`input`], writes the lab's name and its flags into it, each but the last followed
//! by a NUL, and calls [`run`]. What a terminal would show is then [`output`] and [`errors`]. A page calls [`stream`]
//! instead: it is told what the lab says while it runs, as HTML, by a function that it lends the module (`page.tell`).
//! Each run is in an instance of its own, so that all memory of a run goes with it.
//!
//! The builder of the book compiles it with the profile `player`, and splits it: see the package `modules`. What that weighs is beside
//! the profile, in the `Cargo.toml` of the workspace.

use std::cell::RefCell;
use std::path::Path;

use labs::cli::Format;
use labs::render_html::{Piece, Shows, Stream};
use labs::{Captured, Event, Listed, Sink, Stop, given, knobs, what_if};

thread_local! {
    // A module has one thread, so this is all the state there is.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
    static ERRORS: RefCell<String> = const { RefCell::new(String::new()) };
    static TRACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes room for `length` bytes of input, and says where. They may be written until the next call.
// No mangling: the caller looks the function up by this name, and no other has it. So too below.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; length];
        input.as_mut_ptr()
    })
}

/// Runs the lab that the input names, with the flags of the input. Returns its exit code: 0 if all went well, 1
/// if it failed, 2 if there is no such lab or a flag was wrong.
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
    /// Tells the page something: what kind it is, and where its text is, in UTF-8. The page copies it before it returns.
    #[link_name = "tell"]
    safe fn tell_page(kind: u32, start: *const u8, length: usize);
}

/// There is no page elsewhere.
#[cfg(not(target_family = "wasm"))]
fn tell_page(_kind: u32, _start: *const u8, _length: usize) {}

/// What a page is told. `run-worker.js` knows these numbers.
#[derive(Clone, Copy)]
enum Told {
    /// HTML that goes on in the block of text before it.
    Text = 0,
    /// HTML that begins a block of text.
    Begin = 1,
    /// HTML that stands for itself.
    Block = 2,
    /// Why the lab did not start, in words.
    Trouble = 3,
    /// The name of a file; its bytes follow.
    FileName = 4,
    File = 5,
    /// Nothing of the section that was asked for follows, so the page may end the run.
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

    fn over(&mut self) {
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

/// Runs the lab that the input names, and tells the page what it says as it comes: `all` of it, or its `results`. The input is
/// one of these words, the lab and its flags. Returns the exit code.
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

/// Keeps a file for the lab that runs next: the input is its name, a NUL and its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn give() {
    let input = INPUT.take();
    if let Some(end) = input.iter().position(|&byte| byte == 0) {
        given::give(&String::from_utf8_lossy(&input[..end]), input[end + 1..].to_vec());
    }
}

/// What a page offers to turn of the lab that the input names, as JSON: see `labs::knobs`. Returns 0, or 2 if there is no such lab.
#[unsafe(no_mangle)]
pub extern "C" fn knobs_of() -> u32 {
    let name = INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned());
    let Some(lab) = Listed::named(&name) else { return 2 };
    OUTPUT.set(knobs::to_json(&knobs::knobs(&(lab.command)())).to_string());
    0
}

/// Answers a question of the page, such as an experiment with its knobs: see [`what_if::answer`]. The answer is then the output, as
/// JSON. Returns 0, or 1 if there is none.
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

/// Where the output of the last run is, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(|output| output.len())
}

/// Where the errors and warnings of the last run are, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn errors() -> *const u8 {
    ERRORS.with_borrow(|errors| errors.as_ptr())
}

/// How many bytes they have.
#[unsafe(no_mangle)]
pub extern "C" fn errors_length() -> usize {
    ERRORS.with_borrow(|errors| errors.len())
}

/// Where the timeline of the last run is, if `--trace` asked for one.
#[unsafe(no_mangle)]
pub extern "C" fn trace() -> *const u8 {
    TRACE.with_borrow(|trace| trace.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn trace_length() -> usize {
    TRACE.with_borrow(|trace| trace.len())
}
