//! Loops and `switch`.

use super::{Loop, Lower, Memory, Place, Value};
use crate::ir::{Bin, Op};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, Type};
use std::collections::HashMap;

impl Lower<'_> {
    pub(super) fn loop_statement(
        &mut self,
        condition: Option<&Expr>,
        step: Option<&Expr>,
        body: &Stmt,
        header: Option<u32>,
        checks_first: bool,
    ) -> Result<()> {
        let (top, next, end) = (self.program.label(), self.program.label(), self.program.label());
        if checks_first && !self.jump_unless(condition, end)? {
            self.program.place(end);
            return Ok(());
        }
        self.program.place(top);
        self.enter_loop(end, Some(next));
        self.body(body)?;
        self.frame().loops.pop();
        self.program.place(next);
        self.mark_statement(header, false);
        if let Some(step) = step {
            let rows = self.program.next_row;
            self.without_result(step)?;
            self.program.next_row = rows;
        }
        self.jump_if(condition, top)?;
        self.program.place(end);
        Ok(())
    }

    fn enter_loop(&mut self, end: u32, step: Option<u32>) {
        let alive = self.frame().alive.len();
        self.frame().loops.push(Loop { end, step, alive });
    }

    /// Returns false if the loop is never entered.
    fn jump_unless(&mut self, condition: Option<&Expr>, end: u32) -> Result<bool> {
        let Some(condition) = condition else { return Ok(true) };
        let rows = self.program.next_row;
        let is_true = self.expression(condition)?;
        self.span = condition.span;
        let is_true = self.to_bool(is_true)?;
        match is_true.as_const() {
            Some(0) => return Ok(false),
            Some(_) => {}
            None => {
                let c = self.row(&is_true)?;
                self.emit(Op::Branch { c, to: end, when: false });
            }
        }
        self.program.next_row = rows;
        Ok(true)
    }

    fn jump_if(&mut self, condition: Option<&Expr>, top: u32) -> Result<()> {
        let rows = self.program.next_row;
        let is_true = match condition {
            Some(condition) => {
                let is_true = self.expression(condition)?;
                self.span = condition.span;
                self.to_bool(is_true)?
            }
            None => Value::constant(types::BOOL, 1),
        };
        match is_true.as_const() {
            Some(0) => {}
            Some(_) => self.emit(Op::Jump { to: top }),
            None => {
                let c = self.row(&is_true)?;
                self.emit(Op::Branch { c, to: top, when: true });
            }
        }
        self.program.next_row = rows;
        Ok(())
    }

    /// `for (int n : {1, 2, 3})`: an array of the type that all items have.
    fn list_to_go_through(&mut self, items: &[Expr]) -> Result<Value> {
        let mut types = Vec::new();
        for item in items {
            self.span = item.span;
            types.push(self.dry(|lower| lower.expression(item).and_then(|value| lower.loaded(value)))?.ty);
        }
        let Some(first) = types.first() else { return self.error("this list has no elements") };
        if types.iter().any(|ty| ty != first) {
            return self.error("the elements of this list have different types");
        }
        let ty = self.array_type(*first, items.len() as u64)?;
        let list = self.local_slot("a list", ty);
        self.initialise(&list, items, true)?;
        Ok(list)
    }

    pub(super) fn range_statement(&mut self, variable: &Variable, range: &Expr, body: &Stmt) -> Result<()> {
        let (span, header) = (self.span, self.program.notes.statement());
        let range = match &range.kind {
            ExprKind::Braces(items) => self.list_to_go_through(items)?,
            _ => self.expression(range)?,
        };
        self.span = span;
        // A loop over two pointers, from `begin` to `end`.
        let (first, last) = match *self.types.get(range.ty) {
            Type::Array { of, count } => {
                let first = self.loaded(range)?;
                let size = self.types.layout(of).0;
                let memory = self.memory_at(first.clone())?;
                let ty = first.ty;
                let memory = Memory { offset: memory.offset + (count * size) as i64, ..memory };
                (first, self.lea(ty, &memory)?)
            }
            Type::Struct(number) => {
                let mut call = |name: &str| {
                    let candidates = self.methods(number, name);
                    let functions =
                        super::lookup::Functions { name: name.into(), candidates, arguments: None };
                    self.method_call(range.clone(), functions, Vec::new(), span)
                };
                (call("begin")?, call("end")?)
            }
            _ => return self.error("this cannot be iterated over"),
        };
        let ty = first.ty;
        let at = Value { is_stable: false, is_lvalue: true, ..self.temporary(ty) };
        self.assigned(&at, first)?;
        let last = self.copied(last)?;
        let (top, next, end) = (self.program.label(), self.program.label(), self.program.label());
        let is_at_end = self.binary_values(Binary::Eq, at.clone(), last.clone(), span)?;
        let c = self.row(&is_at_end)?;
        self.emit(Op::Branch { c, to: end, when: true });
        self.program.place(top);
        self.scoped(|lower| {
            let Some((to, is_const)) = lower.types.pointee(ty) else {
                return lower.error("this has no elements");
            };
            let memory = lower.memory_at(at.clone())?;
            let element = Value { is_const, ..Value::lvalue(to, Place::Memory(memory)) };
            lower.declare(variable, element)?;
            lower.enter_loop(end, Some(next));
            lower.body(body)?;
            lower.frame().loops.pop();
            Ok(())
        })?;
        self.program.place(next);
        self.mark_statement(header, false);
        let size = self.types.pointee(ty).map_or(1, |(to, _)| self.types.layout(to).0);
        let step = self.program.constant(size, true);
        let Place::Row(row) = at.place else { return self.error("this value has no place") };
        self.emit(Op::Binary { op: Bin::Add64, d: row, a: row, b: step });
        let more = self.binary_values(Binary::Ne, at, last, span)?;
        let c = self.row(&more)?;
        self.emit(Op::Branch { c, to: top, when: true });
        self.program.place(end);
        Ok(())
    }

    pub(super) fn switch(&mut self, value: &Expr, body: &Stmt) -> Result<()> {
        let span = self.span;
        let value = self.expression(value)?;
        self.span = span;
        let (value, prim) = self.promoted(value)?;
        if !types::is_integer(prim) {
            return self.error("`switch` takes a whole number");
        }
        let value = self.copied(value)?;
        let StmtKind::Block(statements) = &body.kind else { return self.error("`switch` takes a block") };
        let end = self.program.label();
        let mut labels = Vec::new();
        let mut default: Option<(u32, Span)> = None;
        let mut cases: HashMap<u64, Span> = HashMap::new();
        for statement in statements {
            match &statement.kind {
                StmtKind::Case(case) => {
                    let label = self.program.label();
                    labels.push(label);
                    let case = self.constant_expression(case, "a `case`")?;
                    let same = self.converted_scalar(case.clone(), value.ty, false)?;
                    if let Some(first) = cases.insert(same.as_const().unwrap_or(0), statement.span) {
                        return Err(Error::new(
                            statement.span,
                            "this `switch` has a `case` of this value already",
                        )
                        .note("it is here", first));
                    }
                    let equal = self.binary_values(Binary::Eq, value.clone(), case, statement.span)?;
                    match equal.as_const() {
                        Some(0) => {}
                        Some(_) => self.emit(Op::Jump { to: label }),
                        None => {
                            let c = self.row(&equal)?;
                            self.emit(Op::Branch { c, to: label, when: true });
                        }
                    }
                }
                StmtKind::Default => {
                    let label = self.program.label();
                    labels.push(label);
                    if let Some((_, first)) = default {
                        return Err(Error::new(statement.span, "this `switch` has a second `default`")
                            .note("the first is here", first));
                    }
                    default = Some((label, statement.span));
                }
                _ => {}
            }
        }
        self.emit(Op::Jump { to: default.map_or(end, |(label, _)| label) });
        self.enter_loop(end, None);
        let mut next = labels.into_iter();
        self.scoped(|lower| {
            for statement in statements {
                match &statement.kind {
                    StmtKind::Case(_) | StmtKind::Default => {
                        if let Some(label) = next.next() {
                            lower.program.place(label);
                        }
                    }
                    _ => lower.statement(statement)?,
                }
            }
            Ok(())
        })?;
        self.frame().loops.pop();
        self.program.place(end);
        Ok(())
    }
}
