//! The parameters of a `__global__` function, parsed from its source. The driver copies as many bytes for each
//! parameter as the compiled kernel declares, and does not tell their types.

use super::error::KernelError;
use crate::dtype::DType;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SignatureParameter {
    /// The declaration as written: `const float *x`.
    pub(super) text: String,
    pub(super) kind: ParameterKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterKind {
    /// A pointer. `None` means that no dtype has such elements.
    Pointer {
        element: Option<DType>,
        is_const: bool,
    },
    Int {
        bytes: usize,
        is_signed: bool,
    },
    F32,
    F64,
}

impl ParameterKind {
    pub(super) fn size(self) -> usize {
        match self {
            ParameterKind::Pointer { .. } | ParameterKind::F64 => 8,
            ParameterKind::F32 => 4,
            ParameterKind::Int { bytes, .. } => bytes,
        }
    }
}

pub(super) fn parameters(text: &str, name: &str) -> Result<Vec<SignatureParameter>, KernelError> {
    let tokens = tokens(text);
    let (mut found, mut others): (Vec<Vec<Vec<&str>>>, Vec<String>) = (Vec::new(), Vec::new());
    let mut is_template = false;
    for at in (0..tokens.len()).filter(|at| tokens[*at] == "__global__") {
        let Some((kernel, open)) = name_of(&tokens, at) else { continue };
        if kernel == name {
            found.push(lists(&tokens[open..]));
            is_template |= begins_with_template(&tokens[..at]);
        } else if !others.contains(&kernel.to_owned()) {
            others.push(kernel.to_owned());
        }
    }
    // A kernel may be declared before it is defined.
    found.dedup_by(|a, b| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| kind(a) == kind(b)));
    match &found[..] {
        [] => Err(KernelError::NoSuchKernel { name: name.to_owned(), others }),
        [list] if !is_template => {
            list.iter().enumerate().map(|(i, words)| parameter(name, i, words)).collect()
        }
        _ => Err(KernelError::Ambiguous { name: name.to_owned() }),
    }
}

fn parameter(kernel: &str, index: usize, words: &[&str]) -> Result<SignatureParameter, KernelError> {
    let text = words.join(" ").replace("* ", "*");
    match kind(words) {
        Some(kind) => Ok(SignatureParameter { text, kind }),
        None => Err(KernelError::ParameterType { kernel: kernel.to_owned(), index, parameter: text }),
    }
}

/// Returns the name of the function declared after `__global__`, and the position of its opening parenthesis.
fn name_of<'a>(tokens: &[&'a str], at: usize) -> Option<(&'a str, usize)> {
    let mut at = at + 1;
    loop {
        match *tokens.get(at)? {
            ";" | "{" | "}" => return None,
            // `__launch_bounds__(256)` comes before the name.
            "(" if tokens[at - 1].starts_with("__") && tokens[at - 1].ends_with("__") => {
                at += length(&tokens[at..])
            }
            "(" => return Some((tokens[at - 1], at)),
            _ => at += 1,
        }
    }
}

fn begins_with_template(before: &[&str]) -> bool {
    let begin = before.iter().rposition(|token| [";", "}"].contains(token)).map_or(0, |end| end + 1);
    before[begin..].contains(&"template")
}

fn length(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        depth += i32::from(*token == "(") - i32::from(*token == ")");
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn lists<'a>(tokens: &[&'a str]) -> Vec<Vec<&'a str>> {
    let inside = &tokens[1..length(tokens).saturating_sub(1).max(1)];
    let lists: Vec<Vec<&str>> = inside.split(|token| *token == ",").map(<[&str]>::to_vec).collect();
    match &lists[..] {
        [only] if only.is_empty() || only[..] == ["void"] => Vec::new(),
        _ => lists,
    }
}

/// Returns the type of a parameter, or `None` if no argument of that type can be passed.
fn kind(words: &[&str]) -> Option<ParameterKind> {
    const QUALIFIERS: [&str; 5] = ["const", "volatile", "__restrict__", "__restrict", "__grid_constant__"];
    let end = words.iter().position(|word| ["*", "[", "&"].contains(word));
    let is_pointer = end.is_some_and(|end| words[end] != "&");
    let before = &words[..end.unwrap_or(words.len())];
    let mut types: Vec<&str> = before
        .iter()
        .copied()
        .filter(|word| !QUALIFIERS.contains(word) && *word != "std" && *word != "::")
        .collect();
    // The last word is the parameter's name, unless it is part of the type.
    let has_name = types.len() > 1 && number(types[types.len() - 1..].as_ref()).is_none();
    if words.get(end.unwrap_or(words.len())).is_none_or(|word| *word == "[") && has_name {
        types.pop();
    }
    match (is_pointer, end) {
        (true, _) => {
            Some(ParameterKind::Pointer { element: element(&types), is_const: before.contains(&"const") })
        }
        (false, Some(_)) => None, // A reference.
        (false, None) => number(&types),
    }
}

fn number(words: &[&str]) -> Option<ParameterKind> {
    let int = |bytes, is_signed| Some(ParameterKind::Int { bytes, is_signed });
    match words {
        ["float"] => return Some(ParameterKind::F32),
        ["double"] => return Some(ParameterKind::F64),
        ["bool"] => return int(1, false),
        ["int8_t"] => return int(1, true),
        ["uint8_t"] => return int(1, false),
        ["int16_t"] => return int(2, true),
        ["uint16_t"] => return int(2, false),
        ["int32_t"] => return int(4, true),
        ["uint32_t" | "uint"] => return int(4, false),
        ["int64_t" | "ptrdiff_t"] => return int(8, true),
        ["uint64_t" | "size_t"] => return int(8, false),
        _ => {}
    }
    let of_c = ["signed", "unsigned", "char", "short", "int", "long"];
    if words.is_empty() || !words.iter().all(|word| of_c.contains(word)) {
        return None;
    }
    let bytes = match () {
        () if words.contains(&"char") => 1,
        () if words.contains(&"short") => 2,
        () if words.contains(&"long") => 8,
        () => 4,
    };
    int(bytes, !words.contains(&"unsigned"))
}

fn element(words: &[&str]) -> Option<DType> {
    match words {
        ["bool"] => Some(DType::Bool),
        ["half" | "__half"] => Some(DType::F16),
        ["__nv_bfloat16" | "nv_bfloat16"] => Some(DType::BF16),
        _ => match number(words)? {
            ParameterKind::F32 => Some(DType::F32),
            ParameterKind::F64 => Some(DType::F64),
            ParameterKind::Int { bytes: 8, is_signed: true } => Some(DType::I64),
            ParameterKind::Int { bytes: 4, is_signed: true } => Some(DType::I32),
            ParameterKind::Int { bytes: 1, is_signed: false } => Some(DType::U8),
            _ => None,
        },
    }
}

/// Splits a source into words and signs, without comments, strings and preprocessor lines.
fn tokens(text: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let after = |end: &str| rest[1..].find(end).map_or(rest.len(), |at| at + 1 + end.len());
        let length = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => after("*/"),
            '#' => directive(rest),
            '"' | '\'' => quoted(rest, first),
            _ if rest.starts_with("::") => 2,
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        if is_word(first)
            || (first.is_ascii_punctuation()
                && !["//", "/*", "#", "\"", "'"].iter().any(|sign| token.starts_with(sign)))
        {
            tokens.push(token);
        }
        rest = behind;
    }
    tokens
}

fn directive(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    length
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote || c == '\n' => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        #define KERNEL(name) __global__ void name(int hidden)
        /* __global__ void commented(int n) {} */
        // __global__ void also(int n) {}
        const char *text = "__global__ void quoted(int n) {}";
        __global__ void later(float *x, long n);
        extern "C" __global__ void __launch_bounds__(256, 2)
            square(const float *__restrict__ x, float *y, const int n, float scale) { y[0] = n; }
        template <typename T> __global__ void templated(T *x) {}
        __global__ void nothing() {}
        __global__ void __global_name(void) {}
        __global__ void later(float *values, long count) {}
        __global__ void twice(int n) {}
        __global__ void twice(float n) {}
        __global__ void odd(View v) {}
        __global__ void unnamed(float *, std::size_t, unsigned long long seed, unsigned, double[], bool b) {}
    "#;

    fn kinds(name: &str) -> Vec<ParameterKind> {
        parameters(TEXT, name).unwrap().into_iter().map(|parameter| parameter.kind).collect()
    }

    fn pointer(element: DType, is_const: bool) -> ParameterKind {
        ParameterKind::Pointer { element: Some(element), is_const }
    }

    #[test]
    fn parameters_are_read_from_the_text() {
        let int = |bytes, is_signed| ParameterKind::Int { bytes, is_signed };
        let f32 = |is_const| pointer(DType::F32, is_const);
        assert_eq!(kinds("square"), [f32(true), f32(false), int(4, true), ParameterKind::F32]);
        assert_eq!(kinds("later"), [f32(false), int(8, true)]);
        assert_eq!(kinds("nothing"), []);
        assert_eq!(kinds("__global_name"), []);
        let unnamed = [
            f32(false),
            int(8, false),
            int(8, false),
            int(4, false),
            pointer(DType::F64, false),
            int(1, false),
        ];
        assert_eq!(kinds("unnamed"), unnamed);
        assert_eq!(parameters(TEXT, "square").unwrap()[0].text, "const float *__restrict__ x");
    }

    #[test]
    fn functions_that_cannot_be_told_apart_are_refused() {
        for name in ["twice", "templated"] {
            assert!(matches!(parameters(TEXT, name), Err(KernelError::Ambiguous { .. })), "{name}");
        }
        assert!(matches!(parameters(TEXT, "odd"), Err(KernelError::ParameterType { index: 0, .. })));
        for name in ["commented", "also", "quoted", "name", "hidden", "squar", ""] {
            let Err(KernelError::NoSuchKernel { others, .. }) = parameters(TEXT, name) else {
                panic!("{name}")
            };
            assert_eq!(others.len(), 8, "{others:?}");
        }
    }

    #[test]
    fn a_text_that_ends_anywhere_is_no_panic() {
        for end in 0..TEXT.len() {
            let _ = parameters(&TEXT[..end], "square");
        }
        for text in ["__global__", "__global__ void k(", "__global__ void k(,)", "__global__ (", "é \" ' /* "]
        {
            let _ = parameters(text, "k");
        }
    }
}
