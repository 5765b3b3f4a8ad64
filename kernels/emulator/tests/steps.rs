//! The recording of a warp's steps: it changes no result, and its values are those that the kernel itself prints.

use cuda_emulator::ir::debug::Kind;
use cuda_emulator::run::recording::{Content, End, Recording, Wanted};
use cuda_emulator::{Checks, Program};

fn recorded(text: &str, wanted: Wanted) -> (Program, Recording, String) {
    let program = Program::compile("my.cu", text, &|_| None).unwrap_or_else(|trouble| panic!("{trouble}"));
    let run = program.record(wanted).unwrap();
    (program, run.recording.unwrap(), run.output)
}

/// The contents of a variable after each step whose line has this text.
fn contents(
    text: &str,
    program: &Program,
    recording: &Recording,
    name: &str,
    at: &str,
) -> Vec<[Content; 32]> {
    let debug = &program.kernels[recording.kernel as usize].debug;
    let number = debug.variables.iter().position(|variable| variable.name == name).unwrap() as u32;
    let mut now = [Content::Nothing; 32];
    let mut all = Vec::new();
    for step in &recording.steps {
        for change in step.variables.iter().filter(|change| change.variable == number && change.part == 0) {
            let lanes = (0..32).filter(|lane| change.lanes >> lane & 1 != 0);
            lanes.zip(&change.contents).for_each(|(lane, content)| now[lane] = *content);
        }
        let line = debug.statements[step.statement as usize].start.line as usize;
        if text.lines().nth(line - 1).unwrap().contains(at) {
            all.push(now);
        }
    }
    all
}

/// Each lane prints its variables where it stands; the recording says the same.
#[test]
fn values_are_those_that_the_kernel_prints() {
    let text = r#"#include <cstdio>
struct Pair { short a; double b; };
__device__ int collatz(int n) {
    int steps = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}
template <typename T> __device__ T twice(T x) { T y = x; y += x; return y; }
__global__ void k(int *data, unsigned char *bytes) {
    int lane = threadIdx.x, steps = 0;
    if (lane > 0 && lane < 20) steps = collatz(lane);
    long long wide = twice(steps * 1000000007ll);
    Pair pair = {(short)-lane, wide * 0.5};
    unsigned char byte = bytes[lane];
    int &slot = data[lane * 2 % 32];
    slot += lane;
    float sum = 0;
    for (int i = lane; i < 40; i += 7) sum += i * 0.1f;
    printf("%d %d %lld %d %d %d %.9g\n", lane, steps, wide, pair.a, byte, slot, sum); // here
}
int main() {
    int *data; unsigned char *bytes;
    cudaMalloc(&data, 32 * sizeof(int)); cudaMemset(data, 0, 32 * sizeof(int));
    cudaMalloc(&bytes, 32); cudaMemset(bytes, 200, 32);
    k<<<1, 32>>>(data, bytes);
    return cudaDeviceSynchronize();
}
"#;
    let (program, recording, output) = recorded(text, Wanted { launch: 1, block: [0; 3], warp: 0 });
    assert_eq!(recording.end, End::Returned);
    let shown: Vec<[Content; 32]> = ["lane", "steps", "wide", "pair", "byte", "slot", "sum"]
        .into_iter()
        .map(|name| *contents(text, &program, &recording, name, "// here").last().unwrap())
        .collect();
    let bits = |column: usize, lane: usize| match shown[column][lane] {
        Content::Bits(bits) => bits,
        other => panic!("column {column}, lane {lane}: {other:?}"),
    };
    let mut lines = 0;
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let lane: usize = words[0].parse().unwrap();
        for column in [0, 1, 3, 5] {
            assert_eq!(bits(column, lane) as i32, words[column].parse::<i32>().unwrap(), "{column}: {line}");
        }
        assert_eq!(bits(2, lane) as i64, words[2].parse::<i64>().unwrap(), "{line}");
        assert_eq!(bits(4, lane), words[4].parse::<u64>().unwrap(), "{line}");
        assert_eq!(f32::from_bits(bits(6, lane) as u32), words[6].parse::<f32>().unwrap(), "{line}");
        lines += 1;
    }
    assert_eq!(lines, 32);
}

/// In scope and without a value, in scope with one, out of scope.
#[test]
fn a_variable_has_a_scope_and_a_first_value() {
    let text = "__global__ void k(int *p) {
    for (int i = 0; i < 2; i++) {
        bool is_odd;
        int x;
        p[1] = 0; // before
        x = i;
        is_odd = true;
        p[0] = x; // after
    }
    p[2] = 0; // behind
}
int main() { int *p; cudaMalloc(&p, 12); k<<<1, 1>>>(p); return cudaDeviceSynchronize(); }";
    let (program, recording, _) = recorded(text, Wanted { launch: 1, block: [0; 3], warp: 0 });
    let first = |name, at| -> Vec<Content> {
        contents(text, &program, &recording, name, at).iter().map(|lanes| lanes[0]).collect()
    };
    assert_eq!(first("x", "// before"), [Content::Unwritten; 2]);
    assert_eq!(first("x", "// after"), [Content::Bits(0), Content::Bits(1)]);
    assert_eq!(first("is_odd", "// before"), [Content::Unwritten; 2]);
    assert_eq!(first("is_odd", "// after"), [Content::Bits(1); 2]);
    assert_eq!(first("x", "// behind"), [Content::Nothing]);
    assert_eq!(first("i", "// behind"), [Content::Nothing]);
}

#[test]
fn pointers_are_named_by_the_memory_they_point_into() {
    let text = "__device__ int table[4];
__global__ void k(float *a, float *b) {
    __shared__ double s[8];
    float *p = a + 2 * threadIdx.x; double *q = &s[3]; int *t = table + 1; float *none = nullptr;
    p[0] = b[0] + *t; if (none) *q = 1; // here
}
int main() { float *a; cudaMalloc(&a, 256); cudaMemset(a, 0, 256); k<<<1, 2>>>(a, a + 32); return cudaDeviceSynchronize(); }";
    let (program, recording, _) = recorded(text, Wanted { launch: 1, block: [0; 3], warp: 0 });
    let named = |name| {
        let Content::Bits(at) = contents(text, &program, &recording, name, "// here")[0][1] else { panic!() };
        recording.region(at).map(|(region, bytes)| (region.name.clone(), bytes))
    };
    assert_eq!(named("p"), Some(("a".to_owned(), 8)));
    assert_eq!(named("b"), Some(("b".to_owned(), 0)));
    assert_eq!(named("q"), Some(("s".to_owned(), 24)));
    assert_eq!(named("t"), Some(("table".to_owned(), 4)));
    assert_eq!(named("none"), None);
    let debug = &program.kernels[recording.kernel as usize].debug;
    assert!(debug.variables.iter().any(|known| known.name == "p" && known.parts[0].kind == Kind::Pointer));
}

#[test]
fn a_recording_changes_no_result() {
    let programs = [include_str!("programs/matmul.cu"), include_str!("programs/reduction.cu")];
    for text in programs {
        let wanted = Wanted { launch: 1, block: [1, 0, 0], warp: 2 };
        let (program, recording, output) = recorded(text, wanted);
        assert!(recording.exists() && recording.steps.len() > 20);
        assert_eq!(output, program.run(Checks::MEMORY).unwrap().output);
    }
}

/// The calls of a function that calls itself share its instructions.
#[test]
fn a_function_that_calls_itself_has_steps() {
    let text = "__device__ int sum(int n) {
    if (n == 0) return 0;
    int below = sum(n - 1);
    return n + below;
}
__global__ void k(int *out) { out[threadIdx.x] = sum(threadIdx.x + 1); }
int main() { int *p; cudaMalloc(&p, 8); k<<<1, 2>>>(p); cudaDeviceSynchronize(); cudaFree(p); }";
    let (program, recording, _) = recorded(text, Wanted { launch: 1, block: [0; 3], warp: 0 });
    assert_eq!(recording.end, End::Returned);
    let lane = |name: &str, at: &str, lane: usize| -> Vec<Content> {
        let mut all: Vec<_> =
            contents(text, &program, &recording, name, at).iter().map(|now| now[lane]).collect();
        // The lanes execute a statement in two steps where they have parted.
        all.dedup();
        all
    };
    // The second lane calls once more.
    let of_first = lane("n", "n == 0", 0);
    assert_eq!(of_first[..2], [Content::Bits(1), Content::Bits(0)]);
    assert_eq!(lane("n", "n == 0", 1), [Content::Bits(2), Content::Bits(1), Content::Bits(0)]);
    assert_eq!(lane("below", "n + below", 1)[1..], [Content::Bits(0), Content::Bits(1)]);
}
