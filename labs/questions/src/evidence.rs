//! The predictions and exercises that show an objective, besides the questions on it.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Spanned;

use crate::{Mistake, objectives};

/// `[[shows]]` in a chapter's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shows {
    /// The words that the objective begins with.
    objective: String,
    #[serde(default)]
    predictions: Vec<String>,
    #[serde(default)]
    exercises: Vec<String>,
}

/// All that shows an objective, by its ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Those with choices.
    pub questions: Vec<String>,
    /// Those to answer in one's own words. Only a terminal keeps the answers, so they decide nothing.
    pub open: Vec<String>,
    pub predictions: Vec<String>,
    pub exercises: Vec<String>,
}

/// The evidence for each objective of a chapter, in their order.
pub(crate) fn read(shows: Vec<Spanned<Shows>>, all: &[String], mistakes: &mut Vec<Mistake>) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::default(); all.len()];
    let (mut objectives, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for shows in shows {
        let at = shows.span().start;
        let Shows { objective, predictions, exercises } = shows.into_inner();
        // A prediction may have the same id as an exercise.
        let of_kinds = [("prediction", &predictions), ("exercise", &exercises)];
        for (kind, id) in of_kinds.into_iter().flat_map(|(kind, ids)| ids.iter().map(move |id| (kind, id))) {
            if !ids.insert((kind, id.clone())) {
                mistakes.push((at, format!("the {kind} `{id}` already shows an objective: let it show one")));
            }
        }
        match objectives::place(&objective, all) {
            Ok(place) if objectives.insert(place) => {
                evidence[place] = Evidence { predictions, exercises, ..Evidence::default() }
            }
            Ok(_) => {
                mistakes.push((at, format!("`{objective}` comes twice: name all that shows it at once")))
            }
            Err(what) => mistakes.push((at, what)),
        }
    }
    evidence
}

#[cfg(test)]
mod tests {
    use crate::evidence;

    #[test]
    fn what_shows_an_objective_is_named_once() {
        let objectives = ["Say where", "Say why"].map(str::to_owned);
        let shows = |objective: &str, ids: &str| {
            format!("[[shows]]\nobjective = \"{objective}\"\npredictions = [{ids}]\nexercises = [\"03-c\"]\n")
        };
        let read = |text: &str| evidence(&format!("question = []\n{text}"), &objectives);
        let told = |text: &str| read(text).unwrap_err().into_iter().map(|(_, what)| what).collect::<Vec<_>>();

        let right = read(&shows("Say why", "\"03-a\", \"03-c\"")).unwrap();
        assert_eq!(
            (right[0].predictions.len(), right[1].predictions.len(), right[1].exercises.len()),
            (0, 2, 1)
        );
        let twice = shows("Say where", "\"03-a\"") + &shows("Say where", "\"03-a\"");
        assert_eq!(
            told(&twice),
            [
                "the prediction `03-a` already shows an objective: let it show one",
                "the exercise `03-c` already shows an objective: let it show one",
                "`Say where` comes twice: name all that shows it at once"
            ]
        );
        assert_eq!(told(&shows("Say how", "")), ["no objective of this chapter begins with `Say how`"]);
    }
}
