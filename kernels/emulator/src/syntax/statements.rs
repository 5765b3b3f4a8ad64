//! Parses statements.

use super::ast::*;
use super::names::NameKind;
use super::parser::Parser;
use crate::source::lexer::Tok;
use crate::source::{Error, Result, Span};
use std::rc::Rc;

impl Parser {
    pub fn block(&mut self) -> Result<Stmt> {
        let open = self.at;
        let span = self.expect("{")?;
        let statements = self.scoped(|parser| {
            let mut statements = Vec::new();
            while !parser.eat("}") {
                if parser.is_outside_blocks() {
                    parser.unclosed(open)?;
                    break;
                }
                parser.statement_or_next(&mut statements)?;
            }
            Ok(statements)
        })?;
        Ok(Stmt { kind: StmtKind::Block(statements), span, last: self.last_span() })
    }

    /// Parses a statement that is the body of another.
    fn body(&mut self) -> Result<Box<Stmt>> {
        let span = self.span();
        let mut statements = self.scoped(|parser| {
            let mut statements = Vec::new();
            parser.statement(&mut statements)?;
            Ok(statements)
        })?;
        Ok(Box::new(match (statements.len(), statements.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                statements.extend(last);
                Stmt { kind: StmtKind::Block(statements), span, last: self.last_span() }
            }
        }))
    }

    /// Parses a statement. Most give one; a declaration may give several.
    pub fn statement(&mut self, into: &mut Vec<Stmt>) -> Result<()> {
        self.deeper()?;
        let first = into.len();
        self.statement_inner(into)?;
        let last = self.last_span();
        into.iter_mut().skip(first).filter(|new| new.last == Span::default()).for_each(|new| new.last = last);
        self.depth -= 1;
        Ok(())
    }

    fn statement_inner(&mut self, into: &mut Vec<Stmt>) -> Result<()> {
        let span = self.span();
        let mut push = |kind| into.push(Stmt { kind, span, last: Span::default() });
        if self.is("{") {
            let block = self.block()?;
            into.push(block);
            return Ok(());
        }
        if self.eat(";") {
            push(StmtKind::Empty);
            return Ok(());
        }
        if self.is("[") && self.ahead(1).is("[") {
            self.attributes()?;
            return self.statement_inner(into);
        }
        let word = self.peek().ident().map_or(String::new(), |word| word.to_string());
        match word.as_str() {
            "if" => {
                self.advance();
                let (kind, last) = self.if_statement()?;
                into.push(Stmt { kind, span, last });
            }
            "for" => {
                self.advance();
                let (kind, last) = self.scoped(Parser::for_statement)?;
                into.push(Stmt { kind, span, last });
            }
            "while" => {
                self.advance();
                self.expect("(")?;
                let is_in_parentheses = self.is("(");
                let condition = self.expression()?;
                let last = self.expect(")")?;
                self.check_condition(&condition, is_in_parentheses);
                self.check_body(false);
                let kind = StmtKind::While(condition, self.body()?);
                into.push(Stmt { kind, span, last });
            }
            "do" => {
                self.advance();
                let body = self.body()?;
                let span = self.span();
                if !self.eat_word("while") {
                    return self.unexpected("`while` after the body of `do`");
                }
                self.expect("(")?;
                let condition = self.expression()?;
                let last = self.expect(")")?;
                self.expect(";")?;
                into.push(Stmt { kind: StmtKind::DoWhile(body, condition), span, last });
            }
            "switch" => {
                self.advance();
                self.expect("(")?;
                let value = self.expression()?;
                let last = self.expect(")")?;
                let kind = StmtKind::Switch(value, Box::new(self.block()?));
                into.push(Stmt { kind, span, last });
            }
            "case" => {
                self.advance();
                let value = self.conditional()?;
                self.expect(":")?;
                push(StmtKind::Case(value));
            }
            "default" => {
                self.advance();
                self.expect(":")?;
                push(StmtKind::Default);
            }
            "break" | "continue" => {
                self.advance();
                self.expect(";")?;
                push(if word == "break" { StmtKind::Break } else { StmtKind::Continue });
            }
            "return" => {
                self.advance();
                let value = match self.is(";") {
                    true => None,
                    false if self.is("{") => Some(self.braces()?),
                    false => Some(self.expression()?),
                };
                self.expect(";")?;
                push(StmtKind::Return(value));
            }
            "goto" => {
                self.advance();
                let name = self.name("the name of a label")?;
                self.expect(";")?;
                push(StmtKind::Goto(name));
            }
            "try" | "catch" | "throw" => return self.refuse(span, "exceptions"),
            "asm" | "__asm__" | "__asm" => {
                self.advance();
                let statement = self.asm()?;
                push(statement);
            }
            "static_assert" => {
                let (condition, text) = self.static_assert()?;
                push(StmtKind::StaticAssert(condition, text));
            }
            "using" if self.ahead(1).ident().is_some_and(|next| &**next == "namespace") => {
                self.advance();
                self.advance();
                let path = self.path()?;
                self.expect(";")?;
                self.open_namespace(&path)?;
                push(StmtKind::UsingNamespace(path));
            }
            "using" if !self.ahead(2).is("=") => {
                self.advance();
                let path = self.path()?;
                self.expect(";")?;
                if let (Some(kind), Some(last)) = (self.names.of_path(&path), path.segments.last()) {
                    let name = last.name.clone();
                    self.declare(&name, kind);
                }
                push(StmtKind::UsingName(path));
            }
            "using" | "typedef" => {
                for alias in self.alias(Vec::new())? {
                    push(StmtKind::Alias(alias));
                }
            }
            "struct" | "class" if self.ahead(2).is("{") || self.ahead(2).is(";") => {
                let found = self.struct_declaration(Vec::new())?;
                push(StmtKind::Struct(found.clone()));
                if !self.eat(";") {
                    let ty = named_type(&found.name, span);
                    self.local_variables(ty, Storage::default(), into)?;
                }
            }
            "union" => return self.refuse(span, "unions"),
            "namespace" if self.ahead(2).is("=") => self.namespace()?,
            "enum" => {
                let enumerators = self.enumeration()?;
                self.expect(";")?;
                push(StmtKind::Enumerators(enumerators));
            }
            _ => {
                let at = self.at;
                let storage = self.storage()?;
                if self.at != at || self.at_declaration() {
                    let base = self.base_type()?;
                    // `int const static x` does not occur; `const static int x` does.
                    return self.local_variables(base, storage, into);
                }
                if self.ahead(1).is(":") && !self.ahead(1).is("::") && self.peek().ident().is_some() {
                    let name = self.name("a name")?;
                    self.advance();
                    push(StmtKind::Label(name));
                    return if self.is("}") { Ok(()) } else { self.statement_inner(into) };
                }
                self.check_unknown_type()?;
                let value = self.expression()?;
                self.expect(";")?;
                self.check_statement(&value);
                into.push(Stmt { kind: StmtKind::Expr(value), span, last: Span::default() });
            }
        }
        Ok(())
    }

    fn local_variables(&mut self, base: TypeName, storage: Storage, into: &mut Vec<Stmt>) -> Result<()> {
        let span = base.span;
        if matches!(base.kind, TypeKind::Auto) {
            let by_reference = self.is("&") || self.is("&&");
            if self.is("[") || by_reference && self.ahead(1).is("[") {
                self.at += usize::from(by_reference);
                self.expect("[")?;
                let mut names = Vec::new();
                while !self.is("]") {
                    names.push(self.name("a name")?);
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect("]")?;
                self.expect("=")?;
                let value = self.assignment()?;
                self.expect(";")?;
                for name in &names {
                    self.declare(name, NameKind::Value);
                    self.declare_once(name, false, span)?;
                }
                let kind = StmtKind::Bindings { names, by_reference, value };
                into.push(Stmt { kind, span, last: self.last_span() });
                return Ok(());
            }
        }
        let variables = self.variables(base, storage)?;
        self.expect(";")?;
        into.push(Stmt { kind: StmtKind::Variables(variables), span, last: self.last_span() });
        Ok(())
    }

    /// Returns the `)` before the body as well.
    fn if_statement(&mut self) -> Result<(StmtKind, Span)> {
        let is_constexpr = self.eat_word("constexpr");
        self.expect("(")?;
        self.scoped(|parser| {
            let mut first = None;
            if parser.at_declaration() {
                let span = parser.span();
                let base = parser.base_type()?;
                let variables = parser.variables(base, Storage::default())?;
                let name = variables[0].name.clone();
                let last = parser.last_span();
                first = Some(Box::new(Stmt { kind: StmtKind::Variables(variables), span, last }));
                if !parser.eat(";") {
                    // `if (int n = f())`: the variable is the condition.
                    parser.expect(")")?;
                    let path =
                        Path { global: false, segments: vec![Segment { name, arguments: None }], span };
                    let condition = Expr { kind: ExprKind::Path(path), span };
                    return parser.if_rest(is_constexpr, first, condition);
                }
            }
            let is_in_parentheses = parser.is("(");
            let condition = parser.expression()?;
            parser.expect(")")?;
            parser.check_condition(&condition, is_in_parentheses);
            parser.if_rest(is_constexpr, first, condition)
        })
    }

    fn if_rest(
        &mut self,
        is_constexpr: bool,
        first: Option<Box<Stmt>>,
        condition: Expr,
    ) -> Result<(StmtKind, Span)> {
        let last = self.last_span();
        self.check_body(true);
        let yes = self.body()?;
        let no = if self.eat_word("else") { Some(self.body()?) } else { None };
        Ok((StmtKind::If { is_constexpr, first, condition, yes, no }, last))
    }

    fn for_statement(&mut self) -> Result<(StmtKind, Span)> {
        self.expect("(")?;
        let span = self.span();
        let mut first = None;
        if self.at_declaration() {
            let base = self.base_type()?;
            let at = self.at;
            let ty = self.pointers(base.clone())?;
            if self.ahead(1).is(":") && self.peek().ident().is_some() {
                let name = self.name("a name")?;
                self.expect(":")?;
                let range = if self.is("{") { self.braces()? } else { self.expression()? };
                let last = self.expect(")")?;
                let variable = Rc::new(self.plain_variable(&name, ty, span));
                self.declare(&name, NameKind::Value);
                let body = self.body()?;
                return Ok((StmtKind::Range { variable, range, body }, last));
            }
            self.at = at;
            let variables = self.variables(base, Storage::default())?;
            let last = self.last_span();
            first = Some(Box::new(Stmt { kind: StmtKind::Variables(variables), span, last }));
        } else if !self.is(";") {
            let value = self.expression()?;
            first = Some(Box::new(Stmt { kind: StmtKind::Expr(value), span, last: self.last_span() }));
        }
        self.expect(";")?;
        let condition = if self.is(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        let step = if self.is(")") { None } else { Some(self.expression()?) };
        let last = self.expect(")")?;
        self.check_body(false);
        let body = self.body()?;
        Ok((StmtKind::For { first, condition, step, body }, last))
    }

    pub fn plain_variable(&mut self, name: &Name, ty: TypeName, span: crate::source::Span) -> Variable {
        Variable {
            id: self.id(),
            name: name.clone(),
            ty,
            init: Init::None,
            storage: Storage::default(),
            span,
            template: Vec::new(),
            specialized: None,
            namespace: self.names.at,
            align: None,
        }
    }

    /// Parses `asm` with at most one output: `asm("…" : "=f"(x) : "h"(bits))`.
    fn asm(&mut self) -> Result<StmtKind> {
        self.eat_word("volatile");
        self.expect("(")?;
        let Tok::Str(text) = self.advance().tok else { return self.unexpected("the text of an instruction") };
        let mut output = None;
        let mut inputs = Vec::new();
        for section in 0..2 {
            if !self.eat(":") {
                break;
            }
            while let Tok::Str(constraint) = self.peek().tok.clone() {
                let letter =
                    if section == 0 { constraint.strip_prefix(['=', '+']) } else { Some(&*constraint) };
                if !letter.is_some_and(|letter| ["h", "r", "l", "f", "d", "n"].contains(&letter)) {
                    let wanted = if section == 0 { "`=` and " } else { "" };
                    let message =
                        format!("a constraint of `asm` is {wanted}one of the letters h, r, l, f, d and n");
                    return Err(Error::new(self.span(), message));
                }
                self.advance();
                self.expect("(")?;
                let value = self.expression()?;
                self.expect(")")?;
                if section == 0 {
                    self.mark_written(&value);
                    output = Some(value);
                } else {
                    inputs.push(value);
                }
                if !self.eat(",") {
                    break;
                }
            }
        }
        if self.eat(":") {
            while let Tok::Str(_) = self.peek().tok {
                self.advance();
                self.eat(",");
            }
        }
        self.expect(")")?;
        self.expect(";")?;
        Ok(StmtKind::Asm { text, output, inputs })
    }

    pub fn static_assert(&mut self) -> Result<(Expr, Option<Name>)> {
        self.advance();
        self.expect("(")?;
        let condition = self.conditional()?;
        let mut text = None;
        if self.eat(",")
            && let Tok::Str(found) = self.advance().tok
        {
            text = Some(found);
        }
        self.expect(")")?;
        self.expect(";")?;
        Ok((condition, text))
    }

    pub fn open_namespace(&mut self, path: &Path) -> Result<()> {
        match self.names.of_path(path) {
            Some(NameKind::Namespace(namespace)) => {
                let at = self.names.at;
                self.names.opened[at].push(namespace);
                self.tree.namespaces[at].opened.push(namespace);
                Ok(())
            }
            // The included headers may declare nothing in `std`; then there is nothing to open.
            None if path.segments.len() == 1 && &*path.segments[0].name == "std" => Ok(()),
            _ => Err(self.no_namespace(path)),
        }
    }
}

pub fn named_type(name: &Name, span: crate::source::Span) -> TypeName {
    let segments = vec![Segment { name: name.clone(), arguments: None }];
    TypeName { kind: TypeKind::Path(Path { global: false, segments, span }), is_const: false, span }
}
