//! A map of the GPUs' memory: one row per segment, one box per block. This file computes the contents of the rows
//! and formats the map as text; `svg.rs` draws it.

pub use history::MemoryHistory;

use crate::Drawing;
use crate::words::bytes;
use std::collections::HashMap;
use std::fmt;

use todevice::Tensor;
use todevice::cuda::{BlockState, MemoryBlock, MemorySegment, SegmentType, memory_snapshot};
use todevice_gpu::base::error::WORKSPACE;

mod history;
mod svg;
#[cfg(test)]
mod tests;

/// The maximum number of boxes in a row. If a segment has more blocks, a box stands for several neighbouring ones.
const MOST_BOXES: usize = 48;
/// The width of a row of text.
const LETTERS: f64 = 72.0;
/// The maximum number of names that the text explains.
const MOST_LINES: usize = 12;

/// The blocks held by the caching allocators, and their contents: a picture of [`memory_snapshot`].
///
/// It prints as text, and [`to_svg`](Self::to_svg) draws it. Every row shows a segment; all rows have the same
/// width whatever the segment's size, which is written next to it. Blocks are to scale within a row, except for
/// those that would be too narrow to see.
///
/// ```
/// use drawing::MemoryMap;
/// use todevice::{Device, Machine, Tensor};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let x = Tensor::zeros((&[100_000], Device::cuda(0)))?;
///     let map = MemoryMap::now().name("x", [&x]);
///     assert_eq!(map.bytes_of("x"), 400_384); // 400000 bytes, and what makes it a multiple of 512
///     println!("{map}");
///     assert!(map.to_svg().contains("<title>x: 400384 bytes, 400000 of them asked for, from byte 0 on</title>"));
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryMap {
    segments: Vec<MemorySegment>,
    /// Names by the block's device and address, since addresses can repeat between devices.
    names: HashMap<(usize, u64), String>,
    /// The name of all other blocks, if they have one.
    others: Option<String>,
}

impl MemoryMap {
    /// Captures the current state of all devices of the machine.
    pub fn now() -> MemoryMap {
        MemoryMap { segments: memory_snapshot(), names: HashMap::new(), others: None }
    }

    /// Names the blocks that hold these tensors. A block without a name is called by the line of the program that
    /// requested it; only cuBLAS's is called `cuBLAS workspace` from the start. A tensor on the host has no block.
    pub fn name<'t>(mut self, name: &str, tensors: impl IntoIterator<Item = &'t Tensor>) -> MemoryMap {
        for tensor in tensors {
            if let Some(address) = tensor.storage_address() {
                self.names.insert((tensor.device().index(), address), name.to_owned());
            }
        }
        self
    }

    /// Names all other blocks that are not free.
    pub fn name_others(mut self, name: &str) -> MemoryMap {
        self.others = Some(name.to_owned());
        self
    }

    /// The bytes of all blocks with a name. (This includes rounding: it is their share of
    /// [`memory_allocated`](todevice::cuda::memory_allocated).)
    pub fn bytes_of(&self, name: &str) -> u64 {
        let blocks = self.segments.iter().flat_map(|segment| {
            let held = segment.blocks.iter().filter(|block| block.state == BlockState::ActiveAllocated);
            held.filter(|block| self.name_of(segment, block) == name)
        });
        blocks.map(|block| block.size).sum()
    }

    /// The segments shown.
    pub fn segments(&self) -> &[MemorySegment] {
        &self.segments
    }

    fn name_of(&self, segment: &MemorySegment, block: &MemoryBlock) -> String {
        if block.state == BlockState::Inactive {
            return "free".to_owned();
        }
        if block.workspace {
            return WORKSPACE.to_owned();
        }
        let known = self.names.get(&(segment.device, block.address)).or(self.others.as_ref());
        known.cloned().unwrap_or_else(|| match block.place {
            Some(place) => {
                let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
                format!("{file}:{}", place.line())
            }
            None => "unknown".to_owned(),
        })
    }

    /// `small pool, 2 MiB`, with the device or the stream if there are several.
    fn title(&self, segment: &MemorySegment) -> String {
        let pool = match segment.segment_type {
            SegmentType::Small => "small pool",
            SegmentType::Large => "large pool",
        };
        let mut title = format!("{pool}, {}", bytes(segment.total_size));
        if segment.stream != 0 {
            title = format!("stream {}, {title}", segment.stream);
        }
        if self.segments.iter().any(|other| other.device != segment.device) {
            title = format!("cuda:{}, {title}", segment.device);
        }
        title
    }

    /// The blocks of a segment with a given state.
    fn blocks(&self, segment: &MemorySegment, fill: Fill) -> impl Iterator<Item = Piece> {
        segment.blocks.iter().map(|block| self.piece(segment, block)).filter(move |piece| piece.fill == fill)
    }

    /// The boxes of a row.
    fn boxes(&self, segment: &MemorySegment) -> Vec<Piece> {
        let mut boxes: Vec<Piece> = Vec::new();
        let part = |offset: u64| offset as u128 * MOST_BOXES as u128 / u128::from(segment.total_size.max(1));
        for block in &segment.blocks {
            let piece = self.piece(segment, block);
            match boxes.last_mut() {
                Some(last)
                    if segment.blocks.len() > MOST_BOXES && part(last.offset) == part(piece.offset) =>
                {
                    last.add(&piece);
                }
                _ => boxes.push(piece),
            }
        }
        boxes
    }

    fn piece(&self, segment: &MemorySegment, block: &MemoryBlock) -> Piece {
        Piece {
            fill: match block.state {
                BlockState::ActiveAllocated => Fill::Allocated,
                BlockState::ActiveAwaitingFree => Fill::Awaiting,
                BlockState::Inactive => Fill::Free,
            },
            name: self.name_of(segment, block),
            offset: block.address - segment.address,
            size: block.size,
            requested: block.requested_size,
            free: if block.state == BlockState::Inactive { block.size } else { 0 },
            blocks: 1,
        }
    }
}

/// The content of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Allocated,
    Free,
    /// Freed, but other streams may still use it.
    Awaiting,
    /// Several blocks with different names.
    Mixed,
}

/// A box: a block, or several neighbouring ones.
#[derive(Clone, Debug)]
struct Piece {
    fill: Fill,
    name: String,
    /// In bytes from the start of the segment.
    offset: u64,
    size: u64,
    requested: u64,
    free: u64,
    blocks: usize,
}

impl Piece {
    /// Merges the next block into this box.
    fn add(&mut self, next: &Piece) {
        if self.fill != next.fill || self.name != next.name {
            self.fill = Fill::Mixed;
        }
        self.size += next.size;
        self.requested += next.requested;
        self.free += next.free;
        self.blocks += 1;
    }

    /// A full description.
    fn words(&self) -> String {
        let Piece { name, offset, size, requested, free, blocks, .. } = self;
        let from = format!("from byte {offset} on");
        match self.fill {
            _ if *blocks > 1 => format!("{blocks} blocks: {size} bytes, {free} of them free, {from}"),
            Fill::Free => format!("free: {size} bytes, {from}"),
            Fill::Awaiting => format!("{name}, freed, still used by a stream: {size} bytes, {from}"),
            _ if requested == size => format!("{name}: {size} bytes, {from}"),
            _ => format!("{name}: {size} bytes, {requested} of them asked for, {from}"),
        }
    }
}

/// The widths of boxes of these sizes in a row: to scale, but none narrower than `narrowest`.
fn widths(sizes: &[u64], row: f64, narrowest: f64) -> Vec<f64> {
    let total: u64 = sizes.iter().sum();
    let is_narrow = |size: &&u64| **size as f64 * row < narrowest * total as f64;
    let narrow = sizes.iter().filter(is_narrow);
    let (count, bytes) = narrow.fold((0.0, 0), |(count, bytes), size| (count + 1.0, bytes + size));
    let scale = (row - count * narrowest) / (total - bytes).max(1) as f64;
    sizes.iter().map(|size| if is_narrow(&size) { narrowest } else { *size as f64 * scale }).collect()
}

fn sizes(boxes: &[Piece]) -> Vec<u64> {
    boxes.iter().map(|piece| piece.size).collect()
}

/// Formats the map for a terminal: a letter stands for all blocks of one name, `.` for free memory, `:` for memory
/// lost to rounding, `~` for memory a stream still uses, `%` for several blocks with different names.
impl fmt::Display for MemoryMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("No segment is held.");
        }
        let mut legend = Legend::default();
        for segment in &self.segments {
            let free: Vec<u64> = self.blocks(segment, Fill::Free).map(|piece| piece.size).collect();
            write!(f, "{}: {} allocated", self.title(segment), bytes(segment.allocated_size))?;
            match free.len() {
                0 => {}
                1 => write!(f, ", {} free", bytes(free[0]))?,
                pieces => write!(f, ", {} free in {pieces} pieces", bytes(free.iter().sum()))?,
            }
            for piece in self.blocks(segment, Fill::Allocated) {
                legend.add(&piece);
            }
            writeln!(f, "\n[{}]", legend.row(&self.boxes(segment)))?;
        }
        write!(f, "{legend}")
    }
}

/// The meanings of the letters in the text.
#[derive(Default)]
struct Legend {
    names: Vec<(char, Piece)>,
    /// The characters that occur.
    signs: Vec<char>,
}

impl Legend {
    /// Adds a block.
    fn add(&mut self, block: &Piece) {
        if let Some((_, known)) = self.names.iter_mut().find(|(_, known)| known.name == block.name) {
            known.add(block);
            return;
        }
        // The first letter of the name, in upper or lower case, if it is still unused.
        let first = block.name.chars().find(char::is_ascii_alphanumeric);
        let own = first
            .into_iter()
            .flat_map(|first| [first, first.to_ascii_lowercase(), first.to_ascii_uppercase()]);
        let mut letters = own.chain('A'..='Z').chain('a'..='z');
        let letter = letters.find(|letter| self.names.iter().all(|(taken, _)| taken != letter));
        self.names.push((letter.unwrap_or('#'), block.clone()));
    }

    fn row(&mut self, boxes: &[Piece]) -> String {
        let mut row = String::new();
        let mut end = 0.0;
        for (piece, width) in boxes.iter().zip(widths(&sizes(boxes), LETTERS, 1.0)) {
            let known = self.names.iter().find(|(_, known)| known.name == piece.name);
            let sign = match (piece.fill, known) {
                (Fill::Allocated, Some((letter, _))) => *letter,
                (Fill::Allocated | Fill::Mixed, _) => '%',
                (Fill::Free, _) => '.',
                (Fill::Awaiting, _) => '~',
            };
            // The start of the box, and the end of the requested part.
            let [start, asked] =
                [end, end + width * piece.requested as f64 / piece.size as f64].map(f64::round);
            end += width;
            for column in start as usize..end.round() as usize {
                // A block shows its letter at least once, however little was requested.
                let cut_off = piece.fill == Fill::Allocated && column as f64 >= asked.max(start + 1.0);
                let sign = if cut_off { ':' } else { sign };
                if !self.signs.contains(&sign) {
                    self.signs.push(sign);
                }
                row.push(sign);
            }
        }
        row
    }
}

impl fmt::Display for Legend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if self.names.len() > MOST_LINES { MOST_LINES - 1 } else { self.names.len() };
        for (letter, Piece { name, size, requested, blocks, .. }) in &self.names[..shown] {
            let name = if *name == letter.to_string() { String::new() } else { format!("{name}: ") };
            let blocks = if *blocks > 1 { format!("{blocks} blocks, ") } else { String::new() };
            write!(f, "  {letter}  {name}{blocks}")?;
            // For a rounded size, show exact bytes.
            match requested == size {
                true => writeln!(f, "{}", bytes(*size))?,
                false => writeln!(f, "{size} bytes, {requested} of them asked for")?,
            }
        }
        if self.names.len() > shown {
            writeln!(f, "     and {} more", self.names.len() - shown)?;
        }
        let meanings = [
            ('.', "free"),
            (':', "lost to rounding"),
            ('~', "still used by a stream"),
            ('%', "several blocks"),
        ];
        let signs: Vec<String> = meanings
            .into_iter()
            .filter(|(sign, _)| self.signs.contains(sign))
            .map(|(sign, meaning)| format!("{sign}  {meaning}"))
            .collect();
        match signs.is_empty() {
            true => Ok(()),
            false => write!(f, "  {}", signs.join("   ")),
        }
    }
}

impl From<&MemoryMap> for Drawing {
    fn from(map: &MemoryMap) -> Drawing {
        Drawing { svg: map.to_svg(), narrow: None, text: Some(map.to_string()) }
    }
}
