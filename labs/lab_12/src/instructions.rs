//! Estimates the instructions of NVIDIA's compiler for a kernel from the emulator's instructions.
//!
//! The emulator's instructions are close to the source: loops are not unrolled, `a * b + c` is two instructions, and a
//! thread's arrays are in memory. `nvcc` unrolls a loop with a constant number of iterations, and other loops four
//! times; arithmetic on the loop's counter then becomes constant offsets. It fuses products and sums, and keeps small
//! arrays in registers. The estimate does the same.

use std::collections::{HashMap, HashSet};

use cuda_emulator::ir::{Bin, IndexKind, NO_ROW, Op, Program, Row, Special, space};
use cuda_emulator::run::counters::Counters;
use cuda_emulator::run::math::FUNCTIONS;

/// The unit of a multiprocessor that executes an instruction, apart from the one for loads and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Only issued, such as a branch.
    None,
    Integer,
    Float,
    Double,
    /// Square roots, exponentials, and conversions.
    Special,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// In hardware instructions.
    pub instructions: f64,
    pub unit: Unit,
    /// Cycles from its start until its result can be used.
    pub latency: f64,
}

/// A loop, from its first instruction to the branch back.
#[derive(Clone, Copy, Debug)]
struct Loop {
    from: usize,
    to: usize,
    /// The number of iterations is a constant, so all of them are unrolled.
    is_constant: bool,
    /// The loop has a barrier, so it is not unrolled.
    has_barrier: bool,
    /// Each iteration needs the result of the previous one.
    is_chained: bool,
}

/// The number of unrolled iterations of other loops. Their loads overlap.
const UNROLLED: f64 = 4.0;
/// The number of iterations whose loads overlap if all are unrolled, limited by registers. A guess.
const OVERLAPPED: f64 = 8.0;

/// Latencies in cycles. L1 and shared memory: measured on a Turing card, sjfeng1999/gpu-arch-microbenchmark.
/// Arithmetic: Jia et al., "Dissecting the NVIDIA Turing T4 GPU via Microbenchmarking" (2019). Other generations differ
/// by a few cycles.
const ARITHMETIC: f64 = 4.0;
const SHARED: f64 = 23.0;
const L1: f64 = 32.0;
/// A shuffle is a pass through shared memory's crossbar.
const SHUFFLE: f64 = SHARED;
/// Guesses: special functions, and a barrier where all warps arrive at once.
const SPECIAL: f64 = 20.0;
const BARRIER: f64 = 20.0;

/// Instructions of a division or remainder of two `int`s, which the hardware lacks: the count in machine code of NVRTC
/// 12.9 for sm_75, sm_89 and sm_90. By a constant, it is a product and shifts.
const DIVISION: f64 = 20.0;
const DIVISION_BY_CONSTANT: f64 = 3.0;
/// Instructions of `expf`. Other float functions take 3 (`rsqrtf`) to 130 (`sinf`).
const MATH: f64 = 9.0;

pub struct Estimates {
    pub of: Vec<Estimate>,
    loops: Vec<Loop>,
}

impl Estimates {
    /// `far` is the latency in cycles of a load that misses L1.
    pub fn new(program: &Program, counters: &Counters, far: f64) -> Estimates {
        let loops = loops(program);
        let constants: HashSet<Row> = program.constants.iter().map(|(row, ..)| *row).collect();
        let leaders: Vec<u64> = counters.leaders().collect();
        let mut of: Vec<Estimate> = (0..program.ops.len())
            .map(|pc| {
                let site = counters.sites()[pc];
                match &program.ops[pc] {
                    Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => {
                        let is_free = site.width == 0 || ![space::HEAP, space::SHARED].contains(&site.window);
                        let instructions = if is_free { 0.0 } else { 1.0 };
                        let misses = site.misses as f64 / leaders[pc].max(1) as f64;
                        let latency = match &program.ops[pc] {
                            _ if is_free => 0.0,
                            Op::Load { .. } if site.window == space::SHARED => SHARED,
                            Op::Load { .. } => L1 + misses.min(1.0) * (far - L1),
                            Op::Atomic { d, .. } if is_read(program, *d) => far,
                            _ => ARITHMETIC,
                        };
                        Estimate { instructions, unit: Unit::None, latency }
                    }
                    op => arithmetic(op, &constants),
                }
            })
            .collect();
        for pc in fused(program) {
            of[pc] = Estimate { instructions: 0.0, latency: 0.0, ..of[pc] };
        }
        for this in &loops {
            for (pc, dependence) in dependences(program, this, &constants) {
                let share = match dependence {
                    Dependence::Invariant => 0.0,
                    _ if this.has_barrier => 1.0,
                    _ if this.is_constant => 0.0,
                    _ => 1.0 / UNROLLED,
                };
                of[pc].instructions *= share;
                of[pc].latency *= share;
            }
        }
        Estimates { of, loops }
    }

    /// The cycles from the start to the end of a block's first warp, if it never waits for another: each instruction
    /// begins when its operands are ready. `leaders` has the warp's number of executions of each instruction.
    pub fn path(&self, program: &Program, leaders: &[u64], blocks: u64) -> f64 {
        let ends = self.loops.iter().flat_map(|this| [this.from, this.to + 1]);
        let mut starts: Vec<usize> = ends.chain([0]).filter(|at| *at < program.ops.len()).collect();
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([program.ops.len()]);
        let cycles: f64 =
            starts.iter().zip(ends).map(|(from, to)| self.stretch(program, *from, to, leaders)).sum();
        cycles / blocks.max(1) as f64
    }

    /// The cycles of a stretch without loops. The compiler turns its short branches into predicates, so loads behind
    /// them do not wait for each other.
    fn stretch(&self, program: &Program, from: usize, to: usize, leaders: &[u64]) -> f64 {
        let times = leaders[from..to].iter().copied().max().unwrap_or(0) as f64;
        let mut ready: HashMap<Row, f64> = HashMap::new();
        let (mut now, mut end, mut issued) = (0.0f64, 0.0f64, 0.0);
        for (pc, reached) in leaders.iter().enumerate().take(to).skip(from) {
            // The share of executions in which the warp gets here.
            let share = *reached as f64 / times.max(1.0);
            let Estimate { instructions, latency, .. } = self.of[pc];
            let mut start = now;
            for (row, is_written) in rows(program, pc) {
                if !is_written {
                    start = start.max(ready.get(&row).copied().unwrap_or(0.0));
                }
            }
            issued += share * instructions;
            now = start + share * instructions;
            end = end.max(start + share * latency);
            for (row, is_written) in rows(program, pc) {
                if is_written && *reached > 0 {
                    ready.insert(row, start + share * latency);
                }
            }
        }
        let overlapped = match innermost(&self.loops, from) {
            Some(this) if this.has_barrier || this.is_chained => 1.0,
            Some(this) if this.is_constant => OVERLAPPED,
            Some(_) => UNROLLED,
            None => 1.0,
        };
        times * (end.max(now) / overlapped).max(issued)
    }
}

/// The rows of an instruction, each with whether it is written.
fn rows(program: &Program, pc: usize) -> Vec<(Row, bool)> {
    let mut all = Vec::new();
    // The visitor can change rows, so it takes a copy.
    program.ops[pc].clone().visit(&program.operands, &mut |row, count, is_written| {
        all.extend((*row..*row + count).map(|row| (row, is_written)));
    });
    all
}

/// Whether an instruction reads the row. An atomic operation whose result is not read returns nothing.
fn is_read(program: &Program, row: Row) -> bool {
    row != NO_ROW && (0..program.ops.len()).any(|pc| rows(program, pc).contains(&(row, false)))
}

fn arithmetic(op: &Op, constants: &HashSet<Row>) -> Estimate {
    use Bin::*;
    let of = |instructions, unit, latency| Estimate { instructions, unit, latency };
    let free = of(0.0, Unit::None, 0.0);
    match op {
        // Register allocation removes copies.
        Op::Move32 { .. } | Op::Move64 { .. } | Op::Nothing => free,
        Op::Unary { .. } => of(1.0, Unit::Integer, ARITHMETIC),
        Op::Binary { op, b, .. } => {
            let is_wide = op.widths().0 == 2;
            let division = if constants.contains(b) { DIVISION_BY_CONSTANT } else { DIVISION };
            match op {
                AddF32 | SubF32 | MulF32 | EqF32 | NeF32 | LtF32 | LeF32 => of(1.0, Unit::Float, ARITHMETIC),
                DivF32 => of(DIVISION / 2.0, Unit::Float, 2.0 * SPECIAL),
                AddF64 | SubF64 | MulF64 | EqF64 | NeF64 | LtF64 | LeF64 => {
                    of(1.0, Unit::Double, 2.0 * ARITHMETIC)
                }
                DivF64 => of(DIVISION, Unit::Double, 8.0 * SPECIAL),
                op if op.is_division() => {
                    let wide = if is_wide { 4.0 } else { 1.0 };
                    of(wide * division, Unit::Integer, wide * division * ARITHMETIC)
                }
                Mul64 | MulHiI64 | MulHiU64 => of(4.0, Unit::Integer, 4.0 * ARITHMETIC),
                _ if is_wide => of(2.0, Unit::Integer, 2.0 * ARITHMETIC),
                _ => of(1.0, Unit::Integer, ARITHMETIC),
            }
        }
        Op::Convert { from, to, .. } => {
            use cuda_emulator::ir::Prim::{F32, F64};
            match [from, to].iter().any(|ty| matches!(ty, F32 | F64)) {
                true => of(1.0, Unit::Special, SPECIAL),
                false => free,
            }
        }
        Op::Lea { at, .. } if at.first.kind == IndexKind::None => free,
        Op::Select32 { .. } | Op::Select64 { .. } | Op::Lea { .. } => of(1.0, Unit::Integer, ARITHMETIC),
        Op::Math { function, .. } => match FUNCTIONS[*function as usize].name {
            "fmaf" | "__fmaf_rn" | "fminf" | "fmaxf" | "fabsf" => of(1.0, Unit::Float, ARITHMETIC),
            "fma" | "__fma_rn" | "fmin" | "fmax" | "fabs" => of(1.0, Unit::Double, 2.0 * ARITHMETIC),
            _ => of(MATH, Unit::Special, 2.0 * SPECIAL),
        },
        Op::Special { which: Special::ThreadX | Special::ThreadY | Special::ThreadZ, .. }
        | Op::Special { which: Special::BlockX | Special::BlockY | Special::BlockZ, .. } => {
            of(1.0, Unit::None, SPECIAL)
        }
        // Launch dimensions are operands in constant memory.
        Op::Special { .. } => free,
        Op::Barrier { .. } => of(1.0, Unit::None, BARRIER),
        Op::Shuffle { .. } | Op::Vote { .. } => of(1.0, Unit::None, SHUFFLE),
        _ => of(1.0, Unit::None, ARITHMETIC),
    }
}

/// Products whose only use is the next sum. Both become one instruction.
fn fused(program: &Program) -> Vec<usize> {
    let is_product =
        |pc: &usize| matches!(program.ops[*pc], Op::Binary { op: Bin::MulF32 | Bin::MulF64, .. });
    let is_summed = |pc: &usize| {
        let Op::Binary { d, .. } = program.ops[*pc] else { return false };
        let next =
            (pc + 1..program.ops.len().min(pc + 5)).find(|next| rows(program, *next).contains(&(d, false)));
        let sum = next.map(|next| program.ops[next]);
        matches!(sum, Some(Op::Binary { op: Bin::AddF32 | Bin::SubF32 | Bin::AddF64 | Bin::SubF64, .. }))
    };
    (0..program.ops.len()).filter(is_product).filter(is_summed).collect()
}

fn loops(program: &Program) -> Vec<Loop> {
    let constants: HashSet<Row> = program.constants.iter().map(|(row, ..)| *row).collect();
    let mut all = Vec::new();
    for (pc, op) in program.ops.iter().enumerate() {
        let (Op::Jump { to } | Op::Branch { to, .. }) = op else { continue };
        let from = *to as usize;
        if from > pc {
            continue;
        }
        let has = |wanted: fn(&Op) -> bool| program.ops[from..=pc].iter().any(wanted);
        let is_constant = match (op, program.ops[from..pc].last()) {
            (Op::Branch { c, .. }, Some(Op::Binary { d, a, b, .. })) if c == d => {
                constants.contains(a) || constants.contains(b)
            }
            _ => false,
        };
        all.push(Loop {
            from,
            to: pc,
            is_constant,
            has_barrier: has(|op| matches!(op, Op::Barrier { .. })),
            is_chained: has(|op| matches!(op, Op::Shuffle { .. } | Op::Vote { .. } | Op::Atomic { .. })),
        });
    }
    all
}

fn innermost(loops: &[Loop], pc: usize) -> Option<&Loop> {
    loops.iter().filter(|this| (this.from..=this.to).contains(&pc)).min_by_key(|this| this.to - this.from)
}

/// The dependence of a value on the loop that computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Dependence {
    /// The same in all iterations: the compiler computes it once, before the loop.
    Invariant,
    /// A function of the loop's counter: a constant offset in the unrolled loop.
    Index,
    Other,
}

/// The instructions of a loop whose values are invariant or functions of its counter.
fn dependences(program: &Program, this: &Loop, constants: &HashSet<Row>) -> Vec<(usize, Dependence)> {
    use Dependence::{Index, Invariant, Other};
    let range = this.from..=this.to;
    let mut writers: HashMap<Row, Vec<usize>> = HashMap::new();
    for pc in range.clone() {
        for (row, _) in rows(program, pc).into_iter().filter(|(_, is_written)| *is_written) {
            writers.entry(row).or_default().push(pc);
        }
    }
    // A counter has one writer, which adds or multiplies by a value from outside the loop.
    let is_step = |pc: usize, row: Row| {
        let reads = rows(program, pc).into_iter().filter(|(_, is_written)| !is_written);
        let mut others = reads.map(|(read, _)| read).filter(|read| *read != row);
        is_integer(&program.ops[pc])
            && others.all(|read| constants.contains(&read) || !writers.contains_key(&read))
    };
    let mut now: HashMap<Row, Dependence> = HashMap::new();
    let of_row = |row: Row, now: &HashMap<Row, Dependence>| match (now.get(&row), writers.get(&row)) {
        (Some(known), _) => *known,
        (None, None) => Invariant,
        (None, Some(writers)) => match writers[..] {
            [only] if is_step(only, row) => Index,
            _ => Other,
        },
    };
    let mut found = Vec::new();
    for pc in range {
        let (reads, written): (Vec<_>, Vec<_>) =
            rows(program, pc).into_iter().partition(|(_, is_written)| !is_written);
        let mut dependence = reads.iter().map(|(row, _)| of_row(*row, &now)).max().unwrap_or(Invariant);
        if dependence == Index && !is_integer(&program.ops[pc]) || !is_pure(&program.ops[pc]) {
            dependence = Other;
        }
        now.extend(written.iter().map(|(row, _)| (*row, dependence)));
        if pc == this.to {
            dependence = Index; // the branch back
        }
        if dependence != Other {
            found.push((pc, dependence));
        }
    }
    found
}

fn is_pure(op: &Op) -> bool {
    matches!(
        op,
        Op::Binary { .. }
            | Op::Unary { .. }
            | Op::Move32 { .. }
            | Op::Move64 { .. }
            | Op::Lea { .. }
            | Op::Convert { .. }
            | Op::Select32 { .. }
            | Op::Select64 { .. }
            | Op::Math { .. }
            | Op::Special { .. }
    )
}

fn is_integer(op: &Op) -> bool {
    match op {
        Op::Binary { op, .. } => !op.makes_float() && op.widths().0 == 1 && !is_float_comparison(*op),
        Op::Move32 { .. } | Op::Move64 { .. } | Op::Lea { .. } => true,
        _ => false,
    }
}

fn is_float_comparison(op: Bin) -> bool {
    matches!(op, Bin::EqF32 | Bin::NeF32 | Bin::LtF32 | Bin::LeF32)
}
