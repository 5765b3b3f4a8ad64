//! TF32: f32 with 10 bits of fraction, as the input of tensor cores.

use std::time::Duration;

use todevice::backends::cuda::matmul;
use todevice::backends::cudnn::{self, Flags};
use todevice::prelude::*;
use todevice::{Machine, cuda};

use super::{
    bits, convolution, error, has_tf32, in_f64, microseconds, millionths, time_of,
    yes_or_no,
};
use crate::{Cell, Lab, Prediction, Table, exact, hardware, rounded_by, row};

// ANCHOR: tf32
/// The nearest TF32, which keeps the first 10 of 23 bits of the fraction.
fn tf32(x: f32) -> f32 {
    let half_a_step = 1 << 12;
    let dropped = (1 << 13) - 1;
    f32::from_bits((x.to_bits() + half_a_step) & !dropped)
}

fn rounded(x: &Tensor) -> Result<Tensor> {
    let values: Vec<f32> = x.to_vec::<f32>()?.into_iter().map(tf32).collect();
    Tensor::from_slice(&values, x.sizes())
}
// ANCHOR_END: tf32

pub(super) fn ten_bits(lab: &mut Lab, size: usize) -> crate::Result<()> {
    let device = lab.device();
    lab.section(7, "TF32");
    lab.part("tf32");
    let mut table =
        Table::new(["f32", "exponent", "bits that stay", "bits that go", "TF32"]);
    for x in [1.0, 0.1, std::f32::consts::PI, 2049.0] {
        let bits = format!("{:032b}", x.to_bits());
        let as_tf32 = exact("tf32", tf32(x).to_string());
        table = table.row(row![
            x.to_string(),
            &bits[1..9],
            &bits[9..19],
            &bits[19..],
            as_tf32
        ]);
    }
    lab.table(table);
    lab.prose(
        "The exponent stays whole, so TF32 reaches as far as f32: it loses digits, not range. About three \
         decimal digits are left. TF32 is not a type of tensor: a card rounds what it multiplies, adds the products in \
         f32, and gives back f32.",
    );
    lab.part("cores");
    let h200: Machine = "sim:h200".parse()?;
    let mut table =
        Table::new(["tensor cores of", "compute capability", "f16", "bf16", "TF32"]);
    if let Some(gpu) = lab.gpu() {
        table = table.row(tensor_cores("this card", gpu)?);
    }
    lab.table(table.row(h200.enter(|| tensor_cores("an H200", Device::cuda(0)))?));
    lab.prose(
        "For f16 a card needs compute capability 7.0, for bf16 and TF32 it needs 8.0.",
    );

    lab.think(
        "07-error",
        format!(
            "Two matrices of {size} × {size} are multiplied. What does `allow_tf32` change about the product?"
        ),
    );
    let seed = lab.seed();
    let has_tf32 = has_tf32(device)?;
    let (table, mut product_error) = products(seed, size, device)?;
    lab.table(table);
    if !has_tf32 {
        lab.print("On an H200, which is simulated:");
        let (table, error) = h200.enter(|| products(seed, size, Device::cuda(0)))?;
        lab.table(table);
        product_error = error;
    }
    lab.prose(
        "Where the card has TF32 and you allow it, the product is that of the rounded matrices. Where the card has none, \
         nothing happens: allow_tf32 permits, it does not demand. set_float32_matmul_precision(High) is another name for \
         the same flag.",
    );

    let card = if has_tf32 { "this card" } else { "an H200" };
    let guess = lab.predict(
        Prediction::choice(
            "07-exact",
            format!("Nobody has set a flag. On {card}, which is more exact, a convolution or a product of matrices?"),
        )
        .or("convolution", "The convolution.", "For convolutions, rounding to TF32 is allowed unless a flag forbids it.")
        .or("product", "The product.", "Neither was rounded to TF32 here.")
        .or(
            "equal",
            "They are equally exact, since both are computed in f32.",
            "Their tensors are f32, but tensor cores may round the factors to TF32, and for convolutions this is allowed \
             by default.",
        )
        .because("There are two flags, and only the one for convolutions is on at first."),
    );
    let (table, mut conv_error) = convolutions(device)?;
    lab.table(table);
    if !has_tf32 {
        lab.print("On an H200, which is simulated:");
        let (table, error) = h200.enter(|| convolutions(Device::cuda(0)))?;
        lab.table(table);
        conv_error = error;
    }
    lab.answer(
        guess,
        match (was_rounded(product_error), was_rounded(conv_error)) {
            (false, true) => "product",
            (true, false) => "convolution",
            _ => "equal",
        },
    );
    lab.prose(
        "By default a product keeps the digits of f32, and a convolution is rounded on any card that can. If the CPU and \
         a GPU disagree in the fourth digit of a convolution, this is why. cudnn::set_allow_tf32(false) restores the \
         digits.",
    );
    Ok(())
}

/// Whether an error, in millionths, is one of TF32. Errors of f32 are far smaller.
fn was_rounded(error: f64) -> bool {
    error > 10.0
}

fn tensor_cores(name: &'static str, device: Device) -> crate::Result<Vec<Cell>> {
    let properties = cuda::get_device_properties(device.index())?;
    let takes = |major| hardware("takes", yes_or_no(properties.major >= major));
    let capability = format!("{}.{}", properties.major, properties.minor);
    Ok(row![name, hardware("capability", capability), takes(7), takes(8), takes(8)])
}

/// The time of work on a device. A GPU's own clock measures it without the host's part.
fn time_on(device: Device, run: impl Fn() -> Result<Tensor>) -> Result<Duration> {
    run()?; // a warm-up, which allocates memory
    if !device.is_cuda() {
        return time_of(device, run);
    }
    let (done, trace) = Machine::current().profile(run);
    done?;
    Ok(trace.kernels(device.index()).iter().filter_map(|kernel| kernel.time).sum())
}

/// Products with TF32 and without, and the error with the default setting.
fn products(seed: u64, size: usize, device: Device) -> crate::Result<(Table, f64)> {
    // ANCHOR: products
    manual_seed(seed);
    let (a, b) = (Tensor::randn(&[size, size])?, Tensor::randn(&[size, size])?);
    // In f64; 16 rows are enough to see the error.
    let rows = size.min(16);
    let exact = a.narrow(0, 0, rows)?.to(DType::F64)?.matmul(&b.to(DType::F64)?)?;
    let (rounded_a, rounded_b) = (rounded(&a)?, rounded(&b)?);
    let mut results = Vec::new();
    for (name, allow, a, b) in [
        ("f32", false, &a, &b),
        ("allow_tf32", true, &a, &b),
        ("rounded by hand", false, &rounded_a, &rounded_b),
    ] {
        let (a, b) = (a.to(device)?, b.to(device)?);
        matmul::set_allow_tf32(allow);
        let time = time_on(device, || a.matmul(&b))?;
        let product = a.matmul(&b)?;
        results.push((
            name,
            error(&product.narrow(0, 0, rows)?, &exact)?,
            bits(&product)?,
            time,
        ));
    }
    matmul::set_allow_tf32(false);
    // ANCHOR_END: products
    let mut table =
        Table::new(["product", "error in millionths", "same as allow_tf32", "time"]);
    for (name, error, bits, time) in &results {
        table = table.row(row![
            *name,
            rounded_by("product_error", millionths(*error), device),
            rounded_by("as_tf32", yes_or_no(*bits == results[1].2), device),
            microseconds("product_time", *time)
        ]);
    }
    Ok((table, results[0].1))
}

/// Convolutions with TF32 and without, and the error with the default setting.
fn convolutions(device: Device) -> crate::Result<(Table, f64)> {
    let (conv, x) = convolution(device, 16, [32, 32], 16, 3)?;
    let exact = in_f64(&conv, &x)?;
    let mut results = Vec::new();
    // ANCHOR: conv_tf32
    for (name, allow_tf32) in [("by default", true), ("set_allow_tf32(false)", false)] {
        let flags = Flags { allow_tf32, ..cudnn::current() };
        let forward = || cudnn::flags(flags, || no_grad(|| conv.forward(&x)));
        let time = time_on(device, forward)?;
        results.push((name, forward()?, time));
    }
    // ANCHOR_END: conv_tf32
    let mut table = Table::new(["convolution", "error in millionths", "time"]);
    let mut errors = Vec::new();
    for (name, y, time) in results {
        errors.push(error(&y, &exact)?);
        let error =
            rounded_by("conv_error", millionths(errors[errors.len() - 1]), device);
        table = table.row(row![name, error, microseconds("conv_time", time)]);
    }
    Ok((table, errors[0]))
}
