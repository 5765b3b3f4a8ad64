//! The inputs of a run of a student's code.

use serde::{Deserialize, Serialize};
use todevice::{Device, Machine, cuda};

/// A machine, a seed and a size. They alone determine the inputs of the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The value of `--gpu`.
    pub gpu: String,
    pub seed: u64,
    /// Each exercise defines the meaning of its size.
    pub size: usize,
}

/// The maximum number of operations in a run. No solution needs a tenth of it, and an endless loop is reported within a
/// second, even on a busy computer.
pub(crate) const OPERATIONS: u64 = 50_000;

impl Case {
    /// Every combination. If all fail alike, the diagnosis describes the first.
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

    /// A new machine, with a limit on operations.
    pub fn machine(&self) -> Machine {
        let machine: Machine = self.gpu.parse().expect("a simulated machine, or none");
        machine.limit_operations(OPERATIONS);
        machine
    }

    /// The machine's GPU, or the CPU if it has none.
    pub fn device(&self) -> Device {
        if cuda::is_available() { Device::cuda(0) } else { Device::Cpu }
    }

    /// The run in words: "on Tesla T4 (simulated), with seed 1 and size 8".
    pub fn described(&self) -> String {
        format!("on {}, with seed {} and size {}", self.named(), self.seed, self.size)
    }

    /// The machine in words.
    pub fn named(&self) -> String {
        self.machine().to_string()
    }
}
