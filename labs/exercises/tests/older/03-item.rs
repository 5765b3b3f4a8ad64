use todevice::prelude::*;

/// Trains the model on each batch once an epoch. Model and batches are on the device
/// already. Returns the mean loss of each epoch.
pub fn train(
    model: &nn::Sequential,
    batches: &[(Tensor, Tensor)],
    epochs: usize,
) -> Result<Vec<f64>> {
    let loss_fn = nn::CrossEntropyLoss::default();
    let options = SGDOptions { lr: 0.1, ..Default::default() };
    let mut optimizer = optim::SGD::new(model.parameters(), options)?;

    let mut means = Vec::new();
    for _epoch in 0..epochs {
        let mut total = Tensor::zeros_with(&[], batches[0].0.device())?;
        for (x, y) in batches {
            let loss = loss_fn.forward(&model.forward(x)?, y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            total = (&total + &loss.detach())?;
        }
        means.push(total.item()? / batches.len() as f64);
    }
    Ok(means)
}
