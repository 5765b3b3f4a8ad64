//! Operators on numbers and pointers, and operators that structs define.

use super::lookup::{Found, Functions};
use super::overloads::Given;
use super::{Lower, Place, Value};
use crate::ir::{Bin, Op, Prim, Un, rows_of};
use crate::run::arithmetic;
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, BOOL, Type, TypeId};

impl Lower<'_> {
    pub fn binary_expression(&mut self, operator: Binary, a: &Expr, b: &Expr, span: Span) -> Result<Value> {
        match operator {
            Binary::Comma => {
                self.expression(a)?;
                self.expression(b)
            }
            Binary::LogicAnd | Binary::LogicOr => self.logic(operator, a, b),
            _ => {
                let mut left = self.expression(a)?;
                // If the right side writes the variable on the left, the left is read first.
                if !left.is_stable
                    && matches!(left.place, Place::Row(_))
                    && !self.is_cheap(b)
                    && self.writes(b)
                {
                    left = self.copied(left)?;
                } else if matches!(left.place, Place::Memory(_))
                    && self.types.rows(left.ty).is_some()
                    && self.struct_of(left.ty).is_none()
                {
                    let outer = std::mem::replace(&mut self.span, a.span);
                    left = self.loaded(left)?;
                    self.span = outer;
                }
                let right = self.expression(b).map_err(|error| match &b.kind {
                    ExprKind::Unary(Unary::Deref, _) if operator == Binary::Mul && error.help.is_none() => {
                        error.help("C++ has no `**`: write `x * x`, or `powf(x, y)`")
                    }
                    _ => error,
                })?;
                self.span = span;
                self.binary_values(operator, left, right, span)
            }
        }
    }

    /// Whether an expression may write a variable.
    pub fn writes(&self, value: &Expr) -> bool {
        match &value.kind {
            ExprKind::Assign(..) | ExprKind::Call(..) | ExprKind::Launch(..) => true,
            ExprKind::Unary(operator, a) => {
                !matches!(operator, Unary::Plus | Unary::Neg | Unary::Not | Unary::BitNot | Unary::Deref)
                    && *operator != Unary::AddressOf
                    || self.writes(a)
            }
            ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) => self.writes(a) || self.writes(b),
            ExprKind::Condition(a, b, c) => self.writes(a) || self.writes(b) || self.writes(c),
            ExprKind::Member(a, ..) | ExprKind::Cast(_, _, a) => self.writes(a),
            ExprKind::Construct(_, items, _) => items.iter().any(|item| self.writes(item)),
            _ => false,
        }
    }

    fn logic(&mut self, operator: Binary, a: &Expr, b: &Expr) -> Result<Value> {
        let left = self.expression(a)?;
        let left = self.to_bool(left)?;
        let is_and = operator == Binary::LogicAnd;
        if let Some(bits) = left.as_const() {
            if (bits != 0) != is_and {
                return Ok(left);
            }
            let right = self.expression(b)?;
            return self.to_bool(right);
        }
        if self.is_cheap(b) {
            let right = self.expression(b)?;
            return self.both(operator, left, right);
        }
        let row = self.program.rows(1);
        let target = Value::lvalue(BOOL, Place::Row(row));
        self.assigned(&target, left)?;
        let end = self.program.label();
        self.emit(Op::Branch { c: row, to: end, when: !is_and });
        let rows = self.program.next_row;
        let right = self.expression(b)?;
        let right = self.to_bool(right)?;
        self.assigned(&target, right)?;
        self.program.next_row = rows;
        self.program.place(end);
        Ok(Value::new(BOOL, Place::Row(row)))
    }

    /// `&&` and `||` of two values that are both already computed.
    pub fn both(&mut self, operator: Binary, a: Value, b: Value) -> Result<Value> {
        let (a, b) = (self.to_bool(a)?, self.to_bool(b)?);
        let is_and = operator == Binary::LogicAnd;
        for (one, other) in [(&a, &b), (&b, &a)] {
            if let Some(bits) = one.as_const() {
                return Ok(if (bits != 0) == is_and { other.clone() } else { one.clone() });
            }
        }
        let (a, b) = (self.row(&a)?, self.row(&b)?);
        let d = self.binary_row(if is_and { Bin::And32 } else { Bin::Or32 }, a, b);
        Ok(Value::new(BOOL, Place::Row(d)))
    }

    pub fn binary_values(&mut self, operator: Binary, a: Value, b: Value, span: Span) -> Result<Value> {
        if matches!(operator, Binary::LogicAnd | Binary::LogicOr) {
            return self.both(operator, a, b);
        }
        if operator == Binary::Comma {
            return Ok(b);
        }
        let is_struct = |lower: &Self, value: &Value| lower.types.of_struct(value.ty).is_some();
        if (is_struct(self, &a) || is_struct(self, &b))
            && let Some(value) = self.overloaded(operator_text(operator), &a, Some(&b), span)?
        {
            return Ok(value);
        }
        let (a, b) = (self.plain(a)?, self.plain(b)?);
        let is_pointer = |lower: &Self, value: &Value| {
            matches!(lower.types.get(value.ty), Type::Pointer { .. } | Type::Null)
        };
        if is_pointer(self, &a) || is_pointer(self, &b) {
            return self.pointer_operator(operator, a, b);
        }
        if matches!(operator, Binary::Shl | Binary::Shr) {
            let (a, prim) = self.promoted(a)?;
            let (b, by) = self.promoted(b)?;
            if !types::is_integer(prim) || !types::is_integer(by) {
                return self.no_operator(operator, a.ty, b.ty);
            }
            // The shift distance has 32 bits; a larger one is clamped.
            let b = match rows_of(by) {
                2 => {
                    let most = Value::constant(types::U64, 0xffff);
                    let b = self.converted_scalar(b, types::U64, false)?;
                    let b = self.calculate(Bin::MinU64, b, most, types::U64)?;
                    self.converted_scalar(b, types::U32, false)?
                }
                _ => b,
            };
            let wide = rows_of(prim) == 2;
            let op = match (operator, wide, types::is_signed(prim)) {
                (Binary::Shl, false, _) => Bin::Shl32,
                (Binary::Shl, true, _) => Bin::Shl64,
                (_, false, true) => Bin::ShrI32,
                (_, false, false) => Bin::ShrU32,
                (_, true, true) => Bin::ShrI64,
                (_, true, false) => Bin::ShrU64,
            };
            return self.calculate(op, a, b, types::of_prim(prim));
        }
        let (Some(x), Some(y)) = (self.types.arithmetic(a.ty), self.types.arithmetic(b.ty)) else {
            return self.no_operator(operator, a.ty, b.ty);
        };
        let prim = types::common(x, y);
        let ty = types::of_prim(prim);
        let Some((op, swapped, result)) = instruction(operator, prim) else {
            return self.no_operator(operator, a.ty, b.ty);
        };
        let (a, b) = (self.converted_scalar(a, ty, false)?, self.converted_scalar(b, ty, false)?);
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        self.calculate(op, a, b, if result { BOOL } else { ty })
    }

    /// Emits an instruction, or folds it if both operands are known.
    pub fn calculate(&mut self, op: Bin, a: Value, b: Value, ty: TypeId) -> Result<Value> {
        // A division that faults is not folded: the run reports it.
        let faults = |x: u64, y: u64| {
            op.is_division() && y == 0 || !self.on_device && arithmetic::quotient_overflows(op, x, y)
        };
        if let (Some(x), Some(y)) = (a.as_const(), b.as_const())
            && !faults(x, y)
        {
            let bits = arithmetic::binary(op, x, y);
            let as_on_device = op.makes_float() && self.on_device;
            return Ok(Value::constant(
                ty,
                if as_on_device { arithmetic::bits_as_on_device(bits) } else { bits },
            ));
        }
        let (a, b) = (self.row(&a)?, self.row(&b)?);
        let d = self.binary_row(op, a, b);
        Ok(Value::new(ty, Place::Row(d)))
    }

    pub fn no_operator<T>(&self, operator: Binary, a: TypeId, b: TypeId) -> Result<T> {
        let (a, b) = (self.types.name(a), self.types.name(b));
        let error =
            Error::new(self.span, format!("there is no `{}` for `{a}` and `{b}`", operator_text(operator)));
        Err(match operator {
            Binary::Xor => error.help("`^` is no power: write `x * x`, or `powf(x, y)`"),
            _ => error,
        })
    }

    pub fn negated(&mut self, value: Value) -> Result<Value> {
        let (value, prim) = self.promoted(value)?;
        let op = match prim {
            Prim::F32 => Un::NegF32,
            Prim::F64 => Un::NegF64,
            _ if rows_of(prim) == 2 => Un::Neg64,
            _ => Un::Neg32,
        };
        self.calculate_unary(op, value, types::of_prim(prim))
    }

    pub fn calculate_unary(&mut self, op: Un, value: Value, ty: TypeId) -> Result<Value> {
        if let Some(bits) = value.as_const() {
            return Ok(Value::constant(ty, arithmetic::unary(op, bits)));
        }
        let a = self.row(&value)?;
        let d = self.new_rows(ty);
        self.emit(Op::Unary { op, d, a });
        Ok(Value::new(ty, Place::Row(d)))
    }

    /// Calls an operator that a struct or a free function defines.
    pub fn overloaded(
        &mut self,
        text: &str,
        a: &Value,
        b: Option<&Value>,
        span: Span,
    ) -> Result<Option<Value>> {
        let name: Name = format!("operator{text}").into();
        if let Some(number) = self.struct_of(a.ty) {
            let methods = self.methods(number, &name);
            if !methods.is_empty() {
                let functions = Functions { name: name.clone(), candidates: methods, arguments: None };
                let given: Vec<Given<'_>> = b.into_iter().cloned().map(Given::Value).collect();
                if self.try_choose(&functions, &given, span)?.is_some() {
                    return self.method_call(a.clone(), functions, given, span).map(Some);
                }
            }
        }
        let mut candidates = Vec::new();
        let mut namespaces = vec![self.namespace(), 0];
        for value in [Some(a), b].into_iter().flatten() {
            if let Some(number) = self.struct_of(value.ty) {
                namespaces.push(self.types.structs[number].declaration.namespace);
            }
        }
        namespaces.sort_unstable();
        namespaces.dedup();
        for namespace in namespaces {
            if let Some(Found::Functions(found)) = self.find_in(namespace, &name, 0) {
                candidates.extend(found.candidates);
            }
        }
        if candidates.is_empty() {
            return Ok(None);
        }
        let functions = Functions { name, candidates, arguments: None };
        let given: Vec<Given<'_>> = [Some(a), b].into_iter().flatten().cloned().map(Given::Value).collect();
        match self.try_choose(&functions, &given, span)? {
            Some(chosen) => self.call_chosen(chosen, None, given, span).map(Some),
            None => Ok(None),
        }
    }

    pub fn unary_operator(&mut self, operator: Unary, operand: &Expr) -> Result<Value> {
        let span = self.span;
        let value = self.expression(operand)?;
        self.span = span;
        if self.types.of_struct(value.ty).is_some() && operator != Unary::AddressOf {
            let text = match operator {
                Unary::Plus => "+",
                Unary::Neg => "-",
                Unary::Not => "!",
                Unary::BitNot => "~",
                Unary::Deref => "*",
                Unary::Increment | Unary::PostIncrement => "++",
                _ => "--",
            };
            if let Some(value) = self.overloaded(text, &value, None, span)? {
                return Ok(value);
            }
        }
        match operator {
            Unary::Plus => Ok(self.promoted(value)?.0),
            Unary::Neg => self.negated(value),
            Unary::BitNot => {
                let (value, prim) = self.promoted(value)?;
                if !types::is_integer(prim) {
                    return self.error(format!("there is no `~` for `{}`", self.types.name(value.ty)));
                }
                let op = if rows_of(prim) == 2 { Un::Not64 } else { Un::Not32 };
                self.calculate_unary(op, value, types::of_prim(prim))
            }
            Unary::Not => {
                let value = self.to_bool(value)?;
                self.calculate_unary(Un::IsZero32, value, BOOL)
            }
            Unary::Deref => {
                let value = self.loaded(value)?;
                let Some((to, is_const)) = self.types.pointee(value.ty) else {
                    return self.error(format!(
                        "`*` takes a pointer, and this has type `{}`",
                        self.types.name(value.ty)
                    ));
                };
                let memory = self.memory_at(value)?;
                Ok(Value { is_const, ..Value::lvalue(to, Place::Memory(memory)) })
            }
            Unary::AddressOf => self.address_of(value),
            Unary::Increment | Unary::Decrement | Unary::PostIncrement | Unary::PostDecrement => {
                self.step(operator, value)
            }
        }
    }

    /// Lowers `++` and `--`.
    fn step(&mut self, operator: Unary, target: Value) -> Result<Value> {
        if !target.is_lvalue || target.is_const {
            return self.not_assignable(&target);
        }
        let target = self.writable(target)?;
        let is_post = matches!(operator, Unary::PostIncrement | Unary::PostDecrement);
        let up = matches!(operator, Unary::Increment | Unary::PostIncrement);
        let target = self.fixed_target(target)?;
        let old = self.loaded(target.clone())?;
        let old = if is_post { self.copied(old)? } else { old };
        let one = Value::constant(types::I32, 1);
        let operator = if up { Binary::Add } else { Binary::Sub };
        let span = self.span;
        let new = self.binary_values(operator, old.clone(), one, span)?;
        let new = self.converted_scalar(new, target.ty, true)?;
        self.assigned(&target, new)?;
        Ok(if is_post { old } else { target })
    }
}

/// The instruction of an operator, whether its operands are swapped, and whether the result is a bool.
pub(super) fn instruction(operator: Binary, prim: Prim) -> Option<(Bin, bool, bool)> {
    use Bin as B;
    use Binary::*;
    let column = match prim {
        Prim::I32 => 0,
        Prim::U32 => 1,
        Prim::I64 => 2,
        Prim::U64 => 3,
        Prim::F32 => 4,
        Prim::F64 => 5,
        _ => return None,
    };
    let (row, swapped, is_bool): ([Option<B>; 6], bool, bool) = match operator {
        Add => (all(B::Add32, B::Add32, B::Add64, B::Add64, B::AddF32, B::AddF64), false, false),
        Sub => (all(B::Sub32, B::Sub32, B::Sub64, B::Sub64, B::SubF32, B::SubF64), false, false),
        Mul => (all(B::Mul32, B::Mul32, B::Mul64, B::Mul64, B::MulF32, B::MulF64), false, false),
        Div => (all(B::DivI32, B::DivU32, B::DivI64, B::DivU64, B::DivF32, B::DivF64), false, false),
        Rem => (integers(B::RemI32, B::RemU32, B::RemI64, B::RemU64), false, false),
        And => (integers(B::And32, B::And32, B::And64, B::And64), false, false),
        Or => (integers(B::Or32, B::Or32, B::Or64, B::Or64), false, false),
        Xor => (integers(B::Xor32, B::Xor32, B::Xor64, B::Xor64), false, false),
        Eq => (all(B::Eq32, B::Eq32, B::Eq64, B::Eq64, B::EqF32, B::EqF64), false, true),
        Ne => (all(B::Ne32, B::Ne32, B::Ne64, B::Ne64, B::NeF32, B::NeF64), false, true),
        Lt => (all(B::LtI32, B::LtU32, B::LtI64, B::LtU64, B::LtF32, B::LtF64), false, true),
        Le => (all(B::LeI32, B::LeU32, B::LeI64, B::LeU64, B::LeF32, B::LeF64), false, true),
        Gt => (all(B::LtI32, B::LtU32, B::LtI64, B::LtU64, B::LtF32, B::LtF64), true, true),
        Ge => (all(B::LeI32, B::LeU32, B::LeI64, B::LeU64, B::LeF32, B::LeF64), true, true),
        _ => return None,
    };
    row[column].map(|op| (op, swapped, is_bool))
}

fn all(a: Bin, b: Bin, c: Bin, d: Bin, e: Bin, f: Bin) -> [Option<Bin>; 6] {
    [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)]
}

fn integers(a: Bin, b: Bin, c: Bin, d: Bin) -> [Option<Bin>; 6] {
    [Some(a), Some(b), Some(c), Some(d), None, None]
}

pub fn operator_text(operator: Binary) -> &'static str {
    use Binary::*;
    match operator {
        Add => "+",
        Sub => "-",
        Mul => "*",
        Div => "/",
        Rem => "%",
        And => "&",
        Or => "|",
        Xor => "^",
        Shl => "<<",
        Shr => ">>",
        Eq => "==",
        Ne => "!=",
        Lt => "<",
        Gt => ">",
        Le => "<=",
        Ge => ">=",
        LogicAnd => "&&",
        LogicOr => "||",
        Comma => ",",
    }
}
