//! Python reads the files we write. These tests need a Python with PyTorch and safetensors, so they are ignored unless
//! requested:
//!
//! ```sh
//! TORCH_PYTHON=venv/bin/python cargo test -p tensor-tests -- --ignored python_reads
//! ```

use std::ffi::OsStr;
use std::process::Command;

use todevice::serialize::safetensors::{Metadata, save_file};
use todevice::serialize::{MapLocation, from_bytes, save};
use todevice::{DType, Device, Machine, Result};

use super::Folder;

/// Runs a part of `read.py` on files.
fn python(part: &str, files: &[&dyn AsRef<OsStr>]) {
    let python = std::env::var_os("TORCH_PYTHON").unwrap_or_else(|| {
        panic!("TORCH_PYTHON is not set: it names a Python that has PyTorch, such as venv/bin/python")
    });
    let mut command = Command::new(python);
    command.args(["-c", include_str!("read.py"), part]).args(files.iter().map(|file| file.as_ref()));
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    assert!(output.status.success(), "{part}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "it takes a Python that has PyTorch, TORCH_PYTHON=…"]
fn python_reads_our_checkpoints() -> Result<()> {
    let (folder, files) = (Folder::new("python"), concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoints/files"));
    let ours = folder.file("ours.pt");
    for name in ["torch-1.13.1.pt", "torch-2.0.1.pt", "torch-2.11.0.pt", "big-endian.pt"] {
        let theirs = format!("{files}/{name}");
        save(from_bytes(&std::fs::read(&theirs)?, MapLocation::None)?, &ours)?;
        python("same", &[&ours, &theirs]);
    }
    // The file stores the device of each tensor, even of a simulated machine.
    let machine: Machine = "sim:t4x2".parse().unwrap();
    machine.enter(|| save(from_bytes(super::of_pytorch::CUDA, MapLocation::None)?, &ours))?;
    python("same", &[&ours, &format!("{files}/cuda.pt")]);
    Ok(())
}

#[test]
#[ignore = "it takes a Python that has PyTorch, TORCH_PYTHON=…"]
fn python_reads_every_kind_of_value_that_we_write() -> Result<()> {
    let folder = Folder::new("python-kinds");
    for (number, file) in super::kinds::accepted().iter().enumerate() {
        save(from_bytes(file, MapLocation::None)?, folder.file(&format!("{number}.pt")))?;
    }
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoints/files/kinds.json");
    python("kinds", &[&cases, &folder.0]);
    Ok(())
}

#[test]
#[ignore = "it takes a Python that has PyTorch and safetensors, TORCH_PYTHON=…"]
fn python_reads_our_safetensors() -> Result<()> {
    let folder = Folder::new("python-safetensors");
    let ours = folder.file("ours.safetensors");
    let theirs = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoints/files/python.safetensors");
    let (tensors, metadata) = todevice::serialize::safetensors::load_file(theirs, Device::Cpu)?;
    save_file(tensors.iter().map(|(name, tensor)| (name, tensor)), &metadata, &ours)?;
    python("same_safetensors", &[&ours, &theirs]);
    let half = tensors[0].1.to(DType::BF16)?;
    save_file([("half", &half)], &Metadata::new(), &ours)?;
    python("has_half", &[&ours]);
    Ok(())
}
