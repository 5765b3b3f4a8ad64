//! The score of a reader's predictions, at the end of a run with `--ask`.

use super::event::Event;
use super::prediction::{Response, Verdict};

#[derive(Debug, Default)]
pub(crate) struct Score {
    right: usize,
    near: usize,
    skipped: usize,
    /// The sections with wrong predictions, each once, in the order of the lab.
    missed: Vec<String>,
    /// The number of wrong predictions. A section may have several.
    off: usize,
    section: String,
}

impl Score {
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Section { number, title, .. } => {
                self.section = format!("{number}. {title}");
            }
            Event::Answer(answer) => match &answer.response {
                Some(response) => self.count(response, &answer.verdict(response)),
                None => self.skipped += 1,
            },
            _ => {}
        }
    }

    fn count(&mut self, response: &Response, verdict: &Verdict) {
        match verdict {
            Verdict::Right => self.right += 1,
            // A factor of two is close without a measurement.
            Verdict::Off(ratio)
                if matches!(response, Response::Number(_))
                    && (0.5..=2.0).contains(ratio) =>
            {
                self.near += 1;
            }
            _ => {
                self.off += 1;
                if self.missed.last() != Some(&self.section) {
                    self.missed.push(self.section.clone());
                }
            }
        }
    }

    /// The score in words, and the sections to read again. Empty without predictions.
    pub(crate) fn summary(&self, lab: &str) -> String {
        let Score { right, near, off, skipped, missed, .. } = self;
        let made = right + near + off;
        let predictions = |count: usize| match count {
            1 => "1 prediction".to_owned(),
            count => format!("{count} predictions"),
        };
        if made == 0 {
            return match skipped {
                0 => String::new(),
                skipped => format!(
                    "\nYour score: none yet. You skipped {}.\n",
                    match skipped {
                        1 => "the only prediction".to_owned(),
                        skipped => format!("all {}", predictions(*skipped)),
                    }
                ),
            };
        }
        let mut text = format!("\nYour score: {right} of {} right", predictions(made));
        if *near > 0 {
            text += &format!(", {near} near (within a factor of two)");
        }
        if *off > 0 {
            text += &format!(", {off} off");
        }
        text += ".";
        if *skipped > 0 {
            text += &format!(" You skipped {skipped}.");
        }
        text += "\n";
        if !missed.is_empty() {
            let chapter = lab.trim_start_matches("lab-");
            text += &format!("Read these sections of lab {chapter} again:\n");
            for section in missed {
                text += &format!("  {section}\n");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::figure::exact;
    use crate::frame::prediction::{Answer, Key, Prediction};

    fn section(number: &str, title: &str) -> Event {
        Event::Section {
            number: number.to_owned(),
            title: title.to_owned(),
            apart: None,
            machine: None,
        }
    }

    fn steps(response: Option<f64>) -> Event {
        Event::Answer(Answer {
            prediction: Prediction::number("99-steps", "How many?").unit("steps"),
            key: exact("steps", 100).unit("steps").into(),
            response: response.map(Response::Number),
        })
    }

    fn truth(response: usize) -> Event {
        Event::Answer(Answer {
            prediction: Prediction::yes_no("99-yes", "Is it?"),
            key: Key::Truth(true),
            response: Some(Response::Option(response)),
        })
    }

    fn told(events: &[Event]) -> String {
        let mut score = Score::default();
        events.iter().for_each(|event| score.note(event));
        score.summary("lab-99")
    }

    #[test]
    fn a_score_counts_and_names_each_section_that_missed_once() {
        let (one, two) = (section("1", "Devices"), section("2", "The clock"));
        let three = section("3", "A race");
        assert_eq!(
            told(&[
                one,
                steps(Some(100.0)),
                steps(Some(60.0)),
                two,
                steps(Some(3.0)),
                truth(1),
                three,
                truth(0),
                steps(None)
            ]),
            "\nYour score: 2 of 5 predictions right, 1 near (within a factor of two), 2 off. You skipped 1.\n\
             Read these sections of lab 99 again:\n  2. The clock\n"
        );
    }

    #[test]
    fn a_score_of_nothing_is_told_as_such() {
        assert_eq!(told(&[]), "");
        assert_eq!(
            told(&[steps(None)]),
            "\nYour score: none yet. You skipped the only prediction.\n"
        );
        assert_eq!(
            told(&[steps(None), steps(None)]),
            "\nYour score: none yet. You skipped all 2 predictions.\n"
        );
        assert_eq!(told(&[truth(0)]), "\nYour score: 1 of 1 prediction right.\n");
    }
}
