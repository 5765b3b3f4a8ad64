//! The preprocessor: turns the tokens of files into those of a program.
//!
//! A token that a macro produces has the position of the macro's use, as in compilers' line tables; the tokens of an
//! argument keep their own positions.

use super::headers::{self, Part};
use super::lexer::{Hidden, Tok, Token, lex};
use super::{Error, File, Files, Result, Span};
use super::{condition, first_headers};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// For those who write `# comment`.
const COMMENT: &str = "a comment begins with `//`";

#[derive(Debug)]
pub struct Macro {
    /// `None` for an object-like macro, without parentheses.
    parameters: Option<Vec<Rc<str>>>,
    variadic: bool,
    body: Vec<Token>,
    /// Defined by one of the emulator's headers, not by the program.
    of_header: bool,
}

/// The maximum number of tokens: macros can double it at each step.
const MOST_TOKENS: usize = 2_000_000;
const DEEPEST_INCLUDE: usize = 40;

/// Finds the text of `#include "name"`.
pub type Includes<'a> = &'a dyn Fn(&str) -> Option<String>;

pub struct Preprocessor<'a> {
    pub files: &'a mut Files,
    includes: Includes<'a>,
    pub macros: HashMap<Rc<str>, Rc<Macro>>,
    once: HashSet<String>,
    /// The headers that came before everything else.
    headers: Vec<Part>,
    pub output: Vec<Token>,
    /// System headers that were included.
    pub system: HashSet<String>,
    /// Inside one of the emulator's headers. A program's macros do not expand there: a `#define N 64` before an
    /// `#include` must not change a parameter `N` of a header's template.
    in_header: bool,
    depth: usize,
    made: usize,
}

/// The tokens of a program, after its first headers.
pub struct Preprocessed {
    pub headers: Vec<Part>,
    pub tokens: Vec<Token>,
}

/// Returns the tokens of a program.
pub fn preprocess(
    files: &mut Files,
    name: &str,
    text: &str,
    includes: Includes<'_>,
    definitions: &[(&str, &str)],
) -> Result<Preprocessed> {
    let mut preprocessor = Preprocessor::new(files, includes);
    // The program is file 0, so it is added first.
    let file = preprocessor.files.add(name, text);
    for (name, value) in definitions {
        preprocessor.define(&lex(file, &format!("{name} {value}"))?, Span::default())?;
    }
    for part in headers::ALWAYS {
        preprocessor.header(part)?;
    }
    preprocessor.in_header = false;
    preprocessor.file(name, text, Some(file))?;
    let line = text.lines().count().max(1) as u32;
    let end = Span { file, line, column: 1, length: 1 };
    let Preprocessor { headers, output: mut tokens, .. } = preprocessor;
    tokens.push(Token::end(end));
    Ok(Preprocessed { headers, tokens })
}

/// An open `#if`.
struct Branch {
    active: bool,
    taken: bool,
    enclosing: bool,
    span: Span,
}

impl<'a> Preprocessor<'a> {
    /// Starts with the headers.
    pub fn new(files: &'a mut Files, includes: Includes<'a>) -> Preprocessor<'a> {
        Preprocessor {
            files,
            includes,
            macros: HashMap::new(),
            once: HashSet::new(),
            headers: Vec::new(),
            output: Vec::new(),
            system: HashSet::new(),
            in_header: true,
            depth: 0,
            made: 0,
        }
    }

    /// Reads a header. While nothing else has come, it is one of the first, whose tokens are known.
    fn header(&mut self, part: Part) -> Result<()> {
        let (name, text) = part;
        let number = self.headers.len() + 1;
        let is_next = match self.files.0.get(number) {
            Some(file) => file.name == name && file.text == text,
            None => self.files.0.len() == number,
        };
        if !is_next || !self.output.is_empty() {
            return self.file(name, text, None);
        }
        if self.files.0.len() == number {
            self.files.0.push(File { name: name.to_owned(), text: text.to_owned() });
        }
        self.headers.push(part);
        self.macros.extend(first_headers::last_of(&self.headers)?.macros.iter().cloned());
        Ok(())
    }

    pub fn file(&mut self, name: &str, text: &str, number: Option<u32>) -> Result<()> {
        let file = number.unwrap_or_else(|| self.files.add(name, text));
        let tokens = lex(file, text)?;
        let mut branches: Vec<Branch> = Vec::new();
        let mut pending: Vec<Token> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let active = branches.last().is_none_or(|branch| branch.active);
            let token = &tokens[at];
            if !(token.is("#") && token.first_of_line) {
                if active {
                    pending.push(token.clone());
                }
                at += 1;
                continue;
            }
            let mut end = at + 1;
            while end < tokens.len() && !tokens[end].first_of_line {
                end += 1;
            }
            let line = &tokens[at + 1..end];
            let hash = token.span;
            at = end;
            let Some(directive) = line.first().and_then(|token| token.ident()).cloned() else {
                if active && !line.is_empty() {
                    return Err(Error::new(line[0].span, "this is not a directive").help(COMMENT));
                }
                continue;
            };
            let span = line[0].span;
            let rest = &line[1..];
            match &*directive {
                "if" | "ifdef" | "ifndef" => {
                    self.flush(&mut pending)?;
                    let holds = active && self.holds(&directive, rest, span)?;
                    branches.push(Branch { active: holds, taken: holds, enclosing: active, span: hash });
                }
                "elif" | "else" => {
                    self.flush(&mut pending)?;
                    let Some(branch) = branches.last() else {
                        return Err(Error::new(span, format!("`#{directive}` has no `#if`")));
                    };
                    let open = branch.enclosing && !branch.taken;
                    let holds = open && (&*directive == "else" || self.holds("if", rest, span)?);
                    if let Some(branch) = branches.last_mut() {
                        branch.active = holds;
                        branch.taken |= holds;
                    }
                }
                "endif" => {
                    self.flush(&mut pending)?;
                    if branches.pop().is_none() {
                        return Err(Error::new(span, "`#endif` has no `#if`"));
                    }
                }
                _ if !active => {}
                "define" => {
                    self.flush(&mut pending)?;
                    self.define(rest, span)?;
                }
                "undef" => {
                    self.flush(&mut pending)?;
                    if let Some(name) = rest.first().and_then(|token| token.ident()) {
                        self.macros.remove(name);
                    }
                }
                "include" => {
                    self.flush(&mut pending)?;
                    self.include(rest, span)?;
                }
                "pragma" => {
                    if rest.first().and_then(|token| token.ident()).is_some_and(|name| &**name == "once") {
                        self.once.insert(name.to_owned());
                    }
                }
                "error" => {
                    let text = spelled(rest);
                    return Err(Error::new(span, format!("#error {text}")));
                }
                "line" | "warning" | "ident" => {}
                other => return Err(Error::new(span, format!("`#{other}` is not a directive")).help(COMMENT)),
            }
        }
        if let Some(branch) = branches.last() {
            return Err(Error::new(branch.span, "this `#if` has no `#endif`"));
        }
        self.flush(&mut pending)
    }

    fn flush(&mut self, pending: &mut Vec<Token>) -> Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let expanded = self.expand(std::mem::take(pending))?;
        self.output.extend(expanded);
        if self.output.len() > MOST_TOKENS {
            let span = self.output[self.output.len() - 1].span;
            return Err(Error::new(span, format!("the program has more than {MOST_TOKENS} tokens")));
        }
        Ok(())
    }

    fn holds(&mut self, directive: &str, rest: &[Token], span: Span) -> Result<bool> {
        if directive != "if" {
            let Some(name) = rest.first().and_then(|token| token.ident()) else {
                return Err(Error::new(span, format!("`#{directive}` takes the name of a macro")));
            };
            return Ok(self.macros.contains_key(name) == (directive == "ifdef"));
        }
        let mut replaced = Vec::new();
        let mut at = 0;
        while at < rest.len() {
            let token = &rest[at];
            at += 1;
            if token.ident().is_none_or(|name| &**name != "defined") {
                replaced.push(token.clone());
                continue;
            }
            let parenthesis = rest.get(at).is_some_and(|token| token.is("("));
            at += usize::from(parenthesis);
            let Some(name) = rest.get(at).and_then(|token| token.ident()) else {
                return Err(Error::new(token.span, "`defined` takes the name of a macro"));
            };
            at += 1 + usize::from(parenthesis);
            let value = u64::from(self.macros.contains_key(name));
            replaced.push(Token { tok: Tok::Int { value, unsigned: false, long: false }, ..token.clone() });
        }
        let expanded = self.expand(replaced)?;
        Ok(condition::value(&expanded, span)? != 0)
    }

    fn define(&mut self, rest: &[Token], span: Span) -> Result<()> {
        let Some(name) = rest.first().and_then(|token| token.ident()).cloned() else {
            return Err(Error::new(span, "`#define` takes a name"));
        };
        let mut body = &rest[1..];
        let mut parameters = None;
        if body.first().is_some_and(|token| token.is("(") && !token.space_before) {
            let Some(end) = body.iter().position(|token| token.is(")")) else {
                let message = format!("the parameters of the macro `{name}` are not closed");
                return Err(Error::new(span, message));
            };
            parameters = Some(macro_parameters(&body[1..end])?);
            body = &body[end + 1..];
        }
        let variadic = parameters.iter().flatten().any(|parameter: &Rc<str>| &**parameter == "__VA_ARGS__");
        for (i, token) in body.iter().enumerate() {
            let is_parameter = |token: &Token| {
                token.ident().is_some_and(|name| parameters.iter().flatten().any(|known| known == name))
            };
            if token.is("#") && parameters.is_some() && !body.get(i + 1).is_some_and(is_parameter) {
                return Err(Error::new(token.span, "`#` takes a parameter of the macro"));
            }
            if !variadic && token.ident().is_some_and(|name| &**name == "__VA_ARGS__") {
                let message = "`__VA_ARGS__` is for macros whose parameters end with `...`";
                return Err(Error::new(token.span, message));
            }
        }
        let of_header = self.in_header;
        self.macros.insert(name, Rc::new(Macro { parameters, variadic, body: body.to_vec(), of_header }));
        Ok(())
    }

    fn include(&mut self, rest: &[Token], span: Span) -> Result<()> {
        if self.depth >= DEEPEST_INCLUDE {
            return Err(Error::new(span, "headers include each other without end"));
        }
        let Some(first) = rest.first() else {
            return Err(Error::new(span, "`#include` takes the name of a file"));
        };
        self.depth += 1;
        if let Tok::Str(name) = &first.tok {
            if !self.once.contains(&**name) {
                match (self.includes)(name) {
                    Some(text) => self.file(name, &text, None)?,
                    None => self.system_header(name, first.span)?,
                }
            }
        } else {
            let name = spelled(rest).replace(' ', "");
            let name = name.trim_start_matches('<').trim_end_matches('>').to_owned();
            self.system_header(&name, first.span)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn system_header(&mut self, name: &str, span: Span) -> Result<()> {
        if !self.system.insert(name.to_owned()) {
            return Ok(());
        }
        match headers::find(name) {
            Some(parts) => {
                let was_in_header = std::mem::replace(&mut self.in_header, true);
                for (part, text) in parts {
                    if self.once.insert((*part).to_owned()) {
                        self.header((part, text))?;
                    }
                }
                self.in_header = was_in_header;
                Ok(())
            }
            None => Err(Error::new(span, format!("the header `{name}` is not part of the subset"))
                .help(format!("these are: {}", headers::names()))),
        }
    }

    fn expand(&mut self, tokens: Vec<Token>) -> Result<Vec<Token>> {
        let mut output = Vec::with_capacity(tokens.len());
        // The list is reversed: the next token is the last one.
        let mut input: Vec<Token> = tokens;
        input.reverse();
        while let Some(token) = input.pop() {
            self.made += 1;
            if self.made > 4 * MOST_TOKENS {
                return Err(Error::new(token.span, "macros make too many tokens"));
            }
            let Some(name) = token.ident() else {
                output.push(token);
                continue;
            };
            if is_hidden(&token, name) {
                output.push(token);
                continue;
            }
            if &**name == "__LINE__" {
                let value = u64::from(token.span.line);
                output.push(Token { tok: Tok::Int { value, unsigned: false, long: false }, ..token });
                continue;
            }
            if &**name == "__FILE__" {
                let file = self.files.0[token.span.file as usize].name.as_str().into();
                output.push(Token { tok: Tok::Str(file), ..token });
                continue;
            }
            let found = self.macros.get(name).filter(|found| found.of_header || !self.in_header).cloned();
            let Some(found) = found else {
                output.push(token);
                continue;
            };
            let arguments = match &found.parameters {
                None => Vec::new(),
                Some(parameters) => {
                    if !input.last().is_some_and(|next| next.is("(")) {
                        output.push(token);
                        continue;
                    }
                    input.pop();
                    arguments(&token, parameters.len(), found.variadic, &mut input)?
                }
            };
            let mut body = self.substitute(&token, &found, &arguments)?;
            let hidden = Rc::new(Hidden { name: name.clone(), rest: token.hidden.clone() });
            for made in &mut body {
                if made.ident().is_some() && made.hidden.is_none() {
                    made.hidden = Some(hidden.clone());
                } else if made.ident().is_some() {
                    made.hidden = Some(Rc::new(Hidden { name: name.clone(), rest: made.hidden.take() }));
                }
            }
            if let Some(first) = body.first_mut() {
                first.space_before = token.space_before;
                first.first_of_line = token.first_of_line;
            }
            self.made += body.len();
            if input.len() + body.len() > MOST_TOKENS || self.made > 4 * MOST_TOKENS {
                return Err(Error::new(token.span, "macros make too many tokens"));
            }
            input.extend(body.into_iter().rev());
        }
        Ok(output)
    }

    fn substitute(&mut self, name: &Token, of: &Macro, arguments: &[Vec<Token>]) -> Result<Vec<Token>> {
        let index = |token: &Token| {
            let parameters = of.parameters.as_ref()?;
            let name = token.ident()?;
            parameters.iter().position(|parameter| parameter == name)
        };
        let mut body: Vec<Token> = Vec::new();
        let mut at = 0;
        while at < of.body.len() {
            let token = &of.body[at];
            let here = Token { span: name.span, first_of_line: false, ..token.clone() };
            if token.is("#") && of.parameters.is_some() {
                let Some(argument) = of.body.get(at + 1).and_then(index) else {
                    return Err(Error::new(token.span, "`#` takes a parameter of the macro"));
                };
                body.push(Token { tok: Tok::Str(spelled(&arguments[argument]).into()), ..here });
                at += 2;
                continue;
            }
            if token.is("##") && at + 1 < of.body.len() {
                let next = &of.body[at + 1];
                let mut right = match index(next) {
                    Some(argument) => arguments[argument].clone(),
                    None => vec![Token { span: name.span, ..next.clone() }],
                };
                // `, ## __VA_ARGS__` drops the comma where there are no arguments.
                if right.is_empty() && body.last().is_some_and(|token| token.is(",")) && of.variadic {
                    body.pop();
                } else if !body.last().is_some_and(|token| token.is(","))
                    && !right.is_empty()
                    && let Some(left) = body.pop()
                {
                    let joined = format!("{}{}", spelling(&left.tok), spelling(&right[0].tok));
                    let mut tokens = lex(0, &joined)?;
                    if tokens.len() != 1 {
                        return Err(Error::new(
                            name.span,
                            format!("`##` produces `{joined}`, which is not a token"),
                        ));
                    }
                    right[0] = Token { tok: tokens.remove(0).tok, ..left };
                    right[0].hidden = None;
                }
                body.extend(right);
                at += 2;
                continue;
            }
            match index(token) {
                Some(argument) => {
                    let is_pasted = of.body.get(at + 1).is_some_and(|next| next.is("##"));
                    let mut tokens = match is_pasted {
                        true => arguments[argument].clone(),
                        false => self.expand(arguments[argument].clone())?,
                    };
                    if let Some(first) = tokens.first_mut() {
                        first.space_before = token.space_before;
                    }
                    // An empty argument before `##` leaves nothing to join.
                    if is_pasted && tokens.is_empty() {
                        at += 2;
                        if let Some(next) = of.body.get(at) {
                            match index(next) {
                                Some(argument) => body.extend(arguments[argument].clone()),
                                None => body.push(Token { span: name.span, ..next.clone() }),
                            }
                            at += 1;
                        }
                        continue;
                    }
                    body.extend(tokens);
                }
                None => body.push(here),
            }
            at += 1;
        }
        Ok(body)
    }
}

fn is_hidden(token: &Token, name: &Rc<str>) -> bool {
    let mut hidden = token.hidden.as_ref();
    while let Some(entry) = hidden {
        if entry.name == *name {
            return true;
        }
        hidden = entry.rest.as_ref();
    }
    false
}

/// The names of a macro's parameters.
fn macro_parameters(tokens: &[Token]) -> Result<Vec<Rc<str>>> {
    let mut names: Vec<Rc<str>> = Vec::new();
    for (i, parameter) in tokens.split(|token| token.is(",")).enumerate() {
        let is_last = names.last().is_some_and(|last| &**last == "__VA_ARGS__");
        let name = match parameter {
            [] if i == 0 && tokens.is_empty() => continue,
            [token] if token.is("...") && !is_last => "__VA_ARGS__".into(),
            [token] if token.ident().is_some() && !is_last => token.ident().cloned().unwrap_or_default(),
            // g++ also accepts a name before the dots: `args...`.
            _ => {
                let wrong = parameter.get(1).or(parameter.first()).or(tokens.get(i)).unwrap_or(&tokens[0]);
                return Err(Error::new(
                    wrong.span,
                    "a parameter of a macro is one name, or `...` at the end",
                ));
            }
        };
        if names.contains(&name) {
            return Err(Error::new(parameter[0].span, format!("the macro has two parameters `{name}`")));
        }
        names.push(name);
    }
    Ok(names)
}

/// Reads the arguments of a macro after its `(`. Surplus arguments belong to the last parameter.
fn arguments(
    name: &Token,
    parameters: usize,
    variadic: bool,
    input: &mut Vec<Token>,
) -> Result<Vec<Vec<Token>>> {
    let mut arguments: Vec<Vec<Token>> = vec![Vec::new()];
    let mut open = 0;
    loop {
        let Some(token) = input.pop() else {
            let message = format!("the arguments of the macro `{}` are not closed", spelling(&name.tok));
            return Err(Error::new(name.span, message));
        };
        if token.is(")") && open == 0 {
            break;
        }
        if token.is("(") || token.is("{") || token.is("[") {
            open += i32::from(token.is("("));
        }
        if token.is(")") {
            open -= 1;
        }
        if token.is(",") && open == 0 && !(variadic && arguments.len() >= parameters) {
            arguments.push(Vec::new());
            continue;
        }
        if let Some(last) = arguments.last_mut() {
            last.push(token);
        }
    }
    if parameters == 0 && arguments.len() == 1 && arguments[0].is_empty() {
        arguments.clear();
    }
    if variadic && arguments.len() + 1 == parameters {
        arguments.push(Vec::new());
    }
    if arguments.len() != parameters {
        let message = format!(
            "the macro `{}` takes {parameters} arguments, but gets {} here",
            spelling(&name.tok),
            arguments.len()
        );
        return Err(Error::new(name.span, message));
    }
    Ok(arguments)
}

fn spelling(tok: &Tok) -> String {
    match tok {
        Tok::Ident(name) => name.to_string(),
        Tok::Int { value, unsigned, long } => {
            format!("{value}{}{}", if *unsigned { "u" } else { "" }, if *long { "ll" } else { "" })
        }
        Tok::Float { value, single } => format!("{value:?}{}", if *single { "f" } else { "" }),
        Tok::Str(text) => format!("{:?}", &**text),
        Tok::Char(value) => format!("{:?}", *value as u8 as char),
        Tok::Punct(punct) => (*punct).to_owned(),
        Tok::End => String::new(),
    }
}

pub fn spelled(tokens: &[Token]) -> String {
    let mut text = String::new();
    for (i, token) in tokens.iter().enumerate() {
        if i > 0 && token.space_before {
            text.push(' ');
        }
        match &token.tok {
            // As written in the program: a suffix that only the value implies is omitted.
            Tok::Int { value, .. } => text.push_str(&value.to_string()),
            tok => text.push_str(&spelling(tok)),
        }
    }
    text
}
