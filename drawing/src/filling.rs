//! How memory fills up over time, by owner, up to a limit.

use std::collections::HashMap;

use todevice_gpu::base::error::OutOfMemory;
use todevice_gpu::contract::events::{EventKind, Range, Trace};

use crate::Role;
use crate::colour::{CURRENT, WAIT};
use crate::drawing::Drawing;
use crate::svg::{self, Element, element, line, rect, text, titled};
use crate::words;

/// An owner of memory, and its role.
pub type Owner = (&'static str, Role);

/// A picture of a recording: how much of a device's memory each owner holds after each allocation or free.
#[derive(Clone, Debug)]
pub struct Filling<'a> {
    trace: &'a Trace,
    owners: &'a [Owner],
    /// The bytes of each owner after each change; the first column is the state at the start.
    columns: Vec<Vec<u64>>,
    /// The start of each column, in nanoseconds on the host's clock.
    begins: Vec<u64>,
    /// The bytes in the driver's segments after each change.
    reserved: Vec<u64>,
    refused: Option<&'a OutOfMemory>,
    limit: Option<u64>,
}

const FONT: u32 = 13;
const LINE: f64 = 17.0;
const TOP: f64 = 24.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 56.0;
/// Space to the right of the last column for the refused allocation.
const RIGHT: f64 = 30.0;

impl<'a> Filling<'a> {
    /// Collects the changes on a device in a recording. At the start, each owner holds some bytes, and the
    /// allocator has reserved some from the driver. `owner_of` returns a block's owner, by index: its arguments are
    /// the innermost named range in which the block was allocated, and whether the block outlived that range.
    pub fn of(
        trace: &'a Trace,
        device: usize,
        owners: &'a [Owner],
        (first, reserved): (Vec<u64>, u64),
        owner_of: impl Fn(&str, bool) -> usize,
    ) -> Filling<'a> {
        let calls = || trace.calls.iter().filter(|call| call.stream.device == device);
        // When each block is freed; an address that is reused has several times.
        let mut given_back: HashMap<u64, Vec<u64>> = HashMap::new();
        for call in calls() {
            if let EventKind::Free { address, .. } = call.kind {
                given_back.entry(address).or_default().push(call.begin);
            }
        }
        let mut blocks: HashMap<u64, (usize, u64)> = HashMap::new();
        let (mut columns, mut begins, mut reserved) = (vec![first], vec![trace.began], vec![reserved]);
        let mut segments: HashMap<u64, u64> = HashMap::new();
        for call in calls() {
            let mut column = columns[columns.len() - 1].clone();
            let mut held = reserved[reserved.len() - 1];
            match call.kind {
                EventKind::Allocate { address, bytes, .. } => {
                    let part = innermost(trace, call.begin);
                    let ends = given_back
                        .get(&address)
                        .and_then(|times| times.iter().find(|time| **time >= call.begin));
                    let stays = part.is_some_and(|part| ends.is_none_or(|end| *end > part.end));
                    let owner = owner_of(part.map_or("", |part| &part.name), stays);
                    column[owner] += bytes;
                    blocks.insert(address, (owner, bytes));
                }
                EventKind::Free { address, .. } => match blocks.remove(&address) {
                    Some((owner, bytes)) => column[owner] -= bytes,
                    None => continue, // Allocated before the recording began.
                },
                EventKind::DriverMalloc { address, bytes } => {
                    segments.insert(address, bytes);
                    held += bytes;
                }
                EventKind::DriverFree { address } => match segments.remove(&address) {
                    Some(bytes) => held -= bytes,
                    None => continue,
                },
                _ => continue,
            }
            columns.push(column);
            begins.push(call.begin);
            reserved.push(held);
        }
        Filling { trace, owners, columns, begins, reserved, refused: None, limit: None }
    }

    /// Sets the memory limit.
    pub fn limit(self, bytes: u64) -> Filling<'a> {
        Filling { limit: Some(bytes), ..self }
    }

    /// Adds the allocation that was refused at the end. Blocks freed while the program exits are left out.
    pub fn refused(mut self, error: &'a OutOfMemory) -> Filling<'a> {
        let sums: Vec<u64> = self.columns.iter().map(|column| column.iter().sum()).collect();
        let last_taken = sums.windows(2).rposition(|pair| pair[1] > pair[0]).map_or(0, |before| before + 1);
        // The error counts whole blocks, which may be slightly larger than the requested sizes.
        let after = (last_taken..sums.len()).rev();
        if let Some(last) = after.min_by_key(|column| sums[*column].abs_diff(error.allocated)) {
            self.columns.truncate(last + 1);
            self.begins.truncate(last + 1);
            self.reserved.truncate(last + 1);
            self.reserved[last] = error.reserved;
        }
        Filling { refused: Some(error), ..self }
    }

    /// The peak bytes of one owner, or of all together.
    pub fn peak(&self, owner: Option<&str>) -> u64 {
        let held = |column: &Vec<u64>| -> u64 {
            let owned = column.iter().zip(self.owners);
            owned
                .filter(|(_, (name, _))| owner.is_none_or(|owner| owner == *name))
                .map(|(bytes, _)| bytes)
                .sum()
        };
        self.columns.iter().map(held).max().unwrap_or(0)
    }

    fn drawn(&self, width: f64) -> String {
        // The allocator's reserved bytes at the end, plus the refused request.
        let asked = self.refused.map_or(0, |refused| refused.reserved + refused.tried);
        let most_reserved = self.reserved.iter().max().copied().unwrap_or(0);
        let highest = most_reserved.max(asked).max(self.limit.unwrap_or(0)).max(1);
        let bottom = TOP + HEIGHT;
        let up = |bytes: u64| bottom - bytes as f64 / highest as f64 * HEIGHT;
        let step = (width - LEFT - RIGHT) / self.columns.len() as f64;
        let across = |column: usize| LEFT + column as f64 * step;
        let mut lines = Vec::new();

        let tick = tick_of(highest);
        for bytes in (0..=highest / tick).map(|count| count * tick) {
            lines.push(line((LEFT, up(bytes)), (width - 1.0, up(bytes)), 0.2));
            lines.push(text((LEFT - 6.0, up(bytes) + 4.0), "end").around(&words::bytes(bytes)));
        }
        let reserved = self.area(&across, &|column| up(self.reserved[column]), &|_| bottom);
        lines.push(titled(KEPT, &kept(reserved)));
        for (owner, (name, role)) in self.owners.iter().enumerate() {
            let most = self.columns.iter().map(|column| column[owner]).max().unwrap_or(0);
            if most == 0 {
                continue;
            }
            let top = |count: usize| move |column: usize| up(self.columns[column][..count].iter().sum());
            let area = self.area(&across, &top(owner + 1), &top(owner));
            lines.push(titled(
                &format!("{name}: {} at most", words::bytes(most)),
                &self.look(owner, *role, area),
            ));
        }
        if let Some(refused) = self.refused {
            let (left, size) = (across(self.columns.len() - 1), RIGHT + step - 2.0);
            let (low, high) = (up(refused.reserved), up(asked));
            let shape = rect((left, high), (size, low - high)).with("fill", "none").with("stroke", WAIT);
            let title = format!("{} refused", words::bytes(refused.tried));
            let shape = shape.with("stroke-width", 2).with("stroke-dasharray", "4 3").empty();
            lines.push(titled(&title, &shape));
        }
        if let Some(limit) = self.limit {
            let y = up(limit);
            let path = element("path").with("d", format!("M{LEFT} {y:.1}H{:.1}", width - 1.0));
            lines.push(path.with("stroke", CURRENT).with("stroke-width", 2.5).empty());
            let words = format!("the limit: {}", words::bytes(limit));
            lines.push(text((LEFT + 4.0, y - 6.0), "start").with("font-weight", "bold").around(&words));
        }

        let mut y = self.stretches(&mut lines, bottom, &across);
        y += 10.0;
        let held = |owner: usize| self.columns.iter().any(|column| column[owner] > 0);
        let mut entries: Vec<(svg::Look, String)> = Vec::new();
        // In the order in which they are stacked, the highest first.
        for (owner, (name, role)) in self.owners.iter().enumerate().rev().filter(|(owner, _)| held(*owner)) {
            let look = move |corner, size| self.look(owner, *role, rect(corner, size));
            entries.push((Box::new(look), (*name).to_owned()));
        }
        entries.push((Box::new(|corner, size| kept(rect(corner, size))), KEPT.to_owned()));
        if let Some(refused) = self.refused {
            let look = |corner, size| {
                let shape = rect(corner, size).with("fill", "none").with("stroke", WAIT);
                shape.with("stroke-width", 2).with("stroke-dasharray", "4 3").empty()
            };
            entries.push((Box::new(look), format!("{} more, refused", words::bytes(refused.tried))));
        }
        y = svg::legend(&mut lines, (1.0, y, width), FONT, entries);
        svg::picture((width, y), FONT, &lines)
    }

    /// The area between two lines, which are constant between changes.
    fn area(
        &self,
        across: &dyn Fn(usize) -> f64,
        upper: &dyn Fn(usize) -> f64,
        lower: &dyn Fn(usize) -> f64,
    ) -> Element {
        let (mut there, mut back) = (String::new(), Vec::new());
        for column in 0..self.columns.len() {
            let ([from, to], [high, low]) =
                ([column, column + 1].map(across), [upper(column), lower(column)]);
            let sign = if column == 0 { 'M' } else { 'L' };
            there += &format!("{sign}{from:.1} {high:.1}H{to:.1}");
            back.push(format!("L{to:.1} {low:.1}H{from:.1}"));
        }
        back.reverse();
        element("path").with("d", there + &back.concat() + "Z")
    }

    fn look(&self, owner: usize, role: Role, shape: Element) -> String {
        let second = self.owners[..owner].iter().any(|(_, before)| *before == role);
        role.look(shape, second)
    }

    /// Draws the named ranges below the axis: outer ones between marks, inner ones where their names fit. Returns
    /// their lower end.
    fn stretches(&self, lines: &mut Vec<String>, bottom: f64, across: &dyn Fn(usize) -> f64) -> f64 {
        let column_at = |time: u64| self.begins.partition_point(|begin| *begin < time);
        let mut deepest = 0;
        for Range { name, begin, end, depth, .. } in &self.trace.ranges {
            let (from, to) = (across(column_at(*begin)), across(column_at(*end)));
            // Inner ranges are next to the axis.
            let row = if *depth == 0 { 1.0 } else { 0.0 };
            let y = bottom + 6.0 + row * (LINE + 6.0);
            let bracket = format!("M{from:.1} {y:.1}v5H{:.1}v-5", (to - 2.0).max(from + 1.0));
            let path = element("path").with("d", bracket).with("fill", "none").with("stroke", CURRENT);
            lines.push(titled(name, &path.with("stroke-opacity", 0.7).empty()));
            // The full name, or its first word.
            let names = [name.as_str(), name.split(' ').next().unwrap_or_default()];
            if let Some(name) = names.into_iter().find(|name| svg::wide(name, FONT) < to - from + 8.0) {
                lines.push(text(((from + to) / 2.0, y + 5.0 + 13.0), "middle").around(name));
            }
            deepest = deepest.max(depth + 1);
        }
        bottom + 8.0 + deepest.min(2) as f64 * (LINE + 8.0)
    }
}

impl From<Filling<'_>> for Drawing {
    fn from(filling: Filling<'_>) -> Drawing {
        Drawing::of(|width| filling.drawn(width))
    }
}

const KEPT: &str = "kept by the allocator, free";

/// Memory reserved from the driver: where no owner covers it, it is free.
fn kept(shape: Element) -> String {
    let border = shape.with("fill", "none").with("stroke", CURRENT).with("stroke-opacity", 0.6);
    border.with("stroke-width", 1).empty()
}

/// The innermost range at a time.
pub(crate) fn innermost(trace: &Trace, time: u64) -> Option<&Range> {
    let around = trace.ranges.iter().filter(|range| range.begin <= time && time < range.end);
    around.max_by_key(|range| range.depth)
}

/// The distance between byte ticks: a power of two, for at most six ticks.
fn tick_of(highest: u64) -> u64 {
    (0..63).map(|power| 1u64 << power).find(|tick| highest / tick <= 5).unwrap_or(1 << 63)
}

#[cfg(test)]
mod tests {
    use todevice::prelude::*;
    use todevice::trace::record_function;
    use todevice::{GpuError, Machine, cuda};

    use super::*;
    use crate::checks::{all, assert_drawn};

    const OWNERS: [Owner; 3] =
        [("model", Role::Parameter), ("kept", Role::Activation), ("passing", Role::Activation)];

    fn owner_of(part: &str, stays: bool) -> usize {
        if part == "make" && stays { 1 } else { 2 }
    }

    /// Allocates one mebibyte.
    fn block() -> Result<Tensor> {
        Tensor::ones((&[1 << 18], Device::cuda(0))) // Takes time, as in any program.
    }

    fn recorded(gpu: &str, program: impl FnOnce() -> Result<()>) -> Trace {
        let machine: Machine = gpu.parse().unwrap();
        machine.enter(|| {
            let (done, trace) = machine.profile(program);
            done.unwrap();
            trace
        })
    }

    #[test]
    fn a_block_belongs_to_the_part_it_was_taken_in_and_to_whether_it_stayed() {
        let trace = recorded("sim:t4", || {
            record_function("step", || {
                let _kept = record_function("make", || {
                    drop(block()?);
                    Ok::<_, Error>([block()?, block()?])
                })?;
                record_function("use", || block().map(drop))
            })
        });
        let filling = Filling::of(&trace, 0, &OWNERS, (vec![4 << 20, 0, 0], 4 << 20), owner_of);
        assert_eq!(
            [Some("model"), Some("kept"), Some("passing"), None].map(|owner| filling.peak(owner) >> 20),
            [4, 2, 1, 7]
        );
        assert_eq!(filling.reserved.iter().max(), Some(&((4 + 2 * 2) << 20)), "two segments came");
        assert_eq!(filling.columns.last().unwrap()[..], [4 << 20, 0, 0], "all of it was given back");
        let drawing = Drawing::from(filling.limit(32 << 20));
        assert_drawn(&drawing);
        let texts = all(&drawing.svg, "text");
        for words in ["the limit: 32 MiB", "model", "kept", "passing", KEPT, "step", "0 bytes"] {
            assert!(texts.contains(&words.to_owned()), "{words}: {texts:?}");
        }
        assert!(all(&drawing.svg, "title").contains(&"kept: 2 MiB at most".to_owned()));
    }

    #[test]
    fn what_is_refused_stands_on_what_is_reserved() {
        let machine: Machine = "sim:t4,mem=512MiB".parse().unwrap();
        let svg = machine.enter(|| {
            let (error, trace) =
                machine.profile(|| Tensor::empty((&[1 << 30], Device::cuda(0))).unwrap_err());
            let Some(GpuError::OutOfDeviceMemory(refused)) = error.gpu() else { panic!("{error}") };
            assert_eq!(cuda::memory_reserved(), 0);
            let filling = Filling::of(&trace, 0, &OWNERS, (vec![0; 3], 0), owner_of).refused(refused);
            let drawing = Drawing::from(filling);
            assert_drawn(&drawing);
            drawing.svg
        });
        assert!(all(&svg, "text").contains(&"4 GiB more, refused".to_owned()), "{svg}");
    }

    #[test]
    fn the_picture_ends_where_memory_was_refused_and_not_where_it_was_given_back() {
        let machine: Machine = "sim:t4,mem=512MiB".parse().unwrap();
        machine.enter(|| {
            let (error, trace) = machine.profile(|| {
                let _held = [block(), block(), block()].map(Result::unwrap);
                Tensor::empty((&[1 << 30], Device::cuda(0))).unwrap_err()
            });
            let Some(GpuError::OutOfDeviceMemory(refused)) = error.gpu() else { panic!("{error}") };
            let whole = Filling::of(&trace, 0, &OWNERS, (vec![0; 3], 0), owner_of);
            assert_eq!(whole.columns.last().unwrap()[..], [0; 3], "all of it is given back in the end");
            let filling = whole.refused(refused);
            assert_eq!(filling.columns.last().unwrap()[..], [0, 0, 3 << 20]);
            assert_eq!(filling.reserved.last(), Some(&refused.reserved));
            assert_drawn(&Drawing::from(filling));
        });
    }

    #[test]
    fn nothing_one_block_and_ten_thousand_are_drawn_as_well() {
        for blocks in [0, 1, 10_000] {
            let trace = recorded("sim:t4", || (0..blocks).try_for_each(|_| block().map(drop)));
            let drawing = Drawing::from(Filling::of(&trace, 0, &OWNERS, (vec![0; 3], 0), owner_of));
            assert_drawn(&drawing);
            assert!(drawing.svg.len() < 1_500_000, "{} bytes", drawing.svg.len());
        }
    }
}
