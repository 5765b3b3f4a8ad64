//! Template parameters.

use super::ast::*;
use super::names::NameKind;
use super::parser::Parser;
use crate::source::{Error, Result};

impl Parser {
    /// Parses something after `template`.
    pub(super) fn in_template<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.templates += 1;
        let names = self.template_names.len();
        let result = self.scoped(parse);
        self.template_names.truncate(names);
        self.templates -= 1;
        result
    }

    /// Parses a parameter's optional name.
    fn name_if_any(&mut self) -> Result<Name> {
        if self.peek().ident().is_some() { self.name("a name") } else { Ok("".into()) }
    }

    /// Parses `= default`, where a `>` ends the list.
    fn default_argument<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if !self.eat("=") {
            return Ok(None);
        }
        let outer = std::mem::replace(&mut self.in_arguments, true);
        let default = parse(self)?;
        self.in_arguments = outer;
        Ok(Some(default))
    }

    pub fn template_parameters(&mut self) -> Result<Vec<TemplateParameter>> {
        self.expect("<")?;
        let mut parameters = Vec::new();
        while !self.is(">") {
            let span = self.span();
            if self.is_word("typename") && !self.ahead(2).is("::") || self.is_word("class") {
                self.advance();
                let is_pack = self.eat("...");
                let name = self.name_if_any()?;
                let default = self.default_argument(Self::whole_type)?;
                self.declare(&name, NameKind::Type);
                parameters.push(TemplateParameter {
                    name,
                    kind: ParameterKind::Type(default),
                    is_pack,
                    span,
                });
            } else if self.is_word("template") {
                return self.refuse(span, "template template parameters");
            } else {
                let ty = self.whole_type()?;
                if let TypeKind::Path(path) = &ty.kind
                    && let ([Segment { name, arguments: None }], false) = (&path.segments[..], path.global)
                    && self.names.find(name) == Some(NameKind::TypeTemplate)
                {
                    let message = format!("`{name}` is a template: its arguments are missing");
                    return Err(Error::new(path.span, message));
                }
                let is_pack = self.eat("...");
                let name = self.name_if_any()?;
                let default = self.default_argument(Self::conditional)?;
                self.declare(&name, NameKind::Value);
                let kind = ParameterKind::Value(ty, default);
                parameters.push(TemplateParameter { name, kind, is_pack, span });
            }
            if !self.eat(",") {
                break;
            }
        }
        self.close_arguments()?;
        let names = parameters.iter().map(|parameter| parameter.name.clone());
        self.template_names.extend(names.filter(|name| !name.is_empty()));
        Ok(parameters)
    }
}
