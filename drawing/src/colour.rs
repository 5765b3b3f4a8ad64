//! The colours of all pictures, each with one meaning wherever it stands: on pages, and in the timelines of a terminal. They stand
//! out on white and on black. The page, in `book/theme/course.css`, has the first four too, and no other meaning for them.

/// The host: what it does, and its memory.
pub const HOST: &str = "#c2410c";
/// A device: what it computes, and its memory. White letters can be read on it.
pub const DEVICE: &str = "#1971c2";
/// Bytes on their way.
pub const COPY: &str = "#2f9e44";
/// Somebody waits.
pub const WAIT: &str = "#ae3ec9";

// What memory is for. Memory as such has the colour of the text: full where it is allocated, empty where it is free.

pub const PARAMETER: &str = "#a67c00";
pub const GRADIENT: &str = "#0c8599";
/// What an optimizer keeps for each parameter.
pub const OPTIMIZER: &str = "#d6336c";
/// What has a row for each sample: data, and what a network makes of it.
pub const SAMPLES: &str = "#868e96";
/// What an operation needs for a moment.
pub const TEMPORARY: &str = "#7048e8";

pub const WHITE: &str = "#fff";
/// That of the text of the page around the picture.
pub const CURRENT: &str = "currentColor";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_same_four() {
        let css = include_str!("../../book/theme/course.css");
        for (name, colour) in [("host", HOST), ("device", DEVICE), ("copy", COPY), ("wait", WAIT)] {
            assert!(css.contains(&format!("    --{name}: {colour};\n")), "{name}");
        }
    }

    /// How light a colour is, as WCAG reckons: 0 for black, 1 for white.
    fn luminance(colour: &str) -> f64 {
        let light = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * light(1) + 0.7152 * light(3) + 0.0722 * light(5)
    }

    #[test]
    fn all_stand_out_on_white_and_on_black_and_none_is_another() {
        let all = [HOST, DEVICE, COPY, WAIT, PARAMETER, GRADIENT, OPTIMIZER, SAMPLES, TEMPORARY];
        for (index, colour) in all.iter().enumerate() {
            let light = luminance(colour);
            let (on_white, on_black) = (1.05 / (light + 0.05), (light + 0.05) / 0.05);
            assert!(on_white >= 3.0 && on_black >= 3.0, "{colour}: {on_white:.2}, {on_black:.2}");
            assert!(!all[..index].contains(colour), "{colour}");
        }
    }
}
