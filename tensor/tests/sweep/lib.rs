//! Runs operations on the CPU and on `cuda:0`, with inputs in every memory layout, and compares all observable results,
//! values and gradients bit for bit.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::{Debug, Write};

use todevice::autograd::{self, BackwardOptions};
use todevice::{DType, Device, Result, Tensor, ToOptions, bf16, f16};

pub const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];
pub const ALL: [DType; 8] =
    [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8, DType::Bool];

/// Pairs of dtypes that are promoted.
const MIXED: [[DType; 2]; 9] = [
    [DType::F32, DType::F64],
    [DType::F64, DType::I64],
    [DType::I64, DType::F32],
    [DType::I32, DType::I64],
    [DType::U8, DType::I32],
    [DType::Bool, DType::U8],
    [DType::F16, DType::BF16],
    [DType::BF16, DType::F32],
    [DType::I64, DType::F16],
];

/// An operation and the input sizes it is tested on. The first word of its name is the function.
pub struct Case {
    pub name: &'static str,
    sizes: Vec<Vec<Vec<usize>>>,
    run: fn(&[Tensor]) -> Result<Vec<Tensor>>,
    by_library: bool,
}

pub fn case(
    name: &'static str,
    sizes: Vec<Vec<Vec<usize>>>,
    run: fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Case {
    Case { name, sizes, run, by_library: false }
}

impl Case {
    pub fn function(&self) -> &'static str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// Marks an operation that an NVIDIA library computes on a real GPU.
    pub fn by_library(self) -> Case {
        Case { by_library: true, ..self }
    }

    fn is_in_place(&self) -> bool {
        self.function().ends_with('_')
    }
}

pub fn one(result: Result<Tensor>) -> Result<Vec<Tensor>> {
    result.map(|tensor| vec![tensor])
}

/// Whether to test fewer sizes and layouts: on the stand-ins, which run the threads of a kernel sequentially.
fn short() -> bool {
    std::env::var("TEST_SWEEP").is_ok_and(|sweep| sweep == "short") || once()
}

/// Whether to test each case only with its largest size: for tools that watch every access.
fn once() -> bool {
    std::env::var("TEST_SWEEP").is_ok_and(|sweep| sweep == "once")
}

/// Sizes around the boundaries of blocks, warps and vectors, for `inputs` tensors of the same size.
pub fn edges(inputs: usize) -> Vec<Vec<Vec<usize>>> {
    let lengths: &[usize] = match short() {
        true => &[0, 1, 3, 256, 257, 1024, 1025],
        false => &[0, 1, 2, 3, 255, 256, 257, 1023, 1024, 1025],
    };
    let lengths = lengths.iter().map(|length| vec![*length]);
    let eight = vec![1, 2, 1, 3, 2, 1, 1, 2];
    let more = [vec![], vec![3, 5], vec![5, 1], vec![0, 4], vec![2, 3, 4], vec![31, 33], eight];
    lengths.chain(more).map(|sizes| vec![sizes; inputs]).collect()
}

/// Several lists of input sizes: `[[3, 1], [4]]` is one list.
pub fn sizes(all: &[&[&[usize]]]) -> Vec<Vec<Vec<usize>>> {
    all.iter().map(|inputs| inputs.iter().map(|sizes| sizes.to_vec()).collect()).collect()
}

/// The memory layout of an input, as a view of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lay {
    Dense,
    Transposed,
    Step,
    Offset,
    Expanded,
    Windows,
}

const LAYS: [Lay; 6] = [Lay::Dense, Lay::Transposed, Lay::Step, Lay::Offset, Lay::Expanded, Lay::Windows];

impl Lay {
    /// This layout, or `Dense` if the sizes do not allow it.
    fn possible(self, sizes: &[usize]) -> Lay {
        let possible = match self {
            Lay::Dense | Lay::Step => true,
            Lay::Offset => !sizes.is_empty(),
            Lay::Transposed => sizes.len() >= 2,
            Lay::Expanded => sizes.iter().any(|size| *size > 1),
            Lay::Windows => sizes.len() >= 2 && sizes[sizes.len() - 2] > 0,
        };
        if possible { self } else { Lay::Dense }
    }

    fn base_sizes(self, sizes: &[usize]) -> Vec<usize> {
        let mut base = sizes.to_vec();
        match self {
            Lay::Dense => {}
            Lay::Transposed => base.reverse(),
            Lay::Step => match base.last_mut() {
                Some(last) => *last = 2 * *last + 1,
                None => base = vec![3],
            },
            Lay::Offset => base[0] += 2,
            Lay::Expanded => {
                let dim = base.iter().position(|size| *size > 1).unwrap();
                base[dim] = 1;
            }
            Lay::Windows => {
                let (windows, size) = (base[base.len() - 2], base.pop().unwrap());
                *base.last_mut().unwrap() = windows - 1 + size;
            }
        }
        base
    }

    fn view(self, base: &Tensor, sizes: &[usize]) -> Result<Tensor> {
        match self {
            Lay::Dense => Ok(base.clone()),
            Lay::Transposed => base.permute(&(0..sizes.len() as i64).rev().collect::<Vec<_>>()),
            Lay::Step if sizes.is_empty() => base.select(0, 1),
            Lay::Step => base.slice(-1, 1, i64::MAX, 2),
            Lay::Offset => base.narrow(0, 2, sizes[0]),
            Lay::Expanded => base.expand(&sizes.iter().map(|size| *size as i64).collect::<Vec<_>>()),
            Lay::Windows => base.unfold(sizes.len() as i64 - 2, *sizes.last().unwrap(), 1),
        }
    }
}

/// Numbers of both signs, integers and fractions, with duplicates; for floats also NaN and infinities.
pub fn values(sizes: &[usize], dtype: DType, seed: usize) -> Tensor {
    numbers(sizes, dtype, seed, &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-40, -1e-310])
}

/// Like [`values`], but all finite: among many values, a NaN or an infinity would determine every sum.
pub fn finite_values(sizes: &[usize], dtype: DType, seed: usize) -> Tensor {
    numbers(sizes, dtype, seed, &[-0.0, 0.0, 1e-40, -1e-310])
}

fn numbers(sizes: &[usize], dtype: DType, seed: usize, special: &[f64]) -> Tensor {
    let count: usize = sizes.iter().product();
    let number = |i: usize| match i + seed {
        i if i % 19 == 7 && dtype.is_floating_point() => special[i / 19 % special.len()],
        i if dtype.is_floating_point() => ((i * 37 + 11) % 61) as f64 / 13.0 - 2.25,
        i if dtype == DType::Bool => f64::from(i * 5 % 3 == 0),
        i => ((i * 7 + 3) % 23) as f64 - 9.0,
    };
    let numbers: Vec<f64> = (0..count).map(number).collect();
    Tensor::from_slice(&numbers, sizes).unwrap().to(dtype).unwrap()
}

/// Everything observable about a tensor, except its device.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    sizes: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
    contiguous: bool,
    dtype: DType,
    requires_grad: bool,
    is_leaf: bool,
    is_view: bool,
    grad_fn: Option<&'static str>,
    version: u64,
    pub bits: Vec<u64>,
}

/// The bits of every element. All NaNs count as equal: their bits depend on the processor.
pub fn bits(tensor: &Tensor) -> Result<Vec<u64>> {
    let f32_bits = |x: f32| u64::from(if x.is_nan() { f32::NAN } else { x }.to_bits());
    let f16_bits = |x: f16| u64::from(if x.is_nan() { f16::NAN } else { x }.to_bits());
    let bf16_bits = |x: bf16| u64::from(if x.is_nan() { bf16::NAN } else { x }.to_bits());
    let f64_bits = |x: f64| if x.is_nan() { f64::NAN } else { x }.to_bits();
    Ok(match tensor.dtype() {
        DType::F32 => tensor.to_vec::<f32>()?.into_iter().map(f32_bits).collect(),
        DType::F64 => tensor.to_vec::<f64>()?.into_iter().map(f64_bits).collect(),
        DType::F16 => tensor.to_vec::<f16>()?.into_iter().map(f16_bits).collect(),
        DType::BF16 => tensor.to_vec::<bf16>()?.into_iter().map(bf16_bits).collect(),
        DType::I64 => tensor.to_vec::<i64>()?.into_iter().map(|x| x as u64).collect(),
        DType::I32 => tensor.to_vec::<i32>()?.into_iter().map(|x| x as u64).collect(),
        DType::U8 => tensor.to_vec::<u8>()?.into_iter().map(u64::from).collect(),
        _ => tensor.to_vec::<bool>()?.into_iter().map(u64::from).collect(),
    })
}

/// Whether products are summed in another order than on the CPU: on a card, and on stand-ins configured for it.
fn adds_otherwise() -> bool {
    let set = |variable| std::env::var_os(variable).is_some();
    std::env::var("TEST_GPU").is_ok_and(|gpu| gpu == "real")
        && (!set("FAKE_CUDA_KERNELS") || set("FAKE_CUBLAS_BACKWARDS"))
}

/// Whether the elements of two tensors of a dtype, as [`bits`] returns them, are equal: in every bit or, if products
/// are summed in another order, relative to the largest element.
pub fn same_bits(a: &[u64], b: &[u64], dtype: DType, parts: f64) -> bool {
    let number = |bits: &u64| match dtype {
        DType::F32 => f64::from(f32::from_bits(*bits as u32)),
        DType::F64 => f64::from_bits(*bits),
        DType::F16 => f16::from_bits(*bits as u16).to_f64(),
        _ => bf16::from_bits(*bits as u16).to_f64(),
    };
    if a == b || a.len() != b.len() || !adds_otherwise() || !dtype.is_floating_point() {
        return a == b;
    }
    let [a, b]: [Vec<f64>; 2] = [a, b].map(|bits| bits.iter().map(number).collect());
    let largest = a.iter().filter(|x| x.is_finite()).fold(0.0, |largest: f64, x| largest.max(x.abs()));
    a.iter().zip(&b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= parts * largest)
}

impl Seen {
    /// Whether these can be the same product, one from the CPU and one from a library.
    pub fn is_same_product(&self, other: &Seen) -> bool {
        // A few units in the last place of the largest element: long sums with both signs are small compared with their
        // terms.
        let parts = match self.dtype {
            DType::F32 => 2e-5,
            DType::F64 => 2e-14,
            DType::F16 => 4e-3,
            _ => 3e-2,
        };
        let rest = Seen { bits: self.bits.clone(), ..other.clone() };
        *self == rest && same_bits(&self.bits, &other.bits, self.dtype, parts)
    }
}

/// Observes a tensor, which must be on the device.
pub fn see(tensor: &Tensor, device: Device) -> Result<Seen> {
    assert_eq!(tensor.device(), device, "the result is on another device");
    Ok(Seen {
        sizes: tensor.sizes().into(),
        strides: tensor.strides().into(),
        offset: tensor.storage_offset(),
        contiguous: tensor.is_contiguous(),
        dtype: tensor.dtype(),
        requires_grad: tensor.requires_grad(),
        is_leaf: tensor.is_leaf(),
        is_view: tensor.is_view(),
        grad_fn: tensor.grad_fn(),
        version: tensor.version(),
        bits: bits(tensor)?,
    })
}

/// The outcome of an operation: its results, its inputs afterwards, and their gradients; or its error.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    results: Vec<Seen>,
    inputs: Vec<Seen>,
    gradients: Vec<Option<Seen>>,
}

impl Outcome {
    /// On the CPU, PyTorch converts operands of other dtypes before it looks at their strides. On a GPU it does not.
    fn without_strides(&self) -> Outcome {
        let mut outcome = self.clone();
        let gradients = outcome.gradients.iter_mut().flatten();
        for seen in outcome.results.iter_mut().chain(&mut outcome.inputs).chain(gradients) {
            (seen.strides, seen.contiguous) = (Vec::new(), true);
        }
        outcome
    }

    fn is_same_product(&self, other: &Outcome) -> bool {
        let seen = |outcome: &Outcome| -> Vec<Option<Seen>> {
            let plain = outcome.results.iter().chain(&outcome.inputs).cloned().map(Some);
            plain.chain(outcome.gradients.iter().cloned()).collect()
        };
        let (ours, theirs) = (seen(self), seen(other));
        ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|pair| match pair {
                (Some(ours), Some(theirs)) => ours.is_same_product(theirs),
                (ours, theirs) => ours == theirs,
            })
    }
}

struct Inputs<'a> {
    bases: &'a [Tensor],
    lays: &'a [Lay],
    sizes: &'a [Vec<usize>],
}

impl Inputs<'_> {
    /// Whether operands are converted: to the widest of their types, or from integers to floats.
    fn are_converted(&self, outcome: &Outcome) -> bool {
        let first = self.bases[0].dtype();
        let makes_floats = |result: &Seen| result.dtype.is_floating_point() && !first.is_floating_point();
        self.bases.iter().any(|base| base.dtype() != first) || outcome.results.iter().any(makes_floats)
    }
}

fn observe(case: &Case, inputs: &Inputs, device: Device, gradients: bool) -> Result<Outcome> {
    let place = |base: &Tensor| {
        let base = base.to(ToOptions { device: Some(device), copy: true, ..Default::default() })?;
        if gradients && base.dtype().is_floating_point() { base.requires_grad_(true) } else { Ok(base) }
    };
    let leaves: Vec<Tensor> = inputs.bases.iter().map(place).collect::<Result<_>>()?;
    let view = |((leaf, lay), sizes): ((&Tensor, &Lay), &Vec<usize>)| lay.view(leaf, sizes);
    let mut views: Vec<Tensor> =
        leaves.iter().zip(inputs.lays).zip(inputs.sizes).map(view).collect::<Result<_>>()?;
    if gradients && case.is_in_place() {
        views[0] = views[0].copy()?; // A leaf must not be written to.
    }
    let results = (case.run)(&views)?;
    let seen = results.iter().map(|result| see(result, device)).collect::<Result<_>>()?;
    for (i, result) in results.iter().enumerate().filter(|(_, result)| result.requires_grad()) {
        let weights: Vec<f64> =
            (0..result.numel()).map(|k| ((k + i) * 29 % 31) as f64 / 16.0 - 0.9).collect();
        let weights = Tensor::from_slice(&weights, result.sizes())?.to((device, result.dtype()))?;
        autograd::backward(result, BackwardOptions { gradient: Some(weights), retain_graph: true })?;
    }
    let gradient = |leaf: &Tensor| leaf.grad().map(|grad| see(&grad, device)).transpose();
    Ok(Outcome {
        results: seen,
        inputs: leaves.iter().map(|leaf| see(&leaf.detach(), device)).collect::<Result<_>>()?,
        gradients: leaves.iter().map(gradient).collect::<Result<_>>()?,
    })
}

/// The first difference between two long texts.
fn difference<T: Debug>(cpu: &T, cuda: &T) -> String {
    let (cpu, cuda) = (format!("{cpu:?}"), format!("{cuda:?}"));
    let at = cpu.bytes().zip(cuda.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(60);
    let part = |text: &str| text.chars().skip(at).take(200).collect::<String>();
    format!("\n    cpu  …{}\n    cuda …{}", part(&cpu), part(&cuda))
}

/// How often a case was rejected or accepted, so that no test passes because nothing ran.
#[derive(Default)]
pub struct Tally {
    pub ran: usize,
    pub refused: usize,
    /// How often the devices disagreed, and the first time.
    pub differing: usize,
    pub differences: String,
    /// Whether it was stopped early.
    pub stopped: bool,
}

fn compare(case: &Case, inputs: &Inputs, gradients: bool, tally: &mut Tally) {
    let [cpu, cuda] = [Device::Cpu, Device::cuda(0)]
        .map(|device| observe(case, inputs, device, gradients).map_err(|error| error.to_string()));
    match &cpu {
        Ok(_) => tally.ran += 1,
        Err(_) => tally.refused += 1,
    }
    let same = match (&cpu, &cuda) {
        (Ok(cpu), Ok(cuda)) if case.by_library => cpu.is_same_product(cuda),
        // On a GPU, PyTorch checks parameter dtypes with other messages, and in another order.
        (Err(cpu), Err(_)) if cpu.starts_with("mixed dtype (CPU)") => true,
        (Err(cpu), Err(cuda)) if cpu.starts_with("expected scalar type") => {
            cuda.starts_with("expected scalar type")
        }
        (Ok(cpu), Ok(cuda)) if inputs.are_converted(cpu) => cpu.without_strides() == cuda.without_strides(),
        (cpu, cuda) => cpu == cuda,
    };
    tally.differing += usize::from(!same);
    if !same && tally.differences.len() < 4000 {
        let types: Vec<DType> = inputs.bases.iter().map(Tensor::dtype).collect();
        let (sizes, lays) = (inputs.sizes, inputs.lays);
        let what = if gradients { " with gradients" } else { "" };
        let _ = write!(
            tally.differences,
            "\n{}{what} {types:?} {sizes:?} {lays:?}:{}",
            case.name,
            difference(&cpu, &cuda)
        );
    }
}

/// Compares the cases on the CPU and on `cuda:0` of the current machine.
pub fn sweep(cases: &[Case]) {
    let mut differences = String::new();
    for case in cases {
        let tally = tally(case, &|| false);
        assert!(tally.ran > 0, "{} was refused all {} times", case.name, tally.refused);
        differences += &tally.differences;
    }
    assert!(differences.is_empty(), "cuda:0 is not what the CPU is:{differences}");
}

/// Runs a case to its end, or until `stop` returns true.
pub fn tally(case: &Case, stop: &dyn Fn() -> bool) -> Tally {
    let mut tally = Tally::default();
    let mut largest_first: Vec<_> = case.sizes.iter().collect();
    largest_first.sort_by_key(|sizes| {
        Reverse(sizes.iter().map(|sizes| sizes.iter().product::<usize>()).sum::<usize>())
    });
    for sizes in largest_first {
        if once() && tally.ran > 0 {
            break;
        }
        for (way, lays) in ways_to_lie(sizes).into_iter().enumerate() {
            if stop() {
                tally.stopped = true;
                return tally;
            }
            for_types(sizes, &lays, way, |inputs, gradients| compare(case, inputs, gradients, &mut tally));
        }
    }
    tally
}

/// The layouts of the inputs: small inputs in every layout, all the same and each different. Large inputs are read by
/// the same code, only more often, so three layouts suffice. All CUDA C++ kernels locate elements with the same
/// function, so on the stand-ins it is enough to test each layout once.
fn ways_to_lie(sizes: &[Vec<usize>]) -> Vec<Vec<Lay>> {
    let large = sizes.iter().any(|sizes| sizes.iter().product::<usize>() > LARGE);
    let mut ways: Vec<Vec<Lay>> = Vec::new();
    for first in 0..LAYS.len() {
        let lay = |(i, sizes): (usize, &Vec<usize>)| LAYS[(first + i) % LAYS.len()].possible(sizes);
        let same = |sizes: &Vec<usize>| LAYS[first].possible(sizes);
        let mixed: Vec<Lay> = sizes.iter().enumerate().map(lay).collect();
        for lays in [sizes.iter().map(same).collect(), mixed] {
            let same = first > 0 && lays.iter().all(|lay| *lay == lays[0]) && lays.len() > 1;
            let tried = ways.contains(&lays)
                || (large && ways.len() >= if short() { 2 } else { 3 })
                || (same && short());
            if !tried {
                ways.push(lays);
            }
        }
    }
    ways
}

/// The maximum number of elements of a small tensor, more than a warp.
const LARGE: usize = 100;

/// Up to this many [`values`] are all finite, whichever input they are for.
const SPECIAL: usize = 2;

/// Calls `run` with inputs of all dtypes, without gradients and, if supported, with them. The first layout is tested
/// with both [`values`] and [`finite_values`]; the other layouts alternate.
fn for_types(sizes: &[Vec<usize>], lays: &[Lay], way: usize, mut run: impl FnMut(&Inputs, bool)) {
    let mut types: Vec<Vec<DType>> = ALL.iter().map(|dtype| vec![*dtype; sizes.len()]).collect();
    if sizes.len() > 1 {
        let mixed = |pair: [DType; 2]| (0..sizes.len()).map(|i| pair[i % 2]).collect();
        types.extend(MIXED.into_iter().map(mixed));
    }
    for types in types {
        let floats = types.iter().any(|dtype| FLOATS.contains(dtype));
        let more_than = |count| sizes.iter().any(|sizes| sizes.iter().product::<usize>() > count);
        let kinds: &[fn(&[usize], DType, usize) -> Tensor] = match floats && more_than(SPECIAL) {
            true if short() && more_than(LARGE) => &[finite_values],
            true if short() => &[values],
            true if way == 0 => &[values, finite_values],
            true if way % 2 == 1 => &[finite_values],
            _ => &[values],
        };
        for values in kinds {
            let base = |i: usize| values(&lays[i].base_sizes(&sizes[i]), types[i], i * 5);
            let bases: Vec<Tensor> = (0..sizes.len()).map(base).collect();
            let inputs = Inputs { bases: &bases, lays, sizes };
            run(&inputs, false);
            if floats {
                run(&inputs, true);
            }
        }
    }
}

/// Runs the cases on `cuda:0` only, once for each size and dtype, without comparing the results, which [`sweep`] does.
/// Returns the graph nodes of the results.
pub fn run(cases: &[Case]) -> BTreeSet<&'static str> {
    let mut nodes = BTreeSet::new();
    for case in cases {
        for sizes in &case.sizes {
            let dense = vec![Lay::Dense; sizes.len()];
            for_types(sizes, &dense, 0, |inputs, gradients| {
                if let Ok(outcome) = observe(case, inputs, Device::cuda(0), gradients) {
                    nodes.extend(outcome.results.iter().filter_map(|result| result.grad_fn));
                    check_versions(case, &outcome);
                }
            });
        }
    }
    nodes
}

/// The result of an operation is new to the program: its version is 0, however many steps wrote it.
fn check_versions(case: &Case, outcome: &Outcome) {
    // The results of these cases include the running statistics, which are written in place.
    let has_running_means = case.function() == "batch_norm";
    let is_new = |result: &&Seen| !result.is_view && !case.is_in_place() && !has_running_means;
    // With a single result there is one backward pass, and no gradients are accumulated.
    let gradients = outcome.gradients.iter().flatten().filter(|_| outcome.results.len() == 1);
    for new in outcome.results.iter().filter(is_new).chain(gradients) {
        assert_eq!(new.version, 0, "the version of what {} makes", case.name);
    }
}
