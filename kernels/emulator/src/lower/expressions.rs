//! Lowers expressions to values.

use super::closures::Closure;
use super::lookup::{Found, Qualifier};
use super::{Base, Binding, Lower, Memory, Outcome, Place, Value};
use crate::ir::{Op, Prim, rows_of};
use crate::source::{Error, Result};
use crate::syntax::ast::*;
use crate::types::{self, BOOL, Type, TypeId, U64};

impl Lower<'_> {
    pub fn expression(&mut self, value: &Expr) -> Result<Value> {
        self.worked()?;
        let outer = std::mem::replace(&mut self.span, value.span);
        let result = self.deeper(|lower| lower.expression_inner(value));
        if result.is_ok() {
            self.span = outer;
        }
        result
    }

    /// Lowers an expression and reads its value.
    pub fn read(&mut self, value: &Expr) -> Result<Value> {
        let found = self.expression(value)?;
        let outer = std::mem::replace(&mut self.span, value.span);
        let result = self.loaded(found)?;
        self.span = outer;
        Ok(result)
    }

    fn expression_inner(&mut self, value: &Expr) -> Result<Value> {
        match &value.kind {
            ExprKind::Int(bits, prim) => Ok(Value::constant(types::of_prim(*prim), *bits)),
            ExprKind::Float(number, Prim::F32) => {
                Ok(Value::constant(types::F32, u64::from((*number as f32).to_bits())))
            }
            ExprKind::Float(number, _) => Ok(Value::constant(types::F64, number.to_bits())),
            ExprKind::Bool(value) => Ok(Value::constant(BOOL, u64::from(*value))),
            ExprKind::Char(code) => Ok(Value::constant(types::I8, u64::from(*code as i32 as u32))),
            ExprKind::Str(text) => self.string(text),
            ExprKind::Null => Ok(Value::constant(types::NULL, 0)),
            ExprKind::This => self.this_pointer(),
            ExprKind::Path(path) => self.path_value(path),
            ExprKind::Unary(operator, operand) => self.unary_operator(*operator, operand),
            ExprKind::Binary(operator, a, b) => self.binary_expression(*operator, a, b, value.span),
            ExprKind::Assign(operator, target, source) => self.assign_expression(*operator, target, source),
            ExprKind::Condition(condition, yes, no) => self.condition(condition, yes, no),
            ExprKind::Call(function, arguments) => self.call_expression(function, arguments, value.span),
            ExprKind::Launch(function, config, arguments) => {
                self.launch(function, config, arguments, value.span)
            }
            ExprKind::Index(array, index) => self.index_expression(array, index),
            ExprKind::Member(object, arrow, segment) => self.member_expression(object, *arrow, segment),
            ExprKind::Cast(kind, ty, operand) => self.cast_expression(*kind, ty, operand),
            ExprKind::Construct(ty, items, is_braces) => self.construct_expression(ty, items, *is_braces),
            ExprKind::Braces(_) => self.error("the type of this list is not known here"),
            ExprKind::SizeofType(ty) => {
                let ty = self.type_of_name(ty)?;
                Ok(self.sizeof(ty))
            }
            ExprKind::SizeofExpr(operand) => {
                let found = self.dry(|lower| lower.expression(operand))?;
                Ok(self.sizeof(found.ty))
            }
            ExprKind::SizeofPack(name) => match self.find(name) {
                Some(Found::Binding(Binding::Pack(all))) => Ok(Value::constant(U64, all.len() as u64)),
                _ => self.error(format!("`{name}` is not a pack")),
            },
            ExprKind::Lambda(lambda) => self.lambda(lambda),
            ExprKind::Expand(_) => self.error("a pack can be expanded only in arguments"),
            ExprKind::Fold { operator, pack, first, left } => {
                self.fold(*operator, pack, first.as_deref(), *left, value.span)
            }
        }
    }

    pub fn string(&mut self, text: &Name) -> Result<Value> {
        let count = text.len() as u64 + 1;
        let at = match self.strings.get(text) {
            Some(at) => *at,
            None => {
                let mut bytes = text.as_bytes().to_vec();
                bytes.push(0);
                let at = self.add_global("a string", count, 1, false, true, Some(bytes));
                self.strings.insert(text.clone(), at);
                at
            }
        };
        let ty = self.types.id(Type::Array { of: types::I8, count });
        let memory = Memory { base: Base::Const(at), index: None, offset: 0 };
        Ok(Value { is_const: true, ..Value::lvalue(ty, Place::Memory(memory)) })
    }

    fn this_pointer(&mut self) -> Result<Value> {
        let Some(this) = self.frames.last().and_then(|frame| frame.this.clone()) else {
            return self.error("there is no `this` outside of a struct's functions");
        };
        self.address_of(this)
    }

    /// The value that a name refers to.
    pub fn path_value(&mut self, path: &Path) -> Result<Value> {
        let last = &path.segments[path.segments.len() - 1];
        let found = match self.qualifier(path)? {
            None => self.find(&last.name),
            Some(Qualifier::Namespace(namespace)) => self.find_in(namespace, &last.name, 0),
            Some(Qualifier::Type(ty)) => return self.static_member(ty, last),
        };
        match found {
            Some(Found::Binding(Binding::Value(value))) => Ok(value),
            Some(Found::Binding(Binding::Pack(_))) => {
                self.error(format!("`{}` is a pack: it needs `...`", last.name))
            }
            Some(Found::Member(name)) => self.own_member(&name, last),
            Some(Found::Variables(variables)) => self.variable_value(&variables, last, path.span),
            Some(Found::Functions(mut functions)) => {
                functions.arguments = last.arguments.clone();
                Ok(self.functions_value(functions))
            }
            Some(Found::Binding(Binding::Failed)) => Err(Error::known(path.span)),
            Some(_) => self.error(format!("`{}` is not a value", last.name)),
            None if ["__func__", "__FUNCTION__", "__PRETTY_FUNCTION__"].contains(&&*last.name) => {
                let function = self.frames.iter().rev().find_map(|frame| frame.function.clone());
                self.string(&function.map_or("".into(), |function| function.name.clone()))
            }
            None => match self.built_in_value(&last.name)? {
                Some(value) => Ok(value),
                None => self.unknown(&last.name),
            },
        }
    }

    /// `c ? a : b`
    fn condition(&mut self, condition: &Expr, yes: &Expr, no: &Expr) -> Result<Value> {
        let is_true = self.expression(condition)?;
        let is_true = self.to_bool(is_true)?;
        if let Some(bits) = is_true.as_const() {
            // The other side still takes part in the result's type.
            let (chosen, other) = if bits != 0 { (yes, no) } else { (no, yes) };
            let value = self.expression(chosen)?;
            let other = self.dry(|lower| lower.expression(other))?;
            if value.ty == other.ty {
                return Ok(value);
            }
            let ty = self.common_type(&value, &other)?;
            return self.coerced(value, ty);
        }
        let c = self.row(&is_true)?;
        let (a, b) = (self.dry(|lower| lower.expression(yes))?, self.dry(|lower| lower.expression(no))?);
        // Two variables remain an lvalue: `(c ? a : b) = 1`. That is possible only in memory.
        let ty = if a.ty == b.ty { a.ty } else { self.common_type(&a, &b)? };
        if self.types.rows(ty).is_none() || matches!(self.types.get(ty), Type::Closure(_)) {
            return self.condition_in_memory(c, yes, no, ty);
        }
        if self.is_cheap(yes)
            && self.is_cheap(no)
            && let Some(prim) = self.prim(ty)
        {
            let a = self.expression(yes)?;
            let a = self.coerced(a, ty)?;
            let b = self.expression(no)?;
            let b = self.coerced(b, ty)?;
            let (a, b) = (self.row(&a)?, self.row(&b)?);
            let wide = rows_of(prim) == 2;
            let d = self.program.rows(rows_of(prim));
            self.emit(if wide { Op::Select64 { d, c, a, b } } else { Op::Select32 { d, c, a, b } });
            return Ok(Value::new(ty, Place::Row(d)));
        }
        let result = Value::new(ty, Place::Row(self.new_rows(ty)));
        let target = Value { is_lvalue: true, ..result.clone() };
        let (other, end) = (self.program.label(), self.program.label());
        self.emit(Op::Branch { c, to: other, when: false });
        let rows = self.program.next_row;
        let a = self.expression(yes)?;
        self.assigned(&target, a)?;
        self.program.next_row = rows;
        self.emit(Op::Jump { to: end });
        self.program.place(other);
        let b = self.expression(no)?;
        self.assigned(&target, b)?;
        self.program.next_row = rows;
        self.program.place(end);
        Ok(result)
    }

    fn condition_in_memory(&mut self, c: u32, yes: &Expr, no: &Expr, ty: TypeId) -> Result<Value> {
        let address = Value::new(self.types.pointer(ty, false), Place::Row(self.program.rows(2)));
        let (other, end) = (self.program.label(), self.program.label());
        let target = Value { is_lvalue: true, ..address.clone() };
        self.emit(Op::Branch { c, to: other, when: false });
        for (side, label) in [(yes, None), (no, Some(other))] {
            if let Some(label) = label {
                self.emit(Op::Jump { to: end });
                self.program.place(label);
            }
            let value = self.expression(side)?;
            let Place::Memory(memory) = value.place else {
                return self.error("`?:` of such values is not part of the subset");
            };
            let at = self.lea(address.ty, &memory)?;
            self.assigned(&target, at)?;
        }
        self.program.place(end);
        let Place::Row(row) = address.place else { return self.error("this value has no place") };
        Ok(Value::lvalue(ty, Place::Memory(Memory { base: Base::Row(row), index: None, offset: 0 })))
    }

    pub fn common_type(&mut self, a: &Value, b: &Value) -> Result<TypeId> {
        if let (Some(x), Some(y)) = (self.types.arithmetic(a.ty), self.types.arithmetic(b.ty)) {
            return Ok(if a.ty == b.ty { a.ty } else { types::of_prim(types::common(x, y)) });
        }
        match (self.types.get(a.ty).clone(), self.types.get(b.ty).clone()) {
            (Type::Array { of, .. }, Type::Array { .. }) => {
                Ok(self.types.pointer(of, a.is_const || b.is_const))
            }
            (Type::Array { of, .. }, _) => Ok(self.types.pointer(of, a.is_const)),
            (_, Type::Array { of, .. }) => Ok(self.types.pointer(of, b.is_const)),
            (Type::Null, Type::Pointer { .. }) => Ok(b.ty),
            (Type::Pointer { .. }, Type::Null) => Ok(a.ty),
            (Type::Pointer { .. }, Type::Prim(_)) if b.as_const() == Some(0) => Ok(a.ty),
            (Type::Prim(_), Type::Pointer { .. }) if a.as_const() == Some(0) => Ok(b.ty),
            (Type::Pointer { to: x, .. }, Type::Pointer { to: y, .. }) if x == y => {
                Ok(self.types.pointer(x, true))
            }
            (Type::Struct(_), Type::Prim(_)) if self.rank(a, b.ty)?.is_some() => Ok(b.ty),
            (Type::Prim(_), Type::Struct(_)) if self.rank(b, a.ty)?.is_some() => Ok(a.ty),
            (Type::Struct(_), _) if self.rank(b, a.ty)?.is_some() => Ok(a.ty),
            (_, Type::Struct(_)) if self.rank(a, b.ty)?.is_some() => Ok(b.ty),
            _ => self.error(format!(
                "the two sides have the incompatible types `{}` and `{}`",
                self.types.name(a.ty),
                self.types.name(b.ty)
            )),
        }
    }

    /// Whether an expression neither reads memory nor has side effects, so that both sides of a conditional can be
    /// computed.
    pub fn is_cheap(&self, value: &Expr) -> bool {
        match &value.kind {
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Bool(_)
            | ExprKind::Char(_)
            | ExprKind::Null => true,
            ExprKind::Path(path) => {
                if path.segments.len() > 1 {
                    return false;
                }
                match self.find(&path.segments[0].name) {
                    Some(Found::Binding(Binding::Value(value))) => {
                        matches!(value.place, Place::Row(_) | Place::Const(_))
                    }
                    _ => false,
                }
            }
            ExprKind::Unary(operator, operand) => {
                matches!(operator, Unary::Plus | Unary::Neg | Unary::Not | Unary::BitNot)
                    && self.is_cheap(operand)
            }
            ExprKind::Binary(operator, a, b) => {
                !matches!(operator, Binary::Div | Binary::Rem | Binary::Comma)
                    && self.is_cheap(a)
                    && self.is_cheap(b)
            }
            ExprKind::Cast(_, ty, operand) => {
                !matches!(ty.kind, TypeKind::Pointer(_) | TypeKind::Reference(_)) && self.is_cheap(operand)
            }
            ExprKind::Member(object, false, _) => match &object.kind {
                ExprKind::Path(path) if self.find(&path.segments[0].name).is_none() => {
                    super::builtins::is_dimension(&path.segments[0].name)
                }
                ExprKind::Path(_) => self.is_cheap(object),
                _ => false,
            },
            _ => false,
        }
    }

    fn cast_expression(&mut self, kind: CastKind, ty: &TypeName, operand: &Expr) -> Result<Value> {
        let span = self.span;
        let to = self.written(ty)?;
        if let ExprKind::Braces(items) = &operand.kind {
            return self.made_from_list(to.ty, items, true);
        }
        if to.is_reference {
            // `(float4 &)x` and `static_cast<T &&>(x)`: the same place as another type.
            let value = self.expression(operand)?;
            if value.ty == to.ty {
                return Ok(value);
            }
            let value = match value.place {
                Place::Memory(_) => value,
                _ => self.needs_memory(value)?,
            };
            return Ok(Value { ty: to.ty, ..value });
        }
        let value = self.expression(operand)?;
        self.span = span;
        if let Type::Prim(Prim::Void) = self.types.get(to.ty) {
            return Ok(Value::new(to.ty, Place::Nothing));
        }
        if self.types.of_struct(to.ty).is_some() || self.types.of_struct(value.ty).is_some() {
            return self.coerced(value, to.ty);
        }
        let value = self.loaded(value)?;
        let explicit = kind != CastKind::Static
            || matches!(self.types.get(value.ty), Type::Pointer { to, .. } if *self.types.get(*to) == Type::Prim(Prim::Void));
        self.converted_scalar(value, to.ty, explicit)
    }

    fn construct_expression(&mut self, ty: &TypeName, items: &[Expr], is_braces: bool) -> Result<Value> {
        let span = self.span;
        // `Input{x, value}`: the template arguments are deduced.
        if let TypeKind::Path(path) = &ty.kind
            && let Some(to) = self.deduced_struct(path, items, span)?
        {
            self.span = span;
            return self.made_from_list(to, items, is_braces);
        }
        let to = self.type_of_name(ty)?;
        self.span = span;
        self.made_from_list(to, items, is_braces)
    }

    /// The side that the code is on, for messages.
    pub fn side(&self) -> &'static str {
        if self.on_device { "device" } else { "host" }
    }

    pub fn closure_of(&self, value: &Value) -> Option<std::rc::Rc<Closure>> {
        match &value.place {
            Place::Closure(closure) => Some(closure.clone()),
            _ => None,
        }
    }

    pub fn is_program(&self) -> bool {
        matches!(self.frames.last().map(|frame| &frame.outcome), Some(Outcome::Program))
    }
}
