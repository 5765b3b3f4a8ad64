//! Splits text into tokens. Comments become spaces, and a backslash at the end of a line joins it with the next.

use super::{Error, Result, Span, foreign};
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq)]
pub enum Tok {
    Ident(Rc<str>),
    Int { value: u64, unsigned: bool, long: bool },
    Float { value: f64, single: bool },
    Str(Rc<str>),
    Char(i8),
    Punct(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub tok: Tok,
    pub span: Span,
    pub space_before: bool,
    pub first_of_line: bool,
    /// A comment before it may be a division of Python: `rows // 2;`.
    pub after_comment: bool,
    /// Macros that must not expand this name again.
    pub hidden: Option<Rc<Hidden>>,
}

impl Token {
    /// The end of a file.
    pub fn end(span: Span) -> Token {
        Token {
            tok: Tok::End,
            span,
            space_before: true,
            first_of_line: true,
            after_comment: false,
            hidden: None,
        }
    }
}

/// A linked list of macro names.
#[derive(Debug)]
pub struct Hidden {
    pub name: Rc<str>,
    pub rest: Option<Rc<Hidden>>,
}

impl Token {
    pub fn is(&self, punct: &str) -> bool {
        matches!(self.tok, Tok::Punct(p) if p == punct)
    }

    pub fn ident(&self) -> Option<&Rc<str>> {
        match &self.tok {
            Tok::Ident(name) => Some(name),
            _ => None,
        }
    }
}

/// Longest first.
const PUNCTUATION: &[&str] = &[
    "<<<", ">>>", "<<=", ">>=", "...", "->*", "::", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
    "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", "{", "}", "(", ")", "[", "]", ";", ",",
    ".", "?", ":", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=", "#", "@", "$", "`", "\\",
];

/// The words that C++ has for operators.
const OPERATORS: &[(&str, &str)] = &[
    ("and", "&&"),
    ("or", "||"),
    ("not", "!"),
    ("xor", "^"),
    ("bitand", "&"),
    ("bitor", "|"),
    ("compl", "~"),
    ("and_eq", "&="),
    ("or_eq", "|="),
    ("xor_eq", "^="),
    ("not_eq", "!="),
];

struct Lexer<'a> {
    /// Each character, with its line and column.
    chars: Vec<(char, u32, u32)>,
    at: usize,
    file: u32,
    text: &'a str,
}

pub fn lex(file: u32, text: &str) -> Result<Vec<Token>> {
    let mut chars = Vec::with_capacity(text.len());
    let (mut line, mut column) = (1, 1);
    let mut all = text.chars().peekable();
    while let Some(c) = all.next() {
        // A line ends with `\r\n`, or with one of them.
        if c == '\r' {
            if all.peek() != Some(&'\n') {
                chars.push(('\n', line, column));
            }
            continue;
        }
        if c == '\\' && matches!(all.peek(), Some('\n' | '\r')) {
            if all.peek() == Some(&'\r') {
                all.next();
            }
            all.next();
            (line, column) = (line + 1, 1);
            continue;
        }
        chars.push((c, line, column));
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    let mut lexer = Lexer { chars, at: 0, file, text };
    let mut tokens = Vec::new();
    lexer.run(&mut tokens)?;
    Ok(tokens)
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).map_or('\0', |c| c.0)
    }

    fn span_from(&self, start: usize) -> Span {
        let (_, line, column) = self.chars.get(start).copied().unwrap_or(('\0', 1, 1));
        Span { file: self.file, line, column, length: (self.at.max(start + 1) - start) as u32 }
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.peek(i) == c)
    }

    fn run(&mut self, tokens: &mut Vec<Token>) -> Result<()> {
        let _ = self.text;
        let (mut space, mut first, mut after_comment) = (false, true, false);
        while self.at < self.chars.len() {
            let c = self.peek(0);
            let start = self.at;
            if c == '\n' {
                (space, first) = (true, true);
                self.at += 1;
                continue;
            }
            if c.is_whitespace() || c == '\u{feff}' {
                space = true;
                self.at += 1;
                continue;
            }
            if self.starts_with("//") {
                while self.at < self.chars.len() && self.peek(0) != '\n' {
                    self.at += 1;
                }
                let comment: String = self.chars[start + 2..self.at].iter().map(|c| c.0).collect();
                let comment = comment.trim();
                let is_code =
                    comment.starts_with(|c: char| c == '=' || c.is_ascii_digit()) || comment.ends_with(';');
                after_comment = !first && is_code;
                continue;
            }
            if self.starts_with("/*") {
                self.at += 2;
                while !self.starts_with("*/") {
                    if self.at >= self.chars.len() {
                        let span = Span { length: 2, ..self.span_from(start) };
                        return Err(Error::new(span, "a comment begins here and has no `*/`"));
                    }
                    self.at += 1;
                }
                self.at += 2;
                space = true;
                continue;
            }
            let tok = self.token()?;
            let span = self.span_from(start);
            tokens.push(Token {
                tok,
                span,
                space_before: space,
                first_of_line: first,
                after_comment,
                hidden: None,
            });
            (space, first, after_comment) = (false, false, false);
        }
        Ok(())
    }

    fn token(&mut self) -> Result<Tok> {
        let c = self.peek(0);
        let start = self.at;
        if c.is_ascii_digit() || c == '.' && self.peek(1).is_ascii_digit() {
            return self.number();
        }
        if c == '"' || c == 'R' && self.peek(1) == '"' {
            return self.string();
        }
        if c == '\'' {
            self.at += 1;
            let value = self.character('\'')?;
            if self.peek(0) != '\'' {
                return Err(Error::new(self.span_from(start), "this character has no closing `'`")
                    .help("a string has double quotes: `\"…\"`"));
            }
            self.at += 1;
            return Ok(Tok::Char(value as i8));
        }
        if c.is_alphabetic() || c == '_' {
            while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
                self.at += 1;
            }
            let name: String = self.chars[start..self.at].iter().map(|c| c.0).collect();
            return Ok(match OPERATORS.iter().find(|(word, _)| *word == name) {
                Some((_, punct)) => Tok::Punct(punct),
                None => Tok::Ident(name.into()),
            });
        }
        for punct in PUNCTUATION {
            // Most differ in their first character.
            if char::from(punct.as_bytes()[0]) == c && self.starts_with(punct) {
                self.at += punct.len();
                return Ok(Tok::Punct(punct));
            }
        }
        self.at += 1;
        Err(Error::new(self.span_from(start), format!("the character `{c}` is not part of C++")))
    }

    fn number(&mut self) -> Result<Tok> {
        let start = self.at;
        let hex = self.peek(0) == '0' && matches!(self.peek(1), 'x' | 'X');
        let mut text = String::new();
        loop {
            let c = self.peek(0);
            let exponent = if hex { matches!(c, 'p' | 'P') } else { matches!(c, 'e' | 'E') };
            if exponent && matches!(self.peek(1), '+' | '-') {
                text.push(c);
                text.push(self.peek(1));
                self.at += 2;
            } else if c == '\'' && self.peek(1).is_ascii_alphanumeric() {
                self.at += 1;
            } else if c.is_ascii_alphanumeric() || c == '.' {
                text.push(c);
                self.at += 1;
            } else {
                break;
            }
        }
        let lower = text.to_ascii_lowercase();
        let bad = |lexer: &Self| {
            let error = Error::new(lexer.span_from(start), format!("`{text}` is not a number"));
            if text.contains("..") { error.help(foreign::FOR) } else { error }
        };
        let is_float = if hex { lower.contains('p') } else { lower.contains(['.', 'e']) };
        if is_float {
            let single = lower.ends_with('f') && (!hex || lower.contains('p'));
            let digits = lower.trim_end_matches(['f', 'l']);
            let value = if hex { hex_float(digits) } else { digits.parse().ok() };
            let value = value.ok_or_else(|| bad(self))?;
            if value.is_infinite() {
                return Err(Error::new(
                    self.span_from(start),
                    format!("`{text}` is too large for a `double`"),
                ));
            }
            // The literal is rounded once, to its own type.
            let value =
                if single && !hex { f64::from(digits.parse::<f32>().map_err(|_| bad(self))?) } else { value };
            return Ok(Tok::Float { value, single });
        }
        let digits = lower.trim_end_matches(['u', 'l']);
        let suffix = &lower[digits.len()..];
        if !["", "u", "l", "ul", "lu", "ll", "ull", "llu"].contains(&suffix) {
            return Err(bad(self));
        }
        let (digits, radix) = match digits.as_bytes() {
            [b'0', b'x', ..] => (&digits[2..], 16),
            [b'0', b'b', ..] => (&digits[2..], 2),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        let value = u64::from_str_radix(digits, radix).map_err(|_| bad(self))?;
        let (mut unsigned, mut long) = (suffix.contains('u'), suffix.contains('l'));
        // Chooses the smallest type that holds the value; a decimal number without `u` stays signed.
        if value > 0xffff_ffff || value > 0x7fff_ffff && !unsigned && radix == 10 {
            long = true;
        } else if value > 0x7fff_ffff && !long {
            unsigned = true;
        }
        if value > 0x7fff_ffff_ffff_ffff {
            unsigned = true;
        }
        Ok(Tok::Int { value, unsigned, long })
    }

    fn string(&mut self) -> Result<Tok> {
        let start = self.at;
        if self.peek(0) == 'R' {
            let span = self.span_from(start);
            return Err(Error::new(span, "raw strings are not part of the subset"));
        }
        self.at += 1;
        let mut bytes: Vec<u8> = Vec::new();
        while self.peek(0) != '"' {
            if self.at >= self.chars.len() || self.peek(0) == '\n' {
                let span = Span { length: 1, ..self.span_from(start) };
                return Err(Error::new(span, "this string has no closing `\"`"));
            }
            let c = self.peek(0);
            if c == '\\' {
                bytes.push(self.character('"')?);
            } else {
                bytes.extend(c.to_string().bytes());
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(Tok::Str(String::from_utf8_lossy(&bytes).into_owned().into()))
    }

    fn character(&mut self, quote: char) -> Result<u8> {
        let start = self.at;
        let c = self.peek(0);
        self.at += 1;
        if c != '\\' {
            if !c.is_ascii() || c == quote || c == '\n' || c == '\0' {
                return Err(Error::new(self.span_from(start), "this is not a character of one byte"));
            }
            return Ok(c as u8);
        }
        let escaped = self.peek(0);
        self.at += 1;
        Ok(match escaped {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'v' => 11,
            'e' => 27,
            '0'..='7' => {
                let mut value = escaped as u32 - '0' as u32;
                for _ in 0..2 {
                    if let Some(digit) = self.peek(0).to_digit(8) {
                        value = value * 8 + digit;
                        self.at += 1;
                    }
                }
                value as u8
            }
            'x' => {
                let mut value = 0;
                while let Some(digit) = self.peek(0).to_digit(16) {
                    value = (value * 16 + digit) & 0xff;
                    self.at += 1;
                }
                value as u8
            }
            '\\' | '\'' | '"' | '?' => escaped as u8,
            other => {
                return Err(Error::new(
                    self.span_from(start),
                    format!("`\\{other}` is not an escape of C++"),
                ));
            }
        })
    }
}

/// Parses a hexadecimal float, such as `0x1.8p-3`.
fn hex_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.strip_prefix("0x")?.split_once('p')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    if mantissa >> 53 != 0 {
        return None;
    }
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(4 * fraction.len() as i32)?;
    Some(libm::scalbn(mantissa as f64, exponent))
}
