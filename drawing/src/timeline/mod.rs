//! What the GPUs did, and when, as a timeline: as JSON for a viewer (`chrome.rs`) or as a picture (`rows.rs` says what is in
//! it, `svg.rs` draws it for a page, `strips.rs` for a race of two, and `text.rs` for a terminal).

mod chrome;
mod rows;
mod strips;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use todevice_gpu::driver::Engine;
use todevice_gpu::events::Trace;

pub use strips::Strip;

/// The timeline of a recording ([`Machine::profile`](todevice::Machine::profile)).
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'a> {
    trace: &'a Trace,
}

impl<'a> Timeline<'a> {
    /// That of this recording.
    pub fn of(trace: &'a Trace) -> Timeline<'a> {
        Timeline { trace }
    }

    /// What its times are.
    fn kind(&self) -> &'static str {
        if self.trace.modelled { "modelled" } else { "measured" }
    }
}

/// In the order of a batch's way: to the device, through the kernels, back.
const ENGINES: [Engine; 4] = [Engine::HostToDevice, Engine::Compute, Engine::DeviceToHost, Engine::Peer];
