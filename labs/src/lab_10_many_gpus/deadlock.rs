//! A rank that never arrives, and the errors of the others.

use todevice::distributed::{
    self as dist, DistributedError, MeetingError, Ranks, ReduceOp,
};
use todevice::prelude::*;

use super::ranks::set_up;
use crate::{Lab, Prediction, exact, text};

pub(super) fn section(lab: &mut Lab) -> crate::Result<()> {
    if !lab.section(8, "A rank that never arrives") {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::choice(
            "10-shorter",
            "Two ranks average something after each batch. The share of rank 0 has one batch less, so it is done after three batches, and \
             rank 1 has a fourth. What happens to rank 1?",
        )
        .or("own", "It goes on with its own numbers.", "A collective is for all ranks of the group. There is no average of those who happen to be there.")
        .or("waits", "It waits for rank 0.", "Rank 0 has ended, and calls nothing any more.")
        .or("error", "Its call to `all_reduce` fails at once.", "The call queues the collective, and returns. You are told where you read the result.")
        .because("The average needs both, and rank 0 has ended. Rank 1 waits for it where it reads the result."),
    );
    let outcome = uneven();
    let Err(error) = outcome else { return Err("nothing was amiss".into()) };
    lab.report(error.report());
    let waits = match error.refusal() {
        Some(DistributedError::Meeting(MeetingError::Stuck(stuck))) => &stuck.waits[..],
        _ => &[],
    };
    lab.answer(guess, if waits.is_empty() { "error" } else { "waits" });
    for wait in waits {
        let missing: Vec<String> = wait.missing.iter().map(usize::to_string).collect();
        lab.print(text!(
            "Rank {} waits in {} for rank {}.",
            exact("waiting_rank", wait.rank),
            exact("waits_in", wait.what.clone()),
            exact("missing_rank", missing.join(", "))
        ));
    }
    lab.prose(
        "A simulated machine sees at once that nobody can go on, and says who waits for whom, and where. On real GPUs such a program \
         stands still: those that wait show 100 %, and the one that has ended shows nothing. A timeout of ten minutes ends it.",
    );
    Ok(())
}

fn uneven() -> Result<()> {
    // ANCHOR: uneven
    let ranks = Ranks::new(2)?;
    let mut averages = ranks.run(|rank| {
        let device = set_up(rank)?;
        let batches = if rank == 0 { 3 } else { 4 }; // a shorter share
        let x = Tensor::ones((&[1000], device))?;
        for _ in 0..batches {
            dist::all_reduce(&x, ReduceOp::Avg)?;
        }
        Ok(x)
    })?;
    ranks.run_each(&mut averages, |_, x| x.mean()?.item())?;
    // ANCHOR_END: uneven
    Ok(())
}
