//! The scripts for visits to a GPU card (`tests/card`), rehearsed on a simulated card and on stand-ins for NVIDIA's
//! libraries, including steps that fail, hang, print too much or are killed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::stand_ins::{StandIns, stand_ins};

const CARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/card");

/// The files of a package other than programs.
fn files() -> impl Iterator<Item = String> {
    let names = fs::read_dir(CARD).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| {
        name.starts_with("visit-") || ["common.sh", "snapshot.py", "answers.txt"].contains(&&**name)
    })
}

/// The folder of cargo's binaries.
fn binaries() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_bench")).parent().unwrap()
}

fn cargo(arguments: &[&str]) {
    let output = Command::new(env!("CARGO")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The test binary of the tensor crate, which is part of the package. It exists if all tests are run.
fn suite() -> PathBuf {
    let newest = || {
        let entries = fs::read_dir(binaries().join("deps")).unwrap().map(|entry| entry.unwrap().path());
        let is_suite = |path: &PathBuf| {
            path.extension().is_none()
                && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("suite-"))
        };
        let mut suites: Vec<PathBuf> = entries.filter(is_suite).collect();
        suites.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));
        suites.into_iter().find(|suite| {
            let listed = Command::new(suite).arg("--list").output().unwrap().stdout;
            String::from_utf8_lossy(&listed).contains("sweep_in_time::")
        })
    };
    newest().unwrap_or_else(|| {
        cargo(&["test", "-p", "tensor-tests", "--no-run"]);
        newest().expect("the suite of tensor-tests")
    })
}

/// A package, whose programs are links to those of this build.
struct Package(PathBuf);

impl Package {
    fn new(name: &str) -> Package {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("fakes")).unwrap();
        for file in files() {
            fs::copy(Path::new(CARD).join(&file), folder.join(&file)).unwrap();
        }
        Package(folder)
    }

    fn with_programs(self) -> Package {
        let listed = fs::read_to_string(format!("{CARD}/prepare")).unwrap();
        let lists = listed
            .lines()
            .filter_map(|line| line.split_once("programs").filter(|_| line.starts_with("programs")));
        let words = lists.flat_map(|(_, list)| list.trim_matches(['+', '=', '(', ')']).split(' '));
        let programs: Vec<&str> = words.collect();
        assert_eq!(programs.len(), 16, "{programs:?}");
        if programs.iter().any(|program| !binaries().join(program).exists()) {
            cargo(&["build", "-p", "labs", "-p", "lab-12", "--bins"]);
        }
        for program in programs {
            symlink(binaries().join(program), self.0.join(program)).unwrap();
        }
        symlink(suite(), self.0.join("suite")).unwrap();
        // For visit E: the same program.
        symlink(binaries().join("bench"), self.0.join("bench-before")).unwrap();
        fs::write(self.0.join("planted-libnvrtc.so"), "").unwrap();
        fs::write(self.0.join("commit.txt"), "1a2b3c4\n").unwrap();
        self.fake("nvidia-smi", NVIDIA_SMI);
        self.fake("python3", PYTHON);
        self.fake("nvcc", NVCC);
        self.fake("compute-sanitizer", SANITIZER);
        self
    }

    /// Adds a program that shadows the real one.
    fn fake(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join("fakes").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A command for a part of a visit that writes to a folder of this name.
    fn visit(&self, visit: &str, part: &str, out: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(self.0.join(visit));
        command
            .arg(part)
            .env("PATH", format!("{}:{path}", self.0.join("fakes").display()))
            .env("OUT", self.0.join(out))
            .env("KEPT", self.0.join(out).with_extension("kept"))
            .env("REHEARSE", "1")
            .env("LABS", "05")
            .stdin(Stdio::null());
        command
    }

    fn read(&self, out: &str, file: &str) -> String {
        fs::read_to_string(self.0.join(out).join(file)).unwrap_or_default()
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const NVCC: &str = "#!/bin/sh
# The emulator in place of compiled programs.
[ $# = 1 ] && exit
cp \"$5\" \"$4.cu\"
printf '#!/bin/sh\\n%s %s --check memcheck | sed /^===/d\\n' \"$PWD/lab-12\" \"$4.cu\" >\"$4\"
chmod +x \"$4\"
";
const NVIDIA_SMI: &str = r#"#!/usr/bin/env bash
case "$*" in
*-lms*) echo "timestamp, utilization"; for _ in 1 2 3 4 5; do echo "now, 12 %"; done; exec sleep 600 ;;
*noheader*) echo "Stand-in for a GPU, 610.43.02" ;;
*-L*) echo "GPU 0: Stand-in" ;;
*) echo "a table" ;;
esac
"#;

/// A fake PyTorch that always takes a millisecond, and whose memory matches ours.
const PYTHON: &str = r#"#!/usr/bin/env bash
case "$*" in
*mem_get_info*) echo held; exec sleep 600 ;;
*snapshot.py*) exec ./snapshot --gpu "$GPU" ;;
*"torch.version.cuda"*) echo "PyTorch 2.11.0 CUDA 13.0 cuDNN 91900" ;;
*) echo '{"tiny_mlp_step": 1000.0, "relu": 1000.0, "copy": 1000.0}' ;;
esac
"#;

/// A fake sanitizer that finds the planted errors, and nothing else.
const SANITIZER: &str = r#"#!/usr/bin/env bash
if [ -n "${PLANTED:-}" ]; then
    echo "PLANTED: $PLANTED in elementwise.cuh"
    echo "========= Invalid __global__ write of size 4 bytes"
    exit 1
fi
while [[ $1 != ./* ]]; do shift; done
"$@" || exit
echo "========= ERROR SUMMARY: 0 errors"
"#;

/// Checks the guarantees for a visit that has ended, whatever it found.
fn is_in_order(package: &Package, out: &str, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = package.read(out, "summary.txt");
    assert!(
        said.ends_with(&summary) && !summary.is_empty(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(summary.lines().count() <= 100, "{summary}");
    let files: Vec<_> = fs::read_dir(package.0.join(out)).unwrap().map(|entry| entry.unwrap()).collect();
    assert!(files.len() <= 8 && files.iter().all(|file| file.file_type().unwrap().is_file()), "{files:?}");
    let size: u64 = files.iter().map(|file| file.metadata().unwrap().len()).max().unwrap();
    assert!(size < 16 << 20, "{size}");
    assert!(!package.read(out, "log.txt").is_empty() && !package.read(out, "card.txt").is_empty());
    summary
}

#[test]
fn the_first_visit_runs_on_a_simulated_card() {
    rehearse_all("first-visit", &[("visit-a", "sim:t4")]);
}

#[test]
#[ignore = "it takes more than a minute: .ci/run has it"]
fn every_visit_runs_on_a_simulated_card_and_on_the_stand_ins() {
    let visits: Vec<(&str, &str)> = ["visit-a", "visit-b", "visit-c", "visit-d", "visit-e"]
        .into_iter()
        .flat_map(|visit| ["sim:t4", "real"].map(|gpu| (visit, gpu)))
        .collect();
    rehearse_all("visits", &visits);
}

/// Runs both parts of each of these visits on a GPU, in a folder of this name.
fn rehearse_all(name: &str, visits: &[(&str, &str)]) {
    let package = Package::new(name).with_programs();
    let stand_ins = stand_ins(todevice::cuda::kernel_signatures);
    let rehearsed = visits.par_iter().map(|(visit, gpu)| {
        ["first", "second"].into_iter().try_for_each(|part| rehearse(&package, stand_ins, visit, part, gpu))
    });
    let wrong: Vec<String> = rehearsed.filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Runs a part of a visit. The error describes what is wrong.
fn rehearse(
    package: &Package,
    stand_ins: &StandIns,
    visit: &str,
    part: &str,
    gpu: &str,
) -> Result<(), String> {
    let out = format!("{visit}-{}", if gpu == "real" { "real" } else { "simulated" });
    let mut command = package.visit(visit, part, &out);
    if gpu == "real" {
        on(stand_ins, &mut command);
    }
    if ["visit-c", "visit-e"].contains(&visit) {
        // Visit B has measured it.
        let kept = package.0.join(&out).with_extension("kept");
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join("card.profile"), "like = t4\nname = The card\n").unwrap();
        fs::write(kept.join("card.host"), "like = laptop\nname = Its host\n").unwrap();
    }
    // A test cannot know the computer's load.
    command.env("PATIENCE", "10").env("LIMIT", "3000");
    // The stand-ins have little memory, because it is all really allocated.
    let output = command.env("GPU", gpu).env("FAKE_CUDA_MEMORY", "67108864").output().unwrap();
    let summary = is_in_order(package, &out, &output);
    let head = format!("{visit} {part} on Stand-in for a GPU, 610.43.02, ");
    let lacks: Vec<&str> =
        expected(visit, part, gpu).iter().copied().filter(|line| !summary.contains(line)).collect();
    let is_well = output.status.success()
        && !summary.contains("FAILED")
        && summary.contains("left out  ") == (gpu != "real" && is_left_out(visit))
        && summary.starts_with(&head)
        && summary.contains(", commit 1a2b3c4\n")
        && lacks.is_empty();
    match is_well {
        true => Ok(()),
        false => Err(format!("{summary}\n(lacks {lacks:?})\n{}", package.read(&out, "log.txt"))),
    }
}

/// Makes a command use the stand-ins for NVIDIA's libraries; the shell's clock is unaffected.
fn on(stand_ins: &StandIns, command: &mut Command) {
    let runner = format!("env LD_PRELOAD={}", stand_ins.fast_clock.display());
    stand_ins.on(command).env("RUNNER", runner).env("NVRTC", stand_ins.folder.join("libnvrtc.so.12"));
}

/// Whether each part of a visit has steps for a real GPU only.
fn is_left_out(visit: &str) -> bool {
    visit == "visit-d" || visit == "visit-a"
}

/// The main results that a part of a visit prints.
fn expected(visit: &str, part: &str, gpu: &str) -> &'static [&'static str] {
    match (visit, part, gpu) {
        ("visit-a", "first", "real") => &[
            "ok        kernel (",
            "ok        training (",
            "ok        answers-cudnn (",
            "ok        0 answers are not the stand-ins'",
            "losses: ",
        ],
        ("visit-a", "first", _) => &["ok        doctor (", "ok        convolution (", " cases done, "],
        ("visit-a", _, "real") => &[
            "ok        sweep-whole-losses (",
            "ok        launch (",
            "ok        compare (",
            "ok        compare-nvcc (",
        ],
        ("visit-a", ..) => &[
            "ok        sweep-whole-losses (",
            "ok        launch (",
            "): the losses have the same bits",
            "left out  compare: only a real GPU is compared with the emulator",
        ],
        ("visit-b", "first", "real") => &["): lab-05: the same", "ok        lab-05-section-4 ("],
        ("visit-b", "first", _) => &["): lab-05: the same"],
        ("visit-b", ..) => &["ok        calibrate (", "pinned_to_device = "],
        ("visit-c", ..) => {
            &["ok        how-wrong (", "Of ", "ok        speed (", "tiny_mlp_step", "relu of 1000 elements"]
        }
        ("visit-d", "first", "real") => &[
            "ok        memcheck finds the planted fault",
            "ok        synccheck-sweep (",
            "ok        monitor (",
            "ok        PyTorch's snapshot is ours",
        ],
        ("visit-d", "first", _) => &["ok        monitor (", "ok        PyTorch's snapshot is ours"],
        ("visit-d", _, "real") => {
            &["ok        after-kill (", "ok        sticky (", "ok        no-memory: ", "ok        endure ("]
        }
        ("visit-d", ..) => &["ok        after-kill (", "ok        sticky (", "ok        endure ("],
        (_, "first", _) => &["ok        before (", "ok        after (", "tiny_mlp_step"],
        _ => &["ok        after (", "ok        how-wrong ("],
    }
}

/// A visit with these steps.
fn made_up(name: &str, steps: &str) -> Package {
    use std::os::unix::fs::PermissionsExt;
    let package = Package::new(name);
    let path = package.0.join("visit-x");
    fs::write(
        &path,
        format!("#!/usr/bin/env bash\n. \"$(dirname \"$0\")/common.sh\" \"$@\"\n{steps}\nfinish\n"),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    package
}

#[test]
fn a_visit_goes_on_after_a_step_that_fails_hangs_or_is_not_there() {
    let steps = "step wrong 60 bash -c 'echo it breaks; exit 7'
        step hangs 3 sleep 60
        step missing 60 ./no-such-program
        step talks 60 seq 100000
        note 200 < <(for i in $(seq 120); do echo \"difference $i\"; done)
        step last 60 echo well";
    let package = made_up("failing", steps);
    let output = package.visit("visit-x", "first", "out").output().unwrap();
    let summary = is_in_order(&package, "out", &output);
    assert_eq!(output.status.code(), Some(1));
    assert!(summary.contains("FAILED    wrong: exit code 7: it breaks\n"), "{summary}");
    assert!(summary.contains("FAILED    hangs: stopped after 3 s"), "{summary}");
    assert!(summary.contains("FAILED    missing: exit code 127"), "{summary}");
    let talks = |line: &str| line.starts_with("ok        talks (") && line.ends_with(" s): 100000");
    assert!(summary.lines().any(talks), "{summary}");
    assert!(
        summary.contains("): well\ndifference 1\n"),
        "how steps went comes before what they found: {summary}"
    );
    let end: Vec<&str> = summary.lines().rev().take(2).collect();
    assert!(
        end[0].starts_with("visit-x first: 3 failed, 0 left out, ") && end[1] == "… and more, in log.txt",
        "{summary}"
    );
    let log = package.read("out", "log.txt");
    assert!(log.contains("\n… left out …\n") && log.len() < 300_000, "{}", log.len());
}

#[test]
fn a_visit_keeps_to_its_time_and_one_that_is_killed_leaves_what_it_has() {
    let package =
        made_up("timed", "step first 60 echo well\nstep long 600 sleep 600\nstep never 600 echo never");
    let start = Instant::now();
    let output = package.visit("visit-x", "second", "timed").env("LIMIT", "8").output().unwrap();
    // The visit has 8 seconds. A busy computer needs longer to start and end it.
    assert!(start.elapsed() < Duration::from_secs(60));
    let summary = is_in_order(&package, "timed", &output);
    assert!(
        summary.contains("FAILED    long: stopped after ") && summary.contains("left out  never: no time"),
        "{summary}"
    );

    let mut killed = package.visit("visit-x", "first", "killed").stdout(Stdio::null()).spawn().unwrap();
    while !package.0.join("killed/running.log").exists()
        || !package.read("killed", "summary.txt").contains("well")
    {
        assert!(start.elapsed() < Duration::from_secs(180));
        std::thread::sleep(Duration::from_millis(20));
    }
    // SIGKILL, which it cannot handle.
    killed.kill().unwrap();
    killed.wait().unwrap();
    let summary = package.read("killed", "summary.txt");
    assert!(summary.contains("\nok        first ("), "{summary}");
    assert!(summary.contains("\nvisit-x first: 0 failed"), "{summary}");
}

#[test]
fn a_computer_that_refuses_the_sanitizer_is_told_in_a_line_each() {
    let package = Package::new("refused").with_programs();
    package.fake(
        "compute-sanitizer",
        "#!/usr/bin/env bash\necho '========= Error: Device not supported'\nexit 1\n",
    );
    package.fake("python3", "#!/usr/bin/env bash\necho \"No module named 'torch'\"\nexit 1\n");
    let mut command = package.visit("visit-d", "first", "out");
    on(stand_ins(todevice::cuda::kernel_signatures), &mut command);
    let output = command.env("GPU", "real").output().unwrap();
    let summary = is_in_order(&package, "out", &output);
    for tool in ["memcheck", "racecheck", "initcheck", "synccheck"] {
        let line =
            format!("left out  {tool}: this computer refuses it: ========= Error: Device not supported\n");
        assert!(summary.contains(&line), "{summary}");
    }
    assert!(
        summary.contains("left out  PyTorch's snapshot: no PyTorch, No module named 'torch'\n"),
        "{summary}"
    );
    assert!(summary.contains("ok        monitor (") && !summary.contains("FAILED"), "{summary}");
}

/// The stand-ins' answers, with which a visit compares the card's answers.
#[test]
fn the_answers_of_the_stand_ins_are_those_that_visits_compare_with() {
    let stand_ins = stand_ins(todevice::cuda::kernel_signatures);
    let mut answers = String::new();
    for library in ["driver", "nvrtc", "cublas", "cudnn"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_contact"));
        let output = stand_ins.on(&mut command).args(["answers", library]).output().unwrap();
        assert!(output.status.success(), "{library}: {}", String::from_utf8_lossy(&output.stderr));
        answers += &String::from_utf8(output.stdout).unwrap();
    }
    let file = format!("{CARD}/answers.txt");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(&file, &answers).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap();
    assert_eq!(answers, kept, "INSTA_UPDATE=always writes {file} anew");
}
