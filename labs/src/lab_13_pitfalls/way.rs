//! Section 8: bytes that get lost on the way from one GPU to another.

use todevice::distributed::{self as dist, Ranks, ReduceOp};
use todevice::prelude::*;
use todevice::{Machine, cuda};

use super::pitfall::Pitfall;
use crate::{Lab, Prediction, Table, exact, row, text};

const NUMBERS: usize = 1 << 16;

// ANCHOR: routes
/// The number of values that are wrong after a copy from one GPU to another.
fn wrong(x: &Tensor, there: &Tensor) -> Result<i64> {
    Ok(x.ne(&there.cpu()?)?.to(DType::I64)?.sum()?.item()? as i64)
}

/// As [`wrong`], for a direct copy, for one that waits, and for one through the host.
fn routes() -> Result<[i64; 3]> {
    let x = Tensor::ones(&[NUMBERS])?;
    let first = x.to(Device::cuda(0))?;
    let straight = wrong(&x, &first.to(Device::cuda(1))?)?;

    let waited = first.to(Device::cuda(1))?;
    cuda::synchronize()?;
    let waited = wrong(&x, &waited)?;

    let by_host = wrong(&x, &first.cpu()?.to(Device::cuda(1))?)?;
    Ok([straight, waited, by_host])
}
// ANCHOR_END: routes

// ANCHOR: reduced
/// The mean of ones and twos after a sum over two ranks, on each rank.
fn sums() -> Result<Vec<f64>> {
    let ranks = Ranks::new(2)?;
    let mut sums = ranks.run(|rank| {
        cuda::set_device(rank)?;
        dist::init_process_group("nccl")?;
        let x = Tensor::full(&[NUMBERS], (rank as f64 + 1.0, Device::cuda(rank)))?;
        dist::all_reduce(&x, ReduceOp::Sum)?;
        Ok(x)
    })?;
    ranks.run_each(&mut sums, |_, x| x.mean()?.item())
}
// ANCHOR_END: reduced

pub(super) fn section(lab: &mut Lab) -> crate::Result<Pitfall> {
    // ANCHOR: broken
    let broken: Machine = "sim:t4x2,p2p=broken".parse()?;
    let off: Machine = "sim:t4x2,p2p=off".parse()?;
    // ANCHOR_END: broken
    lab.section_on(8, "Wrong numbers", &broken);
    lab.part("sums");
    let on_both = broken.enter(|| {
        // ANCHOR: symptom
        let first = Tensor::ones((&[NUMBERS], Device::cuda(0)))?;
        let second = first.to(Device::cuda(1))?;
        Ok::<_, Error>([first.sum()?.item()?, second.sum()?.item()?])
        // ANCHOR_END: symptom
    })?;
    lab.print(text!("The sum on cuda:0: {:.0}", exact("sum_before", on_both[0])));
    lab.print(text!(
        "The sum of its copy on cuda:1: {:.0}",
        exact("sum_after", on_both[1])
    ));
    let guess = lab.predict(
        Prediction::choice(
            "13-lost",
            "Ones are made on one GPU and copied to the other. No line fails. What is wrong, what proves it, and what helps?",
        )
        .or(
            "race",
            "The sum is computed too early: the copy is still under way. With `synchronize()` in between it is right. Leave the call there.",
            "What comes after a copy on the other GPU waits for it. The lab tries the call, and it changes nothing.",
        )
        .or(
            "way",
            "Bytes get lost between the GPUs. A copy through the CPU, compared with this one, shows it. Turn peer access off.",
            "Here both ways give the same numbers.",
        )
        .or(
            "rounding",
            "The two GPUs round differently. `allclose` says that the sums are near. There is nothing to mend.",
            "Ones are added up exactly in float32, up to sixteen millions.",
        )
        .because("The same numbers arrive whole if they go through the host, so the way straight from one GPU to the other loses them."),
    );
    let [straight, waited, by_host] = broken.enter(routes)?;
    let [off_straight, ..] = off.enter(routes)?;
    lab.table(
        Table::new(["from cuda:0 to cuda:1", "wrong numbers"])
            .row(row!["x.to(cuda:1)", exact("lost", straight)])
            .row(row!["the same, after synchronize()", exact("lost_waited", waited)])
            .row(row!["x.cpu()?.to(cuda:1)", exact("lost_by_host", by_host)])
            .row(row![
                "x.to(cuda:1), with p2p=off",
                exact("lost_without_peers", off_straight)
            ]),
    );
    lab.answer(guess, if straight > by_host { "way" } else { "rounding" });

    lab.part("nccl");
    let without = broken.with_nccl_p2p_disabled()?;
    let held = |sums: Vec<f64>| {
        let sums: Vec<String> = sums.iter().map(|sum| format!("{sum:.2}")).collect();
        exact("held", sums.join(" and "))
    };
    lab.table(
        Table::new(["all_reduce of 1 and 2", "the mean on the two ranks"])
            .row(row!["as it was", held(broken.enter(sums)?)])
            .row(row!["with NCCL_P2P_DISABLE=1", held(without.enter(sums)?)]),
    );
    Ok(Pitfall {
        what: "lost between GPUs",
        counted: "wrong numbers",
        before: exact("lost", straight).into(),
        after: exact("lost_without_peers", off_straight).into(),
    })
}
