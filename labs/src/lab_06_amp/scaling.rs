//! Loss scaling: multiplies the loss before the backward pass, and divides the gradients after it.

use todevice::amp::{self, GradScaler, GradScalerOptions};
use todevice::nn::utils::{ClipGradNormOptions, clip_grad_norm_};
use todevice::prelude::*;

use super::Options;
use super::training::{casting, classifier, loss_of, rings};
use crate::{Lab, Table, exact, row, text};

// ANCHOR: scaler
/// A scaler that doubles its scale after ten good steps instead of 2000.
pub(super) fn scaler_of(
    enabled: bool,
    init_scale: f64,
    device: Device,
) -> GradScalerOptions {
    let device = device.device_type();
    GradScalerOptions {
        device,
        enabled,
        init_scale,
        growth_interval: 10,
        ..Default::default()
    }
}
// ANCHOR_END: scaler

/// A scale, which is a power of two.
fn power(scale: f64) -> String {
    format!("2^{}", scale.log2().round())
}

pub(super) fn scaled(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let (device, seed) = (lab.device(), lab.seed());
    lab.think(
        "06-walk",
        "A scaler starts at 2^36, which is far too much, and doubles its scale after ten good steps in a row. How \
         does the scale move from step to step?",
    );
    let (x, y) = rings(seed, device)?;
    let model = classifier(seed, device)?;
    let mut optimizer = optim::Adam::new(
        model.parameters(),
        AdamOptions { lr: 0.01, ..Default::default() },
    )?;
    let half = casting(Some(DType::F16), device);
    // ANCHOR: walk
    let mut scaler = GradScaler::new(scaler_of(true, 2f64.powi(36), device))?;
    let mut walk = Vec::new();
    for _ in 0..options.steps {
        let scale = scaler.get_scale()?;
        let weight = model.parameters()[0].tensor().copy()?;
        optimizer.zero_grad();
        let loss = amp::autocast(half, || loss_of(&model, &x, &y, options.batches))?;
        scaler.scale(&loss)?.backward()?;
        let taken = scaler.step(&mut optimizer)?;
        scaler.update()?;
        let moved = !weight.equal(&model.parameters()[0].tensor())?;
        walk.push((scale, taken, moved, scaler.get_scale()?));
    }
    // ANCHOR_END: walk
    let mut table = Table::new(["step", "scale", "the step is", "new scale"]);
    // The largest scale with a successful step, and the first step for which such a scale was too large.
    let (mut good, mut once_good) = (0.0f64, None);
    for (step, &(scale, taken, _, new_scale)) in (1..).zip(&walk) {
        if taken {
            good = good.max(scale);
        } else if scale <= good {
            once_good.get_or_insert((step, scale));
        }
        if new_scale != scale {
            table = table.row(row![
                step,
                exact("scale", power(scale)),
                if taken { "taken" } else { "skipped" },
                exact("new_scale", power(new_scale))
            ]);
        }
    }
    let skipped = walk.iter().filter(|(_, taken, ..)| !taken).count();
    let rises = walk.iter().filter(|(scale, .., new_scale)| new_scale > scale).count();
    let moved_by_a_skip = walk.iter().any(|(_, taken, moved, _)| !taken && *moved);
    lab.table(table);
    lab.figure(exact("skipped", skipped).label("Steps skipped"));
    lab.figure(
        exact("moved", if moved_by_a_skip { "yes" } else { "no" })
            .label("A skipped step moved a weight"),
    );
    lab.prose(match (skipped, rises) {
        (0, _) => "It never goes down: no gradient was infinite at any of these scales.",
        (_, 0) => {
            "It goes down until no gradient is infinite, and each halving costs a step. After ten good steps it \
             will rise."
        }
        _ => {
            "It goes down until no gradient is infinite, and each halving costs a step. After ten good steps it goes up \
             again, until the next overflow. So it stays just below what float16 can hold."
        }
    });
    if let Some((number, scale)) = once_good {
        lab.prose(text!(
            "But that limit moves. In step {} even {} is too much, a scale that was good before: \
             the weights have changed, and the gradients have grown with them.",
            exact("too_much_in_step", number),
            exact("once_good_scale", power(scale))
        ));
    }
    lab.prose(
        "A skipped step changes no weight. If the optimizer had taken it, an infinite gradient would have made a weight NaN, and \
         no later step heals that.",
    );

    lab.think(
        "06-norm",
        "You want to clip the gradients: shrink them all by the same factor until their norm, their length as one \
         long vector, is at most 0.1. Which norm does `clip_grad_norm_` find if nobody has called `unscale_`?",
    );
    let model = classifier(seed, device)?;
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    // ANCHOR: clip
    let mut scaler = GradScaler::new(scaler_of(true, 65536.0, device))?;
    let loss = amp::autocast(half, || loss_of(&model, &x, &y, 1))?;
    scaler.scale(&loss)?.backward()?;
    let options = ClipGradNormOptions::default();
    // A limit of infinity clips nothing. The call returns the norm.
    let too_early =
        clip_grad_norm_(&model.parameters(), f64::INFINITY, options)?.item()?;
    scaler.unscale_(&optimizer)?;
    let norm = clip_grad_norm_(&model.parameters(), 0.1, options)?.item()?;
    let clipped =
        clip_grad_norm_(&model.parameters(), f64::INFINITY, options)?.item()?;
    scaler.step(&mut optimizer)?; // does not unscale again
    // ANCHOR_END: clip
    lab.table(
        Table::new(["clip_grad_norm_", "finds a norm of"])
            .row(row![
                "before unscale_",
                exact("scaled_norm", format!("{:.0} thousand", too_early / 1e3))
            ])
            .row(row!["after unscale_", exact("norm", norm).digits(2)])
            .row(row![
                "once more, after clipping",
                exact("clipped_norm", clipped).digits(2)
            ]),
    );
    lab.prose(
        "Before unscale_ the gradients are 65536 times as large, and clipping them to 0.1 would leave hardly anything. The \
         right order is: scale, backward, unscale_, clip, step, update.",
    );
    Ok(())
}
