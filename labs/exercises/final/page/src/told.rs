//! The answers for `assessment.js`, as JSON.

use exercises::assessment::{Category, Draw, Fault, ROUND, Unit, figures, offers, one, program_text};
use exercises::{Case, Choices, Form, Seen, pieces, plain, printable, with_axis};
use serde_json::{Value as Json, json};

use crate::Chosen;

/// The program of a seed, function by function, with the choices. None if there is no such seed.
pub fn program(seed: u64) -> Option<Json> {
    if seed >= exercises::assessment::SEEDS {
        return None;
    }
    let draw = Draw::of(seed);
    let offers = offers::offers(&draw);
    let written = |text: &str| draw.numbers.written(text);
    let mut functions = Vec::new();
    for (number, name) in (1..).zip(program_text::names()) {
        let offer = offers.iter().find(|offer| offer.name == name);
        let (choices, places, present) = match offer {
            Some(offer) => (offers::choices(offer).ok()?, vec!["The code"], vec![offer.present]),
            None => {
                let choices = offers::last_act().ok()?;
                let places: Vec<&str> =
                    exercises::assessment::last_act::PLACES.iter().map(|place| place.0).collect();
                let present = vec![0; places.len()];
                (choices, places, present)
            }
        };
        let pieces: Vec<Json> = choices.pieces.iter().map(pieces::json).collect();
        functions.push(json!({
            "name": name,
            "comment": written(&program_text::comment(name)),
            "line": 100 * number + 1,
            "pieces": in_numbers(Json::Array(pieces), &written),
            "places": options(&places, &choices, &written),
            "present": present,
        }));
    }
    Some(json!({ "seed": seed, "functions": functions }))
}

/// Texts in JSON with their numbers written out.
fn in_numbers(json: Json, written: &dyn Fn(&str) -> String) -> Json {
    match json {
        Json::String(text) => written(&text).into(),
        Json::Array(all) => all.into_iter().map(|one| in_numbers(one, written)).collect(),
        Json::Object(all) => all.into_iter().map(|(key, one)| (key, in_numbers(one, written))).collect(),
        other => other,
    }
}

/// Each place with its options as a reader sees them.
fn options(places: &[&str], choices: &Choices, written: &dyn Fn(&str) -> String) -> Json {
    let place = |(at, what): (usize, &&str)| {
        let options = (0..choices.options[at]).map(|option| pieces::shown(choices, at, option));
        let options: Vec<Vec<String>> =
            options.map(|parts| parts.iter().map(|part| written(part)).collect()).collect();
        json!({ "what": what, "options": options })
    };
    places.iter().enumerate().map(place).collect()
}

/// A function as the machine saw it, on each of its machines: the errors, races, copies, waits and memory as text, and the timeline.
pub fn looked(chosen: &Chosen, name: &str, form: Form) -> Option<Json> {
    let unit = Unit::find(name)?;
    let runs = unit.cases(chosen.seed, ROUND).map(|case| {
        let looked = with_axis(Some((0, form)), || chosen.look(&case));
        let timeline = looked.seen.as_ref().map(|seen: &Seen| seen.timeline.clone()).unwrap_or_default();
        let text = chosen.in_one_file(&one(&looked));
        json!({ "machine": Case::named(&case), "figures": looked.seen.as_ref().map(figures), "text": plain(&text), "timeline": timeline })
    });
    Some(runs.collect())
}

/// The verdict on all choices.
pub fn checked(chosen: &Chosen) -> Json {
    let score = chosen.score();
    let categories = Category::ALL.map(|(category, _)| {
        let (mended, all) = score.of_category(category);
        json!([category.name(), mended, all])
    });
    let kinds = |faults: &[&Fault]| faults.iter().map(|fault| fault.kind).collect::<Vec<_>>();
    let pace = match &score.pace {
        Ok(pace) => json!({
            "table": exercises::assessment::pace_rows(pace),
            "factor": pace.factor(),
            "right": pace.right,
        }),
        Err(why) => json!({ "why": printable::line(why) }),
    };
    let parts = [score.for_faults, score.for_time, score.for_memory, score.for_pace].map(|part| part as u64);
    json!({
        "seed": chosen.seed,
        "points": score.points as u64,
        "passed": score.passed(),
        "categories": categories,
        "broken": score.broken,
        "parts": parts,
        "nothing": score.nothing,
        "pace": pace,
        "mended": kinds(&score.mended),
        "open": kinds(&score.open),
    })
}
