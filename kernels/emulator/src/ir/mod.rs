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

mod arithmetic;
pub mod debug;
mod rows;
pub mod validate;

use crate::source::Span;
pub use crate::syntax::ast::Prim;
pub use arithmetic::{Bin, Un};

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
    /// An index of this many bits, times the scale, is below [`Scaled::MOST`]. `None` if the scale is too large.
    pub bits: Option<u8>,
}

impl Scaled {
    /// The upper bound of the terms of an address, so that their sum fits 32 bits.
    pub const MOST: u32 = 1 << 29;
    pub const NONE: Scaled = Scaled { row: NO_ROW, kind: IndexKind::None, scale: 0, bits: Some(29) };

    pub fn new(row: Row, kind: IndexKind, scale: u32) -> Scaled {
        let of_scale = u32::BITS - scale.saturating_sub(1).leading_zeros();
        let bits = Scaled::MOST.trailing_zeros().checked_sub(of_scale).map(|bits| bits as u8);
        Scaled { row, kind, scale, bits }
    }
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
