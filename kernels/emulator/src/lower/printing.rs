//! `printf` and `assert`, on both sides.

use super::{Lower, Place, Value};
use crate::ir::{Op, Prim};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, BOOL, I32, VOID};

impl Lower<'_> {
    pub fn raw_call(&mut self, name: &str, arguments: &[Expr], span: Span) -> Result<Value> {
        match name {
            "printf" => self.print(arguments, span),
            "fprintf" => {
                if self.on_device {
                    return self.error("`fprintf` is host code: device code has `printf`");
                }
                match arguments {
                    [to, rest @ ..] if is_stream(to) => self.print(rest, span),
                    _ => self.error("`fprintf` writes to `stdout` or `stderr` only"),
                }
            }
            "__emulator_assert" => self.assertion(arguments, span),
            _ => self.symbol_copy(name, arguments, span),
        }
    }

    fn print(&mut self, arguments: &[Expr], span: Span) -> Result<Value> {
        let Some((first, rest)) = arguments.split_first() else {
            return self.error("`printf` takes a format");
        };
        let ExprKind::Str(format) = &first.kind else {
            return Err(Error::new(first.span, "the format of `printf` must be a string literal"));
        };
        let conversions = conversions(format, first.span)?;
        if conversions.len() != rest.len() {
            return Err(Error::new(
                first.span,
                format!("the format has {} conversions, but {} values follow", conversions.len(), rest.len()),
            ));
        }
        let mut operands = Vec::new();
        for (argument, conversion) in rest.iter().zip(&conversions) {
            let value = self.read(argument)?;
            self.span = argument.span;
            let value = self.plain(value)?;
            let is_pointer = super::calls::is_pointer(self, &value);
            let prim = self.prim(value.ty);
            let Some(prim) = prim else {
                return self.error(format!(
                    "`printf` takes numbers and strings, not a `{}`",
                    self.types.name(value.ty)
                ));
            };
            let is_float = matches!(prim, Prim::F32 | Prim::F64);
            let size = crate::ir::size_of(types::promoted(prim));
            // C on x86-64 passes each number in 64 bits, and `%d` reads the lower 32. The device packs arguments by
            // type.
            let fits_size = (size == 8) == conversion.is_long || !self.on_device;
            let fits = match conversion.kind {
                'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'c' => !is_pointer && !is_float && fits_size,
                'f' | 'e' | 'g' | 'E' | 'G' | 'F' | 'a' => is_float,
                's' => is_pointer,
                _ => is_pointer,
            };
            if !fits {
                return self.error(format!(
                    "`%{}` does not print a `{}`",
                    conversion.text,
                    self.types.name(value.ty)
                ));
            }
            let to = match prim {
                Prim::F32 => types::F64,
                _ if is_pointer => types::U64,
                _ if !is_float && size == 8 && !conversion.is_long => types::U32,
                _ if !is_float && size == 4 && conversion.is_long => types::U64,
                prim => types::of_prim(types::promoted(prim)),
            };
            // The upper half of a register is zero, even for a negative number.
            let value = match to == types::U64 && size == 4 {
                true => self.converted_scalar(value, types::U32, true)?,
                false => value,
            };
            let value = self.converted_scalar(value, to, true)?;
            let value = self.copied(value)?;
            operands.push((self.prim(to).unwrap_or(Prim::U64), self.row(&value)?));
        }
        self.span = span;
        let text = self.program.text(format);
        let first = self.program.operands.len() as u32;
        let count = operands.len() as u32;
        self.program.operands.extend(operands);
        let d = self.program.rows(1);
        self.emit(Op::Print { text, first, count, d });
        Ok(Value::new(I32, Place::Row(d)))
    }

    /// Lowers `__emulator_assert(condition, "condition")`.
    fn assertion(&mut self, arguments: &[Expr], span: Span) -> Result<Value> {
        let [condition, Expr { kind: ExprKind::Str(text), .. }] = arguments else {
            return self.error("`assert` takes a condition");
        };
        let value = self.expression(condition)?;
        self.span = span;
        let value = self.to_bool(value)?;
        if value.as_const() != Some(1) {
            let value = self.coerced(value, BOOL)?;
            let c = self.row(&value)?;
            let text = self.program.text(text);
            self.emit(Op::Assert { c, text });
        }
        Ok(Value::new(VOID, Place::Nothing))
    }
}

fn is_stream(value: &Expr) -> bool {
    matches!(&value.kind, ExprKind::Path(path) if ["stdout", "stderr"].contains(&&*path.segments[0].name))
}

pub struct Conversion {
    pub kind: char,
    pub is_long: bool,
    pub text: String,
}

/// Parses the conversions of a format. Flags, width and precision stay in the text.
fn conversions(format: &str, span: Span) -> Result<Vec<Conversion>> {
    let mut found = Vec::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            continue;
        }
        let mut text = String::new();
        let mut is_long = false;
        loop {
            let Some(c) = chars.next() else {
                return Err(Error::new(span, "this format ends within a conversion"));
            };
            text.push(c);
            match c {
                '-' | '+' | ' ' | '#' | '0'..='9' | '.' => {}
                'l' | 'z' | 'j' => is_long = true,
                'h' => {}
                'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'c' | 'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 's' | 'p' => {
                    found.push(Conversion { kind: c, is_long, text });
                    break;
                }
                _ => {
                    return Err(Error::new(
                        span,
                        format!("the conversion `%{text}` of `printf` is not part of the subset"),
                    ));
                }
            }
        }
    }
    Ok(found)
}
