//! Macros: their definitions and their expansion.

use super::lexer::{Hidden, Tok, Token, lex};
use super::preprocessor::{MOST_TOKENS, Preprocessor};
use super::{Error, Result, Span};
use std::rc::Rc;

#[derive(Debug)]
pub struct Macro {
    /// `None` for an object-like macro, without parentheses.
    parameters: Option<Vec<Rc<str>>>,
    variadic: bool,
    body: Vec<Token>,
    /// Defined by one of the emulator's headers, not by the program.
    of_header: bool,
}

impl<'a> Preprocessor<'a> {
    pub(super) fn define(&mut self, rest: &[Token], span: Span) -> Result<()> {
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

    pub(super) fn expand(&mut self, tokens: Vec<Token>) -> Result<Vec<Token>> {
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

    pub(super) fn substitute(
        &mut self,
        name: &Token,
        of: &Macro,
        arguments: &[Vec<Token>],
    ) -> Result<Vec<Token>> {
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

pub(super) fn is_hidden(token: &Token, name: &Rc<str>) -> bool {
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
pub(super) fn macro_parameters(tokens: &[Token]) -> Result<Vec<Rc<str>>> {
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
pub(super) fn arguments(
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

pub(super) fn spelling(tok: &Tok) -> String {
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
