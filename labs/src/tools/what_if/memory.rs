//! The memory of two training steps, block by block.

use drawing::{Drawing, MemoryHistory, Role, words};
use todevice::prelude::*;
use todevice::trace::record_function;
use todevice::{Machine, cuda};

use super::{Compared, Knob, Setting, Shown, WhatIf};
use crate::lab_04_memory::filling::{OWNERS, owner_of, step};

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "memory",
    title: "The memory of two steps",
    knobs: &[
        Knob {
            name: "batch_size",
            label: "Batch",
            values: &[
                ("64", "64"),
                ("128", "128"),
                ("256", "256"),
                ("512", "512"),
                ("1024", "1024"),
            ],
            first: 2,
        },
        Knob {
            name: "type",
            label: "Forward pass in",
            values: &[("float32", "float32"), ("float16", "float16 (autocast)")],
            first: 0,
        },
    ],
    run,
};

/// The memory of the steps: the peak of all and of activations, and the rest afterwards.
struct Taken {
    drawing: Drawing,
    peak: u64,
    activations: u64,
    stays: u64,
}

fn run(setting: &Setting) -> crate::Result<Shown> {
    let taken = taken(setting)?;
    let batch = setting.number("batch_size");
    let words = format!(
        "Two training steps with {batch} samples, from the first block to the last, the forward pass in {}. At most {} are allocated at once. \
         Activations reach {}.",
        setting.of("type"),
        words::bytes(taken.peak),
        words::bytes(taken.activations),
    );
    // With another batch, and in another type as well. Few samples take little time.
    let few = if setting.of("batch_size") == "64" { "128" } else { "64" };
    let dtype = if setting.of("type") == "float32" { "float16" } else { "float32" };
    let with_few = setting.with("batch_size", few);
    let others = [with_few.with("type", dtype), with_few];
    let others = others.iter().map(self::taken).collect::<crate::Result<Vec<_>>>()?;
    let stays = Compared {
        what: format!(
            "Parameters and Adam's moments take {}",
            words::bytes(taken.stays)
        ),
        with: vec![
            format!("with {few} samples"),
            format!("with {few} samples in {dtype}"),
        ],
        exactly: "to the byte",
        holds: others.iter().all(|other| other.stays == taken.stays),
    };
    Ok(Shown { drawing: taken.drawing, words, same: vec![stays] })
}

fn taken(setting: &Setting) -> crate::Result<Taken> {
    let machine: Machine = "sim:t4".parse()?;
    let dtype = (setting.of("type") == "float16").then_some(DType::F16);
    let batch = setting.number("batch_size");
    machine.enter(|| {
        manual_seed(0);
        let device = Device::cuda(0);
        let model = nn::Sequential::new((
            nn::Linear::new(784, 128)?,
            nn::ReLU,
            nn::Linear::new(128, 128)?,
            nn::ReLU,
            nn::Linear::new(128, 10)?,
        ));
        // cuBLAS allocates its workspace, which is not part of the experiment.
        Tensor::ones((&[1, 1], device))?.matmul(&Tensor::ones((&[1, 1], device))?)?;
        cuda::empty_cache()?;
        let before = cuda::memory_snapshot();
        let (done, trace) = machine.profile(|| {
            record_function("model", || model.to(device))?;
            let mut optimizer =
                optim::Adam::new(model.parameters(), AdamOptions::default())?;
            for _ in 0..2 {
                step(&model, &mut optimizer, batch, dtype, device)?;
            }
            Ok::<_, Error>(optimizer)
        });
        let optimizer = done?;
        let history = MemoryHistory::of(&trace, 0, &before, &OWNERS, owner_of);
        let activations = |moment| -> u64 {
            let held = history.held(moment).into_iter();
            held.filter(|(role, _)| *role == Some(Role::Activation))
                .map(|(_, bytes)| bytes)
                .sum()
        };
        let end = history.held(history.moments() - 1);
        let stay = [Role::Parameter, Role::Optimizer].map(Some);
        let stays = end
            .iter()
            .filter(|(role, _)| stay.contains(role))
            .map(|(_, bytes)| bytes)
            .sum();
        let peak = history.allocated(history.peak());
        let activations = (0..history.moments()).map(activations).max().unwrap_or(0);
        drop(optimizer);
        Ok(Taken { drawing: history.into(), peak, activations, stays })
    })
}
