use crate::{Kind, Pasted};

pub const KIND: Kind = Kind {
    id: "host-memory",
    message: "DefaultCPUAllocator: can't allocate memory",
    known_by: &["DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory: you tried to allocate"],
    meaning: "The memory of the computer is full, not that of the GPU.",
    place: "The number in the message is what one tensor needed. If it is huge, a shape is wrong: print the shapes before the line.",
    fix: &["Look for an accidental broadcast, such as `(n, 1)` against `(n,)`.", "Read the data in pieces, or map the file.", "Use fewer loader workers."],
    chapters: &[],
    read: Some(host),
    ..Kind::NEW
};

fn host(pasted: &Pasted) -> Vec<String> {
    let asked = pasted.number("tried to allocate ");
    asked.map_or(Vec::new(), |bytes| vec![format!("One tensor needed {} of the host's memory.", crate::numbers::size(bytes))])
}
