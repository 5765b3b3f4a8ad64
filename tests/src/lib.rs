//! Shared code of the cross-package tests and of the programs next to them. The tests are in `tests/`. The programs are
//! in `src/bin`: `bench`, random programs against PyTorch (`differ`), and programs for a computer with a GPU card
//! (`how-wrong`, `endure`, `snapshot`; see `card/README.md`).

pub mod differ;
pub mod endurance;
pub mod works;

use labs::{Stop, wrong};
use serde_json::Value as Json;
use todevice::{GpuSpec, Machine, cuda};

/// The machine that `--gpu` names, which must have a GPU.
pub fn with_gpu(gpu: &GpuSpec) -> Result<Machine, Stop> {
    let machine = gpu.machine().map_err(wrong)?;
    match machine.enter(cuda::device_count) {
        0 => Err(wrong(format!("--gpu {gpu}: this takes a GPU"))),
        _ => Ok(machine),
    }
}

/// Reads numbers made by PyTorch: a file of `vectors/`.
pub fn vectors(file: &str) -> Json {
    let path = format!("{}/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// The numbers of a JSON list.
pub fn numbers(list: &Json) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}
