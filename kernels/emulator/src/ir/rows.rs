//! The rows that an instruction reads and writes.

use super::{Address, IndexKind, NO_ROW, Op, Row, Special, VoteKind, rows_of};
use crate::syntax::ast::Prim;

impl Op {
    pub fn visit(&mut self, operands: &[(Prim, Row)], visit: &mut dyn FnMut(&mut Row, u32, bool)) {
        let _ = operands;
        let address = |at: &mut Address, visit: &mut dyn FnMut(&mut Row, u32, bool)| {
            visit(&mut at.base, 2, false);
            for index in [&mut at.first, &mut at.second] {
                match index.kind {
                    IndexKind::None => {}
                    IndexKind::I64 => visit(&mut index.row, 2, false),
                    _ => visit(&mut index.row, 1, false),
                }
            }
        };
        let optional =
            |row: &mut Row, rows: u32, written: bool, visit: &mut dyn FnMut(&mut Row, u32, bool)| {
                if *row != NO_ROW {
                    visit(row, rows, written);
                }
            };
        match self {
            Op::Move32 { d, a } => {
                visit(a, 1, false);
                visit(d, 1, true);
            }
            Op::Move64 { d, a } => {
                visit(a, 2, false);
                visit(d, 2, true);
            }
            Op::Unary { op, d, a } => {
                let (from, to) = op.widths();
                visit(a, from, false);
                visit(d, to, true);
            }
            Op::Binary { op, d, a, b } => {
                let (x, y, z) = op.widths();
                visit(a, x, false);
                visit(b, y, false);
                visit(d, z, true);
            }
            Op::Convert { from, to, d, a } => {
                visit(a, rows_of(*from), false);
                visit(d, rows_of(*to), true);
            }
            Op::Select32 { d, c, a, b } => {
                visit(c, 1, false);
                visit(a, 1, false);
                visit(b, 1, false);
                visit(d, 1, true);
            }
            Op::Select64 { d, c, a, b } => {
                visit(c, 1, false);
                visit(a, 2, false);
                visit(b, 2, false);
                visit(d, 2, true);
            }
            Op::Math { function, d, a, b, c } => {
                let function = &crate::run::math::FUNCTIONS[*function as usize];
                for (row, ty) in [a, b, c].into_iter().zip(function.parameters) {
                    visit(row, rows_of(*ty), false);
                }
                visit(d, rows_of(function.result), true);
            }
            Op::Load { ty, d, at } => {
                address(at, visit);
                visit(d, rows_of(*ty), true);
            }
            Op::Store { ty, a, at } => {
                address(at, visit);
                visit(a, rows_of(*ty), false);
            }
            Op::Lea { d, at } => {
                address(at, visit);
                visit(d, 2, true);
            }
            Op::Special { d, which } => visit(d, if *which == Special::Clock { 2 } else { 1 }, true),
            Op::Branch { c, .. } => visit(c, 1, false),
            Op::Barrier { d, a, .. } => {
                optional(a, 1, false, visit);
                optional(d, 1, true, visit);
            }
            Op::Shuffle { wide, d, a, lane, width, mask, .. } => {
                let rows = 1 + u32::from(*wide);
                visit(a, rows, false);
                visit(lane, 1, false);
                visit(width, 1, false);
                visit(mask, 1, false);
                visit(d, rows, true);
            }
            Op::Vote { kind, d, a, mask } => {
                optional(a, 1 + u32::from(*kind == VoteKind::Match64), false, visit);
                visit(mask, 1, false);
                optional(d, 1, true, visit);
            }
            Op::Atomic { ty, d, base, a, b, .. } => {
                let rows = rows_of(*ty);
                visit(base, 2, false);
                visit(a, rows, false);
                optional(b, rows, false, visit);
                optional(d, rows, true, visit);
            }
            Op::Assert { c, .. } => visit(c, 1, false),
            Op::Print { d, .. } => optional(d, 1, true, visit),
            // The result of a host function may take two rows. Both always exist.
            Op::Host { d, .. } => optional(d, 2, true, visit),
            Op::Call { frame, .. } => visit(frame, 2, true),
            Op::Jump { .. }
            | Op::Return
            | Op::Exit
            | Op::Fence { .. }
            | Op::Launch { .. }
            | Op::Trap { .. }
            | Op::Nothing => {}
        }
    }
}
