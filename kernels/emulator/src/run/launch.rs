//! Launches: blocks one after another, and what they share.

use super::block::Block;
use super::checks::{Checks, Finding, Findings, Severity, Site, Thread};
use super::interpreter::{Environment, Paused, Runner, Stop};
use super::memory::Heap;
use super::races::Order;
use crate::ir::{Op, Program};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The device and the host's memory: what outlives a launch.
#[derive(Default)]
pub struct Machine {
    pub heap: Heap,
    pub checks: Option<Checks>,
    pub findings: Findings,
    pub output: String,
    pub order: Order,
    pub next_interval: u32,
    /// One for each word of the heap, if races are checked.
    pub cells: Vec<super::races::Cell>,
    /// Which program's instruction an access names: programs by the interval they began with.
    pub programs: Vec<(u32, u32)>,
    /// Instructions of a warp that a launch may execute.
    pub budget: u64,
    /// Instructions executed so far, of warps.
    pub executed: u64,
    /// When the run began; `None`: it has no limit of time.
    pub began: Option<Instant>,
    pub most_time: Duration,
    /// No more can be printed.
    pub is_full: bool,
}

pub const LAUNCH_BUDGET: u64 = 400_000_000;
/// Shared memory that a block may have.
pub const MOST_SHARED: u64 = 48 * 1024;
/// How long a run may take.
pub const MOST_TIME: Duration = Duration::from_secs(60);
/// Text that a program may print.
pub const MOST_OUTPUT: usize = 1 << 20;
/// What a block executes before it gives way to others.
const SLICE: u64 = 4_000_000;
const MOST_BLOCKS_AT_ONCE: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u64,
}

impl Machine {
    pub fn new(checks: Checks) -> Machine {
        Machine { checks: Some(checks), next_interval: 1, budget: LAUNCH_BUDGET, ..Machine::default() }
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

    /// Why a shape cannot be launched, with CUDA's number of the error.
    pub fn refuses(program: &Program, shape: &Shape) -> Option<(u32, String)> {
        Machine::refuses_threads(shape).map(|why| (9, why)).or_else(|| {
            let (fixed, dynamic) = (program.shared_bytes, shape.dynamic_shared);
            let why = format!(
                "{fixed} bytes of shared memory that the kernel declares and {dynamic} that the launch adds; \
                 49,152 is the most together"
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
            return Some(format!("{threads} threads a block; 1,024 is the most"));
        }
        if shape.block[2] > 64 {
            return Some(format!("{} threads along z; 64 is the most", shape.block[2]));
        }
        if x > 0x7fff_ffff || y > 65535 || z > 65535 {
            return Some("the grid is too large".to_owned());
        }
        None
    }

    /// Runs all blocks of a launch. `Err`: it ended early, and the findings say why.
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
                self.cells.resize(self.heap.space.bytes.len() / 4 + 16, super::races::Cell::default());
            }
        }
        let blocks = shape.grid.iter().map(|n| u64::from(*n)).product::<u64>();
        let threads = shape.block.iter().product::<u32>();
        let mut next = 0u64;
        let mut waiting: VecDeque<Block> = VecDeque::new();
        let budget = self.budget;
        let mut runner = Runner::new(self, program, shape, parameters, environment, budget);
        // Blocks that gave way come again after the others have begun.
        loop {
            let mut block = if next < blocks && (waiting.len() < MOST_BLOCKS_AT_ONCE) {
                let x = (next % u64::from(shape.grid[0])) as u32;
                let rest = next / u64::from(shape.grid[0]);
                let index =
                    [x, (rest % u64::from(shape.grid[1])) as u32, (rest / u64::from(shape.grid[1])) as u32];
                let interval = runner.interval();
                next += 1;
                Block::new(program, index, (next - 1) as u32, threads, shape.dynamic_shared, interval, races)
            } else {
                match waiting.pop_front() {
                    Some(block) => block,
                    None => break,
                }
            };
            match runner.run_block(&mut block, SLICE)? {
                Paused::Done => {}
                Paused::GaveWay => waiting.push_back(block),
            }
        }
        Ok(())
    }
}

/// The thread of a lane.
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
