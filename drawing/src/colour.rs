//! The colours of all pictures. They stand out on white and on black. The page, in `book/theme/course.css`, has the first four
//! too, and no other meaning for them.

/// What the host does.
pub const HOST: &str = "#c2410c";
/// What a device computes. White letters can be read on it.
pub const DEVICE: &str = "#1971c2";
/// Bytes on their way.
pub const COPY: &str = "#2f9e44";
/// Somebody waits.
pub const WAIT: &str = "#ae3ec9";

pub const ORANGE: &str = "#d9480f";
pub const AMBER: &str = "#e67700";
pub const BLUE: &str = "#1c7ed6";
/// White letters can be read on it.
pub const TEAL: &str = "#0c8599";
pub const GREEN: &str = "#2b8a3e";
pub const PURPLE: &str = "#ae3ec9";
pub const DARK_PURPLE: &str = "#9c36b5";
pub const GREY: &str = "#868e96";
pub const WHITE: &str = "#fff";
/// That of the text of the page around the picture.
pub const CURRENT: &str = "currentColor";
