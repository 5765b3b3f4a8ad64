//! Structs and classes.

use super::ast::*;
use super::names::NameKind;
use super::parser::Parser;
use super::statements::named_type;
use super::storage::merged;
use crate::source::lexer::Tok;
use crate::source::{Error, Result};
use std::collections::HashSet;
use std::rc::Rc;

/// The members of a struct, collected while parsing.
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

    /// Records the members added after these counts, if they are private.
    fn note_private(&mut self, before: (usize, usize, usize)) {
        if self.is_private {
            let variables = self.fields[before.0..].iter().chain(&self.statics[before.1..]);
            let functions = self.functions[before.2..].iter().map(|function| &function.name);
            self.private.extend(variables.map(|variable| &variable.name).chain(functions).cloned());
        }
    }
}

impl Parser {
    /// The name that a typedef gives to the unnamed struct whose body begins here.
    fn name_after_body(&self) -> Option<Name> {
        let mut depth = 0;
        for (n, token) in self.tokens[self.at..].iter().enumerate() {
            depth += i32::from(token.is("{")) - i32::from(token.is("}"));
            if depth == 0 {
                return self.ahead(n + 1).ident().cloned();
            }
        }
        None
    }

    /// Parses a struct up to its `}`.
    pub fn struct_declaration(&mut self, template: Vec<TemplateParameter>) -> Result<Rc<Struct>> {
        let is_class = self.is_word("class");
        let is_typedef =
            self.at > 0 && self.tokens[self.at - 1].ident().is_some_and(|word| &**word == "typedef");
        let start = self.advance().span;
        let mut align = None;
        while self.is_word("alignas") || self.is_word("__align__") {
            self.advance();
            self.expect("(")?;
            align = Some(self.conditional()?);
            self.expect(")")?;
        }
        let id = self.id();
        let name: Name = match self.is("{") {
            false => self.name("the name of a struct")?,
            true => {
                let typedef = is_typedef.then(|| self.name_after_body()).flatten();
                typedef.unwrap_or_else(|| format!("<struct {id}>").into())
            }
        };
        if self.is("<") && self.names.find(&name) != Some(NameKind::TypeTemplate) {
            return Err(Error::new(self.span(), format!("`{name}` is not a template")));
        }
        let specialized = if self.is("<") { Some(self.template_arguments()?) } else { None };
        let is_template = !template.is_empty() || specialized.is_some();
        let kind = if is_template { NameKind::TypeTemplate } else { NameKind::Type };
        let is_local = self.tree_level() > usize::from(is_template || !self.names.scopes.is_empty());
        // A template's name belongs to the scope around its parameters.
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
        let undeclared = self.tree.undeclared.len();
        let mut members = Members { is_private: is_class, ..Members::default() };
        let is_complete = self.is("{");
        if is_complete {
            self.advance();
            self.deeper()?;
            self.scoped(|parser| {
                // Inside a template, its own name may be used without arguments.
                while !parser.is("}") {
                    if parser.at_end() {
                        return Err(Error::new(start, "this struct is not closed").last());
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
        self.declare_members(&made, undeclared);
        // Structs in functions and structs stay there; the lowering finds them by their statement.
        if self.names.scopes.len() <= usize::from(is_template) {
            self.check_struct(&made)?;
            let at = self.names.at;
            let list = self.tree.namespaces[at].structs.entry(name).or_default();
            if is_complete && made.specialized.is_none() {
                list.retain(|known| known.is_complete || known.specialized.is_some());
            }
            if is_complete || list.is_empty() {
                // The primary template comes first.
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
            return self.in_template(|parser| {
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
            self.advance();
            let name = format!("~{}", self.name("the name of the struct")?);
            let result = TypeName { kind: TypeKind::Prim(Prim::Void), is_const: false, span };
            let function = self.function(name.into(), Vec::new(), None, result, qualifiers, span, true)?;
            members.functions.push(Rc::new(function));
            return Ok(());
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
}
