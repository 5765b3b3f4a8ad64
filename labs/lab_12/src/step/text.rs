//! The steps as a table, one line for each.

use cuda_emulator::ir::debug::{Debug, SharedVariable, Statement};
use cuda_emulator::run::recording::{AccessKind, Cells, Change, Event, Recording, Step};
use cuda_emulator::{Files, Program, Run};

use super::json::{accessed, cell_values};
use super::values::{Series, Value};

const WIDEST: usize = 48;

pub fn text(program: &Program, run: &Run, recording: &Recording) -> String {
    let kernel = &program.kernels[recording.kernel as usize];
    let (debug, wanted, shape) = (&kernel.debug, recording.wanted, recording.shape);
    let list = |all: [u32; 3]| format!("({},{},{})", all[0], all[1], all[2]);
    let mut out = format!(
        "{}\nlaunch {} of {}: grid {}, block {}; warp {} of block {}, {}\n\n",
        kernel.name,
        wanted.launch,
        run.launches,
        list(shape.grid),
        list(shape.block),
        wanted.warp,
        list(wanted.block),
        counted(recording.lanes(), "lane")
    );
    let sources: Vec<String> =
        debug.statements.iter().map(|known| source(&program.files, debug, known)).collect();
    let used = recording.steps.iter().map(|step| sources[step.statement as usize].chars().count());
    let width = used.max().unwrap_or(0);
    let lanes: Vec<String> =
        recording.steps.iter().map(|step| lanes(step.active, recording.lanes())).collect();
    let lanes_width = lanes.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(5);
    out.push_str(&format!("line  {:lanes_width$}  {:width$}  changes\n", "lanes", "source"));
    for (step, lanes) in recording.steps.iter().zip(&lanes) {
        let statement = &debug.statements[step.statement as usize];
        let (line, source) = (statement.start.line, &sources[step.statement as usize]);
        let changes = changes(debug, recording, step).join("; ");
        let line = format!("{line:4}  {lanes:lanes_width$}  {source:width$}  {changes}");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    match super::message(program, run, recording) {
        Some(message) => out.push_str(&format!("\n{message}\n")),
        None => out.push_str(&format!(
            "\nThe warp has ended after {}.\n",
            counted(recording.steps.len() as u32, "step")
        )),
    }
    out
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A statement's text on one line, indented by call depth.
fn source(files: &Files, debug: &Debug, statement: &Statement) -> String {
    let (start, last) = (statement.start, statement.last);
    let file = files.0.get(start.file as usize).map_or("", |file| file.text.as_str());
    let mut words = Vec::new();
    let lines = (1u32..).zip(file.lines());
    for (number, line) in lines.skip(start.line as usize - 1).take_while(|(number, _)| *number <= last.line) {
        let from = if number == start.line { start.column as usize - 1 } else { 0 };
        let to = if number == last.line { (last.column + last.length) as usize - 1 } else { usize::MAX };
        let part: String = line.chars().take(to).skip(from).collect();
        words.push(part.trim().to_owned());
    }
    let mut depth = 0;
    let mut function = statement.function;
    while let Some((caller, _)) = debug.functions[function as usize].caller {
        function = caller;
        depth += 1;
    }
    let text = format!("{}{}", "  ".repeat(depth), words.join(" "));
    match text.chars().count() > WIDEST {
        true => text.chars().take(WIDEST - 1).chain(['…']).collect(),
        false => text,
    }
}

/// For example `32/32`, `4/32: 0-3` or `16/32: 0x55555555`.
fn lanes(mask: u32, all: u32) -> String {
    let count = mask.count_ones();
    match count == all {
        true => format!("{count}/{all}"),
        false => format!("{count}/{all}: {}", ranges(mask)),
    }
}

/// For example `0-3` or `0-3,8`; a mask if there are many ranges.
fn ranges(mask: u32) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == lane => *last = lane,
            _ => ranges.push((lane, lane)),
        }
    }
    if ranges.len() > 2 {
        return format!("{mask:#010x}");
    }
    let all = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    all.collect::<Vec<_>>().join(",")
}

fn changes(debug: &Debug, recording: &Recording, step: &Step) -> Vec<String> {
    let mut all = Vec::new();
    match step.event {
        Event::None => {}
        Event::Barrier => all.push("waits at the barrier".to_owned()),
        Event::Opened => all.push("the barrier opens".to_owned()),
        Event::Lanes => all.push("waits for other lanes".to_owned()),
    }
    all.extend(step.variables.iter().filter_map(|change| variable_text(debug, recording, step, change)));
    all.extend(step.shared.iter().map(|cells| cells_text(debug, recording, cells)));
    for access in step.accesses.iter().filter(|access| access.kind != AccessKind::Load) {
        for part in accessed(recording, access) {
            // `cells_text` has already shown changes of shared memory.
            let is_shared = |name: &String| debug.shared.iter().any(|known| known.name == *name);
            let Some(name) = part.name.filter(|name| !is_shared(name)) else { continue };
            let count = part.values.len();
            let at = part.elements.iter().map(|element| Value::Whole(i128::from(*element)));
            let at = Series::new(at.collect()).text(count);
            all.push(format!("{name}[{at}]: {}", Series::new(part.values).text(count)));
        }
    }
    if step.exited != 0 {
        let which = if step.exited == step.active { "these lanes have" } else { "some lanes have" };
        all.push(format!("{which} ended"));
    }
    if !step.others.is_empty() {
        let cells = step.others.iter().map(|cells| cells_text(debug, recording, cells));
        all.push(format!("before, by other warps: {}", cells.collect::<Vec<_>>().join(", ")));
    }
    all
}

/// Returns `None` for unimportant changes: a variable goes out of scope, or a parameter points to the memory of its
/// name.
fn variable_text(debug: &Debug, recording: &Recording, step: &Step, change: &Change) -> Option<String> {
    let variable = &debug.variables[change.variable as usize];
    let part = &variable.parts[change.part as usize];
    let mut name = format!("{}{}", variable.name, part.path);
    let values = change.contents.iter().map(|content| Value::new(recording, part.kind, *content));
    let (mut lanes, mut shown) = (0, Vec::new());
    for (lane, value) in (0..32).filter(|lane| change.lanes >> lane & 1 != 0).zip(values) {
        if value != Value::Nothing {
            lanes |= 1 << lane;
            shown.push(value);
        }
    }
    if shown.is_empty() || shown.iter().all(|value| *value == Value::Pointer(name.clone(), 0)) {
        return None;
    }
    // An argument of a call belongs to the called function.
    if debug.statements[step.statement as usize].function != variable.function {
        name += &format!(" of {}", debug.functions[variable.function as usize].name);
    }
    let count = shown.len();
    let values = Series::new(shown).text(count);
    Some(match lanes == step.active {
        true => format!("{name}: {values}"),
        false => {
            format!("{name}: {values} ({} {})", if count == 1 { "lane" } else { "lanes" }, ranges(lanes))
        }
    })
}

/// For example `tile[3][0..31]: 0..31`.
fn cells_text(debug: &Debug, recording: &Recording, cells: &Cells) -> String {
    let variable = &debug.shared[cells.variable as usize];
    let count = cells.contents.len();
    let values = Series::new(cell_values(debug, recording, cells)).text(count);
    format!("{}: {values}", place(variable, cells.first as u64, count as u64))
}

fn place(variable: &SharedVariable, first: u64, count: u64) -> String {
    let fields = variable.fields.len() as u64;
    let index = |cell: u64| {
        let mut rest = cell / fields;
        let mut text = variable.fields[(cell % fields) as usize].1.clone();
        for (at, size) in variable.shape.iter().enumerate().rev() {
            let here = if at == 0 { rest } else { rest % size };
            rest /= (*size).max(1);
            text = format!("[{here}]{text}");
        }
        text
    };
    let (name, last) = (&variable.name, first + count - 1);
    let row = variable.shape.last().copied().unwrap_or(1);
    match count {
        1 => format!("{name}{}", index(first)),
        // Within a row, only the last index differs.
        _ if fields == 1 && (variable.shape.len() == 1 || first / row == last / row) => {
            let start = index(first);
            let end = if variable.shape.len() == 1 { last } else { last % row };
            format!("{name}{}..{end}]", start.strip_suffix(']').unwrap_or(&start))
        }
        _ => format!("{name}{} to {}", index(first), index(last)),
    }
}
