use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "no-inf-checks",
    message: "No inf checks were recorded for this optimizer",
    known_by: &["No inf checks were recorded for this optimizer", "No inf checks were recorded prior to update", "but _scale is None. This may indicate your script did not use scaler.scale"],
    meaning: "`scaler.step(optimizer)` found no gradient of this optimizer's parameters: no `scaler.scale(loss).backward()` came before it, or it led to other parameters.",
    place: "Print `[p.grad is None for p in optimizer.param_groups[0]['params']]` before `step`.",
    fix: &["Call `scaler.scale(loss).backward()` in each step, not `loss.backward()`.", "Make the optimizer from the parameters that the loss uses: a model that was replaced, frozen or copied after that has others.", "With several optimizers, step only those whose loss was computed."],
    chapters: &["06-mixed-precision.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
