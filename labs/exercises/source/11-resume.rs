//! As if nothing had happened.

use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::serialize;
use todevice::{cuda, get_rng_state};

use crate::{Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::nn::StateDict;
    use todevice::prelude::*;
    use todevice::serialize::{self, Dict, Value};
    use todevice::{cuda, get_rng_state, set_rng_state};

    /// Saves a training run that has finished so many epochs, as the bytes of a file.
    /// The network is on cuda:0 and has a dropout. The data are shuffled.
    pub fn checkpoint(
        net: &nn::Sequential,
        optimizer: &optim::Adam,
        epochs: i64,
    ) -> Result<Vec<u8>> {
        serialize::to_bytes(Dict::from_iter([
            ("epochs", Value::from(epochs)),
            ("model", net.state_dict().into()),
            ("optimizer", optimizer.state_dict().into()),
            ("rng_state", get_rng_state()?.into()),
            ("cuda_rng_state", cuda::get_rng_state(0)?.into()),
        ]))
    }

    /// Puts everything back, in another program. Returns the number of finished epochs.
    pub fn resume(
        file: &[u8],
        net: &nn::Sequential,
        optimizer: &mut optim::Adam,
    ) -> Result<i64> {
        let loaded = serialize::from_bytes(file, Device::Cpu)?;
        let saved = loaded.as_dict()?;
        net.load_state_dict(&StateDict::try_from(saved.at("model")?)?, true)?;
        optimizer.load_state_dict(saved.at("optimizer")?.as_dict()?)?;
        set_rng_state(saved.at("rng_state")?.as_tensor()?)?;
        cuda::set_rng_state(saved.at("cuda_rng_state")?.as_tensor()?, 0)?;
        saved.at("epochs")?.as_int()
    }
    // END
}

type Checkpoint = fn(&nn::Sequential, &optim::Adam, i64) -> Result<Vec<u8>>;
type Resume = fn(&[u8], &nn::Sequential, &mut optim::Adam) -> Result<i64>;

const USES: &str = "use todevice::{cuda, get_rng_state, set_rng_state};\n";
const SAVE_OPTIMIZER: &str = "        (\"optimizer\", optimizer.state_dict().into()),\n";
const SAVE_RNG: &str = "        (\"rng_state\", get_rng_state()?.into()),\n";
const SAVE_CUDA_RNG: &str = "        (\"cuda_rng_state\", cuda::get_rng_state(0)?.into()),\n";
const LOAD: &str = "    let loaded = serialize::from_bytes(file, Device::Cpu)?;\n";
const PUT_MODEL: &str = "    net.load_state_dict(&StateDict::try_from(saved.at(\"model\")?)?, true)?;\n";
const PUT_OPTIMIZER: &str = "    optimizer.load_state_dict(saved.at(\"optimizer\")?.as_dict()?)?;\n";
const PUT_RNG: &str = "    set_rng_state(saved.at(\"rng_state\")?.as_tensor()?)?;\n";
const PUT_CUDA_RNG: &str = "    cuda::set_rng_state(saved.at(\"cuda_rng_state\")?.as_tensor()?, 0)?;\n";
const EPOCHS: &str = "    saved.at(\"epochs\")?.as_int()\n";
const SAVED: &str = "    serialize::to_bytes(Dict::from_iter([\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "11-strict";

pub static EXERCISE: Exercise = Exercise {
    id: "11-resume",
    title: "As if nothing had happened",
    kind: Kind::Write,
    task: "A training run saves itself with `checkpoint`, and another program continues it with `resume`. Write both, so that the losses after it are \
           those of a run that was never interrupted, to the bit. At present only the model is saved. `checkpoint` must not disturb the run, \
           which may go on, too.",
    hints: [
        "What does the next step depend on, besides the weights? Think of Adam, of the dropout, and of the order of the samples.",
        "Adam has moments. The CPU's generator shuffles the samples, and the GPU's generator draws the dropout. And somebody has to know \
         how many epochs are done.",
        "Save `optimizer.state_dict()`, `get_rng_state()?`, `cuda::get_rng_state(0)?` and `Value::from(epochs)`. Put each back with its \
         `load_state_dict` or `set_rng_state`.",
    ],
    afterwards: "With a scheduler or a `GradScaler`, save their states, too. If you save within an epoch, add that of the loader.",
    source: include_str!("11-resume.rs"),
    functions: &[
        ("checkpoint", "pub fn checkpoint(net: &nn::Sequential, optimizer: &optim::Adam, epochs: i64) -> Result<Vec<u8>>"),
        ("resume", "pub fn resume(file: &[u8], net: &nn::Sequential, optimizer: &mut optim::Adam) -> Result<i64>"),
    ],
    skeleton: &[
        (USES, ""),
        ("        (\"epochs\", Value::from(epochs)),\n", ""),
        ("(\"model\", net.state_dict().into()),\n", "(\"model\", Value::from(net.state_dict())),\n"),
        (SAVE_OPTIMIZER, "        // What else does the next step depend on?\n"),
        (SAVE_RNG, ""),
        (SAVE_CUDA_RNG, ""),
        (SAVED, "    let _ = (optimizer, epochs);\n    serialize::to_bytes(Dict::from_iter([\n"),
        (PUT_OPTIMIZER, "    let _ = optimizer;\n"),
        (PUT_RNG, ""),
        (PUT_CUDA_RNG, ""),
        (EPOCHS, "    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "inserted",
            edits: &[
                (SAVED, "    let mut saved = Dict::from_iter([\n"),
                (SAVE_RNG, ""),
                ("    ]))\n}\n\n", "    ]);\n    saved.insert(\"rng_state\", get_rng_state()?);\n    serialize::to_bytes(saved)\n}\n\n"),
            ],
        },
        Style {
            name: "in_another_order",
            edits: &[
                (PUT_MODEL, ""),
                (PUT_RNG, ""),
                (
                    PUT_CUDA_RNG,
                    "    cuda::set_rng_state(saved.at(\"cuda_rng_state\")?.as_tensor()?, 0)?;\n    \
                     set_rng_state(saved.at(\"rng_state\")?.as_tensor()?)?;\n    \
                     net.load_state_dict(&StateDict::try_from(saved.at(\"model\")?)?, true)?;\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "without_the_optimizer",
            what: "Adam's moments are not saved.",
            edits: &[(SAVE_OPTIMIZER, ""), (SAVED, "    let _ = optimizer;\n    serialize::to_bytes(Dict::from_iter([\n"), (PUT_OPTIMIZER, "    let _ = optimizer;\n")],
            diagnosis: "optimizer",
        },
        Wrong {
            name: "without_random_numbers",
            what: "The states of both generators are lost.",
            edits: &[(USES, ""), (SAVE_RNG, ""), (SAVE_CUDA_RNG, ""), (PUT_RNG, ""), (PUT_CUDA_RNG, "")],
            diagnosis: "generators",
        },
        Wrong {
            name: "without_the_cpus",
            what: "The state of the CPU's generator is lost, and the samples come in another order.",
            edits: &[(USES, "use todevice::cuda;\n"), (SAVE_RNG, ""), (PUT_RNG, "")],
            diagnosis: "generator-of-the-cpu",
        },
        Wrong {
            name: "without_the_gpus",
            what: "The state of the GPU's generator is lost, and the dropout drops other numbers.",
            edits: &[(USES, "use todevice::{get_rng_state, set_rng_state};\n"), (SAVE_CUDA_RNG, ""), (PUT_CUDA_RNG, "")],
            diagnosis: "generator-of-the-gpu",
        },
        Wrong {
            name: "seeded_instead",
            what: "Both programs set the same seed before they go on, and the first is another run than it was.",
            edits: &[
                (USES, ""),
                (SAVE_RNG, ""),
                (SAVE_CUDA_RNG, ""),
                (SAVED, "    manual_seed(epochs as u64);\n    serialize::to_bytes(Dict::from_iter([\n"),
                (PUT_RNG, ""),
                (PUT_CUDA_RNG, "    manual_seed(saved.at(\"epochs\")?.as_int()? as u64);\n"),
            ],
            diagnosis: "disturbed",
        },
        Wrong {
            name: "without_the_model",
            what: "The file has the model, and nobody puts it back.",
            edits: &[("use todevice::nn::StateDict;\n", ""), (PUT_MODEL, "    let _ = net;\n")],
            diagnosis: "model",
        },
        Wrong {
            name: "epochs_forgotten",
            what: "The resumed run begins to count at 0.",
            edits: &[(EPOCHS, "    Ok(0)\n")],
            diagnosis: "epochs",
        },
        Wrong {
            name: "one_epoch_more",
            what: "An epoch is left out: the number is one too large.",
            edits: &[(EPOCHS, "    Ok(saved.at(\"epochs\")?.as_int()? + 1)\n")],
            diagnosis: "an-epoch-left-out",
        },
        Wrong {
            name: "only_parameters",
            what: "Parameters are saved, and the running statistics of the batch norm are not.",
            edits: &[
                (
                    "(\"model\", net.state_dict().into()),\n",
                    "(\n            \"model\",\n            StateDict::from_iter(net.named_parameters().into_iter().map(|(name, one)| (name, one.tensor()))).into(),\n        ),\n",
                ),
                (PUT_MODEL, "    net.load_state_dict(&StateDict::try_from(saved.at(\"model\")?)?, false)?;\n"),
            ],
            diagnosis: "buffers",
        },
        Wrong {
            name: "moved_to_save",
            what: "The network is moved to the CPU to be saved, and stays there.",
            edits: &[(SAVED, "    net.to(Device::Cpu)?;\n    serialize::to_bytes(Dict::from_iter([\n")],
            diagnosis: "moved",
        },
        Wrong {
            name: "loaded_to_the_gpu",
            what: "The whole file is loaded to the GPU, generators included.",
            edits: &[(LOAD, "    let loaded = serialize::from_bytes(file, Device::cuda(0))?;\n")],
            diagnosis: "loaded-to-the-gpu",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200"],
    sizes: &[16, 24],
    observe: |case| observe(case, solution::checkpoint, solution::resume),
    judge,
};

/// So many epochs come before the file, and as many after it.
const HALF: i64 = 2;

fn network() -> Result<nn::Sequential> {
    let layers = (nn::Linear::new(6, 16)?, nn::BatchNorm1d::new(16)?, nn::ReLU, nn::Dropout::new(0.5)?, nn::Linear::new(16, 1)?);
    let net = nn::Sequential::new(layers);
    net.to(Device::cuda(0))?;
    Ok(net)
}

fn adam(net: &nn::Sequential) -> Result<optim::Adam> {
    optim::Adam::new(net.parameters(), AdamOptions { lr: 0.05, ..Default::default() })
}

/// Trains for some epochs, with data in a random order.
fn train(net: &nn::Sequential, optimizer: &mut optim::Adam, data: &TensorDataset<2>, epochs: i64) -> Result<Vec<f64>> {
    let options = DataLoaderOptions { batch_size: 8, shuffle: true, ..Default::default() };
    let loader = DataLoader::new(data.clone(), options)?;
    let mut losses = Vec::new();
    for _ in 0..epochs {
        for batch in &loader {
            let [x, y] = batch?;
            let (x, y) = (x.to(Device::cuda(0))?, y.to(Device::cuda(0))?);
            let loss = net.forward(&x)?.mse_loss(&y, Reduction::Mean)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            losses.push(loss.item()?);
        }
    }
    Ok(losses)
}

/// All that a run consists of, each part as bytes.
fn parts(net: &nn::Sequential, optimizer: &optim::Adam) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let of = |wanted: &dyn Fn(&str) -> bool| {
        let state: StateDict =
            net.state_dict().iter().filter(|(name, _)| wanted(name)).map(|(name, one)| (name.to_owned(), one.clone())).collect();
        serialize::to_bytes(state)
    };
    let is_buffer = |name: &str| name.contains("running") || name.contains("num_batches");
    Ok(vec![
        ("model", of(&|name| !is_buffer(name))?),
        ("buffers", of(&is_buffer)?),
        ("optimizer", serialize::to_bytes(optimizer.state_dict())?),
        ("cpu", get_rng_state()?.to_vec()?),
        ("gpu", cuda::get_rng_state(0)?.to_vec()?),
    ])
}

/// The size of a case is the number of samples.
pub fn observe(case: &Case, checkpoint: Checkpoint, resume: Resume) -> Seen {
    case.machine().enter(|| {
        manual_seed(case.seed);
        let data = (|| {
            let x = Tensor::randn(&[case.size, 6])?;
            let y = x.sum_dims(&[1], true)?;
            TensorDataset::new([x, y])
        })();
        let data = data.expect("it is small");
        let net = network().expect("it is small");
        let mut optimizer = adam(&net).expect("it has parameters");
        train(&net, &mut optimizer, &data, HALF).expect("it trains");
        let saved = parts(&net, &optimizer).expect("they can be saved");
        let mut noted = Vec::new();
        let mut seen = crate::observe(
            case,
            || {
                let file = checkpoint(&net, &optimizer, HALF)?;
                let after = parts(&net, &optimizer)?;
                noted.push(("disturbed", after != saved));
                noted.push(("moved", net.parameters().iter().any(|one| !one.is_cuda())));
                if after != saved || net.parameters().iter().any(|one| !one.is_cuda()) {
                    return Ok(Value::None);
                }
                // Another program has drawn other numbers.
                manual_seed(case.seed + 1_000);
                let other = network()?;
                let mut other_optimizer = adam(&other)?;
                train(&other, &mut other_optimizer, &data, 1)?;
                let epochs = resume(&file, &other, &mut other_optimizer)?;
                for ((name, saved), (_, now)) in saved.iter().zip(parts(&other, &other_optimizer)?) {
                    noted.push((*name, *saved == now));
                }
                let losses = train(&other, &mut other_optimizer, &data, HALF)?;
                Ok(Value::List(vec![Value::Number(epochs as f64), losses.into_value()?]))
            },
            |_| Ok(()),
        );
        seen.facts.extend(noted.into_iter().map(|(name, holds)| (name.to_owned(), Value::Flag(holds))));
        seen
    })
}

fn judge(_: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("RNG state must be")
    {
        return Err(Diagnosis::new("loaded-to-the-gpu", "The states of the generators are on the GPU.")
            .seen(message)
            .expected("tensors on the CPU")
            .idea("Load the file to the CPU. `load_state_dict` then copies what belongs on the GPU."));
    }
    let value = seen.returned()?;
    let holds = |name: &str| seen.fact(name) == &Value::Flag(true);
    if holds("moved") {
        return Err(Diagnosis::new("moved", "`checkpoint` moves the network to the CPU.")
            .seen("parameters on the CPU afterwards")
            .expected("on cuda:0, where they were")
            .idea("A file remembers devices, and `resume` says where its tensors go. The network need not move for that."));
    }
    if holds("disturbed") {
        return Err(Diagnosis::new("disturbed", "`checkpoint` changes the run that it saves.")
            .seen("another state of the run after `checkpoint`")
            .expected("the state before it")
            .idea("To read a generator's state draws nothing. To set a seed makes another run of this one."));
    }
    let told = |id: &str, says: &str, idea: &str| {
        let last = |value: &Value| value.list().get(1).and_then(|losses| losses.list().last()?.number()).unwrap_or(f64::NAN);
        Err(Diagnosis::new(id, says)
            .seen(format!("a last loss of {:.6}", last(value)))
            .expected(format!("{:.6}", last(right.value())))
            .idea(idea))
    };
    if !holds("model") {
        return told("model", "The network does not have the weights of the file.", "`net.load_state_dict` copies them into the network.");
    }
    if !holds("buffers") {
        return Err(Diagnosis::new("buffers", "The running statistics of the batch norm are not in the file.")
            .seen("those of the other program")
            .expected("those of the saved run")
            .idea("`net.state_dict()` has buffers as well as parameters. With `strict` set to `true`, a missing one is an error."));
    }
    if !holds("optimizer") {
        return told(
            "optimizer",
            "The optimizer does not have the state of the saved run.",
            "Adam's moments and its count of steps are a part of the run. `optimizer.state_dict()` has them.",
        );
    }
    match (holds("cpu"), holds("gpu")) {
        (false, false) => {
            return told(
                "generators",
                "Random numbers go on from somewhere else.",
                "The order of the samples and the dropout depend on them. Save the states of both generators.",
            );
        }
        (false, true) => {
            return told(
                "generator-of-the-cpu",
                "The samples come in another order.",
                "The CPU's generator shuffles. `get_rng_state` reads its state, `set_rng_state` puts it back.",
            );
        }
        (true, false) => {
            return told(
                "generator-of-the-gpu",
                "The dropout drops other numbers.",
                "On a GPU the dropout draws from the GPU's generator. `cuda::get_rng_state(0)` reads its state.",
            );
        }
        _ => {}
    }
    let epochs = value.list().first().and_then(Value::number).unwrap_or(f64::NAN) as i64;
    if epochs != HALF {
        let (id, says) = match epochs > HALF {
            true => ("an-epoch-left-out", "An epoch is left out."),
            false => ("epochs", "Epochs are trained once more."),
        };
        return Err(Diagnosis::new(id, says)
            .seen(format!("{epochs} finished epochs"))
            .expected(HALF.to_string())
            .idea("The number that `checkpoint` gets is that of finished epochs. Save it, and return it as it is."));
    }
    if value != right.value() {
        return told("losses", "The losses are not those of the run.", "Put back everything before the training goes on.");
    }
    Ok(())
}
