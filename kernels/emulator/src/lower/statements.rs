//! Lowers statements to instructions.

use super::{Binding, Loop, Lower, Value};
use crate::ir::Op;
use crate::source::{Error, Result};
use crate::syntax::ast::*;

impl Lower<'_> {
    pub fn statement(&mut self, statement: &Stmt) -> Result<()> {
        self.worked()?;
        self.span = statement.span;
        self.note_statement(statement);
        self.deeper(|lower| lower.statement_inner(statement))
    }

    /// Lowers a part of a statement's header.
    fn header(&mut self, first: &Stmt) -> Result<()> {
        self.span = first.span;
        self.deeper(|lower| lower.statement_inner(first))
    }

    /// Lowers a statement in its own scope.
    pub(super) fn body(&mut self, statement: &Stmt) -> Result<()> {
        self.scoped(|lower| lower.statement(statement))
    }

    fn statement_inner(&mut self, statement: &Stmt) -> Result<()> {
        match &statement.kind {
            StmtKind::Empty => Ok(()),
            StmtKind::Expr(value) => {
                let rows = self.program.next_row;
                self.without_result(value)?;
                self.program.next_row = rows;
                Ok(())
            }
            StmtKind::Variables(variables) => {
                variables.iter().try_for_each(|variable| self.local_variable(variable))
            }
            StmtKind::Bindings { names, by_reference, value } => {
                self.structured_binding(names, *by_reference, value)
            }
            StmtKind::Block(statements) => self.scoped(|lower| lower.statements(statements)),
            StmtKind::If { is_constexpr, first, condition, yes, no } => self.scoped(|lower| {
                if let Some(first) = first {
                    lower.header(first)?;
                }
                lower.if_statement(*is_constexpr, condition, yes, no.as_deref())
            }),
            StmtKind::For { first, condition, step, body } => self.scoped(|lower| {
                if let Some(first) = first {
                    lower.header(first)?;
                }
                let header = lower.program.notes.statement();
                lower.loop_statement(condition.as_ref(), step.as_ref(), body, header, true)
            }),
            StmtKind::While(condition, body) => {
                let header = self.program.notes.statement();
                self.scoped(|lower| lower.loop_statement(Some(condition), None, body, header, true))
            }
            StmtKind::DoWhile(body, condition) => {
                let header = self.noted_statement(statement);
                self.scoped(|lower| lower.loop_statement(Some(condition), None, body, header, false))
            }
            StmtKind::Range { variable, range, body } => {
                self.scoped(|lower| lower.range_statement(variable, range, body))
            }
            StmtKind::Switch(value, body) => self.scoped(|lower| lower.switch(value, body)),
            StmtKind::Case(_) | StmtKind::Default => self.error("`case` has no `switch` directly around it"),
            StmtKind::Break => match self.frame().loops.last() {
                Some(&Loop { end, alive, .. }) => {
                    self.destroy(alive)?;
                    self.emit(Op::Jump { to: end });
                    Ok(())
                }
                None => self.error("`break` has no loop around it"),
            },
            StmtKind::Continue => {
                match self.frame().loops.iter().rev().find_map(|this| Some((this.step?, this.alive))) {
                    Some((to, alive)) => {
                        self.destroy(alive)?;
                        self.emit(Op::Jump { to });
                        Ok(())
                    }
                    None => self.error("`continue` has no loop around it"),
                }
            }
            StmtKind::Return(value) => self.return_statement(value.as_ref()),
            StmtKind::Goto(name) => self.goto(name),
            StmtKind::Label(name) => self.place_label(name),
            StmtKind::Alias(alias) => {
                self.bind(&alias.name, Binding::Alias(alias.clone()));
                // The value is known now.
                if alias.template.is_empty() {
                    self.may_be_destroyed = true;
                    let ty = self.type_of_name(&alias.ty)?;
                    self.bind(&alias.name, Binding::Type(ty));
                }
                Ok(())
            }
            StmtKind::Struct(declaration) => {
                self.bind(&declaration.name, Binding::Struct(declaration.clone()));
                Ok(())
            }
            StmtKind::Enumerators(values) => values.iter().try_for_each(|value| self.local_variable(value)),
            StmtKind::StaticAssert(condition, text) => self.static_assert(condition, text.as_deref()),
            StmtKind::UsingNamespace(_) | StmtKind::UsingName(_) => self
                .error("`using` within a function is not part of the subset: write it before the function"),
            StmtKind::Asm { text, output, inputs } => self.asm(text, output.as_ref(), inputs),
        }
    }

    pub fn static_assert(&mut self, condition: &Expr, text: Option<&str>) -> Result<()> {
        let value = self.constant_expression(condition, "the condition of `static_assert`")?;
        let value = self.to_bool(value)?;
        if value.as_const() == Some(0) {
            let why = text.map_or(String::new(), |text| format!(": {text}"));
            return Err(Error::new(condition.span, format!("a static assertion does not hold{why}")));
        }
        Ok(())
    }

    pub fn check_assertions(&mut self) -> Result<()> {
        let assertions = self.tree.assertions.take();
        for (condition, text, namespace) in assertions {
            self.in_frame(super::Scope::new(), namespace, None, |lower| {
                lower.static_assert(&condition, text.as_deref())
            })?;
        }
        Ok(())
    }

    fn if_statement(
        &mut self,
        is_constexpr: bool,
        condition: &Expr,
        yes: &Stmt,
        no: Option<&Stmt>,
    ) -> Result<()> {
        let is_true = self.expression(condition)?;
        self.span = condition.span;
        let is_true = self.to_bool(is_true)?;
        if let Some(bits) = is_true.as_const() {
            let chosen = if bits != 0 { Some(yes) } else { no };
            let other = if bits != 0 { no } else { Some(yes) };
            // The other branch is still checked, unless the `if` is `constexpr`.
            if let (Some(other), false) = (other, is_constexpr || self.is_instance()) {
                self.dry(|lower| lower.body(other))?;
            }
            return chosen.map_or(Ok(()), |chosen| self.body(chosen));
        }
        if is_constexpr {
            return self.error("the condition of `if constexpr` must be known at compile time");
        }
        let c = self.row(&is_true)?;
        let (other, end) = (self.program.label(), self.program.label());
        self.emit(Op::Branch { c, to: if no.is_some() { other } else { end }, when: false });
        self.body(yes)?;
        if let Some(no) = no {
            self.emit(Op::Jump { to: end });
            self.program.place(other);
            self.body(no)?;
        }
        self.program.place(end);
        Ok(())
    }

    /// In a template, an unreached branch may not even make sense for these arguments. C++ would check it, but the
    /// program behaves the same.
    fn is_instance(&self) -> bool {
        self.frames
            .iter()
            .any(|frame| frame.function.as_ref().is_some_and(|function| !function.template.is_empty()))
    }

    /// Lowers an expression whose value is unused: `i++` need not keep the old value.
    pub(super) fn without_result(&mut self, value: &Expr) -> Result<()> {
        let outer = self.span;
        match &value.kind {
            ExprKind::Unary(operator @ (Unary::PostIncrement | Unary::PostDecrement), operand) => {
                self.span = value.span;
                let is_plain = self.dry(|lower| lower.expression(operand))?;
                let operator = match (operator, self.types.of_struct(is_plain.ty)) {
                    (operator, Some(_)) => *operator,
                    (Unary::PostIncrement, None) => Unary::Increment,
                    _ => Unary::Decrement,
                };
                self.unary_operator(operator, operand)?;
            }
            ExprKind::Binary(Binary::Comma, a, b) => {
                self.without_result(a)?;
                self.without_result(b)?;
            }
            _ => {
                self.expression(value)?;
            }
        }
        self.span = outer;
        Ok(())
    }

    fn structured_binding(&mut self, names: &[Name], by_reference: bool, value: &Expr) -> Result<()> {
        let value = self.expression(value)?;
        let Some(number) = self.struct_of(value.ty) else {
            return self.error("`auto [a, b]` takes a struct");
        };
        if !by_reference {
            self.check_is_not_destroyed(value.ty)?;
        }
        let fields = self.types.structs[number].fields.clone();
        if fields.len() != names.len() {
            return self.error(format!("{} names for {} fields", names.len(), fields.len()));
        }
        let value = match by_reference {
            true => {
                let ty = value.ty;
                self.bound(value, ty, false, true)?
            }
            false if self.types.rows(value.ty).is_some() => {
                let copy = self.copied(value)?;
                Value { is_lvalue: true, is_stable: false, ..copy }
            }
            false => {
                let slot = self.local_slot("a structured binding", value.ty);
                self.assigned(&slot, value)?;
                slot
            }
        };
        for (name, field) in names.iter().zip(&fields) {
            let part = self.field(&value, field)?;
            self.bind(name, Binding::Value(part));
        }
        Ok(())
    }
}
