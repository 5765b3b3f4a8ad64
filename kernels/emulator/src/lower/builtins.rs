//! The built-ins of CUDA C++: `threadIdx`, math and bit functions, and conversions.

use super::overloads::Given;
use super::{Lower, Place, Value};
use crate::ir::{Bin, Op, Prim, Special, Un, rows_of};
use crate::run::{arithmetic, math};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, BOOL, F32, F64, I32, I64, TypeId, U32, U64};

const DIMENSIONS: &[(&str, [Special; 3])] = &[
    ("threadIdx", [Special::ThreadX, Special::ThreadY, Special::ThreadZ]),
    ("blockIdx", [Special::BlockX, Special::BlockY, Special::BlockZ]),
    ("blockDim", [Special::BlockDimX, Special::BlockDimY, Special::BlockDimZ]),
    ("gridDim", [Special::GridX, Special::GridY, Special::GridZ]),
];

/// Functions that reinterpret the bits of one type as another.
const BITS: &[(&str, TypeId, TypeId)] = &[
    ("__float_as_int", F32, I32),
    ("__float_as_uint", F32, U32),
    ("__int_as_float", I32, F32),
    ("__uint_as_float", U32, F32),
    ("__double_as_longlong", F64, I64),
    ("__longlong_as_double", I64, F64),
];

const UNARY: &[(&str, Un, TypeId, TypeId)] = &[
    ("__clz", Un::Clz32, I32, I32),
    ("__clzll", Un::Clz64, I64, I32),
    ("__ffs", Un::Ffs32, I32, I32),
    ("__ffsll", Un::Ffs64, I64, I32),
    ("__popc", Un::Popc32, U32, I32),
    ("__popcll", Un::Popc64, U64, I32),
    ("__brev", Un::Brev32, U32, U32),
    ("__brevll", Un::Brev64, U64, U64),
];

const BINARY: &[(&str, Bin, TypeId)] = &[
    ("__mulhi", Bin::MulHiI32, I32),
    ("__umulhi", Bin::MulHiU32, U32),
    ("__mul64hi", Bin::MulHiI64, I64),
    ("__umul64hi", Bin::MulHiU64, U64),
    ("__mul24", Bin::Mul32, I32),
    ("umin", Bin::MinU32, U32),
    ("umax", Bin::MaxU32, U32),
    ("llmin", Bin::MinI64, I64),
    ("llmax", Bin::MaxI64, I64),
];

/// Named conversions.
const CONVERSIONS: &[(&str, TypeId, TypeId)] = &[
    ("__int2float_rn", I32, F32),
    ("__uint2float_rn", U32, F32),
    ("__ll2float_rn", I64, F32),
    ("__ull2float_rn", U64, F32),
    ("__int2double_rn", I32, F64),
    ("__uint2double_rn", U32, F64),
    ("__double2float_rn", F64, F32),
    ("__float2ll_rz", F32, I64),
    ("__float2ull_rz", F32, U64),
    ("__double2ll_rz", F64, I64),
];

const OTHERS: &[&str] = &[
    "min",
    "max",
    "abs",
    "fabs",
    "labs",
    "llabs",
    "__ldg",
    "__ldcs",
    "__ldca",
    "__ldcg",
    "__stcs",
    "__stcg",
    "clock",
    "clock64",
    "__trap",
    "__brkpt",
    "__nanosleep",
    "__builtin_expect",
    "__saturatef",
    "__fdividef",
    "sincosf",
    "sincos",
    "__sincosf",
];

/// Functions that inspect their arguments before evaluating them.
const RAW: &[&str] =
    &["printf", "__emulator_assert", "fprintf", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol"];

pub fn is_dimension(name: &str) -> bool {
    DIMENSIONS.iter().any(|(known, _)| *known == name)
}

/// Whether a name is a built-in variable.
pub fn is_value(name: &str) -> bool {
    let others = ["warpSize", "__emulator_nan", "__func__", "__FUNCTION__", "__PRETTY_FUNCTION__"];
    is_dimension(name) || others.contains(&name)
}

pub fn is_raw(name: &str) -> bool {
    RAW.contains(&name)
}

pub fn is_known(name: &str) -> bool {
    names().any(|known| known == name) || math::find(&format!("{name}f")).is_some()
}

pub fn names() -> impl Iterator<Item = String> {
    let all = BITS.iter().map(|x| x.0).chain(UNARY.iter().map(|x| x.0)).chain(BINARY.iter().map(|x| x.0));
    let all =
        all.chain(CONVERSIONS.iter().map(|x| x.0)).chain(OTHERS.iter().copied()).chain(RAW.iter().copied());
    let all = all.chain(math::FUNCTIONS.iter().map(|function| function.name));
    let all = all
        .chain(super::warp_calls::NAMES.iter().copied())
        .chain(crate::host::functions::NAMES.iter().map(|x| x.0));
    all.map(str::to_owned)
}

impl Lower<'_> {
    pub fn dimension(&mut self, name: &str, axis: &str) -> Result<Option<Value>> {
        let Some((_, specials)) = DIMENSIONS.iter().find(|(known, _)| *known == name) else {
            return Ok(None);
        };
        if !self.on_device {
            return self.error(format!("`{name}` exists only in kernels, and this is host code"));
        }
        let which = match axis {
            "x" => specials[0],
            "y" => specials[1],
            "z" => specials[2],
            _ => return self.error(format!("`{name}` has `x`, `y` and `z`, and no `{axis}`")),
        };
        let row = self.program.special(which);
        Ok(Some(Value { is_const: true, is_lvalue: true, ..Value::new(U32, Place::Row(row)) }))
    }

    /// A built-in name, which is not a variable of the program.
    pub fn built_in_value(&mut self, name: &str) -> Result<Option<Value>> {
        if let Some((_, specials)) = DIMENSIONS.iter().find(|(known, _)| *known == name) {
            if !self.on_device {
                return self.error(format!("`{name}` exists only in kernels, and this is host code"));
            }
            let rows: Vec<u32> = specials.iter().map(|which| self.program.special(*which)).collect();
            let ty = if name.ends_with("Dim") { "dim3" } else { "uint3" };
            return self.struct_of_parts(ty, &rows).map(Some);
        }
        Ok(match name {
            "warpSize" => Some(Value::constant(I32, 32)),
            // The macro `NAN` depends on the side's compiler: g++ for `main`, nvcc for kernels.
            "__emulator_nan" => {
                let bits = if self.on_device { arithmetic::NAN_OF_DEVICE } else { 0x7fc0_0000 };
                Some(Value::constant(F32, u64::from(bits)))
            }
            _ => None,
        })
    }

    pub fn built_in_call(
        &mut self,
        name: &str,
        segment: &Segment,
        given: Vec<Given<'_>>,
        arguments: &[Expr],
        span: Span,
    ) -> Result<Value> {
        let mut values = Vec::new();
        for given in given {
            match given {
                Given::Value(value) => values.push(value),
                Given::Braces(..) => return self.error(format!("`{name}` takes values, not lists")),
            }
        }
        if super::warp_calls::NAMES.contains(&name) {
            return self.warp_call(name, values, span);
        }
        if crate::host::functions::find(name).is_some() {
            return self.host_call(name, segment, values, arguments, span);
        }
        if let Some((_, from, to)) = BITS.iter().find(|(known, ..)| *known == name) {
            let [value] = self.exactly::<1>(name, values)?;
            let value = self.coerced(value, *from)?;
            return Ok(Value { ty: *to, is_const: false, ..value });
        }
        if let Some((_, op, from, to)) = UNARY.iter().find(|(known, ..)| *known == name) {
            let [value] = self.exactly::<1>(name, values)?;
            let value = self.coerced(value, *from)?;
            return self.calculate_unary(*op, value, *to);
        }
        if let Some((_, op, ty)) = BINARY.iter().find(|(known, ..)| *known == name) {
            let [a, b] = self.exactly::<2>(name, values)?;
            let (a, b) = (self.coerced(a, *ty)?, self.coerced(b, *ty)?);
            return self.calculate(*op, a, b, *ty);
        }
        if let Some((_, from, to)) = CONVERSIONS.iter().find(|(known, ..)| *known == name) {
            let [value] = self.exactly::<1>(name, values)?;
            let value = self.coerced(value, *from)?;
            return self.converted_scalar(value, *to, true);
        }
        match name {
            "min" | "max" => {
                let [a, b] = self.exactly::<2>(name, values)?;
                self.extreme(name == "min", a, b)
            }
            "abs" | "labs" | "llabs" | "fabs" => {
                let [value] = self.exactly::<1>(name, values)?;
                self.absolute(name, value)
            }
            "__ldg" | "__ldcs" | "__ldca" | "__ldcg" => {
                let [pointer] = self.exactly::<1>(name, values)?;
                let pointer = self.loaded(pointer)?;
                let Some((to, _)) = self.types.pointee(pointer.ty) else {
                    return self.error(format!("`{name}` takes a pointer"));
                };
                let memory = self.memory_at(pointer)?;
                self.loaded(Value::lvalue(to, Place::Memory(memory)))
            }
            "__stcs" | "__stcg" => {
                let [pointer, value] = self.exactly::<2>(name, values)?;
                let pointer = self.loaded(pointer)?;
                let Some((to, _)) = self.types.pointee(pointer.ty) else {
                    return self.error(format!("`{name}` takes a pointer"));
                };
                let memory = self.memory_at(pointer)?;
                self.assigned(&Value::lvalue(to, Place::Memory(memory)), value)?;
                Ok(Value::new(types::VOID, Place::Nothing))
            }
            "clock64" | "clock" if self.on_device => {
                let d = self.program.rows(2);
                self.emit(Op::Special { d, which: Special::Clock });
                Ok(Value::new(I64, Place::Row(d)))
            }
            "clock" => Ok(Value::constant(I64, 0)),
            "__trap" => {
                let text = self.program.text("__trap");
                self.emit(Op::Trap { text });
                Ok(Value::new(types::VOID, Place::Nothing))
            }
            "__nanosleep" => Ok(Value::new(types::VOID, Place::Nothing)),
            "__builtin_expect" => Ok(values.swap_remove(0)),
            "sincosf" | "sincos" | "__sincosf" => {
                let [x, sine, cosine] = self.exactly::<3>(name, values)?;
                for (name, pointer) in [("sin", sine), ("cos", cosine)] {
                    let value = self.math_call(name, vec![x.clone()])?;
                    let pointer = self.loaded(pointer)?;
                    let Some((to, _)) = self.types.pointee(pointer.ty) else {
                        return self.error("`sincos` takes two pointers");
                    };
                    let memory = self.memory_at(pointer)?;
                    self.assigned(&Value::lvalue(to, Place::Memory(memory)), value)?;
                }
                Ok(Value::new(types::VOID, Place::Nothing))
            }
            _ => self.math_call(name, values),
        }
    }

    pub fn exactly<const N: usize>(&self, name: &str, values: Vec<Value>) -> Result<[Value; N]> {
        let count = values.len();
        values.try_into().map_err(|_| {
            Error::new(self.span, format!("`{name}` takes {N} arguments, but gets {count} here"))
        })
    }

    /// `exp` of a float uses the float function, as in C++.
    fn math_call(&mut self, name: &str, values: Vec<Value>) -> Result<Value> {
        let mut plain = Vec::new();
        for value in values {
            plain.push(self.plain(value)?);
        }
        let all_single = !plain.is_empty()
            && plain.iter().any(|value| value.ty == F32)
            && plain.iter().all(|value| {
                value.ty == F32 || self.types.arithmetic(value.ty).is_some_and(types::is_integer)
            });
        // A double with an integer gives a double; two floats give a float.
        let single = math::find(&format!("{name}f")).filter(|_| {
            all_single && plain.iter().all(|value| value.ty == F32 || name == "ldexp" || name == "scalbn")
        });
        let Some(number) = single.or_else(|| math::find(name)) else {
            return self.unknown(name);
        };
        let function = &math::FUNCTIONS[number as usize];
        if plain.len() != function.parameters.len() {
            return self.error(format!(
                "`{name}` takes {} arguments, but gets {} here",
                function.parameters.len(),
                plain.len()
            ));
        }
        let mut bits = [Some(0), Some(0), Some(0)];
        let mut values = Vec::new();
        for (i, (value, prim)) in plain.into_iter().zip(function.parameters).enumerate() {
            let value = self.converted_scalar(value, types::of_prim(*prim), false)?;
            bits[i] = value.as_const();
            values.push(value);
        }
        let ty = types::of_prim(function.result);
        if let [Some(a), Some(b), Some(c)] = bits {
            let bits = math::apply(number, a, b, c);
            let as_on_device = self.on_device && ty == F32 && !math::moves_bits(number);
            return Ok(Value::constant(
                ty,
                if as_on_device { arithmetic::bits_as_on_device(bits) } else { bits },
            ));
        }
        let mut rows = [crate::ir::NO_ROW; 3];
        for (row, value) in rows.iter_mut().zip(&values) {
            *row = self.row(value)?;
        }
        let d = self.new_rows(ty);
        self.emit(Op::Math { function: number, d, a: rows[0], b: rows[1], c: rows[2] });
        Ok(Value::new(ty, Place::Row(d)))
    }

    fn extreme(&mut self, is_min: bool, a: Value, b: Value) -> Result<Value> {
        let (a, b) = (self.plain(a)?, self.plain(b)?);
        let (Some(x), Some(y)) = (self.types.arithmetic(a.ty), self.types.arithmetic(b.ty)) else {
            return self.error("`min` and `max` take two numbers");
        };
        let prim = types::common(x, y);
        if !types::is_integer(prim) {
            let ty = types::of_prim(prim);
            let both = vec![self.converted_scalar(a, ty, false)?, self.converted_scalar(b, ty, false)?];
            return self.math_call(if is_min { "fmin" } else { "fmax" }, both);
        }
        let ty = types::of_prim(prim);
        let (a, b) = (self.converted_scalar(a, ty, false)?, self.converted_scalar(b, ty, false)?);
        let op = match (is_min, prim) {
            (true, Prim::I32) => Bin::MinI32,
            (false, Prim::I32) => Bin::MaxI32,
            (true, Prim::U32) => Bin::MinU32,
            (false, Prim::U32) => Bin::MaxU32,
            (true, Prim::I64) => Bin::MinI64,
            (false, Prim::I64) => Bin::MaxI64,
            (true, _) => Bin::MinU64,
            (false, _) => Bin::MaxU64,
        };
        self.calculate(op, a, b, ty)
    }

    fn absolute(&mut self, name: &str, value: Value) -> Result<Value> {
        let (value, prim) = self.promoted(value)?;
        if !types::is_integer(prim) || name == "fabs" {
            let name = if prim == Prim::F32 { "fabsf" } else { "fabs" };
            let Some(function) = math::find(name) else { return self.unknown(name) };
            let function_type = math::FUNCTIONS[function as usize].result;
            let value = self.converted_scalar(value, types::of_prim(function_type), false)?;
            return self.math_call(name, vec![value]);
        }
        if !types::is_signed(prim) {
            return Ok(value);
        }
        let negative = self.negated(value.clone())?;
        let (op, ty) = if rows_of(prim) == 2 { (Bin::MaxI64, I64) } else { (Bin::MaxI32, I32) };
        self.calculate(op, value, negative, ty)
    }

    /// Inline assembly: only the instructions that the course's kernels use.
    pub fn asm(&mut self, text: &str, output: Option<&Expr>, inputs: &[Expr]) -> Result<()> {
        let span = self.span;
        let name = match text {
            "trap;" => {
                let text = self.program.text("trap");
                self.emit(Op::Trap { text });
                return Ok(());
            }
            "cvt.f32.f16 %0, %1;" => "__emulator_float_of_f16",
            "cvt.rn.f16.f32 %0, %1;" => "__emulator_f16_of_float",
            "cvt.rn.bf16.f32 %0, %1;" => "__emulator_bf16_of_float",
            _ => {
                let instruction = text.split_whitespace().next().unwrap_or(text).to_owned();
                return self.error(format!(
                    "the PTX instruction `{instruction}` in `asm` is not part of the subset"
                ));
            }
        };
        let (Some(output), [input]) = (output, inputs) else {
            return self.error("this instruction takes one output and one input");
        };
        let input = self.expression(input)?;
        let target = self.expression(output)?;
        self.span = span;
        let target = self.writable(target)?;
        let value = self.math_call(name, vec![input])?;
        self.assigned(&target, value)
    }

    pub fn bool_type(&self) -> TypeId {
        BOOL
    }
}
