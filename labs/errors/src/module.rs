//! The functions of the WebAssembly module for the box "Paste an error". They take and return numbers only: the caller asks for memory
//! with [`input`], writes the pasted text into it, and calls [`explain`]. What the page shows is then [`output`], as HTML.

use std::cell::RefCell;

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

/// Explains the input, which begins with the way to the pages of the errors and a NUL. Returns 0 if the message is known, 2 if not:
/// then the output says which messages are near.
#[unsafe(no_mangle)]
pub extern "C" fn explain() -> u32 {
    let input = INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned());
    let (pages, text) = input.split_once('\0').unwrap_or(("", &input));
    let explained = crate::explain(text);
    let code = if explained.is_some() { 0 } else { 2 };
    OUTPUT.set(match explained {
        Some(explained) => crate::page::html(&explained, pages),
        None => crate::page::unknown(text, pages),
    });
    code
}

/// Where the output is, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(|output| output.len())
}
