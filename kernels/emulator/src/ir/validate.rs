//! Validates a program once, so that the interpreter can access rows without checks.

use super::{Op, Program};

/// Returns the first error of a program: always a bug of the lowering, never the user's mistake.
pub fn validate(program: &Program) -> Result<(), String> {
    let wrong = |at: usize, what: &str| {
        Err(format!("{}: instruction {at}: {what}: {:?}", program.name, program.ops[at]))
    };
    if program.ops.len() != program.spans.len() {
        return Err(format!(
            "{}: {} instructions, {} spans",
            program.name,
            program.ops.len(),
            program.spans.len()
        ));
    }
    if !matches!(program.ops.last(), Some(Op::Exit)) {
        return Err(format!("{}: the last instruction does not end the program", program.name));
    }
    for (row, _, is_wide) in &program.constants {
        if row + u32::from(*is_wide) >= program.rows {
            return Err(format!("{}: a constant in row {row} of {}", program.name, program.rows));
        }
    }
    for (ty, row) in &program.operands {
        if row + super::rows_of(*ty) > program.rows {
            return Err(format!("{}: an operand in row {row} of {}", program.name, program.rows));
        }
    }
    for (row, is_wide) in &program.saved {
        if row + u32::from(*is_wide) >= program.rows {
            return Err(format!("{}: a saved row {row} of {}", program.name, program.rows));
        }
    }
    for at in 0..program.ops.len() {
        let mut op = program.ops[at];
        let mut outside = false;
        op.visit(&program.operands, &mut |row, rows, _| {
            outside |= row.checked_add(rows).is_none_or(|end| end > program.rows);
        });
        if outside {
            return wrong(at, "a row that does not exist");
        }
        match program.ops[at] {
            Op::Jump { to } | Op::Branch { to, .. } | Op::Call { to, .. }
                if to as usize >= program.ops.len() =>
            {
                return wrong(at, "a jump out of the program");
            }
            Op::Call { first, count, .. } if first as usize + count as usize > program.saved.len() => {
                return wrong(at, "a list of rows that does not exist");
            }
            Op::Print { text, first, count, .. } => {
                let operands = first as usize + count as usize;
                if text as usize >= program.texts.len() || operands > program.operands.len() {
                    return wrong(at, "a text or an operand that does not exist");
                }
            }
            Op::Assert { text, .. } | Op::Trap { text } if text as usize >= program.texts.len() => {
                return wrong(at, "a text that does not exist");
            }
            Op::Host { first, count, .. } | Op::Launch { first, count, .. }
                if first as usize + count as usize > program.operands.len() =>
            {
                return wrong(at, "an operand that does not exist");
            }
            _ => {}
        }
    }
    Ok(())
}
