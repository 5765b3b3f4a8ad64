//! Tests across the packages are in `tests/`; the benchmark is `src/bin/bench.rs`,
//! random programs against PyTorch are `src/bin/differ.rs`. What several tests take is here.

pub mod differ;
pub mod works;

use serde_json::Value as Json;

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
