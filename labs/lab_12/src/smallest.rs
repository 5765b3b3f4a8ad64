//! The smallest size, grid and block that make a kernel fail.

use crate::faults::{self, Kind};
use crate::judge::Task;
use crate::programs::{SIZES, Setting, counted, value};

const MOST_TRIES: usize = 250;

pub struct Smallest {
    pub setting: Setting,
    pub grid: [u32; 3],
    pub block: [u32; 3],
}

/// Tries settings by size, up to the failing one, and returns the first with the same fault.
pub fn find(task: &Task, failing: &Setting, kind: Kind) -> Option<Smallest> {
    let is_possible =
        |setting: &Setting| !task.whole_blocks || value(setting, "N") % value(setting, "BLOCK") == 0.0;
    let fails = |setting: &Setting| {
        is_possible(setting)
            && matches!(faults::find(&task.programs, setting), Ok(Some(fault)) if fault.is_like(kind))
    };
    let mut all = smaller(failing);
    all.retain(is_possible);
    let first = all.iter().take(MOST_TRIES).find(|setting| fails(setting));
    let setting = first.cloned().or_else(|| (all.len() > MOST_TRIES).then(|| halved(failing, &fails)))?;
    // A counting run records the shape of the launch.
    let shape = task.programs.with(&setting, counted).ok()??.shape;
    Some(Smallest { setting, grid: shape.grid, block: shape.block })
}

/// All settings up to this one, smallest first: by the elements, then by the threads of a block.
fn smaller(failing: &Setting) -> Vec<Setting> {
    let mut all: Vec<Setting> = vec![Vec::new()];
    for (name, most) in failing {
        let values: Vec<f64> = match *name {
            "BLOCK" => blocks(*most),
            name if SIZES.contains(&name) => (1..=*most as u32).map(f64::from).collect(),
            _ => vec![*most],
        };
        all = all
            .iter()
            .flat_map(|setting| values.iter().map(|value| [setting.as_slice(), &[(*name, *value)]].concat()))
            .collect();
    }
    let size = |setting: &Setting| SIZES.iter().map(|name| value(setting, name)).product::<f64>() as u64;
    all.sort_by_key(|setting| (size(setting), value(setting, "BLOCK") as u64));
    all
}

/// Powers of two, because many kernels halve a block.
fn blocks(most: f64) -> Vec<f64> {
    let powers = (0..).map(|power| f64::from(1u32 << power)).take_while(|block| *block < most);
    powers.chain([most]).collect()
}

/// Halves one size after another while the kernel still fails.
fn halved(failing: &Setting, fails: &dyn Fn(&Setting) -> bool) -> Setting {
    let mut best = failing.clone();
    for at in 0..best.len() {
        if !SIZES.contains(&best[at].0) {
            continue;
        }
        let (mut passes, mut fails_at) = (0, best[at].1 as u32);
        while passes + 1 < fails_at {
            let middle = (passes + fails_at) / 2;
            let mut tried = best.clone();
            tried[at].1 = f64::from(middle);
            if fails(&tried) { fails_at = middle } else { passes = middle }
        }
        best[at].1 = f64::from(fails_at);
    }
    best
}
