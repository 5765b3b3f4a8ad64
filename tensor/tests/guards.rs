//! Repeats the sweep on the real-GPU driver with the CUDA C++ kernels. No GPU is needed: NVIDIA's libraries are
//! stand-ins that run the kernels on the host. Each tensor is next to a guard page, so accesses outside of tensors are
//! found too; with a GPU, `compute-sanitizer` does the same with `TEST_GPU=real TEST_UNCACHED=1`.

use std::path::Path;
use std::process::{Command, Output};

use crate::cuda_sweep::on_gpu;
use crate::stand_ins::fake_cuda::compile;
use crate::stand_ins::stand_ins;
use todevice::cuda::kernel_signatures;
use todevice::f16;
use todevice::prelude::*;

/// Runs tests of this binary on the stand-ins, with guards, and with these kernels if given.
fn guarded(tests: &[&str], kernels: Option<&Path>) -> Output {
    let mut this = Command::new(std::env::current_exe().unwrap());
    // `TEST_SWEEP=whole` uses all sizes here too.
    let sweep = std::env::var("TEST_SWEEP").unwrap_or("short".to_owned());
    stand_ins(kernel_signatures).on(&mut this).args(tests).envs([
        ("TEST_GPU", "real"),
        ("TEST_SWEEP", &sweep),
        ("TEST_UNCACHED", "1"),
        ("FAKE_CUDA_GUARD", "1"),
    ]);
    if let Some(kernels) = kernels {
        this.env("FAKE_CUDA_KERNELS", kernels);
    }
    this.output().unwrap()
}

#[test]
#[ignore = "the stand-ins take half a minute of both cores: .ci/run has it"]
fn all_of_the_sweep_holds_for_real_gpus_and_no_kernel_reads_or_writes_outside_its_tensors() {
    if std::env::var_os("TEST_GPU").is_some() {
        return; // This is the child process.
    }
    // The list of kernels is that of a simulated GPU.
    let output = guarded(&["cuda_sweep::", "--skip", "the_list_of_kernels"], None);
    let (said, ran) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}{ran}");
    assert!(ran.contains("cuda_sweep::operations_on_one_tensor_are_those_of_the_cpu ... ok"), "{ran}");
}

/// A kernel that goes one element too far.
#[test]
fn a_kernel_that_does_is_found() {
    if std::env::var_os("TEST_GPU").is_some() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("planted-{}", std::process::id()));
    let text = |name| {
        let files = kernels::SOURCES.iter().chain(kernels::HEADERS);
        files.into_iter().find(|file| file.name == name).unwrap().text
    };
    let loops = text("elementwise.cuh");
    let too_far = loops.replace("i < n; i +=", "i <= n; i +=");
    assert!(too_far != loops);
    let source = text("elementwise/by_number.cu").replace("#include \"elementwise.cuh\"", &too_far);
    let source = kernels::Source { name: "elementwise/by_number.cu", text: source.leak() };
    let signatures: Vec<_> =
        kernel_signatures().into_iter().filter(|(symbol, _)| symbol.contains("_number_")).collect();
    let planted = compile(&folder, &[source], &signatures).unwrap();

    let doubled = ["guards::halves_are_doubled", "--exact", "--include-ignored", "--test-threads", "1"];
    assert!(guarded(&doubled, None).status.success());
    let output = guarded(&doubled, Some(&planted));
    std::fs::remove_dir_all(folder).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "mul_number_f16 reads or writes after the end of an allocation\n");
    assert!(!output.status.success());
}

/// Work for a single kernel.
#[test]
#[ignore = "a_kernel_that_does_is_found runs it"]
fn halves_are_doubled() -> Result<()> {
    on_gpu(|| {
        for size in 1..40 {
            let x = Tensor::from_slice(&vec![f16::ONE; size], &[size])?.to(Device::cuda(0))?;
            assert_eq!(x.mul(2.0)?.to_vec::<f16>()?, vec![f16::from_f32(2.0); size]);
        }
        Ok(())
    })
}
