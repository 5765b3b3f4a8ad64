use super::{Error, Refusal};
use crate::dtype::DType;
use todevice_gpu::base::error::MeetingError;

/// An error of a rank, a process group or a collective.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum DistributedError {
    #[error("Default process group has not been initialized, please make sure to call init_process_group.")]
    NotInitialized,
    #[error("trying to initialize the default process group twice!")]
    InitializedTwice,
    #[error("there is no rank here: call it within distributed::spawn or Ranks::run")]
    NoRank,
    #[error("Unknown c10d backend type {}", .0.to_ascii_uppercase())]
    UnknownBackend(String),
    #[error(
        "ranks have no GPUs of their own here: collectives of real GPUs are NCCL's, which this crate does not call yet"
    )]
    RealGpus,
    #[error("a run has at least one rank")]
    NoRanks,
    #[error(
        "{ranks} ranks need two open files each to hand on their turns, and the system allows no more: {why}"
    )]
    Turns { ranks: usize, why: String },
    #[error("Ranks::run_each takes a state for each of {ranks} ranks, and got {states}")]
    States { ranks: usize, states: usize },
    #[error("No backend type associated with device type {device_type}")]
    NoBackend { device_type: &'static str },
    #[error("Tensors must be contiguous")]
    NotContiguous,
    #[error("input tensor has to be contiguous")]
    GlooMessage,
    #[error("Invalid rank {rank}: {what} is one of the {size} ranks of the group")]
    InvalidRank { rank: usize, what: &'static str, size: usize },
    #[error(
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n   = `ranks` is empty"
    )]
    EmptyGroup,
    #[error("the new group's world size should be less or equal to the world size set by init_process_group")]
    NewGroupSize,
    #[error("The new group's rank should be within the world_size set by init_process_group")]
    NewGroupRank,
    #[error("Invalid {what} rank: {what} rank should not be the same as the rank of the current process.")]
    SameRank { what: &'static str },
    #[error("{backend}::broadcast: invalid root rank: {root}")]
    InvalidRoot { backend: &'static str, root: usize },
    #[error("Global rank {rank} is not part of group")]
    NotPartOfGroup { rank: usize },
    #[error("invalid input tensor list size, must be world size")]
    GlooScatterList,
    #[error("Invalid usage of tensors with different dtypesFound {last} and  {next}")]
    DifferentTypes { last: DType, next: DType },
    #[error("Invalid process group specified")]
    NotInGroup,
    #[error("output tensor size must be equal to world_size times input tensor size")]
    GatherSize,
    #[error("input tensor must be the same size as output size times world size")]
    ScatterSize,
    #[error("output tensor must have the same type as input tensor")]
    GatherType,
    #[error("input tensor must be the same type as the output tensor.")]
    OutputType,
    #[error("Cannot use ReduceOp.AVG with boolean inputs")]
    AverageOfBools,
    #[error("result type Float can't be cast to the desired output type {}", .dtype.scalar_type())]
    AverageOnGloo { dtype: DType },
    #[error(
        "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
    )]
    NothingToTrain,
    #[error(
        "DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {{{types}}}."
    )]
    SeveralDeviceTypes { types: String },
    #[error(
        "DDP expects same model across all ranks, but Rank {rank} has {own} {list}, while rank {other} has inconsistent {others} {list}."
    )]
    OtherModel { rank: usize, own: i64, list: &'static str, other: usize, others: i64 },
    #[error(
        "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss. {advice}\nParameter indices which did not receive grad for rank {rank}: {}\n   = by name: {}",
        .parameters.iter().map(|(index, _)| index.to_string()).collect::<Vec<_>>().join(" "),
        .parameters.iter().map(|(_, name)| &name[..]).collect::<Vec<_>>().join(", "),
        advice = advice(*.looked_for)
    )]
    Unused {
        rank: usize,
        parameters: Vec<(usize, String)>,
        /// Whether `find_unused_parameters` was set.
        looked_for: bool,
    },
    #[error(
        "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a module parameter outside the `forward` function. 2) Reused parameters in multiple reentrant backward passes.\nParameter at index {index} with name {name} has been marked as ready twice."
    )]
    ReadyTwice { index: usize, name: String },
    /// Ranks did not meet.
    #[error(transparent)]
    Meeting(MeetingError),
}

todevice_gpu::debug_is_message!(DistributedError);

/// PyTorch's exact text.
fn advice(looked_for: bool) -> &'static str {
    match looked_for {
        false => {
            "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in calculating loss. "
        }
        true => {
            "Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` outputs participate in computing loss. You can fix this by \nmaking sure all `forward` function outputs participate in calculating loss. "
        }
    }
}

impl Refusal for DistributedError {
    fn kind(&self) -> &'static str {
        match self {
            DistributedError::NotInitialized
            | DistributedError::InitializedTwice
            | DistributedError::NotContiguous
            | DistributedError::SeveralDeviceTypes { .. }
            | DistributedError::SameRank { .. }
            | DistributedError::NewGroupRank
            | DistributedError::NewGroupSize
            | DistributedError::DifferentTypes { .. }
            | DistributedError::GatherSize
            | DistributedError::ScatterSize
            | DistributedError::NotPartOfGroup { .. }
            | DistributedError::NotInGroup => "ValueError",
            DistributedError::UnknownBackend(_) => "AssertionError",
            DistributedError::EmptyGroup | DistributedError::GatherType | DistributedError::OutputType => {
                "TypeError"
            }
            _ => "RuntimeError",
        }
    }
}

/// The error that ended a rank's program.
pub struct RankError {
    /// The first rank that ended with an error.
    pub rank: usize,
    /// The number of ranks.
    pub of: usize,
    /// The error.
    pub cause: Error,
}

impl RankError {
    pub(crate) fn said_after(&self, cause: String) -> String {
        format!("{cause}\n   = process {} of {} terminated with this error", self.rank, self.of)
    }
}

todevice_gpu::debug_is_message!(RankError);

/// Keeps the cause's first line first.
impl std::fmt::Display for RankError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.said_after(self.cause.to_string()))
    }
}
