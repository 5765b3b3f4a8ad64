//! Convolutions against a plain loop in f64, on sizes where something ends or overlaps, and what they refuse.

use todevice::autograd::BackwardOptions;
use todevice::{Conv2dOptions, DType, Result, Tensor};

/// A convolution of any kind: sizes of x and of the weight, and the options.
#[derive(Clone, Copy, Debug)]
struct Case {
    x: [usize; 4],
    weight: [usize; 4],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
}

/// `n` images of `c` channels, `h` by `w`, and `k` kernels, `r` by `s`.
fn plain([n, c, h, w]: [usize; 4], [k, r, s]: [usize; 3]) -> Case {
    Case {
        x: [n, c, h, w],
        weight: [k, c, r, s],
        stride: [1; 2],
        padding: [0; 2],
        dilation: [1; 2],
        groups: 1,
    }
}

impl Case {
    fn stride(self, stride: [usize; 2]) -> Case {
        Case { stride, ..self }
    }

    fn padding(self, padding: [usize; 2]) -> Case {
        Case { padding, ..self }
    }

    fn dilation(self, dilation: [usize; 2]) -> Case {
        Case { dilation, ..self }
    }

    fn groups(mut self, groups: usize) -> Case {
        self.weight[1] = self.x[1] / groups;
        Case { groups, ..self }
    }

    fn options(&self) -> Conv2dOptions {
        let &Case { stride, padding, dilation, groups, .. } = self;
        Conv2dOptions { stride, padding: padding.into(), dilation, groups }
    }

    fn out(&self) -> [usize; 4] {
        let size = |i: usize| {
            let reach = self.dilation[i] * (self.weight[2 + i] - 1) + 1;
            (self.x[2 + i] + 2 * self.padding[i] - reach) / self.stride[i] + 1
        };
        [self.x[0], self.weight[0], size(0), size(1)]
    }
}

fn numel(sizes: &[usize]) -> usize {
    sizes.iter().product()
}

/// Numbers within ±½ that differ.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| (((i + 1) * (7919 + 2 * seed)) % 10007) as f64 / 10007.0 - 0.5).collect()
}

/// What a convolution is: y, and the gradients in x, weight and bias for a gradient in y, by definition.
struct Reference {
    y: Vec<f64>,
    grads: [Vec<f64>; 3],
}

fn reference(case: &Case, x: &[f64], weight: &[f64], bias: &[f64], grad: &[f64]) -> Reference {
    let ([n, c, h, w], [k, c_group, r, s], [_, _, p, q]) = (case.x, case.weight, case.out());
    let mut y = vec![0.0; n * k * p * q];
    let mut grads = [vec![0.0; x.len()], vec![0.0; weight.len()], vec![0.0; k]];
    for (at, element) in y.iter_mut().enumerate() {
        let (image, filter, row, column) = (at / (k * p * q), at / (p * q) % k, at / q % p, at % q);
        *element = bias[filter];
        grads[2][filter] += grad[at];
        for tap in 0..c_group * r * s {
            let (channel, dr, ds) = (tap / (r * s), tap / s % r, tap % s);
            let channel = filter / (k / case.groups) * c_group + channel;
            let row = (row * case.stride[0] + dr * case.dilation[0]).wrapping_sub(case.padding[0]);
            let column = (column * case.stride[1] + ds * case.dilation[1]).wrapping_sub(case.padding[1]);
            if row < h && column < w {
                let (from, tap) =
                    (((image * c + channel) * h + row) * w + column, filter * c_group * r * s + tap);
                *element += x[from] * weight[tap];
                grads[0][from] += grad[at] * weight[tap];
                grads[1][tap] += grad[at] * x[from];
            }
        }
    }
    Reference { y, grads }
}

/// y and the three gradients as computed.
fn computed(case: &Case, dtype: DType, inputs: [&[f64]; 4]) -> Result<[Tensor; 4]> {
    let [x, weight, bias, grad] = inputs;
    let leaf =
        |values: &[f64], sizes: &[usize]| Tensor::from_slice(values, sizes)?.to(dtype)?.requires_grad_(true);
    let (x, weight) = (leaf(x, &case.x)?, leaf(weight, &case.weight)?);
    let bias = leaf(bias, &[case.weight[0]])?;
    let y = x.conv2d(&weight, Some(&bias), &case.options())?;
    assert_eq!(y.sizes(), case.out(), "{case:?}");
    let gradient = Some(Tensor::from_slice(grad, &case.out())?.to(dtype)?);
    y.backward_with(BackwardOptions { gradient, ..Default::default() })?;
    let grad = |leaf: &Tensor| leaf.grad().expect("a gradient");
    Ok([y.detach(), grad(&x), grad(&weight), grad(&bias)])
}

fn inputs(case: &Case) -> [Vec<f64>; 4] {
    let sizes = [numel(&case.x), numel(&case.weight), case.weight[0], numel(&case.out())];
    // Exact in f32.
    let rounded = |values: Vec<f64>| values.into_iter().map(|value| f64::from(value as f32)).collect();
    [0, 1, 2, 3].map(|i| rounded(numbers(sizes[i], i)))
}

fn check(case: Case) {
    let inputs = inputs(&case);
    let [x, weight, bias, grad] = inputs.each_ref().map(Vec::as_slice);
    let expected = reference(&case, x, weight, bias, grad);
    let [dx, dw, db] = &expected.grads;
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-14)] {
        let got = computed(&case, dtype, [x, weight, bias, grad]).unwrap();
        for ((what, got), expected) in ["y", "dx", "dw", "db"].iter().zip(&got).zip([&expected.y, dx, dw, db])
        {
            let got: Vec<f64> = got.to(DType::F64).unwrap().to_vec().unwrap();
            assert_eq!(got.len(), expected.len());
            // Errors grow with the number of products in a sum, which is some ten thousand at most here.
            let scale = expected.iter().fold(1.0f64, |scale, value| scale.max(value.abs()));
            for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
                let error = (got - expected).abs();
                assert!(
                    error <= tolerance * scale * 4.0,
                    "{what}[{at}] is {got}, not {expected}: {case:?}, {dtype:?}"
                );
            }
        }
    }
}

#[test]
fn agrees_with_the_definition() {
    let cases = [
        plain([1, 1, 1, 1], [1, 1, 1]),
        plain([2, 3, 5, 5], [4, 3, 3]),
        plain([2, 3, 5, 6], [4, 3, 3]).padding([1, 1]),
        plain([2, 3, 4, 4], [5, 4, 4]),
        plain([2, 3, 4, 4], [5, 4, 4]).padding([2, 3]),
        plain([1, 1, 1, 1], [2, 3, 3]).padding([1, 1]),
        plain([2, 2, 9, 11], [3, 2, 3]).stride([3, 4]),
        plain([2, 2, 9, 11], [3, 1, 1]).stride([3, 2]),
        plain([2, 2, 9, 11], [3, 3, 2]).stride([2, 3]).padding([1, 2]),
        plain([2, 2, 9, 11], [3, 3, 3]).dilation([2, 3]).padding([1, 4]),
        plain([2, 2, 9, 12], [3, 3, 3]).dilation([2, 3]).stride([2, 3]).padding([3, 0]),
        plain([2, 2, 10, 12], [3, 3, 3]).dilation([4, 2]).stride([2, 4]).padding([0, 1]),
        plain([2, 6, 5, 5], [4, 3, 3]).groups(2).padding([1, 1]),
        plain([2, 6, 5, 5], [6, 3, 3]).groups(6).padding([1, 1]),
        plain([2, 6, 7, 5], [12, 3, 3]).groups(6).stride([2, 1]),
        plain([2, 6, 7, 5], [9, 3, 3]).groups(3).dilation([2, 1]),
        plain([0, 3, 5, 5], [4, 3, 3]),
        plain([2, 3, 1, 40], [4, 1, 5]).padding([0, 2]),
        plain([2, 3, 40, 1], [4, 5, 1]).padding([2, 0]),
    ];
    cases.into_iter().for_each(check);
}
