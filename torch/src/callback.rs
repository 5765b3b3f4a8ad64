//! Functions of Python that autograd calls.

use rustpython_vm::{PyObjectRef, VirtualMachine};
use todevice::{Error, Result, Tensor, interpreter};

use crate::fault::raise;
use crate::shared::{self, Callback};
use crate::tensor::PyTensor;

/// Calls a function with an argument that is made on the spot. An exception travels through `todevice` as an error.
pub fn call(
    function: &Callback,
    argument: impl FnOnce(&VirtualMachine) -> Option<PyObjectRef>,
) -> Result<()> {
    answer(function, argument).map(drop)
}

fn answer(
    function: &Callback,
    argument: impl FnOnce(&VirtualMachine) -> Option<PyObjectRef>,
) -> Result<Option<PyObjectRef>> {
    let Some(function) = function.function() else { return Ok(None) };
    rustpython_vm::vm::thread::with_current_vm(|vm| {
        let Some(argument) = argument(vm) else { return Ok(None) };
        function.call((argument,), vm).map(Some).map_err(shared::through_torch)
    })
}

/// Calls a function with a tensor; it returns a tensor, or None.
pub fn tensor_of(function: &Callback, tensor: &Tensor) -> Result<Option<Tensor>> {
    let answer = answer(function, |vm| Some(PyTensor::wrap(tensor.clone(), vm)))?;
    Ok(answer.and_then(|answer| answer.downcast_ref::<PyTensor>().map(|tensor| tensor.get())))
}

/// Calls a function with a tensor; it returns a list of tensors and Nones.
pub fn tensors_of(function: &Callback, tensor: &Tensor, count: usize) -> Result<Vec<Option<Tensor>>> {
    let Some(answer) = answer(function, |vm| Some(PyTensor::wrap(tensor.clone(), vm)))? else {
        return Ok(vec![None; count]);
    };
    rustpython_vm::vm::thread::with_current_vm(|vm| {
        let items: Vec<PyObjectRef> = vm.extract_elements_with(&answer, Ok).map_err(shared::through_torch)?;
        Ok(items.iter().map(|item| item.downcast_ref::<PyTensor>().map(|tensor| tensor.get())).collect())
    })
}

/// Begins `torch.autograd.graph.saved_tensors_hooks(pack, unpack)`.
pub fn saved_tensors_hooks(pack: PyObjectRef, unpack: PyObjectRef) -> interpreter::Guard {
    let (pack, unpack) = (Callback::new(pack), Callback::new(unpack));
    interpreter::saved_tensors_hooks(
        move |tensor| {
            let packed = answer(&pack, |vm| Some(PyTensor::wrap(tensor.clone(), vm)))?;
            packed.map(Callback::new).ok_or_else(|| Error::custom("the interpreter has ended"))
        },
        move |packed| {
            let object = packed.function();
            let unpacked = answer(&unpack, |_| object)?;
            let tensor =
                unpacked.and_then(|object| object.downcast_ref::<PyTensor>().map(|tensor| tensor.get()));
            tensor.ok_or_else(|| {
                let text = "Output of saved tensor unpack_hook expected to be a Tensor";
                match raise("TypeError", text) {
                    crate::fault::Fault::Raise(_, text) => Error::custom(text),
                    _ => Error::custom(text),
                }
            })
        },
    )
}
