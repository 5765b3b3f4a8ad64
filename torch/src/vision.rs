//! The module `_vision`: the course's own pictures, in place of those that `torchvision` would fetch.

pub(crate) use _vision::module_def;

#[rustpython_vm::pymodule]
mod _vision {
    use rustpython_vm::{PyPayload, PyResult, VirtualMachine, pyclass};
    use todevice::data::Dataset;
    use todevice::data::vision::{Images, SyntheticOptions, Transform};

    use crate::tensor::{PyTensor, in_python};

    #[pyattr]
    #[pyclass(module = "_vision", name = "Pictures")]
    #[derive(PyPayload)]
    struct Pictures(Images);

    impl std::fmt::Debug for Pictures {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Pictures")
        }
    }

    #[pyclass]
    impl Pictures {
        /// A picture as bytes, and its class.
        #[pymethod]
        fn get(&self, index: usize, vm: &VirtualMachine) -> PyResult {
            in_python(vm, || {
                let (picture, class) = self.0.get(index)?;
                Ok(vm.ctx.new_tuple(vec![PyTensor::wrap(picture, vm), vm.ctx.new_int(class).into()]).into())
            })
        }
    }

    #[pyfunction]
    fn pictures(
        len: usize,
        channels: usize,
        height: usize,
        width: usize,
        seed: u64,
        vm: &VirtualMachine,
    ) -> PyResult<Pictures> {
        let options = SyntheticOptions { len, shape: [channels, height, width], seed };
        in_python(vm, || Ok(Pictures(Images::synthetic(options)?.with_transform(Transform::Raw)?)))
    }
}
