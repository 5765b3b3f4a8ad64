//! The context of a thread: state that its code uses without an argument. A thread that works for another takes a copy.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::device::Streams;
use crate::host::host_context::Entered;
use crate::host::scope::Scope;

/// The context of a thread, without tensors.
#[derive(Clone)]
pub struct ThreadContext {
    /// The most recently entered host. `None` for the default host.
    pub host: Option<Entered>,
    pub device: CurrentDevice,
    pub streams: Streams,
    pub scope: Scope,
    /// Whether it computes without helper threads, because other threads are busy.
    pub is_alone: bool,
}

/// `torch.cuda.current_device()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentDevice(pub usize);

impl ThreadContext {
    pub const FRESH: ThreadContext = ThreadContext {
        host: None,
        device: CurrentDevice(0),
        streams: Vec::new(),
        scope: Scope::NONE,
        is_alone: false,
    };
}

/// A per-thread context. The tensor crate has another one.
pub trait OfThread: Clone + 'static {
    /// Accesses this thread's context. Values must not be dropped inside: dropping a tensor may need the context.
    fn with<R>(access: impl FnOnce(&Local<Self>) -> R) -> R;

    #[inline(always)]
    fn read<R>(read: impl FnOnce(&Self) -> R) -> R {
        Self::with(|context| read(&context.borrow()))
    }

    /// Copies the whole context, to be entered later or on another thread.
    fn current() -> Self {
        Self::read(Self::clone)
    }
}

/// A part of a context, or all of it.
pub trait Part: Sized {
    type Context: OfThread;

    fn of(context: &mut Self::Context) -> &mut Self;

    /// Makes it current on this thread, and returns the previous value.
    #[inline(always)]
    fn set(self) -> Self {
        Self::Context::with(|context| mem::replace(Self::of(&mut context.borrow_mut()), self))
    }

    /// Makes it current on this thread until the guard is dropped.
    #[inline(always)]
    fn enter(self) -> Restore<Self> {
        Self::enter_after(|_| self)
    }

    /// Like [`enter`](Self::enter), with a value made from the previous one.
    #[inline(always)]
    fn enter_after(make: impl FnOnce(&Self) -> Self) -> Restore<Self> {
        let before = Self::Context::with(|context| {
            let context = &mut context.borrow_mut();
            let part = Self::of(context);
            let made = make(part);
            mem::replace(part, made)
        });
        Restore { before: Some(before), of_this_thread: PhantomData }
    }
}

/// Declares the fields of a context that can be entered separately.
#[macro_export]
macro_rules! parts {
    ($Context:ty: $($Part:ty = $($field:ident).+),+ $(,)?) => {
        impl $crate::host::thread::Part for $Context {
            type Context = $Context;

            #[inline(always)]
            fn of(context: &mut $Context) -> &mut $Context {
                context
            }
        }

        $(impl $crate::host::thread::Part for $Part {
            type Context = $Context;

            #[inline(always)]
            fn of(context: &mut $Context) -> &mut $Part {
                &mut context.$($field).+
            }
        })+
    };
}
pub use parts;

parts!(ThreadContext: CurrentDevice = device, Streams = streams, Scope = scope);

/// The storage of a context. It has no destructor, so a tensor in another thread-local can use the context when the
/// thread ends. All scopes have been left by then, so the context holds no memory.
pub type Local<C> = RefCell<ManuallyDrop<C>>;

pub const fn local<C>(context: C) -> Local<C> {
    RefCell::new(ManuallyDrop::new(context))
}

/// Restores a part of the thread's context, even during a panic.
#[must_use]
pub struct Restore<P: Part> {
    before: Option<P>,
    of_this_thread: PhantomData<*const ()>,
}

impl<P: Part> Drop for Restore<P> {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            drop(before.set());
        }
    }
}

struct ThreadState {
    context: Local<ThreadContext>,
    /// Counted from 1, in the order of the first requests.
    number: Cell<u64>,
}

thread_local! {
    static THREAD: ThreadState = const { ThreadState { context: local(ThreadContext::FRESH), number: Cell::new(0) } };
}

impl OfThread for ThreadContext {
    #[inline(always)]
    fn with<R>(access: impl FnOnce(&Local<ThreadContext>) -> R) -> R {
        THREAD.with(|thread| access(&thread.context))
    }
}

/// This thread's number, which is never reused.
#[inline]
pub(crate) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    THREAD.with(|thread| {
        if thread.number.get() == 0 {
            thread.number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        thread.number.get()
    })
}
