//! Runs kernels in the emulator and as compiled by a C++ compiler, and compares the bits.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cuda_emulator::run::launch::{Machine, Shape};
use cuda_emulator::run::memory::Owner;
use cuda_emulator::{Checks, Program, Span};

use super::generator::{self, BLOCKS, GIVEN, THREADS, WRITTEN};

/// The tests' header, which replaces CUDA.
const HEADER: &str = include_str!("../../../../tests/fake_cuda/cuda_on_host.h");
const HALVES: &str = include_str!("../../../../tests/fake_cuda/halves.h");
const ALL: u32 = BLOCKS * THREADS;

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
    (0..GIVEN * ALL).map(|_| next()).collect()
}

/// The emulator's results, with all checks.
fn here(seed: u64) -> Result<Vec<u32>, String> {
    let text = format!("{}{}", generator::PRELUDE, generator::kernel("k", seed));
    let program = Program::compile("kernel.cu", &text, &|_| None)?;
    let (number, kernel) = program.kernel("k").ok_or("there is no kernel")?;
    let mut machine: Machine = program.machine(Checks::ALL);
    let allocate = |machine: &mut Machine, words: u32| {
        machine.heap.allocate(4 * u64::from(words), Owner::Device, "", Span::default()).ok_or("out of memory")
    };
    let (from, to) = (allocate(&mut machine, GIVEN * ALL)?, allocate(&mut machine, WRITTEN * ALL)?);
    let range = machine.heap.range(from, 4 * u64::from(GIVEN * ALL)).ok_or("no range")?;
    let bytes: Vec<u8> = given(seed).iter().flat_map(|word| word.to_le_bytes()).collect();
    machine.heap.space.bytes[range.clone()].copy_from_slice(&bytes);
    machine.heap.space.states[range]
        .iter_mut()
        .for_each(|state| *state |= cuda_emulator::run::memory::WRITTEN);
    let shape = Shape { grid: [BLOCKS, 1, 1], block: [THREADS, 1, 1], dynamic_shared: 0 };
    let parameters = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let result = machine.run(kernel, number, shape, &parameters, None);
    if let Some(finding) = machine.findings.all.first() {
        return Err(format!("{} is found", finding.title));
    }
    result.map_err(|stop| format!("{stop:?}"))?;
    let range = machine.heap.range(to, 4 * u64::from(WRITTEN * ALL)).ok_or("no range")?;
    Ok(machine.heap.space.bytes[range].as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// The results of all kernels, from a program that g++ compiles with the tests' header instead of CUDA.
fn by_gpp(seeds: &[u64], compiler: Command) -> Result<Vec<Vec<u32>>, String> {
    let mut text = format!("#include \"cuda_on_host.h\"\n{}", generator::PRELUDE);
    let mut table = String::new();
    for seed in seeds {
        let name = format!("k{seed}");
        text.push_str(&generator::kernel(&name, *seed));
        table.push_str(&format!("    on_host::kernel(\"{name}\", {name}),\n"));
    }
    let (given_words, written_words) = (GIVEN * ALL, WRITTEN * ALL);
    text.push_str(&format!(
        "static const on_host::Kernel kernels[] = {{\n{table}}};
int main() {{
    static int given[{given_words}], out[{written_words}];
    const unsigned grid[3] = {{{BLOCKS}, 1, 1}}, block[3] = {{{THREADS}, 1, 1}};
    for (const on_host::Kernel &kernel : kernels) {{
        if (fread(given, sizeof given, 1, stdin) != 1) return 1;
        memset(out, 0, sizeof out);
        int *from = given, *to = out;
        void *arguments[] = {{&from, &to}};
        if (on_host::run(&kernel, 1, kernel.name, grid, block, 0, arguments) != 0) return 2;
        fwrite(out, sizeof out, 1, stdout);
    }}
}}
"
    ));
    let folder = std::env::temp_dir().join(format!("against_gpp_{}_{}", std::process::id(), seeds[0]));
    let result = compiled_and_run(&folder, &text, seeds, compiler);
    let _ = std::fs::remove_dir_all(&folder);
    let words: Vec<u32> = result?.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let all: Vec<Vec<u32>> = words.chunks(written_words as usize).map(<[u32]>::to_vec).collect();
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
    std::fs::write(folder.join("cuda_on_host.h"), HEADER).map_err(trouble)?;
    std::fs::write(folder.join("halves.h"), HALVES).map_err(trouble)?;
    // Without `-frounding-math`, g++ turns `0.0f - (float)i` into `-(float)i`, which is -0 if `i` is 0.
    let options = ["-std=c++17", "-O1", "-frounding-math", "-ffp-contract=off", "-w", "-o"];
    let made = compiler.args(options).arg(&binary).arg(&source).output();
    let made = made.map_err(|trouble| format!("the compiler of C++: {trouble}"))?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).lines().take(20).collect::<Vec<_>>().join("\n"));
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
