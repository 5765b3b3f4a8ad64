//! Compares losses with PyTorch's DistributedDataParallel, run in real processes with gloo. Needs a Python with
//! PyTorch:
//!
//! ```sh
//! TORCH_PYTHON=venv/bin/python cargo test -p tensor-tests --test suite -- --ignored losses_are_pytorchs
//! ```

use crate::each_case::each_case;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;

use serde_json::Value;
use todevice::data::{
    DataLoader, DataLoaderOptions, DistributedSampler, DistributedSamplerOptions, TensorDataset,
};
use todevice::distributed::{self as dist, DistributedDataParallel, ReduceOp};
use todevice::nn::Module;
use todevice::optim::{Adam, AdamOptions, Optimizer, SGD, SGDOptions};
use todevice::{DType, Result, Tensor, manual_seed};

use super::data_parallel::{of_lab_03, of_lab_06, part, rings};
use super::machine;

/// The losses, and the final sum of all parameters.
type Trained = (Vec<f64>, f64);

fn mean_over_ranks(loss: &Tensor, size: usize) -> Result<f64> {
    let loss = (loss.detach() / 1.0)?; // a copy
    dist::all_reduce(&loss, ReduceOp::Sum)?;
    Ok(loss.item()? / size as f64)
}

fn sum_of(model: &impl Module) -> Result<f64> {
    let sum = |parameter: todevice::nn::Parameter| parameter.tensor().detach().to(DType::F64)?.sum()?.item();
    model.parameters().into_iter().map(sum).sum()
}

/// The same training as in `ddp.py`.
fn lab_03(rank: usize, size: usize) -> Result<Trained> {
    manual_seed(0);
    let dataset = TensorDataset::new([Tensor::randn(&[1024, 16])?, Tensor::randn(&[1024, 1])?])?;
    let sampler =
        Arc::new(DistributedSampler::new(&dataset, size, rank, DistributedSamplerOptions::default())?);
    let options =
        DataLoaderOptions { batch_size: 64 / size, sampler: Some(sampler.clone()), ..Default::default() };
    let loader = DataLoader::new(dataset, options)?;
    let model = DistributedDataParallel::new(of_lab_03()?)?;
    let mut optimizer = Adam::new(model.parameters(), AdamOptions { lr: 1e-3, ..Default::default() })?;
    let mut losses = Vec::new();
    for epoch in 0..2 {
        sampler.set_epoch(epoch);
        for batch in &loader {
            let [x, y] = batch?;
            let loss = (model.forward(&x)? - &y)?.square()?.mean()?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            losses.push(mean_over_ranks(&loss, size)?);
        }
    }
    Ok((losses, sum_of(&model)?))
}

fn lab_06(rank: usize, size: usize) -> Result<Trained> {
    let [x, y] = rings()?;
    manual_seed(100 + rank as u64);
    let model = DistributedDataParallel::new(of_lab_06()?)?;
    let mut optimizer = SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;
    let [x, y] = [part(&x, rank, size)?, part(&y, rank, size)?];
    let mut losses = Vec::new();
    for _ in 0..20 {
        let loss = model.forward(&x)?.cross_entropy(&y)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        losses.push(mean_over_ranks(&loss, size)?);
    }
    Ok((losses, sum_of(&model)?))
}

#[test]
#[ignore = "it needs PyTorch: set TORCH_PYTHON"]
fn losses_are_pytorchs() -> Result<()> {
    let python = std::env::var_os("TORCH_PYTHON").expect("TORCH_PYTHON names a Python that has PyTorch");
    each_case([2, 4, 8], |size| -> Result<()> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/distributed/ddp.py");
        let mut command = Command::new(&python);
        command
            .env("OMP_NUM_THREADS", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("CUDA_VISIBLE_DEVICES", "");
        let output = command.args([script, &size.to_string(), &port.to_string()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout);
        let theirs: Value = serde_json::from_str(said.lines().last().unwrap_or_default()).unwrap();
        let ours = machine("none").enter(|| {
            dist::spawn(size, |rank| {
                dist::init_process_group("gloo")?;
                Ok([("lab_03", lab_03(rank, size)?), ("lab_06", lab_06(rank, size)?)])
            })
        })?;
        for (rank, trained) in ours.iter().enumerate() {
            for (lab, (losses, sum)) in trained {
                let theirs = &theirs[rank][*lab];
                let expected: Vec<f64> =
                    theirs["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap()).collect();
                assert_eq!(losses.len(), expected.len());
                for (step, (a, b)) in losses.iter().zip(&expected).enumerate() {
                    assert!(
                        (a - b).abs() < 1e-5,
                        "{lab}, {size} ranks, step {step}: {a} here, {b} in PyTorch"
                    );
                }
                let expected = theirs["sum"].as_f64().unwrap();
                assert!(
                    (sum - expected).abs() < 1e-3,
                    "{lab}, {size} ranks: {sum} here, {expected} in PyTorch"
                );
            }
        }
        println!("{size} ranks: {:?}", ours[0][0].1.0.last());
        Ok(())
    });
    Ok(())
}
