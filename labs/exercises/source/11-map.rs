//! A file from another machine.

use std::collections::BTreeSet;

use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::{Machine, serialize};

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::nn::StateDict;
    use todevice::prelude::*;
    use todevice::serialize;

    /// Loads the state of a network from the bytes of a file, which may come from any
    /// machine, and leaves the network on the device.
    pub fn restore(file: &[u8], net: &nn::Sequential, device: Device) -> Result<()> {
        let loaded = serialize::from_bytes(file, Device::Cpu)?;
        let state = StateDict::try_from(&loaded)?;
        net.load_state_dict(&state, true)?;
        net.to(device)?;
        Ok(())
    }
    // END
}

type Restore = fn(&[u8], &nn::Sequential, Device) -> Result<()>;

const LOAD: &str = "    let loaded = serialize::from_bytes(file, Device::Cpu)?;\n";
const PUT: &str = "    net.load_state_dict(&state, true)?;\n";
const MOVE: &str = "    net.to(device)?;\n";
const LOAD_BACK: &str = "    let loaded = serialize::from_bytes(file, MapLocation::None)?;\n";
const WITH_MAP: (&str, &str) = ("use todevice::serialize;\n", "use todevice::serialize::{self, MapLocation};\n");

pub static EXERCISE: Exercise = Exercise {
    id: "11-map",
    title: "A file from another machine",
    kind: Kind::Fix,
    task: "`restore` loads a network's state from the bytes of a file, and leaves the network on `device`. It works on the \
           machine that wrote the file. Make it work on any machine, with two GPUs, with one, and with none. The GPU should never \
           hold the network twice.",
    hints: [
        "The file was saved from `cuda:1`. Which machines have that?",
        "There is one device that every machine has. Load the tensors there, whatever they were saved from.",
        "The second argument of `from_bytes` says where the tensors go: `serialize::from_bytes(file, Device::Cpu)?`. After \
         `load_state_dict`, move the network.",
    ],
    afterwards: "To move the network first and to load afterwards is right as well: `load_state_dict` copies each number to where its \
                 parameter is.",
    source: include_str!("11-map.rs"),
    functions: &[("restore", "pub fn restore(file: &[u8], net: &nn::Sequential, device: Device) -> Result<()>")],
    skeleton: &[WITH_MAP, (LOAD, LOAD_BACK)],
    styles: &[
        Style {
            name: "moved_first",
            edits: &[(MOVE, ""), (PUT, "    net.to(device)?;\n    net.load_state_dict(&state, true)?;\n")],
        },
        Style {
            name: "function",
            edits: &[
                WITH_MAP,
                (
                    LOAD,
                    "    let to_cpu = MapLocation::function(|_| Some(Device::Cpu));\n    let loaded = serialize::from_bytes(file, to_cpu)?;\n",
                ),
            ],
        },
        Style {
            name: "map",
            edits: &[
                WITH_MAP,
                (
                    LOAD,
                    "    let to_cpu = MapLocation::map([(\"cuda:0\", \"cpu\"), (\"cuda:1\", \"cpu\")]);\n    \
                     let loaded = serialize::from_bytes(file, to_cpu)?;\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "no_map_location",
            what: "There is no `map_location`: the tensors go to where they were saved from.",
            edits: &[WITH_MAP, (LOAD, LOAD_BACK)],
            diagnosis: "no-map-location",
        },
        Wrong {
            name: "to_the_first_gpu",
            what: "The tensors go to `cuda:0`, and a machine without a GPU has none.",
            edits: &[
                WITH_MAP,
                (
                    LOAD,
                    "    let to_first = MapLocation::map([(\"cuda:1\", \"cuda:0\")]);\n    let loaded = serialize::from_bytes(file, to_first)?;\n",
                ),
            ],
            diagnosis: "only-with-a-gpu",
        },
        Wrong {
            name: "to_the_device",
            what: "The tensors go to the GPU and so does the network, so the GPU holds it twice.",
            edits: &[(LOAD, "    let loaded = serialize::from_bytes(file, device)?;\n")],
            diagnosis: "twice-on-the-gpu",
        },
        Wrong {
            name: "not_moved",
            what: "The network stays on the CPU.",
            edits: &[(MOVE, "    let _ = device;\n")],
            diagnosis: "not-moved",
        },
        Wrong {
            name: "copies_not_kept",
            what: "Each tensor is moved by itself, and nobody keeps what `.to` returns.",
            edits: &[(MOVE, "    for parameter in net.parameters() {\n        parameter.tensor().to(device)?;\n    }\n")],
            diagnosis: "copies-not-kept",
        },
        Wrong {
            name: "not_loaded",
            what: "The file is read, and the network is not given its state.",
            edits: &[(PUT, "    drop(state);\n")],
            diagnosis: "not-loaded",
        },
        Wrong {
            name: "buffers_forgotten",
            what: "Only parameters are copied. The running statistics of the batch norm are buffers.",
            edits: &[(
                PUT,
                "    for (name, parameter) in net.named_parameters() {\n        if let Some(saved) = state.get(&name) {\n            \
                 no_grad(|| parameter.tensor().copy_(saved))?;\n        }\n    }\n",
            )],
            diagnosis: "buffers-forgotten",
        },
        Wrong {
            name: "last_layer_left_out",
            what: "The last layer is taken out of the state, and keeps its random numbers.",
            edits: &[
                ("    let state =", "    let mut state ="),
                (PUT, "    state.remove(\"3.weight\");\n    net.load_state_dict(&state, false)?;\n"),
            ],
            diagnosis: "a-part",
        },
        Wrong {
            name: "another_device",
            what: "The function chooses a GPU by itself.",
            edits: &[(MOVE, "    let _ = device;\n    net.to(Device::cuda_if_available())?;\n")],
            diagnosis: "another-device",
        },
    ],
    places: &[
        (
            "Where the tensors are loaded",
            &[
                &[],
                &[WITH_MAP, (LOAD, LOAD_BACK)],
                &[
                    WITH_MAP,
                    (
                        LOAD,
                        "    let to_first = MapLocation::map([(\"cuda:1\", \"cuda:0\")]);\n    let loaded = serialize::from_bytes(file, to_first)?;\n",
                    ),
                ],
                &[(LOAD, "    let loaded = serialize::from_bytes(file, device)?;\n")],
            ],
        ),
        (
            "How the network gets its state and its device",
            &[
                &[],
                &[(MOVE, ""), (PUT, "    net.to(device)?;\n    net.load_state_dict(&state, true)?;\n")],
                &[(MOVE, "    let _ = device;\n")],
                &[(MOVE, "    for parameter in net.parameters() {\n        parameter.tensor().to(device)?;\n    }\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "none", TWO, LAST],
    sizes: &[16, 32],
    observe: |case| observe(case, solution::restore),
    judge,
};

/// The size of a case is the number of inputs of the network.
pub fn observe(case: &Case, restore: Restore) -> Seen {
    let file = file(case).expect("the machine is new");
    case.machine().enter(|| {
        let net = network(case.size).expect("it is small");
        let at_first = state(&net).expect("they are numbers");
        let mut seen = crate::observe(case, || restore(&file, &net, device(case)), |_| Ok(()));
        // Of code that failed, too.
        let facts = facts(&file, &net, &at_first).unwrap_or_default();
        seen.facts.extend(facts.into_iter().map(|(name, value)| (name.to_owned(), value)));
        seen
    })
}

/// A machine where `device` is the GPU that nobody takes unless told to.
const TWO: &str = "sim:t4x2";
const LAST: &str = "sim:h200";

fn device(case: &Case) -> Device {
    if case.gpu == TWO { Device::cuda(1) } else { case.device() }
}

fn network(inputs: usize) -> Result<nn::Sequential> {
    let hidden = nn::Linear::new(inputs, 256)?;
    Ok(nn::Sequential::new((hidden, nn::BatchNorm1d::new(256)?, nn::ReLU, nn::Linear::new(256, 4)?)))
}

/// What a machine with two GPUs has saved from the second.
fn file(case: &Case) -> Result<Vec<u8>> {
    let machine: Machine = TWO.parse().expect("a simulated machine");
    machine.enter(|| {
        manual_seed(case.seed);
        let net = network(case.size)?;
        net.forward(&Tensor::randn(&[8, case.size])?)?; // the running statistics are of something
        net.to(Device::cuda(1))?;
        serialize::to_bytes(net.state_dict())
    })
}

/// The numbers of a network by their names.
fn state(net: &nn::Sequential) -> Result<Vec<(String, Vec<f64>)>> {
    let numbers = |tensor: &Tensor| tensor.cpu()?.to(DType::F64)?.reshape(&[-1])?.to_vec::<f64>();
    let state = net.state_dict();
    state.iter().map(|(name, tensor)| Ok((name.to_owned(), numbers(tensor)?))).collect()
}

fn facts(
    file: &[u8],
    net: &nn::Sequential,
    at_first: &[(String, Vec<f64>)],
) -> Result<Vec<(&'static str, Value)>> {
    let saved = network(at_first[0].1.len() / 256)?;
    saved.load_state_dict(&StateDict::try_from(&serialize::from_bytes(file, Device::Cpu)?)?, true)?;
    let (saved, now) = (state(&saved)?, state(net)?);
    let is_buffer = |name: &str| name.contains("running") || name.contains("num_batches");
    let all = |buffers: bool| {
        let mut both = saved.iter().zip(&now);
        both.all(|(saved, now)| is_buffer(&saved.0) != buffers || saved == now)
    };
    let devices: BTreeSet<String> = net.state_dict().iter().map(|(_, tensor)| tensor.device().to_string()).collect();
    let devices: Vec<String> = devices.into_iter().collect();
    Ok(vec![
        ("devices", Value::Text(devices.join(" and "))),
        ("parameters", Value::Flag(all(false))),
        ("buffers", Value::Flag(all(true))),
        ("untouched", Value::Flag(now == at_first)),
    ])
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("Attempting to deserialize")
    {
        let diagnosis = match message.contains("is_available() is False") {
            false => Diagnosis::new("no-map-location", "The file wants back to the device that it was saved from.")
                .seen("tensors that go to cuda:1, and a machine that has no such GPU")
                .idea("A file remembers devices. Say where its tensors go: the second argument is PyTorch's `map_location`."),
            true => Diagnosis::new("only-with-a-gpu", "The tensors go to a GPU, and this machine has none.")
                .seen("a machine without a GPU")
                .idea("Every machine has a CPU. Load the tensors there, and let the network go to `device` afterwards."),
        };
        return Err(diagnosis.expected("a file that can be loaded on any machine").report(seen));
    }
    seen.returned()?;
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    };
    let (devices, wanted) = (text(seen.fact("devices")), text(right.fact("devices")));
    if devices != wanted {
        let told = |diagnosis: Diagnosis| diagnosis.seen(format!("tensors of the network on {devices}")).expected(wanted.clone());
        let copies = seen.count(CallKind::ToDevice);
        return Err(match (devices.contains("cpu"), copies) {
            (true, 0) => told(Diagnosis::new("not-moved", "The network is still on the CPU."))
                .idea("`load_state_dict` copies numbers, and does not move a parameter. `net.to(device)?` does."),
            (true, _) => told(Diagnosis::new("copies-not-kept", "Copies go to the GPU, and the network stays on the CPU."))
                .idea("A tensor's `.to` returns another tensor. A network's `.to` moves the network."),
            (false, _) => told(Diagnosis::new("another-device", "The network is on another device than the one asked for."))
                .idea("The caller decides on the device, and the function uses the one that it is given."),
        });
    }
    let holds = |name: &str| seen.fact(name) == &Value::Flag(true);
    if holds("untouched") {
        return Err(Diagnosis::new("not-loaded", "The network has the random numbers that it began with.")
            .seen("no parameter has changed")
            .expected("the numbers of the file")
            .idea("To load a file makes tensors. `load_state_dict` copies them into the network."));
    }
    if !holds("parameters") {
        return Err(Diagnosis::new("a-part", "Some parameters have the numbers of the file, and others do not.")
            .seen("a parameter with other numbers")
            .expected("all of them as in the file")
            .idea("With `strict` set to `true` a name that is missing is an error, which is what you want here."));
    }
    if !holds("buffers") {
        return Err(Diagnosis::new("buffers-forgotten", "The parameters are right, and the buffers are not.")
            .seen("running statistics that are not those of the file")
            .expected("the whole state")
            .idea("A state has buffers as well as parameters. `load_state_dict` copies both."));
    }
    // On the last machine: what fails on one without a GPU is told first.
    if case.gpu == LAST && 2 * seen.peak > 3 * right.peak {
        return Err(Diagnosis::new("twice-on-the-gpu", "For a while the GPU holds the network twice.")
            .seen(format!("{} KiB of the GPU at most", seen.peak / 1024))
            .expected(format!("{} KiB", right.peak / 1024))
            .idea("The tensors of the file are tensors, too. On the CPU they take none of the GPU's memory."));
    }
    Ok(())
}
