//! Lab 02, and its reports, which name the reader's own lines.

use crate::said;
use labs::lab_02_golden_rule::LAB;
use labs::{Captured, Event, Value, run_captured};

const SOURCE: &str = include_str!("../src/lab_02_golden_rule.rs");
const FILE: &str = "labs/src/lab_02_golden_rule.rs";

fn on(gpus: &str) -> Captured {
    said::clean("lab-02", &["--gpu", gpus]).clone()
}

/// The error reports, in order.
fn reports(gpus: &str) -> Vec<String> {
    let reports = on(gpus).events.into_iter().filter_map(|event| match event {
        Event::Report(report) if report.starts_with("error[") => Some(report),
        _ => None,
    });
    reports.collect()
}

#[test]
fn every_line_a_report_names_is_the_labs_own() {
    let reports = reports("sim:t4x2");
    assert_eq!(reports.len(), 7);
    for report in &reports {
        let lines = |start: &str| -> Vec<&str> {
            report.lines().filter_map(|line| line.trim_start().strip_prefix(start)).collect()
        };
        assert_eq!((lines("--> ").len(), lines("made at ").len()), (1, 2), "{report}");
        assert_eq!(lines("moved at ").len() + lines("never moved").len(), 2, "{report}");
        for place in [lines("--> "), lines("made at "), lines("moved at ")].concat() {
            assert!(place.starts_with(&format!("{FILE}:")), "{place} in\n{report}");
        }
    }
}

/// The source lines in a report: the operation, then the place where each tensor was made or moved.
fn named_lines(report: &str) -> Vec<&'static str> {
    let places = report.lines().filter_map(|line| line.split_once(&format!("{FILE}:")));
    let numbers = places.map(|(_, place)| place.split(':').next().unwrap().parse::<usize>().unwrap());
    numbers.map(|number| SOURCE.lines().nth(number - 1).unwrap().trim()).collect()
}

#[test]
fn reports_name_the_lines_where_tensors_were_made_and_moved() {
    let expected: [&[&str]; 7] = [
        &[
            "let sum = &a + &b;",
            "let a = Tensor::randn(&[3, 4])?;",
            "let b = Tensor::randn(&[3, 4])?.to(device)?;",
            "let b = Tensor::randn(&[3, 4])?.to(device)?;",
        ],
        &[
            "let scores = model.forward(&x);",
            "let hidden = nn::Linear::new(784, 1024)?;",
            "model.to(device)?;",
            "let x = Tensor::randn(&[batch_size, 784])?;",
        ],
        &[
            "let loss = loss_fn.forward(&scores, &y);",
            "let scores = model.forward(&x.to(device)?)?;",
            "let y = Tensor::randint(0, 10, &[batch_size])?;",
        ],
        &[
            "let loss = loss_fn.forward(&model.forward(&x)?, &y)?;",
            "let hidden = nn::Linear::new(784, 1024)?;",
            "let x = Tensor::randn(&[batch_size, 784])?;",
            "let (x, y) = (x.to(data_device)?, y.to(data_device)?);",
        ],
        &[
            "let loss = loss_fn.forward(&model.forward(&x)?, &y)?;",
            "let hidden = nn::Linear::new(784, 1024)?;",
            "model.to(model_device)?;",
            "let x = Tensor::randn(&[batch_size, 784])?;",
        ],
        &[
            "x - &self.mean",
            "let x = Tensor::randn(&[64, 784])?.to(device)?;",
            "let x = Tensor::randn(&[64, 784])?.to(device)?;",
            "let mean = Tensor::zeros(&[784])?;",
        ],
        &[
            "let sum = &a + &b;",
            "let a = Tensor::ones(&[3])?.to(Device::cuda(0))?;",
            "let a = Tensor::ones(&[3])?.to(Device::cuda(0))?;",
            "let b = Tensor::ones(&[3])?.to(Device::cuda(1))?;",
            "let b = Tensor::ones(&[3])?.to(Device::cuda(1))?;",
        ],
    ];
    let reports = reports("sim:t4x2");
    assert_eq!(reports.iter().map(|report| named_lines(report)).collect::<Vec<_>>(), expected);
}

#[test]
fn reports_begin_with_pytorchs_sentences() {
    let two = |pair: &str| format!("found at least two devices, {pair}!");
    let wrapper = |argument: &str, on: &str, others: &str, method: &str| {
        format!(
            "got {argument} is on {on}, different from other tensors on {others} (when checking argument in \
             method wrapper_CUDA_{method})"
        )
    };
    let expected = [
        two("cuda:0 and cpu"),
        wrapper("mat1", "cpu", "cuda:0", "addmm"),
        wrapper("target", "cpu", "cuda:0", "nll_loss_forward"),
        wrapper("mat1", "cuda:0", "cpu", "addmm"),
        wrapper("mat1", "cpu", "cuda:0", "addmm"),
        two("cuda:0 and cpu"),
        two("cuda:0 and cuda:1"),
    ]
    .map(|end| format!("error[GPU0001]: Expected all tensors to be on the same device, but {end}"));
    let first_line = |report: &String| report.lines().next().unwrap().to_string();
    assert_eq!(reports("sim:t4x2").iter().map(first_line).collect::<Vec<_>>(), expected);
    assert_eq!(reports("sim:t4").iter().map(first_line).collect::<Vec<_>>(), expected[..6]);
    assert_eq!(reports("none"), [""; 0]);
}

/// The values of all figures with a name, in order.
fn floats(events: &[Event], name: &str) -> Vec<f64> {
    let figures = events.iter().flat_map(Event::figures).filter(|figure| figure.name == name);
    let floats = figures.map(|figure| match figure.value {
        Value::Float(float) => float,
        _ => panic!("{figure:?}"),
    });
    floats.collect()
}

#[test]
fn two_placements_train_to_the_same_loss_and_the_gpu_is_faster() {
    let events = on("sim:t4").events;
    let [first, last, step] = ["first_loss", "last_loss", "step_time"].map(|name| floats(&events, name));
    assert_eq!((first.len(), last.len(), step.len()), (2, 2, 2));
    assert!(last[0] < first[0] && last[1] < first[1], "{first:?} {last:?}");
    assert!((last[0] - last[1]).abs() < 1e-5, "{last:?}");
    assert!(step[1] < step[0] / 4.0, "{step:?}");
    assert_eq!(floats(&events, "loss_before"), floats(&events, "loss_after"));
}

#[test]
fn the_picture_has_the_outcome_of_each_placement() {
    let events = on("sim:t4").events;
    let [svg] = said::pictures(&events)[..] else { panic!("one picture") };
    assert_eq!(svg.matches(">error: two devices</text>").count(), 2, "{svg}");
    assert_eq!(svg.matches("<title>trains: ").count(), 2, "{svg}");
    assert!(svg.contains("modelled"), "{svg}");
    assert_eq!(said::pictures(&on("none").events), [""; 0], "with one device there is nothing to place");
}

#[test]
fn any_device_of_the_machine_will_do() {
    for flags in [
        &["--gpu", "sim:t4x2", "--device", "cuda:1"][..],
        &["--gpu", "sim:t4", "--device", "cpu"],
        &["--gpu", "sim:t4", "--batch-size", "1", "--steps", "1"],
        &["--gpu", "none", "--batch-size", "3", "--steps", "2", "--seed", "-1"],
    ] {
        let captured = run_captured(&LAB, flags);
        assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""), "{flags:?}");
    }
    let text = run_captured(&LAB, &["--gpu", "sim:t4", "--device", "cpu"]).text;
    assert!(text.contains("leave out --device cpu") && !text.contains("GPU0001"), "{text}");
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-02"), "lab-02", &["--gpu", "sim:t4x2"], runs);
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for gpus in ["none", "sim:t4", "sim:t4x2"] {
        said::assert_rounds_alike(&on(gpus).events);
    }
}
