//! The labs that chapters can show, and the runs of them whose output is tested.

use labs::{Captured, run_captured};

/// A lab, as the book knows it.
pub struct LabOfBook {
    /// The number of its chapter.
    pub number: &'static str,
    /// Its source, in one file or several, from the root of the checkout.
    pub sources: &'static [&'static str],
    /// Runs it in this process.
    pub run: fn(&[&str]) -> Captured,
    /// The runs that a test keeps a snapshot of.
    pub runs: &'static [Run],
}

/// A way to run a lab whose output is tested.
pub struct Run {
    /// What directives call it.
    pub name: &'static str,
    /// The file under `labs/tests/snapshots`, without its ending.
    pub snapshot: &'static str,
    /// What a reader types after `cargo run --bin lab-03 --`.
    pub flags: &'static [&'static str],
    /// More flags, which change nothing that is printed, but make it the same on every computer.
    pub steady: &'static [&'static str],
    /// What a reader gets from it.
    pub what: &'static str,
}

impl LabOfBook {
    /// The name of its binary.
    pub fn name(&self) -> String {
        format!("lab-{}", self.number)
    }

    /// What a reader types to run it.
    pub fn command(&self, flags: &[&str]) -> String {
        let mut command = format!("cargo run --bin {}", self.name());
        if !flags.is_empty() {
            command = format!("{command} -- {}", flags.join(" "));
        }
        command
    }

    /// What a reader gets without flags.
    pub fn by_default(&self) -> &'static str {
        match self.number {
            "00" => "on your computer",
            _ => "on a simulated Tesla T4, or your own GPU",
        }
    }

    /// The page of the book that shows its whole source, from the folder of the chapters.
    pub fn page(&self) -> String {
        format!("labs/{}.md", self.name())
    }
}

/// The lab and the flags of a command, `cargo run --bin lab-03 -- --gpu none`.
pub fn of_command(command: &str) -> Option<(&'static LabOfBook, Vec<&str>)> {
    let rest = command.strip_prefix("cargo run --bin ")?;
    let (name, flags) = rest.split_once(" -- ").unwrap_or((rest, ""));
    let name = if name == "doctor" { "lab-00" } else { name };
    let lab = LABS.iter().find(|lab| lab.name() == name)?;
    Some((lab, flags.split_whitespace().collect()))
}

/// All labs.
pub const LABS: &[LabOfBook] = &[
    LabOfBook {
        number: "00",
        sources: &[
            "labs/src/lab_00_setup/mod.rs",
            "labs/src/lab_00_setup/findings.rs",
            "labs/src/lab_00_setup/computer.rs",
            "labs/src/lab_00_setup/made_up.rs",
        ],
        run: |flags| run_captured(&labs::lab_00_setup::LAB, flags),
        runs: &[
            Run {
                name: "laptop",
                snapshot: "lab_00__laptop",
                flags: &["--computer", "laptop", "--gpu", "none"],
                steady: &[],
                what: "no NVIDIA GPU",
            },
            Run {
                name: "driver",
                snapshot: "lab_00__driver",
                flags: &["--computer", "driver", "--gpu", "sim:t4"],
                steady: &[],
                what: "only a driver",
            },
            Run {
                name: "ready",
                snapshot: "lab_00__ready",
                flags: &["--computer", "ready", "--gpu", "sim:rtx4090"],
                steady: &[],
                what: "with pip's packages",
            },
            Run {
                name: "server",
                snapshot: "lab_00__server",
                flags: &["--computer", "server", "--gpu", "sim:t4"],
                steady: &[],
                what: "two versions of CUDA",
            },
            Run {
                name: "jetson",
                snapshot: "lab_00__jetson",
                flags: &["--computer", "jetson", "--gpu", "none"],
                steady: &[],
                what: "a Jetson Nano",
            },
            Run {
                name: "wsl",
                snapshot: "lab_00__wsl",
                flags: &["--computer", "wsl", "--gpu", "none"],
                steady: &[],
                what: "WSL",
            },
        ],
    },
    LabOfBook {
        number: "01",
        sources: &["labs/src/lab_01_devices.rs"],
        run: |flags| run_captured(&labs::lab_01_devices::LAB, flags),
        runs: &[
            Run {
                name: "none",
                snapshot: "lab_01__no_gpu",
                flags: &["--gpu", "none"],
                steady: &[],
                what: CPU,
            },
            Run { name: "t4", snapshot: "lab_01__t4", flags: &["--gpu", "sim:t4"], steady: &[], what: T4 },
            Run {
                name: "t4x2",
                snapshot: "lab_01__two_t4",
                flags: &["--gpu", "sim:t4x2"],
                steady: &[],
                what: T4X2,
            },
        ],
    },
    LabOfBook {
        number: "02",
        sources: &["labs/src/lab_02_golden_rule.rs"],
        run: |flags| run_captured(&labs::lab_02_golden_rule::LAB, flags),
        runs: &[
            Run { name: "none", snapshot: "lab_02__none", flags: &["--gpu", "none"], steady: &[], what: CPU },
            Run {
                name: "t4",
                snapshot: "lab_02__sim_t4",
                flags: &["--gpu", "sim:t4"],
                steady: &[],
                what: T4,
            },
            Run {
                name: "t4x2",
                snapshot: "lab_02__sim_t4x2",
                flags: &["--gpu", "sim:t4x2"],
                steady: &[],
                what: T4X2,
            },
        ],
    },
    LabOfBook {
        number: "03",
        sources: &["labs/src/lab_03_training_loop.rs"],
        run: |flags| run_captured(&labs::lab_03_training_loop::LAB, flags),
        runs: &[
            Run {
                name: "none",
                snapshot: "lab_03__noise",
                flags: &["--gpu", "none"],
                steady: &["--num-workers", "0", "--pin-memory", "false"],
                what: CPU,
            },
            Run {
                name: "linear",
                snapshot: "lab_03__linear",
                flags: &["--gpu", "none", "--target", "linear", "--epochs", "5"],
                steady: &["--num-workers", "0", "--pin-memory", "false"],
                what: "on the CPU, with something to learn",
            },
            Run {
                name: "t4",
                snapshot: "lab_03__noise_t4",
                flags: &["--gpu", "sim:t4"],
                steady: &[],
                what: T4,
            },
            Run {
                name: "t4x2",
                snapshot: "lab_03__noise_two_t4",
                flags: &["--gpu", "sim:t4x2"],
                steady: &[],
                what: T4X2,
            },
        ],
    },
    LabOfBook {
        number: "04",
        sources: &[
            "labs/src/lab_04_memory/mod.rs",
            "labs/src/lab_04_memory/why_it_runs_out.rs",
            "labs/src/lab_04_memory/how_the_allocator_thinks.rs",
        ],
        run: |flags| run_captured(&labs::lab_04_memory::LAB, flags),
        runs: &[
            Run { name: "none", snapshot: "lab_04__none", flags: &["--gpu", "none"], steady: &[], what: CPU },
            Run {
                name: "t4",
                snapshot: "lab_04__sim_t4",
                flags: &["--gpu", "sim:t4"],
                steady: &[],
                what: T4,
            },
            Run {
                name: "small",
                snapshot: "lab_04__small_t4",
                flags: &["--gpu", "sim:t4,mem=512MiB"],
                steady: &[],
                what: "on a simulated Tesla T4 with 512 MiB",
            },
        ],
    },
    LabOfBook {
        number: "05",
        sources: &[
            "labs/src/lab_05_monitoring/mod.rs",
            "labs/src/lab_05_monitoring/the_table.rs",
            "labs/src/lab_05_monitoring/why_it_waits.rs",
            "labs/src/lab_05_monitoring/watch.rs",
        ],
        run: |flags| run_captured(&labs::lab_05_monitoring::LAB, flags),
        runs: &[
            Run { name: "none", snapshot: "lab_05__none", flags: &["--gpu", "none"], steady: &[], what: CPU },
            Run { name: "t4", snapshot: "lab_05__t4", flags: &["--gpu", "sim:t4"], steady: &[], what: T4 },
            Run {
                name: "others",
                snapshot: "lab_05__others",
                flags: &["--gpu", "sim:t4,others=1GiB"],
                steady: &[],
                what: "beside a program that holds 1 GiB",
            },
            Run {
                name: "watch",
                snapshot: "lab_05__watch",
                flags: &["--gpu", "sim:t4", "--watch", "--samples", "10"],
                steady: &[],
                what: "a training run, sample by sample",
            },
        ],
    },
    LabOfBook {
        number: "06",
        sources: &[
            "labs/src/lab_06_amp/mod.rs",
            "labs/src/lab_06_amp/numbers.rs",
            "labs/src/lab_06_amp/costs.rs",
            "labs/src/lab_06_amp/training.rs",
            "labs/src/lab_06_amp/scaling.rs",
            "labs/src/lab_06_amp/images.rs",
        ],
        run: |flags| run_captured(&labs::lab_06_amp::LAB, flags),
        runs: &[
            Run { name: "none", snapshot: "lab_06__none", flags: &["--gpu", "none"], steady: &[], what: CPU },
            Run {
                name: "t4",
                snapshot: "lab_06__sim_t4",
                flags: &["--gpu", "sim:t4"],
                steady: &[],
                what: T4,
            },
            Run {
                name: "rtx4090",
                snapshot: "lab_06__sim_rtx4090",
                flags: &["--gpu", "sim:rtx4090", "--batch-size", "512"],
                steady: &[],
                what: "on a simulated RTX 4090, with larger batches in section 8",
            },
        ],
    },
    LabOfBook {
        number: "07",
        sources: &[
            "labs/src/lab_07_cudnn/mod.rs",
            "labs/src/lab_07_cudnn/search.rs",
            "labs/src/lab_07_cudnn/determinism.rs",
            "labs/src/lab_07_cudnn/tf32.rs",
        ],
        run: |flags| run_captured(&labs::lab_07_cudnn::LAB, flags),
        runs: &[
            Run { name: "none", snapshot: "lab_07__none", flags: &["--gpu", "none"], steady: &[], what: CPU },
            Run {
                name: "t4",
                snapshot: "lab_07__sim_t4",
                flags: &["--gpu", "sim:t4"],
                steady: &[],
                what: T4,
            },
            Run {
                name: "rtx4090",
                snapshot: "lab_07__sim_rtx4090",
                flags: &["--gpu", "sim:rtx4090"],
                steady: &[],
                what: "on a newer card",
            },
            Run {
                name: "h200",
                snapshot: "lab_07__sim_h200",
                flags: &["--gpu", "sim:h200"],
                steady: &[],
                what: "on a card of a data centre",
            },
        ],
    },
    LabOfBook {
        number: "08",
        sources: &["labs/src/lab_08_asynchrony.rs"],
        run: |flags| run_captured(&labs::lab_08_asynchrony::LAB, flags),
        runs: &[
            Run { name: "none", snapshot: "lab_08__none", flags: &["--gpu", "none"], steady: &[], what: CPU },
            Run { name: "t4", snapshot: "lab_08__t4", flags: &["--gpu", "sim:t4"], steady: &[], what: T4 },
        ],
    },
    LabOfBook {
        number: "09",
        sources: &["labs/src/lab_09_feeding.rs"],
        run: |flags| run_captured(&labs::lab_09_feeding::LAB, flags),
        runs: &[
            Run { name: "none", snapshot: "lab_09__none", flags: &["--gpu", "none"], steady: &[], what: CPU },
            Run {
                name: "t4",
                snapshot: "lab_09__sim_t4",
                flags: &["--gpu", "sim:t4"],
                steady: &[],
                what: T4,
            },
        ],
    },
];

const CPU: &str = "on the CPU";
const T4: &str = "on a simulated Tesla T4";
const T4X2: &str = "on two of them";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Course;
    use crate::output::check;

    #[test]
    fn every_lab_is_known_here() {
        let sources = std::fs::read_dir(Course::here().root().join("labs/src")).unwrap();
        let names = sources.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut labs: Vec<String> = names.filter(|name| name.starts_with("lab_")).collect();
        labs.sort();
        let known = LABS.iter().map(|lab| lab.sources[0].strip_prefix("labs/src/").unwrap());
        let known: Vec<&str> = known.map(|path| path.split('/').next().unwrap()).collect();
        assert_eq!(labs, known);
    }

    /// A lab in a folder is known with all files of it.
    #[test]
    fn every_file_of_a_lab_is_known_here() {
        for lab in LABS {
            let paths = lab.sources.to_vec();
            let folder = paths[0].rsplit_once('/').unwrap().0;
            if folder == "labs/src" {
                assert_eq!(paths.len(), 1, "{}", lab.name());
                continue;
            }
            let files = std::fs::read_dir(Course::here().root().join(folder)).unwrap();
            assert_eq!(files.count(), paths.len(), "{folder}");
            assert!(paths.iter().all(|path| path.starts_with(folder)), "{folder}");
        }
    }

    /// The flags that a caption leaves out change only warnings.
    #[test]
    fn a_reader_sees_what_the_book_shows() {
        for lab in LABS {
            for run in lab.runs.iter().filter(|run| !run.steady.is_empty()) {
                let captured = (lab.run)(run.flags);
                assert_eq!(captured.exit_code, 0);
                let output: Vec<_> =
                    captured.events.into_iter().filter(|event| !event.is_trouble()).collect();
                let snapshot = format!("labs/tests/snapshots/suite__{}.snap", run.snapshot);
                assert_eq!(check(&Course::here().read(&snapshot).unwrap(), &output), Ok(()), "{snapshot}");
            }
        }
    }

    #[test]
    fn runs_have_names_of_their_own() {
        for lab in LABS {
            for (index, run) in lab.runs.iter().enumerate() {
                assert!(
                    lab.runs[..index].iter().all(|other| other.name != run.name),
                    "{} {}",
                    lab.name(),
                    run.name
                );
            }
        }
    }
}
