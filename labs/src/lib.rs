//! The labs of the To Device course: one module and one binary per chapter.
//!
//! The sources are of three kinds: the [`frame`], which depends on no lab; a file or a folder for each lab; and the
//! [`tools`], which run the labs or examine the same machines.
//!
//! A lab is a function that sends typed [events](Event) to a [`Lab`]. The terminal prints them as text or JSON, a test
//! captures them, a web page draws them.
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
//! Its binary is `fn main() -> std::process::ExitCode { labs::main(&LAB) }`. A lab of the course also has tested
//! [runs](Run), and is in the list of [all labs](LABS), which tests, book and page use.

pub mod frame;
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
pub mod tools;

pub use frame::*;
pub use tools::*;

/// Makes the list of labs from the names of their modules.
macro_rules! labs {
    ($($module:ident $({ $($part:ident),* })?),* $(,)?) => {
        /// All labs.
        // A page loads the code of its lab only: `modules` splits the labs by this table.
        pub static LABS: [Listed; [$(stringify!($module)),*].len()] = [$(Listed {
            name: $module::LAB.name,
            module: stringify!($module),
            parts: &[$($(stringify!($part)),*)?],
            run: |flags| run_captured(&$module::LAB, flags),
            run_prepared: |flags, prepare| run_prepared(&$module::LAB, flags, prepare),
            run_streamed: |flags, sink| run_streamed(&$module::LAB, flags, sink),
            command: || $module::LAB.command(),
            runs: $module::RUNS,
        }),*];
    };
}

// A lab in a folder names its modules in reading order.
labs![
    lab_00_setup { findings, hidden, computer, made_up },
    lab_01_devices,
    lab_02_golden_rule,
    lab_03_training_loop { step },
    lab_04_memory {
        why_it_runs_out,
        evaluation,
        out_of_memory,
        filling,
        remedies,
        how_the_allocator_thinks,
        the_cache
    },
    lab_05_monitoring { the_table, watch },
    lab_06_amp { numbers, costs, training, scaling, images },
    lab_07_cudnn { search, determinism, tf32, channels_last },
    lab_08_asynchrony,
    lab_09_feeding { feeding, cifar10, epoch, workers, why_it_waits },
    lab_10_many_gpus { devices, by_hand, ranks, ddp, scaling, deadlock },
    lab_11_checkpoints { files, machines, optimizer, cpu_first, resume, disk },
    lab_13_pitfalls {
        pitfall,
        training,
        unmoved,
        small,
        starved,
        build,
        worker,
        way,
        ranks
    },
];

impl Listed {
    pub fn named(name: &str) -> Option<&'static Listed> {
        LABS.iter().find(|lab| lab.name == name)
    }
}

/// The error of a failed lab.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The result of a lab, and of most functions that it calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;
