//! Written types, and paths.

use super::ast::*;
use super::names::NameKind;
use super::parser::{Parser, is_keyword};
use super::unknown::unknown_type;
use crate::source::lexer::Tok;
use crate::source::{Error, Result, Span};

impl Parser {
    /// Whether a type starts here.
    pub fn at_type(&mut self) -> bool {
        let Tok::Ident(name) = &self.peek().tok else {
            return self.is("::") && self.path_kind().is_some_and(is_type);
        };
        match &**name {
            "void" | "bool" | "char" | "short" | "int" | "long" | "signed" | "unsigned" | "float"
            | "double" | "auto" | "const" | "volatile" | "typename" | "decltype" | "struct" | "class"
            | "enum" | "union" => true,
            word if is_keyword(word) => false,
            _ => self.path_kind().is_some_and(is_type),
        }
    }

    /// The meaning of the path that starts here.
    pub fn path_kind(&mut self) -> Option<NameKind> {
        // A single word is the common case.
        if !self.ahead(1).is("::") && !self.is("::") {
            let kind = self.names.find(self.peek().ident()?)?;
            if kind != NameKind::TypeTemplate || !self.ahead(1).is("<") {
                return Some(kind);
            }
        }
        // Cached, since nested arguments would be looked up again at each level.
        if let Some(known) = self.names.kinds.get(&self.at) {
            return *known;
        }
        let at = self.at;
        let kind = self.kind_of_long_path();
        self.names.kinds.insert(at, kind);
        kind
    }

    fn kind_of_long_path(&mut self) -> Option<NameKind> {
        let (place, depth) = (self.place(), self.depth);
        let path = self.path();
        let next_is_name = self.peek().ident().is_some_and(|name| !is_keyword(name));
        let pointer_to_name = (self.is("*") || self.is("&")) && self.ahead(1).ident().is_some();
        self.go_back(place);
        self.depth = depth;
        let path = path.ok()?;
        match self.names.of_path(&path) {
            None if path.segments.len() > 1 && (next_is_name || pointer_to_name) => {
                // A struct member followed by a name: `Traits::type x`, `std::chrono::steady_clock::time_point t`.
                let most = if next_is_name { path.segments.len() } else { 2 };
                let is_of_type = (1..most).any(|count| {
                    let outer = Path { segments: path.segments[..count].to_vec(), ..path.clone() };
                    self.names.of_path(&outer).is_some_and(is_type)
                });
                is_of_type.then_some(NameKind::Type)
            }
            kind => kind,
        }
    }

    /// Parses a path such as `a::b<int>::c`.
    pub fn path(&mut self) -> Result<Path> {
        let start = self.span();
        let global = self.eat("::");
        let mut path = Path { global, segments: Vec::new(), span: start };
        loop {
            let template = path.segments.is_empty() || !self.eat_word("template");
            let name = self.name("a name")?;
            path.segments.push(Segment { name, arguments: None });
            if self.is("<") {
                let kind = self.names.of_path(&path);
                let member = kind.is_none();
                let is_template = matches!(kind, Some(NameKind::TypeTemplate | NameKind::ValueTemplate));
                if is_template || !template || member && self.attempt_arguments() {
                    let arguments = self.template_arguments()?;
                    if let Some(last) = path.segments.last_mut() {
                        last.arguments = Some(arguments);
                    }
                }
            }
            if self.is("::") && self.ahead(1).ident().is_some() {
                self.advance();
            } else {
                break;
            }
        }
        path.span = self.since(start);
        Ok(path)
    }

    fn attempt_arguments(&mut self) -> bool {
        let place = self.place();
        let closed = self.attempt(|parser| {
            parser.template_arguments()?;
            if parser.is("(") || parser.is("::") || parser.is("{") {
                Ok(())
            } else {
                parser.unexpected("`(`")
            }
        });
        self.go_back(place);
        closed.is_some()
    }

    /// The `T[]` of `unique_ptr<T[]>` becomes a type in the emulator's header.
    fn unsized_array(&mut self, ty: TypeName) -> Result<TypeName> {
        if !(self.is("[") && self.ahead(1).is("]")) {
            return Ok(ty);
        }
        self.advance();
        self.advance();
        let span = ty.span;
        let segment =
            Segment { name: "__emulator_array".into(), arguments: Some(vec![TemplateArgument::Type(ty)]) };
        let path = Path { global: true, segments: vec![segment], span };
        Ok(TypeName { kind: TypeKind::Path(path), is_const: false, span })
    }

    pub fn template_arguments(&mut self) -> Result<Vec<TemplateArgument>> {
        self.expect("<")?;
        self.deeper()?;
        let mut arguments = Vec::new();
        let outer = std::mem::replace(&mut self.in_arguments, true);
        while !self.is(">") && !self.is(">>") && !self.is(">>>") {
            let argument = if self.at_type() {
                match self.attempt(|parser| {
                    let ty = parser.whole_type()?;
                    let ty = parser.unsized_array(ty)?;
                    let ends = [",", ">", ">>", ">>>", "..."].iter().any(|end| parser.is(end));
                    if ends { Ok(ty) } else { parser.unexpected("`>`") }
                }) {
                    Some(ty) => TemplateArgument::Type(ty),
                    None => TemplateArgument::Value(self.conditional()?),
                }
            } else {
                TemplateArgument::Value(self.conditional()?)
            };
            let argument = match (argument, self.is("...")) {
                (argument, false) => argument,
                (TemplateArgument::Type(ty), true) => {
                    let span = self.advance().span;
                    TemplateArgument::Type(TypeName {
                        kind: TypeKind::Pack(Box::new(ty)),
                        is_const: false,
                        span,
                    })
                }
                (TemplateArgument::Value(value), true) => {
                    let span = self.advance().span;
                    TemplateArgument::Value(Expr { kind: ExprKind::Expand(Box::new(value)), span })
                }
            };
            arguments.push(argument);
            if !self.eat(",") {
                break;
            }
        }
        self.in_arguments = outer;
        self.depth -= 1;
        self.close_arguments()?;
        Ok(arguments)
    }

    /// Parses a type without a name, such as `const float *`.
    pub fn whole_type(&mut self) -> Result<TypeName> {
        let base = self.base_type()?;
        self.pointers(base)
    }

    /// Parses a type without `*`, such as `const unsigned int`.
    pub fn base_type(&mut self) -> Result<TypeName> {
        let start = self.span();
        let mut is_const = false;
        let mut words: Vec<&'static str> = Vec::new();
        let mut kind = None;
        loop {
            let word = match self.peek().ident() {
                Some(word) => word.to_string(),
                None if self.is("::") && kind.is_none() && words.is_empty() => {
                    kind = Some(TypeKind::Path(self.path()?));
                    continue;
                }
                None => break,
            };
            match word.as_str() {
                "const" => is_const = true,
                "volatile" | "__restrict__" | "register" | "__grid_constant__" => {}
                "void" | "bool" | "char" | "short" | "int" | "long" | "signed" | "unsigned" | "float"
                | "double" => {
                    if kind.is_some() {
                        break;
                    }
                    let all = [
                        "void", "bool", "char", "short", "int", "long", "signed", "unsigned", "float",
                        "double",
                    ];
                    words.extend(all.iter().filter(|known| **known == word));
                }
                "auto" if kind.is_none() && words.is_empty() => kind = Some(TypeKind::Auto),
                "decltype" if kind.is_none() && words.is_empty() => {
                    self.advance();
                    self.expect("(")?;
                    let value = self.expression()?;
                    self.expect(")")?;
                    kind = Some(TypeKind::Decltype(Box::new(value)));
                    continue;
                }
                "typename" | "struct" | "class" | "enum" if kind.is_none() && words.is_empty() => {
                    self.advance();
                    kind = Some(TypeKind::Path(self.path()?));
                    continue;
                }
                "union" => return self.refuse(self.span(), "unions"),
                word if is_keyword(word) => break,
                _ if kind.is_some() || !words.is_empty() => break,
                _ => {
                    let path = self.path()?;
                    let is_of_std = &*path.segments[0].name == "std" && path.segments.len() == 2;
                    let is_unknown =
                        self.names.of_path(&path).is_none() && (path.segments.len() == 1 || is_of_std);
                    if is_unknown && !path.global && !self.is("(") {
                        return Err(unknown_type(&path));
                    }
                    if let Some(NameKind::Namespace(_)) = self.names.of_path(&path) {
                        let name = &path.segments[path.segments.len() - 1].name;
                        let message = format!("`{name}` is a namespace, and here a type is needed");
                        return Err(Error::new(path.span, message));
                    }
                    kind = Some(TypeKind::Path(path));
                    continue;
                }
            }
            self.advance();
        }
        let span = self.since(start);
        let kind = match kind {
            Some(kind) => kind,
            None if words.is_empty() => return self.unexpected("a type"),
            None => TypeKind::Prim(prim(&words, span)?),
        };
        Ok(TypeName { kind, is_const, span })
    }

    /// Parses the `*`, `&` and `const` after a type.
    pub fn pointers(&mut self, mut ty: TypeName) -> Result<TypeName> {
        let mut count = 0;
        loop {
            let span = ty.span;
            let made = |kind| TypeName { kind, is_const: false, span };
            count += 1;
            if count > 20 {
                return Err(Error::new(self.span(), "this is nested too deeply"));
            }
            if self.eat("*") {
                ty = made(TypeKind::Pointer(Box::new(ty)));
            } else if self.eat("&") {
                ty = made(TypeKind::Reference(Box::new(ty)));
            } else if self.eat("&&") {
                ty = made(TypeKind::Forward(Box::new(ty)));
            } else if self.eat_word("const") {
                ty.is_const = true;
            } else if self.is_word("volatile") || self.is_word("__restrict__") || self.is_word("__restrict") {
                self.advance();
            } else {
                return Ok(ty);
            }
        }
    }
}

pub fn is_type(kind: NameKind) -> bool {
    matches!(kind, NameKind::Type | NameKind::TypeTemplate)
}

fn prim(words: &[&str], span: Span) -> Result<Prim> {
    let count = |word: &str| words.iter().filter(|w| **w == word).count();
    let unsigned = count("unsigned") > 0;
    let not_a_type = || Err(Error::new(span, format!("`{}` is not a type", words.join(" "))));
    let signs = count("unsigned") + count("signed");
    let has_no_sign = ["void", "bool", "float", "double"].iter().any(|word| count(word) > 0);
    let has_no_int = has_no_sign || count("char") > 0;
    if signs > 1 || count("int") > 1 || signs > 0 && has_no_sign || count("int") > 0 && has_no_int {
        return not_a_type();
    }
    let integer = |signed: Prim, other: Prim| if unsigned { other } else { signed };
    let rest: Vec<&str> =
        words.iter().copied().filter(|w| !["signed", "unsigned", "int"].contains(w)).collect();
    Ok(match rest[..] {
        ["void"] => Prim::Void,
        ["bool"] => Prim::Bool,
        ["float"] => Prim::F32,
        ["double"] => Prim::F64,
        ["char"] => integer(Prim::I8, Prim::U8),
        ["short"] => integer(Prim::I16, Prim::U16),
        [] => integer(Prim::I32, Prim::U32),
        ["long"] | ["long", "long"] => integer(Prim::I64, Prim::U64),
        ["long", "double"] => return Err(Error::new(span, "`long double` is not part of the subset")),
        _ => return not_a_type(),
    })
}
