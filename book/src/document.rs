//! A page as it is written.

/// A file of the book.
pub struct Page<'a> {
    /// For messages, from the root of the checkout.
    pub file: &'a str,
    /// From the folder of the chapters.
    pub path: &'a str,
    pub text: &'a str,
}

impl Page<'_> {
    /// The number of its chapter, if it has one: `03-training-loop.md` → `03`, and `04b-allocator.md` → `04`
    pub fn chapter(&self) -> Option<&str> {
        let (number, rest) = self.path.split_at_checked(2)?;
        let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        (number.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('-')).then_some(number)
    }

    /// Whether it is the first page of its chapter.
    pub fn begins_chapter(&self) -> bool {
        self.chapter().is_some() && self.path[2..].starts_with('-')
    }
}

/// The way from a page to the folder of the chapters.
pub fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}
