//! Unknown types, reported by name.

use super::ast::*;
use super::parser::{Parser, is_keyword};
use crate::source::{Error, Result, headers};

impl Parser {
    /// Returns an error if two names stand where a declaration would: `Foo x`, `std::vector<int> v`.
    pub fn check_unknown_type(&mut self) -> Result<()> {
        let is_name =
            |parser: &Self, ahead: usize| parser.ahead(ahead).ident().is_some_and(|name| !is_keyword(name));
        if !is_name(self, 0) {
            return Ok(());
        }
        let mut ahead = 1;
        while self.ahead(ahead).is("::") && is_name(self, ahead + 1) {
            ahead += 2;
        }
        let is_of_std = self.is_word("std") && ahead == 3;
        let is_template = is_of_std && self.ahead(ahead).is("<");
        if !is_template && !is_name(self, ahead) {
            return Ok(());
        }
        let names = (0..ahead).step_by(2).filter_map(|at| self.ahead(at).ident().cloned());
        let segments: Vec<Segment> = names.map(|name| Segment { name, arguments: None }).collect();
        let last = self.ahead(ahead - 1).span;
        let start = self.span();
        let span = crate::source::Span { length: last.column + last.length - start.column, ..start };
        let path = Path { global: false, segments, span };
        match self.names.of_path(&path) {
            None if path.segments.len() == 1 || is_of_std => Err(unknown_type(&path)),
            _ => Ok(()),
        }
    }
}

pub fn unknown_type(path: &Path) -> Box<Error> {
    let names: Vec<&str> = path.segments.iter().map(|segment| &*segment.name).collect();
    let name = names.join("::");
    let error = Error::new(path.span, format!("unknown type `{name}`"));
    let header = match names[..] {
        ["std", of_std] => headers::of_std(of_std),
        _ => headers::of_name(&name),
    };
    match (header, names[..].first()) {
        (Some(header), _) => error.help(format!("write `#include <{header}>`")),
        (None, Some(&"std")) => Error::new(path.span, format!("`{name}` is not part of the subset")),
        _ => match WORDS.iter().find(|word| word.trim_matches('_') == name.trim_matches('_')) {
            Some(word) => error.help(format!("did you mean `{word}`?")),
            None => error.label("no such type in this scope"),
        },
    }
}

const WORDS: &[&str] =
    &["__global__", "__device__", "__host__", "__shared__", "__constant__", "__restrict__"];
