//! The arrows of a timeline: which pieces happen before which.

use std::collections::HashMap;

use todevice_gpu::contract::driver::StreamId;
use todevice_gpu::contract::events::{Awaited, Call, EventKind, Trace};

/// Why a piece of a timeline comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The host call that queued it.
    Queued,
    /// It was queued on the same stream.
    Stream,
    /// Its stream was made to wait for the other.
    Event,
    /// The host waited for the other, and continued only when it was done.
    Waited,
}

impl Why {
    /// Its letter in a picture's data.
    pub fn letter(self) -> char {
        match self {
            Why::Queued => 'q',
            Why::Stream => 's',
            Why::Event => 'e',
            Why::Waited => 'w',
        }
    }
}

/// For each call of a recording, and then for each piece of its work, the pieces before it, by their numbers in
/// this order. Only direct predecessors are listed.
pub fn before(trace: &Trace) -> Vec<Vec<(usize, Why)>> {
    let calls = trace.calls.len();
    let number_of: HashMap<u64, usize> =
        trace.work.iter().enumerate().map(|(index, work)| (work.span.op, calls + index)).collect();
    let end_of = |number: &usize| trace.work[number - calls].span.end;
    let mut before = vec![Vec::new(); calls + trace.work.len()];
    // The last work of each stream; the last work when each event was recorded; the work that each stream was made
    // to wait for. The numbers of streams and events repeat between ranks.
    let mut last: HashMap<(Option<usize>, StreamId), usize> = HashMap::new();
    let mut recorded = HashMap::new();
    let mut awaited: HashMap<(Option<usize>, StreamId), Vec<usize>> = HashMap::new();
    for (index, call) in trace.calls.iter().enumerate() {
        let Call { kind, op, end, rank, .. } = call;
        let stream = &(*rank, call.stream);
        match kind {
            EventKind::EventRecord { event } => {
                recorded.insert((*rank, *event), last.get(stream).copied());
            }
            EventKind::StreamWaitEvent { on } => {
                let work = match on {
                    Awaited::Event(event) => recorded.get(&(*rank, *event)).copied().flatten(),
                    Awaited::Stream(stream) => last.get(&(*rank, *stream)).copied(),
                };
                awaited.entry(*stream).or_default().extend(work);
            }
            EventKind::Synchronize => {
                let of_device =
                    last.iter().filter(|((of, on), _)| of == rank && on.device == call.stream.device);
                let work = of_device.map(|(_, work)| *work).max_by_key(|work| (end_of(work), *work));
                before[index].extend(work.map(|work| (work, Why::Waited)));
            }
            EventKind::StreamSynchronize => {
                before[index].extend(last.get(stream).map(|work| (*work, Why::Waited)));
            }
            EventKind::EventSynchronize { event } => {
                let work = recorded.get(&(*rank, *event)).copied().flatten();
                before[index].extend(work.map(|work| (work, Why::Waited)));
            }
            _ => {}
        }
        let Some(work) = op.and_then(|op| number_of.get(&op)).copied() else { continue };
        before[work].push((index, Why::Queued));
        before[work].extend(last.insert(*stream, work).map(|earlier| (earlier, Why::Stream)));
        let waits = awaited.remove(stream).unwrap_or_default();
        before[work].extend(waits.into_iter().map(|earlier| (earlier, Why::Event)));
        if *end >= end_of(&work) {
            before[index].push((work, Why::Waited));
        }
    }
    before
}
