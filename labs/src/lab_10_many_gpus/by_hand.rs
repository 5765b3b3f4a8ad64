//! One program with several GPUs: by hand, and with `DataParallel`.

use std::time::Duration;

use todevice::cuda;
use todevice::parallel::{self, DataParallel};
use todevice::prelude::*;

use super::{Options, WIDTH, loss_of, network, section, sgd, step, time_of};
use crate::{Lab, Prediction, Table, Text, bytes, exact, row, timed};

pub(super) fn sections(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    by_hand(lab)?;
    data_parallel(lab, options)
}

fn by_hand(lab: &mut Lab) -> crate::Result<()> {
    if !section(lab, 3, "Data parallelism by hand") {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::choice(
            "10-two-gradients",
            "Two GPUs have the same network, and each takes half of a batch. Each loss is the mean over its half. How do you get the \
             gradient of the whole batch from the two?",
        )
        .or("first", "Either of them is it.", "Each comes from the half that its GPU has seen.")
        .or("sum", "It is their sum.", "Each loss is a mean already. The sum is twice the gradient of the mean over all rows.")
        .or("mean", "It is their mean.", "Compare the last two rows of the table.")
        .because("The mean over all rows is the mean of the means of two equal halves, and the same holds for the gradients."),
    );
    let seed = lab.seed();
    manual_seed(seed);
    let x = Tensor::randn(&[64, 32])?;

    // ANCHOR: whole
    let net = replica(seed, 0)?;
    loss_of(&net, &x.to(Device::cuda(0))?)?.backward()?;
    let whole = first_gradient(&net)?;
    // ANCHOR_END: whole

    // ANCHOR: halves
    let nets = [replica(seed, 0)?, replica(seed, 1)?]; // the same numbers on both
    for (index, half) in x.chunk(2, 0)?.iter().enumerate() {
        loss_of(&nets[index], &half.to(Device::cuda(index))?)?.backward()?;
    }
    let halves = [first_gradient(&nets[0])?, first_gradient(&nets[1])?];
    let sum = (&halves[0] + &halves[1].to(Device::cuda(0))?)?;
    let mean = (&sum / 2.0)?;
    // ANCHOR_END: halves

    let mut table = Table::new([
        "gradient of the first layer",
        "its first number",
        "is that of the whole batch",
    ]);
    let mut same = Vec::new();
    for (name, gradient) in [
        ("the whole batch on one GPU", &whole),
        ("the first half on cuda:0", &halves[0]),
        ("the second half on cuda:1", &halves[1]),
        ("the sum of the halves", &sum),
        ("the mean of the halves", &mean),
    ] {
        let gradient = gradient.cpu()?;
        let is_same = gradient.allclose(&whole.cpu()?, 1e-4, 1e-6)?;
        same.push(is_same);
        let first = gradient.select(0, 0)?.select(0, 0)?.item()?;
        table = table.row(row![
            name,
            exact("gradient", first).digits(6),
            exact("is_same", if is_same { "yes" } else { "no" })
        ]);
    }
    lab.table(table);
    lab.answer(
        guess,
        match same[..] {
            [_, _, _, _, true] => "mean",
            [_, _, _, true, _] => "sum",
            _ => "first",
        },
    );
    Ok(())
}

// ANCHOR: replica
/// The network for this seed, on this GPU.
fn replica(seed: u64, index: usize) -> Result<nn::Sequential> {
    manual_seed(seed);
    let net = network(32)?;
    net.to(Device::cuda(index))?;
    Ok(net)
}
// ANCHOR_END: replica

fn first_gradient(net: &nn::Sequential) -> Result<Tensor> {
    let gradient = net.parameters()[0].grad();
    gradient.ok_or_else(|| Error::custom("there was no backward pass"))
}

fn data_parallel(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    if !section(lab, 4, "DataParallel") {
        return Ok(());
    }
    let gpus: Vec<usize> = (0..cuda::device_count()).collect();
    let count = gpus.len();
    let guess = lab.predict(
        Prediction::number(
            "10-ten-rows",
            format!(
                "`DataParallel` cuts a batch into parts as `chunk` does, one for each GPU. The batch has 10 rows, and there are {count} \
                 GPUs. How many of them get a part?"
            ),
        )
        .unit("GPUs")
        .out_of(count)
        .because("All parts but the last have the same size, so that size is rounded up."),
    );
    let mut table = Table::new(["rows", "rows of each part"]);
    let mut busy = 0;
    for rows in [10, 5, 2, 64] {
        // ANCHOR: parts
        let batch = Tensor::zeros(&[rows, 4])?;
        let parts = parallel::scatter(&batch, 0, &gpus)?;
        // ANCHOR_END: parts
        if rows == 10 {
            busy = parts.len();
        }
        let sizes: Vec<String> =
            parts.iter().map(|part| part.sizes()[0].to_string()).collect();
        table = table.row(row![rows, exact("parts", sizes.join(", "))]);
    }
    lab.table(table);
    lab.answer(guess, exact("busy_gpus", busy).unit("GPUs"));
    lab.prose(if busy < count {
        "All parts but the last have the same size. So the size is rounded up, and ten rows run out before the GPUs do."
    } else {
        "Ten rows are enough for a part on each GPU."
    });

    lab.think(
        "10-most-memory",
        "A network trains with `DataParallel`, and each GPU gets the same number of rows. Which GPU needs the most memory?",
    );
    let seed = lab.seed();
    let rows = options.batch_size;
    manual_seed(seed);
    let x = Tensor::randn(&[rows, WIDTH])?;

    // ANCHOR: data_parallel
    let net = network(WIDTH)?;
    let model = DataParallel::new(net)?; // on all GPUs
    model.to(Device::cuda(0))?;
    // ANCHOR_END: data_parallel
    let on_all = train(&model, &x, count)?;
    drop(model);
    let alone = network(WIDTH)?;
    alone.to(Device::cuda(0))?;
    let on_one = train(&alone, &x, 1)?;

    let mut table = Table::new(["with DataParallel", "rows", "peak memory"]);
    for (index, part) in x.chunk(count, 0)?.iter().enumerate() {
        table = table.row(row![
            format!("cuda:{index}"),
            part.sizes()[0],
            bytes("parallel_peak", on_all.peaks[index])
        ]);
    }
    lab.table(table);
    if on_all.peaks[1..].iter().all(|other| *other < on_all.peaks[0]) {
        lab.prose(
            "The first GPU needs the most. It has the network itself and its gradients, gives the others their parts, and takes back what \
             they compute.",
        );
    }
    lab.table(
        Table::new(["a training step", "time", "peak memory of cuda:0"])
            .row(row![
                "cuda:0 alone",
                timed("alone_step_time", on_one.time),
                bytes("alone_peak", on_one.peaks[0])
            ])
            .row(row![
                format!("DataParallel on {count} GPUs"),
                timed("parallel_step_time", on_all.time),
                bytes("first_peak", on_all.peaks[0])
            ]),
    );
    let verdict = if on_all.time > on_one.time {
        "Here DataParallel makes the step longer. In each step the network is copied to every GPU, and one host launches for all of \
         them."
    } else {
        "Here DataParallel makes the step shorter, although the network is copied to every GPU in each step, and one host launches \
         for all of them."
    };
    lab.prose(Text::from(verdict).raced());
    Ok(())
}

struct Taken {
    time: Duration,
    /// The peak memory of each GPU.
    peaks: Vec<u64>,
}

/// Trains three steps on `count` GPUs, and measures the last one: the first two request memory from the driver.
fn train(net: &dyn Module, x: &Tensor, count: usize) -> Result<Taken> {
    let x = x.to(Device::cuda(0))?;
    let mut optimizer = sgd(net)?;
    for _ in 0..2 {
        step(net, &mut optimizer, &x)?;
    }
    let gpus = 0..count;
    gpus.clone()
        .try_for_each(|gpu| cuda::device(gpu, cuda::reset_peak_memory_stats))?;
    let ((), time) = time_of(gpus.clone(), || step(net, &mut optimizer, &x))?;
    let peaks = gpus
        .map(|gpu| cuda::device(gpu, cuda::max_memory_allocated))
        .collect::<Result<_>>()?;
    Ok(Taken { time, peaks })
}
