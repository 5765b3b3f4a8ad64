//! Draws how training steps fill the memory up to a limit, block by block.

use std::convert::Infallible;

use drawing::{Filling, Owner, Role, words};
use todevice::amp::{AutocastOptions, autocast};
use todevice::prelude::*;
use todevice::trace::record_function;
use todevice::{GpuError, Machine, cuda};

use crate::Lab;

/// The owners of memory, from permanent to temporary.
pub(crate) const OWNERS: [Owner; 7] = [
    ("cuBLAS workspace", Role::Workspace),
    ("parameters", Role::Parameter),
    ("Adam's moments", Role::Optimizer),
    ("gradients", Role::Gradient),
    ("batch", Role::Data),
    ("activations", Role::Activation),
    ("temporary tensors", Role::Temporary),
];

/// The owner of a block, by the part of the step that allocated it, and whether it stayed after that part.
pub(crate) fn owner_of(part: &str, stays: bool) -> usize {
    let name = match part {
        "model" => "parameters",
        "batch" => "batch",
        "forward" => "activations",
        "backward" if stays => "gradients",
        "step" if stays => "Adam's moments",
        _ => "temporary tensors",
    };
    OWNERS.iter().position(|(owner, _)| *owner == name).unwrap_or(OWNERS.len() - 1)
}

/// Draws steps with more and more samples, until one does not fit.
pub(super) fn up_to_the_limit(
    lab: &mut Lab,
    model: &nn::Sequential,
    limit: u64,
) -> crate::Result<()> {
    let device = lab.device();
    cuda::empty_cache()?;
    let mut first = vec![0; OWNERS.len()];
    first[0] = cuda::memory_allocated();
    let reserved = cuda::memory_reserved();

    let mut batches = vec![4 * (limit >> 20) as usize];
    let (refused, trace) = Machine::current().profile(|| {
        record_function("model", || model.to(device))?;
        let mut optimizer =
            optim::Adam::new(model.parameters(), AdamOptions::default())?;
        loop {
            let batch = batches[batches.len() - 1];
            step(model, &mut optimizer, batch, None, device)?;
            batches.push(2 * batch);
        }
    });
    let refused: Result<Infallible> = refused;
    let Err(error) = refused;
    let Some(GpuError::OutOfDeviceMemory(refused)) = error.gpu() else {
        return Err(error.into());
    };

    let filling =
        Filling::of(&trace, device.index(), &OWNERS, (first, reserved), owner_of)
            .limit(limit)
            .refused(refused);
    let peak = |owner| words::bytes(filling.peak(Some(owner)));
    let [smallest, largest] = [0, batches.len() - 1].map(|step| batches[step]);
    let asks = format!(
        "asks the driver for {} more, on top of the {} that it has, and is refused",
        words::bytes(refused.tried),
        words::bytes(refused.reserved),
    );
    let limit = words::bytes(limit);
    let caption = if filling.peak(Some("batch")) == 0 {
        format!(
            "Under a limit of {limit} there is no room to train the larger network from \"Whose bytes?\". The allocator {asks}."
        )
    } else if smallest == largest {
        format!(
            "The larger network from \"Whose bytes?\" is trained under a limit of {limit}, and its first step, with {smallest} \
             samples, already fails. The workspace ({}) and the parameters ({}) stay. The activations come and go, and \
             reach {}. The allocator {asks}.",
            peak("cuBLAS workspace"),
            peak("parameters"),
            peak("activations"),
        )
    } else {
        format!(
            "The larger network from \"Whose bytes?\" is trained under a limit of {limit}. The first step has {smallest} samples. \
             Each later step has twice as many as the one before, up to {largest} in the last. The workspace, the \
             parameters ({}) and Adam's moments ({}) stay. The batch and the activations grow with the number of \
             samples, and the activations reach {}. The allocator keeps the memory that it gets back. In the last step it \
             {asks}.",
            peak("parameters"),
            peak("Adam's moments"),
            peak("activations"),
        )
    };
    lab.picture(filling, &caption);
    Ok(())
}

/// A training step with named parts. Autocasts the forward pass to a dtype, if given.
pub(crate) fn step(
    model: &nn::Sequential,
    optimizer: &mut optim::Adam,
    batch: usize,
    dtype: Option<DType>,
    device: Device,
) -> Result<()> {
    let cast = AutocastOptions {
        dtype,
        enabled: dtype.is_some(),
        ..AutocastOptions::from(device.device_type())
    };
    record_function(&format!("{batch} samples"), || {
        let [x, y] = record_function("batch", || {
            let x = Tensor::ones((&[batch, 784], device))?;
            Ok::<_, Error>([x, Tensor::zeros((&[batch], (device, DType::I64)))?])
        })?;
        let loss_fn = nn::CrossEntropyLoss::default();
        let loss = record_function("forward", || {
            autocast(cast, || loss_fn.forward(&model.forward(&x)?, &y))
        })?;
        record_function("backward", || loss.backward())?;
        record_function("step", || optimizer.step())?;
        optimizer.zero_grad();
        Ok(())
    })
}
