//! One program per GPU: ranks, a collective, identical models, and a share of the data for each.

use todevice::cuda;
use todevice::data::{DistributedSampler, DistributedSamplerOptions, Sampler};
use todevice::distributed::{self as dist, DistributedDataParallel, Ranks, ReduceOp};
use todevice::optim::SGD;
use todevice::prelude::*;

use super::{loss_of, network, sgd};
use crate::{Lab, Prediction, Table, exact, row, text};

/// `as_before`: whether the earlier sections ran on the same machine.
pub(super) fn section(lab: &mut Lab, as_before: bool) -> crate::Result<()> {
    if !lab.section(5, "A program for each GPU") {
        return Ok(());
    }
    if !as_before {
        lab.prose(format!(
            "Programs on several real GPUs talk to each other through NCCL, which this crate does not call yet. So from here on the lab \
             simulates {} GPUs.",
            cuda::device_count()
        ));
    }
    all_reduced(lab)?;
    trained(lab)?;
    sampled(lab)
}

// ANCHOR: set_up
/// The first step of every rank: select the GPU with its number.
pub(super) fn set_up(rank: usize) -> Result<Device> {
    cuda::set_device(rank)?;
    dist::init_process_group("nccl")?;
    Ok(Device::cuda(rank))
}
// ANCHOR_END: set_up

fn all_reduced(lab: &mut Lab) -> crate::Result<()> {
    let world_size = cuda::device_count();
    lab.part("sum");
    // ANCHOR: all_reduce
    let ranks = Ranks::new(world_size)?;
    let mut tensors = ranks.run(|rank| {
        let device = set_up(rank)?;
        let x = Tensor::full(&[1], (rank as f64, device))?;
        dist::all_reduce(&x, ReduceOp::Sum)?; // queued on the GPU
        Ok(x)
    })?;
    let sums = ranks.run_each(&mut tensors, |_, x| x.item())?; // waits for the GPU
    // ANCHOR_END: all_reduce
    let held: Vec<String> = sums.iter().map(|sum| format!("{sum:.0}")).collect();
    lab.print(text!(
        "After all_reduce the ranks hold {}.",
        exact("sums", held.join(", "))
    ));
    Ok(())
}

pub(super) struct Replica {
    pub model: DistributedDataParallel<nn::Sequential>,
    pub optimizer: SGD,
    pub x: Tensor,
}

fn first_number(net: &dyn Module) -> Result<f64> {
    net.parameters()[0].tensor().detach().select(0, 0)?.select(0, 0)?.item()
}

fn trained(lab: &mut Lab) -> crate::Result<()> {
    let guess = lab.predict(
        Prediction::yes_no(
            "10-alike",
            "Two ranks make a network each, from different seeds, and train it with `DistributedDataParallel` on different rows. Are the \
             two networks the same afterwards?",
        )
        .because(
            "`DistributedDataParallel` gives every rank the parameters of rank 0 when it wraps the network, and averages the gradients \
             in every step.",
        ),
    );
    manual_seed(lab.seed());
    let rows = Tensor::randn(&[64, 32])?;

    let ranks = Ranks::new(2)?;
    // ANCHOR: construct
    let made = ranks.run(|rank| {
        let device = set_up(rank)?;
        let x = rows.narrow(0, 32 * rank, 32)?.to(device)?; // this rank's share
        manual_seed(rank as u64); // and different random numbers
        let net = network(32)?;
        let first = first_number(&net)?;
        net.to(device)?;
        let model = DistributedDataParallel::new(net)?; // now the numbers of rank 0
        let optimizer = sgd(&model)?;
        Ok((first, Replica { model, optimizer, x }))
    })?;
    // ANCHOR_END: construct
    let (made_with, mut replicas): (Vec<f64>, Vec<Replica>) = made.into_iter().unzip();
    let constructed = ranks
        .run_each(&mut replicas, |_, replica| first_number(replica.model.module()))?;
    // ANCHOR: steps
    let mut losses = Vec::new();
    for _ in 0..3 {
        let mut lost = ranks.run_each(&mut replicas, |_, replica| {
            let Replica { model, optimizer, x } = replica;
            let loss = loss_of(model, x)?;
            optimizer.zero_grad();
            loss.backward()?; // averages the gradients
            optimizer.step()?;
            Ok(loss)
        })?;
        losses = ranks.run_each(&mut lost, |_, loss| loss.item())?;
    }
    // ANCHOR_END: steps
    let all = ranks
        .run_each(&mut replicas, |_, replica| numbers_of(replica.model.module()))?;
    let trained = ranks
        .run_each(&mut replicas, |_, replica| first_number(replica.model.module()))?;
    let is_same = all[0] == all[1];

    let mut table = Table::new([
        "first number of",
        "as made",
        "as wrapped",
        "after 3 steps",
        "last loss",
    ]);
    for rank in 0..2 {
        table = table.row(row![
            format!("rank {rank}"),
            exact("made_with", made_with[rank]).digits(5),
            exact("constructed_with", constructed[rank]).digits(5),
            exact("trained_to", trained[rank]).digits(5),
            exact("last_loss", losses[rank])
        ]);
    }
    lab.table(table);
    lab.answer(guess, is_same);
    lab.prose(if is_same {
        "All parameters of the two are the same, to the bit. The losses are not: each rank's is that of its own rows."
    } else {
        "The parameters of the two differ."
    });
    Ok(())
}

fn numbers_of(net: &dyn Module) -> Result<Vec<f32>> {
    let mut all = Vec::new();
    for parameter in net.parameters() {
        all.extend(parameter.tensor().detach().flatten(0, -1)?.to_vec::<f32>()?);
    }
    Ok(all)
}

fn sampled(lab: &mut Lab) -> crate::Result<()> {
    let guess = lab.predict(
        Prediction::number(
            "10-orders",
            "A `DistributedSampler` shuffles the samples for each rank. A program trains for three epochs, and never calls `set_epoch`. In \
             how many different orders does rank 0 see its samples?",
        )
        .out_of(3)
        .at_least(1.0)
        .because(
            "The order comes from the seed and the number of the epoch, so that all ranks find it without asking each other. The \
             sampler cannot know the number unless you tell it.",
        ),
    );
    let dataset = TensorDataset::new([Tensor::zeros(&[12, 1])?])?;
    // ANCHOR: sampler
    let sampler = |rank: usize| {
        DistributedSampler::new(&dataset, 2, rank, DistributedSamplerOptions::default())
    };
    let samplers = [sampler(0)?, sampler(1)?];
    // ANCHOR_END: sampler
    let mut table = Table::new(["epoch", "set_epoch", "rank 0", "rank 1"]);
    let mut orders = Vec::new();
    for (is_told, name) in [(false, "never called"), (true, "called")] {
        for epoch in 0..3 {
            if is_told {
                samplers.iter().for_each(|sampler| sampler.set_epoch(epoch));
            }
            let shares = samplers.each_ref().map(|sampler| {
                let samples = sampler.iter().map(|sample| sample.to_string());
                samples.collect::<Vec<_>>().join(" ")
            });
            table = table.row(row![
                epoch as i64,
                name,
                exact("share", shares[0].clone()),
                exact("other_share", shares[1].clone())
            ]);
            if !is_told {
                orders.push(shares[0].clone());
            }
        }
    }
    lab.table(table);
    orders.dedup();
    lab.answer(guess, exact("orders", orders.len()));
    Ok(())
}
