//! The inputs of a run of a student's code.

use serde::{Deserialize, Serialize};
use todevice::{Device, Machine, cuda};

/// A machine, a seed and a size. What the code is given depends on them and on nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// As `--gpu` names it.
    pub gpu: String,
    pub seed: u64,
    /// Each exercise defines the meaning of its size.
    pub size: usize,
}

/// Operations that a run may ask for. No solution asks for a tenth of them, and a loop that does not end is told of in a second,
/// also on a computer that has much else to do.
pub(crate) const OPERATIONS: u64 = 50_000;

impl Case {
    /// Every combination. The first one is what a diagnosis is told of, where all are alike.
    pub fn all(gpus: &[&str], seeds: &[u64], sizes: &[usize]) -> Vec<Case> {
        let mut cases = Vec::new();
        for &size in sizes {
            for &seed in seeds {
                for &gpu in gpus {
                    cases.push(Case { gpu: gpu.to_owned(), seed, size });
                }
            }
        }
        cases
    }

    /// A machine of its own, whose program has to end.
    pub fn machine(&self) -> Machine {
        let machine: Machine = self.gpu.parse().expect("a simulated machine, or none");
        machine.limit_operations(OPERATIONS);
        machine
    }

    /// The machine's GPU, if it has one, else the CPU.
    pub fn device(&self) -> Device {
        if cuda::is_available() { Device::cuda(0) } else { Device::Cpu }
    }

    /// The run for people: "on Tesla T4 (simulated), with seed 1 and size 8".
    pub fn described(&self) -> String {
        format!("on {}, with seed {} and size {}", self.named(), self.seed, self.size)
    }

    /// The machine for people.
    pub fn named(&self) -> String {
        self.machine().to_string()
    }
}
