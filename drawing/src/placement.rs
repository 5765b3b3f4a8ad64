//! Which tensor is in which memory, as SVG.

use todevice::{Device, Tensor};

pub use crate::Role;
use crate::colour::{DEVICE, HOST};
use crate::svg::{self, rect, text};

/// Related tensors, or numbers, in one memory.
#[derive(Clone, Debug)]
pub struct Thing {
    pub name: String,
    pub role: Role,
    /// The sizes of each: `64×16, 64`.
    pub sizes: String,
    pub bytes: usize,
    pub device: Device,
}

impl Thing {
    /// Groups tensors on one device.
    pub fn of(name: &str, role: Role, tensors: &[Tensor]) -> Thing {
        let sizes: Vec<String> = tensors.iter().map(|tensor| sizes(tensor.sizes())).collect();
        let bytes = tensors.iter().map(|tensor| tensor.numel() * tensor.dtype().size()).sum();
        let device = tensors.first().map_or(Device::Cpu, Tensor::device);
        Thing { name: name.to_owned(), role, sizes: sizes.join(", "), bytes, device }
    }
}

fn sizes(sizes: &[usize]) -> String {
    match sizes {
        [] => "one number".to_owned(),
        sizes => sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("×"),
    }
}

const WIDTH: f64 = 420.0;
const GAP: f64 = 8.0;
const LINE: f64 = 17.0;
const BAR: f64 = 10.0;
/// Two lines of text and a bar.
const ROW: f64 = 2.0 * LINE + BAR + 8.0;
/// The minimum width of a bar.
const THINNEST: f64 = 2.0;
const LETTER: f64 = 7.1;

/// Draws the memories side by side, the host's first, each with its contents. A bar shows the bytes of each thing,
/// all to one scale.
///
/// ```
/// use drawing::placement::{Role, Thing, picture};
/// use todevice::Tensor;
///
/// let x = Tensor::zeros(&[1024, 16]).unwrap();
/// let svg = picture(&[Thing::of("x", Role::Data, &[x])]);
/// assert!(svg.contains(">host memory</text>") && svg.contains(">65536 bytes</text>"));
/// assert!(!svg.contains("cuda"));
/// ```
pub fn picture(things: &[Thing]) -> String {
    let mut devices = vec![Device::Cpu];
    for thing in things {
        if !devices.contains(&thing.device) {
            devices.push(thing.device);
        }
    }
    let width = (WIDTH - GAP * (devices.len() - 1) as f64) / devices.len() as f64;
    let longest = things.iter().map(|thing| thing.bytes).max().unwrap_or(0).max(1);
    let scale = (width - 2.0 * GAP) / longest as f64;
    let mut lines = Vec::new();
    let mut bottom: f64 = 0.0;
    for (column, device) in devices.iter().enumerate() {
        let left = column as f64 * (width + GAP) + GAP;
        let right = left + width - 2.0 * GAP;
        let title = if device.is_cuda() { format!("{device} memory") } else { "host memory".to_owned() };
        let here = || things.iter().filter(|thing| thing.device == *device);
        let total = format!("{} bytes", here().map(|thing| thing.bytes).sum::<usize>());
        let mut y = LINE + 4.0;
        lines.push(text((left, y), "start").with("font-weight", "bold").around(&title));
        lines.push(text((right, y), "end").with("font-weight", "bold").around(&total));
        y += GAP;
        for thing in here() {
            lines.push(text((left, y + LINE), "start").around(&thing.name));
            lines.push(text((right, y + LINE), "end").around(&format!("{} bytes", thing.bytes)));
            lines.push(text((left, y + 2.0 * LINE), "start").around(&thing.sizes));
            let length = (thing.bytes as f64 * scale).max(THINNEST);
            lines.push(bar(thing.role, (left, y + 2.0 * LINE + 5.0), length));
            y += ROW + GAP;
        }
        bottom = bottom.max(y);
    }
    for (column, device) in devices.iter().enumerate() {
        let corner = (column as f64 * (width + GAP) + 1.0, 1.0);
        let border = rect(corner, (width - 2.0, bottom - 2.0)).with("rx", 6).with("fill", "none");
        let colour = if device.is_cuda() { DEVICE } else { HOST };
        lines.push(border.with("stroke", colour).with("stroke-width", 2).empty());
    }
    let several = things.iter().any(|thing| thing.role != things[0].role);
    let mut y = if several { legend(&mut lines, things, bottom + GAP) } else { bottom };
    let least = (THINNEST / scale).ceil() as usize;
    let note = match things.iter().any(|thing| thing.bytes < least) {
        true => format!("All bars are to one scale; the thinnest stand for less than {least} bytes."),
        false => "All bars are to one scale.".to_owned(),
    };
    y += LINE;
    lines.push(text((2.0, y), "start").around(&note));
    svg::picture((WIDTH, y + GAP), 13, &lines)
}

fn bar(role: Role, corner: (f64, f64), length: f64) -> String {
    role.look(rect(corner, (length, BAR)), false)
}

/// Draws the legend of the roles that occur, from `y` down; returns its lower end.
fn legend(lines: &mut Vec<String>, things: &[Thing], mut y: f64) -> f64 {
    let mut x = 2.0;
    for role in Role::ALL.into_iter().filter(|role| things.iter().any(|thing| thing.role == *role)) {
        let width = 28.0 + LETTER * role.name().chars().count() as f64 + 2.0 * GAP;
        if x + width > WIDTH {
            (x, y) = (2.0, y + LINE + 4.0);
        }
        lines.push(bar(role, (x, y + 4.0), 20.0));
        lines.push(text((x + 28.0, y + 13.0), "start").around(role.name()));
        x += width;
    }
    y + LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing(bytes: usize, device: Device) -> Thing {
        Thing { name: format!("{bytes}"), role: Role::Data, sizes: String::new(), bytes, device }
    }

    /// The lengths of the bars, in the order of the things.
    fn lengths(svg: &str) -> Vec<f64> {
        let bars = svg.lines().filter(|line| line.contains(" height=\"10.0\""));
        bars.map(|bar| bar.split_once(" width=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap())
            .collect()
    }

    #[test]
    fn bars_are_as_long_as_their_bytes_in_all_memories() {
        let svg =
            picture(&[thing(4000, Device::Cpu), thing(1000, Device::Cpu), thing(2000, Device::cuda(0))]);
        let lengths = lengths(&svg);
        assert_eq!(lengths.iter().map(|length| length / lengths[0]).collect::<Vec<_>>(), [1.0, 0.25, 0.5]);
        assert!(svg.contains(">All bars are to one scale.<"), "{svg}");
    }

    #[test]
    fn what_is_too_small_to_draw_is_said() {
        let svg = picture(&[thing(65536, Device::Cpu), thing(4, Device::Cpu)]);
        assert_eq!(lengths(&svg), [404.0, THINNEST]);
        assert!(svg.contains("the thinnest stand for less than 325 bytes."), "{svg}");
    }

    #[test]
    fn a_memory_has_the_colour_of_whose_it_is() {
        let svg = picture(&[thing(4, Device::Cpu), thing(4, Device::cuda(0))]);
        let borders: Vec<&str> = svg.lines().filter(|line| line.contains("rx=")).collect();
        assert!(borders[0].contains(HOST) && borders[1].contains(DEVICE), "{svg}");
    }
}
