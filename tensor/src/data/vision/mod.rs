//! Image datasets: the part of `torchvision.datasets` that the labs need.
//!
//! [`open`] finds CIFAR-10 or Fashion-MNIST in a folder, or generates images without one.
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

/// The conversion of pixels (bytes) to samples.
#[derive(Clone, Debug, Default)]
pub enum Transform {
    /// u8, unchanged.
    Raw,
    /// f32 from 0 to 1 (`torchvision.transforms.ToTensor`).
    #[default]
    ToTensor,
    /// `ToTensor`, then a normalisation per channel (`torchvision.transforms.Normalize`).
    Normalize {
        /// The mean of each channel.
        mean: Vec<f32>,
        /// The standard deviation of each channel.
        std: Vec<f32>,
    },
}

/// Images of one size with labels. A sample is a (channels, height, width) tensor and an i64. Clones share pixels.
#[derive(Clone)]
pub struct Images {
    name: &'static str,
    classes: &'static [&'static str],
    shape: [usize; 3],
    len: usize,
    source: ImageSource,
    /// The value of each byte per channel; `None` for raw images.
    table: Option<Arc<Vec<[f32; 256]>>>,
}

#[derive(Clone)]
enum ImageSource {
    /// Read from files.
    #[cfg(not(target_family = "wasm"))]
    Stored { pixels: Arc<Vec<u8>>, labels: Arc<Vec<u8>> },
    /// Generated on request.
    Made(Gratings),
}

/// The options of [`Images::synthetic`].
#[derive(Clone, Copy, Debug)]
pub struct SyntheticOptions {
    /// The number of images.
    pub len: usize,
    /// (channels, height, width)
    pub shape: [usize; 3],
    /// The seed.
    pub seed: u64,
}

impl Default for SyntheticOptions {
    fn default() -> SyntheticOptions {
        SyntheticOptions { len: 2000, shape: [3, 32, 32], seed: 0 }
    }
}

impl Images {
    /// Opens CIFAR-10, the binary version (`torchvision.datasets.CIFAR10`): 50000 training and 10000 test images in
    /// colour, 32 × 32. `root` is the folder `cifar-10-batches-bin` or its parent.
    #[cfg(not(target_family = "wasm"))]
    pub fn cifar10(root: impl AsRef<Path>, train: bool) -> Result<Images> {
        cifar::read(root.as_ref(), train)
    }

    /// Opens Fashion-MNIST (`torchvision.datasets.FashionMNIST`): 60000 training and 10000 test images in grey, 28 ×
    /// 28. `root` contains the unpacked files, or torchvision's folders.
    #[cfg(not(target_family = "wasm"))]
    pub fn fashion_mnist(root: impl AsRef<Path>, train: bool) -> Result<Images> {
        idx::read(root.as_ref(), &idx::FASHION_MNIST, train)
    }

    /// Opens MNIST, handwritten digits (`torchvision.datasets.MNIST`).
    #[cfg(not(target_family = "wasm"))]
    pub fn mnist(root: impl AsRef<Path>, train: bool) -> Result<Images> {
        idx::read(root.as_ref(), &idx::MNIST, train)
    }

    /// Generates noisy stripes of five directions and two widths, anywhere in the image. Only neighbouring pixels show
    /// the class, so convolutions learn it quickly, and a linear model does not. Image `i` of a seed has class `i %
    /// 10`.
    pub fn synthetic(options: SyntheticOptions) -> Result<Images> {
        let SyntheticOptions { len, shape, seed } = options;
        if shape.contains(&0) || shape.iter().any(|size| *size > 4096) {
            return Err(Error::custom(format!(
                "synthetic images have channels, height and width from 1 to 4096, not {shape:?}"
            )));
        }
        Ok(Images::new(
            "synthetic",
            &synthetic::CLASSES,
            shape,
            len,
            ImageSource::Made(Gratings { shape, seed }),
        ))
    }

    fn new(
        name: &'static str,
        classes: &'static [&'static str],
        shape: [usize; 3],
        len: usize,
        source: ImageSource,
    ) -> Images {
        let images = Images { name, classes, shape, len, source, table: None };
        images.with_transform(Transform::ToTensor).expect("it asks for nothing of the channels")
    }

    /// Returns the same images with another transform.
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

    /// Returns "CIFAR-10", "Fashion-MNIST", "MNIST" or "synthetic".
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of each label.
    pub fn classes(&self) -> &'static [&'static str] {
        self.classes
    }

    /// Returns (channels, height, width).
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    fn sample(&self, index: usize, out: &mut [u8]) -> Result<i64> {
        if index >= self.len {
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            return Err(IndexError::OutOfBounds { index, dim: 0, size: self.len }.into());
        }
        match &self.source {
            #[cfg(not(target_family = "wasm"))]
            ImageSource::Stored { pixels, labels } => {
                out.copy_from_slice(&pixels[index * out.len()..][..out.len()]);
                Ok(i64::from(labels[index]))
            }
            ImageSource::Made(gratings) => Ok(gratings.draw(index, out)),
        }
    }

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

    /// Writes images directly into the batch, without stacking.
    fn get_batch(&self, indices: &[usize]) -> Result<BatchOf<Images>> {
        if indices.is_empty() {
            return Err(DataError::EmptyBatch.into());
        }
        let (images, labels) = self.samples(indices)?;
        Ok((images, Tensor::new(labels)?))
    }
}

/// Training and test images.
#[derive(Clone)]
pub struct Sets {
    /// The training images.
    pub train: Images,
    /// The test images.
    pub test: Images,
}

/// Opens the CIFAR-10, Fashion-MNIST or MNIST images in a folder; without a folder, generates 2000 training and 500
/// test images. Fashion-MNIST and MNIST share file names: the files are MNIST's if their folder, or the parent of their
/// `raw` folder, has that name.
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

/// Opens a file and returns its length. Anything but a regular file is an error: a pipe might never return data.
#[cfg(not(target_family = "wasm"))]
fn open_file(path: &Path) -> Result<(File, u64)> {
    let failed = |error| Error::custom(format!("{}: {error}", path.display()));
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::custom(format!("{}: expected a file, found something else", path.display())));
    }
    Ok((File::open(path).map_err(failed)?, metadata.len()))
}

#[cfg(not(target_family = "wasm"))]
fn read_bytes(path: &Path, file: &mut File, len: u64) -> Result<Vec<u8>> {
    let mut bytes = reserve(usize::try_from(len).unwrap_or(usize::MAX))?;
    let read = file.take(len).read_to_end(&mut bytes);
    read.map_err(|error| Error::custom(format!("{}: {error}", path.display())))?;
    Ok(bytes)
}
