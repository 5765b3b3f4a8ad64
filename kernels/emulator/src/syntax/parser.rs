//! The parser's tokens and common helpers. It is a recursive descent parser with one function for each grammar rule.

use super::ast::*;
use super::first::First;
use super::hints::PUT_SEMICOLON;
use super::names::{NameKind, Names};
use crate::source::lexer::{Tok, Token};
use crate::source::{Error, Errors, Result, Span};
use std::collections::{HashMap, HashSet};

/// The maximum nesting of expressions, statements and types; more would overflow the stack.
pub const DEEPEST: u32 = 120;

pub struct Parser {
    pub tokens: Vec<Token>,
    pub at: usize,
    pub names: Names,
    pub tree: Tree,
    pub depth: u32,
    /// Whether `>` ends a template argument.
    pub in_arguments: bool,
    pub next_id: DeclId,
    /// For each enclosing function, the names that it may write.
    pub written: Vec<HashSet<Name>>,
    /// Whether the parser is after `template <>`.
    pub specializing: bool,
    /// Whether declarations are `extern "C"`.
    pub in_c: bool,
    /// The bodies of the outermost functions, in order.
    pub bodies: Vec<Body>,
    /// The definitions in each enclosing scope; the bool is true for structs.
    pub declared: Vec<HashMap<(bool, Name), Span>>,
    /// Errors that the parser recovered from.
    pub errors: Errors,
    /// If not 0, the current tokens may be parsed again in another way, so errors do not count.
    pub trials: u32,
    /// The token before which a `}` is missing, if that was reported.
    pub unclosed_at: Option<usize>,
    /// Templates and lambdas around this position.
    pub templates: u32,
    /// The parameters of the templates around this position.
    pub template_names: Vec<Name>,
    /// The tokens that lost their first `>` to the end of template arguments, and their positions.
    split: Vec<(usize, Token)>,
}

/// A position to return to: the next token, and the numbers of split tokens and of undeclared names so far.
#[derive(Clone, Copy)]
pub struct Place {
    at: usize,
    split: usize,
    undeclared: usize,
}

/// The tokens of a function's body.
#[derive(Clone, Debug)]
pub struct Body {
    pub function: DeclId,
    pub tokens: std::ops::Range<usize>,
}

/// Parses the tokens of a program, after its first headers. Returns the tree, and the positions of the functions'
/// bodies. Declarations are numbered from `first_id`, or from the last one of the headers.
pub fn parse(
    tokens: Vec<Token>,
    headers: &First,
    first_id: DeclId,
) -> std::result::Result<(Tree, Vec<Body>), Errors> {
    let mut parser = Parser::new(tokens, headers, first_id);
    parser.whole_file()?;
    parser.tree.declarations = parser.next_id;
    Ok((parser.tree, parser.bodies))
}

impl Parser {
    pub fn new(tokens: Vec<Token>, headers: &First, first_id: DeclId) -> Parser {
        Parser {
            tokens,
            at: 0,
            names: headers.names.clone(),
            tree: headers.tree.clone(),
            depth: 0,
            in_arguments: false,
            next_id: first_id.max(headers.next_id),
            written: Vec::new(),
            specializing: false,
            in_c: false,
            bodies: Vec::new(),
            declared: Vec::new(),
            errors: Errors::default(),
            trials: 0,
            unclosed_at: None,
            templates: 0,
            template_names: Vec::new(),
            split: Vec::new(),
        }
    }

    /// Parses all declarations.
    pub fn whole_file(&mut self) -> std::result::Result<(), Errors> {
        while !self.at_end() && self.declaration_or_next().is_ok() {}
        match self.errors.0.is_empty() {
            true => Ok(()),
            false => Err(std::mem::take(&mut self.errors)),
        }
    }

    pub fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    pub fn ahead(&self, n: usize) -> &Token {
        &self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }

    pub fn at_end(&self) -> bool {
        self.peek().tok == Tok::End
    }

    pub fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    pub fn is(&self, punct: &str) -> bool {
        self.peek().is(punct)
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.peek().ident().is_some_and(|name| &**name == word)
    }

    pub fn eat(&mut self, punct: &str) -> bool {
        let found = self.is(punct);
        if found {
            self.advance();
        }
        found
    }

    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub fn span(&self) -> Span {
        self.peek().span
    }

    /// The position of the last token read.
    pub fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// The span from a position to the last token read, if both are on one line.
    pub fn since(&self, start: Span) -> Span {
        let end = self.last_span();
        if end.file == start.file && end.line == start.line && end.column >= start.column {
            Span { length: end.column - start.column + end.length, ..start }
        } else {
            start
        }
    }

    pub fn found(&self) -> String {
        match &self.peek().tok {
            Tok::Ident(name) => format!("`{name}`"),
            Tok::Punct(punct) => format!("`{punct}`"),
            Tok::End => "the end of the file".to_owned(),
            Tok::Str(_) => "a string".to_owned(),
            _ => "a number".to_owned(),
        }
    }

    pub fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        // A missing `;` belongs after the previous token.
        if wanted == "`;`" && self.at > 0 {
            let last = self.last_span();
            let behind = Span { column: last.column + last.length, length: 1, ..last };
            return Err(
                Error::new(behind, format!("expected `;`, found {}", self.found())).label(PUT_SEMICOLON)
            );
        }
        Err(Error::new(self.span(), format!("expected {wanted}, found {}", self.found())))
    }

    pub fn expect(&mut self, punct: &'static str) -> Result<Span> {
        if self.is(punct) {
            return Ok(self.advance().span);
        }
        self.unexpected(&format!("`{punct}`"))
    }

    /// Expects the `>` of template arguments, which may be half of a `>>`.
    pub fn close_arguments(&mut self) -> Result<()> {
        for (whole, rest) in [(">>>", ">>"), (">>", ">"), (">>=", ">="), (">=", "=")] {
            if self.is(whole) {
                let at = self.at;
                self.split.push((at, self.tokens[at].clone()));
                self.tokens[at].tok = Tok::Punct(rest);
                self.tokens[at].span.column += 1;
                self.tokens[at].span.length -= 1;
                return Ok(());
            }
        }
        self.expect(">").map(|_| ())
    }

    pub fn name(&mut self, what: &str) -> Result<Name> {
        match self.peek().ident().cloned() {
            Some(name) if !is_keyword(&name) => {
                self.advance();
                Ok(name)
            }
            _ => self.unexpected(what),
        }
    }

    pub fn id(&mut self) -> DeclId {
        self.next_id += 1;
        self.next_id
    }

    pub fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Error::new(self.span(), "this is nested too deeply").last());
        }
        Ok(())
    }

    pub fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.names.scopes.push(HashMap::new());
        self.declared.push(HashMap::new());
        let result = parse(self);
        self.names.scopes.pop();
        self.declared.pop();
        self.names.kinds.clear();
        result
    }

    pub fn declare(&mut self, name: &Name, kind: NameKind) {
        self.names.declare(name, kind);
    }

    /// Records that the variable which an expression is part of may be written here.
    pub fn mark_written(&mut self, value: &Expr) {
        let mut at = value;
        loop {
            at = match &at.kind {
                ExprKind::Path(path) => {
                    if let (Some(written), [segment]) = (self.written.last_mut(), &path.segments[..]) {
                        written.insert(segment.name.clone());
                    }
                    return;
                }
                ExprKind::Member(object, false, _) | ExprKind::Index(object, _) => object,
                ExprKind::Unary(_, object) | ExprKind::Cast(_, _, object) => object,
                ExprKind::Condition(_, yes, no) => {
                    self.mark_written(yes);
                    no
                }
                ExprKind::Assign(_, object, _) => object,
                _ => return,
            };
        }
    }

    pub fn refuse<T>(&self, span: Span, what: &str) -> Result<T> {
        Err(Error::new(span, format!("{what} are not part of the subset")))
    }

    pub fn place(&self) -> Place {
        Place { at: self.at, split: self.split.len(), undeclared: self.tree.undeclared.len() }
    }

    /// Returns to an earlier position, with the tokens as they were there.
    pub fn go_back(&mut self, to: Place) {
        for (at, token) in self.split.drain(to.split..).rev() {
            self.tokens[at] = token;
        }
        self.tree.undeclared.truncate(to.undeclared);
        self.at = to.at;
    }

    /// Tries to parse; on failure, goes back to the start.
    pub fn attempt<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Option<T> {
        let (place, depth, arguments) = (self.place(), self.depth, self.in_arguments);
        let scopes = self.names.scopes.len();
        self.trials += 1;
        let result = parse(self);
        self.trials -= 1;
        match result {
            Ok(value) => Some(value),
            Err(_) => {
                self.go_back(place);
                (self.depth, self.in_arguments) = (depth, arguments);
                self.names.scopes.truncate(scopes);
                self.declared.truncate(scopes);
                None
            }
        }
    }
}

/// Whether a word cannot be a name.
pub fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "if" | "else"
            | "for"
            | "while"
            | "do"
            | "switch"
            | "case"
            | "default"
            | "break"
            | "continue"
            | "return"
            | "goto"
            | "struct"
            | "class"
            | "union"
            | "enum"
            | "template"
            | "typename"
            | "typedef"
            | "using"
            | "namespace"
            | "const"
            | "constexpr"
            | "static"
            | "extern"
            | "inline"
            | "volatile"
            | "sizeof"
            | "new"
            | "delete"
            | "this"
            | "true"
            | "false"
            | "nullptr"
            | "operator"
            | "void"
            | "bool"
            | "char"
            | "short"
            | "int"
            | "long"
            | "signed"
            | "unsigned"
            | "float"
            | "double"
            | "auto"
            | "static_cast"
            | "reinterpret_cast"
            | "const_cast"
            | "dynamic_cast"
            | "try"
            | "catch"
            | "throw"
            | "virtual"
            | "friend"
            | "decltype"
            | "static_assert"
            | "public"
            | "private"
            | "protected"
    )
}
