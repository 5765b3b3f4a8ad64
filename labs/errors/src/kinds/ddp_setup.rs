use crate::Kind;

pub const KIND: Kind = Kind {
    id: "ddp-setup",
    message: "DDP expects same model across all ranks",
    known_by: &["DDP expects same model across all ranks", "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient", "DistributedDataParallel's input module must be on the same type of devices", "module must have its parameters and buffers on device", "Expected at least one device to scatter to", "Gather function not implemented for CPU tensors"],
    meaning: "`DistributedDataParallel` or `DataParallel` cannot wrap this model as it is: it differs between ranks, has nothing to train, or is not where it should be.",
    place: "Print the number of parameters and their devices on each rank, just before you wrap it.",
    fix: &["Make the model from the same configuration on each rank.", "Move it first: `model.to(f'cuda:{local_rank}')`, or to `cuda:0` for `DataParallel`.", "Do not wrap what is only evaluated."],
    chapters: &["10-many-gpus.md"],
    ..Kind::NEW
};
