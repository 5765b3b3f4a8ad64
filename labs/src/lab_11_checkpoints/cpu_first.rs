//! Why a checkpoint is loaded to the CPU first: memory, and states that belong there.

use todevice::Machine;
use todevice::cuda;
use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::serialize::{Dict, Value};
use todevice::trace::Counters;
use todevice::{get_rng_state, set_rng_state};

use super::Disk;
use crate::{Lab, Prediction, Table, bytes, exact, row};

/// Enough to be seen beside everything else: 16 MiB of parameters, and twice that of moments.
fn network() -> Result<nn::Sequential> {
    let hidden = nn::Linear::new(2048, 1024)?;
    let out = nn::Linear::new(1024, 2048)?;
    Ok(nn::Sequential::new((hidden, nn::ReLU, out)))
}

// ANCHOR: peak
/// Loads a training run. Returns the most memory that was allocated meanwhile.
fn peak_of_loading(disk: &Disk, device: Device, map_location: Device) -> Result<u64> {
    let net = network()?;
    net.to(device)?;
    let mut optimizer = optim::Adam::new(net.parameters(), AdamOptions::default())?;

    cuda::reset_peak_memory_stats();
    let loaded = disk.load("large.pt", map_location)?;
    let checkpoint = loaded.as_dict()?;
    net.load_state_dict(&StateDict::try_from(checkpoint.at("model")?)?, true)?;
    optimizer.load_state_dict(checkpoint.at("optimizer")?.as_dict()?)?;
    Ok(cuda::max_memory_allocated())
}
// ANCHOR_END: peak

/// The peak, and what the driver was asked meanwhile, with memory in the cache that an earlier part of the program has left there.
fn with_a_cache(
    disk: &Disk,
    device: Device,
    map_location: Device,
    empty_cache: bool,
) -> Result<(u64, Counters)> {
    cuda::empty_cache()?;
    drop(Tensor::zeros_with(&[32 << 20], device)?);
    let before = Machine::current().counters();
    if empty_cache {
        cuda::empty_cache()?;
    }
    let peak = peak_of_loading(disk, device, map_location)?;
    Ok((peak, Machine::current().counters() - before))
}

pub(super) fn to_the_cpu_first(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    lab.section(6, "To the CPU first");
    memory(lab, disk)?;
    random_numbers(lab, disk)
}

fn memory(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(
        Prediction::choice(
            "11-peak",
            "The model is on the GPU, and loads a checkpoint of model and optimizer. Which map_location takes more memory of the GPU \
             while it loads?",
        )
        .or("device", "The GPU.", "In this run it does not.")
        .or("cpu", "The CPU.", "On the CPU the file takes memory of the host, and each tensor goes to the GPU as it is needed.")
        .or("same", "They take the same.", "Loaded to the GPU, the tensors of the file stand beside the parameters.")
        .because("Tensors that are loaded to the GPU exist there twice, until those of the file are dropped.")
        .only_if(device.is_cuda()),
    );
    let empty = lab.predict(
        Prediction::choice(
            "11-empty-cache",
            "Before it loads, the program calls `empty_cache()`, \u{201c}not sure this helps\u{201d}. What does that change?",
        )
        .or("peak", "Loading takes less memory.", "What is allocated is what tensors hold, and a cache is held by none.")
        .or(
            "driver",
            "The driver is asked for memory that was there already.",
            "In this run the driver is not asked more often.",
        )
        .or("nothing", "Nothing at all.", "The memory went back to the driver, and loading has to ask for it again.")
        .because("Memory in the cache is there to be used again. And where it does not fit, the allocator empties the cache by itself.")
        .only_if(device.is_cuda()),
    );
    if !device.is_cuda() {
        lab.prose(
            "Without a GPU everything is loaded to the CPU. With --gpu sim:t4 you see what loading takes of a GPU's memory.",
        );
        return Ok(());
    }
    save_large(disk, device)?;
    let cases = [
        ("the GPU", device, false),
        ("the CPU", Device::Cpu, false),
        ("the CPU, after empty_cache()", Device::Cpu, true),
    ];
    let mut table = Table::new(["map_location", "peak", "the driver is asked"]);
    let mut seen = Vec::new();
    for (name, map_location, empty_cache) in cases {
        let (peak, counters) = with_a_cache(disk, device, map_location, empty_cache)?;
        let asked = counters.driver_mallocs;
        seen.push((peak, asked));
        table = table.row(row![
            name,
            bytes("loading_peak", peak),
            exact("driver_asked", asked)
        ]);
    }
    lab.table(table);
    let [to_gpu, to_cpu, emptied] = seen[..] else { return Ok(()) };
    lab.answer(
        guess,
        match to_gpu.0.cmp(&to_cpu.0) {
            std::cmp::Ordering::Greater => "device",
            std::cmp::Ordering::Equal => "same",
            std::cmp::Ordering::Less => "cpu",
        },
    );
    lab.answer(
        empty,
        if emptied.0 < to_cpu.0 {
            "peak"
        } else if emptied.1 > to_cpu.1 {
            "driver"
        } else {
            "nothing"
        },
    );
    Ok(())
}

fn save_large(disk: &Disk, device: Device) -> Result<()> {
    let net = network()?;
    net.to(device)?;
    let mut optimizer = optim::Adam::new(net.parameters(), AdamOptions::default())?;
    net.forward(&Tensor::ones_with(&[1, 2048], device)?)?.sum()?.backward()?;
    optimizer.step()?;
    let checkpoint = Dict::from_iter([
        ("model", Value::from(net.state_dict())),
        ("optimizer", optimizer.state_dict().into()),
    ]);
    disk.save(checkpoint, "large.pt")
}

fn random_numbers(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(
        Prediction::yes_no(
            "11-rng",
            format!(
                "A checkpoint also has `get_rng_state()?`, the state of the random numbers. It is loaded to {device}. Does \
                 `set_rng_state` take it?"
            ),
        )
        .because(if device.is_cuda() {
            "The generator of the CPU wants its state on the CPU, and that of a GPU does too."
        } else {
            "It is on the CPU, where the generator wants it."
        }),
    );
    // ANCHOR: rng
    disk.save(get_rng_state()?, "rng.pt")?;
    let loaded = disk.load("rng.pt", device)?;
    let outcome = set_rng_state(loaded.as_tensor()?);
    // ANCHOR_END: rng
    lab.answer(guess, outcome.is_ok());
    if let Err(error) = outcome {
        lab.report(error.report());
        lab.prose("It is a tensor of bytes, and PyTorch says the same. What it means is that the state is not on the CPU.");
    }
    Ok(())
}
