//! The twelve moments of the course and the ways to go on after it: `book/moments.toml`, with the figures of the labs.

use std::fs;
use std::path::Path;

use drawing::moments::{Bar, Moment};
use labs::progress::Record;
use serde::Deserialize;

use crate::Runs;
use crate::figure::figure;

/// Where they stand, from the root of the checkout.
pub const FILE: &str = "book/moments.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    moment: Vec<Written>,
    way: Vec<Way>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: String,
    bet: String,
    now: String,
    /// A label, and what stands in a `{{#figure …}}`.
    bars: Vec<(String, String)>,
}

/// A way to go on after the last chapter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    pub title: String,
    /// As Markdown, with links from the folder of the chapters.
    pub text: String,
    /// What to type or to open first.
    pub first: String,
}

/// The end of the course.
pub struct Ending {
    pub moments: Vec<Moment>,
    /// What each moment comes to, in a sentence.
    pub now: Vec<String>,
    pub ways: Vec<Way>,
}

impl Ending {
    /// That of a checkout, with the figures of these runs. A record says what became of the bets.
    pub fn read(root: &Path, runs: &Runs, record: Option<&Record>) -> Result<Ending, String> {
        let wrong = |what: &str| format!("{FILE}: {what}");
        let text = fs::read_to_string(root.join(FILE)).map_err(|error| wrong(&error.to_string()))?;
        let File { moment, way } = toml::from_str(&text).map_err(|error| wrong(error.message()))?;
        let (mut moments, mut now) = (Vec::new(), Vec::new());
        for Written { title, bet, now: sentence, bars } in moment {
            let bars = bars.into_iter().map(|(label, said)| bar(label, &said, runs));
            let bars = bars.collect::<Result<_, _>>().map_err(|what| wrong(&format!("`{title}`: {what}")))?;
            let chapter = bet.split('-').next().unwrap_or_default().to_owned();
            let verdict =
                record.and_then(|record| record.verdict(&bet)).filter(|verdict| *verdict != "skipped");
            let won = verdict.map(|verdict| verdict == "right");
            now.push(sentence);
            moments.push(Moment { title, chapter, bet, bars, won });
        }
        Ok(Ending { moments, now, ways: way })
    }
}

fn bar(label: String, said: &str, runs: &Runs) -> Result<Bar, String> {
    let words: Vec<&str> = ["figure"].into_iter().chain(said.split_whitespace()).collect();
    // The caption of the picture says that times are modelled: there is no room for the word beside each.
    let shown = figure(&words, runs)?.text.replace(" (modelled)", "");
    let number = shown.split_whitespace().next().and_then(|number| number.parse().ok());
    let number = number.ok_or_else(|| format!("`{said}` is no number but {shown}"))?;
    Ok(Bar { label, shown, number })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    /// The bars of a moment can be compared: they have one unit, and no label is too long for a phone or a third of a page.
    #[test]
    fn the_twelve_moments_have_figures_of_one_unit_and_bets_of_the_labs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let ran = RefCell::new(BTreeMap::new());
        let runs = |lab: &str, name: &str| {
            let events = ran.borrow().get(&(lab.to_owned(), name.to_owned())).cloned();
            if let Some(events) = events {
                return Ok(events);
            }
            let events = crate::run(lab, name)?;
            ran.borrow_mut().insert((lab.to_owned(), name.to_owned()), events.clone());
            Ok(events)
        };
        let record = r#"{ "to-device-progress": 1, "predictions": { "03-zero": { "said": "1", "verdict": "wrong" },
                          "04-owners": { "said": "1", "verdict": "right" }, "04-eval": { "verdict": "skipped" } } }"#;
        let record = Record::parse(record).unwrap();
        let Ending { moments, now, ways } = Ending::read(&root, &runs, Some(&record)).unwrap();
        assert_eq!((moments.len(), now.len(), ways.len()), (12, 12, 3));
        let mut chapters: Vec<&str> = moments.iter().map(|moment| moment.chapter.as_str()).collect();
        assert!(chapters.is_sorted());
        chapters.dedup();
        assert!(chapters.len() >= 7, "{chapters:?}");
        for moment in &moments {
            let title = &moment.title;
            assert!(title.chars().count() <= 23, "{title}");
            assert!((2..=3).contains(&moment.bars.len()), "{title}");
            let units: Vec<String> =
                moment.bars.iter().map(|bar| bar.shown.split_whitespace().skip(1).collect()).collect();
            assert!(units.iter().all(|unit| *unit == units[0]), "{title}: {units:?}");
            assert!(
                moment.bars.iter().any(|bar| bar.number != moment.bars[0].number),
                "{title} compares nothing"
            );
            for bar in &moment.bars {
                let letters = bar.label.chars().count() + bar.shown.chars().count();
                assert!(letters <= 26, "{title}: {} {}", bar.label, bar.shown);
            }
        }
        let won = |bet: &str| moments.iter().find(|moment| moment.bet == bet).unwrap().won;
        assert_eq!([won("03-zero"), won("04-owners"), won("04-eval")], [Some(false), Some(true), None]);
    }
}
