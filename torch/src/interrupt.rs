//! Ctrl-C. The interpreter raises a KeyboardInterrupt, the prompt begins a new line, and the process that waits for the
//! interpreter ends it if that does not help.

use std::io::{Write, stdout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustpython_vm::signal::{UserSignalReceiver, user_signal_channel};
use rustpython_vm::{PyResult, VirtualMachine};

/// Whether the prompt waits for a line.
static IS_READING: AtomicBool = AtomicBool::new(false);
/// Whether Ctrl-C has discarded the lines of a statement.
static IS_DISCARDED: AtomicBool = AtomicBool::new(false);
static IS_PENDING: AtomicBool = AtomicBool::new(false);
static PRESSES: AtomicUsize = AtomicUsize::new(0);

/// Lets Ctrl-C interrupt the program of an interpreter that gets this channel.
pub fn in_interpreter() -> UserSignalReceiver {
    let (sender, receiver) = user_signal_channel();
    let _ = ctrlc::set_handler(move || {
        if IS_READING.load(Ordering::Relaxed) {
            IS_DISCARDED.store(true, Ordering::Relaxed);
            print!("\nKeyboardInterrupt\n>>> ");
            let _ = stdout().flush();
            return;
        }
        IS_PENDING.store(true, Ordering::Relaxed);
        // The interpreter of another process may have taken the first notice.
        for _ in 0..40 {
            let _ = sender.send(Box::new(raise_pending));
            thread::sleep(Duration::from_millis(50));
            if !IS_PENDING.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    receiver
}

/// Raises the KeyboardInterrupt of a press that has not been noticed.
pub fn raise_pending(vm: &VirtualMachine) -> PyResult<()> {
    match IS_PENDING.swap(false, Ordering::Relaxed) {
        true => Err(vm.new_exception_empty(vm.ctx.exceptions.keyboard_interrupt.to_owned())),
        false => Ok(()),
    }
}

/// Reads a line at the prompt. Returns whether Ctrl-C has discarded the lines before it.
pub fn while_reading<T>(read: impl FnOnce() -> T) -> (T, bool) {
    IS_READING.store(true, Ordering::Relaxed);
    let line = read();
    IS_READING.store(false, Ordering::Relaxed);
    (line, IS_DISCARDED.swap(false, Ordering::Relaxed))
}

/// Leaves Ctrl-C to the interpreter, which is another process, and counts.
pub fn in_parent() {
    let _ = ctrlc::set_handler(|| _ = PRESSES.fetch_add(1, Ordering::Relaxed));
}

pub fn presses() -> usize {
    PRESSES.load(Ordering::Relaxed)
}
