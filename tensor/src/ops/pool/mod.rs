//! Pooling reduces each window of an image to one element. Images are (channels, height, width), with or without a
//! batch dimension. Channels are pooled separately.

use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::{Result, not_implemented};
use crate::ops::pair::Pair;
use crate::ops::plain::{contiguous, reshaped};
use crate::ops::{self, Operation, operations};
use crate::options::{AndOptions, Keywords};
use crate::shape::Layout;
use crate::tensor::Tensor;

pub(crate) mod error;
mod kernels;
mod window;

use error::PoolError;
pub(in crate::ops) use kernels::ROWS;
use kernels::{Divisor, Means};
pub(in crate::ops) use window::{Grid, Windows};

/// The keyword arguments of `max_pool2d` and `torch.nn.MaxPool2d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxPool2dOptions {
    /// The step between windows. `None` places them side by side.
    pub stride: Option<Pair>,
    /// The number of elements by which windows may extend beyond the edges. They count as −∞.
    pub padding: Pair,
    /// The distance between the elements of a window.
    pub dilation: Pair,
    /// Whether a remainder too small for a full window gets a window.
    pub ceil_mode: bool,
}

impl Keywords for MaxPool2dOptions {}

impl Default for MaxPool2dOptions {
    fn default() -> MaxPool2dOptions {
        MaxPool2dOptions { stride: None, padding: 0.into(), dilation: 1.into(), ceil_mode: false }
    }
}

/// The keyword arguments of `avg_pool2d` and `torch.nn.AvgPool2d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvgPool2dOptions {
    /// The step between windows. `None` places them side by side.
    pub stride: Option<Pair>,
    /// The number of elements by which windows may extend beyond the edges. They count as 0.
    pub padding: Pair,
    /// Whether a remainder too small for a full window gets a window.
    pub ceil_mode: bool,
    /// Whether padding counts in the divisor.
    pub count_include_pad: bool,
    /// Replaces the number of elements as the divisor.
    pub divisor_override: Option<i64>,
}

impl Keywords for AvgPool2dOptions {}

impl Default for AvgPool2dOptions {
    fn default() -> AvgPool2dOptions {
        AvgPool2dOptions {
            stride: None,
            padding: 0.into(),
            ceil_mode: false,
            count_include_pad: true,
            divisor_override: None,
        }
    }
}

operations! {
    static MAX_POOL2D: Operation = Operation::new("max_pool2d").node("MaxPool2DWithIndicesBackward0");
    static MAX_POOL2D_BACKWARD: Operation = Operation::new("max_pool2d_with_indices_backward");
    static AVG_POOL2D: Operation = Operation::new("avg_pool2d").node("AvgPool2DBackward0");
    static AVG_POOL2D_BACKWARD: Operation = Operation::new("avg_pool2d_backward");
    static ADAPTIVE_AVG_POOL2D: Operation =
        Operation::new("adaptive_avg_pool2d").node("AdaptiveAvgPool2DBackward0");
    static ADAPTIVE_AVG_POOL2D_BACKWARD: Operation = Operation::new("adaptive_avg_pool2d_backward");
}

impl Tensor {
    /// Computes the maximum of each window (`torch.nn.functional.max_pool2d`). Its first position gets the gradient.
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// let image = Tensor::arange(0, 16, (1, DType::F32))?.reshape(&[1, 4, 4])?;
    /// let smaller = image.max_pool2d(2)?;
    /// assert_eq!(smaller.to_vec::<f32>()?, [5.0, 7.0, 13.0, 15.0]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn max_pool2d(&self, kernel_size: impl AndOptions<Pair, MaxPool2dOptions>) -> Result<Tensor> {
        let (kernel_size, options) = kernel_size.split();
        if !matches!(self.ndim(), 3 | 4) {
            return Err(PoolError::MaxDims.into());
        }
        let MaxPool2dOptions { stride, padding, dilation, ceil_mode } = options;
        let grid = grid(self, kernel_size, stride, padding, dilation, ceil_mode)?;
        if self.dtype() == DType::Bool {
            return Err(not_implemented("max_pool2d", DType::Bool));
        }
        let (height, width) = (grid.down.size, grid.across.size);
        if i32::try_from(height * width).is_err() {
            let what = format!("a plane of {height} × {width} = {} elements is not allowed", height * width);
            return Err(PoolError::IntegerOutOfRange { what }.into());
        }
        ops::apply(MaxPool2dFunction { grid }, [self])
    }

    /// Computes the mean of each window (`torch.nn.functional.avg_pool2d`).
    #[track_caller]
    pub fn avg_pool2d(&self, kernel_size: impl AndOptions<Pair, AvgPool2dOptions>) -> Result<Tensor> {
        let (kernel_size, options) = kernel_size.split();
        let AvgPool2dOptions { stride, padding, ceil_mode, count_include_pad, divisor_override } = options;
        if divisor_override == Some(0) {
            return Err(PoolError::Divisor.into());
        }
        self.layout().dim(-3)?; // PyTorch checks the channel dimension first.
        let [height, width] = kernel_size.values();
        if height == 0 || width == 0 {
            return Err(PoolError::Kernel { height, width }.into()); // Otherwise the error would blame the stride, which defaults to the kernel size.
        }
        let grid = grid(self, kernel_size, stride, padding, 1.into(), ceil_mode)?;
        let count_include_pad = i64::from(count_include_pad);
        let divisor = Divisor { count_include_pad, fixed: divisor_override.unwrap_or(0) };
        check_float(self, "avg_pool2d")?;
        ops::apply(AvgPool2dFunction { means: Means { grid, divisor } }, [self])
    }

    /// Computes the means of `output_size` windows (`torch.nn.functional.adaptive_avg_pool2d`). `None` keeps a size.
    #[track_caller]
    pub fn adaptive_avg_pool2d(&self, output_size: impl Into<Pair<Option<usize>>>) -> Result<Tensor> {
        let asked = output_size.into().values();
        if self.ndim() < 2 {
            return Err(PoolError::AdaptiveDims { sizes: self.sizes().to_vec() }.into());
        }
        let [height, width] = [self.ndim() - 2, self.ndim() - 1].map(|dim| self.sizes()[dim]);
        let output = [asked[0].unwrap_or(height), asked[1].unwrap_or(width)];
        if output == [1, 1] {
            return self.mean_dims(&[-1, -2], true); // As in PyTorch, for any number of dimensions.
        }
        if !matches!(self.ndim(), 3 | 4) {
            return Err(PoolError::AdaptiveDims { sizes: self.sizes().to_vec() }.into());
        }
        if let Some(dim) = [self.ndim() - 2, self.ndim() - 1].into_iter().find(|dim| self.sizes()[*dim] == 0)
        {
            return Err(
                PoolError::AdaptiveEmpty { of: ["", "input"], sizes: self.sizes().to_vec(), dim }.into()
            );
        }
        Layout::counted(&[&self.sizes()[..self.ndim() - 2], &output].concat())?;
        check_float(self, "adaptive_avg_pool2d")?;
        ops::apply(AdaptiveAvgPool2dFunction { output }, [self])
    }
}

fn check_float(x: &Tensor, operation: &'static str) -> Result<()> {
    match x.dtype().is_floating_point() {
        true => Ok(()),
        false => Err(not_implemented(operation, x.dtype())),
    }
}

fn grid(
    x: &Tensor,
    kernel_size: Pair,
    stride: Option<Pair>,
    padding: Pair,
    dilation: Pair,
    ceil_mode: bool,
) -> Result<Grid> {
    let sizes = x.sizes();
    let (kernel, stride) = (kernel_size.values(), stride.unwrap_or(kernel_size).values());
    let (padding, dilation) = (padding.values(), dilation.values());
    let [channels, height, width] = std::array::from_fn(|i| sizes[x.ndim() - 3 + i]);
    let along =
        |i: usize, size| Windows::new(size, [kernel[i], stride[i], padding[i], dilation[i]], ceil_mode);
    let (down, across) = (along(0, height)?, along(1, width)?);
    if kernel.contains(&0) {
        return Err(PoolError::Kernel { height: kernel[0], width: kernel[1] }.into());
    }
    if dilation.contains(&0) {
        return Err(PoolError::Dilation { height: dilation[0], width: dilation[1] }.into());
    }
    // Only the batch may be empty.
    if !matches!(x.ndim(), 3 | 4) || [channels, height, width].contains(&0) {
        return Err(PoolError::Input { sizes: sizes.to_vec() }.into());
    }
    if padding.iter().zip(kernel).any(|(padding, kernel)| *padding > kernel / 2) {
        return Err(PoolError::Paddings { padding, kernel }.into());
    }
    if down.count < 1 || across.count < 1 {
        let output = [down.count, across.count];
        return Err(PoolError::Output { input: [channels, height, width], output }.into());
    }
    Ok(Grid { down, across })
}

fn planes(x: &Tensor) -> Result<Tensor> {
    Ok(as_planes(&contiguous(x)?))
}

fn as_planes(x: &Tensor) -> Tensor {
    let (outer, plane) = x.sizes().split_at(x.ndim() - 2);
    let sizes = [outer.iter().product(), plane[0], plane[1]];
    reshaped(x, &sizes)
}

fn resized(x: &Tensor, plane: [usize; 2], dtype: DType) -> Result<Tensor> {
    x.uninit_beside(&[&x.sizes()[..x.ndim() - 2], &plane].concat(), dtype)
}

struct MaxPool2dFunction {
    grid: Grid,
}

impl Function<1> for MaxPool2dFunction {
    fn operation(&self) -> &'static Operation {
        &MAX_POOL2D
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let [.., plane] = self.grid.extents();
        let out = resized(x, plane, x.dtype())?;
        let index = resized(x, plane, DType::I32)?;
        kernels::max_pool2d(&planes(x)?, &self.grid, &as_planes(&out), &as_planes(&index))?;
        ctx.save_for_backward([&index]);
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [index] = saved.tensors()?;
        let grad_x = ops::call(&MAX_POOL2D_BACKWARD, &[grad, &index], |_| {
            let grad_x = grad.uninit_beside(saved.input_sizes(0), grad.dtype())?;
            let to = as_planes(&grad_x);
            kernels::max_pool2d_backward(&planes(grad)?, &as_planes(&index), &self.grid, &to)?;
            Ok(grad_x)
        })?;
        Ok([Some(grad_x)])
    }
}

struct AvgPool2dFunction {
    means: Means,
}

impl Function<1> for AvgPool2dFunction {
    fn operation(&self) -> &'static Operation {
        &AVG_POOL2D
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([None::<&Tensor>]); // PyTorch saves the image, so a second backward is an error.
        let [.., plane] = self.means.grid.extents();
        let out = resized(x, plane, x.dtype())?;
        kernels::avg_pool2d(&planes(x)?, &self.means, &as_planes(&out))?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let grad_x = ops::call(&AVG_POOL2D_BACKWARD, &[grad], |_| {
            let grad_x = grad.uninit_beside(saved.input_sizes(0), grad.dtype())?;
            kernels::avg_pool2d_backward(&planes(grad)?, &self.means, &as_planes(&grad_x))?;
            Ok(grad_x)
        })?;
        Ok([Some(grad_x)])
    }
}

struct AdaptiveAvgPool2dFunction {
    output: [usize; 2],
}

impl Function<1> for AdaptiveAvgPool2dFunction {
    fn operation(&self) -> &'static Operation {
        &ADAPTIVE_AVG_POOL2D
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([None::<&Tensor>]); // As above.
        let out = resized(x, self.output, x.dtype())?;
        kernels::adaptive_avg_pool2d(&planes(x)?, &as_planes(&out))?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        if let Some(dim) = (1..grad.ndim()).find(|dim| grad.sizes()[*dim] == 0) {
            let of = ["_backward", "grad_output"];
            return Err(PoolError::AdaptiveEmpty { of, sizes: grad.sizes().to_vec(), dim }.into());
        }
        let grad_x = ops::call(&ADAPTIVE_AVG_POOL2D_BACKWARD, &[grad], |_| {
            let grad_x = grad.uninit_beside(saved.input_sizes(0), grad.dtype())?;
            kernels::adaptive_avg_pool2d_backward(&planes(grad)?, &as_planes(&grad_x))?;
            Ok(grad_x)
        })?;
        Ok([Some(grad_x)])
    }
}
