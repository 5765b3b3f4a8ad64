//! Global variables, and variables whose values are known at compile time.

use super::{Base, Lower, Memory, Place, Value};
use crate::ir::{Global, space};
use crate::run::arithmetic;
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{Argument, TypeId};
use std::rc::Rc;

const MOST_GLOBAL: u64 = 64 << 20;

impl Lower<'_> {
    /// Reserves memory in the heap for the whole run.
    pub fn add_global(
        &mut self,
        name: &str,
        size: u64,
        align: u64,
        on_device: bool,
        is_constant: bool,
        init: Option<Vec<u8>>,
    ) -> u64 {
        let offset = (self.heap + 32).next_multiple_of(align.max(16));
        self.heap = offset + size;
        let address = space::HEAP + offset;
        let name = name.to_owned();
        self.globals.push(Global { name, address, size, on_device, is_constant, init, symbol: None });
        address
    }

    /// A variable, or an instance of a variable template.
    pub fn variable_value(
        &mut self,
        variables: &[Rc<Variable>],
        segment: &Segment,
        span: Span,
    ) -> Result<Value> {
        let primary = &variables[0];
        if primary.template.is_empty() && primary.specialized.is_none() {
            // The last declaration with an initialiser wins.
            let chosen = variables
                .iter()
                .rev()
                .find(|variable| !matches!(variable.init, Init::None))
                .unwrap_or(primary);
            let namespace = chosen.namespace;
            let chosen = chosen.clone();
            return self.in_frame(super::Scope::new(), namespace, None, |lower| {
                lower.global_value(&chosen, Vec::new())
            });
        }
        let given = match &segment.arguments {
            Some(arguments) => self.template_arguments(arguments)?,
            None => Vec::new(),
        };
        let arguments =
            self.completed(&primary.template, given, &super::Scope::new(), primary.namespace, span)?;
        for special in variables.iter().filter(|variable| variable.specialized.is_some()) {
            let Some(pattern) = &special.specialized else { continue };
            let mut deduced = super::overloads::Deduced::default();
            let fits = self.in_frame(super::Scope::new(), special.namespace, None, |lower| {
                lower.matches_pattern(&special.template, pattern, &arguments, &mut deduced)
            })?;
            if fits {
                return self.in_frame(deduced.scope, special.namespace, None, |lower| {
                    lower.global_value(special, arguments.clone())
                });
            }
        }
        let scope = self.argument_scope(&primary.template, &arguments);
        self.in_frame(scope, primary.namespace, None, |lower| lower.global_value(primary, arguments.clone()))
    }

    /// Returns the value of a global variable. Runs in a scope where the names around it are known.
    pub fn global_value(&mut self, variable: &Variable, arguments: Vec<Argument>) -> Result<Value> {
        if variable.storage.shared {
            let outer = std::mem::replace(&mut self.span, variable.span);
            let value = self.shared_value(variable)?;
            self.span = outer;
            return Ok(value);
        }
        let key = (variable.id, arguments);
        if let Some(known) = self.global_places.get(&key) {
            let known = known.clone();
            self.check_side(variable, &known)?;
            return Ok(known);
        }
        let outer = self.span;
        let ty = match (&variable.ty.kind, &variable.init) {
            (TypeKind::Array(of, None), Init::Braces(items)) => {
                let of = self.type_of_name(of)?;
                self.array_type(of, items.len() as u64)?
            }
            (TypeKind::Array(of, None), Init::Value(Expr { kind: ExprKind::Str(text), .. })) => {
                let of = self.type_of_name(of)?;
                self.array_type(of, text.len() as u64 + 1)?
            }
            (TypeKind::Auto, Init::Value(value)) => self.dry(|lower| lower.expression(value))?.ty,
            _ => self.written(&variable.ty)?.ty,
        };
        let is_const = self.is_const_type(&variable.ty) || variable.storage.is_constexpr;
        let on_device = variable.storage.device || variable.storage.constant;
        // A constant number needs no memory.
        let is_scalar = self.prim(ty).is_some();
        let has_init = !matches!(variable.init, Init::None);
        if is_scalar && is_const && has_init && !self.in_memory.contains(&variable.id) {
            let value = match &variable.init {
                Init::Value(value) => self.constant_init(value, ty),
                Init::Braces(items) | Init::Parentheses(items) if items.len() == 1 => {
                    self.constant_init(&items[0], ty)
                }
                _ => Ok(Value::constant(ty, 0)),
            };
            match value {
                Ok(value) => {
                    let value =
                        Value { is_const: true, is_lvalue: true, declaration: Some(variable.id), ..value };
                    self.global_places.insert(key, value.clone());
                    self.span = outer;
                    return Ok(value);
                }
                Err(error) if variable.storage.is_constexpr || self.again => return Err(error),
                Err(error) => return Err(error),
            }
        }
        let (size, align) = self.types.layout(ty);
        if size > MOST_GLOBAL {
            return Err(Error::new(variable.span, format!("a variable of {size} bytes is too large")));
        }
        let mut bytes = vec![0u8; size as usize];
        self.span = variable.span;
        self.constant_init_of(&variable.init, ty, &mut bytes)?;
        // Both sides can read only values that are constant on both.
        let shared_by_both = is_const && !on_device;
        let address = self.add_global(
            &variable.name,
            size,
            align,
            on_device || shared_by_both,
            variable.storage.constant || is_const,
            Some(bytes),
        );
        if let Some(global) = self.globals.last_mut().filter(|_| on_device) {
            global.symbol = symbol(self.tree, variable);
        }
        let memory = Memory { base: Base::Const(address), index: None, offset: 0 };
        let value = Value { is_const, declaration: None, ..Value::lvalue(ty, Place::Memory(memory)) };
        self.global_places.insert(key, value.clone());
        self.span = outer;
        self.check_side(variable, &value)?;
        Ok(value)
    }

    fn check_side(&self, variable: &Variable, value: &Value) -> Result<()> {
        let on_device = variable.storage.device || variable.storage.constant;
        if self.on_device && !on_device && !value.is_const && matches!(value.place, Place::Memory(_)) {
            return Err(Error::new(
                self.span,
                format!("`{}` is a variable of the host: a kernel cannot reach it", variable.name),
            )
            .help("pass it as an argument, or declare it as `__device__`")
            .note("it is declared here", variable.span));
        }
        Ok(())
    }

    fn is_const_type(&self, ty: &TypeName) -> bool {
        match &ty.kind {
            TypeKind::Array(of, _) => of.is_const,
            _ => ty.is_const,
        }
    }

    pub(super) fn constant_init(&mut self, value: &Expr, ty: TypeId) -> Result<Value> {
        let value = self.constant_expression(value, "the value of a constant outside of functions")?;
        if self.types.get(value.ty) != self.types.get(ty) {
            return self.converted_scalar(value, ty, false);
        }
        Ok(value)
    }

    /// Returns a value in constant memory at a known address, if nothing can change it.
    pub fn constant_memory(&self, memory: &Memory, ty: TypeId) -> Option<u64> {
        let (Base::Const(base), None) = (memory.base, memory.index) else { return None };
        let prim = self.prim(ty)?;
        let at = base.wrapping_add(memory.offset as u64);
        let size = crate::ir::size_of(prim);
        let global = self.globals.iter().find(|global| {
            at >= global.address
                && at.checked_add(size).is_some_and(|end| end <= global.address + global.size)
        })?;
        // The host fills `__constant__` memory that is not `const`.
        let is_fixed = global.is_constant && self.global_places.values().any(|value| {
            value.is_const
                && matches!(value.place, Place::Memory(Memory { base: Base::Const(base), .. }) if base == global.address)
        });
        if !is_fixed {
            return None;
        }
        let bytes = global.init.as_ref()?;
        let start = (at - global.address) as usize;
        let mut bits = [0u8; 8];
        bits[..size as usize].copy_from_slice(&bytes[start..start + size as usize]);
        let bits = u64::from_le_bytes(bits);
        Some(arithmetic::narrowed(prim, bits))
    }
}

/// The name of a variable outside of functions, with its namespaces. An instance of a template has none.
fn symbol(tree: &Tree, variable: &Variable) -> Option<String> {
    let known = tree.namespaces[variable.namespace].variables.get(&variable.name)?;
    known.iter().find(|known| known.id == variable.id && known.template.is_empty())?;
    let (mut name, mut at) = (variable.name.to_string(), variable.namespace);
    while at != 0 {
        let namespace = &tree.namespaces[at];
        if let Some(outer) = namespace.name.as_ref().filter(|outer| !outer.is_empty()) {
            name = format!("{outer}::{name}");
        }
        at = namespace.parent;
    }
    Some(name)
}
