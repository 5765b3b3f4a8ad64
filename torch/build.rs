//! Collects the modules that are frozen into the program: ours in `lib/`, and the named files of Python's library.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules of Python's library that run as they are (`rustpython-pylib`, under the PSF license).
const OF_PYTHON: &[&str] = &[
    "__future__.py",
    "_collections_abc.py",
    "_weakrefset.py",
    "abc.py",
    "bisect.py",
    "collections/__init__.py",
    "collections/_defaultdict.py",
    "contextlib.py",
    "copy.py",
    "copyreg.py",
    "dataclasses.py",
    "enum.py",
    "functools.py",
    "heapq.py",
    "json/__init__.py",
    "json/decoder.py",
    "json/encoder.py",
    "json/scanner.py",
    "keyword.py",
    "numbers.py",
    "operator.py",
    "pprint.py",
    "random.py",
    "re/__init__.py",
    "re/_casefix.py",
    "re/_compiler.py",
    "re/_constants.py",
    "re/_parser.py",
    "reprlib.py",
    "string/__init__.py",
    "textwrap.py",
    "types.py",
    "typing.py",
    "weakref.py",
];

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    let frozen = out.join("lib");
    let _ = fs::remove_dir_all(&frozen);
    let python = Path::new(rustpython_pylib::LIB_PATH);
    for name in OF_PYTHON {
        copy(&python.join(name), &frozen.join(name));
    }
    copy_folder(Path::new("lib"), &frozen);
    println!("cargo:rerun-if-changed=lib");
    println!("cargo:rerun-if-changed=build.rs");
    // The macro looks for the folder beside the file that calls it.
    fs::write(out.join("library.rs"), "rustpython_vm::py_freeze!(dir = \"lib\")\n")
        .expect("OUT_DIR can be written");
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())).flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            copy(&path, &target);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("it is in a folder")).expect("OUT_DIR can be written");
    fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}
