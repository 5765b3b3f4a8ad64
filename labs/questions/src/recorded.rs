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
        return Err(format!("lab-{CHAPTER} has no such run: write run={RUN}"));
    }
    EVENTS.get_or_init(read).as_deref().map_err(Clone::clone)
}

fn read() -> Result<Vec<Event>, String> {
    let lines = FIGURES.lines().filter(|line| !line.starts_with('#'));
    let figures: Vec<Figure> = lines.map(figure).collect::<Result<_, _>>()?;
    let mut events = Vec::new();
    for (prediction, key) in predictions(&figures)? {
        events.push(Event::Prediction(prediction.clone()));
        events.push(Event::Answer(Answer { prediction, key, response: None }));
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
    let times = |name: &str| {
        let series = figures.iter().filter(|figure| figure.name == name);
        series.filter_map(Figure::quantity).collect::<Vec<f64>>()
    };
    // How many times as fast as the step before each step is.
    let gains = |name: &str| times(name).windows(2).map(|pair| pair[0] / pair[1]).collect::<Vec<f64>>();
    let best = gains("sum_time").into_iter().enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
    let (Some((best, _)), Some(&one_line)) = (best, gains("product_time").first()) else {
        return Err("labs/lab_12/recorded/figures.txt has no ladders".to_owned());
    };
    const STEPS: [&str; 5] = ["shared", "halves", "first-add", "shuffles", "vectors"];
    let best = STEPS.get(best).copied().unwrap_or_default();
    Ok(vec![
        (
            Prediction::choice(
                "12-best-step",
                "Each step makes the sum faster than the one before. Which step gains the most?",
            )
            .or(
                "shared",
                "Adding in shared memory instead of at one place in global memory",
                "It ends the queue at that place, and here that was not the longest wait.",
            )
            .or(
                "halves",
                "Letting whole warps stop, instead of every other lane",
                "It saves two thirds of the instructions, and about half of the time. The step before gains more.",
            )
            .or("first-add", "Adding two elements while reading", "It halves the blocks, so it can gain two times at most.")
            .or("shuffles", "Handing registers from lane to lane", "It saves barriers, of which few are left.")
            .or("vectors", "Reading four floats at once", "It asks memory less often, for the same bytes.")
            .because("With a single place to add to, all threads of the grid queue up. No other step removes such a queue."),
            Key::from(best),
        ),
        (
            Prediction::number(
                "12-one-line",
                "Step two of the product swaps two indices, so that neighbouring lanes read neighbouring floats. How many times as fast is it?",
            )
            .unit("times")
            .tolerance(0.3)
            .positive()
            .because("Half of the first step's requests fetch a sector for each lane, and use four bytes of it. In step two, a request fetches one sector or four."),
            Key::from(modelled("one_line", one_line).unit("times").digits(1)),
        ),
        (
            Prediction::number("12-idle", "How many of the threads that this program starts add nothing?")
                .unit("threads")
                .integer()
                .because("All blocks have the same number of threads, so the last one has some to spare."),
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
