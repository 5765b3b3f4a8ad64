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
//! One choice is right, and every other says why it is not. The page has them in another order. A chapter asks at
//! least six. Texts are Markdown.
//!
//! A number in a right answer comes from a figure of the lab, so that it stays right. Digits are checked; a number in
//! words, `four bytes`, is for whoever writes it to check.
//!
//! In the page a choice shows its reason when it is chosen: HTML and CSS do that, without JavaScript.

use serde::Deserialize;
use toml::Spanned;

use crate::course::Course;
use crate::hash::hash;
use crate::html::inline;
use crate::inline::with_figures;
use crate::markdown::says_something;
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

        if !says_something(&question.ask) {
            wrong(place, "this question asks nothing: write `ask = \"…\"` with words".to_owned());
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
            if !says_something(&choice.text) {
                wrong(
                    place,
                    "this choice says nothing: write `text = \"…\"` with words or numbers".to_owned(),
                );
            }
            // Who is right needs no reason.
            if !(says_something(because) || choice.right && because.is_empty()) {
                let why = if choice.right { "right" } else { "wrong" };
                wrong(place, format!("no reason why `{}` is {why}: add `because = \"…\"`", choice.text));
            }
            if let Some(number) = number_in(&choice.text).filter(|_| choice.right) {
                wrong(
                    place,
                    format!(
                        "the right answer says `{number}`: take the number from the lab, \
                         `{{{{#figure {chapter} t4 …}}}}`, or write the whole name as code if it is part of one"
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
                    // An order that gives nothing away, and that stays.
                    choices.push((hash(question.id.bytes().chain(choice.text.bytes())), html));
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

/// A text of a question as HTML.
fn shown(course: &Course, text: &str) -> Result<String, String> {
    inline(&with_figures(course, &text.replace('\n', " "))?)
}

/// A number that a text states by itself, not by a figure. What has one in its name, `a T4` or `0-dim`, states none,
/// and neither does code that is more than a number.
fn number_in(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for (start, end) in [("{{#", "}}"), ("`", "`")] {
        while let Some((before, rest)) = text.split_once(start) {
            let (inside, after) = rest.split_once(end).unwrap_or((rest, ""));
            let digits = inside.replace(['_', ',', ' ', '−', '%'], "");
            if digits.contains(|letter: char| letter.is_ascii_digit()) && digits.parse::<f64>().is_ok() {
                return Some(inside.to_owned());
            }
            text = format!("{before} {after}");
        }
    }
    let states_one = |word: &&str| {
        let digits = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        let after = digits.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let name = after.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
        digits.len() > after.len() && !name
    };
    text.split(|letter: char| letter.is_whitespace() || letter == '=')
        .find(states_one)
        .map(|word| word.trim_end_matches([',', '.', ';', ':']).to_owned())
}
