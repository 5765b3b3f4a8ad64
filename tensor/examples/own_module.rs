//! A module of your own: a block with a skip connection, and a network of three of them.

use todevice::prelude::*;

#[derive(Module)]
pub struct Block {
    inner: nn::Linear,
    outer: nn::Linear,
    norm: nn::LayerNorm,
}

impl Block {
    fn new(width: usize) -> Result<Block> {
        Ok(Block {
            inner: nn::Linear::new(width, 4 * width)?,
            outer: nn::Linear::new(4 * width, width)?,
            norm: nn::LayerNorm::new(&[width])?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let change = self.outer.forward(&self.inner.forward(&self.norm.forward(x)?)?.relu()?)?;
        x + &change
    }
}

#[derive(Module)]
pub struct Net {
    blocks: Vec<Block>,
    scale: nn::Parameter,
    out: nn::Linear,
}

impl Net {
    pub fn new(width: usize, classes: usize) -> Result<Net> {
        Ok(Net {
            blocks: (0..3).map(|_| Block::new(width)).collect::<Result<_>>()?,
            scale: nn::Parameter::new(&Tensor::ones(&[width])?)?,
            out: nn::Linear::new(width, classes)?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.blocks.iter().try_fold(x.clone(), |x, block| block.forward(&x))?;
        self.out.forward(&x.mul(&self.scale.tensor())?)
    }
}

pub fn main() -> Result<()> {
    let machine: Machine = "sim:t4".parse()?;
    machine.enter(|| {
        let net = Net::new(16, 10)?;
        net.to(Device::cuda_if_available())?;
        println!("{}", &net as &dyn Module);
        let parameters: usize = net.parameters().iter().map(|parameter| parameter.numel()).sum();
        println!("{parameters} parameters, the first of which is {}", net.named_parameters()[0].0);
        Ok(())
    })
}
