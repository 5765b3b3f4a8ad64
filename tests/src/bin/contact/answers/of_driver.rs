//! The CUDA driver's answers.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use super::ffi::{Loaded, text};
use super::say;

type Pointer = u64;
type Malloc = unsafe extern "C" fn(*mut Pointer, usize) -> c_int;
type Free = unsafe extern "C" fn(Pointer) -> c_int;

/// The first GPU, with memory allocated on it.
pub struct Context {
    /// `BYTES` bytes on the GPU, aligned to 256.
    pub memory: Pointer,
}

impl Context {
    pub const BYTES: usize = 1 << 24;

    pub fn new(driver: &Loaded) -> Result<Context, String> {
        let (mut device, mut context, mut memory) = (0, ptr::null_mut(), 0);
        let missing = || "the driver lacks a function".to_owned();
        let is_well =
            |code: c_int| if code == 0 { Ok(()) } else { Err(format!("the driver answers {code}")) };
        // SAFETY: these are the types of the functions, and there is room for their results.
        unsafe {
            type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
            is_well(driver.get::<unsafe extern "C" fn(c_uint) -> c_int>("cuInit").ok_or_else(missing)?(0))?;
            let get = driver.get::<unsafe extern "C" fn(*mut c_int, c_int) -> c_int>("cuDeviceGet");
            is_well(get.ok_or_else(missing)?(&mut device, 0))?;
            is_well(driver.get::<Retain>("cuDevicePrimaryCtxRetain").ok_or_else(missing)?(
                &mut context,
                device,
            ))?;
            let set = driver.get::<unsafe extern "C" fn(*mut c_void) -> c_int>("cuCtxSetCurrent");
            is_well(set.ok_or_else(missing)?(context))?;
            is_well(driver.get::<Malloc>("cuMemAlloc_v2").ok_or_else(missing)?(&mut memory, Context::BYTES))?;
        }
        Ok(Context { memory })
    }
}

/// The device attributes that the crate queries, and some that explain times.
const ATTRIBUTES: [(&str, c_int); 9] = [
    ("threads in a block", 1),
    ("shared memory of a block", 8),
    ("clock in kHz", 13),
    ("multiprocessors", 16),
    ("clock of the memory in kHz", 36),
    ("width of the memory in bits", 37),
    ("bytes of L2", 38),
    ("copy engines", 40),
    ("shared memory of a block that asks for it", 97),
];

/// The errors that programs commonly get.
const ERRORS: [c_int; 20] =
    [0, 1, 2, 3, 4, 100, 101, 200, 201, 209, 218, 400, 500, 600, 700, 702, 710, 716, 719, 999];

pub fn ask(driver: &Loaded, context: &Context) {
    let number = |question: &str, code: c_int| say("driver", question, &code.to_string());
    // SAFETY: these are the types of the functions, and there is room for their results. The wrong pointers are only
    // compared with known ones.
    unsafe {
        if let Some(version) = driver.get::<unsafe extern "C" fn(*mut c_int) -> c_int>("cuDriverGetVersion") {
            let mut answer = 0;
            version(&mut answer);
            number("its CUDA", answer);
        }
        type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        if let Some(attribute) = driver.get::<Attribute>("cuDeviceGetAttribute") {
            for (name, which) in ATTRIBUTES {
                let mut answer = 0;
                let code = attribute(&mut answer, which, 0);
                let answer = if code == 0 { answer.to_string() } else { format!("error {code}") };
                say("driver", name, &answer);
            }
            number("an attribute that there is not", attribute(&mut 0, 100_000, 0));
            number("an attribute of a device that there is not", attribute(&mut 0, 1, 99));
        }
        type Name = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
        for function in ["cuGetErrorName", "cuGetErrorString"] {
            let Some(name) = driver.get::<Name>(function) else { continue };
            for error in ERRORS.into_iter().chain([12_345]) {
                let mut answer = ptr::null();
                let code = name(error, &mut answer);
                say("driver", &format!("{function}({error})"), &format!("{code}, {}", text(answer)));
            }
        }
        if let Some(malloc) = driver.get::<Malloc>("cuMemAlloc_v2") {
            number("memory of no bytes", malloc(&mut 0, 0));
            number("more memory than there is", malloc(&mut 0, 1 << 50));
        }
        if let Some(free) = driver.get::<Free>("cuMemFree_v2") {
            number("freeing what is no memory", free(4096));
            number("freeing the midst of memory", free(context.memory + 256));
            number("freeing nothing", free(0));
        }
        type ToDevice = unsafe extern "C" fn(Pointer, *const c_void, usize, *mut c_void) -> c_int;
        if let Some(copy) = driver.get::<ToDevice>("cuMemcpyHtoDAsync_v2") {
            let bytes = [0u8; 16];
            number("a copy of no bytes", copy(context.memory, bytes.as_ptr().cast(), 0, ptr::null_mut()));
        }
        type Create = unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int;
        type OfEvent = unsafe extern "C" fn(*mut c_void) -> c_int;
        type Elapsed = unsafe extern "C" fn(*mut f32, *mut c_void, *mut c_void) -> c_int;
        if let (Some(create), Some(query)) =
            (driver.get::<Create>("cuEventCreate"), driver.get::<OfEvent>("cuEventQuery"))
        {
            let mut events = [ptr::null_mut(); 2];
            number("an event", create(&mut events[0], 0));
            create(&mut events[1], 2); // With timing disabled.
            number("asking an event that was never recorded", query(events[0]));
            if let Some(elapsed) = driver.get::<Elapsed>("cuEventElapsedTime") {
                number(
                    "the time between events that were not recorded",
                    elapsed(&mut 0.0, events[0], events[0]),
                );
                number("the time of an event that has none", elapsed(&mut 0.0, events[1], events[1]));
            }
        }
        if let Some(query) = driver.get::<OfEvent>("cuStreamQuery") {
            number("asking a stream that has nothing to do", query(ptr::null_mut()));
        }
        type Load = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int;
        if let Some(load) = driver.get::<Load>("cuModuleLoadData") {
            let no_code = CString::new("this is no machine code").unwrap_or_default();
            number("a module of other bytes", load(&mut ptr::null_mut(), no_code.as_ptr().cast()));
        }
    }
}

/// The driver's answers about the machine code of an empty kernel named `nothing`.
pub fn ask_with_module(driver: &Loaded, code: &[u8]) {
    let number = |question: &str, code: c_int| say("nvrtc", question, &code.to_string());
    type Load = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int;
    type Find = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;
    type Launch = unsafe extern "C" fn(
        *mut c_void,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        *mut c_void,
        *mut *mut c_void,
        *mut *mut c_void,
    ) -> c_int;
    // SAFETY: as above.
    unsafe {
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        let Some(load) = driver.get::<Load>("cuModuleLoadData") else { return };
        let loaded = load(&mut module, code.as_ptr().cast());
        number("its code as a module", loaded);
        let Some(find) = driver.get::<Find>("cuModuleGetFunction").filter(|_| loaded == 0) else { return };
        number("a kernel that a module does not have", find(&mut function, module, c"missing".as_ptr()));
        let found = find(&mut function, module, c"nothing".as_ptr());
        number("a kernel that it has", found);
        let Some(launch) = driver.get::<Launch>("cuLaunchKernel").filter(|_| found == 0) else { return };
        let run = |question: &str, grid: [c_uint; 3], block: c_uint, shared: c_uint| {
            let (mut none, no_more) = ([ptr::null_mut(); 1], ptr::null_mut());
            let [x, y, z] = grid;
            let code =
                launch(function, x, y, z, block, 1, 1, shared, ptr::null_mut(), none.as_mut_ptr(), no_more);
            number(question, code);
        };
        run("a launch", [1, 1, 1], 32, 0);
        run("a launch of no blocks", [0, 1, 1], 32, 0);
        run("a launch of no threads", [1, 1, 1], 0, 0);
        run("a launch of 1025 threads a block", [1, 1, 1], 1025, 0);
        run("a launch of 65536 blocks in the second direction", [1, 65_536, 1], 32, 0);
        run("a launch with a mebibyte of shared memory", [1, 1, 1], 32, 1 << 20);
    }
}
