//! What Rust keeps of Python: classes that are written in Python, and functions that autograd calls back.
//!
//! A hook of `todevice` may be sent to another thread, an object of Python may not. So a hook holds the number of a
//! callback, and this thread the callback.

use std::cell::RefCell;
use std::collections::HashMap;

use rustpython_vm::PyObjectRef;
use rustpython_vm::builtins::PyBaseExceptionRef;
use todevice::Error;

thread_local! {
    static CLASSES: RefCell<HashMap<String, PyObjectRef>> = RefCell::default();
    static CALLBACKS: RefCell<Callbacks> = RefCell::default();
    static NAMES: RefCell<HashMap<String, &'static str>> = RefCell::default();
    static RAISED: RefCell<HashMap<u64, PyBaseExceptionRef>> = RefCell::default();
}

#[derive(Default)]
struct Callbacks {
    next: u64,
    kept: HashMap<u64, PyObjectRef>,
}

/// Keeps an object of Python under a name.
pub fn register(name: &str, object: PyObjectRef) {
    CLASSES.with_borrow_mut(|classes| classes.insert(name.to_owned(), object));
}

pub fn registered(name: &str) -> Option<PyObjectRef> {
    CLASSES.with_borrow(|classes| classes.get(name).cloned())
}

/// Forgets all objects, before the interpreter ends.
pub fn clear() {
    CLASSES.take();
    CALLBACKS.take();
    RAISED.take();
}

/// The name of a node, which lives as long as the process. There are few.
pub fn interned(name: String) -> &'static str {
    NAMES.with_borrow_mut(|names| {
        *names.entry(name).or_insert_with_key(|name| Box::leak(name.clone().into_boxed_str()))
    })
}

/// A function of Python, by its number. It is forgotten with this handle.
#[derive(Debug)]
pub struct Callback(u64);

impl Callback {
    pub fn new(function: PyObjectRef) -> Callback {
        CALLBACKS.with_borrow_mut(|callbacks| {
            callbacks.next += 1;
            callbacks.kept.insert(callbacks.next, function);
            Callback(callbacks.next)
        })
    }

    pub fn function(&self) -> Option<PyObjectRef> {
        CALLBACKS.with_borrow(|callbacks| callbacks.kept.get(&self.0).cloned())
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        // The function may own other callbacks, so it is dropped after the borrow. A thread that ends has none.
        let function = CALLBACKS.try_with(|callbacks| callbacks.borrow_mut().kept.remove(&self.0));
        drop(function);
    }
}

const RAISED_BY: &str = "raised in Python: ";

/// An error that stands for an exception on its way through `todevice`.
pub fn through_torch(exception: PyBaseExceptionRef) -> Error {
    let number = RAISED.with_borrow_mut(|raised| {
        let number = raised.keys().max().map_or(1, |last| last + 1);
        raised.insert(number, exception);
        number
    });
    Error::custom(format!("{RAISED_BY}{number}"))
}

/// The exception that this error stands for.
pub fn raised_in_callback(message: &str) -> Option<PyBaseExceptionRef> {
    let number = message.split(RAISED_BY).nth(1)?.lines().next()?.parse().ok()?;
    RAISED.with_borrow_mut(|raised| raised.remove(&number))
}
