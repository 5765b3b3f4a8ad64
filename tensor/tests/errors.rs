//! Errors have PyTorch's messages, and nothing panics, however wrong the call.

use crate::each_case::each_case;
use std::panic::{AssertUnwindSafe, catch_unwind};

use todevice::autograd::{self, BackwardOptions, GradOptions};
use todevice::{
    CrossEntropyOptions, DType, Device, Error, Machine, Reduction, Result, Tensor, inference_mode, no_grad,
};

pub fn zeros(sizes: &[usize]) -> Tensor {
    Tensor::zeros(sizes).unwrap()
}

pub fn of(dtype: DType, sizes: &[usize]) -> Tensor {
    Tensor::full(sizes, (0, dtype)).unwrap()
}

pub fn longs(values: &[i64]) -> Tensor {
    Tensor::new(values).unwrap()
}

pub fn leaf(sizes: &[usize]) -> Tensor {
    Tensor::ones(sizes).unwrap().requires_grad_(true).unwrap()
}

/// Checks that the first line of the error is exactly PyTorch's.
#[track_caller]
fn says<T>(expected: &str, result: Result<T>) {
    match result {
        Ok(_) => panic!("no error, but PyTorch says: {expected}"),
        Err(error) => assert_eq!(error.to_string().lines().next(), Some(expected)),
    }
}

const TWICE: &str = "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward.";
const LEAF: &str = "a leaf Variable that requires grad is being used in an in-place operation.";
const LEAF_VIEW: &str =
    "a view of a leaf Variable that requires grad is being used in an in-place operation.";
const INFERENCE_EDITED: &str = "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.";
const OVERLAP: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.";

#[test]
fn autograd_speaks_as_pytorch_does() {
    let y = leaf(&[3]).exp().unwrap().sum().unwrap();
    y.backward().unwrap();
    says(TWICE, y.backward());
    says("grad can be implicitly created only for scalar outputs", leaf(&[3]).mul(2.0).unwrap().backward());
    says("grad can be implicitly created only for scalar outputs", leaf(&[0]).backward());
    says("element 0 of tensors does not require grad and does not have a grad_fn", zeros(&[]).backward());

    let y = leaf(&[3]).exp().unwrap();
    no_grad(|| y.add_(1.0)).unwrap();
    says(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [3]], which is output 0 of ExpBackward0, is at version 1; expected version 0 instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).",
        y.sum().unwrap().backward(),
    );
    let x = leaf(&[2, 2]);
    let y = x.mul(&x).unwrap();
    no_grad(|| x.add_(1.0)).unwrap();
    says(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [2, 2]] is at version 1; expected version 0 instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).",
        y.sum().unwrap().backward(),
    );
    let x = of(DType::F64, &[1]).requires_grad_(true).unwrap();
    let z = x.mul(2.0).unwrap().square().unwrap();
    let (two, y) = (of(DType::F64, &[1]), x.mul(2.0).unwrap());
    let z2 = y.mul(&two.requires_grad_(true).unwrap()).unwrap();
    no_grad(|| y.mul_(3.0).and_then(|_| y.mul_(3.0))).unwrap();
    says(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.DoubleTensor [1]], which is output 0 of MulBackward0, is at version 2; expected version 0 instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).",
        z2.backward(),
    );
    z.backward().unwrap();

    says(LEAF, leaf(&[3]).add_(1.0));
    says(LEAF, leaf(&[3]).zero_());
    says(LEAF, leaf(&[3]).copy_(&zeros(&[3])));
    says(LEAF, leaf(&[3]).uniform_(0.0, 1.0, None));
    says(LEAF_VIEW, leaf(&[3]).view(&[3, 1]).unwrap().add_(1.0));
    says(LEAF_VIEW, leaf(&[3]).select(0, 0).unwrap().mul_(2.0));

    let x = inference_mode(|| Tensor::ones(&[3])).unwrap();
    says(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.",
        leaf(&[3]).mul(&x),
    );
    says(INFERENCE_EDITED, x.add_(1.0));
    says(INFERENCE_EDITED, x.view(&[3]).unwrap().zero_());
    says(
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
        x.requires_grad_(true),
    );
    says("only Tensors of floating point dtype can require gradients", longs(&[1]).requires_grad_(true));
    says(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().",
        leaf(&[3]).mul(2.0).unwrap().requires_grad_(false),
    );
    let gradient = Some(zeros(&[2]));
    says(
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of torch.Size([3]).",
        autograd::backward(&leaf(&[3]).mul(2.0).unwrap(), BackwardOptions { gradient, ..Default::default() }),
    );
    says(
        "attempting to assign a gradient of size '[4]' to a tensor of size '[3]'. Please ensure that the gradient and the tensor are the same size",
        leaf(&[3]).set_grad(Some(zeros(&[4]))),
    );
    let loss = leaf(&[]).mul(2.0).unwrap();
    says(
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.",
        autograd::grad(&loss, &[&leaf(&[])], GradOptions::default()),
    );
    says(
        "One of the differentiated Tensors does not require grad",
        autograd::grad(&loss, &[&zeros(&[])], GradOptions::default()),
    );
    says("a Tensor with 2 elements cannot be converted to Scalar", zeros(&[2]).item());
    says("Boolean value of Tensor with more than one value is ambiguous", zeros(&[2]).is_nonzero());
    says("Boolean value of Tensor with no values is ambiguous", zeros(&[0]).is_nonzero());
}

#[test]
fn kinds_are_the_classes_of_pytorchs_exceptions() {
    let (number, x, none) = (zeros(&[]), zeros(&[3]), zeros(&[0]));
    let (scores, options) = (zeros(&[2, 3]), CrossEntropyOptions::default());
    let [one, four] = [longs(&[0]), longs(&[4])];
    let errors = [
        ("IndexError", x.get(3).err()),
        ("IndexError", number.get(0).err()),
        ("IndexError", number.index(&one).err()),
        ("IndexError", none.index(&one).err()),
        ("IndexError", x.index_select(0, &four).err()),
        ("IndexError", x.select(0, 3).err()),
        ("IndexError", x.narrow(0, 4, 0).err()),
        ("IndexError", number.size(0).err()),
        ("IndexError", x.sum_dims(&[1], false).err()),
        ("ValueError", number.nll_loss((&one, options.clone())).err()),
        ("ValueError", scores.nll_loss((&one, options.clone())).err()),
        ("ValueError", x.nll_loss((&longs(&[0, 1]), options.clone())).err()),
        ("RuntimeError", zeros(&[3, 2]).index_select(1, &four).err()),
        ("RuntimeError", x.narrow(0, 2, 2).err()),
        ("RuntimeError", scores.matmul(&scores).err()),
        ("RuntimeError", x.backward().err()),
        ("RuntimeError", Some(Error::custom("no camera"))),
    ];
    each_case(errors, |(kind, error)| {
        let error = error.unwrap();
        assert_eq!(error.kind(), kind, "{error}");
    });
}

/// A `main` that returns the error, and `unwrap`, print it with `Debug`.
#[test]
fn debug_prints_the_message_or_with_a_code_the_whole_report() -> Result<()> {
    let plain = zeros(&[2]).add(&zeros(&[3])).unwrap_err();
    assert_eq!(format!("{plain:?}"), plain.to_string());
    let loss = leaf(&[]).exp()?;
    loss.backward()?;
    let twice = loss.backward().unwrap_err();
    let refusal: &todevice::errors::AutogradError = twice.refusal().expect("a second backward");
    assert_eq!(format!("{refusal:?}"), refusal.to_string());
    let machine: Machine = "sim:t4".parse().expect("a simulated machine");
    let mismatch =
        machine.enter(|| zeros(&[2]).add(&zeros(&[2]).to(Device::cuda(0))?).map(drop)).unwrap_err();
    assert!(mismatch.report().starts_with("error[GPU0001]: Expected all tensors to be on the same device"));
    assert_eq!(format!("{mismatch:?}"), mismatch.report());
    Ok(())
}

#[test]
fn matrix_products_speak_as_pytorch_does() {
    let [two_three, four_five] = [zeros(&[2, 3]), zeros(&[4, 5])];
    says("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", two_three.matmul(&four_five));
    says("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", two_three.mm(&four_five));
    says("mat1 and mat2 shapes cannot be multiplied (1x3 and 4x5)", zeros(&[3]).matmul(&four_five));
    says(
        "mat1 and mat2 shapes cannot be multiplied (6x4 and 5x6)",
        zeros(&[2, 3, 4]).matmul(&zeros(&[5, 6])),
    );
    each_case([None, Some(&zeros(&[4]))], |bias| {
        let weight = zeros(&[4, 3]);
        says("mat1 and mat2 shapes cannot be multiplied (2x5 and 3x4)", zeros(&[2, 5]).linear(&weight, bias));
        says(
            "mat1 and mat2 shapes cannot be multiplied (4x5 and 3x4)",
            zeros(&[2, 2, 5]).linear(&weight, bias),
        );
        says("mat1 and mat2 shapes cannot be multiplied (1x5 and 3x4)", zeros(&[5]).linear(&weight, bias));
    });
    says(
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [3]",
        two_three.linear(&zeros(&[4, 3]), Some(&zeros(&[3]))),
    );
    says(
        "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5].",
        zeros(&[2, 3, 4]).bmm(&zeros(&[2, 5, 6])),
    );
    says(
        "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4].",
        zeros(&[2, 3, 4]).bmm(&zeros(&[3, 4, 6])),
    );
    says(
        "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5].",
        zeros(&[2, 3, 4]).matmul(&zeros(&[2, 5, 6])),
    );
    says(
        "Expected size for first two dimensions of batch2 tensor to be: [2, 5] but got: [2, 4].",
        zeros(&[5]).matmul(&zeros(&[2, 4, 3])),
    );
    says("batch1 must be a 3D tensor", zeros(&[3, 4]).bmm(&zeros(&[3, 4, 6])));
    says("batch2 must be a 3D tensor", zeros(&[1, 3, 4]).bmm(&zeros(&[4, 6])));
    says(
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
        zeros(&[2, 3, 4]).matmul(&zeros(&[3, 4, 5])),
    );
    says(
        "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements, but got 3 and 4 elements respectively",
        zeros(&[3]).matmul(&zeros(&[4])),
    );
    says("size mismatch, got input (2), mat (2x3), vec (4)", two_three.matmul(&zeros(&[4])));
    says("size mismatch, got input (6), mat (6x4), vec (5)", zeros(&[2, 3, 4]).matmul(&zeros(&[5])));
    says("self must be a matrix", zeros(&[3]).mm(&zeros(&[3, 4])));
    says("mat2 must be a matrix", zeros(&[3, 4]).mm(&zeros(&[4])));
    says(
        "both arguments to matmul need to be at least 1D, but they are 0D and 1D",
        zeros(&[]).matmul(&zeros(&[3])),
    );
    says(
        "both arguments to matmul need to be at least 1D, but they are 1D and 0D",
        zeros(&[3]).matmul(&zeros(&[])),
    );
}

#[test]
fn shapes_and_views_speak_as_pytorch_does() {
    let broadcast =
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1";
    let (a, b) = (zeros(&[2, 3]), zeros(&[2, 4]));
    each_case([a.add(&b), a.mul_(&b), a.eq(&b), a.maximum(&b), &a - &b, a.copy_(&b)], |result| {
        says(broadcast, result);
    });
    says(broadcast, of(DType::Bool, &[1]).where_cond(&a, &b));
    says(broadcast, a.mse_loss(&b, Reduction::Mean));
    let in_place = "output with shape [3] doesn't match the broadcast shape [2, 3]";
    says(in_place, zeros(&[3]).add_(&zeros(&[2, 3])));
    says(in_place, zeros(&[3]).copy_(&zeros(&[2, 3])));
    says(
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
        zeros(&[3]).add_(&zeros(&[4])),
    );
    says("shape '[4, 2]' is invalid for input of size 6", zeros(&[6]).view(&[4, 2]));
    says("shape '[4, 2]' is invalid for input of size 6", zeros(&[6]).reshape(&[4, 2]));
    says("shape '[-1, 4]' is invalid for input of size 6", zeros(&[6]).reshape(&[-1, 4]));
    says(
        "shape '[1099511627776, 1099511627776]' is invalid for input of size 6",
        zeros(&[6]).reshape(&[1 << 40, 1 << 40]),
    );
    says(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
        a.t().unwrap().view(&[6]),
    );
    says("invalid shape dimension -2 at index 0 of shape [-2, 3]", zeros(&[6]).view(&[-2, 3]));
    says("only one dimension can be inferred", zeros(&[6]).view(&[-1, -1]));
    says(
        "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension size -1 can be any value and is ambiguous",
        zeros(&[0]).view(&[-1, 0]),
    );
    says(
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [2, 3]",
        a.expand(&[2, 4]),
    );
    says(
        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0",
        a.expand(&[-1, 2, 3]),
    );
    says("numel: integer multiplication overflow", zeros(&[1]).expand(&[1 << 40, 1 << 40]));
    says("numel: integer multiplication overflow", zeros(&[1]).expand(&[1 << 62, 4]));
    says("t() expects a tensor with <= 2 dimensions, but self is 3D", zeros(&[2, 3, 4]).t());
    says(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1",
        a.permute(&[0]),
    );
    says("flatten() has invalid args: start_dim cannot come after end_dim", a.flatten(1, 0));
    says("dim 0 appears multiple times in the list of dims", a.sum_dims(&[0, -2], false));

    let dim = "Dimension out of range (expected to be in range of [-1, 0], but got 2)";
    let x = zeros(&[3]);
    each_case(
        [
            x.sum_dims(&[2], false),
            x.mean_dims(&[2], true),
            x.amax(&[2], false),
            x.argmax(2, false),
            x.softmax(2),
            x.log_softmax(2),
            x.squeeze(2),
            x.transpose(0, 2),
            x.permute(&[2]),
            x.narrow(2, 0, 1),
            x.slice(2, 0, 1, 1),
            x.select(2, 0),
            x.unfold(2, 1, 1),
            x.flatten(0, 2),
            x.index_select(2, &longs(&[0])),
            x.gather(2, &longs(&[0])),
            x.index_add(2, &longs(&[0]), &x),
            x.scatter_add(2, &longs(&[0]), &x),
            Tensor::cat(&[&x], 2),
        ],
        |result| {
            says(dim, result);
        },
    );
    says(dim, x.size(2));
    says(dim, x.max_dim(2, false));
    says(dim, x.split(1, 2));
    says(dim, x.chunk(1, 2));
    says("Dimension out of range (expected to be in range of [-2, 1], but got -3)", x.unsqueeze(-3));
    says("Dimension out of range (expected to be in range of [-2, 1], but got 3)", Tensor::stack(&[&x], 3));
    says(
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
        zeros(&[]).sum_dims(&[1], false),
    );
}

#[test]
fn joins_and_indices_speak_as_pytorch_does() {
    let empty = zeros(&[0]);
    let [a, b] = [zeros(&[2, 3]), zeros(&[2, 4])];
    let cat = |index: usize| {
        format!(
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number {index} in the list."
        )
    };
    says(&cat(1), Tensor::cat(&[&a, &b], 0));
    says(&cat(2), Tensor::cat(&[&empty, &a, &b], 0));
    says(
        "Sizes of tensors must match except in dimension 1. Expected size 2 but got size 3 for tensor number 1 in the list.",
        Tensor::cat(&[&a, &zeros(&[3, 3])], 1),
    );
    says("Tensors must have same number of dimensions: got 2 and 1", Tensor::cat(&[&a, &zeros(&[2])], 0));
    says("zero-dimensional tensor (at position 0) cannot be concatenated", Tensor::cat(&[zeros(&[])], 0));
    says(
        "zero-dimensional tensor (at position 1) cannot be concatenated",
        Tensor::cat(&[zeros(&[1]), zeros(&[])], 0),
    );
    says("torch.cat(): expected a non-empty list of Tensors", Tensor::cat::<Tensor>(&[], 0));
    says(
        "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [2, 4] at entry 1",
        Tensor::stack(&[&a, &b], 0),
    );
    says("stack expects a non-empty TensorList", Tensor::stack::<Tensor>(&[], 0));

    let x = zeros(&[3]);
    says("index 5 is out of bounds for dimension 0 with size 3", x.get(5));
    says("index -4 is out of bounds for dimension 0 with size 3", x.get(-4));
    says("index 5 is out of bounds for dimension 0 with size 3", x.gather(0, &longs(&[5])));
    says("index -1 is out of bounds for dimension 0 with size 3", x.gather(0, &longs(&[-1])));
    says(
        "index 5 is out of bounds for dimension 0 with size 3",
        x.scatter_add(0, &longs(&[0, 5]), &zeros(&[2])),
    );
    // The message of an embedding, which is an `index_select`.
    says("index out of range in self", x.index_select(0, &longs(&[5])));
    says("index out of range in self", zeros(&[3, 2]).index_select(0, &longs(&[-1])));
    says("index out of range in self", x.index_add(0, &longs(&[0, 5]), &zeros(&[2])));
    says(
        "index_select(): Index is supposed to be a vector",
        x.index_select(0, &longs(&[0]).view(&[1, 1]).unwrap()),
    );
    says("index_select(): Expected dtype int32 or int64 for index", x.index_select(0, &zeros(&[1])));
    let wide = longs(&[0, 0, 0]).view(&[1, 3]).unwrap();
    says("Index tensor must have the same number of dimensions as input tensor", a.gather(0, &longs(&[0])));
    says(
        "Size does not match at dimension 1 expected index [1, 3] to be no larger than self [3, 2] apart from dimension 0",
        zeros(&[3, 2]).gather(0, &wide),
    );
    says("start (2) + length (2) exceeds dimension size (3).", x.narrow(0, 2, 2));
    says("slice step must be positive", x.slice(0, 0, 3, 0));
    says("maximum size for tensor at dimension 0 is 3 but size is 4", x.unfold(0, 4, 1));
    says("step is 0 but must be > 0", x.unfold(0, 2, 0));

    let all = |name: &str| {
        format!(
            "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )
    };
    says(&all("max"), empty.max());
    says(&all("min"), empty.min());
    says(&all("amax"), empty.amax(&[], false));
    says(
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
        empty.argmax(None, false),
    );
    says("amax(): Expected reduction dim 0 to have non-zero size.", empty.amax(&[0], false));
    says("amin(): Expected reduction dim 0 to have non-zero size.", zeros(&[0, 3]).amin(&[0], true));
    says("argmin(): Expected reduction dim 0 to have non-zero size.", empty.argmin(0, false));
    assert_eq!(zeros(&[0, 3]).amax(&[1], false).unwrap().sizes(), [0]);
}

#[test]
fn losses_speak_as_pytorch_does() {
    let options = CrossEntropyOptions::default();
    let loss = |input: &[usize], target: &Tensor| zeros(input).cross_entropy((target, options.clone()));
    let targets = |sizes: &[usize]| of(DType::I64, sizes);
    says("Expected input batch_size (4) to match target batch_size (5).", loss(&[4, 3], &targets(&[5])));
    says(
        "Expected input batch_size (2) to match target batch_size (3).",
        loss(&[2, 3, 4], &targets(&[3, 4])),
    );
    says("Target 7 is out of bounds.", loss(&[1, 3], &longs(&[7])));
    says("Target -1 is out of bounds.", loss(&[1, 3], &longs(&[-1])));
    says("expected scalar type Long but found Float", loss(&[1, 3], &zeros(&[1])));
    says("expected scalar type Long but found Int", loss(&[1, 3], &of(DType::I32, &[1])));
    says(
        "expected scalar type Long but found Float",
        zeros(&[1, 3]).nll_loss((&zeros(&[1]), options.clone())),
    );
    says("Expected target size [2, 4], got [2, 5]", loss(&[2, 3, 4], &targets(&[2, 5])));
    let weighted = |weight| CrossEntropyOptions { weight: Some(weight), ..Default::default() };
    says(
        "weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [4]",
        zeros(&[2, 3]).cross_entropy((&targets(&[2]), weighted(zeros(&[4])))),
    );
    says(
        "expected scalar type Float but found Double",
        zeros(&[2, 3]).cross_entropy((&targets(&[2]), weighted(of(DType::F64, &[3])))),
    );
    says("dropout probability has to be between 0 and 1, but got 1.5", zeros(&[3]).dropout(1.5, true));
    says("dropout probability has to be between 0 and 1, but got -0.5", zeros(&[3]).dropout(-0.5, false));

    let warnings = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let machine = Machine::new();
    let heard = warnings.clone();
    machine.on_warning(move |text| heard.lock().unwrap().push(text.to_string()));
    machine.enter(|| {
        zeros(&[2, 3]).mse_loss(&zeros(&[2, 3]), Reduction::Mean).unwrap();
        assert!(warnings.lock().unwrap().is_empty());
        zeros(&[2, 3]).mse_loss(&zeros(&[2, 1]), Reduction::Mean).unwrap();
    });
    assert_eq!(
        *warnings.lock().unwrap(),
        [
            "Using a target size (torch.Size([2, 1])) that is different to the input size (torch.Size([2, 3])). This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        ]
    );
}

#[test]
fn types_speak_as_pytorch_does() {
    let (float, double) = (zeros(&[2, 2]), of(DType::F64, &[2, 2]));
    says("expected m1 and m2 to have the same dtype, but got: float != double", float.matmul(&double));
    says(
        "expected m1 and m2 to have the same dtype, but got: float != long int",
        float.mm(&of(DType::I64, &[2, 2])),
    );
    says("expected m1 and m2 to have the same dtype, but got: double != float", double.linear(&float, None));
    says("mat1 and mat2 shapes cannot be multiplied (2x2 and 3x2)", float.mm(&of(DType::F64, &[3, 2])));
    says(
        "mat1 and mat2 must have the same dtype, but got Double and Float",
        double.linear(&float, Some(&zeros(&[2]))),
    );
    says(
        "self and mat2 must have the same dtype, but got Double and Float",
        float.linear(&float, Some(&of(DType::F64, &[2]))),
    );
    says("expected scalar type Float but found Double", zeros(&[1, 2, 2]).bmm(&of(DType::F64, &[1, 2, 2])));
    says(
        "dot : expected both vectors to have same dtype, but found Float and Double",
        zeros(&[2]).matmul(&of(DType::F64, &[2])),
    );
    says(
        "\"addmm_impl_cpu_\" not implemented for 'Bool'",
        of(DType::Bool, &[2, 2]).mm(&of(DType::Bool, &[2, 2])),
    );
    let long = of(DType::I64, &[2]);
    let cast = "result type Float can't be cast to the desired output type Long";
    each_case(
        [long.add_(1.5), long.mul_(&zeros(&[2])), long.div_(2), long.exp_(), long.sigmoid_()],
        |result| {
            says(cast, result);
        },
    );
    says("result type Long can't be cast to the desired output type Bool", of(DType::Bool, &[2]).add_(1));
    says(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.",
        of(DType::Bool, &[2]).sub(&of(DType::Bool, &[2])),
    );
    says("\"normal_kernel_cpu\" not implemented for 'Long'", Tensor::randn((&[2], DType::I64)));
    says("\"check_uniform_bounds\" not implemented for 'Long'", Tensor::rand((&[2], DType::I64)));
    says("normal expects std >= 0.0, but found std -1", zeros(&[2]).normal_(0.0, -1.0, None));
    says(
        "uniform_ expects to return a [from, to) range, but found from=2 > to=1",
        zeros(&[2]).uniform_(2.0, 1.0, None),
    );
    says("random_ expects 'from' to be less than 'to', but got from=5 >= to=5", Tensor::randint(5, 5, &[2]));
    each_case([(DType::I64, "Long"), (DType::Bool, "Bool")], |(dtype, name)| {
        let mean = format!(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {name}"
        );
        says(&mean, of(dtype, &[2]).mean());
    });
    says("\"softmax_lastdim_kernel_impl\" not implemented for 'Long'", long.softmax(0));
    says("\"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'", long.log_softmax(0));
    says("\"softmax_kernel_impl\" not implemented for 'Long'", of(DType::I64, &[2, 2]).softmax(0));
    says("\"nll_loss_out_frame\" not implemented for 'Long'", of(DType::I64, &[2, 3]).nll_loss(&long));
    says("torch.clamp: At least one of 'min' or 'max' must not be None", zeros(&[2]).clamp(None, None));
    says("expected sequence of length 2 at dim 1 (got 1)", Tensor::new(vec![vec![1i64, 2], vec![3]]));
    says("step must be nonzero", Tensor::arange(0, 3, (0, DType::I64)));
    says("upper bound and lower bound inconsistent with step sign", Tensor::arange(0, 3, (-1, DType::I64)));
}

/// Where PyTorch rejects a call, an unexpected value would be worse than an error.
#[test]
fn types_that_an_operation_does_not_take_are_refused() {
    let index = longs(&[0, 2, 1]);
    each_case(
        [(DType::I64, DType::F64), (DType::F32, DType::F64), (DType::Bool, DType::U8)],
        |(to, from)| {
            let (x, source) = (of(to, &[3]), of(from, &[3]));
            let (to, from) = (to.scalar_type(), from.scalar_type());
            says(
                &format!("index_add_(): self ({to}) and source ({from}) must have the same scalar type"),
                x.index_add(0, &index, &source),
            );
            says(
                "scatter(): Expected self.dtype to be equal to src.dtype",
                x.scatter_add(0, &index, &source),
            );
        },
    );
    each_case([DType::Bool, DType::U8, DType::I32, DType::I64], |dtype| {
        let (x, name) = (of(dtype, &[2]), dtype.scalar_type());
        let norm = "linalg.vector_norm: Expected a floating point or complex tensor as input. Got";
        says(&format!("{norm} {name}"), x.norm());
        for reduction in [Reduction::Mean, Reduction::Sum, Reduction::None] {
            says(&format!("\"mse_cpu\" not implemented for '{name}'"), x.mse_loss(&x, reduction));
        }
        let half = x.dropout(0.5, true);
        says(&format!("result type Float can't be cast to the desired output type {name}"), half);
    });
    assert!(longs(&[1]).mse_loss(&zeros(&[1]), Reduction::Mean).is_ok(), "one of them is of floats");
    let truths = of(DType::Bool, &[2, 0]);
    says("argmax(): does not support bool input", truths.argmax(0, false));
    says("argmin(): does not support bool input", truths.argmin(None, false));
    assert_eq!(Tensor::new([false, true]).unwrap().max_dim(0, false).unwrap().1.item().unwrap(), 1.0);
    says("\"dot\" not implemented for 'Bool'", of(DType::Bool, &[2]).matmul(&of(DType::Bool, &[2])));
    says("Float did not match Double", zeros(&[2]).allclose(&of(DType::F64, &[]), 1e-5, 1e-8));
    says("Long did not match Int", longs(&[1]).allclose(&of(DType::I32, &[1]), 1e-5, 1e-8));
    let close = |rtol, atol| zeros(&[2]).allclose(&zeros(&[2]), rtol, atol);
    says("rtol must be greater than or equal to zero, but got -1", close(-1.0, -1.0));
    says("atol must be greater than or equal to zero, but got -0.5", close(0.0, -0.5));
    says("atol must be greater than or equal to zero, but got nan", close(1.0, f64::NAN));
}

#[test]
fn numbers_that_a_type_does_not_hold_are_refused() {
    let linspace = |start, end, dtype| Tensor::linspace(start, end, (5, dtype));
    says("\"linspace_cpu\" not implemented for 'Bool'", linspace(0.0, 1.0, DType::Bool));
    assert_eq!(Tensor::linspace(0.0, 1.0, (0, DType::Bool)).unwrap().sizes(), [0]);
    assert!(Tensor::linspace(-2.0, 3.0, (1, DType::Bool)).unwrap().is_nonzero().unwrap());
    let overflow = |name: &str| format!("value cannot be converted to type {name} without overflow");
    each_case([(-2.0, 3.0), (0.0, -0.5), (0.0, 255.5), (0.0, f64::NAN), (300.0, 0.0)], |(start, end)| {
        says(&overflow("uint8_t"), linspace(start, end, DType::U8));
    });
    says(&overflow("int"), linspace(0.0, 2_147_483_647.5, DType::I32));
    says(&overflow("int64_t"), linspace(0.0, f64::INFINITY, DType::I64));
    says(&overflow("float"), linspace(0.0, 1e60, DType::F32));
    says(&overflow("c10::Half"), linspace(0.0, 65520.0, DType::F16));
    each_case([-0.5, 255.5], |value| {
        says(&overflow("uint8_t"), Tensor::full(&[1], (value, DType::U8)));
    });

    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let bounds = [
            (-5, 5, DType::U8, "from is out of bounds for unsigned char"),
            (0, 257, DType::U8, "to - 1 is out of bounds for unsigned char"),
            (-1, 1, DType::Bool, "from is out of bounds for bool"),
            (0, 10, DType::Bool, "to - 1 is out of bounds for bool"),
            (0, (1 << 31) + 1, DType::I32, "to - 1 is out of bounds for int"),
            (-(1 << 31) - 1, 0, DType::I32, "from is out of bounds for int"),
            (0, 65600, DType::F16, "to - 1 is out of bounds for c10::Half"),
            (-70000, 0, DType::F16, "from is out of bounds for c10::Half"),
            (
                1 << 31,
                (1 << 31) + 200,
                DType::F32,
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=2147483648 >= to=2147483648",
            ),
        ];
        each_case(bounds, |(low, high, dtype, refusal)| {
            for device in [Device::Cpu, Device::cuda(0)] {
                says(refusal, Tensor::randint(low, high, (&[0], (device, dtype))));
                let x = Tensor::zeros((&[3], (device, dtype))).unwrap();
                says(refusal, x.random_from_to_(low, high, None));
                assert_eq!((x.to(DType::F32).unwrap().sum().unwrap().item().unwrap(), x.version()), (0.0, 0));
            }
});
        each_case([(0, 256, DType::U8), (0, 2, DType::Bool), (-(1 << 31), 1 << 31, DType::I32), (-65504, 65505, DType::F16)], |(low, high, dtype)| {
            assert!(Tensor::randint(low, high, (&[3], dtype)).is_ok(), "{dtype}");
});
    });
}

#[test]
fn devices_speak_as_pytorch_does() {
    each_case(["gpu", "CPU", "cudas"], |wrong| {
        says(
            &format!(
                "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {wrong}"
            ),
            wrong.parse::<Device>().map_err(todevice::Error::from),
        );
    });
    each_case(["cuda:-2", "cuda:01", "cuda:", "cuda:x", "cuda:1:2", "cpu:-1"], |wrong| {
        says(
            &format!("Invalid device string: '{wrong}'"),
            wrong.parse::<Device>().map_err(todevice::Error::from),
        );
    });
    let driver = "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx";
    says(driver, zeros(&[1]).to(Device::cuda(0)));
    says(driver, Tensor::full(&[1], (0, Device::cuda(0))));
    says(driver, Tensor::randn((&[1], Device::cuda(1))));
    says(driver, Tensor::arange(0, 3, (1, Device::cuda(0))));
}

#[test]
fn overlapping_targets_are_refused_by_every_in_place_operation() {
    let targets: [fn() -> Tensor; 3] = [
        || zeros(&[1]).expand(&[3]).unwrap(),
        || zeros(&[4]).unfold(0, 2, 1).unwrap().select(0, 0).unwrap().expand(&[3, 2]).unwrap(),
        || zeros(&[5]).unfold(0, 3, 1).unwrap(),
    ];
    each_case(targets, |target| {
        let x = target();
        for result in [
            x.add_(1.0),
            x.mul_(&x),
            x.relu_(),
            x.clamp_(0.0, 1.0),
            x.copy_(&Tensor::ones(&[1]).unwrap()),
            x.uniform_(0.0, 1.0, None),
            x.normal_(0.0, 1.0, None),
        ] {
            says(OVERLAP, result);
        }
        assert!(x.to_vec::<f32>().unwrap().iter().all(|value| *value == 0.0), "it was written to");
        assert_eq!(x.version(), 0, "a refused write was counted");
    });
}

const DTYPES: [DType; 8] =
    [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

const EXTREME: [i64; 13] = [i64::MIN, i64::MIN + 1, -9, -3, -2, -1, 0, 1, 2, 3, 9, i64::MAX - 1, i64::MAX];

/// Tensors of every kind: empty ones, scalars, gaps, overlaps, the maximum number of dimensions.
fn specimens(dtype: DType) -> Vec<Tensor> {
    let mut tensors: Vec<Tensor> = [
        &[] as &[usize],
        &[0],
        &[3],
        &[2, 3],
        &[2, 0, 3],
        &[1, 1, 1, 1, 1, 1, 1, 1],
        &[2, 1, 2, 1, 2, 1, 2, 1],
    ]
    .iter()
    .map(|sizes| Tensor::full(sizes, (1, dtype)).unwrap())
    .collect();
    let x = Tensor::full(&[3, 4], (1, dtype)).unwrap();
    tensors.extend([
        x.t().unwrap(),
        x.slice(1, 1, 4, 2).unwrap(),
        x.select(0, 2).unwrap(),
        x.select(0, 0).unwrap().expand(&[2, 4]).unwrap(),
        x.unfold(1, 2, 1).unwrap(),
        x.slice(0, 3, 9, 1).unwrap(),
        x.slice(0, 3, 9, 1).unwrap().slice(1, 4, 4, 1).unwrap(),
        x.narrow(0, 3, 0).unwrap().transpose(0, 1).unwrap(),
    ]);
    tensors
}

/// Calls a function that may fail but must not panic. Its results must be readable.
fn survives(what: &str, call: impl FnOnce() -> Result<Vec<Tensor>>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for tensor in call().unwrap_or_default() {
            if tensor.numel() < 10_000 {
                tensor.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
                let _ = tensor.to_string();
            }
        }
    }));
    assert!(outcome.is_ok(), "{what} panicked");
}

fn one(tensor: Result<Tensor>) -> Result<Vec<Tensor>> {
    Ok(vec![tensor?])
}

#[test]
fn no_dimension_and_no_index_panics() {
    let index = longs(&[0]);
    for x in specimens(DType::F32) {
        for a in EXTREME {
            let what = format!("a tensor of {:?} with {a}", x.sizes());
            survives(&what, || x.size(a).map(|_| vec![]));
            let calls: [(&str, &dyn Fn() -> Result<Tensor>); 27] = [
                ("view", &|| x.view(&[a])),
                ("reshape", &|| x.reshape(&[a, 3])),
                ("reshape", &|| x.reshape(&[-1, a])),
                ("reshape", &|| x.reshape(&[a, a, 0])),
                ("expand", &|| x.expand(&[a])),
                ("expand", &|| x.expand(&[a, 2, 3])),
                ("unsqueeze", &|| x.unsqueeze(a)),
                ("squeeze", &|| x.squeeze(a)),
                ("permute", &|| x.permute(&[a])),
                ("permute", &|| x.permute(&[a, 0])),
                ("get", &|| x.get(a)),
                ("softmax", &|| x.softmax(a)),
                ("log_softmax", &|| x.log_softmax(a)),
                ("sum_dims", &|| x.sum_dims(&[a], false)),
                ("sum_dims", &|| x.sum_dims(&[a, 0], true)),
                ("mean_dims", &|| x.mean_dims(&[a], false)),
                ("var", &|| x.var(&[a], usize::MAX, false)),
                ("std", &|| x.std(&[a], 1, false)),
                ("amax", &|| x.amax(&[a], false)),
                ("amin", &|| x.amin(&[a, a], false)),
                ("argmax", &|| x.argmax(a, true)),
                ("argmin", &|| x.argmin(a, false)),
                ("index_select", &|| x.index_select(a, &index)),
                ("index_select of", &|| x.index_select(0, &longs(&[a]))),
                ("gather", &|| x.gather(a, &index)),
                ("stack", &|| Tensor::stack(&[&x, &x], a)),
                ("cat", &|| Tensor::cat(&[&x, &x], a)),
            ];
            for (name, call) in calls {
                survives(&format!("{name} on {what}"), || one(call()));
            }
            survives(&format!("max_dim on {what}"), || x.max_dim(a, false).map(|(a, b)| vec![a, b]));
            survives(&format!("min_dim on {what}"), || x.min_dim(a, true).map(|(a, b)| vec![a, b]));
            for b in EXTREME {
                let (low, size) = (b as usize, a as usize);
                let calls: [(&str, &dyn Fn() -> Result<Tensor>); 8] = [
                    ("transpose", &|| x.transpose(a, b)),
                    ("flatten", &|| x.flatten(a, b)),
                    ("select", &|| x.select(a, b)),
                    ("slice", &|| x.slice(0, a, b, 1)),
                    ("slice by", &|| x.slice(a, b, i64::MAX, size)),
                    ("slice by far", &|| x.slice(-1, a, b, usize::MAX)),
                    ("narrow", &|| x.narrow(-1, low, size)),
                    ("unfold", &|| x.unfold(-1, size, low)),
                ];
                for (name, call) in calls {
                    survives(&format!("{name} on {what} and {b}"), || one(call()));
                }
                survives(&format!("split on {what} and {b}"), || match low {
                    0..=10 | 0x7fff_ffff_ffff_ffff.. => x.split(low, a),
                    _ => Ok(vec![]),
                });
                survives(&format!("chunk on {what} and {b}"), || x.chunk(low, a));
            }
        }
    }
}

#[test]
fn no_combination_of_types_and_shapes_panics() {
    let all: Vec<Tensor> = DTYPES.into_iter().flat_map(specimens).collect();
    for x in &all {
        let what = format!("{} {:?}", x.dtype(), x.sizes());
        let calls: [(&str, &dyn Fn() -> Result<Tensor>); 38] = [
            ("neg", &|| x.neg()),
            ("abs", &|| x.abs()),
            ("sign", &|| x.sign()),
            ("square", &|| x.square()),
            ("relu", &|| x.relu()),
            ("floor", &|| x.floor()),
            ("ceil", &|| x.ceil()),
            ("round", &|| x.round()),
            ("sqrt", &|| x.sqrt()),
            ("exp", &|| x.exp()),
            ("log", &|| x.log()),
            ("tanh", &|| x.tanh()),
            ("sigmoid", &|| x.sigmoid()),
            ("rsqrt", &|| x.rsqrt()),
            ("pow", &|| x.pow(f64::NAN)),
            ("isnan", &|| x.isnan()),
            ("logical_not", &|| x.logical_not()),
            ("clamp", &|| x.clamp(f64::NAN, f64::INFINITY)),
            ("sum", &|| x.sum()),
            ("mean", &|| x.mean()),
            ("norm", &|| x.norm()),
            ("max", &|| x.max()),
            ("min", &|| x.min()),
            ("all", &|| x.all()),
            ("any", &|| x.any()),
            ("argmax", &|| x.argmax(None, true)),
            ("copy", &|| x.copy()),
            ("t", &|| x.t()),
            ("dropout", &|| x.dropout(0.5, true)),
            ("dropout all", &|| x.dropout(1.0, true)),
            ("bernoulli", &|| x.bernoulli(None)),
            ("rand_like", &|| x.rand_like()),
            ("zeros_like", &|| x.zeros_like()),
            ("fill_", &|| x.copy()?.fill_(f64::NAN)),
            ("exp_", &|| x.copy()?.exp_()),
            ("neg_", &|| x.copy()?.neg_()),
            ("random_", &|| x.copy()?.random_(None)),
            ("random_from_to_", &|| x.copy()?.random_from_to_(i64::MIN, i64::MAX, None)),
        ];
        for (name, call) in calls {
            survives(&format!("{name} on {what}"), || one(call()));
        }
        survives(&format!("item of {what}"), || x.item().map(|_| vec![]));
        survives(&format!("writing to {what}"), || one(x.copy()?.view(&[-1])?.zero_()));
        for dtype in DTYPES {
            survives(&format!("{what} to {dtype}"), || one(x.to(dtype)));
        }
        for y in &all {
            let both = format!("{what} and {} {:?}", y.dtype(), y.sizes());
            let calls: [(&str, &dyn Fn() -> Result<Tensor>); 22] = [
                ("add", &|| x.add(y)),
                ("sub", &|| x.sub(y)),
                ("div", &|| x.div(y)),
                ("maximum", &|| x.maximum(y)),
                ("lt", &|| x.lt(y)),
                ("where", &|| x.where_cond(y, x)),
                ("where on", &|| of(DType::Bool, &[3]).where_cond(x, y)),
                ("mul_", &|| x.copy()?.mul_(y)),
                ("copy_", &|| x.copy()?.copy_(y)),
                ("matmul", &|| x.matmul(y)),
                ("mm", &|| x.mm(y)),
                ("bmm", &|| x.bmm(y)),
                ("linear", &|| x.linear(y, None)),
                ("linear with bias", &|| x.linear(y, Some(x))),
                ("mse_loss", &|| x.mse_loss(y, Reduction::Mean)),
                ("l1_loss", &|| x.l1_loss(y, Reduction::None)),
                ("nll_loss", &|| x.nll_loss(y)),
                ("cross_entropy", &|| x.cross_entropy(y)),
                ("index_select", &|| x.index_select(0, y)),
                ("gather", &|| x.gather(0, y)),
                ("index_add", &|| x.index_add(0, y, x)),
                ("scatter_add", &|| x.scatter_add(0, y, x)),
            ];
            for (name, call) in calls {
                survives(&format!("{name} of {both}"), || one(call()));
            }
            survives(&format!("cat of {both}"), || one(Tensor::cat(&[x, y], 0)));
            survives(&format!("stack of {both}"), || one(Tensor::stack(&[x, y], 0)));
            survives(&format!("equal of {both}"), || x.equal(y).map(|_| vec![]));
            survives(&format!("allclose of {both}"), || x.allclose(y, 1e-5, 1e-8).map(|_| vec![]));
        }
    }
}

#[test]
fn more_than_memory_is_an_error() {
    const HUGE: usize = 1 << 55;
    each_case(
        [
            &[usize::MAX] as &[usize],
            &[HUGE],
            &[1 << 40, 1 << 40],
            &[1 << 62, 4],
            &[0, 1 << 62, 4],
            &[1 << 61],
            &[1 << 32, 1 << 32],
            &[1; 9],
            &[0; 9],
        ],
        |sizes| {
            for result in [
                Tensor::zeros(sizes),
                Tensor::empty((sizes, DType::Bool)),
                Tensor::full(sizes, (1.5, DType::F64)),
                Tensor::rand(sizes),
                Tensor::randn(sizes),
                Tensor::randint(0, 5, sizes),
                Tensor::from_slice::<f32>(&[], sizes),
            ] {
                assert!(result.is_err(), "a tensor of {sizes:?}");
            }
        },
    );
    says(
        "Storage size calculation overflowed with sizes=[4611686018427387904, 4]",
        Tensor::zeros(&[1 << 62, 4]),
    );
    each_case(
        [
            Tensor::eye((1 << 31, DType::F32)),
            Tensor::eye((usize::MAX, DType::F32)),
            Tensor::arange(0, i64::MAX, (1, DType::I64)),
            Tensor::arange(i64::MIN, i64::MAX, (1, DType::F64)),
            Tensor::arange(0.0, f64::INFINITY, (1.0, DType::F32)),
            Tensor::arange(0.0, 1.0, (f64::MIN_POSITIVE, DType::F32)),
            Tensor::arange(f64::NAN, 1.0, (1.0, DType::F32)),
            Tensor::linspace(0.0, 1.0, (usize::MAX, DType::F32)),
            Tensor::linspace(0.0, 1.0, (HUGE, DType::F32)),
            Tensor::randperm(usize::MAX),
            Tensor::randperm(HUGE),
        ],
        |result| {
            assert!(result.is_err());
        },
    );
    // Expanding takes no memory; the results of operations do.
    each_case(
        [&[HUGE as i64] as &[i64], &[i64::MAX], &[1 << 30, 1 << 25], &[2, HUGE as i64]],
        |sizes| -> Result<()> {
            let x = zeros(&[1]).expand(sizes).unwrap();
            for result in [
                x.copy(),
                x.contiguous(),
                x.add(1.0),
                x.add(&x),
                x.exp(),
                x.clamp(0.0, 1.0),
                x.eq(&x),
                x.to(DType::F64),
                x.to(DType::Bool),
                x.all(),
                x.softmax(0),
                x.log_softmax(-1),
                x.dropout(0.5, true),
                x.argmax(None, false),
                x.zeros_like(),
                x.randn_like(),
                x.bernoulli(None),
                x.mse_loss(&x, Reduction::Mean),
                x.index_select(0, &longs(&[0])),
                Tensor::cat(&[&x, &x], 0),
                Tensor::cat(&[&x, &x, &x], -1),
                Tensor::stack(&[&x, &x], 0),
                of(DType::Bool, &[1]).where_cond(&x, &x),
                x.unsqueeze(0).and_then(|x| x.add(&x.transpose(0, 1)?)),
            ] {
                assert!(result.is_err(), "an operation on {sizes:?}");
            }
            assert!(x.to_vec::<f32>().is_err());
            Ok(())
        },
    );
    let machine = Machine::new();
    machine.enter(|| {
        assert!(Tensor::zeros(&[HUGE]).is_err());
        assert_eq!(machine.host_memory().allocated(), 0, "a refused allocation was counted");
        assert_eq!(zeros(&[2]).to_vec::<f32>().unwrap(), [0.0, 0.0], "the next one works");
    });
}

#[test]
fn values_are_not_read_as_another_type() {
    assert!(zeros(&[2]).to_vec::<f64>().is_err());
    assert!(longs(&[1]).to_vec::<i32>().is_err());
    assert!(Tensor::new([true]).unwrap().to_vec::<u8>().is_err());
    assert!(Tensor::from_slice(&[1.0f32, 2.0], &[3]).is_err());
    assert!(Tensor::from_slice(&[1.0f32, 2.0], &[]).is_err());
    assert!(Tensor::from_slice::<f32>(&[], &[0, 3]).is_ok());
}
