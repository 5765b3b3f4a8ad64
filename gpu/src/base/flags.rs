//! Flags for the trade-offs that a machine's libraries may make for speed; `backends` describes each of them.

/// The flags of a machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backends {
    pub cudnn: Flags,
    pub matmul_precision: Float32MatmulPrecision,
    pub deterministic_algorithms: bool,
}

/// All flags of cuDNN, for `flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// Whether cuDNN is used. If not, a convolution is a copy and a matrix product, by kernels of this crate.
    pub enabled: bool,
    /// Whether the first convolution of a kind tries out the algorithms, and later ones use the fastest. If not, a
    /// heuristic picks one.
    pub benchmark: bool,
    /// Whether only algorithms are used that give the same bits in every run.
    pub deterministic: bool,
    /// Whether a GPU with tensor cores for TF32 may round f32 operands to it.
    pub allow_tf32: bool,
    /// How many algorithms benchmark mode tries; 0 means all.
    pub benchmark_limit: usize,
}

impl Default for Flags {
    /// PyTorch's defaults.
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
    /// Operands may be rounded further, to bf16; cuBLAS uses TF32 all the same.
    Medium,
}
