//! Functions: their parameters and bodies, lambdas, and deduction guides.

use super::ast::*;
use super::names::NameKind;
use super::parser::{Body, Parser, is_keyword};
use super::storage::merged;
use crate::source::{Result, Span};
use std::collections::HashSet;
use std::rc::Rc;

impl Parser {
    pub(super) fn guide(&mut self, template: Vec<TemplateParameter>, name: Name) -> Result<()> {
        let span = self.advance().span;
        let ty = TypeName { kind: TypeKind::Nothing, is_const: false, span };
        self.expect("(")?;
        let parameters = self.parameters()?;
        self.expect("->")?;
        let result = self.whole_type()?;
        self.expect(";")?;
        let function = self.made_function(name.clone(), template, parameters, ty, span);
        let namespace = self.names.at;
        let guides = self.tree.namespaces[namespace].guides.entry(name).or_default();
        guides.push(Guide { function: Rc::new(function), result });
        Ok(())
    }

    fn made_function(
        &mut self,
        name: Name,
        template: Vec<TemplateParameter>,
        parameters: Vec<Parameter>,
        result: TypeName,
        span: Span,
    ) -> Function {
        Function {
            id: self.id(),
            is_c: self.in_c,
            name,
            template,
            specialized: None,
            is_specialization: false,
            parameters,
            result,
            body: None,
            qualifiers: Qualifiers::default(),
            members: Vec::new(),
            is_defaulted: false,
            span,
            namespace: self.names.at,
            written: HashSet::new(),
            is_method: false,
        }
    }

    /// Parses a function, starting at its `(`.
    #[allow(clippy::too_many_arguments)]
    pub fn function(
        &mut self,
        name: Name,
        template: Vec<TemplateParameter>,
        specialized: Option<Vec<TemplateArgument>>,
        result: TypeName,
        qualifiers: Qualifiers,
        span: Span,
        is_method: bool,
    ) -> Result<Function> {
        self.written.push(HashSet::new());
        let function = self.scoped(|parser| {
            parser.expect("(")?;
            let parameters = parser.parameters()?;
            // `template <> float f(float)` specialises a declared template; its own template parameter list is empty.
            let mut function = parser.made_function(name, template, parameters, result, span);
            function.specialized = specialized;
            function.is_specialization = std::mem::take(&mut parser.specializing);
            function.qualifiers = qualifiers;
            function.is_method = is_method;
            loop {
                if parser.eat_word("const") {
                    function.qualifiers.is_const = true;
                } else if parser.eat_word("noexcept") || parser.eat_word("override") {
                } else if parser.is("->") {
                    parser.advance();
                    function.result = parser.whole_type()?;
                } else {
                    break;
                }
            }
            if parser.eat("=") {
                if parser.eat_word("default") {
                    function.is_defaulted = true;
                } else if !parser.eat_word("delete") {
                    return parser.refuse(parser.span(), "pure virtual functions");
                }
                parser.expect(";")?;
                return Ok(function);
            }
            if parser.eat(";") {
                return Ok(function);
            }
            let start = parser.at;
            if parser.eat(":") {
                loop {
                    let span = parser.span();
                    let name = parser.name("a member")?;
                    let items =
                        if parser.is("{") { parser.list("{", "}")? } else { parser.list("(", ")")? };
                    function.members.push((name, items, span));
                    if !parser.eat(",") {
                        break;
                    }
                }
            }
            function.body = Some(parser.block()?);
            if parser.written.len() == 1 {
                parser.bodies.push(Body { function: function.id, tokens: start..parser.at });
            }
            Ok(function)
        });
        let written = self.written.pop().unwrap_or_default();
        if let Some(outer) = self.written.last_mut() {
            outer.extend(written.iter().cloned());
        }
        let mut function = function?;
        function.written = written;
        Ok(function)
    }

    /// Parses the function of a lambda. Returns whether it is `mutable`.
    pub fn lambda_function(&mut self, span: Span) -> Result<(Function, bool)> {
        let result = TypeName { kind: TypeKind::Auto, is_const: false, span };
        let mut qualifiers = Qualifiers::default();
        let mut is_mutable = false;
        self.written.push(HashSet::new());
        let function = self.scoped(|parser| {
            let mut storage = Storage::default();
            let before = parser.qualifiers(&mut storage)?;
            let parameters = if parser.eat("(") { parser.parameters()? } else { Vec::new() };
            qualifiers = merged(before, parser.qualifiers(&mut storage)?);
            is_mutable = parser.eat_word("mutable");
            qualifiers = merged(qualifiers, parser.qualifiers(&mut storage)?);
            let mut function =
                parser.made_function("operator()".into(), Vec::new(), parameters, result, span);
            if parser.eat("->") {
                function.result = parser.whole_type()?;
            }
            function.qualifiers = qualifiers;
            function.body = Some(parser.block()?);
            Ok(function)
        });
        let written = self.written.pop().unwrap_or_default();
        if let Some(outer) = self.written.last_mut() {
            outer.extend(written.iter().cloned());
        }
        let mut function = function?;
        function.written = written;
        Ok((function, is_mutable))
    }

    /// Parses the parameters up to the `)`, and declares their names.
    pub(super) fn parameters(&mut self) -> Result<Vec<Parameter>> {
        let mut parameters = Vec::new();
        if self.is_word("void") && self.ahead(1).is(")") {
            self.advance();
        }
        while !self.is(")") {
            if self.is("...") {
                return self.refuse(self.span(), "C's variable argument lists");
            }
            let span = self.span();
            self.parameter_qualifiers()?;
            let base = self.base_type()?;
            self.parameter_qualifiers()?;
            let mut ty = self.pointers(base)?;
            self.parameter_qualifiers()?;
            if self.is("(") {
                // `int (&a)[3]` and `int (*a)[3]`
                let by_reference = self.ahead(1).is("&");
                if !(self.ahead(1).is("*") || by_reference) {
                    return self.unexpected("a parameter");
                }
                self.advance();
                self.advance();
                let name = self.name("a name")?;
                self.expect(")")?;
                if self.is("(") && !by_reference {
                    // The function has these types itself.
                    self.scoped(|parser| {
                        parser.advance();
                        parser.parameters()
                    })?;
                    self.declare(&name, NameKind::Value);
                    self.declare_once(&name, false, span)?;
                    let ty = TypeName { kind: TypeKind::Function, is_const: false, span };
                    let id = self.id();
                    parameters.push(Parameter {
                        id,
                        name: Some(name),
                        ty,
                        default: None,
                        is_pack: false,
                        span,
                    });
                    if !self.eat(",") {
                        break;
                    }
                    continue;
                }
                if !self.is("[") {
                    return self.refuse(span, "references to functions");
                }
                let array = self.array_sizes(ty)?;
                let kind = match by_reference {
                    true => TypeKind::Reference(Box::new(array)),
                    false => TypeKind::Pointer(Box::new(array)),
                };
                self.declare(&name, NameKind::Value);
                let ty = TypeName { kind, is_const: false, span };
                let id = self.id();
                parameters.push(Parameter { id, name: Some(name), ty, default: None, is_pack: false, span });
                self.eat(",");
                continue;
            }
            let is_pack = self.eat("...");
            let mut name_span = span;
            let name = match self.peek().ident() {
                Some(word) if !is_keyword(word) => {
                    name_span = self.span();
                    Some(self.name("a name")?)
                }
                _ => None,
            };
            if self.is("[") {
                ty = self.array_sizes(ty)?;
                // An array parameter is a pointer.
                if let TypeKind::Array(element, _) = ty.kind {
                    ty = TypeName { kind: TypeKind::Pointer(element), is_const: false, span };
                }
            }
            let default = if self.eat("=") { Some(self.assignment()?) } else { None };
            if let Some(name) = &name {
                self.declare(name, NameKind::Value);
                self.declare_once(name, false, name_span)?;
            }
            let id = self.id();
            parameters.push(Parameter { id, name, ty, default, is_pack, span: name_span });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(parameters)
    }
}
