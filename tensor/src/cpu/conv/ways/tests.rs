//! Compares every algorithm with the product in f64, and with the others.

use super::*;
use crate::conv::ConvAlgorithm;
use crate::cpu::conv::run_conv;
use crate::gpu::simulated::convolution::{Convolution, algorithms, ways};
use crate::gpu::simulated::cost;
use crate::gpu::simulated::profile::{H200, Profile, T4};
use crate::handles::DevicePtr;

fn shape(n: usize, c: usize, size: [usize; 2], k: usize) -> ConvShape {
    let [h, w] = size;
    ConvShape { n, c, h, w, k, r: 3, s: 3, stride: [1; 2], padding: [1; 2], dilation: [1; 2], groups: 1 }
}

fn conv(pass: ConvPass, shape: ConvShape, dtype: DType) -> Conv {
    let none = DevicePtr::default();
    Conv { pass, shape, dtype, tf32: false, a: none, b: none, out: none, twin: compute }
}

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    (0..count as u64)
        .map(|i| (crate::random::mix(seed << 40 | i) >> 40) as f32 / (1u32 << 24) as f32 - 0.5)
        .collect()
}

fn operands(pass: ConvPass, shape: &ConvShape) -> ([Vec<f32>; 2], usize) {
    let [x, weight, y] = shape.elements();
    let [a, b, out] = match pass {
        ConvPass::Forward => [x, weight, y],
        ConvPass::BackwardData => [y, weight, x],
        ConvPass::BackwardFilter => [x, y, weight],
    };
    ([numbers(a, 1), numbers(b, 2)], out)
}

fn by(way: Way, conv: &Conv, order: u64) -> Vec<f32> {
    let ([a, b], out) = operands(conv.pass, &conv.shape);
    let mut result = vec![f32::NAN; out];
    let operands = [bytemuck::cast_slice(&a), bytemuck::cast_slice(&b)];
    compute(conv, way, operands, bytemuck::cast_slice_mut(&mut result), order).unwrap();
    result
}

fn exact(conv: &Conv) -> Vec<f64> {
    let ([a, b], out) = operands(conv.pass, &conv.shape);
    let [a, b] = [a, b].map(|values| values.into_iter().map(f64::from).collect::<Vec<f64>>());
    let mut result = vec![f64::NAN; out];
    run_conv(
        conv.pass,
        &conv.shape,
        DType::F64,
        bytemuck::cast_slice(&a),
        bytemuck::cast_slice(&b),
        bytemuck::cast_slice_mut(&mut result),
    )
    .unwrap();
    result
}

fn error(result: &[f32], exact: &[f64]) -> f64 {
    let largest = exact.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let worst = result.iter().zip(exact).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(result.iter().all(|x| x.is_finite()));
    worst / largest
}

const PASSES: [ConvPass; 3] = [ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardFilter];

#[test]
fn every_algorithm_is_right_wherever_it_fits() {
    let sizes = [[1, 1], [2, 3], [5, 4], [8, 8]];
    let plain = sizes
        .into_iter()
        .flat_map(|size| [(1, 1, 1), (2, 3, 5), (9, 4, 16)].map(|(n, c, k)| shape(n, c, size, k)));
    let no_padding = |shape: ConvShape| ConvShape { padding: [0, 2], ..shape };
    let others = [
        no_padding(shape(2, 3, [6, 5], 4)),
        ConvShape { stride: [2, 1], ..shape(2, 3, [7, 6], 4) },
        ConvShape { dilation: [2, 1], ..shape(2, 3, [7, 6], 4) },
        ConvShape { groups: 2, ..shape(2, 4, [5, 5], 6) },
        ConvShape { r: 1, s: 5, padding: [0, 2], ..shape(2, 3, [5, 6], 4) },
    ];
    let mut tried = std::collections::HashMap::new();
    for shape in plain.chain(others) {
        for pass in PASSES {
            let conv = conv(pass, shape, DType::F32);
            let exact = exact(&conv);
            for (number, way) in ways(pass) {
                if (Convolution { conv, way: *way }).is_possible() {
                    let error = error(&by(*way, &conv, 7), &exact);
                    assert!(error < 2e-6, "{pass:?} {number} {way:?} of {shape:?}: {error}");
                    *tried.entry((pass, *number)).or_insert(0) += 1;
                }
            }
        }
    }
    assert!(tried.len() == 8 && tried.values().all(|count| *count >= 8), "{tried:?}");
}

#[test]
fn each_adds_up_in_its_own_order() {
    let conv = conv(ConvPass::Forward, shape(4, 32, [12, 12], 16), DType::F32);
    let [implicit, explicit, winograd] =
        [Way::Implicit, Way::Explicit, Way::Winograd].map(|way| by(way, &conv, 0));
    assert!(implicit != explicit && explicit != winograd && implicit != winograd);
}

#[test]
fn only_disorder_gives_other_bits_in_another_call() {
    for pass in PASSES {
        let conv = conv(pass, shape(16, 16, [6, 6], 24), DType::F32);
        for (_, way) in ways(pass) {
            let [first, again, other] = [1, 1, 2].map(|order| by(*way, &conv, order));
            assert_eq!(first, again);
            assert_eq!(first != other, *way == Way::Disorder, "{pass:?} {way:?}");
        }
    }
}

#[test]
fn halves_are_summed_in_single_precision_and_rounded_once() {
    use half::{bf16, f16};
    let shape = shape(2, 64, [5, 5], 8);
    let conv_of = |dtype| conv(ConvPass::Forward, shape, dtype);
    let ([x, weight], out) = operands(ConvPass::Forward, &shape);
    macro_rules! check {
        ($T:ty, $dtype:expr) => {
            for way in [Way::Implicit, Way::Explicit, Way::Winograd] {
                let [a, b] =
                    [&x, &weight].map(|values| values.iter().map(|x| <$T>::from_f32(*x)).collect::<Vec<_>>());
                let mut result = vec![<$T>::NAN; out];
                let operands = [bytemuck::cast_slice(&a), bytemuck::cast_slice(&b)];
                compute(&conv_of($dtype), way, operands, bytemuck::cast_slice_mut(&mut result), 0).unwrap();
                let [a, b] = [a, b].map(|values| values.into_iter().map(f32::from).collect::<Vec<f32>>());
                let mut wide = vec![f32::NAN; out];
                let operands = [bytemuck::cast_slice(&a), bytemuck::cast_slice(&b)];
                compute(&conv_of(DType::F32), way, operands, bytemuck::cast_slice_mut(&mut wide), 0).unwrap();
                assert_eq!(result, wide.into_iter().map(<$T>::from_f32).collect::<Vec<_>>());
            }
        };
    }
    check!(f16, DType::F16);
    check!(bf16, DType::BF16);
}

fn time(profile: &Profile, conv: &Conv, number: u32) -> u64 {
    let algorithm = ConvAlgorithm { number, workspace: 0, deterministic: true, math: 0 };
    cost::convolution(profile, &Convolution::new(profile, conv, &algorithm).unwrap())
}

#[test]
fn no_algorithm_is_always_the_fastest() {
    let fastest = |shape: ConvShape, pass: ConvPass| {
        let conv = conv(pass, shape, DType::F32);
        let possible = algorithms(&T4, &conv);
        possible.iter().min_by_key(|algorithm| time(&T4, &conv, algorithm.number)).unwrap().number
    };
    let forward = |shape| fastest(shape, ConvPass::Forward);
    // With many channels, Winograd's saved multiplications are worth its transforms.
    assert_eq!(forward(shape(32, 256, [28, 28], 256)), 7);
    assert_eq!(forward(shape(64, 3, [32, 32], 32)), 1);
    // The columns of a 1×1 kernel are the image, so nothing is looked up.
    let pointwise = ConvShape { r: 1, s: 1, padding: [0; 2], ..shape(32, 512, [14, 14], 512) };
    assert_eq!(forward(pointwise), 2);
    // A small gradient of many positions is summed in parts without order, a large one in order.
    assert_eq!(fastest(shape(64, 3, [32, 32], 32), ConvPass::BackwardFilter), 0);
}

#[test]
fn the_rule_of_thumb_is_right_often_and_wrong_sometimes() {
    let mut right = 0;
    let mut all = 0;
    for (channels, size) in [(3, 32), (16, 32), (32, 16), (64, 56), (128, 28), (256, 14), (512, 7)] {
        for pass in PASSES {
            let conv = conv(pass, shape(32, channels, [size, size], 64), DType::F32);
            let possible = algorithms(&T4, &conv);
            let fastest = possible.iter().min_by_key(|algorithm| time(&T4, &conv, algorithm.number)).unwrap();
            right += usize::from(possible[0] == *fastest);
            all += 1;
        }
    }
    assert!(right >= all / 2 && right < all, "{right} of {all}");
}

#[test]
fn tf32_and_halves_are_faster_where_the_tensor_cores_take_them() {
    let big = shape(32, 256, [28, 28], 256);
    let of = |dtype, tf32| Conv { tf32, ..conv(ConvPass::Forward, big, dtype) };
    let single = of(DType::F32, false);
    assert!(time(&H200, &of(DType::F32, true), 1) < time(&H200, &single, 1));
    assert!(time(&H200, &of(DType::BF16, false), 1) < time(&H200, &of(DType::F32, true), 1));
    assert_eq!(time(&T4, &of(DType::F32, true), 1), time(&T4, &single, 1));
    assert!(time(&T4, &of(DType::F16, false), 1) < time(&T4, &single, 1) / 3);
}

#[test]
fn workspaces_are_what_the_algorithms_write() {
    let conv = conv(ConvPass::Forward, shape(2, 4, [8, 8], 6), DType::F32);
    let workspace = |way| Convolution { conv, way }.workspace();
    assert_eq!(workspace(Way::Explicit), 2 * 4 * 9 * 64 * 4);
    // 2 images of 4×4 tiles. Image, kernel and result have 16 numbers per tile.
    assert_eq!(workspace(Way::Winograd), 16 * (4 * 32 + 6 * 4 + 6 * 32) * 4);
    assert_eq!(workspace(Way::Implicit), 4 * 9 * 4);
    assert_eq!(workspace(Way::Disorder), 0);
}
