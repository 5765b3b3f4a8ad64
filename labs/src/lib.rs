//! The labs of the To Device course: one module and one binary a chapter.
//!
//! A lab is a function that tells a [`Lab`] what it does, as typed [events](Event). Where the events go is
//! not its concern: the terminal prints them as text or JSON, a test captures them, a web page draws them.
//!
//! ```
//! use labs::{Entry, Lab, Result, cli::count, exact, text};
//!
//! #[derive(clap::Args)]
//! pub struct Options {
//!     /// Passes over the dataset
//!     #[arg(long, default_value_t = 3, value_parser = count(1..=1000))]
//!     pub epochs: usize,
//! }
//!
//! pub const LAB: Entry<Options> = Entry { name: "lab-03", title: "The training loop", run };
//!
//! pub fn run(lab: &mut Lab, options: &Options) -> Result<()> {
//!     let epochs = options.epochs;
//!
//!     lab.section(1, "Training");
//!     lab.predict("Will the loss reach zero?");
//!     for epoch in 1..=epochs {
//!         let loss = 1.0 / epoch as f64;
//!         lab.print(text!("Epoch [{epoch}/{epochs}], Loss: {:.4}", exact("loss", loss)));
//!     }
//!     lab.figure(exact("num_samples", 1024));
//!     Ok(())
//! }
//!
//! let captured = labs::run_captured(&LAB, &["--epochs", "2"]);
//! assert_eq!(captured.exit_code, 0);
//! assert!(captured.text.contains("Epoch [2/2], Loss: 0.5000\nNum samples: 1024\n"));
//! ```
//!
//! Its binary is `fn main() -> std::process::ExitCode { labs::main(&LAB) }`.

#[cfg(not(target_family = "wasm"))]
pub mod calibrate;
pub mod cli;
mod entry;
mod event;
mod figure;
mod float;
mod lab;
pub mod lab_00_setup;
pub mod lab_01_devices;
pub mod lab_02_golden_rule;
pub mod lab_03_training_loop;
pub mod lab_04_memory;
pub mod lab_05_monitoring;
pub mod lab_06_amp;
pub mod lab_07_cudnn;
pub mod lab_08_asynchrony;
pub mod lab_09_feeding;
pub mod render_json;
pub mod render_text;
pub mod stdio;
#[cfg(not(target_family = "wasm"))]
mod terminal;
mod text;
#[cfg(not(target_family = "wasm"))]
pub mod verify;

pub use entry::{Captured, Entry, Stop, run_captured};
pub use event::{Cell, Drawing, Event, Header, Table, without_measured};
pub use figure::{Figure, Kind, Value, exact, hardware, measured, modelled, observed, raced, timed};
pub use float::{format_float, near_rounding_boundary};
pub use lab::{Bar, Lab, Progress, Sink};
#[cfg(not(target_family = "wasm"))]
pub use terminal::{main, program};
pub use text::{Part, Slot, Text};

/// All labs: the name of each, and how to run it in this process.
pub const LABS: &[(&str, fn(&[&str]) -> Captured)] = &[
    ("lab-00", |flags| run_captured(&lab_00_setup::LAB, flags)),
    ("lab-01", |flags| run_captured(&lab_01_devices::LAB, flags)),
    ("lab-02", |flags| run_captured(&lab_02_golden_rule::LAB, flags)),
    ("lab-03", |flags| run_captured(&lab_03_training_loop::LAB, flags)),
    ("lab-04", |flags| run_captured(&lab_04_memory::LAB, flags)),
    ("lab-05", |flags| run_captured(&lab_05_monitoring::LAB, flags)),
    ("lab-06", |flags| run_captured(&lab_06_amp::LAB, flags)),
    ("lab-07", |flags| run_captured(&lab_07_cudnn::LAB, flags)),
    ("lab-08", |flags| run_captured(&lab_08_asynchrony::LAB, flags)),
    ("lab-09", |flags| run_captured(&lab_09_feeding::LAB, flags)),
];

/// Whatever made a lab fail.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The result of a lab, and of most of what it calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A web page has no terminal: it calls [`Entry::start`] with a sink of its own. This only lets the binaries
/// compile there.
#[cfg(target_family = "wasm")]
pub fn main<O: clap::Args>(_lab: &Entry<O>) -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
