//! The key moments of a course in one picture: each has a title and two or three figures, drawn as bars to one scale.

use crate::Drawing;
use crate::colour::{CURRENT, DEVICE};
use crate::drawing::is_narrow;
use crate::svg::{self, rect, text};

/// A figure of a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub label: String,
    /// The displayed value: `19.6 MiB`.
    pub shown: String,
    /// The number behind it. All bars of a moment have the same unit.
    pub number: f64,
}

/// A result that the reader found and was asked to bet on.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    pub title: String,
    pub chapter: String,
    /// The id of the bet.
    pub bet: String,
    pub bars: Vec<Bar>,
    /// Whether the reader won the bet, if one was made.
    pub won: Option<bool>,
}

const FONT: u32 = 12;
const LINE: f64 = 16.0;
const BAR: f64 = 9.0;
const PAD: f64 = 9.0;
const GAP: f64 = 10.0;
/// The height of a moment with three bars.
const HEIGHT: f64 = 2.0 * PAD + 2.0 * LINE + 3.0 * (LINE + BAR + 4.0);

/// Draws all moments, three per row, or one per row on a phone. In the text form each is a paragraph.
///
/// ```
/// use drawing::moments::{Bar, Moment, picture};
///
/// let bar = |label: &str, number| Bar { label: label.to_owned(), shown: format!("{number} ms"), number };
/// let moment = Moment {
///     title: "Where model and data are".to_owned(),
///     chapter: "02".to_owned(),
///     bet: "02-placements".to_owned(),
///     bars: vec![bar("both on the CPU", 3.0), bar("both on the GPU", 1.0)],
///     won: Some(false),
/// };
/// let drawing = picture(&[moment]);
/// assert_eq!(
///     drawing.text.unwrap(),
///     " 1. Where model and data are (chapter 02): bet lost\n    ████████████████████  3 ms  both on the CPU\n    ███████               1 ms  both on the GPU\n"
/// );
/// ```
pub fn picture(moments: &[Moment]) -> Drawing {
    Drawing::of(|width| drawn(moments, width)).with_text(as_text(moments))
}

fn drawn(moments: &[Moment], width: f64) -> String {
    let columns = if is_narrow(width) { 1 } else { 3 };
    let tile = (width - 2.0 - GAP * (columns - 1) as f64) / columns as f64;
    let mut lines = Vec::new();
    for (index, moment) in moments.iter().enumerate() {
        let (column, row) = (index % columns, index / columns);
        let corner = (1.0 + column as f64 * (tile + GAP), 1.0 + row as f64 * (HEIGHT + GAP));
        lines.push(of_tile(index + 1, moment, corner, tile));
    }
    let rows = moments.len().div_ceil(columns) as f64;
    svg::picture((width, rows * (HEIGHT + GAP)), FONT, &lines)
}

/// Draws a moment. The bet's outcome is in an element of its own, so that a page can fill it in.
fn of_tile(number: usize, moment: &Moment, (left, top): (f64, f64), width: f64) -> String {
    let frame = rect((left, top), (width, HEIGHT)).with("rx", 6).with("fill", "none");
    let mut tile = frame.with("stroke", CURRENT).with("stroke-opacity", 0.4).empty();
    let (x, inner) = (left + PAD, width - 2.0 * PAD);
    let mut y = top + PAD + LINE - 4.0;
    let title = format!("{number}. {}", moment.title);
    tile += &text((x, y), "start").with("font-weight", "bold").around(&title);
    y += LINE;
    tile += &text((x, y), "start").with("fill-opacity", 0.75).around(&format!("chapter {}", moment.chapter));
    let told = bet_in_words(moment.won);
    tile += &text((left + width - PAD, y), "end").with("class", "moment-bet").around(told);
    for bar in &moment.bars {
        y += LINE + 2.0;
        tile += &text((x, y), "start").around(&bar.label);
        tile += &text((left + width - PAD, y), "end").around(&bar.shown);
        let length = (inner * share(bar, moment)).max(1.5);
        tile += &rect((x, y + 4.0), (length, BAR)).pale(DEVICE, 0.35).empty();
        y += BAR + 2.0;
    }
    format!("<g data-bet=\"{}\">{tile}</g>", svg::encoded(&moment.bet))
}

/// A bar's length as a fraction of the longest.
fn share(bar: &Bar, moment: &Moment) -> f64 {
    let longest = moment.bars.iter().map(|bar| bar.number).fold(0.0, f64::max);
    if longest > 0.0 { (bar.number / longest).clamp(0.0, 1.0) } else { 0.0 }
}

fn bet_in_words(won: Option<bool>) -> &'static str {
    match won {
        Some(true) => "bet won",
        Some(false) => "bet lost",
        None => "",
    }
}

fn as_text(moments: &[Moment]) -> String {
    const COLUMNS: f64 = 20.0;
    let mut told = String::new();
    for (index, moment) in moments.iter().enumerate() {
        let bet = match bet_in_words(moment.won) {
            "" => String::new(),
            bet => format!(": {bet}"),
        };
        told += &format!("{:2}. {} (chapter {}){bet}\n", index + 1, moment.title, moment.chapter);
        let wide = moment.bars.iter().map(|bar| bar.shown.chars().count()).max().unwrap_or(0);
        for bar in &moment.bars {
            let length = ((share(bar, moment) * COLUMNS).round() as usize).max(usize::from(bar.number > 0.0));
            told += &format!("    {:20}  {:>wide$}  {}\n", "█".repeat(length), bar.shown, bar.label);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, assert_drawn};

    fn moment(numbers: &[f64], won: Option<bool>) -> Moment {
        let bar = |number: &f64| Bar {
            label: "what it is".to_owned(),
            shown: format!("{number} ms"),
            number: *number,
        };
        let bars = numbers.iter().map(bar).collect();
        Moment {
            title: "A <title>".to_owned(),
            chapter: "03".to_owned(),
            bet: "03-zero".to_owned(),
            bars,
            won,
        }
    }

    #[test]
    fn every_moment_has_its_title_its_figures_and_its_bet() {
        let moments =
            [moment(&[1.0, 4.0], Some(true)), moment(&[0.0, 2.0, 1.0], Some(false)), moment(&[3.0], None)];
        let drawing = picture(&moments);
        assert_drawn(&drawing);
        let texts = all(&drawing.svg, "text");
        let count = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
        assert_eq!(["bet won", "bet lost", "what it is", "chapter 03"].map(count), [1, 1, 6, 3]);
        assert_eq!(drawing.svg.matches("<g data-bet=\"03-zero\">").count(), 3);
        let text = drawing.text.unwrap();
        assert_eq!(text.matches('█').count(), 5 + 20 + 20 + 10 + 20);
        assert!(text.starts_with(" 1. A <title> (chapter 03): bet won\n"), "{text}");
    }

    #[test]
    fn none_and_figures_of_nothing_are_drawn_as_well() {
        assert_drawn(&picture(&[]));
        assert_drawn(&picture(&[moment(&[0.0, 0.0], None)]));
    }
}
