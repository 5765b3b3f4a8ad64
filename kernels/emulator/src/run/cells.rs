//! What is known of the words of a memory, in pages that exist once a word of them was accessed.

use super::races::Cell;

/// Words of a page.
const PAGE: usize = 256;

#[derive(Clone, Default)]
pub struct Cells {
    pages: Vec<Option<Box<[Cell; PAGE]>>>,
}

impl Cells {
    /// Room for the words of so many bytes.
    pub fn grow(&mut self, bytes: usize) {
        let pages = bytes.div_ceil(4 * PAGE);
        if pages > self.pages.len() {
            self.pages.resize_with(pages, || None);
        }
    }

    #[inline(always)]
    pub fn at(&mut self, word: usize) -> Option<&mut Cell> {
        let page = self.pages.get_mut(word / PAGE)?;
        Some(&mut page.get_or_insert_with(new_page)[word % PAGE])
    }
}

#[cold]
fn new_page() -> Box<[Cell; PAGE]> {
    Box::new([Cell::default(); PAGE])
}
