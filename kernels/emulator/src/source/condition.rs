//! Evaluates the condition of `#if`.

use super::lexer::{Tok, Token};
use super::{Error, Result, Span};

pub struct Condition<'a> {
    tokens: &'a [Token],
    at: usize,
    line: Span,
    depth: usize,
}

/// Macros are already expanded, and `defined` replaced. A remaining name is 0.
pub fn value(tokens: &[Token], line: Span) -> Result<i64> {
    let mut condition = Condition { tokens, at: 0, line, depth: 0 };
    let value = condition.ternary()?;
    match condition.tokens.get(condition.at) {
        None => Ok(value),
        Some(token) => Err(Error::new(token.span, "this is not allowed in a condition of `#if`")),
    }
}

const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Condition<'_> {
    fn eat(&mut self, punct: &str) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| token.is(punct));
        self.at += usize::from(found);
        found
    }

    fn ternary(&mut self) -> Result<i64> {
        self.depth += 1;
        if self.depth > 100 {
            return Err(Error::new(self.line, "this condition is nested too deeply"));
        }
        let condition = self.binary(0)?;
        let mut result = condition;
        if self.eat("?") {
            let yes = self.ternary()?;
            if !self.eat(":") {
                return Err(Error::new(self.line, "a `:` is missing in this condition"));
            }
            let no = self.ternary()?;
            result = if condition != 0 { yes } else { no };
        }
        self.depth -= 1;
        Ok(result)
    }

    fn binary(&mut self, level: usize) -> Result<i64> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(token) = self.tokens.get(self.at) {
            let Tok::Punct(operator) = token.tok else { break };
            if !operators.contains(&operator) {
                break;
            }
            let span = token.span;
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = match operator {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<<" => left.wrapping_shl(right as u32),
                ">>" => left.wrapping_shr(right as u32),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                _ if right == 0 => return Err(Error::new(span, "this condition divides by 0")),
                "/" => left.wrapping_div(right),
                _ => left.wrapping_rem(right),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i64> {
        let Some(token) = self.tokens.get(self.at) else {
            return Err(Error::new(self.line, "a value is missing in this condition"));
        };
        self.at += 1;
        self.depth += 1;
        if self.depth > 100 {
            return Err(Error::new(self.line, "this condition is nested too deeply"));
        }
        let value = match &token.tok {
            Tok::Int { value, .. } => *value as i64,
            Tok::Char(value) => i64::from(*value),
            Tok::Ident(name) => i64::from(&**name == "true"),
            Tok::Punct("!") => i64::from(self.unary()? == 0),
            Tok::Punct("-") => self.unary()?.wrapping_neg(),
            Tok::Punct("+") => self.unary()?,
            Tok::Punct("~") => !self.unary()?,
            Tok::Punct("(") => {
                let value = self.ternary()?;
                if !self.eat(")") {
                    return Err(Error::new(token.span, "this `(` is not closed"));
                }
                value
            }
            _ => return Err(Error::new(token.span, "this is not allowed in a condition of `#if`")),
        };
        self.depth -= 1;
        Ok(value)
    }
}
