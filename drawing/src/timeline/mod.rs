//! What the GPUs did, and when, as a timeline: as JSON for a viewer (`chrome.rs`) or as a picture (`rows.rs` says what is in
//! it, `lanes.rs` how its rows are numbered, `order.rs` what happens before what; `svg.rs` draws it for a page, `touch.rs` has what
//! a page needs to know of it; `strips.rs` draws a race of two, and `text.rs` is for a terminal; `read.rs` reads the JSON back;
//! `comparison.rs` sets several one below the other).

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
    /// The recordings it is compared with.
    beside: &'a [&'a Trace],
    /// Where the axis ends at the earliest.
    until: u64,
}

impl<'a> Timeline<'a> {
    /// That of this recording.
    pub fn of(trace: &'a Trace) -> Timeline<'a> {
        Timeline { trace, beside: &[], until: 0 }
    }

    /// With the axis that these recordings need too, so that pictures of all of them can be compared.
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

    /// With an axis that does not end before so many nanoseconds, which a recording that is not at hand needs.
    pub fn until(self, until: u64) -> Timeline<'a> {
        Timeline { until, ..self }
    }

    /// The rows of this recording and of those beside it.
    fn all_rows(&self) -> Vec<Row> {
        [self.trace].iter().chain(self.beside).flat_map(|trace| rows(trace)).collect()
    }

    /// Where the axis of these rows ends, in nanoseconds from the start; at least at 1.
    fn end_of(&self, rows: &[Row]) -> u64 {
        rows.iter().flat_map(|row| &row.bars).map(|bar| bar.end).max().unwrap_or(0).max(self.until).max(1)
    }

    /// What its times are.
    fn kind(&self) -> &'static str {
        kind_of(self.trace.modelled)
    }
}

/// What kind of times these are.
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
