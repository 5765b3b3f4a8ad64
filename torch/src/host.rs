//! The module `_host`: the machine's clock, files of the course's choice, and the standard streams.

pub(crate) use _host::module_def;

#[rustpython_vm::pymodule]
mod _host {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use rustpython_vm::{PyObjectRef, PyResult, VirtualMachine};
    use todevice::time::Instant;

    use crate::run;

    /// Seconds of the machine's clock, which is modelled if its GPUs are simulated.
    #[pyfunction]
    fn now() -> f64 {
        thread_local! { static START: Instant = Instant::now(); }
        START.with(|start| start.elapsed().as_secs_f64())
    }

    /// Seconds of the real clock, for `time.time`.
    #[pyfunction]
    fn real_time() -> f64 {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0.0, |time| time.as_secs_f64())
    }

    #[pyfunction]
    fn sleep(seconds: f64, vm: &VirtualMachine) -> PyResult<()> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) => Ok(todevice::time::sleep(time)),
            Err(_) => Err(vm.new_value_error("sleep length must be non-negative".to_owned())),
        }
    }

    /// Seconds that the cores have worked for this program.
    #[pyfunction]
    fn process_time() -> f64 {
        todevice::monitor::host().cpu_time.map_or(0.0, |time| time.as_secs_f64())
    }

    /// The source of a module or a package beside the script, its path, and whether it is a package.
    #[pyfunction]
    fn module_source(name: String) -> Option<(String, String, bool)> {
        if !name.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '.') {
            return None;
        }
        let module = run::script_folder()?.join(name.replace('.', "/"));
        [(module.join("__init__.py"), true), (module.with_extension("py"), false)].into_iter().find_map(
            |(path, is_package)| {
                Some((std::fs::read_to_string(&path).ok()?, path.display().to_string(), is_package))
            },
        )
    }

    #[pyfunction]
    fn environment(vm: &VirtualMachine) -> PyResult<PyObjectRef> {
        let dict = vm.ctx.new_dict();
        [
            "CUBLAS_WORKSPACE_CONFIG",
            "CUDA_LAUNCH_BLOCKING",
            "PYTORCH_CUDA_ALLOC_CONF",
            "PYTORCH_ALLOC_CONF",
            "HOME",
        ]
        .into_iter()
        .filter_map(|name| Some((name, std::env::var(name).ok()?)))
        .try_for_each(|(name, value)| dict.set_item(name, vm.ctx.new_str(value).into(), vm))?;
        Ok(dict.into())
    }

    /// A variable of the environment that CUDA or PyTorch reads.
    #[pyfunction]
    fn set_variable(name: String, value: String, vm: &VirtualMachine) -> PyResult<()> {
        crate::tensor::in_python(vm, || match name.as_str() {
            "CUDA_LAUNCH_BLOCKING" if todevice::cuda::is_available() => {
                Ok(todevice::cuda::set_launch_blocking(value != "0")?)
            }
            "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF" => {
                Ok(todevice::cuda::set_allocator_settings(&value)?)
            }
            "CUDA_VISIBLE_DEVICES" => Err(crate::fault::raise(
                "NotImplementedError",
                "CUDA_VISIBLE_DEVICES cannot be set by the program here: choose the GPUs with --gpu",
            )),
            _ => Ok(()),
        })
    }

    /// Runs this interpreter on another program, and returns its exit status.
    #[pyfunction]
    fn run_self(
        arguments: rustpython_vm::function::ArgIterable<String>,
        vm: &VirtualMachine,
    ) -> PyResult<i32> {
        let arguments = arguments.iter(vm)?.collect::<PyResult<Vec<String>>>()?;
        run::flush(vm);
        let status = std::env::current_exe().and_then(|program| {
            let gpus = todevice::Machine::current().gpus().to_string();
            std::process::Command::new(program).args(["--child", "--gpu", &gpus]).args(arguments).status()
        });
        status.map(|status| status.code().unwrap_or(1)).map_err(|error| vm.new_os_error(error.to_string()))
    }

    // Files. A program may write to the folder that it was started in, and to temporary ones.

    #[pyfunction]
    fn getcwd() -> String {
        run::folder().display().to_string()
    }

    #[pyfunction]
    fn chdir(path: String, vm: &VirtualMachine) -> PyResult<()> {
        let path = resolved(&path);
        match path.is_dir() {
            true => Ok(run::set_folder(path)),
            false => Err(vm
                .new_os_subtype_error(
                    vm.ctx.exceptions.file_not_found_error.to_owned(),
                    None,
                    format!("[Errno 2] No such file or directory: '{}'", path.display()),
                )
                .upcast()),
        }
    }

    #[pyfunction]
    fn mkdtemp(prefix: String, vm: &VirtualMachine) -> PyResult<String> {
        let base = std::env::temp_dir();
        let unique = format!("{prefix}{:x}-{:x}", std::process::id(), run::next_number());
        let path = base.join(unique);
        std::fs::create_dir(&path).map_err(|error| failed(&path, &error, vm))?;
        Ok(path.display().to_string())
    }

    #[pyfunction]
    fn rmtree(path: String) {
        // Only what `mkdtemp` has made.
        let path = PathBuf::from(path);
        if path.starts_with(std::env::temp_dir()) && path != std::env::temp_dir() {
            let _ = std::fs::remove_dir_all(path);
        }
    }

    #[pyfunction]
    fn read_file(path: String, vm: &VirtualMachine) -> PyResult<PyObjectRef> {
        let path = resolved(&path);
        let bytes = std::fs::read(&path).map_err(|error| failed(&path, &error, vm))?;
        Ok(vm.ctx.new_bytes(bytes).into())
    }

    #[pyfunction]
    fn write_file(
        path: String,
        data: rustpython_vm::function::ArgBytesLike,
        append: bool,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        use std::io::Write;
        let path = resolved(&path);
        let data = data.borrow_buf();
        let written = match append {
            true => std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(&path)
                .and_then(|mut file| file.write_all(&data)),
            false => std::fs::write(&path, &data[..]),
        };
        written.map_err(|error| failed(&path, &error, vm))
    }

    #[pyfunction]
    fn file_size(path: String) -> Option<u64> {
        std::fs::metadata(resolved(&path)).ok().map(|data| data.len())
    }

    #[pyfunction]
    fn is_dir(path: String) -> bool {
        resolved(&path).is_dir()
    }

    #[pyfunction]
    fn makedirs(path: String, vm: &VirtualMachine) -> PyResult<()> {
        let path = resolved(&path);
        std::fs::create_dir_all(&path).map_err(|error| failed(&path, &error, vm))
    }

    #[pyfunction]
    fn remove(path: String, vm: &VirtualMachine) -> PyResult<()> {
        let path = resolved(&path);
        std::fs::remove_file(&path).map_err(|error| failed(&path, &error, vm))
    }

    #[pyfunction]
    fn listdir(path: String, vm: &VirtualMachine) -> PyResult<PyObjectRef> {
        let path = resolved(&path);
        let entries = std::fs::read_dir(&path).map_err(|error| failed(&path, &error, vm))?;
        let names = entries
            .flatten()
            .map(|entry| vm.ctx.new_str(entry.file_name().to_string_lossy().into_owned()).into());
        Ok(vm.ctx.new_list(names.collect()).into())
    }

    fn resolved(path: &str) -> PathBuf {
        run::folder().join(path)
    }

    fn failed(
        path: &Path,
        error: &std::io::Error,
        vm: &VirtualMachine,
    ) -> rustpython_vm::builtins::PyBaseExceptionRef {
        let class = match error.kind() {
            std::io::ErrorKind::NotFound => vm.ctx.exceptions.file_not_found_error,
            std::io::ErrorKind::PermissionDenied => vm.ctx.exceptions.permission_error,
            std::io::ErrorKind::IsADirectory => vm.ctx.exceptions.is_a_directory_error,
            _ => vm.ctx.exceptions.os_error,
        };
        let text = match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("[Errno 2] No such file or directory: '{}'", path.display())
            }
            _ => format!("{error}: '{}'", path.display()),
        };
        vm.new_os_subtype_error(class.to_owned(), None, text).upcast()
    }

    /// A report whose advice is written in Python.
    #[pyfunction]
    fn in_python(report: String) -> String {
        run::in_python(&report)
    }

    /// The bits of a number, rounded to so many bytes.
    #[pyfunction]
    fn float_bits(value: f64, size: usize) -> u64 {
        match size {
            2 => todevice::f16::from_f64(value).to_bits().into(),
            4 => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        }
    }

    #[pyfunction]
    fn float_of_bits(bits: u64, size: usize) -> f64 {
        match size {
            2 => todevice::f16::from_bits(bits as u16).to_f64(),
            4 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        }
    }

    /// The table of `nvidia-smi`, as the simulated card would show it.
    #[pyfunction]
    fn nvidia_smi(vm: &VirtualMachine) -> PyResult<Option<String>> {
        crate::tensor::in_python(vm, || {
            let count = todevice::cuda::device_count();
            let gpus = (0..count).map(todevice::monitor::gpu).collect::<todevice::Result<Vec<_>>>()?;
            Ok((count > 0).then(|| drawing::smi::table(&gpus)))
        })
    }
}
