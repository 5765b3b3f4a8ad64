//! The data with which a page makes a timeline interactive: each piece with its times, its description, and the
//! pieces before it. `book/theme/timeline.js` reads it.

use std::collections::HashMap;

use super::order::Why;
use super::rows::{Bar, Row};
use crate::svg::{element, encoded};

/// The maximum number of pieces of an interactive picture: more would make a page too large.
pub const MOST: usize = 1500;

/// The pieces of a picture, numbered in order.
#[derive(Default)]
pub struct Touch {
    lanes: Vec<Lane>,
    /// The lane to draw next.
    next: usize,
}

/// A recording to draw.
pub struct Recording<'a> {
    /// Its title, to tell it from the others, if there are any.
    pub title: &'a str,
    /// The kind of its times.
    pub kind: &'static str,
    /// Its rows in drawing order.
    pub rows: &'a [Row],
    /// The pieces before each piece.
    pub before: &'a [Vec<(usize, Why)>],
}

struct Lane {
    kind: &'static str,
    label: String,
    pieces: Vec<Piece>,
    /// For each piece that this lane and its neighbours show, its number on the page.
    numbers: HashMap<usize, usize>,
}

struct Piece {
    bar: Bar,
    before: Vec<(usize, Why)>,
}

impl Touch {
    /// Collects the pieces of these recordings, in order; empty if there are more pieces than `most`.
    pub fn of<'a>(most: usize, recordings: impl IntoIterator<Item = Recording<'a>>) -> Touch {
        let mut lanes = Vec::new();
        let mut count = 0;
        for Recording { title, kind, rows, before } in recordings {
            let shown = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.pieces[0]);
            let numbers: HashMap<usize, usize> = shown.zip(count..).collect();
            count += numbers.len();
            let piece = |bar: &Bar| Piece {
                bar: bar.clone(),
                before: before.get(bar.pieces[0]).cloned().unwrap_or_default(),
            };
            lanes.extend(rows.iter().map(|row| Lane {
                kind,
                label: [title, row.label.trim()].join(if title.is_empty() { "" } else { ": " }),
                pieces: row.bars.iter().map(piece).collect(),
                numbers: numbers.clone(),
            }));
        }
        if count > most { Touch::default() } else { Touch { lanes, next: 0 } }
    }

    /// Moves on to the next lane.
    pub fn next_lane(&mut self) {
        self.next += 1;
    }

    /// Writes ` data-b="7 8"`: the pieces that a bar of the lane stands for.
    pub fn numbers(&self, bar: &Bar) -> String {
        let Some(lane) = self.lanes.get(self.next) else { return String::new() };
        let numbers = bar.pieces.iter().filter_map(|piece| lane.numbers.get(piece));
        format!(" data-b=\"{}\"", numbers.map(usize::to_string).collect::<Vec<_>>().join(" "))
    }

    /// Returns an invisible element with a line for each lane, with the kind of its times, and one for each piece in it.
    ///
    /// ```text
    /// =modelled|cuda:0, compute
    /// 31200 2600 g q4,s17|gemm|linear, step.rs:96
    /// ```
    ///
    /// Each piece has its start and duration in nanoseconds, its sort, and the pieces it comes after.
    pub fn data(&self) -> Option<String> {
        if self.lanes.is_empty() {
            return None;
        }
        let mut lines = Vec::new();
        for Lane { kind, label, pieces, numbers } in &self.lanes {
            lines.push(format!("={kind}|{}", encoded(label)));
            lines.extend(pieces.iter().map(|Piece { bar, before }| {
                let shown = before.iter().filter_map(|(piece, why)| Some((numbers.get(piece)?, why)));
                let before: Vec<String> =
                    shown.map(|(number, why)| format!("{}{number}", why.letter())).collect();
                format!(
                    "{} {} {} {}|{}|{}",
                    bar.start,
                    bar.end - bar.start,
                    bar.sort.letter(),
                    before.join(","),
                    encoded(&bar.name),
                    encoded(&bar.more),
                )
            }));
        }
        Some(element("metadata").lines("data-pieces", &lines).empty())
    }
}
