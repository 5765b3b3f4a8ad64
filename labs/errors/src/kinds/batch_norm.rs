use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "batch-norm",
    message: "Expected more than 1 value per channel when training",
    known_by: &["Expected more than 1 value per channel when training", "running_mean must be defined in evaluation mode", "running_mean should contain", "weight should contain * elements not", "should contain * elements not", "must either both be None or neither be None", "eps must be positive, but got", "takes an input of at least 2 dimensions: a batch, and its channels", "Given normalized_shape=*expected input with shape", "to be of same shape as normalized_shape", "Expected normalized_shape to be at least 1-dimensional"],
    meaning: "BatchNorm estimates mean and variance of each channel from the batch, and this batch has a single value for it. Usually the last batch of an epoch has one sample.",
    place: "Print the batch's size. It fails at the end of the first epoch if the number of samples leaves a remainder of 1.",
    fix: &["Drop the last batch: `DataLoader(…, drop_last=True)`.", "Call `model.eval()` where you only predict.", "For batches of one, use GroupNorm or LayerNorm."],
    chapters: &["03-training-loop.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
