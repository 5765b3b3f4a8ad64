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
    /// The number of the chapter, if the page is one: `03-training-loop.md` → `03`
    pub fn chapter(&self) -> Option<&str> {
        let (number, rest) = self.path.split_at_checked(2)?;
        (number.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('-')).then_some(number)
    }
}

/// The way from a page to the folder of the chapters.
pub fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}
