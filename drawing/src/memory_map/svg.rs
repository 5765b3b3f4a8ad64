//! The memory map as SVG.

use super::{Fill, MemoryMap, Piece, sizes, widths};
use crate::colour::{CURRENT, WAIT};
use crate::svg::{self, element, rect, text, titled};
use crate::words::bytes;

pub(super) const WIDTH: f64 = 420.0;
pub(super) const LINE: f64 = 19.0;
pub(super) const BOX: f64 = 30.0;
pub(super) const GAP: f64 = 12.0;
const LETTER: f64 = 7.1;
/// The minimum width of a box, however many a row has, and the width that has room for a letter, which no box need
/// exceed.
const NARROWEST: (f64, f64) = (5.0, 15.0);

/// The styles that a legend may explain, and whether each shows memory lost to rounding.
const LOOKS: [(Fill, bool, &str); 5] = [
    (Fill::Allocated, false, "allocated"),
    (Fill::Free, false, "free"),
    (Fill::Awaiting, false, "still used by a stream"),
    (Fill::Mixed, false, "several blocks"),
    (Fill::Allocated, true, "lost to rounding"),
];

impl MemoryMap {
    /// Draws the map as SVG. Text and lines take the colour of the page around it. Each block has its name and
    /// bytes in a `<title>`, which browsers show on hover.
    pub fn to_svg(&self) -> String {
        let mut lines = Vec::new();
        let mut y = 2.0;
        let mut drawn = Vec::new();
        for segment in self.segments() {
            lines.push(text((1.0, y + 13.0), "start").around(&self.title(segment)));
            let allocated = format!("{} allocated", bytes(segment.allocated_size));
            lines.push(text((WIDTH - 1.0, y + 13.0), "end").around(&allocated));
            y += LINE;
            let boxes = self.boxes(segment);
            let half = WIDTH / 2.0 / boxes.len() as f64;
            let narrowest = half.clamp(NARROWEST.0, NARROWEST.1);
            let mut x = 1.0;
            for (piece, width) in boxes.iter().zip(widths(&sizes(&boxes), WIDTH - 2.0, narrowest)) {
                lines.push(boxed(piece, (x, y), width));
                drawn.push((piece.fill, cut_off(piece, width).is_some()));
                x += width;
            }
            y += BOX + GAP;
        }
        if drawn.is_empty() {
            lines.push(text((1.0, y + 13.0), "start").around("No segment is held."));
            y += LINE;
        } else {
            y = legend(&mut lines, &drawn, y);
        }
        svg::picture((WIDTH, y), 13, &lines)
    }
}

/// The width of a box's part that was lost to rounding, if it is visible.
fn cut_off(piece: &Piece, width: f64) -> Option<f64> {
    let cut_off = width * (piece.size - piece.requested) as f64 / piece.size as f64;
    (piece.fill == Fill::Allocated && cut_off >= 2.0).then_some(cut_off)
}

fn boxed(piece: &Piece, (x, y): (f64, f64), width: f64) -> String {
    let mut drawn = shape(piece.fill, (x, y), (width, BOX));
    if let Some(cut_off) = cut_off(piece, width) {
        drawn += &stripes((x + width - cut_off, y), (cut_off, BOX));
    }
    let name = match piece.blocks {
        1 => piece.name.clone(),
        blocks => format!("{blocks} blocks"),
    };
    if name.chars().count() as f64 * LETTER + 5.0 < width {
        drawn += &text((x + width / 2.0, y + BOX / 2.0 + 5.0), "middle").around(&name);
        drawn.push('\n');
    }
    titled(&piece.words(), &drawn)
}

/// Draws a box in the style of its content: allocated memory has a full border, free memory a thin one, and memory
/// that waits for a stream a dashed one, as in a timeline; several blocks have horizontal lines across.
fn shape(fill: Fill, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let shape = rect((x + 0.5, y + 0.5), (width - 1.0, height - 1.0));
    match fill {
        Fill::Allocated => shape.pale(CURRENT, 0.15).with("stroke-width", 1.5).empty(),
        Fill::Free => {
            let border = shape.with("fill", "none").with("stroke", CURRENT).with("stroke-opacity", 0.5);
            border.with("stroke-width", 0.75).empty()
        }
        Fill::Awaiting => {
            let border = shape.pale(WAIT, 0.12).with("stroke-width", 2);
            border.with("stroke-dasharray", "4 3").empty()
        }
        Fill::Mixed => {
            let across = [1.0, 2.0].map(|third| {
                let (down, right) = (y + third * height / 3.0, x + width);
                let path = format!("M{x:.1} {down:.1}H{right:.1}");
                element("path").with("d", path).with("stroke", CURRENT).empty()
            });
            shape.pale(CURRENT, 0.1).with("stroke-width", 1).empty() + &across.concat()
        }
    }
}

/// Vertical lines over a part of a box.
fn stripes((x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let low = y + height - 1.0;
    let lines =
        (0..).map(|index| x + 1.0 + 4.0 * f64::from(index)).take_while(|line| *line < x + width - 0.5);
    let path: String = lines.map(|line| format!("M{line:.1} {:.1}V{low:.1}", y + 1.0)).collect();
    element("path").with("d", path).with("stroke", CURRENT).with("stroke-opacity", 0.6).empty()
}

/// Draws the legend of the styles that occur, from `y` down; returns its lower end.
fn legend(lines: &mut Vec<String>, drawn: &[(Fill, bool)], mut y: f64) -> f64 {
    let mut x = 1.0;
    for (fill, cut_off, name) in LOOKS {
        if !drawn.iter().any(|(drawn, cut)| *drawn == fill && (*cut || !cut_off)) {
            continue;
        }
        let width = 30.0 + LETTER * name.chars().count() as f64 + 14.0;
        if x + width > WIDTH {
            (x, y) = (1.0, y + LINE + 4.0);
        }
        let (corner, size) = ((x, y), (22.0, 15.0));
        let mut look = shape(fill, corner, size);
        if cut_off {
            look += &stripes(corner, size);
        }
        lines.push(look);
        lines.push(text((x + 30.0, y + 12.0), "start").around(name));
        x += width;
    }
    y + LINE + 4.0
}
