//! The module `_distributed`: process groups, collectives and averaged gradients. `lib/torch/distributed` completes it.

pub(crate) use _distributed::module_def;

#[rustpython_vm::pymodule]
mod _distributed {
    use std::time::Duration;

    use rustpython_vm::function::ArgIterable;
    use rustpython_vm::{PyObjectRef, PyPayload, PyRef, PyResult, VirtualMachine, pyclass};
    use todevice::Tensor;
    use todevice::distributed::{
        self as dist, CollectiveOptions, DistributedDataParallelOptions, InitOptions, ProcessGroup, ReduceOp,
        Work,
    };
    use todevice::interpreter::DistributedModel;

    use crate::fault::raise;
    use crate::tensor::{PyTensor, in_python};

    type Operand = PyRef<PyTensor>;
    type Group = Option<PyRef<PyGroup>>;

    #[pyattr]
    #[pyclass(module = "torch.distributed", name = "ProcessGroup")]
    #[derive(Debug, PyPayload)]
    pub struct PyGroup(ProcessGroup);

    #[pyclass]
    impl PyGroup {
        #[pymethod]
        fn size(&self) -> usize {
            self.0.size()
        }

        /// This rank's place in the group, or -1.
        #[pymethod]
        fn rank(&self) -> i64 {
            self.0.rank().map_or(-1, |rank| rank as i64)
        }

        /// The ranks of its members.
        #[pymethod]
        fn ranks(&self, vm: &VirtualMachine) -> Vec<PyObjectRef> {
            self.0.ranks().iter().map(|rank| vm.ctx.new_int(*rank).into()).collect()
        }
    }

    #[pyattr]
    #[pyclass(module = "torch.distributed", name = "Work")]
    #[derive(Debug, PyPayload)]
    pub struct PyWork(Work);

    #[pyclass]
    impl PyWork {
        #[pymethod]
        fn wait(&self, vm: &VirtualMachine) -> PyResult<bool> {
            in_python(vm, || {
                self.0.wait()?;
                Ok(true)
            })
        }

        #[pymethod]
        fn is_completed(&self, vm: &VirtualMachine) -> PyResult<bool> {
            in_python(vm, || Ok(self.0.is_completed()?))
        }
    }

    #[pyfunction]
    fn init(backend: String, seconds: Option<f64>, vm: &VirtualMachine) -> PyResult<()> {
        in_python(vm, || {
            let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            Ok(dist::init_process_group((&*backend, InitOptions { timeout }))?)
        })
    }

    #[pyfunction]
    fn is_initialized() -> bool {
        dist::is_initialized()
    }

    #[pyfunction]
    fn destroy(vm: &VirtualMachine) -> PyResult<()> {
        in_python(vm, || Ok(dist::destroy_process_group()?))
    }

    #[pyfunction]
    fn rank(vm: &VirtualMachine) -> PyResult<usize> {
        in_python(vm, || Ok(dist::get_rank()?))
    }

    #[pyfunction]
    fn world_size(vm: &VirtualMachine) -> PyResult<usize> {
        in_python(vm, || Ok(dist::get_world_size()?))
    }

    #[pyfunction]
    fn new_group(ranks: ArgIterable<usize>, vm: &VirtualMachine) -> PyResult {
        let ranks = ranks.iter(vm)?.collect::<PyResult<Vec<usize>>>()?;
        in_python(vm, || Ok(PyGroup(dist::new_group(&ranks)?).into_pyobject(vm)))
    }

    fn options(group: &Group, async_op: bool) -> CollectiveOptions {
        CollectiveOptions { group: group.as_ref().map(|group| group.0.clone()), async_op }
    }

    fn op_named(name: &str) -> crate::fault::Result<ReduceOp> {
        match name {
            "SUM" => Ok(ReduceOp::Sum),
            "AVG" => Ok(ReduceOp::Avg),
            "MAX" => Ok(ReduceOp::Max),
            "MIN" => Ok(ReduceOp::Min),
            other => Err(raise(
                "NotImplementedError",
                format!(
                    "ReduceOp.{other} is not here: PyTorch has it, this course does not; SUM, AVG, MIN and MAX exist"
                ),
            )),
        }
    }

    #[pyfunction]
    fn all_reduce(
        tensor: Operand,
        op: String,
        group: Group,
        async_op: bool,
        vm: &VirtualMachine,
    ) -> PyResult {
        in_python(vm, || {
            let work = dist::all_reduce(&tensor.get(), (op_named(&op)?, options(&group, async_op)))?;
            Ok(PyWork(work).into_pyobject(vm))
        })
    }

    #[pyfunction]
    fn broadcast(tensor: Operand, src: usize, group: Group, async_op: bool, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || {
            let work = dist::broadcast(&tensor.get(), (src, options(&group, async_op)))?;
            Ok(PyWork(work).into_pyobject(vm))
        })
    }

    #[pyfunction]
    fn all_gather_into_tensor(
        output: Operand,
        input: Operand,
        group: Group,
        async_op: bool,
        vm: &VirtualMachine,
    ) -> PyResult {
        in_python(vm, || {
            let work = dist::all_gather_into_tensor(&output.get(), &input.get(), options(&group, async_op))?;
            Ok(PyWork(work).into_pyobject(vm))
        })
    }

    #[pyfunction]
    fn reduce_scatter(
        output: Operand,
        inputs: ArgIterable<Operand>,
        op: String,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        let inputs = inputs.iter(vm)?.collect::<PyResult<Vec<Operand>>>()?;
        in_python(vm, || {
            let inputs: Vec<Tensor> = inputs.iter().map(|input| input.get()).collect();
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            Ok(dist::reduce_scatter(&output.get(), &inputs, op_named(&op)?)?)
        })
    }

    #[pyfunction]
    fn reduce_scatter_tensor(
        output: Operand,
        input: Operand,
        op: String,
        group: Group,
        async_op: bool,
        vm: &VirtualMachine,
    ) -> PyResult {
        in_python(vm, || {
            let (output, input, op) = (output.get(), input.get(), op_named(&op)?);
            let work = dist::reduce_scatter_tensor(&output, &input, op, options(&group, async_op))?;
            Ok(PyWork(work).into_pyobject(vm))
        })
    }

    #[pyfunction]
    fn barrier(vm: &VirtualMachine) -> PyResult<()> {
        in_python(vm, || Ok(dist::barrier()?))
    }

    #[pyfunction]
    fn isend(tensor: Operand, dst: usize, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || Ok(PyWork(dist::isend(&tensor.get(), dst)?).into_pyobject(vm)))
    }

    #[pyfunction]
    fn irecv(tensor: Operand, src: usize, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || Ok(PyWork(dist::irecv(&tensor.get(), src)?).into_pyobject(vm)))
    }

    /// The averaging of a model's gradients.
    #[pyattr]
    #[pyclass(module = "torch.distributed", name = "_Averaging")]
    #[derive(PyPayload)]
    pub struct PyAveraging(DistributedModel);

    impl std::fmt::Debug for PyAveraging {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("PyAveraging")
        }
    }

    fn named(
        names: &ArgIterable<String>,
        tensors: &ArgIterable<Operand>,
        vm: &VirtualMachine,
    ) -> PyResult<Vec<(String, Tensor)>> {
        names.iter(vm)?.zip(tensors.iter(vm)?).map(|(name, tensor)| Ok((name?, tensor?.get()))).collect()
    }

    #[pyfunction]
    fn averaging(
        parameters: (ArgIterable<String>, ArgIterable<Operand>),
        buffers: (ArgIterable<String>, ArgIterable<Operand>),
        group: Group,
        bucket_cap_mb: Option<f64>,
        broadcast_buffers: bool,
        find_unused_parameters: bool,
        vm: &VirtualMachine,
    ) -> PyResult {
        let parameters = named(&parameters.0, &parameters.1, vm)?;
        let buffers = named(&buffers.0, &buffers.1, vm)?;
        in_python(vm, || {
            let options = DistributedDataParallelOptions {
                process_group: group.map(|group| group.0.clone()),
                bucket_cap_mb,
                broadcast_buffers,
                find_unused_parameters,
            };
            Ok(PyAveraging(DistributedModel::new(parameters, buffers, options)?).into_pyobject(vm))
        })
    }

    #[pyclass]
    impl PyAveraging {
        #[pymethod]
        fn set_sync(&self, sync: bool) -> bool {
            self.0.set_sync(sync)
        }

        /// The bytes of each bucket.
        #[pymethod]
        fn buckets(&self, vm: &VirtualMachine) -> Vec<PyObjectRef> {
            self.0.buckets().into_iter().map(|(bytes, _)| vm.ctx.new_int(bytes).into()).collect()
        }

        #[pymethod]
        fn before_forward(&self, buffers: ArgIterable<Operand>, vm: &VirtualMachine) -> PyResult<bool> {
            let buffers = buffers.iter(vm)?.map(|buffer| Ok(buffer?.get())).collect::<PyResult<_>>()?;
            in_python(vm, || Ok(self.0.before_forward(buffers)?))
        }

        #[pymethod]
        fn after_forward(
            &self,
            averages: bool,
            outputs: ArgIterable<PyObjectRef>,
            vm: &VirtualMachine,
        ) -> PyResult<()> {
            let outputs = outputs.iter(vm)?.collect::<PyResult<Vec<PyObjectRef>>>()?;
            in_python(vm, || {
                let outputs: Vec<Tensor> = outputs
                    .iter()
                    .filter_map(|output| output.downcast_ref::<PyTensor>().map(|output| output.get()))
                    .collect();
                Ok(self.0.after_forward(averages, &outputs.iter().collect::<Vec<_>>())?)
            })
        }
    }
}
