//! Tensors on different GPUs, and how to bring them together.

use std::time::Duration;

use todevice::cuda;
use todevice::prelude::*;

use super::{section, time_of};
use crate::{
    Figure, Lab, Prediction, Table, Text, bytes, exact, hardware, row, text, timed,
};

/// `asked` describes the reader's machine, if it has too few GPUs.
pub(super) fn sections(lab: &mut Lab, asked: &str) -> crate::Result<()> {
    where_tensors_live(lab, asked)?;
    from_one_to_another(lab)
}

fn where_tensors_live(lab: &mut Lab, asked: &str) -> crate::Result<()> {
    if !section(lab, 1, "Where tensors live") {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::yes_no(
            "10-rule",
            "A machine has several GPUs of one kind. `a` is on `cuda:0`, and `b` is on `cuda:1`. Does `a + b` run?",
        )
        .because("An operation runs on one device, and cannot use a tensor of another, even if that is a GPU of the same kind."),
    );
    if !asked.is_empty() {
        let count = cuda::device_count();
        lab.prose(format!(
            "This machine has {asked}, so the lab simulates one with {count}. If you name a machine with several, such as --gpu \
             sim:t4x2 or --gpu sim:h200x8, it runs there."
        ));
    }
    // ANCHOR: names
    let mut names = Vec::new();
    for index in 0..cuda::device_count() {
        names.push(cuda::get_device_name(index)?);
    }
    // ANCHOR_END: names
    let mut table = Table::new(["device", "name", "memory", "reads directly from"]);
    for (index, name) in names.into_iter().enumerate() {
        let memory = cuda::get_device_properties(index)?.total_memory;
        let peers = peers_of(index)?.len();
        table = table.row(row![
            format!("cuda:{index}"),
            hardware("name", name),
            Figure { kind: crate::Kind::Hardware, ..bytes("memory", memory) },
            hardware(
                "peers",
                match peers {
                    0 => "no other GPU".to_owned(),
                    1 => "one other GPU".to_owned(),
                    peers => format!("{peers} other GPUs"),
                }
            )
        ]);
    }
    lab.table(table);

    // ANCHOR: rule
    let a = Tensor::ones((&[2], Device::cuda(0)))?;
    let b = Tensor::ones((&[2], Device::cuda(1)))?;
    let sum = &a + &b;
    let moved = (&a + &b.to(Device::cuda(0))?)?;
    // ANCHOR_END: rule
    lab.answer(guess, sum.is_ok());
    if let Err(error) = sum {
        lab.report(error.report());
    }
    lab.print(text!("a + b.to(cuda:0): {moved}"));
    Ok(())
}

// ANCHOR: peers
/// The GPUs whose memory this one can read directly.
fn peers_of(index: usize) -> Result<Vec<usize>> {
    let mut peers = Vec::new();
    for other in (0..cuda::device_count()).filter(|other| *other != index) {
        if cuda::can_device_access_peer(index, other)? {
            peers.push(other);
        }
    }
    Ok(peers)
}
// ANCHOR_END: peers

fn from_one_to_another(lab: &mut Lab) -> crate::Result<()> {
    if !section(lab, 2, "From one GPU to another") {
        return Ok(());
    }
    lab.think(
        "10-detour",
        "A tensor of 16 MiB goes from `cuda:0` to `cuda:1`, with `x.to(cuda:1)`. Somebody writes `x.cpu()?.to(cuda:1)`. How many times \
         as long does that take?",
    );
    let mut table = Table::new(["size", "x.to(cuda:1)", "x.cpu()?.to(cuda:1)"]);
    let mut last = (Duration::ZERO, Duration::ZERO);
    for kibibytes in [4, 256, 16 << 10] {
        let (direct, detour) = two_ways(256 * kibibytes)?;
        last = (direct, detour);
        table = table.row(row![
            bytes("copied", 1024 * kibibytes),
            timed("direct_time", direct),
            timed("detour_time", detour)
        ]);
    }
    lab.table(table);
    let (direct, detour) = last;
    let peers = peers_of(0)?.contains(&1);
    lab.prose(if peers {
        "These two are peers: one reads the other's memory, and the host only asks for the copy."
    } else {
        "These two are not peers: the driver brings the bytes to the host and on to the other GPU, through memory of its own that is \
         pinned. You write the same line."
    });
    let verdict = match detour > direct {
        true => {
            "The detour through a tensor on the CPU takes longer: the bytes are copied twice, and each time through memory that the driver has to stage."
        }
        false => "Here the detour through a tensor on the CPU is no slower.",
    };
    lab.prose(Text::from(verdict).raced());

    lab.part("at-once");
    // ANCHOR: at_once
    let a = Tensor::ones((&[512, 512], Device::cuda(0)))?;
    let b = Tensor::ones((&[512, 512], Device::cuda(1)))?;
    let both = |x: &Tensor, y: &Tensor| -> Result<()> {
        x.matmul(x)?;
        y.matmul(y)?;
        Ok(())
    };
    both(&a, &b)?; // not timed: the first call allocates memory
    both(&a, &a)?;
    let ((), on_one) = time_of(0..2, || both(&a, &a))?;
    let ((), on_two) = time_of(0..2, || both(&a, &b))?;
    // ANCHOR_END: at_once
    lab.table(
        Table::new(["two products of 512 x 512", "time"])
            .row(row!["both on cuda:0", timed("on_one_time", on_one)])
            .row(row!["one on each GPU", timed("on_two_time", on_two)]),
    );
    if on_two < on_one {
        let verdict = "Two GPUs are done sooner: each has a queue of its own, and the host waits for neither.";
        lab.prose(Text::from(verdict).raced());
    }

    lab.part("ordered");
    // ANCHOR: ordered
    let product = a.matmul(&a)?; // each number is 512
    let copied = product.to(Device::cuda(1))?;
    let sum = copied.mean()?.item()?;
    // ANCHOR_END: ordered
    lab.print(text!("The mean of the copy: {:.1}", exact("mean_of_copy", sum)));
    lab.prose(
        "The copy waits for the stream of the one GPU, and what comes after it on the other waits for the copy. You need not \
         synchronize.",
    );
    Ok(())
}

// ANCHOR: two_ways
/// The time of a copy between two GPUs, directly and through the host.
fn two_ways(numbers: usize) -> Result<(Duration, Duration)> {
    let x = Tensor::ones((&[numbers], Device::cuda(0)))?;
    let direct = || x.to(Device::cuda(1));
    let detour = || x.cpu()?.to(Device::cuda(1));
    direct()?; // not timed: the first copy allocates memory
    detour()?;
    Ok((time_of(0..2, direct)?.1, time_of(0..2, detour)?.1))
}
// ANCHOR_END: two_ways
