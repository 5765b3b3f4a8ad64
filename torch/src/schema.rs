//! The signature of an operation, in the notation of PyTorch's `native_functions.yaml`:
//! `sum(Tensor input, int[]? dim, bool keepdim=False, *, dtype? dtype=None)`.
//!
//! It gives the names, the defaults and the types of an operation's arguments to the call, to its errors and to
//! `help`. `Operand` is a tensor or a number.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tensor,
    Tensors,
    Operand,
    Scalar,
    Int,
    Ints,
    Float,
    Bool,
    Str,
    DType,
    Device,
    Generator,
    /// `torch.strided`, the only layout here.
    Layout,
    /// An argument of PyTorch's that only its default is accepted for.
    Absent,
    /// Any object of Python.
    Any,
}

/// The value of an argument that is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'static str),
    Ints(&'static str),
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    pub optional: bool,
    pub default: Option<Default>,
    pub keyword_only: bool,
}

#[derive(Debug)]
pub struct Signature {
    pub name: &'static str,
    pub parameters: Vec<Parameter>,
    pub positional: usize,
    /// Whether `x.view(2, 3)` may stand for `x.view((2, 3))`: a list of integers is all that it takes by position.
    pub varargs: bool,
}

/// The keyword arguments of all functions that create tensors, for `**options` in a signature.
const OPTIONS: &str = "*, dtype? dtype=None, layout? layout=None, Device? device=None, bool pin_memory=False, \
                       bool requires_grad=False";

impl Signature {
    /// Reads a signature. Those of this crate are all read at the start, so an error in one cannot be missed.
    pub fn parse(text: &'static str) -> Signature {
        let (name, rest) = text.split_once('(').unwrap_or_else(|| panic!("no arguments in `{text}`"));
        let rest = rest.strip_suffix(')').unwrap_or_else(|| panic!("no end in `{text}`"));
        let mut parameters = Vec::new();
        let mut keyword_only = false;
        let parts = split(rest).into_iter().flat_map(|part| match part {
            "**options" => split(OPTIONS),
            part => vec![part],
        });
        for part in parts {
            if part == "*" {
                keyword_only = true;
                continue;
            }
            let (kind, rest) = part.split_once(' ').unwrap_or_else(|| panic!("`{part}` of `{text}`"));
            let (name, default) = match rest.split_once('=') {
                Some((name, default)) => (name, Some(value(default))),
                None => (rest, None),
            };
            let optional = kind.ends_with('?');
            let kind = kind_of(kind.trim_end_matches('?')).unwrap_or_else(|| panic!("`{kind}` of `{text}`"));
            parameters.push(Parameter { name, kind, optional, default, keyword_only });
        }
        let positional = parameters.iter().filter(|parameter| !parameter.keyword_only).count();
        let lists = |from: usize| positional == from + 1 && parameters[from].kind == Kind::Ints;
        let is_method = parameters.first().is_some_and(|first| first.name == "input");
        let varargs = lists(if is_method { 1 } else { 0 });
        Signature { name, parameters, positional, varargs }
    }
}

fn split(list: &'static str) -> Vec<&'static str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0);
    for (i, byte) in list.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(list[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "Tensor" => Kind::Tensor,
        "Tensor[]" => Kind::Tensors,
        "Operand" => Kind::Operand,
        "Scalar" => Kind::Scalar,
        "int" => Kind::Int,
        "int[]" => Kind::Ints,
        "float" => Kind::Float,
        "bool" => Kind::Bool,
        "str" => Kind::Str,
        "dtype" => Kind::DType,
        "Device" => Kind::Device,
        "Generator" => Kind::Generator,
        "layout" => Kind::Layout,
        "absent" => Kind::Absent,
        "any" => Kind::Any,
        _ => return None,
    })
}

fn value(text: &'static str) -> Default {
    match text {
        "None" => Default::None,
        "True" => Default::Bool(true),
        "False" => Default::Bool(false),
        "inf" => Default::Float(f64::INFINITY),
        _ if text.starts_with(['(', '[']) => Default::Ints(&text[1..text.len() - 1]),
        _ if text.starts_with('\'') => Default::Str(text.trim_matches('\'')),
        _ => match text.parse() {
            Ok(int) => Default::Int(int),
            Err(_) => Default::Float(text.parse().unwrap_or_else(|_| panic!("`{text}` is no default"))),
        },
    }
}

impl Kind {
    /// The name of the type in PyTorch's errors.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tensor | Kind::Operand => "Tensor",
            Kind::Tensors => "tuple of Tensors",
            Kind::Scalar => "Number",
            Kind::Int => "int",
            Kind::Ints => "tuple of ints",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Str => "str",
            Kind::DType => "torch.dtype",
            Kind::Device => "torch.device",
            Kind::Generator => "torch.Generator",
            Kind::Layout => "torch.layout",
            Kind::Absent | Kind::Any => "object",
        }
    }
}

/// As PyTorch lists a signature: `(Tensor input, int dim, *, torch.dtype dtype = None)`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        let mut starred = false;
        for (i, parameter) in self.parameters.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            if parameter.keyword_only && !starred {
                f.write_str("*, ")?;
                starred = true;
            }
            write!(f, "{} {}", parameter.kind.name(), parameter.name)?;
            match parameter.default {
                None => {}
                Some(Default::None) => f.write_str(" = None")?,
                Some(Default::Bool(true)) => f.write_str(" = True")?,
                Some(Default::Bool(false)) => f.write_str(" = False")?,
                Some(Default::Int(value)) => write!(f, " = {value}")?,
                Some(Default::Float(value)) => write!(f, " = {value}")?,
                Some(Default::Str(value)) => write!(f, " = '{value}'")?,
                Some(Default::Ints(value)) => write!(f, " = ({value})")?,
            }
        }
        f.write_str(")")
    }
}
