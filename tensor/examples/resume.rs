//! Saves a training run on a GPU, and goes on from there on the CPU: the losses are those of a run that never stopped.

use todevice::prelude::*;
use todevice::serialize::{self, Dict, Value};

pub fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("todevice-resume-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("checkpoint.pt");
    let (gpu, cpu): (Machine, Machine) = ("sim:t4".parse()?, "none".parse()?);

    let whole = cpu.enter(|| Training::new()?.steps(6))?;
    let first = gpu.enter(|| {
        let mut training = Training::new()?;
        let losses = training.steps(3)?;
        let (model, optimizer) = (training.model.state_dict(), training.optimizer.state_dict());
        let state = Dict::from_iter([("model", Value::from(model)), ("optimizer", Value::from(optimizer))]);
        serialize::save(state, &file)?;
        Ok::<_, Error>(losses)
    })?;
    let rest = cpu.enter(|| {
        let mut training = Training::new()?;
        let state = serialize::load(&file, Device::cuda_if_available())?;
        let state = state.as_dict()?;
        training.model.load_state_dict(&state.at("model")?.try_into()?, true)?;
        training.optimizer.load_state_dict(state.at("optimizer")?.as_dict()?)?;
        training.steps(3)
    })?;
    std::fs::remove_dir_all(&folder)?;
    println!("{first:?} on the GPU, {rest:?} on the CPU");
    assert_eq!([first, rest].concat(), whole);
    Ok(())
}

struct Training {
    model: nn::Linear,
    optimizer: optim::Adam,
}

impl Training {
    fn new() -> Result<Training> {
        manual_seed(0);
        let model = nn::Linear::new(4, 1)?;
        model.to(Device::cuda_if_available())?;
        let options = AdamOptions { lr: 0.1, ..Default::default() };
        Ok(Training { optimizer: optim::Adam::new(model.parameters(), options)?, model })
    }

    fn steps(&mut self, count: usize) -> Result<Vec<f64>> {
        let x = Tensor::ones(&[8, 4])?.to(Device::cuda_if_available())?;
        let step = |_| {
            let loss = (self.model.forward(&x)? - 3.0)?.square()?.mean()?;
            self.optimizer.zero_grad();
            loss.backward()?;
            self.optimizer.step()?;
            loss.item()
        };
        (0..count).map(step).collect()
    }
}
