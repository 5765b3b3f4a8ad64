use cuda_emulator::ir::Program;
use cuda_emulator::run::counters::{Counters, Requests};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    pub fn holds(self, value: f64) -> bool {
        // Figures are shown with one decimal, so they are compared with one.
        let value = (value * 10.0).round() / 10.0;
        match self {
            Bound::AtMost(most) => value <= most,
            Bound::AtLeast(least) => value >= least,
        }
    }

    pub fn value(self) -> f64 {
        let (Bound::AtMost(value) | Bound::AtLeast(value)) = self;
        value
    }

    pub fn words(self) -> &'static str {
        match self {
            Bound::AtMost(_) => "at most",
            Bound::AtLeast(_) => "at least",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Of loads and stores together.
    Sectors,
    LoadSectors,
    StoreSectors,
    Loads,
    SharedLoads,
    Atomics,
    Conflicts,
    DivergentBranches,
    /// Counted once per warp.
    Barriers,
    Lanes,
}

impl Measure {
    pub fn name(self) -> &'static str {
        match self {
            Measure::Sectors => "sectors per request",
            Measure::LoadSectors => "sectors per load request",
            Measure::StoreSectors => "sectors per store request",
            Measure::Loads => "global load requests",
            Measure::SharedLoads => "shared load requests",
            Measure::Atomics => "global atomic requests",
            Measure::Conflicts => "bank conflicts",
            Measure::DivergentBranches => "divergent branches",
            Measure::Barriers => "barriers, by warp",
            Measure::Lanes => "active lanes per instruction",
        }
    }

    /// A hint for a kernel that exceeds the limit.
    pub fn advice(self) -> &'static str {
        match self {
            Measure::Sectors | Measure::LoadSectors | Measure::StoreSectors => {
                "Memory answers a warp in sectors of 32 bytes, so let neighbouring threads use neighbouring elements: four sectors hold a warp's 32 floats."
            }
            Measure::Loads => {
                "A request is one access of a warp. Read each element from global memory once, and keep it in a variable or in shared memory."
            }
            Measure::SharedLoads => {
                "A request is one access of a warp. Keep a value from shared memory in a variable, and use it several times."
            }
            Measure::Atomics => {
                "Atomic additions to one place queue up. Add up within the block first, and let one thread add the result."
            }
            Measure::Conflicts => {
                "Lanes of a warp want different words of the same memory bank, and wait for each other. Neighbouring words are in different banks."
            }
            Measure::DivergentBranches => {
                "Threads of one warp disagree about a branch, so the warp goes both ways. Let whole warps agree."
            }
            Measure::Barriers => {
                "At each barrier all warps of the block wait. Leave out those that protect nothing."
            }
            Measure::Lanes => {
                "Many of a warp's 32 threads have nothing to do. Give each of them a part of the work."
            }
        }
    }

    pub fn of(self, counters: &Counters, kernel: &Program) -> f64 {
        let Counters { loads, stores, .. } = *counters;
        let both =
            Requests { requests: loads.requests + stores.requests, sectors: loads.sectors + stores.sectors };
        let per_request = |of: Requests| of.sectors as f64 / of.requests.max(1) as f64;
        match self {
            Measure::Sectors => per_request(both),
            Measure::LoadSectors => per_request(loads),
            Measure::StoreSectors => per_request(stores),
            Measure::Loads => loads.requests as f64,
            Measure::SharedLoads => counters.shared_loads.requests as f64,
            Measure::Atomics => counters.atomics.requests as f64,
            Measure::Conflicts => (counters.shared_loads.conflicts + counters.shared_stores.conflicts) as f64,
            Measure::DivergentBranches => counters.divergent_branches as f64,
            Measure::Barriers => counters.barriers(kernel) as f64,
            Measure::Lanes => counters.thread_instructions() as f64 / counters.instructions().max(1) as f64,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub measure: Measure,
    pub bound: Bound,
}

pub const fn most(measure: Measure, value: f64) -> Limit {
    Limit { measure, bound: Bound::AtMost(value) }
}

pub const fn least(measure: Measure, value: f64) -> Limit {
    Limit { measure, bound: Bound::AtLeast(value) }
}
