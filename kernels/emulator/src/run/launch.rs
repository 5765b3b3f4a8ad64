//! Launches: run blocks one after another, with their shared state.

use super::block::Block;
use super::checks::{Checks, Finding, Findings, Severity, Site, Thread};
use super::counters::Counters;
use super::interpreter::{Environment, Paused, Runner, Stop};
use super::memory::Heap;
use super::races::Order;
use super::recorder::Recorder;
use crate::ir::{Op, Program};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The device's and the host's memory, and all other state that outlives a launch.
#[derive(Default)]
pub struct Machine {
    pub heap: Heap,
    pub checks: Option<Checks>,
    pub findings: Findings,
    pub output: String,
    pub order: Order,
    pub next_interval: u32,
    /// Notes every access at once instead of letting some wait. The findings are the same.
    pub notes_at_once: bool,
    /// One cell for each word of the heap, if races are checked.
    pub cells: super::cells::Cells,
    /// The first interval of each launch, and its program: they identify the instruction of an access.
    pub programs: Vec<(u32, u32)>,
    /// The maximum number of warp instructions of a launch.
    pub budget: u64,
    /// The maximum number of instructions of `main`.
    pub host_budget: u64,
    /// The start of the run; `None` without a time limit.
    pub began: Option<Instant>,
    pub most_time: Duration,
    pub counters: Option<Vec<Counters>>,
    /// The maximum number of blocks of a launch that are counted, spread over the grid; `None` for all. The others run
    /// without counting, which is several times faster.
    pub most_counted: Option<u64>,
    pub recorder: Option<Box<Recorder>>,
    /// The maximum number of blocks of a launch that run, spread over the grid; `None` for all. The results of a sample
    /// are incomplete, so the program ends at their copy to the host.
    pub sample: Option<u64>,
    /// Whether a kernel that may use managed memory could still be running on a real card.
    pub is_busy: bool,
    pub is_full: bool,
}

pub const LAUNCH_BUDGET: u64 = 400_000_000;
/// An instruction of one lane takes a tenth of the time of a warp's.
pub const HOST_BUDGET: u64 = 10 * LAUNCH_BUDGET;
/// In bytes, per block.
pub const MOST_SHARED: u64 = 48 * 1024;
pub const MOST_TIME: Duration = Duration::from_secs(60);
/// In bytes.
pub const MOST_OUTPUT: usize = 1 << 20;
/// The number of instructions after which a block yields to others and the time limit is checked.
pub const SLICE: u64 = 4_000_000;
const MOST_BLOCKS_AT_ONCE: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u64,
}

impl Shape {
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }
}

impl Machine {
    pub fn new(checks: Checks) -> Machine {
        Machine {
            checks: Some(checks),
            next_interval: 1,
            budget: LAUNCH_BUDGET,
            host_budget: HOST_BUDGET,
            ..Machine::default()
        }
    }

    pub fn checks(&self) -> Checks {
        self.checks.unwrap_or(Checks::MEMORY)
    }

    pub fn is_late(&self) -> bool {
        self.began.is_some_and(|began| began.elapsed() >= self.most_time)
    }

    pub fn print(&mut self, text: &str) {
        if self.output.len() < MOST_OUTPUT {
            self.output.push_str(text);
            if self.output.len() >= MOST_OUTPUT {
                self.output.push_str("\n… (more output is left out)\n");
                self.is_full = true;
            }
        }
    }

    /// Returns why a shape cannot be launched, with the number of the CUDA error.
    pub fn refuses(program: &Program, shape: &Shape) -> Option<(u32, String)> {
        Machine::refuses_threads(shape).map(|why| (9, why)).or_else(|| {
            let (fixed, dynamic) = (program.shared_bytes, shape.dynamic_shared);
            let why = format!(
                "{fixed} bytes of shared memory from the kernel and {dynamic} from the launch; the maximum \
                 of both together is 49,152"
            );
            (fixed.saturating_add(dynamic) > MOST_SHARED).then_some((1, why))
        })
    }

    fn refuses_threads(shape: &Shape) -> Option<String> {
        let threads = shape.block.iter().map(|n| u64::from(*n)).product::<u64>();
        let [x, y, z] = shape.grid;
        if shape.grid.contains(&0) || shape.block.contains(&0) {
            return Some("the grid and the block need one thread at least".to_owned());
        }
        if threads > 1024 {
            return Some(format!("{threads} threads per block; the maximum is 1,024"));
        }
        if shape.block[2] > 64 {
            return Some(format!("{} threads along z; the maximum is 64", shape.block[2]));
        }
        if x > 0x7fff_ffff || y > 65535 || z > 65535 {
            return Some("the grid is too large".to_owned());
        }
        None
    }

    /// Runs all blocks of a launch. Returns `Err` if it ended early; the findings have the reason.
    pub fn run<'m>(
        &'m mut self,
        program: &'m Program,
        number: u32,
        shape: Shape,
        parameters: &[u8],
        environment: Option<&'m mut (dyn Environment + 'm)>,
    ) -> Result<(), Stop> {
        let is_host = environment.is_some();
        let checks = self.checks();
        let races = checks.race && !is_host;
        if !is_host {
            self.order.start = self.next_interval;
            let has = |wanted: fn(&Op) -> bool| program.ops.iter().any(wanted);
            let hands_over =
                has(|op| matches!(op, Op::Fence { .. })) && has(|op| matches!(op, Op::Atomic { .. }));
            self.order.clocks = (races && hands_over).then(Box::default);
            self.order.unordered_from =
                self.order.concurrent.iter().map(|(from, _)| *from).min().unwrap_or(self.order.start);
            self.programs.push((self.next_interval, number));
            if races {
                self.cells.grow(self.heap.space.bytes.len());
            }
        }
        let counters = if is_host { None } else { self.counters_of(program, number, shape) };
        let budget = if is_host { self.host_budget } else { self.budget };
        let mut runner = Runner::new(self, program, shape, parameters, environment, budget);
        runner.counters = counters;
        if !is_host && let Some(mut recorder) = runner.machine.recorder.take() {
            recorder.begin(&runner, number);
            runner.recorder = Some(recorder);
        }
        let result = if is_host { runner.run_host() } else { run_blocks(&mut runner) };
        if let Some(mut recorder) = runner.recorder.take() {
            recorder.finish();
            runner.machine.recorder = Some(recorder);
        }
        if let Some(mut counters) = runner.counters.take() {
            counters.end(&runner.machine.heap.allocations);
            runner.machine.counters.get_or_insert_default().push(counters);
        }
        result
    }

    /// Returns counters for a launch, if this run counts.
    fn counters_of(&self, program: &Program, number: u32, shape: Shape) -> Option<Counters> {
        self.counters.as_ref()?;
        let mut counters = Counters::new(number, program, shape);
        let most = self.sample.into_iter().chain(self.most_counted).min().unwrap_or(u64::MAX);
        counters.begin(shape, most.min(shape.blocks()));
        Some(counters)
    }
}

/// Runs the blocks in order. Those that yielded resume after others have started.
fn run_blocks(runner: &mut Runner) -> Result<(), Stop> {
    let (program, shape) = (runner.program, runner.shape);
    let blocks = shape.blocks();
    let run = runner.machine.sample.filter(|_| !runner.is_host).unwrap_or(u64::MAX).min(blocks);
    let threads = shape.block.iter().product::<u32>();
    let most_counted = runner.machine.most_counted.unwrap_or(u64::MAX).min(blocks);
    let group = |at: u64| u128::from(at) * u128::from(most_counted) / u128::from(blocks);
    let is_counted = |at: u64| at == 0 || group(at) != group(at - 1);
    let mut others = None;
    let mut next = 0u64;
    let mut waiting: VecDeque<Block> = VecDeque::new();
    loop {
        let mut block = if next < run && (waiting.len() < MOST_BLOCKS_AT_ONCE) {
            let [x, y, _] = shape.grid.map(u64::from);
            let at = (u128::from(next) * u128::from(blocks) / u128::from(run)) as u64;
            let index = [at % x, at / x % y, at / x / y].map(|n| n as u32);
            let interval = runner.interval();
            next += 1;
            let (number, races) = (at as u32, runner.races);
            Block::new(program, index, number, threads, shape.dynamic_shared, interval, races)
        } else {
            match waiting.pop_front() {
                Some(block) => block,
                None => {
                    runner.counters = runner.counters.take().or(others);
                    return Ok(());
                }
            }
        };
        if is_counted(u64::from(block.number)) != runner.counters.is_some() {
            std::mem::swap(&mut runner.counters, &mut others);
        }
        match runner.run_block(&mut block, SLICE)? {
            Paused::Done => {}
            Paused::GaveWay => waiting.push_back(block),
        }
    }
}

/// The position of a thread, given its number in its block.
pub fn thread(shape: &Shape, block: [u32; 3], number: u32) -> Thread {
    let [x, y, _] = shape.block;
    Thread { thread: [number % x, number / x % y, number / (x * y)], block }
}

pub fn fatal(
    check: &'static str,
    title: String,
    function: &str,
    sites: Vec<Site>,
    notes: Vec<String>,
) -> Finding {
    Finding {
        check,
        severity: Severity::Error,
        title,
        function: function.to_owned(),
        sites,
        notes,
        count: 1,
        is_fatal: true,
    }
}
