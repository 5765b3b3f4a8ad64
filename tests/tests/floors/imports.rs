//! The import graph of a crate's files, read from its sources.
//!
//! An arrow leads from a file to the file that defines a name it uses, through any re-exports. Names are found
//! everywhere: in `use`, in paths in code, in macro arguments, and in macro expansions. Tests are excluded. Resolving a
//! method would need types, so only method names are compared: see [`Methods`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// For each file, the files that it imports from.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// A path as written, `crate::ops::half`, or the module or item that it resolves to.
type Name = Vec<String>;

/// A name imported by `use`: its local name, and its path.
struct Import {
    alias: String,
    stands_for: Name,
}

#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// The targets of `use …::*`.
    globs: Vec<Name>,
    /// The paths in its code.
    paths: BTreeSet<Name>,
    /// The functions that take `self`, and the methods that its code calls.
    methods: BTreeSet<String>,
    calls: BTreeSet<String>,
}

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Name, Module>,
    /// Lookup results, by module and name. Also `None` during a lookup, so that circular imports resolve to nothing.
    known: RefCell<BTreeMap<(Name, String), Option<Found>>>,
}

#[derive(Clone)]
enum Found {
    Module(Name),
    /// In this file.
    Item(String),
}

/// The methods of a crate by name.
#[derive(Debug, Default)]
pub struct Methods {
    /// The files that define a method, of any type.
    pub defined: BTreeMap<String, BTreeSet<String>>,
    /// The methods that each file calls.
    pub called: BTreeMap<String, BTreeSet<String>>,
}

pub fn methods(source: &Path) -> Methods {
    let mut all = Crate::default();
    all.read(source, "lib.rs", Name::new());
    let mut methods = Methods::default();
    for module in all.modules.into_values() {
        for name in module.methods {
            methods.defined.entry(name).or_default().insert(module.file.clone());
        }
        methods.called.entry(module.file).or_default().extend(module.calls);
    }
    methods
}

/// The arrows between the files under a folder with a `lib.rs`, except those from `lib.rs` itself, which names
/// everything.
pub fn arrows(source: &Path) -> Arrows {
    let mut all = Crate::default();
    all.read(source, "lib.rs", Name::new());
    arrows_of(&all)
}

/// The name of the crate below `tensor`, whose modules are below a module of this name in [`arrows_of_both`].
const GPU: &str = "todevice_gpu";

/// The arrows between the files of `tensor` and `gpu`, by their names from the root of the checkout.
pub fn arrows_of_both(root: &Path) -> Arrows {
    let mut all = Crate::default();
    all.read(root, "tensor/src/lib.rs", Name::new());
    all.read(root, "gpu/src/lib.rs", vec![GPU.to_owned()]);
    arrows_of(&all)
}

/// The module that `crate` means in a module.
fn root_of(module: &[String]) -> Name {
    module.iter().take(1).filter(|name| *name == GPU).cloned().collect()
}

fn arrows_of(all: &Crate) -> Arrows {
    let mut arrows = Arrows::new();
    for (name, module) in &all.modules {
        let to = arrows.entry(module.file.clone()).or_default();
        let imported = module.imports.iter().map(|import| &import.stands_for);
        for path in imported.chain(&module.paths) {
            if let Some(Found::Item(file)) = all.resolve(name, path) {
                to.insert(file);
            }
        }
        for path in &module.globs {
            if let Some(Found::Module(other)) = all.resolve(name, path) {
                to.insert(all.modules[&other].file.clone());
            }
        }
    }
    for (from, to) in &mut arrows {
        to.remove(from);
    }
    arrows.retain(|file, _| !file.ends_with("lib.rs"));
    arrows
}

impl Crate {
    fn read(&mut self, source: &Path, file: &str, name: Name) {
        let text = fs::read_to_string(source.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
        self.module(source, file, name, tokens);
    }

    /// Adds a module and its submodules.
    fn module(&mut self, source: &Path, file: &str, name: Name, tokens: TokenStream) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_punct(&tokens[at], '#') && is_test(tokens.get(at + 1)) {
                at = after_item(&tokens, at + 2);
                continue;
            }
            let (word, next) = (word(&tokens[at]), tokens.get(at + 1));
            match (word.as_str(), next, tokens.get(at + 2)) {
                ("mod", Some(TokenTree::Ident(child)), Some(TokenTree::Group(body))) => {
                    self.module(source, file, [&name[..], &[child.to_string()]].concat(), body.stream());
                    at += 3;
                    continue;
                }
                ("mod", Some(TokenTree::Ident(child)), _) => {
                    let child = child.to_string();
                    let inner = [&name[..], std::slice::from_ref(&child)].concat();
                    let folder = folder_of(file);
                    let beside = format!("{folder}{child}.rs");
                    let within = format!("{folder}{child}/mod.rs");
                    let file = if source.join(&beside).exists() { beside } else { within };
                    self.read(source, &file, inner);
                }
                ("const" | "static", Some(TokenTree::Ident(item)), _)
                    if !["fn", "unsafe", "mut"].contains(&item.to_string().as_str()) =>
                {
                    module.items.insert(item.to_string());
                }
                ("fn" | "struct" | "enum" | "union" | "trait" | "type", Some(TokenTree::Ident(item)), _) => {
                    module.items.insert(item.to_string());
                }
                ("macro_rules", _, Some(TokenTree::Ident(item))) => {
                    module.items.insert(item.to_string());
                }
                _ => {}
            }
            at += 1;
        }
        let code: Vec<TokenTree> = without_tests_and_modules(&tokens);
        names_in(&code, &mut module);
        self.modules.insert(name, module);
    }

    /// Resolves a path used in a module.
    fn resolve(&self, module: &[String], path: &[String]) -> Option<Found> {
        let mut found = match path.first()?.as_str() {
            "crate" => Found::Module(root_of(module)),
            GPU => Found::Module(vec![GPU.to_owned()]),
            "self" => Found::Module(module.to_vec()),
            "super" => Found::Module(module[..module.len().checked_sub(1)?].to_vec()),
            first => self.look_up(module, first)?,
        };
        for segment in &path[1..] {
            found = match (found, segment.as_str()) {
                (item @ Found::Item(_), _) => item, // a variant or an associated function
                (Found::Module(module), "super") => Found::Module(module[..module.len() - 1].to_vec()),
                (Found::Module(module), "self") => Found::Module(module),
                (Found::Module(module), segment) => {
                    self.look_up(&module, segment).or_else(|| self.made_by_macro(&module, segment))?
                }
            };
        }
        Some(found)
    }

    /// Looks up a name in a module.
    fn look_up(&self, module: &[String], name: &str) -> Option<Found> {
        let key = (module.to_vec(), name.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        self.known.borrow_mut().insert(key.clone(), None);
        let found = self.find(module, name);
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    /// A name that a module neither declares nor imports is declared by a macro that it calls.
    fn made_by_macro(&self, module: &[String], name: &str) -> Option<Found> {
        let own = self.modules.get(module)?;
        let is_imported = !own.globs.is_empty() || own.imports.iter().any(|import| import.alias == name);
        (!is_imported && !own.file.ends_with("lib.rs")).then(|| Found::Item(own.file.clone()))
    }

    fn find(&self, module: &[String], name: &str) -> Option<Found> {
        let own = self.modules.get(module)?;
        if own.items.contains(name) {
            return Some(Found::Item(own.file.clone()));
        }
        let child = [module, &[name.to_owned()]].concat();
        if self.modules.contains_key(&child) {
            return Some(Found::Module(child));
        }
        let mut imports = own.imports.iter().filter(|import| import.alias == name);
        imports.find_map(|import| self.resolve(module, &import.stands_for)).or_else(|| {
            own.globs.iter().find_map(|glob| match self.resolve(module, glob)? {
                Found::Module(other) => self.look_up(&other, name),
                Found::Item(_) => None,
            })
        })
    }
}

/// The folder of a file's submodules, with a slash at its end: `a/` for `a/mod.rs`, `a/b/` for `a/b.rs`.
fn folder_of(file: &str) -> String {
    match file.strip_suffix("lib.rs").or(file.strip_suffix("mod.rs")) {
        Some(folder) => folder.to_owned(),
        None => file.replace(".rs", "/"),
    }
}

fn word(token: &TokenTree) -> String {
    match token {
        TokenTree::Ident(word) => word.to_string(),
        _ => String::new(),
    }
}

fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

/// Whether an attribute's group marks the next item as a test.
fn is_test(group: Option<&TokenTree>) -> bool {
    let text = group.map(ToString::to_string).unwrap_or_default();
    let text: String = text.split_whitespace().collect();
    text == "[cfg(test)]" || text.starts_with("[cfg(all(test,")
}

/// The index after the item that begins here.
fn after_item(tokens: &[TokenTree], from: usize) -> usize {
    let is_end = |token: &TokenTree| {
        is_punct(token, ';')
            || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    let end = tokens[from..].iter().position(is_end).map_or(tokens.len(), |length| from + length + 1);
    // `use a::{b, c};` ends after its braces.
    if tokens.get(end).is_some_and(|token| is_punct(token, ';')) { end + 1 } else { end }
}

/// The tokens of a module without tests and without the bodies of submodules, which have their own names.
fn without_tests_and_modules(tokens: &[TokenTree]) -> Vec<TokenTree> {
    let mut code = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_punct(&tokens[at], '#') && is_test(tokens.get(at + 1)) {
            at = after_item(tokens, at + 2);
        } else if word(&tokens[at]) == "mod" && matches!(tokens.get(at + 2), Some(TokenTree::Group(_))) {
            at += 3;
        } else {
            code.push(tokens[at].clone());
            at += 1;
        }
    }
    code
}

/// Collects the imports and paths among tokens, at any depth.
fn names_in(tokens: &[TokenTree], module: &mut Module) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => {
                names_in(&within(group), module);
                at += 1;
            }
            // `use<'a>` in a type is not an import.
            TokenTree::Ident(word)
                if word == "use" && !tokens.get(at + 1).is_some_and(|next| is_punct(next, '<')) =>
            {
                let end = tokens[at..].iter().position(|token| is_punct(token, ';'));
                let end = end.map_or(tokens.len(), |length| at + length);
                import(&tokens[at + 1..end], &Name::new(), module);
                at = end;
            }
            TokenTree::Ident(_) => {
                let (path, next) = path_at(tokens, at);
                let is_field = at > 0 && is_punct(&tokens[at - 1], '.');
                let arguments = arguments_at(tokens, next);
                match arguments {
                    Some(_) if is_field => drop(module.calls.insert(path.concat())),
                    _ if is_field => {}
                    Some(arguments) if at > 0 && word(&tokens[at - 1]) == "fn" && takes_self(arguments) => {
                        module.methods.insert(path.concat());
                    }
                    _ => drop(module.paths.insert(path)),
                }
                at = next;
            }
            _ => at += 1,
        }
    }
}

/// The parenthesized group after a name, or after the generic arguments that follow it.
fn arguments_at(tokens: &[TokenTree], from: usize) -> Option<&Group> {
    let mut at = if is_separator(tokens, from) { from + 2 } else { from };
    let mut depth = 0;
    loop {
        match tokens.get(at)? {
            TokenTree::Group(group) if depth == 0 => {
                return (group.delimiter() == Delimiter::Parenthesis).then_some(group);
            }
            token if is_punct(token, '<') => depth += 1,
            // The `>` of `->` closes nothing.
            token if is_punct(token, '>') && !is_punct(&tokens[at - 1], '-') => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
        at += 1;
    }
}

/// Whether a function's parameters make it a method: `self`, `&self`, `&'a mut self`, `mut self`.
fn takes_self(parameters: &Group) -> bool {
    let first = within(parameters).into_iter().take_while(|token| !is_punct(token, ','));
    first.into_iter().any(|token| word(&token) == "self")
}

fn within(group: &Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at| tokens.get(at).is_some_and(|token| is_punct(token, ':'));
    colon(at) && colon(at + 1)
}

/// The path that begins with a word, and the index after it.
fn path_at(tokens: &[TokenTree], from: usize) -> (Name, usize) {
    let mut path = vec![word(&tokens[from])];
    let mut at = from + 1;
    while is_separator(tokens, at) && matches!(tokens.get(at + 2), Some(TokenTree::Ident(_))) {
        path.push(word(&tokens[at + 2]));
        at += 3;
    }
    (path, at)
}

/// Adds the imports of one `use` tree: `a::b`, `a::{b, c as d}`, `a::*`.
fn import(tokens: &[TokenTree], before: &Name, module: &mut Module) {
    let first = tokens.iter().position(|token| !is_punct(token, ':')).unwrap_or(0);
    match tokens.get(first) {
        Some(TokenTree::Ident(_)) => {
            let (path, next) = path_at(tokens, first);
            let mut whole = [&before[..], &path].concat();
            if is_separator(tokens, next) {
                import(&tokens[next + 2..], &whole, module);
                return;
            }
            // `a::{self}` is `a`.
            if whole.last().is_some_and(|last| last == "self") && whole.len() > 1 {
                whole.pop();
            }
            let alias = match tokens.get(next).map(word).as_deref() {
                Some("as") => word(&tokens[next + 1]),
                _ => whole.last().cloned().unwrap_or_default(),
            };
            module.imports.push(Import { alias, stands_for: whole });
        }
        Some(TokenTree::Group(group)) => {
            for tree in within(group).split(|token| is_punct(token, ',')) {
                import(tree, before, module);
            }
        }
        Some(token) if is_punct(token, '*') => module.globs.push(before.clone()),
        _ => {}
    }
}

/// The import cycles, largest first.
pub fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&String> = vec![from];
        while let Some(file) = next.pop() {
            for to in arrows.get(file).into_iter().flatten() {
                if reached.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        arrows.keys().map(|file| (file, reached(file))).collect();
    let mut circles = BTreeSet::new();
    for (file, there) in &reached {
        let circle: BTreeSet<String> = there
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*file)))
            .cloned()
            .collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    let mut circles: Vec<BTreeSet<String>> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}
