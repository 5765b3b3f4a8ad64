//! The numbers of a small image in the order in which they lie in memory.

use todevice::Tensor;

use crate::colour::CURRENT;
use crate::drawing::{Drawing, is_narrow};
use crate::svg::{self, rect, text};

const FONT: u32 = 13;
const LINE: f64 = 17.0;
/// The height of a number's box, and its width in the image.
const BOX: f64 = 26.0;
const GAP: f64 = 3.0;
const APART: f64 = 24.0;
const WIDEST: f64 = 44.0;

/// Draws an image of sizes 1×C×H×W, channel by channel, and below it the memory of each copy with a name: one box per
/// number, with the letter of its channel and the number of its pixel. The boxes of the first pixel have a thick border.
///
/// ```
/// use drawing::memory_formats::picture;
/// use todevice::{MemoryFormat, Tensor};
/// let image = Tensor::zeros(&[1, 2, 2, 3])?;
/// let last = image.to(MemoryFormat::ChannelsLast)?;
/// let svg = picture(&[("row-major", &image), ("channels last", &last)]).svg;
/// assert!(svg.contains(">channel b</text>") && svg.contains(">strides (12, 1, 6, 2)</text>"));
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn picture(copies: &[(&str, &Tensor)]) -> Drawing {
    Drawing::of(|width| drawn(copies, width))
}

fn drawn(copies: &[(&str, &Tensor)], width: f64) -> String {
    let mut lines = Vec::new();
    let mut y = 2.0;
    if let Some((_, image)) = copies.first() {
        let [channels, rows, columns] = sizes(image);
        for (channel, row, column) in numbers(image) {
            let left = 1.0 + channel as f64 * (columns as f64 * BOX + APART);
            if (row, column) == (0, 0) {
                let name = format!("channel {}", letter(channel));
                lines.push(text((left, y + 12.0), "start").around(&name));
            }
            let corner = (left + column as f64 * BOX, y + LINE + row as f64 * BOX);
            lines.extend(boxed((channel, row * columns + column), corner, BOX));
        }
        y += if channels * rows > 0 { LINE + rows as f64 * BOX + APART } else { 0.0 };
    }
    for (name, image) in copies {
        let strides: Vec<String> = image.strides().iter().map(usize::to_string).collect();
        let strides = format!("strides ({})", strides.join(", "));
        lines.push(text((1.0, y + 12.0), "start").with("font-weight", "bold").around(name));
        let (at, anchor) = if is_narrow(width) { (width - 1.0, "end") } else { (130.0, "start") };
        lines.push(text((at, y + 12.0), anchor).around(&strides));
        y += LINE;
        let columns = sizes(image)[2];
        let numbers = numbers(image);
        let step = ((width - 2.0) / numbers.len().max(1) as f64).min(WIDEST);
        for (place, (channel, row, column)) in numbers.into_iter().enumerate() {
            let corner = (1.0 + place as f64 * step, y);
            lines.extend(boxed((channel, row * columns + column), corner, step));
        }
        y += BOX + APART / 2.0;
    }
    svg::picture((width, y), FONT, &lines)
}

fn sizes(image: &Tensor) -> [usize; 3] {
    let [_, channels, rows, columns] = image.sizes()[..] else { panic!("an image has four dimensions") };
    [channels, rows, columns]
}

/// Channel, row and column of each number, in the order of memory.
fn numbers(image: &Tensor) -> Vec<(usize, usize, usize)> {
    let [channels, rows, columns] = sizes(image);
    let pixels = move |channel| (0..rows).flat_map(move |y| (0..columns).map(move |x| (channel, y, x)));
    let mut numbers: Vec<_> = (0..channels).flat_map(pixels).collect();
    let [_, of_channel, of_row, of_column] = image.strides()[..] else { unreachable!("it has four sizes") };
    numbers.sort_by_key(|(channel, y, x)| channel * of_channel + y * of_row + x * of_column);
    numbers
}

fn letter(channel: usize) -> char {
    char::from(b'a' + (channel % 26) as u8)
}

/// The box of a number, darker for later channels, and its name.
fn boxed((channel, pixel): (usize, usize), (x, y): (f64, f64), step: f64) -> [String; 2] {
    let shape = rect((x + GAP / 2.0, y + GAP / 2.0), (step - GAP, BOX - GAP));
    let shape = shape.pale(CURRENT, 0.06 + 0.24 * (channel % 3) as f64);
    let border = if pixel == 0 { 3 } else { 1 };
    let name = format!("{}{}", letter(channel), pixel + 1);
    let middle = (x + step / 2.0, y + BOX / 2.0 + 4.5);
    [shape.with("stroke-width", border).empty(), text(middle, "middle").around(&name)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, assert_drawn};
    use todevice::MemoryFormat;

    #[test]
    fn each_copy_shows_its_numbers_in_the_order_of_memory() {
        let image = Tensor::zeros(&[1, 2, 2, 3]).unwrap();
        let last = image.to(MemoryFormat::ChannelsLast).unwrap();
        let drawing = picture(&[("row-major", &image), ("channels last", &last)]);
        assert_drawn(&drawing);
        let texts = all(&drawing.svg, "text");
        let after = |name: &str| {
            let start = texts.iter().position(|text| text == name).unwrap();
            texts[start + 1..start + 14].join(" ")
        };
        assert_eq!(after("row-major"), "strides (12, 6, 3, 1) a1 a2 a3 a4 a5 a6 b1 b2 b3 b4 b5 b6");
        assert_eq!(after("channels last"), "strides (12, 1, 6, 2) a1 b1 a2 b2 a3 b3 a4 b4 a5 b5 a6 b6");
        // In the image, and in each copy.
        assert_eq!(drawing.svg.matches("stroke-width=\"3\"").count(), 6);
    }

    #[test]
    fn none_and_images_without_numbers_are_drawn_as_well() {
        assert_drawn(&picture(&[]));
        assert_drawn(&picture(&[("empty", &Tensor::zeros(&[1, 0, 2, 3]).unwrap())]));
    }
}
