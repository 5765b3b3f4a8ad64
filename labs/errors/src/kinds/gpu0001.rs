use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "gpu0001",
    code: Some("GPU0001"),
    message: "Expected all tensors to be on the same device",
    known_by: &["Expected all tensors to be on the same device", "found at least two devices, *!", "is on *, different from other tensors on", "Input type (torch.cuda.*Tensor) and weight type (torch.FloatTensor) should be the same", "Input type (torch.cuda.*Tensor) and weight type (torch.HalfTensor) should be the same", "Input type (torch.FloatTensor) and weight type (torch.cuda.*) should be the same", "Input type (torch.HalfTensor) and weight type (torch.cuda.*) should be the same", "Expected object of backend * but got backend * for argument", "Expected object of device type * but got device type * for argument", "expected device * but got device", "indices should be either on * or on the same device as the indexed tensor", "Tensor for argument * is on *, but expected * to be on", "Expected tensor to have * Device, but got tensor with * Device", "Input and parameter tensors are not at the same device", "Tensor on device * is not on the expected device", "Please ensure that the gradient and the tensor are on the same device", "invalid gradient at index * - expected device * but got", "[GPU0001]", "Input type (torch.cuda.*Tensor) and bias type (torch.FloatTensor) should be the same", "Tensor for argument * is on * but expected on", "Input type (MPS*) and weight type (torch.*) should be the same", "Placeholder storage has not been allocated on MPS device"],
    meaning: "An operation was given tensors that live on different devices. A kernel works in the memory of its own device, and nothing is moved behind your back.",
    place: "The traceback ends at the operation. Print the `device` of each tensor there: the one on `cpu` is usually the one you forgot. In a message about a linear layer, `mat1` is the input, `mat2` the weight and `self` the bias.",
    fix: &["Move both tensors of every batch: `x, y = x.to(device), y.to(device)`.", "Move the model once, before the loop: `model.to(device)`.", "Keep what a tensor's `to` returns; it moves nothing in place.", "Give tensors that are made inside `forward` the device of the input, and register the constants of a module as buffers."],
    chapters: &["02-golden-rule.md"],
    run: Some(Run::Lab { number: "02", section: "2", run: "t4", flags: "--gpu sim:t4" }),
    read: Some(two_devices),
    ..Kind::NEW
};

fn two_devices(pasted: &Pasted) -> Vec<String> {
    if let (Some(name), Some(here)) =
        (pasted.word("but got ", " is on "), pasted.word(" is on ", ", different from other tensors"))
        && let Some(there) = pasted.word("different from other tensors on ", " (").or_else(|| pasted.word("different from other tensors on ", ""))
    {
        return vec![format!("The argument `{name}` is on {here}, and the others are on {there}: move `{name}`.")];
    }
    match (pasted.word("at least two devices, ", " and "), pasted.between("at least two devices, ", "!")) {
        (Some(one), Some(both)) if both.matches(' ').count() == 2 => {
            let other = both.rsplit(' ').next().unwrap_or_default();
            let name = pasted.word("checking argument for argument ", " in method");
            let named = name.map_or(String::new(), |name| format!(" The argument in question is `{name}`."));
            vec![format!("One tensor is on {one}, and another on {other}.{named}")]
        }
        _ => Vec::new(),
    }
}
