//! Memory over time: its contents after each change, and which code took and freed each block.

use std::collections::HashMap;

use todevice::cuda::{BlockState, MemorySegment};
use todevice_gpu::base::error::WORKSPACE;
use todevice_gpu::base::sort;
use todevice_gpu::contract::events::{Call, EventKind, Trace};

use super::svg::{BOX, GAP, LINE, WIDTH};
use super::widths;
use crate::colour::{CURRENT, WAIT};
use crate::filling::innermost;
use crate::svg::{self, Element, element, encoded, line, rect, text, titled};
use crate::timeline::line_of;
use crate::words::bytes;
use crate::{Drawing, Owner, Role};

/// A recording of a device's memory, change by change: blocks are allocated and freed, and so are the driver's segments.
///
/// The picture shows the moment at which the most memory was allocated; on a page, all moments in sequence.
/// `book/theme/memory.js` shows and hides elements of the picture.
#[derive(Clone, Debug)]
pub struct MemoryHistory<'a> {
    owners: &'a [Owner],
    segments: Vec<Segment>,
    blocks: Vec<Block>,
    /// The initial state, then one moment per change.
    moments: Vec<Moment>,
}

#[derive(Clone, Debug)]
struct Segment {
    address: u64,
    size: u64,
    /// The first moment at which it exists, and the first at which it no longer exists.
    from: usize,
    until: Option<usize>,
}

#[derive(Clone, Debug)]
struct Block {
    segment: usize,
    /// In bytes from the start of the segment.
    offset: u64,
    size: u64,
    requested: u64,
    from: usize,
    /// When it was given back, and when it became free: later, if other streams still used it.
    given_back: Option<usize>,
    until: Option<usize>,
    owner: Option<usize>,
    /// When it was allocated, if that was recorded, and given back, in nanoseconds on the host's clock.
    times: Option<(u64, Option<u64>)>,
    /// Descriptions of the code that allocated it, and that gave it back.
    taken: String,
    freed: String,
}

#[derive(Clone, Debug)]
struct Moment {
    allocated: u64,
    reserved: u64,
    words: String,
}

/// A block at a moment: `(address, size, state, bytes requested)`.
pub type BlockAt = (u64, u64, BlockState, u64);

impl<'a> MemoryHistory<'a> {
    /// Builds the history of a device from a recording and the segments at its start
    /// ([`memory_snapshot`](todevice::cuda::memory_snapshot)). `owner_of` returns the owners of blocks allocated
    /// since, as for a [`Filling`](crate::Filling).
    pub fn of(
        trace: &Trace,
        device: usize,
        before: &[MemorySegment],
        owners: &'a [Owner],
        owner_of: impl Fn(&str, bool) -> usize,
    ) -> MemoryHistory<'a> {
        let mut history =
            MemoryHistory { owners, segments: Vec::new(), blocks: Vec::new(), moments: Vec::new() };
        // The block at each address that is not free.
        let mut live = HashMap::new();
        for segment in before.iter().filter(|segment| segment.device == device) {
            history.begin(segment, &mut live);
        }
        let (allocated, reserved) = before.iter().filter(|segment| segment.device == device).fold(
            (0, 0),
            |(allocated, reserved), segment| {
                (allocated + segment.allocated_size, reserved + segment.total_size)
            },
        );
        history.moments.push(Moment { allocated, reserved, words: "before the first change".to_owned() });
        let calls: Vec<&Call> = trace.calls.iter().filter(|call| call.stream.device == device).collect();
        for (index, call) in calls.iter().enumerate() {
            history.change(trace, &calls, index, call, &mut live);
        }
        for block in &mut history.blocks {
            let Some((taken, freed)) = block.times else { continue };
            let part = innermost(trace, taken);
            let stays = part.is_some_and(|part| freed.is_none_or(|freed| freed > part.end));
            block.owner = Some(owner_of(part.map_or("", |part| &part.name), stays));
        }
        history
    }

    /// Adds a segment that existed at the start.
    fn begin(&mut self, segment: &MemorySegment, live: &mut HashMap<u64, usize>) {
        let number = self.segments.len();
        let (address, size) = (segment.address, segment.total_size);
        self.segments.push(Segment { address, size, from: 0, until: None });
        for block in segment.blocks.iter().filter(|block| block.state != BlockState::Inactive) {
            live.insert(block.address, self.blocks.len());
            let line = block.place.map(line_of);
            let (owner, taken) = match block.workspace {
                true => (self.owners.iter().position(|(name, _)| *name == WORKSPACE), WORKSPACE.to_owned()),
                false => (None, format!("taken before, {}", line.as_deref().unwrap_or("by an unknown line"))),
            };
            self.blocks.push(Block {
                segment: number,
                offset: block.address - address,
                size: block.size,
                requested: block.requested_size,
                from: 0,
                given_back: (block.state == BlockState::ActiveAwaitingFree).then_some(0),
                until: None,
                owner,
                times: None,
                taken,
                freed: String::new(),
            });
        }
    }

    /// Applies a call, if it changes anything.
    fn change(
        &mut self,
        trace: &Trace,
        calls: &[&Call],
        index: usize,
        call: &Call,
        live: &mut HashMap<u64, usize>,
    ) {
        let now = self.moments.len();
        let Moment { mut allocated, mut reserved, .. } = self.moments[now - 1];
        let words = match call.kind {
            EventKind::Allocate { address, bytes: requested, block } => {
                let Some(segment) = self.segment_at(address) else { return };
                let taken = format!("taken {}", who(trace, call));
                live.insert(address, self.blocks.len());
                let offset = address - self.segments[segment].address;
                allocated += block;
                let words = format!("{} {taken}", bytes(block));
                self.blocks.push(Block {
                    segment,
                    offset,
                    size: block,
                    requested,
                    from: now,
                    given_back: None,
                    until: None,
                    owner: None,
                    times: Some((call.begin, None)),
                    taken,
                    freed: String::new(),
                });
                words
            }
            EventKind::Free { address, waits } => {
                let Some(&number) = live.get(&address) else { return };
                let freed = given_back(trace, calls, index);
                let block = &mut self.blocks[number];
                allocated -= block.size;
                block.given_back = Some(now);
                block.freed = freed.clone();
                block.times = block.times.map(|(taken, _)| (taken, Some(call.begin)));
                let after = if waits { "; another stream may still use them" } else { "" };
                if !waits {
                    block.until = Some(now);
                    live.remove(&address);
                }
                format!("{} {freed}{after}", bytes(block.size))
            }
            EventKind::FreeCompleted { address } => {
                let Some(number) = live.remove(&address) else { return };
                self.blocks[number].until = Some(now);
                format!("{} are free: no stream uses them any more", bytes(self.blocks[number].size))
            }
            EventKind::DriverMalloc { address, bytes: size } => {
                self.segments.push(Segment { address, size, from: now, until: None });
                reserved += size;
                format!(
                    "the allocator gets a segment of {} from the driver, {}",
                    bytes(size),
                    who(trace, call)
                )
            }
            EventKind::DriverFree { address } => {
                let held = |segment: &&mut Segment| segment.address == address && segment.until.is_none();
                let Some(segment) = self.segments.iter_mut().find(held) else { return };
                segment.until = Some(now);
                reserved -= segment.size;
                format!("the allocator gives a segment of {} back to the driver", bytes(segment.size))
            }
            _ => return,
        };
        self.moments.push(Moment { allocated, reserved, words });
    }

    fn segment_at(&self, address: u64) -> Option<usize> {
        let holds = |segment: &Segment| {
            segment.until.is_none() && (segment.address..segment.address + segment.size).contains(&address)
        };
        self.segments.iter().position(holds)
    }

    /// The number of moments: one more than the changes.
    pub fn moments(&self) -> usize {
        self.moments.len()
    }

    /// The first moment at which the most memory was allocated.
    pub fn peak(&self) -> usize {
        let most = self.moments.iter().map(|moment| moment.allocated).max();
        self.moments.iter().position(|moment| Some(moment.allocated) == most).unwrap_or(0)
    }

    /// The bytes in blocks that are held at a moment.
    pub fn allocated(&self, moment: usize) -> u64 {
        self.moments[moment].allocated
    }

    /// The bytes of each of those blocks, and its role if it was allocated during the recording.
    pub fn held(&self, moment: usize) -> Vec<(Option<Role>, u64)> {
        let held = |block: &&Block| there(block.from, block.given_back, moment);
        let role = |block: &Block| block.owner.map(|owner| self.owners[owner].1);
        self.blocks.iter().filter(held).map(|block| (role(block), block.size)).collect()
    }

    /// The blocks of each segment at a moment, by address and without gaps, as in a snapshot.
    pub fn at(&self, moment: usize) -> Vec<Vec<BlockAt>> {
        let mut segments: Vec<(usize, &Segment)> = self
            .segments
            .iter()
            .enumerate()
            .filter(|(_, segment)| there(segment.from, segment.until, moment))
            .collect();
        sort::by_key(&mut segments, |(_, segment)| segment.address);
        let blocks_of = |(number, segment): (usize, &Segment)| {
            let mut blocks: Vec<&Block> = self
                .blocks
                .iter()
                .filter(|block| block.segment == number && there(block.from, block.until, moment))
                .collect();
            sort::by_key(&mut blocks, |block| block.offset);
            let (mut all, mut end) = (Vec::new(), 0);
            for block in blocks {
                if block.offset > end {
                    all.push((segment.address + end, block.offset - end, BlockState::Inactive, 0));
                }
                let state = match block.given_back.is_some_and(|given_back| given_back <= moment) {
                    true => BlockState::ActiveAwaitingFree,
                    false => BlockState::ActiveAllocated,
                };
                all.push((segment.address + block.offset, block.size, state, block.requested));
                end = block.offset + block.size;
            }
            if end < segment.size {
                all.push((segment.address + end, segment.size - end, BlockState::Inactive, 0));
            }
            all
        };
        segments.into_iter().map(blocks_of).collect()
    }
}

fn there(from: usize, until: Option<usize>, moment: usize) -> bool {
    from <= moment && until.is_none_or(|until| moment < until)
}

/// `by linear, training.rs:96, in forward`, as far as it is known.
fn who(trace: &Trace, call: &Call) -> String {
    let operation = call.operation.map(|operation| format!("by {operation}"));
    let line = call.place.map(line_of);
    let part = innermost(trace, call.begin).map(|part| format!("in {}", part.name));
    let known: Vec<String> = [operation, line, part].into_iter().flatten().collect();
    if known.is_empty() { "by an unknown line".to_owned() } else { known.join(", ") }
}

/// Describes what freed a block: an operation, or the end of a variable's scope. The latter has no line of its own,
/// so the lines before and after it are given.
fn given_back(trace: &Trace, calls: &[&Call], index: usize) -> String {
    let call = calls[index];
    if call.place.is_some() || call.operation.is_some() {
        return format!("given back {}", who(trace, call));
    }
    let line = |call: &&Call| call.place.map(line_of);
    let after = calls[..index].iter().rev().find_map(line).map(|line| format!("after {line}"));
    let earlier = calls[index..].iter().find_map(line).map(|line| format!("before {line}"));
    let part = innermost(trace, call.begin).map(|part| format!("in {}", part.name));
    let known: Vec<String> = [after, earlier, part].into_iter().flatten().collect();
    format!("given back when its last owner went out of scope, {}", known.join(", "))
        .trim_end_matches(", ")
        .to_owned()
}

const FONT: u32 = 13;
/// The height of the curve of bytes.
const CURVE: f64 = 56.0;
/// A row with more boundaries than this is drawn to scale, however narrow its boxes become.
const MOST_CUTS: usize = 64;
const NARROWEST: (f64, f64) = (2.0, 14.0);
const LETTER: f64 = 7.1;

/// The horizontal positions of a row's bytes: every block that ever starts or ends in it has a visible width.
struct Scale {
    cuts: Vec<u64>,
    places: Vec<f64>,
}

impl Scale {
    fn of(size: u64, mut cuts: Vec<u64>) -> Scale {
        cuts.extend([0, size]);
        sort::by(&mut cuts, Ord::cmp);
        cuts.dedup();
        let sizes: Vec<u64> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let half = (WIDTH - 2.0) / 2.0 / sizes.len() as f64;
        let narrowest = if sizes.len() > MOST_CUTS { 0.0 } else { half.clamp(NARROWEST.0, NARROWEST.1) };
        let mut places = vec![1.0];
        for width in widths(&sizes, WIDTH - 2.0, narrowest) {
            places.push(places[places.len() - 1] + width);
        }
        Scale { cuts, places }
    }

    fn across(&self, offset: u64) -> f64 {
        self.places[self.cuts.binary_search(&offset).unwrap_or_else(|next| next.min(self.cuts.len() - 1))]
    }
}

impl MemoryHistory<'_> {
    /// Draws the picture, initially at the moment with the most allocated memory. Elements that do not exist at
    /// that moment are included but hidden: `data-from` is an element's first moment, and `data-until` the first
    /// one without it.
    pub fn to_svg(&self) -> String {
        let shown = self.peak();
        let mut lines = Vec::new();
        let mut y = 2.0;
        // A segment that the driver returns again at the same address and size reuses its row.
        let mut rows: Vec<(u64, u64)> = Vec::new();
        for segment in &self.segments {
            if !rows.contains(&(segment.address, segment.size)) {
                rows.push((segment.address, segment.size));
            }
        }
        sort::by(&mut rows, Ord::cmp);
        for row in &rows {
            let mut members = self.segments.iter().enumerate();
            let members: Vec<usize> = members
                .by_ref()
                .filter(|(_, segment)| (segment.address, segment.size) == *row)
                .map(|(number, _)| number)
                .collect();
            let blocks = || self.blocks.iter().filter(|block| members.contains(&block.segment));
            let cuts = blocks().flat_map(|block| [block.offset, block.offset + block.size]).collect();
            let scale = Scale::of(row.1, cuts);
            let title = format!("segment of {}", bytes(row.1));
            lines.push(text((1.0, y + 13.0), "start").around(&title));
            y += LINE;
            for &number in &members {
                let Segment { from, until, .. } = self.segments[number];
                let border = rect((1.5, y + 0.5), (WIDTH - 3.0, BOX - 1.0)).with("fill", "none");
                let border = border.with("stroke", CURRENT).with("stroke-opacity", 0.5).empty();
                lines.push(timed("segment", (from, until), shown, &titled(&title, &border)));
            }
            for block in blocks() {
                lines.push(self.boxed(block, &scale, y, shown));
            }
            y += BOX + GAP;
        }
        if rows.is_empty() {
            lines.push(text((1.0, y + 13.0), "start").around("No segment is held."));
            y += LINE;
        }
        y = self.curve(&mut lines, y, shown);
        y = self.legend(&mut lines, y);
        lines.push(self.data());
        svg::picture((WIDTH, y), FONT, &lines)
    }

    fn boxed(&self, block: &Block, scale: &Scale, y: f64, shown: usize) -> String {
        let (left, right) = (scale.across(block.offset), scale.across(block.offset + block.size));
        let (corner, size) = ((left + 0.5, y + 0.5), ((right - left - 1.0).max(1.0), BOX - 1.0));
        let mut drawn = self.look(block.owner, rect(corner, size));
        let name = block.owner.map_or(WORKSPACE, |owner| self.owners[owner].0);
        if name.chars().count() as f64 * LETTER + 5.0 < right - left {
            drawn += &text(((left + right) / 2.0, y + BOX / 2.0 + 5.0), "middle").around(name);
        }
        let freed = if block.freed.is_empty() { "still held at the end" } else { &block.freed };
        let asked = match block.requested == block.size {
            true => String::new(),
            false => format!(", {} of them asked for", block.requested),
        };
        let words = format!("{name}: {} bytes{asked}; {}; {freed}", block.size, block.taken);
        let mut element = timed("block", (block.from, block.until), shown, &titled(&words, &drawn));
        if let Some(given_back) = block.given_back {
            element = element.replacen("<g ", &format!("<g data-freed=\"{given_back}\" "), 1);
        }
        element
    }

    fn look(&self, owner: Option<usize>, shape: Element) -> String {
        match owner {
            Some(owner) => {
                let (_, role) = self.owners[owner];
                let second = self.owners[..owner].iter().any(|(_, before)| *before == role);
                role.look(shape, second)
            }
            None => shape.pale(CURRENT, 0.15).with("stroke-width", 1.5).empty(),
        }
    }

    /// Draws the bytes allocated and reserved after each change. Returns its lower end.
    fn curve(&self, lines: &mut Vec<String>, y: f64, shown: usize) -> f64 {
        let highest =
            self.moments.iter().map(|moment| moment.reserved.max(moment.allocated)).max().unwrap_or(0).max(1);
        let most = self.moments[self.peak()].allocated;
        lines.push(text((1.0, y + 13.0), "start").around(&format!("allocated, {} at most", bytes(most))));
        let (top, bottom) = (y + LINE, y + LINE + CURVE);
        let step = (WIDTH - 2.0) / self.moments.len() as f64;
        let up = |bytes: u64| bottom - bytes as f64 / highest as f64 * CURVE;
        let area = |of: fn(&Moment) -> u64| {
            let mut path = format!("M1 {bottom:.1}");
            for (index, moment) in self.moments.iter().enumerate() {
                let right = 1.0 + (index + 1) as f64 * step;
                path += &format!("V{:.1}H{right:.1}", up(of(moment)));
            }
            element("path").with("d", path + &format!("V{bottom:.1}Z"))
        };
        let reserved = area(|moment| moment.reserved).with("fill", "none").with("stroke", CURRENT);
        lines.push(titled("kept by the allocator", &reserved.with("stroke-opacity", 0.5).empty()));
        lines.push(area(|moment| moment.allocated).with("fill", CURRENT).with("fill-opacity", 0.3).empty());
        let x = 1.0 + (shown as f64 + 0.5) * step;
        let mark = line((x, top), (x, bottom), 1.0).replacen("<line ", "<line class=\"now\" ", 1);
        lines.push(mark.replacen(
            "stroke=\"currentColor\"",
            &format!("stroke=\"{WAIT}\" stroke-width=\"2\""),
            1,
        ));
        bottom + GAP
    }

    fn legend(&self, lines: &mut Vec<String>, y: f64) -> f64 {
        let is_there = |owner: usize| self.blocks.iter().any(|block| block.owner == Some(owner));
        let owners = self.owners.iter().enumerate().filter(|(owner, _)| is_there(*owner));
        let entries: Vec<(svg::Look, String)> = owners
            .map(|(owner, (name, _))| {
                let look = move |corner, size| self.look(Some(owner), rect(corner, size));
                (Box::new(look) as svg::Look, (*name).to_owned())
            })
            .collect();
        if entries.is_empty() { y } else { svg::legend(lines, (1.0, y, WIDTH), FONT, entries) }
    }

    /// The data for the page: the moment shown first, then a line for each moment.
    fn data(&self) -> String {
        let counts = |moment: &Moment| {
            format!("{} allocated, {} reserved", bytes(moment.allocated), bytes(moment.reserved))
        };
        let moments =
            self.moments.iter().map(|moment| format!("{}|{}", counts(moment), encoded(&moment.words)));
        let lines: Vec<String> = [self.peak().to_string()].into_iter().chain(moments).collect();
        element("metadata").lines("data-moments", &lines).empty()
    }
}

/// An element that exists between two moments, visible if it exists at the moment `shown`.
fn timed(class: &str, (from, until): (usize, Option<usize>), shown: usize, group: &str) -> String {
    let mut open = format!("<g class=\"{class}\" data-from=\"{from}\"");
    if let Some(until) = until {
        open += &format!(" data-until=\"{until}\"");
    }
    if !there(from, until, shown) {
        open += " display=\"none\"";
    }
    group.replacen("<g", &open, 1)
}

impl From<MemoryHistory<'_>> for Drawing {
    fn from(history: MemoryHistory<'_>) -> Drawing {
        Drawing::from(history.to_svg())
    }
}
