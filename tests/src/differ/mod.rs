//! Runs random programs through this crate and through PyTorch, and compares every observable result.
//!
//! - [`operations`]: the table of all operations, and how both sides call them
//! - [`generate`]: a random program
//! - [`run`]: its answer from this crate
//! - [`pytorch`]: its answer from PyTorch
//! - [`compare`]: the differences between two answers
//! - [`known`]: the intended differences

pub mod compare;
pub mod generate;
pub mod known;
pub mod operations;
pub mod pytorch;
pub mod run;

use serde_json::{Value as Json, json};
use todevice::DType;

use operations::Operation;

/// A list of steps, each of which may create tensors: the variables v0, v1, … in order.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub operation: &'static Operation,
    pub arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The number of a variable.
    Tensor(usize),
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(Vec<i64>),
    Sizes(Vec<usize>),
    Type(DType),
    /// A named choice, or the values of a tensor.
    Text(String),
    /// An optional variable.
    Optional(Option<usize>),
    None,
}

/// The dtypes, with PyTorch's names.
pub const TYPES: [(DType, &str); 8] = [
    (DType::F32, "float32"),
    (DType::F64, "float64"),
    (DType::F16, "float16"),
    (DType::BF16, "bfloat16"),
    (DType::I64, "int64"),
    (DType::I32, "int32"),
    (DType::U8, "uint8"),
    (DType::Bool, "bool"),
];

pub fn type_name(dtype: DType) -> &'static str {
    TYPES.iter().find(|(known, _)| *known == dtype).expect("there are eight").1
}

pub fn type_named(name: &str) -> Option<DType> {
    TYPES.iter().find(|(_, known)| *known == name).map(|(dtype, _)| *dtype)
}

/// A language in which a program can be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Rust,
    Python,
}

impl Argument {
    fn written(&self, dialect: Dialect) -> String {
        let rust = dialect == Dialect::Rust;
        match self {
            Argument::Tensor(variable) => format!("v{variable}"),
            Argument::Int(value) => value.to_string(),
            Argument::Float(value) => float(*value, dialect),
            Argument::Bool(value) if rust => value.to_string(),
            Argument::Bool(value) => if *value { "True" } else { "False" }.to_string(),
            Argument::Ints(values) => format!("{}{values:?}", if rust { "&" } else { "" }),
            Argument::Sizes(values) => format!("{}{values:?}", if rust { "&" } else { "" }),
            Argument::Type(dtype) if rust => format!("DType::{dtype:?}"),
            Argument::Type(dtype) => dtype.to_string(),
            Argument::Text(text) if rust => operations::rust_name(text).to_string(),
            Argument::Text(text) => format!("'{text}'"),
            Argument::Optional(Some(variable)) if rust => format!("Some(v{variable})"),
            Argument::Optional(Some(variable)) => format!("v{variable}"),
            Argument::Optional(None) if rust => "None::<&Tensor>".to_string(),
            Argument::Optional(None) | Argument::None => "None".to_string(),
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Argument::Tensor(variable) => json!({ "v": variable }),
            Argument::Int(value) => json!(value),
            Argument::Float(value) => json!({ "f": format!("{value:?}") }),
            Argument::Bool(value) => json!(value),
            Argument::Ints(values) => json!(values),
            Argument::Sizes(values) => json!({ "s": values }),
            Argument::Type(dtype) => json!({ "t": type_name(*dtype) }),
            Argument::Text(text) => json!(text),
            Argument::Optional(variable) => json!({ "o": variable }),
            Argument::None => Json::Null,
        }
    }

    fn from_json(json: &Json) -> Option<Argument> {
        Some(match json {
            Json::Null => Argument::None,
            Json::Bool(value) => Argument::Bool(*value),
            Json::Number(value) => Argument::Int(value.as_i64()?),
            Json::String(text) => Argument::Text(text.clone()),
            Json::Array(values) => Argument::Ints(values.iter().map(Json::as_i64).collect::<Option<_>>()?),
            Json::Object(object) => match object.iter().next()? {
                (key, value) if key == "v" => Argument::Tensor(value.as_u64()? as usize),
                (key, value) if key == "o" => {
                    Argument::Optional(value.as_u64().map(|number| number as usize))
                }
                (key, value) if key == "f" => Argument::Float(value.as_str()?.parse().ok()?),
                (key, value) if key == "s" => Argument::Sizes(sizes(value)?),
                (_, value) => Argument::Type(type_named(value.as_str()?)?),
            },
        })
    }
}

fn sizes(json: &Json) -> Option<Vec<usize>> {
    json.as_array()?.iter().map(|size| size.as_u64().map(|size| size as usize)).collect()
}

fn float(value: f64, dialect: Dialect) -> String {
    let [nan, inf, minus_inf] = match dialect {
        Dialect::Rust => ["f64::NAN", "f64::INFINITY", "f64::NEG_INFINITY"],
        Dialect::Python => ["nan", "inf", "-inf"],
    };
    match value {
        value if value.is_nan() => nan.to_string(),
        f64::INFINITY => inf.to_string(),
        f64::NEG_INFINITY => minus_inf.to_string(),
        value => format!("{value:?}"),
    }
}

impl Step {
    /// The step as an expression.
    pub fn written(&self, dialect: Dialect) -> String {
        if self.operation.name == "tensor" {
            return self.values_written(dialect);
        }
        let mut rest = match dialect {
            Dialect::Rust => self.operation.rust,
            Dialect::Python => self.operation.python,
        };
        // Replace each parameter name by its argument, word by word.
        let mut text = String::new();
        while !rest.is_empty() {
            let other = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let (word, after) = rest.split_at(other.unwrap_or(rest.len()).max(1));
            match self.operation.parameters.iter().position(|(name, _)| *name == word) {
                Some(i) => text += &self.arguments[i].written(dialect),
                None => text += word,
            }
            rest = after;
        }
        text
    }

    fn values_written(&self, dialect: Dialect) -> String {
        let [Argument::Type(dtype), Argument::Sizes(sizes), Argument::Text(values), Argument::Bool(grad)] =
            &self.arguments[..]
        else {
            unreachable!("the parameters of `tensor`")
        };
        let (from, is_float) = (operations::written_as(*dtype), dtype.is_floating_point());
        let value = |word: &str| match word.parse() {
            Ok(value) if is_float => float(value, dialect),
            Ok(value) if *dtype == DType::Bool => Argument::Bool(value != 0.0).written(dialect),
            _ => word.to_string(),
        };
        let values = values.split_whitespace().map(value).collect::<Vec<_>>().join(", ");
        match dialect {
            Dialect::Rust => {
                let grad = if *grad { "?.requires_grad_(true)" } else { "" };
                format!("Tensor::from_slice::<{from}>(&[{values}], &{sizes:?})?.to(DType::{dtype:?}){grad}")
            }
            Dialect::Python => {
                let grad = if *grad { ".requires_grad_()" } else { "" };
                // For views, PyTorch's terms differ.
                let shaped =
                    if sizes.len() == 1 { "".to_string() } else { format!(".reshape({sizes:?}).clone()") };
                format!("torch.tensor([{values}], dtype={dtype}){shaped}{grad}")
            }
        }
    }

    /// The variables that the step takes.
    pub fn operands(&self) -> impl Iterator<Item = usize> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Tensor(variable) => Some(*variable),
            Argument::Optional(variable) => *variable,
            _ => None,
        })
    }
}

impl Program {
    /// The program as runnable code, given the number of tensors that each step creates (`None`: it fails).
    pub fn written(&self, dialect: Dialect, made: &[Option<usize>]) -> String {
        let mut text = String::new();
        let mut next = 0;
        for (step, made) in self.steps.iter().zip(made) {
            let count = made.unwrap_or(0);
            let names: Vec<String> = (next..next + count).map(|variable| format!("v{variable}")).collect();
            let (names, call) = (names.join(", "), step.written(dialect));
            next += count;
            text += &match (dialect, made) {
                (Dialect::Rust, None) => format!("{call}; // fails\n"),
                (Dialect::Rust, Some(0)) => format!("{call}?;\n"),
                (Dialect::Rust, Some(1)) => format!("let {names} = &{call}?;\n"),
                (Dialect::Rust, _) => format!("let [{names}] = &{call}?[..] else {{ unreachable!() }};\n"),
                (Dialect::Python, None) => format!("{call}  # fails\n"),
                (Dialect::Python, Some(0)) => format!("{call}\n"),
                (Dialect::Python, Some(1)) => format!("{names} = {call}\n"),
                (Dialect::Python, _) => format!("[{names}] = {call}\n"),
            };
        }
        text
    }

    pub fn to_json(&self) -> Json {
        let step = |step: &Step| {
            let arguments = step.arguments.iter().map(Argument::to_json);
            Json::Array([json!(step.operation.name)].into_iter().chain(arguments).collect())
        };
        Json::Array(self.steps.iter().map(step).collect())
    }

    pub fn from_json(json: &Json) -> Option<Program> {
        let step = |step: &Json| {
            let (name, arguments) = step.as_array()?.split_first()?;
            let operation = operations::named(name.as_str()?)?;
            let arguments = arguments.iter().map(Argument::from_json).collect::<Option<_>>()?;
            Some(Step { operation, arguments })
        };
        Some(Program { steps: json.as_array()?.iter().map(step).collect::<Option<_>>()? })
    }
}

/// The results of a program.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The tensors that each step created, or the first line of its error.
    pub steps: Vec<Result<Vec<Made>, String>>,
    /// The final values of each variable.
    pub values: Vec<Values>,
    /// The final gradient of each variable: its dtype, shape and values.
    pub gradients: Vec<Option<(DType, Vec<usize>, Values)>>,
}

/// The properties of a newly created tensor.
#[derive(Clone, Debug)]
pub struct Made {
    pub dtype: DType,
    pub sizes: Vec<usize>,
    pub strides: Vec<usize>,
    /// The first variable whose memory it shares.
    pub shares: Option<usize>,
    pub requires_grad: bool,
    pub grad_fn: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Values {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

impl Answer {
    /// The number of tensors that each step created.
    pub fn made(&self) -> Vec<Option<usize>> {
        self.steps.iter().map(|step| step.as_ref().ok().map(Vec::len)).collect()
    }

    /// Parses an answer in the format of `pytorch.py`.
    pub fn from_json(json: &Json) -> Option<Answer> {
        let made = |json: &Json| {
            Some(Made {
                dtype: type_named(json[0].as_str()?)?,
                sizes: sizes(&json[1])?,
                strides: sizes(&json[2])?,
                shares: json[3].as_u64().map(|variable| variable as usize),
                requires_grad: json[4].as_bool()?,
                grad_fn: json[5].as_str().map(str::to_string),
            })
        };
        let step = |json: &Json| match json {
            Json::String(error) => Some(Err(error.clone())),
            _ => Some(Ok(json.as_array()?.iter().map(made).collect::<Option<_>>()?)),
        };
        let steps: Vec<Result<Vec<Made>, String>> =
            json["steps"].as_array()?.iter().map(step).collect::<Option<_>>()?;
        let dtypes = steps.iter().flatten().flatten().map(|made| made.dtype);
        let values = json["values"].as_array()?.iter().zip(dtypes);
        let gradient = |json: &Json| {
            let Json::Array(parts) = json else { return Some(None) };
            let dtype = type_named(parts.first()?.as_str()?)?;
            Some(Some((dtype, sizes(&parts[1])?, Values::parse(parts[2].as_str()?, dtype)?)))
        };
        Some(Answer {
            values: values
                .map(|(text, dtype)| Values::parse(text.as_str()?, dtype))
                .collect::<Option<_>>()?,
            gradients: json["gradients"].as_array()?.iter().map(gradient).collect::<Option<_>>()?,
            steps,
        })
    }
}

impl Values {
    /// Parses numbers separated by spaces; nine digits identify an f32 uniquely.
    pub fn parse(text: &str, dtype: DType) -> Option<Values> {
        let words = text.split_whitespace();
        Some(match dtype.is_floating_point() {
            false => Values::Ints(words.map(|word| word.parse().ok()).collect::<Option<_>>()?),
            true => {
                let round = |x: f64| if dtype == DType::F64 { x } else { f64::from(x as f32) };
                Values::Floats(words.map(|word| word.parse().ok().map(round)).collect::<Option<_>>()?)
            }
        })
    }
}
