//! Runs processes with limits: the compiler, and the program with the student's code.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Resource limits, which apply to a process and to each of its children.
#[derive(Clone, Copy)]
pub struct Limits {
    /// CPU time in seconds.
    pub cpu: u64,
    /// Wall-clock time in seconds.
    pub wall: u64,
    /// MiB of memory.
    pub memory: u64,
    /// Size of each written file, and total size of its folder, in MiB.
    pub disk: u64,
    /// Bytes of output that are kept.
    pub printed: u64,
}

/// A process that has ended.
pub struct Finished {
    pub printed: String,
    pub ended: Ended,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    Well,
    /// With a nonzero exit code.
    Badly(i32),
    /// By a signal.
    Killed(i32),
    OutOfTime,
    OutOfMemory,
    OutOfDisk,
}

// The same number on Linux, macOS, and the BSDs.
const SIGKILL: i32 = 9;
#[cfg(unix)]
const SIGXCPU: i32 = 24;
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

impl Limits {
    /// A command that runs a program under these limits. Add arguments as usual. On Unix a shell sets the limits and
    /// then execs the program; a limit that the system does not support is skipped.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        if !cfg!(unix) {
            return Command::new(program);
        }
        // At the soft limit on CPU time, a signal reports it. File sizes are in blocks of 512 bytes, memory in KiB.
        let limits = format!(
            "ulimit -c 0; ulimit -St {}; ulimit -Ht {}; ulimit -d {}; ulimit -f {}",
            self.cpu,
            self.cpu + 5,
            self.memory * 1024,
            self.disk * 2048
        );
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{{ {limits}; }} 2>/dev/null; exec \"$@\"")).arg("sh").arg(program);
        command
    }

    /// Starts such a command, passes it its input, and waits for it to end. Kills it if it exceeds a limit.
    pub fn run(&self, command: &mut Command, input: &[u8], folder: &Path) -> io::Result<Finished> {
        let start = Instant::now();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut child = Guard(child);
        if let Some(mut stdin) = child.0.stdin.take() {
            // The process may already have ended.
            let _ = stdin.write_all(input);
        }
        let outputs = [
            child.0.stdout.take().map(|out| read(Box::new(out), self.printed)),
            child.0.stderr.take().map(|out| read(Box::new(out), self.printed)),
        ];
        let mut pause = Duration::from_millis(1);
        let mut look = Instant::now();
        let ended = loop {
            if let Some(status) = child.0.try_wait()? {
                break Ended::of(status);
            }
            if start.elapsed() > Duration::from_secs(self.wall) {
                break Ended::OutOfTime;
            }
            if look.elapsed() > Duration::from_millis(100) {
                if bytes_in(folder) > self.disk << 20 {
                    break Ended::OutOfDisk;
                }
                // Linux enforces this limit itself.
                if !cfg!(target_os = "linux") && memory(child.0.id()) > self.memory << 20 {
                    break Ended::OutOfMemory;
                }
                look = Instant::now();
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        drop(child);
        // The output does not end while another process holds it open.
        let read =
            |output: Receiver<String>| output.recv_timeout(Duration::from_secs(10)).unwrap_or_default();
        let printed = outputs.into_iter().flatten().map(read).collect();
        Ok(Finished { printed, ended })
    }
}

impl Ended {
    fn of(status: ExitStatus) -> Ended {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return match signal {
                SIGXCPU => Ended::OutOfTime,
                SIGXFSZ => Ended::OutOfDisk,
                _ => Ended::Killed(signal),
            };
        }
        if status.success() { Ended::Well } else { Ended::Badly(status.code().unwrap_or(1)) }
    }

    /// Why a process failed, as the continuation of "it …"; None if the exit code says everything.
    pub fn why(&self, limits: &Limits, printed: &str) -> Option<String> {
        let memory = ["memory allocation of ", "out of memory", "bad_alloc", "Cannot allocate memory"];
        Some(match self {
            Ended::OutOfTime => {
                format!("did not end after {} seconds of computing, or {} in all", limits.cpu, limits.wall)
            }
            Ended::OutOfDisk => format!("wrote more than {} MiB to files", limits.disk),
            Ended::OutOfMemory => format!("used more than {} MiB of memory", limits.memory),
            Ended::Killed(_) | Ended::Badly(_) if memory.iter().any(|words| printed.contains(words)) => {
                format!("requested more memory than its limit of {} MiB", limits.memory)
            }
            Ended::Killed(_) if printed.contains("overflowed its stack") => "overflowed its stack".to_owned(),
            Ended::Killed(SIGKILL) => "was killed, probably because the system ran out of memory".to_owned(),
            Ended::Killed(signal) => format!("crashed with signal {signal}{}", name(*signal)),
            Ended::Badly(_) | Ended::Well => return None,
        })
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        11 => " (SIGSEGV)",
        _ => "",
    }
}

/// A process that is killed with its descendants when this is dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            if let Ok(mut system) = System::new() {
                let family = family(&mut system, self.0.id());
                for process in family.iter().filter_map(|pid| system.process(*pid)) {
                    process.kill();
                }
            }
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// A process and all its descendants.
fn family(system: &mut System, root: u32) -> Vec<Pid> {
    let what = ProcessRefreshKind::nothing().with_memory().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    let mut family = vec![Pid::from_u32(root)];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        let children = system.processes().values().filter(|process| process.parent() == Some(parent));
        family.extend(children.map(|child| child.pid()));
        at += 1;
    }
    family
}

/// The memory of a process and its descendants, in bytes.
fn memory(root: u32) -> u64 {
    let Ok(mut system) = System::new() else { return 0 };
    let family = family(&mut system, root);
    family.iter().filter_map(|pid| system.process(*pid)).map(|process| process.memory()).sum()
}

/// The total size of the files in a folder, in bytes.
fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Reads all of the output, so that the process does not block, but keeps only the start.
fn read(mut output: Box<dyn Read + Send>, limit: u64) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = output.by_ref().take(limit).read_to_end(&mut kept);
        let _ = io::copy(&mut output, &mut io::sink());
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receiver
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_at_its_limits_and_the_end_says_at_which() {
        let limits = Limits { cpu: 1, wall: 60, memory: 64, disk: 1, printed: 100 };
        let folder = std::env::temp_dir().join(format!("to-device-limits-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let run = |limits: &Limits, script: &str| {
            let mut command = limits.command("sh");
            limits.run(command.args(["-c", script]).current_dir(&folder), b"input", &folder).unwrap()
        };
        for (script, ended, printed) in [
            ("cat", Ended::Well, "input"),
            ("echo out; echo err >&2; exit 3", Ended::Badly(3), "out\nerr\n"),
            ("kill -SEGV $$", Ended::Killed(11), ""),
            ("while :; do :; done", Ended::OutOfTime, ""),
            ("exec head -c 3000000 /dev/zero > large", Ended::OutOfDisk, ""),
            (
                "rm large; for k in 1 2 3; do head -c 900000 /dev/zero > many-$k; done; exec sleep 50",
                Ended::OutOfDisk,
                "",
            ),
            ("rm many-*; exec no-such-program 2>/dev/null", Ended::Badly(127), ""),
        ] {
            let finished = run(&limits, script);
            assert_eq!((finished.ended, finished.printed.as_str()), (ended, printed), "{script}");
        }
        assert_eq!(run(&limits, "head -c 1000000 /dev/zero").printed.len(), 100);
        // The child's children end with it; otherwise its output would stay open.
        let start = Instant::now();
        assert_eq!(run(&Limits { wall: 1, ..limits }, "sleep 50; :").ended, Ended::OutOfTime);
        assert!(start.elapsed() < Duration::from_secs(25));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_gets_no_more_memory_than_its_limit() {
        let run = |memory| {
            let limits = Limits { cpu: 10, wall: 60, memory, disk: 1, printed: 100 };
            // `tail` buffers a line that never ends.
            let mut command = limits.command("sh");
            command.args(["-c", "head -c 100000000 /dev/zero | tail -n 1 | wc -c"]);
            limits.run(&mut command, b"", Path::new("/nowhere")).unwrap().printed
        };
        assert_eq!(run(1000).trim(), "100000000");
        assert!(run(20).contains("memory"), "{}", run(20));
    }

    #[test]
    fn the_memory_of_all_that_a_process_started_is_counted() {
        let child = Command::new("sh").args(["-c", "sleep 50; :"]).spawn().unwrap();
        let alone = || memory(child.id());
        let start = Instant::now();
        while alone() == 0 && start.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(alone() > 0 && memory(std::process::id()) > alone());
        drop(Guard(child));
    }
}
