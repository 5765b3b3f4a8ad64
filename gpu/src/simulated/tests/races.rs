//! Tests of data races: planted races are found under every seed, and correct programs have none.

use crate::base::place::Place;
use std::sync::{Arc, Mutex};

use super::*;
use crate::base::error::{Race, RaceKind, RacingWorker};
use crate::contract::races::RaceCheck;
use crate::host::scope;

const COUNT: usize = 64;
const BYTES: usize = 4 * COUNT;

impl Rig {
    fn races(&self) -> Vec<Race> {
        self.gpu.races.races()
    }

    /// If `ordered`, makes `later` wait for the work queued on `earlier`.
    fn order(&self, earlier: StreamId, later: StreamId, ordered: bool) {
        if ordered {
            let event = self.gpu.event_create(earlier.device, false).unwrap();
            self.gpu.event_record(event, earlier).unwrap();
            self.gpu.stream_wait_event(later, event).unwrap();
            self.gpu.event_destroy(event).unwrap();
        }
    }

    fn add_one(&self, stream: StreamId, x: DevicePtr, y: DevicePtr) {
        self.gpu.launch(stream, launch(&ADD_ONE, &[tensor(x, COUNT), tensor(y, COUNT)], 20)).unwrap();
    }

    fn download(&self, stream: StreamId, to: PinnedPtr, from: DevicePtr) {
        self.gpu.copy_device_to_host(stream, HostTarget::Pinned(to), from, BYTES).unwrap();
    }

    fn upload(&self, stream: StreamId, to: DevicePtr, from: PinnedPtr) {
        self.gpu.copy_host_to_device(stream, to, HostSource::Pinned(from), BYTES).unwrap();
    }
}

/// A program with two non-blocking streams, correct if `ordered`. The host works for `pause`.
type Program = fn(&Rig, streams: [StreamId; 2], pause: u64, ordered: bool);

/// Each with its error if it is not ordered.
const PROGRAMS: [(&str, RaceKind, Program); 12] = [
    (
        "the host reads what a copy may still be writing",
        RaceKind::ReadAfterWrite,
        |rig, [a, _], pause, ordered| {
            let (x, host) = (rig.device_floats(COUNT, 1.0), rig.pinned_floats(&[0.0; COUNT]));
            rig.download(a, host, x);
            rig.clock.advance(pause);
            if ordered {
                rig.gpu.stream_synchronize(a).unwrap();
            }
            rig.read_pinned(host, COUNT);
        },
    ),
    (
        "the host overwrites what a copy may still be reading",
        RaceKind::WriteAfterRead,
        |rig, [a, _], pause, ordered| {
            let (x, host, event) =
                (rig.device_floats(COUNT, 1.0), rig.pinned_floats(&[0.0; COUNT]), rig.event());
            rig.upload(a, x, host);
            rig.gpu.event_record(event, a).unwrap();
            rig.clock.advance(pause);
            while ordered && !rig.gpu.event_query(event).unwrap() {}
            rig.gpu.write_host(host, &[1; BYTES]).unwrap();
        },
    ),
    ("two streams write the same tensor", RaceKind::WriteAfterWrite, |rig, [a, b], pause, ordered| {
        let x = rig.device_floats(COUNT, 0.0);
        rig.fill(a, x, COUNT, 1.0, 20);
        rig.clock.advance(pause);
        rig.order(a, b, ordered);
        rig.fill(b, x, COUNT, 2.0, 20);
    }),
    ("a stream reads what another writes", RaceKind::ReadAfterWrite, |rig, [a, b], pause, ordered| {
        let (x, y) = (rig.device_floats(COUNT, 0.0), rig.device_floats(COUNT, 0.0));
        rig.fill(a, x, COUNT, 1.0, 20);
        rig.clock.advance(pause);
        rig.order(a, b, ordered);
        rig.add_one(b, x, y);
    }),
    ("only one direction waits", RaceKind::WriteAfterRead, |rig, [a, b], pause, ordered| {
        let (x, y) = (rig.device_floats(COUNT, 0.0), rig.device_floats(COUNT, 0.0));
        rig.fill(a, x, COUNT, 1.0, 20);
        rig.order(a, b, true);
        rig.add_one(b, x, y);
        rig.clock.advance(pause);
        rig.order(b, a, ordered);
        rig.fill(a, x, COUNT, 2.0, 20);
    }),
    ("the event is recorded too early", RaceKind::ReadAfterWrite, |rig, [a, b], pause, ordered| {
        let (x, y, event) = (rig.device_floats(COUNT, 0.0), rig.device_floats(COUNT, 0.0), rig.event());
        rig.gpu.event_record(event, a).unwrap();
        rig.fill(a, x, COUNT, 1.0, 20);
        if ordered {
            rig.gpu.event_record(event, a).unwrap();
        }
        rig.clock.advance(pause);
        rig.gpu.stream_wait_event(b, event).unwrap();
        rig.add_one(b, x, y);
    }),
    (
        "memory is used again while another stream uses it",
        RaceKind::WriteAfterRead,
        |rig, [a, b], pause, ordered| {
            let (x, y, event) = (rig.device_floats(COUNT, 0.0), rig.device_floats(COUNT, 0.0), rig.event());
            rig.fill(a, x, COUNT, 1.0, 20);
            rig.order(a, b, true);
            rig.add_one(b, x, y);
            // The tensor is dropped. `record_stream` keeps its memory until the other stream has finished.
            rig.gpu.event_record(event, b).unwrap();
            rig.clock.advance(pause);
            while ordered && !rig.gpu.event_query(event).unwrap() {}
            rig.gpu.range_reused(x, BYTES);
            rig.gpu.memset(a, x, 0, BYTES).unwrap();
        },
    ),
    (
        "a stream that does not wait for the default stream",
        RaceKind::ReadAfterWrite,
        |rig, [a, _], pause, ordered| {
            let (x, y) = (rig.device_floats(COUNT, 0.0), rig.device_floats(COUNT, 0.0));
            rig.fill(StreamId::default_of(0), x, COUNT, 1.0, 20);
            rig.clock.advance(pause);
            rig.add_one(if ordered { rig.stream(true) } else { a }, x, y);
        },
    ),
    (
        "the default stream does not wait for it either",
        RaceKind::WriteAfterRead,
        |rig, [a, _], pause, ordered| {
            let (x, host) = (rig.device_floats(COUNT, 0.0), rig.pinned_floats(&[0.0; COUNT]));
            rig.download(if ordered { rig.stream(true) } else { a }, host, x);
            rig.clock.advance(pause);
            rig.fill(StreamId::default_of(0), x, COUNT, 1.0, 20);
        },
    ),
    ("a copy from a peer is used too early", RaceKind::ReadAfterWrite, |rig, [a, _], pause, ordered| {
        let (x, y) = (rig.device_floats_on(0, COUNT, 1.0), rig.device_floats_on(1, COUNT, 0.0));
        let other = StreamId::default_of(1);
        rig.gpu.copy_peer(a, (1, y), (0, x), BYTES).unwrap();
        rig.clock.advance(pause);
        rig.order(a, other, ordered);
        rig.gpu.launch(other, launch(&ADD_ONE, &[tensor(y, COUNT / 2), tensor(y, COUNT / 2)], 1)).unwrap();
    }),
    ("page-locked memory is freed in flight", RaceKind::FreeInUse, |rig, [a, _], pause, ordered| {
        let (x, host) = (rig.device_floats(COUNT, 1.0), rig.pinned_floats(&[0.0; COUNT]));
        rig.upload(a, x, host);
        rig.clock.advance(pause);
        if ordered {
            rig.gpu.synchronize(0).unwrap();
        }
        rig.gpu.free_host(host).unwrap();
    }),
    ("a product is copied before it is there", RaceKind::ReadAfterWrite, |rig, [a, b], pause, ordered| {
        let [x, y, z] = [1.0, 2.0, 0.0].map(|value| rig.device_floats(COUNT, value));
        let host = rig.pinned_floats(&[0.0; COUNT]);
        rig.gpu.gemm(a, Gemm { a: x, b: y, c: z, ..squares(1, 8) }).unwrap();
        rig.clock.advance(pause);
        rig.order(a, b, ordered);
        rig.download(b, host, z);
    }),
];

fn run(program: Program, seed: u64, ordered: bool) -> Vec<Race> {
    let rig = Rig::new(SimulatedOptions { count: 2, seed: Some(seed), ..options() });
    let streams = [rig.stream(false), rig.stream(false)];
    program(&rig, streams, seed % 5 * 30 * MICROSECOND, ordered);
    rig.gpu.synchronize(0).unwrap();
    rig.gpu.synchronize(1).unwrap();
    rig.races()
}

#[test]
fn planted_races_are_found_under_every_seed() {
    for (what, kind, program) in PROGRAMS {
        for seed in 0..300 {
            let races = run(program, seed, false);
            assert!(!races.is_empty(), "{what}: not found under seed {seed}");
            assert!(races.iter().any(|race| race.kind() == kind), "{what}, seed {seed}: {races:?}");
        }
    }
}

#[test]
fn right_programs_are_clean_under_every_seed() {
    for (what, _, program) in PROGRAMS {
        for seed in 0..2000 {
            assert_eq!(run(program, seed, true), [], "{what}, seed {seed}");
        }
    }
}

#[test]
fn a_race_knows_who_raced_for_what() {
    let program = |name: &str| PROGRAMS.iter().find(|(what, ..)| what.contains(name)).unwrap().2;
    let [race] = run(program("from a peer"), 0, false)[..] else { panic!("it reads and writes one range") };
    assert_eq!((race.device, race.pinned, race.reused, race.bytes), (1, false, false, BYTES as u64 / 2));
    assert_eq!(race.operations.map(|racing| racing.operation), ["copy", "add_one"]);
    assert_eq!(race.operations.map(|racing| racing.bytes), [BYTES as u64, BYTES as u64 / 2]);
    let stream = |device, number| RacingWorker::Stream { device, number };
    assert_eq!(race.operations.map(|racing| racing.worker), [stream(0, 1), stream(1, 0)]);
    assert!(
        race.report().contains("fix: make stream 0 of cuda:1 wait before this line"),
        "{}",
        race.report()
    );

    let [race] = run(program("used again"), 0, false)[..] else { panic!("one write over one read") };
    assert!(
        race.reused && race.report().contains("`tensor.record_stream(&s)?` with stream 2 as `s`"),
        "{race:?}"
    );
    let [race] = run(program("freed in flight"), 0, false)[..] else { panic!("one block is freed") };
    assert_eq!((race.pinned, race.operations[1].worker), (true, RacingWorker::Host));
    assert_eq!(
        race.to_string(),
        "Data race on cuda:0: the host frees pinned memory that `copy` on stream 1 may still be reading"
    );
}

/// Writes a tensor on one stream and reads it on another. Returns both lines.
fn racing_lines(rig: &Rig) -> [u32; 2] {
    let (x, y) = (rig.device_floats(COUNT, 0.0), rig.device_floats(COUNT, 0.0));
    let (a, b) = (rig.stream(false), rig.stream(false));
    let place = Place::caller;
    let (first, second) = (here(), here());
    assert_ne!(first.line(), place().line());
    {
        let _scope = scope::operation("fill_", first);
        rig.fill(a, x, COUNT, 1.0, 20);
    }
    let _scope = scope::operation("add", second);
    rig.add_one(b, x, y);
    [first.line(), second.line()]
}

#[track_caller]
fn here() -> Place {
    Place::caller()
}

#[test]
fn the_report_names_both_lines_and_the_fix() {
    let rig = Rig::one();
    let [first, second] = racing_lines(&rig);
    let [race] = rig.races()[..] else { panic!("one race") };
    let (report, file) = (race.report(), file!());
    let expected = [
        "error[GPU0003]: Data race on cuda:0: `add` on stream 2 reads memory that `fill_` on stream 1 may still \
         be writing\n"
            .to_string(),
        format!("  --> {file}:{second}:"),
        ": add\n".to_string(),
        "   = fill_  writes 256 bytes on stream 1\n".to_string(),
        format!("            called at {file}:{first}:"),
        "   = add    reads 256 bytes on stream 2\n".to_string(),
        format!("            called at {file}:{second}:"),
        "   = the two share 256 bytes, and nothing says which comes first\n".to_string(),
        "   = fix: make stream 2 wait before this line: `s.wait_stream(&t)?` with stream 1 as `t`".to_string(),
    ];
    let mut rest = &report[..];
    for part in expected {
        let at = rest.find(&part).unwrap_or_else(|| panic!("no {part:?} in\n{report}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn a_race_warns_once_for_two_lines() {
    let machine = crate::host::host_context::HostContext::new(crate::host::time::Clock::default());
    let warnings = Arc::<Mutex<Vec<String>>>::default();
    let sink = warnings.clone();
    machine.on_warning(move |warning| sink.lock().unwrap().push(warning.to_string()));
    machine.enter(|| {
        let rig = Rig::one();
        for _ in 0..3 {
            racing_lines(&rig);
        }
        let reports: Vec<String> = rig.races().iter().map(Race::report).collect();
        assert_eq!((reports.len(), &reports), (1, &*warnings.lock().unwrap()));
        rig.gpu.races.set_check(RaceCheck::Ignore);
        two_writes(&rig).unwrap();
        assert_eq!((rig.races().len(), warnings.lock().unwrap().len()), (2, 1));
    });
}

/// The result of a second write, which races with the first.
fn two_writes(rig: &Rig) -> DriverResult<OpId> {
    let x = rig.device_floats(COUNT, 0.0);
    rig.fill(rig.stream(false), x, COUNT, 1.0, 20);
    let done = rig.gpu.memset(rig.stream(false), x, 0, BYTES);
    rig.gpu.synchronize(0).unwrap();
    assert_eq!(rig.read_device(x, COUNT), [0.0; COUNT], "it ran all the same");
    done
}

#[test]
fn a_race_can_be_an_error_of_every_call_that_races_and_the_work_is_done_all_the_same() {
    let rig = Rig::one();
    rig.gpu.races.set_check(RaceCheck::Error);
    for _ in 0..2 {
        assert_eq!(two_writes(&rig).unwrap_err().name, "GPU0003");
    }
    assert_eq!(rig.races().len(), 1);
    let (x, host) = (rig.device_floats(COUNT, 3.0), rig.pinned_floats(&[0.0; COUNT]));
    rig.download(StreamId::default_of(0), host, x);
    rig.clock.advance(1_000 * MICROSECOND);
    let mut bytes = [0; BYTES];
    assert_eq!(rig.gpu.read_host(host, &mut bytes), Err(errors::race()));
    assert_eq!(bytemuck::cast_slice::<u8, f32>(&bytes), [3.0; COUNT], "it happened to be there");
}

#[test]
fn memory_that_was_freed_and_given_anew_has_no_past() {
    let rig = Rig::one();
    let (a, b) = (rig.stream(false), rig.stream(false));
    let x = rig.gpu.malloc(0, BYTES).unwrap();
    rig.fill(a, x, COUNT, 1.0, 20);
    rig.gpu.free(0, x).unwrap(); // `free` waits for the device.
    let y = rig.gpu.malloc(0, BYTES).unwrap();
    assert_eq!(x, y);
    rig.fill(b, y, COUNT, 1.0, 20);
    assert_eq!(rig.races(), []);

    let host = rig.pinned_floats(&[0.0; COUNT]);
    rig.upload(a, rig.device_floats(COUNT, 0.0), host);
    rig.gpu.stream_synchronize(a).unwrap();
    rig.gpu.free_host(host).unwrap();
    assert_eq!(rig.pinned_floats(&[0.0; COUNT]), host);
    assert_eq!(rig.races(), []);
}

#[test]
fn that_malloc_waits_orders_nothing() {
    let rig = Rig::one();
    let x = rig.device_floats(COUNT, 0.0);
    let (a, b) = (rig.stream(false), rig.stream(false));
    rig.fill(a, x, COUNT, 1.0, 20);
    rig.gpu.malloc(0, BYTES).unwrap();
    rig.fill(b, x, COUNT, 1.0, 20);
    assert_eq!(rig.races().len(), 1);
}

#[test]
fn neighbours_and_readers_do_not_race() {
    let rig = Rig::one();
    let (x, y) = (rig.device_floats(2 * COUNT, 0.0), rig.device_floats(2 * COUNT, 0.0));
    let (a, b) = (rig.stream(false), rig.stream(false));
    let second = |pointer: DevicePtr| DevicePtr(pointer.0 + BYTES as u64);
    rig.fill(a, x, COUNT, 1.0, 20);
    rig.fill(b, second(x), COUNT, 1.0, 20);
    rig.gpu.synchronize(0).unwrap();
    rig.add_one(a, x, y);
    rig.add_one(b, x, second(y));
    assert_eq!(rig.races(), []);
}

#[test]
fn streams_may_share_a_matrix_by_columns() {
    let rig = Rig::one();
    let x = rig.device_floats(COUNT, 0.0);
    let (a, b) = (rig.stream(false), rig.stream(false));
    let half = |stream, column: usize, columns| {
        let view = Layout::contiguous(&[8, 8]).unwrap().slice(1, column, columns, 1).at_start();
        let argument = Argument::Tensor { pointer: DevicePtr(x.0 + 4 * column as u64), view };
        rig.gpu.launch(stream, launch(&NOTHING, &[argument], 10)).unwrap();
    };
    for _ in 0..100 {
        half(a, 0, 4);
        half(b, 4, 4);
    }
    assert_eq!((rig.races(), rig.gpu.state().races.kept()), (Vec::new(), 3));
    half(b, 3, 2);
    assert_eq!(rig.races().len(), 1);
}

#[test]
fn what_is_kept_does_not_grow_with_the_program() {
    let rig = Rig::one();
    let count = 1 << 16;
    let x = rig.device_floats(count, 0.0);
    let (a, b) = (rig.stream(false), rig.stream(false));
    let mut most = 0;
    for round in 0..20_000u64 {
        let stream = if round % 2 == 0 { a } else { b };
        rig.gpu.memset(stream, DevicePtr(x.0 + 8 * round), 0, 4).unwrap();
        if round % 101 == 0 {
            rig.gpu.stream_synchronize(stream).unwrap();
        }
        most = most.max(rig.gpu.state().races.kept());
    }
    assert_eq!(rig.races(), []);
    assert!((100..4_000).contains(&most), "{most}");
    // Without waits, the latest use of each piece is kept.
    rig.gpu.synchronize(0).unwrap();
    for round in 0..20_000u64 {
        rig.gpu.memset(a, DevicePtr(x.0 + 8 * (round % 100)), 0, 8).unwrap();
        rig.gpu.memset(b, DevicePtr(x.0 + 8 * (round % 100) + 800), 0, 8).unwrap();
    }
    assert_eq!(rig.gpu.state().races.kept(), 200);
}
