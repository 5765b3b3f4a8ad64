//! The map as a picture, which a page shows in its own colours.

use std::fmt::Write;

use super::{Fill, MemoryMap, Piece, widths};
use crate::events::escape;

const WIDTH: f64 = 480.0;
const LINE: f64 = 19.0;
const BOX: f64 = 30.0;
const GAP: f64 = 12.0;
const LETTER: f64 = 7.6;
/// No box is narrower than the first, however many a row has, nor need be wider than the second, which has room for a
/// letter.
const NARROWEST: (f64, f64) = (5.0, 15.0);

const FILLS: [(Fill, &str); 4] = [
    (Fill::Allocated, "allocated"),
    (Fill::Free, "free"),
    (Fill::Awaiting, "still used by a stream"),
    (Fill::Mixed, "several blocks"),
];
/// What was cut off when a size was rounded.
const CUT_OFF: &str = "cut off by rounding";

impl MemoryMap {
    /// The map as a picture in SVG, 480 wide. Text and lines take the colour of the page around it. Each block
    /// has its name and its bytes in a `<title>`, which browsers show to who points at it.
    pub fn to_svg(&self) -> String {
        let mut svg = String::new();
        let mut y = 2.0;
        let mut drawn = Vec::new();
        let mut cut_off = false;
        for segment in self.segments() {
            text(&mut svg, (1.0, y + 13.0), "start", &self.title(segment));
            let allocated = format!("{} allocated", segment.allocated_size);
            text(&mut svg, (WIDTH - 1.0, y + 13.0), "end", &allocated);
            y += LINE;
            let boxes = self.boxes(segment);
            let half = WIDTH / 2.0 / boxes.len() as f64;
            let narrowest = half.clamp(NARROWEST.0, NARROWEST.1);
            let mut x = 1.0;
            for (piece, width) in boxes.iter().zip(widths(&boxes, WIDTH - 2.0, narrowest)) {
                cut_off |= boxed(&mut svg, piece, (x, y), width);
                x += width;
            }
            drawn.extend(boxes);
            y += BOX + GAP;
        }
        if drawn.is_empty() {
            text(&mut svg, (1.0, y + 13.0), "start", "No segment is held.");
            y += LINE;
        } else {
            y = legend(&mut svg, &drawn, cut_off, y);
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y:.0}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"14\" fill=\"currentColor\">\n{svg}</svg>\n"
        )
    }
}

/// Draws a box; returns whether it shows that something was cut off.
fn boxed(svg: &mut String, piece: &Piece, (x, y): (f64, f64), width: f64) -> bool {
    let _ = write!(svg, "<g><title>{}</title>", escape(&piece.words()));
    shape(svg, piece.fill, (x, y), (width, BOX));
    let cut_off = width * (piece.size - piece.requested) as f64 / piece.size as f64;
    let shows_cut_off = piece.fill == Fill::Allocated && cut_off >= 2.0;
    if shows_cut_off {
        stripes(svg, (x + width - cut_off, y), (cut_off, BOX));
    }
    let name = match piece.blocks {
        1 => piece.name.clone(),
        blocks => format!("{blocks} blocks"),
    };
    if name.chars().count() as f64 * LETTER + 5.0 < width {
        text(svg, (x + width / 2.0, y + BOX / 2.0 + 5.0), "middle", &name);
    }
    *svg += "</g>\n";
    shows_cut_off
}

/// A box in the look of what it shows. They differ in colour, and in more than that: what is allocated has a full
/// border, what is free a thin one, what a stream still uses a dashed one; several blocks have lines across.
fn shape(svg: &mut String, fill: Fill, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let look = match fill {
        Fill::Allocated => "fill=\"#1c7ed6\" fill-opacity=\"0.3\" stroke=\"#1c7ed6\" stroke-width=\"2\"",
        Fill::Free => "fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.5\" stroke-width=\"0.75\"",
        Fill::Awaiting => {
            "fill=\"#ae3ec9\" fill-opacity=\"0.12\" stroke=\"#ae3ec9\" stroke-width=\"2\" stroke-dasharray=\"4 3\""
        }
        Fill::Mixed => "fill=\"#1c7ed6\" fill-opacity=\"0.15\" stroke=\"#1c7ed6\" stroke-width=\"1\"",
    };
    let _ = write!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" {look}/>",
        x + 0.5,
        y + 0.5,
        width - 1.0,
        height - 1.0
    );
    if fill == Fill::Mixed {
        for third in [1.0, 2.0] {
            let (down, right) = (y + third * height / 3.0, x + width);
            let _ = write!(svg, "<path d=\"M{x:.1} {down:.1}H{right:.1}\" stroke=\"#1c7ed6\"/>");
        }
    }
}

/// Upright lines over a part of a box.
fn stripes(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let low = y + height - 1.0;
    let lines =
        (0..).map(|index| x + 1.0 + 4.0 * f64::from(index)).take_while(|line| *line < x + width - 0.5);
    let path: String = lines.map(|line| format!("M{line:.1} {:.1}V{low:.1}", y + 1.0)).collect();
    let _ = write!(svg, "<path d=\"{path}\" stroke=\"#d9480f\" stroke-width=\"1.5\"/>");
}

/// What occurs, each with its look, from `y` on; returns where it ends.
fn legend(svg: &mut String, drawn: &[Piece], cut_off: bool, mut y: f64) -> f64 {
    let mut x = 1.0;
    let mut entry = |svg: &mut String, name: &str, draw: &dyn Fn(&mut String, (f64, f64), (f64, f64))| {
        let width = 30.0 + LETTER * name.chars().count() as f64 + 14.0;
        if x + width > WIDTH {
            (x, y) = (1.0, y + LINE + 4.0);
        }
        draw(svg, (x, y), (22.0, 15.0));
        svg.push('\n');
        text(svg, (x + 30.0, y + 12.0), "start", name);
        x += width;
    };
    for (fill, name) in FILLS {
        if drawn.iter().any(|piece| piece.fill == fill) {
            entry(svg, name, &|svg, corner, size| shape(svg, fill, corner, size));
        }
    }
    if cut_off {
        entry(svg, CUT_OFF, &|svg, corner, size| {
            shape(svg, Fill::Allocated, corner, size);
            stripes(svg, corner, size);
        });
    }
    y + LINE + 4.0
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = escape(text);
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}
