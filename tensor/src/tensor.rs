//! The tensor handle: storage, layout, dtype and history. Clones and views share the storage.
//!
//! Memory on a GPU comes from the caching allocator and goes back to it when the last handle is dropped. The allocator
//! may hand it out again at once, even if work that uses it is still queued: a block serves only the stream it was
//! allocated for, and the work of a stream runs in order, so the next owner's work comes after. Work on other streams
//! has to be announced with `record_stream`.
//!
//! Every tensor belongs to a *machine*, the host and the GPUs of a [`Machine`](crate::Machine), real or simulated.
//!
//! Not here: arithmetic and transfers. This is the first of the fourteen files of the spine, which read like a book
//! (see `lib.rs`). Next in the spine: `ops/transfer.rs`.

use std::sync::{Arc, Mutex};

use crate::autograd::{self, History, ViewOf};
use crate::device::{Device, DevicePtr};
use crate::dtype::DType;
use crate::error::{Error, LayoutError, Result, TensorError};
use crate::gpu::runtime::{Cuda, DeviceMemory};
use crate::lock::lock;
use crate::mismatch::Owner;
use crate::scope;
use crate::shape::Layout;
use crate::shape::MemoryFormat;
use crate::storage::Storage;

/// An n-dimensional array on a device (`torch.Tensor`).
///
/// This is a handle: clones and views share the same memory, so an in-place operation on one is visible through
/// all.
#[derive(Clone)]
pub struct Tensor(Arc<TensorInner>);

// ANCHOR: tensor
struct TensorInner {
    storage: Arc<Storage>,
    layout: Layout,
    dtype: DType,
    /// How gradients flow into this tensor. In-place operations may replace it.
    history: Mutex<History>,
    view: Option<ViewOf>,
    /// Made in inference mode: versions are not checked, and autograd may not save it.
    inference: bool,
    /// The line of the user's program that created it.
    place: scope::Place,
    /// The line that moved it to its device, if it was created elsewhere.
    moved: Option<scope::Place>,
    /// The module parameter or buffer that this tensor is, if any.
    owner: Option<Box<Owner>>,
}
// ANCHOR_END: tensor

/// Creating tensors.
impl Tensor {
    /// Allocates contiguous host memory for an operation to write its result to.
    #[track_caller]
    pub(crate) fn uninit(sizes: &[usize], dtype: DType) -> Result<Tensor> {
        Tensor::uninit_in(Storage::allocate, Layout::contiguous(sizes)?, dtype)
    }

    /// Like [`uninit`](Self::uninit), on any device of the current machine and in any layout.
    #[track_caller]
    pub(crate) fn uninit_on(device: Device, layout: Layout, dtype: DType) -> Result<Tensor> {
        Tensor::uninit_in(|bytes| Storage::allocate_on(device, bytes), layout, dtype)
    }

    /// Like [`uninit_on`](Self::uninit_on), in host memory pinned by a machine's driver.
    #[track_caller]
    pub(crate) fn uninit_pinned(cuda: &Arc<Cuda>, layout: Layout, dtype: DType) -> Result<Tensor> {
        Tensor::uninit_in(|bytes| Storage::allocate_pinned(cuda, bytes), layout, dtype)
    }

    /// Like [`uninit`](Self::uninit), on this tensor's device (`Tensor.new_empty`).
    #[track_caller]
    pub(crate) fn uninit_beside(&self, sizes: &[usize], dtype: DType) -> Result<Tensor> {
        self.uninit_with(Layout::contiguous(sizes)?, dtype)
    }

    /// Like [`uninit_beside`](Self::uninit_beside), with this tensor's sizes and strides (`torch.empty_like`). A tensor
    /// with gaps gives one without.
    #[track_caller]
    pub(crate) fn uninit_like(&self, dtype: DType) -> Result<Tensor> {
        self.uninit_with(self.layout().like()?, dtype)
    }

    /// Like [`uninit_beside`](Self::uninit_beside), in any layout.
    #[track_caller]
    pub(crate) fn uninit_with(&self, layout: Layout, dtype: DType) -> Result<Tensor> {
        Tensor::uninit_in(|bytes| self.storage().allocate_beside(bytes), layout, dtype)
    }

    #[track_caller]
    fn uninit_in(
        allocate: impl FnOnce(usize) -> Result<Arc<Storage>>,
        layout: Layout,
        dtype: DType,
    ) -> Result<Tensor> {
        let bytes = layout.bytes(dtype.size())?.max(layout.reach() * dtype.size());
        Ok(Tensor::made_of(allocate(bytes)?, layout, dtype))
    }

    /// Creates a tensor that covers its whole storage.
    #[track_caller]
    pub(crate) fn made_of(storage: Arc<Storage>, layout: Layout, dtype: DType) -> Tensor {
        // Evaluated first, so that the compiler builds the struct in its allocation.
        let (inference, place) = (autograd::is_inference_mode_enabled(), scope::here());
        Tensor(Arc::new(TensorInner {
            storage,
            layout,
            dtype,
            history: Mutex::new(History::None),
            view: None,
            inference,
            place,
            moved: None,
            owner: None,
        }))
    }

    /// Creates a view of the same storage. The caller records it in autograd.
    #[track_caller]
    pub(crate) fn with_layout(&self, layout: Layout) -> Tensor {
        let place = if scope::is_part() { self.0.place } else { scope::here() };
        Tensor(Arc::new(TensorInner {
            storage: self.0.storage.clone(),
            layout,
            dtype: self.0.dtype,
            history: Mutex::new(History::None),
            view: Some(ViewOf::new(self)),
            inference: self.0.inference,
            place,
            moved: self.0.moved,
            owner: None,
        }))
    }

    /// Returns a tensor with the same memory but no history. Writes through either are visible in both, and counted
    /// for both (`Tensor.detach`).
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        self.detached_from(scope::here())
    }

    pub(crate) fn detached_from(&self, place: scope::Place) -> Tensor {
        Tensor(Arc::new(TensorInner {
            storage: self.0.storage.clone(),
            layout: self.0.layout,
            dtype: self.0.dtype,
            history: Mutex::new(History::None),
            view: None,
            inference: self.0.inference,
            place,
            moved: self.0.moved,
            owner: None,
        }))
    }
}

/// Properties of tensors.
impl Tensor {
    /// The size of every dimension (`Tensor.size()`).
    pub fn sizes(&self) -> &[usize] {
        self.0.layout.sizes()
    }

    /// Same as [`sizes`](Self::sizes), by PyTorch's other name.
    pub fn shape(&self) -> &[usize] {
        self.sizes()
    }

    /// The size of one dimension. Negative dimensions count from the end.
    pub fn size(&self, dim: i64) -> Result<usize> {
        let found = self.layout().dim(dim)?;
        Ok(*self.sizes().get(found).ok_or(TensorError::NoDimensions { dim })?)
    }

    /// Resolves a dimension given by the user. A 0-dim tensor has no dimensions, so this is an error for it.
    pub(crate) fn checked_dim(&self, dim: i64) -> Result<usize> {
        let dim = self.0.layout.dim(dim)?;
        if self.ndim() == 0 {
            return Err(LayoutError::DimOutOfRange { dim: dim as i64, low: -1, high: 0 }.into());
        }
        Ok(dim)
    }

    /// The distance, in elements, between neighbours along each dimension (`Tensor.stride`).
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

    /// The size of one element in bytes (`Tensor.element_size`).
    pub fn element_size(&self) -> usize {
        self.dtype().size()
    }

    /// The size of the elements in bytes (`Tensor.nbytes`): `numel()` times [`element_size`](Self::element_size),
    /// even if several elements share memory.
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// let x = Tensor::zeros((&[2, 3], DType::F16))?;
    /// assert_eq!((x.element_size(), x.nbytes()), (2, 12));
    /// // Eight rows that share the memory of one.
    /// assert_eq!(x.get(0)?.expand(&[8, 3])?.nbytes(), 48);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.numel().wrapping_mul(self.element_size())
    }

    /// The device it is on.
    pub fn device(&self) -> Device {
        self.0.storage.device().map_or(Device::Cpu, DeviceMemory::device)
    }

    /// Whether it is on a GPU.
    pub fn is_cuda(&self) -> bool {
        self.device().is_cuda()
    }

    /// Whether it is in pinned host memory (`Tensor.is_pinned`): see [`pin_memory`](Self::pin_memory).
    pub fn is_pinned(&self) -> bool {
        self.0.storage.pinned().is_some()
    }

    /// Whether its elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.is_contiguous()
    }

    /// Whether its elements are in the order of a memory format without gaps
    /// (`Tensor.is_contiguous(memory_format=)`).
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        self.0.layout.is_in_format(format)
    }

    /// Whether this tensor was made by a view operation (`Tensor._is_view`).
    pub fn is_view(&self) -> bool {
        self.0.view.is_some()
    }

    /// Whether this tensor was made in inference mode (`Tensor.is_inference`).
    pub fn is_inference(&self) -> bool {
        self.0.inference
    }

    /// The number of in-place writes to its memory (`Tensor._version`).
    pub fn version(&self) -> u64 {
        self.0.storage.version()
    }

    /// Resets the version to 0, for an operation that wrote its result in several steps that the program cannot
    /// see.
    pub(crate) fn as_new(self) -> Tensor {
        self.0.storage.forget_writes();
        self
    }

    /// Whether both are handles of the same tensor (Python's `is`).
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that identifies this tensor for as long as it lives.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether both share memory.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0.storage, &other.0.storage)
    }

    /// The address of the memory that it shares with its views, as listed by
    /// [`cuda::memory_snapshot`](crate::cuda::memory_snapshot) (`Tensor.untyped_storage().data_ptr()`); `None` on
    /// the host.
    pub fn storage_address(&self) -> Option<u64> {
        self.0.storage.device().map(DeviceMemory::address)
    }

    /// The line of the user's program that created this tensor.
    pub fn place(&self) -> scope::Place {
        self.0.place
    }

    /// The line that moved it to its device, if it was created elsewhere.
    pub fn moved(&self) -> Option<scope::Place> {
        self.0.moved
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.0.storage
    }

    pub(crate) fn base(&self) -> Option<&Tensor> {
        self.0.view.as_ref().map(|view| &view.base)
    }

    pub(crate) fn view_of(&self) -> Option<&ViewOf> {
        self.0.view.as_ref()
    }

    pub(crate) fn view_of_mut(&mut self) -> Option<&mut ViewOf> {
        Arc::get_mut(&mut self.0).and_then(|inner| inner.view.as_mut())
    }

    /// This new tensor without its base, which the user never sees: an operation computed it as a view of its own memory.
    pub(crate) fn without_base(mut self) -> Tensor {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.view = None;
        }
        self
    }

    /// How gradients flow into it now: a write to the memory of a view changes its history.
    pub(crate) fn history(&self) -> History {
        self.follow_writes();
        self.last_history()
    }

    /// The history that was set last.
    pub(crate) fn last_history(&self) -> History {
        lock(&self.0.history).clone()
    }

    /// Whether gradients flow into it, without the cost of cloning the history. As in PyTorch, they flow into a view of a
    /// tensor that requires grad even if it was made under `no_grad`.
    pub(crate) fn has_history(&self) -> bool {
        lock(&self.0.history).flows() || self.base().is_some_and(Tensor::has_history)
    }

    pub(crate) fn set_history(&self, history: History) {
        *lock(&self.0.history) = history;
    }

    /// Records the line of the user's program that created this tensor, once the operation is done.
    ///
    /// A view made as part of another operation (such as the transposed weight in a layer) keeps the line of its
    /// base: that is the tensor the user knows.
    pub(crate) fn made_at(mut self, place: scope::Place) -> Tensor {
        if self.is_view() && scope::is_part() {
            return self;
        }
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.place = scope::place_or(place);
        }
        self
    }

    /// Marks it as a module's parameter or buffer. The tensor is new, so it has no other handle.
    pub(crate) fn owned_by(mut self, owner: Owner) -> Tensor {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.owner = Some(Box::new(owner));
        }
        self
    }

    /// The module parameter or buffer that this tensor is, if any.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.0.owner.as_deref()
    }

    /// Records where `origin` was created, and the current line as the move to this device.
    #[track_caller]
    pub(crate) fn moved_from(mut self, origin: &Tensor) -> Tensor {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            (inner.place, inner.moved) = (origin.place(), Some(scope::here()));
        }
        self
    }

    /// The number of its handles.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Whether this is the only handle of the tensor and its memory, which may then be kept or overwritten.
    pub(crate) fn is_sole_owner(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Arc::strong_count(&self.0.storage) == 1
    }
}

/// Returns the device memory of a tensor on a GPU.
pub(crate) fn memory_of(tensor: &Tensor) -> Result<&DeviceMemory> {
    tensor
        .storage()
        .device()
        .ok_or_else(|| Error::custom("expected a tensor on a GPU, and found one on the host"))
}

/// The address of its first element in device memory.
pub(crate) fn pointer_of(tensor: &Tensor) -> Result<DevicePtr> {
    Ok(memory_of(tensor)?.pointer(tensor.storage_offset() * tensor.dtype().size()))
}
