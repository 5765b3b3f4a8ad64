//! Gets a program's answer from this crate, on the CPU or on a simulated GPU.

use todevice::{DType, Device, Error, Machine, Result, Tensor};

use super::{Answer, Made, Program, Values};

pub fn on_cpu(program: &Program) -> Answer {
    run(program, Device::Cpu)
}

/// Runs the program on its own Tesla T4, so that one program's error does not affect the next.
pub fn on_simulated_t4(program: &Program) -> Answer {
    let machine: Machine = "sim:t4".parse().expect("a machine that every build has");
    machine.enter(|| run(program, Device::cuda(0)))
}

fn run(program: &Program, device: Device) -> Answer {
    let mut answer = Answer::default();
    let mut variables: Vec<Tensor> = Vec::new();
    for step in &program.steps {
        // A step that needs the result of a failed one fails too.
        let made = match step.operands().all(|variable| variable < variables.len()) {
            true => (step.operation.run)(&step.arguments, &variables, device),
            false => Err(Error::custom("it takes what was never made")),
        };
        answer.steps.push(made.map_err(|error| first_line(&error)).map(|made| {
            made.into_iter()
                .map(|tensor| {
                    let described = describe(&tensor, &variables);
                    variables.push(tensor);
                    described
                })
                .collect()
        }));
    }
    for tensor in &variables {
        answer.values.push(values(tensor).unwrap_or(Values::Ints(vec![])));
        let gradient = tensor.grad().filter(|_| tensor.is_leaf());
        answer.gradients.push(gradient.map(|gradient| {
            let values = values(&gradient).unwrap_or(Values::Ints(vec![]));
            (gradient.dtype(), gradient.sizes().to_vec(), values)
        }));
    }
    answer
}

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_string()
}

fn describe(tensor: &Tensor, variables: &[Tensor]) -> Made {
    let shares = variables.iter().position(|other| other.shares_storage(tensor));
    Made {
        dtype: tensor.dtype(),
        sizes: tensor.sizes().to_vec(),
        strides: tensor.strides().to_vec(),
        shares: shares.filter(|other| variables[*other].numel() + tensor.numel() > 0),
        requires_grad: tensor.requires_grad(),
        grad_fn: tensor.grad_fn().map(str::to_string),
    }
}

fn values(tensor: &Tensor) -> Result<Values> {
    let tensor = tensor.detach().cpu()?;
    match tensor.dtype().is_floating_point() {
        true => tensor.to(DType::F64)?.to_vec().map(Values::Floats),
        false => tensor.to(DType::I64)?.to_vec().map(Values::Ints),
    }
}
