//! Lab 12: a program in CUDA C++ in, a report out. A terminal (`main.rs`) and a page (`module.rs`) show it.

#[cfg(target_family = "wasm")]
mod module;

use cuda_emulator::{Checks, Program, report};

/// The program that runs if no file is named.
pub const EXAMPLE: &str = include_str!("../examples/vector_add.cu");

/// What a run is to say.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub checks: Checks,
    pub json: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { checks: Checks { race: true, ..Checks::MEMORY }, json: false }
    }
}

/// What a run says: the program's output and the report, or why there is none; and the exit code.
pub struct Said {
    pub output: String,
    pub errors: String,
    pub code: u8,
}

/// Compiles, runs and checks a program. Files that it includes by `"…"` are found by `includes`.
pub fn run(name: &str, text: &str, includes: &dyn Fn(&str) -> Option<String>, wanted: Wanted) -> Said {
    let refused = |errors| Said { output: String::new(), errors, code: 2 };
    let program = match Program::checked(name, text, includes) {
        Ok(program) => program,
        Err(rejected) if wanted.json => {
            return Said { output: report::json::rejected(&rejected), errors: String::new(), code: 2 };
        }
        Err(rejected) => return refused(rejected.text()),
    };
    let Some(run) = program.run(wanted.checks) else {
        return refused(format!("error: {name} has no `main`: host code has to launch its kernels\n"));
    };
    let output = match wanted.json {
        true => report::json::json(&program.files, &run),
        false => format!("{}{}", run.output, report::text(&program.files, &run, wanted.checks)),
    };
    Said { output, errors: String::new(), code: run.exit_code() as u8 }
}

/// `text` or `json`
pub fn is_json(format: &str) -> Result<bool, String> {
    match format {
        "text" => Ok(false),
        "json" => Ok(true),
        other => Err(format!("there is no format `{other}`: there are text and json")),
    }
}
