//! The prompt: reads statements, runs them, and prints the values of expressions.

use std::io::{BufRead, IsTerminal, Write, stdin, stdout};

use rustpython_vm::compiler::Mode;
use rustpython_vm::{AsObject, PyResult, VirtualMachine};

use crate::interrupt;
use crate::run::report;

pub fn run(vm: &VirtualMachine) -> PyResult<()> {
    let scope = vm.new_scope_with_main()?;
    let is_terminal = stdin().is_terminal();
    if is_terminal {
        println!("Python with torch, on {}. Ctrl-D ends it.", todevice::Machine::current());
        // Errors must come before the next `>>>`, and standard error takes another way to the terminal.
        vm.sys_module.set_attr("stderr", vm.sys_module.get_attr("stdout", vm)?, vm)?;
    }
    let (mut source, mut lines_before) = (String::new(), 0);
    loop {
        if is_terminal {
            print!("{}", if source.is_empty() { ">>> " } else { "... " });
            let _ = stdout().flush();
        }
        let mut line = String::new();
        let (read, is_discarded) =
            interrupt::while_reading(|| stdin().lock().read_line(&mut line).unwrap_or(0));
        if is_discarded {
            source.clear();
        }
        let is_end = read == 0;
        if is_end && is_terminal {
            println!();
        }
        source.push_str(&line);
        if !is_end && goes_on(&source) {
            continue;
        }
        if !source.trim().is_empty() {
            // Lines are numbered through, so that reports tell the statements apart.
            let text = format!("{}{source}", "\n".repeat(lines_before));
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
        lines_before += source.lines().count();
        source.clear();
        if is_end {
            return Ok(());
        }
    }
}

/// Whether more lines may belong to this statement. A block goes on until an empty line.
fn goes_on(source: &str) -> bool {
    if is_open(source) {
        return true;
    }
    let mut lines = source.lines();
    let is_block = lines.clone().next().is_some_and(|line| line.starts_with('@'))
        || lines.clone().any(|line| without_comment(line).trim_end().ends_with(':'));
    is_block && lines.next_back().is_some_and(|line| !line.trim().is_empty())
}

/// Whether a bracket, a string of three quotes, or a line is not closed.
fn is_open(source: &str) -> bool {
    let (mut depth, mut quote): (i32, Option<String>) = (0, None);
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match &quote {
            Some(_) if first == '\\' => length += rest[length..].chars().next().map_or(0, char::len_utf8),
            Some(end) if rest.starts_with(end.as_str()) => {
                length = end.len();
                quote = None;
            }
            Some(end) if first == '\n' && end.len() == 1 => quote = None,
            Some(_) => {}
            None => match first {
                '#' => length = rest.find('\n').unwrap_or(rest.len()),
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                '"' | '\'' => {
                    let three = first.to_string().repeat(3);
                    let end = if rest.starts_with(&three) { three } else { first.to_string() };
                    length = end.len();
                    quote = Some(end);
                }
                _ => {}
            },
        }
        rest = &rest[length..];
    }
    depth > 0 || quote.is_some_and(|end| end.len() == 3) || source.trim_end_matches('\n').ends_with('\\')
}

/// The line without a comment, if no quote comes before it.
fn without_comment(line: &str) -> &str {
    match line.find(['#', '"', '\'']) {
        Some(at) if line[at..].starts_with('#') => &line[..at],
        _ => line,
    }
}
