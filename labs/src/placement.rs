//! Which tensor lives where, as SVG that a page shows in its own colours.

use std::fmt::Write;

use todevice::{Device, Tensor};

use crate::chart::escape;

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

/// The name of a role, its colour, which stands out on white and on black, and the dashes of its border for
/// whoever cannot tell colours apart.
const LOOKS: [(Role, &str, &str, &str); 5] = [
    (Role::Data, "data", "#1c7ed6", ""),
    (Role::Parameter, "parameters", "#d9480f", "8 3"),
    (Role::Gradient, "gradients", "#2b8a3e", "2 2"),
    (Role::Optimizer, "optimizer state", "#ae3ec9", "10 3 2 3"),
    (Role::Activation, "activations", "#868e96", "4 4"),
];

/// The memories side by side, that of the host first, each with the things that live in it as boxes.
///
/// ```
/// use labs::placement::{Role, Thing, picture};
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
    let mut drawn = String::new();
    let mut bottom: f64 = 0.0;
    for (column, device) in devices.iter().enumerate() {
        let x = column as f64 * (width + GAP);
        let title = if device.is_cuda() { format!("{device} memory") } else { "host memory".to_owned() };
        text(&mut drawn, x + GAP, LINE + 4.0, "font-weight=\"bold\" ", &title);
        let here = things.iter().filter(|thing| thing.device == *device);
        let total = format!("{} bytes", here.map(|thing| thing.bytes).sum::<usize>());
        text(
            &mut drawn,
            x + width - 2.0 * GAP,
            LINE + 4.0,
            "font-weight=\"bold\" text-anchor=\"end\" ",
            &total,
        );
        let mut y = LINE + 14.0;
        for thing in things.iter().filter(|thing| thing.device == *device) {
            boxed(&mut drawn, thing, (x + GAP, y), width - 2.0 * GAP);
            y += BOX + GAP;
        }
        bottom = bottom.max(y);
    }
    for column in 0..devices.len() {
        let (x, width, height) = (column as f64 * (width + GAP) + 1.0, width - 2.0, bottom - 2.0);
        let _ = writeln!(
            drawn,
            "<rect x=\"{x:.1}\" y=\"1\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\" fill=\"none\" \
             stroke=\"currentColor\" stroke-width=\"1.5\"/>"
        );
    }
    let several = things.iter().any(|thing| thing.role != things[0].role);
    let height = if several { legend(&mut drawn, things, bottom + GAP) } else { bottom + 2.0 };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"14\" fill=\"currentColor\">\n{drawn}</svg>\n"
    )
}

fn boxed(svg: &mut String, thing: &Thing, (x, y): (f64, f64), width: f64) {
    frame(svg, thing.role, (x, y), width, BOX);
    text(svg, x + GAP, y + LINE, "", &thing.name);
    let bytes = format!("{} bytes", thing.bytes);
    text(svg, x + width - GAP, y + LINE, "text-anchor=\"end\" ", &bytes);
    text(svg, x + GAP, y + 2.0 * LINE, "", &thing.sizes);
}

/// A border and a pale ground in the look of a role.
fn frame(svg: &mut String, role: Role, (x, y): (f64, f64), width: f64, height: f64) {
    let (_, _, colour, dashes) = LOOKS[role as usize];
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"3\" fill=\"{colour}\" \
         fill-opacity=\"0.18\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>"
    );
}

/// The roles that occur, from `y` on; returns where it ends.
fn legend(svg: &mut String, things: &[Thing], y: f64) -> f64 {
    let (mut x, mut y) = (2.0, y);
    for (role, name, ..) in LOOKS {
        if things.iter().all(|thing| thing.role != role) {
            continue;
        }
        let width = 30.0 + 7.6 * name.chars().count() as f64 + 2.0 * GAP;
        if x + width > WIDTH {
            (x, y) = (2.0, y + LINE + 4.0);
        }
        frame(svg, role, (x, y + 2.0), 22.0, 14.0);
        text(svg, x + 30.0, y + 14.0, "", name);
        x += width;
    }
    y + LINE + 4.0
}

fn text(svg: &mut String, x: f64, y: f64, attributes: &str, text: &str) {
    let _ = writeln!(svg, "<text {attributes}x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(text));
}
