//! The functions of the WebAssembly module. They take and return numbers only: the caller asks for memory with [`input`], writes
//! an exercise, the option chosen for each place, with blanks between, and `wide` or `narrow` into it, separated by NUL, and
//! calls [`check`]. What is to be said is then [`output`].
//!
//! A module is for one check. What code does that takes all the memory goes with it.

use std::cell::RefCell;

use exercises::Form;

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

/// Checks the choice that the input names: 0 if it is right, 1 if it is not yet, 2 if there is no such choice.
#[unsafe(no_mangle)]
pub extern "C" fn check() -> u32 {
    let input = INPUT.with_borrow(|input| String::from_utf8_lossy(input).into_owned());
    let mut words = input.split('\0');
    let id = words.next().unwrap_or_default();
    let chosen =
        words.next().unwrap_or_default().split(' ').map(str::parse).collect::<Result<Vec<usize>, _>>();
    let form = if words.next() == Some("narrow") { Form::Narrow } else { Form::Wide };
    let checked = chosen.ok().and_then(|chosen| crate::check(id, &chosen, form));
    let Some((exercise, checked)) = checked else { return 2 };
    OUTPUT.set(exercise.told(&checked));
    if checked.verdict.passed() { 0 } else { 1 }
}

/// Where what is to be said is, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(|output| output.len())
}
