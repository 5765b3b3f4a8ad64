use todevice::prelude::*;

/// One step of training on a large batch, of which at most `rows` rows go through the
/// model at a time. Returns the mean loss of the large batch.
pub fn step(
    model: &nn::Sequential,
    optimizer: &mut optim::SGD,
    x: &Tensor,
    y: &Tensor,
    rows: usize,
) -> Result<f64> {
    let options = CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() };
    let all = x.size(0)? as f64;
    let parts = x.split(rows, 0)?.into_iter().zip(y.split(rows, 0)?);

    let mut mean = 0.0;
    optimizer.zero_grad();
    for (x, y) in parts {
        let loss = (model.forward(&x)?.cross_entropy(&y, &options)? / all)?;
        loss.backward()?;
        mean += loss.item()?;
    }
    optimizer.step()?;
    Ok(mean)
}
