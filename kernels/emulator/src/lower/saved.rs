//! The rows that a recursive function saves at each of its calls: those that it reads after the call.

use crate::ir::{Op, Prim, Row};

/// The kind of value that is read next from a row, before any write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    Narrow,
    /// The first row of a 64-bit value, and the second.
    Wide,
    Second,
}

/// The body of a function: its instructions, and its rows. Positions are relative to the program.
pub struct Function<'a> {
    pub ops: &'a [Op],
    pub from: usize,
    pub first_row: Row,
    pub rows: u32,
    /// The position of each label.
    pub labels: &'a [Option<u32>],
    pub operands: &'a [(Prim, Row)],
}

/// The maximum size of the analysis.
const MOST: usize = 20_000_000;

impl Function<'_> {
    /// For each call, the rows that are read after it, each with whether it holds 64 bits. `None` if the function is
    /// too large.
    pub fn saved(&self) -> Option<Vec<(usize, Vec<(Row, bool)>)>> {
        // The live rows at the target of each jump.
        let mut at_label = vec![None; self.ops.len()];
        let mut targets = 0;
        for op in self.ops {
            if let Some(to) = self.target(op)
                && at_label[to].is_none()
            {
                at_label[to] = Some(vec![Next::Nothing; self.rows as usize]);
                targets += 1;
            }
        }
        if (targets + 1) * self.rows as usize > MOST {
            return None;
        }
        loop {
            let mut calls = Vec::new();
            let mut has_changed = false;
            let mut live = vec![Next::Nothing; self.rows as usize];
            for (at, op) in self.ops.iter().enumerate().rev() {
                match op {
                    Op::Return | Op::Exit | Op::Trap { .. } => live.fill(Next::Nothing),
                    Op::Jump { .. } => live.fill(Next::Nothing),
                    Op::Call { .. } => calls.push((self.from + at, self.listed(&live))),
                    _ => {}
                }
                if let Some(known) = self.target(op).and_then(|to| at_label[to].as_ref()) {
                    for (live, known) in live.iter_mut().zip(known) {
                        if *live == Next::Nothing {
                            *live = *known;
                        }
                    }
                }
                self.step(op, &mut live);
                if let Some(known) = &mut at_label[at]
                    && *known != live
                {
                    known.clone_from(&live);
                    has_changed = true;
                }
            }
            if !has_changed {
                return Some(calls);
            }
        }
    }

    /// The instruction that a jump goes to.
    fn target(&self, op: &Op) -> Option<usize> {
        let (Op::Jump { to } | Op::Branch { to, .. }) = op else { return None };
        let at = self.labels[*to as usize]? as usize;
        at.checked_sub(self.from).filter(|at| *at < self.ops.len())
    }

    /// Steps backwards: from the live rows after an instruction to those before it.
    fn step(&self, op: &Op, live: &mut [Next]) {
        let mut op = *op;
        let mut mark = |row: Row, count: u32, first: Next| {
            let Some(at) = row.checked_sub(self.first_row) else { return };
            let second = if first == Next::Nothing { Next::Nothing } else { Next::Second };
            for (i, next) in [first, second].into_iter().enumerate().take(count as usize) {
                if let Some(place) = live.get_mut(at as usize + i) {
                    *place = next;
                }
            }
        };
        // All operands are read before the result is written.
        op.visit(self.operands, &mut |row, count, is_written| {
            if is_written {
                mark(*row, count, Next::Nothing);
            }
        });
        op.visit(self.operands, &mut |row, count, is_written| {
            if !is_written {
                mark(*row, count, if count == 2 { Next::Wide } else { Next::Narrow });
            }
        });
        if let Op::Print { first, count, .. }
        | Op::Host { first, count, .. }
        | Op::Launch { first, count, .. } = op
        {
            for (ty, row) in &self.operands[first as usize..(first + count) as usize] {
                match crate::ir::rows_of(*ty) {
                    2 => mark(*row, 2, Next::Wide),
                    _ => mark(*row, 1, Next::Narrow),
                }
            }
        }
    }

    fn listed(&self, live: &[Next]) -> Vec<(Row, bool)> {
        let rows = live.iter().enumerate().filter(|(_, next)| matches!(next, Next::Narrow | Next::Wide));
        rows.map(|(at, next)| (self.first_row + at as Row, *next == Next::Wide)).collect()
    }
}
