//! IDX files (MNIST and similar datasets): a header of big-endian 32-bit integers, then one byte per element.
//!
//! ```text
//! images   0x00000803  how many  rows  columns   then a byte for each pixel
//! labels   0x00000801  how many                  then a byte for each label
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ImageSource, Images, open_file, read_bytes};
use crate::error::{Error, Result};

pub(super) struct Set {
    name: &'static str,
    /// Torchvision's folder, with a subfolder `raw`.
    folder: &'static str,
    classes: [&'static str; 10],
}

pub(super) const FASHION_MNIST: Set = Set {
    name: "Fashion-MNIST",
    folder: "FashionMNIST",
    classes: [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ],
};

pub(super) const MNIST: Set =
    Set { name: "MNIST", folder: "MNIST", classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] };

const IMAGES: u32 = 0x0000_0803;
const LABELS: u32 = 0x0000_0801;

fn files(train: bool) -> [&'static str; 2] {
    match train {
        true => ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"],
        false => ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"],
    }
}

fn packed(path: &Path) -> PathBuf {
    path.with_file_name(format!("{}.gz", path.file_name().unwrap_or_default().to_string_lossy()))
}

/// Finds the folder with any of the files, packed or not. Files directly in `root` do not identify their dataset.
fn folder_in(root: &Path, set: &Set) -> Option<PathBuf> {
    let has_any = |folder: &PathBuf| {
        let mut paths = [true, false].into_iter().flat_map(files).map(|file| folder.join(file));
        paths.any(|path| path.exists() || packed(&path).exists())
    };
    [root.join(set.folder).join("raw"), root.join("raw"), root.to_path_buf()].into_iter().find(has_any)
}

/// Returns whether the folder, or the parent of `raw`, has this dataset's name.
pub(super) fn is_named(root: &Path, set: &Set) -> bool {
    let path = fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
    let folder = if path.ends_with("raw") { path.parent() } else { Some(path.as_path()) };
    folder.and_then(Path::file_name).is_some_and(|name| name.eq_ignore_ascii_case(set.folder))
}

pub(super) fn is_in(root: &Path, set: &Set) -> bool {
    folder_in(root, set).is_some()
}

pub(super) fn read(root: &Path, set: &'static Set, train: bool) -> Result<Images> {
    let [image_file, label_file] = files(train);
    let folder = folder_in(root, set).ok_or_else(|| {
        Error::custom(format!(
            "{}: {} is not there: looked for {image_file} in it, in raw and in {}/raw",
            root.display(),
            set.name,
            set.folder
        ))
    })?;
    let (image_path, label_path) = (folder.join(image_file), folder.join(label_file));
    let ([count, rows, columns], pixels) = read_idx(&image_path, IMAGES)?;
    if count == 0 || rows == 0 || columns == 0 {
        return Err(Error::custom(format!(
            "{}: expected images, found {count} of {rows} × {columns}",
            image_path.display()
        )));
    }
    let ([labelled], labels) = read_idx(&label_path, LABELS)?;
    if labelled != count {
        return Err(Error::custom(format!(
            "{}: expected {count} labels, one for each image of {image_file}, found {labelled}",
            label_path.display()
        )));
    }
    if let Some(number) = labels.iter().position(|label| usize::from(*label) >= set.classes.len()) {
        return Err(Error::custom(format!(
            "{}: record {number} has label {}: expected 0 to {}",
            label_path.display(),
            labels[number],
            set.classes.len() - 1
        )));
    }
    let source = ImageSource::Stored { pixels: Arc::new(pixels), labels: Arc::new(labels) };
    Ok(Images::new(set.name, &set.classes, [1, rows, columns], count, source))
}

/// Returns the sizes in the header, and the data.
fn read_idx<const N: usize>(path: &Path, magic: u32) -> Result<([usize; N], Vec<u8>)> {
    if !path.exists() && packed(path).exists() {
        let (packed, tool) = (packed(path), if cfg!(windows) { "an archive manager" } else { "gunzip" });
        return Err(Error::custom(format!("{}: unpack it first, with {tool}", packed.display())));
    }
    // The header comes first: a file in another format may have any length.
    let (mut file, found) = open_file(path)?;
    let header = 4 * (1 + N) as u64;
    let numbers = read_bytes(path, &mut file, header)?;
    let number = |i: usize| -> Option<u32> {
        Some(u32::from_be_bytes(numbers.get(4 * i..4 * i + 4)?.try_into().expect("it is 4 bytes")))
    };
    if let Some(found) = number(0)
        && found != magic
    {
        let gzip = if found >> 16 == 0x1f8b { ", as a packed file does: unpack it first" } else { "" };
        return Err(Error::custom(format!(
            "{}: expected the magic number {magic:#010x}, found {found:#010x}{gzip}",
            path.display()
        )));
    }
    let truncated =
        |expected: &str| Error::custom(format!("{}: expected {expected}, found {found}", path.display()));
    let sizes: Option<Vec<u32>> = (1..=N).map(number).collect();
    let sizes = sizes.ok_or_else(|| truncated(&format!("{header} bytes of header alone")))?;
    // Sizes in a damaged file are arbitrary.
    let elements = sizes.iter().try_fold(1u64, |product, size| product.checked_mul(u64::from(*size)));
    let expected = elements.and_then(|elements| elements.checked_add(header));
    if expected != Some(found) {
        let bytes =
            expected.map_or("more than 2⁶⁴ bytes".to_owned(), |expected| format!("{expected} bytes"));
        return Err(truncated(&format!("{bytes} by its header of sizes {sizes:?}")));
    }
    let bytes = read_bytes(path, &mut file, found - header)?;
    Ok((std::array::from_fn(|i| sizes[i] as usize), bytes))
}
