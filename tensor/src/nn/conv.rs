use super::error::ModuleError;
use super::module::{Module, display_as_module};
use super::parameter::Parameter;
use crate::error::Result;
use crate::ops::conv::error::ConvError;
use crate::ops::conv::{Conv2dOptions, Padding};
use crate::ops::pair::Pair;
use crate::options::AndOptions;
use crate::tensor::Tensor;
use crate::tensor_options::TensorOptions;

/// A layer that slides a kernel over images (`torch.nn.Conv2d`). Input (batch, in_channels, height, width), output
/// (batch, out_channels, …). See [`Tensor::conv2d`].
pub struct Conv2d {
    /// Shape (out_channels, in_channels / groups, kernel height, kernel width).
    pub weight: Parameter,
    /// Shape (out_channels).
    pub bias: Option<Parameter>,
    in_channels: usize,
    out_channels: usize,
    kernel_size: Pair,
    options: Conv2dOptions,
}

impl Conv2d {
    /// Creates a layer with weight and bias uniform in ±1/√(in_channels · kernel elements), PyTorch's Kaiming
    /// initialisation with a = √5. The default generator draws the weight first.
    ///
    /// ```
    /// # use todevice::nn;
    /// let plain = nn::Conv2d::new(3, 8, 5)?;
    /// let padded = nn::Conv2d::new(3, 8, (5, nn::Conv2dOptions { padding: 2.into(), ..Default::default() }))?;
    /// # Ok::<(), todevice::Error>(())
    /// ```
    ///
    /// Errors if the sizes do not match, or if the device does not exist.
    #[track_caller]
    pub fn new(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl AndOptions<Pair, Conv2dOptions>,
    ) -> Result<Conv2d> {
        let (kernel_size, options) = kernel_size.split();
        Conv2d::made(in_channels, out_channels, kernel_size, options)
    }

    /// The older form of [`new`](Self::new) with options.
    #[deprecated(note = "write Conv2d::new(in_channels, out_channels, (kernel_size, options))")]
    #[track_caller]
    pub fn with_options(
        in_channels: usize,
        out_channels: usize,
        kernel_size: impl Into<Pair>,
        options: Conv2dOptions,
    ) -> Result<Conv2d> {
        Conv2d::made(in_channels, out_channels, kernel_size.into(), options)
    }

    #[track_caller]
    fn made(
        in_channels: usize,
        out_channels: usize,
        kernel_size: Pair,
        options: Conv2dOptions,
    ) -> Result<Conv2d> {
        let Conv2dOptions { stride, padding, dilation, groups, bias, device, dtype } = options;
        let [rows, columns] = kernel_size.values();
        if groups == 0 {
            return Err(ModuleError::Conv("groups must be a positive integer").into());
        }
        if !in_channels.is_multiple_of(groups) {
            return Err(ModuleError::Conv("in_channels must be divisible by groups").into());
        }
        if !out_channels.is_multiple_of(groups) {
            return Err(ModuleError::Conv("out_channels must be divisible by groups").into());
        }
        if padding == Padding::Same && stride.values() != [1, 1] {
            return Err(ConvError::SameStride.into());
        }
        let channels = in_channels / groups;
        let made = TensorOptions::from((device, dtype));
        let weight = Tensor::empty((&[out_channels, channels, rows, columns], made))?;
        let fan_in = (channels * rows * columns) as f64;
        if fan_in > 0.0 {
            // √3 · gain / √fan_in with gain = √(2 / (1 + 5)): the bound below, but rounded as in PyTorch.
            let bound = 3f64.sqrt() * ((2.0f64 / 6.0).sqrt() / fan_in.sqrt());
            weight.uniform_(-bound, bound, None)?;
        }
        let bias = match bias {
            true => {
                let bias = Tensor::full(&[out_channels], (0, made))?;
                if fan_in > 0.0 {
                    let bound = 1.0 / fan_in.sqrt();
                    bias.uniform_(-bound, bound, None)?;
                }
                Some(Parameter::of("Conv2d", "bias", &bias)?)
            }
            false => None,
        };
        let options = Conv2dOptions { stride, padding, dilation, groups, ..Default::default() };
        let weight = Parameter::of("Conv2d", "weight", &weight)?;
        Ok(Conv2d { weight, bias, in_channels, out_channels, kernel_size, options })
    }
}

impl Module for Conv2d {
    fn name(&self) -> &'static str {
        "Conv2d"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Parameter::tensor);
        input.conv2d(&self.weight.tensor(), (bias.as_ref(), self.options))
    }

    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        let bias = self.bias.iter().map(|bias| ("bias", bias.clone()));
        [("weight", self.weight.clone())].into_iter().chain(bias).collect()
    }

    fn extra_repr(&self) -> String {
        // Convolutions print both numbers of a pair.
        let pair = |pair: Pair| {
            let [height, width] = pair.values();
            format!("({height}, {width})")
        };
        let Conv2dOptions { stride, padding, dilation, groups, .. } = self.options;
        let mut repr = format!(
            "{}, {}, kernel_size={}, stride={}",
            self.in_channels,
            self.out_channels,
            pair(self.kernel_size),
            pair(stride)
        );
        match padding {
            Padding::Zeros(zeros) if zeros.values() == [0, 0] => {}
            Padding::Zeros(zeros) => repr += &format!(", padding={}", pair(zeros)),
            Padding::Same => repr += ", padding=same",
            Padding::Valid => repr += ", padding=valid",
        }
        if dilation.values() != [1, 1] {
            repr += &format!(", dilation={}", pair(dilation));
        }
        if groups != 1 {
            repr += &format!(", groups={groups}");
        }
        if self.bias.is_none() {
            repr += ", bias=False";
        }
        repr
    }
}

display_as_module!(Conv2d);
