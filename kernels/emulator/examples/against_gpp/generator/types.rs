//! The types of the generated kernels.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ty {
    Bool,
    Char,
    UnsignedChar,
    Short,
    UnsignedShort,
    Int,
    Unsigned,
    Long,
    UnsignedLong,
    Float,
    Double,
    Half,
}

use Ty::*;

/// The types of arithmetic: those that the others are promoted to.
pub const WIDE: [Ty; 6] = [Int, Unsigned, Long, UnsignedLong, Float, Double];
pub const NARROW: [Ty; 5] = [Bool, Char, UnsignedChar, Short, UnsignedShort];
pub const ALL: [Ty; 12] =
    [Int, Unsigned, Long, UnsignedLong, Float, Double, Bool, Char, UnsignedChar, Short, UnsignedShort, Half];

impl Ty {
    pub fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            Char => "signed char",
            UnsignedChar => "unsigned char",
            Short => "short",
            UnsignedShort => "unsigned short",
            Int => "int",
            Unsigned => "unsigned",
            Long => "long long",
            UnsignedLong => "unsigned long long",
            Float => "float",
            Double => "double",
            Half => "half",
        }
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Int | Long)
    }

    pub fn is_float(self) -> bool {
        matches!(self, Float | Double)
    }

    pub fn is_integer(self) -> bool {
        !matches!(self, Float | Double | Half)
    }

    pub fn promoted(self) -> Ty {
        if NARROW.contains(&self) { Int } else { self }
    }
}

/// The usual arithmetic conversions: the type of `a + b`. Types are ordered by rank.
pub fn common(a: Ty, b: Ty) -> Ty {
    a.promoted().max(b.promoted())
}

/// A conversion that C++ fully defines.
pub fn converted(value: &str, from: Ty, to: Ty) -> String {
    let name = to.name();
    match (from, to) {
        _ if from == to => format!("({value})"),
        // A bool is whether the number is not zero.
        (Half, Bool) => format!("((float)({value}) != 0.0f)"),
        (_, Bool) => format!("(bool)({value})"),
        (Half, Float) => format!("(float)({value})"),
        (Half, _) => converted(&format!("(float)({value})"), Float, to),
        (Float, Half) => format!("half({value})"),
        (_, Half) => format!("half((float)({value}))"),
        (Float | Double, Int) => format!("whole({value})"),
        (Float | Double, _) if to.is_integer() => format!("({name})whole({value})"),
        _ => format!("({name})({value})"),
    }
}
