//! The functions of the WebAssembly module. Arguments and results are numbers. The caller requests memory with
//! [`input`], writes a request into it, with NUL between its parts, and calls [`run`]. The report is then at
//! [`output`], and the program's errors at [`errors`].
//!
//! | first part | second | third | report |
//! | --- | --- | --- | --- |
//! | `text`, `json` | checks (`memcheck,racecheck`) or `counters` | program | findings or counters |
//! | `compile` | program | | the errors that prevent a run, or the warnings |
//! | `puzzle` | its name | kernel | the judgement |
//! | `puzzle-compile` | its name | kernel | the errors that prevent a run, or the warnings |
//! | `case` | its name | program | the judgement |
//! | `case-compile` | its name | program | the errors that prevent a run, or the warnings |
//! | `ladder` | its name | a card as in `--gpu` | the ladder's table |
//! | `step` | `block=0,0,0;warp=0;launch=1` | program | the steps of a warp, see [`crate::step`] |
//!
//! A module instance is for one run: the program's memory is freed with it.

use std::cell::RefCell;

use cuda_emulator::Checks;

use crate::{Response, Wanted, cases, is_json, puzzles, step, verdict};

const FILE: &str = "my.cu";

thread_local! {
    // A module has one thread, so this is its only state.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
    static ERRORS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Reserves `length` bytes for the input, and returns their address. The caller may write them until the next call.
// Not mangled: the caller looks the function up by this unique name. The same holds below.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; length];
        input.as_mut_ptr()
    })
}

/// Executes the request. Returns the exit code: 0 without findings, 1 with findings, 2 if the program or another part
/// of the input is invalid.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> u32 {
    let input = INPUT.take();
    let said = said(&String::from_utf8_lossy(&input)).unwrap_or_else(|trouble| Response {
        output: String::new(),
        errors: format!("error: {trouble}\n"),
        code: 2,
    });
    OUTPUT.set(said.output);
    ERRORS.set(said.errors);
    said.code.into()
}

fn said(input: &str) -> Result<Response, String> {
    let (verb, rest) = input.split_once('\0').unwrap_or((input, ""));
    let two = || rest.split_once('\0').ok_or(format!("`{verb}` takes two parts more, separated by NUL"));
    match verb {
        "compile" => Ok(crate::compile(FILE, rest)),
        "step" => {
            let (options, text) = two()?;
            Ok(step::step(FILE, text, &|_| None, step::options(options)?, true))
        }
        "ladder" => {
            let (name, card) = two()?;
            Ok(crate::ladder(name, &[crate::card::parse(card)?], true))
        }
        "puzzle" => {
            let (name, text) = two()?;
            let puzzle = puzzles::find(name)?;
            Ok(verdict::said(&puzzle.judge(FILE, text, &|_| None), &puzzle.heading(), FILE, "", true))
        }
        "puzzle-compile" => {
            let (name, text) = two()?;
            Ok(crate::errors(puzzles::find(name)?.compile(FILE, text)))
        }
        "case" => {
            let (name, text) = two()?;
            let case = cases::find(name)?;
            Ok(verdict::said(
                &case.judge(FILE, text, &|_| None),
                &case.heading(),
                FILE,
                case.explanation,
                true,
            ))
        }
        "case-compile" => {
            let (name, text) = two()?;
            Ok(crate::errors(cases::find(name)?.compile(FILE, text)))
        }
        format => {
            let json = is_json(format)?;
            let (checks, text) = two()?;
            reported(json, checks, text)
        }
    }
}

fn reported(json: bool, checks: &str, text: &str) -> Result<Response, String> {
    let counters = checks == "counters";
    let checks = if counters { Checks::MEMORY } else { Checks::parse(checks)? };
    let wanted = Wanted { checks, counters, json, ..Wanted::default() };
    Ok(crate::run(FILE, text, &|_| None, wanted))
}

/// The address of the report, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// In bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(|output| output.len())
}

/// The address of the program's errors, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn errors() -> *const u8 {
    ERRORS.with_borrow(|errors| errors.as_ptr())
}

/// In bytes.
#[unsafe(no_mangle)]
pub extern "C" fn errors_length() -> usize {
    ERRORS.with_borrow(|errors| errors.len())
}
