//! Where a parameter and its optimizer state are after several orders of the same steps.

use todevice::Device;

use crate::Role;
use crate::colour::{CURRENT, DEVICE, HOST};
use crate::drawing::{Drawing, is_narrow};
use crate::svg::{self, rect, text};

/// The order of the steps, the resulting place of each tensor, and the outcome of the next training step.
#[derive(Clone, Debug)]
pub struct Order {
    pub name: &'static str,
    /// The parameter first, then its optimizer state.
    pub places: Vec<(&'static str, Device)>,
    /// `runs`, or how it fails.
    pub outcome: &'static str,
}

const FONT: u32 = 13;
const LINE: f64 = 17.0;
const GAP: f64 = 10.0;
const PAD: f64 = 6.0;
const CHIP: f64 = 20.0;

/// Draws each order: both memories with their contents, and the outcome of the next step below.
///
/// ```
/// use drawing::orders::{Order, picture};
/// use todevice::Device;
///
/// let gpu = Device::cuda(0);
/// let places = vec![("parameter", gpu), ("exp_avg", Device::Cpu)];
/// let drawing = picture(&[Order { name: "create, load, move", places, outcome: "fails" }], gpu);
/// assert!(drawing.svg.contains(">the next training step</text>") && drawing.svg.contains(">fails</text>"));
/// ```
pub fn picture(orders: &[Order], device: Device) -> Drawing {
    Drawing::of(|width| drawn(orders, device, width))
}

fn drawn(orders: &[Order], device: Device, width: f64) -> String {
    // Side by side where there is room.
    let columns = if is_narrow(width) { 1 } else { orders.len().max(1) };
    let cell = (width - 2.0 - GAP * (columns - 1) as f64) / columns as f64;
    let height = height(orders);
    let mut lines = Vec::new();
    for (index, order) in orders.iter().enumerate() {
        let left = 1.0 + (index % columns) as f64 * (cell + GAP);
        let top = 1.0 + (index / columns) as f64 * (height + GAP);
        cell_of(order, device, (left, top), (cell, height), &mut lines);
    }
    let rows = orders.len().div_ceil(columns).max(1);
    svg::picture((width, 2.0 + rows as f64 * (height + GAP) - GAP), FONT, &lines)
}

/// A line for the name, the memories, and two lines for the step.
fn height(orders: &[Order]) -> f64 {
    PAD + LINE + memory(orders) + 2.0 * LINE + PAD + 4.0
}

/// A memory has room for all the tensors, with its name below them.
fn memory(orders: &[Order]) -> f64 {
    let most = orders.iter().map(|order| order.places.len()).max().unwrap_or(0);
    PAD + most as f64 * (CHIP + 4.0) + LINE
}

fn cell_of(
    order: &Order,
    device: Device,
    (left, top): (f64, f64),
    (width, height): (f64, f64),
    lines: &mut Vec<String>,
) {
    let frame = rect((left, top), (width, height)).with("rx", 6).with("fill", "none");
    lines.push(frame.with("stroke", CURRENT).with("stroke-opacity", 0.4).empty());
    let middle = left + width / 2.0;
    lines.push(text((middle, top + PAD + 8.0), "middle").with("font-weight", "bold").around(order.name));
    let half = (width - 3.0 * PAD) / 2.0;
    let top = top + PAD + LINE;
    let deep = height - 2.0 * PAD - 3.0 * LINE - 4.0;
    for (place, colour, left) in [(Device::Cpu, HOST, left + PAD), (device, DEVICE, left + 2.0 * PAD + half)]
    {
        let frame = rect((left, top), (half, deep)).with("rx", 4).with("fill", "none");
        lines.push(frame.with("stroke", colour).with("stroke-width", 2).empty());
        lines.push(text((left + half / 2.0, top + deep - 6.0), "middle").around(&place.to_string()));
        for (row, (name, found)) in order.places.iter().enumerate() {
            if found.is_cuda() != place.is_cuda() {
                continue;
            }
            let role = if row == 0 { Role::Parameter } else { Role::Optimizer };
            let corner = (left + 3.0, top + PAD + row as f64 * (CHIP + 4.0));
            lines.push(role.look(rect(corner, (half - 6.0, CHIP)).with("rx", 3), false));
            lines.push(text((left + half / 2.0, corner.1 + 14.5), "middle").around(name));
        }
    }
    // "Training" step, since Adam's counter is also called `step`.
    for (line, words) in [(1.0, "the next training step"), (2.0, order.outcome)] {
        lines.push(text((middle, top + deep + line * LINE), "middle").around(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, assert_drawn};

    #[test]
    fn each_order_has_both_memories_and_what_is_in_them() {
        let gpu = Device::cuda(0);
        let order = |name, moment, outcome| Order {
            name,
            places: vec![("parameter", gpu), ("exp_avg", moment), ("step", Device::Cpu)],
            outcome,
        };
        let orders = [
            order("create, load, move", Device::Cpu, "fails: two devices"),
            order("create, move, load", gpu, "runs"),
            order("move, create, load", gpu, "runs"),
        ];
        let drawing = picture(&orders, gpu);
        assert_drawn(&drawing);
        let texts = all(&drawing.svg, "text");
        let count = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
        let expected = ["cpu", "cuda:0", "parameter", "exp_avg", "step", "the next training step", "runs"];
        assert_eq!(expected.map(count), [3, 3, 3, 3, 3, 3, 2]);
        assert_drawn(&picture(&[], gpu));
        assert_drawn(&picture(&orders[..1], gpu));
    }
}
