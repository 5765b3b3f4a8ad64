use crate::dtype::DType;
use crate::error::Refusal;

/// An error of a product of matrices or vectors.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum MatmulError {
    #[error("both arguments to {operation} need to be at least 1D, but they are {a}D and {b}D")]
    Dims { operation: &'static str, a: usize, b: usize },
    #[error("mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})", .a[0], .a[1], .b[0], .b[1])]
    Shapes { a: [usize; 2], b: [usize; 2] },
    #[error("Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].", .expected[0], .expected[1], .got[0], .got[1])]
    BmmShapes { expected: [usize; 2], got: [usize; 2] },
    #[error(
        "inconsistent tensor size, expected tensor [{a}] and src [{b}] to have the same number of elements, but got {a} and {b} elements respectively"
    )]
    DotSizes { a: usize, b: usize },
    #[error("size mismatch, got input ({}), mat ({}x{}), vec ({vec})", .mat[0], .mat[0], .mat[1])]
    MvSizes { mat: [usize; 2], vec: usize },
    #[error("{argument} must be a matrix")]
    NotAMatrix { argument: &'static str },
    #[error("{argument} must be a 3D tensor")]
    NotABatch { argument: &'static str },
    #[error("{argument} must be a matrix, got 1-D tensor")]
    VectorForMatrix { argument: &'static str },
    #[error("expected m1 and m2 to have the same dtype, but got: {} != {}", .a.cpp_name(), .b.cpp_name())]
    DTypes { a: DType, b: DType },
    #[error("dot : expected both vectors to have same dtype, but found {} and {}", .a.scalar_type(), .b.scalar_type())]
    DotDTypes { a: DType, b: DType },
    #[error("{argument} and mat2 must have the same dtype, but got {} and {}", .a.scalar_type(), .b.scalar_type())]
    LinearDTypes { argument: &'static str, a: DType, b: DType },
}

todevice_gpu::debug_is_message!(MatmulError);

impl Refusal for MatmulError {}
