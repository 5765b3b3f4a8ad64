//! The operations of one or two operands.

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
