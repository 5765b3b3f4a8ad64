//! Python packages that tests need, fetched once into the target folder.

use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::{env, fs};

/// The path of a file of a package. `pip` fetches the package the first time.
pub fn fetched(package: &str, version: &str, file: &str) -> Result<PathBuf, String> {
    fetched_with(package, version, &[], file)
}

/// The same, with other packages of that version in the same folder.
pub fn fetched_with(package: &str, version: &str, others: &[&str], file: &str) -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let folder = target.join(format!("{package}-{version}"));
    let found = folder.join(file);
    if found.exists() {
        return Ok(found);
    }
    // Renamed when complete, since the download may be interrupted, and another process may fetch the same package.
    let unfinished = target.join(format!("{package}-{version}.{}", process::id()));
    let pip = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"])
        .arg(&unfinished)
        .args([package].iter().chain(others).map(|package| format!("{package}=={version}")))
        .output();
    let trouble = match pip {
        Ok(output) if output.status.success() => {
            fs::rename(&unfinished, &folder).err().map(|error| error.to_string())
        }
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
        Err(error) => Some(format!("python3: {error}")),
    };
    let _ = fs::remove_dir_all(&unfinished);
    match trouble {
        _ if found.exists() => Ok(found),
        trouble => Err(format!(
            "pip did not fetch {package} {version}: {}",
            trouble.unwrap_or_else(|| format!("it has no {file}"))
        )),
    }
}
