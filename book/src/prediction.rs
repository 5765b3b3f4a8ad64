//! A prediction on a page: a form for an answer, and the text after it, folded until the reader has answered. A
//! question to think about has no form: it is the summary of the fold.
//!
//! The answer comes from the run on the page. Without JavaScript, the form takes no answer, and the reader opens the
//! fold.

use labs::prediction::{Answer, Kind, Prediction, Response};
use labs::{Event, Key};

use crate::html::{escape, inline};
use crate::mistake::choices;

/// The prediction with this id, with the answer from these events. The text after it [is folded](Fold) up to [`END`].
/// The error lists the valid ids, or says what is wrong with this prediction.
pub fn html(events: &[Event], id: &str) -> Result<String, String> {
    let asked = events.iter().filter_map(|event| match event {
        Event::Prediction(prediction) => Some(prediction),
        _ => None,
    });
    let Some(prediction) = asked.clone().find(|prediction| prediction.id == id) else {
        return Err(format!(
            "no prediction `{id}`: write {}",
            choices(asked.map(|prediction| prediction.id))
        ));
    };
    if !prediction.gates() {
        let question = inline(&prediction.question.replace('\n', " "))?;
        return Ok(format!(
            "<details class=\"think\" id=\"think-{id}\">\n<summary><span class=\"predict-label\">Think</span> {question}</summary>\n\n"
        ));
    }
    let answer = events.iter().find_map(|event| match event {
        Event::Answer(answer) if answer.prediction.id == id => Some(answer),
        _ => None,
    });
    let answer = answer.ok_or_else(|| format!("the lab never answers `{id}` in this run"))?;
    form(prediction, answer, &answer.expected()?)
}

fn form(prediction: &Prediction, answer: &Answer, expected: &Response) -> Result<String, String> {
    let Prediction { id, question, kind, .. } = prediction;
    let key = prediction.typed(expected);
    let mut more = String::new();
    if let (Kind::Number { unit, tolerance, possible }, Key::Number(figure)) = (kind, &answer.key) {
        if figure.kind == labs::Kind::Measured {
            return Err(format!("`{id}` is answered by a measured figure, which differs from run to run"));
        }
        let printed = escape(&figure.printed());
        let bare = if answer.is_bare() { " data-bare" } else { "" };
        let most = if possible.most.is_finite() {
            format!(" data-most=\"{}\"", possible.most)
        } else {
            String::new()
        };
        let whole = if possible.is_integer { " data-whole" } else { "" };
        more = format!(
            "{bare}{whole} data-least=\"{:e}\"{most} data-tolerance=\"{tolerance}\" data-unit=\"{}\" data-wanted=\"{}\" data-printed=\"{printed}\"",
            possible.least,
            escape(unit),
            escape(&prediction.expected_input())
        );
    }
    let mut html = format!(
        "<form class=\"predict\" id=\"predict-{id}\" data-id=\"{id}\" data-kind=\"{}\" data-key=\"{key}\"{more}>\n\
         <fieldset>\n<legend><span class=\"predict-label\">Predict</span> {}</legend>\n",
        kind.name(),
        inline(&question.replace('\n', " "))?
    );
    let because = format!("<template data-because>{}</template>\n", inline(&prediction.because)?);
    match kind {
        Kind::Choice(_) | Kind::YesNo | Kind::Line(_) => {
            for (index, option) in prediction.options().into_iter().enumerate() {
                let said = Response::Option(index);
                let shown = match kind {
                    Kind::Line(_) => format!("<code class=\"line\">{}</code>", escape(option)),
                    _ => inline(option)?,
                };
                html += &format!(
                    "<div class=\"choice\"><label><input type=\"radio\" name=\"{id}\" value=\"{}\"> {shown}</label></div>\n\
                     <template data-said=\"{0}\">{}</template>\n",
                    prediction.typed(&said),
                    inline(&answer.compared(&said))?
                );
            }
        }
        Kind::Number { unit, .. } => {
            html += &because;
            html += &format!(
                "<p class=\"choice\"><label><input type=\"text\" aria-label=\"Your number\" inputmode=\"decimal\" autocomplete=\"off\" size=\"9\" \
                 name=\"{id}\"> {}</label></p>\n",
                escape(unit)
            );
        }
        Kind::Order(things) => {
            html += &because;
            html += "<ol class=\"order\">\n";
            for (letter, thing) in ('a'..='z').zip(things) {
                html += &format!("<li data-letter=\"{letter}\">{}</li>\n", inline(thing)?);
            }
            html += "</ol>\n";
        }
        Kind::Think => {}
    }
    html += &format!(
        "<p class=\"predict-buttons\"><button type=\"submit\">Answer</button> <button type=\"button\" \
         class=\"skip\">Skip</button></p>\n</fieldset>\n<div class=\"verdict\" role=\"status\"></div>\n</form>\n\
         <details class=\"after\" id=\"after-{id}\">\n<summary>What happens</summary>\n<p class=\"answer\">The answer: \
         <strong>{}</strong>. {}</p>\n\n",
        inline(&answer.printed())?,
        inline(&prediction.because)?
    );
    Ok(html)
}

/// The fold that a directive's Markdown leaves open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// The text after a prediction.
    Answer,
    /// The text after a question to think about.
    Thought,
}

impl Fold {
    pub fn of(markdown: &str) -> Option<Fold> {
        let opens = |class| markdown.contains(&format!("<details class=\"{class}\""));
        match (opens("after"), opens("think")) {
            (true, _) => Some(Fold::Answer),
            (_, true) => Some(Fold::Thought),
            _ => None,
        }
    }
}

pub const END: &str = "\n</details>\n\n";
