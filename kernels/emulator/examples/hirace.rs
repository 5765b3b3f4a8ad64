//! Runs HiRace's suite: 590 kernels, most with a planted race or out-of-bounds access, on six graphs.
//!
//! ```text
//! git clone https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24
//! cargo run --release -p cuda-emulator --example hirace -- HiRace-Artifact-SC24
//! ```
//!
//! A file's name tells which bugs it has. Each kernel runs twice on each graph, with the suite's own launch of 1,024
//! blocks of 256 threads: with memcheck, and with racecheck. Since a real card continues past the ends of an array,
//! the racecheck run has padding there, so that an out-of-bounds access hides no race. This program replaces the
//! suite's host code, and creates the same data from the same random numbers.
//!
//! Races found out of 346, by graph. The figures of the other tools are from table 1 of HiRace's paper (SC24):
//!
//! | graph | this | HiRace | iGUARD | compute-sanitizer | comparison with serial code |
//! | --- | --- | --- | --- | --- | --- |
//! | the four of 100 and 200 nodes | 346 | 346 | 297 to 298 | 56 to 128 | 282 to 306 |
//! | the two of 5 nodes | 186, 300 | 182, 295 | | | |
//!
//! On graphs of 5 nodes, most of the planted races cannot happen. False alarms among the 244 other kernels: none.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cuda_emulator::host::random::Random;
use cuda_emulator::run::launch::{Machine, Shape};
use cuda_emulator::run::memory::Owner;
use cuda_emulator::{Checks, Program, Span};

/// Replaces the suite's `indigo_cuda.h`, which declares the kernel and contains `main`.
const HEADER: &str = "#include <cstdio>\n#include <cstdlib>\n#define qsort(...)\n";
const SHAPE: Shape = Shape { grid: [1024, 1, 1], block: [256, 1, 1], dynamic_shared: 0 };
/// Bytes before and after each array in racecheck runs: an element for each thread of the launch.
const ROOM: u64 = 4 * 1024 * 256;

struct Kernel {
    name: String,
    program: Program,
    has_race: bool,
    has_bounds_bug: bool,
}

struct Graph {
    name: String,
    nodes: i32,
    /// The kernel's arrays: the start of each node's neighbours, the neighbours, and two arrays of data.
    arrays: [Vec<i32>; 4],
}

#[derive(Default)]
struct Score {
    races: usize,
    false_alarms: usize,
    bounds: usize,
    false_bounds: usize,
    misjudged: Vec<String>,
    slowest: Duration,
    slowest_name: String,
}

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        return refuse("name the folder of a clone of HiRace-Artifact-SC24");
    };
    let folder = Path::new(&folder).join("indigo");
    let (kernels, graphs) = match (kernels(&folder.join("indigo_sources")), graphs(&folder.join("input"))) {
        (Ok(kernels), Ok(graphs)) => (kernels, graphs),
        (Err(trouble), _) | (_, Err(trouble)) => return refuse(&trouble),
    };
    let racy = kernels.iter().filter(|kernel| kernel.has_race).count();
    let bounds = kernels.iter().filter(|kernel| kernel.has_bounds_bug).count();
    println!("{} kernels: {racy} with a race, {bounds} with an access out of bounds\n", kernels.len());
    println!(
        "{:26} {:>9} {:>12} {:>9} {:>12}   slowest kernel",
        "graph", "races", "false alarms", "bounds", "false alarms"
    );
    let mut misjudged = Vec::new();
    for graph in &graphs {
        let score = score(&kernels, graph);
        println!(
            "{:26} {:>5}/{racy} {:>8}/{} {:>5}/{bounds} {:>8}/{}   {:.2} s {}",
            graph.name,
            score.races,
            score.false_alarms,
            kernels.len() - racy,
            score.bounds,
            score.false_bounds,
            kernels.len() - bounds,
            score.slowest.as_secs_f64(),
            score.slowest_name
        );
        misjudged.extend(score.misjudged.iter().map(|text| format!("{}: {text}", graph.name)));
    }
    misjudged.iter().for_each(|text| println!("{text}"));
    ExitCode::SUCCESS
}

fn refuse(trouble: &str) -> ExitCode {
    eprintln!("error: {trouble}");
    ExitCode::from(2)
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|trouble| format!("{}: {trouble}", folder.display()))?;
    for entry in entries.flatten().map(|entry| entry.path()) {
        if entry.is_dir() {
            files(&entry, extension, found)?;
        } else if entry.extension().is_some_and(|known| known == extension) {
            found.push(entry);
        }
    }
    found.sort();
    Ok(())
}

fn name(file: &Path) -> String {
    file.file_stem().map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

fn kernels(folder: &Path) -> Result<Vec<Kernel>, String> {
    let mut found = Vec::new();
    files(folder, "cu", &mut found)?;
    let kernel = |file: &PathBuf| {
        let name = name(file);
        let bytes = std::fs::read(file).map_err(|trouble| format!("{name}: {trouble}"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let includes = |header: &str| (header == "indigo_cuda.h").then(|| HEADER.to_owned());
        let program = Program::compile(&name, &text, &includes)?;
        let has = |bug: &str| name.contains(bug);
        let has_race = ["atomicBug", "guardBug", "syncBug", "raceBug"].into_iter().any(has);
        Ok(Kernel { has_bounds_bug: has("boundsBug"), has_race, program, name })
    };
    found.iter().map(kernel).collect()
}

/// Reads the graphs. A file holds the numbers of nodes and edges, the start of each node's neighbours, and the
/// neighbours.
fn graphs(folder: &Path) -> Result<Vec<Graph>, String> {
    let mut found = Vec::new();
    files(folder, "egr", &mut found)?;
    let graph = |file: &PathBuf| {
        let name = name(file);
        let bytes = std::fs::read(file).map_err(|trouble| format!("{name}: {trouble}"))?;
        let words: Vec<i32> = bytes.as_chunks().0.iter().map(|word| i32::from_le_bytes(*word)).collect();
        let [nodes, edges, rest @ ..] = &words[..] else { return Err(format!("{name} is no graph")) };
        let (first, neighbours) = rest.split_at((*nodes as usize + 1).min(rest.len()));
        if neighbours.len() != *edges as usize {
            return Err(format!("{name} has not {edges} edges"));
        }
        let mut random = Random::new(1);
        let count = (*nodes).max(*edges) as usize;
        let mut data = |below: i32| {
            let next = |_| random.number() as i32 % below;
            std::iter::once(0).chain((1..count).map(next)).collect::<Vec<i32>>()
        };
        let arrays = [first.to_vec(), neighbours.to_vec(), data(*nodes), data((*edges).max(1))];
        Ok(Graph { name, nodes: *nodes, arrays })
    };
    found.iter().map(graph).collect()
}

fn score(kernels: &[Kernel], graph: &Graph) -> Score {
    let score = Mutex::new(Score::default());
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(kernel) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            let out_of_bounds = finds(kernel, graph, Checks::MEMORY, 0);
            let races = finds(kernel, graph, Checks { race: true, ..Checks::MEMORY }, ROOM);
            let took = began.elapsed();
            let Ok(mut score) = score.lock() else { return };
            score.races += usize::from(kernel.has_race && races);
            score.false_alarms += usize::from(!kernel.has_race && races);
            score.bounds += usize::from(kernel.has_bounds_bug && out_of_bounds);
            score.false_bounds += usize::from(!kernel.has_bounds_bug && out_of_bounds);
            if kernel.has_race != races {
                let what = if races { "a race that is none in" } else { "no race in" };
                score.misjudged.push(format!("{what} {}", kernel.name));
            }
            if kernel.has_bounds_bug != out_of_bounds {
                let what = if out_of_bounds { "an access out of bounds" } else { "no access out of bounds" };
                score.misjudged.push(format!("{what} in {}", kernel.name));
            }
            if took > score.slowest {
                score.slowest = took;
                score.slowest_name.clone_from(&kernel.name);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let mut score = score.into_inner().unwrap_or_default();
    score.misjudged.sort();
    score
}

/// Whether a run of a kernel has a finding of the wanted check.
fn finds(kernel: &Kernel, graph: &Graph, checks: Checks, room: u64) -> bool {
    let Some((number, program)) = kernel.program.kernel("test_kernel") else { return false };
    let mut machine: Machine = kernel.program.machine(checks);
    let mut parameters = Vec::new();
    for array in &graph.arrays {
        let size = 4 * array.len() as u64;
        let at = machine.heap.allocate(room + size + room, Owner::Device, "", Span::default());
        let at = at.map(|at| at + room);
        let Some((at, range)) = at.and_then(|at| Some((at, machine.heap.range(at, size)?))) else {
            return false;
        };
        for (place, value) in machine.heap.space.bytes[range].chunks_mut(4).zip(array) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        parameters.extend(at.to_le_bytes());
    }
    parameters.extend(graph.nodes.to_le_bytes());
    parameters.resize(program.parameter_bytes as usize, 0);
    // A kernel that ends early says why in its findings.
    let _ = machine.run(program, number, SHAPE, &parameters, None);
    let wanted = if checks.race { "racecheck" } else { "memcheck" };
    machine.findings.all.iter().any(|finding| finding.check == wanted)
}
