//! Lambdas: the variables that they capture, and their calls.

use super::overloads::Given;
use super::{Binding, Frame, Lower, MOST_CALLS, Outcome, Place, Scope, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::Type;
use std::rc::Rc;

/// The names that a lambda sees: the scopes where it was made, with copies of what it captures by value.
#[derive(Debug)]
pub struct Closure {
    pub lambda: Rc<Lambda>,
    pub scopes: Vec<Scope>,
    pub frame: Frame,
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame")
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
            // Only what the body mentions is copied.
            let mut mentioned = Vec::new();
            if let Some(body) = &body.body {
                names_in_statement(body, &mut mentioned);
            }
            for name in mentioned {
                let found = scopes.iter().rev().find_map(|scope| scope.get(&name)).cloned();
                if let Some(binding) = found {
                    captured.insert(name, self.captured(binding)?);
                }
            }
        }
        for (name, kind, init) in &lambda.captures {
            let binding = match init {
                Some(init) => Binding::Value(self.expression(init)?),
                None => match scopes.iter().rev().find_map(|scope| scope.get(name)).cloned() {
                    Some(binding) => binding,
                    None => return self.unknown(name),
                },
            };
            let binding = if *kind == Capture::Value { self.captured(binding)? } else { binding };
            captured.insert(name.clone(), binding);
        }
        if lambda.default.is_none() {
            // Constants are seen without being captured.
            for scope in &mut scopes {
                scope.retain(|_, binding| match binding {
                    Binding::Value(value) => !value.is_lvalue || value.as_const().is_some() && value.is_const,
                    _ => true,
                });
            }
        }
        scopes.push(captured);
        frame.scopes = Vec::new();
        let closure = Closure { lambda: lambda.clone(), scopes, frame };
        Ok(Value::new(ty, Place::Closure(Rc::new(closure))))
    }

    /// A copy that later writes do not change.
    fn captured(&mut self, binding: Binding) -> Result<Binding> {
        let Binding::Value(value) = binding else { return Ok(binding) };
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

    /// Parameters of a kernel that are kept where the launch put them are never written.
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
            return Err(Error::new(span, "recursion is not part of the subset"));
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
            function: Some(function.clone()),
            call: span,
            ..closure.frame.clone()
        };
        let first_row = self.program.next_row;
        let is_tail = super::calls::is_tail(body);
        let result =
            self.with_body(frame, &function, given, super::calls::Body::Function, is_tail, first_row, body);
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
