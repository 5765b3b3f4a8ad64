//! Sections 1 and 2: a model that was not moved, and one that was moved alone.

use drawing::smi;
use todevice::monitor;
use todevice::prelude::*;
use todevice::{Machine, cuda};

use super::pitfall::Pitfall;
use super::training::{network, pictures, time_of_a_step, train_step};
use crate::frame::render_text::wrap;
use crate::{Lab, Prediction, Table, exact, hardware, row, text, timed};

const BATCH: usize = 512;
const STEPS: usize = 5;

pub(super) fn nothing_is_moved(
    lab: &mut Lab,
    device: Device,
) -> crate::Result<Pitfall> {
    let why = "the monitor of a real GPU has other readings";
    lab.section_apart(1, "A GPU that nobody uses", why);
    lab.part("table");
    manual_seed(lab.seed());
    // ANCHOR: unmoved
    let (model, mut optimizer) = network()?;
    let (x, y) = pictures(BATCH)?;
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        losses.push(train_step(&model, &mut optimizer, &x, &y)?.item()?);
    }
    let table = smi::table(&[monitor::gpu(device.index())?]);
    // ANCHOR_END: unmoved
    let last = losses[STEPS - 1];
    lab.print(text!(
        "The loss of the first step: {:.4}; of the last: {:.4}",
        exact("first_loss", losses[0]),
        exact("last_loss", last)
    ));
    lab.print(text!("{}", hardware("nvidia_smi", table)));
    let guess = lab.predict(
        Prediction::choice(
            "13-unused",
            "The loss falls, and nvidia-smi shows this while the program trains. What is wrong, what proves it, and what helps?",
        )
        .or(
            "driver",
            "The driver does not work. `cuda::is_available()` is false. Install it again.",
            "nvidia-smi asks the driver. A table with the card in it shows that the driver works.",
        )
        .or(
            "unmoved",
            "Nothing was moved. `is_cuda()` of a parameter and of a batch is false. Move both with `.to(device)`.",
            "Here the parameters are on the GPU.",
        )
        .or(
            "short",
            "The kernels are too short for the monitor to see. `nvidia-smi -l 1` shows it. Make the batch larger.",
            "A program with tensors on the GPU holds memory there and stands in the list of processes, however little it computes.",
        )
        .because("The program trains on the CPU: nothing in it says that it should not."),
    );
    let launches = || Machine::current().counters().launches;
    let is_cuda = model.parameters()[0].tensor().is_cuda();
    let before = launches();
    let on_cpu =
        time_of_a_step(Device::Cpu, || train_step(&model, &mut optimizer, &x, &y))?;
    let launched_before = launches() - before;
    // ANCHOR: moved
    model.to(device)?; // once, before the loop
    let (x, y) = (x.to(device)?, y.to(device)?); // every batch
    // ANCHOR_END: moved
    let on_gpu = time_of_a_step(device, || train_step(&model, &mut optimizer, &x, &y))?;
    let before = launches();
    train_step(&model, &mut optimizer, &x, &y)?;
    let launched = launches() - before;
    cuda::synchronize()?;
    let yes = |truth| if truth { "true" } else { "false" };
    let is_cuda_now = model.parameters()[0].tensor().is_cuda();
    lab.table(
        Table::new(["", "as it was", "with .to(device)"])
            .row(row![
                "is_cuda() of a parameter",
                exact("is_cuda", yes(is_cuda)),
                exact("is_cuda", yes(is_cuda_now))
            ])
            .row(row![
                "launches in a step",
                exact("launches_before", launched_before / 2),
                exact("launches_after", launched)
            ])
            .row(row![
                "time of a step",
                timed("unmoved_step_time", on_cpu),
                timed("moved_step_time", on_gpu)
            ]),
    );
    lab.answer(guess, if is_cuda { "short" } else { "unmoved" });
    lab.prose(if last < losses[0] {
        "The loss falls on the CPU as it would on the GPU, and no line fails. Only the monitor and the clock tell."
    } else {
        "On the CPU the same numbers come out as on the GPU, and no line fails. Only the monitor and the clock tell."
    });
    Ok(Pitfall {
        what: "model not moved",
        counted: "launches in a step",
        before: exact("launches_before", launched_before / 2).into(),
        after: exact("launches_after", launched).into(),
    })
}

pub(super) fn devices_are_mixed(
    lab: &mut Lab,
    device: Device,
) -> crate::Result<Pitfall> {
    lab.section(2, "An error");
    lab.part("message");
    manual_seed(lab.seed());
    // ANCHOR: mixed
    let (model, mut optimizer) = network()?;
    model.to(device)?;
    let (x, y) = pictures(BATCH)?;
    let outcome = train_step(&model, &mut optimizer, &x, &y);
    // ANCHOR_END: mixed
    let Err(error) = outcome else { return Err("it ran on two devices".into()) };
    lab.report(wrap(&error.to_string()));
    let guess = lab.predict(
        Prediction::choice(
            "13-mixed",
            "A training step fails with this. What is wrong, what proves it, and what helps?",
        )
        .or(
            "batch",
            "The batch stayed on the CPU. `x.device()` says so. Move every batch, `x` and `y`.",
            "Here `x` is on the GPU.",
        )
        .or(
            "model",
            "The model stayed on the CPU. `model.parameters()[0].tensor().device()` says so. Move it once, before the loop.",
            "mat1 is the input of the layer, and mat2 its weight. The error says that mat1 is on the CPU.",
        )
        .or(
            "other",
            "The two are on different GPUs. `cuda::device_count()` says how many there are. Use `cuda:0` everywhere.",
            "The error names the devices, and one of the two is the CPU.",
        )
        .because("mat1 is the input of the layer. It is on the CPU, and the weight is on the GPU."),
    );
    let on_cpu = |tensor: &Tensor| !tensor.is_cuda();
    let key = match (on_cpu(&x), on_cpu(&model.parameters()[0].tensor())) {
        (true, false) => "batch",
        (false, true) => "model",
        _ => "other",
    };
    // ANCHOR: half_moved
    let x = x.to(device)?;
    let outcome = train_step(&model, &mut optimizer, &x, &y);
    // ANCHOR_END: half_moved
    if let Err(error) = outcome {
        lab.prose("With x moved, and y forgotten, the next line fails:");
        lab.report(wrap(&error.to_string()));
    }
    let y = y.to(device)?;
    let mut ran = 0;
    for _ in 0..STEPS {
        train_step(&model, &mut optimizer, &x, &y)?;
        ran += 1;
    }
    lab.print(text!(
        "With both moved, {} of {STEPS} steps run.",
        exact("mixed_after", ran)
    ));
    lab.answer(guess, key);
    Ok(Pitfall {
        what: "devices mixed",
        counted: "steps that run",
        before: exact("mixed_before", 0).into(),
        after: exact("mixed_after", ran).into(),
    })
}
