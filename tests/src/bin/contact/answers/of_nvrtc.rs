//! NVRTC's answers.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use super::ffi::Loaded;
use super::{of_driver, say};

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(Program, *mut c_char) -> c_int;

/// Sources of one kernel each, and what each tests.
const SOURCES: [(&str, &str); 6] = [
    ("an empty kernel", "extern \"C\" __global__ void nothing() {}"),
    ("a syntax error", "extern \"C\" __global__ void nothing() { int x = }"),
    ("two errors", "extern \"C\" __global__ void nothing() { a = 1; b = 2; }"),
    ("a warning", "extern \"C\" __global__ void nothing() { int unused; }"),
    ("a header that is not there", "#include \"missing.h\"\nextern \"C\" __global__ void nothing() {}"),
    ("a static assertion that fails", "static_assert(sizeof(int) == 8, \"as it says\");"),
];

pub fn ask(nvrtc: &Loaded, driver: &Loaded) {
    // SAFETY: these are the types of the functions, and there is room for their results.
    unsafe {
        let (mut major, mut minor, mut count) = (0, 0, 0);
        type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
        type Known = unsafe extern "C" fn(*mut c_int) -> c_int;
        if let Some(version) = nvrtc.get::<Version>("nvrtcVersion") {
            version(&mut major, &mut minor);
            say("nvrtc", "its version", &format!("{major}.{minor}"));
        }
        let mut known = Vec::new();
        if let (Some(how_many), Some(which)) =
            (nvrtc.get::<Known>("nvrtcGetNumSupportedArchs"), nvrtc.get::<Known>("nvrtcGetSupportedArchs"))
        {
            how_many(&mut count);
            known = vec![0; count.max(0) as usize];
            which(known.as_mut_ptr());
            say("nvrtc", "it compiles for", &format!("{known:?}"));
        }
        nvrtc.say_texts("nvrtcGetErrorString", &Vec::from_iter(0..=13));
        for (what, source) in SOURCES {
            compile(nvrtc, what, source, &["--gpu-architecture=sm_90"]);
        }
        let (what, empty) = SOURCES[0];
        compile(nvrtc, "an option that there is not", empty, &["--no-such-option"]);
        compile(nvrtc, "a card that there is not", empty, &["--gpu-architecture=sm_12"]);
        compile(nvrtc, "PTX", empty, &["--gpu-architecture=compute_80"]);
        // For this card, or the newest one that the compiler supports.
        let mut capability = [0, 0];
        type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        if let Some(attribute) = driver.get::<Attribute>("cuDeviceGetAttribute") {
            attribute(&mut capability[0], 75, 0);
            attribute(&mut capability[1], 76, 0);
        }
        let this = capability[0] * 10 + capability[1];
        let target = known.iter().copied().filter(|known| *known <= this).max().unwrap_or(this);
        let target = format!("--gpu-architecture=sm_{target}");
        if let Some(code) = compile(nvrtc, &format!("{what}, for this card"), empty, &[&target]) {
            of_driver::ask_with_module(driver, &code);
        }
    }
}

/// Compiles a source, prints the compiler's answers, and returns the machine code.
///
/// # Safety
/// The library is NVRTC or its stand-in.
unsafe fn compile(nvrtc: &Loaded, what: &str, source: &str, options: &[&str]) -> Option<Vec<u8>> {
    let (source, name) = (CString::new(source).ok()?, c"asked.cu");
    let options: Vec<CString> = options.iter().filter_map(|option| CString::new(*option).ok()).collect();
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: these are the types of the functions, all texts live until the end, and there is room for the results.
    unsafe {
        let create = nvrtc.get::<Create>("nvrtcCreateProgram")?;
        let run = nvrtc.get::<Compile>("nvrtcCompileProgram")?;
        let mut program = ptr::null_mut();
        let made = create(&mut program, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null());
        if made != 0 {
            say("nvrtc", what, &format!("no program: {made}"));
            return None;
        }
        let code = run(program, pointers.len() as c_int, pointers.as_ptr());
        let log = output(nvrtc, program, ["nvrtcGetProgramLogSize", "nvrtcGetProgramLog"]);
        let log = log.map_or_else(|code| format!("no log: {code}"), |log| text(&log));
        say("nvrtc", what, &format!("{code}, {log}"));
        let machine_code = output(nvrtc, program, ["nvrtcGetCUBINSize", "nvrtcGetCUBIN"]);
        let ptx = output(nvrtc, program, ["nvrtcGetPTXSize", "nvrtcGetPTX"]);
        let is_there = |output: &Result<Vec<u8>, c_int>| match output {
            Ok(bytes) if bytes.is_empty() => "none".to_owned(),
            Ok(_) => "yes".to_owned(),
            Err(code) => format!("error {code}"),
        };
        say("nvrtc", &format!("{what}: machine code"), &is_there(&machine_code));
        say("nvrtc", &format!("{what}: PTX"), &is_there(&ptx));
        if let Some(destroy) = nvrtc.get::<unsafe extern "C" fn(*mut Program) -> c_int>("nvrtcDestroyProgram")
        {
            destroy(&mut program);
        }
        machine_code.ok().filter(|code| !code.is_empty())
    }
}

/// The bytes that the compiler outputs, or its error code.
///
/// # Safety
/// The functions have these types, and the program has not been destroyed.
unsafe fn output(nvrtc: &Loaded, program: Program, functions: [&str; 2]) -> Result<Vec<u8>, c_int> {
    // SAFETY: by the contract; there is room for the number of bytes that it reports.
    unsafe {
        let size = nvrtc.get::<Size>(functions[0]).ok_or(-1)?;
        let get = nvrtc.get::<Get>(functions[1]).ok_or(-1)?;
        let mut bytes = 0;
        match size(program, &mut bytes) {
            0 => {}
            code => return Err(code),
        }
        let mut output = vec![0u8; bytes];
        match get(program, output.as_mut_ptr().cast()) {
            0 => Ok(output),
            code => Err(code),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}
