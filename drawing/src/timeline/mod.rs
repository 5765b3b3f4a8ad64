//! Timelines of the GPUs' work, as JSON for a viewer (`chrome.rs`) or as a picture. `rows.rs` computes the picture's
//! contents, `lanes.rs` numbers its rows, and `order.rs` finds which piece happens before which. `svg.rs` draws it for
//! a page, `touch.rs` provides the data for a page's script, `strips.rs` draws a race of two, and `text.rs` is for
//! terminals. `read.rs` reads the JSON back, and `comparison.rs` puts several recordings one below the other.

mod chrome;
mod comparison;
mod lanes;
mod order;
mod read;
mod rows;
mod strips;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod touch;

use todevice_gpu::contract::events::Trace;

use crate::Drawing;
use crate::drawing::COLUMNS;
pub use comparison::Comparison;
pub use read::Recorded;
pub(crate) use rows::line_of;
use rows::{Row, rows};
pub use strips::Strip;
pub use text::painted;

/// The timeline of a recording ([`Machine::profile`](todevice::Machine::profile)).
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'a> {
    trace: &'a Trace,
    /// The recordings to compare it with.
    beside: &'a [&'a Trace],
    /// The minimum end of the axis.
    until: u64,
}

impl<'a> Timeline<'a> {
    /// Creates the timeline of a recording.
    pub fn of(trace: &'a Trace) -> Timeline<'a> {
        Timeline { trace, beside: &[], until: 0 }
    }

    /// Extends the axis to cover these recordings too, so that pictures of all of them can be compared.
    ///
    /// ```
    /// use drawing::Timeline;
    /// use todevice::{Machine, Tensor};
    ///
    /// let machine: Machine = "sim:t4".parse()?;
    /// let ones = |size| machine.enter(|| machine.profile(|| Tensor::ones(&[size])?.cuda())).1;
    /// ones(1); // the first use of a GPU takes longest
    /// let (short, long) = (ones(64), ones(1 << 20));
    /// let text = Timeline::of(&short).beside(&[&long]).to_text(80);
    /// let axis = |text: &str| text.lines().find(|line| line.contains('└')).map(str::to_owned);
    /// assert_eq!(axis(&text), axis(&Timeline::of(&long).to_text(80)));
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn beside(self, beside: &'a [&'a Trace]) -> Timeline<'a> {
        Timeline { beside, ..self }
    }

    /// Extends the axis to at least this many nanoseconds, for comparison with a recording that is not at hand.
    pub fn until(self, until: u64) -> Timeline<'a> {
        Timeline { until, ..self }
    }

    /// The rows of this recording and of those beside it.
    fn all_rows(&self) -> Vec<Row> {
        [self.trace].iter().chain(self.beside).flat_map(|trace| rows(trace)).collect()
    }

    /// The end of the axis for these rows, in nanoseconds from the start; at least 1.
    fn end_of(&self, rows: &[Row]) -> u64 {
        rows.iter().flat_map(|row| &row.bars).map(|bar| bar.end).max().unwrap_or(0).max(self.until).max(1)
    }

    /// The kind of its times.
    fn kind(&self) -> &'static str {
        kind_of(self.trace.modelled)
    }
}

/// The name of a kind of times.
fn kind_of(modelled: bool) -> &'static str {
    if modelled { "modelled" } else { "measured" }
}

impl From<&Trace> for Drawing {
    fn from(trace: &Trace) -> Drawing {
        Drawing::from(Timeline::of(trace))
    }
}

impl From<Timeline<'_>> for Drawing {
    fn from(timeline: Timeline<'_>) -> Drawing {
        Drawing {
            svg: timeline.to_svg(),
            narrow: Some(timeline.to_narrow_svg()),
            text: Some(timeline.to_text(COLUMNS)),
        }
    }
}
