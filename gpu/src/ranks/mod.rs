//! Ranks: several programs on one machine, one of which runs at a time.
//!
//! Each rank has a separate thread, clock and devices, and shares only collectives, so it may run ahead of the others.
//! A rank that needs the end of a collective that others have not reached passes a *baton* to the next rank that can
//! continue. This order is fixed, whatever the operating system's scheduler does. The duration of a collective depends
//! only on the clocks of its ranks, not on the rank that ran first.
//!
//! If no rank can continue (a deadlock), every waiting rank gets an error at once.
//!
//! Without threads, ranks run one after the other, one phase of their program at a time.

mod member;
mod turn;

pub use member::Member;

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use crate::base::collective::{CollectiveKey, Fingerprint, Reduce, gets, in_pairs, result};
pub use crate::base::error::meeting::Ended;
use crate::base::error::meeting::{MeetingError, Mismatch, Stuck, Timeout, Wait};
use crate::base::lock::lock;
use crate::base::place::Place;
use crate::contract::others::{Drain, Waited};
use turn::Turn;

pub struct World {
    size: usize,
    threads: bool,
    state: Mutex<RanksState>,
    /// For each rank, if ranks have threads.
    turns: Vec<Turn>,
}

struct RanksState {
    ranks: Vec<RankState>,
    running: usize,
    meetings: HashMap<CollectiveKey, Meeting>,
    /// For each process group: the number of groups that the rank made before, and the members.
    groups: Vec<(usize, Arc<[usize]>)>,
    arrivals: u64,
    buffers: Buffers,
}

struct RankState {
    doing: Doing,
    /// The result of the rank's current wait, if it fails.
    verdict: Option<MeetingError>,
    /// Whether the rank may run work that was deferred because a collective might end before it.
    may_go_on: bool,
    /// Runs the work queued on its devices.
    drain: Option<Drain>,
    /// Whether its thread is blocked until it gets the baton.
    sleeps: bool,
    /// The reason why its devices were given up.
    trouble: Option<MeetingError>,
    /// With a thread: its run time when it last passed the baton, and the time at which it got the baton back.
    ran: u64,
    runs_since: Option<Instant>,
}

enum Doing {
    /// It runs, or has not begun this phase.
    Ready,
    Waiting {
        keys: Vec<CollectiveKey>,
        place: Option<Place>,
        /// Whether its devices have work besides those collectives.
        can_go_on: bool,
    },
    Ended(Ended),
}

/// A collective in progress.
struct Meeting {
    members: Arc<[usize]>,
    timeout: u64,
    /// By position in the group: the call, its device, and its line.
    calls: Vec<Option<(Fingerprint, Option<usize>, Option<Place>)>>,
    arrivals: Vec<Option<Arrival>>,
    /// The reduced inputs of the first ranks, and the number of these ranks. Later inputs are kept until their turn.
    reduced: (Vec<u8>, usize),
    outcome: Option<Result<Outcome, MeetingError>>,
    taken: usize,
}

/// The buffers of collectives. A result is in use as long as the memory of a device refers to it. Then the next
/// collective reuses its buffer, because allocating a new one takes longer than filling it.
#[derive(Default)]
struct Buffers(Vec<Arc<Vec<u8>>>);

impl Buffers {
    fn keep(&mut self, bytes: Vec<u8>) -> Arc<Vec<u8>> {
        let bytes = Arc::new(bytes);
        self.0.push(bytes.clone());
        bytes
    }

    /// Copies the input into an unused buffer of its size, or into a new one, after freeing unused sizes.
    fn copy_of(&mut self, input: &[u8]) -> Vec<u8> {
        let is_read = |bytes: &Arc<Vec<u8>>| Arc::strong_count(bytes) > 1;
        let found = self.0.iter().position(|bytes| !is_read(bytes) && bytes.len() == input.len());
        let Some(mut copy) = found.and_then(|found| Arc::into_inner(self.0.swap_remove(found))) else {
            let sizes: Vec<usize> =
                self.0.iter().filter(|bytes| is_read(bytes)).map(|bytes| bytes.len()).collect();
            self.0.retain(|bytes| sizes.contains(&bytes.len()));
            return input.to_vec();
        };
        copy.copy_from_slice(input);
        copy
    }
}

pub struct Arrival {
    /// On the rank's clock.
    pub time: u64,
    /// Empty after its reduction.
    input: Vec<u8>,
    /// The time that the collective takes once all ranks have arrived.
    pub duration: u64,
    pub reduce: Reduce,
    /// The time by which ranks are compared: their clocks or, if time is real, their run times.
    came: u64,
}

impl Arrival {
    pub fn new(time: u64, duration: u64, reduce: Reduce) -> Arrival {
        Arrival { time, input: Vec::new(), duration, reduce, came: time }
    }

    /// For real time: the rank has run for `ran` nanoseconds.
    pub fn after(self, ran: u64) -> Arrival {
        Arrival { came: ran, ..self }
    }
}

#[derive(Clone)]
pub struct Outcome {
    pub start: u64,
    pub end: u64,
    /// The combined result.
    pub data: Arc<Vec<u8>>,
}

pub struct CollectiveCall {
    pub key: CollectiveKey,
    pub fingerprint: Fingerprint,
    /// In the order of the group.
    pub members: Arc<[usize]>,
    pub device: Option<usize>,
    /// The maximum wait of the first rank for the last, in nanoseconds.
    pub timeout: u64,
    pub place: Option<Place>,
}

impl World {
    /// Fails if ranks have threads and the system cannot provide a `Turn` for each.
    pub fn new(size: usize, threads: bool) -> io::Result<Arc<World>> {
        let rank = |_| RankState {
            doing: Doing::Ready,
            verdict: None,
            may_go_on: false,
            drain: None,
            sleeps: false,
            trouble: None,
            ran: 0,
            runs_since: None,
        };
        let ranks = (0..size).map(rank).collect();
        let (meetings, groups, buffers) = (HashMap::new(), Vec::new(), Buffers::default());
        let state = RanksState { ranks, running: 0, meetings, groups, arrivals: 0, buffers };
        let turns = (0..size).filter(|_| threads).map(|_| Turn::new()).collect::<io::Result<_>>()?;
        Ok(Arc::new(World { size, threads, state: Mutex::new(state), turns }))
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn has_threads(&self) -> bool {
        self.threads
    }

    fn state(&self) -> MutexGuard<'_, RanksState> {
        lock(&self.state)
    }

    /// Returns a process group's number, the same on all its ranks. `count` is the number of the rank's earlier groups.
    pub fn group(&self, count: usize, members: &Arc<[usize]>) -> u32 {
        let groups = &mut self.state().groups;
        let is_it = |(before, of): &(usize, Arc<[usize]>)| (*before, of) == (count, members);
        let known = groups.iter().position(is_it);
        let number = known.unwrap_or_else(|| {
            groups.push((count, members.clone()));
            groups.len() - 1
        });
        number as u32
    }

    /// The run time of a rank with a thread in nanoseconds, including its waits for slower ranks.
    pub fn ran(&self, rank: usize) -> u64 {
        self.state().ranks[rank].ran_until_now()
    }

    pub fn set_drain(&self, rank: usize, drain: Drain) {
        self.state().ranks[rank].drain = Some(drain);
    }

    pub fn note_trouble(&self, rank: usize, error: MeetingError) {
        self.state().ranks[rank].trouble = Some(error);
    }

    pub fn trouble(&self, rank: usize) -> Option<MeetingError> {
        self.state().ranks[rank].trouble.clone()
    }
}

impl World {
    /// Prepares all ranks for another phase. The first one gets the baton.
    pub fn start_phase(&self) {
        let mut state = self.state();
        state.ranks.iter_mut().for_each(|rank| rank.doing = Doing::Ready);
        state.running = 0;
    }

    /// Makes a rank's thread wait for its turn.
    pub fn begin(&self, rank: usize) {
        if self.threads {
            drop(self.turn(self.state(), rank));
        }
    }

    /// Ends a rank's program, and passes the baton.
    pub fn rank_ended(&self, rank: usize, ended: Ended) {
        let mut state = self.state();
        state.ranks[rank].pause();
        state.ranks[rank].doing = Doing::Ended(ended);
        if !self.threads {
            return;
        }
        match state.next_after(rank, self.size, true) {
            Some(next) => state.running = next,
            None => state = self.nobody_runs(state, rank),
        }
        self.wake(&mut state);
    }

    /// Ends a rank that could not get a thread.
    pub fn never_begins(&self, rank: usize, why: String) {
        let is_its_turn = {
            let mut state = self.state();
            state.ranks[rank].doing = Doing::Ended(Ended::Failed(why.clone()));
            state.running == rank
        };
        if is_its_turn {
            self.rank_ended(rank, Ended::Failed(why));
        }
    }

    fn wake(&self, state: &mut RanksState) {
        let running = state.running;
        if std::mem::take(&mut state.ranks[running].sleeps) {
            self.turns[running].give();
        }
    }

    /// Lets another rank run until this one has the baton again.
    fn hand_on<'s>(
        &'s self,
        mut state: MutexGuard<'s, RanksState>,
        rank: usize,
        next: usize,
    ) -> MutexGuard<'s, RanksState> {
        state.running = next;
        self.wake(&mut state);
        self.turn(state, rank)
    }

    fn turn<'s>(&'s self, mut state: MutexGuard<'s, RanksState>, rank: usize) -> MutexGuard<'s, RanksState> {
        state.ranks[rank].pause();
        while state.running != rank {
            state.ranks[rank].sleeps = true;
            drop(state);
            self.turns[rank].wait();
            state = self.state();
        }
        state.ranks[rank].runs_since = Some(Instant::now());
        state
    }

    /// Blocks the running rank until one of these collectives has an outcome, and lets other ranks run. `can_go_on`:
    /// its devices have work that was deferred only because a collective might end before it.
    pub fn wait(
        &self,
        rank: usize,
        keys: &[CollectiveKey],
        place: Option<Place>,
        can_go_on: bool,
    ) -> Result<Waited, MeetingError> {
        let mut state = self.state();
        loop {
            if keys.iter().any(|key| state.has_outcome(*key)) {
                state.ranks[rank].doing = Doing::Ready;
                return Ok(Waited::Met);
            }
            state.ranks[rank].doing = Doing::Waiting { keys: keys.to_vec(), place, can_go_on };
            if self.threads
                && let Some(next) = state.next_after(rank, self.size, true)
            {
                state = self.hand_on(state, rank, next);
            } else {
                state = self.nobody_runs(state, rank);
                // The devices' work may have enabled other ranks. The first of these runs before this one.
                let first = state.running;
                if self.threads && first != rank {
                    state = self.hand_on(state, rank, first);
                }
            }
            let this = &mut state.ranks[rank];
            let (verdict, may_go_on) = (this.verdict.take(), std::mem::take(&mut this.may_go_on));
            if verdict.is_some() || may_go_on {
                this.doing = Doing::Ready;
                return verdict.map_or(Ok(Waited::GoOn), Err);
            }
        }
    }

    /// Passes the baton to the first rank with a lower number that can continue, if there is one.
    fn give_way(&self, state: MutexGuard<'_, RanksState>, rank: usize) {
        // A device may reach a collective after its rank's program has ended. Then another rank keeps the baton.
        let runs = state.running == rank && matches!(state.ranks[rank].doing, Doing::Ready);
        if self.threads
            && runs
            && let Some(first) = (0..rank).find(|other| state.can_go_on(*other, true))
        {
            drop(self.hand_on(state, rank, first));
        }
    }

    /// Called when no program can continue. Runs the devices of ended ranks, then the deferred work of a waiting rank.
    fn nobody_runs<'s>(
        &'s self,
        mut state: MutexGuard<'s, RanksState>,
        rank: usize,
    ) -> MutexGuard<'s, RanksState> {
        loop {
            let before = state.arrivals;
            let idle = state.ranks.iter().filter(|rank| !matches!(rank.doing, Doing::Waiting { .. }));
            let drains: Vec<Drain> = idle.filter_map(|rank| rank.drain.clone()).collect();
            drop(state); // A device that reaches a collective takes this lock to report it.
            drains.iter().for_each(|drain| drain());
            state = self.state();
            if let Some(next) = state.next_after(rank, self.size, self.threads) {
                state.running = next;
                return state;
            }
            if state.arrivals == before {
                break;
            }
        }
        let able = (0..self.size)
            .map(|step| (rank + step) % self.size)
            .find(|other| matches!(state.ranks[*other].doing, Doing::Waiting { can_go_on: true, .. }));
        if let Some(able) = able {
            state.ranks[able].may_go_on = true;
            state.running = able;
        } else if let Some(not_yet) = state.not_yet(rank) {
            state.ranks[rank].verdict = Some(not_yet);
        } else {
            state.fail_all_stuck();
        }
        state
    }
}

impl RankState {
    fn ran_until_now(&self) -> u64 {
        self.ran + self.runs_since.map_or(0, |since| since.elapsed().as_nanos() as u64)
    }

    fn pause(&mut self) {
        self.ran = self.ran_until_now();
        self.runs_since = None;
    }
}

impl RanksState {
    fn has_outcome(&self, key: CollectiveKey) -> bool {
        // A missing collective has been taken by all ranks.
        self.meetings.get(&key).is_none_or(|meeting| meeting.outcome.is_some())
    }

    /// Whether a rank that is not running can continue. Without threads, a rank must have begun.
    fn can_go_on(&self, rank: usize, threads: bool) -> bool {
        let RankState { doing, verdict, may_go_on, .. } = &self.ranks[rank];
        match doing {
            Doing::Ready => threads,
            Doing::Waiting { keys, .. } => {
                verdict.is_some() || *may_go_on || keys.iter().any(|key| self.has_outcome(*key))
            }
            Doing::Ended(_) => false,
        }
    }

    fn next_after(&self, rank: usize, size: usize, threads: bool) -> Option<usize> {
        (1..=size).map(|step| (rank + step) % size).find(|other| self.can_go_on(*other, threads))
    }

    /// Without threads, returns the error of a rank that waits for one that has not begun this phase.
    fn not_yet(&self, rank: usize) -> Option<MeetingError> {
        let wait = self.wait_of(rank)?;
        let ready = |other: &&usize| matches!(self.ranks[**other].doing, Doing::Ready);
        let missing = *wait.missing.iter().find(ready)?;
        Some(MeetingError::NotYet { rank, what: wait.what, missing })
    }

    /// Gives every waiting rank an error with all waits. The first of these ranks runs.
    fn fail_all_stuck(&mut self) {
        let waits: Vec<Wait> = (0..self.ranks.len()).filter_map(|rank| self.wait_of(rank)).collect();
        let ended = self.ranks.iter().enumerate().filter_map(|(rank, of)| match &of.doing {
            Doing::Ended(ended) => Some((rank, ended.clone())),
            _ => None,
        });
        let stuck = Stuck { ended: ended.collect(), waits };
        for wait in &stuck.waits {
            self.ranks[wait.rank].verdict = Some(MeetingError::Stuck(Box::new(stuck.clone())));
        }
        if let Some(first) = stuck.waits.first() {
            self.running = first.rank;
        }
    }

    fn wait_of(&self, rank: usize) -> Option<Wait> {
        let Doing::Waiting { keys, place, .. } = &self.ranks[rank].doing else { return None };
        let key = keys.iter().find(|key| !self.has_outcome(**key))?;
        let meeting = &self.meetings[key];
        let own = meeting.members.iter().position(|member| *member == rank);
        let called = own.and_then(|own| meeting.calls[own].as_ref());
        let missing = meeting.members.iter().zip(&meeting.calls).filter(|(_, call)| call.is_none());
        Some(Wait {
            rank,
            what: match called {
                Some((fingerprint, ..)) => format!("{} number {}", fingerprint.kind.name(), key.number),
                None => format!("a collective, number {}", key.number),
            },
            called: called.and_then(|(_, _, place)| *place),
            place: *place,
            missing: missing.map(|(member, _)| *member).collect(),
        })
    }
}

impl World {
    /// Records a rank's call of a collective. If another rank's call differs, every rank of the group gets an error.
    pub fn call(&self, rank: usize, call: CollectiveCall) -> Result<(), MeetingError> {
        let mut state = self.state();
        let count = call.members.len();
        let meeting = state.meetings.entry(call.key).or_insert_with(|| Meeting {
            members: call.members.clone(),
            timeout: call.timeout,
            calls: vec![None; count],
            arrivals: (0..count).map(|_| None).collect(),
            reduced: (Vec::new(), 0),
            outcome: None,
            taken: 0,
        });
        if let Some(Err(error)) = &meeting.outcome {
            return Err(error.clone());
        }
        let place = meeting.members.iter().position(|member| *member == rank).unwrap_or(0);
        let mut others = meeting.members.iter().zip(&meeting.calls);
        let wrong = others.find_map(|(other, earlier)| {
            let (fingerprint, device, at) = earlier.as_ref()?;
            if *fingerprint != call.fingerprint {
                let calls =
                    [(rank, call.fingerprint.clone(), call.place), (*other, fingerprint.clone(), *at)];
                return Some(MeetingError::Mismatch(Box::new(Mismatch { number: call.key.number, calls })));
            }
            let device = device.filter(|_| *device == call.device)?;
            Some(MeetingError::DuplicateGpu { rank, other: *other, device })
        });
        meeting.calls[place] = Some((call.fingerprint, call.device, call.place));
        match wrong {
            Some(error) => {
                meeting.outcome = Some(Err(error.clone()));
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// Records the arrival of a rank with its input. The last arrival produces the outcome.
    pub fn arrive(&self, rank: usize, key: CollectiveKey, arrival: Arrival, input: &[u8]) {
        let mut state = self.state();
        state.arrivals += 1;
        let RanksState { meetings, buffers, .. } = &mut *state;
        let Some(meeting) = meetings.get_mut(&key) else { return };
        let Some(place) = meeting.members.iter().position(|member| *member == rank) else { return };
        meeting.bring(place, arrival, input, buffers);
        meeting.conclude(key, buffers);
        // Otherwise the last rank would be the first at the next collective, and its input would have to be copied.
        if meeting.outcome.is_some() {
            self.give_way(state, rank);
        }
    }

    /// Returns the outcome of a collective after all arrivals, or after an error.
    pub fn outcome(&self, key: CollectiveKey) -> Option<Result<Outcome, MeetingError>> {
        self.state().meetings.get(&key)?.outcome.clone()
    }

    /// Calls `show` with the combined result and this rank's range. Forgets the outcome once all ranks have taken it.
    pub fn take(&self, rank: usize, key: CollectiveKey, show: impl FnOnce(&Arc<Vec<u8>>, Range<usize>)) {
        let mut state = self.state();
        let Some(meeting) = state.meetings.get_mut(&key) else { return };
        let place = meeting.members.iter().position(|member| *member == rank).unwrap_or(0);
        if let (Some(Ok(outcome)), Some((fingerprint, ..))) = (&meeting.outcome, &meeting.calls[place]) {
            let of = meeting.members.len();
            show(&outcome.data, gets(fingerprint.kind, place, of, outcome.data.len()));
        }
        meeting.taken += 1;
        // The rank has waited for the last one.
        let last = meeting.arrivals.iter().flatten().map(|arrival| arrival.came).max().unwrap_or(0);
        let this = &mut state.ranks[rank];
        this.ran += last.saturating_sub(this.ran_until_now());
        let Some(meeting) = state.meetings.get(&key) else { return };
        if meeting.taken == meeting.members.len() {
            state.meetings.remove(&key);
        }
    }
}

impl Meeting {
    /// Adds a rank's input. Inputs are reduced in rank order, so a copy is kept until all ranks before it have arrived.
    fn bring(&mut self, place: usize, mut arrival: Arrival, input: &[u8], buffers: &mut Buffers) {
        let (is_next, reduce) = (place == self.reduced.1, arrival.reduce);
        let call = self.calls[place].as_ref().filter(|_| is_next);
        let pairs = call.and_then(|(fingerprint, ..)| Some((in_pairs(fingerprint)?, fingerprint.dtype)));
        if pairs.is_none() {
            arrival.input = buffers.copy_of(input);
        }
        self.arrivals[place] = Some(arrival);
        let Some((op, dtype)) = pairs else { return };
        let (reduced, count) = &mut self.reduced;
        match place {
            0 => *reduced = buffers.copy_of(input),
            _ => reduce(op, dtype, reduced, &[input]),
        }
        *count += 1;
        // The next inputs may have arrived early.
        while let Some(Some(next)) = self.arrivals.get_mut(*count) {
            let input = std::mem::take(&mut next.input);
            reduce(op, dtype, reduced, &[&input]);
            buffers.keep(input);
            *count += 1;
        }
    }

    fn conclude(&mut self, key: CollectiveKey, buffers: &mut Buffers) {
        if self.outcome.is_some() || self.arrivals.iter().any(Option::is_none) {
            return;
        }
        let Some((fingerprint, ..)) = self.calls.iter().flatten().next() else { return };
        let times = self.arrivals.iter().flatten().map(|arrival| arrival.came);
        let first = times.clone().enumerate().min_by_key(|(_, time)| *time).unwrap_or((0, 0));
        let last = times.enumerate().max_by_key(|(_, time)| *time).unwrap_or((0, 0));
        if last.1 - first.1 > self.timeout {
            self.outcome = Some(Err(MeetingError::Timeout(Box::new(Timeout {
                number: key.number,
                fingerprint: fingerprint.clone(),
                of_host: self.calls.iter().flatten().all(|(_, device, _)| device.is_none()),
                is_measured: self.arrivals.iter().flatten().any(|arrival| arrival.came != arrival.time),
                timeout: self.timeout / 1_000_000,
                waited: (self.members[first.0], (last.1 - first.1) / 1_000_000),
                members: self.members.clone(),
                seen_by: None,
                last: (self.members[last.0], self.calls[last.0].as_ref().and_then(|(_, _, place)| *place)),
            }))));
            return;
        }
        let (mut inputs, mut start, mut duration, mut reduce) = (Vec::new(), 0, 0, None);
        for arrival in self.arrivals.iter_mut().flatten() {
            start = start.max(arrival.time);
            inputs.push(std::mem::take(&mut arrival.input));
            duration = duration.max(arrival.duration);
            reduce = Some(arrival.reduce);
        }
        let Some(reduce) = reduce else { return };
        let (reduced, count) = std::mem::take(&mut self.reduced);
        let data = match count == inputs.len() {
            true => buffers.keep(reduced),
            false => Arc::new(result(fingerprint, inputs, reduce)),
        };
        self.outcome = Some(Ok(Outcome { start, end: start + duration, data }));
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::base::collective::{CollectiveKind, ReduceOp};
    use crate::base::dtype::DType;

    /// Also if some of them have met before without the others.
    #[test]
    fn ranks_come_to_each_collective_in_their_order() {
        const RANKS: usize = 3;
        let (world, came) = (World::new(RANKS, true).unwrap(), Mutex::new(Vec::new()));
        let members = |number: u64| if number == 0 { 2 } else { RANKS };
        let kind = CollectiveKind::AllReduce(ReduceOp::Sum);
        let fingerprint = Fingerprint { kind, sizes: [4].into_iter().collect(), dtype: DType::U8 };
        let program = |rank: usize| {
            world.begin(rank);
            for number in (0..4).filter(|number| rank < members(*number)) {
                let key = CollectiveKey { group: 0, pair: None, number };
                let (fingerprint, members) = (fingerprint.clone(), (0..members(number)).collect());
                let call =
                    CollectiveCall { key, fingerprint, members, device: Some(rank), timeout: 1, place: None };
                world.call(rank, call).unwrap();
                came.lock().unwrap().push((number, rank));
                world.arrive(rank, key, Arrival::new(0, 1, |_, _, _, _| ()), &[0; 4]);
                assert_eq!(world.wait(rank, &[key], None, false).unwrap(), Waited::Met);
                world.take(rank, key, |_, _| ());
            }
            world.rank_ended(rank, Ended::Returned);
        };
        thread::scope(|scope| (0..RANKS).for_each(|rank| _ = scope.spawn(move || program(rank))));
        let in_order = (0..4).flat_map(|number| (0..members(number)).map(move |rank| (number, rank)));
        assert_eq!(came.into_inner().unwrap(), in_order.collect::<Vec<_>>());
    }

    #[test]
    fn memory_is_used_again_when_nobody_reads_it_any_more() {
        let mut buffers = Buffers::default();
        // The test recognizes the buffer by its capacity.
        let mut first = Vec::with_capacity(1000);
        first.resize(100, 1);
        let read = buffers.keep(first);
        assert_ne!(buffers.copy_of(&[2; 100]).capacity(), 1000);
        assert_eq!(*read, [1; 100]);
        drop(read);
        let again = buffers.copy_of(&[3; 100]);
        assert_eq!((again.capacity(), &again[..]), (1000, &[3; 100][..]));
        // A buffer of another size stays while one of its size is in use.
        let read = [buffers.keep(again), buffers.keep(vec![5; 100])];
        let [again, read] = read;
        drop(again);
        let other = buffers.copy_of(&[4; 99]);
        let again = buffers.copy_of(&[6; 100]);
        assert_eq!((other, again.capacity()), (vec![4; 99], 1000));
        drop((buffers.keep(again), read));
        assert_eq!(buffers.copy_of(&[4; 99]), [4; 99]);
        assert!(buffers.0.is_empty());
    }
}
