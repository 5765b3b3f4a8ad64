//! Hints for a kernel that fails a gate. Those of the limits are in [`crate::limits`].

use cuda_emulator::run::checks::{Finding, Site};

use crate::faults::{Fault, Kind};

/// A hint for a kernel with this fault, which fails this gate. It is empty where the report is enough.
pub fn of(fault: &Fault, gate: &str) -> &'static str {
    match fault.kind {
        Kind::Endless => "A launch has to end: look for a loop whose condition never becomes false.",
        Kind::Reads => {
            "A thread reads past the end of an array, or before its start: guard the index, or shift it."
        }
        Kind::Writes => {
            "A thread writes past the end of an array, or before its start: guard the index, or shift it."
        }
        Kind::Other => "",
        Kind::Barriers => {
            "Every thread of a block has to reach each `__syncthreads()`, even one that has no element."
        }
        Kind::SharedRaces | Kind::GlobalRaces => {
            fault.run.findings.all.first().map_or("", |race| of_race(race, fault.kind == Kind::SharedRaces))
        }
        Kind::Unwritten => "A thread reads memory that nothing has written yet: give it a value first.",
        Kind::Missing => "Some elements never get a value: is there a thread for each, and does it write?",
        Kind::Wrong => of_elements(gate, fault.element.as_deref().unwrap_or("")),
        Kind::Writers => {
            "Several threads write the same element, even if they write the same number: let each write one of its own."
        }
    }
}

fn of_race(race: &Finding, is_shared: bool) -> &'static str {
    let is_of_writes = race.notes.first().is_some_and(|note| note.starts_with("WAW"));
    let [one, other] = &race.sites[..] else { return "" };
    let block = |site: &Site| site.thread.map(|thread| thread.block);
    let line = |site: &Site| site.span.map(|span| (span.file, span.line));
    if is_of_writes && is_shared {
        "Two threads write the same element: is the index right? If one comes after the other, put a barrier between. If they are meant to add up, use `atomicAdd`."
    } else if is_of_writes {
        "Two threads write the same element: is the index right? If they are meant to add up, use `atomicAdd`."
    } else if one.span == other.span {
        "Several threads change the same element at once. If they are meant to add up, use `atomicAdd`."
    } else if block(one) != block(other) {
        "One block reads what another writes, and blocks run in any order: no barrier helps. Let each block add its own part with `atomicAdd`, or launch a second kernel."
    } else if line(one) == line(other) {
        "This line reads and writes. Split it: read into a variable, wait at a barrier, then write. If the threads are meant to add up, use `atomicAdd`."
    } else {
        "One thread writes a value that another reads or writes, and no barrier puts the two in order."
    }
}

/// By the part of the gate's name after `wrong elements`: the cases before it are right.
pub fn of_elements(gate: &str, first: &str) -> &'static str {
    match gate.split_once(", ").map_or("", |(_, inputs)| inputs) {
        "several blocks" => {
            "One block is right. Does the index count the blocks before this one: `blockIdx.x * blockDim.x`? Does a block need anything of its neighbours?"
        }
        "several rows" => {
            "One row is right. Does every access to `a` and `out` begin at the row of this block?"
        }
        "several tiles" => {
            "One tile is right. Does each tile go to its own place? Does a sum go on from one tile to the next?"
        }
        "rectangles" => "A square is right. `x` counts columns and `y` rows: are two of them swapped?",
        "ragged end" => {
            "Here a block has more threads than elements. Do those with an element still do their work, and the others change nothing?"
        }
        "odd sizes" => {
            "Here a row of `a` is longer than twice a row of the output. Does each row of `a` begin at a multiple of `columns`?"
        }
        "other block sizes" => "Is a block size written as a number? Use `BLOCK` or `blockDim.x`.",
        "more elements than threads" | "more bins than threads" | "more columns than threads" => {
            "Here a thread has to take several of them: let it go on in steps of the number of threads, in a loop."
        }
        "fractions" => "Here the input has fractions. Is one of them kept in an `int`?",
        "negative numbers" | "very negative numbers" => {
            "Here all elements are negative. Does the maximum begin with a number that is larger than they are?"
        }
        "large numbers" => "`expf` of a large number is infinite. Is `m` subtracted in both places?",
        _ if first.contains("nan,") => {
            "`nan` is not a number. Does each variable get a value before it is read? Is 0 divided by 0?"
        }
        _ => "Work out the first wrong element of the smallest launch by hand.",
    }
}
