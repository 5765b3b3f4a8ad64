//! Errors on their way to Python: of `todevice`, of a call's arguments, and of Python itself.

use rustpython_vm::builtins::{PyBaseExceptionRef, PyTypeRef};
use rustpython_vm::{AsObject, VirtualMachine};
use todevice::{Error, GpuError};

use crate::shared;

pub enum Fault {
    /// An error of the library.
    Torch(Error),
    /// The class and the message of an exception.
    Raise(&'static str, String),
    /// An exception that Python has raised already.
    Python(PyBaseExceptionRef),
}

pub type Result<T> = std::result::Result<T, Fault>;

/// An exception of this class, with this message.
pub fn raise(class: &'static str, message: impl Into<String>) -> Fault {
    Fault::Raise(class, message.into())
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Torch(error)
    }
}

impl From<GpuError> for Fault {
    fn from(error: GpuError) -> Fault {
        Fault::Torch(error.into())
    }
}

impl From<PyBaseExceptionRef> for Fault {
    fn from(exception: PyBaseExceptionRef) -> Fault {
        Fault::Python(exception)
    }
}

impl Fault {
    pub fn into_exception(self, vm: &VirtualMachine) -> PyBaseExceptionRef {
        match self {
            Fault::Python(exception) => exception,
            Fault::Raise(class, message) => exception(class, message, vm),
            Fault::Torch(error) => of_error(&error, vm),
        }
    }
}

/// The exception of an error. Its text is PyTorch's, and the course's report goes with it.
fn of_error(error: &Error, vm: &VirtualMachine) -> PyBaseExceptionRef {
    // A hook written in Python has raised, and the error has brought its number here.
    if let Some(exception) = shared::raised_in_callback(&error.to_string()) {
        return exception;
    }
    let message = error.to_string();
    if matches!(error.gpu(), Some(GpuError::OutOfDeviceMemory(_)))
        && let Some(class) = shared::registered("OutOfMemoryError")
        && let Ok(exception) = class.call((message.clone(),), vm)
        && let Ok(exception) = exception.downcast()
    {
        with_report(&exception, error, vm);
        return exception;
    }
    let exception = exception(class_of(error.kind(), &message), message, vm);
    with_report(&exception, error, vm);
    exception
}

/// PyTorch has classes of its own for two kinds of messages.
fn class_of(kind: &'static str, message: &str) -> &'static str {
    if message.starts_with('"') && message.contains("\" not implemented for '") {
        "NotImplementedError"
    } else if message.contains("to have non-zero size") {
        "IndexError"
    } else {
        kind
    }
}

fn with_report(exception: &PyBaseExceptionRef, error: &Error, vm: &VirtualMachine) {
    let report = error.report();
    if report != error.to_string() {
        let _ = exception.as_object().set_attr("_report", vm.ctx.new_str(report), vm);
    }
}

fn exception(class: &str, message: String, vm: &VirtualMachine) -> PyBaseExceptionRef {
    let of = &vm.ctx.exceptions;
    let of_files = match class {
        "OSError" => of.os_error,
        "FileNotFoundError" => of.file_not_found_error,
        "IsADirectoryError" => of.is_a_directory_error,
        "PermissionError" => of.permission_error,
        _ => return vm.new_exception_msg(class_named(class, vm), message.into()),
    };
    vm.new_os_subtype_error(of_files.to_owned(), None, message).upcast()
}

fn class_named(name: &str, vm: &VirtualMachine) -> PyTypeRef {
    let of = &vm.ctx.exceptions;
    match name {
        "TypeError" => of.type_error,
        "ValueError" => of.value_error,
        "IndexError" => of.index_error,
        "KeyError" => of.key_error,
        "AttributeError" => of.attribute_error,
        "AssertionError" => of.assertion_error,
        "NotImplementedError" => of.not_implemented_error,
        "OverflowError" => of.overflow_error,
        "EOFError" => of.eof_error,
        "UserWarning" => of.user_warning,
        "StopIteration" => of.stop_iteration,
        _ => of.runtime_error,
    }
    .to_owned()
}
