//! `#[derive(Module)]`.

use todevice::nn::{self, Buffer, Module, ModuleField, Parameter, Training};
use todevice::{DType, Device, Machine, Result, Tensor, optim};

use crate::seeded;

#[derive(Module)]
struct Block {
    layer: nn::Linear,
    act: nn::ReLU,
}

impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.act.forward(&self.layer.forward(x)?)
    }
}

/// A field of every kind.
#[derive(Module)]
struct Net<M: Module> {
    body: M,
    blocks: Vec<Block>,
    spare: Option<Block>,
    last: Option<Box<dyn Module>>,
    scale: Parameter,
    shift: Option<Parameter>,
    seen: Buffer,
    width: usize,
    #[module(skip)]
    constant: Tensor,
    training: Training,
}

impl<M: Module> Net<M> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = self.body.forward(x)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        if !self.training.is_on() {
            return Ok(x);
        }
        self.seen.tensor().add_(1)?;
        (x * self.scale.tensor())? + &self.constant
    }
}

#[derive(Module)]
struct Pair(nn::Linear, nn::Linear);

impl Pair {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.1.forward(&self.0.forward(x)?)
    }
}

fn net() -> Result<Net<Pair>> {
    seeded(15, || {
        let width = 3;
        Ok(Net {
            body: Pair(nn::Linear::new(2, width)?, nn::Linear::new(width, 2)?),
            blocks: vec![
                Block { layer: nn::Linear::new(2, 2)?, act: nn::ReLU },
                Block { layer: nn::Linear::new(2, 2)?, act: nn::ReLU },
            ],
            spare: None,
            last: Some(Box::new(nn::Linear::new(1, 1)?)),
            scale: Parameter::new(&Tensor::ones(&[2])?)?,
            shift: None,
            seen: Buffer::new(&Tensor::zeros(&[])?),
            width,
            constant: Tensor::zeros(&[2])?,
            training: Training::default(),
        })
    })
}

#[test]
fn fields_become_children_parameters_and_buffers_under_their_names() -> Result<()> {
    let net = net()?;
    let names: Vec<String> = net.named_parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "scale",
            "body.0.weight",
            "body.0.bias",
            "body.1.weight",
            "body.1.bias",
            "blocks.0.layer.weight",
            "blocks.0.layer.bias",
            "blocks.1.layer.weight",
            "blocks.1.layer.bias",
            "last.weight",
            "last.bias",
        ]
    );
    let buffers: Vec<String> = net.named_buffers().into_iter().map(|(name, _)| name).collect();
    assert_eq!(buffers, ["seen"]);
    assert_eq!(net.width, 3);
    let printed = (&net as &dyn Module).to_string();
    assert!(printed.starts_with("Net(\n  (body): Pair(\n    (0): Linear(in_features=2,"), "{printed}");
    Ok(())
}

#[test]
fn a_derived_module_is_moved_switched_saved_and_trained_as_a_whole() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let (net, device) = (net()?, Device::cuda(0));
        net.to(device)?;
        assert!(net.parameters().iter().all(Parameter::is_cuda) && net.seen.tensor().is_cuda());
        assert!(!net.constant.is_cuda(), "a field that is skipped stays where it was");
        net.to(Device::Cpu)?;

        let x = Tensor::ones(&[1, 2])?;
        let trained = net.forward(&x)?;
        net.eval();
        assert!(!net.training.is_on());
        net.forward(&x)?;
        net.train();
        assert!(net.training.is_on());
        assert_eq!(net.seen.tensor().item()?, 1.0, "evaluation counts nothing");

        let mut optimizer =
            optim::SGD::new(net.parameters(), optim::SGDOptions { lr: 0.5, ..Default::default() })?;
        optim::Optimizer::zero_grad(&optimizer);
        trained.sum()?.backward()?;
        optim::Optimizer::step(&mut optimizer)?;
        let saved = net.state_dict().copy()?;
        let other = self::net()?;
        assert_ne!(other.scale.tensor().to_vec::<f32>()?, net.scale.tensor().to_vec::<f32>()?);
        other.load_state_dict(&saved, true)?;
        assert_eq!(other.scale.tensor().to_vec::<f32>()?, net.scale.tensor().to_vec::<f32>()?);
        assert_eq!(other.seen.tensor().item()?, 1.0);
        Ok(())
    })
}

/// Plain values may be fields, without any effect.
#[test]
fn plain_values_are_fields_of_no_consequence() {
    let fields: [&dyn ModuleField; 8] =
        [&1.5, &3usize, &Some(2i64), &vec![1, 2], &[0.5f32; 3], &(1u64, 2u64), &"name", &DType::F16];
    for field in fields {
        let (mut children, mut parameters, mut buffers) = (Vec::new(), Vec::new(), Vec::new());
        field.add_children("field", &mut children);
        field.add_parameters("field", &mut parameters);
        field.add_buffers("field", &mut buffers);
        field.training_changed(false);
        assert!(children.is_empty() && parameters.is_empty() && buffers.is_empty());
    }
}
