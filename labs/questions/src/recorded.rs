//! The figures and predictions of chapter 12. Its lab, `labs/lab_12`, is a program of its own, so that no other lab
//! compiles the emulator: here its results come from a file that one of its tests keeps up to date.

use std::sync::OnceLock;

use labs::prediction::Answer;
use labs::{Event, Figure, Key, Prediction, Value, exact, modelled};

/// The chapter, and the name of its only run.
pub const CHAPTER: &str = "12";
const RUN: &str = "emulated";

/// A figure a line: its name, value, unit (`-` for none), and `modelled` if it is.
const FIGURES: &str = include_str!("../../lab_12/recorded/figures.txt");

/// What the lab said in this run.
pub fn events(run: &str) -> Result<&'static [Event], String> {
    static EVENTS: OnceLock<Result<Vec<Event>, String>> = OnceLock::new();
    if run != RUN {
        return Err(format!("lab-{CHAPTER} has no such run: say run={RUN}"));
    }
    EVENTS.get_or_init(read).as_deref().map_err(Clone::clone)
}

fn read() -> Result<Vec<Event>, String> {
    let lines = FIGURES.lines().filter(|line| !line.starts_with('#'));
    let figures: Vec<Figure> = lines.map(figure).collect::<Result<_, _>>()?;
    let mut events = Vec::new();
    for (prediction, key) in predictions(&figures)? {
        events.push(Event::Prediction(prediction.clone()));
        events.push(Event::Answer(Answer { prediction, key, said: None }));
    }
    events.extend(figures.into_iter().map(Event::Figure));
    Ok(events)
}

fn figure(line: &str) -> Result<Figure, String> {
    let wrong = || format!("labs/lab_12/recorded/figures.txt: `{line}` is not like `threads 1024 -`");
    let words: Vec<&str> = line.split_whitespace().collect();
    let ([name, value, unit] | [name, value, unit, "modelled"]) = words[..] else { return Err(wrong()) };
    let number = match value.parse::<i64>() {
        Ok(count) => Value::Int(count),
        Err(_) => Value::Float(value.parse().map_err(|_| wrong())?),
    };
    // The list is read once.
    let name: &'static str = name.to_owned().leak();
    let unit: &'static str = if unit == "-" { "" } else { unit.to_owned().leak() };
    let digits = value.split_once('.').map_or(0, |(_, digits)| digits.len());
    let figure = if words.len() == 4 { modelled(name, number) } else { exact(name, number) };
    Ok(figure.unit(unit).digits(digits as u8))
}

/// What the chapter asks before it shows the result, each with its answer.
fn predictions(figures: &[Figure]) -> Result<Vec<(Prediction, Key)>, String> {
    let found = |name: &str| {
        let figure = figures.iter().find(|figure| figure.name == name).cloned();
        figure.map(Key::Number).ok_or_else(|| format!("labs/lab_12/recorded/figures.txt has no `{name}`"))
    };
    let is_reported =
        matches!(found("other_row_errors")?, Key::Number(figure) if figure.quantity() > Some(0.0));
    Ok(vec![
        (
            Prediction::number("12-idle", "How many of the threads that this program starts add nothing?")
                .unit("threads")
                .whole()
                .because("Every block has as many threads as the others, so the last one has some to spare."),
            found("idle")?,
        ),
        (
            Prediction::yes_no(
                "12-other-row",
                "Suppose that the *second* label is too large instead of the last: `{3, 10, 9, 0}`. Is that reported?",
            )
            .because("Row and label then lead to the start of the next row. That memory belongs to the program."),
            Key::Truth(is_reported),
        ),
    ])
}
