//! The kernels in the course's own emulator give the same bits as g++, for random shapes and launches.

use std::collections::{BTreeMap, HashMap};

use cuda_emulator::run::checks::Checks;
use cuda_emulator::run::launch::{Machine, Shape};
use cuda_emulator::run::memory::Owner;
use cuda_emulator::{Program, Span};

use super::host::{at, course};
use super::signatures;
use crate::stand_ins::fake_cuda::block;

/// Elements of each buffer: more than any of the shapes has, so that few trials go out of bounds.
const ELEMENTS: usize = 6000;
/// The number of valid launches of each kernel, and the maximum number of trials to get them.
const TRIALS: usize = 4;
const ATTEMPTS: usize = 120;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A parameter of a `__global__` function.
enum Argument {
    Bytes(Vec<u8>),
    /// The address of a buffer.
    Buffer(usize),
}

struct Buffer {
    dtype: String,
    bytes: Vec<u8>,
    is_output: bool,
}

fn element(dtype: &str, random: &mut Random, most: u64) -> Vec<u8> {
    let float = |random: &mut Random| match random.below(60) {
        0 => f64::INFINITY,
        1 => f64::NAN,
        2 => -0.0,
        3 => 1e-40,
        _ => (random.below(2_000_001) as f64 - 1e6) / 250_000.0,
    };
    match dtype {
        "f32" => (float(random) as f32).to_le_bytes().to_vec(),
        "f64" => float(random).to_le_bytes().to_vec(),
        "f16" | "bf16" => (random.below(65536) as u16).to_le_bytes().to_vec(),
        "i64" => (random.below(most) as i64).to_le_bytes().to_vec(),
        "i32" => (random.below(1000) as i32 - 500).to_le_bytes().to_vec(),
        _ => vec![random.below(2) as u8],
    }
}

fn view(dims: &[(i64, i64)]) -> Vec<u8> {
    let mut fields = vec![dims.len() as i64];
    fields.extend((0..8).map(|i| dims.get(i).map_or(0, |dim| dim.0)));
    fields.extend((0..8).map(|i| dims.get(i).map_or(0, |dim| dim.1)));
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

fn in_order(shape: &[i64]) -> Vec<(i64, i64)> {
    let mut dims: Vec<(i64, i64)> = Vec::new();
    let mut stride = 1;
    for size in shape.iter().rev() {
        dims.insert(0, (*size, stride));
        stride *= size;
    }
    dims
}

/// Random launch arguments: the shapes often match as the kernels require, and otherwise both sides run the same
/// nonsense.
fn arguments(name: &str, parameters: &[String], random: &mut Random) -> (Vec<Argument>, Vec<Buffer>) {
    let sizes = [1, 2, 3, 5, 31, 32, 33, 40, 64];
    let shape: Vec<i64> = match random.below(4) {
        0 => vec![random.of(&[1, 2, 3, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1000, 1023, 1024, 1025, 3000])],
        1 | 2 => vec![random.of(&sizes), random.of(&sizes)],
        _ => vec![random.of(&sizes[..4]), random.of(&sizes[..6]), random.of(&sizes[..6])],
    };
    let last = *shape.last().unwrap();
    let reduced = random.below(2) == 0;
    let (mut arguments, mut buffers) = (Vec::new(), Vec::new());
    let mut blocks = 0;
    for parameter in parameters {
        let long = |value: i64| Argument::Bytes(value.to_le_bytes().to_vec());
        match parameter.split_once(' ') {
            Some((kind @ ("In" | "Out"), dtype)) => {
                let dtype = if dtype == "bool" { "u8" } else { dtype };
                let is_output = kind == "Out";
                let mut number = element(dtype, random, last as u64);
                number[0] |= u8::from(name.starts_with("remainder"));
                let mut dims = match (is_output, reduced) {
                    (true, true) if shape.len() > 1 => in_order(&shape[..shape.len() - 1]),
                    (true, true) => in_order(&[1]),
                    _ => in_order(&shape),
                };
                if !is_output && random.below(6) == 0 {
                    let dim = random.below(dims.len() as u64) as usize;
                    dims[dim].1 = 0; // Broadcast.
                }
                if dims.len() == 2 && random.below(4) == 0 {
                    let rows = dims[0].0;
                    (dims[0].1, dims[1].1) = (1, rows); // Transposed.
                }
                if !is_output && random.below(6) == 0 {
                    arguments.extend([long(0), Argument::Bytes(number), Argument::Bytes(view(&[]))]);
                    continue;
                }
                let mut bytes: Vec<u8> =
                    (0..ELEMENTS).flat_map(|_| element(dtype, random, last as u64)).collect();
                if name.starts_with("remainder") {
                    bytes.chunks_mut(8).for_each(|element| element[0] |= 1); // Avoid division by 0.
                }
                arguments.push(Argument::Buffer(buffers.len()));
                buffers.push(Buffer { dtype: dtype.to_owned(), bytes, is_output });
                if !is_output {
                    arguments.push(Argument::Bytes(number));
                }
                arguments.push(Argument::Bytes(view(&dims)));
            }
            Some(_) => {
                let (_, fields) = block(parameter).unwrap();
                let size = shape[(shape.len() + blocks).saturating_sub(2).min(shape.len() - 1)];
                blocks = 1;
                let (kernel, stride, padding, dilation) =
                    (1 + random.below(3) as i64, 1 + random.below(2) as i64, random.below(2) as i64, 1);
                let count = ((size + 2 * padding - kernel) / stride + 1).max(1);
                let value = |field: &str| match field {
                    "kernel" => kernel,
                    "stride" => stride,
                    "padding" => padding,
                    "dilation" => dilation,
                    "size" => size,
                    "count" => count,
                    _ => 1,
                };
                arguments
                    .push(Argument::Bytes(fields.flat_map(|field| value(field).to_le_bytes()).collect()));
            }
            None if parameter == "Int" => {
                // Kernels divide by lengths.
                let is_length =
                    ["sum", "amax", "amin", "arg", "eye"].iter().any(|word| name.starts_with(word));
                // A linspace of one element would divide 0 by 0, and NaN has no integer value.
                let least = if name.starts_with("linspace") { 2 } else { i64::from(is_length) };
                // In C++, converting an out-of-range float to an integer is undefined.
                let (last, first) =
                    if name.ends_with("_u8") { (last.min(99), shape[0].min(99)) } else { (last, shape[0]) };
                let choice = random.of(&[least, 1, 1, 2, last, last, first]).max(least);
                // A dim must be valid for the tensors.
                let is_dim = ["index_", "gather", "scatter"].iter().any(|word| name.starts_with(word));
                let dims = if reduced { 1 } else { shape.len() as u64 };
                arguments.push(long(if is_dim { random.below(dims) as i64 } else { choice }));
            }
            None => {
                let value = random.of(&[0.0, 0.5, 0.9, 0.999, 1e-5, 1.0, 2.0]);
                arguments.push(Argument::Bytes(f64::to_le_bytes(value).to_vec()));
            }
        }
    }
    (arguments, buffers)
}

/// The elements of outputs, with all NaNs made equal.
fn canonical(buffers: &[Buffer]) -> Vec<Vec<u8>> {
    let outputs = buffers.iter().filter(|buffer| buffer.is_output);
    let one = |dtype: &str, bytes: &[u8]| -> Vec<u8> {
        let is_nan = match dtype {
            "f32" => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
            "f64" => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
            "f16" => u16::from_le_bytes(bytes.try_into().unwrap()) & 0x7fff > 0x7c00,
            "bf16" => u16::from_le_bytes(bytes.try_into().unwrap()) & 0x7fff > 0x7f80,
            _ => false,
        };
        if is_nan { vec![0xff; bytes.len()] } else { bytes.to_vec() }
    };
    outputs
        .map(|buffer| {
            let size = buffer.bytes.len() / ELEMENTS;
            buffer.bytes.chunks(size).flat_map(|bytes| one(&buffer.dtype, bytes)).collect()
        })
        .collect()
}

/// The first difference between outputs.
fn first_difference(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> String {
    for (number, (a, b)) in ours.iter().zip(theirs).enumerate() {
        if let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) {
            let from = at / 8 * 8;
            return format!(
                "output {number}, bytes from {from}: {:02x?}, not {:02x?}",
                &a[from..from + 8],
                &b[from..from + 8]
            );
        }
    }
    String::new()
}

/// Emulates one launch. `None` if it went out of bounds or did not end, so that there is nothing to compare.
fn emulated(
    program: &Program,
    number: u32,
    shape: Shape,
    arguments: &[Argument],
    buffers: &mut [Buffer],
    races: &mut u64,
) -> Option<bool> {
    let mut machine: Machine = program.machine(Checks { race: true, ..Checks::MEMORY });
    machine.budget = 400_000;
    let kernel = &program.kernels[number as usize];
    let places: Vec<u64> = buffers
        .iter()
        .map(|buffer| {
            let at =
                machine.heap.allocate(buffer.bytes.len() as u64, Owner::Device, "", Span::default()).unwrap();
            let range = machine.heap.range(at, buffer.bytes.len() as u64).unwrap();
            machine.heap.space.bytes[range].copy_from_slice(&buffer.bytes);
            at
        })
        .collect();
    let mut bytes = vec![0; kernel.parameter_bytes as usize];
    assert_eq!(arguments.len(), kernel.parameters.len(), "{}", kernel.name);
    for (argument, parameter) in arguments.iter().zip(&kernel.parameters) {
        let value = match argument {
            Argument::Bytes(bytes) => bytes.clone(),
            Argument::Buffer(number) => places[*number].to_le_bytes().to_vec(),
        };
        assert_eq!(value.len(), parameter.size as usize, "{}: {}", kernel.name, parameter.name);
        bytes[parameter.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    let result = machine.run(kernel, number, shape, &bytes, None);
    for (buffer, at) in buffers.iter_mut().zip(places) {
        let range = machine.heap.range(at, buffer.bytes.len() as u64).unwrap();
        buffer.bytes.copy_from_slice(&machine.heap.space.bytes[range]);
    }
    *races += machine.findings.all.iter().filter(|finding| finding.check == "racecheck").count() as u64;
    // On the host it ends the program.
    if machine.findings.all.iter().any(|finding| finding.title.contains("division by zero")) {
        return None;
    }
    match result {
        Ok(()) => Some(true),
        Err(cuda_emulator::run::interpreter::Stop::Assert) => Some(false),
        Err(_) => None,
    }
}

/// Kernels whose results are undefined in C++ for the random inputs: past the last step, floats do not fit a byte.
const LEFT_OPEN: &[&str] = &["linspace_u8"];

/// Kernels without a valid trial: their arguments must match in more ways than chance can find.
const UNTRIED: &[&str] = &[];

#[test]
#[ignore = "it runs 557 kernels four times: .ci/run has it"]
fn the_emulator_has_the_bits_of_gpp_for_every_kernel() {
    let kernels = course();
    let headers: HashMap<&str, &str> =
        kernels::HEADERS.iter().map(|header| (header.name, header.text)).collect();
    let signatures: BTreeMap<String, Vec<String>> = signatures();
    let (mut compared, mut troubles, mut untried, mut racy) = (0, Vec::new(), Vec::new(), Vec::new());
    let mut found = 0;
    for source in kernels::SOURCES {
        let includes = |name: &str| headers.get(name).map(|text| (*text).to_owned());
        let program = Program::compile(source.name, source.text, &includes)
            .unwrap_or_else(|trouble| panic!("{trouble}"));
        for (number, kernel) in program.kernels.iter().enumerate() {
            let name = kernel.name.split('(').next().unwrap();
            let Some(parameters) = signatures.get(name) else {
                troubles.push(format!("{name} is no kernel of the tensor crate"));
                continue;
            };
            found += 1;
            let mut random = Random(0x9e37_79b9 + 77 * found);
            let (mut done, mut races) = (0, 0);
            for _ in 0..ATTEMPTS {
                if done == TRIALS {
                    break;
                }
                let (arguments, mut ours) = arguments(name, parameters, &mut random);
                let mut theirs: Vec<Buffer> = ours
                    .iter()
                    .map(|buffer| Buffer {
                        bytes: buffer.bytes.clone(),
                        dtype: buffer.dtype.clone(),
                        ..*buffer
                    })
                    .collect();
                let (grid, block) = random.of(&[(1, 32), (2, 64), (3, 256), (1, 96)]);
                let shape = Shape { grid: [grid, 1, 1], block: [block, 1, 1], dynamic_shared: 0 };
                let mut found_races = 0;
                let Some(passed) =
                    emulated(&program, number as u32, shape, &arguments, &mut ours, &mut found_races)
                else {
                    continue;
                };
                let pointers: Vec<*mut u8> =
                    theirs.iter_mut().map(|buffer| buffer.bytes.as_mut_ptr()).collect();
                let passed_on = arguments.iter().map(|argument| match argument {
                    Argument::Bytes(bytes) => at(&bytes[0]),
                    Argument::Buffer(number) => at(&pointers[*number]),
                });
                let passed_on: Vec<_> = passed_on.collect();
                let result = kernels.run(name, grid, block, &passed_on);
                done += 1;
                // A failed assertion ends both; the earlier writes depend on the order of threads.
                if result.is_ok() != passed {
                    troubles.push(format!("{name}: {result:?} with g++, {passed} here"));
                    break;
                }
                races += found_races;
                let is_open = LEFT_OPEN.contains(&name);
                if passed && found_races == 0 && !is_open && canonical(&ours) != canonical(&theirs) {
                    troubles.push(format!(
                        "{name}: other bits, with {grid} blocks of {block} threads: {}",
                        first_difference(&canonical(&ours), &canonical(&theirs))
                    ));
                    break;
                }
            }
            compared += done;
            if done == 0 {
                untried.push(name.to_owned());
            }
            if races > 0 {
                racy.push(name.to_owned());
            }
        }
    }
    println!("{compared} launches of {found} kernels; races where shapes do not fit: {racy:?}");
    assert!(troubles.is_empty(), "{} of {found}:\n{}", troubles.len(), troubles.join("\n"));
    assert_eq!(untried, UNTRIED);
    assert_eq!(found as usize, signatures.len());
}
