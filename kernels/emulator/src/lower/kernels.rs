//! `main`, kernels, and launches.

use super::lookup::Found;
use super::overloads::Given;
use super::{Base, Binding, Frame, Lower, Memory, Outcome, Place, Scope, Value};
use crate::ir::{KernelParameter, Op, Program, space};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, Argument, Type, TypeId, VOID};
use std::rc::Rc;

/// Local memory of `main`, which is part of the heap, and its maximum.
pub const HOST_STACK: u64 = 1 << 20;
const MOST_HOST_STACK: u64 = 64 << 20;
/// Memory for the local variables of recursive functions, in `main` and in each device thread.
const HOST_FRAMES: u64 = 8 << 20;
const DEVICE_FRAMES: u64 = 16 << 10;
/// The maximum number of bytes that a launch can pass.
const MOST_PARAMETERS: u64 = 4096;

impl Lower<'_> {
    pub fn main_program(&mut self, function: &Rc<Function>) -> Result<Program> {
        self.on_device = false;
        let function = &self.on_this_side(function);
        let Some(body) = &function.body else { return self.error("`main` has no body") };
        let end = self.program.label();
        let base = self.heap.next_multiple_of(256);
        self.program.local_base = space::HEAP + base;
        let stack = self.globals.iter().find(|global| global.name == "<stack>");
        let (at, size) = match stack.map(|global| (global.address, global.size)) {
            Some(known) => known,
            None => {
                let size = self.host_stack.max(HOST_STACK);
                (self.add_global("<stack>", size, 256, false, false, None), size)
            }
        };
        self.program.local_base = at;
        self.frames.push(program_frame(function, Scope::new(), end, function.span));
        for (i, parameter) in function.parameters.iter().enumerate() {
            let ty = self.type_of_name(&parameter.ty)?;
            let value = Value {
                is_lvalue: true,
                declaration: Some(parameter.id),
                ..Value::constant(ty, u64::from(i == 0))
            };
            if let Some(name) = &parameter.name {
                self.bind(name, Binding::Value(value));
            }
        }
        let before = self.recovered;
        self.statement(body)?;
        self.unless_failed(before)?;
        self.check_labels()?;
        self.program.place(end);
        self.frames.pop();
        self.recursive_functions()?;
        self.program.place_stack(HOST_FRAMES);
        let needed = self.program.local_bytes;
        if needed > MOST_HOST_STACK {
            let message = format!("`main` has more than {MOST_HOST_STACK} bytes of local variables");
            return Err(Error::new(function.span, message));
        }
        if needed > size {
            // Retries with a large enough stack.
            self.host_stack = needed.next_multiple_of(HOST_STACK);
            self.globals.retain(|global| global.name != "<stack>");
            return self.retry();
        }
        std::mem::take(&mut self.program).finish("main".to_owned(), function.span)
    }

    /// Lowers an instance of a kernel, and returns its number.
    pub fn kernel_program(
        &mut self,
        function: &Rc<Function>,
        arguments: Vec<Argument>,
        scope: Scope,
    ) -> Result<u32> {
        let key = (function.id, arguments.clone());
        if let Some(number) = self.kernel_numbers.get(&key) {
            return Ok(*number);
        }
        let program = self.repeated(|lower| lower.kernel_body(function, &arguments, scope.clone()))?;
        let number = self.kernels.len() as u32;
        self.kernels.push(program);
        self.kernel_numbers.insert(key, number);
        Ok(number)
    }

    fn kernel_body(
        &mut self,
        function: &Rc<Function>,
        arguments: &[Argument],
        scope: Scope,
    ) -> Result<Program> {
        self.on_device = true;
        let Some(body) = &function.body else {
            return Err(Error::new(function.span, format!("the kernel `{}` has no body", function.name)));
        };
        let end = self.program.label();
        self.program.local_base = space::LOCAL;
        let call = if function.template.is_empty() { function.span } else { self.span };
        self.enter(function, &scope, None);
        self.frames.push(program_frame(function, scope, end, call));
        let result = self.type_of_name(&function.result)?;
        if result != VOID {
            return Err(Error::new(function.result.span, "a kernel has no result: it is `void`"));
        }
        let (mut parameters, mut names, mut offset) = (Vec::new(), Vec::new(), 0u64);
        let (mut parts, mut pointers) = (Vec::new(), Vec::new());
        for parameter in &function.parameters {
            self.span = parameter.span;
            let written = self.written(&parameter.ty)?;
            if written.is_reference {
                return self.error("a kernel takes its parameters by value, not by reference");
            }
            if parameter.is_pack {
                return self.error("kernels with packs of parameters are not part of the subset");
            }
            if let Some(closure) = self.lambdas.get(&written.ty).cloned() {
                let name = parameter.name.as_deref().unwrap_or("").to_owned();
                let begin = offset;
                let value = self.closure_in_parameters(&closure, &mut offset, &mut parts)?;
                let size = (offset - begin) as u32;
                parameters.push(KernelParameter { name, offset: begin as u32, size });
                names.push(self.types.name(written.ty));
                if let Some(name) = &parameter.name {
                    self.bind(name, Binding::Value(Value { ty: written.ty, ..value }));
                }
                continue;
            }
            let (size, align) = self.types.layout(written.ty);
            offset = offset.next_multiple_of(align);
            let memory = Memory { base: Base::Const(space::PARAMETERS + offset), index: None, offset: 0 };
            let place = Value { is_const: true, ..Value::lvalue(written.ty, Place::Memory(memory)) };
            let name = parameter.name.as_deref().unwrap_or("").to_owned();
            self.pointers_of(&name, written.ty, offset, &mut pointers);
            parameters.push(KernelParameter { name, offset: offset as u32, size: size as u32 });
            names.push(self.types.name(written.ty));
            parts.extend(self.types.leaves(written.ty).iter().map(|leaf| (offset + leaf.offset) as u32));
            offset += size;
            if self.is_compile_time(written.ty) {
                return self.error("functions as arguments of kernels are not part of the subset");
            }
            let is_written = parameter.name.as_ref().is_some_and(|name| function.written.contains(name))
                || self.in_rows.contains(&parameter.id);
            let value = if self.in_memory.contains(&parameter.id)
                || is_written && self.types.rows(written.ty).is_none()
            {
                let slot = self.local_slot(parameter.name.as_deref().unwrap_or(""), written.ty);
                self.assigned(&slot, place)?;
                Value { is_const: written.is_const, ..slot }
            } else if self.types.rows(written.ty).is_none() {
                place
            } else {
                let loaded = self.loaded(place)?;
                Value { is_lvalue: true, is_const: written.is_const, is_stable: !is_written, ..loaded }
            };
            if let Some(name) = &parameter.name {
                self.bind(name, Binding::Value(Value { declaration: Some(parameter.id), ..value }));
            }
        }
        if offset > MOST_PARAMETERS {
            return Err(Error::new(
                function.span,
                format!("the parameters take {offset} bytes; a launch passes {MOST_PARAMETERS} at most"),
            ));
        }
        let before = self.recovered;
        self.statement(body)?;
        self.unless_failed(before)?;
        self.check_labels()?;
        self.program.place(end);
        self.frames.pop();
        self.recursive_functions()?;
        self.program.place_stack(DEVICE_FRAMES);
        let templates = match arguments {
            [] => String::new(),
            all => {
                let all: Vec<String> = all.iter().map(|argument| self.argument_name(argument)).collect();
                format!("<{}>", all.join(", "))
            }
        };
        let name = format!("{}{templates}({})", function.name, names.join(", "));
        let (shared, most) = (self.program.shared_bytes, crate::run::launch::MOST_SHARED);
        if shared > most {
            return Err(Error::new(
                function.span,
                format!("`{}` uses too much shared data ({shared:#x} bytes, {most:#x} max)", function.name),
            ));
        }
        self.program.debug = self.debug(pointers);
        let mut program = std::mem::take(&mut self.program).finish(name, function.span)?;
        program.parameters = parameters;
        program.parameter_bytes = offset as u32;
        program.parameter_parts = parts;
        Ok(program)
    }

    /// Lowers `kernel<<<grid, block, shared, stream>>>(arguments)`.
    pub fn launch(
        &mut self,
        function: &Expr,
        config: &[Expr],
        arguments: &[Expr],
        span: Span,
    ) -> Result<Value> {
        if self.on_device {
            return self.error("kernels that launch kernels are not part of the subset");
        }
        let ExprKind::Path(path) = &function.kind else {
            return self.error("a launch needs the name of a kernel");
        };
        self.span = path.span;
        let callee = self.path_value(path)?;
        let Place::Functions(functions) = &callee.place else {
            return self.error("a launch needs a kernel, and this is not one");
        };
        self.span = span;
        if config.len() < 2 || config.len() > 4 {
            return self.error(
                "a launch takes `<<<blocks, threads>>>`, and optionally bytes of shared memory and a stream",
            );
        }
        let dim3 = self.named_type("dim3")?;
        let mut operands = Vec::new();
        for (i, item) in config.iter().enumerate() {
            let value = match &item.kind {
                ExprKind::Braces(items) => self.made_from_list(dim3, items, true)?,
                _ => self.expression(item)?,
            };
            self.span = item.span;
            if i < 2 {
                let value = self.coerced(value, dim3)?;
                let value = self.copied(value)?;
                let Place::Row(row) = value.place else { return self.error("a `dim3` is needed here") };
                operands.extend((0..3).map(|axis| (crate::ir::Prim::U32, row + axis)));
            } else {
                let ty = if i == 2 { types::U64 } else { self.named_type("cudaStream_t")? };
                let value = self.coerced(value, ty)?;
                let value = self.copied(value)?;
                operands.push((crate::ir::Prim::U64, self.row(&value)?));
            }
        }
        let zero = self.program.constant(0, true);
        while operands.len() < 8 {
            operands.push((crate::ir::Prim::U64, zero));
        }
        self.span = span;
        let given = self.given(arguments)?;
        let chosen = self.choose(functions, &given, span)?;
        if !chosen.function.qualifiers.global {
            return Err(Error::new(span, format!("`{}` is not a kernel", chosen.function.name))
                .help("a kernel is declared as `__global__ void`")
                .note("it is declared here", chosen.function.span));
        }
        let function = chosen.function.clone();
        // The parameter types are those of the instance.
        let parameters: Vec<TypeId> =
            self.in_frame(chosen.scope.clone(), function.namespace, None, |lower| {
                function.parameters.iter().map(|parameter| lower.type_of_name(&parameter.ty)).collect()
            })?;
        let mut given = given.into_iter();
        for (i, ty) in parameters.iter().enumerate() {
            let value = match given.next() {
                Some(Given::Value(value)) => value,
                Some(Given::Braces(items, _)) => self.made_from_list(*ty, items, true)?,
                None => match &function.parameters[i].default {
                    Some(default) => self.expression(default)?,
                    None => return self.error("an argument is missing"),
                },
            };
            if let Some(argument) = arguments.get(i) {
                self.span = argument.span;
            }
            if let Place::Closure(closure) = &value.place {
                for (_, captured) in self.passed_captures(closure)? {
                    self.parts(&captured, &mut operands)?;
                }
                continue;
            }
            let value = self.coerced(value, *ty)?;
            self.parts(&value, &mut operands)?;
        }
        self.span = span;
        let number = self.kernel_program(&function, chosen.arguments, chosen.scope)?;
        let first = self.program.operands.len() as u32;
        let count = operands.len() as u32;
        self.program.operands.extend(operands);
        self.emit(Op::Launch { kernel: number, first, count });
        Ok(Value::new(VOID, Place::Nothing))
    }

    /// Appends all parts of an argument to the operands.
    fn parts(&mut self, value: &Value, operands: &mut Vec<(crate::ir::Prim, u32)>) -> Result<()> {
        for leaf in self.types.leaves(value.ty) {
            let leaf_type = types::of_prim(leaf.prim);
            let part = self.raw_field(value, leaf.offset, leaf.row, leaf_type);
            let part = self.loaded(part)?;
            let part = self.copied(part)?;
            operands.push((leaf.prim, self.row(&part)?));
        }
        Ok(())
    }

    /// A type from the headers.
    pub fn named_type(&mut self, name: &str) -> Result<TypeId> {
        let name: Name = name.into();
        let path = Path { global: true, segments: vec![Segment { name, arguments: None }], span: self.span };
        self.path_type(&path)
    }

    /// A struct from the headers, built from its parts.
    pub fn struct_of_parts(&mut self, name: &str, parts: &[u32]) -> Result<Value> {
        let ty = self.named_type(name)?;
        let row = self.program.rows(parts.len() as u32);
        for (i, part) in parts.iter().enumerate() {
            self.emit(Op::Move32 { d: row + i as u32, a: *part });
        }
        Ok(Value { is_const: true, ..Value::new(ty, Place::Row(row)) })
    }

    /// Whether a name is a kernel, for messages and tests.
    pub fn is_kernel(&self, name: &Name) -> bool {
        matches!(self.find(name), Some(Found::Functions(found)) if found.candidates.iter().any(|c| c.0.qualifiers.global))
    }

    pub fn is_struct(&self, ty: TypeId) -> bool {
        matches!(self.types.get(ty), Type::Struct(_))
    }
}

pub fn program_frame(function: &Rc<Function>, scope: Scope, end: u32, call: Span) -> Frame {
    Frame {
        scopes: vec![scope, Scope::new()],
        namespace: function.namespace,
        this: None,
        of_struct: None,
        result: None,
        returns_reference: false,
        outcome: Outcome::Program,
        end,
        loops: Vec::new(),
        alive: Vec::new(),
        function: Some(function.clone()),
        arguments: Vec::new(),
        call,
        labels: Vec::new(),
    }
}
