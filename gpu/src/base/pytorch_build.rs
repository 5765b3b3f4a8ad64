//! The cards that a PyTorch build supports.
//!
//! A build contains kernels for a list of architectures, `sm_90` for compute capability 9.0. They run on cards of the
//! same major version that are as new or newer. On any other card, PyTorch warns, and the first kernel fails.

use std::fmt;
use std::str::FromStr;

use crate::base::error::GpuError;

/// A PyTorch build, named like its wheels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// `cu126`: built with CUDA 12.6.
    pub name: &'static str,
    /// The architectures with kernels, 75 for `sm_75`.
    architectures: &'static [u32],
}

/// The known builds: the lists of PyTorch 2.6.0+cu126 (pytorch/pytorch#150733) and 2.11.0+cu130, on x86-64.
static BUILDS: [Build; 2] = [
    Build { name: "cu126", architectures: &[50, 60, 70, 75, 80, 86, 90] },
    Build { name: "cu130", architectures: &[75, 80, 86, 90, 100, 120] },
];

/// The releases that PyTorch 2.11 recommends, by CUDA version (`PYTORCH_RELEASES_CODE_CC`).
static RELEASES: [(&str, &[u32]); 3] = [
    ("12.6", &[50, 60, 70, 80, 86, 90]),
    ("12.8", &[70, 80, 86, 90, 100, 120]),
    ("13.0", &[75, 80, 86, 90, 100, 110, 120]),
];

impl Build {
    pub const NAMES: &'static str = "cu126 or cu130";

    /// `sm_75`, `sm_80` …
    pub fn arch_list(self) -> Vec<String> {
        self.architectures.iter().map(|architecture| format!("sm_{architecture}")).collect()
    }

    pub fn runs_on(self, capability: (u32, u32)) -> bool {
        any_runs_on(self.architectures, capability)
    }

    /// PyTorch 2.11's warnings about an unsupported card: `_check_capability`, then `_check_cubins`.
    pub fn warnings(self, index: usize, name: &str, (major, minor): (u32, u32)) -> [String; 2] {
        let mut lines = vec![
            format!("Found GPU{index} {name} which is of compute capability (CC) {major}.{minor}."),
            "The following list shows the CCs this version of PyTorch was built for and the hardware CCs it supports:"
                .to_owned(),
        ];
        lines.extend(self.architectures.iter().map(|architecture| {
            let (code, next) =
                (format!("{}.{}", architecture / 10, architecture % 10), architecture / 10 + 1);
            let except = except(*architecture).map(|(major, minor)| format!(" except {{{major}.{minor}}}"));
            format!("- {code} which supports hardware CC >={code},<{next}.0{}", except.unwrap_or_default())
        }));
        let others = RELEASES.iter().filter(|(_, architectures)| any_runs_on(architectures, (major, minor)));
        let others: Vec<&str> = others.map(|(cuda, _)| *cuda).collect();
        if !others.is_empty() {
            lines.push(format!(
                "Please follow the instructions at https://pytorch.org/get-started/locally/ to install a PyTorch release that supports \
                 one of these CUDA versions: {}",
                others.join(", ")
            ));
        }
        let of_cubins = format!(
            "\n{name} with CUDA capability sm_{major}{minor} is not compatible with the current PyTorch installation.\n\
             The current PyTorch install supports CUDA capabilities {}.\n\
             If you want to use the {name} GPU with PyTorch, please check the instructions at \
             https://pytorch.org/get-started/locally/\n",
            self.arch_list().join(" ")
        );
        [lines.join("\n"), of_cubins]
    }
}

/// The integrated GPU of the same major version that cannot run an architecture's code.
fn except(architecture: u32) -> Option<(u32, u32)> {
    match architecture {
        50 => Some((5, 3)),
        60 => Some((6, 2)),
        70 => Some((7, 2)),
        80 | 86 => Some((8, 7)),
        100 => Some((10, 1)),
        _ => None,
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Build {
    type Err = GpuError;

    fn from_str(text: &str) -> Result<Build, GpuError> {
        let known = BUILDS.iter().find(|build| build.name == text).copied();
        known.ok_or_else(|| GpuError::custom(format!("unknown build '{text}', expected {}", Build::NAMES)))
    }
}

/// Whether code for one of these architectures runs on a card of this compute capability.
fn any_runs_on(architectures: &[u32], (major, minor): (u32, u32)) -> bool {
    architectures.iter().any(|architecture| {
        let (of_major, from) = (architecture / 10, architecture % 10);
        of_major == major && from <= minor && except(*architecture) != Some((major, minor))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;

    fn build(name: &str) -> Build {
        name.parse().unwrap()
    }

    #[test]
    fn code_runs_on_cards_of_its_major_version_that_are_as_new() {
        each_case(
            [
                ((7, 5), [true, true]),
                ((8, 0), [true, true]),
                ((8, 9), [true, true]),
                ((9, 0), [true, true]),
                ((12, 0), [false, true]), // too new
                ((12, 1), [false, true]),
                ((7, 0), [true, false]), // too old
                ((6, 1), [true, false]),
                ((3, 7), [false, false]),
                ((11, 0), [false, false]),
            ],
            |(capability, runs)| {
                let found = ["cu126", "cu130"].map(|name| build(name).runs_on(capability));
                assert_eq!(found, runs, "{capability:?}");
            },
        );
    }

    /// `_CompatInterval` of PyTorch 2.11 excludes these.
    #[test]
    fn integrated_gpus_are_left_out_where_pytorch_leaves_them_out() {
        each_case([(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)], |capability| {
            let of_builds = BUILDS.iter().filter(|build| build.runs_on(capability));
            assert_eq!(of_builds.count(), 0, "{capability:?}");
        });
    }

    #[test]
    fn the_warnings_are_pytorchs() {
        let [checked, of_cubins] = build("cu126").warnings(0, "NVIDIA GeForce RTX 5090", (12, 0));
        let lines: Vec<&str> = checked.lines().collect();
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[0], "Found GPU0 NVIDIA GeForce RTX 5090 which is of compute capability (CC) 12.0.");
        assert_eq!(lines[2], "- 5.0 which supports hardware CC >=5.0,<6.0 except {5.3}");
        assert_eq!(lines[8], "- 9.0 which supports hardware CC >=9.0,<10.0");
        assert!(lines[9].ends_with("a PyTorch release that supports one of these CUDA versions: 12.8, 13.0"));
        assert_eq!(
            of_cubins,
            "\nNVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\nThe \
             current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\nIf you want to use the \
             NVIDIA GeForce RTX 5090 GPU with PyTorch, please check the instructions at \
             https://pytorch.org/get-started/locally/\n"
        );
        // No release supports such an old card.
        assert!(!build("cu130").warnings(0, "Tesla K80", (3, 7))[0].contains("Please follow"));
    }

    #[test]
    fn a_build_is_read_as_it_is_written() {
        for Build { name, .. } in BUILDS {
            assert_eq!(build(name).to_string(), name);
        }
        each_case(["", "cu", "cu125", "CU126", "12.6"], |wrong| {
            let error = wrong.parse::<Build>().unwrap_err().to_string();
            assert_eq!(error, format!("unknown build '{wrong}', expected cu126 or cu130"));
        });
    }
}
