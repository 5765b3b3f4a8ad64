//! SVG, element by element. Text and lines take the colour of the page around a picture.

use std::fmt::{Display, Write};

use crate::colour::CURRENT;

/// An element that is being written.
pub struct Element {
    name: &'static str,
    written: String,
}

pub fn element(name: &'static str) -> Element {
    Element { name, written: format!("<{name}") }
}

impl Element {
    /// With one more attribute: a number, a colour or the like, which needs no escape.
    pub fn with(mut self, name: &str, value: impl Display) -> Element {
        let _ = write!(self.written, " {name}=\"{value}\"");
        self
    }

    /// With coordinates and sizes, in tenths.
    pub fn lengths<const N: usize>(self, numbers: [(&str, f64); N]) -> Element {
        numbers
            .into_iter()
            .fold(self, |element, (name, number)| element.with(name, format_args!("{number:.1}")))
    }

    /// Filled with a pale colour, with a border of the same.
    pub fn pale(self, colour: &str, opacity: f64) -> Element {
        self.with("fill", colour).with("fill-opacity", opacity).with("stroke", colour)
    }

    /// With nothing in it.
    pub fn empty(self) -> String {
        self.written + "/>"
    }

    /// With a text in it.
    pub fn around(self, text: &str) -> String {
        format!("{}>{}</{}>", self.written, escape(text), self.name)
    }

    /// With lines of data in an attribute, which no search finds as words of the page. Texts in them are [`encoded`].
    pub fn lines(self, name: &str, lines: &[String]) -> Element {
        self.with(name, lines.join("\n"))
    }
}

pub fn rect((x, y): (f64, f64), (width, height): (f64, f64)) -> Element {
    element("rect").lengths([("x", x), ("y", y), ("width", width), ("height", height)])
}

/// A text that has its start, its middle or its end at a point.
pub fn text((x, y): (f64, f64), anchor: &str) -> Element {
    element("text").lengths([("x", x), ("y", y)]).with("text-anchor", anchor)
}

pub fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64), opacity: f64) -> String {
    let line = element("line").lengths([("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)]);
    line.with("stroke", CURRENT).with("stroke-opacity", opacity).empty()
}

/// Elements with a title, which browsers show to who points at them.
pub fn titled(title: &str, elements: &str) -> String {
    format!("<g>{}{elements}</g>", element("title").around(title))
}

/// About how wide a text is in letters of a size: rather more than less.
pub fn wide(text: &str, font_size: u32) -> f64 {
    text.chars().count() as f64 * 0.55 * f64::from(font_size)
}

/// Draws something at a corner, in a size.
pub type Look<'a> = Box<dyn Fn((f64, f64), (f64, f64)) -> String + 'a>;

/// What looks mean, side by side from a place on, as many on a line as there is room for to the left of `right`. Returns where it
/// ends.
pub fn legend(
    lines: &mut Vec<String>,
    (left, mut y, right): (f64, f64, f64),
    font_size: u32,
    entries: Vec<(Look, String)>,
) -> f64 {
    const BOX: (f64, f64) = (18.0, 15.0);
    const LINE: f64 = 22.0;
    let mut x = left;
    for (look, name) in entries {
        let width = BOX.0 + 6.0 + wide(&name, font_size) + 16.0;
        if x + width > right + 16.0 && x > left {
            (x, y) = (left, y + LINE);
        }
        lines.push(look((x, y), BOX));
        lines.push(text((x + BOX.0 + 6.0, y + 12.0), "start").around(&name));
        x += width;
    }
    y + LINE
}

/// A page shows a picture so many times as large, where it has the room: its text is then about as large as the page's.
const ENLARGED: f64 = 1.25;

/// A whole picture, each entry of `lines` on a line of its own.
pub fn picture((width, height): (f64, f64), font_size: u32, lines: &[String]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height:.0}\" width=\"{:.0}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"{font_size}\" fill=\"{CURRENT}\">\n",
        width * ENLARGED
    );
    for line in lines {
        svg += line;
        svg.push('\n');
    }
    svg + "</svg>\n"
}

/// A text as data in an attribute has it: `decodeURIComponent` gives it back.
pub fn encoded(text: &str) -> String {
    let encode = |letter: char| match letter {
        '%' | '"' | '<' | '>' | '&' | '|' => format!("%{:02X}", u32::from(letter)),
        letter if letter.is_control() => "\u{fffd}".to_owned(),
        letter => letter.to_string(),
    };
    text.chars().map(encode).collect()
}

/// A text as XML writes it, which knows no control characters.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace(
        |letter: char| letter.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&letter),
        "\u{fffd}",
    )
}
