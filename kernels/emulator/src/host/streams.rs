//! Which launches wait for which: streams, events and synchronisation.
//!
//! Work is done when it is enqueued, in the order of the program. Work that a real device might do at the same time is
//! remembered, so that races between streams are found although nothing ran at once here.

use std::collections::HashMap;

/// What a stream has seen of the others: how much of their work.
pub type Clock = HashMap<u64, u64>;

#[derive(Default)]
pub struct Streams {
    next: u64,
    /// Non-blocking streams do not wait for the default one.
    pub known: HashMap<u64, bool>,
    clocks: HashMap<u64, Clock>,
    host: Clock,
    pub events: HashMap<u64, Option<Clock>>,
    /// Launches: the stream, its count there, the intervals from and to.
    launches: Vec<(u64, u64, u32, u32)>,
}

impl Streams {
    pub fn handle(&mut self) -> u64 {
        self.next += 1;
        // A handle is no address.
        0x10_0000 + self.next * 64
    }

    fn blocking(&self) -> Vec<u64> {
        self.known.iter().filter(|(_, non_blocking)| !**non_blocking).map(|(stream, _)| *stream).collect()
    }

    /// Work begins in a stream: what it waits for.
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

    /// The intervals of launches that the work that began last in a stream does not wait for.
    pub fn concurrent(&self, stream: u64) -> Vec<(u32, u32)> {
        let clock = self.clocks.get(&stream).cloned().unwrap_or_default();
        let unseen = self
            .launches
            .iter()
            .filter(|(other, count, ..)| clock.get(other).is_none_or(|seen| seen < count));
        unseen.map(|(_, _, from, to)| (*from, *to)).collect()
    }

    pub fn launched(&mut self, stream: u64, from: u32, to: u32) {
        let count = self.clocks.get(&stream).and_then(|clock| clock.get(&stream)).copied().unwrap_or(0);
        self.launches.push((stream, count, from, to));
        // Launches that the host has waited for order nothing any more.
        if self.launches.len() > 64 {
            let host = self.host.clone();
            self.launches.retain(|(other, count, ..)| host.get(other).is_none_or(|seen| seen < count));
            if self.launches.len() > 4096 {
                self.launches.remove(0);
            }
        }
    }

    /// Whether a launch may still run for all that the host knows.
    pub fn is_busy(&self) -> bool {
        self.launches.iter().any(|(stream, count, ..)| self.host.get(stream).is_none_or(|seen| seen < count))
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
        let clock = self.clocks.get(&stream).cloned();
        self.events.insert(event, clock);
    }

    pub fn wait_event(&mut self, stream: u64, event: u64) {
        if let Some(Some(clock)) = self.events.get(&event).cloned() {
            join(self.clocks.entry(stream).or_default(), &clock);
        }
    }

    pub fn wait_for_event(&mut self, event: u64) {
        if let Some(Some(clock)) = self.events.get(&event).cloned() {
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
