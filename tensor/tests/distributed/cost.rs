//! The cost of ranks for the computer that simulates them.

use std::time::{Duration, Instant};

use todevice::distributed::{self as dist, DistributedDataParallel};
use todevice::nn::{self, Module};
use todevice::optim::{Optimizer, SGD, SGDOptions};
use todevice::{Device, Result, Tensor, cuda, manual_seed};

use super::data_parallel::part;
use super::machine;

const STEPS: usize = 5;

/// The number of measured pairs. On a busy computer, one ratio may be 1.1 and the next 1.5.
const PAIRS: usize = 31;

fn network() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((nn::Linear::new(512, 1024)?, nn::ReLU, nn::Linear::new(1024, 512)?)))
}

fn batch(rows: usize) -> Result<Tensor> {
    manual_seed(0);
    Tensor::randn(&[rows, 512])
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
fn once(rows: usize) -> Result<Duration> {
    machine("sim:h200").enter(|| {
        let (x, model) = (batch(rows)?.cuda()?, network()?);
        model.to(Device::cuda(0))?;
        let start = Instant::now();
        train(&model, &x)?;
        Ok(start.elapsed())
    })
}

/// An eighth of it on each of eight ranks.
fn on_ranks(rows: usize) -> Result<Duration> {
    machine("sim:h200x8").enter(|| {
        let ranks = dist::Ranks::new(8)?;
        let mut replicas = ranks.run(|rank| {
            cuda::set_device(rank)?;
            dist::init_process_group("nccl")?;
            let model = network()?;
            model.to(Device::cuda(rank))?;
            Ok((DistributedDataParallel::new(model)?, part(&batch(rows)?, rank, 8)?.to(Device::cuda(rank))?))
        })?;
        let start = Instant::now();
        ranks.run_each(&mut replicas, |_, (model, x)| train(model, x))?;
        Ok(start.elapsed())
    })
}

/// With 512 rows per rank, as in lab 10, and with half of them. The overhead of ranks does not depend on the number of
/// rows: optimizers that take the same step, and averages computed in the memory of this computer. So with half the
/// rows its share doubles.
#[test]
#[ignore = "it measures time: run it by itself"]
fn eight_ranks_cost_little_more_than_the_work_done_once() -> Result<()> {
    let ratio = |rows_of_a_rank: usize| -> Result<f64> {
        let rows = 8 * rows_of_a_rank;
        let mut ratios = Vec::new();
        for _ in 0..PAIRS {
            let (once, ranks) = (once(rows)?, on_ranks(rows)?);
            println!("{rows} rows: once {once:?}, on eight ranks {ranks:?} (measured)");
            ratios.push(ranks.as_secs_f64() / once.as_secs_f64());
        }
        ratios.sort_by(f64::total_cmp);
        let median = ratios[PAIRS / 2];
        println!("eight ranks take {median:.2} times as long (median of {PAIRS}, measured)");
        Ok(median)
    };
    let ratios = [ratio(512)?, ratio(256)?];
    assert!(ratios.iter().all(|ratio| *ratio <= 1.3), "{ratios:?}");
    Ok(())
}
