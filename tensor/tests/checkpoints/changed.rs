//! Files modified by chance or malice give an error or a value, never a panic, and take no more memory than the file's
//! size justifies.

use crate::each_case::each_case;
use std::time::{Duration, Instant};

use todevice::serialize::{MapLocation, Value, from_bytes, safetensors, to_bytes};
use todevice::{Device, Machine};

use super::allocations::most;
use super::kinds::accepted;
use super::of_pytorch::CUDA;
use super::safetensors::OF_PYTHON;
use super::zip::{records, without_checksums, zip};

/// A file with a pickle and a storage of four numbers.
pub(super) fn with_pickle(pickle: &[u8]) -> Vec<u8> {
    let records = [
        ("a/data.pkl", pickle.to_vec()),
        ("a/byteorder", b"little".to_vec()),
        ("a/data/0", vec![0; 16]),
        ("a/version", b"3\n".to_vec()),
    ];
    zip(&records.map(|(name, bytes)| (name.to_owned(), bytes)))
}

/// The error for a pickle.
pub(super) fn refusal(pickle: &[u8]) -> String {
    match from_bytes(&with_pickle(pickle), MapLocation::None) {
        Ok(value) => format!("no error: {value}"),
        Err(error) => error.to_string(),
    }
}

/// The pickle of a tensor with these arguments, in the storage `0` with `count` numbers.
fn tensor(count: u8, offset: &[u8], sizes: &[u8], strides: &[u8]) -> Vec<u8> {
    let storage =
        [&b"((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK"[..], &[count], b"tQ"]
            .concat();
    [b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n", &storage[..], offset, sizes, strides, b"\x89NtR."]
        .concat()
}

#[test]
fn pickles_that_are_damaged_are_refused() {
    let damaged = |why: &str| format!("Weights only load failed. The pickle is damaged: {why}");
    each_case(
        [
            (&b""[..], "pickle data was truncated"),
            (b"\x80\x02", "pickle data was truncated"),
            (b"X\xff\xff\xff\xff", "pickle data was truncated"),
            (b"ctorch", "pickle data was truncated"),
            (b".", "unpickling stack underflow"),
            (b"K\x01(.", "unpickling stack underflow"),
            (b"(\x86.", "unpickling stack underflow"),
            (b"t.", "could not find MARK"),
            (b"h\x05.", "Memo value not found"),
            (b"NN\x86a.", "unpickling stack underflow"),
            (b"Na.", "unpickling stack underflow"),
            (b"}(Nu.", "odd number of items for SETITEMS"),
            (b"X\x01\0\0\0\xff.", "a str is not UTF-8"),
            (b"ctorch\nSize\nNR.", "the arguments are not a tuple"),
        ],
        |(pickle, why)| {
            assert_eq!(refusal(pickle), damaged(why), "{}", pickle.escape_ascii());
        },
    );
    let operand =
        "Weights only load failed. Unsupported operand 149: torch.save writes the pickle protocol 2";
    assert_eq!(refusal(b"\x80\x04\x95\0\0\0\0\0\0\0\0."), operand);
}

#[test]
fn tensors_that_are_not_in_their_storage_are_refused() {
    let one = |number: &[u8]| [number, b"\x85"].concat();
    assert!(
        refusal(&tensor(4, b"K\x00", &one(b"K\x04"), &one(b"K\x01")))
            .starts_with("no error: tensor([0., 0., 0., 0.])")
    );
    assert_eq!(
        refusal(&tensor(4, b"K\x01", &one(b"K\x04"), &one(b"K\x01"))),
        "setStorage: sizes [4], strides [1], storage offset 1, and itemsize 4 are out of bounds for storage of size 16"
    );
    let size = "the storage 0 has 5 elements of torch.float32, but its record has 16 bytes";
    assert_eq!(refusal(&tensor(5, b"K\x00", &one(b"K\x04"), &one(b"K\x01"))), size);
    let large = one(b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f");
    each_case(
        [
            (&b"K\x00"[..], &large, &one(b"K\x01")),
            (b"K\x00", &one(b"K\x02"), &large),
            (&large[..10], &one(b"K\x01"), &one(b"K\x01")),
            (b"K\x00", &large, &large),
            (b"K\x00", &one(b"K\x01"), &large),
        ],
        |(offset, sizes, strides)| {
            assert!(!refusal(&tensor(4, offset, sizes, strides)).starts_with("no error"));
        },
    );
    let negative = damaged_tensor();
    assert_eq!(refusal(&tensor(4, b"K\x00", &one(b"J\xff\xff\xff\xff"), &one(b"K\x01"))), negative);
    // As many strides as sizes.
    assert_eq!(refusal(&tensor(4, b"K\x00", &one(b"K\x01"), b")")), negative);
}

fn damaged_tensor() -> String {
    "Weights only load failed. The pickle is damaged: a tensor has no storage, or invalid sizes, strides, or offset"
        .to_owned()
}

/// A few bytes that request a huge amount of memory.
#[test]
fn small_files_that_stand_for_large_values_are_refused() {
    let (too_many, too_deep) = (
        "the pickle expands to more than 4000000 values, or to far more values or text than it has bytes",
        "lists, tuples, and dicts are nested more than 200 deep",
    );
    // A list of ten references to a list of ten … ("billion laughs").
    let mut laughs = b"](K\x01eq\0".to_vec();
    for place in 0..20u8 {
        laughs.extend(b"](");
        (0..10).for_each(|_| laughs.extend([b'h', place]));
        laughs.extend([b'e', b'q', place + 1]);
    }
    laughs.push(b'.');
    let deep = [b")".as_slice(), &[0x85; 1_000_000], b"."].concat();
    let in_itself = b"]q\0h\0a.";
    let mut text = [b"](X\x00\x00\x10\x00".as_slice(), &[b'x'; 1 << 20], b"q\0"].concat();
    (0..100_000).for_each(|_| text.extend(b"h\0"));
    text.extend(b"e.");
    // A string that is converted to bytes again and again.
    let mut bytes = [
        b"]c_codecs\nencode\nq\0X\x00\x00\x01\x00".as_slice(),
        &[b'x'; 1 << 16],
        b"X\x06\0\0\0latin1\x86q\x01",
    ]
    .concat();
    (0..10_000).for_each(|_| bytes.extend(b"h\0h\x01R"));
    bytes.push(b'.');
    // A list of pairs that is converted to dicts again and again.
    let mut dicts = b"ccollections\nOrderedDict\nq\0](".to_vec();
    (0..10_000).for_each(|_| dicts.extend(b"NN\x86"));
    dicts.extend(b"e\x85q\x01");
    (0..10_000).for_each(|_| dicts.extend(b"h\0h\x01R"));
    dicts.push(b'.');
    each_case(
        [
            (&laughs[..], too_many),
            (&deep, too_deep),
            (in_itself, too_deep),
            (&text, too_many),
            (&bytes, too_many),
            (&dicts, too_many),
        ],
        |(pickle, message)| {
            let (message_of, bytes) = most(|| refusal(pickle));
            assert_eq!(message_of, message);
            assert!(bytes < (10 << 20) + 200 * pickle.len(), "{bytes} bytes for {}", pickle.len());
        },
    );
    // A header whose stated length exceeds any file.
    let huge = [&99_999_999u64.to_le_bytes()[..], b"{}"].concat();
    let (result, bytes) = most(|| safetensors::load(&huge, Device::Cpu).is_err());
    assert!(result && bytes < 10_000, "{bytes} bytes");
}

#[test]
fn records_are_checked() {
    let file = with_pickle(&tensor(4, b"K\x00", b"K\x04\x85", b"K\x01\x85"));
    let records = records(&file);
    let message = |bytes: &[u8]| from_bytes(bytes, MapLocation::None).unwrap_err().to_string();
    let without = |name: &str| zip(&records.iter().filter(|(of, _)| of != name).cloned().collect::<Vec<_>>());
    let with = |name: &str, bytes: &[u8]| zip(&[&records[..], &[(name.to_owned(), bytes.to_vec())]].concat());
    let missing = |name: &str| format!("PytorchStreamReader failed locating file {name}: file not found");
    assert_eq!(message(&without("a/data.pkl")), missing("data.pkl"));
    assert_eq!(message(&without("a/data/0")), missing("data/0"));
    assert_eq!(message(&with("b/data/1", b"")), "file in archive is not in a subdirectory a/: b/data/1");
    assert_eq!(message(&with("data.pkl", b"")), "file in archive is not in a subdirectory a/: data.pkl");
    assert_eq!(message(&with("a/data/0", b"")), "the archive has two records named data/0");
    assert_eq!(message(&zip(&[])), missing("version"));
    assert_eq!(message(&without("a/version")), missing("version"));
    let version = "Attempted to read a PyTorch file with version 11, but the maximum supported version for reading is 10.";
    let newer = [&records[..3], &[("a/version".to_owned(), b"11\n".to_vec())]].concat();
    assert_eq!(message(&zip(&newer)), version);
    let order =
        zip(&[("a/byteorder".to_owned(), b"middle".to_vec()), records[0].clone(), records[3].clone()]);
    assert_eq!(message(&order), "Unknown endianness type: middle, expected little or big");
    let damaged = |name: &str| {
        format!("PytorchStreamReader failed reading file {name}: CRC-32 check failed, so the file is damaged")
    };
    let change = |pattern: &[u8]| {
        let at = file.windows(pattern.len()).position(|bytes| bytes == pattern).unwrap();
        [&file[..at], b"?", &file[at + 1..]].concat()
    };
    assert_eq!(message(&change(b"storage")), damaged("data.pkl"));
    assert_eq!(message(&change(&[0; 16])), damaged("data/0"));
    // `torch.serialization.set_crc32_options(False)` writes no checksums.
    assert!(from_bytes(&without_checksums(&file), MapLocation::None).is_ok());
    assert!(from_bytes(&without_checksums(&change(&[0; 16])), MapLocation::None).is_ok());
}

/// A deterministic generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end.max(1)
    }

    /// Mutates bytes: overwrites, truncates, duplicates and moves parts, inflates lengths, and inserts instructions.
    fn change(&mut self, bytes: &mut Vec<u8>, parts: &[&[u8]]) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            let end = at + self.below((bytes.len() - at).min(40));
            match self.below(8) {
                0 => bytes.truncate(at),
                1 => {
                    let copy = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, copy);
                }
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let part = parts[self.below(parts.len())];
                    bytes.splice(at..at, part.iter().copied());
                }
                4 => {
                    let extreme =
                        [0u64, 1, u64::MAX, u64::MAX >> 1, 1 << 31, 1 << 16, 1 << 40][self.below(7)];
                    let width = [1, 2, 4, 8][self.below(4)];
                    for (byte, new) in bytes.iter_mut().skip(at).zip(&extreme.to_le_bytes()[..width]) {
                        *byte = *new;
                    }
                }
                5 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                _ if !bytes.is_empty() => bytes[at] = self.below(256) as u8,
                _ => {}
            }
        }
    }
}

/// Pickle fragments.
const INSTRUCTIONS: &[&[u8]] = &[
    b"(",
    b"t",
    b"R",
    b"Q",
    b"b",
    b"}",
    b"]",
    b")",
    b"a",
    b"e",
    b"s",
    b"u",
    b"N",
    b"0",
    b"h\0",
    b"h\x05",
    b"q\0",
    b"K\x01",
    b"\x85",
    b"\x86",
    b"\x87",
    b"\x88",
    b"J\xff\xff\xff\xff",
    b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"ccollections\nOrderedDict\n",
    b"ccollections\nCounter\n",
    b"c__builtin__\nset\n",
    b"c__builtin__\nbytearray\n",
    b"c_codecs\nencode\n",
    b"ctorch._utils\n_rebuild_tensor_v3\n",
    b"ctorch._tensor\n_rebuild_from_type_v2\n",
    b"ctorch.nn.parameter\nParameter\n",
    b"\x81",
    b"\x8f",
    b"U\x01a",
    b"X\x06\0\0\0latin1",
    b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"ctorch._utils\n_rebuild_parameter\n",
    b"ctorch\nSize\n",
    b"ctorch\nLongStorage\n",
    b"X\x07\0\0\0storage",
    b"X\xff\xff\xff\x7f",
    b"G\x7f\xf8\0\0\0\0\0\0",
    b".",
];

/// Zip signatures.
const SIGNATURES: &[&[u8]] = &[
    b"PK\x01\x02",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"PK\x06\x07",
    b"\x01\0\x18\0\xff\xff\xff\xff",
    b"a/",
    b"data/0",
];

/// Fragments of safetensors headers.
const JSON: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"0",
    b"-1",
    b"1e400",
    b"99999999999999999999",
    b"\"I64\"",
    b"\"F4\"",
    b"null",
    b"\"shape\":[0],",
    b"\"__metadata__\":{\"a\":\"b\"},",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

/// Loads mutated files for some time, different ones for each seed but 0. Returns their number, and the number that
/// loaded without an error.
fn load_changed_files(time: Duration, seed: u64) -> (usize, usize) {
    let newest: &[u8] = include_bytes!("files/torch-2.11.0.pt");
    let small = with_pickle(&tensor(4, b"K\x00", b"K\x04\x85", b"K\x01\x85"));
    let other = include_bytes!("files/before-1.6.pt");
    let compressed = include_bytes!("files/compressed.pt");
    let files = [newest, include_bytes!("files/torch-1.13.1.pt"), CUDA, &small, other, compressed];
    let mut taken_apart: Vec<_> = [newest, CUDA, &small].map(records).into();
    taken_apart.extend(accepted().iter().map(|file| records(file)));
    let machine: Machine = "sim:t4".parse().unwrap();
    let (start, mut random, mut count, mut read) = (Instant::now(), Random(seed), 0, 0);
    while start.elapsed() < time {
        machine.enter(|| {
            for _ in 0..500 {
                count += 1;
                // A file as it is; its records, repackaged; or the other format.
                let (mut file, format) = match random.below(4) {
                    0 => (files[random.below(files.len())].to_vec(), "a checkpoint"),
                    1 => (OF_PYTHON.to_vec(), "safetensors"),
                    _ => {
                        let mut records = taken_apart[random.below(taken_apart.len())].clone();
                        let which = if random.below(3) > 0 { 0 } else { random.below(records.len()) };
                        random.change(&mut records[which].1, INSTRUCTIONS);
                        (zip(&records), "records")
                    }
                };
                match format {
                    "a checkpoint" => random.change(&mut file, SIGNATURES),
                    "safetensors" => random.change(&mut file, JSON),
                    _ => {}
                }
                let load = || match format {
                    "safetensors" => safetensors::load(&file, Device::Cpu).map(|_| Value::None),
                    _ => from_bytes(&file, Device::Cpu),
                };
                let (result, bytes) = most(load);
                assert!(
                    bytes <= (1 << 20) + 300 * file.len(),
                    "{bytes} for {} of {format}: {file:?}",
                    file.len()
                );
                if let Ok(value) = result {
                    read += 1;
                    let ours = to_bytes(&value).unwrap_or_else(|error| panic!("{error}: {file:?}"));
                    assert!(from_bytes(&ours, MapLocation::None).is_ok(), "{file:?}");
                }
            }
        });
    }
    (count, read)
}

#[test]
fn changed_files() {
    let (count, read) = load_changed_files(Duration::from_secs(3), 1);
    assert!(count > 500 && read > count / 100 && read < count, "{read} of {count} were read");
}

#[test]
#[ignore = "it takes as long as it is given, FUZZ_SECONDS=600 FUZZ_SEED=2"]
fn changed_files_for_long() {
    let given = |name: &str, other| std::env::var(name).map_or(other, |number| number.parse().unwrap());
    let (seconds, seed) = (given("FUZZ_SECONDS", 10), given("FUZZ_SEED", 2));
    let (count, read) = load_changed_files(Duration::from_secs(seconds), seed);
    println!("{count} changed files in {seconds} s, of which {read} were read");
    assert!(read > count / 100 && read < count);
}
