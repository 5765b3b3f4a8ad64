//! A data set of your own: samples that are made when they are asked for, by two workers.

use todevice::prelude::*;

/// Sine waves, and how many of their periods fit into 64 points.
pub struct Waves {
    pub count: usize,
}

impl Dataset for Waves {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.count
    }

    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        let periods = index % 4 + 1;
        let turn = 2.0 * std::f64::consts::PI * periods as f64 / 64.0;
        let wave = (Tensor::arange(0.0, 64.0, (1.0, DType::F32))? * turn)?.sin()?;
        let noise = (Tensor::randn(&[64])? * 0.1)?;
        Ok(((wave + noise)?, periods as i64 - 1))
    }
}

pub fn main() -> Result<()> {
    let machine: Machine = "sim:t4".parse()?;
    machine.enter(|| {
        manual_seed(0);
        let device = Device::cuda_if_available();
        let options = DataLoaderOptions {
            batch_size: 32,
            shuffle: true,
            num_workers: 2,
            pin_memory: true,
            ..Default::default()
        };
        let loader = DataLoader::new(Waves { count: 256 }, options)?;
        let model = nn::Sequential::new((nn::Linear::new(64, 32)?, nn::ReLU, nn::Linear::new(32, 4)?));
        model.to(device)?;
        let loss_fn = nn::CrossEntropyLoss::default();
        let mut optimizer =
            optim::AdamW::new(model.parameters(), AdamWOptions { lr: 1e-2, ..Default::default() })?;
        let mut right = 0.0;
        for _epoch in 0..8 {
            right = 0.0;
            for batch in &loader {
                let (waves, periods) = batch?;
                let (waves, periods) = (waves.to(device)?, periods.to(device)?);
                let scores = model.forward(&waves)?;
                optimizer.zero_grad();
                loss_fn.forward(&scores, &periods)?.backward()?;
                optimizer.step()?;
                right += scores.argmax(1, false)?.eq(&periods)?.sum()?.item()?;
            }
        }
        println!("{right} of 256 waves are told apart");
        Ok(())
    })
}
