//! Several ranks on one machine.

mod collectives;
mod cost;
mod data_parallel;
mod gloo;
mod of_pytorch;
mod trouble;
mod unused;

use todevice::Machine;

fn machine(text: &str) -> Machine {
    text.parse().unwrap()
}
