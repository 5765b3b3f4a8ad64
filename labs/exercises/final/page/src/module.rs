//! The functions of the WebAssembly module. They take and return numbers only: the caller asks for memory with [`input`], writes a
//! question into it and calls [`answer`]. The answer is then [`output`], as JSON. Questions are words separated by NUL:
//!
//! - `program`, a seed: the program with its choices;
//! - `look`, a seed, the choices with blanks between, a function, and `wide` or `narrow`: its runs;
//! - `check`, a seed, the choices: the verdict.
//!
//! A module is for one question. Memory that code takes goes with it.

use std::cell::RefCell;

use crate::{Chosen, Form, checked, looked, program};

thread_local! {
    // A module has one thread, so this is all the state there is.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
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

/// Answers a question: 0, or 1 if it is none.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> u32 {
    let input = INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned());
    let words: Vec<&str> = input.split('\0').collect();
    let chosen = |seed: &str, places: &str| {
        let places = places.split(' ').map(str::parse).collect::<Result<Vec<usize>, _>>();
        Chosen::new(seed.parse().ok()?, &places.ok()?)
    };
    let answer = match words[..] {
        ["program", seed] => seed.parse().ok().and_then(program),
        ["look", seed, places, name, form] => {
            let form = if form == "narrow" { Form::Narrow } else { Form::Wide };
            chosen(seed, places).and_then(|chosen| looked(&chosen, name, form))
        }
        ["check", seed, places] => chosen(seed, places).map(|chosen| checked(&chosen)),
        _ => None,
    };
    let Some(answer) = answer else { return 1 };
    OUTPUT.set(answer.to_string());
    0
}

/// Where the answer is, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(|output| output.len())
}
