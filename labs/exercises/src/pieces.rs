//! Choices as a page shows them.

use serde_json::{Value as Json, json};

use crate::choices::{Choices, Piece};

/// JSON for the scripts of pages, which assemble the code.
pub fn json(piece: &Piece) -> Json {
    match piece {
        Piece::Fixed(text) => json!(text),
        Piece::Part { place, texts } => json!({ "place": place, "texts": texts }),
        Piece::Shared { used, unused, without } => {
            json!({ "used": used, "unused": unused, "without": without })
        }
    }
}

/// The code of a place with this option: the lines of each of its parts.
pub fn parts(choices: &Choices, place: usize, option: usize) -> Vec<&str> {
    let of_place = choices.pieces.iter().filter_map(|piece| match piece {
        Piece::Part { place: of, texts } if *of == place => Some(texts[option].as_str()),
        _ => None,
    });
    of_place.collect()
}

/// An option as a reader sees it: its nonempty parts without common indentation.
pub fn shown(choices: &Choices, place: usize, option: usize) -> Vec<String> {
    let parts = parts(choices, place, option);
    let lines = parts.iter().flat_map(|part| part.lines()).filter(|line| !line.trim().is_empty());
    let indent = lines.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let dedented = |part: &str| {
        let lines = part
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| line.get(indent..).unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    };
    parts.into_iter().map(dedented).filter(|part| !part.is_empty()).collect()
}
