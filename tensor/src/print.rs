//! `print(tensor)`: the text of PyTorch 2.11 with its default options.
//!
//! All shown elements have one notation and width. Device, size, dtype and gradient follow the last bracket.

use std::ops::Range;

const PRECISION: usize = 4;
/// Larger tensors are summarised ...
const THRESHOLD: usize = 1000;
/// ... to this many items at both ends of each dimension.
const EDGE_ITEMS: usize = 3;
/// The maximum width of a line, where possible.
const LINE_WIDTH: usize = 80;

const PREFIX: &str = "tensor(";
pub(crate) const PARAMETER: &str = "Parameter containing:\n";

/// The values of a tensor in row-major order, on the host. Floats are widened to f64, which is exact.
pub(crate) enum Values {
    Float(Vec<f64>),
    Int(Vec<i64>),
    Bool(Vec<bool>),
}

/// The properties of a tensor besides its values.
pub(crate) struct Facts<'a> {
    /// `cuda:0`; `None` for the CPU, which is not printed.
    pub device: Option<&'a str>,
    /// `torch.float32`
    pub dtype: &'a str,
    /// `grad_fn=<MulBackward0>` or `requires_grad=True`
    pub gradient: Option<&'a str>,
}

/// `tensor([[ 1.0000, -2.5000],\n        [ 3.0000,  4.0000]], grad_fn=<MulBackward0>)`
pub(crate) fn tensor(values: &Values, sizes: &[usize], facts: &Facts) -> String {
    let count: usize = sizes.iter().product();
    let mut text = PREFIX.to_string();
    if count == 0 {
        text += "[]";
    } else {
        let layout = PrintLayout::new(values, sizes, count > THRESHOLD);
        text += &layout.block(0..count, sizes, PREFIX.len());
    }
    append(&mut text, &suffixes(sizes, count == 0, facts));
    text.push(')');
    text
}

fn suffixes(sizes: &[usize], empty: bool, facts: &Facts) -> Vec<String> {
    let mut list = Vec::new();
    list.extend(facts.device.map(|device| format!("device='{device}'")));
    // Brackets cannot show a size such as (2, 0). A plain [] means (0,).
    if empty && sizes.len() != 1 {
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        list.push(format!("size=({})", sizes.join(", ")));
    }
    // Values such as 3 and True imply their dtype.
    let told = facts.dtype == "torch.float32"
        || (!empty && (facts.dtype == "torch.int64" || facts.dtype == "torch.bool"));
    if !told {
        list.push(format!("dtype={}", facts.dtype));
    }
    list.extend(facts.gradient.map(str::to_string));
    list
}

/// Appends each suffix to the last line of `text`, or to a new line if it does not fit.
fn append(text: &mut String, suffixes: &[String]) {
    // PyTorch's line breaks count two columns too many.
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    let mut column = last_line.len() + 2;
    for suffix in suffixes {
        if column + suffix.len() + 2 > LINE_WIDTH {
            *text += &format!(",\n{:indent$}{suffix}", "", indent = PREFIX.len());
            column = PREFIX.len() + suffix.len();
        } else {
            *text += &format!(", {suffix}");
            column += suffix.len() + 2;
        }
    }
}

/// Returns the positions to show along a dimension, with `None` for the dots.
fn shown(size: usize, summary: bool) -> Vec<Option<usize>> {
    if !summary || size <= 2 * EDGE_ITEMS {
        return (0..size).map(Some).collect();
    }
    let first = (0..EDGE_ITEMS).map(Some);
    let last = (size - EDGE_ITEMS..size).map(Some);
    first.chain([None]).chain(last).collect()
}

/// Returns the index ranges of `tensor[0]`, `tensor[1]`, ... at the positions of `shown`.
fn parts(range: Range<usize>, size: usize, summary: bool) -> Vec<Option<Range<usize>>> {
    let length = range.len() / size;
    let part = |i| range.start + i * length..range.start + (i + 1) * length;
    shown(size, summary).into_iter().map(|position| position.map(part)).collect()
}

fn visible(range: Range<usize>, sizes: &[usize], summary: bool, indices: &mut Vec<usize>) {
    match sizes {
        [] => indices.push(range.start),
        [size, inner @ ..] => {
            for part in parts(range, *size, summary).into_iter().flatten() {
                visible(part, inner, summary, indices);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Notation {
    /// `3.`
    Whole,
    /// `3.0000`
    Decimal,
    /// `3.0000e+00`
    Scientific,
}

struct PrintLayout<'a> {
    values: &'a Values,
    summary: bool,
    notation: Notation,
    width: usize,
}

impl<'a> PrintLayout<'a> {
    fn new(values: &'a Values, sizes: &[usize], summary: bool) -> Self {
        let count = sizes.iter().product();
        let mut indices = Vec::new();
        visible(0..count, sizes, summary, &mut indices);

        let mut notation = Notation::Whole;
        if let Values::Float(all) = values {
            // As in PyTorch, zero, inf and nan affect neither notation nor width: forty zeros exceed the line.
            indices.retain(|&i| all[i].is_finite() && all[i] != 0.0);
            notation = choose(indices.iter().map(|&i| all[i]));
        }

        let mut layout = PrintLayout { values, summary, notation, width: 1 };
        layout.width = indices.iter().map(|&i| layout.element(i).len()).max().unwrap_or(1);
        layout
    }

    fn element(&self, index: usize) -> String {
        match self.values {
            Values::Float(all) => float(all[index], self.notation),
            Values::Int(all) => all[index].to_string(),
            Values::Bool(all) => (if all[index] { "True" } else { "False" }).to_string(),
        }
    }

    fn padded(&self, index: usize) -> String {
        format!("{:>width$}", self.element(index), width = self.width)
    }

    /// Formats the elements of `range` in nested brackets, the first in column `indent`.
    fn block(&self, range: Range<usize>, sizes: &[usize], indent: usize) -> String {
        match sizes {
            [] => self.padded(range.start),
            [size] => self.row(range, *size, indent),
            [size, inner @ ..] => {
                let blocks: Vec<String> = parts(range, *size, self.summary)
                    .into_iter()
                    .map(|part| part.map_or("...".to_string(), |part| self.block(part, inner, indent + 1)))
                    .collect();
                // One newline between rows, two between matrices, three between stacks of matrices.
                let newlines = "\n".repeat(sizes.len() - 1);
                let separator = format!(",{newlines}{:indent$}", "", indent = indent + 1);
                format!("[{}]", blocks.join(&separator))
            }
        }
    }

    /// Formats the innermost dimension, with as many elements per line as fit.
    fn row(&self, range: Range<usize>, size: usize, indent: usize) -> String {
        let elements: Vec<String> = parts(range, size, self.summary)
            .into_iter()
            .map(|part| part.map_or(" ...".to_string(), |part| self.padded(part.start)))
            .collect();
        let per_line = (LINE_WIDTH.saturating_sub(indent) / (self.width + ", ".len())).max(1);
        let lines: Vec<String> = elements.chunks(per_line).map(|line| line.join(", ")).collect();
        let separator = format!(",\n{:indent$}", "", indent = indent + 1);
        format!("[{}]", lines.join(&separator))
    }
}

fn choose(values: impl Iterator<Item = f64> + Clone) -> Notation {
    let largest = values.clone().map(f64::abs).fold(0.0, f64::max);
    let smallest = values.clone().map(f64::abs).fold(f64::INFINITY, f64::min);
    if largest / smallest > 1000.0 || largest > 1e8 || smallest < 1e-4 {
        Notation::Scientific
    } else if values.clone().all(|value| value.fract() == 0.0) {
        Notation::Whole
    } else {
        Notation::Decimal
    }
}

fn float(value: f64, notation: Notation) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    if value.is_infinite() {
        return value.to_string();
    }
    match notation {
        Notation::Whole => format!("{value:.0}."),
        Notation::Decimal => format!("{value:.PRECISION$}"),
        Notation::Scientific => scientific(value),
    }
}

/// `2.5000e-07`, with a sign and two digits in the exponent; Rust writes `2.5000e-7`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.PRECISION$e}");
    let (digits, exponent) = text.split_once('e').expect("{:e} writes an e");
    let exponent: i32 = exponent.parse().expect("{:e} writes a number after its e");
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<T: std::str::FromStr>(text: &str, from_index: fn(i64) -> T) -> Vec<T> {
        if let Some((start, end)) = text.split_once("..") {
            let (start, end): (i64, i64) = (start.parse().unwrap(), end.parse().unwrap());
            return (start..end).map(from_index).collect();
        }
        text.split_whitespace().map(|number| number.parse().ok().unwrap()).collect()
    }

    #[test]
    fn prints_as_pytorch() {
        let mut cases = 0;
        let file = include_str!("print_cases.txt");
        let mut lines = file.lines().filter(|line| !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            let Some(head) = line.strip_prefix("> ") else { continue };
            let fields: Vec<&str> = head.split('|').map(str::trim).collect();
            let [class, sizes, dtype, device, gradient] = fields[..] else { panic!("{head}") };
            let numbers_line = lines.next().unwrap().trim_start_matches('>').trim();
            let mut expected = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with('>')) {
                expected = expected + line + "\n";
            }

            let values = match dtype {
                "torch.bool" => Values::Bool(numbers(numbers_line, |i| i).iter().map(|&i| i == 1).collect()),
                _ if dtype.contains("float") => Values::Float(numbers(numbers_line, |i| i as f64)),
                _ => Values::Int(numbers(numbers_line, |i| i)),
            };
            let sizes: Vec<usize> = numbers(sizes.trim_matches('-'), |i| i as usize);
            let some = |text| (text != "-").then_some(text);
            let facts = Facts { device: some(device), dtype, gradient: some(gradient) };
            let heading = if class == "Parameter" { PARAMETER } else { "" };
            let text = heading.to_string() + &tensor(&values, &sizes, &facts);
            assert_eq!(text, expected.trim_end(), "{head}\n{numbers_line}");
            cases += 1;
        }
        assert!(cases > 60, "only {cases} cases found in print_cases.txt");
    }

    #[test]
    fn names_the_gpu() {
        let facts = Facts { device: Some("cuda:0"), dtype: "torch.float32", gradient: None };
        let text = tensor(&Values::Float(vec![1.0, 2.0]), &[2], &facts);
        assert_eq!(text, "tensor([1., 2.], device='cuda:0')");
    }
}
