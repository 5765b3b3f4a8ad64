use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "fp16-gradients",
    message: "Attempting to unscale FP16 gradients",
    known_by: &["Attempting to unscale FP16 gradients"],
    meaning: "The model's own parameters are float16, because of `model.half()` or `torch_dtype=torch.float16`. `GradScaler` is made for float32 parameters that autocast casts.",
    place: "Print `next(model.parameters()).dtype`.",
    fix: &["Keep the parameters in float32, and run the forward pass under `autocast`.", "When you fine-tune with adapters, turn the parameters that are trained into float32.", "Or use bfloat16 without a scaler, where the card supports it."],
    chapters: &["06-mixed-precision.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
