use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "setting",
    message: "a setting is outside its range, such as batch_size=0 or a negative learning rate",
    known_by: &["should be a positive integer value, but got", "dropout probability has to be between 0 and 1, but got", "Invalid learning rate:", "ValueError: Invalid * value:", "Invalid momentum value:", "Invalid weight_decay value:", "Invalid beta parameter at index", "Invalid epsilon value:", "Nesterov momentum requires a momentum and zero dampening", "The growth factor must be > 1.0", "The backoff factor must be < 1.0", "num_workers option should be non-negative", "sampler option is mutually exclusive with shuffle", "prefetch_factor option could only be specified in multiprocessing", "Sum of input lengths does not equal the length of the input dataset", "Fraction at index * is not between 0 and 1", "AssertionError: Size mismatch between tensors", "Invalid fraction value:", "expects 'from' to be less than 'to'", "uniform_ expects to return a", "normal expects std >= 0.0", "must be greater than or equal to zero, but got", "invalid value of debug_mode, expected one of", "rank should be in the interval", "datasets should not be an empty iterable", "RuntimeError: Size mismatch between tensors", "embed_dim must be divisible by num_heads"],
    meaning: "A layer, an optimizer, a data set or a loader was made with a value that makes no sense for it, or with two that do not go together. The message says which, and often what would be right.",
    place: "The traceback ends where the object is made. The value often comes from a configuration file, where `1e-3` may have been read as a text.",
    fix: &["Correct the value.", "For a loader's `num_samples=0`, look at why the dataset is empty: a path, a file pattern, a filter."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
