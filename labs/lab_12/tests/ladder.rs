//! The ladders and the modelled times.

use cuda_emulator::{Checks, Program};
use lab_12::ladder::{LADDERS, Ladder, Table};
use lab_12::model::{self, Modelled};
use todevice_figures::profile::{ALL, H200, Profile, RTX_4090, T4};

#[test]
fn every_step_is_right_under_all_checks() {
    for (ladder, own, sizes) in [
        (LADDERS[0], 65_536, &[1, 3, 255, 256, 257, 1_025, 65_536, 65_537][..]),
        (LADDERS[1], 64, &[64, 128, 192]),
    ] {
        for (step, size) in ladder.steps.iter().flat_map(|step| sizes.iter().map(move |size| (step, size))) {
            let own = format!("#define N {own}\n");
            assert!(step.text.contains(&own), "{}", step.name);
            let text = step.text.replace(&own, &format!("#define N {size}\n"));
            let program = Program::compile("step.cu", &text, &|_| None).unwrap_or_else(|why| panic!("{why}"));
            let run = program.run(Checks::ALL).unwrap();
            assert_eq!(run.exit_code(), 0, "{} {size}: {} {:?}", step.name, run.output, run.findings);
            assert!(run.output.contains("no error\n"), "{}: {}", step.name, run.output);
        }
    }
}

/// The host code of each step finds a wrong result.
#[test]
fn a_step_that_is_wrong_says_so() {
    for (step, right, wrong) in [
        (&LADDERS[0].steps[1], "s *= 2", "s *= 4"),
        (&LADDERS[0].steps[5], "if (first < n % 4)", "if (first < n % 4 + 1)"),
        (&LADDERS[1].steps[3], "k < 16; k++", "k < 15; k++"),
        (&LADDERS[1].steps[4], "a_tile[k + 3][r] = load.w", "a_tile[k + 3][r] = load.z"),
    ] {
        assert!(step.text.contains(right), "{}", step.name);
        let program = Program::compile("step.cu", &step.text.replace(right, wrong), &|_| None).unwrap();
        assert_ne!(program.run(Checks::MEMORY).unwrap().exit_code(), 0, "{}", step.name);
    }
}

/// Calls `look` with the tables of a ladder on all profiles.
fn on_all_cards(ladder: &'static Ladder, look: impl Fn(&Table)) {
    let counted = ladder.count().unwrap();
    for card in ALL {
        look(&ladder.table(&counted, card).unwrap());
    }
}

#[test]
fn each_step_is_faster_than_the_one_before_on_every_profile() {
    for ladder in LADDERS {
        on_all_cards(ladder, |table| {
            for pair in table.rows.windows(2) {
                let [before, after] = [&pair[0], &pair[1]].map(|row| row.microseconds);
                let (name, card) = (pair[1].step, table.card.key);
                // Not by a hair: 1 % of a modelled time means nothing.
                assert!(after < 0.99 * before, "{card}: {name}: {before} to {after}");
            }
            let last = table.rows.last().unwrap();
            assert!(last.microseconds >= table.reference.microseconds, "{}", table.text());
            assert!(last.share_of_peak > 0.25 && table.rows[0].share_of_peak < 0.1, "{}", table.text());
        });
    }
}

/// Counts that can be derived by hand.
#[test]
fn the_counts_of_the_steps() {
    let [reduction, matmul] = LADDERS;
    on_all_cards(reduction, |table| {
        let rows = &table.rows;
        let (n, blocks) = (f64::from(1 << 24), f64::from(1 << 16));
        assert!(rows[..5].iter().all(|row| row.sectors_per_request == 4.0));
        assert_eq!(rows[5].sectors_per_request, 16.0);
        // The array, and the sum is read and written.
        assert!(rows.iter().all(|row| (4.0 * n..4.0 * n + 100_000_000.0 / 16.0).contains(&row.bytes)));
        // A barrier before the rounds and one after each of 8 rounds, by 8 warps; then one; then one in a small grid.
        let barriers: Vec<f64> = rows.iter().map(|row| row.barriers).collect();
        assert_eq!(barriers, [0.0, 72.0 * blocks, 72.0 * blocks, 36.0 * blocks, 4.0 * blocks, 8.0 * 1024.0]);
        // Halves: only the last five rounds and the first thread's addition part a warp.
        assert_eq!(rows[2].divergent_branches, 6.0 * blocks);
        assert!(rows[1].divergent_branches > 7.0 * rows[2].divergent_branches);
    });
    on_all_cards(matmul, |table| {
        let rows = &table.rows;
        // 32 rows and one element; 4 sectors and one element; 4 sectors of a row; a float4 of each lane.
        let sectors: Vec<f64> = rows.iter().map(|row| row.sectors_per_request).collect();
        assert_eq!(sectors, [16.5, 2.5, 4.0, 4.0, 16.0]);
        assert!(rows.iter().all(|row| row.bytes == 3.0 * 4.0 * 1024.0 * 1024.0));
        // Two barriers for each of 32 tiles by 32 warps of 1,024 blocks; of 64 tiles by 8 or 4 warps of 256 blocks.
        let barriers: Vec<f64> = rows.iter().map(|row| row.barriers).collect();
        assert_eq!(barriers, [0.0, 0.0, 2_097_152.0, 262_144.0, 131_072.0]);
        // Two products and sums in one instruction: 1,024³ / 32, and something around them.
        let products = 1024.0 * 1024.0 * 32.0;
        assert!(
            rows.iter().all(|row| (products..6.0 * products).contains(&row.instructions)),
            "{}",
            table.text()
        );
    });
}

/// Counts a program's only kernel and models its time.
fn modelled(card: &Profile, kernel: &str, launch: &str, registers: Option<u32>) -> Option<Modelled> {
    let text = format!(
        "{kernel}\nint main() {{ float *a, *o; cudaMalloc(&a, 1 << 24); cudaMalloc(&o, 1 << 24); \
         {launch}; return cudaDeviceSynchronize(); }}"
    );
    let program = Program::compile("my.cu", &text, &|_| None).unwrap_or_else(|why| panic!("{why}"));
    let run = program.count_sample(Some(4)).unwrap();
    assert_eq!(run.exit_code(), 0, "{:?}", run.findings);
    model::time(card, &run.counters[0], &program.kernels[0], registers)
}

#[test]
fn an_empty_kernel_takes_the_smallest_time() {
    for card in ALL {
        let empty = modelled(card, "__global__ void k(float *a) {}", "k<<<1, 32>>>(a)", None).unwrap();
        let smallest = card.smallest_kernel.value;
        assert!((smallest..smallest + 0.1).contains(&empty.microseconds), "{}: {empty:?}", card.key);
        let twice =
            modelled(card, "__global__ void k(float *a) {}", "k<<<1, 32>>>(a); k<<<1, 32>>>(a)", None);
        assert_eq!(twice.unwrap().microseconds, 2.0 * empty.microseconds);
    }
}

#[test]
fn a_copy_takes_the_time_of_its_bytes() {
    let copy = "__global__ void k(const float4 *a, float4 *o) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        o[i] = a[i];
    }";
    for card in ALL {
        let copied = modelled(card, copy, "k<<<4096, 256>>>((float4 *)a, (float4 *)o)", None).unwrap();
        assert_eq!((copied.bytes, copied.bound), (2.0 * 16_777_216.0, "memory"), "{}", card.key);
        // GB/s are kB/µs.
        let bytes =
            copied.bytes * 1e-3 / (card.dram.value * card.dram_factor.value) + card.smallest_kernel.value;
        assert!((bytes..1.2 * bytes).contains(&copied.microseconds), "{}: {copied:?}, {bytes}", card.key);
    }
}

/// One block of one warp: nothing hides the latency of a chain of dependent loads.
#[test]
fn a_chain_of_loads_is_bound_by_latency() {
    let chain = "__global__ void k(const int *a, int *o) {
        int i = 0;
        i = a[32 * i]; i = a[i + 1000]; i = a[i + 2000]; i = a[i + 3000];
        o[i] = i;
    }";
    let chain = modelled(&T4, chain, "k<<<1, 1>>>((int *)a, (int *)o)", None).unwrap();
    // Four loads from memory, 500 cycles each at 1,590 MHz.
    let expected = T4.smallest_kernel.value + 4.0 * 500.0 / 1590.0;
    assert_eq!(chain.bound, "latency");
    assert!((chain.microseconds - expected).abs() < 0.15, "{chain:?}, {expected}");
}

#[test]
fn atomic_additions_to_one_address_queue() {
    let kernel = "__global__ void k(float *o) { atomicAdd(o, 1.0f); }";
    let one = modelled(&T4, kernel, "k<<<4096, 256>>>(o)", None).unwrap();
    // One a cycle.
    let expected = T4.smallest_kernel.value + 4096.0 * 256.0 / 1590.0;
    assert_eq!(one.bound, "L2 cache");
    assert!((expected..1.05 * expected).contains(&one.microseconds), "{one:?}, {expected}");
    let spread = "__global__ void k(float *o) { atomicAdd(&o[blockIdx.x * 256 + threadIdx.x], 1.0f); }";
    assert!(modelled(&T4, spread, "k<<<4096, 256>>>(o)", None).unwrap().microseconds < 0.2 * expected);
}

/// Arithmetic of many threads runs at the card's attainable peak, and the last wave is full or not.
#[test]
fn arithmetic_and_waves() {
    let kernel = "__global__ void k(float *o) {
        float a = 0, b = 1, c = 2, d = 3;
        for (int i = 0; i < 256; i++) { a = a * b + c; b = b * c + d; c = c * d + a; d = d * a + b; }
        o[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
    }";
    for card in [&T4, &RTX_4090, &H200] {
        let at_once =
            card.multiprocessors.value as u64 * (card.threads_per_multiprocessor.value as u64 / 256);
        let time = |blocks: u64| modelled(card, kernel, &format!("k<<<{blocks}, 256>>>(o)"), None).unwrap();
        let [one, two, three] = [at_once, at_once + 1, 2 * at_once].map(time);
        let flops = at_once as f64 * 256.0 * 256.0 * 8.0;
        let peak = flops * 1e-3 / (card.fp32.value * card.gemm_factor.value);
        let [one, two, three] = [one, two, three].map(|of| of.microseconds - card.smallest_kernel.value);
        assert!((peak..1.35 * peak).contains(&one), "{}: {one}, {peak}", card.key);
        // The block that is left over issues 1,024 instructions a warp, one per cycle.
        assert!(two > one + 1024.0 / card.clock.value && two < three, "{}: {one} {two} {three}", card.key);
        assert!((three / one - 2.0).abs() < 1e-9, "{}: {one} {three}", card.key);
    }
}

#[test]
fn registers_lower_the_occupancy_and_can_leave_no_block() {
    let kernel = "__global__ void k(const float *a, float *o) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        o[i] = a[i];
    }";
    let time = |registers| modelled(&T4, kernel, "k<<<4096, 1024>>>(a, o)", registers);
    assert!(time(Some(64)).unwrap().microseconds >= time(Some(32)).unwrap().microseconds);
    assert_eq!(time(Some(255)), None, "1,024 threads of 255 registers");
}
