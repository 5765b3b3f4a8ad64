//! Boolean mask indexing: selecting and writing. Values and messages are PyTorch 2.11's.

use crate::each_case::each_case;
use std::sync::{Arc, Mutex};

use todevice::{DType, Device, Machine, Result, Tensor};

/// Runs on the CPU and on a simulated GPU, and returns the warnings.
fn everywhere(check: impl Fn(Device) -> Result<()>) -> Result<Vec<String>> {
    let machine: Machine = "sim:t4".parse().unwrap();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = warnings.clone();
    machine.on_warning(move |warning: &str| heard.lock().unwrap().push(warning.to_owned()));
    machine.enter(|| [Device::Cpu, Device::cuda(0)].into_iter().try_for_each(check))?;
    Ok(warnings.lock().unwrap().clone())
}

fn counting(device: Device) -> Result<Tensor> {
    Tensor::arange(0, 6, (1, (device, DType::F32)))?.view(&[2, 3])
}

fn said(result: Result<Tensor>) -> String {
    result.unwrap_err().to_string().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_mask_chooses_the_entries_at_which_it_is_true() -> Result<()> {
    let warnings = everywhere(|device| {
        let x = counting(device)?;
        let on = |mask: Tensor| mask.to(device);
        let chosen = x.index(&on(Tensor::new([[true, false, true], [false, true, false]])?)?)?;
        assert_eq!(chosen.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
        let row = x.index(&on(Tensor::new([true, false])?)?)?;
        assert_eq!((row.sizes(), row.to_vec::<f32>()?), (&[1, 3][..], vec![0.0, 1.0, 2.0]));
        assert_eq!(x.index(&Tensor::new([false, true])?)?.sizes(), [1, 3], "a mask of the host");
        each_case([(true, [1, 2, 3]), (false, [0, 2, 3])], |(truth, sizes)| -> Result<()> {
            assert_eq!(x.index(&on(Tensor::new(truth)?)?)?.sizes(), sizes);
            Ok(())
        });
        assert_eq!(Tensor::new(5.0f32)?.index(&Tensor::new(true)?)?.to_vec::<f32>()?, [5.0]);
        let none = x.index(&on(Tensor::new([[false; 3]; 2])?)?)?;
        assert_eq!((none.sizes(), none.dtype()), (&[0][..], DType::F32));
        each_case(
            [
                (
                    Tensor::new([true, false, true])?,
                    "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0",
                ),
                (
                    Tensor::new([[true; 2]; 2])?,
                    "The shape of the mask [2, 2] at index 1 does not match the shape of the indexed tensor [2, 3] at index 1",
                ),
                (Tensor::new([[[true]; 3]; 2])?, "too many indices for tensor of dimension 2"),
                (Tensor::new([1.0f32])?, "tensors used as indices must be long, int, byte or bool tensors"),
            ],
            |(mask, says)| -> Result<()> {
                assert_eq!(said(x.index(&on(mask)?)), says);
                Ok(())
            },
        );
        let bytes = x.index(&on(Tensor::new([2u8, 0])?)?)?;
        assert_eq!(bytes.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
        Ok(())
    })?;
    let says = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.";
    assert_eq!(warnings, [says]);
    Ok(())
}

#[test]
fn masked_select_broadcasts_and_takes_bools_only() -> Result<()> {
    everywhere(|device| {
        let x = counting(device)?;
        let mask = Tensor::new([true, false, true])?.to(device)?;
        assert_eq!(x.masked_select(&mask)?.to_vec::<f32>()?, [0.0, 2.0, 3.0, 5.0]);
        let twice = Tensor::new([[true; 3]; 2])?.to(device)?;
        let v = Tensor::new([0.0f32, 1.0, 2.0])?.to(device)?.requires_grad_(true)?;
        let chosen = v.masked_select(&twice)?;
        assert_eq!(chosen.detach().to_vec::<f32>()?, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
        assert_eq!(chosen.grad_fn(), Some("MaskedSelectBackward0"));
        chosen.sum()?.backward()?;
        assert_eq!(v.grad().unwrap().to_vec::<f32>()?, [2.0, 2.0, 2.0]);
        assert_eq!(
            said(x.masked_select(&mask.to(DType::U8)?)),
            "masked_select: expected BoolTensor for mask"
        );
        assert_eq!(
            said(x.masked_select(&Tensor::new([true, false])?.to(device)?)),
            "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1"
        );
        Ok(())
    })?;
    Ok(())
}

#[test]
fn values_are_written_where_a_mask_is_true_and_where_an_index_points() -> Result<()> {
    everywhere(|device| {
        let on = |tensor: Tensor| tensor.to(device);
        let put = |index: &Tensor, values: &Tensor| -> Result<Tensor> {
            counting(device)?.index_put_(index, values)
        };
        let large = counting(device)?.gt(2)?;
        let three = on(Tensor::new([1.0f32, 2.0, 3.0])?)?;
        let first = on(Tensor::new([true, false])?)?;
        each_case(
            [
                (counting(device)?.index_put_(&large, 9), [0.0, 1.0, 2.0, 9.0, 9.0, 9.0]),
                (put(&large, &three), [0.0, 1.0, 2.0, 1.0, 2.0, 3.0]),
                (put(&large, &on(Tensor::new([7.0f32])?)?), [0.0, 1.0, 2.0, 7.0, 7.0, 7.0]),
                (put(&large, &Tensor::new(8i64)?), [0.0, 1.0, 2.0, 8.0, 8.0, 8.0]),
                (put(&first, &three), [1.0, 2.0, 3.0, 3.0, 4.0, 5.0]),
                (
                    put(&counting(device)?.gt(9)?, &on(Tensor::new([1.0f32])?)?),
                    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
                ),
                (
                    put(
                        &on(Tensor::new([0, 0])?)?,
                        &on(Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]])?)?,
                    ),
                    [4.0, 5.0, 6.0, 3.0, 4.0, 5.0],
                ),
                (counting(device)?.index_put_(&Tensor::new([-1])?, 4), [0.0, 1.0, 2.0, 4.0, 4.0, 4.0]),
            ],
            |(result, values)| -> Result<()> {
                assert_eq!(result?.to_vec::<f32>()?, values);
                Ok(())
            },
        );
        each_case(
            [
                (
                    put(&large, &on(Tensor::new([1.0f32, 2.0])?)?),
                    "shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of shape [3]",
                ),
                (
                    put(&counting(device)?.gt(9)?, &three),
                    "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [0]",
                ),
                (
                    put(&large, &on(Tensor::new([1, 2, 3])?)?),
                    "Index put requires the source and destination dtypes match, got Float for the destination and Long for the source.",
                ),
                (
                    put(&on(Tensor::new([true, false, true])?)?, &three),
                    "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0",
                ),
                (put(&Tensor::new([2])?, &three), "index 2 is out of bounds for dimension 0 with size 2"),
            ],
            |(result, says)| {
                assert_eq!(said(result), says);
            },
        );
        Ok(())
    })?;
    Ok(())
}

#[test]
fn writes_to_chosen_entries_refuse_numbers_that_do_not_fit_and_sources_that_overlap() -> Result<()> {
    everywhere(|device| {
        let x = || Tensor::zeros((&[2], (device, DType::U8)));
        let (mask, index) = (Tensor::new([true, false])?.to(device)?, Tensor::new([0])?.to(device)?);
        each_case([&mask, &index], |index| -> Result<()> {
            let overflow = "value cannot be converted to type uint8_t without overflow";
            assert_eq!(said(x()?.index_put_(index, 300)), overflow);
            assert_eq!(
                said(x()?.to(DType::I64)?.index_put_(index, f64::NAN)),
                overflow.replace("uint8", "int64")
            );
            Ok(())
        });
        // A single number is filled in, whatever its dtype and dimensions; then a u8 mask is not allowed.
        let whole = Tensor::zeros((&[2], (device, DType::I64)))?;
        whole.index_put_(&mask, &Tensor::new([[2.7f32]])?)?;
        assert_eq!(whole.to_vec::<i64>()?, [2, 0]);
        let bytes = Tensor::new([1u8, 0])?.to(device)?;
        let fills = "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char";
        assert_eq!(said(x()?.index_put_(&bytes, 1)), fills);
        let line = Tensor::arange(0, 4, (1, (device, DType::I64)))?;
        let overlap = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.";
        assert_eq!(said(line.index_put_(&line.copy()?, &line)), overlap);
        let (first, last) = (line.narrow(0, 0, 3)?, line.narrow(0, 1, 3)?);
        let places = Tensor::new([0, 1, 2])?.to(device)?;
        assert_eq!(said(first.index_put_(&places, &last)), overlap);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn writes_to_chosen_entries_of_an_expanded_tensor_warn_and_the_last_one_stays() -> Result<()> {
    let warnings = everywhere(|device| {
        let on = |tensor: Tensor| tensor.to(device);
        let line = || Tensor::zeros((&[3], device));
        let two_rows = |x: &Tensor| x.expand(&[2, 3]);
        let entries = on(Tensor::new([1.0f32, 2.0, 3.0])?)?;
        let mask = on(Tensor::new([[true, false, true], [false, false, true]])?)?;
        let last = on(Tensor::new([1])?)?;
        each_case(
            [
                (&last, &entries, [1.0, 2.0, 3.0]),
                (&on(Tensor::new([0])?)?, &entries, [1.0, 2.0, 3.0]),
                (&mask, &entries, [1.0, 0.0, 3.0]),
                (&mask, &Tensor::new(5.0f32)?, [5.0, 0.0, 5.0]),
            ],
            |(index, values, result)| -> Result<()> {
                let x = line()?;
                two_rows(&x)?.index_put_(index, values)?;
                assert_eq!(x.to_vec::<f32>()?, result);
                Ok(())
            },
        );
        let x = line()?;
        x.view(&[3, 1])?.expand(&[3, 2])?.index_put_(&last, &on(Tensor::new([1.0f32, 2.0])?)?)?;
        assert_eq!(x.to_vec::<f32>()?, [0.0, 2.0, 0.0]);
        let recorded = entries.clone().requires_grad_(true)?;
        each_case([two_rows(&line()?)?, two_rows(&line()?)?.detach()], |x| -> Result<()> {
            let written = x.index_put_(&last, &recorded)?;
            let node = if x.is_view() { "AsStridedBackward0" } else { "IndexPutBackward0" };
            assert_eq!(written.grad_fn(), Some(node));
            recorded.set_grad(None)?;
            written.sum()?.backward()?;
            assert_eq!(recorded.grad().unwrap().to_vec::<f32>()?, [if x.is_view() { 2.0 } else { 1.0 }; 3]);
            Ok(())
        });
        Ok(())
    })?;
    let says = |operation: &str, assigned: &str| {
        format!(
            "Use of {operation} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. \
             This also applies to advanced indexing e.g. tensor[{assigned}"
        )
    };
    assert_eq!(warnings, [says("index_put_", "indices] = tensor"), says("masked_fill_", "mask] = scalar")]);
    Ok(())
}

#[test]
fn a_mask_of_bytes_is_warned_of_before_its_shape_and_not_beside_a_number() -> Result<()> {
    let shape =
        "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [4] at index 0";
    let bytes = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.";
    each_case(
        [
            ((|x, mask| x.index(mask)) as fn(&Tensor, &Tensor) -> Result<Tensor>, shape, &[bytes][..]),
            (|x, mask| x.index_put_(mask, &Tensor::ones(&[2])?.to(x.device())?), shape, &[bytes]),
            (|x, mask| x.index_put_(mask, 1), shape, &[]),
            (|x, mask| x.index(&mask.expand(&[3, 3])?), "too many indices for tensor of dimension 1", &[]),
        ],
        |(call, result, warned)| -> Result<()> {
            let warnings = everywhere(|device| {
                let mask = Tensor::new([1u8, 0, 1])?.to(device)?;
                assert_eq!(said(call(&Tensor::zeros((&[4], device))?, &mask)), result);
                Ok(())
            })?;
            assert_eq!(warnings, warned);
            Ok(())
        },
    );
    Ok(())
}

#[test]
fn gradients_flow_through_writes_to_chosen_entries() -> Result<()> {
    everywhere(|device| {
        let x = counting(device)?.requires_grad_(true)?;
        let values = Tensor::new([2.0f32])?.to(device)?.requires_grad_(true)?;
        let y = x.mul(3.0)?;
        y.index_put_(&y.detach().gt(6)?, &values)?;
        y.square()?.sum()?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.0, 18.0, 36.0, 0.0, 0.0, 0.0]);
        assert_eq!(values.grad().unwrap().to_vec::<f32>()?, [12.0]);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn nonzero_lists_indices_row_by_row() -> Result<()> {
    everywhere(|device| {
        let rows = counting(device)?.gt(2)?.nonzero()?;
        assert_eq!((rows.sizes(), rows.device()), (&[3, 2][..], device));
        assert_eq!(rows.to_vec::<i64>()?, [1, 0, 1, 1, 1, 2]);
        let number = Tensor::new(3.0f32)?.to(device)?.nonzero()?;
        assert_eq!((number.sizes(), number.dtype()), (&[1, 0][..], DType::I64));
        Ok(())
    })?;
    Ok(())
}

#[test]
fn a_condition_of_bytes_is_taken_with_a_warning() -> Result<()> {
    let warnings = everywhere(|device| {
        let chosen = Tensor::new([1u8, 0, 2])?.to(device)?.where_cond(1.5f64, 0)?;
        assert_eq!(chosen.to_vec::<f32>()?, [1.5, 0.0, 1.5]);
        Ok(())
    })?;
    assert!(warnings.len() == 1 && warnings[0].starts_with("where received a uint8 condition tensor."));
    Ok(())
}
