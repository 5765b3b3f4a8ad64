//! TF32: f32 with 10 bits of fraction, where tensor cores multiply.

use std::time::Duration;

use todevice::backends::cuda::matmul;
use todevice::backends::cudnn::{self, Flags};
use todevice::prelude::*;
use todevice::{Machine, cuda};

use super::{
    bits, convolution, error, has_tf32, in_f64, microseconds, millionths, rounding, time_of, yes_or_no,
};
use crate::{Cell, Lab, Table, exact, hardware, row};

// ANCHOR: tf32
/// The nearest TF32: of the 23 bits of the fraction the first 10 stay.
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
    lab.predict(
        "f32 has 23 bits for the fraction of a number, TF32 has 10. What becomes of 1, 0.1, π and 2049?",
    );
    let mut table = Table::new(["f32", "exponent", "bits that stay", "bits that go", "TF32"]);
    for x in [1.0, 0.1, std::f32::consts::PI, 2049.0] {
        let bits = format!("{:032b}", x.to_bits());
        let as_tf32 = exact("tf32", tf32(x).to_string());
        table = table.row(row![x.to_string(), &bits[1..9], &bits[9..19], &bits[19..], as_tf32]);
    }
    lab.table(table);
    lab.prose(
        "The exponent stays whole, so TF32 reaches as far as f32: it loses digits, not range. Of the fraction three \
         decimal digits stay. It is no type of tensors: a card rounds what it multiplies, adds the products in f32, and \
         gives back f32.",
    );
    lab.predict(
        "Which of f16, bf16 and TF32 do the tensor cores of this card take, and which those of an H200?",
    );
    let h200: Machine = "sim:h200".parse()?;
    let mut table = Table::new(["tensor cores of", "compute capability", "f16", "bf16", "TF32"]);
    if device.is_cuda() {
        table = table.row(tensor_cores("this card", device)?);
    }
    lab.table(table.row(h200.enter(|| tensor_cores("an H200", Device::cuda(0)))?));
    lab.prose("f16 takes compute capability 7.0, bf16 and TF32 take 8.0.");

    lab.predict(&format!(
        "A product of two matrices of {size} × {size}, as it is, with allow_tf32, and of operands that were rounded by \
         hand. How large is the error of each?"
    ));
    let seed = lab.seed();
    lab.table(products(seed, size, device)?);
    if !has_tf32(device)? {
        lab.print("On an H200, which is simulated:");
        lab.table(h200.enter(|| products(seed, size, Device::cuda(0)))?);
    }
    lab.prose(
        "Where the card has TF32 and it is allowed, the product is that of the rounded operands. Where it has not, nothing \
         happens: allow_tf32 allows, it does not ask. set_float32_matmul_precision(High) is another name of the same \
         flag.",
    );

    lab.predict("Nobody sets a flag. Is a convolution as exact as a product of matrices?");
    lab.table(convolutions(device)?);
    if !has_tf32(device)? {
        lab.print("On an H200, which is simulated:");
        lab.table(h200.enter(|| convolutions(Device::cuda(0)))?);
    }
    lab.prose(
        "By default products are exact to the bits of f32, and convolutions are rounded where a card can: the \
         difference to the CPU that puzzles people is this one. cudnn::set_allow_tf32(false) gives them all bits again.",
    );
    Ok(())
}

fn tensor_cores(name: &'static str, device: Device) -> crate::Result<Vec<Cell>> {
    let properties = cuda::get_device_properties(device.index())?;
    let takes = |major| hardware("takes", yes_or_no(properties.major >= major));
    let capability = format!("{}.{}", properties.major, properties.minor);
    Ok(row![name, hardware("capability", capability), takes(7), takes(8), takes(8)])
}

/// How long a device works on it: a GPU by its own clock, without the host's part.
fn time_on(device: Device, run: impl Fn() -> Result<Tensor>) -> Result<Duration> {
    run()?; // not looked at: takes memory
    if !device.is_cuda() {
        return time_of(device, run);
    }
    let (done, trace) = Machine::current().profile(run);
    done?;
    Ok(trace.kernels(device.index()).iter().filter_map(|kernel| kernel.time).sum())
}

fn products(seed: u64, size: usize, device: Device) -> crate::Result<Table> {
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
        results.push((name, error(&product.narrow(0, 0, rows)?, &exact)?, bits(&product)?, time));
    }
    matmul::set_allow_tf32(false);
    // ANCHOR_END: products
    let mut table = Table::new(["product", "error in millionths", "bits as allow_tf32", "time"]);
    for (name, error, bits, time) in &results {
        table = table.row(row![
            *name,
            rounding(device, "product_error", millionths(*error)),
            rounding(device, "as_tf32", yes_or_no(*bits == results[1].2)),
            microseconds("product_time", *time)
        ]);
    }
    Ok(table)
}

fn convolutions(device: Device) -> crate::Result<Table> {
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
    for (name, y, time) in results {
        let error = rounding(device, "conv_error", millionths(error(&y, &exact)?));
        table = table.row(row![name, error, microseconds("conv_time", time)]);
    }
    Ok(table)
}
