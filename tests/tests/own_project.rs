//! Follows the README's section "In a project of your own" in a temporary folder.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The code blocks of a language in the section.
fn blocks(section: &str, language: &str) -> Vec<String> {
    let begins = format!("```{language}\n");
    section.split(&begins).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "in a workspace of its own the crate is compiled again, for 85 CPU-seconds: .ci/run has it"]
fn the_readmes_program_runs_in_a_project_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let [readme, manifest] =
        ["README.md", "Cargo.toml"].map(|file| fs::read_to_string(root.join(file)).unwrap());
    let section =
        readme.split("## In a project of your own\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let ([profile], [program]) = (&blocks(section, "toml")[..], &blocks(section, "rust")[..]) else {
        panic!("the section has other blocks:\n{section}");
    };
    // The README's settings are the same as this workspace's.
    let profiles: Vec<&str> = manifest.split("\n\n").filter(|part| part.contains("[profile.dev")).collect();
    for row in profile.trim().split("\n\n") {
        let (name, setting) = row.split_once('\n').unwrap();
        let ours =
            profiles.iter().find(|part| part.contains(name)).unwrap_or_else(|| panic!("{name} is not here"));
        assert!(ours.contains(setting), "{name}: {setting}");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-project");
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/main.rs"), program).unwrap();
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let dependency = root.join("tensor");
    fs::write(
        folder.join("Cargo.toml"),
        format!(
            "[package]\nname = \"own-project\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
             todevice = {{ path = {dependency:?} }}\n\n[workspace]\n\n{}\n",
            profiles.join("\n\n")
        ),
    )
    .unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", root.join("target"))
        .output()
        .unwrap();
    let [said, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{errors}");
    assert!(said.starts_with("the loss falls from "), "{said}");
}
