//! NVML, through a stand-in library: the queries reach it, and its answers arrive. A process looks for NVML only once,
//! so each case has its own process.

use std::path::{Path, PathBuf};
use std::process::Command;

use todevice::monitor::{ComputeMode, ProcessKind, Versions, nvml_gpu, nvml_topology, nvml_versions};

/// The PCI address of the stand-in's first card.
const CARD: &str = "00000000:3B:00.0";

/// The folder with the stand-in.
fn stand_in() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fake_cuda/libnvidia-ml.cpp");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvml");
    std::fs::create_dir_all(&folder).unwrap();
    crate::stand_ins::fake_cuda::gpp::shared_object(
        &source,
        &folder.join("libnvidia-ml.so.1"),
        &["-O1", "-fvisibility=default"],
    )
    .unwrap();
    folder
}

/// Runs a single test of this file, with libraries from a folder.
fn in_a_process_of_its_own(test: &str, libraries: &Path) {
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this)
        .args(["--exact", &format!("nvml::{test}"), "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", libraries)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_answer_arrives() {
    in_a_process_of_its_own("a_card", &stand_in());
}

#[test]
#[ignore = "run by every_answer_arrives"]
fn a_card() {
    let gpu = nvml_gpu(CARD).unwrap();
    assert_eq!((gpu.name.as_str(), gpu.bus_id.as_deref()), ("Tesla T4", Some(CARD)));
    assert_eq!((gpu.memory_used, gpu.memory_total), (1400 << 20, 15360 << 20));
    assert_eq!((gpu.utilization, gpu.memory_utilization), (Some(12), Some(3)));
    assert_eq!((gpu.fan_speed, gpu.temperature, gpu.performance_state), (None, Some(47), Some(8)));
    assert_eq!((gpu.power_draw, gpu.power_limit), (Some(9_480), Some(70_000)));
    assert_eq!((gpu.pcie_to_device, gpu.pcie_to_host), (Some(3_657_000_000), Some(2_000_000)));
    assert_eq!((gpu.sm_active, gpu.sm_occupancy), (None, None));
    assert_eq!((gpu.persistence_mode, gpu.display_active, gpu.mig_mode), (Some(true), Some(false), None));
    assert_eq!((gpu.ecc_errors, gpu.compute_mode), (Some(2), Some(ComputeMode::ExclusiveProcess)));
    let versions = nvml_versions();
    let versions = [versions.nvml, versions.driver, versions.cuda].map(Option::unwrap);
    assert_eq!(versions, ["610.43.02", "610.43.02", "13.3"]);

    let processes: Vec<_> =
        gpu.processes.iter().map(|process| (process.pid, process.kind, process.used_memory)).collect();
    let expected = [
        (900, ProcessKind::Graphics, None),
        (2112, ProcessKind::Both, Some(1024 << 20)),
        (4242, ProcessKind::Compute, Some(300 << 20)),
    ];
    assert_eq!(processes, expected);
    assert!(gpu.processes.iter().all(|process| process.name.is_empty() && !process.is_this));

    let cards = ["00000000:3B:00.0", "00000000:3C:00.0", "00000000:AF:00.0"].map(str::to_owned);
    assert_eq!(
        nvml_topology(&cards).unwrap().to_string(),
        "        GPU0    GPU1    GPU2\nGPU0     X      NV2     SYS\nGPU1    NV2      X      SYS\nGPU2    SYS     SYS      X"
    );
    let error = nvml_topology(&["00000000:01:00.0".to_owned()]).unwrap_err();
    assert!(error.starts_with("NVML finds no GPU at 00000000:01:00.0: "), "{error}");

    let error = nvml_gpu("00000000:01:00.0").unwrap_err();
    assert!(error.starts_with("NVML finds no GPU at 00000000:01:00.0: "), "{error}");
}

#[test]
fn a_missing_library_is_a_finding() {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_nvml");
    std::fs::create_dir_all(&empty).unwrap();
    in_a_process_of_its_own("no_card", &empty);
}

/// If there is a real library, it does not know that card either.
#[test]
#[ignore = "run by a_missing_library_is_a_finding"]
fn no_card() {
    let error = nvml_gpu(CARD).unwrap_err();
    assert!(error.starts_with("NVML cannot be used: ") || error.starts_with("NVML finds no GPU"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    if error.starts_with("NVML cannot be used: ") {
        assert_eq!(nvml_versions(), Versions::default());
    }
}
