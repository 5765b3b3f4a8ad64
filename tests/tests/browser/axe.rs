//! axe-core, the accessibility checker, as a script to run in a page.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::{fs, process};

use serde_json::Value as Json;

/// The script, loaded on first use.
pub static AXE: LazyLock<String> = LazyLock::new(|| {
    let script = fetched().unwrap_or_else(|what| {
        panic!("the tests of the book's pages need axe-core: install npm, which fetches it ({what})")
    });
    fs::read_to_string(&script).unwrap_or_else(|error| panic!("{}: {error}", script.display()))
});

/// Our own copy, in the target folder; npm downloads it the first time.
fn fetched() -> Result<PathBuf, String> {
    let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    let package = fs::read_to_string(wanted.join("package.json")).unwrap();
    let package: Json = serde_json::from_str(&package).unwrap();
    let version = package["dependencies"]["axe-core"].as_str().expect("a version");

    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let folder = target.join(format!("axe-core-{version}"));
    let script = folder.join("node_modules/axe-core/axe.min.js");
    if script.exists() {
        return Ok(script);
    }
    // Renamed once complete, so that interrupted or concurrent downloads do no harm.
    let unfinished = target.join(format!("axe-core-{version}.{}", process::id()));
    fs::create_dir_all(&unfinished).unwrap();
    for file in ["package.json", "package-lock.json"] {
        fs::copy(wanted.join(file), unfinished.join(file)).unwrap();
    }
    let npm = Command::new("npm")
        .args(["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&unfinished)
        .output();
    let trouble = match npm {
        Ok(output) if output.status.success() => {
            fs::rename(&unfinished, &folder).err().map(|error| error.to_string())
        }
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
        Err(error) => Some(format!("npm: {error}")),
    };
    let _ = fs::remove_dir_all(&unfinished);
    match trouble {
        // Or another process was faster.
        _ if script.exists() => Ok(script),
        trouble => Err(trouble.unwrap_or_else(|| format!("the package has no {}", script.display()))),
    }
}
