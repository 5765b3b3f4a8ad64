//! A figure: a value with its name, unit and origin.

use std::time::Duration;

use todevice::Device;

use super::clock::modelled_or_measured;
use super::float::{format_float, near_rounding_boundary};

/// The origin of a figure, which decides how it may differ between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Computed: the same on every run with the same seed.
    Exact,
    /// Measured with a real clock or counter: different on every run. Always printed with "measured".
    Measured,
    /// Computed by the simulated machine: the same on every run. Always printed with "modelled".
    Modelled,
    /// A fact of the hardware, such as its name or its memory size.
    Hardware,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Measured => "measured",
            Kind::Modelled => "modelled",
            Kind::Hardware => "hardware",
        }
    }

    /// The word that must be next to every figure of this kind.
    pub fn warning(self) -> Option<&'static str> {
        match self {
            Kind::Measured | Kind::Modelled => Some(self.name()),
            Kind::Exact | Kind::Hardware => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count: examples, bytes, copies.
    Int(i64),
    /// A quantity, unrounded.
    Float(f64),
    /// A name: a device, a dtype.
    Text(String),
}

/// A value that a lab shows. Made by [`exact`], [`measured`], [`modelled`] or [`hardware`].
///
/// ```
/// use labs::modelled;
/// let step = modelled("step_time", 0.8189).unit("ms").digits(2);
/// assert_eq!(step.label, "Step time");
/// assert_eq!(step.printed(), "0.82 ms (modelled)");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Identifies the figure across versions of a lab, in snake_case. A repeated name, such as the loss of each epoch,
    /// is a series.
    pub name: &'static str,
    /// The text for the reader. Default: the name in words.
    pub label: String,
    pub value: Value,
    /// Empty for a bare number or a text.
    pub unit: &'static str,
    /// Digits after the point of a float. Default: 4, as in PyTorch.
    pub digits: u8,
    pub kind: Kind,
    /// Whether times decided it: see [`raced`].
    pub raced: bool,
    /// Whether it is a count of bytes, shown in a larger unit: see [`bytes`].
    pub is_bytes: bool,
}

/// A figure that is the same on every run.
pub fn exact(name: &'static str, value: impl Into<Value>) -> Figure {
    Figure::new(Kind::Exact, name, value.into())
}

/// A count of bytes, shown in the largest of KiB, MiB and GiB that it fills. JSON has the exact count, and a page shows
/// it in a note. If single bytes matter, use `exact("allocated", 512).unit("bytes")`.
///
/// ```
/// use labs::bytes;
/// let peak = bytes("peak", 108_000_256);
/// assert_eq!(peak.printed(), "103.0 MiB");
/// assert_eq!(peak.exact_bytes().as_deref(), Some("108,000,256 bytes"));
/// assert_eq!(bytes("a_float", 512).printed(), "512 bytes");
/// assert_eq!(peak.unit("KiB").digits(0).printed(), "105469 KiB"); // as its neighbours in a table
/// ```
pub fn bytes(name: &'static str, count: impl Into<Value>) -> Figure {
    let figure = exact(name, count);
    let count = figure.count().unwrap_or_default();
    let fills = |(_, size): &&(&str, f64)| count as f64 >= *size;
    let unit = BYTES.iter().rev().find(fills).map_or("bytes", |(unit, _)| unit);
    Figure { unit, digits: 1, is_bytes: true, ..figure }
}

/// The units of bytes, each with its size.
pub const BYTES: [(&str, f64); 4] =
    [("bytes", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];

/// A figure measured with a real clock or counter.
pub fn measured(name: &'static str, value: impl Into<Value>) -> Figure {
    Figure::new(Kind::Measured, name, value.into())
}

/// A figure computed by the simulated machine.
pub fn modelled(name: &'static str, value: impl Into<Value>) -> Figure {
    Figure::new(Kind::Modelled, name, value.into())
}

/// A figure that is modelled if the machine's time is modelled, and measured otherwise.
pub fn machine_figure(name: &'static str, value: impl Into<Value>) -> Figure {
    Figure::new(
        modelled_or_measured(Kind::Modelled, Kind::Measured),
        name,
        value.into(),
    )
}

/// As [`machine_figure`], for a time in milliseconds, taken with [`todevice::time::Instant`].
pub fn timed(name: &'static str, time: Duration) -> Figure {
    machine_figure(name, time.as_nanos() as f64 / 1e6).unit("ms").digits(3)
}

/// A result that may differ between runs on a real GPU: exact if time is modelled, measured otherwise.
pub fn observed(name: &'static str, value: impl Into<Value>) -> Figure {
    Figure::new(modelled_or_measured(Kind::Exact, Kind::Measured), name, value.into())
}

/// A result that depends on a device's rounding and order of addition: [`observed`] on a GPU, exact on the CPU.
pub fn rounded_by(
    name: &'static str,
    value: impl Into<Value>,
    device: Device,
) -> Figure {
    if device.is_cuda() { observed(name, value) } else { exact(name, value) }
}

/// An [`observed`] result that times decide: whether the host or the GPU came first, or the fastest algorithm. If times
/// change, even on a simulated GPU, the result may change.
pub fn raced(name: &'static str, value: impl Into<Value>) -> Figure {
    Figure { raced: true, ..observed(name, value) }
}

/// A fact of the hardware.
pub fn hardware(name: &'static str, value: impl Into<Value>) -> Figure {
    Figure::new(Kind::Hardware, name, value.into())
}

impl Figure {
    fn new(kind: Kind, name: &'static str, value: Value) -> Figure {
        Figure {
            name,
            label: in_words(name),
            value,
            unit: "",
            digits: 4,
            kind,
            raced: false,
            is_bytes: false,
        }
    }

    pub fn label(self, label: impl Into<String>) -> Figure {
        Figure { label: label.into(), ..self }
    }

    /// Sets the unit, printed after the value.
    pub fn unit(self, unit: &'static str) -> Figure {
        Figure { unit, ..self }
    }

    pub fn digits(self, digits: u8) -> Figure {
        Figure { digits, ..self }
    }

    fn count(&self) -> Option<i64> {
        match self.value {
            Value::Int(count) => Some(count),
            _ => None,
        }
    }

    /// The value in its unit, if it is a number.
    pub fn quantity(&self) -> Option<f64> {
        let size = BYTES.iter().find(|(unit, _)| self.is_bytes && *unit == self.unit);
        match self.value {
            Value::Int(count) => {
                Some(count as f64 / size.map_or(1.0, |(_, size)| *size))
            }
            Value::Float(quantity) => Some(quantity),
            Value::Text(_) => None,
        }
    }

    /// The exact number of bytes, if the figure is shown in a larger unit: `108,000,256 bytes`.
    pub fn exact_bytes(&self) -> Option<String> {
        let count = self.count().filter(|_| self.is_bytes && self.unit != "bytes")?;
        let digits = count.to_string();
        let mut grouped = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0
                && (digits.len() - place).is_multiple_of(3)
                && !grouped.ends_with('-')
            {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        Some(format!("{grouped} bytes"))
    }

    /// The printed value, without its unit.
    pub fn printed_value(&self) -> String {
        match &self.value {
            Value::Int(_) if self.exact_bytes().is_some() => {
                format_float(self.quantity().unwrap_or_default(), self.digits)
            }
            Value::Int(count) => count.to_string(),
            Value::Float(quantity) => format_float(*quantity, self.digits),
            Value::Text(text) => text.clone(),
        }
    }

    /// The value with its unit and, if its kind requires it, the word for its origin.
    pub fn printed(&self) -> String {
        let mut printed = self.printed_value();
        if !self.unit.is_empty() {
            printed = format!("{printed} {}", self.unit);
        }
        if let Some(word) = self.kind.warning() {
            printed = format!("{printed} ({word})");
        }
        printed
    }

    /// Whether another computer might print this figure differently: see [`near_rounding_boundary`].
    pub fn near_rounding_boundary(&self) -> bool {
        matches!(self.value, Value::Float(quantity) if near_rounding_boundary(quantity, self.digits))
    }
}

/// `step_time` → `Step time`.
fn in_words(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

impl From<f64> for Value {
    fn from(quantity: f64) -> Value {
        Value::Float(quantity)
    }
}

impl From<f32> for Value {
    fn from(quantity: f32) -> Value {
        Value::Float(f64::from(quantity))
    }
}

impl From<i64> for Value {
    fn from(count: i64) -> Value {
        Value::Int(count)
    }
}

impl From<i32> for Value {
    fn from(count: i32) -> Value {
        Value::Int(i64::from(count))
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Value {
        Value::Int(i64::from(count))
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Value {
        Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Value {
        Value::from(count as u64)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}
