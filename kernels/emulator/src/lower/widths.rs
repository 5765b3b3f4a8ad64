//! Separates the rows of 64-bit values from those of 32-bit values.
//!
//! A lane's 64-bit value occupies the place of two lanes' 32-bit values. So if a row held both, at different
//! instructions, diverged lanes would overwrite each other's values. That can happen where some lanes wait within a
//! branch while others execute another branch: in a loop that yields, at a shuffle or a vote, and in a recursive
//! function.

use crate::ir::debug::{Debug, Place};
use crate::ir::{IndexKind, Op, Prim, Row, rows_of};

#[derive(Clone, Copy, Default)]
struct Uses {
    is_narrow: bool,
    is_wide: bool,
}

/// Whether lanes may wait in the middle of a branch. `labels` are the positions of the targets of jumps.
pub fn may_wait(ops: &[Op], labels: &[Option<u32>]) -> bool {
    let target = |op: &Op| match op {
        Op::Jump { to } | Op::Branch { to, .. } => labels[*to as usize].map(|at| at as usize),
        _ => None,
    };
    // A loop does not yield if all lanes meet in each iteration, at a barrier that no jump passes.
    let meets = |from: usize, to: usize| {
        let passed =
            |at: usize| (from..at).any(|jump| target(&ops[jump]).is_some_and(|end| at < end && end <= to));
        (from..=to).any(|at| matches!(ops[at], Op::Barrier { .. }) && !passed(at))
    };
    ops.iter().enumerate().any(|(at, op)| match op {
        Op::Call { .. } | Op::Shuffle { .. } | Op::Vote { .. } => true,
        _ => target(op).is_some_and(|from| from <= at && !meets(from, at)),
    })
}

/// Renames rows below `rows`, and returns the new number of rows.
pub fn separated(
    ops: &mut [Op],
    operands: &mut [(Prim, Row)],
    saved: &mut [(Row, bool)],
    debug: &mut Debug,
    rows: u32,
) -> u32 {
    let mut uses = vec![Uses::default(); rows as usize + 1];
    each(ops, operands, saved, &mut |row, is_wide| {
        if let Some(uses) = uses.get_mut(*row as usize) {
            uses.is_narrow |= !is_wide;
            uses.is_wide |= is_wide;
        }
    });
    let mut next = rows;
    let mut places: Vec<Option<Row>> = vec![None; rows as usize];
    for row in 0..rows as usize {
        let is_mixed = uses[row].is_narrow || uses[row + 1].is_narrow || uses[row + 1].is_wide;
        let overlaps = row > 0 && uses[row - 1].is_wide;
        if uses[row].is_wide && (is_mixed || overlaps) {
            places[row] = Some(next);
            next += 2;
        }
    }
    if next > rows {
        let mut rename = |row: &mut Row, is_wide: bool| {
            if is_wide && let Some(Some(place)) = places.get(*row as usize) {
                *row = *place;
            }
        };
        each(ops, operands, saved, &mut rename);
        each_of_debug(debug, &mut rename);
    }
    next
}

fn each_of_debug(debug: &mut Debug, visit: &mut dyn FnMut(&mut Row, bool)) {
    for part in debug.variables.iter_mut().flat_map(|variable| &mut variable.parts) {
        match &mut part.place {
            Place::Row(row) => visit(row, rows_of(part.kind.prim()) == 2),
            Place::Memory { base, first, second, .. } => {
                base.iter_mut().for_each(|row| visit(row, true));
                for index in [first, second].into_iter().filter(|index| index.kind != IndexKind::None) {
                    visit(&mut index.row, index.kind == IndexKind::I64);
                }
            }
            _ => {}
        }
    }
}

/// Visits each row with a 32-bit value, and the first row of each 64-bit value.
fn each(
    ops: &mut [Op],
    operands: &mut [(Prim, Row)],
    saved: &mut [(Row, bool)],
    visit: &mut dyn FnMut(&mut Row, bool),
) {
    for op in ops {
        op.visit(&[], &mut |row, count, _| visit(row, count == 2));
    }
    for (ty, row) in operands {
        visit(row, rows_of(*ty) == 2);
    }
    for (row, is_wide) in saved {
        visit(row, *is_wide);
    }
}
