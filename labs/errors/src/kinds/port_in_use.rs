use crate::{Kind, Pasted};

pub const KIND: Kind = Kind {
    id: "port-in-use",
    message: "The server socket has failed to listen on any local network address",
    known_by: &["The server socket has failed to listen on any local network address", "server socket has failed to bind to", "DistNetworkError: *EADDRINUSE", "RuntimeError: Address already in use", "TCPStore*Address already in use"],
    meaning: "The ranks meet at a port of the first computer, 29500 unless you say otherwise, and another program has it: a second training run, or one that was not ended.",
    place: "`ss -ltnp | grep 29500`, with the port of the message, names the process.",
    fix: &["End the old run: its processes often live on after Ctrl-C.", "Take another port: `torchrun --master_port=29501`, or let it choose: `--rdzv_backend=c10d --rdzv_endpoint=localhost:0`.", "Start the ranks once: a script under `torchrun` must not start processes of its own."],
    chapters: &[],
    read: Some(port),
    ..Kind::NEW
};

fn port(pasted: &Pasted) -> Vec<String> {
    let port = pasted.number("[::]:").or_else(|| pasted.number("0.0.0.0:")).or_else(|| pasted.number(" port: "));
    port.map_or(Vec::new(), |port| vec![format!("The port in question is {port}.")])
}
