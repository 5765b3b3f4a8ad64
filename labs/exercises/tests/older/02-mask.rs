use todevice::prelude::*;

/// Each row of a sequence becomes a mean of itself and of the rows before it.
pub struct Attention {
    query: nn::Linear,
}

/// For sequences of up to 64 rows of that width.
pub fn attention(width: usize) -> Result<Attention> {
    let query = nn::Linear::new(width, width)?;
    Ok(Attention { query })
}

impl Module for Attention {
    fn name(&self) -> &'static str {
        "Attention"
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let scores = self.query.forward(x)?.bmm(&x.transpose(1, 2)?)?;
        self.hide_later(&scores)?.softmax(-1)?.bmm(x)
    }

    fn children(&self) -> Vec<(String, &dyn Module)> {
        vec![("query".into(), &self.query)]
    }
}

impl Attention {
    /// Lowers the scores of later rows so far that softmax makes them 0.
    fn hide_later(&self, scores: &Tensor) -> Result<Tensor> {
        let rows = scores.size(1)?;
        let place = Tensor::arange(0.0, rows as f64, (1.0, scores))?;
        // How many rows later the other one is, and 0 if it is not.
        let later = (place.unsqueeze(0)? - place.unsqueeze(1)?)?.clamp(0.0, None)?;
        scores - (later * 1000.0)?
    }
}
