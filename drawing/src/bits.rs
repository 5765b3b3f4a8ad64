//! The bits of floating point types, one below the other.

use crate::colour::CURRENT;
use crate::drawing::{Drawing, is_narrow};
use crate::svg::{self, rect, text};

/// A floating point type, and an example number.
#[derive(Clone, Debug)]
pub struct Format {
    pub name: String,
    /// The bits of the sign, exponent and fraction, highest first.
    pub bits: [String; 3],
    /// The number of bits in memory, which may be larger.
    pub stored: usize,
    /// The smallest and largest number with full precision.
    pub range: [String; 2],
    /// The next number after 1.
    pub after_one: String,
}

const FONT: u32 = 13;
const LINE: f64 = 17.0;
const BIT: f64 = 24.0;
const GAP: f64 = 12.0;
/// The purpose of each part.
const PARTS: [&str; 4] =
    ["sign", "exponent: how large or small", "fraction: how many digits", "in memory, but not used"];

/// Draws the types with one box per bit, all of the same width.
///
/// ```
/// use drawing::bits::{Format, picture};
/// let float16 = Format {
///     name: "float16".to_owned(),
///     bits: ["0", "01111", "0000000000"].map(str::to_owned),
///     stored: 16,
///     range: ["6.1e-5", "65504"].map(str::to_owned),
///     after_one: "1.00098".to_owned(),
/// };
/// let svg = picture(&[float16]).svg;
/// assert_eq!(svg.matches(">0</text>").count(), 12);
/// assert!(svg.contains(">from 6.1e-5 to 65504; 1 is followed by 1.00098</text>"));
/// ```
pub fn picture(formats: &[Format]) -> Drawing {
    Drawing::of(|width| drawn(formats, width))
}

fn drawn(formats: &[Format], width: f64) -> String {
    let most = formats.iter().map(|format| format.stored).max().unwrap_or(1).max(1);
    let step = (width - 2.0) / most as f64;
    let mut lines = Vec::new();
    let mut y = 2.0;
    let mut unused = false;
    for Format { name, bits, stored, range: [low, high], after_one } in formats {
        lines.push(text((1.0, y + 12.0), "start").with("font-weight", "bold").around(name));
        let words = format!("from {low} to {high}; 1 is followed by {after_one}");
        if is_narrow(width) {
            y += LINE;
            lines.push(text((1.0, y + 12.0), "start").around(&words.replace("1 is followed by", "after 1:")));
        } else {
            lines.push(text((width - 1.0, y + 12.0), "end").around(&words));
        }
        y += LINE;
        let parts = bits.iter().enumerate();
        let used = parts.flat_map(|(part, bits)| bits.chars().map(move |bit| (part, bit.to_string())));
        let all = used.chain(std::iter::repeat((3, String::new()))).take(*stored);
        for (index, (part, bit)) in all.enumerate() {
            let x = 1.0 + index as f64 * step;
            lines.push(look(part, (x, y), (step, BIT)));
            if step > svg::wide("0", FONT) {
                lines.push(text((x + step / 2.0, y + BIT / 2.0 + 4.5), "middle").around(&bit));
            }
            unused |= part == 3;
        }
        y += BIT + GAP;
    }
    let entries = PARTS.iter().enumerate().filter(|(part, _)| *part < 3 || unused).map(|(part, name)| {
        let look = move |corner, size| look(part, corner, size);
        (Box::new(look) as svg::Look, (*name).to_owned())
    });
    let y = svg::legend(&mut lines, (1.0, y, width), FONT, entries.collect());
    svg::picture((width, y), FONT, &lines)
}

fn look(part: usize, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let shape = rect((x + 0.5, y), (width - 1.0, height));
    match part {
        0 => shape.pale(CURRENT, 0.0).with("stroke-width", 2).empty(),
        1 => shape.pale(CURRENT, 0.3).empty(),
        2 => shape.pale(CURRENT, 0.08).empty(),
        _ => shape.with("fill", "none").with("stroke", CURRENT).with("stroke-dasharray", "1 3").empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, assert_drawn};

    fn format(name: &str, exponent: usize, fraction: usize, stored: usize) -> Format {
        Format {
            name: name.to_owned(),
            bits: ["0".to_owned(), "1".repeat(exponent), "0".repeat(fraction)],
            stored,
            range: ["1.2e-38", "3.4e38"].map(str::to_owned),
            after_one: "1.0078125".to_owned(),
        }
    }

    #[test]
    fn each_bit_has_a_box_and_all_are_as_wide() {
        let drawing =
            picture(&[format("float32", 8, 23, 32), format("TF32", 8, 10, 32), format("float16", 5, 10, 16)]);
        assert_drawn(&drawing);
        let boxes = drawing.svg.lines().filter(|line| line.contains(" height=\"24.0\""));
        let width =
            |line: &str| line.split_once(" width=\"").unwrap().1.split('"').next().unwrap().to_owned();
        let widths: Vec<String> = boxes.map(width).collect();
        assert!(widths.len() == 32 + 32 + 16 && widths.iter().all(|width| *width == widths[0]), "{widths:?}");
        let texts = all(&drawing.svg, "text");
        assert_eq!(texts.iter().filter(|text| *text == "1").count(), 8 + 8 + 5);
        assert!(texts.contains(&PARTS[3].to_owned()), "the bits that TF32 does not use");
        assert!(!picture(&[format("float16", 5, 10, 16)]).svg.contains(PARTS[3]), "float16 uses all");
    }

    #[test]
    fn no_type_and_one_without_bits_are_drawn_as_well() {
        assert_drawn(&picture(&[]));
        assert_drawn(&picture(&[format("nothing", 0, 0, 0)]));
        assert_drawn(&picture(&[format("long", 15, 112, 128)]));
    }
}
