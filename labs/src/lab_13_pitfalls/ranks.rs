//! Section 9: every rank loads its checkpoint onto the first GPU.

use todevice::distributed::Ranks;
use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::serialize::{self, MapLocation};
use todevice::{Machine, SimulatedGpus, cuda, monitor};

use super::pitfall::Pitfall;
use crate::{Cell, Lab, Prediction, Table, bytes, exact, row};

/// 16 MiB of parameters.
fn network() -> Result<nn::Linear> {
    nn::Linear::new(2048, 2048)
}

/// A GPU as a monitor shows it: the number of processes, and their memory.
#[derive(Clone, Copy, Default)]
struct Used {
    processes: usize,
    memory: u64,
}

// ANCHOR: load
/// Resumes a rank from a checkpoint: its model is on the GPU with the rank's
/// number.
fn resumed(
    rank: usize,
    file: &[u8],
    map_location: MapLocation,
) -> Result<(nn::Linear, serialize::Value)> {
    cuda::set_device(rank)?;
    let model = network()?;
    model.to(Device::cuda(rank))?;
    let checkpoint = serialize::from_bytes(file, map_location)?;
    model.load_state_dict(&StateDict::try_from(&checkpoint)?, true)?;
    Ok((model, checkpoint))
}
// ANCHOR_END: load

/// The state of all GPUs after `count` ranks have loaded the checkpoint.
fn loaded(file: &[u8], count: usize, to_cpu: bool) -> Result<Vec<Used>> {
    let of_ranks = Ranks::new(count)?.run(|rank| {
        let map_location =
            if to_cpu { MapLocation::from(Device::Cpu) } else { MapLocation::None };
        let _held = resumed(rank, file, map_location)?;
        (0..count)
            .map(|gpu| Ok(monitor::gpu(gpu)?.processes))
            .collect::<Result<Vec<_>>>()
    })?;
    let mut used = vec![Used::default(); count];
    for gpus in of_ranks {
        for (gpu, processes) in used.iter_mut().zip(gpus) {
            gpu.processes += processes.len();
            gpu.memory +=
                processes.iter().filter_map(|one| one.used_memory).sum::<u64>();
        }
    }
    Ok(used)
}

pub(super) fn section(lab: &mut Lab, count: usize) -> crate::Result<Pitfall> {
    let machine = Machine::simulated(SimulatedGpus { count, ..Default::default() });
    lab.section_on(9, "One full GPU", &machine);
    lab.part("gpus");
    let saved = || -> Result<Vec<u8>> {
        let model = network()?;
        model.to(Device::cuda(0))?; // rank 0 saves
        serialize::to_bytes(model.state_dict())
    };
    let file = machine.enter(saved)?;
    let before = machine.enter(|| loaded(&file, count, false))?;
    let after = machine.enter(|| loaded(&file, count, true))?;
    lab.table(table(&before));
    let guess = lab.predict(
        Prediction::choice(
            "13-ranks",
            format!("{count} ranks go on from a checkpoint, one for each GPU. The table counts the processes that nvidia-smi lists. What is wrong, what proves it, and what helps?"),
        )
        .or(
            "rank-0",
            "Rank 0 does more than the others. Its own figures show it. Share its work.",
            "Then there would be one process on the first GPU, with more memory.",
        )
        .or(
            "old",
            "An old run was not ended. Its process stands in nvidia-smi's list. Kill it.",
            "The processes on the first GPU are those on the others: all ranks of this run.",
        )
        .or(
            "load",
            "Every rank loads to the GPU that the file was saved from. Each has a process on the first GPU as well. Set `map_location`.",
            "Here each rank uses its own GPU only.",
        )
        .because("Rank 0 saved the file from `cuda:0`, and without `map_location` every rank loads it there, with a context of its own."),
    );
    lab.table(table(&after));
    lab.answer(guess, if before[0].processes > 1 { "load" } else { "rank-0" });
    lab.prose(
        "The second table is of the same ranks with map_location set to the CPU.",
    );
    Ok(Pitfall {
        what: "all ranks load to GPU 0",
        counted: "memory of GPU 0",
        before: memory(before[0]),
        after: memory(after[0]),
    })
}

fn table(gpus: &[Used]) -> Table {
    let head = Table::new(["GPU", "processes", "memory in use"]);
    gpus.iter().enumerate().fold(head, |table, (index, used)| {
        let processes = exact("processes", used.processes);
        table.row(row![index, processes, memory(*used)])
    })
}

fn memory(used: Used) -> Cell {
    bytes("in_use", used.memory).unit("MiB").into()
}
