//! Views, broadcasting and reductions compared with naive indexing.

use crate::each_case::each_case;
use crate::model::*;
use proptest::prelude::*;
use todevice::{DType, Device, Error, LayoutError, MAX_DIMS, Machine, Result, Tensor};

fn views_exist_where_strides_can_express_them(sizes: &[usize], steps: &[Step], reshapes: Vec<[usize; 3]>) {
    let (tensor, model) = chain(sizes, steps);
    for numbers in reshapes {
        let new = refactored(&model.sizes, numbers);
        let viewed = tensor.view(&signed(&new));
        assert_eq!(viewed.is_ok(), model.can_be_viewed_as(&new), "{model:?} as {new:?}");
        let reshaped = tensor.reshape(&signed(&new)).unwrap();
        assert_eq!(reshaped.shares_storage(&tensor), viewed.is_ok());
        assert_eq!(reshaped.to_vec::<i64>().unwrap(), model.values());
    }
}

fn overlapping_targets_are_refused(sizes: &[usize], steps: &[Step]) {
    let (tensor, model) = chain(sizes, steps);
    if model.overlaps() {
        assert!(tensor.add_(1).is_err(), "{model:?}");
    } else if tensor.add_(1).is_ok() {
        let raised: Vec<i64> = model.values().iter().map(|value| value + 1).collect();
        assert_eq!(tensor.to_vec::<i64>().unwrap(), raised);
    }
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn chains_of_views_are_naive_indexing(sizes in mostly_full_shape(), steps in steps(0..8)) {
        chain(&sizes, &steps);
    }

    #[test]
    fn a_view_exists_exactly_where_strides_can_express_it(
        sizes in mostly_full_shape(),
        steps in steps(0..5),
        reshapes in proptest::collection::vec([0usize..1000, 0usize..1000, 0usize..1000], 8),
    ) {
        views_exist_where_strides_can_express_them(&sizes, &steps, reshapes);
    }

    #[test]
    fn overlap_is_never_missed(sizes in mostly_full_shape(), steps in steps(1..8)) {
        overlapping_targets_are_refused(&sizes, &steps);
    }
}

fn compatible_shapes() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    // From one shape, each dimension of either operand replaced by 1 or, at the front, omitted.
    (mostly_full_shape(), any::<[u8; 2]>(), 0usize..5, 0usize..5).prop_map(
        |(sizes, masks, skip_a, skip_b)| {
            let thinned = |mask: u8, skip: usize| -> Vec<usize> {
                let one = |(dim, size): (usize, &usize)| if mask & (1 << dim) != 0 { 1 } else { *size };
                sizes.iter().enumerate().map(one).skip(skip.min(sizes.len())).collect()
            };
            (thinned(masks[0], skip_a / 2), thinned(masks[1], skip_b / 2))
        },
    )
}

fn broadcasting_matches_naive_indexing(a: &(Tensor, Model), b: &(Tensor, Model)) {
    let result = a.0.mul(1000).unwrap().add(&b.0);
    match broadcast(&a.1.sizes, &b.1.sizes) {
        Ok(sizes) if sizes.len() <= MAX_DIMS => {
            let naive = |combine: fn(i64, i64) -> i64| -> Vec<i64> {
                let [a_values, b_values] = [a.1.values(), b.1.values()];
                let at = |index: Vec<usize>| {
                    let a = broadcast_value(&a.1.sizes, &a_values, &index);
                    combine(a, broadcast_value(&b.1.sizes, &b_values, &index))
                };
                indices(&sizes).map(at).collect()
            };
            let result = result.unwrap();
            assert_eq!(result.sizes(), &sizes[..]);
            assert_eq!(result.to_vec::<i64>().unwrap(), naive(|a, b| a * 1000 + b));
            let chosen = b.0.lt(3).unwrap().where_cond(&a.0, &b.0).unwrap();
            assert_eq!(chosen.to_vec::<i64>().unwrap(), naive(|a, b| if b < 3 { a } else { b }));
        }
        Ok(_) => assert!(result.is_err()),
        Err(dim) => {
            let refused = result.as_ref().map_err(Error::layout);
            assert!(matches!(refused, Err(Some(LayoutError::Broadcast { dim: at, .. })) if *at == dim))
        }
    }
}

/// A naive reduction: the elements of each result.
struct Groups {
    dims: Vec<i64>,
    sizes: Vec<usize>,
    groups: Vec<Vec<i64>>,
}

impl Groups {
    fn new(sizes: &[usize], values: &[i64], mask: u8, keepdim: bool) -> Groups {
        let ndim = sizes.len();
        let named = |dim: &usize| mask & (1 << dim) != 0;
        let written = |dim: usize| maybe_negative(dim, ndim, usize::from(mask >> 4) + dim);
        let dims: Vec<i64> = (0..ndim).filter(named).map(written).collect();
        let reduced: Vec<bool> = (0..ndim).map(|dim| dims.is_empty() || named(&dim)).collect();
        // The kept entries of a list with one entry per dimension, and `gone` for the others with keepdim.
        let keep = |all: &[usize], gone: usize| -> Vec<usize> {
            let entries = all.iter().zip(&reduced).filter(|(_, reduced)| keepdim || !**reduced);
            entries.map(|(entry, reduced)| if *reduced { gone } else { *entry }).collect()
        };
        let out_sizes = keep(sizes, 1);
        let mut groups = vec![Vec::new(); numel(&out_sizes)];
        for (index, value) in indices(sizes).zip(values) {
            groups[position(&out_sizes, &keep(&index, 0))].push(*value);
        }
        Groups { dims, sizes: out_sizes, groups }
    }

    fn each(&self, reduce: impl Fn(&[i64]) -> i64) -> Vec<i64> {
        self.groups.iter().map(|group| reduce(group)).collect()
    }
}

fn reductions_match_naive_loops(tensor: &Tensor, model: &Model, mask: u8, keepdim: bool, scramble: i64) {
    // Values in no order: products modulo a prime.
    let of = |value: i64| value * scramble % 97;
    let values: Vec<i64> = model.values().iter().map(|value| of(*value)).collect();
    let table = Tensor::from_slice(&(0..2048).map(of).collect::<Vec<_>>(), &[2048]).unwrap();
    let places = tensor.reshape(&[-1].map(|size| if tensor.numel() == 0 { 0 } else { size })).unwrap();
    let picked = table.index_select(0, &places).unwrap().view(&signed(&model.sizes)).unwrap();
    // A different layout: every second column of a wider tensor, transposed.
    let reversed: Vec<i64> = (0..model.sizes.len() as i64).rev().collect();
    let pair = Tensor::stack(&[picked.permute(&reversed).unwrap(), tensor.permute(&reversed).unwrap()], -1);
    let tensor = &pair.unwrap().select(-1, 0).unwrap().permute(&reversed).unwrap();
    assert_eq!(tensor.to_vec::<i64>().unwrap(), values);

    let naive = Groups::new(&model.sizes, &values, mask, keepdim);
    let dims = &naive.dims;
    let sum = tensor.sum_dims(dims, keepdim).unwrap();
    assert_eq!(sum.sizes(), naive.sizes);
    assert_eq!(sum.to_vec::<i64>().unwrap(), naive.each(|group| group.iter().sum()));

    let (largest, smallest) = (tensor.amax(dims, keepdim), tensor.amin(dims, keepdim));
    if naive.groups.iter().any(Vec::is_empty) || largest.is_err() {
        assert!(largest.is_err() && smallest.is_err());
        assert!(values.is_empty(), "there was something to find");
    } else {
        let [largest, smallest] = [largest, smallest].map(|result| result.unwrap().to_vec::<i64>().unwrap());
        assert_eq!(largest, naive.each(|group| *group.iter().max().unwrap()));
        assert_eq!(smallest, naive.each(|group| *group.iter().min().unwrap()));
        if let [dim] = dims[..] {
            let first =
                |group: &[i64], value: &i64| group.iter().position(|other| other == value).unwrap() as i64;
            let (values, at) = tensor.max_dim(dim, keepdim).unwrap();
            assert_eq!(
                at.to_vec::<i64>().unwrap(),
                naive.each(|group| first(group, group.iter().max().unwrap()))
            );
            assert_eq!((values.to_vec::<i64>().unwrap(), values.sizes()), (largest, &naive.sizes[..]));
            let (values, at) = tensor.min_dim(dim, keepdim).unwrap();
            assert_eq!(
                at.to_vec::<i64>().unwrap(),
                naive.each(|group| first(group, group.iter().min().unwrap()))
            );
            assert_eq!((values.to_vec::<i64>().unwrap(), at.sizes()), (smallest, &naive.sizes[..]));
        }
    }
    assert_eq!(tensor.any().unwrap().is_nonzero().unwrap(), values.iter().any(|value| *value != 0));
    assert_eq!(tensor.all().unwrap().is_nonzero().unwrap(), values.iter().all(|value| *value != 0));

    // Floats: within rounding of the naive sum, and bit-identical to those of a contiguous copy.
    let sevenths = tensor.to(DType::F64).unwrap().div(7.0).unwrap();
    let strided = sevenths.permute(&reversed).unwrap().contiguous().unwrap().permute(&reversed).unwrap();
    let sums = sevenths.sum_dims(dims, keepdim).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(bits(&sums), bits(&strided.sum_dims(dims, keepdim).unwrap().to_vec::<f64>().unwrap()));
    let means = strided.mean_dims(dims, keepdim).unwrap().to_vec::<f64>().unwrap();
    for ((sum, mean), group) in sums.iter().zip(&means).zip(&naive.groups) {
        let expected: f64 = group.iter().map(|value| *value as f64 / 7.0).sum();
        assert!((sum - expected).abs() <= 1e-12 * expected.abs().max(1.0));
        assert!(*mean == sum / group.len() as f64 || (mean.is_nan() && group.is_empty()));
    }
}

/// The same chain of views on a floating-point tensor.
fn float_chain(sizes: &[usize], steps: &[Step]) -> Tensor {
    let base = Tensor::arange(0, numel(sizes) as i64, (1, DType::F32)).unwrap();
    let base = base.mul(0.37).unwrap().sub(1.5).unwrap();
    let (mut tensor, mut model) = (base.view(&signed(sizes)).unwrap(), Model::counting(sizes));
    for next in steps {
        if let Some((Ok(result), Some(expected))) = step(&tensor, &model, next) {
            (tensor, model) = (result, expected);
        }
    }
    tensor
}

fn operations_match_those_on_a_copy(sizes: &[usize], steps: &[Step]) {
    let view = float_chain(sizes, steps);
    let copy = Tensor::from_slice(&view.to_vec::<f32>().unwrap(), view.sizes()).unwrap();
    let operations: [fn(&Tensor) -> Result<Tensor>; 16] = [
        Tensor::exp,
        Tensor::neg,
        Tensor::relu,
        Tensor::copy,
        Tensor::sum,
        Tensor::sigmoid,
        Tensor::floor,
        |x| x.add(x),
        |x| x.mul(2.0),
        |x| x.clamp(-1.0, 2.0),
        |x| x.softmax(-1),
        |x| x.log_softmax(0),
        |x| x.to(DType::F64)?.to(DType::F32),
        |x| x.gt(0.0)?.where_cond(x, &x.neg()?),
        |x| Tensor::stack(&[x, x], 0),
        |x| x.unsqueeze(-1)?.matmul(&x.unsqueeze(-2)?),
    ];
    for operation in operations {
        match (operation(&copy), operation(&view)) {
            (Ok(expected), Ok(got)) => {
                assert_eq!(got.sizes(), expected.sizes());
                let [got, expected] = [got, expected].map(|tensor| bits32(&tensor.to_vec::<f32>().unwrap()));
                assert_eq!(got, expected);
            }
            (Err(_), Err(_)) => {}
            (expected, got) => panic!("{expected:?} of a copy, {got:?} of a view"),
        }
    }
}

/// PyTorch 2.11's.
#[test]
fn dimensions_of_size_1_have_pytorchs_strides() {
    let zeros = |sizes: &[usize]| Tensor::zeros(sizes).unwrap();
    let unsqueezed: [(Tensor, &[&[usize]]); 8] = [
        (zeros(&[2, 3]), &[&[6, 3, 1], &[3, 3, 1], &[3, 1, 1]]),
        (zeros(&[]), &[&[1]]),
        (zeros(&[1, 3]), &[&[3, 3, 1], &[3, 3, 1], &[3, 1, 1]]),
        (zeros(&[0, 3]), &[&[0, 3, 1], &[3, 3, 1], &[3, 1, 1]]),
        (zeros(&[3, 0]), &[&[3, 1, 1], &[1, 0, 1], &[1, 1, 1]]),
        (zeros(&[4, 6]).t().unwrap(), &[&[6, 1, 6], &[1, 24, 6], &[1, 6, 1]]),
        (zeros(&[4, 6]).slice(1, 0, 6, 2).unwrap(), &[&[24, 6, 2], &[6, 6, 2], &[6, 2, 1]]),
        (zeros(&[3, 1]).expand(&[3, 4]).unwrap(), &[&[3, 1, 0], &[1, 0, 0], &[1, 0, 1]]),
    ];
    for (x, strides) in unsqueezed {
        for (dim, strides) in strides.iter().enumerate() {
            assert_eq!(x.unsqueeze(dim as i64).unwrap().strides(), *strides, "{:?} at {dim}", x.sizes());
        }
    }
    let expanded: [(&[usize], &[i64], &[usize]); 14] = [
        (&[1], &[1], &[1]),
        (&[1, 3], &[2, 3], &[0, 1]),
        (&[1, 3], &[5, 1, 3], &[0, 3, 1]),
        (&[3], &[1, 3], &[3, 1]),
        (&[], &[1], &[0]),
        (&[], &[1, 2, 1], &[0, 0, 0]),
        (&[3, 1], &[1, 1, 3, 1], &[3, 3, 1, 1]),
        (&[3, 1], &[2, 1, 3, 1], &[0, 3, 1, 1]),
        (&[3, 1], &[1, 2, 3, 1], &[0, 0, 1, 1]),
        (&[0], &[1, 0], &[0, 1]),
        (&[1], &[0], &[0]),
        (&[2, 3], &[1, 2, 3], &[6, 3, 1]),
        (&[1, 1], &[2, 1, 1], &[0, 1, 1]),
        (&[3, 1], &[3, 4], &[1, 0]),
    ];
    for (sizes, to, strides) in expanded {
        assert_eq!(zeros(sizes).expand(to).unwrap().strides(), strides, "{sizes:?} to {to:?}");
    }
}

#[test]
fn what_changes_nothing_is_the_tensor_itself_or_a_view_as_in_pytorch() {
    each_case([&[][..], &[3], &[2, 3]], |sizes| {
        let x = Tensor::zeros(sizes).unwrap().requires_grad_(true).unwrap();
        let t = x.t().unwrap();
        assert!(t.is_view() && !t.is_same(&x) && t.grad_fn() == Some("TBackward0"), "t of {sizes:?}");
        t.sum().unwrap().backward().unwrap();
        assert_eq!(x.grad().unwrap().sizes(), sizes);
        let flat = x.flatten(0, -1).unwrap();
        assert_eq!(flat.is_same(&x), sizes.len() == 1, "flatten of {sizes:?}");
        assert_eq!(flat.grad_fn(), (sizes.len() != 1).then_some("ViewBackward0"));
        if sizes.len() == 2 {
            assert!(x.flatten(1, 1).unwrap().is_same(&x));
        }
    });
}

#[test]
fn nothing_is_cut_into_as_many_chunks_as_asked_for() {
    each_case([(&[0, 3][..], 0), (&[2, 0], 1), (&[0], -1)], |(sizes, dim)| {
        let x = Tensor::zeros(sizes).unwrap().requires_grad_(true).unwrap();
        for chunks in [1, 3, 5] {
            let parts = x.chunk(chunks, dim).unwrap();
            assert_eq!(parts.len(), chunks);
            for part in &parts {
                assert_eq!((part.sizes(), part.grad_fn()), (sizes, Some("SplitWithSizesBackward0")));
            }
            parts[0].sum().unwrap().backward().unwrap();
            assert_eq!(x.grad().unwrap().sizes(), sizes);
        }
    });
    let lengths = |size: usize, chunks| -> Vec<usize> {
        let parts = Tensor::zeros(&[size]).unwrap().chunk(chunks, 0).unwrap();
        parts.iter().map(Tensor::numel).collect()
    };
    assert_eq!([lengths(7, 4), lengths(4, 3), lengths(5, 9)], [vec![2, 2, 2, 1], vec![2, 2], vec![1; 5]]);
}

#[test]
fn the_entry_that_a_number_names_is_a_view() {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| {
            let x = Tensor::arange(0, 6, (1, (device, DType::F32))).unwrap().view(&[3, 2]).unwrap();
            for index in
                [Tensor::new(1i64).unwrap(), Tensor::from_slice(&[-2i32], &[]).unwrap().to(device).unwrap()]
            {
                let row = x.index(&index).unwrap();
                assert!(row.is_view() && row.shares_storage(&x) && row.storage_offset() == 2, "{device}");
                row.zero_().unwrap();
            }
            assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 1.0, 0.0, 0.0, 4.0, 5.0]);
            let leaf = x.copy().unwrap().requires_grad_(true).unwrap();
            let row = leaf.index(&Tensor::new(2i64).unwrap()).unwrap();
            assert_eq!(row.grad_fn(), Some("SelectBackward0"));
            row.sum().unwrap().backward().unwrap();
            assert_eq!(leaf.grad().unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
            for outside in [3i64, -4] {
                let error = x.index(&Tensor::new(outside).unwrap()).unwrap_err().to_string();
                assert_eq!(error, format!("index {outside} is out of bounds for dimension 0 with size 3"));
            }
        });
        let number = Tensor::new(5.0f32).unwrap();
        let error = number.index(&Tensor::new(0i64).unwrap()).unwrap_err().to_string();
        assert_eq!(error, "too many indices for tensor of dimension 0");
    });
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn broadcasting_is_naive_indexing(
        (a, b) in prop_oneof![3 => compatible_shapes(), 1 => (shape(4, 3), shape(4, 3))],
        (a_steps, b_steps) in prop_oneof![
            (steps(0..1), steps(0..1)),
            (steps(0..4), steps(0..4)),
        ],
    ) {
        broadcasting_matches_naive_indexing(&chain(&a, &a_steps), &chain(&b, &b_steps));
    }

    #[test]
    fn reductions_are_naive_loops(
        sizes in mostly_full_shape(),
        steps in steps(0..6),
        mask in any::<u8>(),
        keepdim in any::<bool>(),
        scramble in 1i64..1000,
    ) {
        let (tensor, model) = chain(&sizes, &steps);
        reductions_match_naive_loops(&tensor, &model, mask, keepdim, scramble);
    }

    #[test]
    fn operations_do_not_see_how_their_input_lies(sizes in mostly_full_shape(), steps in steps(1..7)) {
        operations_match_those_on_a_copy(&sizes, &steps);
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn bits32(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }).collect()
}

// The order of a reduction affects its result.

/// Numbers of all magnitudes, so that every order of summation gives a different result.
fn rough(count: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mantissa = (state >> 40) as f32 / 16_777_216.0 - 0.5;
            mantissa * 2f32.powi((state >> 20 & 15) as i32)
        })
        .collect()
}

/// The sum in the documented order: chunks of 1024, 32 lanes each, lanes folded in halves.
fn documented_sum(values: &[f32]) -> f32 {
    fn chunk(values: &[f32]) -> f32 {
        let mut lanes: Vec<Option<f32>> = vec![None; 32];
        for (i, value) in values.iter().enumerate() {
            let lane = &mut lanes[i % 32];
            *lane = Some(lane.map_or(*value, |sum| sum + value));
        }
        for width in [16, 8, 4, 2, 1] {
            for lane in 0..width {
                lanes[lane] = match (lanes[lane], lanes[lane + width]) {
                    (Some(a), Some(b)) => Some(a + b),
                    (a, b) => a.or(b),
                };
            }
        }
        lanes[0].unwrap_or(0.0)
    }
    let mut values = values.to_vec();
    loop {
        values = values.chunks(1024).map(chunk).collect();
        if values.len() <= 1 {
            return values.first().copied().unwrap_or(0.0);
        }
    }
}

const SIZES: [usize; 16] =
    [0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 2048, 33_000, 1024 * 1024 + 1];

/// Reruns a test of this file in a process whose thread pool has this many threads (operations are not split on a
/// pool's own threads). Returns the output after "bits:".
fn bits_on(threads: &str, test: &str) -> String {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([&format!("views::{test}"), "--exact", "--nocapture"])
        .env("RAYON_NUM_THREADS", threads)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{test} on {threads} threads: {printed}"
    );
    printed.lines().find_map(|line| line.split_once("bits:")).expect("the test prints its bits").1.to_string()
}

#[test]
fn every_thread_count_gives_the_same_bits() {
    each_case(["sums_have_the_documented_bits", "results_of_all_kinds"], |test| {
        let one = bits_on("1", test);
        for threads in ["2", "3"] {
            assert_eq!(bits_on(threads, test), one, "{test} on {threads} threads");
        }
    });
}

#[test]
fn no_number_of_threads_keeps_a_program_from_running() {
    let test = "sums_have_the_documented_bits";
    let one = bits_on("1", test);
    each_case(["0", "-1", "many", "65535", "99999999", "99999999999999999999"], |threads| {
        assert_eq!(bits_on(threads, test), one, "{threads}");
    });
}

/// A hash of all the bits (FNV-1a).
fn fingerprint(bits: impl IntoIterator<Item = u32>) -> u64 {
    bits.into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, bits| (hash ^ u64::from(bits)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn sums_have_the_documented_bits() {
    let mut sums = Vec::new();
    for count in SIZES {
        let values = rough(count);
        let expected = documented_sum(&values).to_bits();
        let doubled: Vec<f32> = values.iter().flat_map(|value| [*value, 77.0]).collect();
        let sum = |x: &Tensor| (x.sum().unwrap().item().unwrap() as f32).to_bits();
        let dense = Tensor::from_slice(&values, &[count]).unwrap();
        assert_eq!(sum(&dense), expected, "{count}");
        let strided = Tensor::from_slice(&doubled, &[count, 2]).unwrap().select(1, 0).unwrap();
        assert_eq!(sum(&strided), expected, "{count} with gaps");
        // As a row and as a column of a matrix, and next to others.
        let row = dense.unsqueeze(0).unwrap().sum_dims(&[1], false).unwrap();
        assert_eq!(row.to_vec::<f32>().unwrap()[0].to_bits(), expected, "{count} as a row");
        let column = dense.unsqueeze(1).unwrap().sum_dims(&[0], false).unwrap();
        assert_eq!(column.to_vec::<f32>().unwrap()[0].to_bits(), expected, "{count} as a column");
        for columns in [2i64, 31, 33] {
            if count as i64 * columns > 1 << 22 {
                continue;
            }
            let wide = dense.unsqueeze(1).unwrap().expand(&[count as i64, columns]).unwrap();
            for wide in [wide.contiguous().unwrap(), wide] {
                for sum in wide.sum_dims(&[0], false).unwrap().to_vec::<f32>().unwrap() {
                    assert_eq!(sum.to_bits(), expected, "{count} by {columns}");
                }
            }
        }
        sums.push(expected);
    }
    println!("bits:{:x}", fingerprint(sums));
}

#[test]
fn results_of_all_kinds() {
    let count = (1 << 18) + 1029;
    let values = rough(count);
    let expected = {
        let x = Tensor::from_slice(&values, &[count]).unwrap();
        let matrix = x.slice(0, 0, 512 * 512, 1).unwrap().view(&[512, 512]).unwrap();
        let turned = matrix.t().unwrap();
        let results = [
            x.exp(),
            x.add(&x),
            x.mul(&x.select(0, 7).unwrap()),
            x.relu(),
            x.gt(0.0).unwrap().where_cond(&x, &x.neg().unwrap()),
            x.copy().unwrap().mul_(&x),
            x.max(),
            x.mean(),
            matrix.add(&turned),
            turned.exp(),
            matrix.softmax(1),
            matrix.log_softmax(0),
            matrix.sum_dims(&[0], false),
            turned.sum_dims(&[0], false),
            matrix.amax(&[1], true),
            turned.var(&[0], 1, false),
            turned.copy(),
            turned.contiguous().unwrap().add_(&matrix),
        ];
        results.map(|result| bits32(&result.unwrap().to_vec::<f32>().unwrap()))
    };
    assert_eq!(expected[1], bits32(&values.iter().map(|value| value + value).collect::<Vec<_>>()));
    assert_eq!(expected[3], bits32(&values.iter().map(|value| value.max(0.0)).collect::<Vec<_>>()));
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    assert_eq!(expected[6], [largest.to_bits()]);
    for (i, value) in expected[8].iter().enumerate() {
        assert_eq!(f32::from_bits(*value), values[i] + values[i % 512 * 512 + i / 512]);
    }
    println!("bits:{:x}", fingerprint(expected.into_iter().flatten()));
}

#[test]
fn elementwise_operations_are_right_around_every_block_size() {
    each_case(
        [
            0,
            1,
            2,
            3,
            1023,
            1024,
            1025,
            2047,
            2049,
            (1 << 16) - 1,
            (1 << 16) + 1,
            (1 << 18) - 1,
            (1 << 18) + 1,
        ],
        |count| {
            let values: Vec<i64> = (0..count as i64).map(|i| i * 7919 % 10_007).collect();
            let x = Tensor::from_slice(&values, &[count]).unwrap();
            let doubled: Vec<i64> = values.iter().map(|value| value * 2 + 1).collect();
            assert!(x.mul(2).unwrap().add(1).unwrap().to_vec::<i64>().unwrap() == doubled, "{count}");
            let strided = Tensor::stack(&[&x, &x.neg().unwrap()], 1).unwrap().select(1, 1).unwrap();
            assert!(strided.neg().unwrap().to_vec::<i64>().unwrap() == values, "{count} with gaps");
            let roots = x.to(DType::F32).unwrap().sqrt().unwrap().to_vec::<f32>().unwrap();
            assert!(
                roots.iter().zip(&values).all(|(root, value)| *root == (*value as f32).sqrt()),
                "{count}"
            );
            let total = x.sum().unwrap().item().unwrap();
            assert_eq!(total, values.iter().sum::<i64>() as f64, "{count}");
        },
    );
}

#[test]
fn views_of_nothing_can_be_used_like_others() {
    let x = Tensor::ones(&[2, 3]).unwrap();
    let nothing = x.slice(0, 2, 2, 1).unwrap().slice(1, 3, 3, 1).unwrap();
    let none_of_none = Tensor::zeros(&[2, 0]).unwrap().select(0, 1).unwrap();
    each_case(
        [&nothing, &none_of_none, &x.narrow(1, 3, 0).unwrap(), &x.t().unwrap().narrow(0, 3, 0).unwrap()],
        |empty| {
            assert_eq!(empty.numel(), 0);
            assert_eq!(empty.to_vec::<f32>().unwrap(), [0.0; 0]);
            assert_eq!(empty.add_(1.0).unwrap().exp().unwrap().numel(), 0);
            assert_eq!(empty.zero_().unwrap().sum().unwrap().item().unwrap(), 0.0);
            assert_eq!(empty.copy_(&Tensor::ones(&[1]).unwrap()).unwrap().softmax(-1).unwrap().numel(), 0);
            assert_eq!(empty.uniform_(0.0, 1.0, None).unwrap().numel(), 0);
            assert!(empty.mean().unwrap().item().unwrap().is_nan());
            assert!(empty.equal(empty).unwrap());
            assert_eq!(empty.index_select(-1, &Tensor::new::<[i64; 0]>([]).unwrap()).unwrap().numel(), 0);
            assert_eq!(Tensor::cat(&[empty, empty], 0).unwrap().numel(), 0);
            assert!(empty.to_string().starts_with("tensor([]"));
        },
    );
    let product = nothing.matmul(&Tensor::ones(&[0, 5]).unwrap());
    assert_eq!(product.unwrap().sizes(), [0, 5]);
}

/// A product over an empty dimension is 0, not the previous content of the memory.
#[test]
fn products_over_nothing_are_zero_in_used_memory() {
    each_case([[&[64, 0][..], &[0, 64]], [&[4, 32, 0], &[4, 0, 32]], [&[4, 32, 0], &[0, 32]]], |[a, b]| {
        drop(Tensor::full(&[64, 64], (7.0, DType::F32)).unwrap());
        let product = Tensor::zeros(a).unwrap().matmul(&Tensor::zeros(b).unwrap()).unwrap();
        assert_eq!(product.numel(), 4096);
        assert!(product.to_vec::<f32>().unwrap().iter().all(|value| *value == 0.0), "{a:?} times {b:?}");
    });
}

/// Copies of transposed tensors go tile by tile, on several threads from 2¹⁸ elements; a batch goes matrix by matrix.
#[test]
fn matrices_on_their_side_are_copied_element_for_element() -> Result<()> {
    let sides = [1, 2, 15, 16, 17, 31, 33, 100];
    let sizes = sides.into_iter().flat_map(|rows| sides.map(|columns| [rows, columns])).chain([[700, 601]]);
    for [rows, columns] in sizes {
        for batch in [1, 3] {
            let x = Tensor::arange(0, (batch * rows * columns + 1) as i64, (1, DType::I64))?.narrow(
                0,
                1,
                batch * rows * columns,
            )?;
            let x = x.view(&signed(&[batch, rows, columns]))?;
            let turned = x.transpose(1, 2)?;
            let mut expected = Vec::new();
            for matrix in 0..batch {
                for column in 0..columns {
                    expected
                        .extend((0..rows).map(|row| (1 + (matrix * rows + row) * columns + column) as i64));
                }
            }
            assert_eq!(turned.contiguous()?.to_vec::<i64>()?, expected, "{batch} × {rows} × {columns}");
            let bytes: Vec<u8> = expected.iter().map(|value| *value as u8).collect();
            assert_eq!(x.to(DType::U8)?.transpose(1, 2)?.contiguous()?.to_vec::<u8>()?, bytes);
        }
    }
    Ok(())
}

/// The order of a sum does not depend on the dimensions around it.
#[test]
fn a_reduction_in_the_middle_has_the_bits_of_one_of_each_matrix() -> Result<()> {
    each_case(
        [[1, 7, 2], [3, 1, 5], [5, 40, 33], [2, 1030, 70], [64, 64, 70]],
        |[batch, length, columns]| -> Result<()> {
            let x = Tensor::randn(&[batch, length, columns])?;
            let (sums, largest) = (x.sum_dims(&[1], false)?, x.amax(&[1], false)?);
            for i in 0..batch as i64 {
                let matrix = x.select(0, i)?.contiguous()?;
                let bits = |x: Tensor| {
                    Ok::<_, Error>(x.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect::<Vec<_>>())
                };
                assert_eq!(
                    bits(sums.select(0, i)?)?,
                    bits(matrix.sum_dims(&[0], false)?)?,
                    "{batch} {length} {columns}"
                );
                assert_eq!(bits(largest.select(0, i)?)?, bits(matrix.amax(&[0], false)?)?);
            }
            Ok(())
        },
    );
    Ok(())
}

/// Small tensors are concatenated at once, for every dtype and dimension, in the same time on a modelled host as one
/// after another.
#[test]
fn small_tensors_are_joined_as_large_ones_are() -> Result<()> {
    let x = Tensor::arange(0, 2 * 3 * 4, (1, DType::I64))?.view(&[2, 3, 4])?;
    each_case(
        [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8],
        |dtype| -> Result<()> {
            for dim in 0..3 {
                let parts: Vec<Tensor> = (0..x.size(dim)?)
                    .map(|i| x.to(dtype)?.narrow(dim, i, 1)?.contiguous())
                    .collect::<Result<_>>()?;
                assert_eq!(Tensor::cat(&parts, dim)?.to(DType::I64)?.to_vec::<i64>()?, x.to_vec::<i64>()?);
                // The first is not contiguous, so they are copied one by one.
                let strided = parts[0].transpose(0, 2)?.contiguous()?.transpose(0, 2)?;
                let mixed = [&[strided][..], &parts[1..]].concat();
                assert_eq!(Tensor::cat(&mixed, dim)?.to(DType::I64)?.to_vec::<i64>()?, x.to_vec::<i64>()?);
            }
            Ok(())
        },
    );
    assert_eq!(Tensor::cat(&[Tensor::zeros(&[0, 3])?, Tensor::zeros(&[0, 2])?], 1)?.sizes(), [0, 5]);
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let parts = [Tensor::ones(&[4, 8])?, Tensor::ones(&[6, 8])?];
        let time = |work: &dyn Fn() -> Result<()>| {
            let before = todevice::time::Instant::now();
            work().unwrap();
            before.elapsed()
        };
        let joined = time(&|| Tensor::cat(&parts, 0).map(drop));
        let turned = parts.clone().map(|part| part.t().unwrap().contiguous().unwrap().t().unwrap());
        assert_eq!(joined, time(&|| Tensor::cat(&turned, 0).map(drop)));
        Ok(())
    })
}
