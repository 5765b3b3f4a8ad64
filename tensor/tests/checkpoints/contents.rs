//! The possible contents of a checkpoint.

use crate::each_case::each_case;
use todevice::nn::{Linear, Module, StateDict};
use todevice::serialize::{Dict, Key, MapLocation, Value, from_bytes, save_to, to_bytes};
use todevice::{DType, Device, Machine, Result, Tensor};

fn round(value: impl Into<Value>) -> Result<Value> {
    from_bytes(&to_bytes(value)?, MapLocation::None)
}

#[test]
fn a_dict_keeps_the_order_of_its_keys() {
    let mut dict = Dict::from_iter([("b", 1), ("a", 2), ("c", 3)]);
    assert_eq!(dict.insert("a", 4).unwrap().to_string(), "2");
    assert!(dict.insert(0, "zero").is_none() && dict.insert("0", 0.5).is_none());
    assert_eq!(dict.to_string(), "{'b': 1, 'a': 4, 'c': 3, 0: 'zero', '0': 0.5}");
    assert_eq!(dict.remove("a").unwrap().to_string(), "4");
    assert!(dict.remove("a").is_none());
    assert_eq!(dict.get("c").unwrap().to_string(), "3");
    assert_eq!(dict.keys().map(Key::to_string).collect::<Vec<_>>(), ["'b'", "'c'", "0", "'0'"]);
    assert_eq!((dict.len(), dict.is_empty(), Dict::new().is_empty()), (4, false, true));
    assert_eq!(dict.at("x").unwrap_err().to_string(), "'x'");
    assert_eq!(dict.at("x").unwrap_err().kind(), "KeyError");
    assert_eq!(dict.into_iter().count(), 4);
}

#[test]
fn a_value_of_another_kind_is_named() -> Result<()> {
    let values: Vec<Value> = vec![
        Value::None,
        true.into(),
        1.into(),
        0.5.into(),
        "x".into(),
        Tensor::zeros(&[1])?.into(),
        Vec::<Value>::new().into(),
        (1, 2).into(),
        Dict::new().into(),
        Dict::ordered().into(),
    ];
    let kinds = values.iter().map(Value::kind).collect::<Vec<_>>().join(" ");
    assert_eq!(kinds, "NoneType bool int float str Tensor list tuple dict OrderedDict");
    for value in &values {
        let found = value.kind();
        for (expected, takes, error) in [
            ("bool", &["bool"][..], value.as_bool().err()),
            ("int", &["int"], value.as_int().err()),
            ("float", &["float", "int"], value.as_float().err()),
            ("str", &["str"], value.as_str().err()),
            ("Tensor", &["Tensor"], value.as_tensor().err()),
            ("list", &["list", "tuple"], value.as_list().err()),
            ("dict", &["dict", "OrderedDict"], value.as_dict().err()),
        ] {
            let message = (!takes.contains(&found)).then(|| format!("expected {expected}, found {found}"));
            assert_eq!(error.map(|error| error.to_string()), message);
        }
    }
    Ok(())
}

#[test]
fn every_kind_of_value_comes_back() -> Result<()> {
    let numbers = [0, 1, -1, 255, 256, 65_535, 65_536, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];
    let mut ordered = Dict::ordered();
    ordered.insert("k", Vec::from(numbers));
    let value: Value = vec![
        Value::from(0.1),
        f64::NAN.into(),
        (-0.0).into(),
        5e-324.into(),
        "'\"\n\0é🐍".into(),
        Value::Tuple(vec![]),
        Value::Tuple(vec![None::<i64>.into()]),
        (false, "x".repeat(70_000)).into(),
        ordered.into(),
        Dict::from_iter([(Key::Int(-3), Value::from(true))]).into(),
    ]
    .into();
    assert_eq!(round(&value)?.to_string(), value.to_string());
    Ok(())
}

#[test]
fn tensors_come_back_with_their_layouts_and_share_what_they_shared() -> Result<()> {
    let base = Tensor::arange(0, 24, (1, DType::I64))?.reshape(&[4, 6])?;
    let views = [
        base.t()?,
        base.get(2)?,
        base.slice(1, 1, 6, 2)?,
        base.slice(0, 3, 3, 1)?,
        base.select(0, 1)?.select(0, 2)?,
        base.select(0, 0)?.unsqueeze(0)?.expand(&[3, 6])?,
    ];
    let read = round(Value::List(views.iter().map(Value::from).collect()))?;
    let read: Vec<&Tensor> = read.as_list()?.iter().map(Value::as_tensor).collect::<Result<_>>()?;
    for (view, read) in views.iter().zip(&read) {
        assert_eq!(view.to_vec::<i64>()?, read.to_vec::<i64>()?);
        assert_eq!((view.sizes(), view.dtype()), (read.sizes(), read.dtype()));
        if view.numel() > 0 {
            assert_eq!((view.strides(), view.storage_offset()), (read.strides(), read.storage_offset()));
        }
    }
    assert!(read.iter().all(|tensor| tensor.shares_storage(read[0])));
    Ok(())
}

#[test]
fn a_small_view_brings_all_that_it_is_a_view_of() -> Result<()> {
    let base = Tensor::zeros(&[10_000])?;
    let view = base.narrow(0, 0, 1)?;
    assert!(to_bytes(&view)?.len() > 40_000);
    assert!(to_bytes(view.copy()?)?.len() < 2_000);
    Ok(())
}

#[test]
fn tensors_of_a_gpu_and_of_pinned_memory_are_saved_as_they_are() -> Result<()> {
    let two: Machine = "sim:t4x2".parse().unwrap();
    two.enter(|| {
        let x = Tensor::arange(0, 6, (1, DType::F32))?;
        let (on_gpu, pinned) = (x.to(Device::cuda(1))?, x.pin_memory()?);
        let row = on_gpu.view(&[2, 3])?.get(1)?;
        let read = round(vec![on_gpu, pinned, row])?;
        let [on_gpu, pinned, row] = read.as_list()? else { panic!("three were saved") };
        let (on_gpu, pinned, row) = (on_gpu.as_tensor()?, pinned.as_tensor()?, row.as_tensor()?);
        assert_eq!([on_gpu.device(), pinned.device()], [Device::cuda(1), Device::Cpu]);
        assert_eq!(
            [on_gpu, pinned].map(|tensor| tensor.to_vec::<f32>().unwrap()),
            [x.to_vec::<f32>()?, x.to_vec::<f32>()?]
        );
        assert_eq!(row.to_vec::<f32>()?, [3.0, 4.0, 5.0]);
        assert!(row.shares_storage(on_gpu));
        Ok(())
    })
}

/// The line that an error will report for the tensor.
#[test]
fn a_tensor_was_made_on_the_line_that_loaded_it() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let bytes = to_bytes(Tensor::zeros(&[2])?)?;
        let here = line!() + 1;
        let (host, gpu) = (from_bytes(&bytes, Device::Cpu)?, from_bytes(&bytes, Device::cuda(0))?);
        each_case([&host, &gpu], |read| -> Result<()> {
            let place = read.as_tensor()?.place();
            assert_eq!((place.file(), place.line()), (file!(), here));
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn a_writer_that_fails_is_an_error_at_whatever_byte() -> Result<()> {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken > 0 { Ok(taken) } else { Err(std::io::ErrorKind::StorageFull.into()) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let value = Value::from(Tensor::zeros(&[100])?);
    let length = to_bytes(&value)?.len();
    for room in 0..length {
        assert_eq!(save_to(&value, Full(room)).unwrap_err().to_string(), "no storage space");
    }
    save_to(&value, Full(length))
}

#[test]
fn the_state_of_a_module_comes_back() -> Result<()> {
    let (model, other) = (Linear::new(3, 2)?, Linear::new(3, 2)?);
    let read = round(model.state_dict())?;
    assert!(read.as_dict()?.is_ordered());
    other.load_state_dict(&StateDict::try_from(&read)?, true)?;
    assert_eq!(other.weight.tensor().to_vec::<f32>()?, model.weight.tensor().to_vec::<f32>()?);
    // Of two tensors with the same name the later one stays, at the position of the first.
    let three = [("a", 1.0), ("b", 2.0), ("a", 3.0)]
        .map(|(name, x)| (name.to_owned(), Tensor::from_slice(&[x], &[1]).unwrap()));
    let state = StateDict::from_iter(three);
    assert_eq!(
        Value::from(&state).to_string(),
        "OrderedDict([('a', tensor([3.], dtype=torch.float64)), ('b', tensor([2.], dtype=torch.float64))])"
    );
    let wrong = Value::from(Dict::from_iter([("lr", 0.1)]));
    let error = StateDict::try_from(&wrong).unwrap_err().to_string();
    let says = "While copying the parameter named \"lr\", expected torch.Tensor or Tensor-like object from checkpoint but \
                received <class 'float'>";
    assert_eq!(error, says);
    Ok(())
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let nested = |depth| (0..depth).fold(Value::from(1), |inner, _| Value::List(vec![inner]));
    assert!(round(nested(200)).is_ok());
    let message = "lists, tuples, and dicts are nested more than 200 deep";
    assert_eq!(to_bytes(nested(201)).unwrap_err().to_string(), message);
    // Values that could not be read back are not written: too many values, or too much text.
    let message =
        "the pickle expands to more than 4000000 values, or to far more values or text than it has bytes";
    each_case([Value::List(vec![Value::None; 4_000_001]), "x".repeat((64 << 20) + 1).into()], |value| {
        assert_eq!(to_bytes(value).unwrap_err().to_string(), message);
    });
}
