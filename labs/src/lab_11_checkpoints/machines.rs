//! A file saved on one machine and loaded on others.

use todevice::Machine;
use todevice::prelude::*;
use todevice::serialize::MapLocation;

use super::Disk;
use crate::frame::render_text::wrap;
use crate::{Lab, Prediction, Table, exact, row};

const MAP_LOCATIONS: [(&str, fn() -> MapLocation); 4] = [
    ("None", || MapLocation::None),
    ("cpu", || Device::Cpu.into()),
    ("cuda:0", || Device::cuda(0).into()),
    ("{cuda:1: cuda:0}", || MapLocation::map([("cuda:1", "cuda:0")])),
];

// ANCHOR: loaded_on
/// The device of a file's tensor after a machine has loaded it.
fn loaded_on(
    machine: &Machine,
    disk: &Disk,
    map_location: fn() -> MapLocation,
) -> Result<Device> {
    machine.enter(|| {
        let loaded = disk.load("second.pt", map_location())?;
        Ok(loaded.as_tensor()?.device())
    })
}
// ANCHOR_END: loaded_on

pub(super) fn map_location(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    lab.section(2, "On another machine");
    let guess = lab.predict(
        Prediction::number(
            "11-machines",
            "A tensor was saved from `cuda:1` of a machine with two GPUs. Three machines load the file without `map_location`: one \
             with two GPUs, one with a single GPU, and one with none. On how many of them does that work?",
        )
        .out_of(3)
        .because("Without `map_location` each tensor goes to the device that it was saved from, and that must be there."),
    );
    // ANCHOR: second
    let two: Machine = "sim:t4x2".parse()?;
    two.enter(|| {
        let x = Tensor::ones((&[2, 2], Device::cuda(1)))?;
        disk.save(&x, "second.pt")
    })?;
    // ANCHOR_END: second
    let mut table = Table::new(["map_location", "two GPUs", "one GPU", "no GPU"]);
    let mut errors: Vec<String> = Vec::new();
    let mut works = Vec::new();
    for (name, map_location) in MAP_LOCATIONS {
        let mut cells = row![name];
        let mut machines = 0;
        for machine in ["sim:t4x2", "sim:t4", "none"] {
            let outcome = match loaded_on(&machine.parse()?, disk, map_location) {
                Ok(device) => {
                    machines += 1;
                    device.to_string()
                }
                Err(error) => {
                    let says = error.to_string();
                    if !errors.contains(&says) {
                        errors.push(says);
                    }
                    "error".to_owned()
                }
            };
            cells.extend(row![exact("loaded_on", outcome)]);
        }
        works.push(machines);
        table = table.row(cells);
    }
    lab.table(table);
    lab.answer(guess, exact("machines", works[0]));
    for error in errors {
        lab.report(wrap(&error));
    }
    lab.prose(
        "Both sentences are PyTorch's: the first is said on the machine with one GPU, the second on that with none. Every machine has \
         a CPU, so map_location=cpu works on all three.",
    );
    Ok(())
}
