//! Image datasets: files in the formats of CIFAR-10 and Fashion-MNIST, the errors for broken ones, and generated
//! images.

use crate::each_case::each_case;
use std::fs;
use std::path::{Path, PathBuf};

use todevice::data::vision::{self, Images, SyntheticOptions, Transform};
use todevice::nn::{self, Module};
use todevice::optim::{self, AdamOptions, Optimizer};
use todevice::prelude::*;

use crate::seeded;

/// A temporary folder for a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vision-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CIFAR: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];

/// `count` records, of which the first has label `first`, with pixels that depend on their position.
fn records(first: u8, count: u8) -> Vec<u8> {
    let record = |i: u8| [(first + i) % 10].into_iter().chain((0..3072).map(move |p| (p / 7) as u8 ^ i));
    (0..count).flat_map(record).collect()
}

fn cifar(name: &str, below: &str) -> Folder {
    let folder = Folder::new(name);
    for (i, file) in CIFAR.into_iter().enumerate() {
        folder.write(&format!("{below}{file}"), &records(i as u8, 3));
    }
    folder
}

fn idx(magic: u32, sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
    let header = [&[magic], sizes].concat();
    header.iter().flat_map(|number| number.to_be_bytes()).chain(bytes.iter().copied()).collect()
}

fn fashion(name: &str, below: &str) -> Folder {
    let folder = Folder::new(name);
    for (split, count) in [("train", 7u8), ("t10k", 2)] {
        let pixels: Vec<u8> = (0..u32::from(count) * 20).map(|i| (i * 3) as u8).collect();
        let images = idx(0x803, &[count.into(), 4, 5], &pixels);
        folder.write(&format!("{below}{split}-images-idx3-ubyte"), &images);
        let labels: Vec<u8> = (0..count).map(|i| 9 - i).collect();
        folder.write(&format!("{below}{split}-labels-idx1-ubyte"), &idx(0x801, &[count.into()], &labels));
    }
    folder
}

#[test]
fn cifar_10_is_read_from_its_folder_or_the_one_around_it() -> Result<()> {
    each_case(["", "cifar-10-batches-bin/"], |below| -> Result<()> {
        let folder = cifar(&format!("cifar-{}", below.len()), below);
        let sets = vision::open(Some(&folder.0))?;
        assert_eq!((sets.train.name(), sets.train.shape()), ("CIFAR-10", [3, 32, 32]));
        assert_eq!((sets.train.len(), sets.test.len(), sets.train.classes()[9]), (15, 3, "truck"));
        // The second record of the third file.
        let (image, label) = sets.train.get(7)?;
        assert_eq!((image.sizes(), label), (&[3, 32, 32][..], 3));
        let pixel = |at: usize| f32::from((at / 7) as u8 ^ 1) / 255.0;
        assert_eq!(image.to_vec::<f32>()?, (0..3072).map(pixel).collect::<Vec<_>>());
        assert!(sets.train.get(15).is_err());
        let raw = sets.test.with_transform(Transform::Raw)?;
        let (image, label) = raw.get(2)?;
        assert_eq!((image.dtype(), label), (DType::U8, 7));
        assert_eq!(image.to_vec::<u8>()?, (0..3072).map(|p| (p / 7) as u8 ^ 2).collect::<Vec<_>>());
        Ok(())
    });
    Ok(())
}

#[test]
fn fashion_mnist_is_read_from_its_files_or_torchvisions_folders() -> Result<()> {
    each_case(
        [
            (".", "", "Fashion-MNIST"),
            (".", "raw/", "Fashion-MNIST"),
            (".", "FashionMNIST/raw/", "Fashion-MNIST"),
            ("FashionMNIST", "raw/", "Fashion-MNIST"),
            (".", "MNIST/raw/", "MNIST"),
            ("MNIST", "raw/", "MNIST"),
            ("MNIST/raw", "", "MNIST"),
            ("mnist", "", "MNIST"),
        ]
        .into_iter()
        .enumerate(),
        |(i, (root, below, name))| -> Result<()> {
            let folder = fashion(&format!("fashion-{i}"), &format!("{root}/{below}"));
            let sets = vision::open(Some(&folder.0.join(root)))?;
            assert_eq!((sets.train.name(), sets.train.shape()), (name, [1, 4, 5]));
            assert_eq!((sets.train.len(), sets.test.len()), (7, 2));
            let half = Transform::Normalize { mean: vec![0.5], std: vec![0.25] };
            let (image, label) = sets.train.with_transform(half)?.get(3)?;
            assert_eq!(label, 6);
            let pixel = |i: usize| ((i * 3) as u8 as f32 / 255.0 - 0.5) / 0.25;
            assert_eq!(image.to_vec::<f32>()?, (60..80).map(pixel).collect::<Vec<_>>());
            Ok(())
        },
    );
    Ok(())
}

#[test]
fn workers_and_batches_give_what_the_samples_are() -> Result<()> {
    let normalize = Transform::Normalize { mean: vec![0.4, 0.5, 0.6], std: vec![0.2, 0.25, 0.3] };
    let folder = cifar("workers", "");
    each_case(
        [
            Images::cifar10(&folder.0, true)?,
            Images::synthetic(SyntheticOptions { len: 15, ..Default::default() })?,
        ],
        |images| -> Result<()> {
            let images = images.with_transform(normalize.clone())?;
            for num_workers in [0, 2] {
                let options = DataLoaderOptions { batch_size: 4, num_workers, ..Default::default() };
                let mut index = 0;
                for batch in &DataLoader::new(images.clone(), options)? {
                    let (x, y) = batch?;
                    for (i, label) in y.to_vec::<i64>()?.into_iter().enumerate() {
                        let (image, expected) = images.get(index)?;
                        assert!(x.get(i as i64)?.equal(&image)? && label == expected);
                        index += 1;
                    }
                }
                assert_eq!(index, 15);
            }
            Ok(())
        },
    );
    assert!(Images::synthetic(Default::default())?.get_batch(&[]).is_err());
    Ok(())
}

#[track_caller]
fn says(folder: &Folder, expected: &str) {
    let error = vision::open(Some(&folder.0)).err().expect("it is broken").to_string();
    let found = error.replace(&*folder.0.to_string_lossy(), "DIR").replace('\\', "/");
    assert_eq!(found, expected);
}

#[test]
fn broken_files_of_cifar_10_are_named_with_what_is_wrong() {
    let folder = cifar("broken-cifar", "");
    folder.write("data_batch_2.bin", &records(0, 3)[..3073 * 2 + 100]);
    says(
        &folder,
        "DIR/data_batch_2.bin: truncated: expected records of 3073 bytes (30730000 in 10000 of them), found 6246 bytes, which are 2 records and 100 bytes",
    );
    folder.write("data_batch_2.bin", &[]);
    says(
        &folder,
        "DIR/data_batch_2.bin: truncated: expected records of 3073 bytes (30730000 in 10000 of them), found 0 bytes, which are 0 records and 0 bytes",
    );
    let mut wrong = records(0, 3);
    wrong[3073] = 10;
    folder.write("data_batch_2.bin", &wrong);
    says(&folder, "DIR/data_batch_2.bin: record 1 has label 10: expected 0 to 9");
    fs::remove_file(folder.0.join("data_batch_2.bin")).unwrap();
    let missing = vision::open(Some(&folder.0)).err().unwrap().to_string();
    assert!(missing.contains("data_batch_2.bin: ") && !missing.contains('\n'), "{missing}");

    let folder = Folder::new("python-cifar");
    folder.write("cifar-10-batches-py/data_batch_1", b"\x80\x02}q\x01");
    says(
        &folder,
        "DIR/cifar-10-batches-py: this is the Python version of CIFAR-10: the binary version is needed, cifar-10-binary.tar.gz",
    );
}

#[test]
fn broken_files_of_fashion_mnist_are_named_with_what_is_wrong() {
    let folder = fashion("broken-fashion", "");
    let images = "train-images-idx3-ubyte";
    folder.write(images, &idx(0x801, &[7, 4, 5], &[0; 140]));
    says(&folder, "DIR/train-images-idx3-ubyte: expected the magic number 0x00000803, found 0x00000801");
    folder.write(images, &[0x1f, 0x8b, 8, 0, 0, 0]);
    says(
        &folder,
        "DIR/train-images-idx3-ubyte: expected the magic number 0x00000803, found 0x1f8b0800, the number of a packed file: unpack it first",
    );
    folder.write(images, &idx(0x803, &[7, 4], &[]));
    says(&folder, "DIR/train-images-idx3-ubyte: expected at least 16 bytes for the header, found 12");
    folder.write(images, &[]);
    says(&folder, "DIR/train-images-idx3-ubyte: expected at least 16 bytes for the header, found 0");
    folder.write(images, &idx(0x803, &[7, 4, 5], &[0; 139]));
    says(
        &folder,
        "DIR/train-images-idx3-ubyte: expected 156 bytes for the sizes [7, 4, 5] in its header, found 155",
    );
    folder.write(images, &idx(0x803, &[u32::MAX; 3], &[0; 9]));
    says(
        &folder,
        "DIR/train-images-idx3-ubyte: expected more than 2⁶⁴ bytes for the sizes [4294967295, 4294967295, 4294967295] in its header, found 25",
    );
    folder.write(images, &idx(0x803, &[0, 4, 5], &[]));
    says(&folder, "DIR/train-images-idx3-ubyte: expected images, found 0 of 4 × 5");
    folder.write(images, &idx(0x803, &[6, 4, 5], &[0; 120]));
    says(
        &folder,
        "DIR/train-labels-idx1-ubyte: expected 6 labels, one for each image of train-images-idx3-ubyte, found 7",
    );
    folder.write(images, &idx(0x803, &[7, 4, 5], &[0; 140]));
    folder.write("train-labels-idx1-ubyte", &idx(0x801, &[7], &[0, 1, 2, 3, 4, 5, 200]));
    says(&folder, "DIR/train-labels-idx1-ubyte: record 6 has label 200: expected 0 to 9");
    fs::rename(folder.0.join(images), folder.0.join("train-images-idx3-ubyte.gz")).unwrap();
    let tool = if cfg!(windows) { "an archive manager" } else { "gunzip" };
    says(&folder, &format!("DIR/train-images-idx3-ubyte.gz: unpack it first, with {tool}"));
}

#[test]
#[cfg(unix)]
fn a_pipe_is_no_file_and_a_wrong_file_of_any_length_is_not_read() {
    let pipe = |folder: &Folder, name: &str| {
        fs::remove_file(folder.0.join(name)).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(folder.0.join(name)).status().unwrap().success());
        says(folder, &format!("DIR/{name}: expected a file, found something else"));
    };
    // 1 TB, sparse, so that none of it is on disk.
    let long = |folder: &Folder, name: &str| {
        fs::File::options().write(true).open(folder.0.join(name)).unwrap().set_len(1 << 40).unwrap();
    };
    let folder = cifar("long-cifar", "");
    long(&folder, "data_batch_1.bin");
    says(
        &folder,
        "DIR/data_batch_1.bin: truncated: expected records of 3073 bytes (30730000 in 10000 of them), found 1099511627776 bytes, which are 357797470 records and 2466 bytes",
    );
    pipe(&folder, "data_batch_1.bin");
    let folder = fashion("long-fashion", "");
    long(&folder, "train-images-idx3-ubyte");
    says(
        &folder,
        "DIR/train-images-idx3-ubyte: expected 156 bytes for the sizes [7, 4, 5] in its header, found 1099511627776",
    );
    pipe(&folder, "train-images-idx3-ubyte");
}

#[test]
fn a_folder_without_images_is_told_what_was_looked_for() {
    let folder = Folder::new("empty");
    says(
        &folder,
        "DIR: found neither CIFAR-10 (cifar-10-batches-bin/data_batch_1.bin, …) nor Fashion-MNIST or MNIST (train-images-idx3-ubyte, …)",
    );
    folder.write("cifar-10-binary.tar.gz", b"\x1f\x8b");
    says(&folder, "DIR/cifar-10-binary.tar.gz: unpack it first, with tar -xzf");
    fs::remove_file(folder.0.join("cifar-10-binary.tar.gz")).unwrap();
    let missing = vision::open(Some(&folder.0.join("none"))).err().unwrap().to_string();
    assert!(missing.ends_with("none: there is no such folder"), "{missing}");
    folder.write("file", b"");
    let file = vision::open(Some(&folder.0.join("file"))).err().unwrap().to_string();
    assert!(file.ends_with("file: this is a file: name its folder"), "{file}");
    let error = Images::cifar10(&folder.0, true).err().unwrap().to_string();
    assert!(error.ends_with(
        "CIFAR-10 not found: looked for cifar-10-batches-bin/data_batch_1.bin and for data_batch_1.bin itself"
    ));
    let error = Images::mnist(&folder.0, false).err().unwrap().to_string();
    assert!(
        error.ends_with("MNIST not found: looked for t10k-images-idx3-ubyte in it, in raw and in MNIST/raw")
    );
}

#[test]
fn options_that_make_no_sense_are_refused() -> Result<()> {
    each_case([[0, 8, 8], [3, 8, 5000]], |shape| {
        assert!(Images::synthetic(SyntheticOptions { shape, ..Default::default() }).is_err());
    });
    each_case(
        [(vec![0.5], vec![0.5; 3]), (vec![0.5; 3], vec![0.5, 0.0, 0.5])],
        |(mean, std)| -> Result<()> {
            let images = Images::synthetic(Default::default())?;
            let error = images.with_transform(Transform::Normalize { mean, std }).err().unwrap().to_string();
            assert!(error.starts_with("images with 3 channels need 3 means"), "{error}");
            Ok(())
        },
    );
    Ok(())
}

#[test]
fn made_images_are_the_same_each_time_and_others_for_another_seed() -> Result<()> {
    let of = |seed| Images::synthetic(SyntheticOptions { len: 40, shape: [1, 28, 28], seed });
    let (images, others) = (of(3)?, of(4)?);
    each_case([0, 1, 13, 39], |index| -> Result<()> {
        let (image, label) = images.get(index)?;
        assert!(image.equal(&of(3)?.get(index)?.0)? && label == index as i64 % 10);
        assert!(!image.equal(&others.get(index)?.0)? && !image.equal(&images.get((index + 10) % 40)?.0)?);
        assert!(image.min()?.item()? >= 0.0 && image.max()?.item()? <= 1.0);
        assert!(image.std(&[], 1, false)?.item()? > 0.1);
        Ok(())
    });
    Ok(())
}

/// The accuracy on the test images of a model trained on the others.
fn accuracy_of(model: &nn::Sequential, epochs: usize) -> Result<f64> {
    let gray = |len, seed| {
        let images = Images::synthetic(SyntheticOptions { len, shape: [1, 28, 28], seed })?;
        images.with_transform(Transform::Normalize { mean: vec![0.5], std: vec![0.25] })
    };
    let (train, test) = (gray(500, 0)?, gray(200, 1)?);
    let options = DataLoaderOptions { batch_size: 20, shuffle: true, ..Default::default() };
    let loader = DataLoader::new(train, options)?;
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions { lr: 5e-3, ..Default::default() })?;
    for _ in 0..epochs {
        for batch in &loader {
            let (x, y) = batch?;
            let loss = model.forward(&x)?.cross_entropy(&y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
        }
    }
    model.eval();
    let (x, y) = test.get_batch(&(0..test.len()).collect::<Vec<_>>())?;
    let right = no_grad(|| model.forward(&x)?.argmax(1, false)?.eq(&y)?.to(DType::F32)?.mean()?.item())?;
    Ok(right)
}

#[test]
fn a_small_network_of_convolutions_learns_made_images_and_a_linear_model_does_not() -> Result<()> {
    seeded(0, || {
        let network = nn::Sequential::new((
            nn::Conv2d::new(1, 12, 5)?,
            nn::BatchNorm2d::new(12)?,
            nn::ReLU,
            nn::MaxPool2d::new(2),
            nn::Conv2d::new(12, 24, 3)?,
            nn::BatchNorm2d::new(24)?,
            nn::ReLU,
            nn::AdaptiveAvgPool2d::new(1),
            nn::Flatten::default(),
            nn::Linear::new(24, 10)?,
        ));
        let linear = nn::Sequential::new((nn::Flatten::default(), nn::Linear::new(784, 10)?));
        let (network, linear) = (accuracy_of(&network, 5)?, accuracy_of(&linear, 5)?);
        assert!(network > 0.9 && linear < 0.4, "of 200 images: network {network}, linear {linear}");
        println!("network {network}, linear {linear}");
        Ok(())
    })
}
