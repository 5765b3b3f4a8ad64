//! The workspace of a pack: labs, exercises and `course`, without tests, the book builder, and the browser modules.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use labs::Stop;
use serde_json::Value as Json;

use super::{cargo, run};
use crate::workplace::{failed, root};

/// The packages whose programs students run.
const FOR: [&str; 3] = ["course", "labs", "lab-12"];

/// Folders without sources, with a student's own files, or with the interpreter of Python, which takes minutes to compile.
const SKIPPED: [&str; 5] = ["target", ".git", ".github", ".ci", "torch"];

fn cannot(what: &Path, error: impl std::fmt::Display) -> Stop {
    failed(format!("{}: {error}", what.display()))
}

struct Member {
    name: String,
    folder: PathBuf,
    is_needed: bool,
}

fn members() -> Result<Vec<Member>, Stop> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .map_err(|error| failed(format!("cargo metadata: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let metadata: Json = serde_json::from_slice(&output.stdout).map_err(failed)?;
    let list = |json: &Json| json.as_array().cloned().unwrap_or_default();
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let ids: BTreeSet<String> = list(&metadata["workspace_members"]).iter().map(text).collect();
    let packages: Vec<Json> = list(&metadata["packages"])
        .into_iter()
        .filter(|package| ids.contains(&text(&package["id"])))
        .collect();
    let folder = |package: &Json| {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        manifest.parent().unwrap_or(root()).to_owned()
    };
    // Follow the dependencies from these packages, including dev-dependencies, which Cargo requires.
    let mut needed: BTreeSet<String> = BTreeSet::new();
    let is_for = |package: &&Json| {
        FOR.contains(&text(&package["name"]).as_str()) || folder(package) == root().join("exercises")
    };
    let mut next: Vec<String> =
        packages.iter().filter(is_for).map(|package| text(&package["name"])).collect();
    while let Some(name) = next.pop() {
        if !needed.insert(name.clone()) {
            continue;
        }
        let package = packages.iter().find(|package| text(&package["name"]) == name);
        let dependencies = package.map(|package| list(&package["dependencies"])).unwrap_or_default();
        next.extend(dependencies.iter().filter(|one| !one["path"].is_null()).map(|one| text(&one["name"])));
    }
    let member = |package: &Json| {
        let name = text(&package["name"]);
        Member { folder: folder(package), is_needed: needed.contains(&name), name }
    };
    Ok(packages.iter().map(member).collect())
}

pub fn copy(to: &Path) -> Result<(), Stop> {
    let members = members()?;
    let target = to.join("target");
    // Remove the files of an earlier pack, but keep compiled ones.
    for entry in fs::read_dir(to).into_iter().flatten().flatten() {
        let path = entry.path();
        if path != target {
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|error| cannot(&path, error))?;
        }
    }
    let mut left_out: Vec<&Path> =
        members.iter().filter(|member| !member.is_needed).map(|member| member.folder.as_path()).collect();
    // The pack may be inside the checkout.
    left_out.extend(to.parent());
    copy_folder(root(), to, &left_out).map_err(|error| cannot(to, error))?;
    // `course` reads the plan, the objectives and the moments.
    let book = root().join("book");
    for entry in fs::read_dir(&book).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_text =
            path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml");
        if is_text || path.ends_with("chapters") {
            let to = to.join("book").join(entry.file_name());
            let copied = if path.is_dir() { copy_folder(&path, &to, &[]) } else { copy_file(&path, &to) };
            copied.map_err(|error| cannot(&path, error))?;
        }
    }
    let manifest = to.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| cannot(&manifest, error))?;
    fs::write(&manifest, trimmed(&text, &members)).map_err(|error| cannot(&manifest, error))?;
    // Students use the Rust they have: installing another version needs a network.
    let toolchain = to.join("rust-toolchain.toml");
    match fs::remove_file(&toolchain) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot(&toolchain, error)),
        _ => Ok(()),
    }
}

/// The workspace manifest with only the needed members, and without the profiles of others, which would make Cargo warn
/// at each command.
fn trimmed(manifest: &str, members: &[Member]) -> String {
    let (needed, others): (Vec<&Member>, Vec<&Member>) = members.iter().partition(|member| member.is_needed);
    let path_of = |member: &&Member| {
        Some(member.folder.strip_prefix(root()).ok()?.to_string_lossy().replace('\\', "/"))
    };
    let members: Vec<String> = needed.iter().filter_map(path_of).collect();
    let mut text = String::new();
    let mut is_left_out = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let of_profile = section.strip_prefix("profile.").map(|rest| rest.trim_end_matches(']'));
            is_left_out = of_profile.is_some_and(|profile| {
                let is_of_pages = !profile.starts_with("dev") && !profile.starts_with("release");
                let package = profile.strip_prefix("dev.package.");
                is_of_pages || others.iter().any(|other| package == Some(other.name.as_str()))
            });
        }
        let path =
            line.split_once("path = \"").and_then(|(_, rest)| rest.split_once('"')).map(|(path, _)| path);
        if is_left_out || path.is_some_and(|path| !members.iter().any(|member| member == path)) {
            continue;
        }
        if line.starts_with("exclude = ") {
            continue; // What it excludes is not in the pack.
        }
        if line.starts_with("members = ") {
            text += &format!("members = {members:?}\nexclude = [\"vendor\"]\n");
        } else if line.starts_with("debug = \"line-tables-only\"") {
            // Halves the size. Students never rebuild these crates, so incremental data is useless.
            text += "debug = false\nincremental = false\n";
        } else {
            text += &format!("{line}\n");
        }
    }
    text
}

fn copy_folder(from: &Path, to: &Path, left_out: &[&Path]) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_students = from.ends_with("exercises")
            && from.parent() == Some(root())
            && name.to_string_lossy().starts_with(|letter: char| letter.is_ascii_digit());
        let is_skipped = from == root() && SKIPPED.iter().any(|skipped| name == *skipped);
        if is_skipped || is_students || left_out.contains(&path.as_path()) || name == "progress.json" {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&path, &to.join(name), left_out)?;
        } else if kind.is_file() {
            copy_file(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// Copies a file with its modification time, so that its compiled output stays valid.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to)?;
    let changed = fs::metadata(from)?.modified()?;
    fs::File::options().write(true).open(to)?.set_modified(changed)
}

/// Vendors the external crates, and configures Cargo to use them offline.
pub fn vendor(workspace: &Path) -> Result<(), Stop> {
    let mut vendor = cargo();
    vendor.args(["vendor", "--versioned-dirs", "--quiet", "vendor"]);
    // The output is a suggestion for the config file, which is written below.
    let output =
        vendor.current_dir(workspace).output().map_err(|error| failed(format!("cargo vendor: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("cargo vendor: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let config = workspace.join(".cargo/config.toml");
    let mut text = fs::read_to_string(&config).map_err(|error| cannot(&config, error))?;
    text += "\n# This workspace is complete: nothing is fetched.\n[source.crates-io]\nreplace-with = \"vendored-sources\"\n\n\
             [source.vendored-sources]\ndirectory = \"vendor\"\n\n[net]\noffline = true\n\n\
             # Newer lints do not stop the dependencies.\n[build]\nrustflags = [\"--cap-lints\", \"allow\"]\n";
    fs::write(&config, text).map_err(|error| cannot(&config, error))?;
    let manifest = workspace.join("Cargo.toml");
    let mut text = fs::read_to_string(&manifest).map_err(|error| cannot(&manifest, error))?;
    text += &patches(&workspace.join("vendor"))?;
    fs::write(&manifest, text).map_err(|error| cannot(&manifest, error))
}

/// External crates as path dependencies. If the workspace moves to another folder, Cargo reuses compiled path
/// dependencies, but recompiles vendored crates.
fn patches(vendor: &Path) -> Result<String, Stop> {
    let mut text = "\n[patch.crates-io]\n".to_owned();
    let mut folders: Vec<PathBuf> = fs::read_dir(vendor)
        .map_err(|error| cannot(vendor, error))?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    for (number, folder) in folders.iter().enumerate() {
        let manifest = folder.join("Cargo.toml");
        let of_crate = fs::read_to_string(&manifest).map_err(|error| cannot(&manifest, error))?;
        let (_, package) = of_crate.split_once("[package]").unwrap_or_default();
        let name = package.lines().find_map(|line| line.strip_prefix("name = "));
        let name = name.ok_or_else(|| cannot(&manifest, "it names no package"))?;
        let of_folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // There may be two versions of a crate, so each line needs a unique name.
        text += &format!("crate-{number} = {{ package = {name}, path = \"vendor/{of_folder}\" }}\n");
    }
    Ok(text)
}

pub fn compile(workspace: &Path) -> Result<(), Stop> {
    let mut build = cargo();
    // Build all members, so that the features are the same as for a student's `cargo course`.
    build.args(["build", "--workspace", "--bins"]);
    build.env_remove("CARGO_INCREMENTAL").env("CARGO_TARGET_DIR", workspace.join("target"));
    run(build.current_dir(workspace))
}
