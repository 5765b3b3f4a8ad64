//! The instructions that a program is lowered to, and their semantics.
//!
//! # Semantics
//!
//! **Rows.** A warp has rows of 32 lanes of 32 bits. A 64-bit value takes two adjacent rows. An instruction reads all
//! its operands before it writes, and writes only the lanes that execute it. Bytes, shorts and bools take one row
//! each, sign- or zero-extended to 32 bits. A bool is 0 or 1.
//!
//! **Integers** wrap around, including signed ones: C++ leaves this undefined, and NVIDIA's hardware wraps. Types
//! smaller than `int` are promoted to `int` before arithmetic. If one operand is unsigned and at least as wide as the
//! other, both become unsigned. A shift by the width or more gives 0, or the sign, as in PTX. A division by 0 gives all
//! ones, and its remainder is the dividend. `INT_MIN / -1` is `INT_MIN`, with remainder 0.
//!
//! **Floats** follow IEEE 754, rounded to nearest, with subnormals. Every operation is rounded: a product and a sum are
//! never fused, as with `nvcc --fmad=false`, unless the source asks for it (`fmaf`, `__fmaf_rn`). On the device, a
//! float operation whose result is NaN gives 0x7fffffff. A conversion to an integer truncates and saturates at the
//! limits of the type; NaN becomes 0.
//!
//! **Order.** Lanes at the same instruction execute it together. Where lanes diverge, those with the smaller program
//! counter go first, so lanes reconverge at the end of a branch. A group that keeps others waiting by jumping backwards
//! yields after some thousand jumps, so that a lane that holds a lock can proceed (independent thread scheduling of
//! Volta and later). The warps of a block take turns at barriers. Blocks run in order, and a block that waits for
//! another yields as well.
//!
//! **Memory.** Addresses have 64 bits. The upper half identifies the memory: see [`space`]. Each access is checked, and
//! a failed check ends the launch.
//!
//! **Calls** exist only for recursive functions; all others are inlined. Each lane has a stack of limited size.

pub mod debug;
pub mod validate;

use crate::source::Span;
pub use crate::syntax::ast::Prim;

pub type Row = u32;
/// An omitted operand.
pub const NO_ROW: Row = u32::MAX;
pub const LANES: usize = 32;

/// The windows of the address space.
pub mod space {
    pub const HEAP: u64 = 0x7f00_0000_0000;
    pub const SHARED: u64 = 0x7e00_0000_0000;
    pub const LOCAL: u64 = 0x7d00_0000_0000;
    pub const PARAMETERS: u64 = 0x7c00_0000_0000;
    pub const WINDOW: u64 = 0x0100_0000_0000;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    None,
    I32,
    U32,
    I64,
}

/// index · scale
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    pub row: Row,
    pub kind: IndexKind,
    pub scale: u32,
}

impl Scaled {
    pub const NONE: Scaled = Scaled { row: NO_ROW, kind: IndexKind::None, scale: 0 };
}

/// base + first + second + offset. The second index, of a matrix, is present only if the first is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub base: Row,
    pub first: Scaled,
    pub second: Scaled,
    pub offset: i32,
    /// The required alignment in bytes.
    pub align: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Un {
    Neg32,
    Neg64,
    NegF32,
    NegF64,
    Not32,
    Not64,
    /// 1 if the operand is 0, else 0.
    IsZero32,
    Clz32,
    Clz64,
    Ffs32,
    Ffs64,
    Popc32,
    Popc64,
    Brev32,
    Brev64,
}

impl Un {
    /// The number of rows of the operand and of the result.
    pub fn widths(self) -> (u32, u32) {
        match self {
            Un::Neg64 | Un::NegF64 | Un::Not64 | Un::Brev64 => (2, 2),
            Un::Clz64 | Un::Ffs64 | Un::Popc64 => (2, 1),
            _ => (1, 1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bin {
    Add32,
    Sub32,
    Mul32,
    DivI32,
    DivU32,
    RemI32,
    RemU32,
    And32,
    Or32,
    Xor32,
    Shl32,
    ShrI32,
    ShrU32,
    Eq32,
    Ne32,
    LtI32,
    LtU32,
    LeI32,
    LeU32,
    MinI32,
    MaxI32,
    MinU32,
    MaxU32,
    MulHiI32,
    MulHiU32,
    Add64,
    Sub64,
    Mul64,
    DivI64,
    DivU64,
    RemI64,
    RemU64,
    And64,
    Or64,
    Xor64,
    /// The second operand of a shift has 32 bits.
    Shl64,
    ShrI64,
    ShrU64,
    Eq64,
    Ne64,
    LtI64,
    LtU64,
    LeI64,
    LeU64,
    MinI64,
    MaxI64,
    MinU64,
    MaxU64,
    MulHiI64,
    MulHiU64,
    AddF32,
    SubF32,
    MulF32,
    DivF32,
    EqF32,
    NeF32,
    LtF32,
    LeF32,
    AddF64,
    SubF64,
    MulF64,
    DivF64,
    EqF64,
    NeF64,
    LtF64,
    LeF64,
}

impl Bin {
    pub fn is_division(self) -> bool {
        use Bin::*;
        matches!(self, DivI32 | DivU32 | RemI32 | RemU32 | DivI64 | DivU64 | RemI64 | RemU64)
    }

    pub fn makes_float(self) -> bool {
        use Bin::*;
        matches!(self, AddF32 | SubF32 | MulF32 | DivF32)
    }

    /// The number of rows of the operands and of the result, 1 or 2 each.
    pub fn widths(self) -> (u32, u32, u32) {
        use Bin::*;
        match self {
            Add32 | Sub32 | Mul32 | DivI32 | DivU32 | RemI32 | RemU32 | And32 | Or32 | Xor32 | Shl32
            | ShrI32 | ShrU32 | Eq32 | Ne32 | LtI32 | LtU32 | LeI32 | LeU32 | MinI32 | MaxI32 | MinU32
            | MaxU32 | MulHiI32 | MulHiU32 | AddF32 | SubF32 | MulF32 | DivF32 | EqF32 | NeF32 | LtF32
            | LeF32 => (1, 1, 1),
            Shl64 | ShrI64 | ShrU64 => (2, 1, 2),
            Eq64 | Ne64 | LtI64 | LtU64 | LeI64 | LeU64 | EqF64 | NeF64 | LtF64 | LeF64 => (2, 2, 1),
            _ => (2, 2, 2),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    ThreadX,
    ThreadY,
    ThreadZ,
    BlockX,
    BlockY,
    BlockZ,
    BlockDimX,
    BlockDimY,
    BlockDimZ,
    GridX,
    GridY,
    GridZ,
    Lane,
    ActiveMask,
    Clock,
    /// The launch's dynamic shared memory in bytes.
    DynamicShared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    Plain,
    And,
    Or,
    Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleKind {
    Index,
    Up,
    Down,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteKind {
    Any,
    All,
    Ballot,
    /// The operand has 32 or 64 bits.
    Match32,
    Match64,
    ReduceAdd,
    ReduceMinI,
    ReduceMaxI,
    ReduceMinU,
    ReduceMaxU,
    ReduceAnd,
    ReduceOr,
    ReduceXor,
    Sync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicKind {
    Add,
    Sub,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Inc,
    Dec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Block,
    Device,
    System,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    Move32 {
        d: Row,
        a: Row,
    },
    Move64 {
        d: Row,
        a: Row,
    },
    Unary {
        op: Un,
        d: Row,
        a: Row,
    },
    Binary {
        op: Bin,
        d: Row,
        a: Row,
        b: Row,
    },
    Convert {
        from: Prim,
        to: Prim,
        d: Row,
        a: Row,
    },
    Select32 {
        d: Row,
        c: Row,
        a: Row,
        b: Row,
    },
    Select64 {
        d: Row,
        c: Row,
        a: Row,
        b: Row,
    },
    /// A math function on floats or doubles, by its index in [`crate::run::math`].
    Math {
        function: u16,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    Load {
        ty: Prim,
        d: Row,
        at: Address,
    },
    Store {
        ty: Prim,
        a: Row,
        at: Address,
    },
    Lea {
        d: Row,
        at: Address,
    },
    Special {
        d: Row,
        which: Special,
    },
    Jump {
        to: u32,
    },
    Branch {
        c: Row,
        to: u32,
        when: bool,
    },
    /// Calls a recursive function: saves `count` of the program's saved rows from `first` on, and writes the address of
    /// `bytes` of local memory to `frame`.
    Call {
        to: u32,
        first: u32,
        count: u32,
        frame: Row,
        bytes: u32,
    },
    /// Restores the saved rows, and continues after the call.
    Return,
    Exit,
    Barrier {
        kind: BarrierKind,
        d: Row,
        a: Row,
    },
    Shuffle {
        kind: ShuffleKind,
        wide: bool,
        d: Row,
        a: Row,
        lane: Row,
        width: Row,
        mask: Row,
    },
    Vote {
        kind: VoteKind,
        d: Row,
        a: Row,
        mask: Row,
    },
    Atomic {
        kind: AtomicKind,
        ty: Prim,
        scope: Scope,
        d: Row,
        base: Row,
        a: Row,
        b: Row,
    },
    Fence {
        scope: Scope,
    },
    Assert {
        c: Row,
        text: u32,
    },
    Print {
        text: u32,
        first: u32,
        count: u32,
        d: Row,
    },
    /// A host function, by its index in [`crate::host`].
    Host {
        function: u16,
        d: Row,
        first: u32,
        count: u32,
    },
    Launch {
        kernel: u32,
        first: u32,
        count: u32,
    },
    Trap {
        text: u32,
    },
    Nothing,
}

/// Memory that lives as long as the program.
#[derive(Clone, Debug)]
pub struct Global {
    pub name: String,
    pub address: u64,
    pub size: u64,
    pub on_device: bool,
    pub is_constant: bool,
    pub init: Option<Vec<u8>>,
    /// The name with its namespaces, if it is a `__device__` or `__constant__` variable.
    pub symbol: Option<String>,
}

/// A variable in shared or local memory.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: String,
    pub offset: u64,
    pub size: u64,
}

#[derive(Clone, Debug)]
pub struct KernelParameter {
    pub name: String,
    pub offset: u32,
    pub size: u32,
}

/// `main`, or an instance of a kernel. Instructions and spans are parallel arrays.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// For example `saxpy(int, float, const float *, float *)`.
    pub name: String,
    pub ops: Vec<Op>,
    pub spans: Vec<Span>,
    pub rows: u32,
    /// Rows from here on are written before a function's first instruction, and never again.
    pub first_constant: Row,
    /// Rows filled before the first instruction: the row, the bits, and whether the constant has 64 bits.
    pub constants: Vec<(Row, u64, bool)>,
    pub texts: Vec<String>,
    /// The operands of `printf`, host functions and launches.
    pub operands: Vec<(Prim, Row)>,
    pub parameters: Vec<KernelParameter>,
    pub parameter_bytes: u32,
    /// The offset of each number or pointer in the parameters, in order.
    pub parameter_parts: Vec<u32>,
    pub shared: Vec<Slot>,
    pub shared_bytes: u64,
    pub local: Vec<Slot>,
    pub local_bytes: u64,
    /// The rows that calls save, each with whether it is the first of a 64-bit pair.
    pub saved: Vec<(Row, bool)>,
    /// Address and size of the memory for local variables of recursive functions.
    pub stack: (u64, u64),
    pub max_threads: u32,
    pub span: Span,
    /// Empty for `main`.
    pub debug: debug::Debug,
}

pub fn rows_of(ty: Prim) -> u32 {
    match ty {
        Prim::I64 | Prim::U64 | Prim::F64 => 2,
        _ => 1,
    }
}

pub fn size_of(ty: Prim) -> u64 {
    match ty {
        Prim::Void => 0,
        Prim::Bool | Prim::I8 | Prim::U8 => 1,
        Prim::I16 | Prim::U16 => 2,
        Prim::I32 | Prim::U32 | Prim::F32 => 4,
        Prim::I64 | Prim::U64 | Prim::F64 => 8,
    }
}

impl Op {
    pub fn visit(&mut self, operands: &[(Prim, Row)], visit: &mut dyn FnMut(&mut Row, u32, bool)) {
        let _ = operands;
        let address = |at: &mut Address, visit: &mut dyn FnMut(&mut Row, u32, bool)| {
            visit(&mut at.base, 2, false);
            for index in [&mut at.first, &mut at.second] {
                match index.kind {
                    IndexKind::None => {}
                    IndexKind::I64 => visit(&mut index.row, 2, false),
                    _ => visit(&mut index.row, 1, false),
                }
            }
        };
        let optional =
            |row: &mut Row, rows: u32, written: bool, visit: &mut dyn FnMut(&mut Row, u32, bool)| {
                if *row != NO_ROW {
                    visit(row, rows, written);
                }
            };
        match self {
            Op::Move32 { d, a } => {
                visit(a, 1, false);
                visit(d, 1, true);
            }
            Op::Move64 { d, a } => {
                visit(a, 2, false);
                visit(d, 2, true);
            }
            Op::Unary { op, d, a } => {
                let (from, to) = op.widths();
                visit(a, from, false);
                visit(d, to, true);
            }
            Op::Binary { op, d, a, b } => {
                let (x, y, z) = op.widths();
                visit(a, x, false);
                visit(b, y, false);
                visit(d, z, true);
            }
            Op::Convert { from, to, d, a } => {
                visit(a, rows_of(*from), false);
                visit(d, rows_of(*to), true);
            }
            Op::Select32 { d, c, a, b } => {
                visit(c, 1, false);
                visit(a, 1, false);
                visit(b, 1, false);
                visit(d, 1, true);
            }
            Op::Select64 { d, c, a, b } => {
                visit(c, 1, false);
                visit(a, 2, false);
                visit(b, 2, false);
                visit(d, 2, true);
            }
            Op::Math { function, d, a, b, c } => {
                let function = &crate::run::math::FUNCTIONS[*function as usize];
                for (row, ty) in [a, b, c].into_iter().zip(function.parameters) {
                    visit(row, rows_of(*ty), false);
                }
                visit(d, rows_of(function.result), true);
            }
            Op::Load { ty, d, at } => {
                address(at, visit);
                visit(d, rows_of(*ty), true);
            }
            Op::Store { ty, a, at } => {
                address(at, visit);
                visit(a, rows_of(*ty), false);
            }
            Op::Lea { d, at } => {
                address(at, visit);
                visit(d, 2, true);
            }
            Op::Special { d, which } => visit(d, if *which == Special::Clock { 2 } else { 1 }, true),
            Op::Branch { c, .. } => visit(c, 1, false),
            Op::Barrier { d, a, .. } => {
                optional(a, 1, false, visit);
                optional(d, 1, true, visit);
            }
            Op::Shuffle { wide, d, a, lane, width, mask, .. } => {
                let rows = 1 + u32::from(*wide);
                visit(a, rows, false);
                visit(lane, 1, false);
                visit(width, 1, false);
                visit(mask, 1, false);
                visit(d, rows, true);
            }
            Op::Vote { kind, d, a, mask } => {
                optional(a, 1 + u32::from(*kind == VoteKind::Match64), false, visit);
                visit(mask, 1, false);
                optional(d, 1, true, visit);
            }
            Op::Atomic { ty, d, base, a, b, .. } => {
                let rows = rows_of(*ty);
                visit(base, 2, false);
                visit(a, rows, false);
                optional(b, rows, false, visit);
                optional(d, rows, true, visit);
            }
            Op::Assert { c, .. } => visit(c, 1, false),
            Op::Print { d, .. } => optional(d, 1, true, visit),
            // The result of a host function may take two rows. Both always exist.
            Op::Host { d, .. } => optional(d, 2, true, visit),
            Op::Call { frame, .. } => visit(frame, 2, true),
            Op::Jump { .. }
            | Op::Return
            | Op::Exit
            | Op::Fence { .. }
            | Op::Launch { .. }
            | Op::Trap { .. }
            | Op::Nothing => {}
        }
    }
}
