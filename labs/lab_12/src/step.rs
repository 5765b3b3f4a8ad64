//! Steps of one warp of a launch, as text or as JSON.
//!
//! # JSON
//!
//! ```text
//! {"kernel":"add(const float *, float *, int)",
//!  "launch":1,"launches":2,                  which launch this is (from 1), and how many the program makes
//!  "grid":[4,1,1],"block":[64,1,1],
//!  "in_block":[0,0,0],"warp":0,"warps":2,    which warp this is, and how many a block has
//!  "lanes":32,                               the threads of this warp
//!  "files":["my.cu"],
//!  "functions":[{"name":"add","caller":null,"line":null},         the kernel
//!               {"name":"half_of","caller":0,"line":9}],          a call in function 0 at line 9
//!  "statements":[[0,7,5,7,48,0]],            file, line, column, end line, end column (exclusive), function
//!  "variables":[{"name":"i","type":"int","function":0,"line":7}], members and elements each have their own entry
//!  "shared":[{"name":"tile","type":"float[32][33]","shape":[32,33],"fields":[""],"cells":1056}],
//!  "steps":[…],
//!  "end":"returned",                         or "limit" (too many steps), or "error" (one ended the launch)
//!  "message":null}                           why, if the end is not "returned"
//! ```
//!
//! A step has these fields; all but the first two are absent if they are empty:
//!
//! | field | content |
//! | --- | --- |
//! | `statement` | its index |
//! | `active` | the lanes that execute it: bit `k` is lane `k` |
//! | `event` | `"barrier"`: the lanes wait at a barrier; `"opened"`: it has opened; `"lanes"`: they wait for other lanes |
//! | `others` | `[[shared, first cell, count, values]]`: cells that other warps changed since the previous step |
//! | `shared` | the same: cells that this warp changed |
//! | `variables` | `[[variable, lanes, values]]`: the variables that changed |
//! | `accesses` | `[{"do":"load","of":"a","lanes":…,"at":values,"is":values}]`: `load`, `store` or `atomic`; the index, or the address if `of` is null; the content afterwards |
//! | `exited` | the lanes that ended |
//! | `elsewhere` | `[[lanes, statement]]`: live lanes that are not active, and their next statement; null: the kernel's end |
//!
//! Initially, all variables and all shared cells are null. The state after a step results from all changes up to it.
//! `values` has a value for each lane or cell, in ascending order: a list; or one number, string or null, if all are
//! equal; or `{"from":a,"by":d}` for a, a + d, a + 2d, …; with `"of":"x"` for the pointers `x + a`, `x + (a + d)`, ….
//!
//! A value is a number; or a string: `"true"`, `"nan"`, `"inf"`, a whole number beyond 2^53, a pointer such as
//! `"a + 4"` (in elements), `"null"` or `"0x7f0000000100"`; or `"?"` for a variable that is declared and not yet written; or null
//! for one that is out of scope, and for a shared cell that nothing has written.

mod json;
mod text;
mod values;

use cuda_emulator::ir::Program as Kernel;
use cuda_emulator::run::checks::{Finding, Site, Thread};
use cuda_emulator::run::recording::Recording;
pub use cuda_emulator::run::recording::Wanted;
use cuda_emulator::{Program, Run, report};

use crate::{Response, card, gpu, registers, without_main};

pub const FIRST: Wanted = Wanted { launch: 1, block: [0; 3], warp: 0 };

pub fn step(
    name: &str,
    text: &str,
    includes: &dyn Fn(&str) -> Option<String>,
    wanted: Wanted,
    is_json: bool,
) -> Response {
    let refused = |errors| Response { output: String::new(), errors, code: 2 };
    let program = match Program::checked(name, text, includes) {
        Ok(program) => program,
        Err(rejected) if is_json => {
            return Response { output: report::json::rejected(&rejected), errors: String::new(), code: 2 };
        }
        Err(rejected) => return refused(rejected.text()),
    };
    let machine = program.machine_to_record(wanted);
    let registers = |kernel: &Kernel| registers::known(&program.files, kernel);
    let Some(run) = gpu::simulated::run(&program, machine, card::DEFAULT, &registers) else {
        return refused(without_main(name));
    };
    match existing(&program, &run, wanted) {
        Err(trouble) => refused(format!("error: {trouble}\n")),
        Ok(recording) => {
            let show = if is_json { json::json } else { text::text };
            let output = show(&program, &run, recording);
            Response { output, errors: String::new(), code: run.exit_code() as u8 }
        }
    }
}

/// The recording, or the reason why there is none.
fn existing<'r>(program: &Program, run: &'r Run, wanted: Wanted) -> Result<&'r Recording, String> {
    let Some(recording) = &run.recording else {
        if let Some(finding) = run.findings.all.iter().find(|finding| finding.is_fatal) {
            return Err(format!(
                "the program ended before launch {}: {}",
                wanted.launch,
                fault(program, finding)
            ));
        }
        let launches = match run.launches {
            0 => "launches no kernel".to_owned(),
            1 => "launches one kernel: launch 1".to_owned(),
            count => format!("launches kernels {count} times: launches 1 to {count}"),
        };
        return Err(format!("there is no launch {}: the program {launches}", wanted.launch));
    };
    if recording.exists() {
        return Ok(recording);
    }
    let list = |all: [u32; 3]| format!("{},{},{}", all[0], all[1], all[2]);
    let (launch, last) = (wanted.launch, recording.warps().saturating_sub(1));
    if wanted.warp > last {
        let warps = if last == 0 { "one warp: 0".to_owned() } else { format!("the warps 0 to {last}") };
        return Err(format!("there is no warp {}: the blocks of launch {launch} have {warps}", wanted.warp));
    }
    let last = list(recording.shape.grid.map(|count| count.saturating_sub(1)));
    Err(format!("there is no block {}: launch {launch} has the blocks 0,0,0 to {last}", list(wanted.block)))
}

/// Why the steps end before the warp does.
fn message(program: &Program, run: &Run, recording: &Recording) -> Option<String> {
    use cuda_emulator::run::recording::End;
    match recording.end {
        End::Returned => None,
        End::Limit => Some(format!("These are the first {} steps; there are more.", recording.steps.len())),
        End::Error => {
            let fatal = run.findings.all.iter().find(|finding| finding.is_fatal);
            Some(fatal.map_or("The launch ended early.".to_owned(), |finding| fault(program, finding)))
        }
    }
}

/// For example `Invalid __global__ write of size 4 bytes at my.cu:4:5, by thread (1,0,0) in block (0,0,0)`.
fn fault(program: &Program, finding: &Finding) -> String {
    let mut text = finding.title.clone();
    if let Some(Site { span: Some(span), thread, .. }) = finding.sites.first() {
        text += &format!(" at {}", program.files.place(*span));
        if let Some(Thread { thread: [x, y, z], block: [i, j, k] }) = thread {
            text += &format!(", by thread ({x},{y},{z}) in block ({i},{j},{k})");
        }
    }
    text
}

/// Parses `block=0,0,0;warp=0;launch=1`.
pub fn options(text: &str) -> Result<Wanted, String> {
    let mut wanted = FIRST;
    for option in text.split(';').map(str::trim).filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        set(&mut wanted, name.trim(), value.trim())?;
    }
    Ok(wanted)
}

pub fn set(wanted: &mut Wanted, name: &str, value: &str) -> Result<(), String> {
    match name {
        "block" => wanted.block = block(value)?,
        "warp" => {
            wanted.warp =
                value.parse().map_err(|_| format!("`{value}` is not a warp: warps count from 0"))?;
        }
        "launch" => {
            let launch = value.parse().ok().filter(|launch| *launch > 0);
            wanted.launch = launch.ok_or(format!("`{value}` is not a launch: launches count from 1"))?;
        }
        other => return Err(format!("unknown option `{other}`: expected block, warp, or launch")),
    }
    Ok(())
}

/// Parses a block's index, such as `3`, `3,1` or `3,1,0`.
fn block(text: &str) -> Result<[u32; 3], String> {
    let mut block = [0; 3];
    let parts: Vec<&str> = text.split(',').collect();
    let parsed = parts.iter().zip(&mut block).try_for_each(|(part, at)| {
        *at = part.trim().parse().ok()?;
        Some(())
    });
    match parsed {
        Some(()) if parts.len() <= 3 => Ok(block),
        _ => Err(format!("`{text}` is not a block: write x,y,z, such as 0,0,0")),
    }
}
