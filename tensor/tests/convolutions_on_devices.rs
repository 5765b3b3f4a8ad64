//! Convolutions on a simulated GPU: the choice of algorithm, its cost, and its guarantees.

use crate::each_case::each_case;
use todevice::autograd::{self, BackwardOptions};
use todevice::backends::cudnn::{self, Flags};
use todevice::{
    Conv2dOptions, DType, Device, Machine, Result, Tensor, cuda, manual_seed, use_deterministic_algorithms,
};

fn on(machine: &str, test: fn() -> Result<()>) {
    let machine: Machine = machine.parse().unwrap();
    machine.enter(|| test().unwrap());
}

/// y and the gradients of x and the weight.
fn convolution(device: Device, dtype: DType, sizes: [usize; 4], k: usize) -> Result<[Tensor; 3]> {
    manual_seed(1);
    let to = |tensor: Tensor| tensor.to(dtype)?.to(device);
    let x = to(Tensor::randn(&sizes)?)?.requires_grad_(true)?;
    let weight = to(Tensor::randn(&[k, sizes[1], 3, 3])?)?.requires_grad_(true)?;
    let y = x.conv2d(&weight, (None, Conv2dOptions { padding: 1.into(), ..Default::default() }))?;
    let gradient = Some(to(Tensor::randn(y.sizes())?)?);
    autograd::backward(&y, BackwardOptions { gradient, ..Default::default() })?;
    Ok([y.detach(), x.grad().expect("a gradient"), weight.grad().expect("a gradient")])
}

fn bits(tensors: &[Tensor; 3]) -> [Vec<u64>; 3] {
    tensors.each_ref().map(|tensor| {
        tensor.to(DType::F64).unwrap().to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
    })
}

/// The largest difference, relative to the largest value.
fn difference(a: &Tensor, b: &Tensor) -> f64 {
    let [a, b] = [a, b].map(|tensor| tensor.to(DType::F64).unwrap().to_vec::<f64>().unwrap());
    let largest = b.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest
}

fn gpu() -> Device {
    Device::cuda(0)
}

#[test]
fn whatever_computes_them_they_are_those_of_the_host() {
    on("sim:rtx4090", || {
        each_case(
            [(DType::F64, 1e-13), (DType::F32, 3e-6), (DType::F16, 2e-3), (DType::BF16, 2e-2)],
            |(dtype, tolerance)| -> Result<()> {
                for sizes in [[2, 3, 8, 8], [3, 70, 5, 6]] {
                    let host = convolution(Device::Cpu, dtype, sizes, 65)?;
                    for enabled in [true, false] {
                        for benchmark in [true, false] {
                            let flags = Flags { enabled, benchmark, allow_tf32: false, ..Default::default() };
                            let device = cudnn::flags(flags, || convolution(gpu(), dtype, sizes, 65))?;
                            for (a, b) in device.iter().zip(&host) {
                                let difference = difference(a, b);
                                assert!(
                                    difference < tolerance,
                                    "{dtype} {sizes:?} {flags:?}: {difference:e}"
                                );
                            }
                        }
                    }
                }
                Ok(())
            },
        );
        Ok(())
    });
}

#[test]
fn tf32_is_the_default_of_convolutions_where_a_card_has_it() {
    fn error() -> Result<f64> {
        let exact = convolution(Device::Cpu, DType::F64, [4, 16, 8, 8], 16)?;
        Ok(difference(&convolution(gpu(), DType::F32, [4, 16, 8, 8], 16)?[0], &exact[0]))
    }
    on("sim:rtx4090", || {
        let rough = error()?;
        cudnn::set_allow_tf32(false);
        let exact = error()?;
        assert!((3e-5..3e-3).contains(&rough) && exact < 1e-6, "{rough:e} {exact:e}");
        Ok(())
    });
    on("sim:t4", || {
        assert!(error()? < 1e-6);
        Ok(())
    });
}

#[test]
fn the_gradient_of_a_small_weight_comes_in_disorder_unless_order_is_asked_for() {
    on("sim:t4", || {
        let twice = || -> Result<[[Vec<u64>; 3]; 2]> {
            let run = || convolution(gpu(), DType::F32, [16, 3, 16, 16], 8);
            Ok([bits(&run()?), bits(&run()?)])
        };
        let [first, second] = twice()?;
        assert_eq!(first[..2], second[..2]);
        assert_ne!(first[2], second[2]);
        cudnn::set_deterministic(true);
        let [first, second] = twice()?;
        assert_eq!(first, second);
        cudnn::set_deterministic(false);
        use_deterministic_algorithms(true);
        let [again, _] = twice()?;
        assert_eq!(first, again);
        // Without cuDNN everything is deterministic.
        use_deterministic_algorithms(false);
        cudnn::set_enabled(false);
        let [first, second] = twice()?;
        assert_eq!(first, second);
        Ok(())
    });
    // The nondeterminism is the same in every run of a program, since the machine is simulated.
    let program = || {
        let machine: Machine = "sim:t4".parse().unwrap();
        machine.enter(|| bits(&convolution(gpu(), DType::F32, [16, 3, 16, 16], 8).unwrap()))
    };
    assert_eq!(program(), program());
}

/// The launches and peak memory in bytes of a convolution without gradients.
fn cost(sizes: [usize; 4], k: usize) -> Result<(u64, u64)> {
    let x = Tensor::ones((&sizes, gpu()))?;
    let weight = Tensor::ones((&[k, sizes[1], 3, 3], gpu()))?;
    cuda::reset_peak_memory_stats();
    let before = Machine::current().counters().launches;
    x.conv2d(&weight, (None, Conv2dOptions { padding: 1.into(), ..Default::default() }))?;
    cuda::synchronize()?;
    Ok((Machine::current().counters().launches - before, cuda::max_memory_allocated()))
}

#[test]
fn benchmark_mode_pays_once_for_each_kind() {
    on("sim:t4", || {
        let sizes = [64, 3, 32, 32];
        let (once, three_twice_and_the_best) = (1, 7);
        let plain = cost(sizes, 32)?;
        assert_eq!(plain, (once, cost(sizes, 32)?.1));
        cudnn::set_benchmark(true);
        let first = cost(sizes, 32)?;
        let second = cost(sizes, 32)?;
        assert_eq!((first.0, second.0), (three_twice_and_the_best, once));
        // The algorithm with the largest workspace was tried, but not chosen.
        assert!(first.1 > 3 * second.1, "{first:?} {second:?}");
        // A smaller last batch is a different configuration.
        assert_eq!(cost([63, 3, 32, 32], 32)?.0, three_twice_and_the_best);
        assert_eq!(cost(sizes, 32)?, second);
        // So are other flags: a cached algorithm may not be allowed.
        cudnn::set_deterministic(true);
        assert_eq!(cost(sizes, 32)?.0, three_twice_and_the_best);
        cudnn::set_benchmark_limit(1);
        assert_eq!(cost([62, 3, 32, 32], 32)?.0, 3);
        Ok(())
    });
}

#[test]
fn the_fastest_is_faster_than_the_rule_of_thumb_or_the_same() {
    on("sim:t4", || {
        let mut better = 0;
        each_case(
            [([4, 16, 32, 32], 64), ([4, 64, 28, 28], 64), ([2, 128, 14, 14], 32), ([8, 3, 32, 32], 32)],
            |(sizes, k)| -> Result<()> {
                let time = |benchmark: bool| -> Result<f64> {
                    cudnn::set_benchmark(benchmark);
                    convolution(gpu(), DType::F32, sizes, k)?;
                    cuda::synchronize()?;
                    let (result, trace) =
                        Machine::current().profile(|| convolution(gpu(), DType::F32, sizes, k));
                    result?;
                    Ok(trace.compute_time(0).as_secs_f64())
                };
                let (thumb, found) = (time(false)?, time(true)?);
                assert!(found <= thumb, "{sizes:?}: {found} > {thumb}");
                better += usize::from(found < thumb);
                Ok(())
            },
        );
        assert!(better > 0);
        Ok(())
    });
}

#[test]
fn an_algorithm_whose_memory_is_not_to_be_had_is_passed_over() {
    // Room for the tensors, but not for the columns of an explicit GEMM.
    on("sim:t4,mem=300MiB", || {
        cudnn::set_benchmark(true);
        let y = convolution(gpu(), DType::F32, [8, 64, 32, 32], 8)?;
        assert_eq!(y[0].sizes(), [8, 8, 32, 32]);
        Ok(())
    });
}

#[test]
fn an_algorithm_whose_memory_is_gone_makes_way_for_another() {
    on("sim:t4", || {
        let x = Tensor::ones((&[4, 64, 16, 16], gpu()))?;
        let weight = Tensor::ones((&[64, 64, 3, 3], gpu()))?;
        let chosen = || -> Result<Vec<(String, bool)>> {
            let options = Conv2dOptions { padding: 1.into(), ..Default::default() };
            let (y, trace) = Machine::current().profile(|| x.conv2d(&weight, (None, options)));
            assert_eq!(y?.to_vec::<f32>()?[0], 4.0 * 64.0, "a corner sees four of nine");
            Ok(trace.kernels(0).into_iter().map(|kernel| (kernel.name, kernel.workspace > 1 << 20)).collect())
        };
        let hungry = vec![("conv_forward WINOGRAD_NONFUSED".to_owned(), true)];
        let frugal = vec![("conv_forward IMPLICIT_PRECOMP_GEMM".to_owned(), false)];
        assert_eq!((chosen()?, chosen()?), (hungry.clone(), hungry));
        // The reserved memory, without an additional segment.
        cuda::empty_cache()?;
        let (_, total) = cuda::mem_get_info()?;
        let share = (cuda::memory_reserved() + (4 << 20)) as f64 / total as f64;
        cuda::set_per_process_memory_fraction(share)?;
        assert_eq!((chosen()?, chosen()?), (frugal.clone(), frugal));
        Ok(())
    });
}

/// As in PyTorch: the largest workspace is returned to the driver.
#[test]
fn a_search_gives_its_memory_back() {
    on("sim:rtx4090", || {
        convolution(gpu(), DType::F32, [16, 32, 16, 16], 32)?; // for the memory kept by cuBLAS and cuDNN
        let before = cuda::memory_reserved();
        let flags = Flags { benchmark: true, ..Default::default() };
        cudnn::flags(flags, || convolution(gpu(), DType::F32, [16, 32, 16, 16], 32))?;
        assert!(cuda::max_memory_reserved() > before, "{before}");
        assert!(cuda::memory_reserved() <= before, "{} {before}", cuda::memory_reserved());
        Ok(())
    });
}

#[test]
fn a_host_has_no_cudnn_and_a_simulated_gpu_says_its_version() {
    on("none", || {
        assert!(!cudnn::is_available() && cudnn::version().is_none());
        Ok(())
    });
    on("sim:t4", || {
        assert!(cudnn::is_available() && cudnn::version() == Some(91_900));
        Ok(())
    });
}
