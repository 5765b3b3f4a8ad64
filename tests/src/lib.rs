//! What tests across the packages, and programs beside them, have in common. The tests are in `tests/`. The programs are in
//! `src/bin`: `bench`, random programs against PyTorch (`differ`), and what is for a computer with a card (`how-wrong`, `endure`,
//! `snapshot`; see `card/README.md`).

pub mod differ;
pub mod endurance;
pub mod works;

use labs::{Stop, wrong};
use serde_json::Value as Json;
use todevice::{GpuSpec, Machine, cuda};

/// The machine that `--gpu` names, which is to have a GPU.
pub fn with_gpu(gpu: &GpuSpec) -> Result<Machine, Stop> {
    let machine = gpu.machine().map_err(wrong)?;
    match machine.enter(cuda::device_count) {
        0 => Err(wrong(format!("--gpu {gpu}: this takes a GPU"))),
        _ => Ok(machine),
    }
}

/// Numbers that PyTorch made: a file of `vectors/`.
pub fn vectors(file: &str) -> Json {
    let path = format!("{}/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// The numbers of a list.
pub fn numbers(list: &Json) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}
