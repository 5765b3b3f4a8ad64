//! Declarations: recognising the next one, and the declarations that a template or a file can contain.

use super::ast::*;
use super::names::NameKind;
use super::parser::Parser;
use super::statements::named_type;
use super::storage::merged;
use crate::source::lexer::Tok;
use crate::source::{Error, Result};
use std::rc::Rc;

impl Parser {
    /// Parses a declaration at file or namespace scope.
    pub fn declaration(&mut self, in_template: bool) -> Result<()> {
        self.deeper()?;
        let result = self.declaration_inner(in_template);
        self.depth -= 1;
        result
    }

    /// Parses the rest of `extern "C"`.
    fn of_language(&mut self) -> Result<()> {
        if !self.eat("{") {
            return self.declaration(false);
        }
        while !self.eat("}") {
            if self.at_end() {
                return self.unexpected("`}`");
            }
            self.declaration_or_next()?;
        }
        Ok(())
    }

    fn declaration_inner(&mut self, _in_template: bool) -> Result<()> {
        if self.eat(";") {
            return Ok(());
        }
        if self.is("}") {
            return Err(self.closes_nothing());
        }
        if self.is_word("extern") && matches!(self.ahead(1).tok, Tok::Str(_)) {
            self.advance();
            let language = self.advance();
            let is_c = matches!(&language.tok, Tok::Str(name) if &**name == "C");
            if !is_c && !matches!(&language.tok, Tok::Str(name) if &**name == "C++") {
                return Err(Error::new(language.span, "`extern` knows the languages \"C\" and \"C++\""));
            }
            let outer = std::mem::replace(&mut self.in_c, is_c);
            let result = self.of_language();
            self.in_c = outer;
            return result;
        }
        let word = self.peek().ident().map_or(String::new(), |word| word.to_string());
        match word.as_str() {
            "namespace" => self.namespace(),
            "inline" if self.ahead(1).ident().is_some_and(|next| &**next == "namespace") => {
                self.advance();
                self.namespace()
            }
            "template" => {
                self.advance();
                if !self.is("<") {
                    return self.refuse(self.span(), "explicit instantiations");
                }
                self.in_template(|parser| {
                    let template = parser.template_parameters()?;
                    parser.specializing = template.is_empty();
                    let result = parser.templated(template);
                    parser.specializing = false;
                    result
                })
            }
            "static_assert" => {
                let (condition, text) = self.static_assert()?;
                let at = self.names.at;
                self.tree.assertions.borrow_mut().push((condition, text, at));
                Ok(())
            }
            "using" if self.ahead(1).ident().is_some_and(|next| &**next == "namespace") => {
                self.advance();
                self.advance();
                let path = self.path()?;
                self.expect(";")?;
                self.open_namespace(&path)
            }
            "using" if !self.ahead(2).is("=") => {
                self.advance();
                let path = self.path()?;
                self.expect(";")?;
                self.import(&path)
            }
            _ => self.templated(Vec::new()),
        }
    }

    /// Parses a declaration, after `template <…>` or on its own.
    fn templated(&mut self, template: Vec<TemplateParameter>) -> Result<()> {
        let is_template = !template.is_empty();
        let namespace = self.names.at;
        if self.is_word("template") {
            return self.refuse(self.span(), "templates within templates");
        }
        if self.is_word("using") || self.is_word("typedef") {
            for alias in self.alias(template)? {
                let kind = if alias.template.is_empty() { NameKind::Type } else { NameKind::TypeTemplate };
                self.names_of_namespace(&alias.name, kind);
                self.tree.namespaces[namespace].aliases.insert(alias.name.clone(), alias);
            }
            return Ok(());
        }
        if self.is_word("enum") {
            for value in self.enumeration()? {
                self.check_variable(&value)?;
                self.names_of_namespace(&value.name, NameKind::Value);
                self.tree.namespaces[namespace].variables.entry(value.name.clone()).or_default().push(value);
            }
            return self.expect(";").map(|_| ());
        }
        if self.is_word("union") {
            return self.refuse(self.span(), "unions");
        }
        if (self.is_word("struct") || self.is_word("class")) && self.is_struct_declaration() {
            let span = self.span();
            let found = self.struct_declaration(template)?;
            let ty = named_type(&found.name, span);
            if !self.eat(";") {
                let variables = self.variables(ty, Storage::default())?;
                self.expect(";")?;
                self.add_globals(variables)?;
            }
            return Ok(());
        }
        let mut storage = self.storage()?;
        let mut qualifiers = self.qualifiers(&mut storage)?;
        // A deduction guide, or a function defined outside its struct.
        let start = self.span();
        if let Some(Tok::Ident(name)) = Some(self.peek().tok.clone())
            && self.ahead(1).is("(")
            && self.names.find(&name) == Some(NameKind::TypeTemplate)
        {
            return self.guide(template, name);
        }
        let base = self.base_type()?;
        let more = self.qualifiers(&mut storage)?;
        qualifiers = merged(qualifiers, more);
        let at = self.at;
        let ty = self.pointers(base.clone())?;
        let ty_more = self.qualifiers(&mut storage)?;
        qualifiers = merged(qualifiers, ty_more);
        let is_operator = self.is_word("operator");
        if is_operator || self.peek().ident().is_some() {
            let name_span = self.span();
            let name = if is_operator { self.operator_name()? } else { self.name("a name")? };
            self.check_template_name(&name, name_span)?;
            if self.is("::") {
                return self.refuse(name_span, "members that are defined outside of their struct");
            }
            let outer = self.place();
            let specialized = if self.is("<") { Some(self.template_arguments()?) } else { None };
            qualifiers.is_constexpr |= storage.is_constexpr;
            if self.is("(") && (is_operator || self.is_parameter_list()) {
                let is_template = is_template || self.specializing;
                let kind = if is_template { NameKind::ValueTemplate } else { NameKind::Value };
                self.names_of_namespace(&name, kind);
                let function =
                    self.function(name, template, specialized, ty, qualifiers, name_span, false)?;
                self.check_function(&function)?;
                let list =
                    self.tree.namespaces[namespace].functions.entry(function.name.clone()).or_default();
                list.push(Rc::new(function));
                return Ok(());
            }
            self.go_back(outer);
            if self.is("<") {
                let specialized = self.template_arguments()?;
                let kind = NameKind::ValueTemplate;
                self.names_of_namespace(&name, kind);
                let variable =
                    self.variable_rest(name, ty, storage, name_span, template, Some(specialized))?;
                self.expect(";")?;
                self.add_globals(vec![Rc::new(variable)])?;
                return Ok(());
            }
            if is_template {
                self.names_of_namespace(&name, NameKind::ValueTemplate);
                let variable = self.variable_rest(name, ty, storage, name_span, template, None)?;
                self.expect(";")?;
                self.add_globals(vec![Rc::new(variable)])?;
                return Ok(());
            }
        }
        if self.at == at && !self.is("*") && self.peek().ident().is_none() {
            let _ = start;
            return self.unexpected("a name");
        }
        self.at = at;
        let variables = self.variables(base, storage)?;
        self.expect(";")?;
        self.add_globals(variables)?;
        Ok(())
    }

    fn add_globals(&mut self, variables: Vec<Rc<Variable>>) -> Result<()> {
        let namespace = self.names.at;
        for variable in variables {
            self.check_variable(&variable)?;
            if variable.template.is_empty() && variable.specialized.is_none() {
                self.names_of_namespace(&variable.name, NameKind::Value);
            }
            self.tree.namespaces[namespace]
                .variables
                .entry(variable.name.clone())
                .or_default()
                .push(variable);
        }
        Ok(())
    }

    /// Whether `(…)` is a parameter list, such as `(int n, float *x)`, and not the arguments of a constructor.
    fn is_parameter_list(&mut self) -> bool {
        let at = self.at;
        self.at += 1;
        let is_unknown = self.peek().ident().is_some_and(|name| self.names.find(name).is_none())
            && (self.ahead(1).is("*") || self.ahead(1).is("&") || self.ahead(1).ident().is_some());
        let is_of_std = self.is_word("std")
            && self
                .ahead(2)
                .ident()
                .is_some_and(|name| &**name == "string" || crate::source::headers::of_std(name).is_some());
        let found = self.is(")") || self.is("...") || self.at_type() || is_unknown || is_of_std;
        self.at = at;
        found
    }

    pub(super) fn is_struct_declaration(&mut self) -> bool {
        // `struct Name {`, `struct alignas(16) Name`, `struct Name<int> {`, `struct Name;`, `struct Name : Base {`
        let mut ahead = 1;
        if self.ahead(ahead).ident().is_some_and(|word| &**word == "alignas" || &**word == "__align__") {
            return true;
        }
        if self.ahead(ahead).is("{") {
            return true;
        }
        ahead += 1;
        ["{", ";", "<", ":"].iter().any(|punct| self.ahead(ahead).is(punct)) && {
            !(self.ahead(ahead).is("<")) || {
                // A specialisation has a body; a variable of a template type has a name.
                let mut at = self.at + ahead;
                let mut open = 0;
                while at < self.tokens.len() {
                    let token = &self.tokens[at];
                    if token.is("<") {
                        open += 1;
                    } else if token.is(">") {
                        open -= 1;
                    } else if token.is(">>") {
                        open -= 2;
                    }
                    at += 1;
                    if open <= 0 {
                        break;
                    }
                }
                self.tokens.get(at).is_some_and(|token| token.is("{") || token.is(";") || token.is(":"))
            }
        }
    }

    pub fn operator_name(&mut self) -> Result<Name> {
        self.advance();
        if self.is("(") && self.ahead(1).is(")") {
            self.advance();
            self.advance();
            return Ok("operator()".into());
        }
        if self.eat("[") {
            self.expect("]")?;
            return Ok("operator[]".into());
        }
        match self.advance().tok {
            Tok::Punct(punct) => Ok(format!("operator{punct}").into()),
            _ => self.unexpected("an operator"),
        }
    }
}
