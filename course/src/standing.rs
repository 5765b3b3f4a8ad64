//! The result of the final assessment, by objective.

use exercises::assessment::Score;
use labs::Stop;
use serde_json::{Map, Value as Json, json};

use crate::show::{name, plain};
use crate::workplace::{Workplace, failed, root, wrong};

/// The last check of a student's program.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub seed: u64,
    pub points: u64,
    pub passed: bool,
    /// The objectives of its faults, in book order.
    pub objectives: Vec<Objective>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    pub chapter: String,
    pub text: String,
    pub met: bool,
    /// Sections to reread: pages with headings.
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

    /// One line: the points, and the number of met objectives.
    pub fn summary(&self) -> String {
        let met = self.objectives.iter().filter(|objective| objective.met).count();
        let all = self.objectives.len();
        format!(
            "{} of 100 points, {met} of {all} objectives met, the program of seed {}",
            self.points, self.seed
        )
    }

    pub fn json(&self) -> Json {
        Json::Object(self.fields())
    }

    fn fields(&self) -> Map<String, Json> {
        let objectives: Vec<Json> = self
            .objectives
            .iter()
            .map(|Objective { chapter, text, met, sections }| {
                json!({ "chapter": chapter, "objective": text, "met": met, "read again": sections })
            })
            .collect();
        let fields = [
            ("seed", json!(self.seed)),
            ("points", json!(self.points)),
            ("passed", json!(self.passed)),
            ("objectives", json!(objectives)),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    pub fn store(&self, place: &mut Workplace) {
        place.update(|record| record.set_assessment(self.fields()));
    }

    /// The stored result of this program or of the page.
    pub fn read(place: &Workplace) -> Result<Option<Standing>, Stop> {
        let Some(kept) = place.record.assessment() else { return Ok(None) };
        let standing = || {
            let text = |json: &Json, key: &str| Some(json.get(key)?.as_str()?.to_owned());
            let objectives = kept.get("objectives")?.as_array()?.iter().map(|one| {
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
            Some(Standing {
                seed: kept.get("seed")?.as_u64()?,
                points: kept.get("points")?.as_u64()?,
                passed: kept.get("passed")?.as_bool()?,
                objectives: objectives.collect::<Option<_>>()?,
            })
        };
        let file = place.progress();
        standing().map(Some).ok_or_else(|| {
            wrong(format!("{}: `final` is not the result of the final assessment", name(&file)))
        })
    }
}
