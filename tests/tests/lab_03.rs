//! Lab 03 prints the same numbers as PyTorch, for every seed and option tried. `vectors/lab_03.py` made the numbers
//! with PyTorch 2.11.

use labs::lab_03_training_loop::LAB;
use labs::{Captured, Value};
use serde_json::Value as Json;

/// The values of a figure in the order they were shown.
fn series(captured: &Captured, name: &str) -> Vec<f64> {
    let figures = captured.events.iter().flat_map(|event| event.figures());
    figures
        .filter(|figure| figure.name == name)
        .map(|figure| match figure.value {
            Value::Float(value) => value,
            Value::Int(value) => value as f64,
            Value::Text(_) => panic!("{name} is no number"),
        })
        .collect()
}

fn run(case: &Json, num_workers: &str) -> Captured {
    let text = |key: &str| case[key].as_str().map_or(case[key].to_string(), str::to_string);
    let seed = text("seed");
    let (target, batch_size, epochs) = (text("target"), text("batch_size"), text("epochs"));
    let flags = ["--gpu", "none", "--seed", &seed, "--target", &target, "--batch-size", &batch_size];
    let flags: Vec<&str> =
        flags.into_iter().chain(["--epochs", &epochs, "--num-workers", num_workers]).collect();
    let captured = labs::run_captured(&LAB, &flags);
    assert_eq!(captured.exit_code, 0, "{flags:?}: {}", captured.text);
    captured
}

#[test]
fn every_figure_is_pytorchs_for_every_seed_and_knob() {
    let cases: Json = serde_json::from_str(include_str!("../vectors/lab_03.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let captured = run(case, "0");
        for (name, expected) in case["figures"].as_object().unwrap() {
            let expected: Vec<f64> =
                expected.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
            let got = series(&captured, name);
            assert_eq!(got.len(), expected.len(), "{name} of {case}");
            for (got, expected) in got.iter().zip(&expected) {
                let error = (got - expected).abs() / expected.abs();
                assert!(error < 1e-5, "{name}: {got} is not PyTorch's {expected} ({case})");
                // The printed form, as PyTorch's f"{loss:.4f}"; the two longer series have three digits.
                let digits = if matches!(name.as_str(), "mean_loss" | "cross_entropy") { 3 } else { 4 };
                let seen = labs::format_float(*got, digits);
                assert_eq!(seen, labs::format_float(*expected, digits), "{name} of {case}");
            }
        }
    }
}

#[test]
fn the_number_of_workers_changes_nothing_that_is_printed() {
    let cases: Json = serde_json::from_str(include_str!("../vectors/lab_03.json")).unwrap();
    let case = &cases[0];
    let text = |num_workers: &str| {
        let text = run(case, num_workers).text;
        let (untimed, _) = text.split_once("\n10. ").expect("from section 10 on there are measured times");
        untimed.to_string()
    };
    for num_workers in ["1", "2", "5", "64"] {
        assert_eq!(text(num_workers), text("0"), "{num_workers} workers");
    }
}
