//! `torch.Generator`

use rustpython_vm::builtins::PyType;
use rustpython_vm::function::FuncArgs;
use rustpython_vm::types::Constructor;
use rustpython_vm::{Py, PyObjectRef, PyPayload, PyRef, PyResult, VirtualMachine, pyclass};
use todevice::{Device, Generator, Tensor};

use crate::arguments::{device, expect_names};
use crate::device::PyDevice;
use crate::fault::{Result, raise};
use crate::tensor::PyTensor;

#[pyclass(module = "torch", name = "Generator")]
#[derive(Debug, PyPayload)]
pub struct PyGenerator(Generator);

impl PyGenerator {
    pub fn generator(&self) -> &Generator {
        &self.0
    }

    pub fn wrap(generator: Generator, vm: &VirtualMachine) -> PyObjectRef {
        PyGenerator(generator).into_pyobject(vm)
    }
}

impl Constructor for PyGenerator {
    type Args = FuncArgs;

    fn py_new(_: &Py<PyType>, args: FuncArgs, vm: &VirtualMachine) -> PyResult<PyGenerator> {
        let made = || -> Result<PyGenerator> {
            expect_names("Generator", &args, &["device"], 1)?;
            let on = args.args.first().or_else(|| args.kwargs.get("device"));
            match on.map(|object| device(object, vm)).transpose()?.flatten() {
                Some(Device::Cuda { .. }) => Err(raise(
                    "NotImplementedError",
                    "this course has no torch.Generator on a GPU: torch.manual_seed seeds the generators of all GPUs",
                )),
                _ => Ok(PyGenerator(Generator::new())),
            }
        };
        made().map_err(|fault| fault.into_exception(vm))
    }
}

#[pyclass(with(Constructor))]
impl PyGenerator {
    #[pymethod]
    fn manual_seed(zelf: PyRef<Self>, seed: i64) -> PyRef<Self> {
        zelf.0.manual_seed(seed as u64);
        zelf
    }

    #[pymethod]
    fn initial_seed(&self) -> u64 {
        self.0.initial_seed()
    }

    #[pymethod]
    fn seed(&self) -> u64 {
        self.0.seed()
    }

    #[pymethod]
    fn get_state(&self, vm: &VirtualMachine) -> PyResult {
        let state = self.0.get_state();
        let tensor = Tensor::from_slice(&state, &[state.len()]);
        tensor
            .map(|tensor| PyTensor::wrap(tensor, vm))
            .map_err(|error| crate::fault::Fault::from(error).into_exception(vm))
    }

    #[pymethod]
    fn set_state(&self, state: PyRef<PyTensor>, vm: &VirtualMachine) -> PyResult<()> {
        let set = || -> Result<()> { Ok(self.0.set_state(&state.get().to_vec::<u8>()?)?) };
        set().map_err(|fault| fault.into_exception(vm))
    }

    #[pygetset]
    fn device(&self, vm: &VirtualMachine) -> PyObjectRef {
        PyDevice::of(Device::Cpu).into_object(vm)
    }
}
