//! The headers that come before everything else in a program. Their tokens and macros are the same for every program,
//! so they are made once.

use super::headers::Part;
use super::lexer::Token;
use super::macros::Macro;
use super::preprocessor::Preprocessor;
use super::{Files, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The last of a list of headers, after the others.
pub struct Header {
    pub tokens: Vec<Token>,
    pub macros: Vec<(Rc<str>, Rc<Macro>)>,
}

/// The names of the headers, in order.
pub type Key = Vec<&'static str>;

pub fn key(parts: &[Part]) -> Key {
    parts.iter().map(|(name, _)| *name).collect()
}

thread_local! {
    static KNOWN: RefCell<HashMap<Key, Rc<Header>>> = RefCell::default();
}

/// The last of these headers. The program is file 0, so the number of the first one is 1.
pub fn last_of(parts: &[Part]) -> Result<Rc<Header>> {
    let key = key(parts);
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).cloned()) {
        return Ok(known);
    }
    let mut files = Files::default();
    files.add("", "");
    let mut preprocessor = Preprocessor::new(&mut files, &|_| None);
    for count in 1..parts.len() {
        let (name, text) = parts[count - 1];
        preprocessor.files.add(name, text);
        preprocessor.macros.extend(last_of(&parts[..count])?.macros.iter().cloned());
    }
    let before = preprocessor.macros.clone();
    let (name, text) = parts[parts.len() - 1];
    preprocessor.file(name, text, None)?;
    let is_new = |name: &Rc<str>| !before.contains_key(name);
    let Preprocessor { output: tokens, macros, .. } = preprocessor;
    let macros = macros.into_iter().filter(|(name, _)| is_new(name)).collect();
    let header = Rc::new(Header { tokens, macros });
    KNOWN.with_borrow_mut(|known| known.insert(key, header.clone()));
    Ok(header)
}
