//! The figures of a run before a sentence. Each claims file uses only part of this.
#![allow(dead_code)]

use labs::prediction::{Key, Kind};
use labs::{Cell, Event, Figure, Value, render_text};

/// The events of a section, and of the whole run: a verdict may come after or before its figures.
pub struct Seen<'a> {
    run: &'a [Event],
    section: &'a [Event],
}

impl<'a> Seen<'a> {
    /// The figures with a name: of this section, or else of the run.
    fn figures(&self, name: &str) -> Vec<&'a Figure> {
        let of = |events: &'a [Event]| -> Vec<&'a Figure> {
            events.iter().flat_map(Event::figures).filter(|figure| figure.name == name).collect()
        };
        let here = of(self.section);
        if here.is_empty() { of(self.run) } else { here }
    }

    /// The numbers of the figures with a name, in order.
    pub fn numbers(&self, name: &str) -> Vec<f64> {
        let number = |figure: &Figure| match &figure.value {
            Value::Int(count) => *count as f64,
            Value::Float(number) => *number,
            Value::Text(text) => panic!("{name} is no number but {text}"),
        };
        let numbers: Vec<f64> = self.figures(name).into_iter().map(number).collect();
        assert!(!numbers.is_empty(), "the lab has shown no figure {name}");
        numbers
    }

    /// The same for figures of another section.
    pub fn numbers_of_the_run(&self, name: &str) -> Vec<f64> {
        Seen { run: self.run, section: &[] }.numbers(name)
    }

    /// The number of the first figure with a name.
    pub fn number(&self, name: &str) -> f64 {
        self.numbers(name)[0]
    }

    pub fn has(&self, name: &str) -> bool {
        !self.figures(name).is_empty()
    }

    /// The texts of the figures with a name.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.figures(name).into_iter().map(Figure::printed_value).collect()
    }

    /// The cells of the row that begins with these words, as printed.
    pub fn row(&self, first: &str) -> Vec<String> {
        let printed = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Figure(figure) => figure.printed_value(),
        };
        let tables = |events: &'a [Event]| {
            events.iter().filter_map(|event| match event {
                Event::Table(table) => Some(table),
                _ => None,
            })
        };
        tables(self.section)
            .chain(tables(self.run))
            .flat_map(|table| &table.rows)
            .map(|row| row.iter().map(printed).collect::<Vec<String>>())
            .find(|row| row[0] == first)
            .unwrap_or_else(|| panic!("no table has a row {first}"))
    }

    /// The lab's answer to a prediction.
    pub fn answer(&self, id: &str) -> &'a Key {
        let mut answers = self.run.iter().filter_map(|event| match event {
            Event::Answer(answer) if answer.prediction.id == id => Some(&answer.key),
            _ => None,
        });
        answers.next_back().unwrap_or_else(|| panic!("{id} has no answer"))
    }

    /// Whether the answer to a prediction is this choice, or this line.
    pub fn answered(&self, id: &str, name: &str) -> bool {
        matches!(self.answer(id), Key::Named(named) if named == name)
    }

    /// Whether a line, a report or a table of this section contains these words.
    pub fn shows(&self, words: &str) -> bool {
        render_text::render(self.section).contains(words)
    }

    /// The sentence of this section with this beginning.
    pub fn sentence(&self, begins: &str) -> String {
        let paragraphs = self.section.iter().filter_map(|event| match event {
            Event::Prose(text) => Some(text.printed()),
            _ => None,
        });
        let mut said = paragraphs.flat_map(|text| split(&text));
        said.find(|sentence| sentence.starts_with(begins))
            .unwrap_or_else(|| panic!("nothing begins {begins}"))
    }

    /// The device of the lab: `cpu`, `cuda:0`.
    pub fn device(&self) -> &'a str {
        let header = self.run.iter().find_map(|event| match event {
            Event::Header(header) => Some(header.device.as_str()),
            _ => None,
        });
        header.unwrap_or_default()
    }

    pub fn number_of_section(&self) -> &'a str {
        match self.section.first() {
            Some(Event::Section { number, .. }) => number,
            _ => "",
        }
    }
}

/// The sentences of a run, each with the events before it: sentences of paragraphs, and of replies to a right and to a
/// wrong prediction.
pub fn sentences(run: &[Event]) -> Vec<(String, Seen<'_>)> {
    let starts: Vec<usize> =
        (0..run.len()).filter(|index| matches!(run[*index], Event::Section { .. })).collect();
    let mut sentences = Vec::new();
    for (index, event) in run.iter().enumerate() {
        let start = starts.iter().rev().find(|start| **start <= index).copied().unwrap_or(0);
        let end = starts.iter().find(|start| **start > index).copied().unwrap_or(run.len());
        let section = &run[start..end];
        let mut say = |text: &str| {
            sentences.extend(split(text).into_iter().map(|sentence| (sentence, Seen { run, section })));
        };
        match event {
            Event::Prose(text) => say(&text.printed()),
            Event::Picture { caption, .. } => say(caption),
            Event::Answer(answer) => {
                say(&answer.prediction.because);
                if let (Kind::Choice(choices), Key::Named(key)) = (&answer.prediction.kind, &answer.key) {
                    choices.iter().filter(|choice| choice.name != key).for_each(|choice| say(&choice.unless));
                }
            }
            _ => {}
        }
    }
    sentences.retain(|(sentence, _)| !sentence.is_empty());
    sentences
}

fn split(text: &str) -> Vec<String> {
    let ends = |at: &usize| text[..*at].ends_with(['.', '?', '!', ':']);
    let mut sentences = Vec::new();
    let mut from = 0;
    for at in text.match_indices(' ').map(|(at, _)| at).filter(ends).chain([text.len()]) {
        sentences.push(text[from..at].trim().to_owned());
        from = at;
    }
    sentences
}
