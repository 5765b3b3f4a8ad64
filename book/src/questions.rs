//! The questions of a chapter, from `book/questions/03.toml`:
//!
//! ```toml
//! [[question]]
//! id = "03-copies"
//! ask = "How many copies to the GPU does the training make?"
//!
//! [[question.choice]]
//! text = "{{#figure 03 t4 copies_to_device}}"
//! right = true
//!
//! [[question.choice]]
//! text = "48, one for each step"
//! because = "A batch is two tensors: the features and the targets."
//! ```
//!
//! One choice is right, and every other says why it is not. The page has them in another order. A number in a right answer comes from a figure of the
//! lab, so that it stays right. A chapter asks at least six. Texts are Markdown.
//!
//! In the page a choice shows its reason when it is chosen: HTML and CSS do that, without JavaScript.

use serde::Deserialize;
use toml::Spanned;

use crate::course::Course;
use crate::html::inline;
use crate::inline::with_figures;
use crate::mistake::Wrong;
use crate::toml_file;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    question: Vec<Spanned<Question>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    /// Never changes: progress is kept under it.
    id: String,
    ask: String,
    choice: Vec<Spanned<Choice>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    text: String,
    #[serde(default)]
    right: bool,
    because: Option<String>,
}

/// The questions of a chapter as HTML without empty lines, which would end it in Markdown.
/// `least` is how many there must be.
pub fn html(course: &Course, chapter: &str, least: usize) -> Result<String, Wrong> {
    if !chapter.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Wrong::Here(format!("`{chapter}` is no number of a chapter: say {{{{#questions 03}}}}")));
    }
    let (File { question: questions }, places) =
        toml_file::read(course, &format!("book/questions/{chapter}.toml"))?;

    let mut html = String::from("<div class=\"questions\">\n");
    let mut mistakes = Vec::new();
    let mut ids = Vec::new();
    if questions.len() < least {
        let what = format!("too few questions, {}: a chapter has at least {least}", questions.len());
        mistakes.push(places.mistake(0, what));
    }
    for (index, question) in questions.iter().enumerate() {
        let place = question.span().start;
        let question = question.get_ref();
        let mut wrong = |byte, what: String| mistakes.push(places.mistake(byte, what));

        let of_chapter = question.id.strip_prefix(chapter).is_some_and(|rest| rest.starts_with('-'));
        if !of_chapter || !question.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            wrong(place, format!("the id `{}` is not like `{chapter}-some-words`", question.id));
        }
        if ids.contains(&&question.id) {
            wrong(place, format!("the id `{}` comes twice", question.id));
        }
        ids.push(&question.id);
        let right = question.choice.iter().filter(|choice| choice.get_ref().right).count();
        if right != 1 {
            wrong(place, format!("{right} choices are right: mark exactly one with `right = true`"));
        }
        if question.choice.len() < 2 {
            wrong(place, "there is nothing to choose: give at least two choices".to_owned());
        }

        html += "<fieldset>\n";
        match shown(course, &question.ask) {
            Ok(ask) => html += &format!("<legend>{}. {ask}</legend>\n", index + 1),
            Err(what) => wrong(place, what),
        }
        let mut texts = Vec::new();
        let mut choices = Vec::new();
        for choice in &question.choice {
            let (place, choice) = (choice.span().start, choice.get_ref());
            let because = choice.because.as_deref().unwrap_or_default().trim();
            if !choice.right && because.is_empty() {
                wrong(place, format!("no reason why `{}` is wrong: add `because = \"…\"`", choice.text));
            }
            if let Some(number) = number_in(&choice.text).filter(|_| choice.right) {
                wrong(
                    place,
                    format!(
                        "the right answer says `{number}`: take the number from the lab, \
                         `{{{{#figure {chapter} t4 …}}}}`, or write it as code if it is a name"
                    ),
                );
            }
            match (shown(course, &choice.text), shown(course, because)) {
                (Ok(text), _) if texts.contains(&text) => wrong(place, format!("two choices say `{text}`")),
                (Ok(text), Ok(because)) => {
                    let (which, verdict) =
                        if choice.right { ("right", "Right.") } else { ("wrong", "Not so.") };
                    let html = format!(
                        "<div class=\"choice\"><label><input type=\"radio\" name=\"{}\" value=\"{which}\"> {text}\
                         </label><p class=\"reason is-{which}\"><strong>{verdict}</strong> {because}</p></div>\n",
                        question.id
                    );
                    choices.push((hash(&question.id, &choice.text), html));
                    texts.push(text);
                }
                (Err(what), _) | (_, Err(what)) => wrong(place, what),
            }
        }
        choices.sort();
        html.extend(choices.into_iter().map(|(_, choice)| choice));
        html += "</fieldset>\n";
    }
    html += "</div>\n";
    if mistakes.is_empty() { Ok(html) } else { Err(Wrong::Elsewhere(mistakes)) }
}

/// Puts choices in an order that gives nothing away, and that stays (FNV-1a).
fn hash(id: &str, text: &str) -> u64 {
    let bytes = id.bytes().chain(text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A text of a question as HTML.
fn shown(course: &Course, text: &str) -> Result<String, String> {
    Ok(inline(&with_figures(course, &text.replace('\n', " "))?))
}

/// A number that a text states by itself, neither in code nor by a figure. What has a number in its name, `a T4` or
/// `0-dim`, states none.
fn number_in(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for (start, end) in [("{{#", "}}"), ("`", "`")] {
        while let Some((before, rest)) = text.split_once(start) {
            let after = rest.split_once(end).map_or("", |(_, after)| after);
            text = format!("{before} {after}");
        }
    }
    let states_one = |word: &&str| {
        let digits = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        let after = digits.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let name = after.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
        digits.len() > after.len() && !name
    };
    text.split_whitespace()
        .find(states_one)
        .map(|word| word.trim_end_matches([',', '.', ';', ':']).to_owned())
}
