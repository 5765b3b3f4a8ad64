//! A picture of a host, a device, the link between them, and a tensor that is copied.

use std::time::Duration;

use crate::Role;
use crate::colour::{COPY, CURRENT, DEVICE, HOST};
use crate::drawing::{Drawing, is_narrow};
use crate::svg::{self, element, rect, text, titled};
use crate::words;

/// A tensor that `.to(device)` copies, and the time a copy takes on each of three paths.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Its name in the program.
    pub name: String,
    pub bytes: u64,
    /// `cuda:0`
    pub device: String,
    /// The name of the card.
    pub card: String,
    /// From the host's memory to the host's memory.
    pub within_host: Duration,
    /// From the host's memory to the device's.
    pub over_link: Duration,
    /// From the device's memory to the device's.
    pub within_device: Duration,
    /// The kind of times: `modelled`.
    pub kind: &'static str,
}

const LINE: f64 = 18.0;
const FONT: u32 = 13;
/// A memory, with room for a title, a tensor and two lines of text.
const BOX_HEIGHT: f64 = 136.0;
const BAR: f64 = 14.0;

/// Draws the two memories, the copy between them, and the time of each path as a bar.
pub fn picture(moved: &Moved) -> Drawing {
    Drawing::of(|width| drawn(moved, width))
}

fn drawn(moved: &Moved, width: f64) -> String {
    let Moved { name, bytes, device, card, .. } = moved;
    let size = words::bytes(*bytes);
    let mut lines = Vec::new();
    let narrow = is_narrow(width);
    // Side by side with the link between them, or one above the other.
    let (box_width, gap) = if narrow { (width - 4.0, 62.0) } else { (222.0, 152.0) };
    let there = if narrow { (2.0, 2.0 + BOX_HEIGHT + gap) } else { (width - 2.0 - box_width, 2.0) };
    let host = Memory {
        title: "host",
        subtitle: "the CPU and its memory",
        colour: HOST,
        tensor: name.clone(),
        remark: "stays where it is",
    };
    let to = format!("{name}.to({device})");
    let device_memory =
        Memory { title: "device", subtitle: card, colour: DEVICE, tensor: to, remark: "is a second tensor" };
    lines.extend(host.drawn((2.0, 2.0), box_width, &size));
    lines.extend(device_memory.drawn(there, box_width, &size));

    let says = ["the link".to_owned(), format!("{} ({})", words::time(moved.over_link), moved.kind)];
    if narrow {
        let x = 40.0;
        lines.push(arrow((x, 2.0 + BOX_HEIGHT), (x, there.1)));
        for (row, words) in says.iter().enumerate() {
            let y = 2.0 + BOX_HEIGHT + 26.0 + row as f64 * LINE;
            lines.push(text((x + 20.0, y), "start").around(words));
        }
    } else {
        let (from, y) = (2.0 + box_width, 2.0 + BOX_HEIGHT / 2.0 + 6.0);
        lines.push(arrow((from, y), (there.0, y)));
        let middle = from + gap / 2.0;
        lines.push(text((middle, y - 16.0), "middle").around(&says[0]));
        lines.push(text((middle, y + 28.0), "middle").around(&says[1]));
    }

    let mut y = there.1 + BOX_HEIGHT + 28.0;
    let heading = format!("One copy of {size} takes ({})", moved.kind);
    lines.push(text((2.0, y), "start").with("font-weight", "bold").around(&heading));
    y += 8.0;
    let ways = [
        ("within the host's memory", moved.within_host, 2, HOST),
        ("over the link", moved.over_link, 1, COPY),
        ("within the device's memory", moved.within_device, 2, DEVICE),
    ];
    let longest =
        ways.iter().map(|(_, time, ..)| *time).max().unwrap_or_default().max(Duration::from_nanos(1));
    let (left, room) = if narrow { (2.0, width - 4.0) } else { (190.0, width - 192.0) };
    // Leave room for the figures to the right of the longest bar.
    let scale = (room - 150.0) / longest.as_secs_f64();
    for (way, time, passes, colour) in ways {
        if narrow {
            lines.push(text((2.0, y + 14.0), "start").around(way));
            y += LINE;
        } else {
            lines.push(text((left - 8.0, y + 12.0), "end").around(way));
        }
        let length = (time.as_secs_f64() * scale).max(1.0);
        let bar = rect((left, y + 1.0), (length, BAR)).pale(colour, 0.35).empty();
        let figures = format!("{}, {}", words::time(time), words::rate(bytes.saturating_mul(passes), time));
        lines.push(titled(&format!("{way}: {figures} ({})", moved.kind), &bar));
        lines.push(text((left + length + 8.0, y + 12.0), "start").around(&figures));
        y += BAR + 9.0;
    }
    for note in ["Within a memory each byte is read and written,", "which counts twice in GB/s."] {
        lines.push(text((left, y + 12.0), "start").around(note));
        y += LINE;
    }
    svg::picture((width, y + 4.0), FONT, &lines)
}

struct Memory<'a> {
    title: &'a str,
    subtitle: &'a str,
    colour: &'static str,
    tensor: String,
    remark: &'a str,
}

impl Memory<'_> {
    fn drawn(&self, (left, top): (f64, f64), width: f64, size: &str) -> Vec<String> {
        let border = rect((left, top), (width, BOX_HEIGHT)).with("rx", 6).with("fill", "none");
        let inner = (left + 12.0, top + 52.0);
        let tensor = rect(inner, (width - 24.0, 42.0));
        vec![
            border.with("stroke", self.colour).with("stroke-width", 2).empty(),
            text((inner.0, top + 20.0), "start").with("font-weight", "bold").around(self.title),
            text((inner.0, top + 20.0 + LINE), "start").around(self.subtitle),
            Role::Data.look(tensor.with("rx", 3), true),
            text((inner.0 + 8.0, inner.1 + 17.0), "start").with("font-weight", "bold").around(&self.tensor),
            text((inner.0 + 8.0, inner.1 + 34.0), "start").around(size),
            text((inner.0, inner.1 + 42.0 + 22.0), "start").around(self.remark),
        ]
    }
}

/// The arrow of a copy.
fn arrow((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    const HEAD: f64 = 12.0;
    let upright = x1 == x2;
    let (shaft, head) = if upright {
        let low = y2 - HEAD;
        (format!("M{x1:.1} {y1:.1}V{low:.1}"), format!("M{:.1} {low:.1}h18l-9 {HEAD}z", x1 - 9.0))
    } else {
        let right = x2 - HEAD;
        (format!("M{x1:.1} {y1:.1}H{right:.1}"), format!("M{right:.1} {:.1}v18l{HEAD} -9z", y1 - 9.0))
    };
    let path = |d: String| element("path").with("d", d);
    path(shaft).with("fill", "none").with("stroke", COPY).with("stroke-width", 6).empty()
        + &path(head).with("fill", COPY).with("stroke", CURRENT).with("stroke-width", 0).empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, assert_drawn};

    fn moved(bytes: u64, [within_host, over_link, within_device]: [u64; 3]) -> Moved {
        Moved {
            name: "x".to_owned(),
            bytes,
            device: "cuda:0".to_owned(),
            card: "Tesla T4 (simulated)".to_owned(),
            within_host: Duration::from_nanos(within_host),
            over_link: Duration::from_nanos(over_link),
            within_device: Duration::from_nanos(within_device),
            kind: "modelled",
        }
    }

    #[test]
    fn both_memories_are_there_and_each_way_has_a_bar_as_long_as_it_takes() {
        let drawing = picture(&moved(1 << 24, [1_000_000, 4_000_000, 500_000]));
        assert_drawn(&drawing);
        for svg in [&drawing.svg, drawing.narrow.as_ref().unwrap()] {
            let texts = all(svg, "text");
            let wanted =
                ["host", "device", "Tesla T4 (simulated)", "x", "x.to(cuda:0)", "16 MiB", "4 ms (modelled)"];
            assert!(wanted.iter().all(|wanted| texts.iter().any(|text| text == wanted)), "{texts:?}");
            assert!(texts.contains(&"4 ms, 4.19 GB/s".to_owned()), "{texts:?}");
            assert!(texts.contains(&"500 µs, 67.1 GB/s".to_owned()), "read and written: {texts:?}");
            let bars = svg.lines().filter(|line| line.contains(" height=\"14.0\""));
            let length = |bar: &str| {
                bar.split_once(" width=\"").unwrap().1.split('"').next().unwrap().parse().unwrap()
            };
            let lengths: Vec<f64> = bars.map(length).collect();
            assert!(
                (lengths[1] / lengths[0] - 4.0).abs() < 0.02 && (lengths[1] / lengths[2] - 8.0).abs() < 0.03
            );
        }
    }

    #[test]
    fn nothing_and_far_too_much_are_drawn_as_well() {
        for (bytes, times) in [(0, [0, 0, 0]), (1, [1, 0, u64::MAX]), (u64::MAX, [u64::MAX; 3])] {
            assert_drawn(&picture(&moved(bytes, times)));
        }
    }
}
