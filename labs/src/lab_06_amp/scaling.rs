//! The loss is multiplied before the way back, and the gradients are divided after it.

use todevice::amp::{self, GradScaler, GradScalerOptions};
use todevice::nn::utils::{ClipGradNormOptions, clip_grad_norm_};
use todevice::prelude::*;

use super::Options;
use super::training::{casting, classifier, loss_of, rings};
use crate::{Lab, Table, exact, row};

// ANCHOR: scaler
/// A scaler that doubles its scale after ten good steps, in place of 2000.
pub(super) fn scaler_of(
    device: Device,
    enabled: bool,
    init_scale: f64,
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
        "A scaler starts at 2^36, which is far too much, and doubles its scale after every ten steps that went well. How \
         does the scale walk?",
    );
    let (x, y) = rings(seed, device)?;
    let model = classifier(seed, device)?;
    let mut optimizer = optim::Adam::new(
        model.parameters(),
        AdamOptions { lr: 0.01, ..Default::default() },
    )?;
    let mut walk = Table::new(["step", "scale", "the step is", "new scale"]);
    let half = casting(device, Some(DType::F16));
    let (mut skipped, mut rises, mut moved_by_a_skip) = (0, 0, false);
    // ANCHOR: walk
    let mut scaler = GradScaler::new(scaler_of(device, true, 2f64.powi(36)))?;
    for step in 1..=options.steps {
        let (scale, weight) =
            (scaler.get_scale()?, model.parameters()[0].tensor().copy()?);
        optimizer.zero_grad();
        let loss = amp::autocast(half, || loss_of(&model, &x, &y, options.batches))?;
        scaler.scale(&loss)?.backward()?;
        let stepped = scaler.step(&mut optimizer)?;
        scaler.update()?;
        // ANCHOR_END: walk
        if !stepped {
            skipped += 1;
            moved_by_a_skip |= !weight.equal(&model.parameters()[0].tensor())?;
        }
        let new_scale = scaler.get_scale()?;
        rises += usize::from(new_scale > scale);
        if new_scale != scale {
            walk = walk.row(row![
                step,
                exact("scale", power(scale)),
                if stepped { "made" } else { "skipped" },
                exact("new_scale", power(new_scale))
            ]);
        }
    }
    lab.table(walk);
    lab.figure(exact("skipped", skipped).label("Steps skipped"));
    lab.figure(
        exact("moved", if moved_by_a_skip { "yes" } else { "no" })
            .label("A skipped step moved a weight"),
    );
    lab.prose(match (skipped, rises) {
        (0, _) => "It goes up: no gradient was infinite at any of these scales.",
        (_, 0) => "It goes down until no gradient is infinite, and loses a step for each halving. After ten good steps it will rise.",
        _ => {
            "It goes down until no gradient is infinite, and loses a step for each halving; then up again until one is. So it stays just \
             below what float16 can hold."
        }
    });
    lab.prose(
        "A skipped step changes no weight. Had it been made, an infinite gradient would have made a weight NaN, and \
         that never heals.",
    );

    lab.think(
        "06-norm",
        "Gradients are to be clipped to a norm of 0.1. Which norm does `clip_grad_norm_` find if nobody has called \
         `unscale_`?",
    );
    let model = classifier(seed, device)?;
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    // ANCHOR: clip
    let mut scaler = GradScaler::new(scaler_of(device, true, 65536.0))?;
    let loss = amp::autocast(half, || loss_of(&model, &x, &y, 1))?;
    scaler.scale(&loss)?.backward()?;
    let options = ClipGradNormOptions::default();
    let too_early =
        // Clips nothing.
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
        "Before unscale_ the gradients are 65536 times as large, and clipping to 0.1 would leave hardly anything of them. \
         So: scale, backward, unscale_, clip, step, update.",
    );
    Ok(())
}
