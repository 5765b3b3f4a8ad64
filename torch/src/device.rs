//! `torch.device`: a type and perhaps an index. Without one it means the current device.

use rustpython_vm::builtins::{PyStr, PyType};
use rustpython_vm::function::{FuncArgs, PyComparisonValue};
use rustpython_vm::types::{Comparable, Constructor, Hashable, PyComparisonOp, Representable};
use rustpython_vm::{AsObject, Py, PyObject, PyObjectRef, PyPayload, PyResult, VirtualMachine, pyclass};
use todevice::{Device, cuda};

use crate::arguments::{expect_names, int};
use crate::fault::{Fault, Result, raise};

#[pyclass(module = "torch", name = "device")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, PyPayload)]
pub struct PyDevice {
    kind: String,
    index: Option<usize>,
}

impl PyDevice {
    /// The device of a tensor, which has an index if it is a GPU.
    pub fn of(device: Device) -> PyDevice {
        let index = device.is_cuda().then_some(device.index());
        PyDevice { kind: device.kind().to_owned(), index }
    }

    /// Reads `cuda:1`. Devices of other kinds have names in PyTorch, too, but here nothing can be on them.
    pub fn parse(text: &str) -> Result<PyDevice> {
        text.parse::<Device>().map_err(Fault::from)?;
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, index.parse().ok()),
            None => (text, None),
        };
        Ok(PyDevice { kind: kind.to_owned(), index })
    }

    pub fn device(&self) -> Result<Device> {
        match self.kind.as_str() {
            "cpu" => Ok(Device::Cpu),
            "cuda" => match self.index {
                Some(index) => Ok(Device::cuda(index)),
                // Without a GPU the first use of the device says so.
                None => Ok(Device::cuda(cuda::current_device().unwrap_or(0))),
            },
            other => Err(raise(
                "NotImplementedError",
                format!("this course has the devices cpu and cuda, and no {other}"),
            )),
        }
    }

    pub fn into_object(self, vm: &VirtualMachine) -> PyObjectRef {
        self.into_pyobject(vm)
    }

    fn name(&self) -> String {
        match self.index {
            Some(index) => format!("{}:{index}", self.kind),
            None => self.kind.clone(),
        }
    }
}

fn not_negative(index: i64) -> Result<usize> {
    usize::try_from(index).map_err(|_| raise("RuntimeError", "Device index must not be negative"))
}

impl Constructor for PyDevice {
    type Args = FuncArgs;

    fn py_new(_: &Py<PyType>, args: FuncArgs, vm: &VirtualMachine) -> PyResult<PyDevice> {
        let given = |i: usize, name: &str| args.args.get(i).or_else(|| args.kwargs.get(name)).cloned();
        let (first, index) = (given(0, "type").or_else(|| given(0, "device")), given(1, "index"));
        let made = || -> Result<PyDevice> {
            expect_names("Device", &args, &["type", "device", "index"], 2)?;
            let first = first.ok_or_else(|| {
                raise("TypeError", "Device(): missing 1 required positional argument: \"device\"")
            })?;
            if let Some(device) = first.downcast_ref::<PyDevice>() {
                return Ok((**device).clone());
            }
            if let Some(index) = int(&first, vm) {
                return Ok(PyDevice { kind: "cuda".to_owned(), index: Some(not_negative(index)?) });
            }
            let Some(name) = first.downcast_ref::<PyStr>() else {
                let class = first.class().name().to_string();
                return Err(raise(
                    "TypeError",
                    format!("Device(): argument 'type' (position 1) must be str, not {class}"),
                ));
            };
            let mut device = PyDevice::parse(&name.to_string())?;
            if let Some(index) = index.filter(|index| !vm.is_none(index)) {
                if device.index.is_some() {
                    let text = format!(
                        "type (string) must not include an index because index was passed explicitly: {}",
                        device.name()
                    );
                    return Err(raise("RuntimeError", text));
                }
                let Some(index) = int(&index, vm) else {
                    return Err(raise("TypeError", "Device(): argument 'index' (position 2) must be int"));
                };
                device.index = Some(not_negative(index)?);
            }
            Ok(device)
        };
        made().map_err(|fault| fault.into_exception(vm))
    }
}

impl Representable for PyDevice {
    fn repr_str(zelf: &Py<Self>, _: &VirtualMachine) -> PyResult<String> {
        Ok(match zelf.index {
            Some(index) => format!("device(type='{}', index={index})", zelf.kind),
            None => format!("device(type='{}')", zelf.kind),
        })
    }
}

impl Comparable for PyDevice {
    fn cmp(
        zelf: &Py<Self>,
        other: &PyObject,
        op: PyComparisonOp,
        _: &VirtualMachine,
    ) -> PyResult<PyComparisonValue> {
        op.eq_only(|| {
            Ok(match other.downcast_ref::<PyDevice>() {
                Some(other) => PyComparisonValue::Implemented(**zelf == **other),
                None => PyComparisonValue::NotImplemented,
            })
        })
    }
}

impl Hashable for PyDevice {
    fn hash(zelf: &Py<Self>, vm: &VirtualMachine) -> PyResult<rustpython_vm::common::hash::PyHash> {
        vm.ctx.new_str(zelf.name()).as_object().hash(vm)
    }
}

#[pyclass(with(Constructor, Representable, Comparable, Hashable))]
impl PyDevice {
    #[pygetset(name = "type")]
    fn kind(&self) -> String {
        self.kind.clone()
    }

    #[pygetset]
    fn index(&self) -> Option<usize> {
        self.index
    }

    #[pymethod]
    fn __str__(&self) -> String {
        self.name()
    }
}
