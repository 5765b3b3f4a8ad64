//! Part A: why it runs out.

use std::cmp::Ordering;

use drawing::Role;
use drawing::chart::{Stack, stacked};
use todevice::cuda;
use todevice::inference_mode;
use todevice::prelude::*;
use todevice::time::Instant;

use super::{
    Options, max_memory_allocated, memory_allocated, on_gpu, reset_peak_memory_stats,
    use_it,
};
use crate::{Figure, Lab, Prediction, Table, exact, hardware, row, timed};

pub(super) fn sections(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    first_numbers(lab)?;
    whose_bytes(lab, options)?;
    when_does_it_die(lab)?;
    peak_of_an_iteration(lab, options)?;
    eval_and_no_grad(lab)?;
    out_of_memory(lab, options)?;
    kept_graphs(lab)
}

fn first_numbers(lab: &mut Lab) -> crate::Result<()> {
    lab.section(1, "The first numbers");
    let device = lab.device();
    let guess = lab.predict(
        Prediction::number(
            "04-one-float",
            "A float has 4 bytes. By how many bytes does `memory_allocated()` rise for a tensor of one float?",
        )
        .unit("bytes")
        .because("The smallest block that is given out has 512 bytes.")
        .only_if(device.is_cuda()),
    );

    // ANCHOR: first_numbers
    let at_first = cuda::memory_allocated();

    let x = Tensor::zeros_with(&[1], device)?; // one float
    let of_one_float = cuda::memory_allocated() - at_first;
    drop(x);

    let x = Tensor::zeros_with(&[64, 64], device)?;
    drop(x.matmul(&x)?);
    drop(x);
    // All of it is dropped again.
    let of_the_first_product = cuda::memory_allocated() - at_first;

    let before = cuda::memory_allocated();
    let x = Tensor::empty(&[300, 300, 300], device)?; // 27 million
    let of_a_cube = cuda::memory_allocated() - before;
    drop(x);

    let model = mlp()?;
    model.to(device)?;
    let of_a_model = cuda::memory_allocated() - before;
    // ANCHOR_END: first_numbers

    let floats: usize =
        model.parameters().iter().map(|parameter| parameter.numel()).sum();
    lab.table(
        Table::new(["cuda::memory_allocated()", "its floats have", "bytes"])
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
    if device.is_cuda() {
        lab.prose(
            "Memory is given out in blocks, and a block is a multiple of 512 bytes. The first matrix product makes \
             cuBLAS take a workspace through the same allocator. It belongs to no tensor of the program, and it stays.",
        );
    } else {
        lab.prose(
            "These functions count the memory of a GPU, and the tensors here are on the CPU: they show 0, which is no \
             error.",
        );
        on_gpu(lab, "512 bytes for the one float.");
    }
    Ok(())
}

// ANCHOR: mlp
fn mlp() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((
        nn::Linear::new(784, 1000)?,
        nn::ReLU,
        nn::Linear::new(1000, 1000)?,
        nn::ReLU,
        nn::Linear::new(1000, 10)?,
    )))
}
// ANCHOR_END: mlp

/// Who can own bytes in section 2, and the figure that says how many.
const OWNERS: [(&str, &str); 7] = [
    ("parameters", "parameters_bytes"),
    ("gradients", "gradients_bytes"),
    ("exp_avg", "exp_avg_bytes"),
    ("exp_avg_sq", "exp_avg_sq_bytes"),
    ("batch", "batch_bytes"),
    ("activations", "activations_bytes"),
    ("cuBLAS workspace", "workspace_bytes"),
];

/// What their bytes are for, which decides how they are drawn.
const ROLES: [Role; 7] = [
    Role::Parameter,
    Role::Gradient,
    Role::Optimizer,
    Role::Optimizer,
    Role::Data,
    Role::Activation,
    Role::Workspace,
];

/// What is to be put in order in section 2, and the owners whose bytes it has.
const COMPARED: [(&str, &[&str]); 4] = [
    ("the activations", &["activations"]),
    ("Adam's two moments", &["exp_avg", "exp_avg_sq"]),
    ("the batch", &["batch"]),
    ("the parameters", &["parameters"]),
];

fn whose_bytes(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section(2, "Whose bytes?");
    let question = format!(
        "A network with layers of 784, 1000, 1000 and 10 units is trained for one step, with Adam and a batch of {}. \
         Order these by the most memory each of them takes, the smallest first.",
        options.batch_size
    );
    let guess = lab.predict(
        Prediction::order("04-owners", question, COMPARED.map(|(name, _)| name))
            .because(
                "Parameters and moments are as large as the network makes them, whatever the batch. The batch and \
                 the activations have a row for each sample.",
            )
            .only_if(lab.device().is_cuda()),
    );
    if !on_gpu(lab, "who holds how many bytes after each part of a training step.") {
        return Ok(());
    }
    let stages = one_step(lab, options.batch_size)?;
    let mut table = Table::new(
        ["bytes of"].into_iter().chain(stages.iter().map(|(stage, _)| *stage)),
    );
    for (index, (owner, figure)) in OWNERS.into_iter().enumerate() {
        let bytes =
            stages.iter().map(|(_, owned)| exact(figure, owned.by_owner[index]).into());
        table = table.row([owner.into()].into_iter().chain(bytes).collect());
    }
    let all =
        stages.iter().map(|(_, owned)| exact("allocated_bytes", owned.all).into());
    table = table.row(["all".into()].into_iter().chain(all).collect());
    lab.table(table);
    let owners: Vec<(&str, Role)> =
        OWNERS.iter().zip(ROLES).map(|((owner, _), role)| (*owner, role)).collect();
    let bars: Vec<Stack> = stages
        .iter()
        .map(|(stage, owned)| Stack { name: stage, parts: owned.by_owner.to_vec() })
        .collect();
    lab.picture(
        stacked("bytes", &owners, &bars),
        "The owners of the allocated bytes, one bar after each part of the step.",
    );
    let at_its_largest = |(_, owners): &(&str, &[&str])| {
        let bytes = |owned: &Owned| -> u64 {
            let pairs = OWNERS.iter().zip(owned.by_owner);
            pairs
                .filter(|((owner, _), _)| owners.contains(owner))
                .map(|(_, bytes)| bytes)
                .sum()
        };
        stages.iter().map(|(_, owned)| bytes(owned)).max()
    };
    let mut ordered = COMPARED;
    ordered.sort_by_key(at_its_largest);
    lab.answer(guess, ordered.map(|(name, _)| name.to_owned()).to_vec());
    lab.prose(
        "The last line is what memory_allocated() shows. A gradient has as many floats as its parameter, and so has \
         each of Adam's two moments: they come in the first step, and they stay. Activations are what the backward \
         pass needs; it frees them as it goes.",
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
            owner,
            exact("bytes_once", once),
            exact("bytes_doubled", twice)
        ]);
    }
    lab.table(table);
    lab.prose("Only the batch and the activations grow with it.");

    // ANCHOR: predict
    let (batch, model) = (options.batch_size, mlp()?);
    model.to(lab.device())?;
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
                format!("peak with a batch of {batch}, bytes"),
                exact("peak_once", peak)
            ])
            .row(row![
                format!("peak with a batch of {}, bytes", 2 * batch),
                exact("peak_doubled", peak_doubled)
            ])
            .row(row![
                "so a sample costs, bytes",
                exact("bytes_per_sample", per_sample).digits(1)
            ])
            .row(row![
                "and what does not grow, bytes",
                exact("bytes_fixed", fixed as u64)
            ])
            .row(row![
                "memory of this GPU that a program can have, bytes",
                hardware("memory", memory as u64)
            ])
            .row(row![
                "so the largest batch that fits should be",
                hardware("largest_batch", largest)
            ]),
    );
    lab.prose("Two small runs are enough to say it, without running out. Section 6 tries how good that is.");
    Ok(())
}

/// Which of the stages of [`one_step`] is the forward pass.
const FORWARD: usize = 2;

/// Who owns how many bytes, after each part of a training step.
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

// ANCHOR: peak_of_a_step
/// The most bytes that are allocated in a training step.
fn peak_of_a_step(
    model: &nn::Sequential,
    optimizer: &mut optim::Adam,
    batch_size: usize,
) -> Result<u64> {
    cuda::reset_peak_memory_stats();
    step(model, optimizer, batch_size)?;
    Ok(cuda::max_memory_allocated())
}

fn step(
    model: &nn::Sequential,
    optimizer: &mut optim::Adam,
    batch_size: usize,
) -> Result<()> {
    let weight = model.parameters()[0].tensor();
    let device = weight.device();
    let x = Tensor::ones_with(&[batch_size, weight.size(1)?], device)?;
    let y = Tensor::zeros_with(&[batch_size], (device, DType::I64))?;

    let loss = nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &y)?;
    optimizer.zero_grad();
    loss.backward()?;
    optimizer.step()
}
// ANCHOR_END: peak_of_a_step

/// A mebibyte of floats: what stands for a batch where only its bytes matter.
const MIB: [usize; 1] = [1 << 18];

fn when_does_it_die(lab: &mut Lab) -> crate::Result<()> {
    lab.section(3, "When does it die?");
    let guess = lab.predict(
        Prediction::number(
            "04-alive",
            "Three batches are made, one after the other, and one `mut` variable outside the loop takes each in turn. \
             How many of them are alive at once, at most?",
        )
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
        "A value dies when its variable does, or when the variable gets another value, and that one is made first. \
         Shadowing only hides a name: all three die at the end. Python's assignment works like the one to a `mut`: it too \
         makes the new batch first.",
    );
    Ok(())
}

// ANCHOR: let_in_the_loop
fn let_in_the_loop(device: Device) -> Result<()> {
    for _ in 0..3 {
        let batch = Tensor::empty(&MIB, device)?;
        use_it(&batch);
    } // batch dies here, three times
    Ok(())
}
// ANCHOR_END: let_in_the_loop

// ANCHOR: mut_outside
fn mut_outside(device: Device) -> Result<()> {
    let mut batch = Tensor::empty(&MIB, device)?;
    use_it(&batch);
    for _ in 1..3 {
        batch = Tensor::empty(&MIB, device)?;
        use_it(&batch);
    }
    Ok(())
}
// ANCHOR_END: mut_outside

// ANCHOR: shadowing
fn shadowing(device: Device) -> Result<()> {
    let batch = Tensor::empty(&MIB, device)?;
    use_it(&batch);
    let batch = Tensor::empty(&MIB, device)?;
    use_it(&batch);
    let batch = Tensor::empty(&MIB, device)?;
    use_it(&batch);
    Ok(())
} // all three die here
// ANCHOR_END: shadowing

// ANCHOR: drop_before
fn drop_before(device: Device) -> Result<()> {
    let mut batch = Tensor::empty(&MIB, device)?;
    use_it(&batch);
    for _ in 1..3 {
        drop(batch);
        batch = Tensor::empty(&MIB, device)?;
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
            "A model is trained with Adam for three steps, all alike. How does the memory peak of the first compare with that of the second?",
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
             both are there together.",
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
    let mut table = Table::new(["iteration", "peak", "after it", "of that, gradients"]);
    for (index, [peak, after, gradients]) in iterations.into_iter().enumerate() {
        table = table.row(row![
            index + 1,
            exact("iteration_peak", peak),
            exact("iteration_after", after),
            exact("iteration_gradients", gradients),
        ]);
    }
    lab.table(table);
    let key = match first.cmp(&second) {
        Ordering::Less => "lower",
        Ordering::Equal => "same",
        Ordering::Greater => "higher",
    };
    lab.answer(guess, key);
    if first < second {
        lab.prose(
            "The first is lower: Adam makes its moments in its first step, when the activations are already gone. From \
             the second on they are there all the time.",
        );
    }
    lab.prose(
        "What matters is the peak of a later iteration. Gradients stay until zero_grad() sets them to None.",
    );
    Ok(())
}

fn eval_and_no_grad(lab: &mut Lab) -> crate::Result<()> {
    lab.section(5, "eval() × no_grad");
    lab.think(
        "04-eval",
        "`eval()` or `no_grad`: which of them makes two passes over the same input give the same output?",
    );
    let device = lab.device();
    // ANCHOR: dropout
    let model = nn::Sequential::new((
        nn::Linear::new(256, 1024)?,
        nn::ReLU,
        nn::Dropout::new(0.5)?,
        nn::Linear::new(1024, 256)?,
    ));
    model.to(device)?;
    let x = Tensor::randn(&[512, 256])?.to(device)?;
    // ANCHOR_END: dropout

    let mut table =
        Table::new(["mode", "recorded", "bytes kept", "same output twice", "time"]);
    model.forward(&x)?; // not timed: the first takes memory
    for training in [true, false] {
        // ANCHOR: modes
        if training {
            model.train()
        } else {
            model.eval()
        }
        let with_grad = look(device, || model.forward(&x))?;
        let without = look(device, || no_grad(|| model.forward(&x)))?;
        let inference = look(device, || inference_mode(|| model.forward(&x)))?;
        // ANCHOR_END: modes
        let mode = if training { "train()" } else { "eval()" };
        for (recorded, Look { kept, same, time }) in
            [("yes", with_grad), ("no_grad", without), ("inference_mode", inference)]
        {
            let same = exact("same_output", if same { "yes" } else { "no" });
            table =
                table.row(row![mode, recorded, exact("bytes_kept", kept), same, time]);
        }
    }
    lab.table(table);
    lab.prose(
        "They do different things. eval() switches dropout off, and so makes outputs repeatable; it keeps the activations \
         all the same. no_grad keeps nothing but the output, whatever the mode, and computes what it would compute \
         anyway: what it saves is memory, hardly time. An evaluation wants both.",
    );

    lab.think(
        "04-keeps",
        "Which of `x + 1`, `x * y` and `relu(x)` keep a tensor for the backward pass?",
    );
    let leaf = Tensor::zeros_with(&MIB, device)?.requires_grad_(true)?;
    let operations: [(&str, fn(&Tensor, &Tensor) -> Result<Tensor>, &str); 7] = [
        ("x + 1", |x, _| x + 1.0, "nothing"),
        ("x + y", |x, y| x + y, "nothing"),
        ("x * 2", |x, _| x * 2.0, "nothing: 2 is no tensor"),
        ("x * y", |x, y| x * y, "both"),
        ("x.square()", |x, _| x.square(), "x"),
        ("x.relu()", |x, _| x.relu(), "its result"),
        ("x.exp()", |x, _| x.exp(), "its result"),
    ];
    let mut table = Table::new(["operation", "tensors kept", "which"]);
    for (name, operation, which) in operations {
        let kept = kept_by(&leaf, operation)?;
        table = table.row(row![name, exact("tensors_kept", kept), which]);
    }
    lab.table(table);
    lab.prose(
        "Not every intermediate result is kept: only what the gradient's formula asks for. The others die with their \
         variables.",
    );
    Ok(())
}

/// What [`look`] sees.
struct Look {
    kept: u64,
    same: bool,
    time: Figure,
}

// ANCHOR: look
/// What a forward pass leaves in memory, its output included; whether a second one
/// gives the same; how long it takes.
fn look(device: Device, forward: impl Fn() -> Result<Tensor>) -> Result<Look> {
    wait_for(device)?;
    let (before, start) = (memory_allocated(device), Instant::now());
    let output = forward()?;
    wait_for(device)?;
    let (kept, time) = (memory_allocated(device) - before, start.elapsed());

    let again = forward()?;
    let same = output.to_vec::<f32>()? == again.to_vec::<f32>()?;
    Ok(Look { kept, same, time: timed("forward_time", time) })
}
// ANCHOR_END: look

// ANCHOR: kept_by
/// How many tensors an operation makes its graph keep, when nobody else holds them.
fn kept_by(
    leaf: &Tensor,
    operation: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<u64> {
    let device = leaf.device();
    let before = memory_allocated(device);
    let (x, y) = ((leaf + 1.0)?, (leaf + 2.0)?);
    let loss = operation(&x, &y)?.sum()?;
    drop((x, y));
    let kept = memory_allocated(device) - before;
    drop(loss);
    Ok(kept >> 20) // in tensors of 1 MiB; the loss is less than that
}
// ANCHOR_END: kept_by

fn out_of_memory(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section(6, "Out of memory");
    lab.think(
        "04-runs-out",
        "The batch is doubled until the memory runs out. What does the program do then?",
    );
    if !on_gpu(lab, "error GPU0002, and the largest batch that fits.") {
        return Ok(());
    }
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
    let batch = 1024;
    let peak = peak_of_a_step(&model, &mut optimizer, batch)?;
    let peak_doubled = peak_of_a_step(&model, &mut optimizer, 2 * batch)?;
    let per_sample = (peak_doubled - peak) as f64 / batch as f64;
    let fixed = peak as f64 - batch as f64 * per_sample;
    let predicted = ((limit as f64 - fixed) / per_sample) as usize;
    // ANCHOR_END: predict_limit

    let mut table = Table::new(["batch", "does it fit?", "peak, bytes"]);
    // ANCHOR: doubling
    let (mut fits, mut too_large) = (batch, batch);
    let error = loop {
        cuda::empty_cache()?;
        too_large *= 2;
        match peak_of_a_step(&model, &mut optimizer, too_large) {
            Ok(peak) => {
                fits = too_large;
                table = table.row(row![
                    exact("batch", fits),
                    "yes",
                    exact("batch_peak", peak)
                ]);
            }
            Err(error) => break error,
        }
    };
    // ANCHOR_END: doubling
    if error.code() != Some("GPU0002") {
        return Err(error.into());
    }
    table = table.row(row![exact("batch", too_large), "no", ""]);
    lab.table(table);
    lab.report(wrapped(&error));
    lab.prose(
        "It is an error like any other: the program gets it and goes on. The tensors of the failed step were dropped on \
         the way out, so there is room for a smaller one. The first line says what was asked for and what there is; \
         the list says which lines of the program hold the memory.",
    );

    // ANCHOR: bisection
    while too_large - fits > 128 {
        cuda::empty_cache()?;
        let middle = (fits + too_large) / 2;
        match peak_of_a_step(&model, &mut optimizer, middle) {
            Ok(_) => fits = middle,
            Err(_) => too_large = middle,
        }
    }
    // ANCHOR_END: bisection
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
        "The prediction counts what tensors hold. The limit counts segments, which hold tensors and gaps between \
         them: so less fits than predicted. Part B is about those gaps. The first thing to do about the error is a \
         smaller batch.",
    );
    Ok(())
}

/// A report with its first line, PyTorch's message, broken to be read.
fn wrapped(error: &Error) -> String {
    let report = error.report();
    let (message, rest) = report.split_once('\n').unwrap_or((&report, ""));
    format!("{}\n{rest}", crate::render_text::wrap(message))
}

fn kept_graphs(lab: &mut Lab) -> crate::Result<()> {
    lab.section(7, "A list of losses");
    let guess = lab.predict(
        Prediction::number(
            "04-list",
            "A network of 256 inputs, a hidden layer of 256 units with ReLU, and one output is evaluated on batches of \
             512. Autograd records as usual, and the losses of three batches go into a list, to be averaged later. A loss is one float. How many KiB \
             does the list keep alive?",
        )
        .unit("KiB")
        .tolerance(0.1) // the hidden layer's results alone, without the small blocks beside them
        .because(
            "A loss holds the graph that it was computed by, and with it what the layers have kept for the way back: \
             the 512 times 256 floats that ReLU put out, which is 512 KiB a batch, and a few small blocks.",
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
    let held = || exact("bytes_held", memory_allocated(device) - before);
    let mut table = Table::new([
        "held after batch",
        "loss",
        "loss after backward",
        "loss.detach()",
        "loss.item()",
    ]);
    // ANCHOR: losses
    let (mut losses, mut numbers) = (Vec::new(), Vec::new());
    let mut columns = Vec::new();
    for _ in 1..=3 {
        let loss = model.forward(&x)?.square()?.mean()?;
        losses.push(loss);
        columns.push(held());
    }
    // ANCHOR_END: losses
    let of_the_list = memory_allocated(device) - before;
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
    for _ in 1..=3 {
        let loss = model.forward(&x)?.square()?.mean()?;
        numbers.push(loss.item()?); // the number, on the host: waits for the device
        drop(loss);
        columns.push(held());
    }
    // ANCHOR_END: numbers
    for batch in 0..3 {
        let cells = (0..4).map(|column| columns[3 * column + batch].clone().into());
        table = table.row([(batch + 1).into()].into_iter().chain(cells).collect());
    }
    lab.table(table);
    lab.answer(
        guess,
        exact("of_the_list", of_the_list as f64 / 1024.0).unit("KiB").digits(1),
    );
    lab.prose(
        "A loss knows how it was computed, and so holds what its backward pass would need. In a training loop \
         backward() has freed that; in an evaluation nobody calls it, and every batch stays. detach() and item() give \
         the number alone. (An evaluation in no_grad has no graphs to keep.)",
    );
    Ok(())
}

/// Returns when the device has done all it was asked for.
fn wait_for(device: Device) -> Result<()> {
    if device.is_cuda() { cuda::synchronize_device(device.index()) } else { Ok(()) }
}
