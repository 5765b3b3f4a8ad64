use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "non-finite-norm",
    message: "The total norm for gradients from `parameters` is non-finite",
    known_by: &["for gradients from `parameters` is non-finite, so it cannot be clipped"],
    meaning: "A gradient is infinite or not a number, and `clip_grad_norm_` was told to stop then.",
    place: "Look for the first bad number: print `loss.item()` in each step, and turn on `torch.autograd.set_detect_anomaly(True)` for the step that fails.",
    fix: &["With a `GradScaler`, call `scaler.unscale_(optimizer)` before you clip. In its first steps infinities are normal, and it skips the step: do not set `error_if_nonfinite` there.", "Lower the learning rate, and check the data for NaN.", "Avoid the logarithm and the root of 0 in your loss."],
    chapters: &["06-mixed-precision.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
