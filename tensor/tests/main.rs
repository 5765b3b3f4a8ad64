//! The crate's tests through its public API: one binary, which links once and runs all tests in parallel.

/// Whether a call returned this error.
macro_rules! refused {
    ($result:expr, $refusal:pat) => {
        $result.is_err_and(|error| matches!(error.refusal(), Some($refusal)))
    };
}

#[path = "../../tests/each_case.rs"]
mod each_case;
#[path = "common/gradcheck.rs"]
mod gradcheck;
#[path = "common/halves.rs"]
mod half_patterns;
#[path = "common/model.rs"]
mod model;
#[cfg(target_os = "linux")]
#[path = "../../tests/fake_cuda/stand_ins.rs"]
mod stand_ins;

mod amp;
mod autograd;
mod checked_gradients;
mod checkpoint;
mod checkpoints;
mod compiled;
mod conv;
mod convolutions_on_devices;
mod cuda_sweep;
#[cfg(target_os = "linux")]
mod cudnn;
mod data;
mod derive;
mod devices;
mod distributed;
mod errors;
mod exact_numbers;
mod examples;
mod feeding;
mod first_wrong;
mod gradients;
#[cfg(target_os = "linux")]
mod guards;
mod half_done;
mod halves;
#[cfg(target_os = "linux")]
mod handles;
mod inplace;
mod launch_blocking;
mod layers;
mod left_behind;
mod losses;
mod machine;
mod masks;
mod memory;
mod messages;
mod monitor;
mod nn;
mod older_states;
mod operations;
mod operators;
mod options;
mod parallel;
mod pinned;
mod places;
mod races;
mod regressions;
mod resume;
mod set_up;
mod several_gpus;
mod sizes;
mod soft_targets;
mod state;
mod streams;
mod strides;
mod sweep_in_time;
mod sync_debug;
mod tf32;
mod trace;
mod views;
mod views_written;
mod vision;
mod words;

use std::io::Write;

use todevice::{Machine, manual_seed};

/// Runs `program` as a fresh process does after `torch.manual_seed(seed)`.
fn seeded<R>(seed: u64, program: impl FnOnce() -> R) -> R {
    Machine::new().enter(|| {
        manual_seed(seed);
        program()
    })
}

/// Tests share a process, and any of them may draw from its generator, so a test that needs certain numbers is
/// [`seeded`]. This test, the first by name, runs alongside all others; if one of them seeds the generator of the
/// process, it aborts the tests.
#[test]
fn a_bystander_sees_who_seeds_the_process() {
    std::thread::spawn(|| {
        let untouched = Machine::default_generator().initial_seed();
        loop {
            let seed = Machine::default_generator().initial_seed();
            if seed != untouched {
                // Write directly: `eprintln!` would go to the captured output of this test, which has passed.
                let _ =
                    writeln!(std::io::stderr(), "a test seeds the process with {seed}: use `seeded` there");
                std::process::exit(101);
            }
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    });
}
