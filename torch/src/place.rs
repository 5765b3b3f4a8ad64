//! The line of Python that is running, for the places in reports.

use std::cell::RefCell;
use std::collections::HashMap;

use rustpython_vm::VirtualMachine;
use rustpython_vm::builtins::PyBaseExceptionRef;
use todevice::{ScriptLine, interpreter};

thread_local! {
    /// The lines that have been asked for, by the address of the file's name, which lives as long as the interpreter.
    static LINES: RefCell<HashMap<(usize, u32), &'static ScriptLine>> = RefCell::default();
}

/// Attributes all work to the current line of the program, until the guard is dropped.
pub fn of_script(vm: &VirtualMachine) -> Option<impl Drop + use<>> {
    line(vm).map(interpreter::at_line)
}

/// The line of the program at which an exception was raised: `train.py:7`.
pub fn of_traceback(exception: &PyBaseExceptionRef) -> Option<String> {
    let (mut next, mut place) = (exception.__traceback__(), None);
    while let Some(traceback) = next {
        let file = traceback.frame.code.source_path().as_str();
        if is_of_program(file) {
            place = Some(format!("{file}:{}", traceback.lineno.get()));
        }
        next = traceback.next.lock().clone();
    }
    place
}

fn is_of_program(file: &str) -> bool {
    file.ends_with(".py") || file == "<string>" || file == "<stdin>"
}

/// The innermost line that is of the program, and not of the course's own modules.
pub fn line(vm: &VirtualMachine) -> Option<&'static ScriptLine> {
    let frames = vm.frames.borrow();
    frames.iter().rev().find_map(|frame| {
        // SAFETY: the frames of this list are running, so they are alive, and none ends during this borrow.
        let frame = unsafe { frame.as_ref() };
        let file = frame.code.source_path().as_str();
        if !is_of_program(file) || frame.lasti() == 0 {
            return None;
        }
        let line = frame.current_location().line.get() as u32;
        Some(LINES.with_borrow_mut(|lines| {
            *lines.entry((file.as_ptr().addr(), line)).or_insert_with(|| {
                // As many as the program has lines.
                Box::leak(Box::new(ScriptLine { file: file.to_owned(), line }))
            })
        }))
    })
}
