//! Comparing algorithms for the same operation by time and workspace.

use std::time::Duration;

use crate::Role;
use crate::colour::DEVICE;
use crate::drawing::{Drawing, is_narrow};
use crate::svg::{self, Element, rect, text, titled};
use crate::words;

/// One algorithm.
#[derive(Clone, Debug)]
pub struct Algorithm {
    pub name: String,
    /// Its time, where a clock measured it.
    pub time: Option<Duration>,
    /// Its workspace in bytes.
    pub workspace: u64,
    /// Who chooses it: `the search`.
    pub taken_by: Vec<String>,
}

const UNKNOWN: &str = "unknown";
const FONT: u32 = 13;
const LINE: f64 = 18.0;
const BAR: f64 = 16.0;

/// Draws a time bar and a workspace bar for each algorithm. All times share one scale, and so do all workspaces.
///
/// ```
/// use std::time::Duration;
/// use drawing::algorithms::{Algorithm, picture};
/// let one = |name: &str, micros, workspace, taken_by: &[&str]| Algorithm {
///     name: name.to_owned(),
///     time: Some(Duration::from_micros(micros)),
///     workspace,
///     taken_by: taken_by.iter().map(|who| who.to_string()).collect(),
/// };
/// let svg = picture(&[one("WINOGRAD", 53, 4 << 20, &["the search"]), one("GEMM", 88, 0, &[])], "modelled").svg;
/// assert!(svg.contains(">the search takes it</text>") && svg.contains(">88 µs</text>") && svg.contains(">0 bytes</text>"));
/// ```
pub fn picture(algorithms: &[Algorithm], kind: &str) -> Drawing {
    Drawing::of(|width| drawn(algorithms, kind, width))
}

fn drawn(algorithms: &[Algorithm], kind: &str, width: f64) -> String {
    let narrow = is_narrow(width);
    // Names are in capitals, which are wider.
    let names = algorithms.iter().map(|algorithm| 1.35 * svg::wide(&algorithm.name, FONT));
    let left = if narrow { 1.0 } else { names.fold(0.0, f64::max) + 12.0 };
    let column = (width - left - if narrow { 0.0 } else { 16.0 }) / 2.0;
    let columns = [left, left + column + if narrow { 0.0 } else { 16.0 }];
    let mut lines = Vec::new();
    let mut y = 2.0;
    for (x, words) in columns.into_iter().zip([format!("time ({kind})"), "workspace".to_owned()]) {
        lines.push(text((x, y + 12.0), "start").around(&words));
    }
    y += LINE + 6.0;
    // Leave room for the figure to the right of each bar.
    let figures = algorithms.iter().flat_map(|algorithm| {
        [algorithm.time.map_or_else(|| UNKNOWN.to_owned(), words::time), words::bytes(algorithm.workspace)]
    });
    let figure = figures.map(|figure| svg::wide(&figure, FONT)).fold(0.0, f64::max) + 12.0;
    let nanoseconds = |algorithm: &Algorithm| algorithm.time.unwrap_or_default().as_nanos() as f64;
    let most = |of: &dyn Fn(&Algorithm) -> f64| algorithms.iter().map(of).fold(1.0, f64::max);
    let scales = [most(&nanoseconds), most(&|algorithm| algorithm.workspace as f64)]
        .map(|most| (column - figure) / most);
    for algorithm in algorithms {
        let Algorithm { name, time, workspace, taken_by } = algorithm;
        let taken = match &taken_by[..] {
            [] => String::new(),
            [who] => format!("{who} takes it"),
            all => format!("{} take it", all.join(" and ")),
        };
        lines.push(text((1.0, y + 13.0), "start").with("font-weight", "bold").around(name));
        if !taken.is_empty() {
            let at = if narrow { (width - 1.0, "end", y) } else { (1.0, "start", y + LINE) };
            lines.push(text((at.0, at.2 + 13.0), at.1).around(&taken));
        }
        y += if narrow { LINE } else { 0.0 };
        let time = time.map_or_else(|| UNKNOWN.to_owned(), words::time);
        let bars: [(&str, f64, String, &dyn Fn(Element) -> String); 2] = [
            ("time", nanoseconds(algorithm), time, &|shape| shape.pale(DEVICE, 0.35).empty()),
            ("workspace", *workspace as f64, words::bytes(*workspace), &|shape| {
                Role::Workspace.look(shape, false)
            }),
        ];
        for (((what, amount, figure, look), x), scale) in bars.into_iter().zip(columns).zip(scales) {
            let length = amount * scale;
            if length > 0.0 {
                let shape = rect((x, y), (length.max(1.0), BAR));
                lines.push(titled(&format!("{name}, {what}: {figure}"), &look(shape)));
            }
            lines.push(text((x + length + 7.0, y + 13.0), "start").around(&figure));
        }
        y += BAR + if narrow { 14.0 } else { 28.0 };
    }
    svg::picture((width, y), FONT, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, assert_drawn};

    fn algorithm(name: &str, micros: Option<u64>, workspace: u64, taken_by: &[&str]) -> Algorithm {
        let taken_by = taken_by.iter().map(|who| (*who).to_owned()).collect();
        Algorithm { name: name.to_owned(), time: micros.map(Duration::from_micros), workspace, taken_by }
    }

    #[test]
    fn times_have_one_scale_and_workspaces_another() {
        let both = [
            algorithm("WINOGRAD_NONFUSED", Some(50), 4 << 20, &["the search"]),
            algorithm("IMPLICIT_PRECOMP_GEMM", Some(100), 1 << 20, &["the rule"]),
        ];
        let drawing = picture(&both, "modelled");
        assert_drawn(&drawing);
        let texts = all(&drawing.svg, "text");
        for words in ["time (modelled)", "the search takes it", "the rule takes it", "50 µs", "4 MiB"] {
            assert!(texts.contains(&words.to_owned()), "{words}: {texts:?}");
        }
        let bars = drawing.svg.lines().filter(|line| line.contains(" height=\"16.0\""));
        let width =
            |line: &str| line.split_once(" width=\"").unwrap().1.split('"').next().unwrap().parse().unwrap();
        let widths: Vec<f64> = bars.map(width).collect();
        assert!((widths[2] / widths[0] - 2.0).abs() < 0.01 && (widths[1] / widths[3] - 4.0).abs() < 0.02);
    }

    #[test]
    fn none_one_and_what_no_clock_saw_are_drawn_as_well() {
        assert_drawn(&picture(&[], "modelled"));
        let unknown = picture(&[algorithm("GEMM", None, 0, &["the search", "the rule"])], "measured");
        assert_drawn(&unknown);
        assert!(
            unknown.svg.contains(">unknown</text>")
                && unknown.svg.contains(">the search and the rule take it</text>")
        );
        assert_drawn(&picture(&[algorithm("GEMM", Some(u64::MAX), u64::MAX, &[])], "measured"));
    }
}
