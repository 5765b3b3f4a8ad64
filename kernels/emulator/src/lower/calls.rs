//! Calls: arguments, overloads, and functions that are passed as values.

use super::inlining::Body;
use super::lookup::{Found, Functions};
use super::overloads::{Chosen, Given};
use super::{Lower, Place, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, Type};

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
                    let error = Error::new(span, format!("`{name}` has no function `{}`", segment.name));
                    return Err(match &*segment.name {
                        "len" | "size" => error.help(crate::source::foreign::NO_LENGTH),
                        _ => error,
                    });
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
        // `::sin` is the built-in function, also after `using namespace std`.
        let found = found.filter(|found| match found {
            Found::Functions(functions) if path.global => {
                !super::builtins::is_known(&last.name) || self.is_at_top(functions)
            }
            _ => true,
        });
        match found {
            Some(Found::Functions(mut functions)) => {
                functions.arguments = last.arguments.clone();
                let given = self.given(arguments)?;
                self.span = span;
                let is_of_std = |functions: &Functions| {
                    let std = self.tree.namespaces[0].children.get("std");
                    functions.candidates.iter().all(|candidate| Some(&candidate.0.namespace) == std)
                };
                // `using namespace std` hides no built-in function.
                if super::builtins::is_known(&last.name)
                    && (self.is_at_top(&functions) || is_of_std(&functions))
                {
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

    pub(super) fn unknown_function<T>(&self, name: &str) -> Result<T> {
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
}

/// Matches `::exp` and `std::exp`.
fn is_of_top_or_std(path: &Path) -> bool {
    match &path.segments[..] {
        [_] => path.global,
        [first, _] => &*first.name == "std",
        _ => false,
    }
}

/// Whether a value is a pointer, for the signatures of built-in functions.
pub fn is_pointer(lower: &Lower<'_>, value: &Value) -> bool {
    matches!(lower.types.get(value.ty), Type::Pointer { .. } | Type::Null | Type::Array { .. })
        || value.ty == types::NULL
}
