use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "index-bounds",
    message: "index is out of bounds for dimension with size",
    known_by: &["is out of bounds for dimension * with size", "index out of range in self", "INDICES element is out of DATA bounds", "out of range for tensor of size * at dimension", "Dimension out of range (expected to be in range of", "exceeds dimension size (", "start out of range (expected to be in range of", "too many indices for tensor of dimension", "appears multiple times in the list of dims", "index is out of bounds for dimension with size 0", "Dimension specified as * but tensor has no dimensions", "Index is supposed to be a vector", "indexing axis dim should be positive", "invalid index of a 0-dim tensor", "is out of range for a dataset of", "Expected reduction dim", "Padding_idx must be within num_embeddings", "'weight' must be 2-D", "Expected 1 or more dimensions (got 0)"],
    meaning: "An index, or the number of a dimension, is not below what it counts, or there are more indices than dimensions. Counting begins with 0, so the last index of 10 rows is 9. If the indices are themselves in a tensor on a GPU, the same mistake is a device-side assert.",
    place: "Print the largest and smallest index, and the size that they index. For an embedding, compare the largest token number with `num_embeddings`.",
    fix: &["Make the embedding or the table one larger than the largest index; padding and special tokens count.", "Use a dimension that the tensor has: -1 is the last.", "Do not go on by a fixed number of batches or rows: ask for the `len`."],
    chapters: &["08-asynchronous-execution.md"],
    run: Some(Run::Here),
    read: Some(bounds),
    ..Kind::NEW
};

fn bounds(pasted: &Pasted) -> Vec<String> {
    match (pasted.number("with size "), pasted.between("index ", " is out of bounds")) {
        (Some(size), Some(index)) if size > 0 && index.parse::<i64>().is_ok() => {
            vec![format!("The index is {index}, and the valid ones go from 0 to {}, or from -{size} to -1.", size - 1)]
        }
        _ => Vec::new(),
    }
}
