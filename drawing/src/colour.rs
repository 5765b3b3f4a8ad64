//! The colours of all pictures, each with the same meaning everywhere: on pages, and in timelines in a terminal.
//! They are visible on white and on black. `book/theme/course.css` uses the first four with the same meanings.

/// The host: its work and its memory.
pub const HOST: &str = "#c2410c";
/// A device: its computation and its memory. White text is readable on it.
pub const DEVICE: &str = "#1971c2";
/// Data being copied.
pub const COPY: &str = "#2f9e44";
/// Waiting.
pub const WAIT: &str = "#ae3ec9";

// Uses of memory. Memory itself has the text's colour: filled where it is allocated, empty where it is free.

pub const PARAMETER: &str = "#a67c00";
pub const GRADIENT: &str = "#0c8599";
/// An optimizer's state for each parameter.
pub const OPTIMIZER: &str = "#d6336c";
/// Tensors with a row per sample: data and activations.
pub const SAMPLES: &str = "#868e96";
/// Temporary tensors of an operation.
pub const TEMPORARY: &str = "#7048e8";

pub const WHITE: &str = "#fff";
/// The colour of the text on the page around the picture.
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

    /// The relative luminance of a colour, as WCAG defines it: 0 for black, 1 for white.
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
