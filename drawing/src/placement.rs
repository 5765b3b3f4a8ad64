//! Which tensor lives where, as SVG.

use todevice::{Device, Tensor};

use crate::colour::{BLUE, CURRENT, GREEN, GREY, ORANGE, PURPLE};
use crate::svg::{self, Element, element, rect};

/// What a tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Data,
    Parameter,
    Gradient,
    Optimizer,
    Activation,
}

/// Tensors, or numbers, that belong together and live in one place.
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
    /// Tensors of one device.
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

const WIDTH: f64 = 480.0;
const GAP: f64 = 8.0;
const LINE: f64 = 19.0;
const BOX: f64 = 2.0 * LINE + 10.0;

/// The name of a role, its colour, and the dashes of its border for whoever cannot tell colours apart.
const LOOKS: [(Role, &str, &str, &str); 5] = [
    (Role::Data, "data", BLUE, ""),
    (Role::Parameter, "parameters", ORANGE, "8 3"),
    (Role::Gradient, "gradients", GREEN, "2 2"),
    (Role::Optimizer, "optimizer state", PURPLE, "10 3 2 3"),
    (Role::Activation, "activations", GREY, "4 4"),
];

/// The memories side by side, that of the host first, each with the things that live in it as boxes.
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
    let mut lines = Vec::new();
    let mut bottom: f64 = 0.0;
    for (column, device) in devices.iter().enumerate() {
        let x = column as f64 * (width + GAP);
        let title = if device.is_cuda() { format!("{device} memory") } else { "host memory".to_owned() };
        let bold = || element("text").with("font-weight", "bold");
        lines.push(at(bold(), x + GAP, LINE + 4.0).around(&title));
        let here = || things.iter().filter(|thing| thing.device == *device);
        let total = format!("{} bytes", here().map(|thing| thing.bytes).sum::<usize>());
        lines.push(at(ending(bold()), x + width - 2.0 * GAP, LINE + 4.0).around(&total));
        let mut y = LINE + 14.0;
        for thing in here() {
            lines.extend(boxed(thing, (x + GAP, y), width - 2.0 * GAP));
            y += BOX + GAP;
        }
        bottom = bottom.max(y);
    }
    for column in 0..devices.len() {
        let x = column as f64 * (width + GAP) + 1.0;
        let size = [("width", width - 2.0), ("height", bottom - 2.0)];
        let border =
            element("rect").lengths([("x", x)]).with("y", 1).lengths(size).with("rx", 6).with("fill", "none");
        lines.push(border.with("stroke", CURRENT).with("stroke-width", 1.5).empty());
    }
    let several = things.iter().any(|thing| thing.role != things[0].role);
    let height = if several { legend(&mut lines, things, bottom + GAP) } else { bottom + 2.0 };
    svg::picture((WIDTH, height), 14, &lines)
}

fn boxed(thing: &Thing, (x, y): (f64, f64), width: f64) -> [String; 4] {
    let text = || element("text");
    [
        frame(thing.role, (x, y), (width, BOX)),
        at(text(), x + GAP, y + LINE).around(&thing.name),
        at(ending(text()), x + width - GAP, y + LINE).around(&format!("{} bytes", thing.bytes)),
        at(text(), x + GAP, y + 2.0 * LINE).around(&thing.sizes),
    ]
}

/// A border and a pale ground in the look of a role.
fn frame(role: Role, corner: (f64, f64), size: (f64, f64)) -> String {
    let (_, _, colour, dashes) = LOOKS[role as usize];
    let frame = rect(corner, size).with("rx", 3).pale(colour, 0.18);
    frame.with("stroke-width", 2).with("stroke-dasharray", dashes).empty()
}

/// The roles that occur, from `y` on; returns where it ends.
fn legend(lines: &mut Vec<String>, things: &[Thing], y: f64) -> f64 {
    let (mut x, mut y) = (2.0, y);
    for (role, name, ..) in LOOKS {
        if things.iter().all(|thing| thing.role != role) {
            continue;
        }
        let width = 30.0 + 7.6 * name.chars().count() as f64 + 2.0 * GAP;
        if x + width > WIDTH {
            (x, y) = (2.0, y + LINE + 4.0);
        }
        lines.push(frame(role, (x, y + 2.0), (22.0, 14.0)));
        lines.push(at(element("text"), x + 30.0, y + 14.0).around(name));
        x += width;
    }
    y + LINE + 4.0
}

fn at(text: Element, x: f64, y: f64) -> Element {
    text.lengths([("x", x), ("y", y)])
}

fn ending(text: Element) -> Element {
    text.with("text-anchor", "end")
}
