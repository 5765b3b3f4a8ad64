//! Compares the streams with PyTorch's. The vector files hold numbers from PyTorch 2.11. The constants are FNV-1a
//! hashes of the little-endian bytes of its draws, so one wrong bit, or one word too many, changes them.

use crate::each_case::each_case;
use serde_json::Value;

use super::wide::{Law, fill_lanes};
use super::*;
use crate::random::{Generator, Mt19937};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/");

fn text(file: &str) -> String {
    std::fs::read_to_string(format!("{VECTORS}{file}")).unwrap_or_else(|e| panic!("{VECTORS}{file}: {e}"))
}

fn cases(file: &str) -> Vec<Value> {
    let json: Value = serde_json::from_str(&text(file)).unwrap_or_else(|e| panic!("{VECTORS}{file}: {e}"));
    json["cases"].as_array().unwrap_or_else(|| panic!("{VECTORS}{file} has no list of cases")).clone()
}

/// Returns the cases of an operation. Panics if there are none, because the test would pass without testing.
fn rng_cases(op: &str) -> Vec<Value> {
    let found: Vec<Value> = cases("rng_vectors.json").into_iter().filter(|case| case["op"] == op).collect();
    assert!(!found.is_empty(), "rng_vectors.json has no case of {op}");
    found
}

fn engine(case: &Value) -> Mt19937 {
    Mt19937::new(case["seed"].as_u64().unwrap())
}

fn size(case: &Value) -> usize {
    case["n"].as_u64().unwrap() as usize
}

fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap()
}

fn integers(case: &Value, key: &str) -> Vec<i64> {
    case[key].as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).collect()
}

fn hex(list: &Value) -> Vec<u32> {
    list.as_array().unwrap().iter().map(|v| u32::from_str_radix(v.as_str().unwrap(), 16).unwrap()).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn uniform(engine: &mut Mt19937, n: usize, from: f32, to: f32) -> Vec<f32> {
    let mut out = vec![f32::NAN; n];
    fill_uniform_f32(engine, &mut out, from, to);
    out
}

fn normal(engine: &mut Mt19937, n: usize, mean: f64, std: f64) -> Vec<f32> {
    let mut out = vec![f32::NAN; n];
    fill_normal_f32(engine, &mut out, mean, std);
    out
}

#[test]
fn rand_and_uniform() {
    each_case(rng_cases("rand"), |case| {
        assert_eq!(bits(&uniform(&mut engine(&case), size(&case), 0.0, 1.0)), hex(&case["bits"]), "{case}");
    });
    each_case(rng_cases("uniform"), |case| {
        let (a, b) = (number(&case, "a") as f32, number(&case, "b") as f32);
        assert_eq!(bits(&uniform(&mut engine(&case), size(&case), a, b)), hex(&case["bits"]), "{case}");
    });
}

#[test]
fn randn_and_normal() {
    each_case(rng_cases("randn"), |case| {
        assert_eq!(bits(&normal(&mut engine(&case), size(&case), 0.0, 1.0)), hex(&case["bits"]), "{case}");
    });
    each_case(rng_cases("normal"), |case| {
        let (mean, std) = (number(&case, "mean"), number(&case, "std"));
        assert_eq!(bits(&normal(&mut engine(&case), size(&case), mean, std)), hex(&case["bits"]), "{case}");
    });
}

#[test]
fn rand_f64() {
    // serde_json may get the last bit of an f64 wrong, so the digits come from the text.
    let text = text("rng_vectors.json");
    let lists = text.split(r#""op":"rand_f64""#).skip(1).map(|case| case.split(['[', ']']).nth(1).unwrap());
    each_case(rng_cases("rand_f64").iter().zip(lists), |(case, digits)| {
        let mut out = vec![f64::NAN; size(case)];
        fill_uniform_f64(&mut engine(case), &mut out, 0.0, 1.0);
        let expected: Vec<f64> = digits.split(',').map(|v| v.trim().parse().unwrap()).collect();
        assert_eq!(out, expected, "seed {}, n {}", case["seed"], case["n"]);
    });
}

#[test]
fn randint_random_and_randperm() {
    each_case(rng_cases("randint"), |case| {
        let mut out = vec![0; size(&case)];
        let (low, high) = (case["low"].as_i64().unwrap(), case["high"].as_i64().unwrap());
        fill_randint_i64(&mut engine(&case), &mut out, low, high);
        assert_eq!(out, integers(&case, "values"), "{case}");
    });
    each_case(rng_cases("random_i64"), |case| {
        let mut out = vec![0; size(&case)];
        fill_random_i64(&mut engine(&case), &mut out);
        assert_eq!(out, integers(&case, "values"), "{case}");
    });
    each_case(rng_cases("randperm"), |case| {
        assert_eq!(randperm(&mut engine(&case), size(&case)), integers(&case, "values"), "{case}");
    });
}

/// Mixed draws on one stream: the cached normal must survive the draws in between.
#[test]
fn sequences() {
    each_case(rng_cases("sequence"), |case| {
        let mut engine = engine(&case);
        let steps = case["steps"].as_array().unwrap();
        for (step, expected) in steps.iter().zip(case["bits"].as_array().unwrap()) {
            let (op, n) = step.as_str().unwrap().trim_end_matches(')').split_once('(').unwrap();
            let n = n.parse().unwrap();
            let drawn = match op {
                "rand" => uniform(&mut engine, n, 0.0, 1.0),
                "randn" => normal(&mut engine, n, 0.0, 1.0),
                other => panic!("a step this test does not know: {other}"),
            };
            assert_eq!(bits(&drawn), hex(expected), "{step} of {case}");
        }
    });
}

/// The masks of `F.dropout`, equal on AMD and Intel CPUs.
#[test]
fn dropout_masks() {
    each_case(rng_cases("dropout_of_ones"), |case| {
        let mut keep = vec![false; size(&case)];
        fill_bernoulli(&mut engine(&case), &mut keep, 1.0 - number(&case, "p"));
        let keep: Vec<i64> = keep.iter().map(|&k| i64::from(k)).collect();
        assert_eq!(keep, integers(&case, "keep"), "{case}");
    });
}

#[test]
fn initial_weights() {
    let layer = |engine: &mut Mt19937, n: usize, fan_in: f64| {
        let bound = (1.0 / fan_in.sqrt()) as f32;
        uniform(engine, n, -bound, bound)
    };
    let modules = rng_cases("nn_init_sequence");
    for tensors in modules.chunk_by(|a, b| a["seed"] == b["seed"]) {
        let mut engine = engine(&tensors[0]);
        for case in tensors {
            let n = case["bits"].as_array().unwrap().len();
            let drawn = match case["tensor"].as_str().unwrap() {
                "Linear16x64.weight" | "Linear16x64.bias" => layer(&mut engine, n, 16.0),
                "Conv2d(1,16,3).weight" | "Conv2d(1,16,3).bias" => layer(&mut engine, n, 9.0),
                "Linear64x10.weight" | "Linear64x10.bias" => layer(&mut engine, n, 64.0),
                "Embedding(10,4).weight" => normal(&mut engine, n, 0.0, 1.0),
                other => panic!("a tensor this test does not know: {other}"),
            };
            assert_eq!(bits(&drawn), hex(&case["bits"]), "{} of seed {}", case["tensor"], case["seed"]);
        }
    }
    each_case(rng_cases("conv2d_1_16_3_alone"), |case| {
        let mut engine = engine(&case);
        assert_eq!(
            bits(&layer(&mut engine, 16 * 9, 9.0)),
            hex(&case["weight"]),
            "weight, seed {}",
            case["seed"]
        );
        assert_eq!(bits(&layer(&mut engine, 16, 9.0)), hex(&case["bias"]), "bias, seed {}", case["seed"]);
    });
}

struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = Hash::new();
    hash.add(bytes.iter().copied());
    hash.0
}

/// Hashes everything that `draw` draws, for each seed. The second and the fourth seed share their low 32 bits.
fn hashes(draw: impl Fn(&mut Mt19937, &mut Hash)) -> [u64; 5] {
    [0, 7, 42, (1 << 32) + 7, u64::MAX].map(|seed| {
        let mut hash = Hash::new();
        draw(&mut Mt19937::new(seed), &mut hash);
        hash.0
    })
}

#[test]
fn every_size_in_f32() {
    let drawn = hashes(|engine, hash| {
        for n in [0, 1, 15, 16, 17, 31, 32, 33, 624, 625, 100_003] {
            hash.add(normal(engine, n, 0.0, 1.0).into_iter().flat_map(f32::to_le_bytes));
            hash.add(uniform(engine, n, 0.0, 1.0).into_iter().flat_map(f32::to_le_bytes));
        }
    });
    let torch = [
        0xc6bf_d4ae_09bf_aa05,
        0x7756_1d04_8d5f_e1b2,
        0xd3cd_94bf_40f1_6224,
        0x7756_1d04_8d5f_e1b2,
        0xff26_5ef2_4789_e481,
    ];
    assert_eq!(drawn, torch);
}

/// uniform_(-0.1, 0.3), then normal_(-1.5, 0.02): bounds that make a second rounding visible.
#[test]
fn awkward_bounds_in_f32() {
    let drawn = hashes(|engine, hash| {
        hash.add(uniform(engine, 20_011, -0.1, 0.3).into_iter().flat_map(f32::to_le_bytes));
        hash.add(normal(engine, 20_011, -1.5, 0.02).into_iter().flat_map(f32::to_le_bytes));
    });
    let torch = [
        0x0ddf_f025_d955_e0d5,
        0x2d62_ea93_b77d_de0f,
        0x274e_cc8a_e52d_84b6,
        0x2d62_ea93_b77d_de0f,
        0x3587_4931_fc61_2194,
    ];
    assert_eq!(drawn, torch);
}

/// normal_(0.3, 0.7) and uniform_(-0.1, 0.3) in f64. Exact only with PyTorch's C library.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn every_size_in_f64() {
    let drawn = hashes(|engine, hash| {
        for n in [0, 1, 15, 16, 17, 31, 32, 33, 624, 625, 5003] {
            let mut out = vec![f64::NAN; n];
            fill_normal_f64(engine, &mut out, 0.3, 0.7);
            hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
            fill_uniform_f64(engine, &mut out, -0.1, 0.3);
            hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
        }
    });
    let torch = [
        0x31d2_4e69_7903_7c4f,
        0xec3e_c570_62e2_8b1f,
        0x34b7_0889_73df_cb2f,
        0xec3e_c570_62e2_8b1f,
        0xd236_6d02_4243_2ea7,
    ];
    assert_eq!(drawn, torch);
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn normals_of_a_non_contiguous_tensor() {
    let single = hashes(|engine, hash| {
        let mut out = [f32::NAN; 202];
        fill_normal_scalar_path_f32(engine, &mut out, 0.3, 0.7);
        hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
    });
    let double = hashes(|engine, hash| {
        fill_normal_scalar_path_f32(engine, &mut [0.0; 202], 0.3, 0.7);
        let mut out = [f64::NAN; 202];
        fill_normal_scalar_path_f64(engine, &mut out, 0.3, 0.7);
        hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
    });
    let torch_single = [
        0x5e08_be30_0304_9ab7,
        0x7ea3_72d9_a358_7696,
        0x8abd_739a_f018_66eb,
        0x7ea3_72d9_a358_7696,
        0xbc28_dfd6_fdc5_d324,
    ];
    let torch_double = [
        0xdb76_6f53_25c7_734b,
        0xacd0_2083_2512_f045,
        0x1366_ccf0_1470_6257,
        0xacd0_2083_2512_f045,
        0x9e56_ce98_ecc3_1c92,
    ];
    assert_eq!(single, torch_single);
    assert_eq!(double, torch_double);
}

#[test]
fn randint_of_every_width() {
    let drawn = hashes(|engine, hash| {
        each_case(
            [
                (0, 2),
                (-5, 5),
                (0, (1 << 28) - 1),
                (0, 1 << 28),
                (-(1 << 31), 1 << 31),
                (i64::MIN, i64::MAX),
                (i64::MIN, 5),
            ],
            |(low, high)| {
                let mut out = [0; 1001];
                fill_randint_i64(engine, &mut out, low, high);
                assert!(out.iter().all(|v| (low..high).contains(v)));
                hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
            },
        );
    });
    let torch = [
        0x0fb7_5866_4ade_40f3,
        0xfc27_5ef0_3468_a490,
        0x021f_62ce_1744_da4d,
        0xfc27_5ef0_3468_a490,
        0x2592_a264_e41e_5109,
    ];
    assert_eq!(drawn, torch);
}

#[test]
fn random_of_every_dtype() {
    let drawn = hashes(|engine, hash| {
        let mut out = [0_i64; 1001];
        fill_random_i64(engine, &mut out);
        hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
        let mut out = [0_i32; 1001];
        fill_random_i32(engine, &mut out);
        hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
        let mut out = [0_u8; 1001];
        fill_random_u8(engine, &mut out);
        hash.add(out);
        let mut out = [false; 1001];
        fill_random_bool(engine, &mut out);
        hash.add(out.map(u8::from));
        let mut out = [f32::NAN; 1001];
        fill_random_f32(engine, &mut out);
        hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
        let mut out = [f64::NAN; 1001];
        fill_random_f64(engine, &mut out);
        hash.add(out.iter().flat_map(|v| v.to_le_bytes()));
    });
    let torch = [
        0x5d6a_ed5f_ffaf_a6a8,
        0xefb7_fa7d_4c8a_145e,
        0x0379_ec8f_842e_47eb,
        0xefb7_fa7d_4c8a_145e,
        0x53b6_3f2d_62cd_c2ff,
    ];
    assert_eq!(drawn, torch);
}

#[test]
fn permutations_of_every_size() {
    let drawn = hashes(|engine, hash| {
        for n in [0, 1, 2, 17, 1000, 30_000] {
            hash.add(randperm(engine, n).into_iter().flat_map(i64::to_le_bytes));
        }
        // Three uniforms show that the permutations took the right number of words.
        hash.add(uniform(engine, 3, 0.0, 1.0).into_iter().flat_map(f32::to_le_bytes));
    });
    let torch = [
        0x88e8_56ed_e6a5_7e8b,
        0x03d2_5cb2_1228_f10c,
        0xc144_45a5_f03c_68eb,
        0x03d2_5cb2_1228_f10c,
        0xafae_2055_d58c_ffdb,
    ];
    assert_eq!(drawn, torch);
}

/// PyTorch takes this branch from two hundred million elements on; ten show the rule.
#[test]
fn a_large_permutation_grows_inside_out() {
    assert_eq!(distributions::randperm_inside_out(&mut Mt19937::new(0), 10), [8, 2, 6, 3, 5, 1, 0, 9, 7, 4]);
}

#[test]
fn bernoulli_of_numbers_and_tensors() {
    let drawn = hashes(|engine, hash| {
        for p in [0.0, 0.1, 0.5, 0.9, 1.0] {
            let mut out = [false; 1001];
            fill_bernoulli(engine, &mut out, p);
            hash.add(out.map(u8::from));
            fill_bernoulli_from_f32(engine, &[p as f32; 1001], &mut out);
            hash.add(out.map(u8::from));
            fill_bernoulli_from_f64(engine, &[p; 1001], &mut out);
            hash.add(out.map(u8::from));
        }
    });
    let torch = [
        0x8b8b_eaf1_c1eb_c249,
        0x1e46_fe31_08d6_b087,
        0x6d70_5a4f_de4a_1e74,
        0x1e46_fe31_08d6_b087,
        0x82a5_8ee8_ff01_9dbd,
    ];
    assert_eq!(drawn, torch);
}

/// This machine probably used the AVX2 copy above. This tests the other one.
#[test]
fn the_copy_for_any_cpu_gives_the_same_bits() {
    each_case(
        [
            (Law::Uniform { from: -0.1, to: 0.3 }, uniform(&mut Mt19937::new(7), 4800, -0.1, 0.3)),
            (Law::Normal { mean: 0.3, std: 0.7 }, normal(&mut Mt19937::new(7), 4800, 0.3, 0.7)),
        ],
        |(law, whole)| {
            let mut out = [f32::NAN; 4800];
            fill_lanes(&mut Mt19937::new(7), &mut out, law);
            assert_eq!(bits(&out), bits(&whole));
        },
    );
}

fn randn(generator: &Generator, n: usize) -> Vec<f32> {
    normal(&mut generator.lock(), n, 0.0, 1.0)
}

#[test]
fn seeds() {
    let generator = Generator::new();
    assert_eq!(generator.initial_seed(), 67_280_421_310_721);
    assert_eq!(generator.manual_seed((1 << 32) + 7).initial_seed(), (1 << 32) + 7);
    let of_the_large_seed = randn(&generator, 40);
    assert_eq!(of_the_large_seed, randn(&generator.manual_seed(7), 40));
    assert_eq!(generator.manual_seed(-1_i64 as u64).initial_seed(), 18_446_744_073_709_551_615);

    let chosen_by_nobody = generator.seed();
    assert_eq!(generator.initial_seed(), chosen_by_nobody);
    assert_ne!(generator.seed(), chosen_by_nobody);
}

#[test]
fn a_new_seed_forgets_the_cached_normal() {
    let generator = Generator::new().manual_seed(3);
    let first = randn(&generator, 1);
    assert_eq!(randn(&generator.manual_seed(3), 1), first);
}

#[test]
fn clones_share_one_stream_and_threads_may_too() {
    let generator = Generator::new().manual_seed(0);
    let together = randn(&generator, 32);
    let clone = generator.manual_seed(0);
    let mut taken = randn(&generator, 16);
    taken.extend(std::thread::spawn(move || randn(&clone, 16)).join().unwrap());
    assert_eq!(taken, together);
}

/// Hashes of `torch.Generator.get_state()`: fresh, seeded, with a cached normal, and around the first refill.
#[test]
fn state_bytes_are_those_of_torch() {
    let generator = Generator::new();
    assert_eq!(generator.get_state().len(), 5056);
    assert_eq!(hash(&generator.get_state()), 0x7302_f24b_c524_6b8d);
    assert_eq!(hash(&generator.manual_seed((1 << 32) + 7).get_state()), 0x2fdc_e781_ef7b_a94d);
    assert_eq!(hash(&generator.manual_seed(3).get_state()), 0xf6ba_b292_2096_1f65);
    each_case(
        [(623, 0x1506_d2e6_be89_bf69), (624, 0x7dff_c865_47fa_0b95), (625, 0x9031_47ca_c31b_cafd)],
        |(words, torch)| {
            uniform(&mut generator.manual_seed(7).lock(), words, 0.0, 1.0);
            assert_eq!(hash(&generator.get_state()), torch, "after {words} words");
        },
    );
}

#[test]
fn a_state_with_a_cached_normal_makes_the_round_trip() {
    let generator = Generator::new().manual_seed(3);
    uniform(&mut generator.lock(), 1000, 0.0, 1.0);
    randn(&generator, 3);
    let saved = generator.get_state();
    assert_eq!(saved[5040], 1, "a normal is waiting");
    // Its last bit comes from the C library, see `every_size_in_f64`.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    assert_eq!(hash(&saved), 0xbdc2_1539_fd8d_fb00);

    let other = Generator::new();
    other.set_state(&saved).unwrap();
    assert_eq!(other.get_state(), saved);
    assert_eq!(other.initial_seed(), 3);

    // PyTorch's next draws: randn(5), whose first value is the cached one, and rand(5).
    each_case([generator, other], |generator| {
        let mut hash = Hash::new();
        hash.add(randn(&generator, 5).into_iter().flat_map(f32::to_le_bytes));
        hash.add(uniform(&mut generator.lock(), 5, 0.0, 1.0).into_iter().flat_map(f32::to_le_bytes));
        assert_eq!(hash.0, 0xfd57_8b66_ac2e_d4ee);
    });
}

#[test]
fn a_bad_state_is_refused_and_changes_nothing() {
    let generator = Generator::new().manual_seed(3);
    let good = generator.get_state();

    assert_eq!(
        generator.set_state(&good[1..]).unwrap_err().to_string(),
        "Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 5055"
    );
    assert!(generator.set_state(&[]).is_err());

    // Offset, new bytes, and a part of the message.
    let wrong: [(usize, &[u8], &str); 5] = [
        (8, &0_i32.to_le_bytes(), "left 0"),
        (8, &625_i32.to_le_bytes(), "left 625"),
        (12, &0_i32.to_le_bytes(), "never seeded"),
        (16, &625_u64.to_le_bytes(), "next 625"),
        (24 + 8 * 5, &(1_u64 << 32).to_le_bytes(), "word 5 is 4294967296"),
    ];
    each_case(wrong, |(at, bytes, part)| {
        let mut state = good.clone();
        state[at..at + bytes.len()].copy_from_slice(bytes);
        let message = generator.set_state(&state).unwrap_err().to_string();
        assert!(message.starts_with("Invalid mt19937 state: ") && message.contains(part), "{message}");
        assert_eq!(generator.get_state(), good);
    });

    // Too many words after the last one: the engine would run past the end of its state.
    let mut state = good.clone();
    state[8..12].copy_from_slice(&3_i32.to_le_bytes());
    state[16..24].copy_from_slice(&623_u64.to_le_bytes());
    assert_eq!(
        generator.set_state(&state).unwrap_err().to_string(),
        "Invalid mt19937 state: 2 words cannot follow word 623 of 624"
    );
}

#[test]
fn no_state_makes_a_draw_panic() {
    let good = Generator::new().get_state();
    let mut engine = Mt19937::new(1);
    for _ in 0..20_000 {
        let mut state = good.clone();
        for _ in 0..1 + engine.random() % 4 {
            let anywhere = engine.random() < 1 << 30;
            let at = if anywhere { engine.random() % 5056 } else { 8 + engine.random() % 16 };
            state[at as usize] = (engine.random() & engine.random()) as u8;
        }
        let generator = Generator::new();
        if generator.set_state(&state).is_ok() {
            randn(&generator, 700);
        }
    }
}
