//! The parsed first headers of a program, which are the same for every program.

use super::ast::{DeclId, Namespace, Tree};
use super::names::Names;
use super::parser::Parser;
use crate::source::first_headers::{Key, key, last_of};
use crate::source::headers::Part;
use crate::source::lexer::Token;
use crate::source::{Errors, Span};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The state of the parser after the first headers.
pub struct First {
    pub names: Names,
    pub tree: Tree,
    pub next_id: DeclId,
}

thread_local! {
    static KNOWN: RefCell<HashMap<Key, Rc<First>>> = RefCell::default();
}

pub fn first_headers(parts: &[Part]) -> Result<Rc<First>, Errors> {
    let key = key(parts);
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).cloned()) {
        return Ok(known);
    }
    let first = match parts.split_last() {
        None => nothing(),
        Some((_, before)) => {
            let before = first_headers(before)?;
            let mut tokens = last_of(parts)?.tokens.clone();
            let end = Span { file: parts.len() as u32, line: 1, column: 1, length: 1 };
            tokens.push(Token::end(end));
            let mut parser = Parser::new(tokens, &before, 0);
            parser.whole_file()?;
            parser.tree.undeclared.clear();
            parser.tree.warnings.clear();
            First { names: parser.names, tree: parser.tree, next_id: parser.next_id }
        }
    };
    let first = Rc::new(first);
    KNOWN.with_borrow_mut(|known| known.insert(key, first.clone()));
    Ok(first)
}

/// Only the global namespace.
fn nothing() -> First {
    let names = Names {
        namespaces: vec![HashMap::new()],
        parents: vec![0],
        opened: vec![Vec::new()],
        ..Names::default()
    };
    First { names, tree: Tree { namespaces: vec![Namespace::default()], ..Tree::default() }, next_id: 0 }
}
