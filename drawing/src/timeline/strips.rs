//! The timeline as strips, to put beside those of another.

use std::time::Duration;

use super::Timeline;
use super::rows::{Bar, Sort, rows};
use crate::colour::{COPY, CURRENT, DEVICE, HOST, WAIT, WHITE};
use crate::svg::{Element, element};

/// The height of a strip.
const HEIGHT: u32 = 20;
/// The minimum width of a bar, in percent of the strip.
const NARROWEST: f64 = 0.15;

/// A row of a timeline as a separate picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strip {
    /// The row's name: `host`, `copies` or `GPU`.
    pub name: &'static str,
    /// It takes the width of its container, and has no content for screen readers.
    pub svg: String,
}

impl Timeline<'_> {
    /// Draws each row of the timeline as a picture that takes the width of its container. The rows end at `end`, so
    /// that several recordings can share one scale. If no device worked, the host's row shows the named ranges.
    ///
    /// ```
    /// use std::time::Duration;
    /// use drawing::Timeline;
    /// use todevice::{Machine, Tensor};
    ///
    /// let machine: Machine = "sim:t4".parse()?;
    /// let (x, trace) = machine.enter(|| machine.profile(|| Tensor::ones(&[64])?.cuda()?.exp()));
    /// assert!(x.is_ok());
    /// let strips = Timeline::of(&trace).to_strips(Duration::from_micros(50));
    /// assert_eq!(strips.iter().map(|strip| strip.name).collect::<Vec<_>>(), ["host", "copies", "GPU"]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn to_strips(&self, end: Duration) -> Vec<Strip> {
        let all = rows(self.trace);
        let is_range = |bar: &Bar| bar.sort == Sort::Range;
        let only_ranges = all.iter().flat_map(|row| &row.bars).all(is_range);
        let end = end.as_nanos().max(1) as f64;
        let mut strips: Vec<Strip> = Vec::new();
        for row in all.iter().filter(|row| only_ranges || !row.bars.iter().any(is_range)) {
            let name = match row.bars[0].sort {
                _ if row.on_host => "host",
                Sort::Copy | Sort::Collective => "copies",
                _ => "GPU",
            };
            let bars: String = row.bars.iter().map(|bar| shape(bar, row.on_host, end)).collect();
            match strips.iter_mut().find(|strip| strip.name == name) {
                Some(strip) => strip.svg += &bars,
                None => strips.push(Strip { name, svg: bars }),
            }
        }
        for strip in &mut strips {
            let open = element("svg").with("xmlns", "http://www.w3.org/2000/svg").with("width", "100%");
            let open = open.with("height", HEIGHT).with("aria-hidden", true).empty();
            strip.svg = format!("{}>{}</svg>", open.trim_end_matches("/>"), strip.svg);
        }
        strips
    }
}

/// A bar in the style of its sort.
fn shape(bar: &Bar, on_host: bool, end: f64) -> String {
    let share = |time: u64| 100.0 * time as f64 / end;
    let (from, width) = (share(bar.start), (share(bar.end) - share(bar.start)).max(NARROWEST));
    let across = || element("rect").with("x", percent(from)).with("width", percent(width));
    let within = |element: Element, room: u32| element.with("y", room).with("height", HEIGHT - 2 * room);
    let worker = if on_host { HOST } else { DEVICE };
    match bar.sort {
        Sort::Copy | Sort::Collective => within(across(), 1).pale(COPY, 0.35).empty(),
        Sort::Wait => {
            let empty = within(across(), 1).with("fill", "none").with("stroke", WAIT);
            empty.with("stroke-width", 1.5).with("stroke-dasharray", "4 2").empty()
        }
        Sort::Memory => within(across(), 0).with("fill", CURRENT).with("fill-opacity", 0.3).empty(),
        Sort::Gemm => {
            let stripe = across().with("y", HEIGHT - 5).with("height", 2).with("fill", WHITE);
            within(across(), 0).with("fill", worker).empty() + &stripe.empty()
        }
        // Named ranges follow one another directly: a small gap separates them.
        Sort::Range => {
            let apart = across().with("stroke", "var(--bg, #fff)").with("stroke-width", 1.5);
            within(apart, 0).with("fill", worker).empty()
        }
        Sort::Kernel => within(across(), 0).with("fill", worker).empty(),
    }
}

/// Formats a percentage of the width.
fn percent(share: f64) -> String {
    format!("{}%", (100.0 * share).round() / 100.0)
}
