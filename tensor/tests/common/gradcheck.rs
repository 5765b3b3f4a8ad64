//! Compares gradients with central finite differences, in f64.
//!
//! A [`Case`] is an operation with the sizes of its inputs. [`check`] runs it with inputs in every memory layout, with
//! every subset of inputs requiring grad, and with incoming gradients of several layouts.

use std::collections::BTreeSet;
use std::sync::Mutex;

use todevice::autograd::{self, BackwardOptions};
use todevice::{DType, Result, Tensor};

type Operation = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

pub struct Case {
    pub name: String,
    sizes: Vec<Vec<usize>>,
    dtypes: Vec<DType>,
    domain: Domain,
    operation: Operation,
}

/// The range of the input values. They are distinct, and none is near a multiple of ½, where rounding and signs jump.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Within ±2.
    Any,
    /// From 0.3 to 2.3.
    Positive,
    /// Multiples of 2⁻⁶ within ±2, with steps of 2⁻⁶: f32 arithmetic on them is exact.
    Dyadic,
}

impl Domain {
    fn step(self) -> f64 {
        if self == Domain::Dyadic { 1.0 / 64.0 } else { 1e-5 }
    }

    fn value(self, i: usize) -> f64 {
        let unit = (i as f64 * 0.618_033_988_749_894_8 + 0.137).fract();
        match self {
            Domain::Any => unit * 4.0 - 2.0,
            Domain::Positive => unit * 2.0 + 0.3,
            Domain::Dyadic => ((unit * 4.0 - 2.0) * 64.0).round() / 64.0,
        }
    }

    fn values(self, count: usize) -> Vec<f64> {
        let mut values: Vec<f64> = Vec::new();
        for i in 0..count {
            let mut value = self.value(i);
            let near_a_jump = |value: f64| (value * 2.0 - (value * 2.0).round()).abs() < 0.05;
            let taken = |value: f64| values.iter().any(|other| (other - value).abs() < 1e-3);
            while near_a_jump(value) || taken(value) {
                value += if self == Domain::Dyadic { 1.0 / 64.0 } else { 0.0137 };
            }
            values.push(value);
        }
        values
    }
}

/// A case of an operation on f64 inputs with the given sizes.
pub fn case(
    name: impl Into<String>,
    sizes: &[&[usize]],
    operation: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
) -> Case {
    Case {
        name: name.into(),
        sizes: sizes.iter().map(|sizes| sizes.to_vec()).collect(),
        dtypes: vec![DType::F64; sizes.len()],
        domain: Domain::Any,
        operation: Box::new(operation),
    }
}

impl Case {
    pub fn on(self, domain: Domain) -> Case {
        Case { domain, ..self }
    }

    /// Inputs of mixed dtypes: exact arithmetic only.
    pub fn of(self, dtypes: &[DType]) -> Case {
        Case { dtypes: dtypes.to_vec(), domain: Domain::Dyadic, ..self }
    }
}

/// The memory layout of an input, as a view of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The leaf itself.
    Dense,
    /// The leaf has the dimensions in reverse order.
    Transposed,
    /// Every second element of the last dimension, after the first.
    Strided,
    /// A dimension is expanded: its elements share memory.
    Repeated,
    /// The last two dimensions are overlapping windows.
    Windows,
}

const PLACES: [Place; 5] = [Place::Dense, Place::Transposed, Place::Strided, Place::Repeated, Place::Windows];

impl Place {
    /// This layout, or `Dense` if the sizes do not allow it.
    fn possible(self, sizes: &[usize]) -> Place {
        let possible = match self {
            Place::Dense => true,
            Place::Transposed => sizes.len() >= 2,
            Place::Strided => true,
            Place::Repeated => sizes.iter().any(|size| *size > 1),
            Place::Windows => sizes.len() >= 2 && sizes[sizes.len() - 2] > 0,
        };
        if possible { self } else { Place::Dense }
    }

    fn leaf_sizes(self, sizes: &[usize]) -> Vec<usize> {
        let mut leaf = sizes.to_vec();
        match self {
            Place::Dense => {}
            Place::Transposed => leaf.reverse(),
            Place::Strided => match leaf.last_mut() {
                Some(last) => *last = 2 * *last + 1,
                None => leaf = vec![3],
            },
            Place::Repeated => {
                let dim = leaf.iter().position(|size| *size > 1).unwrap();
                leaf[dim] = 1;
            }
            Place::Windows => {
                let (windows, size) = (leaf[leaf.len() - 2], leaf.pop().unwrap());
                *leaf.last_mut().unwrap() = windows - 1 + size;
            }
        }
        leaf
    }

    fn view(self, leaf: &Tensor, sizes: &[usize]) -> Result<Tensor> {
        match self {
            Place::Dense => Ok(leaf.clone()),
            Place::Transposed => leaf.permute(&(0..sizes.len() as i64).rev().collect::<Vec<_>>()),
            Place::Strided if sizes.is_empty() => leaf.select(0, 1),
            Place::Strided => leaf.slice(-1, 1, i64::MAX, 2),
            Place::Repeated => leaf.expand(&sizes.iter().map(|size| *size as i64).collect::<Vec<_>>()),
            Place::Windows => leaf.unfold(sizes.len() as i64 - 2, *sizes.last().unwrap(), 1),
        }
    }
}

/// The names of the graph nodes that have occurred.
static SEEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

fn note(tensor: &Tensor) {
    SEEN.lock().unwrap().extend(tensor.grad_fn());
}

pub fn names_seen() -> BTreeSet<&'static str> {
    SEEN.lock().unwrap().clone()
}

/// Runs the case once, only to record its graph nodes.
pub fn record_names(case: &Case) {
    let places = vec![Place::Dense; case.sizes.len()];
    let inputs = Inputs::new(case, &places);
    let leaves = inputs.leaves(case, &inputs.values, usize::MAX);
    let out = (case.operation)(&inputs.views(case, &leaves)).unwrap();
    note(&out);
}

/// The inputs of a case in certain layouts.
struct Inputs<'a> {
    places: &'a [Place],
    leaf_sizes: Vec<Vec<usize>>,
    values: Vec<Vec<f64>>,
}

impl<'a> Inputs<'a> {
    fn new(case: &Case, places: &'a [Place]) -> Inputs<'a> {
        let leaf_sizes: Vec<Vec<usize>> =
            places.iter().zip(&case.sizes).map(|(place, sizes)| place.leaf_sizes(sizes)).collect();
        let count = |sizes: &Vec<usize>| sizes.iter().product::<usize>();
        let mut all = case.domain.values(leaf_sizes.iter().map(count).sum()).into_iter();
        let values = leaf_sizes.iter().map(|sizes| all.by_ref().take(count(sizes)).collect()).collect();
        Inputs { places, leaf_sizes, values }
    }

    fn leaves(&self, case: &Case, values: &[Vec<f64>], requiring_grad: usize) -> Vec<Tensor> {
        let leaf = |i: usize| -> Result<Tensor> {
            let leaf = Tensor::from_slice(&values[i], &self.leaf_sizes[i])?.to(case.dtypes[i])?;
            if requiring_grad & (1 << i) != 0 { leaf.requires_grad_(true) } else { Ok(leaf) }
        };
        (0..values.len()).map(|i| leaf(i).unwrap()).collect()
    }

    fn views(&self, case: &Case, leaves: &[Tensor]) -> Vec<Tensor> {
        let view = |i: usize| {
            let view = self.places[i].view(&leaves[i], &case.sizes[i]).unwrap();
            assert_eq!(view.sizes(), case.sizes[i], "the harness made the wrong view");
            note(&view);
            view
        };
        (0..leaves.len()).map(view).collect()
    }

    /// The result for other values of the leaves.
    fn evaluate(&self, case: &Case, values: &[Vec<f64>]) -> Vec<f64> {
        let out = (case.operation)(&self.views(case, &self.leaves(case, values, 0))).unwrap();
        out.to(DType::F64).unwrap().to_vec().unwrap()
    }
}

/// Weights for the elements of a result, all different, exact in f32.
fn weights(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 37 + 11) % 61) as f64 / 32.0 - 0.9375).collect()
}

/// The same weights with reversed memory order.
fn transposed_weights(sizes: &[usize]) -> Tensor {
    let weights = Tensor::from_slice(&weights(sizes.iter().product()), sizes).unwrap();
    let reversed: Vec<i64> = (0..sizes.len() as i64).rev().collect();
    weights.permute(&reversed).unwrap().contiguous().unwrap().permute(&reversed).unwrap()
}

/// One weight for all elements, expanded.
fn one_weight(sizes: &[usize]) -> Tensor {
    let sizes: Vec<i64> = sizes.iter().map(|size| *size as i64).collect();
    Tensor::full(&[], (0.75, DType::F64)).unwrap().expand(&sizes).unwrap()
}

pub fn check(case: &Case) {
    let inputs = case.sizes.len();
    let mut tried: Vec<Vec<Place>> = Vec::new();
    for shift in 0..2 {
        for first in 0..PLACES.len() {
            let place = |i: usize| PLACES[(first + i * shift) % PLACES.len()].possible(&case.sizes[i]);
            let places: Vec<Place> = (0..inputs).map(place).collect();
            if !tried.contains(&places) {
                check_places(case, &places);
                tried.push(places);
            }
        }
    }
}

fn check_places(case: &Case, places: &[Place]) {
    let inputs = Inputs::new(case, places);
    let plain = inputs.evaluate(case, &inputs.values);
    let weights = weights(plain.len());

    // The derivative of the weighted sums of the result with respect to every element of every leaf.
    let mut expected: Vec<Vec<[f64; 2]>> = Vec::new();
    let mut values = inputs.values.clone();
    for input in 0..values.len() {
        let mut slopes = Vec::new();
        for element in 0..values[input].len() {
            let (here, step) = (values[input][element], case.domain.step());
            values[input][element] = here + step;
            let above = inputs.evaluate(case, &values);
            values[input][element] = here - step;
            let below = inputs.evaluate(case, &values);
            values[input][element] = here;
            let slope = |i: usize| (above[i] - below[i]) / (2.0 * step);
            slopes.push([
                (0..plain.len()).map(|i| weights[i] * slope(i)).sum(),
                (0..plain.len()).map(|i| 0.75 * slope(i)).sum(),
            ]);
        }
        expected.push(slopes);
    }
    let scale = plain.iter().fold(1.0f64, |scale, value| scale.max(value.abs()));

    for requiring_grad in 1..1usize << places.len() {
        for (which, weights) in [transposed_weights, one_weight].into_iter().enumerate() {
            let at = format!("{} in {places:?}, set {requiring_grad:b}, weights {which}", case.name);
            let leaves = inputs.leaves(case, &inputs.values, requiring_grad);
            let out = (case.operation)(&inputs.views(case, &leaves)).unwrap();
            note(&out);
            assert!(out.requires_grad(), "{at}: not recorded");
            let recorded: Vec<f64> = out.detach().to(DType::F64).unwrap().to_vec().unwrap();
            assert_eq!(recorded, plain, "{at}: recording changed the values");
            let gradient = Some(weights(out.sizes()).to(out.dtype()).unwrap());
            autograd::backward(&out, BackwardOptions { gradient, ..Default::default() })
                .unwrap_or_else(|error| panic!("{at}: {error}"));
            for (input, leaf) in leaves.iter().enumerate() {
                let grad = leaf.grad();
                if requiring_grad & (1 << input) == 0 {
                    assert!(grad.is_none(), "{at}: input {input} got a gradient it did not ask for");
                    continue;
                }
                let grad = grad.unwrap_or_else(|| panic!("{at}: input {input} got no gradient"));
                assert_eq!(grad.sizes(), leaf.sizes(), "{at}: sizes of gradient {input}");
                assert_eq!(grad.dtype(), leaf.dtype(), "{at}: type of gradient {input}");
                let grad: Vec<f64> = grad.to(DType::F64).unwrap().to_vec().unwrap();
                for (element, (got, expected)) in grad.iter().zip(&expected[input]).enumerate() {
                    let error = (got - expected[which]).abs();
                    assert!(
                        error <= 1e-7 * scale * expected[which].abs().max(1.0),
                        "{at}: input {input}, element {element}: gradient {got}, difference quotient {}",
                        expected[which]
                    );
                }
                let after: Vec<f64> = leaf.detach().to(DType::F64).unwrap().to_vec().unwrap();
                assert_eq!(after, inputs.values[input], "{at}: input {input} was overwritten");
            }
        }
    }
}
