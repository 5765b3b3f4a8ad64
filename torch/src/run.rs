//! Runs a program: an interpreter with our modules, and the traceback and the report of an error.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustpython_vm::builtins::PyBaseExceptionRef;
use rustpython_vm::compiler::Mode;
use rustpython_vm::{AsObject, Interpreter, PyObjectRef, PyResult, Settings, VirtualMachine};

use crate::parcel::Parcel;
use crate::{
    cuda, distributed, host, interrupt, limits, math, processes, profiler, python_random, serialize, shared,
    torch_module, vision,
};

/// Where a program comes from.
pub enum Program {
    File(PathBuf),
    Text(String),
    Prompt,
}

/// A program and its arguments, for the interpreters that run it.
pub struct Source {
    pub name: String,
    pub text: String,
    /// The folder of the script, whose other files it may import.
    folder: PathBuf,
    arguments: Vec<String>,
}

thread_local! {
    static SOURCE: RefCell<Option<Arc<Source>>> = const { RefCell::new(None) };
    static FOLDER: RefCell<PathBuf> = RefCell::new(std::env::current_dir().unwrap_or_default());
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// The program that this thread runs.
pub fn source() -> Arc<Source> {
    SOURCE.with_borrow(Option::clone).expect("a program runs")
}

pub fn script_folder() -> Option<PathBuf> {
    SOURCE.with_borrow(|source| source.as_ref().map(|source| source.folder.clone()))
}

/// `os.getcwd()`
pub fn folder() -> PathBuf {
    FOLDER.with_borrow(PathBuf::clone)
}

pub fn set_folder(folder: PathBuf) {
    FOLDER.set(folder);
}

pub fn next_number() -> u64 {
    NUMBER.with(|number| number.replace(number.get() + 1))
}

/// Runs the program on the current machine. Returns its exit status.
pub fn run(program: &Program, arguments: &[String]) -> u8 {
    let (name, text, folder) = match program {
        Program::File(path) => match std::fs::read_to_string(path) {
            Ok(text) => {
                let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
                (path.display().to_string(), text, folder)
            }
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return 2;
            }
        },
        Program::Text(text) => ("<string>".to_owned(), text.clone(), PathBuf::new()),
        Program::Prompt => ("<stdin>".to_owned(), String::new(), PathBuf::new()),
    };
    let source = Arc::new(Source { name, text, folder, arguments: arguments.to_vec() });
    in_interpreter(&source, |vm| {
        let ended = match program {
            Program::Prompt => crate::prompt::run(vm),
            _ => execute(&source, vm),
        };
        // Other processes of this program go on until they end.
        let status = ended_with(ended.and_then(|()| wait_for_processes(vm)), vm);
        processes::leave((status != 0).then(|| "the program has ended with an error".to_owned()));
        Ok(status)
    })
}

/// Runs another process of the program, on this thread (`lib/_child.py`).
pub fn run_child(source: &Arc<Source>, parcel: &Parcel) -> u8 {
    in_interpreter(source, |vm| {
        vm.import("torch", 0)?; // The parcel may hold tensors.
        let run = vm.import("_child", 0)?.get_attr("run", vm)?;
        run.call((parcel.object(vm),), vm)?.try_into_value(vm)
    })
}

fn in_interpreter(source: &Arc<Source>, run: impl FnOnce(&VirtualMachine) -> PyResult<u8>) -> u8 {
    SOURCE.set(Some(source.clone()));
    let mut settings = Settings::default();
    settings.install_signal_handlers = false;
    settings.write_bytecode = false;
    settings.argv = [source.name.clone()].into_iter().chain(source.arguments.iter().cloned()).collect();
    let builder = Interpreter::builder(settings);
    let modules = [
        torch_module::module_def(&builder.ctx),
        cuda::module_def(&builder.ctx),
        distributed::module_def(&builder.ctx),
        host::module_def(&builder.ctx),
        math::module_def(&builder.ctx),
        processes::module_def(&builder.ctx),
        profiler::module_def(&builder.ctx),
        python_random::module_def(&builder.ctx),
        serialize::module_def(&builder.ctx),
        vision::module_def(&builder.ctx),
    ];
    let mut builder = builder.add_native_modules(&modules).add_frozen_modules(library());
    if !processes::is_child() {
        let interrupts = interrupt::in_interpreter();
        builder = builder.init_hook(move |vm| vm.set_user_signal_channel(interrupts));
    }
    let interpreter = builder.build();
    let status = interpreter.enter(|vm| {
        let status = match begin(vm).and_then(|()| run(vm)) {
            Ok(status) => status,
            Err(exception) => report(&exception, vm),
        };
        flush(vm);
        status
    });
    shared::clear();
    status
}

fn ended_with(ended: PyResult<()>, vm: &VirtualMachine) -> u8 {
    ended.map_or_else(|exception| report(&exception, vm), |()| 0)
}

/// Waits for the processes that the program has started, if it has started any.
fn wait_for_processes(vm: &VirtualMachine) -> PyResult<()> {
    let modules = vm.sys_module.get_attr("modules", vm)?;
    match modules.get_item("torch.multiprocessing", vm) {
        Ok(multiprocessing) => multiprocessing.get_attr("_wait_for_all", vm)?.call((), vm).map(drop),
        Err(_) => Ok(()),
    }
}

/// The modules of `lib/` and the chosen files of Python's library, as bytecode.
fn library() -> impl IntoIterator<Item = (&'static str, rustpython_vm::frozen::FrozenModule)> {
    include!(concat!(env!("OUT_DIR"), "/library.rs")).into_iter()
}

/// What has to be done before any program: `lib/_start.py`.
fn begin(vm: &VirtualMachine) -> PyResult<()> {
    crate::float::install(vm);
    vm.import("_start", 0).map(drop)
}

fn execute(source: &Source, vm: &VirtualMachine) -> PyResult<()> {
    let code = vm
        .compile(&source.text, Mode::Exec, source.name.clone())
        .map_err(|error| vm.new_syntax_error(&error, Some(&source.text)))?;
    let scope = vm.new_scope_with_main()?;
    scope.globals.set_item("__file__", vm.ctx.new_str(&*source.name).into(), vm)?;
    vm.run_code_obj(code, scope).map(drop)
}

/// Prints an exception that the program did not catch. `SystemExit` is none.
pub fn report(exception: &PyBaseExceptionRef, vm: &VirtualMachine) -> u8 {
    flush(vm);
    if exception.fast_isinstance(vm.ctx.exceptions.system_exit) {
        return exit_status(exception, vm);
    }
    if exception.fast_isinstance(vm.ctx.exceptions.keyboard_interrupt) {
        let place = crate::place::of_traceback(exception);
        let text =
            format!("KeyboardInterrupt{}\n", place.map(|place| format!(" at {place}")).unwrap_or_default());
        let written =
            vm.sys_module.get_attr("stderr", vm).and_then(|to| vm.call_method(&to, "write", (text,)));
        drop(written);
        flush(vm);
        return limits::INTERRUPTED;
    }
    let printed = vm.import("_errors", 0).and_then(|errors| {
        let print = errors.get_attr("print_exception", vm)?;
        print.call((exception.clone(),), vm)
    });
    if let Err(error) = printed {
        let mut text = String::new();
        let _ = vm.write_exception(&mut text, exception);
        let _ = vm.write_exception(&mut text, &error);
        eprint!("{text}");
    }
    1
}

fn exit_status(exception: &PyBaseExceptionRef, vm: &VirtualMachine) -> u8 {
    let code: Option<PyObjectRef> = exception.as_object().get_attr("code", vm).ok();
    match code {
        None => 0,
        Some(code) if vm.is_none(&code) => 0,
        Some(code) => match crate::arguments::int(&code, vm) {
            Some(status) => status as u8,
            None => {
                eprintln!("{}", code.str(vm).map(|text| text.to_string()).unwrap_or_default());
                1
            }
        },
    }
}

pub fn flush(vm: &VirtualMachine) {
    if let Ok(stdout) = vm.sys_module.get_attr("stdout", vm) {
        let _ = vm.call_method(&stdout, "flush", ());
    }
}

/// Passes a warning of the machine to Python's `warnings`.
pub fn warn(text: &str) {
    let text = in_python(text);
    let is_running = SOURCE.with_borrow(Option::is_some);
    let warned = is_running.then(|| {
        rustpython_vm::vm::thread::with_current_vm(|vm| {
            vm.import("warnings", 0)?.get_attr("warn", vm)?.call((text.clone(),), vm).map(drop)
        })
    });
    if !matches!(warned, Some(Ok(()))) {
        eprintln!("UserWarning: {text}");
    }
}

/// A report whose advice is written in Python: `s.wait_stream(t)`, not `s.wait_stream(&t)?`.
pub fn in_python(report: &str) -> String {
    report.replace("(&", "(").replace(")?`", ")`")
}
