//! Renders events as JSON Lines, one object per line, so that a reader can follow a running lab.

use drawing::printable::is_printable;
use serde_json::{Value as Json, json};

use super::event::{Cell, Drawing, Event};
use super::figure::{Figure, Value};
use super::prediction::{Answer, Key, Prediction};
use super::text::Text;

/// The event as a line. Control characters in strings are escaped.
pub fn line(event: &Event) -> String {
    let mut line = String::new();
    for letter in render(event).to_string().chars() {
        match is_printable(letter) {
            true => line.push(letter),
            false => {
                let units = letter.encode_utf16(&mut [0; 2]).to_owned();
                line.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    line + "\n"
}

/// The event as a JSON object. The key `event` is its type.
///
/// A figure has its raw `value`, for bytes their count, and in `text` the text for the reader. JSON has no NaN and no
/// infinity: such a value is `null`, and `text` has its name.
///
/// Results that times decided are marked: a figure or a text is `raced`, a table's rows are `ranked`. A section that
/// differs on a real GPU has the reason in `apart`.
pub fn render(event: &Event) -> Json {
    match event {
        Event::Header(header) => json!({
            "event": "header",
            "lab": header.lab,
            "title": header.title,
            "version": header.version,
            "machine": header.machine,
            "device": header.device,
            "seed": header.seed,
        }),
        Event::Section { number, title, apart, machine } => {
            let section =
                json!({ "event": "section", "number": number, "title": title });
            let section = marked(section, "apart", apart.map(Json::from));
            marked(section, "machine", machine.clone().map(Json::from))
        }
        Event::Prose(text) => words("prose", text),
        Event::Prediction(prediction) => {
            let Prediction { id, question, kind, .. } = prediction;
            let asked = json!({ "event": "prediction", "id": id, "question": question, "asks": kind.name() });
            let options = prediction.options();
            let asked =
                marked(asked, "options", (!options.is_empty()).then(|| options.into()));
            // If times decide the answer, the question may name the device.
            marked(asked, "raced", prediction.raced.then(|| true.into()))
        }
        Event::Part(name) => json!({ "event": "part", "name": name }),
        Event::Answer(answer) => {
            let Answer { prediction, key, response } = answer;
            let figures: Vec<Json> = match key {
                Key::Number(shown) => vec![figure(shown)],
                _ => Vec::new(),
            };
            let (id, because) = (prediction.id, &prediction.because);
            let answered = json!({
                "event": "answer", "id": id, "text": answer.printed(), "figures": figures, "because": because,
            });
            let answered = marked(
                answered,
                "said",
                response.as_ref().map(|response| prediction.typed(response).into()),
            );
            marked(answered, "raced", prediction.raced.then(|| true.into()))
        }
        Event::Line(text) => words("line", text),
        Event::Figure(shown) => {
            let mut object = figure(shown);
            object["event"] = json!("figure");
            object
        }
        Event::Table(table) => {
            let rows: Vec<Vec<Json>> =
                table.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
            let table_of =
                json!({ "event": "table", "header": table.header, "rows": rows });
            marked(table_of, "ranked", table.ranked.then(|| true.into()))
        }
        Event::Report(report) => json!({ "event": "report", "text": report }),
        Event::Picture { drawing: Drawing { svg, text, .. }, caption } => {
            json!({ "event": "picture", "svg": svg, "text": text, "caption": caption })
        }
        Event::Warning(message) => json!({ "event": "warning", "message": message }),
        Event::Failure { lab, message } => {
            json!({ "event": "failure", "lab": lab, "message": message })
        }
    }
}

fn words(event: &str, text: &Text) -> Json {
    let figures: Vec<Json> = text.figures().map(figure).collect();
    let words = json!({ "event": event, "text": text.printed(), "figures": figures });
    marked(words, "raced", text.raced.then(|| true.into()))
}

/// Adds a key to an object, if it has a value.
fn marked(mut object: Json, key: &str, mark: Option<Json>) -> Json {
    if let Some(mark) = mark {
        object[key] = mark;
    }
    object
}

fn cell(cell: &Cell) -> Json {
    match cell {
        Cell::Text(text) => json!(text),
        Cell::Count(count) => json!(count),
        Cell::Figure(shown) => figure(shown),
    }
}

fn figure(figure: &Figure) -> Json {
    let object = json!({
        "name": figure.name,
        "label": figure.label,
        "value": value(&figure.value),
        // The value is the count, whatever unit the text has.
        "unit": if figure.is_bytes { "bytes" } else { figure.unit },
        "digits": figure.digits,
        "kind": figure.kind.name(),
        "text": figure.printed(),
    });
    marked(object, "raced", figure.raced.then(|| true.into()))
}

fn value(value: &Value) -> Json {
    match value {
        Value::Int(count) => json!(count),
        Value::Float(quantity) => json!(quantity), // null unless finite
        Value::Text(text) => json!(text),
    }
}
