//! The machines that every lab runs on: the cards that the course knows, and some invented ones.

use super::Claims;
use crate::said;
use labs::{Captured, Listed};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use todevice::{Machine, cuda};

/// Profiles of invented cards, for `--gpu sim:FILE.profile`.
const CARDS: &[(&str, &str)] = &[
    // The GPU is the bottleneck.
    ("slow-card", "like = t4\nfp32 = 300\ngemm_factor = 0.5\ntensor_f16 = 600\ndram = 20\n"),
    // The host is never the bottleneck.
    (
        "fast-link",
        "like = h200\npinned_to_device = 400\npinned_to_host = 400\npageable_to_device = 200\n\
         pageable_to_host = 200\ncopy_latency = 0.2\n",
    ),
    // Copies are the bottleneck.
    (
        "slow-link",
        "like = rtx4090\npinned_to_device = 1.5\npinned_to_host = 1.5\npageable_to_device = 1.2\n\
         pageable_to_host = 1.2\n",
    ),
    // Launches are the bottleneck.
    ("slow-launches", "like = t4\nlaunch_latency = 40\nkernel_gap = 8\nsmallest_kernel = 12\n"),
    // As written by `calibrate` for a card without a built-in profile.
    (
        "calibrated",
        "like = h200\nname = NVIDIA A100-SXM4-80GB\ncapability = 8.0\nmultiprocessors = 108\n\
         threads_per_multiprocessor = 2048\nclock = 1410\nfp32 = 19500\nfp64 = 9700\ngemm_factor = 0.93\n\
         dram = 2039\ndram_factor = 0.86\nl2 = 41943040\nmemory = 85097971712\nlaunch_latency = 5.1\n\
         kernel_gap = 0.9\nsmallest_kernel = 2.2\npinned_to_device = 25.1\npinned_to_host = 26.2\n\
         pageable_to_device = 11.7\npageable_to_host = 9.4\n",
    ),
];

/// An invented host, for `--host FILE.host`.
const SLOW_HOST: &str = "like = laptop\nlaunch = 60\ncopy = 60\nsynchronize = 30\ndispatch = 20\n\
     memory_of_one_core = 2\nmemory_of_all_cores = 4\ngemm_of_one_core = 5\ngemm_of_all_cores = 15\n";

/// All other machines: these lists come before and after the invented ones.
const MACHINES: &[&[&str]] =
    &[&["--gpu", "none"], &["--gpu", "sim:t4"], &["--gpu", "sim:rtx4090"], &["--gpu", "sim:h200"]];
const VARIANTS: &[&[&str]] = &[
    &["--gpu", "sim:h200", "--host", "pytorch"],
    &["--gpu", "sim:t4,seed=7"],
    &["--gpu", "sim:t4,mem=2GiB"],
];

/// A run of a lab.
pub struct Run {
    machine: Vec<String>,
    knobs: &'static [&'static str],
    /// Whether `CUDA_LAUNCH_BLOCKING=1` is in the environment.
    blocking: bool,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocking = if self.blocking { "CUDA_LAUNCH_BLOCKING=1 " } else { "" };
        let name = |flag: &String| flag.rsplit('/').next().unwrap_or_default().to_owned();
        let machine: Vec<String> = self.machine.iter().map(name).collect();
        write!(f, "{blocking}{} {}", machine.join(" "), self.knobs.join(" "))
    }
}

impl Run {
    /// The lab's output, unless it fails.
    pub fn captured(&self, lab: &'static str) -> Result<Cow<'static, Captured>, String> {
        let machine: Vec<&str> = self.machine.iter().map(String::as_str).collect();
        let flags = [&machine[..], self.knobs].concat();
        let captured = match self.blocking {
            false => Cow::Borrowed(said::run(lab, &flags)),
            true => {
                let lab = Listed::named(lab).expect("the name of a lab");
                let block = |machine: &Machine| {
                    machine.enter(|| cuda::set_launch_blocking(true)).expect("a simulated GPU")
                };
                Cow::Owned((lab.run_prepared)(&flags, block))
            }
        };
        match captured.exit_code {
            0 => Ok(captured),
            code => Err(format!("exit code {code}: {}", captured.errors.trim())),
        }
    }
}

/// A T4 with the lab's usual flags.
pub fn t4() -> Run {
    Run { machine: ["--gpu", "sim:t4"].map(str::to_owned).to_vec(), knobs: &[], blocking: false }
}

/// Every machine with the lab's usual flags, and a T4 or an H200 in turn with each of the others.
pub fn runs(claims: &Claims) -> Vec<Run> {
    let flags = |flags: &[&str]| flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<String>>();
    let made_up = CARDS.iter().map(|(name, text)| {
        vec!["--gpu".to_owned(), format!("sim:{}", file(&format!("{name}.profile"), text).display())]
    });
    let slow_host = file("slow.host", SLOW_HOST).display().to_string();
    let slow_host = flags(&["--gpu", "sim:t4", "--host", &slow_host]);
    let [first, last] = [MACHINES, VARIANTS].map(|all| all.iter().map(|machine| flags(machine)));
    let usual = first.chain(made_up).chain(last).chain([slow_host]);
    let run = |machine, knobs| Run { machine, knobs, blocking: false };
    let mut runs: Vec<Run> = usual.take(claims.machines).map(|machine| run(machine, &[])).collect();
    runs.push(Run { blocking: true, ..run(flags(&["--gpu", "sim:t4"]), &[]) });
    let in_turn = claims.knobs.iter().zip(["sim:t4", "sim:h200"].into_iter().cycle());
    runs.extend(in_turn.map(|(knobs, machine)| match knobs {
        ["--gpu", machine, knobs @ ..] => run(flags(&["--gpu", machine]), knobs),
        _ => run(flags(&["--gpu", machine]), knobs),
    }));
    runs
}

/// Writes a file with this name and text.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}
