//! Has all of it moved?

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// The names of a model's tensors that are not on the device: first parameters, then
    /// buffers, both in the model's order.
    pub fn left_behind(model: &dyn Module, device: Device) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for (name, parameter) in model.named_parameters() {
            if parameter.tensor().device() != device {
                names.push(name);
            }
        }
        for (name, buffer) in model.named_buffers() {
            if buffer.tensor().device() != device {
                names.push(name);
            }
        }
        Ok(names)
    }
    // END
}

type LeftBehind = fn(&dyn Module, Device) -> Result<Vec<String>>;

const PARAMETERS: &str = "    for (name, parameter) in model.named_parameters() {\n        if parameter.tensor().device() != device {\n            \
                          names.push(name);\n        }\n    }\n";
const BUFFERS: &str = "    for (name, buffer) in model.named_buffers() {\n        if buffer.tensor().device() != device {\n            \
                       names.push(name);\n        }\n    }\n";
const OF_PARAMETER: &str = "        if parameter.tensor().device() != device {\n";
const OF_BUFFER: &str = "        if buffer.tensor().device() != device {\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "01-portable";

pub static EXERCISE: Exercise = Exercise {
    id: "01-moved",
    title: "Has all of it moved?",
    kind: Kind::Write,
    task: "Write `left_behind`, a check to run after `model.to(device)`. It returns the names of all tensors of the model that are not \
           on `device`: first those of the parameters, then those of the buffers, in the model's order. It only looks: it moves \
           nothing and copies nothing.",
    hints: [
        "A tensor knows its device. A model knows its tensors by two kinds of names.",
        "Go through `model.named_parameters()`, and then through `model.named_buffers()`, which has the running statistics of a batch norm.",
        "`if parameter.tensor().device() != device { names.push(name); }`, and the same for buffers.",
    ],
    afterwards: "In PyTorch the same check is one line: `[n for n, t in model.state_dict().items() if t.device != device]`.",
    source: include_str!("01-moved.rs"),
    functions: &[("left_behind", "pub fn left_behind(model: &dyn Module, device: Device) -> Result<Vec<String>>")],
    skeleton: &[
        ("    let mut names = Vec::new();\n", "    // Parameters and buffers that are elsewhere.\n    let _ = (model, device);\n"),
        (PARAMETERS, ""),
        (BUFFERS, ""),
        ("    Ok(names)\n", "    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "one_iterator",
            edits: &[
                ("    let mut names = Vec::new();\n", ""),
                (PARAMETERS, "    let parameters = model.named_parameters().into_iter().map(|(name, one)| (name, one.tensor()));\n"),
                (
                    BUFFERS,
                    "    let buffers = model.named_buffers().into_iter().map(|(name, one)| (name, one.tensor()));\n    \
                     let all = parameters.chain(buffers);\n",
                ),
                (
                    "    Ok(names)\n",
                    "    Ok(all.filter(|(_, tensor)| tensor.device() != device).map(|(name, _)| name).collect())\n",
                ),
            ],
        },
        Style {
            name: "retained",
            edits: &[
                (
                    PARAMETERS,
                    "    let mut parameters = model.named_parameters();\n    \
                     parameters.retain(|(_, parameter)| parameter.tensor().device() != device);\n    \
                     names.extend(parameters.into_iter().map(|(name, _)| name));\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "buffers_forgotten",
            what: "Only parameters are looked at. A batch norm has buffers, too.",
            edits: &[(BUFFERS, "")],
            diagnosis: "buffers-forgotten",
        },
        Wrong {
            name: "parameters_forgotten",
            what: "Only buffers are looked at.",
            edits: &[(PARAMETERS, "")],
            diagnosis: "parameters-forgotten",
        },
        Wrong {
            name: "first_only",
            what: "The first parameter stands for the whole model.",
            edits: &[
                ("in model.named_parameters() {", "in model.named_parameters().into_iter().take(1) {"),
                (BUFFERS, ""),
            ],
            diagnosis: "first-only",
        },
        Wrong {
            name: "first_found",
            what: "The search ends with the first tensor that it finds.",
            edits: &[
                (OF_PARAMETER, "        if parameter.tensor().device() != device && names.is_empty() {\n"),
                (OF_BUFFER, "        if buffer.tensor().device() != device && names.is_empty() {\n"),
            ],
            diagnosis: "first-found",
        },
        Wrong {
            name: "turned_around",
            what: "The names are those of the tensors that are on the device.",
            edits: &[
                (OF_PARAMETER, "        if parameter.tensor().device() == device {\n"),
                (OF_BUFFER, "        if buffer.tensor().device() == device {\n"),
            ],
            diagnosis: "turned-around",
        },
        Wrong {
            name: "any_gpu",
            what: "Any GPU is taken for the right one.",
            edits: &[
                (OF_PARAMETER, "        if parameter.tensor().is_cuda() != device.is_cuda() {\n"),
                (OF_BUFFER, "        if buffer.tensor().is_cuda() != device.is_cuda() {\n"),
            ],
            diagnosis: "any-gpu",
        },
        Wrong {
            name: "always_a_gpu",
            what: "Everything that is on the CPU is reported, also when the model belongs there.",
            edits: &[
                (OF_PARAMETER, "        let _ = device;\n        if !parameter.tensor().is_cuda() {\n"),
                (OF_BUFFER, "        if !buffer.tensor().is_cuda() {\n"),
            ],
            diagnosis: "always-a-gpu",
        },
        Wrong {
            name: "asks_a_copy",
            what: "Each tensor is moved first, and the copy is always where it should be.",
            edits: &[
                (OF_PARAMETER, "        if parameter.tensor().to(device)?.device() != device {\n"),
                (OF_BUFFER, "        if buffer.tensor().to(device)?.device() != device {\n"),
            ],
            diagnosis: "copies",
        },
        Wrong {
            name: "weights_only",
            what: "Only weights are looked at. A layer has a bias, too.",
            edits: &[(OF_PARAMETER, "        if parameter.tensor().device() != device && name.ends_with(\"weight\") {\n")],
            diagnosis: "weights-only",
        },
        Wrong {
            name: "short_names",
            what: "The names say nothing of the layer.",
            edits: &[(
                PARAMETERS,
                "    for (name, parameter) in model.named_parameters() {\n        if parameter.tensor().device() != device {\n            \
                 names.push(name.split('.').next_back().unwrap_or_default().to_owned());\n        }\n    }\n",
            )],
            diagnosis: "short-names",
        },
        Wrong {
            name: "another_order",
            what: "Buffers come first.",
            edits: &[
                ("in model.named_parameters() {", "in model.named_parameters().into_iter().rev() {"),
            ],
            diagnosis: "another-order",
        },
    ],
    places: &[],
    gpus: &["sim:t4x2", "sim:h200x4"],
    sizes: &[4, 6],
    observe: |case| observe(case, solution::left_behind),
    judge,
};

/// Where the three layers of a model are, where the buffers of its batch norm are, and the device that is asked about.
type Placed = ([Device; 3], Device, Device);

/// The first ones are for each mistake, the last ones random. The size of a case is the number of those.
fn placed(case: &Case) -> Vec<Placed> {
    let [cpu, first, second] = [Device::Cpu, Device::cuda(0), Device::cuda(1)];
    let mut all = vec![
        ([first; 3], first, first),
        ([first, first, cpu], first, first),
        ([second; 3], cpu, second),
        ([cpu; 3], cpu, cpu),
        ([first; 3], first, second),
        ([first; 3], first, cpu),
    ];
    let mut random = case.seed;
    let mut one = || {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        [cpu, first, second][(random >> 33) as usize % 3]
    };
    for _ in 0..case.size {
        all.push(([one(), one(), one()], one(), one()));
    }
    all
}

fn model(([first, norm, last], buffers, _): &Placed) -> Result<nn::Sequential> {
    let layers = (nn::Linear::new(3, 4)?, nn::BatchNorm1d::new(4)?, nn::ReLU, nn::Linear::new(4, 2)?);
    layers.0.to(*first)?;
    layers.1.to(*norm)?;
    layers.3.to(*last)?;
    for (_, buffer) in layers.1.named_buffers() {
        buffer.set(&buffer.tensor().to(*buffers)?);
    }
    Ok(nn::Sequential::new(layers))
}

pub fn observe(case: &Case, left_behind: LeftBehind) -> Seen {
    case.machine().enter(|| {
        let all: Vec<(nn::Sequential, Device)> =
            placed(case).iter().map(|placed| (model(placed).expect("it is small"), placed.2)).collect();
        crate::observe(
            case,
            || {
                let mut lists = Vec::new();
                for (model, device) in &all {
                    let names = left_behind(model, *device)?;
                    lists.push(Value::List(names.into_iter().map(Value::Text).collect()));
                }
                Ok(lists)
            },
            |facts| {
                let devices = |model: &nn::Sequential| {
                    let parameters = model.parameters().into_iter().map(|one| one.tensor().device().into_value());
                    Ok(Value::List(parameters.collect::<Result<_>>()?))
                };
                let devices: Result<Vec<Value>> = all.iter().map(|(model, _)| devices(model)).collect();
                facts.insert("devices".to_owned(), Value::List(devices?));
                Ok(())
            },
        )
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let lists = seen.returned()?.list();
    let copies = [CallKind::ToDevice, CallKind::ToHost, CallKind::BetweenDevices];
    if let Some(kind) = copies.into_iter().find(|kind| seen.count(*kind) > 0) {
        return Err(Diagnosis::new("copies", "The check moves what it looks at.")
            .seen(format!("{} copies", copies.iter().map(|kind| seen.count(*kind)).sum::<usize>()))
            .expected("none")
            .idea("`.to` of a tensor returns a tensor that is where you asked for it. Ask the model's own tensor for its `device()`.")
            .at(seen.line(kind)));
    }
    if seen.fact("devices") != right.fact("devices") {
        return Err(Diagnosis::new("moved", "The model is somewhere else now.")
            .seen("parameters on other devices than before")
            .expected("the model as it was")
            .idea("A check looks. To move the model is for the caller."));
    }
    let names = |list: &Value| {
        list.list().iter().map(|name| if let Value::Text(name) = name { name.clone() } else { String::new() }).collect()
    };
    let pairs: Vec<(Vec<String>, Vec<String>)> =
        lists.iter().zip(right.value().list()).map(|(own, wanted)| (names(own), names(wanted))).collect();
    let Some(at) = pairs.iter().position(|(own, wanted)| own != wanted) else { return Ok(()) };
    let (own, wanted) = &pairs[at];
    let asked = placed(case)[at].2;
    let shown = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let told = |id: &str, says: &str, idea: &str| {
        Err(Diagnosis::new(id, says)
            .seen(format!("not on {asked}: {}", shown(own)))
            .expected(shown(wanted))
            .idea(idea))
    };
    let is_buffer = |name: &String| name.contains("running") || name.contains("num_batches");
    let all = |keep: &dyn Fn(&String) -> bool| {
        pairs.iter().all(|(own, wanted)| own.iter().eq(wanted.iter().filter(|name| keep(name))))
    };
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    if !own.is_empty() && wanted.is_empty() {
        return match asked.is_cuda() {
            true => told(
                "turned-around",
                "The names are those of the tensors that are where they should be.",
                "The list is there to show what has been left behind.",
            ),
            false => told(
                "always-a-gpu",
                "Tensors on the CPU are reported, although the model belongs there.",
                "Compare with `device`, whichever device that is.",
            ),
        };
    }
    if all(&|name| !is_buffer(name)) {
        return told(
            "buffers-forgotten",
            "The buffers are missing.",
            "Running statistics are tensors, too, and move with the model. `named_buffers` has them.",
        );
    }
    if all(&|name| is_buffer(name)) {
        return told("parameters-forgotten", "The parameters are missing.", "`named_parameters` has the weights and biases.");
    }
    if all(&|name| is_buffer(name) || name.ends_with("weight")) {
        return told("weights-only", "The biases are missing.", "Take each name, whatever it ends with.");
    }
    if pairs.iter().all(|(own, wanted)| own.len() <= 1 && own.first() == wanted.first()) {
        return told(
            "first-found",
            "The search ends with the first tensor that it finds.",
            "One name tells that something is wrong. Only all of them tell which layer it is.",
        );
    }
    if pairs.iter().all(|(own, _)| own.iter().all(|name| name == "0.weight")) {
        return told(
            "first-only",
            "The first parameter stands for all of the model.",
            "Each layer may be somewhere else. Look at every tensor.",
        );
    }
    if own.len() < wanted.len() && asked == Device::cuda(1) {
        return told(
            "any-gpu",
            "Tensors on another GPU are taken for tensors on this one.",
            "`is_cuda` tells that a tensor is on some GPU. Compare devices: `cuda:0` is not `cuda:1`.",
        );
    }
    if pairs.iter().all(|(own, wanted)| sorted(own) == sorted(wanted)) {
        return told("another-order", "The names are right, and their order is not.", "Keep the order in which the model has them.");
    }
    if own.len() == wanted.len() {
        return told(
            "short-names",
            "The names do not say which layer they belong to.",
            "`named_parameters` gives whole names, such as `3.bias`. Keep them.",
        );
    }
    told("a-tensor", "The list is not that of the tensors that are elsewhere.", "Go through all parameters, and then through all buffers.")
}
