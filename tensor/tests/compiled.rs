//! Kernels that the program compiles itself: on a simulated GPU with an interpreter, and on NVIDIA's driver. Its
//! libraries are stand-ins, which compile the text for the host. With a GPU: `TEST_GPU=real`.

use crate::each_case::each_case;
use std::sync::Arc;

use todevice::errors::KernelError;
use todevice::prelude::*;
use todevice::{Machine, RaceCheck, cuda};
use todevice_gpu::base::compiled::{CompiledLaunch, KernelSource, Passed};
use todevice_gpu::contract::driver::{DriverError, DriverResult};
use todevice_gpu::contract::interpreter::{InterpretedKernel, KernelInterpreter, Region, RunCost};

const TEXT: &str = r#"
// y = scale · x²
extern "C" __global__ void scaled_square(const float *x, float *y, int n, float scale) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = scale * (x[i] * x[i]);
    }
}
"#;

fn on_stand_ins() -> bool {
    std::env::var_os("TEST_GPU").is_some()
}

#[test]
#[cfg(target_os = "linux")]
fn of_the_stand_ins() {
    if on_stand_ins() {
        return; // This is the child process.
    }
    let stand_ins = crate::stand_ins::stand_ins(cuda::kernel_signatures);
    let mut this = std::process::Command::new(std::env::current_exe().unwrap());
    let output = stand_ins.on(&mut this).arg("compiled::").env("TEST_GPU", "real").output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("10 passed"));
}

/// Compiles any text to the same kernel, unless it contains an error.
struct Interpreter;

struct ScaledSquare;

impl KernelInterpreter for Interpreter {
    fn compile(&self, source: &KernelSource<'_>) -> std::result::Result<Arc<dyn InterpretedKernel>, String> {
        match source.text.contains("error here") {
            true => Err("scaled_square.cu:1:1: error: `error` is unknown".to_owned()),
            false => Ok(Arc::new(ScaledSquare)),
        }
    }
}

impl InterpretedKernel for ScaledSquare {
    fn refuses(&self, launch: &CompiledLaunch) -> Option<String> {
        let is_empty = launch.blocks() * launch.threads() == 0;
        (is_empty || launch.threads() > 1024).then(|| format!("{} threads a block", launch.threads()))
    }

    fn run(&self, launch: &CompiledLaunch, memory: &mut [Region]) -> DriverResult<RunCost> {
        let [Passed::Memory { pointer: x, .. }, Passed::Memory { pointer: y, .. }, n, scale] =
            launch.arguments[..]
        else {
            panic!("two tensors and two numbers")
        };
        let bytes = |number| match number {
            Passed::Number(bytes) => [bytes[0], bytes[1], bytes[2], bytes[3]],
            Passed::Memory { .. } => panic!("a number"),
        };
        let (n, scale) = (i32::from_le_bytes(bytes(n)), f32::from_le_bytes(bytes(scale)));
        for i in 0..n as u64 {
            let value = f32::from_le_bytes(four(memory, x.0 + 4 * i)?.try_into().unwrap());
            four(memory, y.0 + 4 * i)?.copy_from_slice(&(scale * (value * value)).to_le_bytes());
        }
        Ok(RunCost { nanoseconds: 1000 + n as u64, bytes: 8 * n as u64 })
    }
}

fn four(memory: &mut [Region], address: u64) -> DriverResult<&mut [u8]> {
    let inside = |region: &&mut Region| {
        address.checked_sub(region.address).is_some_and(|at| at + 4 <= region.bytes.len() as u64)
    };
    let region = memory.iter_mut().find(inside).ok_or(DriverError {
        code: 700,
        name: "cudaErrorIllegalAddress",
        message: "an illegal memory access was encountered",
        detail: Some("scaled_square.cu:5:9".to_owned()),
    })?;
    let at = (address - region.address) as usize;
    Ok(&mut region.bytes[at..at + 4])
}

/// Runs a test on a machine with this many GPUs.
fn on(gpu: &str, test: impl FnOnce() -> Result<()>) {
    let machine: Machine = if on_stand_ins() { "real" } else { gpu }.parse().unwrap();
    machine
        .enter(|| {
            cuda::set_kernel_interpreter(Arc::new(Interpreter))?;
            test()
        })
        .unwrap();
}

fn compiled() -> Result<cuda::CompiledKernel> {
    cuda::compile_kernel(TEXT, "scaled_square")
}

fn gpu() -> Device {
    Device::cuda(0)
}

#[test]
fn a_kernel_computes_with_tensors_and_numbers_in_the_types_of_its_parameters() {
    on("sim:t4", || {
        let kernel = compiled()?;
        each_case([1_usize, 2, 3, 255, 256, 257, 10_000], |n| -> Result<()> {
            let numbers: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let x = Tensor::from_slice(&numbers, &[n])?.to(gpu())?;
            let y = x.zeros_like()?;
            kernel.launch(n.div_ceil(256), 256, 0, (&x, &y, n, 0.5))?;
            let expected: Vec<f32> = (0..n).map(|i| 0.5 * (i as f32 * i as f32)).collect();
            assert_eq!(y.to_vec::<f32>()?, expected);
            // In place, and on a part: the rest stays.
            kernel.launch((2, 1, 1), 32, 0, (&x, &x.narrow(0, 0, 1)?, 1, 8_i64))?;
            assert_eq!(x.to_vec::<f32>()?[1..], numbers[1..]);
            Ok(())
        });
        Ok(())
    });
}

#[test]
fn a_launch_is_queued_like_others_and_counted() {
    on("sim:t4", || {
        let kernel = compiled()?;
        let machine = Machine::current();
        let (done, trace) = machine.profile(|| {
            let x = Tensor::ones((&[1 << 20], gpu()))?;
            let y = (&x + 1.0)?;
            kernel.launch(4096, 256, 0, (&y, &x, 1 << 20, 1.0))?;
            assert_eq!(x.sum()?.item()?, 4.0 * f64::from(1 << 20));
            Ok::<(), Error>(())
        });
        done?;
        let kernels = trace.kernels(0);
        let names: Vec<&str> = kernels.iter().map(|kernel| &*kernel.name).collect();
        assert_eq!(names[..3], ["fill_f32", "add_f32", "scaled_square"]);
        assert_eq!(kernels[2].operation, "scaled_square");
        assert!(on_stand_ins() || kernels[2].time.unwrap().as_nanos() == 1000 + (1 << 20));
        Ok(())
    });
}

#[test]
fn a_write_of_a_kernel_is_one_that_autograd_sees() {
    on("sim:t4", || {
        let x = Tensor::ones((&[4], gpu()))?.requires_grad_(true)?;
        let y = x.mul(2.0)?;
        let loss = y.square()?.sum()?;
        compiled()?.launch(1, 32, 0, (&y, &y.detach(), 4, 1.0))?;
        let error = loss.backward().unwrap_err().to_string();
        assert!(error.contains("modified by an inplace operation"), "{error}");
        Ok(())
    });
}

#[test]
fn an_argument_that_does_not_fit_is_refused_in_one_line() {
    on("sim:t4", || {
        let kernel = compiled()?;
        let x = Tensor::ones((&[4, 4], gpu()))?;
        let refused = |result: Result<()>, line: &str| assert_eq!(result.unwrap_err().to_string(), line);
        refused(kernel.launch(1, 32, 0, (&x, &x, 16)), "scaled_square() takes 4 arguments but 3 were given");
        refused(
            kernel.launch(1, 32, 0, (&x, &Tensor::ones(&[4])?, 16, 1.0)),
            "All tensor arguments must be CUDA tensors: argument 1 of scaled_square(), `float *y`, is on cpu",
        );
        refused(
            kernel.launch(1, 32, 0, (&x.t()?, &x, 16, 1.0)),
            "input is not contiguous: argument 0 of scaled_square(), `const float *x`, is a view with gaps \
             or in another order, which a pointer cannot express: pass x.contiguous()?",
        );
        refused(
            kernel.launch(1, 32, 0, (&x.to(todevice::DType::F64)?, &x, 16, 1.0)),
            "expected scalar type Float but found Double: argument 0 of scaled_square(), `const float *x`",
        );
        refused(
            kernel.launch(1, 32, 0, (&x, &x, 1.5, 1.0)),
            "Unsupported argument type: argument 2 of scaled_square() is the number 1.5, and its parameter is `int n`",
        );
        refused(
            kernel.launch(1, 32, 0, (&x, 16, 16, 1.0)),
            "Unsupported argument type: argument 1 of scaled_square() is the number 16, and its parameter is `float *y`",
        );
        refused(
            kernel.launch(1, 32, 0, (&x, &x, &x, 1.0)),
            "Unsupported argument type: argument 2 of scaled_square() is a tensor of sizes [4, 4], and its parameter \
             is `int n`",
        );
        refused(
            kernel.launch(1, 32, 0, (&x, &x, 1_i64 << 31, 1.0)),
            "value cannot be converted to type int n without overflow: argument 2 of scaled_square() is 2147483648",
        );
        refused(
            kernel.launch(1, 32, 50_000, (&x, &x, 16, 1.0)),
            "Kernel requires 50000 bytes of shared memory, but a block of scaled_square() can have at most 49152: this crate does not configure more",
        );
        each_case([(0, 32), (1, 0), (1, 2000), (-1, 32)], |(grid, block)| {
            let error = kernel.launch(grid, block, 0, (&x, &x, 16, 1.0)).unwrap_err().to_string();
            assert!(error.starts_with("CUDA error: invalid argument"), "{grid} {block}: {error}");
        });
        // None of these was launched.
        assert_eq!(x.to_vec::<f32>()?, [1.0; 16]);
        Ok(())
    });
}

#[test]
fn a_text_that_is_no_kernel_is_refused() {
    on("sim:t4", || {
        let error = cuda::compile_kernel(TEXT, "squar").err().unwrap();
        assert!(matches!(error.refusal(), Some(KernelError::NoSuchKernel { .. })));
        let message =
            "named symbol not found: the source has no __global__ function `squar`; it has `scaled_square`";
        assert_eq!(error.to_string(), message);
        let wrong = TEXT.replace("y[i] =", "error here");
        let error = cuda::compile_kernel(&wrong, "scaled_square").err().unwrap().to_string();
        assert!(error.starts_with("compile_kernel: Kernel compilation failed: "), "{error}");
        assert!(error.contains("scaled_square.cu:") && error.contains("error: "), "{error}");
        Ok(())
    });
}

#[test]
fn a_macro_that_hides_a_type_is_noticed_before_a_launch_reads_too_far() {
    on("sim:t4", || {
        let hidden = format!("#define float double\n{TEXT}");
        let kernel = cuda::compile_kernel(&hidden, "scaled_square");
        if on_stand_ins() {
            let error = kernel.err().unwrap().to_string();
            assert!(error.contains("the parameters cannot be read"), "{error}");
        }
        Ok(())
    });
}

#[test]
fn an_illegal_access_comes_late_and_stays() {
    if on_stand_ins() {
        return; // There it would be one of this process.
    }
    on("sim:t4", || {
        let x = Tensor::ones((&[4], gpu()))?;
        compiled()?.launch(1, 32, 0, (&x, &x, 5, 1.0))?;
        for _ in 0..2 {
            let error = cuda::synchronize().unwrap_err().to_string();
            let first = "CUDA error: an illegal memory access was encountered (scaled_square.cu:5:9)\n";
            assert!(error.starts_with(first), "{error}");
        }
        Ok(())
    });
}

#[test]
fn a_race_with_another_stream_names_the_kernel() {
    if on_stand_ins() {
        return; // It finds no races.
    }
    on("sim:t4", || {
        Machine::current().set_race_check(RaceCheck::Ignore);
        let kernel = compiled()?;
        let [x, y] = [(); 2].map(|()| Tensor::ones((&[1 << 20], gpu())).unwrap());
        cuda::synchronize()?;
        let races = || Machine::current().races().len();
        let side = cuda::Stream::new(gpu())?;
        // Both read x.
        kernel.launch(64, 256, 0, (&x, &y, 1 << 20, 1.0))?;
        let z = cuda::stream(&side, || x.add(1.0))?;
        assert_eq!(races(), 0);
        cuda::stream(&side, || kernel.launch(64, 256, 0, (&z, &y, 1 << 20, 1.0)))?;
        assert_eq!(races(), 1);
        let race = &Machine::current().races()[0];
        assert!(race.operations.iter().all(|side| side.operation == "scaled_square"), "{race:?}");
        assert!(race.operations[1].place.unwrap().file().ends_with("compiled.rs"));
        Ok(())
    });
}

#[test]
fn a_kernel_stays_on_its_device_and_a_simulated_gpu_needs_an_interpreter() {
    if on_stand_ins() {
        return;
    }
    on("sim:t4x2", || {
        let kernel = cuda::device(1, compiled)??;
        let x = Tensor::ones((&[4], gpu()))?;
        assert_eq!(
            kernel.launch(1, 32, 0, (&x, &x, 4, 1.0)).unwrap_err().to_string(),
            "Expected all tensors to be on the same device as their kernel: scaled_square() was compiled for cuda:1, \
             and its argument 0, `const float *x`, is on cuda:0"
        );
        let y = Tensor::full(&[4], (3.0, Device::cuda(1)))?;
        kernel.launch(1, 32, 0, (&y, &y, 4, 1.0))?;
        assert_eq!(y.to_vec::<f32>()?, [9.0; 4]);
        Ok(())
    });
    let without: Machine = "sim:t4".parse().unwrap();
    assert_eq!(
        without.enter(compiled).err().unwrap().to_string(),
        "compile_kernel: a simulated GPU has no compiler; lab-12 includes one, and --gpu real uses NVIDIA's"
    );
    let error = Machine::new().enter(compiled).err().unwrap().to_string();
    assert!(error.starts_with("Found no NVIDIA driver on your system."), "{error}");
}
