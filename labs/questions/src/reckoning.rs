//! Sums and ratios of figures, so that no page has to state what follows from what its lab prints.

use labs::{BYTES, Figure, Kind, Value, bytes, exact};

/// What finds a figure, by its name and its place in a series.
type Find<'a> = &'a dyn Fn(&str, Option<usize>) -> Result<Figure, String>;

/// The words of a sum, such as `a 2 + ( b - 3 ) / c`, which are read from left to right.
pub struct Terms<'a> {
    words: Vec<String>,
    next: usize,
    find: Find<'a>,
}

/// What some of the words come to.
pub struct Term {
    figure: Figure,
    /// A number that stands there itself, and has no unit.
    literal: bool,
    /// Nobody has said yet how many digits it has.
    endless: bool,
    /// Made from a float, whose last bits may differ from computer to computer.
    float: bool,
    /// One figure, and nothing was done to it.
    alone: bool,
}

impl<'a> Terms<'a> {
    pub fn new(words: &[&str], find: Find<'a>) -> Terms<'a> {
        let spaced = words.join(" ").replace('(', " ( ").replace(')', " ) ");
        Terms { words: spaced.split_whitespace().map(str::to_owned).collect(), next: 0, find }
    }

    /// All of them together.
    pub fn whole(mut self) -> Result<Term, String> {
        let sum = self.sum()?;
        match self.words.get(self.next) {
            None => Ok(sum),
            Some(word) if sum.alone => Err(format!(
                "`{word}` is neither a place in a series, 1, 2 …, nor one of + - * /, nor an option: `in=MiB`, \
                 `digits=2`, `value`"
            )),
            Some(word) => Err(format!("`{word}` cannot follow here: write one of + - * / before it")),
        }
    }

    fn word(&mut self, wanted: &[&str]) -> Option<String> {
        let word = self.words.get(self.next).filter(|word| wanted.contains(&word.as_str()))?.clone();
        self.next += 1;
        Some(word)
    }

    fn sum(&mut self) -> Result<Term, String> {
        let mut all = self.product()?;
        while let Some(sign) = self.word(&["+", "-"]) {
            all = combined(all, &sign, self.product()?)?;
        }
        Ok(all)
    }

    fn product(&mut self) -> Result<Term, String> {
        let mut all = self.factor()?;
        while let Some(sign) = self.word(&["*", "/"]) {
            all = combined(all, &sign, self.factor()?)?;
        }
        Ok(all)
    }

    fn factor(&mut self) -> Result<Term, String> {
        if self.word(&["("]).is_some() {
            let inside = self.sum()?;
            return match self.word(&[")"]) {
                Some(_) => Ok(Term { alone: false, ..inside }),
                None => Err("a `(` is never closed: end it with `)`".to_owned()),
            };
        }
        let Some(word) = self.words.get(self.next).cloned() else {
            return Err("a figure is missing at the end: write its name".to_owned());
        };
        self.next += 1;
        let value = match (word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(count), _) => Some(Value::Int(count)),
            (_, Ok(number)) if word.starts_with(|sign: char| sign.is_ascii_digit()) => {
                Some(Value::Float(number))
            }
            _ => None,
        };
        if let Some(value) = value {
            let digits = word.split_once('.').map_or(0, |(_, digits)| digits.len() as u8);
            let figure = exact("", value).digits(digits);
            return Ok(Term { figure, literal: true, endless: false, float: false, alone: false });
        }
        let place = self.words.get(self.next).and_then(|word| word.parse().ok());
        self.next += usize::from(place.is_some());
        let figure = (self.find)(&word, place)?;
        let float = matches!(figure.value, Value::Float(_));
        Ok(Term { figure, literal: false, endless: false, float, alone: true })
    }
}

/// The number of a figure.
fn number(figure: &Figure) -> Result<f64, String> {
    match &figure.value {
        Value::Int(count) => Ok(*count as f64),
        Value::Float(number) => Ok(*number),
        Value::Text(text) => Err(format!("`{}` says `{text}`, which is no number", figure.name)),
    }
}

/// A figure that says how many bytes it is, not how many KiB or MiB.
fn counted(figure: Figure) -> Figure {
    let unit = if figure.is_bytes { "bytes" } else { figure.unit };
    Figure { unit, is_bytes: false, ..figure }
}

fn combined(mut one: Term, sign: &str, mut other: Term) -> Result<Term, String> {
    let is_bytes = one.figure.is_bytes || other.figure.is_bytes;
    (one.figure, other.figure) = (counted(one.figure), counted(other.figure));
    let (a, b) = (number(&one.figure)?, number(&other.figure)?);
    let units = (one.figure.unit, other.figure.unit);
    let unit = match (sign, units) {
        ("+" | "-", (unit, other)) if unit == other => unit,
        // A number by itself counts in the unit of what it is added to.
        ("+" | "-", (unit, "")) if other.literal => unit,
        ("+" | "-", ("", unit)) if one.literal => unit,
        ("*", (unit, "") | ("", unit)) | ("/", (unit, "")) => unit,
        ("/", (unit, other)) if unit == other => "",
        (_, (unit, other)) => {
            let named = |unit: &str| if unit.is_empty() { "no unit".to_owned() } else { format!("`{unit}`") };
            return Err(format!(
                "`{sign}` between {} and {}: nobody can say its unit",
                named(unit),
                named(other)
            ));
        }
    };
    let value = match (&one.figure.value, sign, &other.figure.value) {
        (Value::Int(a), "+", Value::Int(b)) => Value::Int(a + b),
        (Value::Int(a), "-", Value::Int(b)) => Value::Int(a - b),
        (Value::Int(a), "*", Value::Int(b)) => Value::Int(a * b),
        (_, "+", _) => Value::Float(a + b),
        (_, "-", _) => Value::Float(a - b),
        (_, "*", _) => Value::Float(a * b),
        _ => Value::Float(a / b),
    };
    let digits =
        |term: &Term| if matches!(term.figure.value, Value::Float(_)) { term.figure.digits } else { 0 };
    let modelled = [&one, &other].iter().any(|term| term.figure.kind == Kind::Modelled);
    let figure = Figure {
        unit,
        digits: digits(&one).max(digits(&other)),
        kind: if modelled { Kind::Modelled } else { Kind::Exact },
        ..exact("", value)
    };
    let figure = match figure.value {
        Value::Int(count) if is_bytes && unit == "bytes" => bytes("", count),
        _ => figure,
    };
    // Of a product of two fractions nobody knows how many digits are wanted, as little as of a ratio.
    let fractions = [&one, &other].iter().filter(|term| matches!(term.figure.value, Value::Float(_))).count();
    let endless = sign == "/" || one.endless || other.endless || sign == "*" && fractions == 2;
    let literal = one.literal && other.literal;
    Ok(Term { figure, literal, endless, float: one.float || other.float, alone: false })
}

/// The units that figures can be told in: of what, and how much of it.
const UNITS: [(&str, &str, f64); 8] = [
    (BYTES[0].0, "bytes", BYTES[0].1),
    (BYTES[1].0, "bytes", BYTES[1].1),
    (BYTES[2].0, "bytes", BYTES[2].1),
    (BYTES[3].0, "bytes", BYTES[3].1),
    ("µs", "time", 1e-6),
    ("ms", "time", 1e-3),
    ("s", "time", 1.0),
    ("%", "share", 0.01),
];

/// Shares and multiples as people say them.
const WORDS: [(f64, &str); 28] = [
    (0.1, "a tenth"),
    (1.0 / 9.0, "a ninth"),
    (0.125, "an eighth"),
    (1.0 / 7.0, "a seventh"),
    (1.0 / 6.0, "a sixth"),
    (0.2, "a fifth"),
    (0.25, "a quarter"),
    (1.0 / 3.0, "a third"),
    (0.4, "two fifths"),
    (0.5, "half"),
    (0.6, "three fifths"),
    (2.0 / 3.0, "two thirds"),
    (0.75, "three quarters"),
    (0.8, "four fifths"),
    (0.9, "nine tenths"),
    (1.5, "one and a half times"),
    (2.0, "twice"),
    (2.5, "two and a half times"),
    (3.0, "three times"),
    (4.0, "four times"),
    (5.0, "five times"),
    (6.0, "six times"),
    (7.0, "seven times"),
    (8.0, "eight times"),
    (9.0, "nine times"),
    (10.0, "ten times"),
    (100.0, "a hundred times"),
    (1000.0, "a thousand times"),
];

/// A word may be off by so much.
const ABOUT: f64 = 0.07;

/// A term in another unit, with other digits, or in words. The error says what is missing or impossible.
pub fn changed(term: Term, unit: Option<&str>, digits: Option<u8>) -> Result<Figure, String> {
    let Term { mut figure, literal, mut endless, float, alone } = term;
    if literal {
        return Err("this names no figure: write the number itself".to_owned());
    }
    if alone && unit.is_none() && digits.is_none() {
        return Ok(figure);
    }
    if let Some("words") = unit {
        let (share, of) = (number(&figure)?, figure.unit);
        if !of.is_empty() {
            return Err(format!(
                "`in=words` is for a share, and this is in `{of}`: divide it by another figure"
            ));
        }
        let word = WORDS.iter().find(|(about, _)| (share / about - 1.0).abs() <= ABOUT);
        let (_, word) = word.ok_or_else(|| format!("`{share:.3}` has no word: write in=% or digits=…"))?;
        return Ok(Figure { value: Value::Text((*word).to_owned()), ..figure });
    }
    if let Some(name) = unit {
        figure = counted(figure);
        let named = |name: &str| UNITS.iter().find(|unit| unit.0 == name);
        let (to, kind, size) = named(name).ok_or_else(|| {
            let names: Vec<&str> = UNITS.iter().map(|unit| unit.0).collect();
            format!("`in={name}`: write in={} | words", names.join(" | "))
        })?;
        let from = match (figure.unit, *kind) {
            ("", "share") => 1.0,
            // A table says in its head that they are bytes.
            ("", "bytes") if matches!(figure.value, Value::Int(_)) => 1.0,
            (unit, _) => match named(unit).filter(|unit| unit.1 == *kind) {
                Some((_, _, from)) => *from,
                None => {
                    return Err(format!(
                        "`in={name}` of a figure in `{unit}`: the one cannot be told in the other"
                    ));
                }
            },
        };
        // A whole number of bytes stays known to the byte.
        let is_bytes = *kind == "bytes" && from == 1.0 && matches!(figure.value, Value::Int(_));
        let number = number(&figure)? * from / size;
        let value = if is_bytes { figure.value } else { Value::Float(number) };
        endless &= *kind != "bytes";
        figure = Figure { value, unit: to, digits: 1, is_bytes, ..figure };
    }
    match digits {
        Some(digits) => {
            if !figure.is_bytes {
                figure.value = Value::Float(number(&figure)?);
            }
            figure.digits = digits;
        }
        None if endless => return Err("how many digits? Add `digits=…`, or `in=words`".to_owned()),
        None => {}
    }
    if float && figure.near_rounding_boundary() {
        let (printed, digits) = (figure.printed_value(), figure.digits);
        return Err(format!(
            "`{printed}` lies where rounding may go either way: write another `digits=` than {digits}"
        ));
    }
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use labs::{Event, modelled, text};

    use super::*;
    use crate::figure;

    fn events() -> Vec<Event> {
        let lines = [
            text!("{} {}", exact("held", 3_000_000).unit("bytes"), exact("gaps", 145_728).unit("bytes")),
            text!("{} {}", modelled("step", 0.4).unit("ms"), modelled("step", 1.2341).unit("ms").digits(3)),
            text!("{} {}", modelled("wait", 0.25).unit("ms").digits(2), exact("name", "T4")),
            text!("{} {}", exact("steps", 48), bytes("peak", 108_000_256)),
            text!("{}", exact("block", 512)),
        ];
        lines.into_iter().map(Event::Line).collect()
    }

    fn said(words: &str) -> Result<String, String> {
        let other = |run: &str| match run {
            "t4" => Ok(events()),
            "h200" => Ok(vec![Event::Line(text!("{}", exact("steps", 12)))]),
            _ => Err(format!("no run {run}")),
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        figure(&[&["figure", "04", "t4"], &words[..]].concat(), &|_, run| other(run).map(Into::into))
            .map(|shown| shown.text)
    }

    #[test]
    fn figures_are_added_divided_and_told_in_other_units() {
        for (words, shown) in [
            ("held + gaps", "3145728 bytes"),
            ("held - 3 * gaps", "2562816 bytes"),
            ("held + gaps in=MiB", "3.0 MiB"),
            ("held in=KiB digits=2", "2929.69 KiB"),
            ("held in=bytes", "3000000 bytes"),
            ("block in=KiB", "0.5 KiB"),
            ("peak", "103.0 MiB"),
            ("peak in=bytes", "108000256 bytes"),
            ("peak in=GiB digits=2", "0.10 GiB"),
            ("peak digits=3", "102.997 MiB"),
            ("peak + held", "105.9 MiB"),
            ("peak - held in=bytes", "105000256 bytes"),
            ("peak / 2 in=MiB", "51.5 MiB"),
            ("held / peak in=% digits=0", "3 %"),
            ("held + 1", "3000001 bytes"),
            ("steps / h200:steps digits=0", "4"),
            ("steps / h200:steps in=words", "four times"),
            ("step 1 + wait", "0.6500 ms (modelled)"),
            ("step 2", "1.234 ms (modelled)"),
            ("step 2 - wait", "0.984 ms (modelled)"),
            ("step 2 in=µs digits=0", "1234 µs (modelled)"),
            ("wait / (step 1 + wait) in=% digits=0", "38 % (modelled)"),
            ("wait / (step 1 + wait) in=% digits=0 value", "38"),
            ("wait / step 2 in=words", "a fifth (modelled)"),
            ("wait / step 2 in=words value", "a fifth"),
            ("name", "T4"),
        ] {
            assert_eq!(said(words).as_deref(), Ok(shown), "{words}");
        }
    }

    #[test]
    fn what_cannot_be_worked_out_is_told() {
        for (words, told) in [
            ("held + step 1", "`+` between `bytes` and `ms`: nobody can say its unit"),
            ("steps + held", "`+` between no unit and `bytes`: "),
            ("steps / 3", "how many digits? Add `digits=…`, or `in=words`"),
            ("held + name", "`name` says `T4`, which is no number"),
            ("held +", "a figure is missing at the end: write its name"),
            ("( held + gaps", "a `(` is never closed"),
            ("held + gaps gaps", "`gaps` cannot follow here: write one of + - * /"),
            ("held gaps", "`gaps` is neither a place in a series, 1, 2 …, nor one of + - * /, nor an option"),
            ("3 + 4 * 2", "this names no figure: write the number itself"),
            ("3", "this names no figure: write the number itself"),
            ("held in=MB", "`in=MB`: write in=bytes | KiB | MiB | GiB | µs | ms | s | % | words"),
            ("step 1 in=MiB", "`in=MiB` of a figure in `ms`: the one cannot be told in the other"),
            ("held in=words", "`in=words` is for a share, and this is in `bytes`"),
            ("held / 7100000 in=words", "`in=words` is for a share"),
            ("steps / 109 in=words", "`0.440` has no word: write in=% or digits=…"),
            ("step 1 / 16 digits=2", "`0.03` lies where rounding may go either way"),
            ("step 1 digits=x", "`digits=x`: write digits=0 to digits=9"),
            ("held unit=MiB", "no option `unit=MiB`: write in=…, digits=… and value, at the end"),
            ("value", "`figure` is written like "),
            ("nope + held", "lab-04, run=t4, has: no figure `nope`: write block | "),
            ("steps / sim:steps", "no run sim"),
        ] {
            let what = said(words).unwrap_err();
            assert!(what.starts_with(told), "{words}\n{what}");
        }
    }
}
