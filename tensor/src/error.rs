//! Everything that can go wrong, in PyTorch's words.
//!
//! The first line of a message is PyTorch's own text, so that a search for it finds the same answers.
//! What Rust knows beyond it (the place of the call) follows on further lines.

mod device_mismatch;
pub(crate) mod distributed;
pub(crate) mod dtype;
pub(crate) mod tensor;

pub use device_mismatch::{DeviceMismatch, Forgetful, MismatchedTensor, Unlisted};
pub use distributed::RankError;
pub use todevice_gpu::base::error::{
    GpuError, LayoutError, OutOfMemory, Race, RaceKind, RacingAccess, RacingOperation, RacingWorker,
};

use crate::kernel::Stopped;
use distributed::DistributedError;

/// The result of every fallible call of this crate, operators included.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A family of errors: those of one kind of operation or module, beside which it stands.
///
/// Each variant is one mistake a user can make, not one place of the source.
pub trait Refusal: std::error::Error + Send + Sync + 'static {
    /// The class of PyTorch's exception.
    fn kind(&self) -> &'static str {
        "RuntimeError"
    }

    /// The error that this one says the place of, if that is what it does. Its message ends with that of the cause.
    fn inner(&self) -> Option<&Error> {
        None
    }
}

/// An error of a tensor operation, a module, an optimizer or a data loader.
///
/// All that a variant has is behind one pointer, so that a `Result<Tensor>` is two words: each `?` moves one.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation, a module, an optimizer or a loader cannot do what it was asked to:
    /// [`refusal`](Self::refusal) says why.
    #[error("{0}")]
    Refused(Box<Box<dyn Refusal>>),
    /// The golden rule: GPU0001.
    #[error("{0}")]
    DeviceMismatch(Box<DeviceMismatch>),
    /// An error of the user's own: a dataset's file, a callback's failure.
    #[error("{0}")]
    Custom(Box<String>),
    /// An error of a shape, or of the way in which a tensor lies in memory.
    #[error(transparent)]
    Layout(Box<LayoutError>),
    /// An error of a GPU, of its driver or of its memory.
    #[error(transparent)]
    Gpu(Box<GpuError>),
    /// An error that came when part of the work was done.
    #[error("{0}")]
    HalfDone(Box<HalfDone>),
    /// An error that ended the program of a rank.
    #[error("{0}")]
    Rank(Box<RankError>),
}

/// The report. A `main` that returns a `Result`, and `unwrap`, print it.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.report())
    }
}

/// What was done before an error, and is not undone.
pub struct HalfDone {
    /// The error.
    pub cause: Error,
    /// How many parameters it had been done to.
    pub done: usize,
    /// To how many it was to be done.
    pub of: usize,
    /// What was done to them, and what to do now.
    pub what: &'static str,
}

impl HalfDone {
    /// `cause`, if nothing was done before it; else that and what was done.
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

/// The cause's first line stays the first.
impl std::fmt::Display for HalfDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.said_after(self.cause.to_string()))
    }
}

impl Error {
    /// What was refused and why, if the error is of this family.
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

    /// The error of a shape, if it is one.
    pub fn layout(&self) -> Option<&LayoutError> {
        match self {
            Error::Layout(error) => Some(error),
            _ => None,
        }
    }

    /// The error of a GPU, of its driver or of its memory, if it is one.
    pub fn gpu(&self) -> Option<&GpuError> {
        match self {
            Error::Gpu(error) => Some(error),
            _ => None,
        }
    }

    /// The class of PyTorch's exception.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Refused(refusal) => refusal.kind(),
            Error::Layout(error) if matches!(**error, LayoutError::DimOutOfRange { .. }) => "IndexError",
            Error::HalfDone(half) => half.cause.kind(),
            Error::Rank(rank) => rank.cause.kind(),
            _ => "RuntimeError",
        }
    }

    /// The code under which the course explains this error, if it has one. Codes never change.
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

    /// The whole story: for an error with a code, what took part in it, where that was made, and the fix; for
    /// any other, its message.
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

    /// An error of the caller's own making, for datasets, modules and callbacks.
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

// These are not inlined. Moving an error from one type to another is long code, which would stand in the way of the calls
// that went well.

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

/// Datasets read files.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::custom(error)
    }
}

/// The error of a kernel's twin, for whoever launched it on the host.
impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Error {
        match stopped {
            Stopped::OutOfHostMemory { bytes } => GpuError::OutOfHostMemory { bytes }.into(),
            // Boxed as what it was: an error of this crate, or of the one below.
            Stopped::Because(cause) => cause
                .downcast::<Error>()
                .map(|error| *error)
                .or_else(|cause| cause.downcast::<LayoutError>().map(Error::Layout))
                .or_else(|cause| cause.downcast::<GpuError>().map(Error::Gpu))
                .unwrap_or_else(Error::custom),
        }
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        match error {
            Error::Gpu(error) if let GpuError::OutOfHostMemory { bytes } = *error => {
                Stopped::OutOfHostMemory { bytes }
            }
            other => Stopped::Because(Box::new(other)),
        }
    }
}
