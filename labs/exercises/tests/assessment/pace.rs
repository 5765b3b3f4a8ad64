//! The last act: a program twenty times as fast, in several ways.

use exercises::assessment::{FASTER, program_text};

use super::variants::{Version, compiled, told};

/// The seeds whose untouched `fit` is tried: with the smallest clip and with the largest, and some others.
const UNTOUCHED: [u64; 6] = [3, 7, 41, 100, 500, 999];

/// The body of `fit` after its first line, and up to its last.
fn body() -> &'static str {
    let code = program_text::code("fit");
    let [start, end] = ["    let lr = ", "    Ok(model)\n"].map(|line| code.find(line).unwrap());
    &code[start..end]
}

/// The edits that put another body there.
fn with_body(new: &'static str) -> &'static [(&'static str, &'static str)] {
    Vec::leak(vec![(body(), new)])
}

/// A way to reach the pace, as edits.
pub fn way(number: usize) -> (&'static str, &'static [(&'static str, &'static str)]) {
    let (name, new) = WAYS[number];
    (name, with_body(new))
}

/// Each with another body.
const WAYS: &[(&str, &str)] = &[
    // Fewer, larger steps, and a learning rate that fits them.
    (
        "large batches",
        "    let rate = SGDOptions { lr: 0.25 / numbers().clip, momentum: 0.5, ..Default::default() };
    let mut optimizer = optim::SGD::new(model.parameters(), rate)?;
    let mut scaler = GradScaler::new(Default::default())?;
    let weights = Tensor::ones(&[8])?;
    let options = DataLoaderOptions { batch_size: 128, shuffle: true, ..Default::default() };
    let rows = DataLoader::new(TensorDataset::new([x.clone(), y.clone()])?, options)?;
    for _epoch in 0..3 {
        train(&model, &mut optimizer, &mut scaler, &rows, &weights, device)?;
    }
",
    ),
    // Nothing is copied or read in the loop, and so small a network has no use for half the bits.
    (
        "data on the device, in float32",
        "    let rate = SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
    let mut optimizer = optim::SGD::new(model.parameters(), rate)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    let batches: Vec<_> = x.split(32, 0)?.into_iter().zip(y.split(32, 0)?).collect();
    for _epoch in 0..2 {
        for (x, y) in &batches {
            let loss = model.forward(x)?.cross_entropy(y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
        }
    }
",
    ),
    // Mixed precision, and batches that are there when their turn comes.
    (
        "AMP with a prefetcher",
        "    let rate = SGDOptions { lr: 0.6, momentum: 0.9, ..Default::default() };
    let mut optimizer = optim::SGD::new(model.parameters(), rate)?;
    let mut scaler = GradScaler::new(Default::default())?;
    let options = DataLoaderOptions {
        batch_size: 64,
        shuffle: true,
        pin_memory: true,
        ..Default::default()
    };
    let rows = DataLoader::new(TensorDataset::new([x.clone(), y.clone()])?, options)?;
    for batch in todevice::data::DevicePrefetcher::new(&rows, device)? {
        let [x, y] = batch?;
        optimizer.zero_grad();
        let loss = amp::autocast(DeviceType::Cuda, || {
            model.forward(&x)?.cross_entropy(&y)
        })?;
        scaler.scale(&loss)?.backward()?;
        scaler.step(&mut optimizer)?;
        scaler.update()?;
    }
",
    ),
    // One step after another with all rows.
    (
        "all rows at once, with Adam",
        "    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions { lr: 0.02, ..Default::default() })?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    for _step in 0..12 {
        optimizer.zero_grad();
        model.forward(&x)?.cross_entropy(&y)?.backward()?;
        optimizer.step()?;
    }
",
    ),
];

/// Learns on the CPU, and moves the result.
const ELSEWHERE: &str = "    let (device, model) = (device, network(Device::Cpu)?);
    let mut optimizer =
        optim::Adam::new(model.parameters(), AdamOptions { lr: 0.02, ..Default::default() })?;
    for _step in 0..12 {
        optimizer.zero_grad();
        model.forward(x)?.cross_entropy(y)?.backward()?;
        optimizer.step()?;
    }
    model.to(device)?;
";

#[test]
fn several_ways_reach_the_pace_that_is_asked_for_and_the_reference_does_not() {
    let mut versions: Vec<Version> = WAYS
        .iter()
        .map(|(name, new)| Version { name: (*name).to_owned(), place: "fit", edits: with_body(new) })
        .collect();
    versions.push(Version { name: "reference".to_owned(), place: "fit", edits: &[] });
    versions.push(Version { name: "elsewhere".to_owned(), place: "fit", edits: with_body(ELSEWHERE) });
    let program = compiled("assessment pace", &versions);
    let untouched: Vec<_> = UNTOUCHED.iter().map(|seed| ("reference".to_owned(), *seed)).collect();
    for (seed, told) in UNTOUCHED.iter().zip(told(&program, &untouched)) {
        // A student who mended everything else has the points for time and memory with any seed.
        assert_eq!(told.symptom.as_deref(), Some("1.00"), "seed {seed}: {}", told.seen);
    }
    let asked: Vec<_> = versions.iter().map(|version| (version.name.clone(), 3)).collect();
    for (version, told) in versions.iter().zip(told(&program, &asked)) {
        let factor: f64 = told.symptom.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0.0);
        let told = format!("{}: {factor} {}\n{}", version.name, told.seen, told.print.replace('|', "\n"));
        match version.name.as_str() {
            "reference" => assert!(factor == 1.0, "{told}"),
            "elsewhere" => {
                assert!(factor == 0.0 && told.contains("does not learn on the device"), "{told}");
                continue;
            }
            _ => assert!(factor >= FASTER, "{told}"),
        }
        // Where the time went, before and after.
        assert!(told.contains("the host launches") && told.contains("the GPU computes"), "{told}");
    }
}
