use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::collective::CollectiveKey;
use crate::error::Result;
use crate::error::distributed::DistributedError;
use crate::gpu::{self, Event, Stream};
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::ops::access::access;
use crate::ops::plain::write;
use crate::ranks::Member;
use crate::scope;
use crate::tensor::Tensor;
use todevice_gpu::base::error::MeetingError;

/// A collective that may be unfinished (`torch.distributed.Work`). Use its tensors after [`wait`](Self::wait) only.
pub struct Work {
    state: Mutex<WorkState>,
    /// The tensors it reads and writes. It owns their memory until it ends.
    tensors: Vec<Tensor>,
}

struct WorkState {
    under_way: Option<UnderWay>,
    is_waited_for: bool,
}

#[derive(Clone)]
enum UnderWay {
    Device { stream: Stream, ended: Arc<Event> },
    Host { member: Member, key: CollectiveKey },
}

impl Work {
    pub(super) fn on_device(stream: Stream, ended: Event, tensors: Vec<Tensor>) -> Work {
        Work::of(UnderWay::Device { stream, ended: Arc::new(ended) }, tensors)
    }

    /// For a rank outside the group.
    pub(super) fn of_nobody() -> Work {
        Work { state: Mutex::new(WorkState { under_way: None, is_waited_for: true }), tensors: Vec::new() }
    }

    /// The first tensor receives the result, if any.
    pub(super) fn on_host(member: Member, key: CollectiveKey, tensors: Vec<Tensor>) -> Work {
        Work::of(UnderWay::Host { member, key }, tensors)
    }

    fn of(under_way: UnderWay, tensors: Vec<Tensor>) -> Work {
        let state = WorkState { under_way: Some(under_way), is_waited_for: false };
        Work { state: Mutex::new(state), tensors }
    }

    /// Waits for the collective (`Work.wait`): the current stream for GPU tensors, the host for host tensors. A second
    /// call does nothing. Returns an error if the ranks do not meet.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        let _scope = scope::operation("wait", Location::caller());
        match self.wait_for() {
            Some(UnderWay::Device { stream, ended }) => {
                gpu::current_stream(stream.device())?.wait_event(&ended)?;
                Ok(())
            }
            Some(UnderWay::Host { member, key }) => self.meet(&member, key),
            None => Ok(()),
        }
    }

    /// Makes the host wait, even for GPU tensors.
    #[track_caller]
    pub(super) fn synchronize(&self) -> Result<()> {
        match self.wait_for() {
            Some(UnderWay::Device { stream, .. }) => stream.synchronize(),
            Some(UnderWay::Host { member, key }) => self.meet(&member, key),
            None => Ok(()),
        }
    }

    /// Returns whether it has finished (`Work.is_completed`).
    pub fn is_completed(&self) -> Result<bool> {
        let state = self.state();
        match &state.under_way {
            Some(UnderWay::Device { ended, .. }) => ended.query(),
            Some(UnderWay::Host { .. }) if state.is_waited_for => Ok(true),
            Some(UnderWay::Host { member, key }) => {
                let outcome = member.world.outcome(*key);
                Ok(matches!(outcome, Some(Ok(outcome)) if outcome.end <= HostContext::now()))
            }
            None => Ok(true),
        }
    }

    fn state(&self) -> MutexGuard<'_, WorkState> {
        lock(&self.state)
    }

    /// Returns the collective to wait for, on the first call only.
    fn wait_for(&self) -> Option<UnderWay> {
        let mut state = self.state();
        let is_waited_for = std::mem::replace(&mut state.is_waited_for, true);
        state.under_way.clone().filter(|_| !is_waited_for)
    }

    /// Waits on the host until all ranks have arrived, and takes this rank's result.
    fn meet(&self, member: &Member, key: CollectiveKey) -> Result<()> {
        let failed = |error: MeetingError| DistributedError::Meeting(error.seen_by(member.rank));
        let outcome = loop {
            match member.world.outcome(key) {
                Some(outcome) => break outcome.map_err(failed)?,
                None => drop(
                    member.world.wait(member.rank, &[key], scope::current_place(), false).map_err(failed)?,
                ),
            }
        };
        HostContext::lane().sleep_until(outcome.end);
        let Some(output) = self.tensors.first() else {
            member.world.take(member.rank, key, |_, _| ());
            return Ok(());
        };
        let dense = match output.is_contiguous() {
            true => output.clone(),
            false => Tensor::uninit(output.sizes(), output.dtype())?,
        };
        let mut written = Ok(());
        member.world.take(member.rank, key, |result, its_part| {
            let bytes = &result[its_part];
            written = access([], [&dense], |[], [to]| to.dense_bytes(dense.dtype()).copy_from_slice(bytes));
        });
        written?;
        if dense.is_same(output) { Ok(()) } else { write(output, &dense) }
    }
}

impl Drop for Work {
    /// Prevents reuse of the memory before the end of a collective that nobody waited for.
    fn drop(&mut self) {
        if let Some(UnderWay::Device { stream, .. }) = self.wait_for() {
            for tensor in &self.tensors {
                let _ = tensor.record_stream(&stream);
            }
        }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work(..)")
    }
}
