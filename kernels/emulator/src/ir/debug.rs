//! A kernel's source, for stepping: its statements, functions and variables, and their instructions and rows, as in a
//! debugger's symbols. Only the recording of a warp reads them.

use super::{Prim, Row, Scaled};
use crate::source::Span;

#[derive(Clone, Debug, Default)]
pub struct Debug {
    pub statements: Vec<Statement>,
    /// In the order of their instructions. A statement may have none: then the next mark is at the same instruction.
    pub marks: Vec<Mark>,
    /// For a jump to the first instruction of several marks, the number of marks that it skips: the jump and that
    /// number.
    pub skipped: Vec<(u32, u32)>,
    /// The kernel, and each inlined call.
    pub functions: Vec<Function>,
    pub variables: Vec<Variable>,
    pub shared: Vec<SharedVariable>,
    pub pointers: Vec<Pointer>,
}

#[derive(Clone, Copy, Debug)]
pub struct Statement {
    pub start: Span,
    /// Its last token; for an `if` or a loop, the `)` before its body.
    pub last: Span,
    pub function: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// The first instruction.
    pub at: u32,
    /// `None` at the end of the kernel.
    pub statement: Option<u32>,
    /// Whether this is the rest of a statement, after a call.
    pub is_rest: bool,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    /// The function and the line of the call; `None` for the kernel.
    pub caller: Option<(u32, u32)>,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub type_name: String,
    pub function: u32,
    pub line: u32,
    /// Declared without a value.
    pub is_bare: bool,
    /// The scope: the mark after the one that declares it, and the first mark behind it.
    pub born: u32,
    pub dies: u32,
    /// The instruction after its declaration.
    pub from: u32,
    /// An instruction of the last statement that overwrites it, by a function's result.
    pub ends: Option<u32>,
    pub parts: Vec<Part>,
}

/// A number or a pointer: a variable, or a member or an element of one.
#[derive(Clone, Debug)]
pub struct Part {
    /// Such as `.x` or `[3]`; empty for a whole variable.
    pub path: String,
    pub kind: Kind,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Number(Prim),
    Pointer,
    /// `__half` and `__nv_bfloat16`: their bits.
    Half,
    Bfloat16,
}

impl Kind {
    pub fn prim(self) -> Prim {
        match self {
            Kind::Number(prim) => prim,
            Kind::Pointer => Prim::U64,
            Kind::Half | Kind::Bfloat16 => Prim::U16,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Place {
    Constant(u64),
    Row(Row),
    /// An address known at compile time.
    Fixed(u64),
    /// base + first + second + offset
    Memory {
        base: Option<Row>,
        first: Scaled,
        second: Scaled,
        offset: u64,
    },
}

/// A shared variable, as cells: row by row, and each element field by field.
#[derive(Clone, Debug)]
pub struct SharedVariable {
    pub name: String,
    pub type_name: String,
    /// The address in the window of shared memory.
    pub address: u64,
    /// The number of elements of each dimension; empty for a variable that is no array. The first is 0 if the launch
    /// sets it.
    pub shape: Vec<u64>,
    pub element_size: u64,
    /// The numbers and pointers of an element: offset, path and kind.
    pub fields: Vec<(u64, String, Kind)>,
}

impl SharedVariable {
    /// The number of its elements, in a launch with this much dynamic shared memory.
    pub fn elements(&self, dynamic: u64) -> u64 {
        match self.shape.split_first() {
            Some((0, rest)) => {
                let row = rest.iter().product::<u64>();
                dynamic / (row * self.element_size).max(1) * row
            }
            _ => self.shape.iter().product(),
        }
    }
}

/// A pointer among the kernel's parameters, which names the memory that it points to.
#[derive(Clone, Debug)]
pub struct Pointer {
    pub name: String,
    /// The offset in the parameters.
    pub offset: u64,
    pub element_size: u64,
}
