//! Messages that match PyTorch 2.11's word for word.

use crate::each_case::each_case;
use std::sync::{Arc, Mutex};

use todevice::optim::{SGD, SGDOptions};
use todevice::prelude::*;
use todevice::{Conv2dOptions, Machine, Padding, nn};

fn machine() -> Machine {
    "sim:t4".parse().unwrap()
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string().lines().next().unwrap().to_owned()
}

#[test]
fn a_mask_and_an_equal_on_another_device_are_refused_in_their_own_words() -> Result<()> {
    machine().enter(|| {
        let (x, mask) = (Tensor::ones(&[2])?, Tensor::new([true, false])?);
        let (on_gpu, mask_on_gpu) = (x.cuda()?, mask.cuda()?);
        each_case([
            (on_gpu.masked_fill(&mask, 0.0), "cpu", "cuda:0"),
            (on_gpu.masked_fill_(&mask, 0.0), "cpu", "cuda:0"),
            (x.masked_fill(&mask_on_gpu, 0.0), "cuda:0", "cpu"),
        ], |(refused, mask, own)| {
            let said = error(refused);
            let expected = format!(
                "expected self and mask to be on the same device, but got mask on {mask} and self on {own}"
            );
            assert!(said.ends_with(&expected), "{said}");
});
        let said = error(x.equal(&on_gpu));
        let expected = "Expected all tensors to be on the same device, but got other is on cuda:0, different from other tensors \
                        on cpu (when checking argument in method wrapper_CUDA__equal)";
        assert!(said.ends_with(expected), "{said}");
        Ok(())
    })
}

#[test]
fn an_expanded_tensor_cannot_be_pinned() -> Result<()> {
    machine().enter(|| {
        let said = error(Tensor::ones(&[1])?.expand(&[3])?.pin_memory());
        assert_eq!(
            said,
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please \
             clone() the tensor before performing the operation."
        );
        Ok(())
    })
}

#[test]
fn duplicate_parameters_and_padding_same_with_an_even_kernel_are_warned_of() -> Result<()> {
    let machine = machine();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let warnings = heard.clone();
    machine.on_warning(move |warning| warnings.lock().unwrap().push(warning.to_owned()));
    machine.enter(|| {
        let same = Conv2dOptions { padding: Padding::Same, ..Default::default() };
        for kernel in [3, 2, 2] {
            let ones = |size| Tensor::ones(&[1, 1, size, size]);
            ones(4)?.conv2d(&ones(kernel)?, (None, same))?;
        }
        let parameter = nn::Parameter::new(&Tensor::ones(&[1])?)?;
        // As in PyTorch, SGD accepts a NaN learning rate.
        SGD::new(vec![parameter.clone(), parameter], SGDOptions { lr: f64::NAN, ..Default::default() })?;
        Ok::<(), Error>(())
    })?;
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be \
             created",
            "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see \
             github.com/pytorch/pytorch/issues/40967 for more information",
        ]
    );
    Ok(())
}
