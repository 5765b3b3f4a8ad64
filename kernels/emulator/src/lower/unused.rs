//! Code that nothing uses: its mistakes are errors too. The bodies of functions that nothing calls are lowered with
//! arguments of any value, and their instructions dropped; in templates that nothing uses, names are looked up.

use super::inlining::Body;
use super::kernels::program_frame;
use super::overloads::{Chosen, Given};
use super::parameters::has_auto;
use super::{Base, Lower, Memory, Place, Scope, Value};
use crate::ir::space;
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{StructId, Type};
use std::rc::Rc;

/// A function, and the struct that it belongs to.
type Member = (Rc<Function>, Option<StructId>, Body);

impl Lower<'_> {
    pub(super) fn check_unused(&mut self) {
        let (globals, heap, kernels) = (self.globals.len(), self.heap, self.kernels.len());
        let mut all = self.functions();
        // A function comes after those that it calls, whose bodies are then known.
        all.sort_by_key(|(function, ..)| std::cmp::Reverse(function.id));
        for (function, of_struct, kind) in all {
            if self.lowered.contains(&function.id) {
                continue;
            }
            let (errors, recovered, work) = (self.errors.0.len(), self.recovered, self.work);
            let result = self.repeated(|lower| lower.unused_body(&function, of_struct, kind));
            let mut found = self.errors.0.split_off(errors);
            found.extend(result.err());
            (self.recovered, self.work) = (recovered, work);
            // Nothing is lost by code that is beyond this emulator, if it never runs.
            if found.iter().all(|error| error.is_limit()) {
                continue;
            }
            for error in found.into_iter().filter(|error| !error.is_limit()) {
                if self.errors.add(error).is_err() {
                    return;
                }
            }
        }
        self.check_names();
        self.globals.truncate(globals);
        self.kernels.truncate(kernels);
        self.heap = heap;
    }

    /// The program's functions that are no templates.
    fn functions(&mut self) -> Vec<Member> {
        let tree = self.tree;
        let is_checked = |function: &Function| {
            let has_unknown =
                function.parameters.iter().any(|parameter| parameter.is_pack || has_auto(&parameter.ty));
            let is_main = &*function.name == "main" && function.namespace == 0 && !function.is_method;
            let is_plain = function.template.is_empty() && !function.qualifiers.global && !is_main;
            is_plain
                && function.body.is_some()
                && !has_unknown
                && !tree.in_headers.contains(&function.span.file)
        };
        let mut all = Vec::new();
        for (number, namespace) in tree.namespaces.iter().enumerate() {
            let functions = namespace.functions.values().flatten().filter(|function| is_checked(function));
            all.extend(functions.map(|function| (function.clone(), None, Body::Function)));
            for declaration in namespace.structs.values().flatten() {
                let is_plain = declaration.template.is_empty() && declaration.specialized.is_none();
                if !is_plain || !declaration.is_complete || tree.in_headers.contains(&declaration.span.file) {
                    continue;
                }
                let segment = Segment { name: declaration.name.clone(), arguments: None };
                let path = Path { global: false, segments: vec![segment], span: declaration.span };
                let ty = self.in_frame(Scope::new(), number, None, |lower| lower.path_type(&path));
                let Some(of) = ty.ok().and_then(|ty| self.struct_of(ty)) else { continue };
                let methods = declaration.functions.iter().chain(&declaration.conversions);
                let methods = methods.map(|function| (function, Body::Function));
                let made = declaration.constructors.iter().map(|function| (function, Body::Constructor));
                let own = methods.chain(made).filter(|(function, _)| is_checked(function));
                all.extend(own.map(|(function, kind)| (function.clone(), Some(of), kind)));
            }
        }
        all
    }

    /// Lowers the body of a function with values from memory as arguments.
    fn unused_body(
        &mut self,
        function: &Rc<Function>,
        of_struct: Option<StructId>,
        kind: Body,
    ) -> Result<()> {
        self.on_device = function.qualifiers.device;
        self.program.local_base = space::LOCAL;
        self.span = function.span;
        let end = self.program.label();
        self.enter(function, &Scope::new(), None);
        self.frames.push(program_frame(function, Scope::new(), end, function.span));
        let mut offset = 0;
        let mut next = |lower: &Self, ty| {
            let at = space::PARAMETERS + offset;
            offset += lower.types.layout(ty).0.next_multiple_of(16);
            Place::Memory(Memory { base: Base::Const(at), index: None, offset: 0 })
        };
        let mut given = Vec::new();
        for parameter in &function.parameters {
            self.span = parameter.span;
            let written = self.in_frame(Scope::new(), function.namespace, of_struct, |lower| {
                lower.written(&parameter.ty)
            })?;
            let value = Value::lvalue(written.ty, next(self, written.ty));
            given.push(Given::Value(Value {
                is_lvalue: !written.is_forward,
                is_const: written.is_const,
                ..value
            }));
        }
        let this = of_struct.map(|of| {
            let ty = self.types.id(Type::Struct(of));
            Value { is_const: function.qualifiers.is_const, ..Value::lvalue(ty, next(self, ty)) }
        });
        let this = this.filter(|_| !function.qualifiers.is_static);
        let chosen =
            Chosen { function: function.clone(), scope: Scope::new(), of_struct, arguments: Vec::new() };
        self.span = function.span;
        self.call_body(chosen, this, given, function.span, kind)?;
        self.recursive_functions()
    }

    /// Looks up the names that were not declared where they are used.
    fn check_names(&mut self) {
        let tree = self.tree;
        for used in &tree.undeclared {
            let is_built_in = super::builtins::is_known(&used.name)
                || super::builtins::is_raw(&used.name)
                || super::builtins::is_value(&used.name);
            if is_built_in || self.errors.0.iter().any(|known| known.span == used.span) {
                continue;
            }
            let later = self.declared_later(&used.name);
            // The function may be in the namespace of an argument's type.
            if used.is_called && later.is_some_and(|(namespace, _)| namespace != 0) {
                continue;
            }
            self.span = used.span;
            let error = match later {
                Some((_, span)) if span.file == used.span.file => used_too_early(used, span),
                Some(_) => continue,
                None => {
                    let result: Result<()> = match used.is_called {
                        true => self.unknown_function(&used.name),
                        false => self.unknown(&used.name),
                    };
                    let Err(error) = result else { continue };
                    error
                }
            };
            if !error.is_limit() && self.errors.add(error).is_err() {
                return;
            }
        }
    }

    /// A function or variable of this name, with its namespace.
    fn declared_later(&self, name: &Name) -> Option<(NamespaceId, Span)> {
        self.tree.namespaces.iter().enumerate().find_map(|(number, namespace)| {
            let function = namespace.functions.get(name).map(|all| all[0].span);
            let variable = namespace.variables.get(name).map(|all| all[0].span);
            function.or(variable).map(|span| (number, span))
        })
    }
}

fn used_too_early(used: &Undeclared, declared: Span) -> Box<Error> {
    let name = &used.name;
    Error::new(used.span, format!("`{name}` is used before its declaration"))
        .label("not declared yet: C++ reads a file from its top")
        .help(format!("move this below `{name}`, or declare `{name}` above"))
        .note("it is declared here", declared)
}
