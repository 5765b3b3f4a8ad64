//! Compares a program's output with that of its lab.

use std::collections::{BTreeMap, BTreeSet};

use labs::{Figure, Kind, Listed, Value};

/// The output of a lab in one of its runs.
pub struct Lab {
    /// The printed values of each figure that is the same in every run, in order.
    figures: BTreeMap<&'static str, Vec<String>>,
    lines: BTreeSet<String>,
    /// The number of values already matched in each series.
    at: BTreeMap<&'static str, usize>,
    /// Whether only integers are compared.
    bytes_only: bool,
}

impl Lab {
    pub fn new(lab: &Listed, run: &str, bytes_only: bool) -> Lab {
        let run = lab.runs.iter().find(|known| known.name == run).unwrap_or(&lab.runs[0]);
        let said = (lab.run)(&[run.flags, run.steady].concat());
        let mut figures: BTreeMap<_, Vec<String>> = BTreeMap::new();
        let is_steady = |figure: &&Figure| matches!(figure.kind, Kind::Exact | Kind::Hardware);
        let is_compared = |figure: &&Figure| {
            !bytes_only || (figure.kind == Kind::Exact && matches!(figure.value, Value::Int(_)))
        };
        let all = said.events.iter().flat_map(|event| event.figures());
        for figure in all.filter(is_steady).filter(is_compared) {
            figures.entry(figure.name).or_default().push(figure.printed_value());
        }
        let lines = said.text.lines().map(str::to_owned).collect();
        Lab { figures, lines, at: BTreeMap::new(), bytes_only }
    }

    /// The error in a line of a program's output.
    pub fn wrong(&mut self, line: &str) -> Option<String> {
        if line.ends_with("(measured)") || self.lines.contains(line) {
            return None;
        }
        let (figures, rest) = figures_of(line);
        if let Some(what) = figures.into_iter().find_map(|(name, value)| self.differs(name, value)) {
            return Some(what);
        }
        (!self.bytes_only && has_a_number(&rest))
            .then(|| format!("`{line}` is no line of the lab: print `name = value`, or `… (measured)`"))
    }

    fn differs(&mut self, name: &str, value: &str) -> Option<String> {
        let Some((name, known)) = self.figures.get_key_value(name) else {
            let what = format!("the lab has no figure `{name}`, which would be {value} here");
            return (!self.bytes_only).then_some(what);
        };
        let at = self.at.entry(name).or_default();
        match known[*at..].iter().position(|known| is_same(known, value)) {
            Some(found) => {
                *at += found + 1;
                None
            }
            None => Some(format!("`{name} = {value}`, and the lab says {}", known.join(", "))),
        }
    }
}

/// Splits `words: a = 1, b = 2 KiB` into a and b with their values, and the rest.
fn figures_of(line: &str) -> (Vec<(&str, &str)>, String) {
    let mut figures = Vec::new();
    let mut rest = line;
    let mut others = String::new();
    while let Some((before, after)) = rest.split_once(" = ") {
        let start = before.rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (words, name) = before.split_at(start.map_or(0, |at| at + 1));
        let end = after.find([',', ' ']).unwrap_or(after.len());
        let value = &after[..end];
        others += words;
        figures.push((name, value));
        rest = &after[end..];
    }
    (figures, others + rest)
}

/// Whether the text contains a number that is not part of a name, such as `float32` or `cuda:0`.
fn has_a_number(text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != ':' && letter != '_');
    words.into_iter().any(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))
}

fn is_same(known: &str, value: &str) -> bool {
    if known == value {
        return true;
    }
    let digits = |text: &str| text.split_once('.').map(|(_, digits)| digits.len());
    let (Some(there), Some(here), Ok(known), Ok(value)) =
        (digits(known), digits(value), known.parse::<f64>(), value.parse::<f64>())
    else {
        return false;
    };
    there == here && (known - value).abs() < 1.5 * 0.1f64.powi(here as i32)
}

#[test]
fn figures_and_numbers_of_a_line_are_found() {
    assert_eq!(
        figures_of("hidden layer: bytes = 16384, on cpu"),
        (vec![("bytes", "16384")], "hidden layer: , on cpu".to_owned())
    );
    assert_eq!(figures_of("a = 1, b = 2.5 %"), (vec![("a", "1"), ("b", "2.5")], ",  %".to_owned()));
    assert!(has_a_number("it took 3 steps") && has_a_number("-1.5") && has_a_number("[0.1, x]"));
    assert!(!has_a_number("torch.float32 on cuda:0, x_1"));
    assert!(is_same("0.7559", "0.7560") && !is_same("0.7559", "0.7561") && !is_same("1024", "1025"));
    assert!(!is_same("0.75", "0.7500") && is_same("yes", "yes") && !is_same("yes", "no"));
}
