//! Compares two answers to one program.

use todevice::DType;

use super::{Answer, Argument, Made, Program, Values};

#[derive(Clone, Debug)]
pub struct Difference {
    pub step: usize,
    pub operation: &'static str,
    /// The kind of difference: "error", "type", "sizes", …
    pub what: &'static str,
    pub ours: String,
    pub theirs: String,
}

/// The source of the other answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Texts must be equal, and so must every bit of exact results; the rest within a tolerance.
    PyTorch,
    /// Every bit must be equal, except in convolutions: a simulated GPU rounds them as cuDNN's algorithms do. Texts may
    /// be those of a GPU.
    SimulatedGpu,
}

/// The first difference between our answer on the CPU and another one.
pub fn difference(program: &Program, ours: &Answer, theirs: &Answer, against: Against) -> Option<Difference> {
    let mut variables: Vec<Variable> = Vec::new();
    for (step, (made, their_made)) in ours.steps.iter().zip(&theirs.steps).enumerate() {
        let operation = program.steps[step].operation.name;
        let differ =
            |what, ours: String, theirs: String| Some(Difference { step, operation, what, ours, theirs });
        let (made, their_made) = match (made, their_made) {
            (Ok(made), Ok(their_made)) => (made, their_made),
            (Err(error), Err(their_error)) if error == their_error => continue,
            // A GPU reports errors of kernels later; after that it reports nothing else.
            (Err(_), _) if against == Against::SimulatedGpu => return None,
            (made, their_made) => return differ("error", outcome(made), outcome(their_made)),
        };
        if made.len() != their_made.len() {
            return differ("number of tensors", made.len().to_string(), their_made.len().to_string());
        }
        for (ours, theirs) in made.iter().zip(their_made) {
            let operands: Vec<&Variable> = program.steps[step].operands().map(|i| &variables[i]).collect();
            let variable = Variable::made(step, program, &operands, ours, theirs, against);
            let facts = |made: &Made| {
                [
                    ("type", made.dtype.to_string()),
                    ("sizes", format!("{:?}", made.sizes)),
                    ("requires_grad", made.requires_grad.to_string()),
                    ("grad_fn", made.grad_fn.clone().unwrap_or("None".to_string())),
                    (
                        "shared memory",
                        made.shares.map_or("None".to_string(), |variable| format!("v{variable}")),
                    ),
                    ("strides", if variable.loose { String::new() } else { format!("{:?}", made.strides) }),
                ]
            };
            for ((what, ours), (_, theirs)) in facts(ours).into_iter().zip(facts(theirs)) {
                if ours != theirs {
                    return differ(what, ours, theirs);
                }
            }
            if let (Some(first), false) = (ours.shares, variable.exact) {
                let memory = variables[first].memory;
                variables
                    .iter_mut()
                    .filter(|other| other.memory == memory)
                    .for_each(|other| other.blur(&variable));
            }
            if operation == "batch_norm" {
                // It writes the running mean and variance, which are as inexact as its result.
                for argument in &program.steps[step].arguments[1..3] {
                    let &Argument::Optional(Some(running)) = argument else { continue };
                    let memory = variables[running].memory;
                    variables
                        .iter_mut()
                        .filter(|other| other.memory == memory)
                        .for_each(|other| other.blur(&variable));
                }
            }
            let memory = ours.shares.map_or(variables.len(), |first| variables[first].memory);
            variables.push(Variable { memory, ..variable });
        }
    }
    of_values(program, ours, theirs, against, &mut variables)
}

fn of_values(
    program: &Program,
    ours: &Answer,
    theirs: &Answer,
    against: Against,
    variables: &mut [Variable],
) -> Option<Difference> {
    for i in 0..variables.len() {
        let operands = program.steps[variables[i].step].operands();
        let of_operands = operands.map(|operand| variables[operand].scale).fold(0.0, f64::max);
        variables[i].scale = largest(&ours.values[i]).max(largest(&theirs.values[i])).max(of_operands);
        let Variable { step, exact, epsilon, scale, .. } = variables[i];
        let tolerance = if exact { None } else { Some(epsilon * scale) };
        if let Some(difference) = values(&ours.values[i], &theirs.values[i], tolerance) {
            return Some(told(program, step, "values", difference));
        }
    }
    // The progress of a failed backward pass depends on its traversal order.
    let failed = |i: usize| program.steps[i].operation.name == "backward" && ours.steps[i].is_err();
    if (0..ours.steps.len()).any(failed) {
        return None;
    }
    let scale = variables.iter().map(|variable| variable.scale).fold(0.0, f64::max);
    let rounded = variables.iter().any(|variable| !variable.exact) || against == Against::PyTorch;
    let epsilon = variables.iter().map(|variable| variable.epsilon).fold(0.0, f64::max);
    for (i, (ours, theirs)) in ours.gradients.iter().zip(&theirs.gradients).enumerate() {
        let name = |gradient: &Option<(DType, Vec<usize>, Values)>| match gradient {
            Some((dtype, sizes, _)) => format!("{dtype} {sizes:?}"),
            None => "None".to_string(),
        };
        let step = variables[i].step;
        if name(ours) != name(theirs) {
            return Some(told(program, step, "gradient", (name(ours), name(theirs))));
        }
        if let (Some((.., ours)), Some((.., theirs))) = (ours, theirs) {
            let scale = scale.max(largest(ours)).max(largest(theirs));
            if let Some(difference) = values(ours, theirs, rounded.then_some(epsilon * scale)) {
                let through = |name| program.steps.iter().any(|step| step.operation.name == name);
                let what = match () {
                    () if through("conv2d") => "gradient through conv2d",
                    () if through("layer_norm") => "gradient through layer_norm",
                    () => "gradient",
                };
                return Some(told(program, step, what, difference));
            }
        }
    }
    None
}

fn told(program: &Program, step: usize, what: &'static str, (ours, theirs): (String, String)) -> Difference {
    Difference { step, operation: program.steps[step].operation.name, what, ours, theirs }
}

fn outcome(made: &Result<Vec<Made>, String>) -> String {
    match made {
        Ok(made) => {
            let shapes = made.iter().map(|made| format!("{} {:?}", made.dtype, made.sizes));
            format!("no error, but {}", shapes.collect::<Vec<_>>().join(", "))
        }
        Err(error) => error.clone(),
    }
}

/// The tolerance for a variable.
#[derive(Clone, Copy)]
struct Variable {
    step: usize,
    exact: bool,
    /// The machine epsilon of the least precise dtype that it depends on.
    epsilon: f64,
    /// Its largest element, or that of a tensor it was computed from: errors are relative to it.
    scale: f64,
    /// Whether to ignore its strides: it is, or was computed from, a result that is known to have other strides.
    loose: bool,
    /// The first variable that shares its memory.
    memory: usize,
}

/// Operations with row-major results here, where PyTorch's keep the order of images.
const ROW_MAJOR_HERE: [&str; 5] = ["adaptive_avg_pool2d", "avg_pool2d", "batch_norm", "conv2d", "max_pool2d"];

impl Variable {
    fn made(
        step: usize,
        program: &Program,
        operands: &[&Variable],
        ours: &Made,
        theirs: &Made,
        against: Against,
    ) -> Variable {
        let operation = program.steps[step].operation;
        let exact_here = match against {
            Against::PyTorch => operation.nature.is_exact(),
            Against::SimulatedGpu => operation.name != "conv2d",
        };
        let is_whole = !ours.dtype.is_floating_point();
        let of_operands = operands.iter().filter(|operand| !operand.exact);
        Variable {
            step,
            exact: is_whole || (exact_here && operands.iter().all(|operand| operand.exact)),
            epsilon: of_operands.map(|operand| operand.epsilon).fold(epsilon(ours.dtype), f64::max),
            scale: 0.0,
            loose: operands.iter().any(|operand| operand.loose) || {
                let may_differ = match against {
                    Against::PyTorch => ROW_MAJOR_HERE.contains(&operation.name),
                    // A GPU and the CPU differ where operands are converted, as in PyTorch. The sweep compares the rest.
                    Against::SimulatedGpu => true,
                };
                may_differ && ours.shares.is_none() && ours.strides != theirs.strides
            },
            memory: 0,
        }
    }

    /// Accounts for a write by an inexact operation.
    fn blur(&mut self, by: &Variable) {
        self.exact = false;
        self.epsilon = self.epsilon.max(by.epsilon);
    }
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 64.0 * f64::EPSILON,
        DType::F32 => 64.0 * f64::from(f32::EPSILON),
        DType::F16 => 4.0 / 1024.0,
        DType::BF16 => 4.0 / 128.0,
        _ => 0.0,
    }
}

fn largest(values: &Values) -> f64 {
    match values {
        Values::Ints(values) => values.iter().map(|value| value.unsigned_abs() as f64).fold(0.0, f64::max),
        Values::Floats(values) => {
            values.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max)
        }
    }
}

/// Both sides' values, if they differ by more than the tolerance or, without one, in any bit.
fn values(ours: &Values, theirs: &Values, tolerance: Option<f64>) -> Option<(String, String)> {
    let pairs: Vec<(f64, f64)> = match (ours, theirs) {
        (Values::Ints(ours), Values::Ints(theirs)) if ours == theirs => return None,
        (Values::Floats(ours), Values::Floats(theirs)) if ours.len() == theirs.len() => {
            ours.iter().copied().zip(theirs.iter().copied()).collect()
        }
        _ => return Some((format!("{ours:?}"), format!("{theirs:?}"))),
    };
    let same = |(a, b): &(f64, f64)| match tolerance {
        _ if a.is_nan() && b.is_nan() => true,
        _ if a.to_bits() == b.to_bits() => true,
        Some(tolerance) => (a - b).abs() <= tolerance || a == b,
        None => false,
    };
    if pairs.iter().all(same) {
        return None;
    }
    Some(pairs.iter().map(|(a, b)| (format!("{a:?} "), format!("{b:?} "))).unzip())
}
