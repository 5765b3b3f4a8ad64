use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "collate",
    message: "stack expects each tensor to be equal size",
    known_by: &["stack expects each tensor to be equal size", "each element in list of batch should be of equal size", "default_collate: batch must contain", "Trying to resize storage that is not resizable"],
    meaning: "`stack` makes one tensor of several, which must have one size. A loader does that with the samples of a batch, and these differ in size, or are of a type that it cannot stack.",
    place: "Print the shape of each: for a loader, `[x.shape for x in batch]` in a `collate_fn` of your own. Samples of different length or pictures of different size are the usual case; a grey picture among colour ones is the rare one.",
    fix: &["Bring samples to one size in the dataset: resize, crop, convert to RGB.", "Or pad them in a `collate_fn`, and return the lengths too.", "Return no `None`: leave bad samples out of the dataset."],
    chapters: &["09-feeding-the-gpu.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
