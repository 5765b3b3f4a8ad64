//! The labs of the To Device course: one module and one binary a chapter.
//!
//! A lab is a function that tells a [`Lab`] what it does, as typed [events](Event). Where the events go is
//! not its concern: the terminal prints them as text or JSON, a test captures them, a web page draws them.
//!
//! ```
//! use labs::{Entry, Lab, Prediction, Result, cli::count, exact, text};
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
//!     let guess = lab.predict(Prediction::yes_no("03-zero", "Will the loss reach zero?"));
//!     for epoch in 1..=epochs {
//!         let loss = 1.0 / epoch as f64;
//!         lab.print(text!("Epoch [{epoch}/{epochs}], Loss: {:.4}", exact("loss", loss)));
//!     }
//!     lab.answer(guess, false);
//!     lab.figure(exact("num_samples", 1024));
//!     Ok(())
//! }
//!
//! let captured = labs::run_captured(&LAB, &["--epochs", "2"]);
//! assert_eq!(captured.exit_code, 0);
//! assert!(captured.text.contains("Epoch [2/2], Loss: 0.5000\nNum samples: 1024\n"));
//! ```
//!
//! Its binary is `fn main() -> std::process::ExitCode { labs::main(&LAB) }`. A lab of the course also names its
//! [runs](Run) that are tested, and stands in the list of [all labs](LABS), by which tests, book and page go.

mod by_device;
#[cfg(not(target_family = "wasm"))]
pub mod calibrate;
pub mod cli;
pub mod clock;
pub mod doctor;
mod entry;
mod event;
pub mod experiments;
mod figure;
pub mod files;
mod float;
pub mod given;
pub mod knobs;
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
pub mod lab_10_many_gpus;
pub mod lab_11_checkpoints;
pub mod lab_13_pitfalls;
mod listed;
pub mod model;
pub mod prediction;
#[cfg(not(target_family = "wasm"))]
pub mod progress;
pub mod render_html;
pub mod render_json;
pub mod render_text;
#[cfg(not(target_family = "wasm"))]
mod report;
#[cfg(not(target_family = "wasm"))]
mod score;
#[cfg(not(target_family = "wasm"))]
pub mod sensitivity;
pub mod stdio;
#[cfg(not(target_family = "wasm"))]
mod terminal;
mod text;
#[cfg(not(target_family = "wasm"))]
pub mod verify;
pub mod what_if;

pub use entry::{
    Captured, Entry, Stop, failed, run_captured, run_prepared, run_streamed, wrong,
};
pub use event::{Cell, Drawing, Event, Header, Table, without_measured};
pub use figure::{
    BYTES, Figure, Kind, Value, bytes, exact, found, hardware, measured, modelled,
    observed, raced, rounded_by, timed,
};
pub use float::{format_float, near_rounding_boundary};
pub use lab::{Bar, Lab, Progress, Sink};
pub use listed::{Listed, Run};
pub use prediction::{Guess, Key, Prediction};
#[cfg(not(target_family = "wasm"))]
pub use terminal::{main, program};
pub use text::{Part, Slot, Text};

/// Makes the list of the labs from the names of their modules.
macro_rules! labs {
    ($($module:ident $({ $($part:ident),* })? $(with $shared:ident)?),* $(,)?) => {
        /// All labs.
        // The page loads what only one of them takes with that one: `modules` splits the labs by this table.
        pub static LABS: [Listed; [$(stringify!($module)),*].len()] = [$(Listed {
            name: $module::LAB.name,
            module: stringify!($module),
            parts: &[$($(stringify!($part)),*)?],
            shared: &[$(stringify!($shared))?],
            run: |flags| run_captured(&$module::LAB, flags),
            run_prepared: |flags, prepare| run_prepared(&$module::LAB, flags, prepare),
            run_streamed: |flags, sink| run_streamed(&$module::LAB, flags, sink),
            command: || $module::LAB.command(),
            runs: $module::RUNS,
        }),*];
    };
}

// A lab that is a folder names its modules, in the order in which they are read. With it goes what it shares.
labs![
    lab_00_setup { findings, hidden, computer, made_up },
    lab_01_devices,
    lab_02_golden_rule,
    lab_03_training_loop with experiments,
    lab_04_memory {
        why_it_runs_out, evaluation, out_of_memory, filling, remedies,
        how_the_allocator_thinks, the_cache
    },
    lab_05_monitoring { the_table, watch },
    lab_06_amp { numbers, costs, training, scaling, images },
    lab_07_cudnn { search, determinism, tf32 },
    lab_08_asynchrony,
    lab_09_feeding { feeding, cifar10, epoch, workers, why_it_waits },
    lab_10_many_gpus { devices, by_hand, ranks, ddp, scaling, deadlock },
    lab_11_checkpoints { files, machines, optimizer, cpu_first, resume, disk },
    lab_13_pitfalls { pitfall, training, unmoved, small, starved, build, worker, way, ranks },
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
