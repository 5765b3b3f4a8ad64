//! `DistributedDataParallel` of a network with a part that some forward passes skip.

use crate::each_case::each_case;
use std::sync::atomic::{AtomicBool, Ordering};

use todevice::distributed::{self as dist, DistributedDataParallel, DistributedDataParallelOptions};
use todevice::nn::{self, Module};
use todevice::{Device, Result, Tensor, no_grad};

use super::data_parallel::rank_on_gpu;
use super::machine;

/// A network with a part that some forward passes skip.
struct Forked {
    always: nn::Linear,
    sometimes: nn::Linear,
    takes: AtomicBool,
}

impl Module for Forked {
    fn name(&self) -> &'static str {
        "Forked"
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.always.forward(x)?;
        if self.takes.load(Ordering::Relaxed) { self.sometimes.forward(&y) } else { Ok(y) }
    }
    fn children(&self) -> Vec<(String, &dyn Module)> {
        vec![("always".into(), &self.always), ("sometimes".into(), &self.sometimes)]
    }
}

fn forked(device: Device, takes: bool) -> Result<Forked> {
    let model =
        Forked { always: nn::Linear::new(2, 2)?, sometimes: nn::Linear::new(2, 2)?, takes: takes.into() };
    model.to(device)?;
    Ok(model)
}

#[test]
fn unused_parameters_are_told_in_pytorchs_words() -> Result<()> {
    let error = machine("sim:t4x2").enter(|| {
        dist::spawn(2, |rank| {
            let device = rank_on_gpu(rank)?;
            let model = DistributedDataParallel::new(forked(device, false)?)?;
            let x = Tensor::ones((&[1, 2], device))?;
            model.forward(&x)?.sum()?.backward()?;
            model.forward(&x).map(drop)
        })
    });
    let text = error.unwrap_err().to_string();
    assert!(
        text.starts_with(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that \
             your module has parameters that were not used in producing loss. You can enable unused parameter detection by \
             passing the keyword argument `find_unused_parameters=True` to \
             `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in \
             calculating loss. \nParameter indices which did not receive grad for rank 0: 2 3\n"
        ),
        "{text}"
    );
    assert!(text.contains("sometimes.weight, sometimes.bias"), "{text}");
    Ok(())
}

#[test]
fn unused_parameters_can_be_found() -> Result<()> {
    let seen = machine("sim:t4x2").enter(|| {
        dist::spawn(2, |rank| {
            let device = rank_on_gpu(rank)?;
            let options =
                DistributedDataParallelOptions { find_unused_parameters: true, ..Default::default() };
            let model = DistributedDataParallel::new((forked(device, rank == 1)?, options))?;
            let x = Tensor::ones((&[1, 2], device))?;
            // Only rank 1 takes the branch. Both get the average: half of rank 1's gradient.
            model.forward(&x)?.sum()?.backward()?;
            let bias = model.module().sometimes.bias.as_ref().unwrap();
            let one = bias.grad().unwrap().to_vec::<f32>()?;
            // No rank takes it: the gradient stays unchanged.
            model.module().takes.store(false, Ordering::Relaxed);
            model.forward(&x)?.sum()?.backward()?;
            Ok((one, bias.grad().unwrap().to_vec::<f32>()?))
        })
    })?;
    for of_rank in seen {
        assert_eq!(of_rank, (vec![0.5; 2], vec![0.5; 2]));
    }
    Ok(())
}

/// A step on two ranks: which of them take the branch, and how gradients are averaged.
struct Step {
    takes: [bool; 2],
    how: How,
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    /// Under `no_sync`.
    Local,
    Averaged,
    /// Averaged, with `zero_grad` between forward and backward.
    ZeroedBetween,
    /// Averaged, after rank 1 has added 1 to the gradient of the branch.
    Changed,
}

/// The gradients of both weights on both ranks after these steps. The weights are 1 and 2, the inputs are 1 and 2.
fn gradients_after(steps: &[Step], gpu: &str) -> Result<Vec<[f64; 2]>> {
    machine(gpu).enter(|| {
        dist::spawn(2, |rank| {
            let device = if gpu == "none" {
                dist::init_process_group("gloo")?;
                Device::Cpu
            } else {
                rank_on_gpu(rank)?
            };
            let without_bias = nn::LinearOptions { bias: false, ..Default::default() };
            let linear = || nn::Linear::new(1, (1, without_bias));
            let model = Forked { always: linear()?, sometimes: linear()?, takes: true.into() };
            model.to(device)?;
            no_grad(|| {
                model.always.weight.tensor().fill_(1.0)?;
                model.sometimes.weight.tensor().fill_(2.0)
            })?;
            let options =
                DistributedDataParallelOptions { find_unused_parameters: true, ..Default::default() };
            let model = DistributedDataParallel::new((model, options))?;
            let x = Tensor::full(&[1, 1], ((rank + 1) as f64, device))?;
            let branch = || model.module().sometimes.weight.clone();
            for step in steps {
                model.module().takes.store(step.takes[rank], Ordering::Relaxed);
                if step.how == How::Local {
                    model.no_sync(|| model.forward(&x)?.sum()?.backward())?;
                    continue;
                }
                if step.how == How::Changed {
                    branch().grad().unwrap().add_(rank as f64)?;
                }
                let loss = model.forward(&x)?.sum()?;
                if step.how == How::ZeroedBetween {
                    model.zero_grad();
                }
                loss.backward()?;
            }
            Ok([model.module().always.weight.grad().unwrap().item()?, branch().grad().unwrap().item()?])
        })
    })
}

/// The expected gradients come from two gloo processes of PyTorch.
#[test]
fn a_gradient_of_earlier_passes_counts_where_the_last_pass_left_the_branch_out() -> Result<()> {
    use How::{Averaged, Changed, Local, ZeroedBetween};
    let step = |takes, how| Step { takes, how };
    let cases = [
        (vec![step([true, true], Local), step([true, false], Averaged)], [[5.0, 2.0]; 2]),
        (vec![step([true, true], Averaged), step([true, false], Averaged)], [[5.0, 2.0]; 2]),
        (vec![step([true, true], Local), step([false, false], Averaged)], [[4.5, 1.5]; 2]),
        (vec![step([false, true], Local), step([false, false], Averaged)], [[4.0, 1.0]; 2]),
        (vec![step([true, true], Averaged), step([false, false], Changed)], [[4.5, 1.5], [4.5, 2.5]]),
        (vec![step([true, true], Averaged), step([true, false], ZeroedBetween)], [[2.0, 0.5]; 2]),
    ];
    each_case(cases.iter().enumerate(), |(number, (steps, expected))| -> Result<()> {
        for gpu in ["none", "sim:t4x2"] {
            assert_eq!(gradients_after(steps, gpu)?, expected, "case {number} on {gpu}");
        }
        Ok(())
    });
    Ok(())
}
