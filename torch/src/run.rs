//! Runs a program: an interpreter with our modules, and the traceback and the report of an error.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use rustpython_vm::builtins::PyBaseExceptionRef;
use rustpython_vm::compiler::Mode;
use rustpython_vm::{AsObject, Interpreter, PyObjectRef, PyResult, Settings, VirtualMachine};

use crate::{cuda, host, math, profiler, python_random, serialize, shared, torch_module, vision};

/// Where a program comes from.
pub enum Program {
    File(PathBuf),
    Text(String),
    Prompt,
}

thread_local! {
    static SCRIPT_FOLDER: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    static FOLDER: RefCell<PathBuf> = RefCell::new(std::env::current_dir().unwrap_or_default());
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// The folder of the script, whose other files it may import.
pub fn script_folder() -> Option<PathBuf> {
    SCRIPT_FOLDER.with_borrow(Option::clone)
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
    let (name, source) = match program {
        Program::File(path) => match std::fs::read_to_string(path) {
            Ok(source) => (path.display().to_string(), source),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return 2;
            }
        },
        Program::Text(text) => ("<string>".to_owned(), text.clone()),
        Program::Prompt => ("<stdin>".to_owned(), String::new()),
    };
    if let Program::File(path) = program {
        SCRIPT_FOLDER.set(Some(path.parent().map_or_else(PathBuf::new, Path::to_path_buf)));
    } else {
        SCRIPT_FOLDER.set(Some(PathBuf::new()));
    }
    let mut settings = Settings::default();
    settings.install_signal_handlers = false;
    settings.write_bytecode = false;
    settings.argv = [name.clone()].into_iter().chain(arguments.iter().cloned()).collect();
    let builder = Interpreter::builder(settings);
    let modules = [
        torch_module::module_def(&builder.ctx),
        cuda::module_def(&builder.ctx),
        host::module_def(&builder.ctx),
        math::module_def(&builder.ctx),
        profiler::module_def(&builder.ctx),
        python_random::module_def(&builder.ctx),
        serialize::module_def(&builder.ctx),
        vision::module_def(&builder.ctx),
    ];
    let interpreter = builder.add_native_modules(&modules).add_frozen_modules(library()).build();
    let status = interpreter.enter(|vm| {
        let ended = begin(vm).and_then(|()| match program {
            Program::Prompt => crate::prompt::run(vm),
            _ => execute(&name, &source, vm),
        });
        let status = match ended {
            Ok(()) => 0,
            Err(exception) => report(&exception, vm),
        };
        flush(vm);
        status
    });
    shared::clear();
    status
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

fn execute(name: &str, source: &str, vm: &VirtualMachine) -> PyResult<()> {
    let code = vm
        .compile(source, Mode::Exec, name.to_owned())
        .map_err(|error| vm.new_syntax_error(&error, Some(source)))?;
    let scope = vm.new_scope_with_main()?;
    scope.globals.set_item("__file__", vm.ctx.new_str(name).into(), vm)?;
    vm.run_code_obj(code, scope).map(drop)
}

/// Prints an exception that the program did not catch. `SystemExit` is none.
pub fn report(exception: &PyBaseExceptionRef, vm: &VirtualMachine) -> u8 {
    flush(vm);
    if exception.fast_isinstance(vm.ctx.exceptions.system_exit) {
        return exit_status(exception, vm);
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

/// A warning of the machine, as Python prints it.
pub fn warn(text: &str) {
    eprintln!("UserWarning: {}", in_python(text));
}

/// A report whose advice is written in Python: `s.wait_stream(t)`, not `s.wait_stream(&t)?`.
pub fn in_python(report: &str) -> String {
    report.replace("(&", "(").replace(")?`", ")`")
}
