//! Warnings about local variables that are read before they have a value, on every path. A variable that something may
//! have written, such as another iteration of a loop, is not reported.

use super::builtins;
use crate::source::{Error, Errors};
use crate::syntax::ast::*;
use crate::types::{Types, of_prim};
use std::rc::Rc;

/// The names in scope, innermost last; those of variables that certainly have no value, with their declarations.
struct Unwritten<'a> {
    tree: &'a Tree,
    names: Vec<(&'a Name, Option<&'a Variable>)>,
    found: Errors,
    depth: u32,
}

/// The maximum depth of nesting. Unused code may be nested more deeply than code that is lowered.
const DEEPEST: u32 = 400;

/// The warnings about a program, but not about the emulator's headers.
#[cold]
pub fn warnings(tree: &Tree) -> Errors {
    let mut all = Unwritten { tree, names: Vec::new(), found: Errors::default(), depth: 0 };
    for namespace in &tree.namespaces {
        all.functions(namespace.functions.values().flatten());
        for of in namespace.structs.values().flatten() {
            all.functions(of.functions.iter().chain(&of.constructors).chain(&of.conversions));
        }
    }
    let place = |warning: &Error| (warning.span.file, warning.span.line, warning.span.column);
    let mut in_order: Vec<&Error> = Vec::new();
    for warning in tree.warnings.iter().chain(&all.found.0) {
        if !tree.in_headers.contains(&warning.span.file) {
            let at = in_order.partition_point(|known| place(known) <= place(warning));
            in_order.insert(at, warning);
        }
    }
    let mut warnings = Errors::default();
    // Those beyond the maximum are left out.
    let _ = in_order.into_iter().try_for_each(|warning| warnings.add(Box::new(warning.clone())));
    warnings
}

// Cold code is compiled for size.
impl<'a> Unwritten<'a> {
    fn functions(&mut self, all: impl Iterator<Item = &'a Rc<Function>>) {
        for function in all {
            self.names.clear();
            function.body.iter().for_each(|body| self.statement(body));
        }
    }

    fn scope(&mut self, walk: impl FnOnce(&mut Self)) {
        let count = self.names.len();
        walk(self);
        self.names.truncate(count);
    }

    fn variable(&mut self, name: &Name) -> Option<&mut Option<&'a Variable>> {
        self.names.iter_mut().rev().find(|(known, _)| *known == name).map(|(_, variable)| variable)
    }

    /// Something may write this variable.
    fn written(&mut self, name: &Name) {
        if let Some(variable) = self.variable(name) {
            *variable = None;
        }
    }

    #[cold]
    fn statement(&mut self, statement: &'a Stmt) {
        match &statement.kind {
            StmtKind::Expr(value) | StmtKind::Return(Some(value)) => self.read(value),
            StmtKind::Variables(variables) => {
                variables.iter().for_each(|variable| self.declaration(variable))
            }
            StmtKind::Bindings { names, value, .. } => {
                self.passed(value);
                self.names.extend(names.iter().map(|name| (name, None)));
            }
            StmtKind::Block(all) => self.scope(|walk| all.iter().for_each(|inner| walk.statement(inner))),
            StmtKind::If { first, condition, yes, no, .. } => self.scope(|walk| {
                first.iter().for_each(|first| walk.statement(first));
                walk.read(condition);
                walk.scope(|walk| walk.statement(yes));
                no.iter().for_each(|no| walk.scope(|walk| walk.statement(no)));
            }),
            StmtKind::For { first, condition, step, body } => self.scope(|walk| {
                first.iter().for_each(|first| walk.statement(first));
                walk.repeated(body, condition.iter().chain(step));
                condition.iter().for_each(|condition| walk.read(condition));
                walk.scope(|walk| walk.statement(body));
                step.iter().for_each(|step| walk.read(step));
            }),
            StmtKind::Range { variable, range, body } => self.scope(|walk| {
                walk.passed(range);
                walk.repeated(body, [].iter());
                walk.names.push((&variable.name, None));
                walk.statement(body);
            }),
            StmtKind::While(condition, body) => {
                self.repeated(body, std::iter::once(condition));
                self.read(condition);
                self.scope(|walk| walk.statement(body));
            }
            StmtKind::DoWhile(body, condition) => {
                self.repeated(body, std::iter::once(condition));
                self.scope(|walk| walk.statement(body));
                self.read(condition);
            }
            StmtKind::Switch(value, body) => {
                self.read(value);
                self.statement(body);
            }
            // A jump to it may come from anywhere.
            StmtKind::Label(_) => self.names.iter_mut().for_each(|(_, variable)| *variable = None),
            StmtKind::Asm { output, inputs, .. } => {
                inputs.iter().for_each(|input| self.read(input));
                output.iter().for_each(|output| self.passed(output));
            }
            _ => {}
        }
    }

    #[cold]
    fn declaration(&mut self, variable: &'a Variable) {
        let is_plain = matches!(&variable.ty.kind, TypeKind::Prim(_) | TypeKind::Pointer(_));
        match &variable.init {
            Init::None => {}
            Init::Value(value) if matches!(variable.ty.kind, TypeKind::Reference(_)) => self.passed(value),
            Init::Value(value) => self.read(value),
            Init::Parentheses(all) | Init::Braces(all) => {
                all.iter().for_each(|value| if is_plain { self.read(value) } else { self.passed(value) });
            }
        }
        let storage = variable.storage;
        let is_elsewhere = storage.shared || storage.is_static || storage.is_extern || storage.constant;
        let has_none = matches!(variable.init, Init::None) && is_plain && !is_elsewhere;
        self.names.push((&variable.name, has_none.then_some(variable)));
    }

    /// Enters a loop. A variable that the loop assigns has a value from the previous iteration, unless every assignment
    /// reads it.
    #[cold]
    fn repeated(&mut self, body: &'a Stmt, more: impl Iterator<Item = &'a Expr>) {
        let (mut all, mut passed) = (more.collect(), Vec::new());
        expressions(body, &mut all, &mut passed);
        passed.into_iter().filter_map(name).for_each(|name| self.written(name));
        while let Some(value) = all.pop() {
            match &value.kind {
                ExprKind::Assign(None, target, source) => {
                    if let Some(name) = name(target).filter(|name| !mentions(source, name)) {
                        self.written(name);
                    }
                }
                ExprKind::Unary(Unary::AddressOf, inner) => {
                    name(inner).into_iter().for_each(|name| self.written(name));
                }
                ExprKind::Call(function, arguments) => {
                    for (number, argument) in arguments.iter().enumerate() {
                        if let Some(name) = name(argument).filter(|_| !self.is_by_value(function, number)) {
                            self.written(name);
                        }
                    }
                }
                ExprKind::Construct(_, all, _) => {
                    all.iter().filter_map(name).for_each(|name| self.written(name));
                }
                ExprKind::Lambda(_) => self.names.iter_mut().for_each(|(_, variable)| *variable = None),
                _ => {}
            }
            parts(value, &mut all);
        }
    }

    /// Whether a function takes a parameter by value, in all its overloads.
    fn is_by_value(&self, function: &Expr, number: usize) -> bool {
        let Some(name) = name(function) else { return false };
        let all =
            || self.tree.namespaces.iter().flat_map(|namespace| namespace.functions.get(name)).flatten();
        let is_reference = |ty: &TypeName| matches!(ty.kind, TypeKind::Reference(_) | TypeKind::Forward(_));
        match all().next() {
            None => builtins::is_known(name),
            Some(_) => all().all(|function| {
                function.parameters.get(number).is_none_or(|parameter| {
                    !is_reference(&parameter.ty)
                        && !matches!(parameter.ty.kind, TypeKind::Pack(_))
                        && !parameter.is_pack
                })
            }),
        }
    }

    fn read(&mut self, value: &'a Expr) {
        if self.depth < DEEPEST && self.names.iter().any(|(_, variable)| variable.is_some()) {
            self.depth += 1;
            self.read_inner(value);
            self.depth -= 1;
        }
    }

    #[cold]
    fn read_inner(&mut self, value: &'a Expr) {
        match &value.kind {
            ExprKind::Path(_) => {
                let Some(variable) = name(value).and_then(|name| self.variable(name)?.take()) else { return };
                let message = format!("`{}` is read before it has a value", variable.name);
                let warning = Error::new(value.span, message).note("it is declared here", variable.span);
                let help = match variable.ty.kind {
                    TypeKind::Prim(prim) => {
                        let ty = Types::default().name(of_prim(prim));
                        format!("write `{ty} {} = 0;`", variable.name)
                    }
                    _ => "give it a value where it is declared".to_owned(),
                };
                self.found.0.push(warning.help(help).warning());
            }
            ExprKind::Assign(operator, target, source) => {
                self.read(source);
                match name(target) {
                    Some(name) if operator.is_none() => self.written(name),
                    _ => self.read(target),
                }
            }
            ExprKind::Unary(Unary::AddressOf, inner) => self.passed(inner),
            ExprKind::Call(function, arguments) => {
                self.read(function);
                for (number, argument) in arguments.iter().enumerate() {
                    match self.is_by_value(function, number) {
                        true => self.read(argument),
                        false => self.passed(argument),
                    }
                }
            }
            ExprKind::Cast(_, ty, inner) => match &ty.kind {
                TypeKind::Prim(Prim::Void) | TypeKind::Reference(_) | TypeKind::Forward(_) => {
                    self.passed(inner)
                }
                _ => self.read(inner),
            },
            ExprKind::Construct(ty, all, _) if !matches!(ty.kind, TypeKind::Prim(_)) => {
                all.iter().for_each(|inner| self.passed(inner));
            }
            ExprKind::Lambda(_) => self.names.iter_mut().for_each(|(_, variable)| *variable = None),
            ExprKind::SizeofExpr(_) => {}
            _ => {
                let mut inner = Vec::new();
                parts(value, &mut inner);
                inner.into_iter().for_each(|inner| self.read(inner));
            }
        }
    }

    /// The value may be written, through a reference.
    fn passed(&mut self, value: &'a Expr) {
        match &value.kind {
            ExprKind::Path(_) => name(value).into_iter().for_each(|name| self.written(name)),
            ExprKind::Condition(condition, yes, no) => {
                self.read(condition);
                self.passed(yes);
                self.passed(no);
            }
            ExprKind::Index(inner, index) => {
                self.passed(inner);
                self.read(index);
            }
            ExprKind::Member(inner, ..) | ExprKind::Cast(_, _, inner) | ExprKind::Expand(inner) => {
                self.passed(inner);
            }
            _ => self.read(value),
        }
    }
}

fn name(value: &Expr) -> Option<&Name> {
    match &value.kind {
        ExprKind::Path(path) if path.segments.len() == 1 && !path.global => Some(&path.segments[0].name),
        _ => None,
    }
}

fn mentions(value: &Expr, of: &Name) -> bool {
    let mut all = vec![value];
    while let Some(value) = all.pop() {
        if name(value) == Some(of) {
            return true;
        }
        parts(value, &mut all);
    }
    false
}

/// Adds the expressions within an expression, in their order, but not those of lambdas.
#[cold]
fn parts<'a>(value: &'a Expr, into: &mut Vec<&'a Expr>) {
    match &value.kind {
        ExprKind::Unary(_, a)
        | ExprKind::Member(a, ..)
        | ExprKind::Cast(_, _, a)
        | ExprKind::Expand(a)
        | ExprKind::SizeofExpr(a) => into.push(a),
        ExprKind::Binary(_, a, b) | ExprKind::Assign(_, a, b) | ExprKind::Index(a, b) => {
            into.extend([&**a, b])
        }
        ExprKind::Condition(a, b, c) => into.extend([&**a, b, c]),
        ExprKind::Call(function, all) => {
            into.push(function);
            into.extend(all);
        }
        ExprKind::Launch(function, config, all) => {
            into.push(function);
            into.extend(config.iter().chain(all));
        }
        ExprKind::Construct(_, all, _) | ExprKind::Braces(all) => into.extend(all),
        ExprKind::Fold { pack, first, .. } => {
            into.push(pack);
            into.extend(first.as_deref());
        }
        _ => {}
    }
}

/// Adds the expressions of a statement, and of the statements within it; those that may be written, to `passed` as
/// well.
#[cold]
fn expressions<'a>(statement: &'a Stmt, into: &mut Vec<&'a Expr>, passed: &mut Vec<&'a Expr>) {
    match &statement.kind {
        StmtKind::Expr(value) | StmtKind::Return(Some(value)) | StmtKind::Case(value) => into.push(value),
        StmtKind::Variables(variables) => {
            for variable in variables {
                match &variable.init {
                    Init::None => {}
                    Init::Value(value) => {
                        into.push(value);
                        if matches!(variable.ty.kind, TypeKind::Reference(_)) {
                            passed.push(value);
                        }
                    }
                    Init::Parentheses(all) | Init::Braces(all) => into.extend(all),
                }
            }
        }
        StmtKind::Bindings { value, .. } => passed.push(value),
        StmtKind::Block(all) => all.iter().for_each(|inner| expressions(inner, into, passed)),
        StmtKind::If { first, condition, yes, no, .. } => {
            into.push(condition);
            first.iter().chain(no).chain([yes]).for_each(|inner| expressions(inner, into, passed));
        }
        StmtKind::For { first, condition, step, body } => {
            into.extend(condition.iter().chain(step));
            first.iter().chain([body]).for_each(|inner| expressions(inner, into, passed));
        }
        StmtKind::Range { range: value, body, .. }
        | StmtKind::While(value, body)
        | StmtKind::DoWhile(body, value)
        | StmtKind::Switch(value, body) => {
            into.push(value);
            expressions(body, into, passed);
        }
        StmtKind::Asm { output, inputs, .. } => {
            into.extend(inputs);
            passed.extend(output);
        }
        _ => {}
    }
}
