//! Every kind of value that `torch.load(weights_only=True)` accepts, and those that it rejects: `files/kinds.json`.

use crate::each_case::each_case;
use serde_json::Value as Json;
use todevice::serialize::{Key, MapLocation, Value, from_bytes, to_bytes};
use todevice::{Device, Machine, Result};

use super::changed::{refusal, with_pickle};
use super::zip::zip;

/// The cases in a section of the file.
fn cases(part: &str) -> Vec<Json> {
    let mut all: Json = serde_json::from_str(include_str!("files/kinds.json")).unwrap();
    serde_json::from_value(all[part].take()).unwrap()
}

fn hex(text: &Json) -> Vec<u8> {
    let text = text.as_str().unwrap().as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    text.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// A checkpoint file with the records of a case.
fn file(case: &Json) -> Vec<u8> {
    let records = case["records"].as_object().unwrap().iter();
    let mut records: Vec<_> = records.map(|(name, bytes)| (format!("a/{name}"), hex(bytes))).collect();
    records.push(("a/version".to_owned(), b"3\n".to_vec()));
    zip(&records)
}

/// The value as PyTorch prints it. A parameter is a tensor here.
fn said(case: &Json) -> String {
    case["said"].as_str().unwrap().replace("Parameter containing:\n", "")
}

/// Files with the values that PyTorch loads.
pub(super) fn accepted() -> Vec<Vec<u8>> {
    cases("accepted").iter().map(file).collect()
}

#[test]
fn what_pytorch_loads_is_loaded_printed_as_there_and_written_again() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    let cases = cases("accepted");
    assert!(cases.len() > 12);
    each_case(cases, |case| -> Result<()> {
        let value =
            from_bytes(&file(&case), MapLocation::None).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(value.to_string(), said(&case));
        let again = from_bytes(&to_bytes(&value)?, MapLocation::None)?;
        assert_eq!((again.kind(), again.to_string()), (value.kind(), said(&case)));
        // Through a GPU.
        machine.enter(|| {
            let on_gpu = to_bytes(from_bytes(&file(&case), Device::cuda(0))?)?;
            assert_eq!(from_bytes(&on_gpu, Device::Cpu)?.to_string(), said(&case));
            Ok::<_, todevice::Error>(())
        })?;
        Ok(())
    });
    Ok(())
}

#[test]
fn files_of_the_format_before_1_6_are_loaded() -> Result<()> {
    let cases = cases("legacy");
    assert!(cases.len() > 12);
    each_case(cases, |case| {
        let bytes = hex(&case["file"]);
        let value = from_bytes(&bytes, MapLocation::None).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(value.to_string(), said(&case));
        for end in (0..bytes.len()).step_by(7) {
            assert!(from_bytes(&bytes[..end], MapLocation::None).is_err(), "{end} bytes of {case}");
        }
    });
    // Also to a device, preserving sharing.
    let bytes = include_bytes!("files/before-1.6.pt");
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let value = from_bytes(bytes, Device::cuda(0))?;
        let weight = value.as_dict()?.at("weight")?.as_tensor()?;
        assert_eq!((weight.device(), weight.to_vec::<f32>()?), (Device::cuda(0), vec![0.0, 1.0, 2.0]));
        Ok(())
    })
}

#[test]
fn what_is_wrong_with_a_file_of_the_format_before_1_6_is_said_as_in_pytorch() {
    let bytes = include_bytes!("files/before-1.6.pt");
    let message = |bytes: &[u8]| from_bytes(bytes, MapLocation::None).unwrap_err().to_string();
    let end = bytes.len();
    assert_eq!(
        message(&bytes[..end - 1]),
        "unexpected EOF, expected 1 more bytes. The file might be corrupted."
    );
    assert_eq!(
        message(&bytes[..end - 14]),
        "unexpected EOF, expected 2 more bytes. The file might be corrupted."
    );
    let truncated = "Weights only load failed. The pickle is damaged: pickle data was truncated";
    assert_eq!(message(&bytes[..end - 30]), truncated);
    let longer = [&bytes[..end - 20], &4u64.to_le_bytes(), &[0; 16]].concat();
    assert_eq!(message(&longer), "storage has wrong byte size: expected 12 got 16");
    let at = bytes.windows(2).position(|bytes| bytes == 1001u16.to_le_bytes()).unwrap();
    let other = [&bytes[..at], &1002u16.to_le_bytes(), &bytes[at + 2..]].concat();
    assert_eq!(message(&other), "Invalid protocol version: 1002");
}

#[test]
fn types_that_this_crate_lacks_are_refused_by_pytorchs_names() {
    let cases = cases("lacking");
    assert!(cases.len() > 12);
    each_case(cases, |case| {
        let name = case["name"].as_str().unwrap();
        let message = from_bytes(&file(&case), MapLocation::None).unwrap_err().to_string();
        assert!(message.starts_with("the checkpoint has a "), "{message}");
        assert!(message.split([' ', ',', '(', ')']).any(|word| word == name), "{name}: {message}");
    });
}

/// Values that PyTorch rejects too, though the file is intact.
#[test]
fn what_is_not_allowed_is_refused_in_pytorchs_words() {
    let not_allowed = |name: &str| format!("Unsupported global: GLOBAL {name} was not an allowed global");
    each_case([
        (
            &b"cnumpy._core.multiarray\n_reconstruct\n."[..],
            not_allowed("numpy._core.multiarray._reconstruct"),
        ),
        (b"ccollections\ndefaultdict\n.", not_allowed("collections.defaultdict")),
        (b"cargparse\nNamespace\n.", not_allowed("argparse.Namespace")),
        (b"c__builtin__\ngetattr\n.", not_allowed("getattr")),
        (b"c__builtin__\nxrange\n.", not_allowed("range")),
        (
            b"cposix\nsystem\n.",
            "Trying to load unsupported GLOBAL posix.system whose module posix is blocked.".into(),
        ),
        (b"NNa.", "Can only append to lists, but got <class 'NoneType'>".into()),
        (b"}(Ne.", "Can only extend lists, but got <class 'dict'>".into()),
        (
            b"]NNs.",
            "Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got <class 'list'>"
                .into(),
        ),
        (b"}}b.", "Can only build Tensor, Parameter, OrderedDict".into()),
        (b"NQ.", "persistent_load id must be tuple or int, but got <class 'NoneType'>".into()),
        (b"X\x01\0\0\0a\x85Q.", "Only persistent_load of storage is allowed, but got <class 'str'>".into()),
        (b"N)R.", "Trying to call reduce for unrecognized function".into()),
        (b"ctorch\nSize\nN\x85R.", "torch.Size has unexpected arguments".into()),
        (b"\x8b.", "Unsupported operand 139".into()),
    ], |(pickle, why)| {
        let message = refusal(pickle);
        assert!(message.starts_with(&format!("Weights only load failed. {why}")), "{message}");
        assert!(!message.contains("damaged"), "{message}");
});
    let surrogate = "a str has an unpaired surrogate, which a Rust string cannot contain";
    assert_eq!(refusal(b"X\x03\0\0\0\xed\xa0\x80."), surrogate);
    assert_eq!(refusal(b"}]K\x01s."), "unhashable type: 'list'");
}

#[test]
fn equal_keys_are_one_as_in_python() -> Result<()> {
    // {True: 'a', 1: 'b', 1.0: 'c'}, which keeps only the first key.
    let text = refusal(b"}(\x88X\x01\0\0\0aK\x01X\x01\0\0\0bG\x3f\xf0\0\0\0\0\0\0X\x01\0\0\0cu.");
    assert_eq!(text, "no error: {True: 'c'}");
    // NaN equals nothing.
    let nan = b"G\x7f\xf8\0\0\0\0\0\0";
    assert_eq!(refusal(&[b"}(", &nan[..], b"N", nan, b"Nu."].concat()), "no error: {nan: None, nan: None}");
    // A set contains each element once.
    assert_eq!(refusal(b"c__builtin__\nset\n](K\x01\x88K\x02e\x85R."), "no error: {1, 2}");

    let pickle = b"}(K\x01K\x02\x86NNX\x01\0\0\0xG\x3f\xf8\0\0\0\0\0\0Nu.";
    let value = from_bytes(&with_pickle(pickle), MapLocation::None)?;
    let dict = value.as_dict()?;
    assert_eq!(dict.to_string(), "{(1, 2): None, None: 'x', 1.5: None}");
    assert!(dict.get((1, 2)).is_some() && dict.get(Key::None).is_some() && dict.get(1.5).is_some());
    assert!(dict.get((true, 2.0)).is_some() && dict.get(false).is_none());
    Ok(())
}

/// The attributes of an `OrderedDict` are kept, those of a tensor are not.
#[test]
fn the_attributes_of_a_dict_come_back() -> Result<()> {
    let pickle = b"ccollections\nOrderedDict\n)RX\x01\0\0\0aK\x01s}X\x09\0\0\0_metadataK\x05sb.";
    let value = from_bytes(&with_pickle(pickle), MapLocation::None)?;
    each_case([from_bytes(&to_bytes(&value)?, MapLocation::None)?, value], |value| -> Result<()> {
        assert_eq!(value.to_string(), "OrderedDict([('a', 1)])");
        assert_eq!(value.as_dict()?.attributes().unwrap().to_string(), "{'_metadata': 5}");
        Ok(())
    });
    Ok(())
}

/// Such an integer is kept, but cannot be used in arithmetic.
#[test]
fn an_integer_of_more_than_64_bits_is_named() -> Result<()> {
    let large = from_bytes(&with_pickle(b"\x8a\x09\0\0\0\0\0\0\0\0\x01."), MapLocation::None)?;
    assert!(matches!(large, Value::BigInt(_)) && large.kind() == "int");
    let error = large.as_int().unwrap_err();
    assert_eq!(error.kind(), "OverflowError");
    assert_eq!(error.to_string(), "Python int too large to convert to C long: 18446744073709551616");
    assert_eq!(large.as_float()?, 18446744073709551616.0);
    Ok(())
}
