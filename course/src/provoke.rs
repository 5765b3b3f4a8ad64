//! Code that causes errors: `cargo course explain --run` shows one of these functions and its error. Each function has
//! the name of its kind of error.

use todevice::Machine;
use todevice::amp::{GradScaler, GradScalerOptions, autocast};
use todevice::autograd::{self, GradOptions, inference_mode};
use todevice::cuda::{self, Event, EventOptions, SyncDebugMode};
use todevice::nn::utils::{ClipGradNormOptions, clip_grad_norm_};
use todevice::parallel::distributed;
use todevice::prelude::*;

type Provoke = (&'static str, fn() -> Result<()>);

macro_rules! provoked {
    ($($function:ident,)*) => {
        pub const PROVOKED: &[Provoke] = &[$((stringify!($function), $function),)*];
    };
}

provoked! {
    device_string,
    collate,
    second_backward,
    inplace,
    no_graph,
    not_scalar,
    leaf_inplace,
    inference_tensor,
    unused_input,
    grad_flag,
    grad_shape,
    matmul_shapes,
    broadcast,
    reshape,
    index_bounds,
    conv_input,
    batch_norm,
    target_bounds,
    loss_sizes,
    to_scalar,
    scalar_type,
    not_implemented,
    unscale_twice,
    no_inf_checks,
    fp16_gradients,
    non_finite_norm,
    optimizer_state,
    optimizer_empty,
    no_process_group,
    contiguous,
    events,
    synchronizing,
    setting,
}

/// The error of a kind on a machine with a simulated GPU, and the code that causes it.
pub fn provoke(kind: &str) -> Option<(&'static str, Error)> {
    let name = kind.replace('-', "_");
    let (name, function) = PROVOKED.iter().find(|(known, _)| *known == name)?;
    let machine: Machine = "sim:t4".parse().ok()?;
    let error = machine.enter(function).err()?;
    Some((body(name)?, error))
}

fn body(name: &str) -> Option<&'static str> {
    let (_, after) = include_str!("provoke.rs").split_once(&format!("\nfn {name}() -> Result<()> {{\n"))?;
    let (body, _) = after.split_once("\n}\n")?;
    Some(body.trim_end().trim_end_matches("Ok(())").trim_end())
}

fn device_string() -> Result<()> {
    let device: Device = "gpu".parse()?;
    Tensor::ones(&[3])?.to(device)?;
    Ok(())
}

fn collate() -> Result<()> {
    let (short, long) = (Tensor::ones(&[3])?, Tensor::ones(&[4])?);
    Tensor::stack(&[&short, &long], 0)?;
    Ok(())
}

fn second_backward() -> Result<()> {
    let x = Tensor::ones(&[3])?.requires_grad_(true)?;
    let loss = x.exp()?.sum()?;
    loss.backward()?;
    loss.backward()?;
    Ok(())
}

fn inplace() -> Result<()> {
    let x = Tensor::ones(&[3])?.requires_grad_(true)?;
    let y = x.exp()?; // its gradient is y itself
    y.add_(1.0)?;
    y.sum()?.backward()?;
    Ok(())
}

fn no_graph() -> Result<()> {
    let model = nn::Linear::new(3, 1)?;
    let loss = no_grad(|| model.forward(&Tensor::ones(&[2, 3])?)?.mean())?;
    loss.backward()?;
    Ok(())
}

fn not_scalar() -> Result<()> {
    let losses = Tensor::ones(&[8])?.requires_grad_(true)?.exp()?;
    losses.backward()?;
    Ok(())
}

fn leaf_inplace() -> Result<()> {
    let weight = Tensor::ones(&[3])?.requires_grad_(true)?;
    weight.sub_(0.1)?;
    Ok(())
}

fn inference_tensor() -> Result<()> {
    let features = inference_mode(|| Tensor::ones(&[2, 3]))?;
    let model = nn::Linear::new(3, 1)?;
    model.forward(&features)?.sum()?.backward()?;
    Ok(())
}

fn unused_input() -> Result<()> {
    let x = Tensor::ones(&[3])?.requires_grad_(true)?;
    let other = Tensor::ones(&[3])?.requires_grad_(true)?;
    autograd::grad(&x.exp()?.sum()?, &[&other], GradOptions::default())?;
    Ok(())
}

fn grad_flag() -> Result<()> {
    let x = Tensor::ones(&[3])?.requires_grad_(true)?;
    x.exp()?.requires_grad_(false)?;
    Ok(())
}

fn grad_shape() -> Result<()> {
    let x = Tensor::ones(&[3])?.requires_grad_(true)?;
    x.set_grad(Some(Tensor::ones(&[4])?))?;
    Ok(())
}

fn matmul_shapes() -> Result<()> {
    let pictures = Tensor::ones(&[64, 28, 28])?;
    let model = nn::Linear::new(784, 10)?;
    model.forward(&pictures.reshape(&[-1, 28])?)?;
    Ok(())
}

fn broadcast() -> Result<()> {
    let (a, b) = (Tensor::ones(&[64, 3])?, Tensor::ones(&[64, 4])?);
    (&a + &b)?;
    Ok(())
}

fn reshape() -> Result<()> {
    let x = Tensor::ones(&[2, 3])?;
    x.t()?.view(&[6])?;
    Ok(())
}

fn index_bounds() -> Result<()> {
    let table = nn::Embedding::new(10, 4)?;
    table.forward(&Tensor::new([1, 10])?)?;
    Ok(())
}

fn conv_input() -> Result<()> {
    let model = nn::Conv2d::new(3, 8, 3)?;
    let gray = Tensor::ones(&[1, 1, 28, 28])?;
    model.forward(&gray)?;
    Ok(())
}

fn batch_norm() -> Result<()> {
    let model = nn::BatchNorm1d::new(16)?;
    let last_batch = Tensor::ones(&[1, 16])?;
    model.forward(&last_batch)?;
    Ok(())
}

fn target_bounds() -> Result<()> {
    let scores = Tensor::ones(&[2, 10])?;
    let labels = Tensor::new([3, 10])?;
    scores.cross_entropy(&labels)?;
    Ok(())
}

fn loss_sizes() -> Result<()> {
    let scores = Tensor::ones(&[4, 10])?;
    let labels = Tensor::new([3, 1, 2])?;
    scores.cross_entropy(&labels)?;
    Ok(())
}

fn to_scalar() -> Result<()> {
    let losses = Tensor::ones(&[8])?;
    losses.item()?;
    Ok(())
}

fn scalar_type() -> Result<()> {
    let model = nn::Linear::new(3, 1)?;
    let from_numpy = Tensor::ones(&[2, 3])?.to(DType::F64)?;
    model.forward(&from_numpy)?;
    Ok(())
}

fn not_implemented() -> Result<()> {
    let counts = Tensor::new([1, 2, 3])?;
    counts.mean()?;
    Ok(())
}

fn unscale_twice() -> Result<()> {
    let device = Device::cuda_if_available();
    let model = nn::Linear::new(3, 1)?;
    model.to(device)?;
    let optimizer = optim::SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;
    let mut scaler = GradScaler::new(GradScalerOptions::default())?;
    let x = Tensor::ones(&[2, 3])?.to(device)?;
    let loss = autocast(device, || model.forward(&x)?.mean())?;
    scaler.scale(&loss)?.backward()?;
    scaler.unscale_(&optimizer)?;
    scaler.unscale_(&optimizer)?;
    Ok(())
}

fn no_inf_checks() -> Result<()> {
    let device = Device::cuda_if_available();
    let model = nn::Linear::new(3, 1)?;
    model.to(device)?;
    let mut optimizer = optim::SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;
    let mut scaler = GradScaler::new(GradScalerOptions::default())?;
    let x = Tensor::ones(&[2, 3])?.to(device)?;
    let loss = model.forward(&x)?.mean()?;
    scaler.scale(&loss)?; // and its backward() is missing
    scaler.step(&mut optimizer)?;
    Ok(())
}

fn fp16_gradients() -> Result<()> {
    let device = Device::cuda_if_available();
    let model = nn::Linear::new(3, 1)?;
    model.to(device)?;
    model.to(DType::F16)?;
    let mut optimizer = optim::SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;
    let mut scaler = GradScaler::new(GradScalerOptions::default())?;
    let x = Tensor::ones(&[2, 3])?.to(device)?.to(DType::F16)?;
    let loss = model.forward(&x)?.mean()?;
    scaler.scale(&loss)?.backward()?;
    scaler.step(&mut optimizer)?;
    Ok(())
}

fn non_finite_norm() -> Result<()> {
    let model = nn::Linear::new(3, 1)?;
    let x = (Tensor::ones(&[2, 3])? * f64::INFINITY)?;
    model.forward(&x)?.sum()?.backward()?;
    let options = ClipGradNormOptions { error_if_nonfinite: true, ..Default::default() };
    clip_grad_norm_(&model.parameters(), 1.0, options)?;
    Ok(())
}

fn optimizer_state() -> Result<()> {
    let model = nn::Linear::new(3, 1)?;
    let options = SGDOptions { lr: 0.1, ..Default::default() };
    let saved = optim::SGD::new(model.parameters()[..1].to_vec(), options)?.state_dict();
    optim::SGD::new(model.parameters(), options)?.load_state_dict(&saved)?;
    Ok(())
}

fn optimizer_empty() -> Result<()> {
    let model = nn::ReLU; // it has no parameters
    optim::SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;
    Ok(())
}

fn no_process_group() -> Result<()> {
    distributed::spawn(2, |_rank| {
        distributed::all_reduce(&Tensor::ones(&[3])?, distributed::ReduceOp::Sum).map(drop)
    })?;
    Ok(())
}

fn contiguous() -> Result<()> {
    distributed::spawn(1, |rank| {
        distributed::init_process_group("nccl")?;
        let x = Tensor::ones((&[2, 3], Device::cuda(rank)))?.t()?;
        distributed::all_reduce(&x, distributed::ReduceOp::Sum).map(drop)
    })?;
    Ok(())
}

fn events() -> Result<()> {
    let timing = EventOptions { enable_timing: true };
    let (start, end) = (Event::new(timing), Event::new(timing));
    start.record()?;
    start.elapsed_time(&end)?;
    Ok(())
}

fn synchronizing() -> Result<()> {
    let x = Tensor::ones(&[3])?.to(Device::cuda_if_available())?;
    cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
    x.sum()?.item()?;
    Ok(())
}

fn setting() -> Result<()> {
    let data = TensorDataset::new([Tensor::ones(&[8, 3])?])?;
    DataLoader::new(data, DataLoaderOptions { batch_size: 0, ..Default::default() })?;
    Ok(())
}
