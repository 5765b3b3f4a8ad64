use super::module::{Module, display_as_module};
use crate::error::Result;
use crate::ops::pair::Pair;
use crate::ops::pool::{AvgPool2dOptions, MaxPool2dOptions};
use crate::options::AndOptions;
use crate::tensor::Tensor;

/// Computes the maximum of each window of an image (`torch.nn.MaxPool2d`).
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2d {
    /// The height and width of a window.
    pub kernel_size: Pair,
    /// The stride of the windows, and the other options.
    pub options: MaxPool2dOptions,
}

impl MaxPool2d {
    /// Creates a layer, by default with windows side by side: `MaxPool2d::new(2)` halves height and width.
    pub fn new(kernel_size: impl AndOptions<Pair, MaxPool2dOptions>) -> MaxPool2d {
        let (kernel_size, options) = kernel_size.split();
        MaxPool2d { kernel_size, options }
    }
}

impl Module for MaxPool2d {
    fn name(&self) -> &'static str {
        "MaxPool2d"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.max_pool2d((self.kernel_size, self.options))
    }

    fn extra_repr(&self) -> String {
        let MaxPool2dOptions { stride, padding, dilation, ceil_mode } = self.options;
        let (kernel_size, stride) = (self.kernel_size, stride.unwrap_or(self.kernel_size));
        let ceil_mode = if ceil_mode { "True" } else { "False" };
        format!(
            "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, \
             ceil_mode={ceil_mode}"
        )
    }
}

/// Computes the mean of each window of an image (`torch.nn.AvgPool2d`).
#[derive(Clone, Copy, Debug)]
pub struct AvgPool2d {
    /// The height and width of a window.
    pub kernel_size: Pair,
    /// The stride of the windows, and the other options.
    pub options: AvgPool2dOptions,
}

impl AvgPool2d {
    /// Creates a layer, by default with windows side by side: `AvgPool2d::new(2)` halves height and width.
    pub fn new(kernel_size: impl AndOptions<Pair, AvgPool2dOptions>) -> AvgPool2d {
        let (kernel_size, options) = kernel_size.split();
        AvgPool2d { kernel_size, options }
    }
}

impl Module for AvgPool2d {
    fn name(&self) -> &'static str {
        "AvgPool2d"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.avg_pool2d((self.kernel_size, self.options))
    }

    fn extra_repr(&self) -> String {
        let AvgPool2dOptions { stride, padding, .. } = self.options;
        let (kernel_size, stride) = (self.kernel_size, stride.unwrap_or(self.kernel_size));
        format!("kernel_size={kernel_size}, stride={stride}, padding={padding}")
    }
}

/// Computes the means of a given number of windows, for images of any size (`torch.nn.AdaptiveAvgPool2d`).
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveAvgPool2d {
    /// The height and width of the result. `None` keeps that of the image.
    pub output_size: Pair<Option<usize>>,
}

impl AdaptiveAvgPool2d {
    /// Creates a layer. `AdaptiveAvgPool2d::new(1)` computes one mean per channel.
    pub fn new(output_size: impl Into<Pair<Option<usize>>>) -> AdaptiveAvgPool2d {
        AdaptiveAvgPool2d { output_size: output_size.into() }
    }
}

impl Module for AdaptiveAvgPool2d {
    fn name(&self) -> &'static str {
        "AdaptiveAvgPool2d"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.adaptive_avg_pool2d(self.output_size)
    }

    fn extra_repr(&self) -> String {
        format!("output_size={}", self.output_size)
    }
}

display_as_module!(MaxPool2d, AvgPool2d, AdaptiveAvgPool2d);
