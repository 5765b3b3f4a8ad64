//! Charts as SVG.

use crate::Role;
use crate::colour::{DEVICE, HOST};
use crate::svg::{self, element, line, rect, text, titled};
use crate::words;

/// A line in a chart: its name, whether it belongs to a device rather than the host, and its points.
pub struct Series<'a> {
    pub name: &'a str,
    pub on_device: bool,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 48.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 52.0;

/// Draws a chart with logarithmic axes: powers of two along x, powers of ten up y. All values must be positive.
///
/// ```
/// use drawing::chart::{Series, log_log};
/// let cpu = Series { name: "CPU", on_device: false, points: vec![(16.0, 0.01), (32.0, 0.09)] };
/// let svg = log_log("size", "time (ms)", &[cpu]);
/// assert!(svg.starts_with("<svg ") && svg.contains(">CPU</text>"));
/// ```
pub fn log_log(x_label: &str, y_label: &str, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let (first, last) = range(points().map(|(x, _)| x.log2()));
    let (low, high) = range(points().map(|(_, y)| y.log10()));
    let (low, high) = (low.floor(), high.ceil());
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let across = |x: f64| LEFT + (x.log2() - first) / (last - first).max(1.0) * (right - LEFT);
    let down = |y: f64| bottom - (y.log10() - low) / (high - low).max(1.0) * (bottom - TOP);

    let mut lines = Vec::new();
    for power in low as i32..=high as i32 {
        let (y, value) =
            (down(10f64.powi(power)), format!("{:.*}", (-power).max(0) as usize, 10f64.powi(power)));
        lines.push(line((LEFT, y), (right, y), 0.3));
        lines.push(text((LEFT - 8.0, y + 4.0), "end").around(&value));
    }
    for power in first.ceil() as i32..=last.floor() as i32 {
        let x = across(2f64.powi(power));
        lines.push(line((x, bottom), (x, bottom + 5.0), 0.3));
        lines.push(text((x, bottom + 19.0), "middle").around(&2f64.powi(power).to_string()));
    }
    lines.push(text(((LEFT + right) / 2.0, HEIGHT - 8.0), "middle").around(x_label));
    let upwards = format!("translate(16 {:.1}) rotate(-90)", (TOP + bottom) / 2.0);
    let y_axis = element("text").with("transform", upwards).with("text-anchor", "middle");
    lines.push(y_axis.around(y_label));
    for Series { name, on_device, points } in series {
        // Dashed for readers who cannot tell the colours apart.
        let (colour, dashes) = if *on_device { (DEVICE, "7 4") } else { (HOST, "") };
        let corners: Vec<String> =
            points.iter().map(|(x, y)| format!("{:.1},{:.1}", across(*x), down(*y))).collect();
        let polyline = element("polyline").with("points", corners.join(" ")).with("fill", "none");
        let polyline = polyline.with("stroke", colour).with("stroke-width", 2.5);
        lines.push(polyline.with("stroke-dasharray", dashes).empty());
        for (x, y) in points {
            let circle = element("circle").lengths([("cx", across(*x)), ("cy", down(*y))]);
            lines.push(circle.with("r", 3.5).with("fill", colour).empty());
        }
        if let Some((x, y)) = points.last() {
            lines.push(text((across(*x) + 10.0, down(*y) + 4.0), "start").around(name));
        }
    }
    svg::picture((WIDTH, HEIGHT), 13, &lines)
}

/// A bar of [`stacked`]: its name, and its parts from left to right, in bytes.
pub struct Stack<'a> {
    pub name: &'a str,
    pub parts: Vec<u64>,
}

const STACK_WIDTH: f64 = 420.0;
const STACK_LEFT: f64 = 72.0;
const STACK: f64 = 26.0;

/// Draws horizontal memory bars to one scale, each made of parts. The legend names the parts, which are drawn in
/// the style of their roles.
///
/// ```
/// use drawing::Role;
/// use drawing::chart::{Stack, stacked};
/// let bars = [Stack { name: "model", parts: vec![512, 0] }, Stack { name: "batch", parts: vec![512, 1024] }];
/// let svg = stacked(&[("parameters", Role::Parameter), ("batch", Role::Data)], &bars);
/// assert!(svg.contains("<title>batch, batch: 1 KiB</title>") && svg.contains(">1.5 KiB</text>"));
/// ```
pub fn stacked(owners: &[(&str, Role)], bars: &[Stack]) -> String {
    let is_second = |index: usize| owners[..index].iter().any(|(_, role)| *role == owners[index].1);
    let sum = |bar: &Stack| bar.parts.iter().sum::<u64>();
    let longest = bars.iter().map(sum).max().unwrap_or(0).max(1);
    // Leave room for the sum to the right of the longest bar.
    let scale = (STACK_WIDTH - STACK_LEFT - 84.0) / longest as f64;
    let mut lines = Vec::new();
    let mut y = 4.0;
    for bar in bars {
        lines.push(text((STACK_LEFT - 8.0, y + 18.0), "end").around(bar.name));
        let mut x = STACK_LEFT;
        for (index, (part, (name, role))) in bar.parts.iter().zip(owners).enumerate() {
            let width = *part as f64 * scale;
            if *part > 0 {
                let title = format!("{}, {name}: {}", bar.name, words::bytes(*part));
                let shape = rect((x, y), (width.max(1.0), STACK));
                lines.push(titled(&title, &role.look(shape, is_second(index))));
            }
            x += width;
        }
        lines.push(text((x + 6.0, y + 18.0), "start").around(&words::bytes(sum(bar))));
        y += STACK + 8.0;
    }
    let mut x = 2.0;
    for (index, (name, role)) in owners.iter().enumerate() {
        let width = 28.0 + 7.2 * name.chars().count() as f64 + 14.0;
        if x + width > STACK_WIDTH {
            (x, y) = (2.0, y + 22.0);
        }
        lines.push(role.look(rect((x, y), (20.0, 14.0)), is_second(index)));
        lines.push(text((x + 28.0, y + 12.0), "start").around(name));
        x += width;
    }
    svg::picture((STACK_WIDTH, y + 22.0), 13, &lines)
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) }
}
