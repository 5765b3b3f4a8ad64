//! `torch-python`: runs a program of PyTorch on the simulated GPU of the course.
//!
//! The interpreter runs in a child process. A stack overflow, a memory limit or a deadline ends the child, and this
//! process says so in one line.

mod arguments;
mod callback;
mod command_line;
mod cuda;
mod device;
mod distributed;
mod dtype;
mod fault;
mod float;
mod generator;
mod guard;
mod host;
mod interrupt;
mod limits;
mod math;
mod operations;
mod parcel;
mod place;
mod processes;
mod profiler;
mod prompt;
mod python_random;
mod run;
mod schema;
mod serialize;
mod shared;
mod tensor;
mod torch_module;
mod value;
mod vision;

use std::process::ExitCode;

use command_line::CommandLine;

fn main() -> ExitCode {
    match CommandLine::read(std::env::args().skip(1)) {
        Ok(line) if line.is_child => ExitCode::from(limits::with_a_large_stack(move || child(&line))),
        Ok(line) => ExitCode::from(limits::in_a_child(&line)),
        Err(stop) => {
            match stop.status {
                0 => println!("{}", stop.message),
                _ => eprintln!("{}", stop.message),
            }
            ExitCode::from(stop.status)
        }
    }
}

fn child(line: &CommandLine) -> u8 {
    let machine = match line.machine() {
        Ok(machine) => machine,
        Err(message) => {
            eprintln!("{message}");
            return 2;
        }
    };
    machine.on_warning(run::warn);
    if line.trace.is_some() {
        machine.start_trace();
    }
    let status = machine.enter(|| run::run(&line.program, &line.arguments));
    if let Some(path) = &line.trace {
        if let Err(error) = std::fs::write(path, drawing::Timeline::of(&machine.trace()).to_chrome_json()) {
            eprintln!("{}: {error}", path.display());
            return 2;
        }
        println!("The timeline is in {}. chrome://tracing and ui.perfetto.dev show it.", path.display());
    }
    status
}
