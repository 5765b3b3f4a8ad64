//! Writing SVG, element by element. Text and lines take the colour of the page around a picture.

use std::fmt::{Display, Write};

use crate::colour::CURRENT;

/// An element being written.
pub struct Element {
    name: &'static str,
    written: String,
}

pub fn element(name: &'static str) -> Element {
    Element { name, written: format!("<{name}") }
}

impl Element {
    /// Adds an attribute: a number, a colour or similar, which needs no escaping.
    pub fn with(mut self, name: &str, value: impl Display) -> Element {
        let _ = write!(self.written, " {name}=\"{value}\"");
        self
    }

    /// Adds coordinates and sizes, with one decimal.
    pub fn lengths<const N: usize>(self, numbers: [(&str, f64); N]) -> Element {
        numbers
            .into_iter()
            .fold(self, |element, (name, number)| element.with(name, format_args!("{number:.1}")))
    }

    /// Fills it in a pale colour, with a border of the same colour.
    pub fn pale(self, colour: &str, opacity: f64) -> Element {
        self.with("fill", colour).with("fill-opacity", opacity).with("stroke", colour)
    }

    /// Ends the element without content.
    pub fn empty(self) -> String {
        self.written + "/>"
    }

    /// Ends the element with a text as its content.
    pub fn around(self, text: &str) -> String {
        format!("{}>{}</{}>", self.written, escape(text), self.name)
    }

    /// Adds lines of data in an attribute, where a text search in the page does not find them. Texts in them are
    /// [`encoded`].
    pub fn lines(self, name: &str, lines: &[String]) -> Element {
        self.with(name, lines.join("\n"))
    }
}

pub fn rect((x, y): (f64, f64), (width, height): (f64, f64)) -> Element {
    element("rect").lengths([("x", x), ("y", y), ("width", width), ("height", height)])
}

/// A text with its start, middle or end at a point.
pub fn text((x, y): (f64, f64), anchor: &str) -> Element {
    element("text").lengths([("x", x), ("y", y)]).with("text-anchor", anchor)
}

pub fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64), opacity: f64) -> String {
    let line = element("line").lengths([("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)]);
    line.with("stroke", CURRENT).with("stroke-opacity", opacity).empty()
}

/// Groups elements with a title, which browsers show on hover.
pub fn titled(title: &str, elements: &str) -> String {
    format!("<g>{}{elements}</g>", element("title").around(title))
}

/// Estimates the width of a text in a font size, rather too wide than too narrow.
pub fn wide(text: &str, font_size: u32) -> f64 {
    text.chars().count() as f64 * 0.55 * f64::from(font_size)
}

/// Draws something at a corner, in a size.
pub type Look<'a> = Box<dyn Fn((f64, f64), (f64, f64)) -> String + 'a>;

/// Draws legend entries side by side from a position, as many per line as fit to the left of `right`. Returns the
/// lower end.
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

/// A page enlarges a picture by this factor where it has room, so that its text is about as large as the page's.
const ENLARGED: f64 = 1.25;

/// A complete picture, with each entry of `lines` on its own line.
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

/// Encodes a text for data in an attribute; `decodeURIComponent` decodes it.
pub fn encoded(text: &str) -> String {
    let encode = |letter: char| match letter {
        '%' | '"' | '<' | '>' | '&' | '|' => format!("%{:02X}", u32::from(letter)),
        letter if letter.is_control() => "\u{fffd}".to_owned(),
        letter => letter.to_string(),
    };
    text.chars().map(encode).collect()
}

/// Escapes a text for XML, which has no control characters.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace(
        |letter: char| letter.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&letter),
        "\u{fffd}",
    )
}
