//! Part A: why a GPU runs out of memory. The owners of memory, its lifetimes, and the peak.

use std::cmp::Ordering;

use drawing::Role;
use drawing::chart::{Stack, stacked};
use todevice::cuda;
use todevice::prelude::*;

use super::{
    Options, max_memory_allocated, memory_allocated, peak_of_a_step,
    reset_peak_memory_stats, step, use_it,
};
use crate::{Figure, Kind, Lab, Prediction, Table, bytes, exact, hardware, row};

pub(super) fn sections(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    first_numbers(lab)?;
    whose_bytes(lab, options)?;
    when_does_it_die(lab)?;
    peak_of_an_iteration(lab, options)
}

fn first_numbers(lab: &mut Lab) -> crate::Result<()> {
    lab.section(1, "The first numbers");
    let device = lab.device();
    let guess = lab.predict_on_gpu(
        Prediction::number(
            "04-one-float",
            "A float has 4 bytes. By how many bytes does `memory_allocated()` rise for a tensor of one float?",
        )
        .unit("bytes")
        .integer()
        .because("The smallest block that the allocator gives out is 512 bytes."),
    );

    // ANCHOR: first_numbers
    let at_first = cuda::memory_allocated();

    let x = Tensor::zeros((&[1], device))?; // one float
    let of_one_float = cuda::memory_allocated() - at_first;
    drop(x);

    let x = Tensor::zeros((&[64, 64], device))?;
    drop(x.matmul(&x)?);
    drop(x);
    // All of it is dropped again.
    let of_the_first_product = cuda::memory_allocated() - at_first;

    let before = cuda::memory_allocated();
    let x = Tensor::empty((&[300, 300, 300], device))?; // 27 million
    let of_a_cube = cuda::memory_allocated() - before;
    drop(x);

    let model = mlp()?;
    model.to(device)?;
    let of_a_model = cuda::memory_allocated() - before;
    // ANCHOR_END: first_numbers

    let floats: usize =
        model.parameters().iter().map(|parameter| parameter.numel()).sum();
    lab.table(
        Table::new(["what is allocated", "bytes of its floats", "bytes allocated"])
            .row(row!["before anything", "", exact("at_first", at_first)])
            .row(row!["a tensor of one float", 4, exact("of_one_float", of_one_float)])
            .row(row![
                "what the first product leaves",
                "",
                exact("of_the_first_product", of_the_first_product)
            ])
            .row(row![
                "a tensor of 300 × 300 × 300",
                4 * 27_000_000,
                exact("of_a_cube", of_a_cube)
            ])
            .row(row![
                "a model with 6 parameter tensors",
                4 * floats,
                exact("of_a_model", of_a_model)
            ]),
    );
    lab.answer(guess, exact("of_one_float", of_one_float).unit("bytes"));
    lab.prose(lab.gpu_or_cpu(
        "Memory is given out in blocks, and a block is a multiple of 512 bytes. The first matrix product makes \
         cuBLAS take a workspace through the same allocator. It belongs to none of your tensors, and it stays.",
        "These functions count the memory of a GPU, and the tensors here are on the CPU. So they show 0, and that is \
         no error.",
    ));
    lab.invite_to_gpu("512 bytes for the one float.");
    Ok(())
}

// ANCHOR: mlp
pub(super) fn mlp() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((
        nn::Linear::new(784, 1000)?,
        nn::ReLU,
        nn::Linear::new(1000, 1000)?,
        nn::ReLU,
        nn::Linear::new(1000, 10)?,
    )))
}
// ANCHOR_END: mlp

/// The owners of bytes in section 2, each with its figure.
const OWNERS: [(&str, &str); 7] = [
    ("parameters", "parameters_bytes"),
    ("gradients", "gradients_bytes"),
    ("exp_avg", "exp_avg_bytes"),
    ("exp_avg_sq", "exp_avg_sq_bytes"),
    ("batch", "batch_bytes"),
    ("activations", "activations_bytes"),
    ("cuBLAS workspace", "workspace_bytes"),
];

/// The roles of their bytes, which decide how they are drawn.
const ROLES: [Role; 7] = [
    Role::Parameter,
    Role::Gradient,
    Role::Optimizer,
    Role::Optimizer,
    Role::Data,
    Role::Activation,
    Role::Workspace,
];

/// The items to order in section 2, each with its owners.
const COMPARED: [(&str, &[&str]); 4] = [
    ("the activations", &["activations"]),
    ("Adam's two moments", &["exp_avg", "exp_avg_sq"]),
    ("the batch", &["batch"]),
    ("the parameters", &["parameters"]),
];

fn whose_bytes(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section(2, "Whose bytes?");
    let question = format!(
        "A network with layers of 784, 1000, 1000 and 10 units takes one training step, with Adam and a batch of {}. \
         Put these in order of their peak memory, smallest first.",
        options.batch_size
    );
    let guess = lab.predict_on_gpu(
        Prediction::order("04-owners", question, COMPARED.map(|(name, _)| name))
            .because(
                "Parameters and moments are as large as the network makes them, whatever the batch. The batch and \
                 the activations have a row for each sample.",
            ),
    );
    if !lab
        .has_gpu_to_show("who holds how many bytes after each part of a training step.")
    {
        return Ok(());
    }
    let stages = one_step(lab, options.batch_size)?;
    let mut table = Table::new(
        ["held by"].into_iter().chain(stages.iter().map(|(stage, _)| *stage)),
    );
    for (index, (owner, figure)) in OWNERS.into_iter().enumerate() {
        let held = stages.iter().map(|(_, owned)| owned.by_owner[index]);
        let held = held.map(|held| bytes(figure, held).into());
        table = table.row([in_short(owner).into()].into_iter().chain(held).collect());
    }
    let all =
        stages.iter().map(|(_, owned)| bytes("allocated_bytes", owned.all).into());
    table = table.row(["all".into()].into_iter().chain(all).collect());
    lab.table(table);
    let owners: Vec<(&str, Role)> =
        OWNERS.iter().zip(ROLES).map(|((owner, _), role)| (*owner, role)).collect();
    let bars: Vec<Stack> = stages
        .iter()
        .map(|(stage, owned)| Stack { name: stage, parts: owned.by_owner.to_vec() })
        .collect();
    lab.picture(
        stacked(&owners, &bars),
        "Each bar shows who owns the allocated memory after one part of the step. Adam's moments, exp_avg and exp_avg_sq, come last, \
         and stay.",
    );
    let at_its_largest = |(_, owners): &(&str, &[&str])| {
        let of_all = |owned: &Owned| -> u64 {
            let pairs = OWNERS.iter().zip(owned.by_owner);
            pairs
                .filter(|((owner, _), _)| owners.contains(owner))
                .map(|(_, bytes)| bytes)
                .sum()
        };
        stages.iter().map(|(_, owned)| of_all(owned)).max()
    };
    let mut ordered = COMPARED;
    ordered.sort_by_key(at_its_largest);
    lab.answer(guess, ordered.map(|(name, _)| name.to_owned()).to_vec());
    lab.prose(
        "The last row is what memory_allocated() shows. A gradient has as many floats as its parameter, and so has \
         each of Adam's two moments, which come with the first step and stay. Activations are what the backward pass \
         needs, and it frees them as it goes.",
    );

    let doubled = one_step(lab, 2 * options.batch_size)?;
    let mut table = Table::new([
        "after the forward pass".to_owned(),
        format!("batch of {}", options.batch_size),
        format!("of {}", 2 * options.batch_size),
    ]);
    for (index, (owner, _)) in OWNERS.into_iter().enumerate() {
        let [once, twice] =
            [&stages, &doubled].map(|stages| stages[FORWARD].1.by_owner[index]);
        table = table.row(row![
            in_short(owner),
            bytes("bytes_once", once),
            bytes("bytes_doubled", twice)
        ]);
    }
    lab.table(table);
    lab.prose("Only the batch and the activations grow when you double the batch.");

    let (device, batch) = (lab.device(), options.batch_size);
    // ANCHOR: predict
    let model = mlp()?;
    model.to(device)?;
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    step(&model, &mut optimizer, 1)?; // makes Adam's averages

    let peak = peak_of_a_step(&model, &mut optimizer, batch)?;
    let peak_doubled = peak_of_a_step(&model, &mut optimizer, 2 * batch)?;
    let per_sample = (peak_doubled - peak) as f64 / batch as f64;
    let fixed = peak as f64 - batch as f64 * per_sample;

    let (free, _) = cuda::mem_get_info()?;
    let memory = (free + cuda::memory_reserved()) as f64;
    let largest = ((memory - fixed) / per_sample) as u64;
    // ANCHOR_END: predict
    drop((model, optimizer));
    lab.table(
        Table::new(["two runs, and what follows from them", ""])
            .row(row![
                format!("peak with a batch of {batch}"),
                bytes("peak_once", peak)
            ])
            .row(row![
                format!("peak with a batch of {}", 2 * batch),
                bytes("peak_doubled", peak_doubled)
            ])
            .row(row![
                "so each sample takes",
                exact("bytes_per_sample", per_sample).digits(1).unit("bytes")
            ])
            .row(row![
                "and what does not grow takes",
                bytes("bytes_fixed", fixed as u64)
            ])
            .row(row![
                "memory of this GPU that a program can have",
                Figure { kind: Kind::Hardware, ..bytes("memory", memory as u64) }
            ])
            .row(row![
                "so the largest batch that fits should be",
                hardware("largest_batch", largest)
            ]),
    );
    lab.prose(
        "Two small runs are enough for an estimate, and you need not run out of memory for it. Section 6 finds out how good such an \
         estimate is.",
    );
    Ok(())
}

fn in_short(owner: &str) -> &str {
    owner.trim_start_matches("cuBLAS ")
}

/// The stage of [`one_step`] that is the forward pass.
const FORWARD: usize = 2;

/// The bytes of each owner, after each part of a training step.
fn one_step(lab: &Lab, batch_size: usize) -> Result<Vec<(&'static str, Owned)>> {
    let device = lab.device();
    // ANCHOR: one_step
    let mut stages = Vec::new();
    let model = mlp()?;
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    let x = Tensor::randn(&[batch_size, 784])?;
    let y = Tensor::randint(0, 10, &[batch_size])?;

    model.to(device)?;
    stages.push(("model", owners(&model, &optimizer, &[])));

    let batch = [x.to(device)?, y.to(device)?];
    stages.push(("batch", owners(&model, &optimizer, &batch)));

    let [x, y] = &batch;
    let loss = nn::CrossEntropyLoss::default().forward(&model.forward(x)?, y)?;
    stages.push(("forward", owners(&model, &optimizer, &batch)));

    loss.backward()?;
    stages.push(("backward", owners(&model, &optimizer, &batch)));

    optimizer.step()?;
    stages.push(("step", owners(&model, &optimizer, &batch)));

    optimizer.zero_grad();
    drop((loss, batch));
    stages.push(("end", owners(&model, &optimizer, &[])));
    // ANCHOR_END: one_step
    Ok(stages)
}

/// The bytes of each owner, and `memory_allocated()`.
struct Owned {
    by_owner: [u64; OWNERS.len()],
    all: u64,
}

// ANCHOR: owners
fn owners(model: &nn::Sequential, optimizer: &optim::Adam, batch: &[Tensor]) -> Owned {
    let (mut parameters, mut gradients) = (Vec::new(), Vec::new());
    let (mut exp_avg, mut exp_avg_sq) = (Vec::new(), Vec::new());
    for parameter in model.parameters() {
        parameters.push(parameter.tensor());
        gradients.extend(parameter.grad());
        if let Some(state) = optimizer.state(&parameter) {
            exp_avg.push(state.exp_avg);
            exp_avg_sq.push(state.exp_avg_sq);
        }
    }
    let map = drawing::MemoryMap::now()
        .name("parameters", &parameters)
        .name("gradients", &gradients)
        .name("exp_avg", &exp_avg)
        .name("exp_avg_sq", &exp_avg_sq)
        .name("batch", batch)
        .name_others("activations");
    Owned {
        by_owner: OWNERS.map(|(owner, _)| map.bytes_of(owner)),
        all: cuda::memory_allocated(),
    }
}
// ANCHOR_END: owners

/// A mebibyte of floats: stands for a batch if only its size matters.
const MIB: [usize; 1] = [1 << 18];

fn when_does_it_die(lab: &mut Lab) -> crate::Result<()> {
    lab.section(3, "When does it die?");
    let guess = lab.predict(
        Prediction::number(
            "04-alive",
            "A program makes three batches, one after the other, and assigns each to the same `mut` variable, declared outside the \
             loop. How many batches are alive at once, at most?",
        )
        .out_of(3)
        .unit("batches")
        .because("An assignment makes the new batch first, and only then drops the old one."),
    );
    let device = lab.device();
    let peak = |batches: fn(Device) -> Result<()>| -> Result<u64> {
        let before = memory_allocated(device);
        reset_peak_memory_stats(device);
        batches(device)?;
        Ok((max_memory_allocated(device) - before) >> 20)
    };
    let alive = exact("peak_mut", peak(mut_outside)?);
    lab.table(
        Table::new(["three batches", "most alive at once"])
            .row(row!["let in the loop", exact("peak_let", peak(let_in_the_loop)?)])
            .row(row!["mut outside the loop, reassigned", alive.clone()])
            .row(row![
                "three times let, with one name",
                exact("peak_shadow", peak(shadowing)?)
            ])
            .row(row![
                "dropped before the next is made",
                exact("peak_drop", peak(drop_before)?)
            ]),
    );
    lab.answer(guess, alive.unit("batches"));
    lab.prose(
        "A value dies when its variable does, or when its variable gets another value; but that other value is made \
         first. Shadowing only hides a name, so all three batches die at the end. An assignment in Python works like the one \
         to a mut: it makes the new batch while the old one is still there.",
    );
    Ok(())
}

// ANCHOR: let_in_the_loop
fn let_in_the_loop(device: Device) -> Result<()> {
    for _ in 0..3 {
        let batch = Tensor::empty((&MIB, device))?;
        use_it(&batch);
    } // batch dies here, three times
    Ok(())
}
// ANCHOR_END: let_in_the_loop

// ANCHOR: mut_outside
fn mut_outside(device: Device) -> Result<()> {
    let mut batch = Tensor::empty((&MIB, device))?;
    use_it(&batch);
    for _ in 1..3 {
        batch = Tensor::empty((&MIB, device))?;
        use_it(&batch);
    }
    Ok(())
}
// ANCHOR_END: mut_outside

// ANCHOR: shadowing
fn shadowing(device: Device) -> Result<()> {
    let batch = Tensor::empty((&MIB, device))?;
    use_it(&batch);
    let batch = Tensor::empty((&MIB, device))?;
    use_it(&batch);
    let batch = Tensor::empty((&MIB, device))?;
    use_it(&batch);
    Ok(())
} // all three die here
// ANCHOR_END: shadowing

// ANCHOR: drop_before
fn drop_before(device: Device) -> Result<()> {
    let mut batch = Tensor::empty((&MIB, device))?;
    use_it(&batch);
    for _ in 1..3 {
        drop(batch);
        batch = Tensor::empty((&MIB, device))?;
        use_it(&batch);
    }
    Ok(())
}
// ANCHOR_END: drop_before

fn peak_of_an_iteration(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section(4, "The peak of an iteration");
    let guess = lab.predict(
        Prediction::choice(
            "04-three-steps",
            "You train a model with Adam for three steps, all alike. How does the memory peak of the first step compare with that of \
             the second?",
        )
        .or(
            "same",
            "It is the same.",
            "The steps do the same work, but the first begins without the moments, and the second with them.",
        )
        .or(
            "higher",
            "It is higher.",
            "What the first step sets up stays, so the second has it from the start.",
        )
        .or("lower", "It is lower.", "Here the moments are there at the peak of every step.")
        .because(
            "Adam makes its moments at the end of the first step, when the activations are gone. From the second step on \
             both are there at the same time.",
        ),
    );
    let (device, batch_size) = (lab.device(), options.batch_size);
    let model = mlp()?;
    model.to(device)?;
    let mut iterations = Vec::new();
    // ANCHOR: peaks
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    for _ in 0..3 {
        reset_peak_memory_stats(device);
        step(&model, &mut optimizer, batch_size)?;
        let peak = max_memory_allocated(device);

        let after = memory_allocated(device);
        optimizer.zero_grad(); // sets them to None, which frees them
        let gradients = after - memory_allocated(device);
        iterations.push([peak, after, gradients]);
    }
    // ANCHOR_END: peaks
    let [first, second] = [0, 1].map(|index: usize| iterations[index][0]);
    let mut table = Table::new(["step", "peak", "after it", "of that, gradients"]);
    for (index, [peak, after, gradients]) in iterations.into_iter().enumerate() {
        table = table.row(row![
            index + 1,
            bytes("iteration_peak", peak),
            bytes("iteration_after", after),
            bytes("iteration_gradients", gradients),
        ]);
    }
    lab.table(table);
    let key = match first.cmp(&second) {
        Ordering::Less => "lower",
        Ordering::Equal => "same",
        Ordering::Greater => "higher",
    };
    lab.answer(guess, key);
    lab.prose(
        "The first peak is lower: Adam makes its moments at the end of its first step, when the activations are already gone. \
         From the second step on they are there all the time, so measure a later step. Gradients stay until zero_grad() \
         sets them to None.",
    );
    Ok(())
}
