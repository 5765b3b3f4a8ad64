//! The final assessment on a page: `assessment.js` fills in the program of a seed, and the module of `assessment-page`
//! checks the answers. Without JavaScript, the page shows only the command for a terminal.

use std::collections::BTreeMap;

use exercises::assessment::{COLUMNS, HOW_POINTS, KINDS, MEANING, SEEDS, WHY_PASS, header};
use serde_json::{Value as Json, json};

use crate::course::Course;
use crate::html::{escape, fence, inline};
use crate::mistake::Wrong;

/// The rules and a placeholder for the program, as HTML and Markdown.
pub fn html(course: &Course) -> Result<String, Wrong> {
    let mut page = String::from("<ul class=\"final-rules\">\n");
    for rule in header::rules() {
        page += &format!("<li>{}</li>\n", inline(&rule)?);
    }
    page += &format!("</ul>\n\n{HOW_POINTS}\n\n{WHY_PASS}\n\n");
    page += &format!(
        "<p class=\"in-page\">In a terminal you write code where the page lets you choose:</p>\n\n{}\n",
        fence("sh", "cargo course final")
    );
    page += &format!(
        "<div class=\"final\" data-seeds=\"{SEEDS}\" data-kinds=\"{}\" data-columns=\"{}\" data-meaning=\"{}\"></div>\n\n",
        escape(&kinds(course)?.to_string()),
        escape(&json!(COLUMNS.map(|(name, _)| name)).to_string()),
        escape(MEANING)
    );
    Ok(page)
}

/// For each kind of fault: its objective, chapter, and section to reread.
fn kinds(course: &Course) -> Result<Json, String> {
    let mut objectives: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut all = serde_json::Map::new();
    for kind in KINDS {
        let (chapter, words) = kind.objective;
        if !objectives.contains_key(chapter) {
            objectives.insert(chapter, questions::objectives(course.root(), chapter)?);
        }
        let full = objectives[chapter].iter().find(|objective| objective.starts_with(words));
        let full = full.ok_or_else(|| format!("chapter {chapter} has no objective `{words}`"))?;
        let (page, heading) = kind.section;
        let objective = labs::render_text::without_ticks(full);
        all.insert(kind.id.to_owned(), json!([chapter, objective, page, heading]));
    }
    Ok(all.into())
}
