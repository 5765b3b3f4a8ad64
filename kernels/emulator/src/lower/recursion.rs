//! Recursive functions. They are not inlined: all calls share one body with separate rows.
//!
//! A call writes the arguments to the function's rows and jumps. If the caller is recursive too, it saves its rows
//! first, since another call may overwrite them before it continues. Local variables in memory are relative to an
//! address that the call provides.

use super::inlining::Body;
use super::overloads::{Chosen, Given};
use super::parameters::has_auto;
use super::{Lower, Place, Scope, Value};
use crate::ir::{Op, Row};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{Argument, StructId, TypeId, VOID};

/// An instance of a function.
pub type Key = (DeclId, Vec<Argument>, Option<StructId>);

pub fn key(chosen: &Chosen) -> Key {
    (chosen.function.id, chosen.arguments.clone(), chosen.of_struct)
}

/// How a value is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    ByValue,
    /// In memory of the caller, which does not use it again.
    InMemory,
    ByReference {
        is_const: bool,
    },
}

#[derive(Clone, Debug)]
struct Passed {
    ty: TypeId,
    how: How,
    row: Row,
}

/// A recursive function that a program calls.
#[derive(Clone)]
pub struct Entry {
    key: Key,
    chosen: Chosen,
    label: u32,
    /// The first call, and the function around it, as noted for the steps.
    call: (Span, u32),
    this: Option<Passed>,
    parameters: Vec<Passed>,
    result: Passed,
    /// The row that receives the address of the local variables.
    frame: Row,
    bytes: u32,
}

impl Lower<'_> {
    /// Whether a function that is being lowered is called again.
    pub fn is_in_progress(&self, key: &Key) -> bool {
        self.frames.iter().any(|frame| {
            frame.function.as_ref().is_some_and(|function| function.id == key.0)
                && frame.arguments == key.1
                && frame.of_struct == key.2
        })
    }

    pub fn recursive_call(
        &mut self,
        chosen: &Chosen,
        this: Option<Value>,
        given: Vec<Given<'_>>,
        span: Span,
    ) -> Result<Value> {
        let entry = self.entry(chosen, this.as_ref(), span)?;
        let function = &chosen.function;
        let mut values = Vec::new();
        if let (Some(passed), Some(this)) = (&entry.this, this) {
            values.push((self.passed(passed, this, "this")?, passed.row));
        }
        let mut given = given.into_iter();
        for (parameter, passed) in function.parameters.iter().zip(&entry.parameters) {
            let value = match (given.next(), &parameter.default) {
                (Some(Given::Value(value)), _) => value,
                (Some(Given::Braces(items, _)), _) => self.made_from_list(passed.ty, items, true)?,
                (None, Some(default)) => {
                    let scope = chosen.scope.clone();
                    self.in_frame(scope, function.namespace, chosen.of_struct, |lower| {
                        lower.expression(default)
                    })?
                }
                (None, None) => return self.error("an argument is missing"),
            };
            self.span = span;
            let name = parameter.name.as_deref().unwrap_or("a parameter");
            values.push((self.passed(passed, value, name)?, passed.row));
        }
        for (value, row) in values {
            self.to_rows(value.ty, row, &value)?;
        }
        self.emit(Op::Call { to: entry.label, first: 0, count: 0, frame: entry.frame, bytes: 0 });
        let Passed { ty, how, row } = entry.result;
        match how {
            _ if ty == VOID => Ok(Value::new(VOID, Place::Nothing)),
            How::ByReference { is_const } => {
                let pointer = self.types.pointer(ty, is_const);
                let pointer = self.copied(Value::new(pointer, Place::Row(row)))?;
                self.behind(pointer, ty, is_const)
            }
            _ => self.copied(Value::new(ty, Place::Row(row))),
        }
    }

    /// The value that goes to the rows of a parameter.
    fn passed(&mut self, to: &Passed, value: Value, name: &str) -> Result<Value> {
        match to.how {
            How::ByValue => {
                let value = self.coerced(value, to.ty)?;
                self.copied(value)
            }
            How::InMemory => {
                let slot = self.local_slot(name, to.ty);
                self.assigned(&slot, value)?;
                self.address_of(slot)
            }
            How::ByReference { is_const } => self.reference_value(value, to.ty, is_const),
        }
    }

    /// Returns the function's entry, and adds it if this is the first call.
    fn entry(&mut self, chosen: &Chosen, this: Option<&Value>, span: Span) -> Result<Entry> {
        let key = key(chosen);
        if let Some(known) = self.program.entries.iter().find(|known| known.key == key) {
            return Ok(known.clone());
        }
        let function = self.on_this_side(&chosen.function);
        let is_open = has_auto(&function.result)
            || function.parameters.iter().any(|parameter| parameter.is_pack || has_auto(&parameter.ty));
        if is_open {
            let message = format!("`{}` calls itself: write its types explicitly", function.name);
            return Err(Error::new(span, message).note("it is declared here", function.span));
        }
        let (result, written) =
            self.in_frame(chosen.scope.clone(), function.namespace, chosen.of_struct, |lower| {
                let result = lower.written(&function.result)?;
                let parameters = function.parameters.iter().map(|parameter| lower.written(&parameter.ty));
                Ok((result, parameters.collect::<Result<Vec<_>>>()?))
            })?;
        self.span = span;
        let mut parameters = Vec::new();
        for written in written {
            if self.is_compile_time(written.ty) {
                let message = "a lambda or a function as the argument of a recursive function is not part of \
                               the subset";
                return Err(Error::new(span, message).note("it is declared here", function.span));
            }
            let how = match (written.is_reference, self.types.rows(written.ty)) {
                (true, _) => How::ByReference { is_const: written.is_const },
                (false, None) => How::InMemory,
                (false, Some(_)) => How::ByValue,
            };
            parameters.push(self.place_of_parameter(written.ty, how));
        }
        let this =
            this.map(|this| self.place_of_parameter(this.ty, How::ByReference { is_const: this.is_const }));
        let how = match (result.is_reference, self.types.rows(result.ty)) {
            (true, _) => How::ByReference { is_const: result.is_const },
            (false, None) if result.ty != VOID => {
                let message = "a struct that contains an array, as the result of a recursive function, is not \
                               part of the subset";
                return Err(Error::new(span, message).note("it is declared here", function.span));
            }
            _ => How::ByValue,
        };
        let result = self.place_of_parameter(result.ty, how);
        let (label, frame) = (self.program.label(), self.program.kept(2));
        let (call, chosen) = ((span, self.program.notes.function()), chosen.clone());
        let entry = Entry { key, chosen, label, call, this, parameters, result, frame, bytes: 0 };
        self.program.entries.push(entry.clone());
        Ok(entry)
    }

    fn place_of_parameter(&mut self, ty: TypeId, how: How) -> Passed {
        let rows = if how == How::ByValue { self.types.rows(ty).unwrap_or(0) } else { 2 };
        Passed { ty, how, row: self.program.kept(rows) }
    }

    /// Lowers the bodies of all recursive functions that the program calls.
    pub fn recursive_functions(&mut self) -> Result<()> {
        if self.program.entries.is_empty() {
            return Ok(());
        }
        self.emit(Op::Exit);
        let mut at = 0;
        while let Some(entry) = self.program.entries.get(at).cloned() {
            let from = self.program.ops.len();
            let first = self.program.begin_function();
            self.recursive_body(&entry)?;
            let Some(bytes) = self.program.end_function(from, first) else {
                return self.error("this recursive function is too large");
            };
            self.program.entries[at].bytes = bytes;
            at += 1;
        }
        let bytes: Vec<_> = self.program.entries.iter().map(|entry| (entry.label, entry.bytes)).collect();
        for op in &mut self.program.ops {
            if let Op::Call { to, bytes: of_callee, .. } = op
                && let Some((_, bytes)) = bytes.iter().find(|(label, _)| label == to)
            {
                *of_callee = *bytes;
            }
        }
        Ok(())
    }

    fn recursive_body(&mut self, entry: &Entry) -> Result<()> {
        let function = entry.chosen.function.clone();
        let (call, caller) = entry.call;
        self.span = call;
        self.begin_shared_body(caller);
        let end = self.program.label();
        self.frames.push(super::kernels::program_frame(&function, Scope::new(), end, function.span));
        self.program.place(entry.label);
        let d = self.program.rows(2);
        self.emit(Op::Move64 { d, a: entry.frame });
        self.program.frame = Some((d, 0));
        let this = entry.this.as_ref().map(|passed| self.received(passed)).transpose()?;
        let mut given = Vec::new();
        for passed in &entry.parameters {
            given.push(Given::Value(self.received(passed)?));
        }
        let value = self.inlined(entry.chosen.clone(), this, given, call, Body::Function)?;
        let Passed { ty, how, row } = entry.result;
        if let How::ByReference { is_const } = how {
            let pointer = self.reference_value(value, ty, is_const)?;
            self.to_rows(pointer.ty, row, &pointer)?;
        } else if ty != VOID {
            self.assigned(&Value::lvalue(ty, Place::Row(row)), value)?;
        }
        self.emit(Op::Return);
        self.frames.pop();
        Ok(())
    }

    /// The value of a parameter, in the body.
    fn received(&mut self, passed: &Passed) -> Result<Value> {
        let is_const = match passed.how {
            How::ByValue => return self.copied(Value::new(passed.ty, Place::Row(passed.row))),
            How::InMemory => false,
            How::ByReference { is_const } => is_const,
        };
        let pointer = self.types.pointer(passed.ty, is_const);
        let pointer = self.copied(Value::new(pointer, Place::Row(passed.row)))?;
        let value = self.behind(pointer, passed.ty, is_const)?;
        Ok(Value { is_lvalue: passed.how != How::InMemory, ..value })
    }
}
