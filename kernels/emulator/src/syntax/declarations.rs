//! Declarations: functions, variables, structs, templates, namespaces.

use super::ast::*;
use super::names::NameKind;
use super::parser::{Body, Parser, is_keyword};
use super::statements::named_type;
use crate::source::lexer::Tok;
use crate::source::{Error, Result, Span};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The parts of a struct, as they are found.
#[derive(Default)]
struct Members {
    fields: Vec<Rc<Variable>>,
    statics: Vec<Rc<Variable>>,
    functions: Vec<Rc<Function>>,
    aliases: Vec<Rc<Alias>>,
    structs: Vec<Rc<Struct>>,
    enumerators: Vec<Rc<Variable>>,
    constructors: Vec<Rc<Function>>,
    conversions: Vec<Rc<Function>>,
    is_private: bool,
    private: HashSet<Name>,
}

impl Members {
    fn counts(&self) -> (usize, usize, usize) {
        (self.fields.len(), self.statics.len(), self.functions.len())
    }

    /// Notes the members that came after these counts, if they are private.
    fn note_private(&mut self, before: (usize, usize, usize)) {
        if self.is_private {
            let variables = self.fields[before.0..].iter().chain(&self.statics[before.1..]);
            let functions = self.functions[before.2..].iter().map(|function| &function.name);
            self.private.extend(variables.map(|variable| &variable.name).chain(functions).cloned());
        }
    }
}

impl Parser {
    /// One declaration at the level of a file or a namespace.
    pub fn declaration(&mut self, in_template: bool) -> Result<()> {
        self.deeper()?;
        let result = self.declaration_inner(in_template);
        self.depth -= 1;
        result
    }

    fn declaration_inner(&mut self, _in_template: bool) -> Result<()> {
        if self.eat(";") {
            return Ok(());
        }
        if self.is_word("extern") && matches!(self.ahead(1).tok, Tok::Str(_)) {
            self.advance();
            self.advance();
            if self.eat("{") {
                while !self.eat("}") {
                    if self.at_end() {
                        return self.unexpected("`}`");
                    }
                    self.declaration(false)?;
                }
                return Ok(());
            }
            return self.declaration(false);
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
                self.scoped(|parser| {
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

    fn import(&mut self, path: &Path) -> Result<()> {
        let mut at = if path.global { 0 } else { self.names.at };
        let (Some(last), first) = (path.segments.last(), &path.segments[..path.segments.len() - 1]) else {
            return Ok(());
        };
        for (i, segment) in first.iter().enumerate() {
            let kind = match i {
                0 if !path.global => self.names.find(&segment.name),
                _ => self.names.in_namespace(at, &segment.name),
            };
            let Some(NameKind::Namespace(namespace)) = kind else {
                return Err(Error::new(path.span, format!("there is no namespace `{}`", segment.name)));
            };
            at = namespace;
        }
        if let Some(kind) = self.names.in_namespace(at, &last.name) {
            let name = last.name.clone();
            self.names_of_namespace(&name, kind);
        }
        let here = self.names.at;
        self.tree.namespaces[here].imported.entry(last.name.clone()).or_default().push(at);
        Ok(())
    }

    /// Declares a name in the namespace, below the scopes of template parameters.
    fn names_of_namespace(&mut self, name: &Name, kind: NameKind) {
        let scopes = std::mem::take(&mut self.names.scopes);
        self.names.declare(name, kind);
        self.names.scopes = scopes;
    }

    pub fn namespace(&mut self) -> Result<()> {
        let span = self.advance().span;
        let outer = self.names.at;
        let name: Name = if self.is("{") { "".into() } else { self.name("the name of a namespace")? };
        if self.is("::") {
            return self.refuse(self.span(), "nested namespace names");
        }
        if self.eat("=") {
            return self.namespace_alias(&name);
        }
        let known = self.tree.namespaces[outer].children.get(&name).copied();
        let at = known.unwrap_or(self.tree.namespaces.len());
        if known.is_none() {
            let named = Namespace { name: Some(name.clone()), parent: outer, ..Namespace::default() };
            self.tree.namespaces.push(named);
            self.names.namespaces.push(HashMap::new());
            self.names.parents.push(outer);
            self.names.opened.push(Vec::new());
            self.tree.namespaces[outer].children.insert(name.clone(), at);
            if name.is_empty() {
                self.tree.namespaces[outer].opened.push(at);
                self.names.opened[outer].push(at);
            } else {
                self.names_of_namespace(&name, NameKind::Namespace(at));
            }
        }
        self.expect("{")?;
        self.names.at = at;
        while !self.is("}") {
            if self.at_end() {
                return Err(Error::new(span, "this namespace is not closed"));
            }
            self.declaration(false)?;
        }
        self.names.at = outer;
        self.expect("}").map(|_| ())
    }

    /// `namespace cg = cooperative_groups;`
    fn namespace_alias(&mut self, name: &Name) -> Result<()> {
        let path = self.path()?;
        self.expect(";")?;
        let Some(NameKind::Namespace(namespace)) = self.names.of_path(&path) else {
            return Err(self.no_namespace(&path));
        };
        let here = self.names.at;
        self.tree.namespaces[here].children.insert(name.clone(), namespace);
        self.names_of_namespace(name, NameKind::Namespace(namespace));
        Ok(())
    }

    pub fn no_namespace(&self, path: &Path) -> Box<Error> {
        let name = &path.segments[path.segments.len() - 1].name;
        let error = Error::new(path.span, format!("there is no namespace `{name}`"));
        match crate::source::headers::of_name(name) {
            Some(header) => error.help(format!("write `#include <{header}>`")),
            None => error,
        }
    }

    pub fn template_parameters(&mut self) -> Result<Vec<TemplateParameter>> {
        self.expect("<")?;
        let mut parameters = Vec::new();
        while !self.is(">") {
            let span = self.span();
            if self.is_word("typename") && !self.ahead(2).is("::") || self.is_word("class") {
                self.advance();
                let is_pack = self.eat("...");
                let name = if self.peek().ident().is_some() { self.name("a name")? } else { "".into() };
                let default = if self.eat("=") {
                    let outer = std::mem::replace(&mut self.in_arguments, true);
                    let ty = self.whole_type()?;
                    self.in_arguments = outer;
                    Some(ty)
                } else {
                    None
                };
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
                let is_pack = self.eat("...");
                let name = if self.peek().ident().is_some() { self.name("a name")? } else { "".into() };
                let default = if self.eat("=") {
                    let outer = std::mem::replace(&mut self.in_arguments, true);
                    let value = self.conditional()?;
                    self.in_arguments = outer;
                    Some(value)
                } else {
                    None
                };
                self.declare(&name, NameKind::Value);
                let kind = ParameterKind::Value(ty, default);
                parameters.push(TemplateParameter { name, kind, is_pack, span });
            }
            if !self.eat(",") {
                break;
            }
        }
        self.close_arguments()?;
        Ok(parameters)
    }

    /// A declaration, behind `template <…>` or by itself.
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
        // A guide, or a function that is defined outside of its struct.
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
            if self.is("::") {
                return self.refuse(name_span, "members that are defined outside of their struct");
            }
            let outer = self.at;
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
            self.at = outer;
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

    /// `(int n, float *x)`, and not the arguments of a constructor.
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

    fn is_struct_declaration(&mut self) -> bool {
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
                // A specialisation has a body; a variable of a template's type has a name.
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

    fn guide(&mut self, template: Vec<TemplateParameter>, name: Name) -> Result<()> {
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

    /// A function from its `(` on.
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
            // `template <> float f(float)` specialises; its template list is empty, and it was declared so.
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

    pub fn lambda_function(&mut self, span: Span) -> Result<Function> {
        let result = TypeName { kind: TypeKind::Auto, is_const: false, span };
        let mut qualifiers = Qualifiers::default();
        self.written.push(HashSet::new());
        let function = self.scoped(|parser| {
            let mut storage = Storage::default();
            let before = parser.qualifiers(&mut storage)?;
            let parameters = if parser.eat("(") { parser.parameters()? } else { Vec::new() };
            qualifiers = merged(before, parser.qualifiers(&mut storage)?);
            let is_mutable = parser.eat_word("mutable");
            qualifiers = merged(qualifiers, parser.qualifiers(&mut storage)?);
            if is_mutable {
                return parser.refuse(span, "`mutable` lambdas");
            }
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
        Ok(function)
    }

    /// Up to the `)`. Declares the names.
    fn parameters(&mut self) -> Result<Vec<Parameter>> {
        let mut parameters = Vec::new();
        if self.is_word("void") && self.ahead(1).is(")") {
            self.advance();
        }
        while !self.is(")") {
            if self.is("...") {
                return self.refuse(self.span(), "C's variable argument lists");
            }
            let span = self.span();
            let mut storage = Storage::default();
            self.qualifiers(&mut storage)?;
            let base = self.base_type()?;
            self.qualifiers(&mut storage)?;
            let mut ty = self.pointers(base)?;
            self.qualifiers(&mut storage)?;
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
                if !self.is("[") {
                    return self.refuse(span, "pointers to functions");
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

    /// `[3][4]` behind a name.
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

    /// `a = 1, *b, c[3]`, without the `;`. Declares the names.
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

    fn variable_rest(
        &mut self,
        name: Name,
        ty: TypeName,
        storage: Storage,
        span: Span,
        template: Vec<TemplateParameter>,
        specialized: Option<Vec<TemplateArgument>>,
    ) -> Result<Variable> {
        let ty = self.array_sizes(ty)?;
        if template.is_empty() && specialized.is_none() && !self.names.scopes.is_empty() {
            self.declare(&name, NameKind::Value);
            if !storage.is_extern {
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

    /// `using a = b;` or `typedef b a;`
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

    /// A struct up to its `}`.
    pub fn struct_declaration(&mut self, template: Vec<TemplateParameter>) -> Result<Rc<Struct>> {
        let is_class = self.is_word("class");
        let start = self.advance().span;
        let mut align = None;
        while self.is_word("alignas") || self.is_word("__align__") {
            self.advance();
            self.expect("(")?;
            align = Some(self.conditional()?);
            self.expect(")")?;
        }
        let id = self.id();
        let name: Name =
            if self.is("{") { format!("<struct {id}>").into() } else { self.name("the name of a struct")? };
        let specialized = if self.is("<") { Some(self.template_arguments()?) } else { None };
        let is_template = !template.is_empty() || specialized.is_some();
        let kind = if is_template { NameKind::TypeTemplate } else { NameKind::Type };
        let is_local = self.tree_level() > usize::from(is_template || !self.names.scopes.is_empty());
        // A template's name belongs around its own parameters.
        let inner = if is_template { self.names.scopes.pop() } else { None };
        self.declare(&name, kind);
        self.names.scopes.extend(inner);
        let _ = is_local;
        let mut bases = Vec::new();
        if self.eat(":") {
            loop {
                let _ = self.eat_word("public") || self.eat_word("private");
                bases.push(self.base_type()?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        let mut members = Members { is_private: is_class, ..Members::default() };
        let is_complete = self.is("{");
        if is_complete {
            self.advance();
            self.deeper()?;
            self.scoped(|parser| {
                // Within itself, the name of a template may stand without arguments.
                while !parser.is("}") {
                    if parser.at_end() {
                        return Err(Error::new(start, "this struct is not closed"));
                    }
                    let before = members.counts();
                    parser.member(&name, &mut members)?;
                    members.note_private(before);
                }
                Ok(())
            })?;
            self.depth -= 1;
            self.expect("}")?;
        }
        let made = Rc::new(Struct {
            id,
            name: name.clone(),
            template,
            specialized,
            fields: members.fields,
            statics: members.statics,
            functions: members.functions,
            aliases: members.aliases,
            structs: members.structs,
            enumerators: members.enumerators,
            constructors: members.constructors,
            conversions: members.conversions,
            private: members.private,
            bases,
            align,
            is_union: false,
            is_complete,
            span: start,
            namespace: self.names.at,
        });
        // Structs within functions and structs are kept there; the lowering finds them by their statement.
        if self.names.scopes.len() <= usize::from(is_template) {
            self.check_struct(&made)?;
            let at = self.names.at;
            let list = self.tree.namespaces[at].structs.entry(name).or_default();
            if is_complete && made.specialized.is_none() {
                list.retain(|known| known.is_complete || known.specialized.is_some());
            }
            if is_complete || list.is_empty() {
                // The general form stands first.
                let at = if made.specialized.is_none() { 0 } else { list.len() };
                list.insert(at, made.clone());
            }
        } else if is_complete && made.specialized.is_none() {
            self.declare_once(&made.name, true, start)?;
        }
        Ok(made)
    }

    fn tree_level(&self) -> usize {
        self.names.scopes.len()
    }

    fn member(&mut self, of: &Name, members: &mut Members) -> Result<()> {
        if self.eat(";") {
            return Ok(());
        }
        for word in ["public", "private", "protected"] {
            if self.is_word(word) && self.ahead(1).is(":") {
                self.advance();
                self.advance();
                members.is_private = word != "public";
                return Ok(());
            }
        }
        if self.is_word("virtual") {
            return self.refuse(self.span(), "virtual functions");
        }
        if self.is_word("friend") {
            return self.refuse(self.span(), "friends");
        }
        if self.is_word("union") {
            return self.refuse(self.span(), "unions");
        }
        if self.is_word("using") || self.is_word("typedef") {
            members.aliases.extend(self.alias(Vec::new())?);
            return Ok(());
        }
        if self.is_word("enum") {
            members.enumerators.extend(self.enumeration()?);
            return self.expect(";").map(|_| ());
        }
        if self.is_word("static_assert") {
            self.static_assert()?;
            return Ok(());
        }
        if self.is_word("template") {
            self.advance();
            return self.scoped(|parser| {
                let template = parser.template_parameters()?;
                parser.member_declaration(of, template, members)
            });
        }
        if (self.is_word("struct") || self.is_word("class")) && self.is_struct_declaration() {
            let found = self.struct_declaration(Vec::new())?;
            let ty = named_type(&found.name, found.span);
            members.structs.push(found);
            if !self.eat(";") {
                members.fields.extend(self.variables(ty, Storage::default())?);
                self.expect(";")?;
            }
            return Ok(());
        }
        self.member_declaration(of, Vec::new(), members)
    }

    fn member_declaration(
        &mut self,
        of: &Name,
        template: Vec<TemplateParameter>,
        members: &mut Members,
    ) -> Result<()> {
        let mut storage = self.storage()?;
        let mut qualifiers = self.qualifiers(&mut storage)?;
        let span = self.span();
        if self.is("~") {
            // Nothing of the subset needs one: memory is given back when the program ends.
            return self.refuse(span, "destructors");
        }
        let nothing = TypeName { kind: TypeKind::Nothing, is_const: false, span };
        if self.is_word(of) && self.ahead(1).is("(") {
            self.advance();
            let function = self.function(of.clone(), template, None, nothing, qualifiers, span, true)?;
            members.constructors.push(Rc::new(function));
            return Ok(());
        }
        if self.is_word("operator") && !matches!(self.ahead(1).tok, Tok::Punct(_)) {
            self.advance();
            let result = self.whole_type()?;
            let function =
                self.function("operator".into(), template, None, result, qualifiers, span, true)?;
            members.conversions.push(Rc::new(function));
            return Ok(());
        }
        let base = self.base_type()?;
        qualifiers = merged(qualifiers, self.qualifiers(&mut storage)?);
        let at = self.at;
        let ty = self.pointers(base.clone())?;
        qualifiers = merged(qualifiers, self.qualifiers(&mut storage)?);
        let is_operator = self.is_word("operator");
        let name_span = self.span();
        if is_operator || self.peek().ident().is_some() && self.ahead(1).is("(") {
            let name = if is_operator { self.operator_name()? } else { self.name("a name")? };
            if !template.is_empty() {
                self.names.namespaces[0].insert(format!("{name}<").into(), NameKind::ValueTemplate);
            }
            qualifiers.is_static |= storage.is_static;
            let function = self.function(name, template, None, ty, qualifiers, name_span, true)?;
            members.functions.push(Rc::new(function));
            return Ok(());
        }
        self.at = at;
        let variables = self.variables(base, storage)?;
        if self.is(":") {
            return self.refuse(self.span(), "bit fields");
        }
        self.expect(";")?;
        let list = if storage.is_static { &mut members.statics } else { &mut members.fields };
        list.extend(variables);
        Ok(())
    }

    pub fn attributes(&mut self) -> Result<()> {
        while self.is("[") && self.ahead(1).is("[") {
            while !self.is("]") && !self.at_end() {
                self.advance();
            }
            self.expect("]")?;
            self.expect("]")?;
        }
        Ok(())
    }

    /// `static`, `__shared__`, …
    pub fn storage(&mut self) -> Result<Storage> {
        let mut storage = Storage::default();
        loop {
            self.attributes()?;
            let at = self.at;
            match self.peek().ident().map(|word| word.to_string()).as_deref() {
                Some("static") => storage.is_static = true,
                Some("extern") => storage.is_extern = true,
                Some("constexpr") => storage.is_constexpr = true,
                Some("__shared__") => storage.shared = true,
                Some("__constant__") => storage.constant = true,
                Some("__device__") if !self.names.scopes.is_empty() && self.written.is_empty() => break,
                Some("__managed__") => return self.refuse(self.span(), "`__managed__` variables"),
                Some("thread_local") => return self.refuse(self.span(), "`thread_local` variables"),
                Some("inline" | "volatile" | "register" | "mutable") => {}
                Some("__align__" | "alignas") => {
                    self.advance();
                    self.expect("(")?;
                    self.conditional()?;
                    self.expect(")")?;
                    continue;
                }
                _ => break,
            }
            self.advance();
            if self.at == at {
                break;
            }
        }
        Ok(storage)
    }

    /// `__device__`, `inline`, `__launch_bounds__(256)`, …
    pub fn qualifiers(&mut self, storage: &mut Storage) -> Result<Qualifiers> {
        let mut qualifiers = Qualifiers::default();
        loop {
            self.attributes()?;
            let Some(word) = self.peek().ident().map(|word| word.to_string()) else { return Ok(qualifiers) };
            match word.as_str() {
                "__global__" => qualifiers.global = true,
                "__device__" => {
                    qualifiers.device = true;
                    storage.device = true;
                }
                "__host__" => qualifiers.host = true,
                "static" => {
                    qualifiers.is_static = true;
                    storage.is_static = true;
                }
                "constexpr" => {
                    qualifiers.is_constexpr = true;
                    storage.is_constexpr = true;
                }
                "explicit" => qualifiers.is_explicit = true,
                "__shared__" => storage.shared = true,
                "__constant__" => storage.constant = true,
                "extern" => storage.is_extern = true,
                "inline" | "__forceinline__" | "__noinline__" | "__inline__" | "__restrict__"
                | "__restrict" | "__grid_constant__" | "noexcept" => {}
                "__launch_bounds__" | "__attribute__" | "__align__" | "alignas" | "__cluster_dims__" => {
                    if word == "__cluster_dims__" {
                        return self.refuse(self.span(), "clusters");
                    }
                    self.advance();
                    self.expect("(")?;
                    let mut open = 1;
                    while open > 0 {
                        if self.at_end() {
                            return self.unexpected("`)`");
                        }
                        let token = self.advance();
                        open += i32::from(token.is("(")) - i32::from(token.is(")"));
                    }
                    continue;
                }
                _ => return Ok(qualifiers),
            }
            self.advance();
        }
    }
}

fn merged(a: Qualifiers, b: Qualifiers) -> Qualifiers {
    Qualifiers {
        global: a.global | b.global,
        device: a.device | b.device,
        host: a.host | b.host,
        is_static: a.is_static | b.is_static,
        is_const: a.is_const | b.is_const,
        is_constexpr: a.is_constexpr | b.is_constexpr,
        is_explicit: a.is_explicit | b.is_explicit,
    }
}
