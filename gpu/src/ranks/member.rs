//! A rank of a world, as the driver of its devices sees it.

use std::ops::Range;
use std::sync::Arc;

use super::{Arrival, World};
use crate::base::collective::{Collective, CollectiveKey};
use crate::base::error::MeetingError;
use crate::contract::others::{Drain, Others, Waited};
use crate::host::scope;

#[derive(Clone)]
pub struct Member {
    pub rank: usize,
    pub world: Arc<World>,
}

impl Others for Member {
    fn arrive(&self, part: &Collective, time: u64, duration: u64, input: &[u8]) {
        self.world.arrive(self.rank, part.key, Arrival::new(time, duration, part.reduce), input);
    }

    fn end(&self, key: CollectiveKey) -> Option<Result<u64, MeetingError>> {
        Some(self.world.outcome(key)?.map(|outcome| outcome.end))
    }

    fn take(&self, key: CollectiveKey, show: &mut dyn FnMut(&Arc<Vec<u8>>, Range<usize>)) {
        self.world.take(self.rank, key, show);
    }

    fn wait(&self, keys: &[CollectiveKey], can_go_on: bool) -> Result<Waited, MeetingError> {
        self.world.wait(self.rank, keys, scope::current_place(), can_go_on)
    }

    fn can_run(&self) -> bool {
        self.world.has_threads()
    }

    fn set_drain(&self, drain: Drain) {
        self.world.set_drain(self.rank, drain);
    }

    fn note_trouble(&self, error: MeetingError) {
        self.world.note_trouble(self.rank, error);
    }

    fn trouble(&self) -> Option<MeetingError> {
        self.world.trouble(self.rank)
    }
}
