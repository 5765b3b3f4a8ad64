//! Safetensors files: Python's, ours, and values that neither can store.

use crate::each_case::each_case;
use todevice::serialize::from_bytes;
use todevice::serialize::safetensors::{Metadata, load, load_file, save, save_file};
use todevice::{DType, Device, Machine, Result, Tensor};

use super::Folder;

pub(super) const OF_PYTHON: &[u8] = include_bytes!("files/python.safetensors");

#[test]
fn files_of_python_are_read() -> Result<()> {
    let (tensors, metadata) = load(OF_PYTHON, Device::Cpu)?;
    assert_eq!(
        metadata,
        [("epoch", "3"), ("format", "pt")].map(|(a, b)| (a.to_owned(), b.to_owned())).into()
    );
    assert_eq!(tensors.len(), 10);
    for (name, tensor) in tensors {
        match name.as_str() {
            "number" => assert_eq!((tensor.sizes(), tensor.item()?), (&[][..], 2.5)),
            "empty" => assert_eq!(tensor.sizes(), [0, 3]),
            dtype => {
                assert_eq!((tensor.dtype().to_string(), tensor.sizes()), (dtype.to_owned(), &[2, 2][..]));
                let last = if tensor.dtype() == DType::Bool { [1.0, 1.0] } else { [2.0, 3.0] };
                assert_eq!(tensor.get(1)?.to(DType::F64)?.to_vec::<f64>()?, last);
            }
        }
    }
    Ok(())
}

#[test]
fn every_byte_of_a_bool_but_0_is_true() -> Result<()> {
    let header = br#"{"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}}"#;
    let mut safetensors = (header.len() as u64).to_le_bytes().to_vec();
    safetensors.extend_from_slice(header);
    safetensors.extend_from_slice(&[2, 0, 255, 1]);
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            let of_pytorch = from_bytes(include_bytes!("files/bool-bytes.pt"), device)?;
            for bools in [&load(&safetensors, device)?.0[0].1, of_pytorch.as_tensor()?] {
                let truths = [true, false, true, true];
                assert_eq!(bools.to_vec::<bool>()?, truths);
                assert_eq!(bools.sum()?.item()?, 3.0);
                assert_eq!(bools.cumsum(0)?.to_vec::<i64>()?, [1, 1, 2, 3]);
                assert_eq!(bools.to(DType::F32)?.to_vec::<f32>()?, [1.0, 0.0, 1.0, 1.0]);
                assert_eq!(bools.to(DType::U8)?.to_vec::<u8>()?, [1, 0, 1, 1]);
                assert_eq!(bools.eq(1.0)?.to_vec::<bool>()?, truths);
                assert_eq!(bools.mul(bools)?.to_vec::<bool>()?, truths);
                assert!(bools.equal(&Tensor::new(truths)?.to(device)?)?);
            }
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn files_come_back_from_any_device_to_any_other() -> Result<()> {
    let folder = Folder::new("safetensors");
    let path = folder.file("model.safetensors");
    let machine: Machine = "sim:t4x2".parse().unwrap();
    machine.enter(|| {
        let x = Tensor::arange(0, 6, (1, DType::F16))?.view(&[2, 3])?;
        let (y, n) = (x.to(DType::F32)?.to(Device::cuda(1))?, Tensor::full(&[], (7, DType::I64))?);
        let tensors = [("x", &x), ("y.weight", &y), ("n", &n)];
        let metadata = Metadata::from([("é".to_owned(), "\"\n".to_owned())]);
        save_file(tensors, &metadata, &path)?;
        assert_eq!(std::fs::read(&path)?, save(tensors, &metadata)?);
        let (read, said) = load_file(&path, Device::cuda(0))?;
        assert_eq!(said, metadata);
        // Sorted by element size, the largest first.
        assert_eq!(read.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["n", "y.weight", "x"]);
        assert!(read.iter().all(|(_, tensor)| tensor.device() == Device::cuda(0)));
        assert_eq!(read[1].1.to_vec::<f32>()?, y.to_vec::<f32>()?);
        assert_eq!((read[2].1.sizes(), read[2].1.dtype()), (x.sizes(), x.dtype()));
        assert!(load(&save(tensors, &metadata)?, Device::cuda(5)).is_err());
        Ok(())
    })
}

#[test]
fn what_the_format_cannot_keep_is_refused() -> Result<()> {
    let x = Tensor::zeros(&[2, 3])?;
    let refused = |tensors: &[(&str, &Tensor)]| {
        save(tensors.iter().copied(), &Metadata::new()).unwrap_err().to_string()
    };
    assert!(refused(&[("x", &x.t()?)]).starts_with(
        "You are trying to save a non contiguous tensor: `x` which is not allowed. It either means you are trying to save tensors \
         which are reference of each other"
    ));
    each_case([&x, &x.get(1)?], |other| {
        assert!(refused(&[("a", &x), ("b", other)]).starts_with(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them \
             again: a, b."
        ));
    });
    // Two parts of one storage that do not overlap do not count as shared.
    save([("a", &x.get(0)?), ("b", &x.get(1)?)], &Metadata::new())?;
    let name = "a tensor cannot have the name `__metadata__`, which safetensors files reserve";
    assert_eq!(refused(&[("__metadata__", &x)]), name);
    assert!(refused(&[("a", &x), ("a", &x.copy()?)]).contains("the name `a`"));
    Ok(())
}

#[test]
fn damaged_files_are_refused_in_the_words_of_the_library() -> Result<()> {
    let bytes = save([("x", &Tensor::zeros(&[4])?)], &Metadata::new())?;
    let message = |bytes: &[u8]| load(bytes, Device::Cpu).unwrap_err().to_string();
    let changed = |from: &str, to: &str| {
        let header = String::from_utf8(bytes[8..bytes.len() - 16].to_vec()).unwrap().replace(from, to);
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 16]].concat()
    };
    each_case(
        [
            (vec![], "header too small"),
            (vec![0xFF; 20], "header too large"),
            (bytes[..40].to_vec(), "invalid header length"),
            (bytes[..bytes.len() - 1].to_vec(), "incomplete metadata, file not fully covered"),
            ([&bytes[..], &[0]].concat(), "incomplete metadata, file not fully covered"),
            (changed("[4]", "[5]"), "invalid shape, data type, or offset for tensor"),
            (changed("[0,16]", "[1,17]"), "invalid offset for tensor `x`"),
            (
                changed("[4]", "[4,9223372036854775807,4]"),
                "overflow computing buffer size from shape and/or element type",
            ),
        ],
        |(bytes, reason)| {
            assert_eq!(message(&bytes), format!("Error while deserializing header: {reason}"));
        },
    );
    assert!(message(&changed("F32", "F99")).contains("unknown variant `F99`"));
    let dtype = "the tensor `x` has the type I16, which this crate does not support";
    assert_eq!(message(&changed("\"F32\",\"shape\":[4]", "\"I16\",\"shape\":[8]")), dtype);
    assert!(message(&changed("[4]", "[1,1,1,1,1,1,1,1,4]")).contains("dimension"));
    Ok(())
}
