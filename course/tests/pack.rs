//! `cargo course pack`: made with a network, used without one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use exercises::Exercise;

use crate::program::{Folder, done};

#[test]
fn a_pack_says_its_size_first_and_touches_no_folder_of_others() {
    let folder = Folder::new("somebody's files");
    folder.write("thesis.txt", "mine");
    let path = folder.0.display().to_string();
    let refused = folder.run(&["pack", &path]);
    assert!(
        refused.code == 2 && refused.err.contains("has files that are not part of a pack"),
        "{refused:?}"
    );
    assert_eq!(folder.names(), ["thesis.txt"]);
    let around = folder.run(&["pack", "/"]);
    assert!(around.code == 2 && around.err.contains("this folder contains the checkout"), "{around:?}");
}

/// Runs a script where there is no network but the computer's own; nothing where the system permits no namespaces.
fn unplugged(folder: &Path, script: &str) -> Option<(String, bool)> {
    let namespace = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "--map-root-user", "sh", "-c", &format!("ip link set lo up; {script}")]);
        unshare.current_dir(folder);
        unshare
    };
    let permitted = namespace("true").output().is_ok_and(|output| output.status.success());
    if !permitted {
        assert!(std::env::var_os("CI").is_none(), "this system permits no network namespaces, and CI has to");
        eprintln!("not tested without a network: this system permits no network namespaces");
        return None;
    }
    let output = namespace(script).env_remove("CARGO").env_remove("RUSTFLAGS").output().unwrap();
    let told =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Some((told, output.status.success()))
}

fn copied(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// The size that was stated for a part, and the one that it has, in MB.
fn sizes(out: &str) -> (Vec<f64>, Vec<f64>) {
    let (before, after) = out.split_once("The pack is complete:").unwrap();
    let read = |text: &str| {
        let number = |line: &str| line.trim().split_once(" MB ")?.0.trim().parse::<f64>().ok();
        text.lines().filter_map(number).collect()
    };
    (read(before), read(after))
}

/// The whole of it: pages with their modules, and a workspace that is compiled and moved.
#[test]
#[ignore = "it compiles all of it once more: .ci/run has it"]
fn a_pack_is_copied_and_used_without_a_network_from_an_empty_cargo_home() {
    let teacher = Folder::new("a teacher with a network");
    let tmp = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    // Not in `target`: a pack cannot be there.
    let made = std::env::temp_dir().join(format!("to-device-pack-{}", std::process::id()));
    let used = std::env::temp_dir().join(format!("to-device-laptop-{}", std::process::id()));
    let _ = fs::remove_dir_all(&made);
    let packed = done(&mut teacher.command(&["pack", &made.display().to_string(), "--rust"]));
    assert_eq!(packed.code, 0, "{packed:?}");
    let (stated, real) = sizes(&packed.out);
    assert!((stated.len(), real.len()) == (6, 3), "{}", packed.out);
    println!("stated {stated:?}, real {real:?}");
    for (stated, real) in
        [(stated[0], real[0]), (stated[1], real[1]), (stated[2] + stated[3] + stated[4], real[2])]
    {
        assert!((0.6..1.5).contains(&(real / stated)), "stated {stated} MB, {real} MB\n{}", packed.out);
    }
    copied(&made, &used);
    fs::remove_dir_all(&made).unwrap();
    let home = tmp.join("an empty cargo home");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home).unwrap();
    let solution = Exercise::find("02-batch").unwrap().solution();
    fs::write(used.join("solution.rs"), solution).unwrap();
    let script = format!(
        "set -e; export CARGO_HOME='{}'; unset CARGO_TARGET_DIR CARGO_MANIFEST_DIR
         if bash -c 'echo > /dev/tcp/1.1.1.1/443' 2>/dev/null; then echo 'there is a network'; exit 1; fi
         ./serve serve --pages book --port 3999 > served.txt 2>&1 & server=$!
         trap 'kill $server' EXIT
         cd to-device
         cargo course check 02-batch || echo CODE $?
         cp ../solution.rs exercises/02-batch.rs
         cargo course check 02-batch
         cargo course quiz 02 < /dev/null || true
         cargo run --bin lab-03 -- --section 1
         cargo run --bin lab-12
         for page in index.html teaching/room.html offline.json; do
             bash -c \"exec 3<>/dev/tcp/127.0.0.1/3999; printf 'GET /$page HTTP/1.1\\r\\nHost: 127.0.0.1:3999\\r\\n\\r\\n' >&3; head -c 200 <&3\" | head -1
         done",
        home.display()
    );
    if let Some((told, well)) = unplugged(&used, &script) {
        println!("{told}");
        assert!(well, "{told}");
        assert!(
            told.contains("not yet: The model is on the GPU, but the batch is not.")
                && told.contains("CODE 1"),
            "{told}"
        );
        assert!(told.contains("passed: right in all 24 runs"), "{told}");
        assert!(told.contains("out[999] = 2997"), "{told}");
        assert!(!told.contains("Compiling todevice"), "it was compiled already: {told}");
        assert!(
            !told.contains("did not match any packages"),
            "a profile of a package that is not here: {told}"
        );
        assert_eq!(told.matches("HTTP/1.1 200 OK").count(), 3, "{told}");
    }
    fs::remove_dir_all(&used).unwrap();
}
