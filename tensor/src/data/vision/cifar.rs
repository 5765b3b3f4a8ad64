//! CIFAR-10's binary files: records of a label and 32 × 32 pixels, first all red, then green, then blue values.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ImageSource, Images, open_file, read_bytes};
use crate::error::{Error, Result};

const SHAPE: [usize; 3] = [3, 32, 32];
const RECORD: usize = 1 + 3 * 32 * 32;
const PACKED: &str = "cifar-10-binary.tar.gz";
const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
const TRAIN: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
const TEST: [&str; 1] = ["test_batch.bin"];

/// Finds the folder with any of the files, or with any file of the Python version.
fn folder_in(root: &Path) -> Option<PathBuf> {
    let folders = [root.join("cifar-10-batches-bin"), root.to_path_buf(), root.join("cifar-10-batches-py")];
    let has_any = |folder: &PathBuf| {
        let mut files = TRAIN.iter().chain(&TEST);
        files.any(|file| folder.join(file).exists() || folder.join(python_version(file)).exists())
    };
    folders.into_iter().find(has_any)
}

fn python_version(file: &str) -> &str {
    file.trim_end_matches(".bin")
}

pub(super) fn is_in(root: &Path) -> bool {
    folder_in(root).is_some()
}

pub(super) fn read(root: &Path, train: bool) -> Result<Images> {
    let files = if train { &TRAIN[..] } else { &TEST };
    let Some(folder) = folder_in(root) else {
        check_unpacked(root)?;
        return Err(Error::custom(format!(
            "{}: CIFAR-10 is not there: looked for cifar-10-batches-bin/{} and for {} itself",
            root.display(),
            files[0],
            files[0]
        )));
    };
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for file in files {
        let path = folder.join(file);
        if !path.exists() && folder.join(python_version(file)).exists() {
            return Err(Error::custom(format!(
                "{}: this is the Python version of CIFAR-10: the binary version is needed, {PACKED}",
                folder.display()
            )));
        }
        read_records(&path, &mut pixels, &mut labels)?;
    }
    let len = labels.len();
    let source = ImageSource::Stored { pixels: Arc::new(pixels), labels: Arc::new(labels) };
    Ok(Images::new("CIFAR-10", &CLASSES, SHAPE, len, source))
}

pub(super) fn check_unpacked(root: &Path) -> Result<()> {
    let archive = root.join(PACKED);
    match archive.exists() {
        true => Err(Error::custom(format!("{}: unpack it first, with tar -xzf", archive.display()))),
        false => Ok(()),
    }
}

fn read_records(path: &Path, pixels: &mut Vec<u8>, labels: &mut Vec<u8>) -> Result<()> {
    let (mut file, len) = open_file(path)?;
    let record = RECORD as u64;
    if len == 0 || len % record != 0 {
        return Err(Error::custom(format!(
            "{}: truncated: expected records of {RECORD} bytes ({} in 10000 of them), found {len} bytes, which are {} \
             records and {} bytes",
            path.display(),
            10_000 * RECORD,
            len / record,
            len % record,
        )));
    }
    let bytes = read_bytes(path, &mut file, len)?;
    for (number, record) in bytes.chunks_exact(RECORD).enumerate() {
        if usize::from(record[0]) >= CLASSES.len() {
            return Err(Error::custom(format!(
                "{}: record {number} has label {}: expected 0 to {}",
                path.display(),
                record[0],
                CLASSES.len() - 1
            )));
        }
        labels.push(record[0]);
        pixels.extend_from_slice(&record[1..]);
    }
    Ok(())
}
