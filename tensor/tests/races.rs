//! Data races. The driver's own tests plant them; these test the guarantees of the public API.

use todevice::prelude::*;
use todevice::{Machine, RaceCheck};

/// A training step on two GPUs: half of the batch on each; the second one's gradients are copied to the first.
fn step(parameters: [&Tensor; 2], x: &Tensor) -> Result<f64> {
    let [first, second] = x.split(8, 0)?.try_into().map_err(|_| Error::custom("two halves"))?;
    let mut total = Tensor::zeros((&[], Device::cuda(0)))?;
    for (w, x) in parameters.into_iter().zip([first, second]) {
        let loss = x.to(w.device())?.matmul(w)?.square()?.sum()?;
        loss.backward()?;
        total = (&total + &loss.detach().to(Device::cuda(0))?)?;
    }
    let [a, b] = parameters.map(|w| w.grad().ok_or_else(|| Error::custom("a gradient")));
    let gradient = (&a? + &b?.to(Device::cuda(0))?)?;
    for w in parameters {
        no_grad(|| w.sub_(&gradient.to(w.device())?.mul(1e-3)?))?;
        w.set_grad(None)?;
    }
    total.item()
}

#[test]
fn work_on_the_default_streams_of_two_gpus_never_races() -> Result<()> {
    for seed in 0..8 {
        let machine: Machine = format!("sim:t4x2,seed={seed}").parse()?;
        machine.set_race_check(RaceCheck::Error);
        machine.enter(|| {
            let made = || Tensor::ones(&[4, 1])?.requires_grad_(true);
            let w0 = made()?.to(Device::cuda(0))?.detach().requires_grad_(true)?;
            let w1 = made()?.to(Device::cuda(1))?.detach().requires_grad_(true)?;
            let x = Tensor::ones(&[16, 4])?;
            let losses = [step([&w0, &w1], &x)?, step([&w0, &w1], &x)?];
            assert!(losses[0] == 256.0 && losses[1] < 256.0, "{losses:?}");
            Ok::<(), Error>(())
        })?;
        assert_eq!(machine.races(), []);
    }
    Ok(())
}

#[test]
fn what_is_done_about_a_race_can_be_chosen_where_gpus_are_simulated() {
    let machine: Machine = "sim:t4".parse().unwrap();
    assert_eq!(machine.race_check(), RaceCheck::Warn);
    machine.set_race_check(RaceCheck::Ignore);
    assert_eq!(machine.race_check(), RaceCheck::Ignore);
    let none = Machine::new();
    none.set_race_check(RaceCheck::Error);
    assert_eq!((none.race_check(), none.races().len()), (RaceCheck::Warn, 0));
}
