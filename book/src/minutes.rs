//! Computes the minutes of a page from its contents, so that they never go stale.

use mdbook_markdown::pulldown_cmark::Event;
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

use crate::words::Words;

/// The placeholder for a chapter's minutes until all of it is counted.
pub const PLACEHOLDER: &str = "<p class=\"minutes\">…</p>\n\n";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Prose only: not code, output, questions, or the map from PyTorch to Rust.
    pub words: usize,
    /// Without questions to think about.
    pub predictions: usize,
    pub questions: usize,
    pub exercises: usize,
}

impl Work {
    /// Counts the contents of a page whose directives are expanded. The HTML of directives is not prose.
    pub fn of(expanded: &str) -> Work {
        let mut html = String::new();
        for event in new_cmark_parser(expanded, &MarkdownOptions::default()) {
            if let Event::Html(text) = event {
                html += &text;
            }
        }
        let count = |what: &str| html.matches(what).count();
        let predictions = count("<form class=\"predict\"");
        // Each waiting prediction has a fieldset too.
        let questions = count("<fieldset>").saturating_sub(predictions);
        let words = Words::of(expanded).all();
        Work { words, predictions, questions, exercises: count("<div class=\"exercise\"") }
    }

    /// The work in class: reading, predictions, and the first exercise. The rest is homework.
    pub fn in_class(self) -> Work {
        Work { questions: 0, exercises: self.exercises.min(1), ..self }
    }

    /// The work at home: the questions, and all exercises but the first.
    pub fn at_home(self) -> Work {
        Work {
            words: 0,
            predictions: 0,
            questions: self.questions,
            exercises: self.exercises.saturating_sub(1),
        }
    }

    pub fn plus(self, other: Work) -> Work {
        Work {
            words: self.words + other.words,
            predictions: self.predictions + other.predictions,
            questions: self.questions + other.questions,
            exercises: self.exercises + other.exercises,
        }
    }

    pub fn minutes_if_any(self) -> u32 {
        if self == Work::default() { 0 } else { self.minutes() }
    }

    /// 200 words of prose take one minute, a prediction one and a half, a question one, an exercise ten.
    pub fn minutes(self) -> u32 {
        let Work { words, predictions, questions, exercises } = self;
        let minutes =
            words as f64 / 200.0 + 1.5 * predictions as f64 + questions as f64 + 10.0 * exercises as f64;
        minutes.round().max(1.0) as u32
    }
}

pub fn fill_minutes(expanded: String) -> String {
    if !expanded.contains(PLACEHOLDER) {
        return expanded;
    }
    let minutes = Work::of(&expanded).minutes();
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    expanded.replace(PLACEHOLDER, &format!("<p class=\"minutes\">About {minutes} {unit}</p>\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html;

    #[test]
    fn prose_predictions_questions_and_exercises_take_time_and_nothing_else_does() {
        let note = html::bytes("5", Some("9 bytes"));
        let prose = &format!(
            "Move `x` to the **device**, [or not](x.md): - {note} times.\n\n- Ten\n\n| a | b |\n|---|---|\n| c | d |\n\n"
        );
        let words = Work { words: 14, ..Work::default() };
        assert_eq!(Work::of(prose), words);
        let others = "```rust\nlet a = b;\n```\n\n<figure class=\"lab-output\">\n\n```text\n1 2 3\n```\n\n\
                      <figcaption>a caption</figcaption>\n</figure>\n\n<!-- a comment -->\n\n\
                      <table>\n<tr><td>x.to(device)</td></tr>\n</table>\n\n";
        assert_eq!(Work::of(others), Work::default());
        let predict = "<form class=\"predict\" id=\"predict-x\">\n<fieldset>\n<legend>How many?</legend>\n</fieldset>\n</form>\n\
                       <details class=\"after\">\n<p class=\"answer\">Two</p>\n\n";
        let questions = "<div class=\"questions\">\n<fieldset>\n<legend>1. a</legend>\n</fieldset>\n<fieldset>\n<legend>2. b</legend>\n</fieldset>\n</div>\n\n";
        let all = format!(
            "{prose}{predict}{others}\n</details>\n\n{questions}<div class=\"exercise\">\n\n</div>\n\n"
        );
        let work = Work { predictions: 1, questions: 2, exercises: 1, ..words };
        assert_eq!(Work::of(&all), work);
    }

    #[test]
    fn minutes_are_as_the_plan_says() {
        let minutes = |words, predictions, questions, exercises| {
            Work { words, predictions, questions, exercises }.minutes()
        };
        assert_eq!(minutes(200, 0, 0, 0), 1);
        assert_eq!(minutes(2000, 6, 8, 1), 10 + 9 + 8 + 10);
        assert_eq!(minutes(0, 1, 0, 0), 2); // rounded
        assert_eq!(minutes(0, 0, 0, 0), 1);
    }

    #[test]
    fn a_page_says_its_minutes() {
        let page = format!("{PLACEHOLDER}{}", "word ".repeat(1000));
        assert!(fill_minutes(page).starts_with("<p class=\"minutes\">About 5 minutes</p>\n\nword "));
    }
}
