//! Gradients compared with finite differences (`torch.autograd.gradcheck`).

use super::engine::{GradOptions, grad};
use super::mode::no_grad;
use crate::dtype::DType;
use crate::error::{Error, Refusal, Result};
use crate::host_context::HostContext;
use crate::tensor::Tensor;

/// A failed [`gradcheck`].
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum GradcheckError {
    #[error(
        "gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True."
    )]
    NoInput,
    #[error(
        "Expected `func` to return outputs with the same shape when inputs are perturbed by {eps:?}, but got: {before} elements and {after}."
    )]
    Shape { eps: f64, before: usize, after: usize },
    #[error(
        "Jacobian mismatch for output 0 with respect to input {input},\nnumerical:{numerical}\nanalytical:{analytical}\nnote: the first that differs is the slope of element {column} of the output along element {row} of the input: {:?} by finite differences, {:?} by backward",
        six_digits(.values[0]),
        six_digits(.values[1])
    )]
    Jacobian {
        input: usize,
        numerical: String,
        analytical: String,
        row: usize,
        column: usize,
        /// By finite differences, and by backward.
        values: [f64; 2],
    },
    #[error(
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was 0.0."
    )]
    NotReentrant,
}

todevice_gpu::debug_is_message!(GradcheckError);

/// Rounds to six digits, the precision of a finite difference.
fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

impl Refusal for GradcheckError {
    fn kind(&self) -> &'static str {
        match self {
            GradcheckError::NoInput => "ValueError",
            GradcheckError::Shape { .. } => "AssertionError",
            _ => "GradcheckError",
        }
    }
}

/// The keyword arguments of [`gradcheck`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct GradcheckOptions {
    /// The step, up and down, of the finite difference.
    pub eps: f64,
    /// The absolute tolerance.
    pub atol: f64,
    /// The relative tolerance.
    pub rtol: f64,
    /// Whether to return a mismatch as an error instead of `Ok(false)`.
    pub raise_exception: bool,
}

impl Default for GradcheckOptions {
    fn default() -> GradcheckOptions {
        GradcheckOptions { eps: 1e-6, atol: 1e-5, rtol: 1e-3, raise_exception: true }
    }
}

/// Checks the gradients of a function against finite differences (`torch.autograd.gradcheck`).
///
/// For each element of each input that requires grad, it compares the slope over ±`eps` with the gradients of backward.
/// The defaults suit f64. In f32 a step of 1e-6 is lost to rounding: use an `eps` of about 1e-3 and larger tolerances.
///
/// ```
/// use todevice::Tensor;
/// use todevice::autograd::{GradcheckOptions, gradcheck};
///
/// let x = Tensor::new([0.5, -1.0, 2.0])?.to(todevice::DType::F64)?.requires_grad_(true)?;
/// assert!(gradcheck(|[x]| x.square()?.exp(), [&x], GradcheckOptions::default())?);
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error for the first input with different gradients, with both Jacobians (one row per input element, one
/// column per output element), or if a second backward pass gives different gradients.
#[track_caller]
pub fn gradcheck<const N: usize>(
    func: impl Fn([&Tensor; N]) -> Result<Tensor>,
    inputs: [&Tensor; N],
    options: GradcheckOptions,
) -> Result<bool> {
    match check(&|inputs| func(inputs), inputs, options) {
        Err(error) if !options.raise_exception && is_a_difference(&error) => Ok(false),
        result => result.map(|()| true),
    }
}

fn is_a_difference(error: &Error) -> bool {
    matches!(error.refusal(), Some(GradcheckError::Jacobian { .. } | GradcheckError::NotReentrant))
}

type CheckedFunction<'f, const N: usize> = dyn Fn([&Tensor; N]) -> Result<Tensor> + 'f;

#[track_caller]
fn check<const N: usize>(
    func: &CheckedFunction<'_, N>,
    inputs: [&Tensor; N],
    options: GradcheckOptions,
) -> Result<()> {
    if !inputs.iter().any(|input| input.requires_grad()) {
        return Err(GradcheckError::NoInput.into());
    }
    for (index, input) in inputs.iter().enumerate().filter(|(_, input)| input.requires_grad()) {
        if input.dtype() != DType::F64 && options.eps < LEAST_EPS_OF_F32 {
            HostContext::warn(&format!(
                "Input #{index} requires gradient and is not a double precision floating point or complex. This check \
                 will likely fail if all the inputs are not of double precision floating point or complex. "
            ));
        }
    }
    let output = func(inputs)?;
    for (index, input) in inputs.iter().enumerate().filter(|(_, input)| input.requires_grad()) {
        let numerical = numerical(func, inputs, index, output.numel(), options.eps)?;
        let first = analytical(&output, input)?;
        compare(index, input.numel(), [&numerical, &first], options)?;
        if analytical(&output, input)? != first {
            return Err(GradcheckError::NotReentrant.into());
        }
    }
    Ok(())
}

/// With a smaller `eps`, a slope in f32 is mostly rounding error.
const LEAST_EPS_OF_F32: f64 = 1e-4;

/// One row per element of the input.
type Jacobian = Vec<Vec<f64>>;

fn numerical<const N: usize>(
    func: &CheckedFunction<'_, N>,
    inputs: [&Tensor; N],
    index: usize,
    columns: usize,
    eps: f64,
) -> Result<Jacobian> {
    let (sizes, dtype, device) = (inputs[index].sizes(), inputs[index].dtype(), inputs[index].device());
    let values = numbers(inputs[index])?;
    let at = |element: usize, distance: f64| {
        let mut values = values.clone();
        values[element] += distance;
        let changed = Tensor::from_slice(&values, sizes)?.to((device, dtype))?;
        // The step that remains after rounding.
        let moved = numbers(&changed)?[element];
        let mut inputs = inputs;
        inputs[index] = &changed;
        Ok::<_, Error>((moved, numbers(&no_grad(|| func(inputs))?)?))
    };
    let mut rows = Vec::new();
    for element in 0..values.len() {
        let ((low, below), (high, above)) = (at(element, -eps)?, at(element, eps)?);
        if let Some(after) = [below.len(), above.len()].into_iter().find(|after| *after != columns) {
            return Err(GradcheckError::Shape { eps, before: columns, after }.into());
        }
        rows.push(below.iter().zip(&above).map(|(below, above)| (above - below) / (high - low)).collect());
    }
    Ok(rows)
}

#[track_caller]
fn analytical(output: &Tensor, input: &Tensor) -> Result<Jacobian> {
    let (columns, rows) = (output.numel(), input.numel());
    let mut jacobian = vec![vec![0.0; columns]; rows];
    for column in 0..columns {
        let mut one = vec![0.0; columns];
        one[column] = 1.0;
        let gradient = Tensor::from_slice(&one, output.sizes())?.to((output.device(), output.dtype()))?;
        let options = GradOptions { grad_output: Some(gradient), retain_graph: true, allow_unused: true };
        if let [Some(of_input)] = &grad(output, &[input], options)?[..] {
            for (row, value) in jacobian.iter_mut().zip(numbers(of_input)?) {
                row[column] = value;
            }
        }
    }
    Ok(jacobian)
}

fn compare(
    input: usize,
    rows: usize,
    [numerical, analytical]: [&Jacobian; 2],
    GradcheckOptions { atol, rtol, .. }: GradcheckOptions,
) -> Result<()> {
    let columns = numerical.first().map_or(0, Vec::len);
    let is_close = |a: f64, n: f64| (a - n).abs() <= atol + rtol * n.abs() || (a.is_nan() && n.is_nan());
    let differs =
        |(row, column): &(usize, usize)| !is_close(analytical[*row][*column], numerical[*row][*column]);
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let Some((row, column)) = all.clone().find(differs) else { return Ok(()) };
    let tensor = |jacobian: &Jacobian| Tensor::from_slice(&jacobian.concat(), &[rows, columns]);
    Err(GradcheckError::Jacobian {
        input,
        numerical: tensor(numerical)?.to_string(),
        analytical: tensor(analytical)?.to_string(),
        row,
        column,
        values: [numerical[row][column], analytical[row][column]],
    }
    .into())
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.detach().to(DType::F64)?.to_vec()
}
