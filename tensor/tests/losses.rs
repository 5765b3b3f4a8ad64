//! Losses are modules: their tensors move and are saved with them.

use crate::each_case::each_case;
use todevice::nn::{Buffer, Loss, Parameter, Training};
use todevice::prelude::*;

fn weighted() -> Result<nn::CrossEntropyLoss> {
    let weight = Some(Tensor::new([1.0, 2.0, 4.0])?);
    Ok(nn::CrossEntropyLoss::new(CrossEntropyOptions { weight, ..Default::default() }))
}

fn scores_and_classes(device: Device) -> Result<[Tensor; 2]> {
    let scores = Tensor::new([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])?;
    Ok([scores.to(device)?, Tensor::new([2, 0])?.to(device)?])
}

fn on_gpu<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    "sim:t4".parse::<Machine>()?.enter(run)
}

#[test]
fn class_weights_move_with_the_loss_and_are_in_its_state() -> Result<()> {
    on_gpu(|| {
        let loss_fn = weighted()?;
        let [scores, classes] = scores_and_classes(Device::Cpu)?;
        let on_host = loss_fn.forward(&scores, &classes)?.item()?;
        let names: Vec<String> = loss_fn.state_dict().iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["weight"]);
        assert!(loss_fn.parameters().is_empty());

        let gpu = Device::cuda(0);
        loss_fn.to(gpu)?;
        assert_eq!(loss_fn.named_buffers()[0].1.tensor().device(), gpu);
        let [scores, classes] = scores_and_classes(gpu)?;
        assert_eq!(loss_fn.forward(&scores, &classes)?.item()?, on_host);

        let other =
            nn::NLLLoss::new(CrossEntropyOptions { weight: Some(Tensor::ones(&[3])?), ..Default::default() });
        other.load_state_dict(&loss_fn.state_dict(), true)?;
        assert_eq!(other.named_buffers()[0].1.tensor().to_vec::<f32>()?, [1.0, 2.0, 4.0]);
        assert!(nn::CrossEntropyLoss::default().state_dict().is_empty());
        Ok(())
    })
}

/// With custom class weights, a learned parameter, and a mode.
#[derive(Loss)]
struct Own {
    criterion: nn::CrossEntropyLoss,
    temperature: Parameter,
    floor: Buffer,
    training: Training,
}

impl Own {
    fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        let loss = self.criterion.forward(&input.mul(&self.temperature.tensor())?, target)?;
        if self.training.is_on() { loss + self.floor.tensor() } else { Ok(loss) }
    }
}

fn own() -> Result<Own> {
    Ok(Own {
        criterion: weighted()?,
        temperature: Parameter::new(&Tensor::ones(&[1])?)?,
        floor: Buffer::new(&Tensor::new([0.5])?),
        training: Training::default(),
    })
}

#[test]
fn a_derived_loss_is_a_module_of_its_fields() -> Result<()> {
    on_gpu(|| {
        let loss_fn = own()?;
        let names: Vec<String> = loss_fn.state_dict().iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["temperature", "floor", "criterion.weight"]);
        loss_fn.to(Device::cuda(0))?;
        let [scores, classes] = scores_and_classes(Device::cuda(0))?;
        let training = loss_fn.forward(&scores, &classes)?;
        training.sum()?.backward()?;
        assert!(loss_fn.temperature.grad().is_some());
        loss_fn.eval();
        let evaluated = loss_fn.forward(&scores, &classes)?;
        assert!(((training.item()? - evaluated.item()?) - 0.5).abs() < 1e-6);
        assert_eq!(evaluated.item()?, weighted()?.forward(&scores.cpu()?, &classes.cpu()?)?.item()?);
        Ok(())
    })
}

#[test]
fn one_function_takes_any_loss_moves_it_and_reaches_its_state() -> Result<()> {
    fn use_it(criterion: &dyn Loss, x: &Tensor, y: &Tensor) -> Result<(f64, usize)> {
        criterion.to(x.device())?;
        let parameters = criterion.as_module().named_buffers().len();
        Ok((criterion.forward(x, y)?.sum()?.item()?, parameters))
    }
    fn generic<L: Loss>(criterion: L, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        criterion.forward(x, y)
    }
    on_gpu(|| {
        let [scores, classes] = scores_and_classes(Device::cuda(0))?;
        let boxed: Box<dyn Loss> = Box::new(weighted()?);
        let losses: [&dyn Loss; 3] = [&boxed, &own()?, &nn::NLLLoss::default()];
        let buffers: Vec<usize> =
            losses.iter().map(|loss| Ok(use_it(*loss, &scores, &classes)?.1)).collect::<Result<_>>()?;
        assert_eq!(buffers, [1, 2, 0]);
        generic(nn::MSELoss::default(), &scores, &scores)?;
        generic(boxed, &scores, &classes)?;
        Ok(())
    })
}

#[derive(Module)]
struct WithLoss {
    layer: nn::Linear,
    criterion: nn::CrossEntropyLoss,
}

impl WithLoss {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.layer.forward(x)
    }
}

#[test]
fn a_loss_in_a_module_moves_and_is_saved_with_it_as_in_pytorch() -> Result<()> {
    on_gpu(|| {
        let model = WithLoss { layer: nn::Linear::new(2, 3)?, criterion: weighted()? };
        let names: Vec<String> = model.state_dict().iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["layer.weight", "layer.bias", "criterion.weight"]);
        model.to(Device::cuda(0))?;
        let scores = model.forward(&Tensor::ones((&[2, 2], Device::cuda(0)))?)?;
        model
            .criterion
            .forward(&scores, &Tensor::zeros((&[2], (Device::cuda(0), DType::I64)))?)?
            .backward()?;
        Ok(())
    })
}

#[test]
fn without_a_target_a_loss_says_what_python_says() -> Result<()> {
    let x = Tensor::ones(&[2, 3])?;
    let losses: [(&dyn Module, &str); 3] =
        [(&weighted()?, "CrossEntropyLoss"), (&nn::MSELoss::default(), "MSELoss"), (&own()?, "Own")];
    each_case(losses, |(loss, name)| {
        let error = loss.forward(&x).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            ("TypeError", format!("{name}.forward() missing 1 required positional argument: 'target'"))
        );
    });
    assert_eq!(weighted()?.to_string(), "CrossEntropyLoss()");
    Ok(())
}
