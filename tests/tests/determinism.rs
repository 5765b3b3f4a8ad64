//! The same bits for any number of threads: each operation fixes its order, threads only share it out.

use todevice::Machine;
use todevice::prelude::*;

/// Training large enough that every kernel is shared between threads; the bits of all that came out.
fn train(threads: usize) -> Vec<u32> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| Machine::new().enter(|| steps().unwrap()))
}

fn steps() -> Result<Vec<u32>> {
    manual_seed(11);
    let model = nn::Sequential::new((
        nn::Linear::new(700, 600)?,
        nn::ReLU,
        nn::Dropout::new(0.1)?,
        nn::Linear::new(600, 300)?,
        nn::Tanh,
        nn::Linear::new(300, 50)?,
    ));
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    let (x, y) = (Tensor::randn(&[1500, 700])?, Tensor::randint(0, 50, &[1500])?);
    let mut bits = Vec::new();
    for _ in 0..3 {
        let output = model.forward(&x)?;
        let loss = output.cross_entropy(&y, &Default::default())?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        let extras = [
            output.exp()?.sum()?,
            output.mean_dims(&[0], false)?,
            output.t()?.softmax(0)?.amax(&[0], false)?,
        ];
        for tensor in [loss].iter().chain(&extras) {
            bits.extend(tensor.detach().reshape(&[-1])?.to_vec::<f32>()?.iter().map(|value| value.to_bits()));
        }
    }
    for parameter in model.parameters() {
        let values = parameter.tensor().detach().reshape(&[-1])?.to_vec::<f32>()?;
        bits.extend(values.iter().map(|value| value.to_bits()));
    }
    Ok(bits)
}

#[test]
fn training_gives_the_same_bits_on_any_number_of_threads() {
    let one = train(1);
    assert!(one.len() > 600_000);
    for threads in [2, 3, 7] {
        assert!(train(threads) == one, "{threads} threads gave other bits than one");
    }
}
