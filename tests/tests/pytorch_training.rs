//! Whole training runs and optimizers compared with PyTorch 2.11's numbers.

use course_tests::{numbers, vectors};
use serde_json::Value as Json;
use todevice::optim::lr_scheduler::{CosineAnnealingLR, StepLR};
use todevice::prelude::*;

/// The runs of `training_vectors.json`: 256 samples of ten classes, three epochs of batches of 32.
///
/// The classes are the largest of ten random projections; the data, the projections, the model and every
/// epoch's order come from one seed, in this sequence.
fn train(name: &str, seed: u64) -> Result<Vec<f64>> {
    let generator = manual_seed(seed);
    let x = Tensor::randn(&[256, 16])?;
    let y = x.matmul(&Tensor::randn(&[16, 10])?)?.argmax(1, false)?;
    let (first, last) = (nn::Linear::new(16, 64)?, nn::Linear::new(64, 10)?);
    let model = match name {
        "mlp_dropout_sgd" => nn::Sequential::new((first, nn::ReLU, nn::Dropout::new(0.3)?, last)),
        _ => nn::Sequential::new((first, nn::ReLU, last)),
    };
    let options = DataLoaderOptions { batch_size: 32, shuffle: true, ..Default::default() };
    let loader = DataLoader::new(TensorDataset::new([x, y])?, options)?;
    let loss_fn = nn::CrossEntropyLoss::default();

    let parameters = model.parameters();
    let (mut adamw, mut others): (Option<(optim::AdamW, CosineAnnealingLR)>, Option<Box<dyn Optimizer>>) =
        (None, None);
    match name {
        "mlp_sgd_momentum" => {
            let options = SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
            others = Some(Box::new(optim::SGD::new(parameters.clone(), options)?));
        }
        "mlp_dropout_sgd" => {
            let options = SGDOptions { lr: 0.1, ..Default::default() };
            others = Some(Box::new(optim::SGD::new(parameters.clone(), options)?));
        }
        "mlp_adam" => others = Some(Box::new(optim::Adam::new(parameters.clone(), AdamOptions::default())?)),
        _ => {
            let options = AdamWOptions { lr: 1e-2, ..Default::default() };
            let optimizer = optim::AdamW::new(parameters.clone(), options)?;
            let scheduler = CosineAnnealingLR::new(&optimizer, 3, 0.0)?;
            adamw = Some((optimizer, scheduler));
        }
    }

    let mut losses = Vec::new();
    for _ in 0..3 {
        for batch in &loader {
            let [x, y] = batch?;
            let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
            model.zero_grad();
            loss.backward()?;
            match (&mut adamw, &mut others) {
                (Some((optimizer, _)), _) => {
                    nn::utils::clip_grad_norm_(&parameters, 1.0, Default::default())?;
                    optimizer.step()?;
                }
                (None, Some(optimizer)) => optimizer.step()?,
                (None, None) => unreachable!("one was made"),
            }
            losses.push(loss.item()?);
        }
        if let Some((_, scheduler)) = &mut adamw {
            scheduler.step();
        }
    }
    // The next random draw shows that the number of draws so far is right.
    losses.push(Tensor::rand((&[1], &generator))?.item()?);
    Ok(losses)
}

#[test]
fn training_runs_give_pytorchs_losses_to_1e_5() {
    let vectors = vectors("training_vectors.json");
    let mut runs = 0;
    for run in vectors["runs"].as_array().unwrap() {
        let name = run["name"].as_str().unwrap();
        // Runs with convolutions or autocast are not compared here.
        if !matches!(name, "mlp_sgd_momentum" | "mlp_adam" | "mlp_adamw_clip_cosine" | "mlp_dropout_sgd") {
            continue;
        }
        let seed = run["seed"].as_u64().unwrap();
        let losses = todevice::Machine::new().enter(|| train(name, seed)).unwrap();
        let expected = numbers(&run["losses"]);
        assert_eq!(losses.len(), expected.len() + 1);
        for (step, (got, expected)) in losses.iter().zip(&expected).enumerate() {
            let error = (got - expected).abs() / expected.abs();
            assert!(error < 1e-5, "{name}, seed {seed}, step {step}: {got}, but PyTorch has {expected}");
        }
        assert_eq!(losses[expected.len()], run["next_rand"].as_f64().unwrap(), "{name}: the next draw");
        runs += 1;
    }
    assert_eq!(runs, 8, "four runs, two seeds each");
}

#[test]
fn a_hundred_steps_of_every_optimizer_are_pytorchs_to_1e_6() {
    let vectors = vectors("optim_vectors.json");
    let cases = vectors["optim"].as_array().unwrap();
    assert_eq!(cases.len(), 7);
    for case in cases {
        let name = case["optim"].as_str().unwrap();
        todevice::Machine::new().enter(|| optimizer_case(name, case)).unwrap();
    }
}

fn optimizer_case(name: &str, case: &Json) -> Result<()> {
    manual_seed(case["seed"].as_u64().unwrap());
    let parameter = nn::Parameter::new(&Tensor::randn(&[3])?)?;
    let target = Tensor::randn(&[3])?;
    let mut optimizer = optimizer_named(name, vec![parameter.clone()])?;
    for step in 0..100 {
        // The gradient that the vectors were made with: 0.5 (p − target) + 0.01 (step mod 7).
        let difference = parameter.tensor().detach().sub(&target)?;
        let grad = difference.mul(0.5)?.add(0.01 * f64::from(step % 7))?;
        parameter.set_grad(Some(grad))?;
        optimizer.step()?;
        if let Some(expected) = case["after"].get((step + 1).to_string()) {
            let got = parameter.tensor().detach().to(DType::F64)?.to_vec::<f64>()?;
            for (got, expected) in got.iter().zip(numbers(expected)) {
                assert!((got - expected).abs() <= 1e-6, "{name}, step {}: {got}, not {expected}", step + 1);
            }
        }
    }
    Ok(())
}

fn optimizer_named(name: &str, parameters: Vec<nn::Parameter>) -> Result<Box<dyn Optimizer>> {
    let sgd = SGDOptions { lr: 0.01, momentum: 0.9, ..Default::default() };
    Ok(match name {
        "sgd" => {
            let options = SGDOptions { lr: 0.1, ..Default::default() };
            Box::new(optim::SGD::new(parameters, options)?)
        }
        "sgd_momentum" => Box::new(optim::SGD::new(parameters, sgd)?),
        "sgd_nesterov_wd" => {
            let options = SGDOptions { nesterov: true, weight_decay: 5e-4, ..sgd };
            Box::new(optim::SGD::new(parameters, options)?)
        }
        "sgd_damp" => Box::new(optim::SGD::new(parameters, SGDOptions { dampening: 0.3, ..sgd })?),
        "adam" => Box::new(optim::Adam::new(parameters, AdamOptions::default())?),
        "adam_wd" => {
            let options = AdamOptions { lr: 1e-2, weight_decay: 0.01, ..Default::default() };
            Box::new(optim::Adam::new(parameters, options)?)
        }
        "adamw" => Box::new(optim::AdamW::new(parameters, AdamWOptions::default())?),
        other => panic!("unknown optimizer {other}"),
    })
}

#[test]
fn learning_rate_schedules_are_pytorchs_to_the_last_digit() {
    let vectors = vectors("optim_vectors.json");
    let parameter = nn::Parameter::new(&Tensor::zeros(&[1]).unwrap()).unwrap();
    let new = || {
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        optim::SGD::new(vec![parameter.clone()], options).unwrap()
    };
    let check = |name: &str, mut step: Box<dyn FnMut() -> Vec<f64>>, first: Vec<f64>| {
        let expected = numbers(&vectors["schedulers"][name]);
        assert_eq!(first[0], expected[0], "{name}");
        for (k, expected) in expected.iter().enumerate().skip(1) {
            assert_eq!(step()[0], *expected, "{name} after {k} epochs");
        }
    };
    let mut scheduler = StepLR::new(&new(), 3, 0.1).unwrap();
    let first = scheduler.get_last_lr();
    let step = move || {
        scheduler.step();
        scheduler.get_last_lr()
    };
    check("StepLR(3,0.1)", Box::new(step), first);
    for (name, eta_min) in [("CosineAnnealingLR(10)", 0.0), ("CosineAnnealingLR(10,eta_min=.01)", 0.01)] {
        let mut scheduler = CosineAnnealingLR::new(&new(), 10, eta_min).unwrap();
        let first = scheduler.get_last_lr();
        let step = move || {
            scheduler.step();
            scheduler.get_last_lr()
        };
        check(name, Box::new(step), first);
    }
}

#[test]
fn layers_start_with_pytorchs_weights_bit_for_bit() {
    let vectors = vectors("rng_vectors.json");
    let mut checked = 0;
    for seed in [0, 42] {
        todevice::Machine::new()
            .enter(|| -> Result<()> {
                manual_seed(seed);
                let first = nn::Linear::new(16, 64)?;
                let convolution = nn::Conv2d::new(1, 16, 3)?;
                let second = nn::Linear::new(64, 10)?;
                for case in vectors["cases"].as_array().unwrap() {
                    if case["op"] != "nn_init_sequence" || case["seed"] != seed {
                        continue;
                    }
                    let bias = |bias: &Option<nn::Parameter>| bias.as_ref().expect("a bias").tensor();
                    let tensor = match case["tensor"].as_str().unwrap() {
                        "Linear16x64.weight" => first.weight.tensor(),
                        "Linear16x64.bias" => bias(&first.bias),
                        "Conv2d(1,16,3).weight" => convolution.weight.tensor(),
                        "Conv2d(1,16,3).bias" => bias(&convolution.bias),
                        "Linear64x10.weight" => second.weight.tensor(),
                        "Linear64x10.bias" => bias(&second.bias),
                        _ => continue,
                    };
                    let bits: Vec<String> = tensor
                        .detach()
                        .to_vec::<f32>()?
                        .iter()
                        .map(|v| format!("{:08x}", v.to_bits()))
                        .collect();
                    let expected = case["bits"].as_array().unwrap();
                    assert_eq!(bits.len(), expected.len());
                    assert!(
                        bits.iter().zip(expected).all(|(got, expected)| expected == got),
                        "{}",
                        case["tensor"]
                    );
                    checked += 1;
                }
                Ok(())
            })
            .unwrap();
    }
    assert_eq!(checked, 12, "three layers, two tensors each, two seeds");
}
