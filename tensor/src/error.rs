//! Errors in PyTorch's words. The first line of a message is PyTorch's, so that a web search finds the same answers.
//! Further lines add details such as the call site.

mod device_mismatch;
pub(crate) mod distributed;

pub use device_mismatch::{DeviceMismatch, Forgetful, MismatchedTensor, Unlisted};
pub use distributed::RankError;
pub use todevice_gpu::base::error::{
    GpuError, LayoutError, OutOfMemory, Race, RaceKind, RacingAccess, RacingOperation, RacingWorker,
};

use crate::device::DeviceType;
use crate::dtype::DType;
use crate::kernel::TwinError;
use crate::topology::UnknownLink;
use distributed::DistributedError;

/// The result of every fallible call, operators included.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A family of errors, beside its operations. Each variant is one mistake of a user, not one place in the source.
pub trait Refusal: std::error::Error + Send + Sync + 'static {
    /// Returns the class of PyTorch's exception.
    fn kind(&self) -> &'static str {
        "RuntimeError"
    }

    /// Returns the cause, if this error only adds where it occurred. Its message must end with the cause's message.
    fn inner(&self) -> Option<&Error> {
        None
    }
}

/// An error of a tensor operation, a module, an optimizer or a data loader.
///
/// The data of each variant is boxed, so that a `Result<Tensor>` has two words: every `?` moves one.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Arguments that an operation, module, optimizer or loader rejects; [`refusal`](Self::refusal) returns the reason.
    #[error("{0}")]
    Refused(Box<Box<dyn Refusal>>),
    /// Tensors on different devices: GPU0001, the golden rule.
    #[error("{0}")]
    DeviceMismatch(Box<DeviceMismatch>),
    /// An error of the user's code, such as a missing dataset file or a failed callback.
    #[error("{0}")]
    Custom(Box<String>),
    /// An error in a shape or a memory layout.
    #[error(transparent)]
    Layout(Box<LayoutError>),
    /// An error of a GPU, its driver or its memory.
    #[error(transparent)]
    Gpu(Box<GpuError>),
    /// An error after part of the work was done.
    #[error("{0}")]
    HalfDone(Box<HalfDone>),
    /// An error that ended a rank's program.
    #[error("{0}")]
    Rank(Box<RankError>),
}

/// Writes the full report, for `unwrap` and for a `main` that returns a `Result`.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.report())
    }
}

/// An error, and the work that was done before it and not undone.
pub struct HalfDone {
    /// The error.
    pub cause: Error,
    /// The number of processed parameters.
    pub done: usize,
    /// The number of all parameters.
    pub of: usize,
    /// A description of the work done, and advice.
    pub what: &'static str,
}

impl HalfDone {
    /// Wraps `cause` with the work done before it, if any.
    pub(crate) fn after(done: usize, of: usize, what: &'static str) -> impl FnOnce(Error) -> Error {
        move |cause| match done {
            0 => cause,
            _ => Error::HalfDone(Box::new(HalfDone { cause, done, of, what })),
        }
    }

    fn said_after(&self, cause: String) -> String {
        format!("{cause}\n   = half done: {} of {} {}", self.done, self.of, self.what)
    }
}

todevice_gpu::debug_is_message!(HalfDone);

impl std::fmt::Display for HalfDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.said_after(self.cause.to_string()))
    }
}

impl Error {
    /// Returns the refusal, if it belongs to this family.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// use todevice::errors::AutogradError;
    ///
    /// let loss = Tensor::ones(&[])?.requires_grad_(true)?.exp()?;
    /// loss.backward()?;
    /// let error = loss.backward().unwrap_err();
    /// assert!(matches!(error.refusal(), Some(AutogradError::BackwardTwice)));
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn refusal<R: Refusal>(&self) -> Option<&R> {
        match self {
            Error::Refused(refusal) => {
                let whole = (&***refusal as &dyn std::error::Error).downcast_ref();
                whole.or_else(|| refusal.inner()?.refusal())
            }
            Error::HalfDone(half) => half.cause.refusal(),
            Error::Rank(rank) => rank.cause.refusal(),
            _ => None,
        }
    }

    /// Returns the layout error, if it is one.
    pub fn layout(&self) -> Option<&LayoutError> {
        match self {
            Error::Layout(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the GPU error, if it is one.
    pub fn gpu(&self) -> Option<&GpuError> {
        match self {
            Error::Gpu(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the class of PyTorch's exception.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Refused(refusal) => refusal.kind(),
            Error::Layout(error) if matches!(**error, LayoutError::DimOutOfRange { .. }) => "IndexError",
            Error::HalfDone(half) => half.cause.kind(),
            Error::Rank(rank) => rank.cause.kind(),
            _ => "RuntimeError",
        }
    }

    /// Returns the error's code in the course. Codes never change.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Error::Refused(refusal) => refusal.inner()?.code(),
            Error::DeviceMismatch(_) => Some("GPU0001"),
            Error::Gpu(error) => error.code(),
            Error::HalfDone(half) => half.cause.code(),
            Error::Rank(rank) => rank.cause.code(),
            _ => None,
        }
    }

    /// Returns the full report. For an error with a code, it shows the tensors, their origins and the fix; for any
    /// other error, the message.
    pub fn report(&self) -> String {
        match self {
            Error::Refused(refusal) => match refusal.inner() {
                Some(cause) => {
                    let (whole, said) = (refusal.to_string(), cause.to_string());
                    format!("{}{}", whole.strip_suffix(&said).unwrap_or(&whole), cause.report())
                }
                None => refusal.to_string(),
            },
            Error::DeviceMismatch(mismatch) => mismatch.report(),
            Error::Gpu(error) => error.report(),
            Error::HalfDone(half) => half.said_after(half.cause.report()),
            Error::Rank(rank) => rank.said_after(rank.cause.report()),
            other => other.to_string(),
        }
    }

    /// Creates an error from a message, for datasets, modules and callbacks.
    pub fn custom(message: impl std::fmt::Display) -> Error {
        Error::Custom(Box::new(message.to_string()))
    }
}

impl<R: Refusal> From<R> for Error {
    #[cold]
    fn from(refusal: R) -> Error {
        Error::Refused(Box::new(Box::new(refusal)))
    }
}

// Not inlined: the code of conversions would slow down successful calls.

impl From<LayoutError> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: LayoutError) -> Error {
        Error::Layout(Box::new(error))
    }
}

impl From<GpuError> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: GpuError) -> Error {
        match error {
            GpuError::Meeting(error) => DistributedError::Meeting(*error).into(),
            error => Error::Gpu(Box::new(error)),
        }
    }
}

impl From<UnknownLink> for Error {
    fn from(unknown: UnknownLink) -> Error {
        GpuError::from(unknown).into()
    }
}

/// For datasets, which read files.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::custom(error)
    }
}

impl From<TwinError> for Error {
    fn from(stopped: TwinError) -> Error {
        match stopped {
            TwinError::OutOfHostMemory { bytes } => GpuError::OutOfHostMemory { bytes }.into(),
            // Unboxes the original error, of this crate or of `todevice-gpu`.
            TwinError::Other(cause) => cause
                .downcast::<Error>()
                .map(|error| *error)
                .or_else(|cause| cause.downcast::<LayoutError>().map(Error::Layout))
                .or_else(|cause| cause.downcast::<GpuError>().map(Error::Gpu))
                .unwrap_or_else(Error::custom),
        }
    }
}

impl From<Error> for TwinError {
    fn from(error: Error) -> TwinError {
        match error {
            Error::Gpu(error) if let GpuError::OutOfHostMemory { bytes } = *error => {
                TwinError::OutOfHostMemory { bytes }
            }
            other => TwinError::Other(Box::new(other)),
        }
    }
}

/// An error of a tensor: of its dimensions, its values or its memory.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum TensorError {
    #[error("Dimension specified as {dim} but tensor has no dimensions")]
    NoDimensions { dim: i64 },
    #[error("a Tensor with {numel} elements cannot be converted to Scalar")]
    NotAScalar { numel: usize },
    #[error("item() returns an f64, which cannot represent {value}: read it with to_vec::<i64>()")]
    NoF64 { value: i64 },
    #[error("Boolean value of Tensor with {} is ambiguous", if *.numel == 0 { "no values" } else { "more than one value" })]
    AmbiguousTruth { numel: usize },
    #[error("{got} values cannot fill a tensor of shape {sizes:?}, which holds {expected}")]
    DataLength { got: usize, expected: usize, sizes: Vec<usize> },
    #[error("expected sequence of length {expected} at dim {dim} (got {got})")]
    RaggedData { expected: usize, got: usize, dim: usize },
    #[error(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
    )]
    WriteOverlap,
    #[error(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
    )]
    SourceOverlap,
    #[error("cannot pin 'torch.cuda.{}Tensor' only dense CPU tensors can be pinned", .dtype.scalar_type())]
    PinOnDevice { dtype: DType },
    #[error(
        "Could not run 'aten::record_stream' with arguments from the 'CPU' backend: the memory of the host belongs to no stream"
    )]
    RecordStreamOnHost,
    #[error("{operation}: this machine has reached its limit of operations")]
    NoMoreOperations { operation: &'static str },
}

todevice_gpu::debug_is_message!(TensorError);

impl Refusal for TensorError {
    fn kind(&self) -> &'static str {
        match self {
            TensorError::NoDimensions { .. } => "IndexError",
            _ => "RuntimeError",
        }
    }
}

/// An error of a dtype.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum DTypeError {
    #[error("\"{operation}\" not implemented for '{}'", .dtype.scalar_type())]
    NotImplemented { operation: &'static str, dtype: DType },
    #[error("expected scalar type {} but found {}", .expected.scalar_type(), .got.scalar_type())]
    Expected { expected: DType, got: DType },
    #[error("result type {} can't be cast to the desired output type {}", .result.scalar_type(), .output.scalar_type())]
    InPlaceCast { result: DType, output: DType },
    #[error("this tensor holds {} values, which cannot be read as {}: convert it first, with .to(DType::{:?})", .held.scalar_type(), .asked.scalar_type(), .asked)]
    Read { held: DType, asked: DType },
    #[error(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    )]
    NegateBool,
    #[error("Boolean inputs not supported for relu")]
    ReluBool,
}

todevice_gpu::debug_is_message!(DTypeError);

impl Refusal for DTypeError {}

pub(crate) fn not_implemented(operation: &'static str, dtype: DType) -> Error {
    DTypeError::NotImplemented { operation, dtype }.into()
}

/// PyTorch's name of a tensor type, such as `torch.cuda.FloatTensor`. Some dtypes have no such name.
pub(crate) fn tensor_type((device, dtype): (DeviceType, DType)) -> String {
    let scalar = dtype.scalar_type();
    match (device, dtype) {
        (_, DType::BF16 | DType::Bool) => format!("{}{scalar}Type", device.name().to_ascii_uppercase()),
        (DeviceType::Cpu, _) => format!("torch.{scalar}Tensor"),
        (DeviceType::Cuda, _) => format!("torch.cuda.{scalar}Tensor"),
    }
}
