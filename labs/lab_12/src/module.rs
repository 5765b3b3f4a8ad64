//! The functions of the WebAssembly module. Their arguments and results are numbers: the caller requests memory with
//! [`input`], writes the format (`text` or `json`), the checks (`memcheck,racecheck`) or `counters`, and the program
//! into it, separated by NUL, and calls [`run`]. The report is then at [`output`], and the errors of the program at
//! [`errors`]. To judge a kernel, the first two parts are `puzzle` or `case` and its name; `compile-puzzle` compiles it
//! alone.
//!
//! A module instance is for one run: the program's memory is freed with it.

use std::cell::RefCell;

use cuda_emulator::{Checks, Rejected, report};

use crate::{Said, Wanted, cases, is_json, puzzles, verdict};

/// The name of the reader's file in reports.
const FILE: &str = "my.cu";

thread_local! {
    // A module has one thread, so this is its only state.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
    static ERRORS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Reserves `length` bytes for the input, and returns their address. They may be written until the next call.
// Not mangled: the caller looks the function up by this unique name. The same holds below.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; length];
        input.as_mut_ptr()
    })
}

/// Runs the program in the input. Returns the exit code: 0 without findings, 1 with findings, 2 if the program or
/// another part of the input is invalid.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> u32 {
    let input = INPUT.take();
    let said = said(&String::from_utf8_lossy(&input)).unwrap_or_else(|trouble| Said {
        output: String::new(),
        errors: format!("error: {trouble}\n"),
        code: 2,
    });
    OUTPUT.set(said.output);
    ERRORS.set(said.errors);
    said.code.into()
}

fn said(input: &str) -> Result<Said, String> {
    let mut parts = input.splitn(3, '\0');
    let (Some(format), Some(checks), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("the input is a format, checks and a program, separated by NUL".to_owned());
    };
    match format {
        "puzzle" => {
            let puzzle = puzzles::find(checks)?;
            let judgement = puzzle.judge(FILE, text, &|_| None);
            return Ok(verdict::said(&judgement, &puzzle.heading(), FILE, true));
        }
        "compile-puzzle" => return Ok(compiled(puzzles::find(checks)?.rejected(FILE, text))),
        "case" => {
            let case = cases::find(checks)?;
            let judgement = case.judge(FILE, text, &|_| None);
            return Ok(verdict::said(&judgement, &case.heading(), FILE, true));
        }
        _ => {}
    }
    let counters = checks == "counters";
    let checks = if counters { Checks::MEMORY } else { Checks::parse(checks)? };
    let wanted = Wanted { checks, counters, registers: None, json: is_json(format)? };
    Ok(crate::run(FILE, text, &|_| None, wanted))
}

/// The errors of a kernel that does not compile, as JSON.
fn compiled(rejected: Option<Rejected>) -> Said {
    let code = if rejected.is_some() { 2 } else { 0 };
    let output =
        rejected.map_or("{\"errors\":[]}\n".to_owned(), |rejected| report::json::rejected(&rejected));
    Said { output, errors: String::new(), code }
}

/// The address of the report, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// The length of the report in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(|output| output.len())
}

/// The address of the program's errors, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn errors() -> *const u8 {
    ERRORS.with_borrow(|errors| errors.as_ptr())
}

/// The length of the errors in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn errors_length() -> usize {
    ERRORS.with_borrow(|errors| errors.len())
}
