//! The order of launches: streams, events and synchronisation.
//!
//! Work runs when it is enqueued, in program order. Work that could overlap on a real device is recorded, so that
//! races between streams are found although nothing runs concurrently here.

use std::collections::HashMap;

/// A vector clock: for each stream, how much of its work has been waited for.
pub type Clock = HashMap<u64, u64>;

#[derive(Default)]
pub struct Streams {
    /// The known streams, and whether each is non-blocking: such a stream does not wait for the default one.
    pub known: HashMap<u64, bool>,
    clocks: HashMap<u64, Clock>,
    host: Clock,
    events: HashMap<u64, Clock>,
    /// Launches: the stream, its count there, and the first and last interval.
    launches: Vec<(u64, u64, u32, u32)>,
}

impl Streams {
    fn blocking(&self) -> Vec<u64> {
        self.known.iter().filter(|(_, non_blocking)| !**non_blocking).map(|(stream, _)| *stream).collect()
    }

    /// Begins work in a stream: joins the clocks of everything that the work waits for.
    pub fn begin(&mut self, stream: u64) {
        let mut clock = self.clocks.remove(&stream).unwrap_or_default();
        join(&mut clock, &self.host);
        let others = match stream {
            0 => self.blocking(),
            _ if self.known.get(&stream) == Some(&false) => vec![0],
            _ => Vec::new(),
        };
        for other in others {
            if let Some(seen) = self.clocks.get(&other) {
                join(&mut clock, seen);
            }
        }
        *clock.entry(stream).or_insert(0) += 1;
        self.clocks.insert(stream, clock);
    }

    /// Returns the intervals of the launches that the latest work in a stream does not wait for.
    pub fn concurrent(&self, stream: u64) -> Vec<(u32, u32)> {
        let clock = self.clocks.get(&stream).cloned().unwrap_or_default();
        let unseen = self
            .launches
            .iter()
            .filter(|(other, count, ..)| clock.get(other).is_none_or(|seen| seen < count));
        unseen.map(|(_, _, from, to)| (*from, *to)).collect()
    }

    /// The number of the latest work in a stream.
    pub fn latest(&self, stream: u64) -> u64 {
        self.clocks.get(&stream).and_then(|clock| clock.get(&stream)).copied().unwrap_or(0)
    }

    /// Whether the host has waited for a piece of work.
    pub fn has_waited(&self, stream: u64, number: u64) -> bool {
        self.host.get(&stream).is_some_and(|seen| *seen >= number)
    }

    pub fn launched(&mut self, stream: u64, from: u32, to: u32) {
        self.launches.push((stream, self.latest(stream), from, to));
        // Drops launches that the host has waited for: everything later is ordered after them.
        if self.launches.len() > 64 {
            let host = self.host.clone();
            self.launches.retain(|(other, count, ..)| host.get(other).is_none_or(|seen| seen < count));
            if self.launches.len() > 4096 {
                self.launches.remove(0);
            }
        }
    }

    /// Whether a launch may still be running, as far as the host knows.
    pub fn is_busy(&self) -> bool {
        self.launches.iter().any(|(stream, count, ..)| !self.has_waited(*stream, *count))
    }

    pub fn wait_for_stream(&mut self, stream: u64) {
        if let Some(clock) = self.clocks.get(&stream) {
            join(&mut self.host, &clock.clone());
        }
    }

    pub fn wait_for_all(&mut self) {
        for clock in self.clocks.values() {
            join(&mut self.host, clock);
        }
    }

    pub fn record(&mut self, event: u64, stream: u64) {
        self.begin(stream);
        let clock = self.clocks.get(&stream).cloned().unwrap_or_default();
        self.events.insert(event, clock);
    }

    pub fn wait_event(&mut self, stream: u64, event: u64) {
        if let Some(clock) = self.events.get(&event).cloned() {
            join(self.clocks.entry(stream).or_default(), &clock);
        }
    }

    pub fn wait_for_event(&mut self, event: u64) {
        if let Some(clock) = self.events.get(&event).cloned() {
            join(&mut self.host, &clock);
        }
    }
}

fn join(into: &mut Clock, other: &Clock) {
    for (stream, count) in other {
        let known = into.entry(*stream).or_insert(0);
        *known = (*known).max(*count);
    }
}
