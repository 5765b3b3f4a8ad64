//! The values of lanes and cells, and their short forms.

use cuda_emulator::ir::Prim;
use cuda_emulator::ir::debug::Kind;
use cuda_emulator::report::json;
use cuda_emulator::run::math::float_of_f16;
use cuda_emulator::run::recording::{Content, Recording};

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Nothing,
    Unwritten,
    Bool(bool),
    Whole(i128),
    /// The shortest digits, or `nan` or `inf`; and the value.
    Float(String, f64),
    /// Elements from the start of the named memory.
    Pointer(String, i64),
    Address(String),
}

pub enum Series {
    Same(Value),
    /// A constant nonzero distance, and for pointers the name of the memory.
    Steps {
        from: i128,
        by: i128,
        of: Option<String>,
    },
    List(Vec<Value>),
}

/// The largest number up to which JSON numbers hold every integer.
const MOST_WHOLE: i128 = 1 << 53;

impl Value {
    pub fn new(recording: &Recording, kind: Kind, content: Content) -> Value {
        let bits = match content {
            Content::Nothing => return Value::Nothing,
            Content::Unwritten => return Value::Unwritten,
            Content::Bits(bits) => bits,
        };
        match kind {
            Kind::Pointer => pointer(recording, bits),
            Kind::Half => float32(float_of_f16(bits as u32)),
            Kind::Bfloat16 => float32(f32::from_bits((bits as u32) << 16)),
            Kind::Number(prim) => match prim {
                Prim::Bool => Value::Bool(bits as u8 != 0),
                Prim::I8 => Value::Whole(i128::from(bits as i8)),
                Prim::U8 => Value::Whole(i128::from(bits as u8)),
                Prim::I16 => Value::Whole(i128::from(bits as i16)),
                Prim::U16 => Value::Whole(i128::from(bits as u16)),
                Prim::I32 => Value::Whole(i128::from(bits as i32)),
                Prim::U32 => Value::Whole(i128::from(bits as u32)),
                Prim::I64 => Value::Whole(i128::from(bits as i64)),
                Prim::U64 | Prim::Void => Value::Whole(i128::from(bits)),
                Prim::F32 => float32(f32::from_bits(bits as u32)),
                Prim::F64 => {
                    let x = f64::from_bits(bits);
                    Value::Float(digits(x, &x.to_string(), &format!("{x:e}")), x)
                }
            },
        }
    }

    pub fn text(&self) -> String {
        match self {
            Value::Nothing => "-".to_owned(),
            Value::Unwritten => "?".to_owned(),
            Value::Bool(is_true) => is_true.to_string(),
            Value::Whole(number) => number.to_string(),
            Value::Float(digits, _) => digits.clone(),
            Value::Pointer(of, by) => from_name(of, i128::from(*by)),
            Value::Address(text) => text.clone(),
        }
    }

    fn json(&self) -> String {
        match self {
            Value::Nothing => "null".to_owned(),
            Value::Whole(number) if number.abs() <= MOST_WHOLE => number.to_string(),
            Value::Float(digits, x) if x.is_finite() => digits.clone(),
            _ => json::string(&self.text()),
        }
    }

    /// The number, if it is an exact integer; for a pointer, with its name.
    fn whole(&self) -> Option<(Option<&str>, i128)> {
        match self {
            Value::Whole(number) => Some((None, *number)),
            Value::Float(_, x) if x.fract() == 0.0 && x.abs() < 1e6 && x.to_bits() != (-0.0f64).to_bits() => {
                Some((None, *x as i128))
            }
            Value::Pointer(of, by) => Some((Some(of), i128::from(*by))),
            _ => None,
        }
    }
}

impl Series {
    pub fn new(values: Vec<Value>) -> Series {
        let Some(first) = values.first() else { return Series::List(values) };
        if values.iter().all(|value| value == first) {
            return Series::Same(first.clone());
        }
        let whole: Option<Vec<_>> = values.iter().map(Value::whole).collect();
        if let Some(whole) = whole
            && let [(of, from), (_, second), _, ..] = whole[..]
            && let by = second - from
            && whole.windows(2).all(|pair| pair[0].0 == pair[1].0 && pair[1].1 - pair[0].1 == by)
            && whole.iter().all(|(_, number)| number.abs() <= MOST_WHOLE)
        {
            return Series::Steps { from, by, of: of.map(str::to_owned) };
        }
        Series::List(values)
    }

    pub fn json(&self) -> String {
        match self {
            Series::Same(value) => value.json(),
            Series::Steps { from, by, of: None } => format!("{{\"from\":{from},\"by\":{by}}}"),
            Series::Steps { from, by, of: Some(of) } => {
                format!("{{\"from\":{from},\"by\":{by},\"of\":{}}}", json::string(of))
            }
            Series::List(values) => {
                let all: Vec<String> = values.iter().map(Value::json).collect();
                format!("[{}]", all.join(","))
            }
        }
    }

    /// For example `7`, `0..31`, `0, 2, …, 62` or `3.5, 1.25, 0.5, …, 2`.
    pub fn text(&self, count: usize) -> String {
        let name = |of: &Option<String>, number: i128| match of {
            Some(of) => from_name(of, number),
            None => number.to_string(),
        };
        match self {
            Series::Same(value) => value.text(),
            Series::Steps { from, by, of } => {
                let last = from + by * (count as i128 - 1);
                match by {
                    1 => format!("{}..{last}", name(of, *from)),
                    _ if count <= 4 => {
                        let all = (0..count as i128).map(|k| name(of, from + by * k));
                        all.collect::<Vec<_>>().join(", ")
                    }
                    _ => format!("{}, {}, …, {}", name(of, *from), name(of, from + by), name(of, last)),
                }
            }
            Series::List(values) => {
                let all: Vec<String> = values.iter().map(Value::text).collect();
                match &all[..] {
                    [a, b, c, _, _, .., last] => format!("{a}, {b}, {c}, …, {last}"),
                    all => all.join(", "),
                }
            }
        }
    }
}

fn from_name(of: &str, by: i128) -> String {
    match by {
        0 => of.to_owned(),
        1.. => format!("{of} + {by}"),
        _ => format!("{of} - {}", -by),
    }
}

fn pointer(recording: &Recording, address: u64) -> Value {
    if address == 0 {
        return Value::Address("null".to_owned());
    }
    match recording.region(address) {
        Some((region, bytes)) => {
            let size = region.element_size.max(1) as i64;
            match bytes % size {
                0 => Value::Pointer(region.name.clone(), bytes / size),
                _ => Value::Address(format!("{} bytes", from_name(&region.name, i128::from(bytes)))),
            }
        }
        None => Value::Address(format!("{address:#x}")),
    }
}

fn float32(x: f32) -> Value {
    Value::Float(digits(f64::from(x), &x.to_string(), &format!("{x:e}")), f64::from(x))
}

/// Chooses the more readable form of a number.
fn digits(x: f64, plain: &str, scientific: &str) -> String {
    match x.abs() {
        _ if x.is_nan() => "nan".to_owned(),
        0.0 | 1e-4..1e9 => plain.to_owned(),
        f64::INFINITY => plain.to_owned(),
        _ => scientific.to_owned(),
    }
}
