//! The prompt: reads statements, runs them, and prints the values of expressions.

use std::io::{BufRead, IsTerminal, Write, stdin, stdout};

use rustpython_vm::compiler::Mode;
use rustpython_vm::{AsObject, PyResult, VirtualMachine};

use crate::run::report;

pub fn run(vm: &VirtualMachine) -> PyResult<()> {
    let scope = vm.new_scope_with_main()?;
    let is_terminal = stdin().is_terminal();
    if is_terminal {
        println!("Python with torch, on {}. Ctrl-D ends it.", todevice::Machine::current());
    }
    let mut source = String::new();
    loop {
        if is_terminal {
            print!("{}", if source.is_empty() { ">>> " } else { "... " });
            let _ = stdout().flush();
        }
        let mut line = String::new();
        if stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
            if is_terminal {
                println!();
            }
            if source.is_empty() {
                return Ok(());
            }
        }
        let is_blank = line.trim().is_empty();
        source.push_str(&line);
        // A block goes on until an empty line.
        if !is_blank && (is_open(&source) || (source.lines().count() > 1 && !line.is_empty())) {
            continue;
        }
        if source.trim().is_empty() {
            source.clear();
            continue;
        }
        let text = std::mem::take(&mut source);
        let done = vm
            .compile(&text, Mode::Single, "<stdin>".to_owned())
            .map_err(|error| vm.new_syntax_error(&error, Some(&text)))
            .and_then(|code| vm.run_code_obj(code, scope.clone()));
        if let Err(exception) = done {
            if exception.fast_isinstance(vm.ctx.exceptions.system_exit) {
                return Err(exception);
            }
            report(&exception, vm);
        }
    }
}

/// Whether more lines belong to this statement.
fn is_open(source: &str) -> bool {
    let last = source.trim_end();
    let count = |open: char, close: char| source.matches(open).count() > source.matches(close).count();
    last.ends_with(':')
        || last.ends_with('\\')
        || last.starts_with('@')
        || count('(', ')')
        || count('[', ']')
        || count('{', '}')
        || source.matches("\"\"\"").count() % 2 == 1
}
