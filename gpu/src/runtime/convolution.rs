//! Convolutions by cuDNN: the choice of algorithm, and workspaces.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Cuda, DeviceMemory, Result};
use crate::base::conv::{Conv, ConvAlgorithm, ConvPass, ConvShape};
use crate::base::device::{DevicePtr, EventId, StreamId};
use crate::base::dtype::DType;
use crate::base::error::GpuError;
use crate::base::lock::lock;
use crate::base::sort;
use crate::contract::events::EventKind;

#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Whether to time up to `benchmark_limit` algorithms (0: all) for the fastest, instead of a heuristic's choice.
    pub benchmark: bool,
    pub benchmark_limit: usize,
    pub deterministic: bool,
}

/// The key of a choice. Values and stream do not matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ConvKey {
    pass: ConvPass,
    shape: ConvShape,
    dtype: DType,
    tf32: bool,
    benchmark: bool,
    deterministic: bool,
}

#[derive(Default)]
pub(super) struct Chosen(HashMap<ConvKey, ConvAlgorithm>);

impl Cuda {
    pub fn cudnn_version(&self) -> Option<usize> {
        self.driver.cudnn_version()
    }

    #[track_caller]
    pub fn convolution(self: &Arc<Cuda>, stream: StreamId, conv: Conv, choice: Choice) -> Result<()> {
        self.check_thread()?;
        let Choice { benchmark, benchmark_limit, deterministic } = choice;
        let Conv { pass, shape, dtype, tf32, .. } = conv;
        let kind = ConvKey { pass, shape, dtype, tf32, benchmark, deterministic };
        let known = lock(&self.devices[stream.device].chosen).0.get(&kind).copied();
        // If its workspace can no longer be allocated, another algorithm is chosen.
        if let Some(algorithm) = known
            && let Ok(workspace) = self.work_space(stream, algorithm.workspace)
        {
            return self.convolve(stream, &conv, &algorithm, &workspace);
        }
        let mut candidates =
            self.driver.convolution_algorithms(stream.device, &conv).map_err(|error| self.error(error))?;
        candidates.retain(|algorithm| algorithm.deterministic || !deterministic);
        if benchmark {
            let limit = if benchmark_limit == 0 { usize::MAX } else { benchmark_limit };
            // cuDNN's search always tries all algorithms.
            let all = candidates.len() <= limit;
            candidates.truncate(limit);
            candidates = self.fastest_first(stream, &conv, candidates, all, deterministic)?;
        }
        let mut refused = None;
        for algorithm in candidates {
            match self.work_space(stream, algorithm.workspace) {
                Ok(workspace) => {
                    self.convolve(stream, &conv, &algorithm, &workspace)?;
                    lock(&self.devices[stream.device].chosen).0.insert(kind, algorithm);
                    return Ok(());
                }
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| GpuError::custom("cuDNN has no algorithm for this convolution")))
    }

    fn convolve(
        &self,
        stream: StreamId,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
        workspace: &Option<DeviceMemory>,
    ) -> Result<()> {
        let memory = workspace.as_ref().map_or(DevicePtr::default(), |memory| memory.pointer(0));
        let ConvAlgorithm { number, workspace: bytes, .. } = *algorithm;
        let kind = EventKind::Convolution {
            dtype: conv.dtype,
            pass: conv.pass,
            algorithm: number,
            workspace: bytes,
        };
        self.submit(stream, kind, |driver| driver.convolution(stream, conv, algorithm, memory).map(Some))
    }

    /// Times the algorithms, with cuDNN's search if they are `all` that cuDNN has. Drops the algorithms whose workspace
    /// cannot be allocated, and those that fail in cuDNN's search.
    #[track_caller]
    fn fastest_first(
        self: &Arc<Cuda>,
        stream: StreamId,
        conv: &Conv,
        candidates: Vec<ConvAlgorithm>,
        all: bool,
        deterministic: bool,
    ) -> Result<Vec<ConvAlgorithm>> {
        // All candidates share one workspace: the largest of theirs that can be allocated.
        let mut sizes: Vec<usize> = candidates.iter().map(|algorithm| algorithm.workspace).collect();
        sort::by(&mut sizes, |a, b| b.cmp(a));
        let Some((bytes, workspace)) =
            sizes.into_iter().find_map(|bytes| Some((bytes, self.work_space(stream, bytes).ok()?)))
        else {
            return Ok(candidates);
        };
        let memory = workspace.as_ref().map_or(DevicePtr::default(), |memory| memory.pointer(0));
        let found = match all {
            true => self
                .driver
                .find_convolution(stream, conv, (memory, bytes))
                .map_err(|error| self.error(error))?,
            false => None,
        };
        let mut timed = match found {
            Some(mut found) => {
                found.retain(|(algorithm, _)| algorithm.deterministic || !deterministic);
                found
            }
            None => {
                let mut timed = Vec::new();
                for algorithm in candidates.iter().filter(|algorithm| algorithm.workspace <= bytes) {
                    timed.push((*algorithm, self.time_convolution(stream, conv, algorithm, &workspace)?));
                }
                timed
            }
        };
        sort::by(&mut timed, |a, b| a.1.total_cmp(&b.1));
        // As in PyTorch: the workspace of a search is seldom needed again.
        drop(workspace);
        self.empty_cache()?;
        Ok(match timed.is_empty() {
            true => candidates,
            false => timed.into_iter().map(|(algorithm, _)| algorithm).collect(),
        })
    }

    /// Returns the milliseconds of a second run, because the first may have to load the algorithm onto the device.
    fn time_convolution(
        &self,
        stream: StreamId,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
        workspace: &Option<DeviceMemory>,
    ) -> Result<f32> {
        self.with_event(stream, |start| {
            self.with_event(stream, |end| {
                self.convolve(stream, conv, algorithm, workspace)?;
                self.event_record(start, stream)?;
                self.convolve(stream, conv, algorithm, workspace)?;
                self.event_record(end, stream)?;
                self.event_synchronize(stream.device, end)?;
                self.event_elapsed(start, end)
            })
        })
    }

    fn with_event<R>(&self, stream: StreamId, measure: impl FnOnce(EventId) -> Result<R>) -> Result<R> {
        let event = self.event_create(stream.device, true)?;
        let measured = measure(event);
        self.event_destroy(event);
        measured
    }

    #[track_caller]
    fn work_space(self: &Arc<Cuda>, stream: StreamId, bytes: usize) -> Result<Option<DeviceMemory>> {
        (bytes > 0).then(|| self.allocate(stream.device, bytes)).transpose()
    }
}
