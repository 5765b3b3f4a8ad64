//! Trains a small network on whatever machine you name: `cargo run --example train -- sim:t4`, `none`, or `real`.

use todevice::prelude::*;

fn main() -> Result<()> {
    let gpu = std::env::args().nth(1).unwrap_or_else(|| "sim:t4".to_owned());
    let machine: Machine = gpu.parse()?;
    let losses = machine.enter(train)?;
    println!("the loss falls from {:.3} to {:.3}", losses[0], losses[losses.len() - 1]);
    Ok(())
}

/// Returns the mean loss of each epoch.
pub fn train() -> Result<Vec<f64>> {
    manual_seed(0);
    let device = Device::cuda_if_available();
    let x = Tensor::randn(&[512, 8])?;
    let y = x.sum_dims(&[1], true)?.tanh()?;
    let options = DataLoaderOptions { batch_size: 64, shuffle: true, ..Default::default() };
    let loader = DataLoader::new(TensorDataset::new([x, y])?, options)?;

    let model = nn::Sequential::new((nn::Linear::new(8, 32)?, nn::ReLU, nn::Linear::new(32, 1)?));
    model.to(device)?;
    let loss_fn = nn::MSELoss::default();
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions { lr: 1e-2, ..Default::default() })?;

    let mut losses = Vec::new();
    for _epoch in 0..10 {
        let mut total = 0.0;
        for batch in &loader {
            let [x, y] = batch?;
            let (x, y) = (x.to(device)?, y.to(device)?);
            let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            total += loss.item()?;
        }
        losses.push(total / loader.len() as f64);
    }
    Ok(losses)
}
