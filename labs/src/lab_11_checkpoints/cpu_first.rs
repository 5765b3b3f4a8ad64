//! Why to load a checkpoint to the CPU first: memory, and states that belong there.

use todevice::Machine;
use todevice::cuda;
use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::serialize::{Dict, Value};
use todevice::trace::Counters;
use todevice::{get_rng_state, set_rng_state};

use super::Disk;
use crate::{Lab, Table, bytes, exact, row};

/// Large enough to be noticed: 16 MiB of parameters, and twice that of moments.
fn network() -> Result<nn::Sequential> {
    let hidden = nn::Linear::new(2048, 1024)?;
    let out = nn::Linear::new(1024, 2048)?;
    Ok(nn::Sequential::new((hidden, nn::ReLU, out)))
}

// ANCHOR: peak
/// Loads a training run. Returns the peak memory of loading.
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

/// The peak memory and the driver calls of loading, with cached memory from an earlier part of the program.
fn with_a_cache(
    disk: &Disk,
    empty_cache: bool,
    device: Device,
    map_location: Device,
) -> Result<(u64, Counters)> {
    cuda::empty_cache()?;
    drop(Tensor::zeros((&[32 << 20], device))?);
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
    lab.think(
        "11-peak",
        "The model is on the GPU, and loads a checkpoint of model and optimizer. Which map_location takes more memory of the GPU \
         meanwhile, the GPU or the CPU? And what changes if the program calls empty_cache() first?",
    );
    if !lab.has_gpu_or(
        "Without a GPU everything is loaded to the CPU. With --gpu sim:t4 you see what loading takes of a GPU's memory.",
    ) {
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
        let (peak, counters) = with_a_cache(disk, empty_cache, device, map_location)?;
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
    lab.prose(if to_gpu.0 > to_cpu.0 {
        "Loaded to the GPU, the tensors of the file lie beside those of the model, and the peak is higher."
    } else {
        "Here both have the same peak."
    });
    lab.prose(if emptied.0 == to_cpu.0 && emptied.1 > to_cpu.1 {
        "empty_cache() does not lower the peak. It gives memory back for which the driver has to be asked again."
    } else {
        "Here empty_cache() has changed more than the calls to the driver."
    });
    Ok(())
}

fn save_large(disk: &Disk, device: Device) -> Result<()> {
    let net = network()?;
    net.to(device)?;
    let mut optimizer = optim::Adam::new(net.parameters(), AdamOptions::default())?;
    net.forward(&Tensor::ones((&[1, 2048], device))?)?.sum()?.backward()?;
    optimizer.step()?;
    let checkpoint = Dict::from_iter([
        ("model", Value::from(net.state_dict())),
        ("optimizer", optimizer.state_dict().into()),
    ]);
    disk.save(checkpoint, "large.pt")
}

fn random_numbers(lab: &mut Lab, disk: &Disk) -> crate::Result<()> {
    let device = lab.device();
    lab.think(
        "11-rng",
        format!(
            "A checkpoint also has `get_rng_state()?`, the state of the random numbers. It is loaded to {device}. Does `set_rng_state` \
             take it?"
        ),
    );
    // ANCHOR: rng
    disk.save(get_rng_state()?, "rng.pt")?;
    let loaded = disk.load("rng.pt", device)?;
    let outcome = set_rng_state(loaded.as_tensor()?);
    // ANCHOR_END: rng
    match outcome {
        Ok(()) => {
            lab.prose("It does: the state is on the CPU, where the generator wants it.")
        }
        Err(error) => {
            lab.report(error.report());
            lab.prose("These are PyTorch's words. It is a tensor of bytes, but it is not on the CPU.");
        }
    }
    Ok(())
}
