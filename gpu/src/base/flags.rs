//! Flags for the speed trade-offs of a machine's libraries. `backends` describes them.

#[derive(Clone, Copy, Debug, Default)]
pub struct Backends {
    pub cudnn: Flags,
    pub matmul_precision: Float32MatmulPrecision,
    pub deterministic_algorithms: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// Whether to use cuDNN. Otherwise a convolution is a copy and a matrix product, by kernels of this crate.
    pub enabled: bool,
    /// Whether the first convolution of a kind times the algorithms, instead of a heuristic's choice.
    pub benchmark: bool,
    /// Whether to use only algorithms with the same bits in every run.
    pub deterministic: bool,
    /// Whether a GPU with TF32 tensor cores may round f32 operands to TF32.
    pub allow_tf32: bool,
    /// The number of algorithms that benchmark mode times. 0 means all.
    pub benchmark_limit: usize,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags { enabled: true, benchmark: false, deterministic: false, allow_tf32: true, benchmark_limit: 10 }
    }
}

/// The precision of f32 matrix products (`torch.set_float32_matmul_precision`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Float32MatmulPrecision {
    /// Operands keep all 24 significant bits of f32.
    #[default]
    Highest,
    /// Operands may be rounded to TF32, which has 11 significant bits.
    High,
    /// Operands may be rounded to bf16. cuBLAS still uses TF32.
    Medium,
}
