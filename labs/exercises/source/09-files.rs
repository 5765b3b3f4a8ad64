//! A sample, a file.

use std::sync::Arc;
use std::sync::Mutex;

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;
    use std::sync::Arc;

    /// Reads a file by its number: 1 is the first.
    pub type Read = Arc<dyn Fn(usize) -> Result<Vec<u8>> + Send + Sync>;

    /// The bytes of a file: a class, and 4 × 4 pixels, first all reds, then all greens,
    /// then all blues.
    pub const BYTES: usize = 1 + 3 * 4 * 4;

    pub struct Pictures {
        read: Read,
        files: usize,
    }

    pub fn open(read: Read, files: usize) -> Result<Pictures> {
        Ok(Pictures { read, files })
    }

    impl Dataset for Pictures {
        type Sample = (Tensor, i64);

        fn len(&self) -> usize {
            self.files
        }

        fn get(&self, index: usize) -> Result<(Tensor, i64)> {
            let bytes = (self.read)(index + 1)?;
            let pixels = Tensor::from_slice(&bytes[1..], &[3, 4, 4])?;
            Ok((pixels.to(DType::F32)?.div(255.0)?, i64::from(bytes[0])))
        }
    }
    // END
}

const FIELDS: &str = "    read: Read,\n    files: usize,\n";
const OPEN: &str = "    Ok(Pictures { read, files })\n";
const LEN: &str = "        self.files\n";
const READ: &str = "        let bytes = (self.read)(index + 1)?;\n";
const PIXELS: &str = "        let pixels = Tensor::from_slice(&bytes[1..], &[3, 4, 4])?;\n";
const RETURN: &str = "        Ok((pixels.to(DType::F32)?.div(255.0)?, i64::from(bytes[0])))\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "09-prefetch";

pub static EXERCISE: Exercise = Exercise {
    id: "09-files",
    title: "A sample, a file",
    kind: Kind::Write,
    task: "Write a data set with a picture in each file. `open` reads nothing. `get` reads the file of its sample, and makes a tensor \
           of `[3, 4, 4]` of it, f32 from 0 to 1, on the CPU, with the class. If `read` fails, so does `get`.",
    hints: [
        "Samples count from 0, files from 1.",
        "The first byte is the class. `Tensor::from_slice` makes a tensor of the others.",
        "`let bytes = (self.read)(index + 1)?;`, then `Tensor::from_slice(&bytes[1..], &[3, 4, 4])?.to(DType::F32)?.div(255.0)?`.",
    ],
    afterwards: "A loader's workers call `get` at the same time, each for a different sample.",
    source: include_str!("09-files.rs"),
    functions: &[("open", "pub fn open(read: Read, files: usize) -> Result<Pictures>")],
    skeleton: &[
        (LEN, "        let _ = self.files;\n        todo!()\n"),
        (READ, "        let _ = (&self.read, index);\n"),
        (PIXELS, ""),
        (RETURN, "        todo!()\n"),
    ],
    styles: &[
        Style {
            name: "in_steps",
            edits: &[
                (PIXELS, "        let pixels: Vec<f32> = bytes[1..].iter().map(|&byte| f32::from(byte) / 255.0).collect();\n"),
                (RETURN, "        Ok((Tensor::from_slice(&pixels, &[3, 4, 4])?, i64::from(bytes[0])))\n"),
            ],
        },
        Style {
            name: "split_first",
            edits: &[
                (
                    READ,
                    "        let bytes = (self.read)(index + 1)?;\n        let (class, bytes) =\n            \
                     bytes.split_first().ok_or_else(|| Error::custom(\"the file is empty\"))?;\n",
                ),
                (PIXELS, "        let pixels = Tensor::from_slice(bytes, &[3, 4, 4])?;\n"),
                (RETURN, "        Ok(((pixels.to(DType::F32)? / 255.0)?, i64::from(*class)))\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "reads_at_once",
            what: "`open` reads all files.",
            edits: &[
                (FIELDS, "    all: Vec<Vec<u8>>,\n"),
                (OPEN, "    let all = (1..=files).map(|file| read(file)).collect::<Result<Vec<_>>>()?;\n    Ok(Pictures { all })\n"),
                (LEN, "        self.all.len()\n"),
                (READ, "        let bytes = &self.all[index];\n"),
            ],
            diagnosis: "reads-at-once",
        },
        Wrong {
            name: "reads_all_each_time",
            what: "`get` reads every file.",
            edits: &[
                (
                    READ,
                    "        let all = (1..=self.files).map(|file| (self.read)(file)).collect::<Result<Vec<_>>>()?;\n        \
                     let bytes = &all[index];\n",
                ),
            ],
            diagnosis: "reads-too-much",
        },
        Wrong {
            name: "from_zero",
            what: "Files are counted from 0.",
            edits: &[(READ, "        let bytes = (self.read)(index)?;\n")],
            diagnosis: "from-zero",
        },
        Wrong {
            name: "turned_around",
            what: "The last file comes first.",
            edits: &[(READ, "        let bytes = (self.read)(self.files - index)?;\n")],
            diagnosis: "another-file",
        },
        Wrong {
            name: "length_in_bytes",
            what: "The length is in bytes.",
            edits: &[(LEN, "        self.files * BYTES\n")],
            diagnosis: "length",
        },
        Wrong {
            name: "class_among_pixels",
            what: "The class is the first pixel.",
            edits: &[(PIXELS, "        let pixels = Tensor::from_slice(&bytes[..BYTES - 1], &[3, 4, 4])?;\n")],
            diagnosis: "class-among-pixels",
        },
        Wrong {
            name: "last_byte",
            what: "The last byte is the class.",
            edits: &[(RETURN, "        Ok((pixels.to(DType::F32)?.div(255.0)?, i64::from(bytes[BYTES - 1])))\n")],
            diagnosis: "another-class",
        },
        Wrong {
            name: "not_divided",
            what: "Pixels go up to 255.",
            edits: &[(RETURN, "        Ok((pixels.to(DType::F32)?, i64::from(bytes[0])))\n")],
            diagnosis: "not-divided",
        },
        Wrong {
            name: "bytes_divided",
            what: "Bytes are divided as bytes.",
            edits: &[
                (
                    PIXELS,
                    "        let dark: Vec<u8> = bytes[1..].iter().map(|byte| byte / 255).collect();\n        \
                     let pixels = Tensor::from_slice(&dark, &[3, 4, 4])?;\n",
                ),
                (RETURN, "        Ok((pixels.to(DType::F32)?, i64::from(bytes[0])))\n"),
            ],
            diagnosis: "bytes-divided",
        },
        Wrong {
            name: "channels_last",
            what: "Channels are taken to be last.",
            edits: &[(PIXELS, "        let pixels = Tensor::from_slice(&bytes[1..], &[4, 4, 3])?.permute(&[2, 0, 1])?;\n")],
            diagnosis: "channels-last",
        },
        Wrong {
            name: "unwrapped",
            what: "`unwrap` ends the program.",
            edits: &[(READ, "        let bytes = (self.read)(index + 1).unwrap();\n")],
            diagnosis: "panics",
        },
        Wrong {
            name: "error_hidden",
            what: "Missing files become black pictures.",
            edits: &[(READ, "        let bytes = (self.read)(index + 1).unwrap_or(vec![0; BYTES]);\n")],
            diagnosis: "error-hidden",
        },
        Wrong {
            name: "on_the_gpu",
            what: "Samples go to the GPU one by one.",
            edits: &[(RETURN, "        let device = Device::cuda_if_available();\n        Ok((pixels.to(DType::F32)?.div(255.0)?.to(device)?, i64::from(bytes[0])))\n")],
            diagnosis: "on-the-gpu",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "none"],
    sizes: &[9, 11],
    observe: |case| observe(case, solution::open),
    judge,
};

use solution::{BYTES, Read};

/// The bytes of a file. Class and pixels depend on the seed.
fn file(case: &Case, number: usize) -> Vec<u8> {
    let mut random = case.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
    let mut byte = || {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 40) as u8
    };
    (0..BYTES).map(|at| if at == 0 { byte() % 10 } else { byte().min(254) }).collect()
}

/// The samples that are asked for, in no order.
fn asked(case: &Case) -> Vec<usize> {
    (0..8).map(|number| (number * 7 + 1) % case.size).collect()
}

/// The size of a case is the number of files. The file after the last cannot be read.
pub fn observe<D>(case: &Case, open: impl Fn(Read, usize) -> Result<D>) -> Seen
where
    D: Dataset<Sample = (Tensor, i64)>,
{
    case.machine().enter(|| {
        let reads = Arc::new(Mutex::new(Vec::new()));
        let files = case.size;
        let read: Read = {
            let (reads, case) = (reads.clone(), case.clone());
            Arc::new(move |number| {
                reads.lock().map_err(|_| Error::custom("nobody panics"))?.push(number as f64);
                match (1..=case.size).contains(&number) {
                    true => Ok(file(&case, number)),
                    false => Err(Error::custom(format!("file {number} cannot be read"))),
                }
            })
        };
        let taken = || reads.lock().map(|mut reads| std::mem::take(&mut *reads)).unwrap_or_default();
        let mut noted = Vec::new();
        let mut seen = crate::observe(
            case,
            || {
                let pictures = open(read.clone(), files)?;
                noted.push(("at first", taken().into_value()?));
                noted.push(("length", Value::Number(pictures.len() as f64)));
                let mut samples = Vec::new();
                for index in asked(case) {
                    let (pixels, class) = pictures.get(index)?;
                    samples.push(Value::List(vec![pixels.into_value()?, Value::Number(class as f64)]));
                }
                noted.push(("reads", taken().into_value()?));
                // One file more than there are.
                let pictures = open(read.clone(), files + 1)?;
                noted.push(("told", Value::Flag(pictures.get(files).is_err())));
                Ok(Value::List(samples))
            },
            |_| Ok(()),
        );
        seen.facts.extend(noted.into_iter().map(|(name, value)| (name.to_owned(), value)));
        seen
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let list = |name: &str| seen.fact(name).list().iter().filter_map(Value::number).collect::<Vec<_>>();
    if let Ended::Panicked { message, line } = &seen.ended
        && message.contains("cannot be read")
    {
        return Err(Diagnosis::new("panics", "A file that cannot be read ends the program.")
            .seen(message)
            .expected("the error, returned by `get`")
            .idea("`?` hands the error to the loader, which hands it to the loop. That can name the file and go on.")
            .at(*line));
    }
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("file 0 ")
    {
        return Err(Diagnosis::new("from-zero", "There is no file 0.")
            .seen(message)
            .expected(format!("files from 1 to {}", case.size))
            .idea("Samples count from 0, and files from 1."));
    }
    if !list("at first").is_empty() {
        return Err(Diagnosis::new("reads-at-once", "`open` reads files.")
            .seen(format!("{} files read before the first sample", list("at first").len()))
            .expected("none")
            .idea("A data set may be larger than memory, and workers read beside the training only what `get` reads."));
    }
    let value = seen.returned()?;
    if seen.fact("length") != right.fact("length") {
        let shown = |seen: &Seen| seen.fact("length").number().unwrap_or(f64::NAN).to_string();
        return Err(Diagnosis::new("length", "The length is not the number of samples.")
            .seen(format!("{} for {} files", shown(seen), case.size))
            .expected(shown(right))
            .idea("There is a sample in each file."));
    }
    let (reads, wanted) = (list("reads"), asked(case));
    if reads.len() > wanted.len() {
        return Err(Diagnosis::new("reads-too-much", "More files are read than samples are made.")
            .seen(format!("{} files for {} samples", reads.len(), wanted.len()))
            .expected("one for each sample")
            .idea("A sample is in one file."));
    }
    let copies = seen.count(CallKind::ToDevice);
    if copies > 0 {
        return Err(Diagnosis::new("on-the-gpu", "Each sample goes to the GPU by itself.")
            .seen(format!("{copies} copies to the GPU"))
            .expected("none")
            .idea("A batch goes there in one copy. Workers have no GPU to send it to.")
            .at(seen.line(CallKind::ToDevice)));
    }
    if !value.is_near(right.value(), 1e-5) {
        return Err(wrong_sample(case, value.list(), right.value().list(), &reads));
    }
    let dtype = |sample: &Value| match sample.list() {
        [Value::Tensor { dtype, .. }, _] => dtype.clone(),
        _ => String::new(),
    };
    if let Some(other) = value.list().iter().map(dtype).find(|dtype| dtype != "torch.float32") {
        return Err(Diagnosis::new("another-type", "The pixels are not f32.")
            .seen(other)
            .expected("torch.float32")
            .idea("Networks have parameters in f32, and a batch of another type does not fit them."));
    }
    if seen.fact("told") != &Value::Flag(true) {
        return Err(Diagnosis::new("error-hidden", "A file that cannot be read gives a sample all the same.")
            .seen("a sample")
            .expected("the error of the file")
            .idea("A network learns from made-up samples without complaint. Return the error with `?`."));
    }
    Ok(())
}

fn numbers(sample: &Value) -> (Vec<f64>, f64) {
    match sample.list() {
        [Value::Tensor { values, .. }, class] => (values.clone(), class.number().unwrap_or(f64::NAN)),
        _ => (Vec::new(), f64::NAN),
    }
}

fn wrong_sample(case: &Case, own: &[Value], wanted: &[Value], reads: &[f64]) -> Diagnosis {
    let at = (0..wanted.len()).find(|&at| !own[at].is_near(&wanted[at], 1e-5)).unwrap_or(0);
    let index = asked(case)[at];
    let ((pixels, class), (right_pixels, right_class)) = (numbers(&own[at]), numbers(&wanted[at]));
    let near = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
    let first = |class: f64, pixels: &[f64]| {
        let shown: Vec<String> = pixels.iter().take(3).map(|pixel| format!("{pixel:.3}")).collect();
        format!("sample {index} of class {class} with pixels {}, …", shown.join(", "))
    };
    let told = |id: &str, says: &str, idea: &str| {
        Diagnosis::new(id, says).seen(first(class, &pixels)).expected(first(right_class, &right_pixels)).idea(idea)
    };
    let mut sorted = [pixels.clone(), right_pixels.clone()];
    sorted.iter_mut().for_each(|pixels| pixels.sort_by(f64::total_cmp));
    let largest = pixels.iter().fold(0.0, |largest: f64, pixel| largest.max(*pixel));
    if reads.get(at).is_some_and(|read| *read as usize != index + 1) {
        return told("another-file", "A sample is read from another file.", "Sample 0 is in file 1, sample 1 in file 2.");
    }
    if largest > 1.5 {
        return told("not-divided", "The pixels are bytes still.", "A byte goes up to 255, and a pixel up to 1: divide by 255.");
    }
    if largest == 0.0 {
        return told("bytes-divided", "All pixels are 0.", "A byte divided by 255 is a byte again. Make f32 of it first.");
    }
    if class == right_class && near(&sorted[0], &sorted[1]) {
        return told(
            "channels-last",
            "The pixels are the right ones, in the wrong places.",
            "First all reds, then all greens, then all blues: the channel is the first dimension.",
        );
    }
    if class == right_class && near(&pixels[1..], &right_pixels[..right_pixels.len() - 1]) {
        return told("class-among-pixels", "The class is taken for a pixel.", "The first byte of a record is the class. Pixels begin after it.");
    }
    told("another-class", "The pixels are right, and the class is not.", "The first byte is the class.")
}
