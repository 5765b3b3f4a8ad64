//! A scope that a `with` block begins and ends.

use std::cell::RefCell;

use rustpython_vm::{PyObjectRef, PyPayload, VirtualMachine, pyclass};
use todevice::interpreter::Guard;

#[pyclass(module = "torch", name = "_Guard")]
#[derive(PyPayload)]
pub struct PyGuard(RefCell<Option<Guard>>);

impl std::fmt::Debug for PyGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PyGuard")
    }
}

impl PyGuard {
    pub fn wrap(guard: Guard, vm: &VirtualMachine) -> PyObjectRef {
        PyGuard(RefCell::new(Some(guard))).into_pyobject(vm)
    }
}

#[pyclass]
impl PyGuard {
    /// Ends the scope.
    #[pymethod]
    fn end(&self) {
        let guard = self.0.borrow_mut().take();
        drop(guard);
    }

    /// Lets the scope last until the program ends.
    #[pymethod]
    fn keep(&self) {
        if let Some(guard) = self.0.borrow_mut().take() {
            guard.keep();
        }
    }
}
