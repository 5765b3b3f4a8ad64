//! Predictions: questions that a lab asks before it computes and shows the answer.
//!
//! ```
//! use labs::{Lab, Prediction, exact};
//!
//! fn steps(lab: &mut Lab) {
//!     let guess = lab.predict(
//!         Prediction::number("03-steps", "How many steps does an epoch take?")
//!             .unit("steps")
//!             .because("1024 samples make 32 batches of 32, and each batch is a step."),
//!     );
//!     // … the lab counts …
//!     lab.answer(guess, exact("steps", 32).unit("steps"));
//! }
//! ```

use std::fmt;

use drawing::printable;

use super::figure::{Figure, Value, exact};

/// A question that the reader answers before the lab does.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The chapter's number and a few words: `03-steps`. It never changes, since progress is stored under it.
    pub id: &'static str,
    /// The question, with code in backticks.
    pub question: String,
    pub kind: Kind,
    /// The reason for the answer, in a sentence or two.
    pub because: String,
    /// Whether times decide the answer, so that it may differ on another machine.
    pub raced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Choice(Vec<Choice>),
    YesNo,
    /// A number in this unit. It is right within this tolerance, relative to the answer.
    Number {
        unit: &'static str,
        tolerance: f64,
        possible: Possible,
    },
    /// These, in another order.
    Order(Vec<String>),
    /// One of these lines of code.
    Line(Vec<String>),
    /// A question to think about. A page hides the answer until the reader opens it.
    Think,
}

/// The range of possible numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Possible {
    pub least: f64,
    pub most: f64,
    pub is_integer: bool,
}

impl Possible {
    /// No lab asks for a negative number.
    const ANY: Possible =
        Possible { least: 0.0, most: f64::INFINITY, is_integer: false };

    fn allows(self, number: f64) -> bool {
        let Possible { least, most, is_integer } = self;
        (least..=most).contains(&number) && !(is_integer && number.fract() != 0.0)
    }

    /// The end of a phrase that begins with "a number": ` from 0 to 8`.
    fn range_text(self) -> String {
        let Possible { least, most, .. } = self;
        match (least > 0.0 && least < 1.0, most.is_finite()) {
            (true, _) => ", more than 0".to_owned(),
            (false, true) => format!(" from {least} to {most}"),
            (false, false) => format!(", {least} or more"),
        }
    }
}

impl Kind {
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Choice(_) => "choice",
            Kind::YesNo => "yes-no",
            Kind::Number { .. } => "number",
            Kind::Order(_) => "order",
            Kind::Line(_) => "line",
            Kind::Think => "think",
        }
    }
}

/// A choice, and why it is wrong, if it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name in the lab.
    pub name: &'static str,
    pub text: String,
    pub unless: String,
}

impl Prediction {
    fn new(id: &'static str, question: impl Into<String>, kind: Kind) -> Prediction {
        Prediction {
            id,
            question: question.into(),
            kind,
            because: String::new(),
            raced: false,
        }
    }

    /// A question with choices, which [`or`](Self::or) adds.
    pub fn choice(id: &'static str, question: impl Into<String>) -> Prediction {
        Prediction::new(id, question, Kind::Choice(Vec::new()))
    }

    /// Adds a choice: its name, its text, and why it is wrong, if it is.
    pub fn or(
        mut self,
        name: &'static str,
        text: impl Into<String>,
        unless: impl Into<String>,
    ) -> Prediction {
        if let Kind::Choice(choices) = &mut self.kind {
            choices.push(Choice { name, text: text.into(), unless: unless.into() });
        }
        self
    }

    pub fn yes_no(id: &'static str, question: impl Into<String>) -> Prediction {
        Prediction::new(id, question, Kind::YesNo)
    }

    /// A question for a number, which must be exact unless [`tolerance`](Self::tolerance) is set.
    pub fn number(id: &'static str, question: impl Into<String>) -> Prediction {
        let possible = Possible::ANY;
        Prediction::new(
            id,
            question,
            Kind::Number { unit: "", tolerance: 0.0, possible },
        )
    }

    /// Sets the unit of the number and of the answer. A percentage is at most 100.
    pub fn unit(mut self, of_number: &'static str) -> Prediction {
        if let Kind::Number { unit, possible, .. } = &mut self.kind {
            *unit = of_number;
            if of_number == "%" {
                possible.most = 100.0;
            }
        }
        self
    }

    /// Allows only integers: the answer is a count.
    pub fn integer(self) -> Prediction {
        self.possible(|possible| Possible { is_integer: true, ..possible })
    }

    /// Allows only counts up to `all`.
    pub fn out_of(self, all: usize) -> Prediction {
        self.integer().at_most(all as f64)
    }

    pub fn at_most(self, most: f64) -> Prediction {
        self.possible(|possible| Possible { most, ..possible })
    }

    pub fn at_least(self, least: f64) -> Prediction {
        self.possible(|possible| Possible { least, ..possible })
    }

    /// Excludes 0: the answer is a ratio.
    pub fn positive(self) -> Prediction {
        self.at_least(f64::MIN_POSITIVE)
    }

    fn possible(mut self, change: impl FnOnce(Possible) -> Possible) -> Prediction {
        if let Kind::Number { possible, .. } = &mut self.kind {
            *possible = change(*possible);
        }
        self
    }

    /// Sets the tolerance relative to the answer: 0.2 is 20 %.
    pub fn tolerance(mut self, share: f64) -> Prediction {
        if let Kind::Number { tolerance, .. } = &mut self.kind {
            *tolerance = share;
        }
        self
    }

    pub fn order<S: Into<String>>(
        id: &'static str,
        question: impl Into<String>,
        things: impl IntoIterator<Item = S>,
    ) -> Prediction {
        Prediction::new(
            id,
            question,
            Kind::Order(things.into_iter().map(Into::into).collect()),
        )
    }

    /// A question for a line of code. Lines without code are not options.
    pub fn line(
        id: &'static str,
        question: impl Into<String>,
        code: &str,
    ) -> Prediction {
        let lines = code
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(str::to_owned)
            .collect();
        Prediction::new(id, question, Kind::Line(lines))
    }

    /// A question to think about. It has no key.
    pub fn think(id: &'static str, question: impl Into<String>) -> Prediction {
        Prediction::new(id, question, Kind::Think)
    }

    pub fn because(self, because: impl Into<String>) -> Prediction {
        Prediction { because: because.into(), ..self }
    }

    /// Marks a question whose answer times decide.
    pub fn raced(self) -> Prediction {
        Prediction { raced: true, ..self }
    }

    /// If the lab will not answer the prediction, for example without a GPU, makes it a question to think about.
    pub fn only_if(self, is_answered: bool) -> Prediction {
        let raced = self.raced;
        if is_answered {
            self
        } else {
            Prediction { raced, ..Prediction::think(self.id, self.question) }
        }
    }

    /// Whether it waits for an answer.
    pub fn gates(&self) -> bool {
        self.kind != Kind::Think
    }

    /// The name of the part of the output that follows: the id without the chapter.
    pub fn part(&self) -> &'static str {
        self.id.split_once('-').map_or(self.id, |(_, part)| part)
    }

    /// The options of a choice, an order or a line, as a reader sees them.
    pub fn options(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Choice(choices) => {
                choices.iter().map(|choice| choice.text.as_str()).collect()
            }
            Kind::YesNo => vec!["Yes.", "No."],
            Kind::Order(things) | Kind::Line(things) => {
                things.iter().map(String::as_str).collect()
            }
            Kind::Number { .. } | Kind::Think => Vec::new(),
        }
    }

    fn letters(&self) -> Vec<char> {
        ('a'..='z').take(self.options().len()).collect()
    }

    /// The options as a terminal shows them, one per line; empty without options.
    pub fn listed(&self) -> String {
        match &self.kind {
            Kind::YesNo => String::new(),
            _ => self
                .letters()
                .iter()
                .zip(self.options())
                .map(|(letter, text)| format!("  {letter}) {text}\n"))
                .collect(),
        }
    }

    /// The expected input in words, for the prompt.
    pub fn expects(&self) -> String {
        let letters = self.letters();
        let range = || match letters[..] {
            [first, .., last] => format!("{first} to {last}"),
            _ => letters.iter().collect(),
        };
        match &self.kind {
            Kind::Choice(_) | Kind::Line(_) => range(),
            Kind::YesNo => "yes or no".to_owned(),
            Kind::Number { unit, possible, .. } => {
                let number =
                    if possible.is_integer { "a whole number" } else { "a number" };
                match *unit {
                    "" => number.to_owned(),
                    "%" => "a percentage".to_owned(),
                    unit => format!("{number} of {unit}"),
                }
            }
            Kind::Order(_) => {
                let example: Vec<String> =
                    letters.iter().rev().map(char::to_string).collect();
                format!("all letters in their order, such as {}", example.join(" "))
            }
            Kind::Think => "nothing".to_owned(),
        }
    }

    /// As [`expects`](Self::expects) with the possible range, for an error message.
    pub fn expected_input(&self) -> String {
        let expects = self.expects();
        match self.kind {
            Kind::Number { possible, .. } => expects + &possible.range_text(),
            Kind::Choice(_) | Kind::Line(_) => format!("a letter from {expects}"),
            _ => expects,
        }
    }

    /// Parses a guess. The error says in one line what is possible.
    pub fn parse(&self, typed: &str) -> Result<Response, String> {
        let wrong = || {
            let typed = printable::line(typed.trim());
            format!(
                "`{typed}` is not a possible answer: type {}",
                self.expected_input()
            )
        };
        let typed = typed.trim().to_ascii_lowercase();
        let of_letter =
            |letter: char| self.letters().iter().position(|known| *known == letter);
        let one = |text: &str| {
            let mut letters = text.chars();
            letters.next().filter(|_| letters.next().is_none()).and_then(of_letter)
        };
        let response = match &self.kind {
            Kind::Choice(_) | Kind::Line(_) => {
                one(typed.trim_end_matches([')', '.'])).map(Response::Option)
            }
            Kind::YesNo => match typed.trim_end_matches('.') {
                "y" | "yes" => Some(Response::Option(0)),
                "n" | "no" => Some(Response::Option(1)),
                _ => None,
            },
            Kind::Number { unit, possible, .. } => number(&typed, unit)
                .filter(|number| possible.allows(*number))
                .map(Response::Number),
            Kind::Order(things) => {
                let letters = typed
                    .chars()
                    .filter(|letter| !letter.is_whitespace() && *letter != ',');
                let order: Option<Vec<usize>> = letters.map(of_letter).collect();
                let all = |order: &Vec<usize>| {
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    sorted.into_iter().eq(0..things.len())
                };
                order.filter(all).map(Response::Order)
            }
            Kind::Think => None,
        };
        response.ok_or_else(wrong)
    }

    /// The guess as a reader would type it, which is the stored form.
    pub fn typed(&self, response: &Response) -> String {
        let letters = self.letters();
        let letter = |index: &usize| {
            letters.get(*index).map(char::to_string).unwrap_or_default()
        };
        match (response, &self.kind) {
            (Response::Option(index), Kind::YesNo) => {
                if *index == 0 { "yes" } else { "no" }.to_owned()
            }
            (Response::Option(index), _) => letter(index),
            (Response::Number(number), _) => number.to_string(),
            (Response::Order(order), _) => {
                order.iter().map(letter).collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn describe(&self, response: &Response) -> String {
        let options = self.options();
        let option =
            |index: &usize| options.get(*index).copied().unwrap_or_default().trim();
        match (response, &self.kind) {
            (Response::Option(index), Kind::Line(_)) => format!("`{}`", option(index)),
            (Response::Option(index), Kind::YesNo) => {
                if *index == 0 { "yes" } else { "no" }.to_owned()
            }
            (Response::Option(index), _) => {
                option(index).trim_end_matches('.').to_owned()
            }
            (Response::Number(number), Kind::Number { unit, .. })
                if !unit.is_empty() =>
            {
                format!(
                    "{number} {}",
                    if *number == 1.0 { singular(unit) } else { unit }
                )
            }
            (Response::Number(number), _) => number.to_string(),
            (Response::Order(order), _) => {
                order.iter().map(option).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// The singular of a unit: a batch, a call. Units that are no words stay unchanged. `book/theme/predict.js` has the
/// same rule.
fn singular(unit: &str) -> &str {
    let is_word = unit.len() > 3 && unit.bytes().all(|byte| byte.is_ascii_lowercase());
    let one = unit.strip_suffix("s").filter(|_| is_word).unwrap_or(unit);
    if one.ends_with("che") { &one[..one.len() - 1] } else { one }
}

/// Parses a number with or without a unit, as people write them: `1,024`, `3.5 ms`, `40 %`.
fn number(typed: &str, unit: &str) -> Option<f64> {
    let typed = typed.strip_suffix(&unit.to_ascii_lowercase()).unwrap_or(typed);
    let plain: String =
        typed.chars().filter(|letter| !matches!(letter, ',' | '_' | ' ')).collect();
    let may_be = |number: &f64| number.is_finite() && number.is_sign_positive();
    plain.parse().ok().filter(may_be)
}

/// A reader's guess. Options count from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    Option(usize),
    Number(f64),
    Order(Vec<usize>),
}

/// The lab's answer: a choice by its name, a line by a unique part of it, an order by its items.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    Named(String),
    Truth(bool),
    Number(Figure),
    Order(Vec<String>),
}

impl From<&str> for Key {
    fn from(name: &str) -> Key {
        Key::Named(name.to_owned())
    }
}

impl From<bool> for Key {
    fn from(truth: bool) -> Key {
        Key::Truth(truth)
    }
}

impl From<usize> for Key {
    fn from(count: usize) -> Key {
        Key::Number(exact("", count))
    }
}

impl From<Figure> for Key {
    fn from(figure: Figure) -> Key {
        Key::Number(figure)
    }
}

impl From<Vec<String>> for Key {
    fn from(order: Vec<String>) -> Key {
        Key::Order(order)
    }
}

/// A prediction with the reader's guess, for [`Lab::answer`](crate::Lab::answer).
#[must_use = "a prediction is answered with `lab.answer`"]
pub struct Guess {
    pub(crate) prediction: Prediction,
    pub(crate) response: Option<Response>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub prediction: Prediction,
    pub key: Key,
    /// The reader's guess, if the reader was asked and answered.
    pub response: Option<Response>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Right,
    /// A number that is this many times the answer.
    Off(f64),
    Wrong,
}

impl Answer {
    /// The answer in the form of a guess. The error says why there is none.
    pub fn expected(&self) -> Result<Response, String> {
        let Answer { prediction: Prediction { id, kind, .. }, key, .. } = self;
        match (kind, key) {
            (Kind::Choice(choices), Key::Named(name)) => choices
                .iter()
                .position(|choice| choice.name == name)
                .map(Response::Option)
                .ok_or_else(|| format!("{id} has no choice `{name}`")),
            (Kind::Line(lines), Key::Named(part)) => {
                let mut found =
                    lines.iter().enumerate().filter(|(_, line)| line.contains(part));
                match (found.next(), found.next()) {
                    (Some((index, _)), None) => Ok(Response::Option(index)),
                    (None, _) => Err(format!("{id} has no line with `{part}`")),
                    _ => Err(format!("{id} has more than one line with `{part}`")),
                }
            }
            (Kind::YesNo, Key::Truth(truth)) => {
                Ok(Response::Option(usize::from(!truth)))
            }
            (Kind::Number { unit, .. }, Key::Number(figure))
                if figure.unit != *unit =>
            {
                Err(format!(
                    "{id} asks for `{unit}`, and the answer comes in `{}`",
                    figure.unit
                ))
            }
            (Kind::Number { .. }, Key::Number(figure)) => {
                figure.quantity().map(Response::Number).ok_or_else(|| {
                    format!("{id} asks for a number, and the answer is none")
                })
            }
            (Kind::Order(things), Key::Order(order)) => {
                let place =
                    |thing: &String| things.iter().position(|known| known == thing);
                let order: Option<Vec<usize>> = order.iter().map(place).collect();
                order
                    .filter(|order| order.len() == things.len())
                    .map(Response::Order)
                    .ok_or_else(|| {
                        format!("{id} has other things to put in order than its answer")
                    })
            }
            _ => Err(format!("{id} is answered by another kind of key")),
        }
    }

    /// The answer in words, with "modelled" or "measured" if needed: `96 steps`.
    pub fn printed(&self) -> String {
        match (&self.key, self.expected()) {
            (Key::Number(figure), _) => figure.printed(),
            (_, Ok(expected)) => self.prediction.describe(&expected),
            (_, Err(what)) => what,
        }
    }

    /// Whether the ratio of guess and answer is not worth showing: for small counts and percentages.
    pub fn is_bare(&self) -> bool {
        matches!(
            &self.key,
            Key::Number(
                Figure { value: Value::Int(-20..=20), .. } | Figure { unit: "%", .. }
            )
        )
    }

    pub fn verdict(&self, response: &Response) -> Verdict {
        let expected = self.expected();
        match (&self.prediction.kind, response, expected) {
            (
                Kind::Number { tolerance, .. },
                Response::Number(response),
                Ok(Response::Number(expected)),
            ) => match (response - expected).abs() <= tolerance * expected.abs() {
                true => Verdict::Right,
                false if self.is_bare() || response / expected <= 0.0 => Verdict::Wrong,
                false => Verdict::Off(response / expected),
            },
            (_, response, Ok(expected)) if *response == expected => Verdict::Right,
            _ => Verdict::Wrong,
        }
    }

    /// The comparison for a reader, with the reason: `You said 2 steps; it was 96 steps, 48 times your guess.`
    pub fn compared(&self, response: &Response) -> String {
        let is_choice = matches!(self.prediction.kind, Kind::Choice(_) | Kind::Line(_));
        let quoted =
            |words: String| if is_choice { format!("“{words}”") } else { words };
        let (mine, answer) =
            (quoted(self.prediction.describe(response)), quoted(self.printed()));
        let (unless, because) =
            (self.unless(response), self.prediction.because.as_str());
        let is_number = matches!(response, Response::Number(_));
        let verdict = match self.verdict(response) {
            Verdict::Right if is_number => {
                format!("You said {mine}; it was {answer}. Right.")
            }
            Verdict::Right => format!("You said {mine}. Right."),
            Verdict::Off(ratio) => {
                format!("You said {mine}; it was {answer}, {}.", times(ratio))
            }
            Verdict::Wrong if is_number => format!("You said {mine}; it was {answer}."),
            Verdict::Wrong if self.prediction.kind == Kind::YesNo => {
                format!("You said {mine}; the answer is {answer}.")
            }
            Verdict::Wrong => {
                format!("You said {mine}. No. {unless} The answer is {answer}.")
            }
        };
        let words: Vec<&str> = verdict
            .split(' ')
            .chain(because.split(' '))
            .filter(|word| !word.is_empty())
            .collect();
        words.join(" ")
    }

    /// Why the guess is wrong, if it is a wrong choice.
    fn unless(&self, response: &Response) -> &str {
        match (&self.prediction.kind, response) {
            (Kind::Choice(choices), Response::Option(index))
                if self.verdict(response) != Verdict::Right =>
            {
                choices.get(*index).map_or("", |choice| choice.unless.as_str())
            }
            _ => "",
        }
    }
}

/// Compares a guess that is `ratio` times the answer.
fn times(ratio: f64) -> String {
    let is_low = ratio < 1.0;
    let factor = if is_low { 1.0 / ratio } else { ratio };
    let percent = ((factor - 1.0) * 100.0).round();
    match (is_low, factor < 1.95) {
        (true, true) => format!("{percent} % more"),
        (true, false) => format!("{} times your guess", rounded(factor)),
        (false, true) => format!("so your guess was {percent} % too high"),
        (false, false) => {
            format!("so your guess was {} times too high", rounded(factor))
        }
    }
}

fn rounded(factor: f64) -> String {
    if factor < 10.0 {
        format!("{}", (factor * 10.0).round() / 10.0)
    } else {
        format!("{factor:.0}")
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Right => f.write_str("right"),
            Verdict::Off(_) => f.write_str("off"),
            Verdict::Wrong => f.write_str("wrong"),
        }
    }
}
