//! Executes the instructions of a group of lanes, each for all lanes at once.

use super::arithmetic;
use super::block::{Block, Group, State, Warp};
use super::counters::Kind;
use super::interpreter::{Runner, Stop};
use super::math;
use super::operations::{addresses, binary, convert, float_binary, taken, unary};
use crate::ir::{Address, Bin, LANES, NO_ROW, Op, Prim, Scaled, Special};

/// The number of backward jumps after which a group yields to others.
const PATIENCE: u32 = 2_000;

impl Runner<'_> {
    /// Runs a group until it diverges, waits, exits, meets another group, or has jumped backwards many times.
    pub fn run_group(
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
            // SAFETY: the CPU supports AVX2.
            return unsafe { self.run_group_with_avx2(block, warp, group, limit, others, stop_at) };
        }
        self.steps(block, warp, group, limit, others, stop_at)
    }

    /// The same code, compiled for vectors of 8 floats, with the same rounding.
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
                    counters.executed(since, pc + 1, mask, warp.number == 0);
                }
            };
        }
        // A jump. A group that jumps back often yields, and a group that passes another lets it go first.
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
                    counters.executed(since, pc, mask, warp.number == 0);
                }
                group.pc = pc;
                warp.groups.push(group);
                return Ok(());
            }
            let op = &program.ops[pc as usize];
            match *op {
                Op::Binary { op, d, a, b } => match op {
                    Bin::AddF32 | Bin::SubF32 | Bin::MulF32 | Bin::DivF32 => {
                        float_binary(warp, op, d, a, b, mask);
                    }
                    _ if op.is_division() => {
                        self.check_divisor(block, warp, mask, pc, op, b);
                        binary(warp, op, d, a, b, mask);
                    }
                    _ => binary(warp, op, d, a, b, mask),
                },
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
                    if to == Prim::F32 && from == Prim::F64 {
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
                Op::Call { to, .. } => {
                    count!();
                    self.enter(block, warp, mask, pc)?;
                    go!(to);
                }
                Op::Return => {
                    count!();
                    let back = self.leave(warp, group);
                    if let [Group { pc: to, .. }] = back[..] {
                        go!(to);
                    }
                    warp.groups.extend(back);
                    return Ok(());
                }
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
                    let operands = &program.operands[first as usize..(first + count) as usize];
                    let mut rest = mask;
                    while rest != 0 {
                        let lane = rest.trailing_zeros() as usize;
                        let values: Vec<(Prim, u64)> = operands
                            .iter()
                            .map(|(ty, row)| (*ty, warp.registers.bits(*ty, *row, lane)))
                            .collect();
                        let length = self.print_values(block, warp, pc, lane, text, &values)?;
                        if d != NO_ROW {
                            warp.registers.set_bits(Prim::I32, d, lane, length);
                        }
                        rest &= rest - 1;
                    }
                    if self.machine.is_full {
                        return Err(self.out_of_output(pc));
                    }
                }
                // Only `main` calls host functions and launches kernels.
                Op::Host { .. } | Op::Launch { .. } => {}
                Op::Trap { text } => return Err(self.trapped(block, warp, pc, mask, text)),
                Op::Nothing => {}
            }
            pc += 1;
        }
    }

    /// Prints the values of one lane, and returns the length of the text.
    pub fn print_values(
        &mut self,
        block: &mut Block,
        warp: &Warp,
        pc: u32,
        lane: usize,
        text: u32,
        values: &[(Prim, u64)],
    ) -> Result<u64, Stop> {
        let program = self.program;
        let mut stop = None;
        let mut text_at = |address| {
            self.text(block, warp, pc, lane, address).unwrap_or_else(|why| {
                stop = Some(why);
                None
            })
        };
        let printed = super::printf::format(&program.texts[text as usize], values, &mut text_at);
        if let Some(why) = stop {
            return Err(why);
        }
        self.machine.print(&printed);
        Ok(printed.len() as u64)
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
        if known.result == Prim::F32 && !math::moves_bits(function) {
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
}
