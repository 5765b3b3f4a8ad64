//! Tests of memory and several devices, and a benchmark of launches.

use super::*;
use crate::each_case::each_case;

#[test]
fn out_of_memory_is_the_profiles_and_does_not_stick() {
    let gibibytes = |count: usize| count << 30;
    let rig = Rig::one();
    assert_eq!(rig.gpu.malloc(0, gibibytes(15)), Err(errors::out_of_memory()));
    let x = rig.gpu.malloc(0, gibibytes(10)).unwrap();
    let error = rig.gpu.malloc(0, gibibytes(10)).unwrap_err();
    assert_eq!((error.code, error.name, error.message), (2, "cudaErrorMemoryAllocation", "out of memory"));
    rig.gpu.free(0, x).unwrap();
    rig.gpu.malloc(0, gibibytes(10)).unwrap();
}

#[test]
fn memory_can_be_less_than_the_profiles_and_the_context_takes_some() {
    let rig = Rig::new(SimulatedOptions { memory: Some(512 << 20), ..options() });
    assert_eq!(rig.gpu.properties(0).total_memory, 512 << 20);
    let MemoryInfo { free, total } = rig.gpu.memory_info(0).unwrap();
    assert_eq!((free, total), (256 << 20, 512 << 20));
    assert!(rig.gpu.malloc(0, (256 << 20) + 1).is_err());
    let x = rig.gpu.malloc(0, 256 << 20).unwrap();
    assert_eq!(rig.gpu.memory_info(0).unwrap().free, 0);
    assert!(rig.gpu.malloc(0, 1).is_err());
    rig.gpu.free(0, x).unwrap();
    assert_eq!(rig.gpu.free(0, x), Err(errors::invalid_value()));
    assert_eq!(rig.gpu.memory_info(0).unwrap().free, 256 << 20);
}

#[test]
fn page_locked_memory_the_computer_cannot_give_is_an_error() {
    let rig = Rig::one();
    each_case([usize::MAX, isize::MAX as usize], |bytes| {
        let error = rig.gpu.malloc_host(bytes).unwrap_err();
        assert_eq!((error.code, error.detail.is_some()), (2, true));
        assert_eq!(rig.gpu.malloc(0, bytes), Err(errors::out_of_memory()));
    });
    let x = rig.gpu.malloc_host(10).unwrap();
    assert_eq!(rig.gpu.read_host(PinnedPtr(x.0 + 5), &mut [0; 6]), Err(errors::invalid_value()));
}

#[test]
fn it_says_that_it_is_simulated() {
    let rig = Rig::one();
    let properties = rig.gpu.properties(0);
    assert_eq!(properties.name, "Tesla T4 (simulated)");
    assert_eq!((properties.major, properties.minor, properties.multi_processor_count), (7, 5, 40));
    assert_eq!(rig.gpu.memory_info(1), Err(errors::invalid_device()));
}

#[test]
fn the_first_use_of_a_device_makes_its_context() {
    let clock = Clock::default();
    let gpu = Simulated::new(options(), clock.clone());
    gpu.properties(0);
    assert_eq!((gpu.device_count(), clock.now()), (1, 0));
    gpu.memory_info(0).unwrap();
    let first = clock.now();
    gpu.memory_info(0).unwrap();
    assert!(first > 1_000 * (clock.now() - first));
}

fn two(profile: &'static Profile) -> Rig {
    Rig::new(SimulatedOptions { profile, count: 2, ..options() })
}

/// Copies from device 0 to device 1 after a kernel. Returns the engines of the copy.
fn copy_across(rig: &Rig) -> (Vec<(usize, Engine)>, Vec<OpId>) {
    let (x, y) = (rig.device_floats_on(0, 1000, 1.0), rig.device_floats_on(1, 1000, 0.0));
    let stream = rig.stream(false);
    rig.spans();
    rig.fill(stream, x, 1000, 2.0, 500);
    let op = rig.gpu.copy_peer(stream, (1, y), (0, x), 4000).unwrap();
    let event = rig.event();
    rig.gpu.event_record(event, stream).unwrap();
    rig.gpu.stream_wait_event(StreamId::default_of(1), event).unwrap();
    assert_eq!(rig.read_device_on(1, y, 1000), [2.0; 1000]);
    let spans = rig.spans();
    assert_eq!(spans[spans.len() - 2].op, op);
    (
        spans.iter().map(|span| (span.stream.device, span.engine)).collect(),
        spans.iter().map(|span| span.op).collect(),
    )
}

#[test]
fn devices_that_are_no_peers_copy_through_the_host() {
    let rig = two(&profile::RTX_4090);
    assert_eq!(rig.gpu.can_access_peer(0, 1), Ok(false));
    assert_eq!(rig.gpu.enable_peer_access(0, 1), Err(errors::peer_access_unsupported()));
    let (engines, ops) = copy_across(&rig);
    assert_eq!(ops[1], ops[2], "one call");
    let (down, up) = ((0, Engine::DeviceToHost), (0, Engine::HostToDevice));
    assert_eq!(engines, [(0, Engine::Compute), down, up, (1, Engine::DeviceToHost)]);
    assert_eq!(rig.gpu.state().pinned.count(), 0);
}

#[test]
fn peers_copy_straight_once_it_is_enabled() {
    let rig = two(&profile::H200);
    assert_eq!((rig.gpu.can_access_peer(0, 1), rig.gpu.can_access_peer(0, 0)), (Ok(true), Ok(false)));
    assert!(copy_across(&rig).0.contains(&(0, Engine::DeviceToHost)));
    rig.gpu.enable_peer_access(0, 1).unwrap();
    assert_eq!(rig.gpu.enable_peer_access(0, 1), Err(errors::peer_access_already_enabled()));
    let (engines, _) = copy_across(&rig);
    assert_eq!(engines, [(0, Engine::Compute), (0, Engine::Peer), (1, Engine::DeviceToHost)]);
}

fn time_across(profile: &'static Profile) -> u64 {
    let rig = two(profile);
    if rig.gpu.can_access_peer(0, 1).unwrap() {
        rig.gpu.enable_peer_access(0, 1).unwrap();
    }
    let bytes = 64 << 20;
    let (x, y) = (rig.gpu.malloc(0, bytes).unwrap(), rig.gpu.malloc(1, bytes).unwrap());
    rig.spans();
    rig.gpu.copy_peer(StreamId::default_of(0), (1, y), (0, x), bytes).unwrap();
    rig.gpu.synchronize(0).unwrap();
    let spans = rig.spans();
    spans[spans.len() - 1].end - spans[0].start
}

#[test]
fn nvlink_is_faster_than_pci_express_which_is_faster_than_through_the_host() {
    let card = |peer: f64, link: Link| -> &'static Profile {
        let figure = Figure { value: peer, ..profile::H200.peer };
        Box::leak(Box::new(Profile { key: "made", peer: figure, link, ..profile::H200.clone() }))
    };
    // H200s with NVLink, with PCI Express as fast as to the host, and without peers.
    let h200 = &profile::H200;
    let pcie = card(h200.pinned_to_device.value, Link::Pix);
    let times = [h200, pcie, card(0.0, Link::Phb)].map(time_across);
    let [latency, bytes] = [h200.copy_latency.nanoseconds() as f64, (64 << 20) as f64];
    let [down, up] = [&h200.pinned_to_host, &h200.pinned_to_device].map(|figure| bytes / figure.value);
    let expected = [latency + bytes / h200.peer.value, latency + up, 2.0 * latency + down + up];
    for (time, expected) in times.iter().zip(expected) {
        assert!((*time as f64 - expected).abs() < 2.0, "{times:?} {expected}"); // Each is truncated to integer nanoseconds.
    }
    assert!(times.is_sorted(), "{times:?}");
    // A T4's peers are on PCI Express. Through the host, the copy would take longer.
    let t4 = &profile::T4;
    let staged = Profile { key: "made", peer: Figure { value: 0.0, ..t4.peer }, ..t4.clone() };
    assert!(time_across(t4) < time_across(Box::leak(Box::new(staged))));
}

#[test]
fn devices_share_one_time_and_not_their_engines() {
    let rig = two(&profile::T4);
    let (x, y) = (rig.device_floats_on(0, 1, 0.0), rig.device_floats_on(1, 1, 0.0));
    assert_ne!(x, y);
    rig.spans();
    rig.fill(StreamId::default_of(0), x, 1, 1.0, 1_000);
    rig.fill(StreamId::default_of(1), y, 1, 1.0, 1_000);
    rig.gpu.synchronize(0).unwrap();
    rig.gpu.synchronize(1).unwrap();
    let spans = rig.spans();
    assert!(spans[1].start < spans[0].end, "they run at once");
    // An address of one device is invalid on the other.
    rig.fill(StreamId::default_of(1), x, 1, 1.0, 1);
    assert_eq!(rig.gpu.synchronize(1), Err(errors::illegal_address()));
}

#[test]
fn freeing_the_target_of_a_peer_copy_waits_for_it() {
    let rig = two(&profile::T4);
    rig.gpu.enable_peer_access(0, 1).unwrap();
    let (x, y) = (rig.device_floats_on(0, 1000, 1.0), rig.device_floats_on(1, 1000, 0.0));
    rig.fill(StreamId::default_of(0), x, 1000, 2.0, 1_000);
    rig.gpu.copy_peer(StreamId::default_of(0), (1, y), (0, x), 4000).unwrap();
    rig.gpu.free(1, y).unwrap();
    rig.gpu.synchronize(0).unwrap();
}

#[test]
fn matrix_products_take_their_time_in_order() {
    let rig = Rig::one();
    let stream = StreamId::default_of(0);
    rig.spans();
    rig.gpu.gemm(stream, squares(0, 64)).unwrap();
    rig.gpu.gemm(stream, squares(0, 4096)).unwrap();
    rig.gpu.synchronize(0).unwrap();
    assert_eq!(rig.spans().len(), 2);
    rig.gpu.gemm(stream, squares(1, 64)).unwrap();
    assert_eq!(rig.gpu.synchronize(0), Err(errors::illegal_address()), "it has no memory");
}

static NOTHING_WITH_TWO: KernelDef = elementwise(
    "nothing_with_two",
    &[KernelParameter::In(DType::F32), KernelParameter::In(DType::F32), KernelParameter::Out(DType::F32)],
    |_| Ok(()),
);

/// `cargo test -p todevice --release -- --ignored --nocapture launch_costs`
#[test]
#[ignore = "a benchmark"]
fn launch_costs() {
    const LAUNCHES: u64 = 1_000_000;
    let rig = Rig::one();
    // With two streams, each has separate tensors, and nothing waits.
    let memory = rig.device_floats(128 * 600, 0.0);
    for streams in [[StreamId::default_of(0); 2], [rig.stream(false), rig.stream(false)]] {
        let start = std::time::Instant::now();
        for round in 0..LAUNCHES {
            let stream = round % 2;
            let at = |index: u64| DevicePtr(memory.0 + 512 * (300 * stream + (3 * round + index) % 300));
            let arguments = [0, 1, 2].map(|index| tensor(at(index), 128));
            let launch = launch(&NOTHING_WITH_TWO, &arguments, 0);
            rig.gpu.launch(streams[stream as usize], launch).unwrap();
        }
        rig.gpu.synchronize(0).unwrap();
        println!("{} ns a launch", start.elapsed().as_nanos() / u128::from(LAUNCHES));
    }
    assert_eq!(rig.gpu.races.races(), []);
}
