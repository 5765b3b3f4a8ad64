//! The preprocessor: turns the tokens of files into those of a program.
//!
//! A token that a macro produces has the position of the macro's use, as in compilers' line tables; the tokens of an
//! argument keep their own positions.

use super::headers::{self, Part};
use super::lexer::{Tok, Token, lex};
use super::macros::{Macro, spelled};
use super::{Error, File, Files, Result, Span, condition, first_headers};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// For those who write `# comment`.
const COMMENT: &str = "a comment begins with `//`";

/// The maximum number of tokens: macros can double it at each step.
pub(super) const MOST_TOKENS: usize = 2_000_000;
const DEEPEST_INCLUDE: usize = 40;

/// Finds the text of `#include "name"`.
pub type Includes<'a> = &'a dyn Fn(&str) -> Option<String>;

pub struct Preprocessor<'a> {
    pub files: &'a mut Files,
    includes: Includes<'a>,
    pub macros: HashMap<Rc<str>, Rc<Macro>>,
    once: HashSet<String>,
    /// The headers that came before everything else.
    headers: Vec<Part>,
    pub output: Vec<Token>,
    /// System headers that were included.
    pub system: HashSet<String>,
    /// Inside one of the emulator's headers. A program's macros do not expand there: a `#define N 64` before an
    /// `#include` must not change a parameter `N` of a header's template.
    pub(super) in_header: bool,
    depth: usize,
    pub(super) made: usize,
}

/// The tokens of a program, after its first headers.
pub struct Preprocessed {
    pub headers: Vec<Part>,
    pub tokens: Vec<Token>,
}

/// Returns the tokens of a program.
pub fn preprocess(
    files: &mut Files,
    name: &str,
    text: &str,
    includes: Includes<'_>,
    definitions: &[(&str, &str)],
) -> Result<Preprocessed> {
    let mut preprocessor = Preprocessor::new(files, includes);
    // The program is file 0, so it is added first.
    let file = preprocessor.files.add(name, text);
    for (name, value) in definitions {
        preprocessor.define(&lex(file, &format!("{name} {value}"))?, Span::default())?;
    }
    for part in headers::ALWAYS {
        preprocessor.header(part)?;
    }
    preprocessor.in_header = false;
    preprocessor.file(name, text, Some(file))?;
    let line = text.lines().count().max(1) as u32;
    let end = Span { file, line, column: 1, length: 1 };
    let Preprocessor { headers, output: mut tokens, .. } = preprocessor;
    tokens.push(Token::end(end));
    Ok(Preprocessed { headers, tokens })
}

/// An open `#if`.
struct Branch {
    active: bool,
    taken: bool,
    enclosing: bool,
    span: Span,
}

impl<'a> Preprocessor<'a> {
    /// Starts with the headers.
    pub fn new(files: &'a mut Files, includes: Includes<'a>) -> Preprocessor<'a> {
        Preprocessor {
            files,
            includes,
            macros: HashMap::new(),
            once: HashSet::new(),
            headers: Vec::new(),
            output: Vec::new(),
            system: HashSet::new(),
            in_header: true,
            depth: 0,
            made: 0,
        }
    }

    /// Reads a header. While nothing else has come, it is one of the first, whose tokens are known.
    fn header(&mut self, part: Part) -> Result<()> {
        let (name, text) = part;
        let number = self.headers.len() + 1;
        let is_next = match self.files.0.get(number) {
            Some(file) => file.name == name && file.text == text,
            None => self.files.0.len() == number,
        };
        if !is_next || !self.output.is_empty() {
            return self.file(name, text, None);
        }
        if self.files.0.len() == number {
            self.files.0.push(File { name: name.to_owned(), text: text.to_owned() });
        }
        self.headers.push(part);
        self.macros.extend(first_headers::last_of(&self.headers)?.macros.iter().cloned());
        Ok(())
    }

    pub fn file(&mut self, name: &str, text: &str, number: Option<u32>) -> Result<()> {
        let file = number.unwrap_or_else(|| self.files.add(name, text));
        let tokens = lex(file, text)?;
        let mut branches: Vec<Branch> = Vec::new();
        let mut pending: Vec<Token> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let active = branches.last().is_none_or(|branch| branch.active);
            let token = &tokens[at];
            if !(token.is("#") && token.first_of_line) {
                if active {
                    pending.push(token.clone());
                }
                at += 1;
                continue;
            }
            let mut end = at + 1;
            while end < tokens.len() && !tokens[end].first_of_line {
                end += 1;
            }
            let line = &tokens[at + 1..end];
            let hash = token.span;
            at = end;
            let Some(directive) = line.first().and_then(|token| token.ident()).cloned() else {
                if active && !line.is_empty() {
                    return Err(Error::new(line[0].span, "this is not a directive").help(COMMENT));
                }
                continue;
            };
            let span = line[0].span;
            let rest = &line[1..];
            match &*directive {
                "if" | "ifdef" | "ifndef" => {
                    self.flush(&mut pending)?;
                    let holds = active && self.holds(&directive, rest, span)?;
                    branches.push(Branch { active: holds, taken: holds, enclosing: active, span: hash });
                }
                "elif" | "else" => {
                    self.flush(&mut pending)?;
                    let Some(branch) = branches.last() else {
                        return Err(Error::new(span, format!("`#{directive}` has no `#if`")));
                    };
                    let open = branch.enclosing && !branch.taken;
                    let holds = open && (&*directive == "else" || self.holds("if", rest, span)?);
                    if let Some(branch) = branches.last_mut() {
                        branch.active = holds;
                        branch.taken |= holds;
                    }
                }
                "endif" => {
                    self.flush(&mut pending)?;
                    if branches.pop().is_none() {
                        return Err(Error::new(span, "`#endif` has no `#if`"));
                    }
                }
                _ if !active => {}
                "define" => {
                    self.flush(&mut pending)?;
                    self.define(rest, span)?;
                }
                "undef" => {
                    self.flush(&mut pending)?;
                    if let Some(name) = rest.first().and_then(|token| token.ident()) {
                        self.macros.remove(name);
                    }
                }
                "include" => {
                    self.flush(&mut pending)?;
                    self.include(rest, span)?;
                }
                "pragma" => {
                    if rest.first().and_then(|token| token.ident()).is_some_and(|name| &**name == "once") {
                        self.once.insert(name.to_owned());
                    }
                }
                "error" => {
                    let text = spelled(rest);
                    return Err(Error::new(span, format!("#error {text}")));
                }
                "line" | "warning" | "ident" => {}
                other => return Err(Error::new(span, format!("`#{other}` is not a directive")).help(COMMENT)),
            }
        }
        if let Some(branch) = branches.last() {
            return Err(Error::new(branch.span, "this `#if` has no `#endif`"));
        }
        self.flush(&mut pending)
    }

    fn flush(&mut self, pending: &mut Vec<Token>) -> Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let expanded = self.expand(std::mem::take(pending))?;
        self.output.extend(expanded);
        if self.output.len() > MOST_TOKENS {
            let span = self.output[self.output.len() - 1].span;
            return Err(Error::new(span, format!("the program has more than {MOST_TOKENS} tokens")));
        }
        Ok(())
    }

    fn holds(&mut self, directive: &str, rest: &[Token], span: Span) -> Result<bool> {
        if directive != "if" {
            let Some(name) = rest.first().and_then(|token| token.ident()) else {
                return Err(Error::new(span, format!("`#{directive}` takes the name of a macro")));
            };
            return Ok(self.macros.contains_key(name) == (directive == "ifdef"));
        }
        let mut replaced = Vec::new();
        let mut at = 0;
        while at < rest.len() {
            let token = &rest[at];
            at += 1;
            if token.ident().is_none_or(|name| &**name != "defined") {
                replaced.push(token.clone());
                continue;
            }
            let parenthesis = rest.get(at).is_some_and(|token| token.is("("));
            at += usize::from(parenthesis);
            let Some(name) = rest.get(at).and_then(|token| token.ident()) else {
                return Err(Error::new(token.span, "`defined` takes the name of a macro"));
            };
            at += 1 + usize::from(parenthesis);
            let value = u64::from(self.macros.contains_key(name));
            replaced.push(Token { tok: Tok::Int { value, unsigned: false, long: false }, ..token.clone() });
        }
        let expanded = self.expand(replaced)?;
        Ok(condition::value(&expanded, span)? != 0)
    }

    fn include(&mut self, rest: &[Token], span: Span) -> Result<()> {
        if self.depth >= DEEPEST_INCLUDE {
            return Err(Error::new(span, "headers include each other without end"));
        }
        let Some(first) = rest.first() else {
            return Err(Error::new(span, "`#include` takes the name of a file"));
        };
        self.depth += 1;
        if let Tok::Str(name) = &first.tok {
            if !self.once.contains(&**name) {
                match (self.includes)(name) {
                    Some(text) => self.file(name, &text, None)?,
                    None => self.system_header(name, first.span)?,
                }
            }
        } else {
            let name = spelled(rest).replace(' ', "");
            let name = name.trim_start_matches('<').trim_end_matches('>').to_owned();
            self.system_header(&name, first.span)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn system_header(&mut self, name: &str, span: Span) -> Result<()> {
        if !self.system.insert(name.to_owned()) {
            return Ok(());
        }
        match headers::find(name) {
            Some(parts) => {
                let was_in_header = std::mem::replace(&mut self.in_header, true);
                for (part, text) in parts {
                    if self.once.insert((*part).to_owned()) {
                        self.header((part, text))?;
                    }
                }
                self.in_header = was_in_header;
                Ok(())
            }
            None => Err(Error::new(span, format!("the header `{name}` is not part of the subset"))
                .help(format!("these are: {}", headers::names()))),
        }
    }
}
