//! Lowers the syntax tree to instructions: looks up names, checks types, instantiates templates, inlines functions.
//!
//! A template is lowered once for each set of arguments, when it is used, in a scope that binds its parameters. Since
//! almost every call is inlined, a reference to a variable is simply that variable's place, and a lambda is its
//! captures. Functions that call themselves are in [`recursion`].
//!
//! Variables live in rows. One whose address is taken must be in memory; if that turns out in the middle of a
//! function, the declaration is noted in [`Lower::in_memory`] and the program is lowered again.

pub mod aggregates;
pub mod assignment;
pub mod builtins;
pub mod calls;
pub mod closures;
mod constant_objects;
mod constructors;
mod conversions;
pub mod debug;
pub mod declarations;
mod deduction;
mod destructors;
pub mod emit;
pub mod expressions;
pub mod globals;
pub mod host_calls;
mod inlining;
mod jumps;
pub mod kernels;
pub mod lookup;
mod loops;
pub mod members;
pub mod operators;
pub mod overloads;
mod packs;
mod parameters;
mod pointers;
pub mod printing;
mod recovery;
pub mod recursion;
mod returns;
mod saved;
pub mod statements;
pub mod structs;
pub mod type_names;
mod unknown_names;
mod unused;
mod unwritten;
pub mod warp_calls;
mod widths;

use crate::ir::{Global, Op, Prim, Program, Row, Scaled};
use crate::source::{Error, Errors, Result, Span};
use crate::syntax::ast::*;
use crate::types::{Argument, StructId, TypeId, Types};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Base {
    Const(u64),
    Row(Row),
}

/// base + index · scale + offset
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    pub base: Base,
    pub index: Option<Index>,
    pub offset: i64,
}

/// An index, and that of the next dimension, if any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Index {
    pub first: Scaled,
    pub second: Option<Scaled>,
}

#[derive(Clone, Debug)]
pub enum Place {
    Nothing,
    Const(u64),
    Row(Row),
    Memory(Memory),
    Closure(Rc<closures::Closure>),
    Functions(Rc<lookup::Functions>),
}

#[derive(Clone, Debug)]
pub struct Value {
    pub ty: TypeId,
    pub place: Place,
    pub is_lvalue: bool,
    pub is_const: bool,
    /// Nothing writes its rows while the value is in use.
    pub is_stable: bool,
    /// The variable that the value is, or is part of.
    pub declaration: Option<DeclId>,
}

impl Value {
    pub fn constant(ty: TypeId, bits: u64) -> Value {
        Value::new(ty, Place::Const(bits))
    }

    /// A temporary: a result that no variable holds.
    pub fn new(ty: TypeId, place: Place) -> Value {
        Value { ty, place, is_lvalue: false, is_const: false, is_stable: true, declaration: None }
    }

    pub fn lvalue(ty: TypeId, place: Place) -> Value {
        Value { ty, place, is_lvalue: true, is_const: false, is_stable: false, declaration: None }
    }

    pub fn as_const(&self) -> Option<u64> {
        match self.place {
            Place::Const(bits) => Some(bits),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Binding {
    Value(Value),
    Type(TypeId),
    Pack(Vec<Binding>),
    Alias(Rc<Alias>),
    Struct(Rc<Struct>),
    /// The declaration has an error.
    Failed,
}

pub type Scope = HashMap<Name, Binding>;

/// How a function returns its result.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The last statement is the only `return`.
    Tail(Option<Value>),
    /// The result goes to this place; for `auto`, the first `return` sets the type.
    Slot(Option<Value>, Row),
    /// `main`: the result is the exit code.
    Program,
}

/// A loop or a `switch`: where `break` and `continue` go, and the number of variables to keep alive.
#[derive(Clone, Copy)]
pub struct Loop {
    pub end: u32,
    pub step: Option<u32>,
    pub alive: usize,
}

/// A function that is being lowered.
#[derive(Clone)]
pub struct Frame {
    pub scopes: Vec<Scope>,
    pub namespace: NamespaceId,
    pub this: Option<Value>,
    pub of_struct: Option<StructId>,
    pub result: Option<TypeId>,
    pub returns_reference: bool,
    pub outcome: Outcome,
    pub end: u32,
    pub loops: Vec<Loop>,
    /// The variables that have destructors, in the order of their declaration.
    pub alive: Vec<Value>,
    pub function: Option<Rc<Function>>,
    /// Its template arguments.
    pub arguments: Vec<Argument>,
    pub call: Span,
    /// The target of `goto` for each label, with a position that mentions it.
    pub labels: Vec<(Name, u32, Span)>,
}

pub struct Lower<'a> {
    pub tree: &'a Tree,
    pub types: Types,
    pub instances: HashMap<(DeclId, Vec<Argument>), TypeId>,
    pub program: emit::Builder,
    pub frames: Vec<Frame>,
    /// Variables that must be in memory, and variables that must be in rows although nothing seems to write them.
    pub in_memory: HashSet<DeclId>,
    pub in_rows: HashSet<DeclId>,
    /// Functions that call themselves, which are not inlined.
    pub recursive: HashSet<recursion::Key>,
    /// One of these sets grew: the program must be lowered again.
    pub again: bool,
    /// The next type that is resolved may have a destructor: it is that of a local variable, or behind a pointer.
    pub may_be_destroyed: bool,
    pub globals: Vec<Global>,
    pub global_places: HashMap<(DeclId, Vec<Argument>), Value>,
    pub heap: u64,
    /// The known number of bytes of `main`'s local variables.
    pub host_stack: u64,
    pub strings: HashMap<Name, u64>,
    pub main: Option<Program>,
    pub kernels: Vec<Program>,
    pub kernel_numbers: HashMap<(DeclId, Vec<Argument>), u32>,
    pub on_device: bool,
    pub span: Span,
    pub closures: usize,
    /// The lambdas so far.
    pub lambdas: HashMap<TypeId, Rc<closures::Closure>>,
    pub depth: u32,
    /// The amount of lowering done so far, to stop templates that never end.
    pub work: u64,
    /// Errors that the lowering recovered from, and how often it did.
    pub errors: Errors,
    pub recovered: usize,
    /// Nesting depth of trials: while it is not 0, errors are not recorded.
    pub trials: u32,
    /// The functions whose bodies were lowered.
    pub lowered: HashSet<DeclId>,
}

/// The maximum size of a program.
const MOST_OPS: usize = 400_000;
const MOST_WORK: u64 = 6_000_000;
const MOST_CALLS: usize = 60;
const MOST_TRIES: usize = 200;

/// A lowered program.
pub struct Lowered {
    /// `None` if the program has no `main`.
    pub main: Option<Program>,
    pub kernels: Vec<Program>,
    pub globals: Vec<Global>,
    /// Bytes of the heap that the globals take.
    pub heap: u64,
    pub warnings: Errors,
}

impl<'a> Lower<'a> {
    pub fn new(tree: &'a Tree) -> Lower<'a> {
        Lower {
            tree,
            types: Types::default(),
            instances: HashMap::new(),
            program: emit::Builder::default(),
            frames: Vec::new(),
            in_memory: HashSet::new(),
            in_rows: HashSet::new(),
            recursive: HashSet::new(),
            again: false,
            may_be_destroyed: false,
            globals: Vec::new(),
            global_places: HashMap::new(),
            heap: 256,
            host_stack: 0,
            strings: HashMap::new(),
            main: None,
            kernels: Vec::new(),
            kernel_numbers: HashMap::new(),
            on_device: false,
            span: Span::default(),
            closures: 0,
            lambdas: HashMap::new(),
            depth: 0,
            work: 0,
            errors: Errors::default(),
            recovered: 0,
            trials: 0,
            lowered: HashSet::new(),
        }
    }

    /// Lowers `main`, all kernels that it launches, and the non-template kernels, for callers that launch them by
    /// name.
    pub fn lower(mut self) -> std::result::Result<Lowered, Errors> {
        let result = self.all_programs();
        if let Err(error) = result {
            // Whether it is the last error no longer matters.
            let _ = self.errors.add(error);
        } else {
            self.check_unused();
        }
        if !self.errors.0.is_empty() {
            return Err(self.errors);
        }
        let warnings = unwritten::warnings(self.tree);
        Ok(Lowered {
            main: self.main,
            kernels: self.kernels,
            globals: self.globals,
            heap: self.heap,
            warnings,
        })
    }

    fn all_programs(&mut self) -> Result<()> {
        self.check_assertions()?;
        if let Some(function) = self.tree.namespaces[0].functions.get("main").cloned()
            && let Some(function) = function.iter().find(|function| function.body.is_some())
        {
            match self.repeated(|lower| lower.main_program(function)) {
                Ok(program) => self.main = Some(program),
                Err(error) => self.errors.add(error)?,
            }
        }
        for namespace in 0..self.tree.namespaces.len() {
            let mut all: Vec<_> =
                self.tree.namespaces[namespace].functions.values().flatten().cloned().collect();
            all.sort_by_key(|function| function.id);
            for function in all {
                let is_plain = function.template.is_empty() && !function.is_specialization;
                if function.qualifiers.global
                    && is_plain
                    && function.body.is_some()
                    && let Err(error) = self.kernel_program(&function, Vec::new(), Scope::new())
                {
                    self.errors.add(error)?;
                }
            }
        }
        Ok(())
    }

    /// Lowers a program repeatedly until all variables that must be in memory are known.
    pub fn repeated<T>(&mut self, lower: impl Fn(&mut Self) -> Result<T>) -> Result<T> {
        for _ in 0..MOST_TRIES {
            self.again = false;
            let (errors, trials) = (self.errors.0.len(), self.trials);
            let outer_program = std::mem::take(&mut self.program);
            let outer_frames = std::mem::take(&mut self.frames);
            let (outer_device, outer_span, outer_depth) = (self.on_device, self.span, self.depth);
            let result = lower(self);
            self.program = outer_program;
            self.frames = outer_frames;
            (self.on_device, self.span, self.depth) = (outer_device, outer_span, outer_depth);
            self.trials = trials;
            if !self.again {
                return result;
            }
            self.errors.0.truncate(errors);
        }
        Err(Error::new(self.span, "this program takes the addresses of too many variables"))
    }

    /// Records that a variable needs another place, and ends this attempt.
    pub fn retry<T>(&mut self) -> Result<T> {
        self.again = true;
        Err(Error::new(self.span, "lowered again"))
    }

    pub fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::new(self.span, message))
    }

    pub fn frame(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    pub fn worked(&mut self) -> Result<()> {
        self.work += 1;
        if self.work > MOST_WORK || self.program.ops.len() > MOST_OPS {
            return Err(Error::new(
                self.span,
                "the program becomes too large: templates, or functions that are inlined, grow without end",
            )
            .last());
        }
        Ok(())
    }

    pub fn deeper<T>(&mut self, lower: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > 400 {
            let of_templates = self.frames.iter().filter_map(|frame| frame.of_struct);
            let count = of_templates.filter(|of| !self.types.structs[*of].declaration.template.is_empty());
            let message = match count.count() > 50 {
                true => "a template is instantiated without end: it needs a specialisation that ends it",
                false => "this is nested too deeply",
            };
            return Err(Error::new(self.span, message).last());
        }
        let result = lower(self);
        self.depth -= 1;
        result
    }

    /// Runs in its own scope, whose rows are freed afterwards.
    pub fn scoped<T>(&mut self, lower: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.frame().scopes.push(Scope::new());
        let rows = self.program.next_row;
        let variables = self.program.notes.variables();
        let alive = self.frame().alive.len();
        let result = lower(self).and_then(|result| self.destroy(alive).map(|()| result));
        self.frame().alive.truncate(alive);
        self.program.next_row = rows;
        self.program.notes.end_scope(variables);
        self.frame().scopes.pop();
        result
    }

    pub fn bind(&mut self, name: &Name, binding: Binding) {
        if let Binding::Value(value) = &binding {
            self.note_variable(name, value);
        }
        if let Some(scope) = self.frame().scopes.last_mut() {
            scope.insert(name.clone(), binding);
        }
    }

    /// Runs `lower` for its result and discards its instructions.
    pub fn dry<T>(&mut self, lower: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let saved = self.program.mark();
        let frames = self.frames.len();
        let frame = self.frames.last().cloned();
        let result = lower(self);
        self.program.reset(saved);
        self.frames.truncate(frames);
        if let (Some(last), Some(frame)) = (self.frames.last_mut(), frame) {
            *last = frame;
        }
        result
    }

    /// The host's or the device's version of a function: `__CUDA_ARCH__` is defined on the device only.
    pub fn on_this_side(&self, function: &Rc<Function>) -> Rc<Function> {
        let host = self.tree.host.get(&function.id).filter(|_| !self.on_device);
        host.unwrap_or(function).clone()
    }

    pub fn emit(&mut self, op: Op) {
        let span = self.span;
        self.program.emit(op, span);
    }

    pub fn prim(&self, ty: TypeId) -> Option<Prim> {
        self.types.prim(ty)
    }
}
