//! The tensor handle: what it is made of, and how to make, move and read one. No arithmetic.

use std::panic::Location;
use std::sync::{Arc, Mutex};

use crate::autograd::error::AutogradError;
use crate::autograd::{self, History};
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::tensor::TensorError;
use crate::error::{Error, LayoutError, Result};
use crate::gpu;
use crate::gpu::pinned::PinnedMemory;
use crate::gpu::runtime::{Cuda, DeviceMemory};
use crate::handles::DevicePtr;
use crate::lock::lock;
use crate::moves::Owner;
use crate::options::in_pair;
use crate::scope::{self, Place};
use crate::shape::Layout;
use crate::storage::Storage;

/// An n-dimensional array on a device (`torch.Tensor`).
///
/// A handle: clones and views share the same memory, and an in-place operation on one is seen by all.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

struct Inner {
    storage: Arc<Storage>,
    layout: Layout,
    dtype: DType,
    /// How gradients flow into this tensor; in-place operations may replace it.
    history: Mutex<History>,
    /// The tensor this one is a view of, never itself a view, and the recorded operation that had made
    /// it when the view was.
    base: Option<(Tensor, Option<u64>)>,
    /// Made in inference mode: no version is checked, and autograd may not save it.
    inference: bool,
    /// The line of the user's program that made it.
    place: Place,
    /// The line that moved it to where it is, if it was made elsewhere.
    moved: Option<Place>,
    /// The module's parameter or buffer that it is.
    owner: Option<Box<Owner>>,
}

/// What `torch.zeros(..., dtype=, device=, requires_grad=)` takes as keyword arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorOptions {
    /// The type of the elements. Without it, [`Tensor::full`] and [`Tensor::arange`] go by their numbers; all else is f32.
    pub dtype: Option<DType>,
    /// Where the tensor is made.
    pub device: Device,
    /// Whether gradients are collected in it.
    pub requires_grad: bool,
}

in_pair! {
    ['a,] &'a [usize], TensorOptions;
    [] usize, TensorOptions;
    [] Scalar, TensorOptions;
}

impl From<DType> for TensorOptions {
    fn from(dtype: DType) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), ..Default::default() }
    }
}

impl From<Device> for TensorOptions {
    fn from(device: Device) -> TensorOptions {
        TensorOptions { device, ..Default::default() }
    }
}

/// The type and the device of a tensor, for one to be made like it.
impl From<&Tensor> for TensorOptions {
    fn from(like: &Tensor) -> TensorOptions {
        (like.device(), like.dtype()).into()
    }
}

impl From<(Device, DType)> for TensorOptions {
    fn from((device, dtype): (Device, DType)) -> TensorOptions {
        TensorOptions { device, dtype: Some(dtype), ..Default::default() }
    }
}

/// Where [`Tensor::to`] goes: a device, a type, or both. What is not named stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToOptions {
    /// The device to move to.
    pub device: Option<Device>,
    /// The type to convert to.
    pub dtype: Option<DType>,
    /// Makes a copy even when nothing changes.
    pub copy: bool,
    /// Does not wait for a copy between the host and a GPU that the GPU can make by itself: one from pinned memory
    /// ([`Tensor::pin_memory`]), and any to the host, whose result is in pinned memory. Until such a copy has run,
    /// which a synchronization tells, its source must not be written to, and its result is not there yet.
    pub non_blocking: bool,
}

impl From<Device> for ToOptions {
    fn from(device: Device) -> ToOptions {
        ToOptions { device: Some(device), ..Default::default() }
    }
}

impl From<DType> for ToOptions {
    fn from(dtype: DType) -> ToOptions {
        ToOptions { dtype: Some(dtype), ..Default::default() }
    }
}

impl From<(Device, DType)> for ToOptions {
    fn from((device, dtype): (Device, DType)) -> ToOptions {
        ToOptions { device: Some(device), dtype: Some(dtype), ..Default::default() }
    }
}

/// How tensors come to be.
impl Tensor {
    /// Fresh contiguous memory on the host for an operation to write its result to.
    #[track_caller]
    pub(crate) fn uninit(sizes: &[usize], dtype: DType) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let storage = Storage::allocate(layout.bytes(dtype.size())?)?;
        Ok(Tensor::made_of(storage, layout, dtype))
    }

    /// The same on any device of the current machine.
    #[track_caller]
    pub(crate) fn uninit_on(device: Device, sizes: &[usize], dtype: DType) -> Result<Tensor> {
        if !device.is_cuda() {
            return Tensor::uninit(sizes, dtype);
        }
        let layout = Layout::contiguous(sizes)?;
        let bytes = layout.bytes(dtype.size())?;
        let memory = gpu::of(device)?.allocate(device.index(), bytes)?;
        Ok(Tensor::made_of(Storage::on_device(memory, bytes), layout, dtype))
    }

    /// The same in memory of the host that a machine's driver has pinned.
    #[track_caller]
    pub(crate) fn uninit_pinned(cuda: &Arc<Cuda>, sizes: &[usize], dtype: DType) -> Result<Tensor> {
        let layout = Layout::contiguous(sizes)?;
        let bytes = layout.bytes(dtype.size())?;
        let memory = PinnedMemory::allocate(cuda, bytes)?;
        Ok(Tensor::made_of(Storage::in_pinned(memory, bytes), layout, dtype))
    }

    /// The same where this tensor is (`Tensor.new_empty`).
    #[track_caller]
    pub(crate) fn uninit_beside(&self, sizes: &[usize], dtype: DType) -> Result<Tensor> {
        let Some(memory) = self.storage().device() else { return Tensor::uninit(sizes, dtype) };
        let layout = Layout::contiguous(sizes)?;
        let bytes = layout.bytes(dtype.size())?;
        let memory = memory.cuda().allocate(memory.device().index(), bytes)?;
        Ok(Tensor::made_of(Storage::on_device(memory, bytes), layout, dtype))
    }

    /// A tensor that is all there is in its storage.
    #[track_caller]
    pub(crate) fn made_of(storage: Arc<Storage>, layout: Layout, dtype: DType) -> Tensor {
        // Read first, so that the fields are written where the tensor will be.
        let (inference, place) = (autograd::is_inference_mode_enabled(), scope::here());
        Tensor(Arc::new(Inner {
            storage,
            layout,
            dtype,
            history: Mutex::new(History::None),
            base: None,
            inference,
            place,
            moved: None,
            owner: None,
        }))
    }

    /// A view of the same storage, recorded by autograd by whoever makes it.
    #[track_caller]
    pub(crate) fn with_layout(&self, layout: Layout) -> Tensor {
        let place = if scope::is_part() { self.0.place } else { scope::here() };
        let base = self.base().unwrap_or(self).clone();
        let made_by = base.history().sequence();
        Tensor(Arc::new(Inner {
            storage: self.0.storage.clone(),
            layout,
            dtype: self.0.dtype,
            history: Mutex::new(History::None),
            base: Some((base, made_by)),
            inference: self.0.inference,
            place,
            moved: self.0.moved,
            owner: None,
        }))
    }

    /// The same memory without history. Writes through either are seen, and counted, by both
    /// (`Tensor.detach`).
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        self.detached_from(scope::here())
    }

    pub(crate) fn detached_from(&self, place: Place) -> Tensor {
        Tensor(Arc::new(Inner {
            storage: self.0.storage.clone(),
            layout: self.0.layout,
            dtype: self.0.dtype,
            history: Mutex::new(History::None),
            base: None,
            inference: self.0.inference,
            place,
            moved: self.0.moved,
            owner: None,
        }))
    }
}

/// What a tensor is.
impl Tensor {
    /// The size of every dimension (`Tensor.size()`).
    pub fn sizes(&self) -> &[usize] {
        self.0.layout.sizes()
    }

    /// The same as [`sizes`](Self::sizes), by PyTorch's other name.
    pub fn shape(&self) -> &[usize] {
        self.sizes()
    }

    /// The size of one dimension, negative ones counted from the end.
    pub fn size(&self, dim: i64) -> Result<usize> {
        let found = self.layout().dim(dim)?;
        Ok(*self.sizes().get(found).ok_or(TensorError::NoDimensions { dim })?)
    }

    /// A dimension of this tensor given by the user. A 0-dim tensor has none, so there it is an error.
    pub(crate) fn checked_dim(&self, dim: i64) -> Result<usize> {
        let dim = self.0.layout.dim(dim)?;
        if self.ndim() == 0 {
            return Err(LayoutError::DimOutOfRange { dim: dim as i64, low: -1, high: 0 }.into());
        }
        Ok(dim)
    }

    /// How far apart, in elements, neighbours along each dimension lie (`Tensor.stride`).
    pub fn strides(&self) -> &[usize] {
        self.0.layout.strides()
    }

    /// The position of the first element in the storage, in elements.
    pub fn storage_offset(&self) -> usize {
        self.0.layout.offset
    }

    /// The number of dimensions.
    pub fn ndim(&self) -> usize {
        self.0.layout.ndim()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.0.layout.numel()
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// How many bytes an element takes (`Tensor.element_size`).
    pub fn element_size(&self) -> usize {
        self.dtype().size()
    }

    /// How many bytes its elements take (`Tensor.nbytes`): `numel()` times [`element_size`](Self::element_size), whether or
    /// not each has memory of its own.
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// let x = Tensor::zeros((&[2, 3], DType::F16))?;
    /// assert_eq!((x.element_size(), x.nbytes()), (2, 12));
    /// // Eight rows, but memory of one.
    /// assert_eq!(x.get(0)?.expand(&[8, 3])?.nbytes(), 48);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.numel().wrapping_mul(self.element_size())
    }

    /// Where it lives.
    pub fn device(&self) -> Device {
        self.0.storage.device().map_or(Device::Cpu, DeviceMemory::device)
    }

    /// Whether it lives on a GPU.
    pub fn is_cuda(&self) -> bool {
        self.device().is_cuda()
    }

    /// Whether it lies in pinned memory of the host (`Tensor.is_pinned`): see [`pin_memory`](Self::pin_memory).
    pub fn is_pinned(&self) -> bool {
        self.0.storage.pinned().is_some()
    }

    /// Whether its elements lie in order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.is_contiguous()
    }

    /// Whether this tensor was made by a view operation (`Tensor._is_view`).
    pub fn is_view(&self) -> bool {
        self.0.base.is_some()
    }

    /// Whether it was made in inference mode (`Tensor.is_inference`).
    pub fn is_inference(&self) -> bool {
        self.0.inference
    }

    /// How often its memory was written in place (`Tensor._version`).
    pub fn version(&self) -> u64 {
        self.0.storage.version()
    }

    /// The result of an operation that was written in steps, none of which the program sees: its version is 0.
    pub(crate) fn as_new(self) -> Tensor {
        self.0.storage.forget_writes();
        self
    }

    /// Whether both are handles of one and the same tensor (Python's `is`).
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What tells this tensor from all others, for as long as it lives.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether both share memory.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0.storage, &other.0.storage)
    }

    /// Where the memory begins that it shares with its views, as [`cuda::memory_snapshot`](crate::cuda::memory_snapshot) has
    /// it (`Tensor.untyped_storage().data_ptr()`); none on the host.
    pub fn storage_address(&self) -> Option<u64> {
        self.0.storage.device().map(DeviceMemory::address)
    }

    /// The line of the user's program that made this tensor.
    pub fn place(&self) -> &'static Location<'static> {
        self.0.place
    }

    /// The line that moved it to where it is, if it was made elsewhere.
    pub fn moved(&self) -> Option<&'static Location<'static>> {
        self.0.moved
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.0.storage
    }

    pub(crate) fn base(&self) -> Option<&Tensor> {
        self.0.base.as_ref().map(|(base, _)| base)
    }

    /// Refuses a view whose history is that of values which a recorded write to its base replaced.
    pub(crate) fn check_history(&self) -> Result<()> {
        match &self.0.base {
            Some((base, made_by)) if base.history().sequence() != *made_by => {
                Err(AutogradError::StaleView.into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn history(&self) -> History {
        lock(&self.0.history).clone()
    }

    /// Whether gradients flow into it, without the cost of handing out the history.
    pub(crate) fn has_history(&self) -> bool {
        lock(&self.0.history).flows()
    }

    pub(crate) fn set_history(&self, history: History) {
        *lock(&self.0.history) = history;
    }

    /// Notes the line of the user's program that made this tensor, once the operation is done.
    ///
    /// A view that is only part of an operation (the weight that a layer transposes) keeps the line of what it
    /// is a view of: that is the tensor the user knows.
    pub(crate) fn made_at(mut self, place: Place) -> Tensor {
        if self.is_view() && scope::is_part() {
            return self;
        }
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.place = scope::place_or(place);
        }
        self
    }

    /// Notes that it is a module's. It is new, so nobody else has it yet.
    pub(crate) fn owned_by(mut self, owner: Owner) -> Tensor {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.owner = Some(Box::new(owner));
        }
        self
    }

    /// The module's parameter or buffer that it is, if it is one.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.0.owner.as_deref()
    }

    /// Notes that this is the tensor `origin`, moved here on the line under way.
    #[track_caller]
    pub(crate) fn moved_from(mut self, origin: &Tensor) -> Tensor {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            (inner.place, inner.moved) = (origin.place(), Some(scope::here()));
        }
        self
    }

    /// Whether nobody else can see this tensor's memory, so that it may be kept or overwritten.
    pub(crate) fn is_sole_owner(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Arc::strong_count(&self.0.storage) == 1
    }
}

/// The memory on a device of a tensor that is known to be there.
pub(crate) fn memory_of(tensor: &Tensor) -> Result<&DeviceMemory> {
    tensor.storage().device().ok_or_else(|| Error::custom("a tensor of the host where one of a GPU belongs"))
}

/// Where its first element is there.
pub(crate) fn pointer_of(tensor: &Tensor) -> Result<DevicePtr> {
    Ok(memory_of(tensor)?.pointer(tensor.storage_offset() * tensor.dtype().size()))
}
