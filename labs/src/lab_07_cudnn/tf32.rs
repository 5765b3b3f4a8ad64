//! TF32: f32 with 10 bits of fraction, where tensor cores multiply.

use todevice::backends::cuda::matmul;
use todevice::backends::cudnn::{self, Flags};
use todevice::cuda;
use todevice::prelude::*;

use super::{bits, convolution, error, in_f64, microseconds, millionths, rounding, time_of, yes_or_no};
use crate::{Lab, Table, exact, hardware, row};

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
    if device.is_cuda() {
        let properties = cuda::get_device_properties(device.index())?;
        lab.predict("Which numbers do the tensor cores of this card take?");
        let takes = |major| hardware("takes", yes_or_no(properties.major >= major));
        let capability = format!("{}.{}", properties.major, properties.minor);
        lab.table(
            Table::new(["tensor cores take", "from compute capability", "this card"])
                .row(row!["f16", "7.0", takes(7)])
                .row(row!["bf16", "8.0", takes(8)])
                .row(row!["TF32", "8.0", takes(8)])
                .row(row!["", "", hardware("capability", capability)]),
        );
    }
    products(lab, size)?;
    if device.is_cuda() { convolutions(lab) } else { Ok(()) }
}

fn products(lab: &mut Lab, size: usize) -> crate::Result<()> {
    let device = lab.device();
    lab.predict(&format!(
        "A product of two matrices of {size} × {size}, as it is, with allow_tf32, and of operands that were rounded by \
         hand. How large is the error of each?"
    ));
    // ANCHOR: products
    manual_seed(lab.seed());
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
        time_of(device, || a.matmul(&b))?; // not looked at: takes memory
        let time = time_of(device, || a.matmul(&b))?;
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
    lab.table(table);
    lab.prose(
        "Where the card has TF32 and it is allowed, the product is that of the rounded operands. Where it has not, nothing \
         happens: allow_tf32 allows, it does not ask. set_float32_matmul_precision(High) is another name of the same \
         flag.",
    );
    Ok(())
}

fn convolutions(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.predict("Nobody sets a flag. Is a convolution on this card as exact as a product of matrices?");
    let (conv, x) = convolution(device, 16, [32, 32], 16, 3)?;
    let exact = in_f64(&conv, &x)?;
    let mut results = Vec::new();
    // ANCHOR: conv_tf32
    for (name, allow_tf32) in [("by default", true), ("set_allow_tf32(false)", false)] {
        let flags = Flags { allow_tf32, ..cudnn::current() };
        let forward = || cudnn::flags(flags, || no_grad(|| conv.forward(&x)));
        time_of(device, forward)?; // not looked at: takes memory
        let time = time_of(device, forward)?;
        results.push((name, forward()?, time));
    }
    // ANCHOR_END: conv_tf32
    let mut table = Table::new(["convolution", "error in millionths", "time"]);
    for (name, y, time) in results {
        let error = rounding(device, "conv_error", millionths(error(&y, &exact)?));
        table = table.row(row![name, error, microseconds("conv_time", time)]);
    }
    lab.table(table);
    lab.prose(
        "By default products are exact to the bits of f32, and convolutions are rounded where a card can: the \
         difference to the CPU that puzzles people is this one. cudnn::set_allow_tf32(false) gives them all bits again.",
    );
    Ok(())
}
