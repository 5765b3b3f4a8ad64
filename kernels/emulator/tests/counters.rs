//! Kernel counters whose values can be derived by hand.

use cuda_emulator::run::counters::{Counters, Requests, Wavefronts};
use cuda_emulator::run::occupancy::{Card, Occupancy};
use cuda_emulator::{Program, report};

/// A Tesla T4: compute capability 7.5.
fn t4() -> Card {
    Card {
        name: "Tesla T4".to_owned(),
        multiprocessors: 40,
        warps: 32,
        blocks: 16,
        shared: 64 * 1024,
        shared_of_system: 0,
        shared_unit: 256,
        flops: 8.1e12,
        bytes: 320e9,
    }
}

/// Returns the counters of a program's only kernel, launched on two arrays of 64 KB.
fn counted(kernel: &str, launch: &str) -> (Program, Counters) {
    let text = format!(
        "{kernel}\nint main() {{ float *a, *o; cudaMalloc(&a, 65536); cudaMalloc(&o, 65536); \
         {launch}; return cudaDeviceSynchronize(); }}"
    );
    let program = Program::compile("my.cu", &text, &|_| None).unwrap_or_else(|trouble| panic!("{trouble}"));
    let run = program.count().unwrap();
    assert_eq!(run.exit_code(), 0, "{:?}", run.findings);
    let counters = run.counters.into_iter().next().unwrap();
    (program, counters)
}

#[test]
fn sectors_of_a_warps_loads() {
    for (access, sectors) in [
        ("a[i]", 4),       // 32 floats are 128 bytes, 4 sectors of 32
        ("a[i + 1]", 5),   // the same, but from the middle of a sector to that of another
        ("a[2 * i]", 8),   // every other float: twice the sectors
        ("a[32 * i]", 32), // one sector for each lane
        ("a[0]", 1),       // all lanes read one word
        ("a[i / 8]", 1),   // 4 words next to each other
        ("a[31 - i]", 4),  // the order does not matter
        ("((double *)a)[i]", 8),
        ("((char *)a)[i]", 1),
        ("((float4 *)a)[i].x", 16), // 16 bytes apart: two lanes share each sector
    ] {
        let kernel =
            format!("__global__ void k(float *a, float *o) {{ int i = threadIdx.x; o[i] = {access}; }}");
        let (_, counters) = counted(&kernel, "k<<<1, 32>>>(a, o)");
        assert_eq!(counters.loads, Requests { requests: 1, sectors }, "{access}");
        assert_eq!(counters.stores, Requests { requests: 1, sectors: 4 }, "{access}");
    }
}

#[test]
fn a_vector_is_one_request() {
    let kernel = "__global__ void k(float4 *a, float4 *o) { o[threadIdx.x] = a[threadIdx.x]; }";
    let (_, counters) = counted(kernel, "k<<<2, 64>>>((float4 *)a, (float4 *)o)");
    // 4 warps; 32 · 16 bytes are 16 sectors each.
    assert_eq!(counters.loads, Requests { requests: 4, sectors: 64 });
    assert_eq!(counters.stores, Requests { requests: 4, sectors: 64 });
}

const TRANSPOSED: &str = "
    __global__ void k(float *a, float *o) {
        __shared__ float tile[32][WIDTH];
        tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
        __syncthreads();
        o[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
    }";

#[test]
fn a_transposed_tile_conflicts_unless_it_is_padded() {
    // A column of a 32-float-wide tile is in one bank: 32 wavefronts for each of the 32 warps, 31 of them conflicts.
    for (width, wavefronts, conflicts) in [("32", 1024, 992), ("33", 32, 0)] {
        let (program, counters) =
            counted(&TRANSPOSED.replace("WIDTH", width), "k<<<1, dim3(32, 32)>>>(a, o)");
        assert_eq!(counters.shared_stores, Wavefronts { requests: 32, wavefronts: 32, conflicts: 0 });
        assert_eq!(counters.shared_loads, Wavefronts { requests: 32, wavefronts, conflicts }, "{width}");
        assert_eq!(counters.loads, Requests { requests: 32, sectors: 128 });
        assert_eq!(counters.barriers(&program.kernels[0]), 32);
    }
}

#[test]
fn conflicts_of_other_strides_and_widths() {
    for (access, wavefronts, conflicts) in [
        ("s[threadIdx.x]", 1, 0),
        ("s[2 * threadIdx.x]", 2, 1),
        ("s[3 * threadIdx.x]", 1, 0),
        ("s[0]", 1, 0),
        ("s[threadIdx.x / 2]", 1, 0),
        // Two halves of a warp, one after the other.
        ("((double *)s)[threadIdx.x]", 2, 0),
        ("((double *)s)[2 * threadIdx.x]", 4, 2),
    ] {
        let kernel = format!(
            "__global__ void k(float *a, float *o) {{ __shared__ __align__(8) float s[128]; o[threadIdx.x] = {access}; }}"
        );
        let (_, counters) = counted(&kernel, "k<<<1, 32>>>(a, o)");
        assert_eq!(counters.shared_loads, Wavefronts { requests: 1, wavefronts, conflicts }, "{access}");
    }
}

#[test]
fn branches_that_part_a_warp_and_lanes_that_are_active() {
    let kernel = "__global__ void k(float *a, float *o) {
        if (threadIdx.x % 2) o[threadIdx.x] = 1;
        if (threadIdx.x < 32) o[threadIdx.x] = 2;
        if (blockIdx.x == 0) __syncthreads();
    }";
    let (program, counters) = counted(kernel, "k<<<2, 64>>>(a, o)");
    // Only the first branch diverges, in all four warps; only the two warps of block 0 reach the barrier.
    assert_eq!((counters.divergent_branches, counters.barriers(&program.kernels[0])), (4, 2));
    // 16 of the 32 lanes of each warp, and all lanes of the first warp of each block.
    assert_eq!(counters.stores, Requests { requests: 6, sectors: 4 * 4 + 2 * 4 });
    let (_, full) =
        counted("__global__ void k(float *a, float *o) { o[threadIdx.x] = 1; }", "k<<<1, 64>>>(a, o)");
    assert_eq!(full.thread_instructions(), 32 * full.instructions());
    let (_, half) =
        counted("__global__ void k(float *a, float *o) { o[threadIdx.x] = 1; }", "k<<<1, 16>>>(a, o)");
    assert_eq!(half.thread_instructions(), 16 * half.instructions());
}

#[test]
fn atomics_are_counted_by_themselves() {
    let (_, counters) = counted("__global__ void k(int *a) { atomicAdd(a, 1); }", "k<<<1, 64>>>((int *)a)");
    assert_eq!(counters.atomics, Requests { requests: 2, sectors: 2 });
    assert_eq!((counters.loads, counters.stores), (Requests::default(), Requests::default()));
}

#[test]
fn operations_and_bytes_of_a_product() {
    let kernel = "__global__ void k(const float *a, float *o) {
        float sum = 0;
        for (int i = 0; i < 8; i++) sum += a[i] * a[threadIdx.x];
        o[threadIdx.x] = fmaf(sum, 2.0f, 1.0f);
    }";
    let (program, counters) = counted(kernel, "k<<<1, 32>>>(a, o); k<<<1, 32>>>(a, o)");
    assert_eq!(counters.launches, 2);
    // A product and a sum in each of 8 steps, and a fused pair in one instruction.
    assert_eq!(counters.flops(&program.kernels[0]), 2 * 32 * (8 * 2 + 2));
    // Everything read or written is counted once in each launch: 128 bytes of each array.
    assert_eq!(counters.footprint, 2 * (128 + 128));
    assert_eq!(counters.global_sectors(), 2 * (8 * (1 + 4) + 4));
}

#[test]
fn occupancy_by_each_limit() {
    for (shared, threads, registers, blocks, percent) in [
        ("", 256, None, 4, 100.0),
        ("", 1024, None, 1, 100.0),
        ("", 32, None, 16, 50.0), // no more than 16 blocks
        ("", 96, None, 10, 93.75),
        ("__shared__ float s[4096]; s[0] = 1;", 128, None, 4, 50.0), // 16 of 64 KB
        ("", 256, Some(32), 4, 100.0),
        ("", 256, Some(65), 3, 75.0), // 65 · 32 registers are 9 units of 256: 28 warps
        ("", 256, Some(255), 1, 25.0),
    ] {
        let kernel = format!("__global__ void k(float *a, float *o) {{ {shared} }}");
        let (program, counters) = counted(&kernel, &format!("k<<<1, {threads}>>>(a, o)"));
        let occupancy = Occupancy::new(&t4(), &program.kernels[0], &counters.shape, registers);
        assert_eq!(
            (occupancy.blocks(), occupancy.theoretical() * 100.0),
            (blocks, percent),
            "{threads} {registers:?}"
        );
    }
}

#[test]
fn occupancy_of_another_generation() {
    // Compute capability 9.0: 64 warps and 228 KB, of which the system takes 1 KB for each block.
    let h100 =
        Card { warps: 64, blocks: 32, shared: 228 * 1024, shared_of_system: 1024, shared_unit: 128, ..t4() };
    for (shared, threads, blocks, percent) in
        [("", 256, 8, 100.0), ("", 32, 32, 50.0), ("__shared__ float s[4096]; s[0] = 1;", 128, 13, 81.25)]
    {
        let kernel = format!("__global__ void k(float *a, float *o) {{ {shared} }}");
        let (program, counters) = counted(&kernel, &format!("k<<<1, {threads}>>>(a, o)"));
        let occupancy = Occupancy::new(&h100, &program.kernels[0], &counters.shape, None);
        assert_eq!((occupancy.blocks(), occupancy.theoretical() * 100.0), (blocks, percent), "{threads}");
    }
}

#[test]
fn lines_fetched_sectors_and_updates_of_one_address() {
    // 64 warps of 2 blocks read the same 128 bytes: each block fetches 4 sectors.
    let kernel = "__global__ void k(float *a, float *o) {
        float v = a[threadIdx.x % 32] + a[32 * (threadIdx.x % 32)];
        atomicAdd(&o[threadIdx.x % 2], v);
    }";
    let (_, counters) = counted(kernel, "k<<<2, 1024>>>(a, o)");
    // The other load touches 32 lines of a sector each; the first is among the 4.
    assert_eq!(counters.fetched, 2 * (4 + 31));
    assert_eq!(counters.lines, 64 * (1 + 32 + 1));
    assert_eq!(counters.hottest, 2 * 512);
    // 4 + 31 sectors are read, and one is read and written; of two allocations of 64 KB.
    assert_eq!(counters.footprint, (4 + 31 + 2) * 32);
    assert_eq!(counters.reach, 3 * 65536);
    let misses: u64 = counters.sites().iter().map(|site| site.misses).sum();
    assert_eq!(misses, 2 * 2, "the first warp of each block misses with each load");

    let histogram = "__global__ void k(float *a, float *o) {
        __shared__ int bins[64];
        bins[threadIdx.x] = 0;
        __syncthreads();
        atomicAdd(&bins[threadIdx.x % 4], 1);
    }";
    let (_, counters) = counted(histogram, "k<<<1, 64>>>(a, o)");
    assert_eq!(counters.shared_atomics, Wavefronts { requests: 2, wavefronts: 2 * 8, conflicts: 2 * 7 });
}

/// A sample has the same counters per block, and ends before results are used.
#[test]
fn a_sample_of_the_blocks() {
    let text = include_str!("programs/matmul.cu");
    let program = Program::compile("matmul.cu", text, &|_| None).unwrap();
    let all = program.count().unwrap();
    let sample = program.count_sample(Some(4)).unwrap();
    assert_eq!((sample.exit_code(), sample.output.as_str()), (0, "no error\n"));
    let (all, sample) = (&all.counters[0], &sample.counters[0]);
    assert_eq!((all.blocks, all.counted_blocks), (256, 256));
    assert_eq!((sample.blocks, sample.counted_blocks), (256, 4));
    assert_eq!(64 * sample.loads.sectors, all.loads.sectors);
    assert_eq!(64 * sample.instructions(), all.instructions());
    assert_eq!(64 * sample.fetched, all.fetched);
    assert_eq!(64 * sample.leaders().sum::<u64>(), all.leaders().sum::<u64>());
    assert_eq!((all.footprint, all.reach), (3 * 256 * 256 * 4, 3 * 256 * 256 * 4));
    // Blocks spread over the grid: 4 of its 16 rows, and the first column of blocks.
    assert_eq!(sample.footprint, (4 * 16 * 256 + 256 * 16 + 4 * 256) * 4);
    assert_eq!(program.count_sample(Some(1000)).unwrap().counters[0].counted_blocks, 256);
}

#[test]
fn counters_do_not_depend_on_checks_and_change_no_results() {
    let text = include_str!("programs/matmul.cu");
    let program = Program::compile("matmul.cu", text, &|_| None).unwrap();
    let counted = program.count().unwrap();
    assert!(program.run(cuda_emulator::Checks::ALL).unwrap().counters.is_empty());
    assert_eq!(counted.output, program.run(cuda_emulator::Checks::ALL).unwrap().output);
    let of = &counted.counters[0];
    // 256³ products and sums; 2,048 warps load two tiles in each of 16 steps, in rows of 16 floats.
    assert_eq!(of.flops(&program.kernels[0]), 2 * 256 * 256 * 256);
    assert_eq!(of.loads, Requests { requests: 2048 * 16 * 2, sectors: 2048 * 16 * 2 * 4 });
    assert_eq!(of.barriers(&program.kernels[0]), 2048 * 16 * 2);
    assert_eq!((of.shared_loads.requests, of.shared_loads.conflicts), (2048 * 256 * 2, 0));
}

/// A sector's number is an index of a set of sectors.
#[test]
fn an_access_far_beyond_memory_takes_no_memory_to_count() {
    let text = crate::on_ints(
        "__global__ void k(int *d) { d[threadIdx.x + (1ll << 37)] = 1; }",
        "k<<<1, 32>>>(d)",
        32,
        1,
    );
    let run = Program::compile("my.cu", &text, &|_| None).unwrap().count().unwrap();
    assert!(run.findings.all[0].title.contains("Invalid __global__ write of size 4 bytes"));
    // Only Linux tells the most memory that a process has had.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().split(' ').next());
    let most: u64 = most.map_or(0, |kib| kib.parse().unwrap());
    assert!(most < 1 << 20, "{most} KiB");
}

#[test]
fn the_table() {
    let (program, counters) = counted(&TRANSPOSED.replace("WIDTH", "33"), "k<<<1, dim3(32, 32)>>>(a, o)");
    let table = report::counters::text(
        std::slice::from_ref(&counters),
        &program.kernels,
        &report::counters::Known {
            card: &t4(),
            registers: &|_| None,
            time: &|_, _| Some((2.625, "latency".to_owned())),
        },
    );
    assert_eq!(table, include_str!("programs/counters.txt"));
    let known = report::counters::Known { card: &t4(), registers: &|_| Some(20), time: &|_, _| None };
    let json = report::counters::json(&[counters], &program.kernels, &known);
    assert!(
        json.starts_with("[{\"kernel\":\"k(float *, float *)\",\"launches\":1,\"grid\":[1, 1, 1],"),
        "{json}"
    );
    assert!(
        json.contains(
            "{\"name\":\"registers of a thread\",\"value\":20,\"metric\":\"launch__registers_per_thread\"}"
        ),
        "{json}"
    );
}
