use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "matmul-shapes",
    message: "mat1 and mat2 shapes cannot be multiplied",
    known_by: &["mat1 and mat2 shapes cannot be multiplied", "mat1 dim 1 must match mat2 dim 0", "size mismatch, m1: * m2:", "Expected size for first two dimensions of batch2 tensor to be", "inconsistent tensor size, expected tensor * and src * to have the same number of elements", "size mismatch, got input (*), mat (*), vec (", "self must be a matrix", "mat2 must be a matrix", "batch1 must be a 3D tensor", "batch2 must be a 3D tensor", "to matmul need to be at least 1D", "must be equal to input_size. Expected", "was expecting embedding dimension of", "a and b must have same reduction dim, but got"],
    meaning: "A layer, or a matrix product, gets rows of another length than it was made for. In a product of tensors, the number of matrices or of dimensions may differ as well.",
    place: "Print the shape of the input before the layer that the traceback ends in. Often a batch was not flattened, the pictures have another size than before, or the layer in front puts out another number of features.",
    fix: &["Flatten all but the batch: `x.flatten(1)`.", "Set `in_features` to the length that you printed, or let `nn.LazyLinear` find it.", "For a matrix that lies the wrong way, transpose it; do not reshape it."],
    chapters: &["02-golden-rule.md"],
    run: Some(Run::Here),
    read: Some(shapes),
    ..Kind::NEW
};

fn shapes(pasted: &Pasted) -> Vec<String> {
    let sizes = |text: &str| text.split_once('x').and_then(|(a, b)| Some((a.trim().parse::<u64>().ok()?, b.trim().parse::<u64>().ok()?)));
    let Some(both) = pasted.between("cannot be multiplied (", ")") else { return Vec::new() };
    let Some(((rows, length), (wanted, columns))) = both.split_once(" and ").and_then(|(a, b)| Some((sizes(a)?, sizes(b)?))) else {
        return Vec::new();
    };
    let mut said = vec![format!("The input has {rows} rows of {length} numbers. The layer, or the second matrix, takes rows of {wanted} and makes rows of {columns}.")];
    let flattened = rows.checked_mul(length).filter(|all| wanted > length && length > 0 && all % wanted == 0).map(|all| all / wanted);
    if let Some(flattened) = flattened.filter(|flattened| (1..rows).contains(flattened)) {
        said.push(format!("All its numbers would make {flattened} rows of {wanted}: it looks like a batch that was not flattened."));
    }
    said
}
