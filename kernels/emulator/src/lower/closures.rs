//! Lambdas: their captures and their calls.

use super::overloads::Given;
use super::{Binding, Frame, Lower, MOST_CALLS, Outcome, Place, Scope, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, Type};
use std::rc::Rc;

/// The names visible to a lambda: the scopes where it was created, with copies of its captures by value.
#[derive(Debug)]
pub struct Closure {
    pub lambda: Rc<Lambda>,
    /// The last scope holds the captures.
    pub scopes: Vec<Scope>,
    pub frame: Frame,
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame")
    }
}

impl Closure {
    fn is_by_reference(&self, name: &Name) -> bool {
        self.lambda.captures.iter().any(|(known, kind, _)| known == name && *kind == Capture::Reference)
    }
}

impl Lower<'_> {
    pub fn lambda(&mut self, lambda: &Rc<Lambda>) -> Result<Value> {
        self.closures += 1;
        let ty = self.types.id(Type::Closure(self.closures));
        let Some(frame) = self.frames.last() else {
            return self.error("lambdas outside of functions are not part of the subset");
        };
        let mut frame = frame.clone();
        let mut scopes = frame.scopes.clone();
        let mut captured = Scope::new();
        let body = &lambda.function;
        if lambda.default == Some(Capture::Value) {
            // Only captures that the body mentions are copied.
            let mut mentioned = Vec::new();
            if let Some(body) = &body.body {
                names_in_statement(body, &mut mentioned);
            }
            for name in mentioned {
                let found = scopes.iter().rev().find_map(|scope| scope.get(&name)).cloned();
                if let Some(binding) = found {
                    captured.insert(name, self.captured(binding, lambda.is_mutable)?);
                }
            }
        }
        for (name, kind, init) in &lambda.captures {
            let binding = match init {
                Some(init) => {
                    let value = self.expression(init)?;
                    Binding::Value(if lambda.is_mutable { self.loaded(value)? } else { value })
                }
                None => match scopes.iter().rev().find_map(|scope| scope.get(name)).cloned() {
                    Some(binding) => binding,
                    None => return self.unknown(name),
                },
            };
            let binding = match kind {
                Capture::Value => self.captured(binding, lambda.is_mutable)?,
                Capture::Reference => binding,
            };
            captured.insert(name.clone(), binding);
        }
        if lambda.default.is_none() {
            // Constants are visible without being captured.
            for scope in &mut scopes {
                scope.retain(|_, binding| match binding {
                    Binding::Value(value) => !value.is_lvalue || value.as_const().is_some() && value.is_const,
                    _ => true,
                });
            }
        }
        scopes.push(captured);
        frame.scopes = Vec::new();
        let closure = Rc::new(Closure { lambda: lambda.clone(), scopes, frame });
        self.lambdas.insert(ty, closure.clone());
        Ok(Value::new(ty, Place::Closure(closure)))
    }

    /// A mutable lambda gets its own copies of its captures when it is passed by value.
    pub fn copied_closure(&mut self, value: Value) -> Result<Value> {
        let Place::Closure(closure) = &value.place else { return Ok(value) };
        if !closure.lambda.is_mutable {
            return Ok(value);
        }
        let mut scopes = closure.scopes.clone();
        if let Some(captured) = scopes.last_mut() {
            for (name, binding) in captured {
                if !closure.is_by_reference(name) {
                    *binding = self.captured(binding.clone(), true)?;
                }
            }
        }
        let copy = Closure { lambda: closure.lambda.clone(), scopes, frame: closure.frame.clone() };
        Ok(Value { place: Place::Closure(Rc::new(copy)), ..value })
    }

    /// The captures that a launch passes, in order.
    pub fn passed_captures(&mut self, closure: &Closure) -> Result<Vec<(Name, Value)>> {
        if !closure.lambda.function.qualifiers.device {
            return Err(Error::new(self.span, "this lambda is host code: a kernel cannot call it")
                .help("write `[=] __device__ (…)`"));
        }
        let mut all = Vec::new();
        for (name, binding) in closure.scopes.last().into_iter().flatten() {
            let Binding::Value(value) = binding else { continue };
            if closure.is_by_reference(name) {
                return self.error(format!(
                    "`{name}` is captured by reference: a kernel cannot reach variables of the host"
                ));
            }
            if self.is_compile_time(value.ty) {
                return self.error("a lambda that captures a lambda cannot be an argument of a kernel here");
            }
            if value.as_const().is_none() {
                all.push((name.clone(), value.clone()));
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    /// The same lambda inside a kernel, with its captures among the parameters.
    pub fn closure_in_parameters(
        &mut self,
        closure: &Closure,
        offset: &mut u64,
        parts: &mut Vec<u32>,
    ) -> Result<Value> {
        let mut scopes = closure.scopes.clone();
        for scope in &mut scopes {
            scope.retain(|_, binding| match binding {
                Binding::Value(value) => value.as_const().is_some(),
                _ => true,
            });
        }
        let last = scopes.len() - 1;
        for (name, value) in self.passed_captures(closure)? {
            let (size, align) = self.types.layout(value.ty);
            *offset = offset.next_multiple_of(align);
            let base = super::Base::Const(crate::ir::space::PARAMETERS + *offset);
            let place = Place::Memory(super::Memory { base, index: None, offset: 0 });
            parts.extend(self.types.leaves(value.ty).iter().map(|leaf| (*offset + leaf.offset) as u32));
            *offset += size;
            let value = Value { is_const: true, is_stable: true, ..Value::lvalue(value.ty, place) };
            scopes[last].insert(name, Binding::Value(value));
        }
        let frame = Frame { this: None, ..closure.frame.clone() };
        let closure = Closure { lambda: closure.lambda.clone(), scopes, frame };
        Ok(Value::new(types::VOID, Place::Closure(Rc::new(closure))))
    }

    /// A copy that later writes do not affect; for a `mutable` lambda, a writable one.
    fn captured(&mut self, binding: Binding, is_mutable: bool) -> Result<Binding> {
        let Binding::Value(value) = binding else { return Ok(binding) };
        self.check_is_not_destroyed(value.ty)?;
        if is_mutable && !self.is_compile_time(value.ty) {
            let slot = match self.types.rows(value.ty) {
                Some(_) => {
                    let row = self.new_rows(value.ty);
                    Value::lvalue(value.ty, Place::Row(row))
                }
                None => self.local_slot("a captured variable", value.ty),
            };
            self.assigned(&slot, value)?;
            return Ok(Binding::Value(slot));
        }
        if value.is_stable || self.is_compile_time(value.ty) {
            return Ok(Binding::Value(Value { is_const: true, ..value }));
        }
        let declaration = value.declaration;
        let copy = match self.types.rows(value.ty) {
            Some(_) => self.copied(value)?,
            None if matches!(value.place, Place::Memory(memory) if memory.index.is_none() && self.is_parameter(&memory)) => {
                value
            }
            None => {
                let slot = self.local_slot("a captured variable", value.ty);
                self.fill_slot(&slot, &value)?;
                slot
            }
        };
        Ok(Binding::Value(Value { is_lvalue: true, is_const: true, is_stable: true, declaration, ..copy }))
    }

    fn fill_slot(&mut self, slot: &Value, value: &Value) -> Result<()> {
        let Place::Memory(memory) = slot.place else { return Ok(()) };
        self.to_memory(slot.ty, &memory, value)
    }

    /// Whether memory holds kernel parameters that stay where the launch put them, and are never written.
    fn is_parameter(&self, memory: &super::Memory) -> bool {
        use crate::ir::space;
        matches!(memory.base, super::Base::Const(at) if (space::PARAMETERS..space::PARAMETERS + (1 << 20)).contains(&at))
    }

    pub fn call_closure(
        &mut self,
        closure: &Rc<Closure>,
        given: Vec<Given<'_>>,
        span: Span,
    ) -> Result<Value> {
        if self.frames.len() >= MOST_CALLS {
            return Err(Error::new(span, "recursion is not part of the subset").last());
        }
        let function = closure.lambda.function.clone();
        let Some(body) = &function.body else { return self.error("this lambda has no body") };
        if given.len() > function.parameters.len() && !function.parameters.last().is_some_and(|p| p.is_pack) {
            return self.error(format!("the lambda takes {} arguments", function.parameters.len()));
        }
        let end = self.program.label();
        let mut scopes = closure.scopes.clone();
        scopes.push(Scope::new());
        let frame = Frame {
            scopes,
            result: None,
            returns_reference: false,
            outcome: Outcome::Tail(None),
            end,
            loops: Vec::new(),
            alive: Vec::new(),
            function: Some(function.clone()),
            arguments: Vec::new(),
            call: span,
            labels: Vec::new(),
            ..closure.frame.clone()
        };
        let first_row = self.program.next_row;
        let is_tail = super::inlining::is_tail(body);
        let captures = closure.scopes.last().cloned().unwrap_or_default();
        let entered = self.enter(&function, &captures, Some(span));
        let result = self.with_body(
            frame,
            &function,
            given,
            super::inlining::Body::Function,
            is_tail,
            first_row,
            body,
        );
        self.leave(entered, result.as_ref().ok());
        if result.is_ok() {
            self.span = span;
        }
        result
    }
}

fn names_in_statement(statement: &Stmt, names: &mut Vec<Name>) {
    let mut all = |statements: &[Stmt]| statements.iter().for_each(|inner| names_in_statement(inner, names));
    match &statement.kind {
        StmtKind::Expr(value) | StmtKind::Return(Some(value)) | StmtKind::Case(value) => {
            names_in(value, names)
        }
        StmtKind::Variables(variables) => {
            for variable in variables {
                match &variable.init {
                    Init::Value(value) => names_in(value, names),
                    Init::Parentheses(items) | Init::Braces(items) => {
                        items.iter().for_each(|item| names_in(item, names))
                    }
                    Init::None => {}
                }
            }
        }
        StmtKind::Bindings { value, .. } => names_in(value, names),
        StmtKind::Block(statements) => all(statements),
        StmtKind::If { first, condition, yes, no, .. } => {
            first.iter().for_each(|first| names_in_statement(first, names));
            names_in(condition, names);
            names_in_statement(yes, names);
            no.iter().for_each(|no| names_in_statement(no, names));
        }
        StmtKind::For { first, condition, step, body } => {
            first.iter().for_each(|first| names_in_statement(first, names));
            condition.iter().chain(step).for_each(|value| names_in(value, names));
            names_in_statement(body, names);
        }
        StmtKind::Range { range, body, .. } => {
            names_in(range, names);
            names_in_statement(body, names);
        }
        StmtKind::While(condition, body)
        | StmtKind::DoWhile(body, condition)
        | StmtKind::Switch(condition, body) => {
            names_in(condition, names);
            names_in_statement(body, names);
        }
        StmtKind::Asm { output, inputs, .. } => {
            output.iter().chain(inputs).for_each(|value| names_in(value, names));
        }
        _ => {}
    }
}

fn names_in(value: &Expr, names: &mut Vec<Name>) {
    match &value.kind {
        ExprKind::Path(path) => {
            let name = &path.segments[0].name;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, _, a) | ExprKind::SizeofExpr(a) | ExprKind::Expand(a) => {
            names_in(a, names);
        }
        ExprKind::Member(a, ..) => names_in(a, names),
        ExprKind::Binary(_, a, b) | ExprKind::Assign(_, a, b) | ExprKind::Index(a, b) => {
            names_in(a, names);
            names_in(b, names);
        }
        ExprKind::Condition(a, b, c) => {
            names_in(a, names);
            names_in(b, names);
            names_in(c, names);
        }
        ExprKind::Call(a, all) => {
            names_in(a, names);
            all.iter().for_each(|item| names_in(item, names));
        }
        ExprKind::Construct(_, all, _) | ExprKind::Braces(all) => {
            all.iter().for_each(|item| names_in(item, names))
        }
        ExprKind::Launch(a, config, all) => {
            names_in(a, names);
            config.iter().chain(all).for_each(|item| names_in(item, names));
        }
        ExprKind::Fold { pack, first, .. } => {
            names_in(pack, names);
            first.iter().for_each(|first| names_in(first, names));
        }
        ExprKind::Lambda(lambda) => {
            if let Some(body) = &lambda.function.body {
                names_in_statement(body, names);
            }
            for (name, ..) in &lambda.captures {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        _ => {}
    }
}
