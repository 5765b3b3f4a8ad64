//! Compiles and runs a CUDA program with g++.

use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The headers that replace CUDA's.
const WHOLE: &str = include_str!("whole_programs.h");
const KERNELS: &str = include_str!("../../../../tests/fake_cuda/cuda_on_host.h");
const HALVES: &str = include_str!("../../../../tests/fake_cuda/halves.h");
const NAMES: [&str; 8] = [
    "cuda_profiler_api.h",
    "cuda_runtime.h",
    "cuda.h",
    "device_launch_parameters.h",
    "cuda_runtime_api.h",
    "math_constants.h",
    "device_functions.h",
    "vector_types.h",
];
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
/// The maximum processor time, and the maximum time on a busy machine.
const MOST_SECONDS: u64 = 5;
const MOST_TIME: Duration = Duration::from_secs(60);
const MOST_OUTPUT: u64 = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
pub struct Output {
    pub text: String,
    /// -1 if a signal ended the program.
    pub code: i32,
    pub has_launched: bool,
    /// Whether it reads its input, or leaves files.
    pub has_files: bool,
}

/// The folder with the headers that replace CUDA's. The largest is compiled once.
pub struct Gpp {
    headers: PathBuf,
}

impl Gpp {
    pub fn new() -> Result<Gpp, String> {
        let headers = std::env::temp_dir().join(format!("learners_{}", std::process::id()));
        std::fs::create_dir_all(&headers).map_err(trouble)?;
        let write = |name: &str, text: &str| std::fs::write(headers.join(name), text).map_err(trouble);
        write("whole_programs.h", WHOLE)?;
        write("cuda_on_host.h", KERNELS)?;
        write("halves.h", HALVES)?;
        for name in NAMES {
            write(name, "")?;
        }
        let header = headers.join("whole_programs.h");
        compiled(compiler().args(["-x", "c++-header"]).arg(&header))?;
        Ok(Gpp { headers })
    }

    /// Runs a program twice, to see whether it always prints the same.
    pub fn run_twice(&self, folders: &[PathBuf], text: &str) -> Result<[Output; 2], String> {
        self.with_program(folders, text, "uninitialized", |place| Ok([run(place)?, run(place)?]))
    }

    /// Whether the program prints something else if its variables start with other values.
    pub fn reads_uninitialised(&self, folders: &[PathBuf], text: &str) -> Result<bool, String> {
        let zero = self.with_program(folders, text, "zero", run)?;
        let pattern = self.with_program(folders, text, "pattern", run)?;
        Ok(zero != pattern)
    }

    /// Compiles a program, and does something with the folder that it is in.
    fn with_program<T>(
        &self,
        folders: &[PathBuf],
        text: &str,
        variables: &str,
        act: impl Fn(&Path) -> Result<T, String>,
    ) -> Result<T, String> {
        let place = self.headers.join("program");
        let result = self.made(&place, folders, text, variables).and_then(|()| act(&place));
        let _ = std::fs::remove_dir_all(&place);
        result
    }

    fn made(&self, place: &Path, folders: &[PathBuf], text: &str, variables: &str) -> Result<(), String> {
        std::fs::create_dir_all(place).map_err(trouble)?;
        let write = |name: &str, text: &str| std::fs::write(place.join(name), text).map_err(trouble);
        // The program's own headers have launches, too.
        for file in folders.iter().rev().flat_map(std::fs::read_dir).flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let is_source = [".h", ".cuh", ".cu", ".hpp"].iter().any(|known| name.ends_with(known));
            if let (true, Ok(text)) = (is_source, std::fs::read_to_string(file.path())) {
                write(&name, &rewritten(&text))?;
            }
        }
        write("program.cpp", &format!("#line 1 \"program.cu\"\n{}", rewritten(text)))?;
        compiled(
            compiler()
                .arg(format!("-ftrivial-auto-var-init={variables}"))
                .arg("-include")
                .arg(self.headers.join("whole_programs.h"))
                .args(["-I".as_ref(), place.as_os_str()])
                .args(["-I".as_ref(), self.headers.as_os_str()])
                .args(folders.iter().flat_map(|folder| ["-I".as_ref(), folder.as_os_str()]))
                .arg("-o")
                .arg(place.join("program"))
                .arg(place.join("program.cpp")),
        )
    }
}

impl Drop for Gpp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.headers);
    }
}

fn trouble(trouble: std::io::Error) -> String {
    trouble.to_string()
}

fn compiler() -> Command {
    let mut compiler = Command::new(std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned()));
    compiler.args(["-std=c++17", "-O1", "-frounding-math", "-ffp-contract=off", "-fpermissive", "-w"]);
    compiler
}

fn compiled(compiler: &mut Command) -> Result<(), String> {
    let made = compiler.output().map_err(trouble)?;
    if made.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&made.stderr);
    let first = errors.lines().find(|line| line.contains("error")).unwrap_or("g++ failed");
    Err(first.trim().to_owned())
}

fn run(place: &Path) -> Result<Output, String> {
    let script =
        format!("ulimit -v 4000000; ulimit -t {MOST_SECONDS}; exec {} 2>&1", place.join("program").display());
    // The file's position tells whether the program reads.
    let typed = place.join("typed");
    std::fs::write(&typed, "1\n").map_err(trouble)?;
    let mut input = std::fs::File::open(&typed).map_err(trouble)?;
    let files = || std::fs::read_dir(place).map_or(0, |files| files.count());
    let before = files();
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place)
        .stdin(input.try_clone().map_err(trouble)?)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(trouble)?;
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            let _ = output.take(MOST_OUTPUT).read_to_end(&mut bytes);
        }
        bytes
    });
    let code = waited(&mut child)?;
    let bytes = reader.join().unwrap_or_default();
    let has_launched = std::fs::remove_file(place.join("launched")).is_ok();
    let has_files = input.stream_position().map_err(trouble)? > 0 || files() > before;
    Ok(Output { text: String::from_utf8_lossy(&bytes).into_owned(), code, has_launched, has_files })
}

fn waited(child: &mut Child) -> Result<i32, String> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(trouble)? {
            return match status.signal() {
                Some(SIGKILL | SIGXCPU) => Err(too_long()),
                _ => Ok(status.code().unwrap_or(-1)),
            };
        }
        if start.elapsed() > MOST_TIME {
            let _ = child.kill();
            let _ = child.wait();
            return Err(too_long());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn too_long() -> String {
    format!("it takes more than {MOST_SECONDS} s with g++")
}

/// Rewrites the parts that are not C++: launches and dynamic shared memory.
fn rewritten(text: &str) -> String {
    let mut text = text.replace("<< <", "<<<").replace("> >>", ">>>").replace(">> >", ">>>");
    text = text.replace("static __shared__", "__shared__");
    let mut from = 0;
    while let Some(found) = text[from..].find("<<<") {
        let at = from + found;
        let Some(launch) = Launch::at(&text, at) else {
            from = at + 3;
            continue;
        };
        let made = format!(
            "whole::Launch({}) ->* [&] {{ {}({}); }}",
            &text[at + 3..launch.config_end],
            &text[launch.name..at],
            &text[launch.arguments + 1..launch.end - 1]
        );
        text.replace_range(launch.name..launch.end, &made);
        from = launch.name + 15;
    }
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        out.push_str(&dynamic(line).unwrap_or_else(|| line.to_owned()));
    }
    out
}

/// The positions of a launch: its name, the end of `<<<…`, the parenthesis of the arguments, and the end.
struct Launch {
    name: usize,
    config_end: usize,
    arguments: usize,
    end: usize,
}

impl Launch {
    fn at(text: &str, at: usize) -> Option<Launch> {
        let bytes = text.as_bytes();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
        let mut name = text[..at].trim_end().len();
        if bytes[..name].ends_with(b">") {
            let mut depth = 0;
            while name > 0 {
                name -= 1;
                match bytes[name] {
                    b'>' => depth += 1,
                    b'<' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            name = text[..name].trim_end().len();
        }
        while name > 0 && is_name(bytes[name - 1]) {
            name -= 1;
        }
        let config_end = at + 3 + text[at + 3..].find(">>>")?;
        let arguments = config_end + 3 + text[config_end + 3..].find('(')?;
        let mut depth = 0;
        for (i, byte) in bytes.iter().enumerate().skip(arguments) {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(Launch { name, config_end, arguments, end: i + 1 });
            }
        }
        None
    }
}

/// `extern __shared__ T name[];` becomes a pointer.
fn dynamic(line: &str) -> Option<String> {
    let at = line.find("extern")?;
    let (before, rest) = line.split_at(at);
    let rest = rest.strip_prefix("extern")?.trim_start().strip_prefix("__shared__")?;
    let (declaration, after) = rest.split_once("[]")?;
    let declaration = declaration.trim();
    let name = declaration.rfind(|c: char| !(c.is_alphanumeric() || c == '_'))? + 1;
    let (ty, name) = (declaration[..name].trim(), &declaration[name..]);
    let ty = if ty.starts_with("__align__") { ty.split_once(')')?.1.trim() } else { ty };
    Some(format!("{before}{ty} *{name} = ({ty} *)whole::dynamic{after}"))
}
