use super::module::{Module, display_as_module};
use super::parameter::Parameter;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::index::embedding::padding_row;
use crate::options::{AndOptions, Keywords};
use crate::tensor::Tensor;

/// Looks up a row of a learned table for each index (`torch.nn.Embedding`): (…) becomes (…, embedding_dim).
///
/// ```
/// use todevice::prelude::*;
///
/// let words = nn::Embedding::new(1000, 16)?;
/// let sentences = Tensor::new([[17, 4, 999], [4, 4, 0]])?;
/// assert_eq!(words.forward(&sentences)?.sizes(), [2, 3, 16]);
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct Embedding {
    /// Shape (num_embeddings, embedding_dim).
    pub weight: Parameter,
    num_embeddings: usize,
    embedding_dim: usize,
    padding_idx: Option<usize>,
}

/// The keyword arguments of `torch.nn.Embedding`.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingOptions {
    /// A row of zeros without gradient. A negative number counts from the end.
    pub padding_idx: Option<i64>,
    /// The device of the table, where its numbers are drawn.
    pub device: Device,
    /// The dtype of the table.
    pub dtype: DType,
}

impl Keywords for EmbeddingOptions {}

impl Default for EmbeddingOptions {
    fn default() -> EmbeddingOptions {
        EmbeddingOptions { padding_idx: None, device: Device::Cpu, dtype: DType::F32 }
    }
}

impl Embedding {
    /// Creates a table of normal random rows. Errors if there is no row `padding_idx`, or if the device does not exist.
    #[track_caller]
    pub fn new(
        num_embeddings: usize,
        embedding_dim: impl AndOptions<usize, EmbeddingOptions>,
    ) -> Result<Embedding> {
        let (embedding_dim, options) = embedding_dim.split();
        let padding_idx = options.padding_idx.map(|row| padding_row(row, num_embeddings)).transpose()?;
        let weight = Tensor::empty((&[num_embeddings, embedding_dim], (options.device, options.dtype)))?;
        weight.normal_(0.0, 1.0, None)?;
        if let Some(row) = padding_idx {
            weight.select(0, row as i64)?.zero_()?;
        }
        Ok(Embedding {
            weight: Parameter::of("Embedding", "weight", &weight)?,
            num_embeddings,
            embedding_dim,
            padding_idx,
        })
    }
}

impl Module for Embedding {
    fn name(&self) -> &'static str {
        "Embedding"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.embedding(&self.weight.tensor(), self.padding_idx.map(|row| row as i64))
    }

    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("weight", self.weight.clone())]
    }

    fn extra_repr(&self) -> String {
        let padding = self.padding_idx.map_or(String::new(), |row| format!(", padding_idx={row}"));
        format!("{}, {}{padding}", self.num_embeddings, self.embedding_dim)
    }
}

display_as_module!(Embedding);
