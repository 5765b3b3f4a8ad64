//! Random tensors and dropout, with PyTorch's numbers for PyTorch's seeds. The numbers come from [`Generator`].

mod bounds;
pub(in crate::ops) mod dropout;
pub(crate) mod error;
mod kernels;

use error::RandomError;
pub(in crate::ops) use kernels::ROWS;

use bounds::bounds;
use half::{bf16, f16};

use crate::cpu::random::*;
use crate::cpu::reserve::reserve;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result, not_implemented};
use crate::host_context::HostContext;
use crate::kernel::Cost;
use crate::machine::Machine;
use crate::ops::access::access;
use crate::ops::plain::write;
use crate::ops::shape::made;
use crate::ops::{self, NewValues, Operation, operations};
use crate::options::{AndOptions, impl_and_options_for_pairs};
use crate::random::{Generator, Mt19937};
use crate::shape::Layout;
use crate::tensor::Tensor;
use crate::tensor_options::TensorOptions;

operations! {
    static RAND: Operation = Operation::new("rand");
    static RANDN: Operation = Operation::new("randn");
    static RANDINT: Operation = Operation::new("randint");
    static BERNOULLI: Operation = Operation::new("bernoulli");
    static UNIFORM: Operation = Operation::new("uniform_").node("UniformBackward0");
    static NORMAL: Operation = Operation::new("normal_").node("NormalBackward0");
    static RANDOM_FROM_TO: Operation = Operation::new("random_").node("RandomBackward0");
    static RANDOM: Operation = Operation::new("random_").node("RandomBackward2");
}

/// The keyword arguments of new random tensors. A dtype, a device, a tensor with both, or a generator converts to them.
///
/// ```
/// use todevice::{DType, Generator, RandomOptions, Tensor};
///
/// let generator = Generator::new();
/// let x = Tensor::randn((&[2, 3], &generator))?;
/// let options = RandomOptions { dtype: Some(DType::F64), generator: Some(&generator), ..Default::default() };
/// let y = Tensor::randn((&[2, 3], options))?;
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct RandomOptions<'g> {
    /// The dtype of the elements. The default is f32, or i64 for integers.
    pub dtype: Option<DType>,
    /// The device of the tensor, where its numbers are drawn.
    pub device: Device,
    /// Whether the tensor accumulates gradients.
    pub requires_grad: bool,
    /// The generator of the numbers. The default is the device's generator.
    pub generator: Option<&'g Generator>,
}

impl_and_options_for_pairs!(['a, 'g,] &'a [usize], RandomOptions<'g>;);

impl<'g> From<&'g Generator> for RandomOptions<'g> {
    fn from(generator: &'g Generator) -> RandomOptions<'g> {
        RandomOptions { generator: Some(generator), ..Default::default() }
    }
}

impl From<Device> for RandomOptions<'_> {
    fn from(device: Device) -> Self {
        RandomOptions { device, ..Default::default() }
    }
}

impl From<DType> for RandomOptions<'_> {
    fn from(dtype: DType) -> Self {
        RandomOptions { dtype: Some(dtype), ..Default::default() }
    }
}

impl From<(Device, DType)> for RandomOptions<'_> {
    fn from((device, dtype): (Device, DType)) -> Self {
        RandomOptions { dtype: Some(dtype), device, ..Default::default() }
    }
}

impl From<&Tensor> for RandomOptions<'_> {
    fn from(like: &Tensor) -> Self {
        (like.device(), like.dtype()).into()
    }
}

impl From<TensorOptions> for RandomOptions<'_> {
    fn from(TensorOptions { dtype, device, requires_grad }: TensorOptions) -> Self {
        RandomOptions { dtype, device, requires_grad, generator: None }
    }
}

impl<'g> AndOptions<usize, Option<&'g Generator>> for (usize, &'g Generator) {
    fn split(self) -> (usize, Option<&'g Generator>) {
        (self.0, Some(self.1))
    }
}

#[track_caller]
fn drawn(
    operation: &'static Operation,
    layout: Layout,
    options: RandomOptions,
    dtype: DType,
    draw: &dyn Fn(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    let RandomOptions { dtype: named, device, requires_grad, .. } = options;
    made(operation, layout, dtype, TensorOptions { dtype: named, device, requires_grad }, draw)
}

#[track_caller]
fn rand_in(layout: Layout, options: RandomOptions) -> Result<Tensor> {
    drawn(&RAND, layout, options, DType::F32, &|tensor| uniform_(tensor, 0.0, 1.0, options.generator))
}

#[track_caller]
fn randn_in(layout: Layout, options: RandomOptions) -> Result<Tensor> {
    drawn(&RANDN, layout, options, DType::F32, &|tensor| normal_(tensor, 0.0, 1.0, options.generator))
}

/// Random tensors. The options, in a pair with the sizes, are a dtype, a device, a generator, or [`RandomOptions`].
///
/// On the CPU the numbers are PyTorch's, bit for bit. On a CUDA device they come from Philox. A seed gives the same
/// numbers on every device, simulated or real, but not PyTorch's, which depend on the launch.
impl Tensor {
    /// Draws uniform numbers in [0, 1), f32 by default.
    #[track_caller]
    pub fn rand<'a, 'g>(sizes: impl AndOptions<&'a [usize], RandomOptions<'g>>) -> Result<Tensor> {
        let (sizes, options) = sizes.split();
        rand_in(Layout::contiguous(sizes)?, options)
    }

    /// Draws normal numbers with mean 0 and variance 1, f32 by default.
    #[track_caller]
    pub fn randn<'a, 'g>(sizes: impl AndOptions<&'a [usize], RandomOptions<'g>>) -> Result<Tensor> {
        let (sizes, options) = sizes.split();
        randn_in(Layout::contiguous(sizes)?, options)
    }

    /// Draws integers from `low` up to but excluding `high`, i64 by default.
    #[track_caller]
    pub fn randint<'a, 'g>(
        low: i64,
        high: i64,
        sizes: impl AndOptions<&'a [usize], RandomOptions<'g>>,
    ) -> Result<Tensor> {
        let (sizes, options) = sizes.split();
        drawn(&RANDINT, Layout::contiguous(sizes)?, options, DType::I64, &|tensor| {
            random_from_to(tensor, low, high, options.generator)
        })
    }

    /// Returns the numbers 0 to n − 1 in random order, as i64. With a generator: `Tensor::randperm((n, &generator))`.
    #[track_caller]
    pub fn randperm<'g>(n: impl AndOptions<usize, Option<&'g Generator>>) -> Result<Tensor> {
        let (n, generator) = n.split();
        Layout::contiguous(&[n])?.bytes(size_of::<i64>())?;
        drop(reserve::<i64>(n)?); // If the engine's allocation failed, the program would abort.
        Tensor::from_slice(&draw(generator, |engine| randperm(engine, n)), &[n])
    }

    /// Draws normal numbers with the shape, dtype and device of this tensor.
    #[track_caller]
    pub fn randn_like(&self) -> Result<Tensor> {
        randn_in(self.layout().like()?, self.into())
    }

    /// Draws uniform numbers with the shape, dtype and device of this tensor.
    #[track_caller]
    pub fn rand_like(&self) -> Result<Tensor> {
        rand_in(self.layout().like()?, self.into())
    }

    /// The older form of [`rand`](Self::rand) with options.
    #[deprecated(note = "write Tensor::rand((sizes, options))")]
    #[track_caller]
    pub fn rand_with(
        sizes: &[usize],
        options: impl Into<TensorOptions>,
        generator: Option<&Generator>,
    ) -> Result<Tensor> {
        Tensor::rand((sizes, RandomOptions { generator, ..options.into().into() }))
    }

    /// The older form of [`randn`](Self::randn) with options.
    #[deprecated(note = "write Tensor::randn((sizes, options))")]
    #[track_caller]
    pub fn randn_with(
        sizes: &[usize],
        options: impl Into<TensorOptions>,
        generator: Option<&Generator>,
    ) -> Result<Tensor> {
        Tensor::randn((sizes, RandomOptions { generator, ..options.into().into() }))
    }

    /// Draws 1 with the probability of each element in this tensor, else 0.
    #[track_caller]
    pub fn bernoulli(&self, generator: Option<&Generator>) -> Result<Tensor> {
        check_generator(self, generator)?;
        ops::call(&BERNOULLI, &[self], |_| {
            if self.is_cuda() && self.dtype().is_floating_point() {
                let out = self.uninit_beside(self.sizes(), DType::Bool)?;
                kernels::bernoulli(self, &out)?;
                return out.to(self.dtype());
            }
            let keep = match self.dtype() {
                DType::F32 | DType::F16 | DType::BF16 => {
                    let probabilities = self.detach().to(DType::F32)?.to_vec::<f32>()?;
                    check_probabilities(probabilities.iter().map(|p| f64::from(*p)))?;
                    let mut keep = vec![false; self.numel()];
                    draw(generator, |engine| fill_bernoulli_from_f32(engine, &probabilities, &mut keep));
                    keep
                }
                DType::F64 => {
                    let probabilities = self.to_vec::<f64>()?;
                    check_probabilities(probabilities.iter().copied())?;
                    let mut keep = vec![false; self.numel()];
                    draw(generator, |engine| fill_bernoulli_from_f64(engine, &probabilities, &mut keep));
                    keep
                }
                dtype => {
                    return Err(not_implemented("bernoulli_tensor_cpu_p_", dtype));
                }
            };
            Tensor::from_slice(&keep, self.sizes())?.to(self.dtype())
        })
    }
}

impl Tensor {
    /// Overwrites the tensor with uniform numbers in [from, to).
    #[track_caller]
    pub fn uniform_(&self, from: f64, to: f64, generator: Option<&Generator>) -> Result<Tensor> {
        ops::update(&UNIFORM, self, NewValues::FRESH, || uniform_(self, from, to, generator))
    }

    /// Overwrites the tensor with normal numbers.
    #[track_caller]
    pub fn normal_(&self, mean: f64, std: f64, generator: Option<&Generator>) -> Result<Tensor> {
        ops::update(&NORMAL, self, NewValues::FRESH, || normal_(self, mean, std, generator))
    }

    /// Overwrites the tensor with integers from `low` up to but excluding `high`.
    #[track_caller]
    pub fn random_from_to_(&self, low: i64, high: i64, generator: Option<&Generator>) -> Result<Tensor> {
        ops::update(&RANDOM_FROM_TO, self, NewValues::FRESH, || random_from_to(self, low, high, generator))
    }

    /// Overwrites the tensor with integers from the range that the dtype represents exactly.
    #[track_caller]
    pub fn random_(&self, generator: Option<&Generator>) -> Result<Tensor> {
        ops::update(&RANDOM, self, NewValues::FRESH, || random(self, generator))
    }
}

fn check_generator(target: &Tensor, generator: Option<&Generator>) -> Result<()> {
    match generator {
        Some(_) if target.is_cuda() => {
            Err(Error::custom("Expected a 'cuda' device type for generator but found 'cpu'"))
        }
        _ => Ok(()),
    }
}

/// The range of `random_`: the lowest integer, and the number of integers, where 0 means 2⁶⁴.
fn all_of(dtype: DType) -> (i64, u64) {
    match dtype {
        DType::Bool => (0, 2),
        DType::U8 => (0, 1 << 8),
        DType::I32 => (0, 1 << 31),
        DType::F16 => (0, (1 << 11) + 1),
        DType::BF16 => (0, (1 << 8) + 1),
        DType::F32 => (0, (1 << 24) + 1),
        DType::F64 => (0, (1 << 53) + 1),
        _ => (0, 1 << 63),
    }
}

fn draw<R>(generator: Option<&Generator>, draw: impl FnOnce(&mut Mt19937) -> R) -> R {
    match generator {
        Some(generator) => draw(&mut generator.lock()),
        None => draw(&mut Machine::default_generator().lock()),
    }
}

/// The tensor with its dimensions in memory order, in which PyTorch fills it.
fn in_memory_order(tensor: &Tensor) -> Tensor {
    match Layout::order_of(tensor.sizes(), &[tensor.layout()]) {
        Some(order) => tensor.with_layout(tensor.layout().permute(&order)),
        None => tensor.clone(),
    }
}

fn fill<T: bytemuck::Pod>(
    target: &Tensor,
    generator: Option<&Generator>,
    distribution: impl FnOnce(&mut Mt19937, &mut [T]),
) -> Result<()> {
    let in_order = in_memory_order(target);
    let fresh = match in_order.is_contiguous() {
        true => in_order.clone(),
        false => Tensor::uninit(in_order.sizes(), in_order.dtype())?,
    };
    HostContext::charge(|host| host.kernel_time(&ops::launch::work_on(&fresh, Cost::Costly)));
    access([], [&fresh], |[], [out]| {
        draw(generator, |engine| distribution(engine, out.elements()));
    })?;
    if fresh.is_same(&in_order) { Ok(()) } else { write(&in_order, &fresh) }
}

fn uniform_(target: &Tensor, from: f64, to: f64, generator: Option<&Generator>) -> Result<()> {
    check_uniform_bounds(from, to, target.dtype())?;
    check_generator(target, generator)?;
    match target.dtype() {
        _ if target.is_cuda() => kernels::uniform(&in_memory_order(target), from, to),
        DType::F32 => fill(target, generator, |engine, out| {
            fill_uniform_f32(engine, out, from as f32, to as f32);
        }),
        DType::F64 => fill(target, generator, |engine, out| fill_uniform_f64(engine, out, from, to)),
        DType::F16 => {
            fill(target, generator, |engine, out: &mut [f16]| fill_uniform_half(engine, out, from, to))
        }
        DType::BF16 => {
            fill(target, generator, |engine, out: &mut [bf16]| fill_uniform_half(engine, out, from, to))
        }
        dtype => Err(not_implemented("check_uniform_bounds", dtype)),
    }
}

fn check_uniform_bounds(from: f64, to: f64, dtype: DType) -> Result<()> {
    let max = match dtype {
        DType::F64 => f64::MAX,
        DType::F32 => f64::from(f32::MAX),
        DType::F16 => f64::from(f16::MAX),
        DType::BF16 => f64::from(bf16::MAX),
        _ => return Err(not_implemented("check_uniform_bounds", dtype)),
    };
    for (name, bound) in [("from", from), ("to", to)] {
        if !(-max..=max).contains(&bound) {
            return Err(RandomError::UniformBound { name, dtype }.into());
        }
    }
    if from > to {
        return Err(RandomError::UniformRange { from, to }.into());
    }
    if to - from > max {
        return Err(RandomError::UniformWidth { from, to, dtype }.into());
    }
    Ok(())
}

fn normal_(target: &Tensor, mean: f64, std: f64, generator: Option<&Generator>) -> Result<()> {
    if std.is_nan() || std < 0.0 {
        return Err(RandomError::NegativeStd { std }.into());
    }
    check_generator(target, generator)?;
    if target.is_cuda() {
        return kernels::normal(&in_memory_order(target), mean, std);
    }
    match (target.dtype(), target.is_contiguous()) {
        (DType::F32, true) => fill(target, generator, |engine, out| fill_normal_f32(engine, out, mean, std)),
        (DType::F64, true) => fill(target, generator, |engine, out| fill_normal_f64(engine, out, mean, std)),
        (DType::F16, in_order) => fill(target, generator, |engine, out: &mut [f16]| {
            fill_normal_half(engine, out, mean, std, in_order);
        }),
        (DType::BF16, in_order) => fill(target, generator, |engine, out: &mut [bf16]| {
            fill_normal_half(engine, out, mean, std, in_order);
        }),
        (DType::F32, false) => fill(target, generator, |engine, out| {
            fill_normal_scalar_path_f32(engine, out, mean, std);
        }),
        (DType::F64, false) => fill(target, generator, |engine, out| {
            fill_normal_scalar_path_f64(engine, out, mean, std);
        }),
        (dtype, _) => Err(not_implemented("normal_kernel_cpu", dtype)),
    }
}

fn random_from_to(target: &Tensor, low: i64, high: i64, generator: Option<&Generator>) -> Result<()> {
    let (low, high) = bounds(low, high, target.dtype())?;
    check_generator(target, generator)?;
    if target.is_cuda() {
        return kernels::integers(&in_memory_order(target), low, high.wrapping_sub(low) as u64);
    }
    if target.dtype() == DType::I64 {
        return fill(target, generator, |engine, out| fill_randint_i64(engine, out, low, high));
    }
    let integers = target.uninit_like(DType::I64)?;
    fill(&integers, generator, |engine, out| fill_randint_i64(engine, out, low, high))?;
    write(target, &integers.to(target.dtype())?)
}

fn random(target: &Tensor, generator: Option<&Generator>) -> Result<()> {
    check_generator(target, generator)?;
    if target.is_cuda() {
        let (low, range) = all_of(target.dtype());
        return kernels::integers(&in_memory_order(target), low, range);
    }
    match target.dtype() {
        DType::I64 => fill(target, generator, |engine, out: &mut [i64]| fill_random_i64(engine, out)),
        DType::I32 => fill(target, generator, |engine, out: &mut [i32]| fill_random_i32(engine, out)),
        DType::U8 => fill(target, generator, |engine, out: &mut [u8]| fill_random_u8(engine, out)),
        DType::F32 => fill(target, generator, |engine, out: &mut [f32]| fill_random_f32(engine, out)),
        DType::F64 => fill(target, generator, |engine, out: &mut [f64]| fill_random_f64(engine, out)),
        DType::Bool => fill(target, generator, |engine, out: &mut [u8]| {
            let mut bits = vec![false; out.len()];
            fill_random_bool(engine, &mut bits);
            out.iter_mut().zip(bits).for_each(|(out, bit)| *out = bit as u8);
        }),
        DType::F16 => fill(target, generator, |engine, out: &mut [f16]| fill_random_half(engine, out)),
        DType::BF16 => fill(target, generator, |engine, out: &mut [bf16]| fill_random_half(engine, out)),
    }
}

fn check_probabilities(mut probabilities: impl Iterator<Item = f64>) -> Result<()> {
    match probabilities.find(|p| !(0.0..=1.0).contains(p)) {
        Some(p) => Err(Error::custom(format!("Expected p_in >= 0 && p_in <= 1 to be true, but got {p}"))),
        None => Ok(()),
    }
}
