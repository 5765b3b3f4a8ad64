//! A reader's progress, as one text that the terminal and the pages of the book share.
//!
//! ```json
//! {
//!   "to-device-progress": 1,
//!   "predictions": { "03-steps": { "said": "2", "verdict": "off", "ratio": 0.0208 } },
//!   "questions": {
//!     "02-rule": { "said": "3", "right": true },
//!     "05-somebody-else": { "said": "It is not mine.", "points": 2, "of": 4, "right": false }
//!   },
//!   "exercises": { "02-batch": { "passed": true, "checks": 3, "hints": 1 } },
//!   "final": { "seed": 7, "points": 66, "passed": true, "objectives": [{ "chapter": "03", "objective": "…", "met": true, "read again": [] }] }
//! }
//! ```
//!
//! Everything is stored under ids that never change. A number's `ratio` is the guess divided by the answer. Choices and
//! lines are letters. A question's `said` is the choice's place in its file, from 1. For an open question, it is the
//! student's text, with its `points` `of` those of a good answer: it is right with all of them. A page also stores the
//! choice made in an exercise, as `choice`. Unknown entries are kept.

use std::io::{self, ErrorKind};
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::files::{self, Lock};
use super::prediction::{Answer, Verdict};

/// The version of the text, under its name.
const NAME: &str = "to-device-progress";
const VERSION: u64 = 1;

/// The maximum size of a record. All possible answers fit into a tenth of it.
const LARGEST: u64 = 4 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct Record(Map<String, Json>);

impl Default for Record {
    fn default() -> Record {
        Record(Map::from_iter([(NAME.to_owned(), VERSION.into())]))
    }
}

impl Record {
    /// Parses a record. The error says in one line why the text is not one.
    pub fn parse(text: &str) -> Result<Record, String> {
        let json: Json = serde_json::from_str(text).map_err(|error| {
            format!("this is not a progress file of the course: {error}")
        })?;
        let Json::Object(object) = json else {
            return Err("this is not a progress file of the course".to_owned());
        };
        match object.get(NAME).map(Json::as_u64) {
            Some(Some(VERSION)) => {}
            Some(Some(other)) => {
                return Err(format!(
                    "a newer course wrote it, in version {other}; this course reads up to version {VERSION}"
                ));
            }
            _ => {
                return Err(format!(
                    "this is not a progress file of the course: `\"{NAME}\": {VERSION}` is missing"
                ));
            }
        }
        for part in ["predictions", "questions", "exercises"] {
            let is_listed = |of: &Json| {
                of.as_object().is_some_and(|all| all.values().all(Json::is_object))
            };
            if !object.get(part).is_none_or(is_listed) {
                return Err(format!("`{part}` is not an object with ids as its keys"));
            }
        }
        if object.get("final").is_some_and(|result| !result.is_object()) {
            return Err("`final` is not the result of the final assessment".to_owned());
        }
        Ok(Record(object))
    }

    pub fn to_text(&self) -> String {
        format!("{:#}\n", Json::Object(self.0.clone()))
    }

    /// Reads a file. A missing file is an empty record.
    pub fn read(file: &Path) -> Result<Record, String> {
        match files::text(file, LARGEST) {
            Ok(text) => Record::parse(&text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Record::default()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Changes a file's record, and returns it. Concurrent programs wait for each other, so that no change is lost. An
    /// unreadable file stays unchanged.
    pub fn change(
        file: &Path,
        change: impl FnOnce(&mut Record),
    ) -> Result<Record, String> {
        let _lock = Lock::of(file).map_err(|error| error.to_string())?;
        let mut record = Record::read(file)?;
        change(&mut record);
        record.write(file).map_err(|error| error.to_string())?;
        Ok(record)
    }

    /// Writes a file atomically: it has either the old text or the new one.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let text = self.to_text();
        match text.len() as u64 > LARGEST {
            true => Err(io::Error::other(format!(
                "it would be larger than {LARGEST} bytes"
            ))),
            false => files::replace(file, text.as_bytes()),
        }
    }

    pub fn add_prediction(&mut self, answer: &Answer) {
        let Some(response) = &answer.response else { return };
        let verdict = answer.verdict(response);
        let mut entry = json!({ "said": answer.prediction.typed(response), "verdict": verdict.to_string() });
        if let Verdict::Off(ratio) = verdict {
            entry["ratio"] = ratio.into();
        }
        self.part("predictions").insert(answer.prediction.id.to_owned(), entry);
    }

    pub fn prediction(&self, id: &str) -> Option<&str> {
        self.0.get("predictions")?.get(id)?.get("said")?.as_str()
    }

    /// The verdict on a prediction: `right`, `off`, `wrong` or `skipped`.
    pub fn verdict(&self, id: &str) -> Option<&str> {
        self.0.get("predictions")?.get(id)?.get("verdict")?.as_str()
    }

    /// The ids of finished `predictions`, `questions` or `exercises`.
    pub fn ids(&self, part: &str) -> Vec<&str> {
        let of_part = self.0.get(part).and_then(Json::as_object);
        of_part.into_iter().flatten().map(|(id, _)| id.as_str()).collect()
    }

    /// Stores an answer to a question: the choice's place in its file, from 1.
    pub fn add_answer(&mut self, id: &str, place: usize, right: bool) {
        let entry = json!({ "said": place.to_string(), "right": right });
        self.part("questions").insert(id.to_owned(), entry);
    }

    /// Stores an answer in the student's words, with its points and those of a good answer.
    pub fn add_explanation(
        &mut self,
        id: &str,
        response: &str,
        points: usize,
        of: usize,
    ) {
        let entry = json!({ "said": response, "points": points, "of": of, "right": points == of });
        self.part("questions").insert(id.to_owned(), entry);
    }

    /// Whether a question was answered correctly; `None` without an answer.
    pub fn is_right(&self, id: &str) -> Option<bool> {
        self.0.get("questions")?.get(id)?.get("right")?.as_bool()
    }

    /// Stores a check of an exercise. A passed exercise stays passed.
    pub fn add_check(&mut self, id: &str, passed: bool) {
        let passed = passed || self.has_passed(id);
        let checks = self.count(id, "checks") + 1;
        let exercise = self.exercise(id);
        exercise.insert("passed".to_owned(), passed.into());
        exercise.insert("checks".to_owned(), checks.into());
    }

    pub fn has_passed(&self, id: &str) -> bool {
        self.of_exercise(id, "passed").and_then(Json::as_bool).unwrap_or(false)
    }

    pub fn add_hint(&mut self, id: &str, hints: u64) {
        let hints = hints.max(self.count(id, "hints"));
        self.exercise(id).insert("hints".to_owned(), hints.into());
    }

    /// The number of checks of an exercise (`checks`), or of hints seen (`hints`).
    pub fn count(&self, id: &str, what: &str) -> u64 {
        self.of_exercise(id, what).and_then(Json::as_u64).unwrap_or(0)
    }

    /// The result of the final assessment, if it was checked. A page stores the current program there as well.
    pub fn assessment(&self) -> Option<&Map<String, Json>> {
        self.0.get("final")?.as_object().filter(|result| result.contains_key("points"))
    }

    pub fn set_assessment(&mut self, result: Map<String, Json>) {
        self.part("final").extend(result);
    }

    /// The seed of the final assessment that the terminal has written.
    pub fn assessment_seed(&self) -> Option<u64> {
        self.0.get("final")?.get("written")?.as_u64()
    }

    pub fn set_assessment_seed(&mut self, seed: u64) {
        self.part("final").insert("written".to_owned(), seed.into());
    }

    fn of_exercise(&self, id: &str, what: &str) -> Option<&Json> {
        self.0.get("exercises")?.get(id)?.get(what)
    }

    fn exercise(&mut self, id: &str) -> &mut Map<String, Json> {
        let entry = self.part("exercises").entry(id).or_insert_with(|| json!({}));
        entry.as_object_mut().expect("`parse` lets nothing else through")
    }

    fn part(&mut self, part: &str) -> &mut Map<String, Json> {
        let entry = self.0.entry(part).or_insert_with(|| json!({}));
        entry.as_object_mut().expect("`parse` lets nothing else through")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::figure::exact;
    use crate::frame::prediction::{Prediction, Response};

    #[test]
    fn what_is_said_comes_back_and_nothing_else_is_lost() {
        let text = r#"{ "to-device-progress": 1, "questions": { "02-rule": { "said": "3", "right": true } }, "later": [1] }"#;
        let mut record = Record::parse(text).unwrap();
        let prediction = Prediction::number("03-steps", "How many?");
        record.add_prediction(&Answer {
            prediction,
            key: exact("steps", 96).into(),
            response: Some(Response::Number(2.0)),
        });
        let again = Record::parse(&record.to_text()).unwrap();
        assert_eq!(again, record);
        assert_eq!(again.prediction("03-steps"), Some("2"));
        assert!(
            again.to_text().contains("\"later\"")
                && again.to_text().contains("02-rule")
        );
    }

    #[test]
    fn who_has_passed_once_has_passed() {
        let mut record = Record::default();
        record.add_check("02-batch", false);
        assert!(!record.has_passed("02-batch"));
        record.add_check("02-batch", true);
        record.add_check("02-batch", false);
        record.add_hint("02-batch", 2);
        record.add_hint("02-batch", 1);
        record.add_answer("02-rule", 3, true);
        record.add_explanation(
            "05-somebody-else",
            "It is not mine.\nI close it.",
            2,
            4,
        );
        let record = Record::parse(&record.to_text()).unwrap();
        assert!(
            record.has_passed("02-batch") && record.is_right("02-rule") == Some(true)
        );
        assert!(
            record.is_right("05-somebody-else") == Some(false)
                && record.to_text().contains("\"points\": 2")
        );
        assert_eq!(
            ["checks", "hints"].map(|what| record.count("02-batch", what)),
            [3, 2]
        );
    }

    #[test]
    fn what_is_no_record_is_refused_in_a_line() {
        for (text, what) in [
            ("", "not a progress file of the course"),
            ("[]", "not a progress file of the course"),
            ("{}", "is missing"),
            (r#"{ "to-device-progress": 2 }"#, "newer"),
            (
                r#"{ "to-device-progress": 1, "predictions": [] }"#,
                "`predictions` is not an object",
            ),
            (
                r#"{ "to-device-progress": 1, "exercises": { "a": 1 } }"#,
                "`exercises` is not an object",
            ),
            (
                r#"{ "to-device-progress": 1, "final": [] }"#,
                "`final` is not the result",
            ),
        ] {
            let error = Record::parse(text).unwrap_err();
            assert!(error.contains(what) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
