//! The result of the final assessment, by objective.

use std::path::Path;

use exercises::assessment::Score;
use labs::{Stop, files};
use serde_json::{Value as Json, json};

use crate::show::{name, plain};
use crate::workplace::{failed, root, wrong};

/// Kept beside the student's files.
const FILE: &str = "final.json";
const NAME: &str = "to-device-final";
const LARGEST: u64 = 1 << 20;

/// The last check of a student's program.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub seed: u64,
    pub points: u64,
    pub passed: bool,
    /// Those that its faults test, in the order of the book.
    pub objectives: Vec<Objective>,
}

/// An objective of a chapter.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    pub chapter: String,
    pub text: String,
    pub met: bool,
    /// What to read again: pages with headings.
    pub sections: Vec<String>,
}

impl Standing {
    pub fn of(seed: u64, score: &Score) -> Result<Standing, Stop> {
        let mut objectives: Vec<Objective> = Vec::new();
        let faults = score.mended.iter().map(|fault| (fault, true));
        for (fault, met) in faults.chain(score.open.iter().map(|fault| (fault, false))) {
            let kind = fault.kind();
            let (chapter, words) = kind.objective;
            let all = questions::objectives(root(), chapter).map_err(failed)?;
            let full = all.iter().find(|objective| objective.starts_with(words));
            let text = plain(full.map_or(words, |full| full));
            let (page, heading) = kind.section;
            let section = format!("{page}, {heading}");
            let known = objectives.iter_mut().find(|known| known.chapter == chapter && known.text == text);
            let objective = match known {
                Some(known) => known,
                None => {
                    objectives.push(Objective {
                        chapter: chapter.to_owned(),
                        text,
                        met: true,
                        sections: Vec::new(),
                    });
                    objectives.last_mut().expect("it was pushed")
                }
            };
            objective.met &= met;
            if !met && !objective.sections.contains(&section) {
                objective.sections.push(section);
            }
        }
        objectives.sort_by(|a, b| (&a.chapter, &a.text).cmp(&(&b.chapter, &b.text)));
        Ok(Standing { seed, points: score.points as u64, passed: score.passed(), objectives })
    }

    /// One line: points, and how many objectives are met.
    pub fn says(&self) -> String {
        let met = self.objectives.iter().filter(|objective| objective.met).count();
        let all = self.objectives.len();
        format!(
            "{} of 100 points, {met} of {all} objectives met, the program of seed {}",
            self.points, self.seed
        )
    }

    pub fn json(&self) -> Json {
        let objectives: Vec<Json> = self
            .objectives
            .iter()
            .map(|Objective { chapter, text, met, sections }| {
                json!({ "chapter": chapter, "objective": text, "met": met, "read again": sections })
            })
            .collect();
        json!({
            NAME: 1, "seed": self.seed, "points": self.points, "passed": self.passed, "objectives": objectives,
        })
    }

    pub fn keep(&self, folder: &Path) -> Result<(), Stop> {
        let file = folder.join(FILE);
        let text = format!("{:#}\n", self.json());
        files::replace(&file, text.as_bytes()).map_err(|error| failed(format!("{}: {error}", name(&file))))
    }

    /// What was kept, if anything was.
    pub fn read(folder: &Path) -> Result<Option<Standing>, Stop> {
        let file = folder.join(FILE);
        let text = match files::text(&file, LARGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(format!("{}: {error}", name(&file)))),
        };
        let no = || wrong(format!("{}: this is not what `cargo course check final` keeps", name(&file)));
        let json: Json = serde_json::from_str(&text).map_err(|_| no())?;
        let standing = || {
            let text = |json: &Json, key: &str| Some(json.get(key)?.as_str()?.to_owned());
            let objectives = json.get("objectives")?.as_array()?.iter().map(|one| {
                let sections = one.get("read again")?.as_array()?.iter();
                Some(Objective {
                    chapter: text(one, "chapter")?,
                    text: text(one, "objective")?,
                    met: one.get("met")?.as_bool()?,
                    sections: sections
                        .map(|section| Some(section.as_str()?.to_owned()))
                        .collect::<Option<_>>()?,
                })
            });
            (json.get(NAME)?.as_u64()? == 1).then_some(())?;
            Some(Standing {
                seed: json.get("seed")?.as_u64()?,
                points: json.get("points")?.as_u64()?,
                passed: json.get("passed")?.as_bool()?,
                objectives: objectives.collect::<Option<_>>()?,
            })
        };
        standing().map(Some).ok_or_else(no)
    }
}
