//! Calls: arguments, overloads, and the function body inlined at the call.

use super::lookup::{Found, Functions};
use super::overloads::{Chosen, Given};
use super::recursion::key;
use super::{Binding, Frame, Lower, MOST_CALLS, Outcome, Place, Scope, Value};
use crate::ir::Op;
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, Type, VOID};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    Function,
    Constructor,
}

impl Lower<'_> {
    /// Evaluates the arguments, with packs expanded.
    pub fn given<'e>(&mut self, arguments: &'e [Expr]) -> Result<Vec<Given<'e>>> {
        let mut given = Vec::new();
        for (i, argument) in arguments.iter().enumerate() {
            match &argument.kind {
                ExprKind::Braces(items) => given.push(Given::Braces(items, argument.span)),
                ExprKind::Expand(inner) => {
                    let count = self.pack_length_in_expr(inner)?;
                    for i in 0..count {
                        let value = self.with_pack_element(inner, i, |lower| lower.expression(inner))?;
                        given.push(Given::Value(value));
                    }
                }
                _ => {
                    let value = self.expression(argument)?;
                    // A later argument may write the variable that this one reads.
                    let is_variable = matches!(value.place, Place::Row(_)) && !value.is_stable;
                    let later = arguments[i + 1..].iter().any(|later| {
                        matches!(later.kind, ExprKind::Unary(..) | ExprKind::Assign(..)) && self.writes(later)
                    });
                    given.push(Given::Value(if is_variable && later { self.copied(value)? } else { value }));
                }
            }
        }
        Ok(given)
    }

    pub fn call_expression(&mut self, function: &Expr, arguments: &[Expr], span: Span) -> Result<Value> {
        match &function.kind {
            ExprKind::Path(path) => {
                let last = &path.segments[path.segments.len() - 1];
                let is_plain = path.segments.len() == 1;
                let found = if is_plain && !path.global { self.find(&last.name) } else { None };
                if is_plain && !matches!(found, Some(Found::Binding(_) | Found::Member(_))) {
                    // A built-in function, unless the program has one that fits equally well.
                    return self.call_by_name(path, found, arguments, span);
                }
                self.span = path.span;
                let callee = match self.path_value(path) {
                    Ok(callee) => callee,
                    Err(_) if is_of_top_or_std(path) && self.is_global_built_in(&last.name) => {
                        self.span = span;
                        return self.call_by_name(path, None, arguments, span);
                    }
                    Err(error) => return Err(error),
                };
                self.span = span;
                self.call_value(callee, arguments, span)
            }
            ExprKind::Member(object, arrow, segment) => {
                let object = self.object(object, *arrow)?;
                self.span = span;
                let Type::Struct(number) = *self.types.get(object.ty) else {
                    let name = self.types.name(object.ty);
                    return self.error(format!("a `{name}` has no function `{}`", segment.name));
                };
                let candidates = self.methods(number, &segment.name);
                if candidates.is_empty() {
                    let callee = self.member(object, segment)?;
                    return self.call_value(callee, arguments, span);
                }
                if let Some(number) = self.struct_of(object.ty) {
                    self.check_access(number, &segment.name)?;
                }
                let functions = Functions {
                    name: segment.name.clone(),
                    candidates,
                    arguments: segment.arguments.clone(),
                };
                let given = self.given(arguments)?;
                self.span = span;
                self.method_call(object, functions, given, span)
            }
            _ => {
                let callee = self.expression(function)?;
                self.span = span;
                self.call_value(callee, arguments, span)
            }
        }
    }

    fn is_global_built_in(&self, name: &str) -> bool {
        super::builtins::is_known(name)
    }

    fn call_by_name(
        &mut self,
        path: &Path,
        found: Option<Found>,
        arguments: &[Expr],
        span: Span,
    ) -> Result<Value> {
        let last = &path.segments[path.segments.len() - 1];
        let found = match (found, path.global) {
            (None, true) => self.find_in(0, &last.name, 0),
            (found, _) => found,
        };
        match found {
            Some(Found::Functions(mut functions)) => {
                functions.arguments = last.arguments.clone();
                let given = self.given(arguments)?;
                self.span = span;
                if super::builtins::is_known(&last.name) && self.is_at_top(&functions) {
                    return match self.try_choose(&functions, &given, span)? {
                        Some(chosen) => self.call_chosen(chosen, None, given, span),
                        None => self.built_in_call(&last.name, last, given, arguments, span),
                    };
                }
                let functions = self.with_functions_of_arguments(functions, &given);
                let chosen = self.choose(&functions, &given, span)?;
                self.call_chosen(chosen, None, given, span)
            }
            Some(_) => {
                self.span = path.span;
                let callee = self.path_value(path)?;
                self.span = span;
                self.call_value(callee, arguments, span)
            }
            None if super::builtins::is_raw(&last.name) => self.raw_call(&last.name, arguments, span),
            None => {
                let given = self.given(arguments)?;
                self.span = span;
                if super::builtins::is_known(&last.name) {
                    return self.built_in_call(&last.name, last, given, arguments, span);
                }
                let functions =
                    Functions { name: last.name.clone(), candidates: Vec::new(), arguments: None };
                let functions = self.with_functions_of_arguments(functions, &given);
                if functions.candidates.is_empty() {
                    self.span = path.span;
                    return self.unknown_function(&last.name);
                }
                let chosen = self.choose(&functions, &given, span)?;
                self.call_chosen(chosen, None, given, span)
            }
        }
    }

    fn unknown_function<T>(&self, name: &str) -> Result<T> {
        match crate::source::headers::refused(name) {
            Some(why) => self.error(format!("`{name}` is not part of the subset: {why}")),
            None if name.starts_with("cuda") && self.similar(name).is_none() => {
                self.error(format!("`{name}` is not part of the subset"))
            }
            None => self.unknown(name),
        }
    }

    /// Whether all candidates are in the global namespace, where the built-in functions are too.
    fn is_at_top(&self, functions: &Functions) -> bool {
        functions.candidates.iter().all(|candidate| candidate.0.namespace == 0)
    }

    /// Adds the functions in the namespaces of the arguments' types (argument-dependent lookup).
    fn with_functions_of_arguments(&self, mut functions: Functions, given: &[Given<'_>]) -> Functions {
        for given in given {
            let Given::Value(value) = given else { continue };
            let Some(number) = self.struct_of(value.ty) else { continue };
            let namespace = self.types.structs[number].declaration.namespace;
            if let Some(Found::Functions(found)) = self.find_in(namespace, &functions.name, 0) {
                for candidate in found.candidates {
                    if !functions.candidates.iter().any(|known| known.0.id == candidate.0.id) {
                        functions.candidates.push(candidate);
                    }
                }
            }
        }
        functions
    }

    /// Calls a lambda, a function passed by name, or an object with `operator()`.
    pub fn call_value(&mut self, callee: Value, arguments: &[Expr], span: Span) -> Result<Value> {
        let given = self.given(arguments)?;
        self.span = span;
        match &callee.place {
            Place::Closure(closure) => {
                let closure = closure.clone();
                self.call_closure(&closure, given, span)
            }
            Place::Functions(functions) => {
                let functions = (**functions).clone();
                let this = self.frames.last().and_then(|frame| frame.this.clone());
                let is_method = functions.candidates.iter().any(|candidate| candidate.0.is_method);
                match this {
                    Some(this) if is_method => {
                        let of = functions.candidates[0].2;
                        let is_own = of.is_some() && of == self.struct_of(this.ty);
                        if is_own {
                            return self.method_call(this, functions, given, span);
                        }
                    }
                    _ => {}
                }
                let functions = self.with_functions_of_arguments(functions, &given);
                let chosen = self.choose(&functions, &given, span)?;
                self.call_chosen(chosen, None, given, span)
            }
            _ => match self.struct_of(callee.ty) {
                Some(number) => {
                    let candidates = self.methods(number, "operator()");
                    if candidates.is_empty() {
                        return self.error(format!("a `{}` cannot be called", self.types.name(callee.ty)));
                    }
                    let functions = Functions { name: "operator()".into(), candidates, arguments: None };
                    self.method_call(callee, functions, given, span)
                }
                None => self.error(format!("a `{}` cannot be called", self.types.name(callee.ty))),
            },
        }
    }

    pub fn call_chosen(
        &mut self,
        chosen: Chosen,
        this: Option<Value>,
        given: Vec<Given<'_>>,
        span: Span,
    ) -> Result<Value> {
        let qualifiers = chosen.function.qualifiers;
        let name = &chosen.function.name;
        if qualifiers.global {
            return Err(Error::new(span, format!("the kernel `{name}` is launched, not called"))
                .help(format!("write `{name}<<<blocks, threads>>>(…)`")));
        }
        let is_device_only = qualifiers.device && !qualifiers.host;
        // A `constexpr` call with known arguments does not need the device.
        let is_known =
            given.iter().all(|given| matches!(given, Given::Value(value) if value.as_const().is_some()));
        let is_known_now = qualifiers.is_constexpr && is_known;
        let is_host_only = !(qualifiers.device || chosen.function.is_method || is_known_now);
        if is_device_only && !self.on_device && !qualifiers.is_constexpr && !self.is_quiet(&chosen) {
            return Err(Error::new(
                span,
                format!("`{name}` is a `__device__` function: host code cannot call it"),
            )
            .note("it is declared here", chosen.function.span));
        }
        if is_host_only && self.on_device && name.starts_with("__emulator_") {
            let name = if name.contains("delete") { "delete" } else { "new" };
            let message =
                format!("`{name}` in device code is not part of the subset: it cannot allocate memory here");
            return Err(Error::new(span, message));
        }
        if is_host_only && self.on_device {
            return Err(Error::new(span, format!("`{name}` is host code: a kernel cannot call it"))
                .help(format!("declare `{name}` as `__device__`, or as `__host__ __device__`"))
                .note("it is declared here", chosen.function.span));
        }
        let this = if qualifiers.is_static { None } else { this };
        self.call_body(chosen, this, given, span, Body::Function)
    }

    /// Host code also uses methods and constructors of device structs, for values known at compile time.
    fn is_quiet(&self, chosen: &Chosen) -> bool {
        chosen.function.is_method
    }

    /// Calls a function: lowers its body here, or jumps to it if it calls itself.
    pub fn call_body(
        &mut self,
        chosen: Chosen,
        this: Option<Value>,
        given: Vec<Given<'_>>,
        span: Span,
        kind: Body,
    ) -> Result<Value> {
        let is_known = |given: &Given<'_>| matches!(given, Given::Value(value) if value.as_const().is_some());
        // A `constexpr` call with known arguments ends by itself.
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
        let function = self.on_this_side(&chosen.function);
        let Some(body) = &function.body else {
            return Err(Error::new(span, format!("`{}` is declared, but it has no body", function.name))
                .note("it is declared here", function.span));
        };
        if self.frames.len() >= MOST_CALLS && !function.template.is_empty() {
            let name = &function.name;
            return Err(Error::new(span, format!("the template `{name}` is instantiated without end"))
                .label("it needs a special form, or an `if constexpr`, that ends it")
                .last());
        }
        if self.frames.len() >= MOST_CALLS {
            let message = format!("the calls are nested too deeply: {MOST_CALLS} is the most");
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

    fn bind_parameters(&mut self, function: &Function, given: Vec<Given<'_>>, span: Span) -> Result<()> {
        let mut given = given.into_iter();
        for parameter in &function.parameters {
            if parameter.is_pack {
                let all: Vec<Given<'_>> = given.by_ref().collect();
                let mut bindings = Vec::new();
                let mut names = Vec::new();
                self.packs_in_type(&parameter.ty, &mut names);
                let is_auto = has_auto(&parameter.ty);
                for (i, given) in all.into_iter().enumerate() {
                    let value = match is_auto {
                        true => self.parameter_value(parameter, given, function, true)?,
                        false => self.with_elements(&names, i, |lower| {
                            lower.parameter_value(parameter, given, function, false)
                        })?,
                    };
                    bindings.push(Binding::Value(value));
                }
                if let Some(name) = &parameter.name {
                    self.bind(name, Binding::Pack(bindings));
                }
                continue;
            }
            let value = match (given.next(), &parameter.default) {
                (Some(given), _) => {
                    let is_auto = has_auto(&parameter.ty);
                    self.parameter_value(parameter, given, function, is_auto)?
                }
                (None, Some(default)) => {
                    let value = self.expression(default)?;
                    self.span = span;
                    self.parameter_value(parameter, Given::Value(value), function, has_auto(&parameter.ty))?
                }
                (None, None) => return self.error("an argument is missing"),
            };
            if let Some(name) = &parameter.name {
                self.bind(name, Binding::Value(value));
            }
        }
        Ok(())
    }

    fn parameter_value(
        &mut self,
        parameter: &Parameter,
        given: Given<'_>,
        function: &Function,
        is_auto: bool,
    ) -> Result<Value> {
        let written = match (&given, is_auto) {
            (Given::Value(value), true) => {
                let by_reference = matches!(parameter.ty.kind, TypeKind::Reference(_) | TypeKind::Forward(_));
                let ty = match *self.types.get(value.ty) {
                    Type::Array { of, .. } if !by_reference => self.types.pointer(of, value.is_const),
                    _ => value.ty,
                };
                let is_const = match &parameter.ty.kind {
                    TypeKind::Reference(inner) => inner.is_const || value.is_const,
                    _ => parameter.ty.is_const,
                };
                let is_forward = matches!(parameter.ty.kind, TypeKind::Forward(_));
                if !by_reference {
                    self.check_is_not_destroyed(value.ty)?;
                }
                if matches!(parameter.ty.kind, TypeKind::Function) {
                    self.check_is_function(value)?;
                }
                super::type_names::Written { ty, is_const, is_reference: by_reference, is_forward }
            }
            _ => self.written(&parameter.ty)?,
        };
        let value = match given {
            Given::Value(value) => value,
            Given::Braces(items, _) => {
                // The braced list belongs to the caller's frame.
                let frame = self.frames.pop();
                let value = self.made_from_list(written.ty, items, true);
                self.frames.extend(frame);
                value?
            }
        };
        if written.is_reference {
            let value = self.bound(value, written.ty, written.is_const, written.is_forward)?;
            return Ok(if value.is_lvalue && value.declaration.is_some() {
                value
            } else {
                Value { declaration: Some(parameter.id), ..self.in_memory_if_needed(value, parameter)? }
            });
        }
        if self.is_compile_time(written.ty) {
            return self.copied_closure(value);
        }
        let value = self.coerced(value, written.ty)?;
        let is_written = parameter.name.as_ref().is_some_and(|name| function.written.contains(name))
            || self.in_rows.contains(&parameter.id);
        let must_be_in_memory =
            self.in_memory.contains(&parameter.id) || self.types.rows(written.ty).is_none();
        let made = |value: Value| Value {
            is_lvalue: true,
            is_const: written.is_const,
            declaration: Some(parameter.id),
            ..value
        };
        if must_be_in_memory {
            // A value that is never written can stay where it is.
            if let (Place::Memory(_), false, false) =
                (&value.place, is_written, self.in_memory.contains(&parameter.id))
            {
                return Ok(made(Value { is_const: true, ..value }));
            }
            let name = parameter.name.as_deref().unwrap_or("a parameter");
            let slot = self.local_slot(name, written.ty);
            self.assigned(&slot, value)?;
            return Ok(made(Value { is_stable: false, ..slot }));
        }
        if !is_written && (value.as_const().is_some() || value.is_stable) {
            return Ok(made(Value { is_stable: true, ..value }));
        }
        let value = match value.as_const() {
            Some(_) => {
                let row = self.new_rows(written.ty);
                self.to_rows(written.ty, row, &value)?;
                Value::new(written.ty, Place::Row(row))
            }
            None => self.copied(value)?,
        };
        Ok(made(Value { is_stable: !is_written, ..value }))
    }

    /// A pointer to a function takes one function, so that the call needs no overload resolution.
    fn check_is_function(&self, value: &Value) -> Result<()> {
        match &value.place {
            Place::Closure(closure) if closure.lambda.captures.is_empty() => Ok(()),
            Place::Functions(functions) => match &functions.candidates[..] {
                [(function, ..)] if function.template.is_empty() || functions.arguments.is_some() => Ok(()),
                _ => self.error(format!(
                    "`{}` is more than one function: such an argument is not part of the subset",
                    functions.name
                )),
            },
            _ => self.error("a pointer to a function is a parameter here: it takes the name of a function"),
        }
    }

    /// Moves a temporary to memory if a reference to it needs an address.
    fn in_memory_if_needed(&mut self, value: Value, parameter: &Parameter) -> Result<Value> {
        if !self.in_memory.contains(&parameter.id) || matches!(value.place, Place::Memory(_)) {
            return Ok(value);
        }
        let name = parameter.name.as_deref().unwrap_or("a parameter");
        let slot = self.local_slot(name, value.ty);
        self.assigned(&slot, value)?;
        Ok(Value { is_const: true, ..slot })
    }

    /// Initialises the members of an object, before the constructor's body.
    fn initialise_members(&mut self, function: &Function) -> Result<()> {
        let frame = self.frame().clone();
        let (Some(this), Some(number)) = (frame.this, frame.of_struct) else { return Ok(()) };
        let fields = self.types.structs[number].fields.clone();
        let declaration = self.types.structs[number].declaration.clone();
        for (name, _, span) in &function.members {
            if !fields.iter().any(|field| field.name == *name) {
                return Err(Error::new(
                    *span,
                    format!("`{}` has no member `{name}`", self.struct_name(number)),
                ));
            }
        }
        for (i, field) in fields.iter().enumerate() {
            let given = function.members.iter().find(|(name, ..)| *name == field.name);
            let target = self.raw_field(&this, field.offset, field.row, field.ty);
            let rows = self.program.next_row;
            match given {
                Some((_, items, span)) if field.is_reference => {
                    self.span = *span;
                    let value = self.expression(&items[0])?;
                    let pointer = self.reference_value(value, field.ty, field.is_const)?;
                    self.assigned(&Value { ty: pointer.ty, ..target }, pointer)?;
                }
                Some((_, items, span)) => {
                    self.span = *span;
                    self.initialise(&target, items, false)?;
                }
                None => match &declaration.fields[i].init {
                    Init::None => {
                        let inner = self.struct_of(field.ty);
                        if inner.is_some_and(|inner| !self.constructors(inner).candidates.is_empty()) {
                            self.zeroed(&target)?;
                        }
                    }
                    _ => self.default_member(&target, &declaration.fields[i].clone())?,
                },
            }
            self.program.next_row = rows;
        }
        Ok(())
    }
}

/// Matches `::exp` and `std::exp`.
fn is_of_top_or_std(path: &Path) -> bool {
    match &path.segments[..] {
        [_] => path.global,
        [first, _] => &*first.name == "std",
        _ => false,
    }
}

pub fn has_auto(ty: &TypeName) -> bool {
    match &ty.kind {
        TypeKind::Auto | TypeKind::Function => true,
        TypeKind::Pointer(inner) | TypeKind::Reference(inner) | TypeKind::Forward(inner) => has_auto(inner),
        _ => false,
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

/// Whether a value is a pointer, for the signatures of built-in functions.
pub fn is_pointer(lower: &Lower<'_>, value: &Value) -> bool {
    matches!(lower.types.get(value.ty), Type::Pointer { .. } | Type::Null | Type::Array { .. })
        || value.ty == types::NULL
}
