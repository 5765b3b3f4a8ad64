//! Lowers statements to instructions.

use super::{Binding, Loop, Lower, Outcome, Place, Value};
use crate::ir::{Bin, Op};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, VOID};
use std::collections::HashMap;

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
    fn body(&mut self, statement: &Stmt) -> Result<()> {
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
            return self
                .error("the condition of `if constexpr` has to be known when the program is compiled");
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

    fn loop_statement(
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

    /// Lowers an expression whose value is unused: `i++` need not keep the old value.
    fn without_result(&mut self, value: &Expr) -> Result<()> {
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

    fn range_statement(&mut self, variable: &Variable, range: &Expr, body: &Stmt) -> Result<()> {
        let (span, header) = (self.span, self.program.notes.statement());
        let range = match &range.kind {
            ExprKind::Braces(items) => self.list_to_go_through(items)?,
            _ => self.expression(range)?,
        };
        self.span = span;
        // A loop over two pointers, from `begin` to `end`.
        let (first, last) = match *self.types.get(range.ty) {
            types::Type::Array { of, count } => {
                let first = self.loaded(range)?;
                let size = self.types.layout(of).0;
                let memory = self.memory_at(first.clone())?;
                let ty = first.ty;
                let memory = super::Memory { offset: memory.offset + (count * size) as i64, ..memory };
                (first, self.lea(ty, &memory)?)
            }
            types::Type::Struct(number) => {
                let mut call = |name: &str| {
                    let candidates = self.methods(number, name);
                    let functions =
                        super::lookup::Functions { name: name.into(), candidates, arguments: None };
                    self.method_call(range.clone(), functions, Vec::new(), span)
                };
                (call("begin")?, call("end")?)
            }
            _ => return self.error("this is not something to go through"),
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

    fn switch(&mut self, value: &Expr, body: &Stmt) -> Result<()> {
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

    fn return_statement(&mut self, value: Option<&Expr>) -> Result<()> {
        let span = self.span;
        let frame = self.frame().clone();
        if let Outcome::Program = frame.outcome {
            let code = match value {
                Some(value) if !self.on_device => {
                    let value = self.expression(value)?;
                    self.coerced(value, types::I32)?
                }
                Some(_) => return self.error("a kernel has no result"),
                None if !self.on_device => {
                    return self.error("`main` has a result, so `return` needs a value");
                }
                None => Value::constant(types::I32, 0),
            };
            let code = if frame.alive.is_empty() { code } else { self.copied(code)? };
            self.destroy(0)?;
            if !self.on_device {
                self.host_operation("exit", vec![code], VOID)?;
            }
            self.emit(Op::Exit);
            return Ok(());
        }
        let mut result = None;
        if let Some(value) = value {
            let found = match &value.kind {
                ExprKind::Braces(items) => match frame.result {
                    Some(ty) => self.made_from_list(ty, items, true)?,
                    None => return self.error("the type of this list is not known here"),
                },
                _ => self.expression(value)?,
            };
            self.span = span;
            result = Some(match (frame.result, frame.returns_reference) {
                (Some(_), true) => found,
                (Some(ty), false) if ty == VOID && found.ty != VOID => {
                    return self.error("this function has no result, so `return` takes no value");
                }
                (Some(ty), false) if ty == VOID => found,
                (Some(ty), false) if ty == found.ty && self.types.rows(ty).is_none() => self.kept(found)?,
                (Some(ty), false) => self.coerced(found, ty)?,
                (None, _) if self.is_compile_time(found.ty) => found,
                (None, true) => found,
                (None, false)
                    if self.types.rows(found.ty).is_none() && self.types.of_struct(found.ty).is_some() =>
                {
                    self.kept(found)?
                }
                (None, false) => self.loaded(found)?,
            });
        } else if frame.result.is_some_and(|ty| ty != VOID) {
            return self.error("this function has a result, so `return` needs a value");
        }
        if let Some(found) = &result
            && !frame.returns_reference
        {
            self.check_is_not_destroyed(found.ty)?;
        }
        match frame.outcome {
            Outcome::Tail(_) => {
                // Destructors run before the caller uses the result.
                if let Some(found) = result.clone()
                    && !frame.alive.is_empty()
                    && !frame.returns_reference
                    && !self.is_compile_time(found.ty)
                    && found.ty != VOID
                {
                    if self.types.rows(found.ty).is_none() {
                        return self.error(
                            "so large a result beside a variable with a destructor is not part of the subset",
                        );
                    }
                    result = Some(self.copied(found)?);
                }
                if frame.result.is_none() {
                    self.frame().result = Some(result.as_ref().map_or(VOID, |value| value.ty));
                }
                self.frame().outcome = Outcome::Tail(result);
                return Ok(());
            }
            Outcome::Slot(slot, row) => {
                if let Some(result) = result {
                    if frame.returns_reference {
                        let slot = slot.unwrap_or(Value::new(VOID, Place::Nothing));
                        let result = match result.place {
                            Place::Memory(_) => result,
                            _ => self.needs_memory(result)?,
                        };
                        if frame.result.is_none() {
                            self.frame().result = Some(result.ty);
                        }
                        let pointer = self.address_of(result)?;
                        let pointer = Value { ty: slot.ty, ..pointer };
                        self.assigned(&slot, pointer)?;
                    } else {
                        let slot = match slot {
                            Some(slot) => slot,
                            None if result.ty == VOID => Value::new(VOID, Place::Nothing),
                            None => {
                                if self.types.rows(result.ty).is_none_or(|rows| rows > 4) {
                                    return self.error("`auto` for so large a result with several `return`s is not part of the subset: write its type");
                                }
                                let slot = Value::lvalue(result.ty, Place::Row(row));
                                self.frame().outcome = Outcome::Slot(Some(slot.clone()), row);
                                self.frame().result = Some(result.ty);
                                slot
                            }
                        };
                        self.assigned(&slot, result)?;
                    }
                }
            }
            Outcome::Program => {}
        }
        self.destroy(0)?;
        self.emit(Op::Jump { to: frame.end });
        Ok(())
    }

    /// A struct in memory that outlives the function. Local memory is never reused, so it stays valid.
    fn kept(&mut self, value: Value) -> Result<Value> {
        match value.place {
            Place::Memory(memory) => {
                let place = Place::Memory(self.frozen(&memory)?);
                Ok(Value { place, is_lvalue: false, ..value })
            }
            _ => Ok(value),
        }
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
