//! The runs of a program's functions as text: a table of all, and one with its copies, waits, kernels and memory.

use drawing::printable;

use super::Looked;
use crate::shown::{counted, ran};
use crate::{Call, CallKind, Ended, Seen, wrapped};

/// The figures of a run, as a table names them and as it shows them, with the width of each column.
pub const COLUMNS: [(&str, usize); 9] = [
    ("kernels", 8),
    ("in", 6),
    ("back", 6),
    ("waits", 6),
    ("KiB in", 8),
    ("peak KiB", 9),
    ("races", 6),
    ("ms", 9),
    ("busy", 6),
];

/// The meaning of the columns.
pub const MEANING: &str = "Copies in and back, calls that wait for the GPU, and how busy it is. What the check itself asks of a result is \
    counted too. Times are modelled. The peak is that of cuda:0; on sim:t4x2 the device is cuda:1.";

/// The figures of a run.
pub fn figures(seen: &Seen) -> [String; COLUMNS.len()] {
    [
        seen.count(CallKind::Launch).to_string(),
        seen.count(CallKind::ToDevice).to_string(),
        seen.count(CallKind::ToHost).to_string(),
        seen.held_up().to_string(),
        (seen.bytes(CallKind::ToDevice) >> 10).to_string(),
        (seen.peak >> 10).to_string(),
        seen.races.len().to_string(),
        format!("{:.3}", seen.time as f64 / 1e6),
        format!("{} %", 100 * seen.computed / seen.time.max(1)),
    ]
}

/// A table of the work of each GPU, one function per row.
pub fn overview(looked: &[Looked]) -> String {
    let row = |cells: &mut dyn Iterator<Item = &str>| -> String {
        cells.zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:>width$}")).collect()
    };
    let names = row(&mut COLUMNS.iter().map(|(name, _)| *name));
    let mut told = format!("{:<12}{:<10}{names}\n", "function", "machine");
    let mut notes = String::new();
    for Looked { unit, case, seen, died } in looked {
        let label = format!("{:<12}{:<10}", unit.name, case.gpu);
        let ended = match (seen, died) {
            (Some(seen), _) => {
                told += &format!("{label}{}\n", row(&mut figures(seen).iter().map(String::as_str)));
                ended(seen)
            }
            (None, Some(why)) => {
                told += &format!("{label}the program ended here\n");
                Some(format!("it {why}"))
            }
            (None, None) => {
                told += &format!("{label}did not run\n");
                None
            }
        };
        if let Some(why) = ended {
            let why = printable::line(why.lines().next().unwrap_or_default());
            notes += &wrapped("", &format!("{} on {}: {why}", unit.name, case.gpu));
        }
    }
    if !notes.is_empty() {
        told += &format!("\n{notes}");
    }
    told + "\n" + &wrapped("", MEANING)
}

/// How a function ended, if not well.
fn ended(seen: &Seen) -> Option<String> {
    match &seen.ended {
        Ended::Returned(_) => None,
        Ended::Failed { message, .. } => Some(message.clone()),
        Ended::Panicked { message, line } => {
            let line = line.map_or(String::new(), |line| format!(" on line {line}"));
            Some(format!("it panicked{line}: {message}"))
        }
        Ended::UsedUp => {
            Some("it does not end: all operations that a run may ask for are used up".to_owned())
        }
    }
}

/// A run of one function as it was seen, but for its timeline.
pub fn one(Looked { case, seen, died, .. }: &Looked) -> String {
    let Some(seen) = seen else {
        let why = died.as_deref().unwrap_or("did not run");
        return format!("It {}.\n", printable::line(why));
    };
    let ran = ran(case, seen);
    // How it ended is said there, but for the line.
    let mut told = match &seen.ended {
        Ended::Panicked { line: Some(line), .. } => {
            ran.replacen("It panicked: ", &format!("It panicked on line {line}: "), 1)
        }
        _ => ran,
    };
    told += &kernels(seen);
    told += &waits(seen);
    told += &memory(seen);
    told
}

/// The kernels by name, with how often each was launched.
fn kernels(seen: &Seen) -> String {
    let mut names: Vec<(String, usize)> = Vec::new();
    for call in seen.of(CallKind::Launch) {
        // A kernel's own name tells the type that it computes in.
        let name = match call.name.as_str() {
            "gemm" => format!("gemm {}", call.types.join(" ")),
            name => name.to_owned(),
        };
        match names.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += 1,
            None => names.push((name, 1)),
        }
    }
    names.sort_by_key(|known| std::cmp::Reverse(known.1));
    let shown = names.iter().take(16).map(|(name, count)| format!("{count} × {name}"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    if shown.is_empty() { shown } else { format!("\nkernels\n{}", wrapped("  ", &shown)) }
}

/// The lines that made the host wait, or copied, with how often.
fn waits(seen: &Seen) -> String {
    let mut lines: Vec<(Option<u32>, String, usize)> = Vec::new();
    let name_of = |call: &Call| match call.waits || call.blocks {
        true if call.kind != CallKind::Wait => format!("{}, which waits", call.name),
        _ => call.name.clone(),
    };
    let is_told =
        |kind| matches!(kind, CallKind::ToDevice | CallKind::ToHost | CallKind::Wait | CallKind::Driver);
    for call in seen.calls.iter().filter(|call| call.waits || is_told(call.kind)) {
        let name = name_of(call);
        match lines.iter_mut().find(|known| known.0 == call.line && known.1 == name) {
            Some((_, _, count)) => *count += 1,
            None => lines.push((call.line, name, 1)),
        }
    }
    let mut told = String::new();
    for (line, name, count) in lines.iter().take(12) {
        let line = line.map_or("no line of yours".to_owned(), |line| format!("line {line}"));
        told += &format!("  {line:<18}{count:>5} × {name}\n");
    }
    if told.is_empty() { told } else { format!("\ncopies, waits, and memory of the driver, by line\n{told}") }
}

/// The memory that tensors take, call by call, and the tensors at the peak.
fn memory(seen: &Seen) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut held: Vec<u64> = Vec::new();
    let mut there: Vec<(Option<u32>, u64)> = Vec::new();
    let (mut now, mut most, mut map) = (0u64, 0, Vec::new());
    for call in &seen.calls {
        match call.kind {
            CallKind::Allocate => {
                now += call.bytes;
                there.push((call.line, call.bytes));
            }
            CallKind::Free => {
                now = now.saturating_sub(call.bytes);
                if let Some(at) = there.iter().position(|block| block.1 == call.bytes) {
                    there.remove(at);
                }
            }
            _ => continue,
        }
        held.push(now);
        if now > most {
            (most, map) = (now, there.clone());
        }
    }
    if held.is_empty() {
        return String::new();
    }
    let step = held.len().div_ceil(64).max(1);
    let bar = |part: &[u64]| BARS[(7 * part.iter().copied().max().unwrap_or(0) / most.max(1)) as usize];
    let curve: String = held.chunks(step).map(bar).collect();
    let mut lines: Vec<(Option<u32>, u64, usize)> = Vec::new();
    for (line, bytes) in map {
        match lines.iter_mut().find(|known| known.0 == line) {
            Some(known) => (known.1, known.2) = (known.1 + bytes, known.2 + 1),
            None => lines.push((line, bytes, 1)),
        }
    }
    lines.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    let mut told = format!(
        "\nmemory that the function took, as it went on: {} KiB at most\n  {curve}\nat that moment, by the lines that took it\n",
        most >> 10
    );
    for (line, bytes, count) in lines.iter().take(8) {
        let line = line.map_or("no line of yours".to_owned(), |line| format!("line {line}"));
        told += &format!("  {line:<18}{:>5} KiB in {}\n", bytes >> 10, count_of(*count));
    }
    told
}

fn count_of(blocks: usize) -> String {
    counted(blocks, "block", "blocks")
}
