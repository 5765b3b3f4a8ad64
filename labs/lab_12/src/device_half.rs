//! The device half of a CUDA program, for NVRTC, which compiles no host code and has no host headers.
//!
//! Host code becomes spaces, so every line keeps its number.

use cuda_emulator::source::headers::PREDEFINED;

/// The types of `<cstdint>`, which `nvcc` always provides.
const TYPES: &str = "\
typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t; typedef unsigned long long uint64_t;
";

/// Prepares a program for NVRTC: its device half, after the constants and types of the C headers.
pub fn for_nvrtc(text: &str) -> String {
    const ENDS: [&str; 4] = ["_MAX", "_MIN", "_EPSILON", "CHAR_BIT"];
    let is_constant = |line: &&str| {
        let name = line.split_whitespace().nth(1).unwrap_or_default();
        name.starts_with("M_") || name == "INFINITY" || ENDS.iter().any(|end| name.ends_with(end))
    };
    let constants: Vec<&str> = PREDEFINED.lines().filter(is_constant).collect();
    let constants = constants.join("\n");
    let nan = "#define NAN __int_as_float(0x7fffffff)";
    let half = device_half(text);
    format!("#ifdef __CUDACC_RTC__\n{constants}\n{nan}\n{TYPES}#endif\n#line 1\n{half}")
}

/// Removes `#include <…>` lines and all functions without `__global__` or `__device__`.
pub fn device_half(text: &str) -> String {
    let mut kept = text.as_bytes().to_vec();
    let mut blank = |from: usize, to: usize| {
        kept[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    };
    // The declaration in progress: its start and its properties so far.
    let (mut start, mut is_of_device, mut is_function, mut is_scope) = (None, false, false, false);
    let mut at = 0;
    while at < text.len() {
        let (token, end) = token(text, at);
        match token {
            Token::Space => {}
            Token::Directive => {
                if text[at..end].trim_start_matches('#').trim_start().starts_with("include")
                    && text[at..end].contains('<')
                {
                    blank(at, end);
                }
            }
            Token::Sign('{') if is_scope && !is_function => (start, is_scope) = (None, false),
            Token::Sign('{') => {
                let closed = end_of_body(text, at);
                if is_function && !is_of_device {
                    blank(start.unwrap_or(at), closed);
                }
                // A struct or an initialiser ends with its semicolon.
                if is_function {
                    (start, is_of_device, is_function) = (None, false, false);
                }
                at = closed;
                continue;
            }
            Token::Sign(';' | '}') => {
                if is_function && !is_of_device {
                    blank(start.unwrap_or(at), end);
                }
                (start, is_of_device, is_function, is_scope) = (None, false, false, false);
            }
            Token::Sign(sign) => {
                start.get_or_insert(at);
                // An initialiser may call functions.
                is_function |= sign == '(' && !text[start.unwrap_or(at)..at].contains('=');
            }
            // A macro that makes declarations, and an alignment.
            Token::Word(word)
                if !is_function
                    && (start.is_none() && word != "static_assert"
                        || ["alignas", "__align__"].contains(&word))
                    && text[end..].trim_start().starts_with('(') =>
            {
                at = end_of_parentheses(text, end);
                continue;
            }
            Token::Word(word) => {
                start.get_or_insert(at);
                is_of_device |= ["__global__", "__device__", "__constant__", "static_assert"].contains(&word);
                is_scope |= ["namespace", "extern"].contains(&word);
            }
        }
        at = end;
    }
    String::from_utf8(kept).unwrap_or_default()
}

enum Token<'a> {
    Word(&'a str),
    Sign(char),
    Directive,
    /// Spaces, comments, strings and characters.
    Space,
}

fn token(text: &str, at: usize) -> (Token<'_>, usize) {
    let rest = &text[at..];
    let first = rest.chars().next().unwrap_or(' ');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match first {
        _ if rest.starts_with("//") => (Token::Space, at + rest.find('\n').unwrap_or(rest.len())),
        _ if rest.starts_with("/*") => {
            (Token::Space, at + rest[2..].find("*/").map_or(rest.len(), |end| end + 4))
        }
        '#' => {
            let mut length = 0;
            for line in rest.split_inclusive('\n') {
                length += line.len();
                if !line.trim_end().ends_with('\\') {
                    break;
                }
            }
            (Token::Directive, at + length)
        }
        '"' | '\'' => {
            let mut escaped = false;
            for (offset, c) in rest.char_indices().skip(1) {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    _ if c == first => return (Token::Space, at + offset + 1),
                    _ => {}
                }
            }
            (Token::Space, text.len())
        }
        _ if is_word(first) => {
            let end = at + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (Token::Word(&text[at..end]), end)
        }
        _ if first.is_whitespace() => (Token::Space, at + first.len_utf8()),
        _ => (Token::Sign(first), at + first.len_utf8()),
    }
}

/// The position after the brace that closes the one at `at`.
fn end_of_body(text: &str, at: usize) -> usize {
    end_of(text, at, ['{', '}'])
}

/// The position after the parentheses that follow.
fn end_of_parentheses(text: &str, at: usize) -> usize {
    end_of(text, at + text[at..].find('(').unwrap_or(0), ['(', ')'])
}

fn end_of(text: &str, mut at: usize, [open, close]: [char; 2]) -> usize {
    let mut depth = 0;
    while at < text.len() {
        let (token, end) = token(text, at);
        match token {
            Token::Sign(sign) if sign == open => depth += 1,
            Token::Sign(sign) if sign == close => depth -= 1,
            _ => {}
        }
        at = end;
        if depth == 0 {
            break;
        }
    }
    at
}
