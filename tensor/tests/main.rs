//! What can be tested of the crate by its public names: one binary, which links once and runs all tests side by side.

/// Whether a call ended in this error.
macro_rules! refused {
    ($result:expr, $refusal:pat) => {
        $result.is_err_and(|error| matches!(error.refusal(), Some($refusal)))
    };
}

#[path = "common/gradcheck.rs"]
mod gradcheck;
#[path = "common/halves.rs"]
mod half_patterns;
#[path = "common/model.rs"]
mod model;
#[cfg(target_os = "linux")]
#[path = "../../tests/fake_cuda/stand_ins.rs"]
mod stand_ins;
#[path = "common/sweep.rs"]
mod sweep;

mod amp;
mod autograd;
mod checkpoint;
mod checkpoints;
mod conv;
mod convolutions_on_devices;
mod cuda_sweep;
#[cfg(target_os = "linux")]
mod cudnn;
mod data;
mod devices;
mod distributed;
mod errors;
mod feeding;
mod gradients;
mod half_done;
mod halves;
mod inplace;
mod launch_blocking;
mod layers;
mod machine;
mod memory;
mod monitor;
mod nn;
mod operations;
mod parallel;
mod pinned;
mod places;
mod races;
mod regressions;
mod resume;
mod several_gpus;
mod state;
mod streams;
mod sync_debug;
mod tf32;
mod trace;
mod views;
mod vision;
mod words;

/// Tests share a process, whose own generator whoever stands beside may draw from. This one does so while all others run (its
/// name is the first), so that a test which seeds that generator, where it should enter a machine, fails at once.
#[test]
fn a_bystander_draws_all_the_while() {
    std::thread::spawn(|| {
        loop {
            todevice::Tensor::rand(&[1]).unwrap();
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    });
}
