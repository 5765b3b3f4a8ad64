//! All placements of a layer's two operands, and the outcome of each.

use std::time::Duration;

use todevice::Device;

use crate::Role;
use crate::colour::{CURRENT, DEVICE, HOST};
use crate::drawing::{Drawing, is_narrow};
use crate::svg::{self, element, rect, text, titled};
use crate::words;

/// A model and data, each in a memory, and the outcome.
#[derive(Clone, Debug)]
pub struct Placement {
    pub model: Device,
    pub data: Device,
    /// The time of a training step, or the error.
    pub outcome: Result<Duration, String>,
}

const FONT: u32 = 13;
const LINE: f64 = 17.0;
const GAP: f64 = 10.0;
const MEMORY: f64 = 76.0;
const CHIP: f64 = 24.0;
const BAR: f64 = 10.0;

/// Draws each placement: both memories, with the model and the data in them, and below a bar for the time of a
/// step, all to one scale. The text form is a table with a row for each place of the model.
///
/// ```
/// use std::time::Duration;
/// use drawing::quadrants::{Placement, picture};
/// use todevice::Device;
///
/// let [cpu, gpu] = [Device::Cpu, Device::cuda(0)];
/// let slow = Placement { model: cpu, data: cpu, outcome: Ok(Duration::from_micros(3322)) };
/// let wrong = Placement { model: cpu, data: gpu, outcome: Err("error: two devices".to_owned()) };
/// let drawing = picture(&[slow, wrong], "modelled");
/// assert_eq!(drawing.text.unwrap(), "\
/// a step, modelled  data on cpu      data on cuda:0
/// model on cpu      trains, 3.32 ms  error: two devices");
/// ```
pub fn picture(placements: &[Placement], kind: &str) -> Drawing {
    Drawing::of(|width| drawn(placements, kind, width)).with_text(as_text(placements, kind))
}

fn drawn(placements: &[Placement], kind: &str, width: f64) -> String {
    let times = placements.iter().filter_map(|placement| placement.outcome.as_ref().ok());
    let longest = times.max().copied().unwrap_or_default().max(Duration::from_nanos(1));
    let columns = different(placements.iter().map(|placement| placement.data)).len().max(1);
    let cell = (width - 2.0 - GAP * (columns - 1) as f64) / columns as f64;
    let mut lines = Vec::new();
    let (mut y, mut bottom) = (1.0, 1.0);
    for row in placements.chunks(columns) {
        for (column, placement) in row.iter().enumerate() {
            let corner = (1.0 + column as f64 * (cell + GAP), y);
            bottom = cell_of(placement, longest, corner, cell, &mut lines);
        }
        y = bottom + GAP;
    }
    let note = format!("Bars: the time of one training step, {kind}, to one scale.");
    let note = if is_narrow(width) { format!("Bars: the time of a step, {kind}.") } else { note };
    lines.push(text((1.0, y + 10.0), "start").around(&note));
    svg::picture((width, y + LINE), FONT, &lines)
}

/// Draws one placement; returns its lower end.
fn cell_of(
    Placement { model, data, outcome }: &Placement,
    longest: Duration,
    (left, top): (f64, f64),
    width: f64,
    lines: &mut Vec<String>,
) -> f64 {
    const PAD: f64 = 8.0;
    let inner = width - 2.0 * PAD;
    let half = (inner - PAD) / 2.0;
    let height = PAD + MEMORY + LINE + 8.0 + BAR + PAD;
    let frame = rect((left, top), (width, height)).with("rx", 6).with("fill", "none");
    lines.push(frame.with("stroke", CURRENT).with("stroke-opacity", 0.4).empty());
    // The host's memory on the left, the device's on the right, each with its contents.
    let device = [*model, *data].into_iter().find(|device| device.is_cuda()).unwrap_or(Device::cuda(0));
    let at = |device: &Device| left + PAD + if device.is_cuda() { half + PAD } else { 0.0 };
    for (place, name, colour) in [(Device::Cpu, "cpu".to_owned(), HOST), (device, device.to_string(), DEVICE)]
    {
        let memory = rect((at(&place), top + PAD), (half, MEMORY)).with("rx", 4).with("fill", "none");
        lines.push(memory.with("stroke", colour).with("stroke-width", 2).empty());
        let label = (at(&place) + half / 2.0, top + PAD + MEMORY - 6.0);
        lines.push(text(label, "middle").around(&name));
    }
    // Side by side if they are in the same memory and there is room, else one below the other.
    let chip = (half - 2.0 * PAD).min(64.0);
    let place = |device: &Device, row: f64| (at(device) + (half - chip) / 2.0, top + PAD + 6.0 + row * 24.0);
    let chips = [("model", Role::Parameter, place(model, 0.0)), ("data", Role::Data, place(data, 1.0))];
    for (name, role, corner) in chips {
        lines.push(role.look(rect(corner, (chip, CHIP - 4.0)).with("rx", 3), role == Role::Data));
        lines.push(text((corner.0 + chip / 2.0, corner.1 + 14.5), "middle").around(name));
    }
    let y = top + PAD + MEMORY + LINE;
    let words = match outcome {
        Ok(time) => format!("trains: {} a step", words::time(*time)),
        Err(error) => error.clone(),
    };
    if outcome.is_err() {
        lines.push(cross((left + PAD + 5.0, y - 5.0)));
    }
    let indent = if outcome.is_err() { 18.0 } else { 0.0 };
    lines.push(text((left + PAD + indent, y), "start").with("font-weight", "bold").around(&words));
    if let Ok(time) = outcome {
        let share = time.as_secs_f64() / longest.as_secs_f64();
        let colour = if model.is_cuda() { DEVICE } else { HOST };
        let bar = rect((left + PAD, y + 8.0), ((inner * share).max(1.0), BAR)).pale(colour, 0.35).empty();
        lines.push(titled(&words, &bar));
    }
    top + height
}

/// A cross: this placement does not work.
fn cross((x, y): (f64, f64)) -> String {
    let path = format!("M{:.1} {:.1}l10 10m0 -10l-10 10", x - 5.0, y - 5.0);
    let path = element("path").with("d", path).with("fill", "none");
    path.with("stroke", CURRENT).with("stroke-width", 2.5).empty()
}

fn different(devices: impl Iterator<Item = Device>) -> Vec<Device> {
    let mut different = Vec::new();
    for device in devices {
        if !different.contains(&device) {
            different.push(device);
        }
    }
    different
}

fn as_text(placements: &[Placement], kind: &str) -> String {
    let data = different(placements.iter().map(|placement| placement.data));
    let mut table = vec![[format!("a step, {kind}")].into_iter().collect::<Vec<String>>()];
    table[0].extend(data.iter().map(|device| format!("data on {device}")));
    for row in placements.chunks(data.len().max(1)) {
        let outcome = |placement: &Placement| match &placement.outcome {
            Ok(time) => format!("trains, {}", words::time(*time)),
            Err(error) => error.clone(),
        };
        let model = format!("model on {}", row[0].model);
        table.push([model].into_iter().chain(row.iter().map(outcome)).collect());
    }
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<String>>().join("  ").trim_end().to_owned()
    };
    table.iter().map(line).collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, assert_drawn};

    fn four(slow: u64, fast: u64) -> Vec<Placement> {
        let [cpu, gpu] = [Device::Cpu, Device::cuda(0)];
        let placement = |model, data, outcome| Placement { model, data, outcome };
        let wrong = || Err("error: two devices".to_owned());
        let takes = |nanoseconds| Ok(Duration::from_nanos(nanoseconds));
        vec![
            placement(cpu, cpu, takes(slow)),
            placement(cpu, gpu, wrong()),
            placement(gpu, cpu, wrong()),
            placement(gpu, gpu, takes(fast)),
        ]
    }

    #[test]
    fn each_cell_has_both_memories_and_what_is_in_them() {
        let drawing = picture(&four(3_322_000, 443_000), "modelled");
        assert_drawn(&drawing);
        let texts = all(&drawing.svg, "text");
        let count = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
        assert_eq!(["cpu", "cuda:0", "model", "data", "error: two devices"].map(count), [4, 4, 4, 4, 2]);
        assert_eq!(all(&drawing.svg, "title"), ["trains: 3.32 ms a step", "trains: 443 µs a step"]);
        let text = "a step, modelled  data on cpu         data on cuda:0\n\
                    model on cpu      trains, 3.32 ms     error: two devices\n\
                    model on cuda:0   error: two devices  trains, 443 µs";
        assert_eq!(drawing.text.as_deref(), Some(text));
    }

    #[test]
    fn none_one_and_the_longest_times_are_drawn_as_well() {
        assert_drawn(&picture(&[], "modelled"));
        assert_drawn(&picture(&four(1, 0)[..1], "measured"));
        assert_drawn(&picture(&four(u64::MAX, 1), "measured"));
    }
}
