//! Results have the same bits for any number of threads: each operation fixes its order, and threads only divide the
//! work.

use std::process::Command;

use todevice::prelude::*;
use todevice::{Machine, MaxPool2dOptions};

/// Trains a model large enough that every kernel is divided among threads. Returns the bits of all results.
fn steps() -> Result<Vec<u32>> {
    manual_seed(11);
    let model = nn::Sequential::new((
        nn::Linear::new(700, 600)?,
        nn::ReLU,
        nn::Dropout::new(0.1)?,
        nn::Linear::new(600, 300)?,
        nn::Tanh,
        nn::Linear::new(300, 50)?,
    ));
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    let (x, y) = (Tensor::randn(&[1500, 700])?, Tensor::randint(0, 50, &[1500])?);
    let mut bits = Vec::new();
    for _ in 0..3 {
        let output = model.forward(&x)?;
        let loss = output.cross_entropy(&y)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        let extras = [
            output.exp()?.sum()?,
            output.mean_dims(&[0], false)?,
            output.t()?.softmax(0)?.amax(&[0], false)?,
        ];
        for tensor in [loss].iter().chain(&extras) {
            bits.extend(tensor.detach().reshape(&[-1])?.to_vec::<f32>()?.iter().map(|value| value.to_bits()));
        }
    }
    bits.extend(images()?);
    for parameter in model.parameters() {
        let values = parameter.tensor().detach().reshape(&[-1])?.to_vec::<f32>()?;
        bits.extend(values.iter().map(|value| value.to_bits()));
    }
    Ok(bits)
}

/// Two steps of the image layers, on batches divided among threads.
fn images() -> Result<Vec<u32>> {
    let overlapping = MaxPool2dOptions { stride: Some(2.into()), padding: 1.into(), ..Default::default() };
    let model = nn::Sequential::new((
        nn::BatchNorm2d::new(10)?,
        nn::GELU::default(),
        nn::MaxPool2d::new((3, overlapping)),
        nn::AvgPool2d::new((1, 2)),
        nn::LayerNorm::new(&[20, 12])?,
        nn::AdaptiveAvgPool2d::new((15, 9)),
        nn::Flatten::default(),
        nn::BatchNorm1d::new(1350)?,
    ));
    let x = Tensor::randn(&[210, 10, 40, 48])?;
    let mut bits = Vec::new();
    for _ in 0..2 {
        let leaf = x.detach().requires_grad_(true)?;
        let output = model.forward(&leaf)?;
        output.mul(&output.detach())?.mul(&output)?.mean()?.backward()?;
        let gradients = model.parameters().into_iter().map(|parameter| parameter.grad().unwrap());
        let state = model.named_buffers().into_iter().map(|(_, buffer)| buffer.tensor());
        for tensor in [leaf.grad().unwrap(), output.detach()].into_iter().chain(gradients).chain(state) {
            let values = tensor.reshape(&[-1])?.to(DType::F32)?.to_vec::<f32>()?;
            bits.extend(values.iter().map(|value| value.to_bits()));
        }
    }
    Ok(bits)
}

/// Prints a hash (FNV-1a) of all the bits of a training run.
#[test]
#[ignore = "run by training_gives_the_same_bits_on_any_number_of_threads"]
fn training() {
    let bits = Machine::new().enter(steps).unwrap();
    assert!(bits.len() > 600_000, "the parameters are missing");
    let hash = bits.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, bits| {
        (hash ^ u64::from(bits)).wrapping_mul(0x100_0000_01b3)
    });
    println!("bits:{hash:x}");
}

/// Runs the test above in a process with this number of threads.
fn bits_on(threads: usize) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["determinism::training", "--exact", "--ignored", "--nocapture"])
        .env("RAYON_NUM_THREADS", threads.to_string())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && printed.contains("1 passed"), "{threads} threads: {printed}");
    printed.lines().find_map(|line| line.split_once("bits:")).expect("the test prints its bits").1.to_string()
}

#[test]
fn training_gives_the_same_bits_on_any_number_of_threads() {
    let one = bits_on(1);
    for threads in [2, 3, 7] {
        assert_eq!(bits_on(threads), one, "{threads} threads gave other bits than one");
    }
}
