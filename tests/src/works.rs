//! Timed work: `bench` compares it with PyTorch, `how-wrong` compares modelled with measured times.

use todevice::amp::{self, AutocastOptions};
use todevice::backends::cuda::matmul;
use todevice::backends::cudnn::{self, Flags};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{Machine, cuda};

/// Does the work once.
pub type Doing = Box<dyn FnMut() -> Result<()>>;

/// The rounding of f32 products, and the dtype of a forward pass.
#[derive(Clone, Copy, PartialEq)]
pub enum Precision {
    F32,
    Tf32,
    Bf16,
}

impl Precision {
    /// Whether the work's GPU supports it.
    pub fn is_supported(self) -> bool {
        self == Precision::F32 || cuda::get_device_properties(0).is_ok_and(|properties| properties.major >= 8)
    }

    /// Runs work with TF32 allowed or not in products and convolutions. (PyTorch allows it in convolutions by default.)
    pub fn rounding<R>(self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let (allow_tf32, before) = (self == Precision::Tf32, matmul::allow_tf32());
        matmul::set_allow_tf32(allow_tf32);
        let result = cudnn::flags(Flags { allow_tf32, ..cudnn::current() }, work);
        matmul::set_allow_tf32(before);
        result
    }

    /// Runs a forward pass with half-precision autocast, if the precision asks for it.
    fn casting<R>(self, device: Device, forward: impl FnOnce() -> R) -> R {
        match self {
            Precision::Bf16 => {
                amp::autocast(AutocastOptions { dtype: Some(DType::BF16), ..device.into() }, forward)
            }
            _ => forward(),
        }
    }
}

fn randn(sizes: &[usize], device: Device) -> Result<Tensor> {
    Tensor::randn(sizes)?.to(device)
}

fn classes(count: usize, device: Device) -> Result<Tensor> {
    Tensor::randint(0, 10, &[count])?.to(device)
}

/// A training step of a network with one hidden layer.
pub fn tiny_mlp_step(device: Device) -> Result<Doing> {
    let (model, x, y) = (mlp(&[16, 64, 1], device)?, randn(&[64, 16], device)?, randn(&[64, 1], device)?);
    let adam = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    Ok(training_step(adam, move || nn::MSELoss::default().forward(&model.forward(&x)?, &y)))
}

/// A training step of a digit classifier.
pub fn mnist_mlp_step(device: Device, precision: Precision) -> Result<Doing> {
    let (model, x, y) =
        (mlp(&[784, 512, 512, 10], device)?, randn(&[128, 784], device)?, classes(128, device)?);
    let adam = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    let loss = move || nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &y);
    let mut step = training_step(adam, move || precision.casting(device, &loss));
    Ok(Box::new(move || precision.rounding(&mut step)))
}

/// A training step of a small CNN for 32 × 32 RGB images.
pub fn cnn_step(device: Device, precision: Precision) -> Result<Doing> {
    let (model, x, y) = (cnn(device)?, randn(&[64, 3, 32, 32], device)?, classes(64, device)?);
    let options = SGDOptions { lr: 0.01, momentum: 0.9, ..Default::default() };
    let sgd = optim::SGD::new(model.parameters(), options)?;
    let loss = move || nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &y);
    let mut step = training_step(sgd, move || precision.casting(device, &loss));
    Ok(Box::new(move || precision.rounding(&mut step)))
}

/// The product of two square matrices.
pub fn product(device: Device, side: usize, precision: Precision) -> Result<Doing> {
    let dtype = if precision == Precision::Bf16 { DType::BF16 } else { DType::F32 };
    let [a, b] = [randn(&[side, side], device)?.to(dtype)?, randn(&[side, side], device)?.to(dtype)?];
    Ok(Box::new(move || precision.rounding(|| a.matmul(&b).map(drop))))
}

/// The elementwise sum of two tensors.
pub fn add(device: Device, elements: usize) -> Result<Doing> {
    let [a, b] = [randn(&[elements], device)?, randn(&[elements], device)?];
    Ok(Box::new(move || a.add(&b).map(drop)))
}

/// A unary operation, which moves as many bytes as a copy.
pub fn relu(device: Device, elements: usize) -> Result<Doing> {
    let x = randn(&[elements], device)?;
    Ok(Box::new(move || x.relu().map(drop)))
}

/// A copy of a tensor.
pub fn copy(device: Device, elements: usize) -> Result<Doing> {
    let [from, to] = [randn(&[elements], device)?, randn(&[elements], device)?];
    Ok(Box::new(move || to.copy_(&from).map(drop)))
}

/// An operation on one element: a launch with hardly any work.
pub fn launch(device: Device) -> Result<Doing> {
    let x = Tensor::zeros((&[1], device))?;
    Ok(Box::new(move || x.add_(1.0).map(drop)))
}

/// Allocates and drops a tensor: after the first time its memory comes from the cache.
pub fn allocation(device: Device) -> Result<Doing> {
    Ok(Box::new(move || Tensor::empty((&[1 << 18], device)).map(drop)))
}

/// Linear layers of these sizes, with ReLUs between them.
pub fn mlp(sizes: &[usize], device: Device) -> Result<nn::Sequential> {
    let mut layers: Vec<Box<dyn Module>> = Vec::new();
    for (i, pair) in sizes.windows(2).enumerate() {
        if i > 0 {
            layers.push(Box::new(nn::ReLU));
        }
        layers.push(Box::new(nn::Linear::new(pair[0], pair[1])?));
    }
    let model = nn::Sequential::new(layers);
    model.to(device)?;
    Ok(model)
}

fn cnn(device: Device) -> Result<nn::Sequential> {
    let padding = nn::Conv2dOptions { padding: 1.into(), ..Default::default() };
    let model = nn::Sequential::new((
        nn::Conv2d::new(3, 32, (3, padding))?,
        nn::ReLU,
        nn::MaxPool2d::new(2),
        nn::Conv2d::new(32, 64, (3, padding))?,
        nn::ReLU,
        nn::MaxPool2d::new(2),
        nn::Flatten::default(),
        nn::Linear::new(64 * 8 * 8, 10)?,
    ));
    model.to(device)?;
    Ok(model)
}

fn training_step(
    mut optimizer: impl Optimizer + 'static,
    loss: impl Fn() -> Result<Tensor> + 'static,
) -> Doing {
    Box::new(move || {
        let loss = loss()?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()
    })
}

/// The median time of `work` in seconds, synchronizing after each run.
pub fn one_by_one(device: Device, repetitions: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    for _ in 0..repetitions / 10 + 3 {
        work()?;
    }
    let mut times = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        let start = std::time::Instant::now();
        work()?;
        if device.is_cuda() {
            cuda::synchronize()?;
        }
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(median(times))
}

/// The time of one run of `work` in seconds, queued repeatedly with one synchronization at the end, by the clock of the
/// current machine.
pub fn again_and_again(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut seconds = |repetitions: usize| -> Result<f64> {
        cuda::synchronize()?;
        let start = Instant::now();
        for _ in 0..repetitions {
            work()?;
        }
        cuda::synchronize()?;
        Ok(start.elapsed().as_secs_f64())
    };
    seconds(3)?; // The first run allocates memory and loads code.
    if Machine::current().time_is_modelled() {
        return Ok(seconds(3)? / 3.0); // Modelled time has no noise.
    }
    let once = seconds(3)? / 3.0;
    let repetitions = (0.1 / once).clamp(3.0, 10_000.0) as usize;
    let times =
        (0..5).map(|_| Ok(seconds(repetitions)? / repetitions as f64)).collect::<Result<Vec<f64>>>()?;
    Ok(median(times))
}

pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
