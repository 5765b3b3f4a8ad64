//! First checks on a new card, each in its own process: a GPU error can make the GPU unusable for the rest of the
//! process.
//!
//! `cargo run --release --bin contact -- kernel --gpu real` computes a result on the GPU and on the CPU, and prints the
//! difference. `contact answers nvrtc` prints answers of an NVIDIA library that are known only by calling it: see
//! `answers.rs`.

mod answers;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};
use course_tests::works::Precision::F32;
use course_tests::{with_gpu, works};
use labs::stdio::to_stdout;
use labs::{failed, program};
use todevice::prelude::*;
use todevice::{Conv2dOptions, GpuSpec, Machine};

/// Tries one kind of work on a GPU, or prints the answers of one of NVIDIA's libraries
#[derive(Parser)]
#[command(name = "contact", version, disable_help_subcommand = true)]
struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A kernel of the course
    Kernel(Gpu),
    /// Matrix products of every type
    Product(Gpu),
    /// A convolution and its gradients
    Convolution(Gpu),
    /// Copies to the GPU and back
    Copy(Gpu),
    /// Steps of a training
    Training(Gpu),
    /// The answers of a library
    Answers {
        /// The library
        library: answers::Library,
    },
}

#[derive(clap::Args)]
struct Gpu {
    /// GPU to use
    #[arg(long, value_name = "GPU", default_value = "real", help = format!("GPUs to run on; only the first is used: {}", GpuSpec::GRAMMAR))]
    gpu: GpuSpec,
}

fn main() -> ExitCode {
    program(|flags: Flags| {
        let (gpu, check): (Gpu, fn() -> Result<Vec<Compared>>) = match flags.what {
            What::Kernel(gpu) => (gpu, kernel),
            What::Product(gpu) => (gpu, product),
            What::Convolution(gpu) => (gpu, convolution),
            What::Copy(gpu) => (gpu, copy),
            What::Training(gpu) => (gpu, training),
            What::Answers { library } => return answers::print(library).map_err(failed),
        };
        let machine = with_gpu(&gpu.gpu)?;
        let compared = machine.enter(check).map_err(failed)?;
        let mut wrong = Vec::new();
        for Compared { name, difference, allowed, seconds } in compared {
            to_stdout(&format!(
                "{name}: differs by {difference:.1e} of the largest value (allowed: {allowed:.0e}); {:.2} ms, measured, with the first \
                 use\n",
                seconds * 1e3
            ));
            // NaN never passes.
            if difference.is_nan() || difference > allowed {
                wrong.push(name);
            }
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(failed(format!("{machine}: not what the CPU computes: {}", wrong.join(", ")))),
        }
    })
}

/// The difference between the results of the GPU and the CPU.
struct Compared {
    name: String,
    /// Relative to the largest value.
    difference: f64,
    allowed: f64,
    /// On the GPU, until the host has the result.
    seconds: f64,
}

fn compare(name: &str, allowed: f64, work: impl Fn(Device) -> Result<Tensor>) -> Result<Compared> {
    let cpu = numbers(&work(Device::Cpu)?)?;
    let start = Instant::now();
    let gpu = numbers(&work(Device::cuda(0))?)?;
    let seconds = start.elapsed().as_secs_f64();
    let largest = cpu.iter().fold(f64::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    let apart = cpu.iter().zip(&gpu).map(|(a, b)| (a - b).abs());
    // `max` would ignore NaN.
    let difference = match cpu.len() == gpu.len() && gpu.iter().all(|x| x.is_finite()) {
        true => apart.fold(0.0, f64::max) / largest,
        false => f64::NAN,
    };
    Ok(Compared { name: name.to_owned(), difference, allowed, seconds })
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.detach().to(DType::F64)?.to(Device::Cpu)?.to_vec::<f64>()
}

/// The same numbers on every device.
fn randn(sizes: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
    Tensor::randn(sizes)?.to(dtype)?.to(device)
}

fn kernel() -> Result<Vec<Compared>> {
    let sum = |device| {
        manual_seed(1);
        let x = randn(&[300, 1001], DType::F32, device)?;
        x.add(&x.t()?.contiguous()?.reshape(&[300, 1001])?)?.exp()
    };
    let mean = |device| {
        manual_seed(2);
        randn(&[1000, 257], DType::F32, device)?.softmax(1)?.sum_dims(&[0], false)
    };
    Ok(vec![compare("exp(x + y)", 0.0, sum)?, compare("sums of softmax", 0.0, mean)?])
}

fn product() -> Result<Vec<Compared>> {
    let types = [(DType::F32, 2e-5), (DType::F64, 2e-14), (DType::F16, 4e-3), (DType::BF16, 3e-2)];
    let of_type = |(dtype, allowed): (DType, f64)| {
        compare(&format!("a product of {dtype}"), allowed, |device| {
            manual_seed(3);
            randn(&[65, 257], dtype, device)?.matmul(&randn(&[257, 31], dtype, device)?)
        })
    };
    F32.rounding(|| types.into_iter().map(of_type).collect())
}

fn convolution() -> Result<Vec<Compared>> {
    let options = Conv2dOptions { padding: 1.into(), ..Default::default() };
    let of = |which: usize| {
        move |device| {
            manual_seed(4);
            let x = randn(&[4, 8, 16, 15], DType::F32, device)?.requires_grad_(true)?;
            let weight = randn(&[6, 8, 3, 3], DType::F32, device)?.requires_grad_(true)?;
            let y = x.conv2d(&weight, (None, options))?;
            y.square()?.sum()?.backward()?;
            Ok([y, x.grad().expect("a gradient"), weight.grad().expect("a gradient")][which].clone())
        }
    };
    F32.rounding(|| {
        let names = ["a convolution", "its gradient by the images", "its gradient by the weight"];
        names.iter().enumerate().map(|(i, name)| compare(name, 2e-5, of(i))).collect()
    })
}

fn copy() -> Result<Vec<Compared>> {
    let elements = 1 << 18;
    let there_and_back = |pinned: bool| {
        move |device: Device| {
            manual_seed(5);
            let x = Tensor::randn(&[elements])?;
            let x = if pinned && device.is_cuda() { x.pin_memory()? } else { x };
            x.to(device)?.to(Device::Cpu)
        }
    };
    let within = |device| randn(&[512, 512], DType::F32, device)?.t()?.contiguous();
    let seeded = |device| {
        manual_seed(6);
        within(device)
    };
    Ok(vec![
        compare("there and back, pageable", 0.0, there_and_back(false))?,
        compare("there and back, pinned", 0.0, there_and_back(true))?,
        compare("a copy on the GPU, transposed", 0.0, seeded)?,
    ])
}

fn training() -> Result<Vec<Compared>> {
    let losses = |device| {
        manual_seed(7);
        let model = works::mlp(&[16, 64, 1], device)?;
        let (x, y) = (randn(&[64, 16], DType::F32, device)?, randn(&[64, 1], DType::F32, device)?);
        let mut adam = optim::Adam::new(model.parameters(), AdamOptions::default())?;
        let mut losses = Vec::new();
        for _ in 0..10 {
            let loss = nn::MSELoss::default().forward(&model.forward(&x)?, &y)?;
            adam.zero_grad();
            loss.backward()?;
            adam.step()?;
            losses.push(loss.item()?);
        }
        Tensor::from_slice(&losses, &[losses.len()])
    };
    let compared = compare("the losses of ten steps", 1e-4, losses)?;
    let launches = Machine::current().counters().launches;
    to_stdout(&format!("{launches} launches\n"));
    Ok(vec![compared])
}
