//! One tree for host and device. `nvcc` compiles a file twice: `__CUDA_ARCH__` is defined for the device only.
//!
//! The two versions may differ within function bodies. A declaration that differs is an error.

use super::ast::{DeclId, Function, Struct, Tree};
use super::first::first_headers;
use super::parser::{Body, parse};
use crate::source::headers;
use crate::source::lexer::{Tok, Token};
use crate::source::preprocessor::{Includes, Preprocessed, preprocess};
use crate::source::{Error, Errors, Files, Result, Span};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

const MACRO: &str = "__CUDA_ARCH__";
const TURING: &[(&str, &str)] = &[(MACRO, "750")];

/// Parses a program as the device sees it, with the host's version of bodies that differ.
pub fn both_sides(
    files: &mut Files,
    name: &str,
    text: &str,
    includes: Includes<'_>,
) -> std::result::Result<Tree, Errors> {
    let device = preprocess(files, name, text, includes, TURING)?;
    let mentions = files.0.iter().any(|file| file.name != "<predefined>" && file.text.contains(MACRO));
    let headers = (0..files.0.len() as u32).filter(|file| headers::is_part(&files.0[*file as usize]));
    let in_headers: HashSet<u32> = headers.collect();
    let first = first_headers(&device.headers)?;
    if !mentions {
        let (tree, _) = parse(device.tokens, &first, 0)?;
        return Ok(Tree { in_headers, ..tree });
    }
    let Preprocessed { headers, tokens: device } = device;
    let (mut tree, bodies) = parse(device.clone(), &first, 0)?;
    tree.in_headers = in_headers;
    let Preprocessed { headers: of_host, tokens: host } = preprocess(files, name, text, includes, &[])?;
    if headers.len() != of_host.len() {
        return Err(differs(host[0].span).into());
    }
    if same(&device, &host) {
        return Ok(tree);
    }
    let (host_tree, host_bodies) = parse(host.clone(), &first, tree.declarations)?;
    declarations_are_same(&device, &bodies, &host, &host_bodies)?;
    let functions = functions(&host_tree);
    for (body, host_body) in bodies.iter().zip(&host_bodies) {
        if !same(&device[body.tokens.clone()], &host[host_body.tokens.clone()])
            && let Some(function) = functions.get(&host_body.function)
        {
            tree.host.insert(body.function, function.clone());
        }
    }
    tree.declarations = host_tree.declarations;
    tree.undeclared.extend(host_tree.undeclared);
    tree.warnings.extend(host_tree.warnings);
    Ok(tree)
}

fn same(a: &[Token], b: &[Token]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.tok == b.tok)
}

fn declarations_are_same(
    device: &[Token],
    bodies: &[Body],
    host: &[Token],
    host_bodies: &[Body],
) -> Result<()> {
    let (device, host) = (outside(device, bodies), outside(host, host_bodies));
    let Some(at) = (0..device.len().max(host.len()))
        .find(|at| device.get(*at).map(|token| &token.tok) != host.get(*at).map(|token| &token.tok))
    else {
        return Ok(());
    };
    // The end of one side is no useful position: the declaration is on the other side.
    let places = [device.get(at), host.get(at)];
    let place = places.iter().flatten().find(|token| token.tok != Tok::End);
    let span = place.map_or(host[host.len() - 1].span, |token| token.span);
    Err(differs(span))
}

fn differs(span: Span) -> Box<Error> {
    Error::new(span, "`__CUDA_ARCH__` makes this declaration different for the host and the device")
        .help("use `__CUDA_ARCH__` within the bodies of functions")
}

/// The tokens outside function bodies.
fn outside<'a>(tokens: &'a [Token], bodies: &[Body]) -> Vec<&'a Token> {
    let mut found = Vec::new();
    let mut at = 0;
    for body in bodies {
        found.extend(&tokens[at..body.tokens.start]);
        at = body.tokens.end;
    }
    found.extend(&tokens[at..]);
    found
}

/// All outermost functions, including the methods of structs.
fn functions(tree: &Tree) -> HashMap<DeclId, Rc<Function>> {
    let mut found = HashMap::new();
    for namespace in &tree.namespaces {
        for function in namespace.functions.values().flatten() {
            found.insert(function.id, function.clone());
        }
        for declaration in namespace.structs.values().flatten() {
            methods(declaration, &mut found);
        }
    }
    found
}

fn methods(of: &Struct, found: &mut HashMap<DeclId, Rc<Function>>) {
    for function in of.functions.iter().chain(&of.constructors).chain(&of.conversions) {
        found.insert(function.id, function.clone());
    }
    of.structs.iter().for_each(|inner| methods(inner, found));
}
