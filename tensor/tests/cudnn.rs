//! Convolutions by cuDNN, as on a real GPU. NVIDIA's libraries are stand-ins: they check their arguments as NVIDIA's
//! do, and compute convolutions by definition. With a GPU: `TEST_GPU=real`.

use crate::each_case::each_case;
use todevice::autograd::{self, BackwardOptions};
use todevice::backends::cudnn::{self, Flags};
use todevice::{Conv2dOptions, DType, Device, Machine, Result, Tensor, manual_seed};

#[test]
fn of_the_stand_ins() {
    if std::env::var_os("TEST_GPU").is_some() {
        return; // This is the child process.
    }
    let stand_ins = crate::stand_ins::stand_ins(todevice::cuda::kernel_signatures);
    let mut this = std::process::Command::new(std::env::current_exe().unwrap());
    let output = stand_ins.on(&mut this).arg("cudnn::").env("TEST_GPU", "real").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("5 passed"));
}

/// Runs a test on a real GPU, or on the stand-ins.
fn on_gpu(test: fn() -> Result<()>) {
    if std::env::var_os("TEST_GPU").is_some() {
        Machine::real().unwrap().enter(|| test().unwrap());
    }
}

struct Case {
    x: [usize; 4],
    weight: [usize; 4],
    options: Conv2dOptions,
}

fn cases() -> [Case; 4] {
    let plain = Conv2dOptions::default();
    let uneven = Conv2dOptions {
        stride: (2, 1).into(),
        padding: (1, 2).into(),
        dilation: (1, 2).into(),
        groups: 2,
        ..plain
    };
    [
        Case { x: [2, 3, 6, 5], weight: [4, 3, 3, 3], options: Conv2dOptions { padding: 1.into(), ..plain } },
        Case { x: [3, 4, 7, 8], weight: [6, 2, 3, 2], options: uneven },
        Case { x: [1, 5, 4, 4], weight: [5, 1, 2, 2], options: Conv2dOptions { groups: 5, ..plain } },
        Case { x: [2, 8, 1, 1], weight: [3, 8, 1, 1], options: plain },
    ]
}

/// y and the three gradients.
fn convolution(case: &Case, device: Device, dtype: DType) -> Result<[Tensor; 4]> {
    manual_seed(3);
    let made = |sizes: &[usize]| Tensor::randn(sizes)?.to(dtype)?.to(device)?.requires_grad_(true);
    let (x, weight, bias) = (made(&case.x)?, made(&case.weight)?, made(&case.weight[..1])?);
    let y = x.conv2d(&weight, (Some(&bias), case.options))?;
    let gradient = Some(Tensor::randn(y.sizes())?.to(dtype)?.to(device)?);
    autograd::backward(&y, BackwardOptions { gradient, ..Default::default() })?;
    let grad = |leaf: Tensor| leaf.grad().expect("a gradient");
    Ok([y.detach(), grad(x), grad(weight), grad(bias)])
}

/// The largest difference, relative to the largest value.
fn difference(a: &Tensor, b: &Tensor) -> f64 {
    let [a, b] = [a, b].map(|tensor| tensor.to(DType::F64).unwrap().to_vec::<f64>().unwrap());
    assert_eq!(a.len(), b.len());
    let largest = b.iter().fold(1e-9, |largest: f64, x| largest.max(x.abs()));
    a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
}

#[test]
fn every_pass_of_every_type_is_that_of_the_host() {
    on_gpu(|| {
        // A real card's TF32 rounding differs.
        cudnn::set_allow_tf32(false);
        each_case(
            [(DType::F32, 2e-6), (DType::F64, 1e-14), (DType::F16, 2e-3), (DType::BF16, 2e-2)],
            |(dtype, tolerance)| -> Result<()> {
                for case in cases() {
                    let host = convolution(&case, Device::Cpu, dtype)?;
                    let device = convolution(&case, Device::cuda(0), dtype)?;
                    for (i, (a, b)) in device.iter().zip(&host).enumerate() {
                        let difference = difference(a, b);
                        assert!(difference <= tolerance, "{dtype} {:?}, tensor {i}: {difference:e}", case.x);
                    }
                }
                Ok(())
            },
        );
        Ok(())
    });
}

#[test]
fn whatever_is_asked_of_the_algorithm() {
    on_gpu(|| {
        let [case, ..] = cases();
        let host = convolution(&case, Device::Cpu, DType::F32)?;
        each_case(
            [(false, true, true), (true, false, true), (true, true, true), (false, false, false)],
            |(benchmark, deterministic, enabled)| -> Result<()> {
                let flags =
                    Flags { benchmark, deterministic, enabled, allow_tf32: false, ..Default::default() };
                // The second time the algorithm is cached.
                for _ in 0..2 {
                    let device = cudnn::flags(flags, || convolution(&case, Device::cuda(0), DType::F32))?;
                    assert!(device.iter().zip(&host).all(|(a, b)| difference(a, b) < 2e-6), "{flags:?}");
                }
                Ok(())
            },
        );
        Ok(())
    });
}

#[test]
fn a_search_tries_as_many_as_it_may() {
    on_gpu(|| {
        // Each tried algorithm runs twice, and the fastest once more; a search by cuDNN itself is not a launch.
        each_case([(1, 3), (2, 5), (10, 1)], |(benchmark_limit, launches)| -> Result<()> {
            let flags = Flags { benchmark: true, benchmark_limit, ..Default::default() };
            let x = Tensor::ones(&[1, 2, 8, 8 + benchmark_limit])?.to(Device::cuda(0))?;
            let weight = Tensor::ones(&[2, 2, 3, 3])?.to(Device::cuda(0))?;
            let before = Machine::current().counters().launches;
            let y = cudnn::flags(flags, || x.conv2d(&weight, None))?;
            assert_eq!(Machine::current().counters().launches - before, launches, "limit {benchmark_limit}");
            assert!(y.to_vec::<f32>()?.iter().all(|sum| *sum == 18.0));
            Ok(())
        });
        Ok(())
    });
}

#[test]
fn it_says_its_version() {
    on_gpu(|| {
        assert!(cudnn::is_available() && cudnn::version().is_some_and(|version| version / 10_000 == 9));
        Ok(())
    });
}
