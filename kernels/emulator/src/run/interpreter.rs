//! The interpreter: an instruction for all lanes of a group at a time.

use super::arithmetic;
use super::block::{Block, Group, State, Warp};
use super::checks::Site;
use super::counters::{Counters, Kind};
use super::launch::{Machine, Shape, fatal, thread};
use super::math;
use super::operations::{addresses, binary, convert, float_binary, taken, unary};
use super::words::Stretch;
use crate::ir::{Address, Bin, LANES, NO_ROW, Op, Prim, Program, Scaled, Special};

/// Why a program ended early. The codes are CUDA's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    IllegalAddress,
    Misaligned,
    Assert,
    LaunchFailure,
    /// Too many instructions, or threads that wait for each other.
    Timeout,
    /// `exit` of the host, with its code.
    Exit(i32),
    /// The host's program cannot go on.
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

/// What host code calls.
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
    /// What a byte's state must be: the bits that count, and their values, for reads and writes.
    pub read_rule: (u8, u8),
    pub write_rule: (u8, u8),
    /// Where instructions may access the heap and the shared memory of the current block.
    pub heap_stretches: Vec<Stretch>,
    pub shared_stretches: Vec<Stretch>,
    pub dynamic_start: u32,
    pub counters: Option<Counters>,
    pub first_constant: u32,
    block: u32,
    #[cfg(target_arch = "x86_64")]
    has_avx2: bool,
}

/// Backward jumps with others waiting, before a group gives way.
const PATIENCE: u32 = 2_000;

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
        // Nothing is written yet in another block's shared memory.
        if self.init && self.block != block.number {
            self.shared_stretches.fill(Stretch::default());
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

    /// Runs a warp until all its groups wait or have ended.
    fn run_warp(&mut self, block: &mut Block, warp: &mut Warp, stop_at: u64) -> Result<Next, Stop> {
        loop {
            // The group that comes first; those at the same place go together.
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
            self.run_group(block, warp, group, limit, others, stop_at)?;
        }
    }

    /// Runs a group until it parts, waits, ends, meets another or has jumped back for long.
    fn run_group(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        group: Group,
        limit: u32,
        others: bool,
        stop_at: u64,
    ) -> Result<(), Stop> {
        #[cfg(target_arch = "x86_64")]
        if self.has_avx2 {
            // SAFETY: the processor has these instructions.
            return unsafe { self.run_group_with_avx2(block, warp, group, limit, others, stop_at) };
        }
        self.steps(block, warp, group, limit, others, stop_at)
    }

    /// The same code, compiled for vectors of 8 floats. It rounds no differently.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn run_group_with_avx2(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        group: Group,
        limit: u32,
        others: bool,
        stop_at: u64,
    ) -> Result<(), Stop> {
        self.steps(block, warp, group, limit, others, stop_at)
    }

    #[inline(always)]
    fn steps(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        mut group: Group,
        limit: u32,
        others: bool,
        stop_at: u64,
    ) -> Result<(), Stop> {
        let mask = group.mask;
        let mut pc = group.pc;
        let mut patience = PATIENCE;
        let program = self.program;
        let mut since = pc;
        macro_rules! count {
            () => {
                self.left = self.left.saturating_sub(u64::from(pc - since) + 1);
                if let Some(counters) = &mut self.counters {
                    counters.executed(since, pc + 1, mask);
                }
            };
        }
        // A jump: a group that goes back gives way in time, and one that passes another lets it go first.
        macro_rules! go {
            ($to:expr) => {{
                if $to <= pc {
                    patience -= u32::from(others);
                    if self.left <= stop_at || patience == 0 {
                        group.pc = $to;
                        group.gave_way += u32::from(patience == 0);
                        warp.groups.push(group);
                        return Ok(());
                    }
                }
                pc = $to;
                since = $to;
                if others && $to < group.pc {
                    group.pc = $to;
                    warp.groups.push(group);
                    return Ok(());
                }
                continue;
            }};
        }
        loop {
            if pc >= limit {
                self.left = self.left.saturating_sub(u64::from(pc - since) + 1);
                if let Some(counters) = &mut self.counters {
                    counters.executed(since, pc, mask);
                }
                group.pc = pc;
                warp.groups.push(group);
                return Ok(());
            }
            let op = &program.ops[pc as usize];
            match *op {
                Op::Binary { op, d, a, b } => {
                    if op.is_division() {
                        self.check_divisor(block, warp, mask, pc, op, a, b)?;
                    }
                    if op.makes_float() && !self.is_host {
                        float_binary(warp, op, d, a, b, mask);
                    } else {
                        binary(warp, op, d, a, b, mask);
                    }
                }
                Op::Load { ty, d, ref at } => {
                    self.count_access(warp, mask, pc, at, Kind::Load);
                    self.load(block, warp, mask, pc, ty, d, at)?;
                }
                Op::Store { ty, a, ref at } => {
                    self.count_access(warp, mask, pc, at, Kind::Store);
                    self.store(block, warp, mask, pc, ty, a, at)?;
                }
                Op::Move32 { d, a } => warp.registers.map::<u32, u32>(d, a, mask, |x| x),
                Op::Move64 { d, a } => warp.registers.map::<u64, u64>(d, a, mask, |x| x),
                Op::Unary { op, d, a } => unary(warp, op, d, a, mask),
                Op::Convert { from, to, d, a } => {
                    convert(warp, from, to, d, a, mask);
                    if to == Prim::F32 && from == Prim::F64 && !self.is_host {
                        warp.registers.map::<f32, f32>(d, d, mask, arithmetic::as_on_device);
                    }
                }
                Op::Select32 { d, c, a, b } => {
                    let (c, a, b) = (
                        warp.registers.get::<u32>(c),
                        warp.registers.get::<u32>(a),
                        warp.registers.get::<u32>(b),
                    );
                    let mut out = [0u32; LANES];
                    for lane in 0..LANES {
                        out[lane] = if c[lane] != 0 { a[lane] } else { b[lane] };
                    }
                    warp.registers.set(d, mask, &out);
                }
                Op::Select64 { d, c, a, b } => {
                    let (c, a, b) = (
                        warp.registers.get::<u32>(c),
                        warp.registers.get::<u64>(a),
                        warp.registers.get::<u64>(b),
                    );
                    let mut out = [0u64; LANES];
                    for lane in 0..LANES {
                        out[lane] = if c[lane] != 0 { a[lane] } else { b[lane] };
                    }
                    warp.registers.set(d, mask, &out);
                }
                Op::Lea { d, ref at } => {
                    let addresses = addresses(warp, at);
                    warp.registers.set(d, mask, &addresses);
                }
                Op::Branch { c, to, when } => {
                    let taken = taken(warp, c, when, mask);
                    if taken == mask {
                        count!();
                        go!(to);
                    }
                    if taken != 0 {
                        count!();
                        if let Some(counters) = &mut self.counters {
                            counters.divergent_branches += 1;
                        }
                        warp.groups.push(Group { pc: to, mask: taken, ..group });
                        warp.groups.push(Group { pc: pc + 1, mask: mask & !taken, ..group });
                        return Ok(());
                    }
                }
                Op::Jump { to } => {
                    count!();
                    go!(to);
                }
                Op::Math { function, d, a, b, c } => self.math(warp, mask, function, d, [a, b, c]),
                Op::Special { d, which } => self.special(block, warp, mask, d, which),
                Op::Exit => {
                    count!();
                    warp.live &= !mask;
                    return Ok(());
                }
                Op::Barrier { .. } => {
                    count!();
                    group.pc = pc;
                    group.state = State::Barrier;
                    warp.groups.push(group);
                    return Ok(());
                }
                Op::Shuffle { .. } | Op::Vote { .. } => {
                    count!();
                    group.pc = pc;
                    self.arrive(block, warp, group)?;
                    return Ok(());
                }
                Op::Atomic { base, .. } => {
                    let at = Address { base, first: Scaled::NONE, second: Scaled::NONE, offset: 0, align: 1 };
                    self.count_access(warp, mask, pc, &at, Kind::Atomic);
                    self.atomic(block, warp, mask, pc)?;
                }
                Op::Fence { scope } => self.fence(block, warp, mask, scope),
                Op::Assert { c, text } => {
                    let c = warp.registers.get::<u32>(c);
                    if let Some(lane) = (0..LANES).find(|lane| mask >> lane & 1 != 0 && c[*lane] == 0) {
                        return Err(self.assertion(block, warp, pc, lane, text));
                    }
                }
                Op::Print { text, first, count, d } => {
                    let mut rest = mask;
                    while rest != 0 {
                        let lane = rest.trailing_zeros() as usize;
                        let operands = &program.operands[first as usize..(first + count) as usize];
                        let values: Vec<(Prim, u64)> = operands
                            .iter()
                            .map(|(ty, row)| (*ty, warp.registers.bits(*ty, *row, lane)))
                            .collect();
                        let mut stop = None;
                        let mut text_at = |address| {
                            self.text(block, warp, pc, lane, address).unwrap_or_else(|why| {
                                stop = Some(why);
                                None
                            })
                        };
                        let printed =
                            super::printf::format(&program.texts[text as usize], &values, &mut text_at);
                        if let Some(why) = stop {
                            return Err(why);
                        }
                        let length = printed.len() as u64;
                        self.machine.print(&printed);
                        if d != NO_ROW {
                            warp.registers.set_bits(Prim::I32, d, lane, length);
                        }
                        rest &= rest - 1;
                    }
                    if self.machine.is_full {
                        return Err(self.out_of_output(pc));
                    }
                }
                Op::Host { function, d, first, count } => {
                    let operands = &program.operands[first as usize..(first + count) as usize];
                    let values: Vec<u64> = operands
                        .iter()
                        .map(|(ty, row)| arithmetic::narrowed(*ty, warp.registers.bits(*ty, *row, 0)))
                        .collect();
                    let span = program.spans[pc as usize];
                    if let Some(environment) = &mut self.environment {
                        let bits = environment.call(self.machine, function, &values, span)?;
                        if d != NO_ROW {
                            // A number of 32 bits lies in the first row, one of 64 in both.
                            let result = crate::host::functions::NAMES[function as usize].2;
                            let ty = if matches!(result, "i" | "u" | "f") { Prim::I32 } else { Prim::I64 };
                            warp.registers.set_bits(ty, d, 0, bits);
                        }
                        // `puts` and `putchar` print as well.
                        if self.machine.is_full {
                            return Err(self.out_of_output(pc));
                        }
                    }
                }
                Op::Launch { kernel, first, count } => {
                    let operands = &program.operands[first as usize..(first + count) as usize];
                    let values: Vec<(Prim, u64)> =
                        operands.iter().map(|(ty, row)| (*ty, warp.registers.bits(*ty, *row, 0))).collect();
                    if let Some(environment) = &mut self.environment {
                        environment.launch(self.machine, kernel, &values, program.spans[pc as usize])?;
                    }
                }
                Op::Trap { text } => return Err(self.trapped(block, warp, pc, mask, text)),
                Op::Nothing => {}
            }
            pc += 1;
        }
    }

    /// C++ leaves a division by 0 open: a GPU goes on with some number, and a host ends the program.
    fn check_divisor(
        &mut self,
        block: &Block,
        warp: &Warp,
        mask: u32,
        pc: u32,
        op: Bin,
        a: u32,
        b: u32,
    ) -> Result<(), Stop> {
        let wide = op.widths().1 == 2;
        let is_zero = |lane: usize| match wide {
            true => warp.registers.row::<u64>(b)[lane] == 0,
            false => warp.registers.row::<u32>(b)[lane] == 0,
        };
        let any = (0..LANES).fold(false, |any, lane| any | is_zero(lane));
        if !any && !self.is_host {
            return Ok(());
        }
        let found = (0..LANES).find(|lane| mask >> lane & 1 != 0 && is_zero(*lane));
        if self.is_host {
            // x86 stops at a quotient that does not fit as well.
            let ty = if wide { Prim::I64 } else { Prim::I32 };
            let (x, y) = (warp.registers.bits(ty, a, 0), warp.registers.bits(ty, b, 0));
            let overflows = arithmetic::quotient_overflows(op, x, y);
            let note = match (found, overflows) {
                (Some(_), _) => "an integer is divided by zero",
                (_, true) => "the smallest integer is divided by -1",
                _ => return Ok(()),
            };
            let (title, site) = ("Floating-point exception".to_owned(), self.site("at", pc));
            let notes = vec![note.to_owned()];
            self.machine.findings.add(fatal("host", title, &self.program.name, vec![site], notes));
            return Err(Stop::HostFault);
        }
        let Some(lane) = found else { return Ok(()) };
        let site = self.site_of("at", pc, block, warp, lane);
        let title = "Integer division by zero".to_owned();
        let mut finding = fatal("memcheck", title, &self.program.name, vec![site], Vec::new());
        finding.severity = super::checks::Severity::Warning;
        finding.is_fatal = false;
        self.machine.findings.add(finding);
        Ok(())
    }

    fn math(&self, warp: &mut Warp, mask: u32, function: u16, d: u32, rows: [u32; 3]) {
        let known = &math::FUNCTIONS[function as usize];
        match known.code {
            math::Code::F1(f) => warp.registers.map::<f32, f32>(d, rows[0], mask, f),
            math::Code::F2(f) => warp.registers.map2::<f32, f32, f32>(d, rows[0], rows[1], mask, f),
            math::Code::D1(f) => warp.registers.map::<f64, f64>(d, rows[0], mask, f),
            math::Code::D2(f) => warp.registers.map2::<f64, f64, f64>(d, rows[0], rows[1], mask, f),
            _ => {
                let mut out = [0u64; LANES];
                for lane in 0..LANES {
                    if mask >> lane & 1 != 0 {
                        let mut bits = [0; 3];
                        for (i, ty) in known.parameters.iter().enumerate() {
                            bits[i] = warp.registers.bits(*ty, rows[i], lane);
                        }
                        out[lane] = math::apply(function, bits[0], bits[1], bits[2]);
                    }
                }
                for lane in 0..LANES {
                    if mask >> lane & 1 != 0 {
                        warp.registers.set_bits(known.result, d, lane, out[lane]);
                    }
                }
            }
        }
        if known.result == Prim::F32 && !self.is_host && !math::moves_bits(function) {
            warp.registers.map::<f32, f32>(d, d, mask, arithmetic::as_on_device);
        }
    }

    fn special(&mut self, block: &Block, warp: &mut Warp, mask: u32, d: u32, which: Special) {
        let [x, y, _] = self.shape.block;
        let first = warp.number * 32;
        let mut out = [0u32; LANES];
        for (lane, out) in out.iter_mut().enumerate() {
            let number = first + lane as u32;
            *out = match which {
                Special::ThreadX => number % x,
                Special::ThreadY => number / x % y,
                Special::ThreadZ => number / (x * y),
                Special::BlockX => block.index[0],
                Special::BlockY => block.index[1],
                Special::BlockZ => block.index[2],
                Special::BlockDimX => self.shape.block[0],
                Special::BlockDimY => self.shape.block[1],
                Special::BlockDimZ => self.shape.block[2],
                Special::GridX => self.shape.grid[0],
                Special::GridY => self.shape.grid[1],
                Special::GridZ => self.shape.grid[2],
                Special::Lane => lane as u32,
                Special::ActiveMask => mask,
                Special::DynamicShared => self.shape.dynamic_shared as u32,
                Special::Clock => 0,
            };
        }
        if which == Special::Clock {
            let now = self.machine.budget.wrapping_sub(self.left);
            warp.registers.set::<u64>(d, mask, &[now; LANES]);
        } else {
            warp.registers.set::<u32>(d, mask, &out);
        }
    }

    pub fn site(&self, text: &str, pc: u32) -> Site {
        Site { text: text.to_owned(), span: Some(self.program.spans[pc as usize]), thread: None }
    }

    pub fn site_of(&self, text: &str, pc: u32, block: &Block, warp: &Warp, lane: usize) -> Site {
        let by = thread(&self.shape, block.index, warp.number * 32 + lane as u32);
        Site { thread: (!self.is_host).then_some(by), ..self.site(text, pc) }
    }

    fn assertion(&mut self, block: &Block, warp: &Warp, pc: u32, lane: usize, text: u32) -> Stop {
        let title = format!("Assertion `{}` failed", self.program.texts[text as usize]);
        let site = self.site_of("at", pc, block, warp, lane);
        let check = if self.is_host { "host" } else { "assert" };
        self.machine.findings.add(fatal(check, title, &self.program.name, vec![site], Vec::new()));
        if self.is_host { Stop::HostFault } else { Stop::Assert }
    }

    fn trapped(&mut self, block: &Block, warp: &Warp, pc: u32, mask: u32, text: u32) -> Stop {
        let title = format!("The kernel ended itself ({})", self.program.texts[text as usize]);
        let site = self.site_of("at", pc, block, warp, mask.trailing_zeros() as usize);
        self.machine.findings.add(fatal("trap", title, &self.program.name, vec![site], Vec::new()));
        Stop::LaunchFailure
    }

    fn out_of_budget(&mut self, block: &Block, warp: &Warp, pc: u32) -> Stop {
        let lane = warp.groups.last().map_or(0, |group| group.mask.trailing_zeros() as usize).min(31);
        let site = self.site_of("still running at", pc, block, warp, lane);
        let count = super::access::thousands(self.machine.budget);
        let limit = format!("{count} {}", if self.is_host { "instructions" } else { "warp instructions" });
        self.stopped(site, &limit)
    }

    fn out_of_output(&mut self, pc: u32) -> Stop {
        let most = super::access::thousands(super::launch::MOST_OUTPUT as u64);
        self.stopped(self.site("printing at", pc), &format!("{most} bytes of output"))
    }

    /// A limit is reached.
    fn stopped(&mut self, site: Site, limit: &str) -> Stop {
        let what = if self.is_host { "program" } else { "kernel" };
        let title =
            format!("Stopped after {limit}: the {what} loops for ever, or is too long for this emulator");
        let check = if self.is_host { "host" } else { "timeout" };
        self.machine.findings.add(fatal(check, title, &self.program.name, vec![site], Vec::new()));
        if self.is_host { Stop::HostFault } else { Stop::Timeout }
    }
}
