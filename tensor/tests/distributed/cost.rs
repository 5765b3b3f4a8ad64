//! What ranks cost the computer that simulates them.

use std::time::{Duration, Instant};

use todevice::distributed::{self as dist, DistributedDataParallel};
use todevice::nn::{self, Module};
use todevice::optim::{Optimizer, SGD, SGDOptions};
use todevice::{Device, Result, Tensor, cuda, manual_seed};

use super::data_parallel::part;
use super::machine;

const STEPS: usize = 5;

fn network() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((nn::Linear::new(512, 1024)?, nn::ReLU, nn::Linear::new(1024, 512)?)))
}

fn batch() -> Result<Tensor> {
    manual_seed(0);
    Tensor::randn(&[2048, 512])
}

fn train(model: &impl Module, x: &Tensor) -> Result<()> {
    let mut optimizer = SGD::new(model.parameters(), SGDOptions { lr: 0.01, ..Default::default() })?;
    for _ in 0..STEPS {
        optimizer.zero_grad();
        model.forward(x)?.square()?.mean()?.backward()?;
        optimizer.step()?;
    }
    cuda::synchronize()
}

/// The whole batch on one device.
fn once() -> Result<Duration> {
    machine("sim:h200").enter(|| {
        let (x, model) = (batch()?.cuda()?, network()?);
        model.to(Device::cuda(0))?;
        let start = Instant::now();
        train(&model, &x)?;
        Ok(start.elapsed())
    })
}

/// An eighth of it on each of eight ranks.
fn on_ranks() -> Result<Duration> {
    machine("sim:h200x8").enter(|| {
        let ranks = dist::Ranks::new(8)?;
        let mut replicas = ranks.run(|rank| {
            cuda::set_device(rank)?;
            dist::init_process_group("nccl")?;
            let model = network()?;
            model.to(Device::cuda(rank))?;
            Ok((DistributedDataParallel::new(model)?, part(&batch()?, rank, 8)?.to(Device::cuda(rank))?))
        })?;
        let start = Instant::now();
        ranks.run_each(&mut replicas, |_, (model, x)| train(model, x))?;
        Ok(start.elapsed())
    })
}

#[test]
#[ignore = "it measures time: run it by itself"]
fn eight_ranks_cost_little_more_than_the_work_done_once() -> Result<()> {
    let mut ratios: Vec<f64> = (0..7)
        .map(|_| {
            let (once, ranks) = (once()?, on_ranks()?);
            println!("once {once:?}, on eight ranks {ranks:?} (measured)");
            Ok(ranks.as_secs_f64() / once.as_secs_f64())
        })
        .collect::<Result<_>>()?;
    ratios.sort_by(f64::total_cmp);
    println!("eight ranks take {:.2} times as long (median of 7, measured)", ratios[3]);
    assert!(ratios[3] <= 1.3);
    Ok(())
}
