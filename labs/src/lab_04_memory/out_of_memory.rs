//! Part A, sections 6 and 7: a program that runs out of memory, and one that is about to.

use todevice::cuda;
use todevice::prelude::*;

use super::{Options, memory_allocated, peak_of_a_step, remedies, step};
use crate::{Lab, Prediction, Table, bytes, exact, row};

pub(super) fn sections(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section(6, "Out of memory");
    lab.part("runs-out");
    if lab.has_gpu_to_show("error GPU0002, and the largest batch that fits.") {
        out_of_memory(lab, options)?;
    }
    remedies::two_remedies(lab)?;
    kept_graphs(lab)
}

fn out_of_memory(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let device = lab.device();
    // ANCHOR: limit
    let model = nn::Sequential::new((
        nn::Linear::new(64, 64)?,
        nn::ReLU,
        nn::Linear::new(64, 10)?,
    ));
    model.to(device)?;

    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    step(&model, &mut optimizer, 1)?;

    let limit = (options.limit << 20) as u64;
    let (_, total) = cuda::mem_get_info()?;
    cuda::empty_cache()?;
    cuda::set_per_process_memory_fraction(limit as f64 / total as f64)?;
    // ANCHOR_END: limit

    // ANCHOR: predict_limit
    let small = 1024;
    let peak = peak_of_a_step(&model, &mut optimizer, small)?;
    let peak_doubled = peak_of_a_step(&model, &mut optimizer, 2 * small)?;
    let per_sample = (peak_doubled - peak) as f64 / small as f64;
    let fixed = peak as f64 - small as f64 * per_sample;
    let predicted = ((limit as f64 - fixed) / per_sample) as usize;
    // ANCHOR_END: predict_limit

    // ANCHOR: doubling
    let mut batch = 1024;
    let mut peaks = Vec::new();
    let error = loop {
        batch *= 2;
        cuda::empty_cache()?; // each size begins with the same segments
        match peak_of_a_step(&model, &mut optimizer, batch) {
            Ok(peak) => peaks.push((batch, peak)),
            Err(error) => break error,
        }
    };
    // ANCHOR_END: doubling
    if error.code() != Some("GPU0002") {
        return Err(error.into());
    }
    let mut table = Table::new(["batch", "does it fit?", "peak"]);
    for (batch, peak) in &peaks {
        let peak = bytes("batch_peak", *peak);
        table = table.row(row![exact("batch", *batch), "yes", peak]);
    }
    lab.table(table.row(row![exact("batch", batch), "no", ""]));
    lab.report(wrapped(&error));
    lab.prose(
        "It is an error like any other: the program gets it and goes on. The tensors of the failed step were dropped on \
         the way out, so there is room for a smaller one. The first sentences say what was asked for and what there is; \
         the list says which lines of your program hold the memory.",
    );

    // ANCHOR: bisection
    let (mut fits, mut too_large) = (batch / 2, batch);
    while too_large - fits > 128 {
        cuda::empty_cache()?;
        let middle = (fits + too_large) / 2;
        match peak_of_a_step(&model, &mut optimizer, middle) {
            Ok(_) => fits = middle,
            Err(_) => too_large = middle,
        }
    }
    // ANCHOR_END: bisection
    drop((model, optimizer));
    super::filling::up_to_the_limit(lab, &super::why_it_runs_out::mlp()?, limit)?;
    cuda::set_per_process_memory_fraction(1.0)?;
    cuda::empty_cache()?;
    lab.table(
        Table::new(["the largest batch", ""])
            .row(row!["predicted from two runs", exact("predicted_batch", predicted)])
            .row(row!["found: this one fits", exact("found_batch", fits)])
            .row(row!["and this one does not", exact("too_large_batch", too_large)])
            .row(row![
                "found, in percent of the prediction",
                exact("found_share", 100.0 * fits as f64 / predicted as f64)
                    .digits(1)
                    .unit("%")
            ]),
    );
    lab.prose(
        "The prediction counts what tensors hold. The limit counts segments, which hold tensors and the gaps between \
         them, so less fits than predicted. Part B is about those gaps.",
    );
    Ok(())
}

/// A report whose first line, PyTorch's message, is wrapped.
fn wrapped(error: &Error) -> String {
    let report = error.report();
    let (message, rest) = report.split_once('\n').unwrap_or((&report, ""));
    format!("{}\n{rest}", crate::frame::render_text::wrap(message))
}

fn kept_graphs(lab: &mut Lab) -> crate::Result<()> {
    lab.section(7, "A list of losses");
    let guess = lab.predict(
        Prediction::number(
            "04-list",
            "You evaluate a network with 256 inputs, a hidden layer of 256 units with ReLU, and one output, on batches of \
             512. Autograd records as usual, and the losses of three batches go into a list, to be averaged later. A loss is \
             one float. How many KiB does the list keep alive?",
        )
        .unit("KiB")
        .tolerance(0.1) // counts only the hidden layer's results, not the small blocks
        .because(
            "A loss holds its graph, and the graph holds what the layers keep for the backward pass. For each batch that is \
             ReLU's output, 512 times 256 floats or 512 KiB, and a few small blocks.",
        ),
    );
    let device = lab.device();
    let model = nn::Sequential::new((
        nn::Linear::new(256, 256)?,
        nn::ReLU,
        nn::Linear::new(256, 1)?,
    ));
    model.to(device)?;
    let x = Tensor::randn(&[512, 256])?.to(device)?;
    model.forward(&x)?.mean()?.backward()?; // makes the gradients, which stay

    let before = memory_allocated(device);
    let held = || memory_allocated(device) - before;
    let mut columns = Vec::new();
    // ANCHOR: losses
    let mut losses = Vec::new();
    for _ in 1..=3 {
        let loss = model.forward(&x)?.square()?.mean()?;
        losses.push(loss);
        columns.push(held());
    }
    // ANCHOR_END: losses
    let of_the_list = held();
    losses.clear();
    // ANCHOR: numbers
    for _ in 1..=3 {
        let loss = model.forward(&x)?.square()?.mean()?;
        loss.backward()?; // frees the activations
        losses.push(loss);
        columns.push(held());
    }
    losses.clear();
    for _ in 1..=3 {
        let loss = model.forward(&x)?.square()?.mean()?;
        losses.push(loss.detach()); // the number, on the device, without the graph
        drop(loss);
        columns.push(held());
    }
    losses.clear();
    let mut numbers = Vec::new();
    for _ in 1..=3 {
        let loss = model.forward(&x)?.square()?.mean()?;
        numbers.push(loss.item()?); // the number, on the host: waits for the device
        drop(loss);
        columns.push(held());
    }
    // ANCHOR_END: numbers
    let mut table = Table::new([
        "held after batch",
        "loss",
        "loss after backward",
        "loss.detach()",
        "loss.item()",
    ]);
    for batch in 0..3 {
        let cells = (0..4)
            .map(|column| bytes("bytes_held", columns[3 * column + batch]).into());
        table = table.row([(batch + 1).into()].into_iter().chain(cells).collect());
    }
    lab.table(table);
    lab.answer(guess, bytes("of_the_list", of_the_list).unit("KiB"));
    lab.prose(
        "A loss knows how it was computed, and so it holds what its backward pass would need. In a training loop \
         backward() has freed that; in an evaluation nobody calls it, and every batch stays. detach() and item() give you \
         the number alone. In no_grad there is no graph to keep.",
    );
    Ok(())
}
