//! A sandbox for a student's run, if the OS has one: Landlock, in Linux since 5.13.
//!
//! A sandboxed process reads and writes in one folder, reads system information, and has no TCP. Without a sandbox,
//! `rules.rs` rejects the functions that write.

use std::path::Path;

/// Whether this system has the sandbox. To make sure, confines a thread.
pub fn is_available() -> bool {
    std::thread::spawn(|| confine(Path::new("/")).is_ok()).join().unwrap_or(false)
}

/// Confines this thread, and all threads and processes that it starts, to a folder, permanently.
#[cfg(target_os = "linux")]
pub fn confine(folder: &Path) -> Result<(), String> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetError, Scope, path_beneath_rules,
    };

    /// Files that the crates read to determine the memory size and the number of cores.
    const READABLE: [&str; 5] = ["/proc/self", "/proc/meminfo", "/proc/stat", "/proc/cpuinfo", "/sys"];
    // Landlock's first version restricts file access, and is required. Later restrictions are applied if available.
    let all = AccessFs::from_all(ABI::V6);
    let rules = || -> Result<_, RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .handle_access(AccessNet::from_all(ABI::V6))?
            .scope(Scope::from_all(ABI::V6))?
            .create()?
            .add_rules(path_beneath_rules([folder], all & !AccessFs::Execute))?
            .add_rules(path_beneath_rules(READABLE, AccessFs::ReadFile | AccessFs::ReadDir))?
            .restrict_self()
    };
    rules().map(|_| ()).map_err(|error| format!("Landlock: {error}"))
}

#[cfg(not(target_os = "linux"))]
pub fn confine(_: &Path) -> Result<(), String> {
    Err("this system has no Landlock".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn behind_walls_one_folder_is_left() {
        let parent = std::env::temp_dir().join(format!("to-device-walls-{}", std::process::id()));
        let own = parent.join("own");
        fs::create_dir_all(&own).unwrap();
        fs::write(parent.join("secret"), "").unwrap();
        // Confines only this thread.
        let behind = |walls: bool| {
            let is_denied = |done: std::io::Result<()>| done.is_err() == walls;
            assert!(fs::write(own.join("mine"), "x").is_ok() && fs::read(own.join("mine")).is_ok());
            assert!(is_denied(fs::write(parent.join("secret"), "x")));
            assert!(is_denied(fs::read(parent.join("secret")).map(drop)));
            assert!(is_denied(fs::write(parent.join("new"), "x")));
            assert!(is_denied(fs::create_dir(parent.join("folder"))));
            assert!(is_denied(fs::rename(own.join("mine"), parent.join("moved"))));
            assert!(is_denied(std::process::Command::new("true").output().map(drop)));
            assert!(!cfg!(target_os = "linux") || fs::read("/proc/meminfo").is_ok());
        };
        let walls = is_available();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(confine(&own).is_ok(), walls);
                behind(walls);
            });
        });
        behind(false);
        fs::remove_dir_all(parent).unwrap();
    }
}
