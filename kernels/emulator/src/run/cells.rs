//! The access history of each word of a memory. A page is allocated at its first access.
//!
//! While no write to a page can race with its reads, the reads wait as runs of lanes. An access that cannot wait makes
//! them noted first. They are dropped once all later accesses are ordered after them.

use super::races::{Access, Cell, Kind, Order};

/// In words.
pub const PAGE: usize = 256;
/// The maximum number of waiting runs of a page. Further ones are noted at once.
const MOST_RUNS: usize = 512;

#[derive(Default)]
pub struct Cells {
    pages: Vec<Option<Box<Page>>>,
}

#[derive(Default)]
struct Page {
    cells: Option<Box<[Cell; PAGE]>>,
    waiting: Vec<Run>,
    /// The interval of the last write or atomic.
    last_write: u32,
}

/// Lanes that read consecutive words, or the same word.
#[derive(Clone, Copy)]
pub struct Run {
    pub first: Access,
    /// The index of the first word within its page.
    pub word: u8,
    pub lanes: u8,
    pub is_one_word: bool,
}

impl Cells {
    pub fn grow(&mut self, bytes: usize) {
        let pages = bytes.div_ceil(4 * PAGE);
        if pages > self.pages.len() {
            self.pages.resize_with(pages, || None);
        }
    }

    /// Notes an access to a word. Returns an earlier access that races with it, if any.
    #[inline(always)]
    pub fn note(&mut self, order: &Order, word: usize, me: &Access, kind: Kind) -> Option<(Access, Kind)> {
        let page = self.pages.get_mut(word / PAGE)?.get_or_insert_default();
        if !page.waiting.is_empty() {
            page.note_waiting(order);
        }
        if kind != Kind::Read {
            page.last_write = me.interval;
        }
        order.note(&mut page.cells.get_or_insert_with(new_cells)[word % PAGE], me, kind)
    }

    /// Queues a run of reads. Returns false if an earlier write to the page may race with it, or the queue is full.
    #[inline(always)]
    pub fn wait(&mut self, order: &Order, page: usize, run: Run) -> bool {
        let Some(page) = self.pages.get_mut(page) else { return false };
        let page = page.get_or_insert_default();
        if page.waiting.last().is_some_and(|last| last.first.interval < order.unordered_from) {
            page.waiting.clear();
        }
        let waits = page.last_write < order.unordered_from && page.waiting.len() < MOST_RUNS;
        if waits {
            page.waiting.push(run);
        }
        waits
    }
}

impl Page {
    #[cold]
    fn note_waiting(&mut self, order: &Order) {
        let cells = self.cells.get_or_insert_with(new_cells);
        for run in self.waiting.drain(..).filter(|run| run.first.interval >= order.unordered_from) {
            for lane in 0..u16::from(run.lanes) {
                let me = Access { thread: run.first.thread + lane, ..run.first };
                let step = if run.is_one_word { 0 } else { lane };
                order.note(&mut cells[usize::from(run.word) + usize::from(step)], &me, Kind::Read);
            }
        }
    }
}

#[cold]
fn new_cells() -> Box<[Cell; PAGE]> {
    Box::new([Cell::default(); PAGE])
}
