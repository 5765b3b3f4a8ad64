//! What a page needs to know of a timeline to let its reader touch it: each piece with its times, what it is, and what comes
//! before it. `book/theme/timeline.js` reads it.

use std::collections::HashMap;

use super::order::Why;
use super::rows::{Bar, Row};
use crate::svg::{element, encoded};

/// A picture of more pieces is left as it is: a page would be heavy with them.
pub const MOST: usize = 1500;

/// The pieces of a picture, numbered as they come.
#[derive(Default)]
pub struct Touch {
    lanes: Vec<Lane>,
    /// The lane that is drawn next.
    next: usize,
}

/// What is drawn of a recording.
pub struct Recording<'a> {
    /// What tells it from others, if there are any.
    pub title: &'a str,
    /// What its times are.
    pub kind: &'static str,
    /// In the order in which they are drawn.
    pub rows: &'a [Row],
    /// What comes before each piece.
    pub before: &'a [Vec<(usize, Why)>],
}

struct Lane {
    kind: &'static str,
    label: String,
    pieces: Vec<Piece>,
    /// The number on the page of each piece of the recording that this lane and its neighbours show.
    numbers: HashMap<usize, usize>,
}

struct Piece {
    bar: Bar,
    before: Vec<(usize, Why)>,
}

impl Touch {
    /// Of these recordings, one after the other. With more pieces than `most` there is nothing.
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

    /// What is drawn from now on is of the next lane.
    pub fn next_lane(&mut self) {
        self.next += 1;
    }

    /// ` data-b="7 8"`: which pieces a bar of the lane stands for.
    pub fn numbers(&self, bar: &Bar) -> String {
        let Some(lane) = self.lanes.get(self.next) else { return String::new() };
        let numbers = bar.pieces.iter().filter_map(|piece| lane.numbers.get(piece));
        format!(" data-b=\"{}\"", numbers.map(usize::to_string).collect::<Vec<_>>().join(" "))
    }

    /// An element that no picture shows: a line for each lane, with what its times are, and one for each piece of it.
    ///
    /// ```text
    /// =modelled|cuda:0, compute
    /// 31200 2600 g q4,s17|gemm|linear, experiments.rs:96
    /// ```
    ///
    /// A piece begins so many nanoseconds from the start, lasts so many, is of this sort, and comes after these others.
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
