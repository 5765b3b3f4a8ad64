//! Errors between ranks: a collective that differs, or that not all ranks reach.

use std::fmt;
use std::sync::Arc;

use crate::base::collective::{CollectiveKind, Fingerprint};
use crate::base::place::Place;

/// The reason why ranks did not meet in a collective.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The message of a variant describes it and its fields.
pub enum MeetingError {
    #[error("{0}")]
    Mismatch(Box<Mismatch>),
    #[error("{0}")]
    Stuck(Box<Stuck>),
    #[error("{0}")]
    Timeout(Box<Timeout>),
    #[error("Duplicate GPU detected : rank {rank} and rank {other} both on CUDA device {device}")]
    DuplicateGpu { rank: usize, other: usize, device: usize },
    /// For platforms without threads.
    #[error(
        "rank {rank} waits in {what} for rank {missing}, which has not begun this phase. Ranks run without \
         threads here, so a phase must not wait for other ranks in the same phase"
    )]
    NotYet { rank: usize, what: String, missing: usize },
}

crate::debug_is_message!(MeetingError);

impl MeetingError {
    /// Addresses the error to one of its ranks.
    pub fn seen_by(mut self, rank: usize) -> MeetingError {
        if let MeetingError::Timeout(timeout) = &mut self {
            timeout.seen_by = Some(rank);
        }
        self
    }

    /// Whether the error is addressed to the rank that arrived too late.
    pub fn is_of_the_late(&self) -> bool {
        matches!(self, MeetingError::Timeout(timeout) if timeout.seen_by == Some(timeout.last.0))
    }
}

/// Two ranks made different calls at the same position in the sequence.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The `SeqNum` of both calls.
    pub number: u64,
    /// Both ranks, with their calls and lines.
    pub calls: [(usize, Fingerprint, Option<Place>); 2],
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(a, one, at), (b, other, other_at)] = &self.calls;
        let number = self.number;
        write!(
            f,
            "Detected mismatch between collectives on ranks. Rank {a} is running collective: \
             CollectiveFingerPrint(SequenceNumber={number}, {one}), but Rank {b} is running collective: \
             CollectiveFingerPrint(SequenceNumber={number}, {other})."
        )?;
        for (rank, place) in [(a, at), (b, other_at)] {
            if let Some(place) = place {
                write!(f, "\n   = rank {rank} called it at {place}")?;
            }
        }
        Ok(())
    }
}

/// A deadlock: no rank can continue.
#[derive(Clone, Debug)]
pub struct Stuck {
    pub waits: Vec<Wait>,
    /// The ranks that ended without reaching a collective that others wait for.
    pub ended: Vec<(usize, Ended)>,
}

#[derive(Clone, Debug)]
pub struct Wait {
    pub rank: usize,
    /// `ALLREDUCE number 3`
    pub what: String,
    /// The line that called the collective, ...
    pub called: Option<Place>,
    /// ... and the line that waits for it.
    pub place: Option<Place>,
    /// The ranks that have not called it.
    pub missing: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Returned,
    /// The first line of the error.
    Failed(String),
    Panicked(String),
}

impl Stuck {
    /// Whether the cause is a rank that failed.
    pub fn somebody_died(&self) -> bool {
        self.ended.iter().any(|(_, ended)| *ended != Ended::Returned)
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = |rank: &usize| self.waits.iter().any(|wait| wait.missing.contains(rank));
        let gone: Vec<_> = self.ended.iter().filter(|(rank, _)| missing(rank)).collect();
        match gone.iter().find(|(_, ended)| *ended != Ended::Returned).or(gone.first()) {
            Some((rank, Ended::Returned)) => {
                write!(f, "rank {rank} has ended without calling a collective that others wait in")?
            }
            Some((rank, Ended::Failed(error))) => {
                write!(f, "rank {rank} has died, and others wait for it: {error}")?
            }
            Some((rank, Ended::Panicked(message))) => {
                write!(f, "rank {rank} has panicked, and others wait for it: {message}")?
            }
            None => f.write_str("deadlock: every rank waits for another one")?,
        }
        for Wait { rank, what, called, place, missing } in &self.waits {
            write!(f, "\n   = rank {rank} waits in {what}")?;
            if let Some(called) = called {
                write!(f, ", called at {called}")?;
            }
            if let Some(place) = place.filter(|place| Some(*place) != *called) {
                write!(f, ", since {place}")?;
            }
            match &missing[..] {
                [] => {}
                [one] => write!(f, ", for rank {one}")?,
                several => {
                    let ranks: Vec<String> = several.iter().map(usize::to_string).collect();
                    write!(f, ", for ranks {}", ranks.join(", "))?
                }
            }
        }
        Ok(())
    }
}

/// A rank arrived after the others' timeout.
#[derive(Clone, Debug)]
pub struct Timeout {
    pub number: u64,
    pub fingerprint: Fingerprint,
    /// Whether the collective ran over gloo, between host programs.
    pub of_host: bool,
    /// Whether times are real.
    pub is_measured: bool,
    /// In milliseconds.
    pub timeout: u64,
    /// The rank with the longest wait, in milliseconds, as if without a timeout.
    pub waited: (usize, u64),
    /// The rank that arrived last, and the line of its call.
    pub last: (usize, Option<Place>),
    /// The ranks of the group, and the one that gets this error.
    pub members: Arc<[usize]>,
    pub seen_by: Option<usize>,
}

impl Timeout {
    /// Whether this rank waits for another to accept its data, not for another's data. Gloo passes data from rank to
    /// rank. With few elements, the direction may differ.
    fn waits_to_send(&self) -> bool {
        let place = |rank: usize| self.members.iter().position(|member| *member == rank).unwrap_or(0);
        let (own, of) = (self.seen_by.map_or(0, place), self.members.len());
        let behind = (own + of - place(self.last.0)) % of;
        match self.fingerprint.kind {
            CollectiveKind::Broadcast { root } => own == root,
            CollectiveKind::PointToPoint => own == 0,
            CollectiveKind::AllGather => of == 2 || behind != 1,
            CollectiveKind::AllReduce(_) | CollectiveKind::ReduceScatter(_) => of > 2 && behind == 1,
            CollectiveKind::Barrier => of > 2 && behind == of - 1,
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timeout { number, fingerprint, timeout, waited: (first, waited), last: (last, place), .. } = self;
        let (name, numel) = (fingerprint.kind.name(), fingerprint.numel());
        match self.of_host {
            true if self.seen_by == Some(*last) => f.write_str(
                "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer",
            )?,
            true => {
                let (line, what) = if self.waits_to_send() { (129, "send") } else { (78, "recv") };
                write!(
                    f,
                    "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:{line}] Timed out waiting {timeout}ms for \
                     {what} operation to complete"
                )?
            }
            false => write!(
                f,
                "[Rank {first}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType={name}, \
                 NumelIn={numel}, NumelOut={numel}, Timeout(ms)={timeout}) ran for {timeout} milliseconds before timing out."
            )?,
        }
        let how = if self.is_measured { "measured" } else { "modelled" };
        write!(f, "\n   = rank {last} was slow: it came {waited} ms ({how}) after rank {first}")?;
        match place {
            Some(place) => write!(f, ", at {place}"),
            None => Ok(()),
        }
    }
}
