//! Several ranks on one machine.

mod collectives;
mod cost;
mod data_parallel;
mod of_pytorch;
mod trouble;

use todevice::Machine;

fn machine(text: &str) -> Machine {
    text.parse().unwrap()
}
