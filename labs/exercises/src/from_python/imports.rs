//! Names that need a `use`.

use super::{Mistake, Source};
use crate::compile_error::CompileError;

/// The names of `todevice::prelude`.
pub const PRELUDE: [&str; 27] = [
    "AdamOptions",
    "AdamWOptions",
    "CrossEntropyOptions",
    "DType",
    "DataLoader",
    "DataLoaderOptions",
    "Dataset",
    "Device",
    "Error",
    "Generator",
    "Loss",
    "Machine",
    "Module",
    "Optimizer",
    "Reduction",
    "Result",
    "SGDOptions",
    "Tensor",
    "TensorDataset",
    "ToOptions",
    "cuda",
    "inference_mode",
    "manual_seed",
    "nn",
    "no_grad",
    "optim",
    "use_deterministic_algorithms",
];

/// Other names, with the path to write after `use`.
pub const NAMES: &[(&str, &str)] = &[
    ("Adam", "todevice::optim::Adam"),
    ("AdamW", "todevice::optim::AdamW"),
    ("Arc", "std::sync::Arc"),
    ("AutocastOptions", "todevice::amp::AutocastOptions"),
    ("BTreeMap", "std::collections::BTreeMap"),
    ("BatchNorm1d", "todevice::nn::BatchNorm1d"),
    ("BatchNorm2d", "todevice::nn::BatchNorm2d"),
    ("BlockState", "todevice::cuda::BlockState"),
    ("ClipGradNormOptions", "todevice::nn::utils::ClipGradNormOptions"),
    ("Conv2d", "todevice::nn::Conv2d"),
    ("CrossEntropyLoss", "todevice::nn::CrossEntropyLoss"),
    ("DataParallel", "todevice::parallel::DataParallel"),
    ("Dict", "todevice::serialize::Dict"),
    ("DistributedDataParallel", "todevice::distributed::DistributedDataParallel"),
    ("DistributedSampler", "todevice::data::DistributedSampler"),
    ("DistributedSamplerOptions", "todevice::data::DistributedSamplerOptions"),
    ("Duration", "std::time::Duration"),
    ("Event", "todevice::cuda::Event"),
    ("EventOptions", "todevice::cuda::EventOptions"),
    ("Flags", "todevice::backends::cudnn::Flags"),
    ("GradScaler", "todevice::amp::GradScaler"),
    ("GradScalerOptions", "todevice::amp::GradScalerOptions"),
    ("HashMap", "std::collections::HashMap"),
    // The machine's clock, not that of the standard library.
    ("Instant", "todevice::time::Instant"),
    ("Linear", "todevice::nn::Linear"),
    ("L1Loss", "todevice::nn::L1Loss"),
    ("MSELoss", "todevice::nn::MSELoss"),
    ("NLLLoss", "todevice::nn::NLLLoss"),
    ("MapLocation", "todevice::serialize::MapLocation"),
    ("Parameter", "todevice::nn::Parameter"),
    ("ReLU", "todevice::nn::ReLU"),
    ("ReduceOp", "todevice::distributed::ReduceOp"),
    ("SGD", "todevice::optim::SGD"),
    ("Sequential", "todevice::nn::Sequential"),
    ("StateDict", "todevice::nn::StateDict"),
    ("Stream", "todevice::cuda::Stream"),
    ("TensorOptions", "todevice::TensorOptions"),
    ("amp", "todevice::amp"),
    ("autocast", "todevice::amp::autocast"),
    ("backends", "todevice::backends"),
    ("clip_grad_norm_", "todevice::nn::utils::clip_grad_norm_"),
    ("cudnn", "todevice::backends::cudnn"),
    ("data", "todevice::data"),
    ("dist", "todevice::distributed as dist"),
    ("distributed", "todevice::distributed"),
    ("enable_grad", "todevice::enable_grad"),
    ("is_grad_enabled", "todevice::is_grad_enabled"),
    ("monitor", "todevice::monitor"),
    ("parallel", "todevice::parallel"),
    ("serialize", "todevice::serialize"),
    ("trace", "todevice::trace"),
    ("zip", "std::iter::zip"),
];

const ALL_OF_THE_PRELUDE: &str = "todevice::prelude::*";

/// A name of the crate is used without its path.
pub fn missing(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let name = source.slice(place.clone());
    // `lr = 0.1` in a call is not a missing name.
    let is_keyword = source.reads(source.at(place.end), &["="]);
    let path = match error.code() {
        "E0405" | "E0412" | "E0422" | "E0425" | "E0433" | "E0574" if !is_keyword => path_of(name)?,
        // The standard library also has a `Result`, with two type parameters.
        "E0107" if error.message.starts_with("enum takes 2 generic arguments") && name == "Result" => {
            ALL_OF_THE_PRELUDE
        }
        "E0599" if error.suggestion("implemented but not in scope").is_some() => ALL_OF_THE_PRELUDE,
        _ => return None,
    };
    let all = ["todevice", ":", ":", "prelude", ":", ":", "*"];
    if path == ALL_OF_THE_PRELUDE && (0..source.len()).any(|token| source.reads(token, &all)) {
        return None;
    }
    let at = first_item(source);
    Some(Mistake::at(place.start).edit(at, format!("use {path};\n")))
}

fn path_of(name: &str) -> Option<&'static str> {
    if PRELUDE.contains(&name) {
        return Some(ALL_OF_THE_PRELUDE);
    }
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, path)| *path)
}

/// The position for a file's `use` lines: the first line after inner attributes and the file comment.
fn first_item(source: &Source) -> usize {
    let first_use =
        (0..source.len()).find(|token| source.word(*token) == "use" && source.begins_line(*token));
    match first_use {
        Some(token) => source.start(token),
        None => {
            let mut token = 0;
            while source.reads(token, &["#", "!", "["]) {
                token = source.close(token + 2) + 1;
            }
            // Above the comment of the first item.
            let start = source.start(token);
            let above = source.slice(0..start);
            let comment =
                above.lines().rev().take_while(|line| line.starts_with("///")).map(|line| line.len() + 1);
            start - comment.sum::<usize>().min(start)
        }
    }
}
