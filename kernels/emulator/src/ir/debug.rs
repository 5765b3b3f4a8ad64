//! The debug information of a kernel: statements, functions and variables, with their instructions and rows. Only the
//! recording of a warp reads it.

use super::{Prim, Row, Scaled};
use crate::source::Span;

#[derive(Clone, Debug, Default)]
pub struct Debug {
    pub statements: Vec<Statement>,
    /// In the order of their instructions. A statement without instructions shares its position with the next mark.
    pub marks: Vec<Mark>,
    /// Jumps to the first instruction of several marks, each with the number of marks that it skips.
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
    /// The last token; for an `if` or a loop, the `)` before its body.
    pub last: Span,
    pub function: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub at: u32,
    /// `None` at the end of the kernel.
    pub statement: Option<u32>,
    /// The rest of a statement, after a call.
    pub is_rest: bool,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    /// Function and line of the call; `None` for the kernel.
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
    /// The scope: from the mark after its declaration to the first mark behind it.
    pub born: u32,
    pub dies: u32,
    /// The first instruction after its declaration.
    pub from: u32,
    /// An instruction of the last statement that overwrites the variable with a function's result.
    pub ends: Option<u32>,
    pub parts: Vec<Part>,
}

/// A number or a pointer: a variable, or a member or an element of a variable.
#[derive(Clone, Debug)]
pub struct Part {
    /// For example `.x` or `[3]`; empty for a whole variable.
    pub path: String,
    pub kind: Kind,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Number(Prim),
    Pointer,
    /// `__half` and `__nv_bfloat16`, as bits.
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
    /// Known at compile time.
    Fixed(u64),
    /// base + first + second + offset
    Memory {
        base: Option<Row>,
        first: Scaled,
        second: Scaled,
        offset: u64,
    },
}

/// A shared variable as cells: row by row, each element field by field.
#[derive(Clone, Debug)]
pub struct SharedVariable {
    pub name: String,
    pub type_name: String,
    /// The address within shared memory.
    pub address: u64,
    /// The size of each dimension; empty if the variable is not an array. The first is 0 if the launch sets it.
    pub shape: Vec<u64>,
    pub element_size: u64,
    /// The numbers and pointers of an element: offset, path and kind.
    pub fields: Vec<(u64, String, Kind)>,
}

impl SharedVariable {
    /// The number of elements in a launch with `dynamic` bytes of dynamic shared memory.
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

/// A pointer parameter of the kernel. It gives the memory that it points to a name.
#[derive(Clone, Debug)]
pub struct Pointer {
    pub name: String,
    /// The offset in the parameters.
    pub offset: u64,
    pub element_size: u64,
}
