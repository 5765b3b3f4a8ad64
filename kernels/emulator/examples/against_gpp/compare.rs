//! Runs kernels in the emulator and as compiled by a C++ compiler, and compares the bits.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cuda_emulator::run::launch::{Machine, Shape};
use cuda_emulator::run::memory::{Owner, WRITTEN as WRITTEN_STATE};
use cuda_emulator::{Checks, Program, Span};

use super::generator::{self, BLOCKS, GIVEN, THREADS, TOTALS, WRITTEN};

/// The headers that replace CUDA, and the course's that they include.
const HEADERS: &[(&str, &str)] = &[
    ("cuda_on_host.h", include_str!("../../../../tests/fake_cuda/cuda_on_host.h")),
    ("halves.h", include_str!("../../../../tests/fake_cuda/halves.h")),
    ("for_gpp.h", include_str!("for_gpp.h")),
    ("math.cuh", include_str!("../../../math.cuh")),
    ("common.cuh", include_str!("../../../common.cuh")),
    ("half.cuh", include_str!("../../../half.cuh")),
];
const THREADS_OF_ALL: u32 = BLOCKS * THREADS;
const ALL_GIVEN: u32 = GIVEN * THREADS_OF_ALL;
const ALL_WRITTEN: u32 = WRITTEN * THREADS_OF_ALL + TOTALS;

/// The seeds whose kernels give different bits, each with the difference.
pub fn differences(seeds: &[u64], compiler: Command) -> Result<Vec<(u64, String)>, String> {
    let theirs = by_gpp(seeds, compiler)?;
    let mut found = Vec::new();
    for (seed, theirs) in seeds.iter().zip(&theirs) {
        match here(*seed) {
            Ok(ours) if ours == *theirs => {}
            Ok(ours) => {
                let at = ours.iter().zip(theirs).position(|(a, b)| a != b).unwrap_or(0);
                found.push((*seed, format!("word {at} is {:#x}, and {:#x} with g++", ours[at], theirs[at])));
            }
            Err(trouble) => found.push((*seed, trouble)),
        }
    }
    Ok(found)
}

/// The input of a kernel's threads.
fn given(seed: u64) -> Vec<i32> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state >> 60 {
            0 => 0,
            1 => -1,
            2 => (state >> 40) as i32 & 15,
            _ => (state >> 20) as i32,
        }
    };
    (0..ALL_GIVEN).map(|_| next()).collect()
}

/// The whole source of a kernel `k`, for the emulator and for NVRTC.
pub fn source(seed: u64) -> String {
    format!("#include <cuda_fp16.h>\n{}{}", generator::PRELUDE, generator::kernel("k", seed))
}

/// The emulator's results, with all checks.
fn here(seed: u64) -> Result<Vec<u32>, String> {
    let program = Program::compile("kernel.cu", &source(seed), &|_| None)?;
    let (number, kernel) = program.kernel("k").ok_or("there is no kernel")?;
    let mut machine: Machine = program.machine(Checks::ALL);
    let mut memory = |words: &[i32]| {
        let size = 4 * words.len() as u64;
        let address = machine.heap.allocate(size, Owner::Device, "", Span::default());
        let range = machine.heap.range(address?, size)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        machine.heap.space.bytes[range.clone()].copy_from_slice(&bytes);
        machine.heap.space.states[range.clone()].iter_mut().for_each(|state| *state |= WRITTEN_STATE);
        Some((address?, range))
    };
    let (from, _) = memory(&given(seed)).ok_or("out of memory")?;
    let (to, range) = memory(&vec![0; ALL_WRITTEN as usize]).ok_or("out of memory")?;
    let shape = Shape { grid: [BLOCKS, 1, 1], block: [THREADS, 1, 1], dynamic_shared: 0 };
    let parameters = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let result = machine.run(kernel, number, shape, &parameters, None);
    if let Some(finding) = machine.findings.all.first() {
        return Err(format!("{} is found", finding.title));
    }
    result.map_err(|stop| format!("{stop:?}"))?;
    Ok(machine.heap.space.bytes[range].as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// The results of all kernels, from a program that g++ compiles with the tests' header instead of CUDA.
fn by_gpp(seeds: &[u64], compiler: Command) -> Result<Vec<Vec<u32>>, String> {
    let mut text = format!("#include \"cuda_on_host.h\"\n#include \"for_gpp.h\"\n{}", generator::PRELUDE);
    let mut table = String::new();
    for seed in seeds {
        let name = format!("k{seed}");
        text.push_str(&generator::kernel(&name, *seed));
        table.push_str(&format!("    on_host::kernel(\"{name}\", {name}),\n"));
    }
    text.push_str(&format!(
        "static const on_host::Kernel kernels[] = {{\n{table}}};
int main() {{
    static int given[{ALL_GIVEN}], out[{ALL_WRITTEN}];
    const unsigned grid[3] = {{{BLOCKS}, 1, 1}}, block[3] = {{{THREADS}, 1, 1}};
    for (const on_host::Kernel &kernel : kernels) {{
        if (fread(given, sizeof given, 1, stdin) != 1) return 1;
        memset(out, 0, sizeof out);
        int *from = given, *to = out;
        void *arguments[] = {{&from, &to}};
        if (on_host::run(&kernel, 1, kernel.name, grid, block, 0, arguments) != 0) {{
            fputs(on_host::failure, stderr);
            return 2;
        }}
        fwrite(out, sizeof out, 1, stdout);
    }}
}}
"
    ));
    let folder = std::env::temp_dir().join(format!("against_gpp_{}_{}", std::process::id(), seeds[0]));
    let result = compiled_and_run(&folder, &text, seeds, compiler);
    let _ = std::fs::remove_dir_all(&folder);
    let words: Vec<u32> = result?.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let all: Vec<Vec<u32>> = words.chunks(ALL_WRITTEN as usize).map(<[u32]>::to_vec).collect();
    if all.len() == seeds.len() { Ok(all) } else { Err("the program of g++ wrote too little".to_owned()) }
}

fn compiled_and_run(
    folder: &Path,
    text: &str,
    seeds: &[u64],
    mut compiler: Command,
) -> Result<Vec<u8>, String> {
    let trouble = |trouble: std::io::Error| trouble.to_string();
    std::fs::create_dir_all(folder).map_err(trouble)?;
    let (source, binary): (PathBuf, PathBuf) = (folder.join("kernels.cpp"), folder.join("kernels"));
    std::fs::write(&source, text).map_err(trouble)?;
    for (name, text) in HEADERS {
        std::fs::write(folder.join(name), text).map_err(trouble)?;
    }
    // Without `-frounding-math`, g++ turns `0.0f - (float)i` into `-(float)i`, which is -0 if `i` is 0.
    let options =
        ["-std=c++17", "-O1", "-frounding-math", "-ffp-contract=off", "-fno-strict-aliasing", "-w", "-o"];
    let made = compiler.args(options).arg(&binary).arg(&source).output();
    let made = made.map_err(|trouble| format!("the compiler of C++: {trouble}"))?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr)
            .lines()
            .filter(|line| line.contains("error"))
            .take(20)
            .collect::<Vec<_>>()
            .join("\n"));
    }
    let mut child =
        Command::new(&binary).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(trouble)?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let bytes: Vec<u8> =
        seeds.iter().flat_map(|seed| given(*seed)).flat_map(|word| word.to_le_bytes()).collect();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().map_err(trouble)?;
    let _ = writer.join();
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("the program of g++: {}", output.status))
    }
}
