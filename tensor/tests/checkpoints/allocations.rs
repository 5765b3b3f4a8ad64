//! Measures the peak memory of a piece of code, as allocated by this thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: isize) {
    // An ending thread frees its memory, but no longer counts it.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

/// Failed allocations do not count.
fn given(memory: *mut u8, bytes: isize) -> *mut u8 {
    if !memory.is_null() {
        count(bytes);
    }
    memory
}

// SAFETY: it forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc(layout) }, layout.size() as isize)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc_zeroed(layout) }, layout.size() as isize)
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        given(unsafe { System.realloc(memory, layout, size) }, size as isize - layout.size() as isize)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The peak memory of this thread during `work`, in bytes above the current level.
pub(super) fn most<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = work();
    (result, usize::try_from(MOST.get() - before).unwrap_or(0))
}

#[test]
fn what_is_allocated_is_counted() {
    let (length, bytes) = most(|| {
        drop(vec![1u8; 5000]);
        vec![1u8; 1000].len()
    });
    assert!(length == 1000 && (5000..6000).contains(&bytes), "{bytes}");
}
