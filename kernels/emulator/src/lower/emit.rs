//! A program under construction: its instructions, rows, labels and constants.

use super::debug::{Before, Notes};
use super::recursion::Entry;
use super::saved::Function;
use super::{Base, Lower, Memory, Place, Value};
use crate::ir::debug::Debug;
use crate::ir::{Address, NO_ROW, Op, Prim, Program, Row, Scaled, Slot, Special, rows_of};
use crate::source::{Error, Result, Span};
use crate::types::TypeId;
use std::collections::HashMap;

/// This bit marks the rows of constants and of special registers, which are read once, until the program is finished.
pub const FIXED: Row = 1 << 30;
/// This bit also marks rows that hold the parameters and results of recursive functions, until then.
const KEPT: Row = 1 << 29;
const MOST_ROWS: u32 = 60_000;
const MOST_LOCAL: u64 = 512 * 1024;

#[derive(Clone, Default)]
pub struct Builder {
    pub ops: Vec<Op>,
    pub spans: Vec<Span>,
    /// Instructions that come before all others.
    prologue: Vec<Op>,
    pub next_row: Row,
    most_rows: Row,
    fixed_rows: Row,
    constants: HashMap<(u64, bool), Row>,
    specials: Vec<(Special, Row)>,
    labels: Vec<Option<u32>>,
    /// For each label, the number of marks at its instruction that come before it.
    passed: Vec<u32>,
    /// The position of the last label: instructions before it must not change.
    last_label: usize,
    pub texts: Vec<String>,
    pub operands: Vec<(Prim, Row)>,
    pub shared: Vec<Slot>,
    pub shared_bytes: u64,
    pub local: Vec<Slot>,
    pub local_bytes: u64,
    /// The start of local memory; in a host program, it is part of the heap.
    pub local_base: u64,
    overflow: bool,
    pub notes: Notes,
    pub debug: Debug,
    kept_rows: Row,
    /// The recursive functions called so far.
    pub entries: Vec<Entry>,
    /// While a recursive function is lowered: the row with the address of its local variables, and their size.
    pub frame: Option<(Row, u64)>,
    saved: Vec<(Row, bool)>,
    stack: (u64, u64),
}

pub struct Mark {
    ops: usize,
    next_row: Row,
    labels: usize,
    last_label: usize,
    operands: usize,
    texts: usize,
    notes: Before,
    entries: usize,
}

impl Builder {
    pub fn mark(&self) -> Mark {
        Mark {
            ops: self.ops.len(),
            next_row: self.next_row,
            labels: self.labels.len(),
            last_label: self.last_label,
            operands: self.operands.len(),
            texts: self.texts.len(),
            notes: self.notes.before(),
            entries: self.entries.len(),
        }
    }

    pub fn reset(&mut self, mark: Mark) {
        self.ops.truncate(mark.ops);
        self.spans.truncate(mark.ops);
        self.next_row = mark.next_row;
        self.labels.truncate(mark.labels);
        self.passed.truncate(mark.labels);
        self.last_label = mark.last_label;
        self.operands.truncate(mark.operands);
        self.texts.truncate(mark.texts);
        self.notes.reset(mark.notes);
        self.entries.truncate(mark.entries);
    }

    pub fn emit(&mut self, op: Op, span: Span) {
        self.ops.push(op);
        self.spans.push(span);
    }

    pub fn rows(&mut self, count: u32) -> Row {
        let row = self.next_row;
        self.next_row += count;
        if self.next_row > MOST_ROWS {
            self.overflow = true;
            self.next_row = row;
        }
        self.most_rows = self.most_rows.max(self.next_row + 2);
        row
    }

    /// Rows that no other value takes.
    pub fn kept(&mut self, count: u32) -> Row {
        let row = FIXED | KEPT | self.kept_rows;
        self.kept_rows += count;
        row
    }

    /// Begins the body of a recursive function. Returns the first of its rows, which nothing else uses.
    pub fn begin_function(&mut self) -> Row {
        self.next_row = self.most_rows;
        self.next_row
    }

    /// Ends it: decides which rows its calls save. Returns the size of its local variables; `None` if it is too large.
    pub fn end_function(&mut self, from: usize, first_row: Row) -> Option<u32> {
        let function = Function {
            ops: &self.ops[from..],
            from,
            first_row,
            rows: self.most_rows - first_row,
            labels: &self.labels,
            operands: &self.operands,
        };
        for (at, rows) in function.saved()? {
            if let Op::Call { first, count, .. } = &mut self.ops[at] {
                (*first, *count) = (self.saved.len() as u32, rows.len() as u32);
            }
            self.saved.extend(rows);
        }
        let bytes = self.frame.take().map_or(0, |(_, bytes)| bytes.next_multiple_of(16));
        Some(bytes.min(u64::from(u32::MAX)) as u32)
    }

    /// Reserves memory for the local variables of recursive functions, if they have any.
    pub fn place_stack(&mut self, size: u64) {
        if !self.ops.iter().any(|op| matches!(op, Op::Call { bytes, .. } if *bytes > 0)) {
            return;
        }
        let offset = (self.local_bytes + 15).next_multiple_of(16);
        self.stack = (self.local_base.wrapping_add(offset), size);
        self.local_bytes = offset + size;
        self.local.push(Slot { name: "the stack".to_owned(), offset, size });
    }

    pub fn constant(&mut self, bits: u64, wide: bool) -> Row {
        let bits = if wide { bits } else { bits & 0xffff_ffff };
        if let Some(row) = self.constants.get(&(bits, wide)) {
            return *row;
        }
        let row = FIXED | self.fixed_rows;
        self.fixed_rows += 1 + u32::from(wide);
        self.constants.insert((bits, wide), row);
        row
    }

    pub fn special(&mut self, which: Special) -> Row {
        if let Some((_, row)) = self.specials.iter().find(|(known, _)| *known == which) {
            return *row;
        }
        let row = FIXED | self.fixed_rows;
        self.fixed_rows += 1;
        self.specials.push((which, row));
        self.prologue.push(Op::Special { d: row, which });
        row
    }

    pub fn label(&mut self) -> u32 {
        self.labels.push(None);
        self.passed.push(0);
        self.labels.len() as u32 - 1
    }

    pub fn is_placed(&self, label: u32) -> bool {
        self.labels[label as usize].is_some()
    }

    pub fn place(&mut self, label: u32) {
        // A jump to the next instruction is omitted.
        if self.ops.last() == Some(&Op::Jump { to: label }) && self.ops.len() > self.last_label {
            self.ops.pop();
            self.spans.pop();
            self.notes.shortened(self.ops.len() as u32);
        }
        self.passed[label as usize] = self.notes.marks_at(self.ops.len() as u32);
        self.last_label = self.ops.len();
        self.labels[label as usize] = Some(self.ops.len() as u32);
    }

    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(at) = self.texts.iter().position(|known| known == text) {
            return at as u32;
        }
        self.texts.push(text.to_owned());
        self.texts.len() as u32 - 1
    }

    /// Makes the last instruction write another row, if it wrote `from`.
    pub fn retarget(&mut self, from: Row, to: Row, rows: u32) -> bool {
        if from & FIXED != 0 || self.ops.len() <= self.last_label {
            return false;
        }
        let Some(last) = self.ops.last_mut() else { return false };
        let mut writes = 0;
        let mut matches = false;
        last.visit(&self.operands, &mut |row, count, written| {
            if written {
                writes += 1;
                matches = *row == from && count == rows;
            }
        });
        if writes != 1 || !matches || matches!(last, Op::Host { .. }) {
            return false;
        }
        last.visit(&self.operands, &mut |row, _, written| {
            if written {
                *row = to;
            }
        });
        true
    }

    /// Resolves the labels, and moves the constants after the other rows.
    pub fn finish(mut self, name: String, span: Span) -> Result<Program> {
        if self.overflow {
            return Err(Error::new(
                span,
                format!("`{name}` needs more than {MOST_ROWS} registers for a thread"),
            ));
        }
        if self.local_bytes > MOST_LOCAL && self.local_base == crate::ir::space::LOCAL {
            let message = format!(
                "`{name}` has {} bytes of local variables; the maximum is {MOST_LOCAL}",
                self.local_bytes
            );
            return Err(Error::new(span, message));
        }
        self.emit(Op::Exit, span);
        let may_wait = super::widths::may_wait(&self.ops, &self.labels);
        let shift = self.prologue.len() as u32;
        let mut ops = self.prologue;
        let mut spans = vec![span; ops.len()];
        ops.extend(self.ops);
        spans.extend(self.spans);
        if may_wait && self.local_base == crate::ir::space::LOCAL {
            let (operands, saved, debug) = (&mut self.operands, &mut self.saved, &mut self.debug);
            self.most_rows = super::widths::separated(&mut ops, operands, saved, debug, self.most_rows);
        }
        let kept = self.most_rows;
        let fixed = kept + self.kept_rows;
        let placed = |row: Row| match row {
            NO_ROW => NO_ROW,
            row if row & FIXED == 0 => row,
            row if row & KEPT != 0 => (row & !FIXED & !KEPT) + kept,
            row => (row & !FIXED) + fixed,
        };
        let mut debug = self.debug;
        debug.finish(shift, placed);
        for (at, op) in ops.iter_mut().enumerate() {
            op.visit(&self.operands, &mut |row, _, _| *row = placed(*row));
            if let Op::Jump { to } | Op::Branch { to, .. } | Op::Call { to, .. } = op {
                if let passed @ 1.. = self.passed[*to as usize] {
                    debug.skipped.push((at as u32, passed));
                }
                *to = self.labels[*to as usize].unwrap_or(0) + shift;
            }
        }
        let operands = self.operands.iter().map(|(ty, row)| (*ty, placed(*row))).collect();
        let constants: Vec<_> =
            self.constants.iter().map(|((bits, wide), row)| (placed(*row), *bits, *wide)).collect();
        let program = Program {
            name,
            ops,
            spans,
            rows: fixed + self.fixed_rows,
            first_constant: fixed,
            constants,
            texts: self.texts,
            operands,
            shared: self.shared,
            shared_bytes: self.shared_bytes,
            local: self.local,
            local_bytes: self.local_bytes,
            saved: self.saved,
            stack: self.stack,
            max_threads: 1024,
            span,
            debug,
            ..Program::default()
        };
        crate::ir::validate::validate(&program)
            .map_err(|trouble| Error::new(span, format!("this is a bug of the emulator: {trouble}")))?;
        Ok(program)
    }
}

impl Lower<'_> {
    pub fn new_rows(&mut self, ty: TypeId) -> Row {
        let rows = self.types.rows(ty).unwrap_or(0);
        self.program.rows(rows)
    }

    /// The row of a number or pointer that is in a row or is a constant.
    pub fn row(&mut self, value: &Value) -> Result<Row> {
        match value.place {
            Place::Row(row) => Ok(row),
            Place::Const(bits) => {
                let wide = self.prim(value.ty).is_some_and(|prim| rows_of(prim) == 2);
                Ok(self.program.constant(bits, wide))
            }
            _ => {
                let loaded = self.loaded(value.clone())?;
                match loaded.place {
                    Place::Row(_) | Place::Const(_) => self.row(&loaded),
                    _ => self.error(format!(
                        "a value of type `{}` cannot be used here",
                        self.types.name(value.ty)
                    )),
                }
            }
        }
    }

    pub fn address(&mut self, memory: &Memory, align: u64) -> Result<Address> {
        let mut memory = *memory;
        let base = match memory.base {
            Base::Row(row) => row,
            Base::Const(at) => {
                let at = at.wrapping_add(memory.offset as u64);
                memory.offset = 0;
                self.program.constant(at, true)
            }
        };
        let (base, offset) = match i32::try_from(memory.offset) {
            Ok(offset) => (base, offset),
            Err(_) => {
                let by = self.program.constant(memory.offset as u64, true);
                let d = self.program.rows(2);
                self.emit(Op::Binary { op: crate::ir::Bin::Add64, d, a: base, b: by });
                (d, 0)
            }
        };
        let (first, second) = match memory.index {
            None => (Scaled::NONE, Scaled::NONE),
            Some(index) => (index.first, index.second.unwrap_or(Scaled::NONE)),
        };
        Ok(Address { base, first, second, offset, align: align.clamp(1, 128) as u8 })
    }

    /// Reserves local memory for a variable of this thread.
    pub fn local_slot(&mut self, name: &str, ty: TypeId) -> Value {
        let (size, align) = self.types.layout(ty);
        if let Some((row, bytes)) = &mut self.program.frame {
            let offset = (*bytes + 15).next_multiple_of(align.max(1));
            *bytes = offset.saturating_add(size);
            let memory = Memory { base: Base::Row(*row), index: None, offset: offset as i64 };
            return Value::lvalue(ty, Place::Memory(memory));
        }
        // A gap between variables, so that an out-of-bounds access does not hit the next one.
        let offset = (self.program.local_bytes + 15).next_multiple_of(align.max(1));
        self.program.local_bytes = offset.saturating_add(size);
        self.program.local.push(Slot { name: name.to_owned(), offset, size });
        let base = Base::Const(self.program.local_base.wrapping_add(offset));
        Value::lvalue(ty, Place::Memory(Memory { base, index: None, offset: 0 }))
    }
}
