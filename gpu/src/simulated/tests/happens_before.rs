//! Compares the races with those of a graph of steps: two uses of the same bytes race if no path connects them.

use std::collections::BTreeMap;

use super::*;
use crate::base::error::RacingAccess;

#[derive(Default)]
struct Model {
    steps: Vec<Step>,
    /// The last step of every stream and of the host, and the step that each event recorded.
    streams: BTreeMap<StreamId, usize>,
    host: Option<usize>,
    events: BTreeMap<usize, usize>,
    blocking: Vec<StreamId>,
}

struct Step {
    op: Option<OpId>,
    uses: Vec<(u64, u64, bool)>,
    /// For each earlier step, whether it comes before this one.
    before: Vec<bool>,
}

impl Model {
    fn step(&mut self, after: &[Option<usize>], op: Option<OpId>, uses: &[(u64, u64, bool)]) -> usize {
        let mut before = vec![false; self.steps.len()];
        for step in after.iter().flatten() {
            before[*step] = true;
            let earlier = &self.steps[*step].before;
            before.iter_mut().zip(earlier).for_each(|(before, earlier)| *before |= earlier);
        }
        self.steps.push(Step { op, uses: uses.to_vec(), before });
        self.steps.len() - 1
    }

    fn work(&mut self, stream: StreamId, op: Option<OpId>, uses: &[(u64, u64, bool)]) -> usize {
        let mut after = vec![self.host, self.streams.get(&stream).copied()];
        for other in self.blocking.iter().filter(|other| other.device == stream.device) {
            if self.blocking.contains(&stream) && (stream.number == 0 || other.number == 0) {
                after.push(self.streams.get(other).copied());
            }
        }
        let step = self.step(&after, op, uses);
        self.streams.insert(stream, step);
        step
    }

    fn wait(&mut self, stream: StreamId, event: usize) {
        let after = [self.streams.get(&stream).copied(), self.events.get(&event).copied()];
        let step = self.step(&after, None, &[]);
        self.streams.insert(stream, step);
    }

    /// Adds a step of the host, which comes after the `known` steps.
    fn host(&mut self, known: &[Option<usize>], uses: &[(u64, u64, bool)]) {
        let after = [known, &[self.host]].concat();
        self.host = Some(self.step(&after, None, uses));
    }

    fn racing(&self) -> Vec<Option<OpId>> {
        let Some((last, earlier)) = self.steps.split_last() else { return Vec::new() };
        let meet = |a: &Step, b: &Step| {
            a.uses.iter().any(|a| b.uses.iter().any(|b| a.0 < b.1 && b.0 < a.1 && (a.2 || b.2)))
        };
        let racing = earlier.iter().zip(&last.before).filter(|(step, before)| !**before && meet(step, last));
        // The host's steps come before everything later.
        racing.map(|(step, _)| step.op).collect()
    }
}

#[test]
fn races_are_those_of_the_model() {
    let (mut found, mut clean) = (0, 0);
    for seed in 0..400 {
        let (with, without) = compare(seed);
        found += with;
        clean += without;
    }
    assert!(found > 3_000 && clean > 3_000, "{found} {clean}");
}

/// Compares after each step of a pseudo-random program. Counts the steps with races, and those with uses but no race.
fn compare(seed: u64) -> (usize, usize) {
    let rig = Rig::new(SimulatedOptions { count: 2, seed: Some(seed), ..options() });
    let gpu = &rig.gpu;
    gpu.enable_peer_access(0, 1).unwrap();
    let mut model = Model { blocking: [0, 1].map(StreamId::default_of).to_vec(), ..Model::default() };
    let mut streams = model.blocking.clone();
    for device in [0, 1] {
        let blocking = gpu.stream_create(device, true).unwrap();
        model.blocking.push(blocking);
        streams.push(blocking);
        streams.extend([(); 2].map(|()| gpu.stream_create(device, false).unwrap()));
    }
    let events = [0, 0, 1, 1].map(|device| gpu.event_create(device, true).unwrap());
    const FLOATS: u64 = 64;
    let memory = [0, 1].map(|device| rig.device_floats_on(device, FLOATS as usize, 0.0));
    let host = rig.pinned_floats(&[0.0; FLOATS as usize]);

    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let mut tally = Tally::default();
    for _ in 0..80 {
        rig.clock.advance(below(30) * MICROSECOND);
        let stream = streams[below(streams.len() as u64) as usize];
        let (from, to, floats) = (below(FLOATS - 16), below(FLOATS - 16), 1 + below(16));
        let (bytes, range) = (floats as usize * 4, |base: u64, at| (base + 4 * at, base + 4 * (at + floats)));
        let read = |base, at| (range(base, at).0, range(base, at).1, false);
        let write = |base, at| (range(base, at).0, range(base, at).1, true);
        let at = |base: u64, at| base + 4 * at;
        let mine = memory[stream.device].0;
        let event = below(events.len() as u64) as usize;
        match below(19) {
            0 | 1 => {
                let op = gpu.memset(stream, DevicePtr(at(mine, to)), 0, bytes).unwrap();
                model.work(stream, Some(op), &[write(mine, to)]);
            }
            2 | 3 => {
                let to = from + floats;
                let range = |from| tensor(DevicePtr(at(mine, from)), floats as usize);
                let last = if to + floats > FLOATS { from } else { to };
                let op =
                    gpu.launch(stream, launch(&ADD_ONE, &[range(from), range(last)], below(40))).unwrap();
                model.work(stream, Some(op), &[read(mine, from), write(mine, last)]);
            }
            // Some columns of a matrix with four rows.
            17 | 18 => {
                let (column, columns) = (below(12), 1 + below(4));
                let rows = Layout::contiguous(&[4, 16]).unwrap();
                let view = rows.slice(1, column as usize, columns as usize, 1).at_start();
                let pointer = DevicePtr(at(mine, column));
                let argument = Argument::Tensor { pointer, view };
                let uses = [0, 16, 32, 48].map(|row| {
                    let start = at(mine, column + row);
                    (start, start + 4 * columns, true)
                });
                let op = gpu.launch(stream, launch(&NOTHING, &[argument], below(40))).unwrap();
                model.work(stream, Some(op), &uses);
            }
            4 => {
                let target = HostTarget::Pinned(PinnedPtr(at(host.0, to)));
                let op = gpu.copy_device_to_host(stream, target, DevicePtr(at(mine, from)), bytes).unwrap();
                model.work(stream, Some(op), &[read(mine, from), write(host.0, to)]);
            }
            5 => {
                let source = HostSource::Pinned(PinnedPtr(at(host.0, from)));
                let op = gpu.copy_host_to_device(stream, DevicePtr(at(mine, to)), source, bytes).unwrap();
                model.work(stream, Some(op), &[read(host.0, from), write(mine, to)]);
            }
            6 => {
                let source = HostSource::Pageable(&[7; 64]);
                let op = gpu.copy_host_to_device(stream, DevicePtr(at(mine, to)), source, bytes).unwrap();
                model.work(stream, Some(op), &[write(mine, to)]);
            }
            7 => {
                let mut target = [0; 64];
                let source = DevicePtr(at(mine, from));
                let to = HostTarget::Pageable(&mut target);
                let op = gpu.copy_device_to_host(stream, to, source, bytes).unwrap();
                let step = model.work(stream, Some(op), &[read(mine, from)]);
                tally.compare(&rig, &model);
                model.host(&[Some(step)], &[]);
            }
            8 => {
                let other = 1 - stream.device;
                let target = (other, DevicePtr(at(memory[other].0, to)));
                let source = (stream.device, DevicePtr(at(mine, from)));
                let op = gpu.copy_peer(stream, target, source, bytes).unwrap();
                model.work(stream, Some(op), &[read(mine, from), write(memory[other].0, to)]);
            }
            9 | 10 => {
                let stream =
                    streams.iter().filter(|stream| stream.device == event / 2).nth(from as usize % 4);
                let stream = *stream.unwrap();
                gpu.event_record(events[event], stream).unwrap();
                let step = model.work(stream, None, &[]);
                model.events.insert(event, step);
            }
            11 | 12 => {
                gpu.stream_wait_event(stream, events[event]).unwrap();
                model.wait(stream, event);
            }
            13 => {
                if gpu.event_query(events[event]).unwrap() {
                    model.host(&[model.events.get(&event).copied()], &[]);
                }
            }
            14 => {
                if gpu.stream_query(stream).unwrap() {
                    model.host(&[model.streams.get(&stream).copied()], &[]);
                }
            }
            15 => match below(8) {
                0 => {
                    gpu.synchronize(stream.device).unwrap();
                    let of_device = streams.iter().filter(|other| other.device == stream.device);
                    let known: Vec<_> = of_device.map(|other| model.streams.get(other).copied()).collect();
                    model.host(&known, &[]);
                }
                1 | 2 => {
                    gpu.stream_synchronize(stream).unwrap();
                    model.host(&[model.streams.get(&stream).copied()], &[]);
                }
                3 | 4 => {
                    gpu.event_synchronize(events[event]).unwrap();
                    model.host(&[model.events.get(&event).copied()], &[]);
                }
                _ => {}
            },
            _ => {
                let (start, end) = range(host.0, to);
                let write = below(2) == 1;
                let access = if write { RacingAccess::Write } else { RacingAccess::Read };
                match access {
                    RacingAccess::Write => gpu.write_host(PinnedPtr(start), &[0; 64][..bytes]).unwrap(),
                    _ => gpu.read_host(PinnedPtr(start), &mut [0; 64][..bytes]).unwrap(),
                }
                model.host(&[], &[(start, end, write)]);
            }
        }
        tally.compare(&rig, &model);
    }
    (tally.raced, tally.clean)
}

#[derive(Default)]
struct Tally {
    steps: usize,
    pairs: usize,
    raced: usize,
    clean: usize,
}

impl Tally {
    /// Checks that a race of the last step is found, and only with work that it races with.
    fn compare(&mut self, rig: &Rig, model: &Model) {
        if self.steps == model.steps.len() {
            return;
        }
        self.steps = model.steps.len();
        let state = rig.gpu.state();
        let found = &state.races.pairs[self.pairs..];
        self.pairs = state.races.pairs.len();
        let racing = model.racing();
        assert_eq!(!found.is_empty(), !racing.is_empty(), "{found:?} {racing:?}");
        assert!(found.iter().all(|(first, _)| racing.contains(&Some(*first))), "{found:?} {racing:?}");
        let used = model.steps.last().is_some_and(|step| !step.uses.is_empty());
        self.raced += usize::from(used && !racing.is_empty());
        self.clean += usize::from(used && racing.is_empty());
    }
}
