//! Runs `main`: one thread, so registers of one lane, and a loop without masks and groups.

use super::block::Block;
use super::checks::Site;
use super::interpreter::{Runner, Stop};
use super::launch::{SLICE, fatal};
use super::memory::{Space, WRITTEN};
use super::stacks::{MOST_OF_HOST, Stack, depth};
use super::{arithmetic, math};
use crate::binary_table;
use crate::ir::{Address, Bin, IndexKind, NO_ROW, Op, Prim, Program, Row, rows_of, size_of, space};

/// Rows of one lane. A 64-bit value takes two adjacent rows.
struct Lane(Vec<u32>);

trait Content: Copy {}
impl Content for u32 {}
impl Content for i32 {}
impl Content for f32 {}
impl Content for u64 {}
impl Content for i64 {}
impl Content for f64 {}

impl Lane {
    fn new(program: &Program) -> Lane {
        let mut lane = Lane(vec![0; program.rows as usize + 2]);
        for (row, bits, is_wide) in &program.constants {
            lane.set_bits(if *is_wide { Prim::U64 } else { Prim::U32 }, *row, *bits);
        }
        lane
    }

    #[inline(always)]
    fn get<T: Content>(&self, row: Row) -> T {
        debug_assert!(row as usize + std::mem::size_of::<T>() / 4 <= self.0.len());
        // SAFETY: the program is validated, so the row exists, and the next one too for 64-bit types. Any bits are a
        // valid value of a `Content` type.
        unsafe { self.0.as_ptr().add(row as usize).cast::<T>().read_unaligned() }
    }

    #[inline(always)]
    fn set<T: Content>(&mut self, row: Row, value: T) {
        debug_assert!(row as usize + std::mem::size_of::<T>() / 4 <= self.0.len());
        // SAFETY: as in `get`.
        unsafe { self.0.as_mut_ptr().add(row as usize).cast::<T>().write_unaligned(value) }
    }

    #[inline(always)]
    fn bits(&self, ty: Prim, row: Row) -> u64 {
        if rows_of(ty) == 2 { self.get(row) } else { u64::from(self.get::<u32>(row)) }
    }

    #[inline(always)]
    fn set_bits(&mut self, ty: Prim, row: Row, bits: u64) {
        if rows_of(ty) == 2 { self.set(row, bits) } else { self.set(row, bits as u32) }
    }

    #[inline(always)]
    fn address(&self, at: &Address) -> u64 {
        let mut address = self.get::<u64>(at.base).wrapping_add(i64::from(at.offset) as u64);
        for index in [&at.first, &at.second] {
            let value = match index.kind {
                IndexKind::None => break,
                IndexKind::I32 => i64::from(self.get::<i32>(index.row)),
                IndexKind::U32 => i64::from(self.get::<u32>(index.row)),
                IndexKind::I64 => self.get(index.row),
            };
            address = address.wrapping_add(value.wrapping_mul(i64::from(index.scale)) as u64);
        }
        address
    }

    fn values(&self, operands: &[(Prim, Row)]) -> Vec<(Prim, u64)> {
        operands.iter().map(|(ty, row)| (*ty, self.bits(*ty, *row))).collect()
    }
}

macro_rules! binary_of_lane {
    ($($name:ident: $a:ty, $b:ty, $d:ty, $f:expr;)*) => {
        #[inline(always)]
        fn binary(lane: &mut Lane, op: Bin, d: Row, a: Row, b: Row) {
            match op {
                $(Bin::$name => {
                    let f: fn($a, $b) -> $d = $f;
                    let value = f(lane.get(a), lane.get(b));
                    lane.set::<$d>(d, value);
                })*
            }
        }
    };
}
binary_table!(binary_of_lane);

fn convert(lane: &mut Lane, from: Prim, to: Prim, d: Row, a: Row) {
    match (from, to) {
        (Prim::I32, Prim::I64 | Prim::U64) => {
            let value = i64::from(lane.get::<i32>(a));
            lane.set(d, value);
        }
        (Prim::U32, Prim::I64 | Prim::U64) => {
            let value = u64::from(lane.get::<u32>(a));
            lane.set(d, value);
        }
        (Prim::I64 | Prim::U64, Prim::I32 | Prim::U32) => {
            let value: u32 = lane.get(a);
            lane.set(d, value);
        }
        _ => {
            let bits = arithmetic::convert(from, to, lane.bits(from, a));
            lane.set_bits(to, d, bits);
        }
    }
}

fn calculate(lane: &mut Lane, function: u16, d: Row, rows: [Row; 3]) {
    let known = &math::FUNCTIONS[function as usize];
    let mut bits = [0; 3];
    for (i, ty) in known.parameters.iter().enumerate() {
        bits[i] = lane.bits(*ty, rows[i]);
    }
    lane.set_bits(known.result, d, math::apply(function, bits[0], bits[1], bits[2]));
}

/// The position of an aligned value of N bytes, if every byte has the state that the rule requires.
#[inline(always)]
fn accessible<const N: usize>(space: &Space, address: u64, align: u8, rule: (u8, u8)) -> Option<usize> {
    let at = address.wrapping_sub(space::HEAP);
    if at & (u64::from(align).max(N as u64) - 1) != 0 {
        return None;
    }
    let at = usize::try_from(at).ok()?;
    let states = space.states.get(at..)?.first_chunk::<N>()?;
    let wrong = states.iter().fold(0, |wrong, state| wrong | (state & rule.0) ^ rule.1);
    (wrong == 0 && at + N <= space.bytes.len()).then_some(at)
}

impl Runner<'_> {
    pub fn run_host(&mut self) -> Result<(), Stop> {
        let program = self.program;
        let mut lane = Lane::new(program);
        // Reports and slow accesses take a block and a warp.
        let mut block = Block::new(program, [0; 3], 0, 1, 0, 0, false);
        let Some(warp) = block.warps.pop() else { return Ok(()) };
        let mut stack = Stack::default();
        let mut pc = 0u32;
        let mut since = 0u32;
        let mut check_at = self.left.saturating_sub(SLICE);
        // A jump: counts the instructions since the last one, and sometimes checks the limits.
        macro_rules! go {
            ($to:expr) => {{
                self.left = self.left.saturating_sub(u64::from(pc - since) + 1);
                if self.left <= check_at {
                    self.check_limits(pc)?;
                    check_at = self.left.saturating_sub(SLICE);
                }
                pc = $to;
                since = pc;
                continue;
            }};
        }
        loop {
            match program.ops[pc as usize] {
                Op::Binary { op, d, a, b } => {
                    if op.is_division() {
                        self.check_host_divisor(pc, op, &lane, a, b)?;
                    }
                    binary(&mut lane, op, d, a, b);
                }
                Op::Load { ty, d, ref at } => {
                    let address = lane.address(at);
                    let bits = match self.read_here(ty, address, at.align) {
                        Some(bits) => bits,
                        None => self.read_one(&mut block, &warp, pc, 0, address, ty, u64::from(at.align))?,
                    };
                    lane.set_bits(ty, d, bits);
                }
                Op::Store { ty, a, ref at } => {
                    let address = lane.address(at);
                    let bits = lane.bits(ty, a);
                    if !self.write_here(ty, address, at.align, bits) {
                        let align = u64::from(at.align);
                        self.write_one(&mut block, &warp, pc, 0, address, ty, bits, align)?;
                    }
                }
                Op::Move32 { d, a } => {
                    let value: u32 = lane.get(a);
                    lane.set(d, value);
                }
                Op::Move64 { d, a } => {
                    let value: u64 = lane.get(a);
                    lane.set(d, value);
                }
                Op::Branch { c, to, when } => {
                    if (lane.get::<u32>(c) != 0) == when {
                        go!(to);
                    }
                }
                Op::Jump { to } => go!(to),
                Op::Convert { from, to, d, a } => convert(&mut lane, from, to, d, a),
                Op::Lea { d, ref at } => {
                    let address = lane.address(at);
                    lane.set(d, address);
                }
                Op::Unary { op, d, a } => {
                    let (from, to) = op.widths();
                    let bits = if from == 2 { lane.get::<u64>(a) } else { u64::from(lane.get::<u32>(a)) };
                    let bits = arithmetic::unary(op, bits);
                    lane.set_bits(if to == 2 { Prim::U64 } else { Prim::U32 }, d, bits);
                }
                Op::Select32 { d, c, a, b } => {
                    let value: u32 = lane.get(if lane.get::<u32>(c) != 0 { a } else { b });
                    lane.set(d, value);
                }
                Op::Select64 { d, c, a, b } => {
                    let value: u64 = lane.get(if lane.get::<u32>(c) != 0 { a } else { b });
                    lane.set(d, value);
                }
                Op::Math { function, d, a, b, c } => calculate(&mut lane, function, d, [a, b, c]),
                Op::Call { to, frame, .. } => {
                    let bits = |ty, row| lane.bits(ty, row);
                    let Some(at) = stack.enter(program, pc, MOST_OF_HOST, bits) else {
                        return Err(self.host_fault(pc, "Stack overflow", &depth(&stack)));
                    };
                    lane.set(frame, at);
                    go!(to);
                }
                Op::Return => {
                    let Some(to) = stack.leave(program, |ty, row, bits| lane.set_bits(ty, row, bits)) else {
                        return Ok(());
                    };
                    go!(to);
                }
                Op::Exit => return Ok(()),
                Op::Assert { c, text } => {
                    if lane.get::<u32>(c) == 0 {
                        return Err(self.assertion(&block, &warp, pc, 0, text));
                    }
                }
                Op::Print { text, first, count, d } => {
                    let values = lane.values(&program.operands[first as usize..(first + count) as usize]);
                    let length = self.print_values(&mut block, &warp, pc, 0, text, &values)?;
                    if d != NO_ROW {
                        lane.set(d, length as u32);
                    }
                    if self.machine.is_full {
                        return Err(self.out_of_output(pc));
                    }
                }
                Op::Host { function, d, first, count } => {
                    let values = lane.values(&program.operands[first as usize..(first + count) as usize]);
                    let values: Vec<u64> =
                        values.iter().map(|(ty, bits)| arithmetic::narrowed(*ty, *bits)).collect();
                    let span = program.spans[pc as usize];
                    if let Some(environment) = &mut self.environment {
                        let bits = environment.call(self.machine, function, &values, span)?;
                        if d != NO_ROW {
                            // A 32-bit result is in the first row, a 64-bit result in both.
                            let result = crate::host::functions::NAMES[function as usize].2;
                            let is_narrow = matches!(result, "i" | "u" | "f");
                            lane.set_bits(if is_narrow { Prim::I32 } else { Prim::I64 }, d, bits);
                        }
                        // `puts` and `putchar` also print.
                        if self.machine.is_full {
                            return Err(self.out_of_output(pc));
                        }
                    }
                }
                Op::Launch { kernel, first, count } => {
                    let values = lane.values(&program.operands[first as usize..(first + count) as usize]);
                    if let Some(environment) = &mut self.environment {
                        environment.launch(self.machine, kernel, &values, program.spans[pc as usize])?;
                    }
                }
                Op::Trap { text } => return Err(self.trapped(&block, &warp, pc, 1, text)),
                Op::Nothing => {}
                // The lowering rejects these in host code.
                Op::Special { .. }
                | Op::Barrier { .. }
                | Op::Shuffle { .. }
                | Op::Vote { .. }
                | Op::Atomic { .. }
                | Op::Fence { .. } => return Err(self.not_of_host(pc)),
            }
            pc += 1;
        }
    }

    /// Reads a value of 1, 4 or 8 bytes, unless the access may need a report.
    #[inline(always)]
    fn read_here(&self, ty: Prim, address: u64, align: u8) -> Option<u64> {
        if self.machine.is_busy {
            return None;
        }
        let space = &self.machine.heap.space;
        Some(match size_of(ty) {
            4 => {
                let at = accessible::<4>(space, address, align, self.read_rule)?;
                u64::from(u32::from_le_bytes(*space.bytes.get(at..)?.first_chunk()?))
            }
            8 => {
                let at = accessible::<8>(space, address, align, self.read_rule)?;
                u64::from_le_bytes(*space.bytes.get(at..)?.first_chunk()?)
            }
            1 => {
                let at = accessible::<1>(space, address, align, self.read_rule)?;
                arithmetic::narrowed(ty, u64::from(space.bytes[at]))
            }
            _ => return None,
        })
    }

    /// Writes such a value. Returns whether it did.
    #[inline(always)]
    fn write_here(&mut self, ty: Prim, address: u64, align: u8, bits: u64) -> bool {
        if self.machine.is_busy {
            return false;
        }
        let (rule, space) = (self.write_rule, &mut self.machine.heap.space);
        let (at, size) = match size_of(ty) {
            4 => (accessible::<4>(space, address, align, rule), 4),
            8 => (accessible::<8>(space, address, align, rule), 8),
            1 => (accessible::<1>(space, address, align, rule), 1),
            _ => (None, 0),
        };
        let Some(at) = at else { return false };
        space.bytes[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        space.states[at..at + size].iter_mut().for_each(|state| *state |= WRITTEN);
        true
    }

    #[cold]
    fn check_limits(&mut self, pc: u32) -> Result<(), Stop> {
        let limit = match (self.left, self.machine.is_late()) {
            (0, _) => format!("{} instructions", super::amounts::thousands(self.machine.host_budget)),
            (_, true) => format!("{} seconds", self.machine.most_time.as_secs()),
            _ => return Ok(()),
        };
        Err(self.stopped(self.site("still running at", pc), &limit))
    }

    /// Ends the program where a CPU's division faults.
    #[inline(always)]
    fn check_host_divisor(&mut self, pc: u32, op: Bin, lane: &Lane, a: Row, b: Row) -> Result<(), Stop> {
        let (x, y) = match op.widths().1 {
            2 => (lane.get(a), lane.get(b)),
            _ => (u64::from(lane.get::<u32>(a)), u64::from(lane.get::<u32>(b))),
        };
        let note = match (y, arithmetic::quotient_overflows(op, x, y)) {
            (0, _) => "an integer is divided by zero",
            // x86 also faults if the quotient does not fit.
            (_, true) => "the smallest integer is divided by -1",
            _ => return Ok(()),
        };
        Err(self.host_fault(pc, "Floating-point exception", note))
    }

    #[cold]
    fn not_of_host(&mut self, pc: u32) -> Stop {
        self.host_fault(pc, "Illegal instruction", "only device code can do this")
    }

    #[cold]
    pub fn host_fault(&mut self, pc: u32, title: &str, note: &str) -> Stop {
        let sites: Vec<Site> = vec![self.site("at", pc)];
        let notes = vec![note.to_owned()];
        self.machine.findings.add(fatal("host", title.to_owned(), &self.program.name, sites, notes));
        Stop::HostFault
    }
}
