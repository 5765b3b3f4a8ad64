//! The state of an optimizer: its device after three orders of create, load and move, and the cost of moving it.

use std::time::Duration;

use drawing::orders::{self, Order};
use todevice::Machine;
use todevice::nn::StateDict;
use todevice::optim::{Adam, optimizer_to};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::Counters;

use super::Disk;
use super::files::place;
use crate::frame::clock::wait_for;
use crate::{Figure, Lab, Prediction, Table, exact, row, text, timed};

pub(super) fn sections(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    three_orders(lab, disk)?;
    disk.hand_to(lab);
    what_step_costs(lab, disk)
}

// ANCHOR: network
fn network() -> Result<nn::Sequential> {
    let hidden = nn::Linear::new(10, 32)?;
    let out = nn::Linear::new(32, 1)?;
    Ok(nn::Sequential::new((hidden, nn::ReLU, out)))
}

fn adam(net: &nn::Sequential) -> Result<Adam> {
    Adam::new(net.parameters(), AdamOptions { lr: 1e-2, ..Default::default() })
}
// ANCHOR_END: network

/// A training step on one batch.
fn train_step(
    net: &nn::Sequential,
    optimizer: &mut Adam,
    device: Device,
) -> Result<()> {
    let x = Tensor::ones((&[4, 10], device))?;
    let loss = net.forward(&x)?.square()?.mean()?;
    optimizer.zero_grad();
    loss.backward()?;
    optimizer.step()
}

// ANCHOR: orders
/// Loads both files to the CPU, and copies their tensors to where they are needed.
fn load(disk: &Disk, net: &nn::Sequential, optimizer: &mut Adam) -> Result<()> {
    let state = disk.load("model.pt", Device::Cpu)?;
    net.load_state_dict(&StateDict::try_from(&state)?, true)?;
    let state = disk.load("model.pt.optim", Device::Cpu)?;
    optimizer.load_state_dict(state.as_dict()?)
}

fn create_load_move(disk: &Disk, device: Device) -> Result<(nn::Sequential, Adam)> {
    let net = network()?;
    let mut optimizer = adam(&net)?;
    load(disk, &net, &mut optimizer)?;
    net.to(device)?;
    Ok((net, optimizer))
}

fn create_move_load(disk: &Disk, device: Device) -> Result<(nn::Sequential, Adam)> {
    let net = network()?;
    let mut optimizer = adam(&net)?;
    net.to(device)?;
    load(disk, &net, &mut optimizer)?;
    Ok((net, optimizer))
}

fn move_create_load(disk: &Disk, device: Device) -> Result<(nn::Sequential, Adam)> {
    let net = network()?;
    net.to(device)?;
    let mut optimizer = adam(&net)?;
    load(disk, &net, &mut optimizer)?;
    Ok((net, optimizer))
}
// ANCHOR_END: orders

type Make = fn(&Disk, Device) -> Result<(nn::Sequential, Adam)>;

const ORDERS: [(&str, Make); 3] = [
    ("create, load, move", create_load_move),
    ("create, move, load", create_move_load),
    ("move, create, load", move_create_load),
];

/// The devices of the first parameter and of Adam's state for it, each with its name.
fn places(net: &nn::Sequential, optimizer: &Adam) -> Vec<(&'static str, Device)> {
    let parameter = &net.parameters()[0];
    let mut places = vec![("parameter", parameter.tensor().device())];
    if let Some(state) = optimizer.state(parameter) {
        places.push(("exp_avg", state.exp_avg.device()));
        places.push(("exp_avg_sq", state.exp_avg_sq.device()));
        places.push(("step", state.step.device()));
    }
    places
}

fn three_orders(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    lab.section(4, "Create, load, move");
    let device = lab.device();
    let guess = lab.predict_on_gpu(
        Prediction::number(
            "11-orders",
            "A program creates an optimizer, loads its state, and moves the model. It can do so in three orders: create, load, \
             move; create, move, load; move, create, load. In how many of them does the next training step fail?",
        )
        .out_of(3)
        .because("Loading puts the state where the parameters are at that moment. Moving the model later leaves the state behind."),
    );
    manual_seed(lab.seed());
    // ANCHOR: optim_file
    let net = network()?;
    net.to(device)?;
    let mut optimizer = adam(&net)?;
    train_step(&net, &mut optimizer, device)?;
    disk.save(net.state_dict(), "model.pt")?;
    disk.save(optimizer.state_dict(), "model.pt.optim")?;
    // ANCHOR_END: optim_file

    let mut table = Table::new([
        "order",
        "parameter",
        "exp_avg",
        "exp_avg_sq",
        "step",
        "next step",
    ]);
    let mut drawn = Vec::new();
    let mut errors = Vec::new();
    for (name, make) in ORDERS {
        let (net, mut optimizer) = make(disk, device)?;
        let places = places(&net, &optimizer);
        let next = train_step(&net, &mut optimizer, device);
        let (said, outcome) = match next {
            Ok(()) => ("runs", "runs"),
            Err(error @ Error::DeviceMismatch(_)) => {
                errors.push((name, error));
                ("error GPU0001", "fails: two devices")
            }
            Err(error) => return Err(error.into()),
        };
        let mut cells = row![name];
        cells.extend(places.iter().flat_map(|(_, device)| row![place(*device)]));
        cells.extend(row![exact("next_step", said)]);
        table = table.row(cells);
        drawn.push(Order { name, places, outcome });
    }
    lab.table(table);
    lab.answer(guess, exact("failing_orders", errors.len()));
    if !lab.has_gpu_or(
        "With one device there is nowhere to be left behind. With --gpu sim:t4 one of the orders fails.",
    ) {
        return Ok(());
    }
    let fails_after = |orders: &str| {
        format!(
            "The next training step fails after {orders}, because the moments are not on the device of their parameter."
        )
    };
    let caption = format!(
        "A program creates an optimizer, loads its state, and moves the model to the GPU, in {} orders. Each box shows where \
         the first parameter is then, and what Adam keeps of it: its moments exp_avg and exp_avg_sq, and step, which counts \
         the training steps. {}",
        drawn.len(),
        match &errors[..] {
            [] => "The next training step runs after each of them.".to_owned(),
            [(order, _)] => fails_after(&format!("one of the orders ({order})")),
            several => fails_after(&format!("{} of the orders", several.len())),
        }
    );
    lab.picture(orders::picture(&drawn, device), &caption);
    for (name, error) in errors {
        lab.print(text!("{name}:"));
        lab.report(error.report());
    }
    lab.prose(
        "An optimizer has no device. It holds parameters, which move with the model, and tensors of its own, its state, which do not. \
         load_state_dict puts the state where the parameters are at that moment, all but step, which stays where it was.",
    );

    lab.part("cure");
    let (net, mut optimizer) = create_load_move(disk, device)?;
    // ANCHOR: cure
    optimizer_to(&mut optimizer, device)?;
    train_step(&net, &mut optimizer, device)?;
    // ANCHOR_END: cure
    let on = |name: &str| {
        let places = places(&net, &optimizer);
        let found = places.iter().find(|(known, _)| *known == name);
        place(found.map_or(Device::Cpu, |(_, device)| *device))
    };
    lab.print(text!(
        "After optimizer_to the step runs: exp_avg is on {}, step on {}.",
        on("exp_avg"),
        on("step")
    ));
    Ok(())
}

// ANCHOR: five_steps
/// Five steps of an optimizer: its requests to the device, and its time.
fn five_steps(optimizer: &mut Adam, device: Device) -> Result<(Counters, Duration)> {
    let machine = Machine::current();
    wait_for(device)?;
    let (before, start) = (machine.counters(), Instant::now());
    for _ in 0..5 {
        optimizer.step()?;
    }
    wait_for(device)?;
    Ok((machine.counters() - before, start.elapsed()))
}
// ANCHOR_END: five_steps

fn what_step_costs(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    lab.section(5, "What moving step costs");
    let device = lab.device();
    let parameters = network()?.parameters().len();
    let question = format!(
        "Each parameter has its own `step`, a tensor of one number, and `optimizer_to` moves it to the device. The network has \
         {parameters} \
         parameters. How many copies to the host do five steps of Adam make then?"
    );
    let guess = lab.predict_on_gpu(
        Prediction::number("11-hidden", question)
            .unit("copies")
            .integer()
            .because(
                "The host needs the number of the step for the correction of the moments, so it reads it back: once for each \
                 parameter in each step, and it waits each time.",
            ),
    );
    let (net, mut optimizer) = create_move_load(disk, device)?;
    train_step(&net, &mut optimizer, device)?;
    let mut rows = vec![(
        "create, move, load",
        places(&net, &optimizer),
        five_steps(&mut optimizer, device)?,
    )];

    let (net, mut optimizer) = create_load_move(disk, device)?;
    optimizer_to(&mut optimizer, device)?;
    train_step(&net, &mut optimizer, device)?;
    rows.push((
        "optimizer_to",
        places(&net, &optimizer),
        five_steps(&mut optimizer, device)?,
    ));

    let net = network()?;
    net.to(device)?;
    let mut optimizer = adam(&net)?;
    // ANCHOR: loaded_there
    let state = disk.load("model.pt.optim", device)?; // step as well
    optimizer.load_state_dict(state.as_dict()?)?;
    // ANCHOR_END: loaded_there
    train_step(&net, &mut optimizer, device)?;
    let loaded_there = format!("loaded to {device}");
    rows.push((
        &loaded_there,
        places(&net, &optimizer),
        five_steps(&mut optimizer, device)?,
    ));

    let (net, mut optimizer) = create_load_move(disk, device)?;
    // ANCHOR: all_but_step
    let state = optimizer.state_dict();
    optimizer.load_state_dict(&state)?; // all but step go to their parameters
    // ANCHOR_END: all_but_step
    train_step(&net, &mut optimizer, device)?;
    rows.push((
        "loaded from itself",
        places(&net, &optimizer),
        five_steps(&mut optimizer, device)?,
    ));

    let mut table =
        Table::new(["state", "step is on", "copies to host", "launches", "5 steps"]);
    for (name, places, (counters, time)) in &rows {
        let step = places.iter().find(|(name, _)| *name == "step");
        table = table.row(row![
            *name,
            place(step.map_or(Device::Cpu, |(_, device)| *device)),
            reads(counters),
            exact("launches", counters.launches),
            timed("five_steps_time", *time).digits(2)
        ]);
    }
    lab.table(table);
    let [(_, _, (on_host, fast)), (_, _, (moved, slow)), ..] = &rows[..] else {
        return Ok(());
    };
    lab.answer(guess, reads(moved).unit("copies"));
    if device.is_cuda() && moved.copies_to_host > on_host.copies_to_host {
        let why = "Adam corrects its moments by the number of steps, and computes that correction on the host. Where step is on the \
                   device, the host asks for it";
        lab.prose(match slow > fast {
            true => crate::Text::from(format!(
                "{why}, and waits: the five steps take longer."
            ))
            .raced(),
            false => crate::Text::from(format!(
                "{why}. Here that makes the five steps no slower."
            ))
            .raced(),
        });
        lab.prose(
            "To load an optimizer's own state into it moves what has been left behind, and leaves step where it is.",
        );
    }
    Ok(())
}

/// Copies to the host that nobody requested.
fn reads(counters: &Counters) -> Figure {
    exact("hidden_reads", counters.copies_to_host)
}
