//! Sets of images: `torchvision.datasets`, as far as the labs need it.
//!
//! [`open`] is what a program with a `--data DIR` calls: it finds CIFAR-10 or Fashion-MNIST in a folder, and without
//! one makes images of its own, from which there is as much to learn.
//!
//! ```
//! use todevice::data::vision;
//! use todevice::data::{DataLoader, DataLoaderOptions};
//!
//! let sets = vision::open(None)?;
//! let options = DataLoaderOptions { batch_size: 32, shuffle: true, ..Default::default() };
//! let loader = DataLoader::new(sets.train, options)?;
//! let (images, labels) = loader.iter().next().unwrap()?;
//! assert_eq!((images.sizes(), labels.sizes()), (&[32, 3, 32, 32][..], &[32][..]));
//! # Ok::<(), todevice::Error>(())
//! ```

#[cfg(not(target_family = "wasm"))]
mod cifar;
#[cfg(not(target_family = "wasm"))]
mod idx;
mod synthetic;

#[cfg(not(target_family = "wasm"))]
use std::fs::{self, File};
#[cfg(not(target_family = "wasm"))]
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::dataset::{BatchOf, Dataset};
use crate::cpu::reserve::reserve;
use crate::data::error::DataError;
use crate::error::{Error, Result};
use crate::ops::index::error::IndexError;
use crate::tensor::Tensor;
use synthetic::Gratings;

/// What a sample is made of its pixels, which are bytes.
#[derive(Clone, Debug, Default)]
pub enum Transform {
    /// u8, as they are.
    Raw,
    /// f32 from 0 to 1 (`torchvision.transforms.ToTensor`).
    #[default]
    ToTensor,
    /// The same less a mean, divided by a standard deviation, for each channel (`torchvision.transforms.Normalize`).
    Normalize {
        /// What is subtracted.
        mean: Vec<f32>,
        /// What is divided by then.
        std: Vec<f32>,
    },
}

/// Images of one size with their labels. A sample is `(image, label)`: a tensor (channels, height, width) and an i64.
///
/// Clones share the pixels.
#[derive(Clone)]
pub struct Images {
    name: &'static str,
    classes: &'static [&'static str],
    shape: [usize; 3],
    len: usize,
    source: Source,
    /// What each byte of each channel becomes; none of raw images.
    table: Option<Arc<Vec<[f32; 256]>>>,
}

#[derive(Clone)]
enum Source {
    /// All pixels and all labels, from files.
    #[cfg(not(target_family = "wasm"))]
    Stored { pixels: Arc<Vec<u8>>, labels: Arc<Vec<u8>> },
    /// Made when they are asked for.
    Made(Gratings),
}

/// The options of [`Images::synthetic`].
#[derive(Clone, Copy, Debug)]
pub struct SyntheticOptions {
    /// How many images there are.
    pub len: usize,
    /// (channels, height, width)
    pub shape: [usize; 3],
    /// Another seed, other images of the same kind.
    pub seed: u64,
}

impl Default for SyntheticOptions {
    fn default() -> SyntheticOptions {
        SyntheticOptions { len: 2000, shape: [3, 32, 32], seed: 0 }
    }
}

impl Images {
    /// CIFAR-10, the binary version (`torchvision.datasets.CIFAR10`): 50000 colour images of 32 × 32 to train with, 10000
    /// to test. `root` is the folder `cifar-10-batches-bin` or the one around it.
    #[cfg(not(target_family = "wasm"))]
    pub fn cifar10(root: impl AsRef<Path>, train: bool) -> Result<Images> {
        cifar::read(root.as_ref(), train)
    }

    /// Fashion-MNIST (`torchvision.datasets.FashionMNIST`): 60000 grey images of 28 × 28 to train with, 10000 to test.
    /// `root` has the unpacked files, or torchvision's folders.
    #[cfg(not(target_family = "wasm"))]
    pub fn fashion_mnist(root: impl AsRef<Path>, train: bool) -> Result<Images> {
        idx::read(root.as_ref(), &idx::FASHION_MNIST, train)
    }

    /// MNIST, handwritten digits in files of the same kind (`torchvision.datasets.MNIST`).
    #[cfg(not(target_family = "wasm"))]
    pub fn mnist(root: impl AsRef<Path>, train: bool) -> Result<Images> {
        idx::read(root.as_ref(), &idx::MNIST, train)
    }

    /// Images that need no files: noisy stripes, of five directions and two widths, anywhere in the image. Which of the
    /// ten a pixel belongs to nothing tells but its neighbours, so that a network that looks at them learns it soon and
    /// one that weighs each pixel by itself does not.
    ///
    /// Image `i` is always the same for a seed; its class is `i % 10`.
    pub fn synthetic(options: SyntheticOptions) -> Result<Images> {
        let SyntheticOptions { len, shape, seed } = options;
        if shape.contains(&0) || shape.iter().any(|size| *size > 4096) {
            return Err(Error::custom(format!(
                "synthetic images have channels, height and width from 1 to 4096, not {shape:?}"
            )));
        }
        Ok(Images::new("synthetic", &synthetic::CLASSES, shape, len, Source::Made(Gratings { shape, seed })))
    }

    fn new(
        name: &'static str,
        classes: &'static [&'static str],
        shape: [usize; 3],
        len: usize,
        source: Source,
    ) -> Images {
        let images = Images { name, classes, shape, len, source, table: None };
        images.with_transform(Transform::ToTensor).expect("it asks for nothing of the channels")
    }

    /// The same images with samples of another kind.
    pub fn with_transform(self, transform: Transform) -> Result<Images> {
        let channels = self.shape[0];
        let (mean, std) = match transform {
            Transform::Raw => return Ok(Images { table: None, ..self }),
            Transform::ToTensor => (vec![0.0; channels], vec![1.0; channels]),
            Transform::Normalize { mean, std } => (mean, std),
        };
        if mean.len() != channels || std.len() != channels || std.contains(&0.0) {
            return Err(Error::custom(format!(
                "images of {channels} channels are normalised by {channels} means and as many standard deviations \
                 other than 0, not by {mean:?} and {std:?}"
            )));
        }
        let values = |(mean, std): (f32, f32)| std::array::from_fn(|byte| (byte as f32 / 255.0 - mean) / std);
        Ok(Images { table: Some(Arc::new(mean.into_iter().zip(std).map(values).collect())), ..self })
    }

    /// "CIFAR-10", "Fashion-MNIST", "MNIST" or "synthetic".
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What each label stands for.
    pub fn classes(&self) -> &'static [&'static str] {
        self.classes
    }

    /// (channels, height, width)
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The pixels of an image, and its label.
    fn sample(&self, index: usize, out: &mut [u8]) -> Result<i64> {
        if index >= self.len {
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            return Err(IndexError::OutOfBounds { index, dim: 0, size: self.len }.into());
        }
        match &self.source {
            #[cfg(not(target_family = "wasm"))]
            Source::Stored { pixels, labels } => {
                out.copy_from_slice(&pixels[index * out.len()..][..out.len()]);
                Ok(i64::from(labels[index]))
            }
            Source::Made(gratings) => Ok(gratings.draw(index, out)),
        }
    }

    /// Images one after another in one tensor, and their labels.
    fn samples(&self, indices: &[usize]) -> Result<(Tensor, Vec<i64>)> {
        let elements: usize = self.shape.iter().product();
        let mut pixels = reserve(indices.len() * elements)?;
        pixels.resize(indices.len() * elements, 0);
        let mut labels = Vec::with_capacity(indices.len());
        for (index, pixels) in indices.iter().zip(pixels.chunks_mut(elements)) {
            labels.push(self.sample(*index, pixels)?);
        }
        let sizes = [&[indices.len()], &self.shape[..]].concat();
        let Some(table) = &self.table else { return Ok((Tensor::from_slice(&pixels, &sizes)?, labels)) };
        let mut values = reserve(pixels.len())?;
        let of_channel = elements / self.shape[0];
        for (channel, pixels) in pixels.chunks(of_channel).enumerate() {
            let table = &table[channel % table.len()];
            values.extend(pixels.iter().map(|byte| table[usize::from(*byte)]));
        }
        Ok((Tensor::from_slice(&values, &sizes)?, labels))
    }
}

impl Dataset for Images {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        let (images, labels) = self.samples(&[index])?;
        Ok((images.get(0)?, labels[0]))
    }

    /// All at once into the batch, rather than one by one and then together.
    fn get_batch(&self, indices: &[usize]) -> Result<BatchOf<Images>> {
        if indices.is_empty() {
            return Err(DataError::EmptyBatch.into());
        }
        let (images, labels) = self.samples(indices)?;
        Ok((images, Tensor::new(labels)?))
    }
}

/// Images to train with, and others to test.
#[derive(Clone)]
pub struct Sets {
    /// To learn from.
    pub train: Images,
    /// To see what was learned.
    pub test: Images,
}

/// The images in a folder, of CIFAR-10, of Fashion-MNIST or of MNIST; without a folder 2000 synthetic ones, and 500 to
/// test. The last two have the same files: they are taken for MNIST if a folder of that name is around them, or around
/// the `raw` that they are in.
pub fn open(folder: Option<&Path>) -> Result<Sets> {
    match folder {
        None => {
            let of = |len, seed| Images::synthetic(SyntheticOptions { len, seed, ..Default::default() });
            Ok(Sets { train: of(2000, 0)?, test: of(500, 1)? })
        }
        #[cfg(target_family = "wasm")]
        Some(_) => Err(Error::custom(
            "a browser's page cannot read a folder: leave --data out, and the images are synthetic ones",
        )),
        #[cfg(not(target_family = "wasm"))]
        Some(folder) => in_folder(folder),
    }
}

#[cfg(not(target_family = "wasm"))]
fn in_folder(folder: &Path) -> Result<Sets> {
    if folder.exists() && !folder.is_dir() {
        return Err(Error::custom(format!("{}: a file: the folder around it is needed", folder.display())));
    }
    if !folder.is_dir() {
        return Err(Error::custom(format!("{}: there is no such folder", folder.display())));
    }
    if cifar::is_in(folder) {
        return Ok(Sets { train: Images::cifar10(folder, true)?, test: Images::cifar10(folder, false)? });
    }
    let mut sets = [&idx::FASHION_MNIST, &idx::MNIST];
    sets.sort_by_key(|set| !idx::is_named(folder, set));
    for set in sets {
        if idx::is_in(folder, set) {
            let (train, test) = (idx::read(folder, set, true)?, idx::read(folder, set, false)?);
            let ([_, rows, columns], [_, test_rows, test_columns]) = (train.shape, test.shape);
            if train.shape != test.shape {
                return Err(Error::custom(format!(
                    "{}: expected images of one size, found {rows} × {columns} to train with and {test_rows} × \
                     {test_columns} to test",
                    folder.display()
                )));
            }
            return Ok(Sets { train, test });
        }
    }
    cifar::check_unpacked(folder)?;
    Err(Error::custom(format!(
        "{}: neither CIFAR-10 (cifar-10-batches-bin/data_batch_1.bin, …) nor Fashion-MNIST or MNIST \
         (train-images-idx3-ubyte, …) is there",
        folder.display()
    )))
}

/// A file and its length. What is no file, such as a pipe, may never have anything to read.
#[cfg(not(target_family = "wasm"))]
fn open_file(path: &Path) -> Result<(File, u64)> {
    let failed = |error| Error::custom(format!("{}: {error}", path.display()));
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::custom(format!("{}: expected a file, found something else", path.display())));
    }
    Ok((File::open(path).map_err(failed)?, metadata.len()))
}

/// As many bytes as that, or all that are left.
#[cfg(not(target_family = "wasm"))]
fn read_bytes(path: &Path, file: &mut File, len: u64) -> Result<Vec<u8>> {
    let mut bytes = reserve(usize::try_from(len).unwrap_or(usize::MAX))?;
    let read = file.take(len).read_to_end(&mut bytes);
    read.map_err(|error| Error::custom(format!("{}: {error}", path.display())))?;
    Ok(bytes)
}
