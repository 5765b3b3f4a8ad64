//! The frame of all labs: flags, events, figures, predictions and renderers. It depends on no lab.

mod by_device;
pub mod cli;
pub mod clock;
pub(crate) mod entry;
mod event;
mod figure;
pub mod files;
mod float;
pub mod given;
pub mod knobs;
mod lab;
mod listed;
pub mod prediction;
#[cfg(not(target_family = "wasm"))]
pub mod progress;
pub mod render_html;
pub mod render_json;
pub mod render_text;
#[cfg(not(target_family = "wasm"))]
mod score;
pub mod stdio;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod terminal;
pub(crate) mod text;

pub(crate) use by_device::compute_capability;
pub use entry::{
    Captured, Entry, Stop, failed, run_captured, run_prepared, run_streamed, wrong,
};
pub use event::{Cell, Drawing, Event, Header, Table, without_measured};
pub use figure::{
    BYTES, Figure, Kind, Value, bytes, exact, hardware, machine_figure, measured,
    modelled, observed, raced, rounded_by, timed,
};
pub use float::{format_float, near_rounding_boundary};
pub use lab::{Bar, Lab, Progress, Sink};
pub use listed::{Listed, Run};
pub use prediction::{Guess, Key, Prediction};
#[cfg(not(target_family = "wasm"))]
pub use terminal::{main, program};
pub use text::{Part, Slot, Text};

/// A web page has no terminal: it calls [`Entry::start`] with its own sink. This only lets the binaries compile there.
#[cfg(target_family = "wasm")]
pub fn main<O: clap::Args>(_lab: &Entry<O>) -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
