//! Variables, enumerations and type aliases.

use super::ast::*;
use super::names::NameKind;
use super::parser::Parser;
use super::statements::named_type;
use crate::source::{Error, Result, Span};
use std::rc::Rc;

impl Parser {
    /// Parses `[3][4]` after a name.
    pub fn array_sizes(&mut self, ty: TypeName) -> Result<TypeName> {
        let mut sizes = Vec::new();
        while self.is("[") && !self.ahead(1).is("[") {
            self.advance();
            let outer = std::mem::replace(&mut self.in_arguments, false);
            sizes.push(if self.is("]") { None } else { Some(Box::new(self.conditional()?)) });
            self.in_arguments = outer;
            self.expect("]")?;
            if sizes.len() > 8 {
                return Err(Error::new(self.span(), "this is nested too deeply"));
            }
        }
        let span = ty.span;
        Ok(sizes.into_iter().rev().fold(ty, |element, size| TypeName {
            kind: TypeKind::Array(Box::new(element), size),
            is_const: false,
            span,
        }))
    }

    /// Parses `a = 1, *b, c[3]`, without the `;`, and declares the names.
    pub fn variables(&mut self, base: TypeName, mut storage: Storage) -> Result<Vec<Rc<Variable>>> {
        let mut variables = Vec::new();
        loop {
            let base = base.clone();
            self.qualifiers(&mut storage)?;
            let ty = self.pointers(base)?;
            self.qualifiers(&mut storage)?;
            let span = self.span();
            if self.is("(") && self.ahead(1).is("*") {
                return self.refuse(span, "pointers to functions and arrays");
            }
            let name = self.name("the name of a variable")?;
            if self.is("::") {
                return self.refuse(span, "members that are defined outside of their struct");
            }
            let variable = self.variable_rest(name, ty, storage, span, Vec::new(), None)?;
            variables.push(Rc::new(variable));
            if !self.eat(",") {
                return Ok(variables);
            }
        }
    }

    pub(super) fn variable_rest(
        &mut self,
        name: Name,
        ty: TypeName,
        storage: Storage,
        span: Span,
        template: Vec<TemplateParameter>,
        specialized: Option<Vec<TemplateArgument>>,
    ) -> Result<Variable> {
        let ty = self.array_sizes(ty)?;
        if template.is_empty() && specialized.is_none() {
            self.declare(&name, NameKind::Value);
            if !self.names.scopes.is_empty() && !storage.is_extern {
                self.declare_once(&name, false, span)?;
            }
        }
        let init = if self.eat("=") {
            if self.is("{") { Init::Braces(self.list("{", "}")?) } else { Init::Value(self.assignment()?) }
        } else if self.is("{") {
            Init::Braces(self.list("{", "}")?)
        } else if self.is("(") {
            Init::Parentheses(self.list("(", ")")?)
        } else {
            Init::None
        };
        if matches!(ty.kind, TypeKind::Reference(_))
            && let Init::Value(value) = &init
        {
            self.mark_written(&value.clone());
        }
        let mut variable = self.plain_variable(&name, ty, span);
        variable.init = init;
        variable.storage = storage;
        variable.template = template;
        variable.specialized = specialized;
        Ok(variable)
    }

    pub fn enumeration(&mut self) -> Result<Vec<Rc<Variable>>> {
        let start = self.advance().span;
        let scoped = self.eat_word("class") || self.eat_word("struct");
        if scoped {
            return self.refuse(start, "scoped enumerations");
        }
        let name = if self.peek().ident().is_some() { Some(self.name("a name")?) } else { None };
        let int = TypeName { kind: TypeKind::Prim(Prim::I32), is_const: true, span: start };
        let base = if self.eat(":") { self.whole_type()? } else { int };
        let base = TypeName { is_const: true, ..base };
        self.expect("{")?;
        let mut values: Vec<Rc<Variable>> = Vec::new();
        while !self.is("}") {
            let span = self.span();
            let value_name = self.name("a name")?;
            let value = if self.eat("=") {
                self.conditional()?
            } else {
                match values.last() {
                    None => Expr { kind: ExprKind::Int(0, Prim::I32), span },
                    Some(last) => {
                        let segment = Segment { name: last.name.clone(), arguments: None };
                        let path = Path { global: false, segments: vec![segment], span };
                        let before = Expr { kind: ExprKind::Path(path), span };
                        let one = Expr { kind: ExprKind::Int(1, Prim::I32), span };
                        let kind = ExprKind::Binary(Binary::Add, Box::new(before), Box::new(one));
                        Expr { kind, span }
                    }
                }
            };
            let mut variable = self.plain_variable(&value_name, base.clone(), span);
            variable.init = Init::Value(value);
            variable.storage.is_constexpr = true;
            self.declare(&value_name, NameKind::Value);
            values.push(Rc::new(variable));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}")?;
        if let Some(name) = name {
            let alias = Alias {
                name: name.clone(),
                template: Vec::new(),
                ty: TypeName { is_const: false, ..base },
                span: start,
                namespace: self.names.at,
            };
            let at = self.names.at;
            self.declare(&name, NameKind::Type);
            self.tree.namespaces[at].aliases.insert(name, Rc::new(alias));
        }
        Ok(values)
    }

    /// Parses `using a = b;` or `typedef b a;`.
    pub fn alias(&mut self, template: Vec<TemplateParameter>) -> Result<Vec<Rc<Alias>>> {
        let span = self.span();
        let namespace = self.names.at;
        if self.eat_word("using") {
            let name = self.name("a name")?;
            self.expect("=")?;
            let ty = self.whole_type()?;
            let ty = self.array_sizes(ty)?;
            self.expect(";")?;
            let kind = if template.is_empty() { NameKind::Type } else { NameKind::TypeTemplate };
            self.declare(&name, kind);
            return Ok(vec![Rc::new(Alias { name, template, ty, span, namespace })]);
        }
        self.advance();
        let mut aliases = Vec::new();
        let base = if (self.is_word("struct") || self.is_word("enum")) && self.is_struct_declaration()
            || self.is_word("struct") && self.ahead(1).is("{")
        {
            let found = self.struct_declaration(Vec::new())?;
            named_type(&found.name, span)
        } else {
            self.base_type()?
        };
        loop {
            let ty = self.pointers(base.clone())?;
            if self.is("(") {
                return self.refuse(self.span(), "pointers to functions");
            }
            let name = self.name("a name")?;
            let ty = self.array_sizes(ty)?;
            self.declare(&name, NameKind::Type);
            aliases.push(Rc::new(Alias { name, template: template.clone(), ty, span, namespace }));
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(aliases)
    }
}
