//! Inlining: the body of a function is lowered where it is called.

use super::overloads::{Chosen, Given};
use super::parameters::has_auto;
use super::recursion::key;
use super::{Frame, Lower, MOST_CALLS, Outcome, Place, Scope, Value};
use crate::ir::Op;
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::VOID;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    Function,
    Constructor,
}

impl Lower<'_> {
    /// Calls a function: inlines its body, or jumps to it if it is recursive.
    pub fn call_body(
        &mut self,
        chosen: Chosen,
        this: Option<Value>,
        given: Vec<Given<'_>>,
        span: Span,
        kind: Body,
    ) -> Result<Value> {
        let is_known = |given: &Given<'_>| matches!(given, Given::Value(value) if value.as_const().is_some());
        // A `constexpr` call with known arguments terminates.
        let ends = chosen.function.qualifiers.is_constexpr
            && given.iter().all(is_known)
            && self.frames.len() < MOST_CALLS;
        if kind == Body::Function && !ends && chosen.function.body.is_some() {
            let key = key(&chosen);
            if self.recursive.contains(&key) {
                return self.recursive_call(&chosen, this, given, span);
            }
            if self.is_in_progress(&key) {
                self.recursive.insert(key);
                return self.retry();
            }
        }
        self.inlined(chosen, this, given, span, kind)
    }

    /// Lowers the body of a function at its call.
    pub fn inlined(
        &mut self,
        chosen: Chosen,
        this: Option<Value>,
        given: Vec<Given<'_>>,
        span: Span,
        kind: Body,
    ) -> Result<Value> {
        self.lowered.insert(chosen.function.id);
        let function = self.on_this_side(&chosen.function);
        let Some(body) = &function.body else {
            return Err(Error::new(span, format!("`{}` is declared, but it has no body", function.name))
                .note("it is declared here", function.span));
        };
        if self.frames.len() >= MOST_CALLS && !function.template.is_empty() {
            let name = &function.name;
            return Err(Error::new(span, format!("the template `{name}` is instantiated without end"))
                .label("it needs a specialisation, or an `if constexpr`, that ends it")
                .last());
        }
        if self.frames.len() >= MOST_CALLS {
            let message = format!("the calls are nested too deeply: the maximum is {MOST_CALLS}");
            return Err(Error::new(span, message).last());
        }
        let first_row = self.program.next_row;
        let mut scope = chosen.scope;
        if let Some(of) = chosen.of_struct {
            scope.extend(
                self.struct_scope(of)
                    .into_iter()
                    .filter(|(name, _)| !function.template.iter().any(|p| p.name == *name)),
            );
        }
        // The result's rows come first, so that they outlive those of the body.
        let is_tail = kind == Body::Constructor || is_tail(body);
        let end = self.program.label();
        let frame = Frame {
            scopes: vec![scope.clone(), Scope::new()],
            namespace: function.namespace,
            this: this.clone(),
            of_struct: chosen.of_struct,
            result: None,
            returns_reference: false,
            outcome: Outcome::Tail(None),
            end,
            loops: Vec::new(),
            alive: Vec::new(),
            function: Some(function.clone()),
            arguments: chosen.arguments.clone(),
            call: span,
            labels: Vec::new(),
        };
        let entered = self.enter(&function, &scope, Some(span));
        let result = self.with_body(frame, &function, given, kind, is_tail, first_row, body);
        self.leave(entered, result.as_ref().ok());
        let value = match result {
            Ok(value) => value,
            Err(error) if self.again => return Err(error),
            Err(error) => {
                let name = &function.name;
                return Err(match super::recovery::is_elsewhere(&function, span) {
                    true => error.note(format!("`{name}` is instantiated here"), span),
                    false => error,
                });
            }
        };
        self.span = span;
        Ok(value)
    }

    #[allow(clippy::too_many_arguments)]
    pub fn with_body(
        &mut self,
        mut frame: Frame,
        function: &Function,
        given: Vec<Given<'_>>,
        kind: Body,
        is_tail: bool,
        first_row: u32,
        body: &Stmt,
    ) -> Result<Value> {
        let span = self.span;
        let caller = self.frames.len();
        self.frames.push(Frame { scopes: frame.scopes.clone(), ..frame.clone() });
        // The result type is written in terms of the template parameters.
        if !matches!(function.result.kind, TypeKind::Auto)
            && !has_auto(&function.result)
            && kind == Body::Function
        {
            let written = self.written(&function.result)?;
            frame.result = Some(written.ty);
            frame.returns_reference = written.is_reference;
        } else if kind == Body::Constructor {
            frame.result = Some(VOID);
        }
        frame.returns_reference |= matches!(function.result.kind, TypeKind::Reference(_));
        let slot_row = self.program.next_row;
        if !is_tail {
            let slot = match frame.result {
                Some(ty) if frame.returns_reference => {
                    let ty = self.types.pointer(ty, false);
                    Some(self.temporary(ty))
                }
                Some(ty) if ty == VOID => None,
                Some(ty) => Some(self.temporary(ty)),
                None => {
                    self.program.rows(4);
                    None
                }
            };
            frame.outcome = Outcome::Slot(slot, slot_row);
        }
        let last = self.frames.len() - 1;
        self.frames[last] = frame;
        self.bind_parameters(function, given, span)?;
        if kind == Body::Constructor {
            self.initialise_members(function)?;
        }
        let before = self.recovered;
        self.statement(body)?;
        self.unless_failed(before)?;
        self.check_labels()?;
        let frame = self.frame().clone();
        self.program.place(frame.end);
        let value = match frame.outcome {
            Outcome::Tail(value) => value.unwrap_or(Value::new(VOID, Place::Nothing)),
            Outcome::Slot(Some(value), _) if frame.returns_reference => {
                let ty = frame.result.unwrap_or(VOID);
                let place = self.behind(Value { is_lvalue: false, ..value }, ty, function.result.is_const)?;
                self.frames.truncate(caller);
                return Ok(place);
            }
            Outcome::Slot(Some(value), _) => Value { is_lvalue: false, is_stable: true, ..value },
            _ => Value::new(VOID, Place::Nothing),
        };
        if frame.result.is_some_and(|ty| ty != VOID)
            && value.ty == VOID
            && returns_in(body) == 0
            && !self.is_dead_end()
        {
            let name = &function.name;
            return Err(Error::new(function.span, format!("`{name}` has a result, but no `return`")));
        }
        self.frames.truncate(caller);
        // The body's rows are free from here on; an address in them moves to the first.
        if let Place::Memory(memory) = value.place {
            let is_free = |row: u32| row >= first_row && row < super::emit::FIXED;
            let base_is_free = matches!(memory.base, super::Base::Row(row) if is_free(row));
            if base_is_free
                || memory.index.is_some_and(|index| {
                    is_free(index.first.row) || index.second.is_some_and(|second| is_free(second.row))
                })
            {
                let at = self.address(&super::Memory { offset: 0, ..memory }, 1)?;
                self.program.next_row = first_row;
                let d = self.program.rows(2);
                self.emit(Op::Lea { d, at });
                let memory = super::Memory { base: super::Base::Row(d), index: None, offset: memory.offset };
                return Ok(Value { place: Place::Memory(memory), ..value });
            }
            return Ok(value);
        }
        if frame.returns_reference {
            return Ok(value);
        }
        // Keeps the result and frees the rest.
        Ok(match (&value.place, is_tail) {
            (Place::Row(row), true) if *row >= first_row && *row < super::emit::FIXED => {
                let (row, rows) = (*row, self.types.rows(value.ty).unwrap_or(0));
                self.program.next_row = first_row;
                let to = self.program.rows(rows);
                if row != to {
                    let fresh =
                        Value { is_lvalue: false, declaration: None, is_stable: true, ..value.clone() };
                    self.to_rows(value.ty, to, &fresh)?;
                }
                Value {
                    is_lvalue: false,
                    is_const: false,
                    is_stable: true,
                    declaration: None,
                    ..Value::new(value.ty, Place::Row(to))
                }
            }
            (Place::Closure(_) | Place::Memory(_), _) => value,
            (Place::Row(_), false) => {
                self.program.next_row = slot_row
                    + self.types.rows(value.ty).unwrap_or(0).max(if frame.result.is_none() { 4 } else { 0 });
                value
            }
            (Place::Row(_), true) => Value { is_lvalue: false, is_const: false, ..value },
            _ => {
                self.program.next_row = first_row;
                value
            }
        })
    }

    /// A body that ends in a trap needs no `return`.
    fn is_dead_end(&self) -> bool {
        matches!(self.program.ops.last(), Some(Op::Trap { .. }))
    }
}

/// The number of `return` statements in a body, except those in lambdas.
fn returns_in(statement: &Stmt) -> usize {
    match &statement.kind {
        StmtKind::Return(_) => 1,
        StmtKind::Block(all) => all.iter().map(returns_in).sum(),
        StmtKind::If { yes, no, .. } => returns_in(yes) + no.as_ref().map_or(0, |no| returns_in(no)),
        StmtKind::For { body, .. } | StmtKind::Range { body, .. } => returns_in(body),
        StmtKind::While(_, body) | StmtKind::DoWhile(body, _) | StmtKind::Switch(_, body) => returns_in(body),
        _ => 0,
    }
}

/// Whether the body has no `return`, or only one, at its end.
pub fn is_tail(body: &Stmt) -> bool {
    let returns = returns_in(body);
    returns == 0 || returns == 1 && ends_with_return(body)
}

fn ends_with_return(statement: &Stmt) -> bool {
    match &statement.kind {
        StmtKind::Return(_) => true,
        StmtKind::Block(all) => all.last().is_some_and(ends_with_return),
        _ => false,
    }
}
