//! Types, identified by numbers, each stored once; and their layout in memory and in rows.

pub use crate::ir::Prim;
use crate::ir::{rows_of, size_of};
use crate::syntax::ast::{Name, Struct};
use std::collections::HashMap;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

pub type StructId = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Prim(Prim),
    Pointer {
        to: TypeId,
        is_const: bool,
    },
    Array {
        of: TypeId,
        count: u64,
    },
    Struct(StructId),
    /// A lambda. Each has its own type.
    Closure(usize),
    /// `nullptr`
    Null,
    Function,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    Type(TypeId),
    Value(TypeId, u64),
    Pack(Vec<Argument>),
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: Name,
    pub ty: TypeId,
    pub offset: u64,
    /// The first row, if the struct is in rows.
    pub row: u32,
    /// A reference, stored as a pointer.
    pub is_reference: bool,
    pub is_const: bool,
}

#[derive(Clone, Debug)]
pub struct StructType {
    pub name: String,
    pub declaration: Rc<Struct>,
    pub arguments: Vec<Argument>,
    pub fields: Vec<Field>,
    pub size: u64,
    pub align: u64,
    /// The number of rows; `None` for a struct with arrays, which must be in memory.
    pub rows: Option<u32>,
    pub is_complete: bool,
}

pub struct Types {
    pub all: Vec<Type>,
    known: HashMap<Type, TypeId>,
    pub structs: Vec<StructType>,
}

pub const VOID: TypeId = TypeId(0);
pub const BOOL: TypeId = TypeId(1);
pub const I8: TypeId = TypeId(2);
pub const U8: TypeId = TypeId(3);
pub const I16: TypeId = TypeId(4);
pub const U16: TypeId = TypeId(5);
pub const I32: TypeId = TypeId(6);
pub const U32: TypeId = TypeId(7);
pub const I64: TypeId = TypeId(8);
pub const U64: TypeId = TypeId(9);
pub const F32: TypeId = TypeId(10);
pub const F64: TypeId = TypeId(11);
pub const FUNCTION: TypeId = TypeId(12);
pub const NULL: TypeId = TypeId(13);

const PRIMS: [Prim; 12] = [
    Prim::Void,
    Prim::Bool,
    Prim::I8,
    Prim::U8,
    Prim::I16,
    Prim::U16,
    Prim::I32,
    Prim::U32,
    Prim::I64,
    Prim::U64,
    Prim::F32,
    Prim::F64,
];

/// A part of a type that is a number or a pointer: its offset, row and type.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    pub offset: u64,
    pub row: u32,
    pub prim: Prim,
}

impl Default for Types {
    fn default() -> Types {
        let mut types = Types { all: Vec::new(), known: HashMap::new(), structs: Vec::new() };
        for prim in PRIMS {
            types.id(Type::Prim(prim));
        }
        types.id(Type::Function);
        types.id(Type::Null);
        types
    }
}

impl Types {
    pub fn id(&mut self, ty: Type) -> TypeId {
        if let Some(id) = self.known.get(&ty) {
            return *id;
        }
        let id = TypeId(self.all.len() as u32);
        self.all.push(ty.clone());
        self.known.insert(ty, id);
        id
    }

    pub fn get(&self, id: TypeId) -> &Type {
        &self.all[id.0 as usize]
    }

    pub fn pointer(&mut self, to: TypeId, is_const: bool) -> TypeId {
        self.id(Type::Pointer { to, is_const })
    }

    /// The machine type of a number or pointer.
    pub fn prim(&self, id: TypeId) -> Option<Prim> {
        match self.get(id) {
            Type::Prim(Prim::Void) => None,
            Type::Prim(prim) => Some(*prim),
            Type::Pointer { .. } | Type::Null => Some(Prim::U64),
            _ => None,
        }
    }

    /// The machine type of a number, but not of a pointer.
    pub fn arithmetic(&self, id: TypeId) -> Option<Prim> {
        match self.get(id) {
            Type::Prim(Prim::Void) => None,
            Type::Prim(prim) => Some(*prim),
            _ => None,
        }
    }

    pub fn of_struct(&self, id: TypeId) -> Option<&StructType> {
        match self.get(id) {
            Type::Struct(number) => Some(&self.structs[*number]),
            _ => None,
        }
    }

    pub fn pointee(&self, id: TypeId) -> Option<(TypeId, bool)> {
        match self.get(id) {
            Type::Pointer { to, is_const } => Some((*to, *is_const)),
            _ => None,
        }
    }

    /// Size and alignment in bytes.
    pub fn layout(&self, id: TypeId) -> (u64, u64) {
        match self.get(id) {
            Type::Prim(Prim::Void) => (1, 1),
            Type::Prim(prim) => (size_of(*prim), size_of(*prim)),
            Type::Pointer { .. } | Type::Null => (8, 8),
            Type::Array { of, count } => {
                let (size, align) = self.layout(*of);
                (size.saturating_mul(*count), align)
            }
            Type::Struct(number) => (self.structs[*number].size, self.structs[*number].align),
            Type::Closure(_) | Type::Function => (1, 1),
        }
    }

    /// The number of rows of a value; `None` if it must be in memory.
    pub fn rows(&self, id: TypeId) -> Option<u32> {
        match self.get(id) {
            Type::Struct(number) => self.structs[*number].rows,
            Type::Array { .. } => None,
            Type::Closure(_) | Type::Function | Type::Prim(Prim::Void) => Some(0),
            _ => Some(rows_of(self.prim(id)?)),
        }
    }

    /// All parts of a type, in order. Their rows are meaningless if it must be in memory.
    pub fn leaves(&self, id: TypeId) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.add_leaves(id, 0, 0, &mut leaves);
        leaves
    }

    /// A type with more parts is not copied part by part.
    const MOST_LEAVES: usize = 4096;

    fn add_leaves(&self, id: TypeId, offset: u64, row: u32, leaves: &mut Vec<Leaf>) {
        if leaves.len() > Self::MOST_LEAVES {
            return;
        }
        match self.get(id) {
            Type::Struct(number) => {
                for field in &self.structs[*number].fields {
                    if field.is_reference {
                        leaves.push(Leaf {
                            offset: offset + field.offset,
                            row: row + field.row,
                            prim: Prim::U64,
                        });
                    } else {
                        self.add_leaves(field.ty, offset + field.offset, row + field.row, leaves);
                    }
                }
            }
            Type::Array { of, count } => {
                let size = self.layout(*of).0;
                for i in 0..*count {
                    self.add_leaves(*of, offset + i * size, row, leaves);
                    if leaves.len() > Self::MOST_LEAVES {
                        return;
                    }
                }
            }
            _ => {
                if let Some(prim) = self.prim(id) {
                    leaves.push(Leaf { offset, row, prim });
                }
            }
        }
    }

    /// The name in C++.
    pub fn name(&self, id: TypeId) -> String {
        match self.get(id) {
            Type::Prim(prim) => prim_name(*prim).to_owned(),
            Type::Pointer { to, is_const } => {
                format!("{}{} *", if *is_const { "const " } else { "" }, self.name(*to)).replace("* *", "**")
            }
            Type::Array { of, count } => {
                let mut of = *of;
                let mut sizes = format!("[{count}]");
                while let Type::Array { of: inner, count } = self.get(of) {
                    sizes.push_str(&format!("[{count}]"));
                    of = *inner;
                }
                format!("{}{sizes}", self.name(of))
            }
            Type::Struct(number) => self.structs[*number].name.clone(),
            Type::Closure(_) => "lambda".to_owned(),
            Type::Null => "nullptr_t".to_owned(),
            Type::Function => "function".to_owned(),
        }
    }
}

pub fn prim_name(prim: Prim) -> &'static str {
    match prim {
        Prim::Void => "void",
        Prim::Bool => "bool",
        Prim::I8 => "char",
        Prim::U8 => "unsigned char",
        Prim::I16 => "short",
        Prim::U16 => "unsigned short",
        Prim::I32 => "int",
        Prim::U32 => "unsigned int",
        Prim::I64 => "long long",
        Prim::U64 => "unsigned long long",
        Prim::F32 => "float",
        Prim::F64 => "double",
    }
}

pub fn is_integer(prim: Prim) -> bool {
    !matches!(prim, Prim::Void | Prim::F32 | Prim::F64)
}

pub fn is_signed(prim: Prim) -> bool {
    matches!(prim, Prim::I8 | Prim::I16 | Prim::I32 | Prim::I64)
}

pub fn promoted(prim: Prim) -> Prim {
    match prim {
        Prim::Bool | Prim::I8 | Prim::U8 | Prim::I16 | Prim::U16 => Prim::I32,
        other => other,
    }
}

/// The common type of two operands in arithmetic.
pub fn common(a: Prim, b: Prim) -> Prim {
    let (a, b) = (promoted(a), promoted(b));
    let rank = |prim| match prim {
        Prim::I32 => 0,
        Prim::U32 => 1,
        Prim::I64 => 2,
        Prim::U64 => 3,
        Prim::F32 => 4,
        _ => 5,
    };
    if rank(a) >= rank(b) { a } else { b }
}

pub fn of_prim(prim: Prim) -> TypeId {
    TypeId(PRIMS.iter().position(|known| *known == prim).unwrap_or(0) as u32)
}
