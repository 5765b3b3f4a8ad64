//! The vector sum of the first example, launched from Rust.

use std::path::PathBuf;

use todevice::prelude::*;
use todevice::{GpuSpec, cuda};

use crate::interpreter;

pub const HELP: &str = "\
Compiles a kernel that adds two vectors, and launches it from Rust.

Usage: cargo run --bin lab-12 -- launch [--gpu GPU]

  --gpu GPU    the GPU to run on: sim:t4, sim:rtx4090, sim:h200, …, or real [default: sim:t4]
  -h, --help   prints this help
";

/// Parses the arguments after `launch`. Returns `None` if help is requested.
pub fn parse(arguments: &[String]) -> std::result::Result<Option<GpuSpec>, String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let gpu = match arguments[..] {
        [] => return Ok(Some(GpuSpec::Auto)),
        ["-h" | "--help", ..] => return Ok(None),
        ["--gpu"] => return Err("`--gpu` needs a value".to_owned()),
        ["--gpu", gpu] => gpu,
        [other] if other.starts_with("--gpu=") => &other["--gpu=".len()..],
        [other, ..] => return Err(format!("`launch` takes `--gpu GPU` and nothing else, not `{other}`")),
    };
    gpu.parse().map(Some).map_err(|error: Error| format!("--gpu: {error}"))
}

/// Launches the kernel. Returns the output and the exit code: 1 if the sums are wrong.
pub fn run(gpu: &GpuSpec) -> Result<(String, u8)> {
    interpreter::with(gpu, "launch.rs", PathBuf::new(), |machine| {
        // ANCHOR: launch
        const ADD: &str = r#"
        __global__ void add(const float *a, const float *b, float *out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) out[i] = a[i] + b[i];
        }"#;

        let gpu = Device::cuda(0);
        let add = cuda::compile_kernel(ADD, "add")?;
        let a = Tensor::arange(0.0, 1000.0, (1.0, gpu))?;
        let b = (&a * 10.0)?;
        let out = a.empty_like()?;

        let (n, threads) = (a.numel(), 256);
        let blocks = n.div_ceil(threads);
        let shared_bytes = 0;
        add.launch(blocks, threads, shared_bytes, (&a, &b, &out, n))?;
        // ANCHOR_END: launch
        let is_right = out.equal(&(&a + &b)?)?;
        let last = out.get(-1)?.item()?;
        let verdict = match is_right {
            true => "All sums have the bits of `&a + &b`.",
            false => "The sums differ from those of `&a + &b`.",
        };
        let output = format!(
            "machine: {machine}\nadd<<<{blocks}, {threads}>>> for {n} elements: the last sum is {last}\n{verdict}\n"
        );
        Ok((output, u8::from(!is_right)))
    })
}
