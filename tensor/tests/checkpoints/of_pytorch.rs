//! Files written by PyTorch.

use crate::each_case::each_case;
use todevice::nn::{BatchNorm1d, Linear, Module, Sequential, StateDict};
use todevice::serialize::{Dict, MapLocation, Value, from_bytes, to_bytes};
use todevice::{Device, Machine, Result, Tensor};

const OF_ALL_VERSIONS: [(&str, &[u8]); 5] = [
    ("1.13.1", include_bytes!("files/torch-1.13.1.pt")),
    ("2.0.1", include_bytes!("files/torch-2.0.1.pt")),
    ("2.11.0", include_bytes!("files/torch-2.11.0.pt")),
    ("2.11.0 with the other order of bytes", include_bytes!("files/big-endian.pt")),
    ("2.11.0 compressed", include_bytes!("files/compressed.pt")),
];

pub(super) const CUDA: &[u8] = include_bytes!("files/cuda.pt");

/// Checks the contents of a file written by `make.py`.
fn check(checkpoint: &Dict) -> Result<()> {
    let said = |key: &str| checkpoint.at(key).map(|value| value.to_string());
    for (key, text) in [
        ("epoch", "3"),
        ("lr", "0.1"),
        ("name", "'größer 🐍'"),
        ("nothing", "None"),
        ("truths", "(True, False)"),
        ("one", "(1,)"),
        ("large", "1099511627776"),
        ("negative", "-1099511627776"),
        ("small", "-5"),
        ("middle", "300"),
        ("infinite", "inf"),
        ("nested", "[1, [2.5, 'x'], {}, [], ()]"),
        ("size", "(2, 3)"),
        ("dtype", "torch.bfloat16"),
        ("device", "device(type='cuda', index=1)"),
        ("row", "tensor([ 6.,  7.,  8.,  9., 10., 11.])"),
        ("number", "tensor(2.5000)"),
        ("empty", "tensor([], size=(0, 3))"),
        ("leaf", "tensor([1., 2.], requires_grad=True)"),
        ("parameter", "tensor([3.], requires_grad=True)"),
    ] {
        assert_eq!(said(key)?, text, "{key}");
    }
    assert_eq!(checkpoint.at(7)?.as_str()?, "an integer key");
    let types = checkpoint.at("types")?.as_dict()?;
    for (name, tensor) in types.iter() {
        let tensor = tensor.as_tensor()?;
        assert_eq!(format!("'{}'", tensor.dtype()), name.to_string());
        let expected =
            if name.to_string().contains("bool") { [0.0, 1.0, 1.0, 1.0] } else { [0.0, 1.0, 2.0, 3.0] };
        assert_eq!(tensor.to(todevice::DType::F64)?.to_vec::<f64>()?, expected);
    }
    assert_eq!(types.len(), 8);

    let tensor = |key: &str| checkpoint.at(key)?.as_tensor();
    let base = tensor("base")?;
    assert_eq!(base.to_vec::<f32>()?, (0..24).map(|i| i as f32).collect::<Vec<_>>());
    for (key, sizes, strides, offset) in [
        ("alias", [4, 6].as_slice(), [6, 1].as_slice(), 0),
        ("row", &[6], &[1], 6),
        ("transposed", &[6, 4], &[1, 6], 0),
        ("columns", &[4, 3], &[6, 2], 1),
        ("expanded", &[2, 5], &[0, 0], 15),
    ] {
        let view = tensor(key)?;
        assert!(view.shares_storage(base), "{key}");
        assert_eq!((view.sizes(), view.strides(), view.storage_offset()), (sizes, strides, offset), "{key}");
    }
    assert_eq!(tensor("columns")?.to_vec::<f32>()?[..4], [1.0, 3.0, 5.0, 7.0]);
    base.fill_(-1)?;
    assert_eq!(tensor("columns")?.sum()?.item()?, -12.0);

    let model = Sequential::new((Linear::new(3, 2)?, BatchNorm1d::new(2)?));
    let state = checkpoint.at("model")?;
    assert!(state.as_dict()?.is_ordered());
    model.load_state_dict(&StateDict::try_from(state)?, true)?;
    assert_eq!(model.parameters()[1].tensor().to_vec::<f32>()?, [10.0, 11.0]);

    let optimizer = checkpoint.at("optimizer")?.as_dict()?;
    let state = optimizer.at("state")?.as_dict()?.at(0)?.as_dict()?;
    assert_eq!(state.at("step")?.as_tensor()?.item()?, 1.0);
    assert_eq!(state.at("exp_avg")?.as_tensor()?.sizes(), [2, 3]);
    let group = optimizer.at("param_groups")?.as_list()?[0].as_dict()?;
    assert_eq!(group.at("betas")?.to_string(), "(0.9, 0.999)");
    assert_eq!(group.at("params")?.to_string(), "[0, 1, 2, 3]");
    Ok(())
}

#[test]
fn files_of_every_version_are_read_and_what_is_read_is_written_again() -> Result<()> {
    for (version, bytes) in OF_ALL_VERSIONS {
        let read = || from_bytes(bytes, MapLocation::None);
        check(read()?.as_dict()?).unwrap_or_else(|error| panic!("{version}: {error}"));
        let ours = to_bytes(read()?)?;
        assert_eq!(to_bytes(read()?)?, ours, "equal checkpoints are equal files");
        check(from_bytes(&ours, MapLocation::None)?.as_dict()?)?;
    }
    Ok(())
}

#[test]
fn what_is_no_checkpoint_is_named() {
    each_case(
        [
            (&b""[..], "This file is empty: its save was interrupted, or torch.save did not write it"),
            (
                include_bytes!("files/before-0.4.tar"),
                "This is a checkpoint in the legacy .tar format, of PyTorch before 0.4: load it in Python with \
             torch.load(weights_only=False), and save it again",
            ),
            (
                include_bytes!("files/torchscript.pt"),
                "This is a TorchScript archive of torch.jit.save, which contains a program: save its state_dict() with torch.save",
            ),
            (
                include_bytes!("files/python.safetensors"),
                "This is a safetensors file: serialize::safetensors::load_file reads it",
            ),
            (
                include_bytes!("files/module.pt"),
                "Weights only load failed. Unsupported global: GLOBAL torch.nn.modules.linear.Linear was not an allowed global: a \
             checkpoint contains tensors of this crate's types, numbers, strings, lists, tuples and dicts, such as \
             model.state_dict()",
            ),
            (
                include_bytes!("files/int16.pt"),
                "the checkpoint has a tensor of torch.int16, which this crate does not support: convert it in PyTorch, and save it again",
            ),
            (
                b"<!DOCTYPE html>",
                "This is not a checkpoint: torch.save writes a zip file, which begins with PK, but this file begins with <!DOCTYP",
            ),
            (
                // In the old format, with a pickle protocol that torch.load does not accept.
                b"\x80\x04\x95\r\0\0\0\0\0\0\0\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.",
                "Weights only load failed. Unsupported operand 149: torch.save writes the pickle protocol 2",
            ),
            (
                &OF_ALL_VERSIONS[2].1[..5000],
                "PytorchStreamReader failed reading zip archive: failed finding central directory",
            ),
        ],
        |(bytes, message)| {
            assert_eq!(from_bytes(bytes, MapLocation::None).unwrap_err().to_string(), message);
        },
    );
}

/// The devices of its tensors: on the CPU, on `cuda:0`, on `cuda:1`, and the view of the last.
fn places(map: impl Into<MapLocation>) -> Result<[String; 4], String> {
    let read = from_bytes(CUDA, map).map_err(|error| error.to_string())?;
    let dict = read.as_dict().unwrap();
    let tensors = ["cpu", "zero", "one", "view"].map(|key| dict.at(key).unwrap().as_tensor().unwrap());
    let values = tensors.map(|tensor| tensor.to_vec::<f32>().unwrap());
    let zero: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let one: Vec<f32> = (10..16).map(|i| i as f32).collect();
    assert_eq!(values, [&zero[..], &zero, &one, &one[2..4]]);
    assert!(tensors[2].shares_storage(tensors[3]));
    Ok(tensors.map(|tensor| tensor.device().to_string()))
}

#[test]
fn tensors_go_where_map_location_says() {
    let no_cuda = "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running \
                   on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to \
                   the CPU.";
    let no_device = |index: usize| {
        format!(
            "Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is 1. Please use torch.load \
             with map_location to map your storages to an existing device."
        )
    };
    let unknown = "don't know how to restore data location of torch.storage.UntypedStorage (tagged with gpu)";
    let ok = |places: [&str; 4]| Ok(places.map(str::to_owned));
    Machine::new().enter(|| {
        assert_eq!(places(MapLocation::None), Err(no_cuda.to_owned()));
        assert_eq!(places(Device::cuda(0)), Err(no_cuda.to_owned()));
        assert_eq!(places(Device::Cpu), ok(["cpu"; 4]));
        assert_eq!(places(MapLocation::function(|_| Some(Device::Cpu))), ok(["cpu"; 4]));
        let map = [("cuda:0", "cpu"), ("cuda:1", "cpu")];
        assert_eq!(places(MapLocation::map(map)), ok(["cpu"; 4]));
    });
    let one: Machine = "sim:t4".parse().unwrap();
    one.enter(|| {
        assert_eq!(places(MapLocation::None), Err(no_device(1)));
        assert_eq!(places(Device::cuda(7)), Err(no_device(7)));
        assert_eq!(places(Device::cuda(0)), ok(["cuda:0"; 4]));
        let map = MapLocation::map([("cuda:1", "cuda:0")]);
        assert_eq!(places(map), ok(["cpu", "cuda:0", "cuda:0", "cuda:0"]));
        assert_eq!(places(MapLocation::map([("cuda:1", "cuda")])), ok(["cpu", "cuda:0", "cuda:0", "cuda:0"]));
        assert_eq!(places(MapLocation::map([("cuda:1", "gpu")])), Err(unknown.to_owned()));
        let function = |location: &str| (location == "cuda:1").then_some(Device::Cpu);
        assert_eq!(places(MapLocation::function(function)), ok(["cpu", "cuda:0", "cpu", "cpu"]));
        assert_eq!(places(MapLocation::function(|_| None)), Err(no_device(1)));
    });
    let two: Machine = "sim:t4x2".parse().unwrap();
    let places = two.enter(|| places(MapLocation::None));
    assert_eq!(places, ok(["cpu", "cuda:0", "cuda:1", "cuda:1"]));
}

/// A tensor moved by `to` knows the line that moved it; so does one moved by loading.
#[test]
fn what_is_loaded_to_a_gpu_has_no_history() -> Result<()> {
    let one: Machine = "sim:t4".parse().unwrap();
    one.enter(|| {
        let leaf = Tensor::ones(&[2])?.requires_grad_(true)?;
        let read = from_bytes(&to_bytes(Value::from(&leaf))?, Device::cuda(0))?;
        let tensor = read.as_tensor()?;
        assert!(tensor.is_leaf() && tensor.requires_grad() && tensor.is_cuda() && !tensor.is_view());
        tensor.sum()?.backward()?;
        assert_eq!(tensor.grad().unwrap().device(), Device::cuda(0));
        Ok(())
    })
}
