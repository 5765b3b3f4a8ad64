//! What a machine's libraries may trade for speed; `backends` says what each flag does.

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
    /// Whether cuDNN is used. If not, a convolution is a copy and a product of matrices, by kernels of this crate.
    pub enabled: bool,
    /// Whether the first convolution of a kind tries out the algorithms, and later ones take the fastest. If not, a
    /// rule of thumb picks one.
    pub benchmark: bool,
    /// Whether only algorithms that give the same bits in every run are taken.
    pub deterministic: bool,
    /// Whether a GPU with tensor cores for it may round f32 operands to TF32.
    pub allow_tf32: bool,
    /// How many algorithms benchmark mode tries; 0 means all.
    pub benchmark_limit: usize,
}

impl Default for Flags {
    /// PyTorch's.
    fn default() -> Flags {
        Flags { enabled: true, benchmark: false, deterministic: false, allow_tf32: true, benchmark_limit: 10 }
    }
}

/// How exact products of f32 matrices are to be (`torch.set_float32_matmul_precision`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Float32MatmulPrecision {
    /// Operands have all 24 significant bits of f32.
    #[default]
    Highest,
    /// They may be rounded to TF32, which has 11.
    High,
    /// They may be rounded further, to bf16; cuBLAS takes TF32 all the same.
    Medium,
}
