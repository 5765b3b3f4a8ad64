//! Part A, the source of samples: CIFAR-10 in its file format.

use std::path::Path;
use std::sync::Arc;

use todevice::prelude::*;

use crate::frame::files;
use crate::{Lab, Table, exact, row};

const UNPACKED: &str = "a file of cifar-10-binary.tar.gz, unpacked";

/// A file of CIFAR-10 has 10,000 images.
const LARGEST: u64 = 10_000 * RECORD as u64;

// ANCHOR: cifar10
/// A class, and 32 × 32 pixels: first all reds, then all greens, then all blues.
const RECORD: usize = 1 + 3 * 32 * 32;

/// Images of CIFAR-10 in memory, one record after another.
pub struct Cifar10 {
    records: Vec<u8>,
}

impl Dataset for Cifar10 {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.records.len() / RECORD
    }

    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        let record = &self.records[index * RECORD..][..RECORD];
        let pixels = Tensor::from_slice(&record[1..], &[3, 32, 32])?;
        Ok((pixels.to(DType::F32)?.div(255.0)?, i64::from(record[0])))
    }
}
// ANCHOR_END: cifar10

impl Cifar10 {
    // ANCHOR: cifar10_files
    /// Reads the five files of training images once.
    pub fn read(folder: &Path) -> Result<Cifar10> {
        let mut records = Vec::new();
        for number in 1..=5 {
            let file = folder.join(format!("data_batch_{number}.bin"));
            let of_file = |what| Error::custom(format!("{}: {what}", file.display()));
            let missing = |error| of_file(format!("{error}, expected {UNPACKED}"));
            let bytes = files::bytes(&file, LARGEST).map_err(missing)?;
            check(&bytes).map_err(of_file)?;
            records.extend(bytes);
        }
        Ok(Cifar10 { records })
    }
    // ANCHOR_END: cifar10_files

    /// Makes up `count` images in the same format, each in one shade.
    fn made_up(count: u8) -> Cifar10 {
        let record = |picture: u8| {
            let shade = 20 * (picture % 10);
            [picture % 10].into_iter().chain([shade; RECORD - 1])
        };
        Cifar10 { records: (0..count).flat_map(record).collect() }
    }
}

fn check(bytes: &[u8]) -> Result<(), String> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(RECORD) {
        return Err(format!(
            "{} bytes, expected a whole number of records of {RECORD}",
            bytes.len()
        ));
    }
    match bytes.iter().step_by(RECORD).find(|class| **class > 9) {
        Some(class) => Err(format!("a record of class {class}, expected 0 to 9")),
        None => Ok(()),
    }
}

pub(super) fn in_folder(folder: &str) -> Result<Arc<Cifar10>, String> {
    let read = Cifar10::read(folder.as_ref());
    read.map(Arc::new).map_err(|error| error.to_string())
}

pub(super) fn from_files(
    lab: &mut Lab,
    files: Option<&Arc<Cifar10>>,
) -> crate::Result<()> {
    lab.part("record");
    let dataset = files.cloned().unwrap_or_else(|| Arc::new(Cifar10::made_up(16)));
    let bytes = dataset.records.len();
    let count = dataset.len();
    let options = DataLoaderOptions { batch_size: 8, ..Default::default() };
    let loader = DataLoader::new(dataset, options)?;
    let first = loader.iter().next().transpose()?;
    let (x, y) = first.ok_or("no batch")?;
    let shape = |tensor: &Tensor| format!("{:?} of {}", tensor.sizes(), tensor.dtype());
    lab.table(
        Table::new(["CIFAR-10", ""])
            .row(row!["bytes of a record", exact("record", RECORD)])
            .row(row!["bytes of all records", exact("records_bytes", bytes)])
            .row(row!["len()", exact("samples", count)])
            .row(row!["x of a batch", shape(&x)])
            .row(row!["y of a batch", shape(&y)])
            .row(row!["the classes in y", format!("{:?}", y.to_vec::<i64>()?)]),
    );
    lab.prose(match files {
        Some(_) => "These are the pictures of the files that --cifar10 names.",
        None => {
            "The lab wrote these few records itself, in the format of CIFAR-10's files, each picture of one shade. With \
             --cifar10 DIR it reads the real ones."
        }
    });
    Ok(())
}
