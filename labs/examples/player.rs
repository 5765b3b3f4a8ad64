//! The labs as a WebAssembly module, for a web page or Node.
//!
//! There is no command line there, and a function of a module takes and returns numbers only. So the caller
//! asks for memory with [`input`], writes the lab's name and its flags into it, each but the last followed
//! by a NUL, and calls [`run`]. What a terminal would show is then [`output`] and [`errors`].
//!
//! `cargo build --example player --target wasm32-unknown-unknown` makes `player.wasm`.

use std::cell::RefCell;

use labs::cli::Format;
use labs::{Captured, Listed, what_if};

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
