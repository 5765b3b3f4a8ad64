//! Pointers: their arithmetic, the memory behind them, and addresses.

use super::lookup::Functions;
use super::operators::instruction;
use super::overloads::Given;
use super::{Base, Index, Lower, Memory, Place, Value};
use crate::ir::{Bin, IndexKind, Prim, Scaled};
use crate::run::arithmetic;
use crate::source::{Error, Result};
use crate::syntax::ast::*;
use crate::types::{self, BOOL, I64, Type, TypeId};

impl Lower<'_> {
    pub(super) fn pointer_operator(&mut self, operator: Binary, a: Value, b: Value) -> Result<Value> {
        let compares =
            matches!(operator, Binary::Eq | Binary::Ne | Binary::Lt | Binary::Gt | Binary::Le | Binary::Ge);
        if compares {
            let ty = self.common_type(&a, &b)?;
            let (a, b) = (self.converted_scalar(a, ty, true)?, self.converted_scalar(b, ty, true)?);
            let Some((op, swapped, _)) = instruction(operator, Prim::U64) else {
                return self.no_operator(operator, a.ty, b.ty);
            };
            let (a, b) = if swapped { (b, a) } else { (a, b) };
            return self.calculate(op, a, b, BOOL);
        }
        let size = |lower: &Self, ty: TypeId| lower.types.pointee(ty).map(|(to, _)| lower.types.layout(to).0);
        match (operator, size(self, a.ty), size(self, b.ty)) {
            (Binary::Sub, Some(of_a), Some(_)) => {
                if self.types.pointee(a.ty).map(|x| x.0) != self.types.pointee(b.ty).map(|x| x.0) {
                    return self.no_operator(operator, a.ty, b.ty);
                }
                let bytes = self.calculate(Bin::Sub64, a, b, I64)?;
                self.calculate(Bin::DivI64, bytes, Value::constant(I64, of_a), I64)
            }
            (Binary::Add | Binary::Sub, Some(size), None) => {
                let b = match operator {
                    Binary::Sub => {
                        let b = self.converted_scalar(b, I64, false)?;
                        self.negated(b)?
                    }
                    _ => b,
                };
                self.moved_pointer(a, b, size)
            }
            (Binary::Add, None, Some(size)) => self.moved_pointer(b, a, size),
            _ => self.no_operator(operator, a.ty, b.ty),
        }
    }

    /// pointer + index
    pub(super) fn moved_pointer(&mut self, pointer: Value, index: Value, size: u64) -> Result<Value> {
        let ty = pointer.ty;
        let base = self.memory_at(pointer)?;
        let memory = self.indexed(base, index, size)?;
        self.lea(ty, &memory)
    }

    /// Returns the memory that a pointer points to.
    pub fn memory_at(&mut self, pointer: Value) -> Result<Memory> {
        let pointer = self.loaded(pointer)?;
        Ok(match pointer.place {
            Place::Const(at) => Memory { base: Base::Const(at), index: None, offset: 0 },
            _ => Memory { base: Base::Row(self.row(&pointer)?), index: None, offset: 0 },
        })
    }

    /// Returns memory offset by an index.
    pub fn indexed(&mut self, memory: Memory, index: Value, size: u64) -> Result<Memory> {
        let index = self.plain(index)?;
        let Some(prim) = self.types.arithmetic(index.ty).filter(|prim| types::is_integer(*prim)) else {
            return self.error(format!(
                "an index is a whole number, and this has type `{}`",
                self.types.name(index.ty)
            ));
        };
        if let Some(bits) = index.as_const() {
            let by = arithmetic::convert(prim, Prim::I64, bits) as i64;
            let offset = memory.offset.wrapping_add(by.wrapping_mul(size as i64));
            return Ok(Memory { offset, ..memory });
        }
        let memory = match memory.index {
            // A third index: the first two are added now.
            Some(Index { second: Some(_), .. }) => {
                let offset = memory.offset;
                Memory { offset, ..self.frozen(&Memory { offset: 0, ..memory })? }
            }
            _ => memory,
        };
        let kind = match prim {
            Prim::I64 | Prim::U64 => IndexKind::I64,
            Prim::U32 => IndexKind::U32,
            _ => IndexKind::I32,
        };
        let row = self.row(&index)?;
        let Ok(scale) = u32::try_from(size) else { return self.error("these elements are too large") };
        let by = Scaled::new(row, kind, scale);
        let index = match memory.index {
            None => Index { first: by, second: None },
            Some(index) => Index { second: Some(by), ..index },
        };
        Ok(Memory { index: Some(index), ..memory })
    }

    pub fn index_expression(&mut self, array: &Expr, index: &Expr) -> Result<Value> {
        let span = self.span;
        let object = self.expression(array)?;
        if let Some(number) = self.struct_of(object.ty) {
            let methods = self.methods(number, "operator[]");
            if !methods.is_empty() {
                let functions = Functions { name: "operator[]".into(), candidates: methods, arguments: None };
                let index = self.expression(index)?;
                self.span = span;
                return self.method_call(object, functions, vec![Given::Value(index)], span);
            }
            return self.error(format!("`{}` has no `[]`", self.types.name(object.ty)));
        }
        // The index expression may change the pointer variable.
        let object = match (&object.place, object.is_stable) {
            (Place::Row(_), false) if self.writes(index) => self.copied(object)?,
            _ => object,
        };
        match *self.types.get(object.ty) {
            Type::Array { of, .. } => {
                let Place::Memory(memory) = object.place else {
                    return self.error("this array has no memory");
                };
                let memory = if self.writes(index) { self.frozen(&memory)? } else { memory };
                let index = self.expression(index)?;
                self.span = span;
                let size = self.types.layout(of).0;
                let memory = self.indexed(memory, index, size)?;
                let place = Place::Memory(memory);
                Ok(Value {
                    is_const: object.is_const,
                    declaration: object.declaration,
                    ..Value::lvalue(of, place)
                })
            }
            Type::Pointer { to, is_const } => {
                let index_value = self.expression(index)?;
                let index_value = self.loaded(index_value)?;
                self.span = span;
                let base = self.memory_at(object)?;
                let size = self.types.layout(to).0;
                let memory = self.indexed(base, index_value, size)?;
                Ok(Value { is_const, ..Value::lvalue(to, Place::Memory(memory)) })
            }
            _ => {
                let error = Error::new(span, format!("`{}` has no elements", self.types.name(object.ty)));
                Err(match array.kind {
                    ExprKind::Index(..) => error.help(ONE_INDEX),
                    _ => error,
                })
            }
        }
    }

    pub fn address_of(&mut self, value: Value) -> Result<Value> {
        let value = match value.place {
            Place::Memory(_) => value,
            Place::Functions(functions) if functions.candidates.iter().any(|known| known.0.is_method) => {
                return self.error("pointers to member functions are not part of the subset");
            }
            // A function's address stands for the function.
            Place::Functions(_) => return Ok(value),
            _ => self.needs_memory(value)?,
        };
        let pointer = self.types.pointer(value.ty, value.is_const);
        match value.place {
            Place::Memory(memory) => self.lea(pointer, &memory),
            _ => self.error("this value has no address"),
        }
    }

    /// Moves a value to memory because its address is needed: a variable in rows moves in the next attempt, a
    /// temporary is written to memory now.
    pub fn needs_memory(&mut self, value: Value) -> Result<Value> {
        // A constant stays one: other places may need its value when the program is compiled.
        let is_constant = value.is_const && value.as_const().is_some();
        if value.is_lvalue && !is_constant {
            return match value.declaration {
                Some(declaration) if self.in_memory.insert(declaration) => self.retry(),
                Some(_) if self.again => self.retry(),
                _ => self.error("this value has no address"),
            };
        }
        if matches!(value.place, Place::Closure(_) | Place::Nothing) {
            return self.error("this value has no address");
        }
        let slot = self.local_slot("a temporary value", value.ty);
        let is_const = value.is_const;
        self.assigned(&slot, value)?;
        Ok(Value { is_const, ..slot })
    }
}

pub(super) const ONE_INDEX: &str = "the rows lie one after another: write `a[row * columns + column]`";
