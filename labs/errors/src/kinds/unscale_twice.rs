use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "unscale-twice",
    message: "unscale_() has already been called on this optimizer since the last update()",
    known_by: &["unscale_() has already been called on this optimizer since the last update()", "unscale_() is being called after step()", "step() has already been called since the last update()"],
    meaning: "Between two calls of `scaler.update()`, `unscale_` may be called once for each optimizer, and before its `step`.",
    place: "Look at the order in the loop. With gradient accumulation, `unscale_` often stands outside the `if` that steps.",
    fix: &["Keep this order: `backward`, `unscale_` if you clip, clip, `step`, `update`; the last four only when you step.", "Call `update()` once per step, after all optimizers."],
    chapters: &["06-mixed-precision.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
