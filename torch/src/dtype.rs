//! `torch.dtype`

use rustpython_vm::builtins::PyStr;
use rustpython_vm::types::Representable;
use rustpython_vm::{Py, PyObjectRef, PyPayload, PyResult, VirtualMachine, pyclass};
use todevice::DType;

use crate::shared;

#[pyclass(module = "torch", name = "dtype")]
#[derive(Debug, PyPayload)]
pub struct PyDType(DType);

/// All dtypes, with the names of their objects in `torch`.
pub const ALL: [(DType, &[&str]); 8] = [
    (DType::Bool, &["bool"]),
    (DType::U8, &["uint8"]),
    (DType::I32, &["int32", "int"]),
    (DType::I64, &["int64", "long"]),
    (DType::F16, &["float16", "half"]),
    (DType::BF16, &["bfloat16"]),
    (DType::F32, &["float32", "float"]),
    (DType::F64, &["float64", "double"]),
];

impl PyDType {
    pub fn dtype(&self) -> DType {
        self.0
    }

    /// The only object of a dtype, so that `x.dtype is torch.float32`.
    pub fn object(dtype: DType, vm: &VirtualMachine) -> PyObjectRef {
        let name = dtype.to_string();
        shared::registered(&name).unwrap_or_else(|| {
            let object: PyObjectRef = PyDType(dtype).into_pyobject(vm);
            shared::register(&name, object.clone());
            object
        })
    }
}

impl Representable for PyDType {
    fn repr_str(zelf: &Py<Self>, _: &VirtualMachine) -> PyResult<String> {
        Ok(zelf.0.to_string())
    }
}

#[pyclass(with(Representable))]
impl PyDType {
    #[pygetset]
    fn is_floating_point(&self) -> bool {
        self.0.is_floating_point()
    }

    #[pygetset]
    fn is_complex(&self) -> bool {
        false
    }

    #[pygetset]
    fn is_signed(&self) -> bool {
        !matches!(self.0, DType::Bool | DType::U8)
    }

    #[pygetset]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    #[pymethod]
    fn __reduce__(&self, vm: &VirtualMachine) -> PyObjectRef {
        let text = self.0.to_string();
        vm.ctx.new_str(PyStr::from(text.trim_start_matches("torch.").to_owned())).into()
    }
}
