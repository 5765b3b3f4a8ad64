//! `torch.Tensor`: a tensor of `todevice` in an object of Python.
//!
//! The class has few methods here: those from the table of operations are added at the start (`operations/mod.rs`).

pub mod indexing;
pub mod lists;
mod operators;

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use rustpython_vm::builtins::{PyStr, PyType, PyWeak};
use rustpython_vm::function::{FuncArgs, PySetterValue};
use rustpython_vm::protocol::PySequenceMethods;
use rustpython_vm::types::{
    AsMapping, AsNumber, AsSequence, Comparable, Constructor, GetAttr, Hashable, Iterable, Representable,
};
use rustpython_vm::{
    AsObject, Py, PyObject, PyObjectRef, PyPayload, PyRef, PyResult, VirtualMachine, atomic_func, pyclass,
};
use todevice::{DType, Tensor, interpreter};

use crate::device::PyDevice;
use crate::dtype::PyDType;
use crate::fault::{Fault, Result, raise};
use crate::shared;
use crate::value::size;

#[pyclass(module = "torch", name = "Tensor")]
#[derive(PyPayload)]
pub struct PyTensor {
    /// `x.data = y` and `module.to(device)` put another tensor in its place.
    tensor: RefCell<Tensor>,
    /// The object of the gradient that Python has seen, so that `x.grad is x.grad`. It keeps no gradient alive.
    grad: RefCell<Option<PyRef<PyWeak>>>,
    /// Set by `retain_grad`.
    retains_grad: Cell<bool>,
    /// The gradient that `retain_grad` has kept.
    retained: RefCell<Option<Tensor>>,
}

impl std::fmt::Debug for PyTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PyTensor({})", self.get())
    }
}

impl PyTensor {
    pub fn new(tensor: Tensor) -> PyTensor {
        PyTensor {
            tensor: RefCell::new(tensor),
            grad: RefCell::default(),
            retains_grad: Cell::new(false),
            retained: RefCell::default(),
        }
    }

    pub fn wrap(tensor: Tensor, vm: &VirtualMachine) -> PyObjectRef {
        PyTensor::new(tensor).into_pyobject(vm)
    }

    pub fn get(&self) -> Tensor {
        self.tensor.borrow().clone()
    }

    pub fn holds(&self, other: &Tensor) -> bool {
        self.tensor.borrow().is_same(other)
    }

    pub fn replace(&self, tensor: Tensor) {
        // The old one is dropped after the borrow.
        let _old = self.tensor.replace(tensor);
    }

    /// The object of its gradient.
    fn grad_object(&self, vm: &VirtualMachine) -> PyObjectRef {
        let grad = self.get().grad().or_else(|| self.retained.borrow().clone());
        let Some(grad) = grad else { return vm.ctx.none() };
        let known = self.grad.borrow().as_ref().and_then(|known| known.upgrade());
        if let Some(known) = known
            && known.downcast_ref::<PyTensor>().is_some_and(|known| known.holds(&grad))
        {
            return known;
        }
        let object = PyTensor::wrap(grad, vm);
        self.note_grad(&object, vm);
        object
    }

    fn note_grad(&self, object: &PyObject, vm: &VirtualMachine) {
        *self.grad.borrow_mut() = object.downgrade(None, vm).ok();
    }
}

/// Runs what Python has called, on behalf of its line.
pub fn in_python<T>(vm: &VirtualMachine, run: impl FnOnce() -> Result<T>) -> PyResult<T> {
    let _place = crate::place::of_script(vm);
    run().map_err(|fault| fault.into_exception(vm))
}

impl Constructor for PyTensor {
    type Args = FuncArgs;

    /// `torch.Tensor(2, 3)` or `torch.Tensor([1.0, 2.0])`; and the tensor itself, for subclasses such as `Parameter`.
    fn py_new(_: &Py<PyType>, args: FuncArgs, vm: &VirtualMachine) -> PyResult<PyTensor> {
        in_python(vm, || {
            crate::arguments::expect_names("Tensor", &args, &[], args.args.len())?;
            let size = |size: i64| {
                usize::try_from(size).map_err(|_| {
                    raise("RuntimeError", format!("Trying to create tensor with negative dimension {size}"))
                })
            };
            if let [one] = &args.args[..] {
                if let Some(tensor) = one.downcast_ref::<PyTensor>() {
                    return Ok(PyTensor::new(tensor.get()));
                }
                if let Some(count) = crate::arguments::int(one, vm) {
                    return Ok(PyTensor::new(Tensor::empty(&[size(count)?])?));
                }
                return Ok(PyTensor::new(lists::tensor(one, Some(DType::F32), vm)?));
            }
            let sizes: Option<Vec<i64>> =
                args.args.iter().map(|size| crate::arguments::int(size, vm)).collect();
            let sizes = sizes.ok_or_else(|| raise("TypeError", "new(): data must be a sequence"))?;
            let sizes = sizes.into_iter().map(size).collect::<Result<Vec<_>>>()?;
            let sizes = if sizes.is_empty() { vec![0] } else { sizes };
            Ok(PyTensor::new(Tensor::empty(&sizes)?))
        })
    }
}

/// The text of a tensor whose GPU has failed. Python gets the error instead.
const UNREADABLE: &str = "<values cannot be read: ";

impl Representable for PyTensor {
    fn repr_str(zelf: &Py<Self>, vm: &VirtualMachine) -> PyResult<String> {
        let (tensor, text) = (zelf.get(), zelf.get().to_string());
        if text.contains(UNREADABLE) {
            in_python(vm, || Ok(tensor.detach().cpu().map(drop)?))?;
        }
        Ok(text)
    }
}

impl Hashable for PyTensor {
    fn hash(zelf: &Py<Self>, _: &VirtualMachine) -> PyResult<rustpython_vm::common::hash::PyHash> {
        Ok(zelf.get_id() as rustpython_vm::common::hash::PyHash)
    }
}

impl Iterable for PyTensor {
    fn iter(zelf: PyRef<Self>, vm: &VirtualMachine) -> PyResult {
        let tensor = zelf.get();
        let rows = in_python(vm, || {
            if tensor.ndim() == 0 {
                return Err(raise("TypeError", "iteration over a 0-d tensor"));
            }
            let rows = (0..tensor.sizes()[0] as i64).map(|row| tensor.get(row));
            Ok(rows.collect::<todevice::Result<Vec<_>>>()?)
        })?;
        let rows = rows.into_iter().map(|row| PyTensor::wrap(row, vm)).collect();
        let list: PyObjectRef = vm.ctx.new_list(rows).into();
        Ok(list.get_iter(vm)?.into())
    }
}

impl GetAttr for PyTensor {
    fn getattro(zelf: &Py<Self>, name: &Py<PyStr>, vm: &VirtualMachine) -> PyResult {
        zelf.as_object().generic_getattr(name, vm).map_err(|error| {
            let is_missing = error.fast_isinstance(vm.ctx.exceptions.attribute_error);
            match shared::registered("missing").filter(|_| is_missing) {
                Some(missing) => match missing.call(("Tensor", name.to_owned()), vm) {
                    Ok(text) => {
                        vm.new_attribute_error(text.str(vm).map(|text| text.to_string()).unwrap_or_default())
                    }
                    Err(error) => error,
                },
                None => error,
            }
        })
    }
}

impl AsSequence for PyTensor {
    fn as_sequence() -> &'static PySequenceMethods {
        static METHODS: LazyLock<PySequenceMethods> = LazyLock::new(|| PySequenceMethods {
            contains: atomic_func!(|sequence, value, vm| match sequence.obj.downcast_ref::<PyTensor>() {
                Some(tensor) => contains(&tensor.get(), value, vm),
                None => Ok(false),
            }),
            ..PySequenceMethods::NOT_IMPLEMENTED
        });
        &METHODS
    }
}

/// `value in x`
fn contains(tensor: &Tensor, value: &PyObject, vm: &VirtualMachine) -> PyResult<bool> {
    in_python(vm, || {
        let found = match value.downcast_ref::<PyTensor>() {
            Some(other) => tensor.eq(&other.get())?,
            None => match crate::arguments::scalar(value, vm)?.and_then(|number| number.scalar()) {
                Some(number) => tensor.eq(number)?,
                None => {
                    let class = value.class().name().to_string();
                    let text = format!(
                        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a {class}."
                    );
                    return Err(raise("RuntimeError", text));
                }
            },
        };
        Ok(found.any()?.item()? != 0.0)
    })
}

#[pyclass(
    flags(BASETYPE, HAS_DICT, HAS_WEAKREF),
    with(
        Constructor,
        AsNumber,
        AsMapping,
        AsSequence,
        Comparable,
        Hashable,
        Iterable,
        Representable,
        GetAttr
    )
)]
impl PyTensor {
    #[pygetset]
    fn shape(&self, vm: &VirtualMachine) -> PyResult {
        size(self.get().sizes(), vm)
    }

    #[pygetset]
    fn dtype(&self, vm: &VirtualMachine) -> PyObjectRef {
        PyDType::object(self.get().dtype(), vm)
    }

    #[pygetset]
    fn device(&self, vm: &VirtualMachine) -> PyObjectRef {
        PyDevice::of(self.get().device()).into_object(vm)
    }

    #[pygetset]
    fn layout(&self, vm: &VirtualMachine) -> PyObjectRef {
        shared::registered("strided").unwrap_or_else(|| vm.ctx.none())
    }

    #[pygetset]
    fn ndim(&self) -> usize {
        self.get().ndim()
    }

    #[pygetset]
    fn itemsize(&self) -> usize {
        self.get().element_size()
    }

    #[pygetset]
    fn nbytes(&self) -> usize {
        self.get().nbytes()
    }

    #[pygetset]
    fn is_cuda(&self) -> bool {
        self.get().is_cuda()
    }

    #[pygetset]
    fn is_cpu(&self) -> bool {
        !self.get().is_cuda()
    }

    #[pygetset]
    fn is_sparse(&self) -> bool {
        false
    }

    #[pygetset]
    fn is_quantized(&self) -> bool {
        false
    }

    #[pygetset]
    fn is_meta(&self) -> bool {
        false
    }

    #[pygetset]
    fn is_leaf(&self) -> bool {
        self.get().is_leaf()
    }

    #[pygetset]
    fn retains_grad(&self) -> bool {
        self.retains_grad.get()
    }

    #[pygetset(name = "_version")]
    fn version(&self) -> u64 {
        self.get().version()
    }

    #[pygetset]
    fn requires_grad(&self) -> bool {
        self.get().requires_grad()
    }

    #[pygetset(setter)]
    fn set_requires_grad(&self, value: bool, vm: &VirtualMachine) -> PyResult<()> {
        if value && !self.get().dtype().is_floating_point() {
            let text = "only Tensors of floating point and complex dtype can require gradients";
            return Err(vm.new_runtime_error(text.to_owned()));
        }
        in_python(vm, || Ok(self.get().requires_grad_(value).map(drop)?))
    }

    #[pygetset]
    fn grad_fn(&self, vm: &VirtualMachine) -> PyResult {
        match (self.get().grad_fn(), shared::registered("Node")) {
            (Some(name), Some(class)) => class.call((name,), vm),
            _ => Ok(vm.ctx.none()),
        }
    }

    #[pygetset]
    fn grad(&self, vm: &VirtualMachine) -> PyObjectRef {
        self.grad_object(vm)
    }

    #[pygetset(setter)]
    fn set_grad(&self, value: PySetterValue, vm: &VirtualMachine) -> PyResult<()> {
        in_python(vm, || {
            let object = match value {
                PySetterValue::Assign(object) if !vm.is_none(&object) => object,
                _ => return Ok(self.get().set_grad(None)?),
            };
            let Some(grad) = object.downcast_ref::<PyTensor>() else {
                let class = object.class().name().to_string();
                let text =
                    format!("assigned grad expected to be a Tensor or None but got grad of type {class}");
                return Err(raise("TypeError", text));
            };
            self.get().set_grad(Some(grad.get()))?;
            self.note_grad(&object, vm);
            Ok(())
        })
    }

    #[pygetset]
    fn data(&self, vm: &VirtualMachine) -> PyObjectRef {
        PyTensor::wrap(self.get().detach(), vm)
    }

    /// Another tensor under the same name, which keeps the history: gradients still go where they went.
    #[pygetset(setter)]
    fn set_data(&self, value: PyRef<PyTensor>, vm: &VirtualMachine) -> PyResult<()> {
        in_python(vm, || {
            self.replace(interpreter::with_data(&self.get(), &value.get()));
            Ok(())
        })
    }

    #[pygetset(name = "T")]
    fn transposed(&self, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || {
            let tensor = self.get();
            let dims: Vec<i64> = (0..tensor.ndim() as i64).rev().collect();
            Ok(PyTensor::wrap(if tensor.ndim() == 2 { tensor.t()? } else { tensor.permute(&dims)? }, vm))
        })
    }

    #[pygetset(name = "mT")]
    fn matrices_transposed(&self, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || Ok(PyTensor::wrap(self.get().transpose(-2, -1)?, vm)))
    }

    #[pymethod]
    fn tolist(&self, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || lists::tolist(&self.get(), vm))
    }

    /// Keeps the gradient of a result that is no leaf, for `x.grad`.
    #[pymethod]
    fn retain_grad(zelf: PyRef<Self>, vm: &VirtualMachine) -> PyResult<()> {
        let tensor = zelf.get();
        if !tensor.requires_grad() {
            return Err(
                vm.new_runtime_error("can't retain_grad on Tensor that has requires_grad=False".to_owned())
            );
        }
        if tensor.is_leaf() || zelf.retains_grad.replace(true) {
            return Ok(());
        }
        let object = shared::Callback::new(zelf.as_object().downgrade(None, vm)?.into());
        in_python(vm, || {
            Ok(interpreter::on_gradient(&tensor, move |grad| {
                let weak = object.function().and_then(|weak| weak.downcast_ref::<PyWeak>()?.upgrade());
                if let Some(object) = weak
                    && let Some(this) = object.downcast_ref::<PyTensor>()
                {
                    let sum = match this.retained.take() {
                        Some(before) => before.add(grad)?,
                        None => grad.clone(),
                    };
                    this.retained.replace(Some(sum));
                }
                Ok(None)
            })?)
        })
    }

    /// Calls a function of Python with the gradient, after each accumulation in this leaf.
    #[pymethod]
    fn register_post_accumulate_grad_hook(
        zelf: PyRef<Self>,
        hook: PyObjectRef,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        let hook = shared::Callback::new(hook);
        // Weak: the hook belongs to the leaf that the object holds.
        let object = zelf.as_object().downgrade(None, vm)?;
        let object = shared::Callback::new(object.into());
        in_python(vm, || {
            Ok(zelf.get().register_post_accumulate_grad_hook(move |_| {
                crate::callback::call(&hook, |_| {
                    let object = object.function();
                    object.and_then(|weak| weak.downcast_ref::<PyWeak>()?.upgrade())
                })
            })?)
        })
    }

    #[pymethod]
    fn __format__(zelf: PyRef<Self>, spec: PyRef<PyStr>, vm: &VirtualMachine) -> PyResult {
        let tensor = zelf.get();
        // As in PyTorch, a subclass is printed whole.
        if tensor.ndim() == 0 && zelf.class().is(PyTensor::class(&vm.ctx)) {
            let item = in_python(vm, || {
                Ok(crate::value::Value::from(crate::arguments::of_element(&tensor)?).into_object(vm)?)
            })?;
            return vm.format(&item, spec).map(Into::into);
        }
        match spec.is_empty() {
            true => zelf.as_object().str(vm).map(Into::into),
            false => {
                Err(vm.new_type_error("unsupported format string passed to Tensor.__format__".to_owned()))
            }
        }
    }

    #[pymethod]
    fn __deepcopy__(zelf: PyRef<Self>, memo: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        match shared::registered("deepcopy") {
            Some(deepcopy) => deepcopy.call((zelf, memo), vm),
            None => Ok(vm.ctx.none()),
        }
    }
}

/// The fault of an operation that PyTorch has and this course does not.
pub fn not_here(what: &str) -> Fault {
    raise("NotImplementedError", format!("{what} is not here: PyTorch has it, this course does not"))
}
