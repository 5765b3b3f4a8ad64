//! Notes where statements begin and where variables are while a kernel is lowered, for [`crate::ir::debug`].

use super::{Base, Binding, Lower, Memory, Place, Scope, Value};
use crate::ir::debug::{self, Debug, Function, Kind, Mark, Part, Pointer, SharedVariable, Statement};
use crate::ir::{IndexKind, Row, Scaled, space};
use crate::source::Span;
use crate::syntax::ast::{self, Name, Stmt, StmtKind};
use crate::types::{Type, TypeId};
use std::ops::Range;

/// The maximum number of members and elements of a variable that are shown.
const MOST_PARTS: usize = 64;

#[derive(Clone, Default)]
pub struct Notes {
    statements: Vec<Statement>,
    marks: Vec<Mark>,
    functions: Vec<Function>,
    variables: Vec<Noted>,
    /// The innermost function.
    function: u32,
    /// The number of nested calls that are no steps: those of functions in the emulator's headers.
    hidden: u32,
}

#[derive(Clone)]
struct Noted {
    name: Name,
    ty: TypeId,
    place: Place,
    function: u32,
    line: u32,
    is_bare: bool,
    born: u32,
    dies: u32,
    from: u32,
    ends: Option<u32>,
}

/// The state before a function or a trial.
#[derive(Clone, Copy)]
pub struct Before {
    statements: usize,
    marks: usize,
    functions: usize,
    variables: usize,
    function: u32,
    hidden: u32,
}

impl Notes {
    pub fn before(&self) -> Before {
        Before {
            statements: self.statements.len(),
            marks: self.marks.len(),
            functions: self.functions.len(),
            variables: self.variables.len(),
            function: self.function,
            hidden: self.hidden,
        }
    }

    pub fn reset(&mut self, before: Before) {
        self.statements.truncate(before.statements);
        self.marks.truncate(before.marks);
        self.functions.truncate(before.functions);
        self.variables.truncate(before.variables);
        (self.function, self.hidden) = (before.function, before.hidden);
    }

    /// The number of marks at the next instruction.
    pub fn marks_at(&self, at: u32) -> u32 {
        self.marks.iter().rev().take_while(|mark| mark.at == at).count() as u32
    }

    /// Handles the removal of the last instruction; `at` is the next one.
    pub fn shortened(&mut self, at: u32) {
        self.marks.iter_mut().rev().take_while(|mark| mark.at > at).for_each(|mark| mark.at = at);
        self.variables.iter_mut().rev().take_while(|known| known.from > at).for_each(|known| known.from = at);
    }

    /// The innermost function.
    pub fn function(&self) -> u32 {
        self.function
    }

    pub fn variables(&self) -> usize {
        self.variables.len()
    }

    /// Ends the scope of the variables from this one on.
    pub fn end_scope(&mut self, first: usize) {
        let dies = self.marks.len() as u32;
        for variable in self.variables.iter_mut().skip(first) {
            variable.dies = variable.dies.min(dies);
        }
    }

    /// The statement that is being lowered.
    pub fn statement(&self) -> Option<u32> {
        self.marks.last().filter(|_| self.hidden == 0)?.statement
    }

    /// The last variable is declared without a value.
    pub fn is_bare(&mut self) {
        if let (Some(last), 0) = (self.variables.last_mut(), self.hidden) {
            last.is_bare = true;
        }
    }
}

impl Lower<'_> {
    /// Notes a statement whose instructions follow. One that only declares is no step.
    pub fn note_statement(&mut self, statement: &Stmt) {
        let is_step = match &statement.kind {
            StmtKind::Variables(all) => !all.iter().all(|variable| variable.storage.shared),
            StmtKind::Expr(_)
            | StmtKind::Bindings { .. }
            | StmtKind::If { .. }
            | StmtKind::For { .. }
            | StmtKind::Range { .. }
            | StmtKind::While(..)
            | StmtKind::Switch(..)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)
            | StmtKind::Goto(_)
            | StmtKind::Asm { .. } => true,
            _ => false,
        };
        if is_step {
            let number = self.noted_statement(statement);
            self.mark_statement(number, false);
        }
    }

    /// A statement whose instructions come later, as those of `do … while`.
    pub fn noted_statement(&mut self, statement: &Stmt) -> Option<u32> {
        let notes = &mut self.program.notes;
        if !self.on_device || notes.hidden > 0 {
            return None;
        }
        let function = notes.function;
        notes.statements.push(Statement { start: statement.span, last: statement.last, function });
        Some(notes.statements.len() as u32 - 1)
    }

    /// The next instructions are those of this statement.
    pub fn mark_statement(&mut self, statement: Option<u32>, is_rest: bool) {
        if statement.is_some() {
            let at = self.program.ops.len() as u32;
            self.program.notes.marks.push(Mark { at, statement, is_rest });
        }
    }

    pub fn note_variable(&mut self, name: &Name, value: &Value) {
        let notes = &mut self.program.notes;
        if !self.on_device
            || notes.hidden > 0
            || matches!(value.place, Place::Closure(_) | Place::Functions(_))
        {
            return;
        }
        notes.variables.push(Noted {
            name: name.clone(),
            ty: value.ty,
            place: value.place.clone(),
            function: notes.function,
            line: self.span.line,
            is_bare: false,
            born: notes.marks.len() as u32,
            dies: u32::MAX,
            from: self.program.ops.len() as u32,
            ends: None,
        });
    }

    /// Notes the known values of a scope: template arguments, or a lambda's captures.
    pub fn note_scope(&mut self, scope: &Scope) {
        let mut all: Vec<_> = scope.iter().collect();
        all.sort_by_key(|(name, _)| (*name).clone());
        for (name, binding) in all {
            if let Binding::Value(value) = binding {
                self.note_variable(name, value);
            }
        }
    }

    /// A function's instructions follow.
    pub fn enter(&mut self, function: &ast::Function, scope: &Scope, call: Option<Span>) -> Before {
        let before = self.program.notes.before();
        let is_hidden = self.tree.in_headers.contains(&function.span.file);
        let notes = &mut self.program.notes;
        if !self.on_device {
            return before;
        }
        if is_hidden || notes.hidden > 0 {
            notes.hidden += 1;
            return before;
        }
        let caller = call.map(|call| (notes.function, call.line));
        notes.functions.push(Function { name: function.name.to_string(), caller });
        notes.function = notes.functions.len() as u32 - 1;
        self.note_scope(scope);
        before
    }

    /// The instructions of a function that several calls share follow: they belong to no statement of the caller.
    pub fn begin_shared_body(&mut self, caller: u32) {
        if self.on_device {
            let at = self.program.ops.len() as u32;
            let notes = &mut self.program.notes;
            notes.function = caller;
            notes.marks.push(Mark { at, statement: None, is_rest: false });
        }
    }

    /// The function's instructions have ended; those of the statement that calls it follow.
    pub fn leave(&mut self, before: Before, result: Option<&Value>) {
        let notes = &mut self.program.notes;
        if notes.hidden == before.hidden && self.on_device {
            notes.end_scope(before.variables);
            if let Some(Value { place: Place::Row(row), ty, .. }) = result {
                let end = row + self.types.rows(*ty).unwrap_or(0);
                self.note_overwritten(before.variables, *row..end);
            }
            let notes = &mut self.program.notes;
            notes.function = before.function;
            let caller = before.marks.checked_sub(1).and_then(|last| notes.marks.get(last)?.statement);
            self.mark_statement(caller, true);
        }
        self.program.notes.hidden = before.hidden;
    }

    /// The result of a function may take the rows of its variables, in the last statement.
    fn note_overwritten(&mut self, first: usize, result: Range<Row>) {
        let program = &mut self.program;
        let Some(from) = program.notes.marks.last().map(|mark| mark.at) else { return };
        for at in from..program.ops.len() as u32 {
            let mut op = program.ops[at as usize];
            let mut is_result = false;
            op.visit(&program.operands, &mut |row, _, is_written| {
                is_result |= is_written && result.contains(row);
            });
            for variable in program.notes.variables.iter_mut().skip(first).filter(|_| is_result) {
                let Place::Row(start) = variable.place else { continue };
                let end = start + self.types.rows(variable.ty).unwrap_or(0);
                if start < result.end && result.start < end && variable.from <= at {
                    variable.ends.get_or_insert(at);
                }
            }
        }
    }

    /// The finished notes of a kernel.
    pub fn debug(&mut self, pointers: Vec<Pointer>) -> Debug {
        let mut notes = std::mem::take(&mut self.program.notes);
        notes.end_scope(0);
        notes.marks.push(Mark { at: self.program.ops.len() as u32, statement: None, is_rest: false });
        let (mut variables, mut shared) = (Vec::new(), Vec::<SharedVariable>::new());
        for noted in &notes.variables {
            if let Some(address) = shared_address(&noted.place) {
                let found = self.shared_cells(noted, address);
                if !shared.iter().any(|known| known.address == address && known.name == found.name) {
                    shared.push(found);
                }
                continue;
            }
            let mut parts = Vec::new();
            self.add_parts(noted.ty, 0, 0, String::new(), &mut |path, kind, offset, row| {
                parts.extend(place(&noted.place, offset, row).map(|place| Part { path, kind, place }));
                parts.len() < MOST_PARTS
            });
            if !parts.is_empty() {
                variables.push(debug::Variable {
                    name: noted.name.to_string(),
                    type_name: self.types.name(noted.ty),
                    function: noted.function,
                    line: noted.line,
                    is_bare: noted.is_bare,
                    born: noted.born,
                    dies: noted.dies,
                    from: noted.from,
                    ends: noted.ends,
                    parts,
                });
            }
        }
        Debug {
            statements: notes.statements,
            marks: notes.marks,
            skipped: Vec::new(),
            functions: notes.functions,
            variables,
            shared,
            pointers,
        }
    }

    fn shared_cells(&self, noted: &Noted, address: u64) -> SharedVariable {
        let mut element = noted.ty;
        let mut shape = Vec::new();
        while let Type::Array { of, count } = *self.types.get(element) {
            // The length of a dynamic array is set by the launch.
            let is_dynamic = address >= space::SHARED + crate::run::DYNAMIC_SHARED && shape.is_empty();
            shape.push(if is_dynamic { 0 } else { count });
            element = of;
        }
        let mut fields = Vec::new();
        self.add_parts(element, 0, 0, String::new(), &mut |path, kind, offset, _| {
            fields.push((offset, path, kind));
            fields.len() < MOST_PARTS
        });
        SharedVariable {
            name: noted.name.to_string(),
            type_name: match shape.first() {
                Some(0) => format!("{}[]", self.types.name(element)),
                _ => self.types.name(noted.ty),
            },
            address,
            shape,
            element_size: self.types.layout(element).0,
            fields,
        }
    }

    /// The pointers of a parameter.
    pub fn pointers_of(&self, name: &str, ty: TypeId, offset: u64, into: &mut Vec<Pointer>) {
        match self.types.get(ty) {
            Type::Pointer { to, .. } => {
                into.push(Pointer { name: name.to_owned(), offset, element_size: self.types.layout(*to).0 })
            }
            Type::Struct(number) => {
                for field in self.types.structs[*number].fields.iter().filter(|field| !field.is_reference) {
                    let name = format!("{name}.{}", field.name);
                    self.pointers_of(&name, field.ty, offset + field.offset, into);
                }
            }
            _ => {}
        }
    }

    /// Calls `add(path, kind, offset, row)` for each number and pointer of a type until it returns false.
    fn add_parts(
        &self,
        ty: TypeId,
        offset: u64,
        row: u32,
        path: String,
        add: &mut dyn FnMut(String, Kind, u64, u32) -> bool,
    ) -> bool {
        match self.types.get(ty) {
            Type::Struct(number) => match self.types.structs[*number].name.as_str() {
                "__half" => add(path, Kind::Half, offset, row),
                "__nv_bfloat16" => add(path, Kind::Bfloat16, offset, row),
                _ => self.types.structs[*number].fields.iter().all(|field| {
                    let path = format!("{path}.{}", field.name);
                    let (offset, row) = (offset + field.offset, row + field.row);
                    match field.is_reference {
                        true => add(path, Kind::Pointer, offset, row),
                        false => self.add_parts(field.ty, offset, row, path, add),
                    }
                }),
            },
            Type::Array { of, count } => {
                let size = self.types.layout(*of).0;
                (0..*count).all(|i| self.add_parts(*of, offset + i * size, row, format!("{path}[{i}]"), add))
            }
            Type::Pointer { .. } | Type::Null => add(path, Kind::Pointer, offset, row),
            _ => match self.types.prim(ty) {
                Some(prim) => add(path, Kind::Number(prim), offset, row),
                None => true,
            },
        }
    }
}

/// The address of a variable in shared memory.
fn shared_address(place: &Place) -> Option<u64> {
    match place {
        Place::Memory(Memory { base: Base::Const(at), index: None, offset }) => {
            let at = at.wrapping_add(*offset as u64);
            (space::SHARED..space::SHARED + space::WINDOW).contains(&at).then_some(at)
        }
        _ => None,
    }
}

/// The place of a part of a value.
fn place(of: &Place, offset: u64, row: u32) -> Option<debug::Place> {
    match of {
        Place::Const(bits) => Some(debug::Place::Constant(*bits)),
        Place::Row(first) => Some(debug::Place::Row(first + row)),
        Place::Memory(memory) => {
            let offset = offset.wrapping_add(memory.offset as u64);
            let (base, offset) = match memory.base {
                Base::Const(at) => (None, at.wrapping_add(offset)),
                Base::Row(row) => (Some(row), offset),
            };
            let Some(index) = memory.index else {
                return Some(match base {
                    None => debug::Place::Fixed(offset),
                    _ => debug::Place::Memory { base, first: Scaled::NONE, second: Scaled::NONE, offset },
                });
            };
            let second = index.second.unwrap_or(Scaled::NONE);
            Some(debug::Place::Memory { base, first: index.first, second, offset })
        }
        _ => None,
    }
}

impl Debug {
    /// Moves all instructions behind `shift` others, and each row to its final place.
    pub fn finish(&mut self, shift: u32, placed: impl Fn(Row) -> Row) {
        self.marks.iter_mut().for_each(|mark| mark.at += shift);
        for variable in &mut self.variables {
            variable.from += shift;
            variable.ends = variable.ends.map(|ends| ends + shift);
            variable.parts.iter_mut().for_each(|part| part.place.move_rows(&placed));
        }
    }
}

impl debug::Place {
    pub fn move_rows(&mut self, to: impl Fn(Row) -> Row) {
        match self {
            debug::Place::Row(row) => *row = to(*row),
            debug::Place::Memory { base, first, second, .. } => {
                *base = base.map(&to);
                for index in [first, second].into_iter().filter(|index| index.kind != IndexKind::None) {
                    index.row = to(index.row);
                }
            }
            _ => {}
        }
    }
}
