//! The interpreter: runs blocks until they end or yield, their warps until they wait, and groups of lanes in program
//! order.

use super::block::{Block, State, Warp};
use super::counters::Counters;
use super::launch::{Machine, Shape};
use super::recorder::Recorder;
use super::words::Stretch;
use crate::ir::{Prim, Program};
/// Why a program ended early. The codes are those of CUDA errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    IllegalAddress,
    Misaligned,
    Assert,
    LaunchFailure,
    /// Too many instructions, or a deadlock.
    Timeout,
    /// The host called `exit` with this code.
    Exit(i32),
    HostFault,
}

impl Stop {
    pub fn code(self) -> u32 {
        match self {
            Stop::IllegalAddress => 700,
            Stop::Misaligned => 716,
            Stop::Assert => 710,
            Stop::LaunchFailure => 719,
            Stop::Timeout => 702,
            Stop::Exit(_) | Stop::HostFault => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    Done,
    GaveWay,
}

pub trait Environment {
    fn call(
        &mut self,
        machine: &mut Machine,
        function: u16,
        operands: &[u64],
        span: crate::Span,
    ) -> Result<u64, Stop>;
    fn launch(
        &mut self,
        machine: &mut Machine,
        kernel: u32,
        operands: &[(Prim, u64)],
        span: crate::Span,
    ) -> Result<(), Stop>;
}

pub struct Runner<'a> {
    pub machine: &'a mut Machine,
    pub program: &'a Program,
    pub shape: Shape,
    pub parameters: Vec<u8>,
    pub environment: Option<&'a mut (dyn Environment + 'a)>,
    pub left: u64,
    pub is_host: bool,
    pub races: bool,
    pub init: bool,
    /// Valid bytes of local memory.
    pub local_valid: Vec<u8>,
    /// Requirements on a byte's state for reads and writes: a bit mask, and the value of these bits.
    pub read_rule: (u8, u8),
    pub write_rule: (u8, u8),
    /// For each instruction, its last accessible stretch of the heap, and of the current block's shared memory.
    pub heap_stretches: Vec<Stretch>,
    pub shared_stretches: Vec<Stretch>,
    pub dynamic_start: u32,
    pub counters: Option<Counters>,
    pub recorder: Option<Box<Recorder>>,
    pub first_constant: u32,
    block: u32,
    #[cfg(target_arch = "x86_64")]
    pub has_avx2: bool,
}

enum Next {
    Blocked,
    Slice,
}

impl<'a> Runner<'a> {
    pub fn new(
        machine: &'a mut Machine,
        program: &'a Program,
        shape: Shape,
        parameters: &[u8],
        environment: Option<&'a mut (dyn Environment + 'a)>,
        budget: u64,
    ) -> Runner<'a> {
        let is_host = environment.is_some();
        let checks = machine.checks();
        let init = checks.init && !is_host;
        let mut local_valid =
            vec![
                0u8;
                if is_host || program.local.is_empty() { 0 } else { program.local_bytes as usize + 16 }
            ];
        if !is_host {
            for slot in &program.local {
                local_valid[slot.offset as usize..(slot.offset + slot.size) as usize].fill(1);
            }
        }
        use super::memory::{ALLOCATED, CONSTANT, OF_DEVICE, OF_HOST, WRITTEN};
        let here = ALLOCATED | if is_host { OF_HOST } else { OF_DEVICE };
        let read = here | if init { WRITTEN } else { 0 };
        let (read_rule, write_rule) = ((read, read), (here | CONSTANT, here));
        let mut parameters = parameters.to_vec();
        parameters.resize(parameters.len() + 16, 0);
        Runner {
            races: checks.race && !is_host,
            machine,
            program,
            shape,
            parameters,
            environment,
            left: budget,
            is_host,
            init,
            local_valid,
            read_rule,
            write_rule,
            heap_stretches: vec![Stretch::default(); if is_host { 0 } else { program.ops.len() }],
            shared_stretches: vec![Stretch::default(); if is_host { 0 } else { program.ops.len() }],
            dynamic_start: super::block::dynamic_start(program) as u32,
            first_constant: program.first_constant,
            counters: None,
            recorder: None,
            block: 0,
            #[cfg(target_arch = "x86_64")]
            has_avx2: std::arch::is_x86_feature_detected!("avx2"),
        }
    }

    pub fn interval(&mut self) -> u32 {
        let interval = self.machine.next_interval;
        self.machine.next_interval += 1;
        interval
    }

    /// Runs a block until it ends or its slice is used up.
    pub fn run_block(&mut self, block: &mut Block, slice: u64) -> Result<Paused, Stop> {
        let stop_at = self.left.saturating_sub(slice);
        // Another block's shared memory has no written bytes yet.
        if self.init && self.block != block.number {
            self.shared_stretches.fill(Stretch::default());
        }
        if self.block != block.number
            && let Some(counters) = &mut self.counters
        {
            counters.begin_block();
        }
        self.block = block.number;
        let mut warps = std::mem::take(&mut block.warps);
        let result = self.run_warps(block, &mut warps, stop_at);
        block.warps = warps;
        result
    }

    fn run_warps(&mut self, block: &mut Block, warps: &mut [Warp], stop_at: u64) -> Result<Paused, Stop> {
        loop {
            let mut progress = false;
            for warp in warps.iter_mut() {
                while warp.live != 0 && warp.groups.iter().any(|group| group.state == State::Ready) {
                    progress = true;
                    if let Next::Slice = self.run_warp(block, warp, stop_at)? {
                        return Ok(Paused::GaveWay);
                    }
                    self.meet(warp);
                }
            }
            if warps.iter().all(|warp| warp.live == 0) {
                return Ok(Paused::Done);
            }
            let all_wait =
                warps.iter().all(|warp| warp.groups.iter().all(|group| group.state == State::Barrier));
            if all_wait {
                self.open_barrier(block, warps)?;
                continue;
            }
            if !progress {
                return Err(self.deadlock(block, warps));
            }
        }
    }

    /// Runs a warp until all its groups wait or have exited.
    fn run_warp(&mut self, block: &mut Block, warp: &mut Warp, stop_at: u64) -> Result<Next, Stop> {
        loop {
            // Picks the first group; groups at the same instruction merge.
            let Some(at) = (0..warp.groups.len())
                .filter(|at| warp.groups[*at].state == State::Ready)
                .min_by_key(|at| (warp.groups[*at].gave_way, warp.groups[*at].pc))
            else {
                return Ok(Next::Blocked);
            };
            let mut group = warp.groups.swap_remove(at);
            let mut i = 0;
            while i < warp.groups.len() {
                let other = warp.groups[i];
                if other.pc == group.pc && other.state == State::Ready {
                    group.mask |= other.mask;
                    group.gave_way = group.gave_way.max(other.gave_way);
                    warp.groups.swap_remove(i);
                } else {
                    i += 1;
                }
            }
            let ready = warp.groups.iter().filter(|other| other.state == State::Ready);
            let limit =
                ready.clone().map(|other| other.pc).filter(|pc| *pc > group.pc).min().unwrap_or(u32::MAX);
            let others = ready.count() > 0;
            if self.left <= stop_at {
                let out = self.left == 0;
                let pc = group.pc;
                warp.groups.push(group);
                if out {
                    return Err(self.out_of_budget(block, warp, pc));
                }
                if self.machine.is_late() {
                    let limit = format!("{} seconds", self.machine.most_time.as_secs());
                    return Err(self.stopped(self.site("still running at", pc), &limit));
                }
                return Ok(Next::Slice);
            }
            if self.is_recorded(block, warp) {
                self.run_recorded(block, warp, group, others)?;
            } else {
                self.run_group(block, warp, group, limit, others, stop_at)?;
            }
        }
    }
}
