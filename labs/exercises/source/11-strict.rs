//! The layers that nobody loaded.

use std::collections::BTreeSet;

use todevice::prelude::*;
use todevice::{Machine, serialize};

use crate::{Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::nn::StateDict;
    use todevice::prelude::*;
    use todevice::serialize;

    /// Loads the bytes of a file into a network, which stays where it is. If the network
    /// was saved from several GPUs, each name in the file begins with "module.".
    pub fn restore(file: &[u8], net: &nn::Sequential) -> Result<()> {
        let loaded = serialize::from_bytes(file, Device::Cpu)?;
        let mut state = StateDict::default();
        for (name, tensor) in StateDict::try_from(&loaded)?.iter() {
            let name = name.strip_prefix("module.").unwrap_or(name);
            state.insert(name, tensor.clone());
        }
        net.load_state_dict(&state, true)?;
        Ok(())
    }
    // END
}

type Restore = fn(&[u8], &nn::Sequential) -> Result<()>;

const LOAD: &str = "    let loaded = serialize::from_bytes(file, Device::Cpu)?;\n";
const NAME: &str = "        let name = name.strip_prefix(\"module.\").unwrap_or(name);\n";
const RENAMED: &str = "    let mut state = StateDict::default();\n    for (name, tensor) in StateDict::try_from(&loaded)?.iter() {\n        let name = name.strip_prefix(\"module.\").unwrap_or(name);\n        state.insert(name, tensor.clone());\n    }\n";
const PLAIN: &str = "    let state = StateDict::try_from(&loaded)?;\n";
const PUT: &str = "    net.load_state_dict(&state, true)?;\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "11-optimizer";

pub static EXERCISE: Exercise = Exercise {
    id: "11-strict",
    title: "The layers that nobody loaded",
    kind: Kind::Fix,
    task: "Somebody had an error about names, set `strict` to `false`, and had no error any more. Since then the network guesses. \
           The files come from a program that trains on several GPUs, and that puts `module.` before each name; older files have \
           plain names. Load both. A file that lacks a layer, or has one too many, must be an error.",
    hints: [
        "`load_state_dict` returns which names it did not find. Print them for such a file: how much was loaded?",
        "Make a state with the names that the network has: `strip_prefix` removes a prefix if there is one.",
        "Insert each tensor into a new `StateDict` under `name.strip_prefix(\"module.\").unwrap_or(name)`, and load that with \
         `strict` set to `true`.",
    ],
    afterwards: "`module.` comes from PyTorch's `DataParallel` and `DistributedDataParallel`, which are modules around yours. Their \
                 programs do better to save `net.module.state_dict()`.",
    source: include_str!("11-strict.rs"),
    functions: &[("restore", "pub fn restore(file: &[u8], net: &nn::Sequential) -> Result<()>")],
    skeleton: &[(RENAMED, PLAIN), (PUT, "    net.load_state_dict(&state, false)?;\n")],
    styles: &[
        Style {
            name: "collected",
            edits: &[
                (
                    RENAMED,
                    "    let renamed = |name: &str| name.strip_prefix(\"module.\").unwrap_or(name).to_owned();\n    \
                     let state = StateDict::try_from(&loaded)?;\n    \
                     let state: StateDict = state.iter().map(|(name, tensor)| (renamed(name), tensor.clone())).collect();\n",
                ),
            ],
        },
        Style {
            name: "keys_are_checked",
            edits: &[(
                PUT,
                "    let keys = net.load_state_dict(&state, false)?;\n    \
                 if !keys.missing_keys.is_empty() || !keys.unexpected_keys.is_empty() {\n        \
                 return Err(Error::custom(\"the names do not fit\"));\n    }\n",
            )],
        },
        Style {
            name: "replaced",
            edits: &[
                (NAME, "        let name = name.replacen(\"module.\", \"\", 1);\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "not_strict",
            what: "`strict` is `false`, and no name fits: nothing is loaded.",
            edits: &[(RENAMED, PLAIN), (PUT, "    net.load_state_dict(&state, false)?;\n")],
            diagnosis: "nothing-loaded",
        },
        Wrong {
            name: "strict_alone",
            what: "`strict` is `true`, and the names are not changed: files with `module.` are refused.",
            edits: &[(RENAMED, PLAIN)],
            diagnosis: "refused",
        },
        Wrong {
            name: "renamed_not_strict",
            what: "The names are right, and `strict` is still `false`: a layer may be missing.",
            edits: &[(PUT, "    net.load_state_dict(&state, false)?;\n")],
            diagnosis: "missing-unnoticed",
        },
        Wrong {
            name: "missing_only",
            what: "The returned keys are looked at, but only those that are missing.",
            edits: &[(
                PUT,
                "    let keys = net.load_state_dict(&state, false)?;\n    if !keys.missing_keys.is_empty() {\n        \
                 return Err(Error::custom(\"the names do not fit\"));\n    }\n",
            )],
            diagnosis: "unexpected-unnoticed",
        },
        Wrong {
            name: "error_dropped",
            what: "The error of a strict load is dropped.",
            edits: &[(PUT, "    let _ = net.load_state_dict(&state, true);\n")],
            diagnosis: "error-dropped",
        },
        Wrong {
            name: "prefixed_only",
            what: "Names without `module.` are left out, so plain files are refused.",
            edits: &[(NAME, "        let Some(name) = name.strip_prefix(\"module.\") else { continue };\n")],
            diagnosis: "plain-refused",
        },
        Wrong {
            name: "point_left",
            what: "The dot stays: `.0.weight` is not a name in the network.",
            edits: &[(NAME, "        let name = name.strip_prefix(\"module\").unwrap_or(name);\n")],
            diagnosis: "wrong-names",
        },
        Wrong {
            name: "by_position",
            what: "Parameters are copied by their position, and buffers are forgotten.",
            edits: &[(
                PUT,
                "    let is_buffer = |name: &str| name.contains(\"running\") || name.contains(\"num_\");\n    \
                 let saved = state.iter().filter(|(name, _)| !is_buffer(name));\n    \
                 for (parameter, (_, saved)) in net.parameters().iter().zip(saved) {\n        \
                 no_grad(|| parameter.tensor().copy_(saved))?;\n    }\n",
            )],
            diagnosis: "buffers-forgotten",
        },
        Wrong {
            name: "no_map_location",
            what: "There is no `map_location`, and the machine of the file had another GPU.",
            edits: &[
                ("use todevice::serialize;\n", "use todevice::serialize::{self, MapLocation};\n"),
                (LOAD, "    let loaded = serialize::from_bytes(file, MapLocation::None)?;\n"),
            ],
            diagnosis: "no-map-location",
        },
        Wrong {
            name: "network_moved",
            what: "The network is moved to the CPU for loading, and stays there.",
            edits: &[(PUT, "    net.to(Device::Cpu)?;\n    net.load_state_dict(&state, true)?;\n")],
            diagnosis: "network-moved",
        },
    ],
    places: &[
        (
            "The names",
            &[
                &[],
                &[(RENAMED, PLAIN)],
                &[(NAME, "        let Some(name) = name.strip_prefix(\"module.\") else { continue };\n")],
                &[(NAME, "        let name = name.strip_prefix(\"module\").unwrap_or(name);\n")],
            ],
        ),
        (
            "How they are loaded",
            &[
                &[],
                &[(PUT, "    net.load_state_dict(&state, false)?;\n")],
                &[(
                    PUT,
                    "    let keys = net.load_state_dict(&state, false)?;\n    if !keys.missing_keys.is_empty() {\n        \
                     return Err(Error::custom(\"the names do not fit\"));\n    }\n",
                )],
                &[(PUT, "    let _ = net.load_state_dict(&state, true);\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "none"],
    sizes: &[PREFIXED, NO_PREFIX, LACKS_ONE, ONE_TOO_MANY],
    observe: |case| observe(case, solution::restore),
    judge,
};

// The size of a case says which file it is.
const PREFIXED: usize = 1;
const NO_PREFIX: usize = 2;
const LACKS_ONE: usize = 3;
const ONE_TOO_MANY: usize = 4;

pub fn observe(case: &Case, restore: Restore) -> Seen {
    let (file, saved) = file(case).expect("the machine is new");
    case.machine().enter(|| {
        let net = network(case.seed).expect("it is small");
        let at_first = state(&net).expect("they are numbers");
        net.to(case.device()).expect("there is room");
        let mut seen = crate::observe(case, || restore(&file, &net), |_| Ok(()));
        // Of code that failed, too.
        let now = state(&net).unwrap_or_default();
        let is_buffer = |name: &str| name.contains("running") || name.contains("num_batches");
        let all = |buffers: bool| saved.iter().zip(&now).all(|(saved, now)| is_buffer(&saved.0) != buffers || saved == now);
        let state = net.state_dict();
        let devices: BTreeSet<String> = state.iter().map(|(_, tensor)| tensor.device().to_string()).collect();
        let devices: Vec<String> = devices.into_iter().collect();
        for (name, value) in [
            ("devices", Value::Text(devices.join(" and "))),
            ("parameters", Value::Flag(all(false))),
            ("buffers", Value::Flag(all(true))),
            ("untouched", Value::Flag(now == at_first)),
        ] {
            seen.facts.insert(name.to_owned(), value);
        }
        seen
    })
}

fn network(seed: u64) -> Result<nn::Sequential> {
    manual_seed(seed);
    let hidden = nn::Linear::new(12, 24)?;
    Ok(nn::Sequential::new((hidden, nn::BatchNorm1d::new(24)?, nn::ReLU, nn::Linear::new(24, 4)?)))
}

type State = Vec<(String, Vec<f64>)>;

/// The numbers of a network by their names.
fn state(net: &nn::Sequential) -> Result<State> {
    let numbers = |tensor: &Tensor| tensor.cpu()?.to(DType::F64)?.reshape(&[-1])?.to_vec::<f64>();
    let state = net.state_dict();
    state.iter().map(|(name, tensor)| Ok((name.to_owned(), numbers(tensor)?))).collect()
}

/// What a machine with two GPUs has saved from the second, and the state that it should bring back.
fn file(case: &Case) -> Result<(Vec<u8>, State)> {
    let machine: Machine = "sim:t4x2".parse().expect("a simulated machine");
    machine.enter(|| {
        let net = network(case.seed + 1000)?;
        net.forward(&Tensor::randn(&[8, 12])?)?; // the running statistics are of something
        net.to(Device::cuda(1))?;
        let mut named = nn::StateDict::default();
        for (name, tensor) in net.state_dict().iter() {
            let prefix = if case.size == NO_PREFIX { "" } else { "module." };
            if case.size != LACKS_ONE || !name.starts_with("3.") {
                named.insert(format!("{prefix}{name}"), tensor.clone());
            }
        }
        if case.size == ONE_TOO_MANY {
            named.insert("module.4.weight", Tensor::ones((&[4, 4], Device::cuda(1)))?);
        }
        Ok((serialize::to_bytes(named)?, state(&net)?))
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let holds = |name: &str| seen.fact(name) == &Value::Flag(true);
    if let Ended::Failed { code, message, report, .. } = &seen.ended {
        if message.contains("Attempting to deserialize") {
            return Err(Diagnosis::new("no-map-location", "The file wants back to the device that it was saved from.")
                .seen("tensors that go to cuda:1")
                .expected("a file that can be loaded on any machine")
                .idea("Load it to the CPU. `load_state_dict` copies the numbers to where the network is.")
                .report(seen));
        }
        if matches!(right.ended, Ended::Failed { .. }) {
            return Ok(());
        }
        if report.contains("\".0.weight\"") {
            return Err(Diagnosis::new("wrong-names", "The names are cut off in the wrong place.")
                .seen("`.0.weight`")
                .expected("`0.weight`")
                .idea("What is to go is `module.`, with its point."));
        }
        let is_about_names = message.contains("in loading state_dict");
        // Or an error of the code's own.
        if is_about_names || code.is_none() {
            let (id, says, idea) = match case.size {
                NO_PREFIX => (
                    "plain-refused",
                    "A file with plain names is refused.",
                    "`strip_prefix` returns `None` if a name does not begin so. Such a name is right as it is.",
                ),
                _ => (
                    "refused",
                    "A file whose names begin with `module.` is refused.",
                    "The error is right: these are not the network's names. Give the tensors the names that it has.",
                ),
            };
            return Err(Diagnosis::new(id, says)
                .seen(if is_about_names { "an error about names" } else { message })
                .expected("a network with the numbers of the file")
                .idea(idea)
                .report(seen));
        }
    }
    seen.returned()?;
    if matches!(right.ended, Ended::Failed { .. }) {
        let nothing = holds("untouched");
        let (id, says, idea) = match (nothing, case.size) {
            (true, _) => (
                "error-dropped",
                "A file that does not fit is taken for one that does.",
                "Whoever drops an error goes on with random numbers. Return it: `?`.",
            ),
            (false, LACKS_ONE) => (
                "missing-unnoticed",
                "A file lacks a layer, and nobody is told.",
                "With `strict` set to `true`, a missing name is an error. Here that is what you want.",
            ),
            (false, _) => (
                "unexpected-unnoticed",
                "A file has a layer too many, and nobody is told.",
                "There are two lists of keys: those that the file lacks, and those that the network lacks.",
            ),
        };
        return Err(Diagnosis::new(id, says)
            .seen("a function that returns `Ok(())`")
            .expected("an error")
            .idea(idea));
    }
    if seen.fact("devices") != right.fact("devices") {
        return Err(Diagnosis::new("network-moved", "The network is on another device than before.")
            .seen("a network on the CPU")
            .expected("a network where it was, on the GPU")
            .idea("`load_state_dict` copies from any device to where the network is. Nothing has to be moved for it."));
    }
    if holds("untouched") {
        return Err(Diagnosis::new("nothing-loaded", "Not a single number of the file has come into the network.")
            .seen("the random numbers that it began with")
            .expected("the numbers of the file")
            .idea("With `strict` set to `false`, names that do not fit are passed over: here all of them. Read the keys that are returned."));
    }
    if !holds("parameters") {
        return Err(Diagnosis::new("a-part", "Some parameters have the numbers of the file, and others do not.")
            .seen("a parameter with other numbers")
            .expected("all of them as in the file")
            .idea("Each tensor goes to the parameter of its name."));
    }
    if !holds("buffers") {
        return Err(Diagnosis::new("buffers-forgotten", "The parameters are right, and the buffers are not.")
            .seen("running statistics that are not those of the file")
            .expected("the whole state")
            .idea("A state has buffers as well as parameters. `load_state_dict` copies both, by name."));
    }
    Ok(())
}
