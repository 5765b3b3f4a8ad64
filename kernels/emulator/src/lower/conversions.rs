//! Reads values, and converts them to other types.

use super::{Base, Lower, Memory, Place, Value};
use crate::ir::{Bin, Op, Prim, rows_of};
use crate::run::arithmetic;
use crate::source::{Error, Result};
use crate::types::{self, BOOL, Type, TypeId};

impl Lower<'_> {
    /// Loads a value from memory if it is there; an array decays to a pointer.
    pub fn loaded(&mut self, value: Value) -> Result<Value> {
        if let Type::Array { of, .. } = *self.types.get(value.ty) {
            let Place::Memory(memory) = value.place else { return self.error("this array has no memory") };
            let ty = self.types.pointer(of, value.is_const);
            return self.lea(ty, &memory);
        }
        let Place::Memory(memory) = value.place else {
            return Ok(Value { is_lvalue: false, is_const: false, ..value });
        };
        let Some(rows) = self.types.rows(value.ty) else {
            return Ok(value);
        };
        if let Some(bits) = self.constant_memory(&memory, value.ty) {
            return Ok(Value::constant(value.ty, bits));
        }
        let row = self.program.rows(rows);
        let leaves = self.types.leaves(value.ty);
        let align = self.types.layout(value.ty).1;
        let memory = if leaves.len() > 1 { self.frozen(&memory)? } else { memory };
        for (i, leaf) in leaves.iter().enumerate() {
            let part = Memory { offset: memory.offset + leaf.offset as i64, ..memory };
            let align = if i == 0 { align } else { crate::ir::size_of(leaf.prim) };
            let at = self.address(&part, align)?;
            self.emit(Op::Load { ty: leaf.prim, d: row + leaf.row, at });
        }
        Ok(Value::new(value.ty, Place::Row(row)))
    }

    /// The address of a place in memory, as a pointer.
    pub fn lea(&mut self, pointer: TypeId, memory: &Memory) -> Result<Value> {
        if let (Base::Const(base), None) = (memory.base, memory.index) {
            return Ok(Value::constant(pointer, base.wrapping_add(memory.offset as u64)));
        }
        if let (Base::Row(row), None, 0) = (memory.base, memory.index, memory.offset) {
            return Ok(Value { is_stable: false, ..Value::new(pointer, Place::Row(row)) });
        }
        let at = self.address(memory, 1)?;
        let d = self.program.rows(2);
        self.emit(Op::Lea { d, at });
        Ok(Value::new(pointer, Place::Row(d)))
    }

    /// Returns the same memory with an address that no variable can change any more.
    pub fn frozen(&mut self, memory: &Memory) -> Result<Memory> {
        match (memory.base, memory.index) {
            (Base::Const(_), None) => Ok(*memory),
            _ => {
                let at = self.address(&Memory { offset: 0, ..*memory }, 1)?;
                let d = self.program.rows(2);
                self.emit(Op::Lea { d, at });
                Ok(Memory { base: Base::Row(d), index: None, offset: memory.offset })
            }
        }
    }

    /// Converts a value to a type by C++'s implicit conversions.
    pub fn coerced(&mut self, value: Value, to: TypeId) -> Result<Value> {
        if value.ty == to && value.is_lvalue && self.has_copy_constructor(to) {
            return self.converted_by_constructor(value, to);
        }
        if value.ty == to && !matches!(value.place, Place::Memory(_)) {
            return Ok(value);
        }
        if value.ty == to {
            return self.loaded(value);
        }
        match (self.types.get(value.ty).clone(), self.types.get(to).clone()) {
            (Type::Struct(_), Type::Struct(_)) | (_, Type::Struct(_)) => {
                self.converted_by_constructor(value, to)
            }
            (Type::Struct(_), _) => self.converted_by_operator(value, to),
            (Type::Prim(Prim::Void), _) => self.error("a function without a result has no value"),
            _ => {
                let value = self.loaded(value)?;
                self.converted_scalar(value, to, false)
            }
        }
    }

    /// Converts numbers and pointers. An explicit cast allows more conversions.
    pub fn converted_scalar(&mut self, value: Value, to: TypeId, explicit: bool) -> Result<Value> {
        if value.ty == to {
            return Ok(value);
        }
        let (from, target) = (self.types.get(value.ty).clone(), self.types.get(to).clone());
        let allowed = match (&from, &target) {
            (Type::Prim(Prim::Void), _) | (_, Type::Prim(Prim::Void)) => explicit,
            (Type::Prim(_), Type::Prim(_)) => true,
            (Type::Null, Type::Pointer { .. }) => true,
            (Type::Pointer { .. } | Type::Null, Type::Prim(Prim::Bool)) => true,
            (Type::Pointer { to: from, is_const }, Type::Pointer { to, is_const: to_const }) => {
                let same = from == to || self.types.get(*to) == &Type::Prim(Prim::Void);
                explicit || same && (*to_const || !*is_const)
            }
            (Type::Pointer { .. }, Type::Prim(prim)) => {
                explicit && types::is_integer(*prim) && crate::ir::size_of(*prim) == 8
            }
            (Type::Prim(prim), Type::Pointer { .. }) => {
                explicit && types::is_integer(*prim) || *prim == Prim::I32 && value.as_const() == Some(0)
            }
            _ => false,
        };
        if !allowed {
            return self.no_conversion(value.ty, to);
        }
        if let Type::Prim(Prim::Void) = target {
            return Ok(Value::new(to, Place::Nothing));
        }
        let (Some(a), Some(b)) = (self.prim(value.ty), self.prim(to)) else {
            return self.no_conversion(value.ty, to);
        };
        if let Some(bits) = value.as_const() {
            let bits = arithmetic::convert(a, b, bits);
            let as_on_device = self.on_device && b == Prim::F32 && a == Prim::F64;
            return Ok(Value::constant(
                to,
                if as_on_device { arithmetic::bits_as_on_device(bits) } else { bits },
            ));
        }
        let row = self.row(&value)?;
        Ok(Value { ty: to, place: Place::Row(self.converted_row(row, a, b)), is_const: false, ..value })
    }

    /// Converts a row; returns the same row if the bits do not change.
    pub fn converted_row(&mut self, a: u32, from: Prim, to: Prim) -> u32 {
        use Prim::*;
        let same = from == to
            || matches!((from, to), (I32, U32) | (U32, I32) | (I64, U64) | (U64, I64))
            // In a row, a smaller integer has the same bits as the larger one.
            || matches!((from, to), (Bool | U8, I16 | U16 | I32 | U32) | (U16 | I16, I32 | U32))
            || matches!((from, to), (I8, I16 | I32 | U32) | (Bool, I8 | U8));
        if same {
            return a;
        }
        let d = self.program.rows(rows_of(to));
        self.emit(Op::Convert { from, to, d, a });
        d
    }

    pub fn no_conversion<T>(&self, from: TypeId, to: TypeId) -> Result<T> {
        let (name, to) = (self.types.name(from), self.types.name(to));
        let error = Error::new(self.span, format!("a value of type `{name}` does not convert to `{to}`"));
        Err(self.with_part(error, from))
    }

    /// Adds help for the use of `blockIdx` or the like as a number.
    pub(super) fn with_part(&self, error: Box<Error>, ty: TypeId) -> Box<Error> {
        match self.types.name(ty).as_str() {
            "uint3" | "dim3" => error.help("it has three parts: `.x`, `.y` and `.z`, as in `blockIdx.x`"),
            _ => error,
        }
    }

    /// Converts a value to a bool, in a row or as a constant.
    pub fn to_bool(&mut self, value: Value) -> Result<Value> {
        if value.ty == BOOL {
            return self.loaded(value);
        }
        let value = self.coerced(value, BOOL)?;
        Ok(value)
    }

    /// Applies the integer promotions to a number.
    pub fn promoted(&mut self, value: Value) -> Result<(Value, Prim)> {
        let value = self.plain(value)?;
        let Some(prim) = self.types.arithmetic(value.ty) else {
            return self.error(format!("`{}` is not a number", self.types.name(value.ty)));
        };
        let to = types::promoted(prim);
        Ok((self.converted_scalar(value, types::of_prim(to), false)?, to))
    }

    /// Prepares a value for arithmetic: a struct becomes the number that it converts to; other values are only
    /// loaded.
    pub fn plain(&mut self, value: Value) -> Result<Value> {
        if self.types.of_struct(value.ty).is_some() {
            return self.converted_to_plain(value);
        }
        self.loaded(value)
    }

    /// Emits a binary instruction on rows, and returns the row of the result.
    pub fn binary_row(&mut self, op: Bin, a: u32, b: u32) -> u32 {
        let (_, _, rows) = op.widths();
        let d = self.program.rows(rows);
        self.emit(Op::Binary { op, d, a, b });
        d
    }
}
