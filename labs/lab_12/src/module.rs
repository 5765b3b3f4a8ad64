//! The functions of the WebAssembly module. Their arguments and results are numbers: the caller requests memory with
//! [`input`], writes a request into it, and calls [`run`]. The report is then at [`output`], and the errors of the program
//! at [`errors`]. The parts of a request are separated by NUL:
//!
//! - the format (`text` or `json`), the checks (`memcheck,racecheck`) or `counters`, and the program
//! - `ladder`, the name of a ladder, and a card as in `--gpu`: the ladder's table, as JSON
//!
//! A module instance is for one run: the program's memory is freed with it.

use std::cell::RefCell;

use cuda_emulator::Checks;

use crate::{Said, Wanted, is_json};

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
    if let Some(request) = input.strip_prefix("ladder\0") {
        let (name, card) =
            request.split_once('\0').ok_or("the input is a ladder and a card, separated by NUL")?;
        return Ok(crate::ladder(name, crate::card::parse(card)?, true));
    }
    let mut parts = input.splitn(3, '\0');
    let (Some(format), Some(checks), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("the input is a format, checks and a program, separated by NUL".to_owned());
    };
    let counters = checks == "counters";
    let checks = if counters { Checks::MEMORY } else { Checks::parse(checks)? };
    let wanted = Wanted { checks, counters, json: is_json(format)?, ..Wanted::default() };
    Ok(crate::run("my.cu", text, &|_| None, wanted))
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
