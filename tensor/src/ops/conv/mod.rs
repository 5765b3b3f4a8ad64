mod device;
pub(crate) mod error;
mod kernels;

use error::ConvError;
pub(in crate::ops) use kernels::ROWS;

use smallvec::SmallVec;

use crate::autograd::{Context, Function, Saved};
use crate::backends::cudnn;
use crate::conv::{ConvPass, ConvShape};
use crate::cpu::conv::run_conv_with_bias;
use crate::device::{Device, DeviceType};
use crate::dtype::DType;
use crate::error::{DTypeError, DeviceMismatch, Error, LayoutError, Result, not_implemented};
use crate::gpu;
use crate::host_context::HostContext;
use crate::ops::access::access;
use crate::ops::elementwise::add_into;
use crate::ops::pair::Pair;
use crate::ops::plain::{contiguous, write};
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::options::{AndOptions, Keywords};
use crate::tensor::Tensor;

operations! {
    static CONV2D: Operation = Operation::new("conv2d").composite().autocast(CastPolicy::LowerPrecision);
    static CONVOLUTION: Operation = Operation::new("conv2d")
        .node("ConvolutionBackward0")
        .arguments("wrapper_CUDA__cudnn_convolution", &["input", "weight", "bias"])
        .autocast(CastPolicy::LowerPrecision);
}

/// The keyword arguments of `torch.nn.Conv2d`. [`Tensor::conv2d`] uses the first four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv2dOptions {
    /// The step of the kernel between neighbouring output elements.
    pub stride: Pair,
    /// The zeros around the image.
    pub padding: Padding,
    /// The distance on the image between neighbouring kernel elements.
    pub dilation: Pair,
    /// The number of channel groups. An output channel depends only on the input channels of its group.
    pub groups: usize,
    /// Whether the layer has a bias.
    pub bias: bool,
    /// The device of the layer's weight and bias, where their random values are drawn.
    pub device: Device,
    /// The dtype of the layer's weight and bias.
    pub dtype: DType,
}

impl Default for Conv2dOptions {
    fn default() -> Conv2dOptions {
        Conv2dOptions {
            stride: 1.into(),
            padding: 0.into(),
            dilation: 1.into(),
            groups: 1,
            bias: true,
            device: Device::Cpu,
            dtype: DType::F32,
        }
    }
}

impl Keywords for Conv2dOptions {}

impl Conv2dOptions {
    fn check_without_layer(&self) -> Result<()> {
        let plain = Conv2dOptions::default();
        let option = match () {
            () if self.bias != plain.bias => "bias",
            () if self.device != plain.device => "device",
            () if self.dtype != plain.dtype => "dtype",
            () => return Ok(()),
        };
        Err(ConvError::OptionOfLayer { option }.into())
    }
}

/// The zeros around an image. `1.into()` adds one on each side; `(1, 2).into()` adds one above and below, and two on
/// the left and right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// The rows above and below, and the columns on the left and right.
    Zeros(Pair),
    /// Enough zeros to keep the image's size (`'same'`). An odd one is added below or on the right.
    Same,
    /// No zeros (`'valid'`).
    Valid,
}

impl From<usize> for Padding {
    fn from(both: usize) -> Padding {
        Padding::Zeros(both.into())
    }
}

impl From<(usize, usize)> for Padding {
    fn from(each: (usize, usize)) -> Padding {
        Padding::Zeros(each.into())
    }
}

impl Tensor {
    /// Slides a kernel over images (`torch.nn.functional.conv2d`). Each output element is the sum of products of the
    /// kernel elements and the image elements under them.
    ///
    /// | | |
    /// | --- | --- |
    /// | self | (batch, channels, height, width), or without the batch |
    /// | weight | (out, channels / groups, kernel height, kernel width) |
    /// | bias | (out) |
    /// | result | (batch, out, (height + 2·padding − dilation·(kernel − 1) − 1) / stride + 1, width likewise) |
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let image = Tensor::new([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])?;
    /// let difference = Tensor::new([[[[-1.0, 1.0]]]])?;
    /// let edges = image.conv2d(&difference, None)?;
    /// assert_eq!(edges.to_vec::<f32>()?, [1.0, 1.0, 1.0, 1.0]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn conv2d<'a>(
        &self,
        weight: &'a Tensor,
        bias: impl AndOptions<Option<&'a Tensor>, Conv2dOptions>,
    ) -> Result<Tensor> {
        let (bias, options) = bias.split();
        convolved(self, weight, bias, options)
    }
}

#[track_caller]
fn convolved(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, options: Conv2dOptions) -> Result<Tensor> {
    options.check_without_layer()?;
    let operands: SmallVec<[&Tensor; 3]> = [x, weight].into_iter().chain(bias).collect();
    ops::call(&CONV2D, &operands, |operands| {
        let (x, weight, bias) = (operands[0], operands[1], operands.get(2).copied());
        if let Some(bias) = bias
            && bias.dtype() != x.dtype()
        {
            return Err(ConvError::BiasDType { input: x.dtype(), bias: bias.dtype() }.into());
        }
        match x.ndim() {
            3 => convolved(&x.unsqueeze(0)?, weight, bias, options)?.squeeze(0),
            4 => {
                let convolution = ConvolutionFunction::checked(x, weight, bias, &options)?;
                match bias {
                    Some(bias) => ops::apply(convolution, [x, weight, bias]),
                    None => ops::apply(convolution, [x, weight]),
                }
            }
            _ => Err(ConvError::Input { sizes: x.sizes().to_vec() }.into()),
        }
    })
}

struct ConvolutionFunction {
    /// Zeros added first, below and on the right, because a convolution pads both sides alike.
    end_zeros: [usize; 2],
    shape: ConvShape,
}

impl ConvolutionFunction {
    fn checked(
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &Conv2dOptions,
    ) -> Result<ConvolutionFunction> {
        let groups = options.groups;
        let (stride, dilation) = (options.stride.values(), options.dilation.values());
        let &[k, weight_channels, r, s] = weight.sizes() else {
            return Err(match weight.ndim() {
                0..=2 => ConvError::WeightFewDims.into(),
                ndim => ConvError::WeightDims { ndim, stride }.into(),
            });
        };
        let (padding, end_zeros) = match options.padding {
            Padding::Zeros(zeros) => (zeros.values(), [0; 2]),
            Padding::Valid => ([0; 2], [0; 2]),
            Padding::Same if stride != [1, 1] => return Err(ConvError::SameStride.into()),
            // An odd zero goes at the end.
            Padding::Same => {
                let total = [
                    dilation[0].saturating_mul(r.saturating_sub(1)),
                    dilation[1].saturating_mul(s.saturating_sub(1)),
                ];
                let rest = total.map(|zeros| zeros % 2);
                if rest != [0; 2] {
                    HostContext::warn_once("padding='same'", || {
                        "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the \
                         input be created"
                            .to_owned()
                    });
                }
                (total.map(|zeros| zeros / 2), rest)
            }
        };
        for (what, values) in [("groups", [groups; 2]), ("stride", stride)] {
            if values.contains(&0) {
                return Err(ConvError::NotPositive { what }.into());
            }
        }
        let weight_sizes = || weight.sizes().to_vec();
        if k < groups {
            return Err(ConvError::FewOutputs { groups, weight: weight_sizes() }.into());
        }
        if k % groups != 0 {
            return Err(ConvError::Groups { groups, weight: weight_sizes() }.into());
        }
        if weight_channels.checked_mul(groups) != Some(x.sizes()[1]) {
            let input = x.sizes().to_vec();
            return Err(ConvError::Channels { groups, weight: weight_sizes(), input }.into());
        }
        if let Some(bias) = bias
            && bias.sizes() != [k]
        {
            return Err(ConvError::Bias { weight: weight_sizes(), bias: bias.sizes().to_vec() }.into());
        }
        if r == 0 || s == 0 {
            return Err(ConvError::EmptyKernel { kernel: [r, s] }.into());
        }
        let &[n, c, h, w] = x.sizes() else { unreachable!("the caller has seen four dimensions") };
        let end = |size: usize, i: usize| size.checked_add(end_zeros[i]).ok_or(LayoutError::TooManyElements);
        let (h, w) = (end(h, 0)?, end(w, 1)?);
        let shape = ConvShape { n, c, h, w, k, r, s, stride, padding, dilation, groups };
        let (padded, kernel) = shape.checked_extents().ok_or(LayoutError::TooManyElements)?;
        if kernel[0] > padded[0] || kernel[1] > padded[1] {
            return Err(ConvError::Kernel { padded, kernel }.into());
        }
        if x.sizes()[2..].contains(&0) {
            return Err(ConvError::EmptyImage { input: x.sizes().to_vec() }.into());
        }
        // Before a call of oneDNN, PyTorch checks the types first and the dilation second.
        let by_onednn = by_onednn(x, weight, groups);
        if by_onednn {
            check_types(x, weight, bias, by_onednn)?;
        }
        if dilation.contains(&0) && n > 0 {
            return Err(match by_onednn {
                true => ConvError::NotPositive { what: "dilation" }.into(),
                false => ConvError::Dilation { dilation }.into(),
            });
        }
        if !x.is_cuda() && !x.dtype().is_floating_point() && dilation.iter().any(|apart| *apart > 1) {
            return Err(not_implemented("slow_conv_dilated<>", x.dtype()));
        }
        check_types(x, weight, bias, by_onednn)?;
        Ok(ConvolutionFunction { end_zeros, shape })
    }
}

/// Whether PyTorch calls oneDNN, which has its own error texts, on the host. It does not for small f32 images.
fn by_onednn(x: &Tensor, weight: &Tensor, groups: usize) -> bool {
    let large = x.sizes()[0] > 1 || x.numel() > 20480 || weight.sizes()[2..].iter().all(|size| *size > 3);
    !x.is_cuda() && (x.dtype() == DType::BF16 || (x.dtype() == DType::F32 && (groups > 1 || large)))
}

/// Whether PyTorch uses cuDNN, which has its own error texts. bfloat16 needs compute capability 8.0.
fn by_cudnn(x: &Tensor, weight: &Tensor) -> Result<bool> {
    if !x.is_cuda() || !cudnn::current().enabled || !cudnn::is_available() {
        return Ok(false);
    }
    let has_bf16 = x.dtype() == DType::BF16 || weight.dtype() == DType::BF16;
    Ok(!has_bf16 || gpu::get_device_properties(x.device().index())?.major >= 8)
}

/// Checks that all operands have the same tensor type, which in PyTorch includes the device type.
fn check_types(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, by_onednn: bool) -> Result<()> {
    let type_of = |tensor: &Tensor| (tensor.device().device_type(), tensor.dtype());
    let (input @ (device, dtype), of_weight) = (type_of(x), type_of(weight));
    for (what, other) in [("weight", Some(weight)), ("bias", bias)] {
        let Some(other) = other.filter(|other| other.device().device_type() != device) else { continue };
        let operands: SmallVec<[&Tensor; 3]> = [x, weight].into_iter().chain(bias).collect();
        let sentence = ConvError::Types { input, what, other: type_of(other) }.to_string();
        return Err(match CONVOLUTION.check_devices(&operands) {
            Err(Error::DeviceMismatch(mismatch)) => {
                Error::DeviceMismatch(Box::new(DeviceMismatch { sentence, ..*mismatch }))
            }
            others => others.expect_err("it is on another device"),
        });
    }
    if input != of_weight {
        let got = weight.dtype();
        return Err(match device {
            _ if by_onednn || by_cudnn(x, weight)? => {
                ConvError::Types { input, what: "weight", other: of_weight }.into()
            }
            DeviceType::Cuda if !dtype.is_floating_point() => not_implemented("slow_conv2d_cuda", dtype),
            DeviceType::Cpu if dtype == DType::Bool => not_implemented("slow_conv2d_cpu", dtype),
            _ => DTypeError::Expected { expected: dtype, got }.into(),
        });
    }
    match device {
        _ if dtype.is_floating_point() => Ok(()),
        DeviceType::Cuda if cudnn::current().enabled && cudnn::is_available() => {
            Err(ConvError::CudnnDType { dtype }.into())
        }
        DeviceType::Cuda => Err(not_implemented("slow_conv2d_cuda", dtype)),
        DeviceType::Cpu if dtype == DType::Bool => Err(not_implemented("slow_conv2d_cpu", dtype)),
        // PyTorch convolves integers on the CPU only.
        DeviceType::Cpu => Err(ConvError::Integers { dtype }.into()),
    }
}

impl<const N: usize> Function<N> for ConvolutionFunction {
    fn operation(&self) -> &'static Operation {
        &CONVOLUTION
    }

    fn forward(&self, ctx: &mut Context<N>, inputs: [&Tensor; N]) -> Result<Tensor> {
        let (mut x, weight) = (inputs[0], inputs[1]);
        let padded;
        if self.end_zeros != [0; 2] {
            padded = pad_end(x, self.end_zeros)?;
            x = &padded;
        }
        let (needs_x, needs_weight) = (ctx.needs_input_grad(0), ctx.needs_input_grad(1));
        ctx.save_for_backward([needs_weight.then_some(x), needs_x.then_some(weight)]);
        let shape = &self.shape;
        let [p, q] = shape.out();
        pass(ConvPass::Forward, shape, [x, weight], inputs.get(2).copied(), &[shape.n, shape.k, p, q])
    }

    fn backward(&self, saved: &Saved<N>, grad: &Tensor) -> Result<[Option<Tensor>; N]> {
        let shape = &self.shape;
        let [x, weight] = saved.optional_tensors()?;
        let mut grads = std::array::from_fn(|_| None);
        if let Some(weight) = weight {
            let sizes = [shape.n, shape.c, shape.h, shape.w];
            let grad = pass(ConvPass::BackwardData, shape, [grad, &weight], None, &sizes)?;
            let [rows, columns] = [shape.h - self.end_zeros[0], shape.w - self.end_zeros[1]];
            grads[0] = Some(grad.narrow(2, 0, rows)?.narrow(3, 0, columns)?);
        }
        if let Some(x) = x {
            let sizes = [shape.k, shape.c / shape.groups, shape.r, shape.s];
            grads[1] = Some(pass(ConvPass::BackwardFilter, shape, [&x, grad], None, &sizes)?);
        }
        if saved.needs_input_grad(2) {
            grads[2] = Some(grad.sum_dims(&[0, 2, 3], false)?);
        }
        Ok(grads)
    }
}

/// Computes one of the three passes on the operands' device. Only y gets a bias.
fn pass(
    which: ConvPass,
    shape: &ConvShape,
    [a, b]: [&Tensor; 2],
    bias: Option<&Tensor>,
    sizes: &[usize],
) -> Result<Tensor> {
    let (a, b) = (&contiguous(a)?, &contiguous(b)?);
    let out = a.uninit_beside(sizes, a.dtype())?;
    if let Some(memory) = out.storage().device() {
        device::pass(memory, which, shape, [a, b], &out)?;
        if let Some(bias) = bias {
            add_into(&out, &out, &bias.reshape(&[-1, 1, 1])?)?;
        }
        return Ok(out);
    }
    HostContext::charge(|host| host.gemm_time(&shape.work(out.dtype())));
    let bias = bias.map(contiguous).transpose()?;
    // Without a bias, the third read is ignored.
    access([a, b, bias.as_ref().unwrap_or(b)], [&out], |[a, b, c], [y]| {
        let [a, b, c] = [a, b, c].map(|input| input.dense_bytes(out.dtype()));
        let y = y.dense_bytes(out.dtype());
        run_conv_with_bias(which, shape, out.dtype(), a, b, bias.is_some().then_some(c), y)
    })??;
    Ok(out)
}

fn pad_end(x: &Tensor, zeros: [usize; 2]) -> Result<Tensor> {
    let &[n, c, h, w] = x.sizes() else { unreachable!("an image has four dimensions") };
    let out = x.uninit_beside(&[n, c, h + zeros[0], w + zeros[1]], x.dtype())?;
    out.zero_()?;
    write(&out.narrow(2, 0, h)?.narrow(3, 0, w)?, x)?;
    Ok(out)
}
