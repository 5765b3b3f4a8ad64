//! Attributes, storage classes and qualifiers.

use super::ast::*;
use super::parser::Parser;
use crate::source::{Error, Result};

impl Parser {
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

    /// Parses `static`, `__shared__`, …
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

    /// Parses `__restrict__` and `__grid_constant__`, which a parameter can have.
    pub(super) fn parameter_qualifiers(&mut self) -> Result<()> {
        let span = self.span();
        let mut storage = Storage::default();
        let found = self.qualifiers(&mut storage)?;
        let is_stored = storage.shared || storage.constant || storage.is_extern || storage.is_static;
        let is_of_function =
            found.global || found.device || found.host || found.is_constexpr || found.is_explicit;
        if is_stored || is_of_function {
            let word = self.tokens[..self.at].iter().rev().find(|token| token.span == span);
            let word = word.and_then(|token| token.ident()).map_or("this", |word| &**word);
            return Err(Error::new(span, format!("`{word}` does not apply to a parameter")));
        }
        Ok(())
    }

    /// Parses `__device__`, `inline`, `__launch_bounds__(256)`, …
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

pub(super) fn merged(a: Qualifiers, b: Qualifiers) -> Qualifiers {
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
