//! Saving and loading a model, and the contents of its file.

use todevice::cuda;
use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::serialize::{self, MapLocation};

use super::Disk;
use crate::frame::render_text::wrap;
use crate::lab_01_devices::Actor;
use crate::{Figure, Lab, Prediction, Table, bytes, exact, row, text};

pub(super) fn save_and_load(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    lab.section(1, "Save and load");
    let device = lab.device();
    let guess = lab.predict_on_gpu(
        Prediction::choice(
            "11-where",
            format!(
                "`net` is on {device}, and its state is saved. `load_net` is a new network, which nobody has moved. It loads \
                 that state. Where are its parameters then?"
            ),
        )
        .or(
            "device",
            format!("On {device}, where those of `net` were."),
            "`load_state_dict` copies values into the parameters of the new network, and a copy does not move its target.",
        )
        .or("cpu", "On cpu, where they were made.", "This run has one device, so they are where those of `net` were.")
        .or("error", "Nowhere: it is an error.", "`copy_` may read from any device, and so may `load_state_dict`.")
        .because("`load_state_dict` copies the numbers of the file into the parameters, wherever the parameters are."),
    );
    manual_seed(lab.seed());
    // ANCHOR: save
    let net = Actor::new(10, -2.0, 2.0, [100, 50, 25])?;
    net.to(device)?;
    disk.save(net.state_dict(), "model.pt")?;
    // ANCHOR_END: save

    // ANCHOR: load
    let loaded = disk.load("model.pt", MapLocation::None)?;
    let state = StateDict::try_from(&loaded)?;

    let load_net = Actor::new(10, -2.0, 2.0, [100, 50, 25])?;
    load_net.load_state_dict(&state, true)?;
    let after_loading = load_net.parameters()[0].tensor();
    load_net.to(device)?;
    let after_moving = load_net.parameters()[0].tensor();
    // ANCHOR_END: load
    let saved = net.parameters()[0].tensor();
    let from_file =
        state.iter().next().map_or(Device::Cpu, |(_, first)| first.device());
    let row_of = |what: &str, device: Device| {
        row![what, place(device), exact("is_cuda", python_bool(device.is_cuda()))]
    };
    lab.table(
        Table::new(["the first weight", "device", "is_cuda"])
            .row(row_of("of net", saved.device()))
            .row(row_of("in the file, once it is loaded", from_file))
            .row(row_of("of load_net, after load_state_dict", after_loading.device()))
            .row(row_of("of load_net, after .to(device)", after_moving.device())),
    );
    lab.answer(guess, if after_loading.is_cuda() { "device" } else { "cpu" });
    lab.prose(lab.gpu_or_cpu(
        "The file remembers the device of each tensor, and loading puts them there. load_state_dict then copies their numbers \
         into the parameters of load_net, which stay on the CPU until .to(device) moves them.",
        "The file remembers the device of each tensor, here the CPU, and loading puts them there. load_state_dict then copies \
         their numbers into the parameters of load_net.",
    ));

    lab.part("there-and-back");
    // ANCHOR: there_and_back
    let on_cpu = disk.load("model.pt", Device::Cpu)?;
    disk.save(&on_cpu, "on-cpu.pt")?;
    let back = disk.load("on-cpu.pt", device)?;
    // ANCHOR_END: there_and_back
    let mut loads = vec![
        ("model.pt, to the CPU", StateDict::try_from(&on_cpu)?),
        ("on-cpu.pt, to the device", StateDict::try_from(&back)?),
    ];
    if let Some(other) = other_gpu(device) {
        // ANCHOR: other_gpu
        let moved = disk.load("model.pt", other)?;
        // ANCHOR_END: other_gpu
        loads.push(("model.pt, to another GPU", StateDict::try_from(&moved)?));
    }
    let mut table = Table::new(["file", "its tensors are on", "the same numbers"]);
    for (name, loaded) in loads {
        let same =
            exact("same_numbers", yes_or_no(are_same(&net.state_dict(), &loaded)?));
        let on = loaded.iter().next().map_or(Device::Cpu, |(_, first)| first.device());
        table = table.row(row![name, place(on), same]);
    }
    lab.table(table);
    Ok(())
}

fn other_gpu(device: Device) -> Option<Device> {
    let others = (0..cuda::device_count()).map(Device::cuda);
    others.into_iter().find(|other| device.is_cuda() && *other != device)
}

fn are_same(one: &StateDict, other: &StateDict) -> Result<bool> {
    let mut same = one.len() == other.len();
    for (name, tensor) in one.iter() {
        let Some(found) = other.get(name) else { return Ok(false) };
        same &= tensor.cpu()?.equal(&found.cpu()?)?;
    }
    Ok(same)
}

/// A whole network, as written by `torch.save(net, …)`: its tensors, and the name of its class in Python.
const WHOLE_MODEL: &[u8] = include_bytes!("../../files/whole-model.pt");

pub(super) fn inside(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    lab.section(3, "What is in a file");
    let guess = lab.predict(
        Prediction::choice(
            "11-row",
            "`table` has 100 rows of 100 floats, and `row` is the first of them, `table.select(0, 0)?`. How large is the file that \
             `row` is saved to?",
        )
        .or("row", "A little more than the 400 bytes of the row.", "A row is a view of the memory of its table, and that memory is saved.")
        .or("table", "A little more than the 40,000 bytes of the table.", "The file holds the numbers of the row, and nothing else."),
    );
    // ANCHOR: row
    let table = Tensor::randn(&[100, 100])?;
    let row = table.select(0, 0)?;
    disk.save(&row, "row.pt")?;
    disk.save(row.copy()?, "copy.pt")?;
    // ANCHOR_END: row
    let [of_row, of_copy] = ["row.pt", "copy.pt"].map(|name| disk.size(name));
    lab.table(
        Table::new(["file", "size"])
            .row(row!["row.pt, the row itself", bytes("row_size", of_row)])
            .row(row!["copy.pt, a copy() of the row", bytes("copy_size", of_copy)]),
    );
    let whole = table.nbytes();
    lab.answer(guess, if of_row > whole { "table" } else { "row" });
    lab.prose(if of_row > whole {
        "The file of the row holds the whole table: a row is a view of the memory of its table, and that memory is saved. The \
         copy() has memory of its own."
    } else {
        "Each file holds the numbers of the row, and nothing else."
    });

    lab.think(
        "11-whole",
        "Somebody has saved the network itself, `torch.save(net, \"whole-model.pt\")`, and sends you the file. What does `load` make \
         of it?",
    );
    // ANCHOR: whole
    let whole = serialize::from_bytes(WHOLE_MODEL, Device::Cpu);
    // ANCHOR_END: whole
    if let Err(error) = whole {
        lab.report(wrap(&error.report()));
    }

    let guess = lab.predict(
        Prediction::choice(
            "11-strict",
            "In the file `out.weight` is called `output.weight`. The state is loaded with `strict` set to `false`. What \
             becomes of the layer's weight?",
        )
        .or("renamed", "It has the numbers of `output.weight`.", "Each number goes to the parameter of the same name, and `load_state_dict` does not guess.")
        .or("stays", "It keeps its random numbers.", "It has the numbers of the file.")
        .or("error", "That is an error.", "With `strict` set to `false` a name that nobody knows is no error.")
        .because("What has no counterpart is left alone on both sides, and only the returned keys tell you."),
    );
    let net = Actor::new(10, -2.0, 2.0, [100, 50, 25])?;
    let fresh = Actor::new(10, -2.0, 2.0, [100, 50, 25])?;
    let random = out_weight(&fresh)?;
    // ANCHOR: strict
    let mut state = net.state_dict().copy()?;
    if let Some(weight) = state.remove("out.weight") {
        state.insert("output.weight", weight);
    }
    let strict = fresh.load_state_dict(&state, true);
    let keys = fresh.load_state_dict(&state, false)?;
    // ANCHOR_END: strict
    if let Err(error) = strict {
        lab.report(error.report());
    }
    let names = |names: &[String]| exact("keys", names.join(", "));
    lab.print(text!("missing_keys:    {}", names(&keys.missing_keys)));
    lab.print(text!("unexpected_keys: {}", names(&keys.unexpected_keys)));
    let stays = out_weight(&fresh)?.equal(&random)?;
    lab.print(text!("out.weight is as it was: {}", exact("stays", yes_or_no(stays))));
    lab.answer(guess, if stays { "stays" } else { "renamed" });
    Ok(())
}

fn out_weight(net: &Actor) -> Result<Tensor> {
    let state = net.state_dict();
    let weight = state.get("out.weight");
    weight.ok_or_else(|| Error::custom("out.weight"))?.copy()
}

pub(super) fn place(device: Device) -> Figure {
    exact("device", device.to_string())
}

pub(super) fn yes_or_no(truth: bool) -> &'static str {
    if truth { "yes" } else { "no" }
}

fn python_bool(truth: bool) -> &'static str {
    if truth { "true" } else { "false" }
}
