//! The colours of all pictures. They stand out on white and on black.

pub const ORANGE: &str = "#d9480f";
pub const AMBER: &str = "#e67700";
pub const BLUE: &str = "#1c7ed6";
/// White letters can be read on it.
pub const DARK_BLUE: &str = "#1971c2";
pub const TEAL: &str = "#0c8599";
pub const GREEN: &str = "#2b8a3e";
pub const LIGHT_GREEN: &str = "#2f9e44";
pub const PURPLE: &str = "#ae3ec9";
pub const DARK_PURPLE: &str = "#9c36b5";
pub const GREY: &str = "#868e96";
pub const WHITE: &str = "#fff";
/// That of the text of the page around the picture.
pub const CURRENT: &str = "currentColor";
