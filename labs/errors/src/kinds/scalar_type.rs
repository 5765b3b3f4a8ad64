use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "scalar-type",
    message: "expected scalar type Half but found Float",
    known_by: &["masked_select: expected BoolTensor for mask", "expected scalar type * but found", "mat1 and mat2 must have the same dtype", "self and mat2 must have the same dtype", "bias and mat2 must have the same dtype", "expected m1 and m2 to have the same dtype", "expected both vectors to have same dtype", "Input type (float) and", "Input type (double) and", "Input type (c10::", "Input type (struct c10::", "Input type (unsigned char) and", "Input type (torch.cuda.*) and weight type (torch.cuda.", "Found dtype * but expected", "can't be cast to the desired output type", "expected dtype * but got dtype", "must have the same scalar type", "mixed dtype (CPU)", "Expected object of scalar type * but got scalar type", "Index put requires the source and destination dtypes match", "Expected self.dtype to be equal to src.dtype", "must be the same type as the output tensor", "RNN input dtype (", "Expected query, key, and value to have the same dtype"],
    meaning: "Two tensors of one operation have different types. Numbers from NumPy and from CSV files are often float64, class numbers must be int64, and a model in half precision takes input in half precision. An operation in place cannot change the type of its tensor: `x /= 2` fails for whole numbers.",
    place: "Print `dtype` of both. `Half` is float16, `Float` is float32, `Double` is float64, and `Long` is int64.",
    fix: &["Convert the input once, where it is read: `torch.from_numpy(a).float()`; class numbers with `.long()`.", "For an operation in place, convert first, or make a new tensor: `x = x / 2`.", "Do not call `model.half()` to train: use `autocast`, which picks the types, and run the forward pass and the loss inside it.", "For a model in half precision, convert the input: `x.to(next(model.parameters()).dtype)`."],
    chapters: &["06-mixed-precision.md"],
    run: Some(Run::Here),
    read: Some(types),
    ..Kind::NEW
};

fn types(pasted: &Pasted) -> Vec<String> {
    let name = |word: &str| {
        Some(match word.trim_start_matches("c10::") {
            "Half" | "half" => "float16",
            "BFloat16" => "bfloat16",
            "Float" | "float" => "float32",
            "Double" | "double" => "float64",
            "Long" | "long" => "int64",
            "Int" | "int" => "int32",
            "Byte" => "uint8",
            "Bool" | "bool" => "bool",
            _ => return None,
        })
    };
    let pair = |wanted: Option<&str>, found: Option<&str>| Some((name(wanted?)?, name(found?)?));
    if let Some((wanted, found)) = pair(pasted.between("expected scalar type ", " but found"), pasted.between(" but found ", "")) {
        return vec![format!("One tensor is {found}, where {wanted} was expected.")];
    }
    match pair(pasted.between("the same dtype, but got ", " and "), pasted.words.rsplit_once("the same dtype, but got ").and_then(|(_, rest)| rest.split(' ').nth(2)).map(|word| word.trim_end_matches('.'))) {
        Some((one, other)) => vec![format!("One tensor is {one} and the other {other}.")],
        None => Vec::new(),
    }
}
