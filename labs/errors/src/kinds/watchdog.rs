use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "watchdog",
    message: "Watchdog caught collective operation timeout",
    known_by: &["Watchdog caught collective operation timeout", "has ended without calling a collective that others wait in", "Timed out waiting *ms for recv operation to complete", "Timed out waiting *ms for send operation to complete"],
    follows: true,
    meaning: "A rank waited for the others in a collective operation until the time was up: they never called it. One has crashed, has left the loop because it has fewer batches, or does something alone, such as evaluating or saving on rank 0.",
    place: "Compare the ranks' last lines. The one that is not waiting, or waits in another operation or with another number, is where to look.",
    fix: &["Give each rank the same number of batches: a `DistributedSampler`, and the `join` context for uneven data.", "Let all ranks call the same collectives in the same order: no `if rank == 0:` around a forward pass of the wrapped model, or around a `barrier`.", "Only if something really takes that long, raise the `timeout` of `init_process_group`."],
    chapters: &["10-many-gpus.md"],
    run: Some(Run::Lab { number: "10", section: "8", run: "t4x2", flags: "--gpu sim:t4x2" }),
    read: Some(waited),
    ..Kind::NEW
};

fn waited(pasted: &Pasted) -> Vec<String> {
    let (Some(number), Some(operation)) = (pasted.number("SeqNum="), pasted.word("OpType=", ",")) else { return Vec::new() };
    let elements = pasted.number("NumelIn=").map_or(String::new(), |count| format!(" It has {count} numbers."));
    let time = pasted.number("Timeout(ms)=").map_or(String::new(), |time| format!(" Its time was up after {} seconds.", time / 1000));
    vec![format!(
        "The rank waited in its collective operation number {number}, {operation}.{elements}{time} A rank whose last number is lower has \
         stopped before it; one with another operation under the same number has taken another path."
    )]
}
