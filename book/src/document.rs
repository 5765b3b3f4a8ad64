pub struct Page<'a> {
    /// The path for messages, relative to the root of the checkout.
    pub file: &'a str,
    /// The path relative to the chapters folder.
    pub path: &'a str,
    pub text: &'a str,
}

impl Page<'_> {
    /// The number of its chapter, if any: `03-training-loop.md` → `03`, and `04b-allocator.md` → `04`.
    pub fn chapter(&self) -> Option<&str> {
        let (number, rest) = self.path.split_at_checked(2)?;
        let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        (number.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('-')).then_some(number)
    }

    pub fn begins_chapter(&self) -> bool {
        self.chapter().is_some() && self.path[2..].starts_with('-')
    }
}

pub fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}
