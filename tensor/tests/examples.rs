//! The programs in `tensor/examples`.

use todevice::{Device, Machine, Result};

#[path = "../examples/own_dataset.rs"]
mod own_dataset;
#[path = "../examples/own_module.rs"]
mod own_module;
#[path = "../examples/resume.rs"]
mod resume;
#[path = "../examples/train.rs"]
#[allow(dead_code)] // Its `main` parses command-line arguments.
mod train;
#[path = "../examples/two_streams.rs"]
#[allow(dead_code)] // Its `main` only prints.
mod two_streams;

#[test]
fn training_gives_the_same_losses_on_any_device() -> Result<()> {
    let [cpu, gpu] = ["none", "sim:t4"].map(|gpu| gpu.parse::<Machine>()?.enter(train::train));
    let (cpu, gpu) = (cpu?, gpu?);
    assert_eq!(cpu, gpu);
    assert!(cpu[9] < cpu[0] / 4.0, "{cpu:?}");
    Ok(())
}

#[test]
fn two_streams_take_less_time_than_one() -> Result<()> {
    let [apart, together] = "sim:t4".parse::<Machine>()?.enter(|| two_streams::times(Device::cuda(0)))?;
    assert!(together < 0.8 * apart, "{together} {apart}");
    Ok(())
}

/// The last one compares the losses of its two runs itself.
#[test]
fn the_other_examples_run() -> Result<()> {
    own_module::main()?;
    own_dataset::main()?;
    resume::main()
}
