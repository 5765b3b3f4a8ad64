use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "batch-norm",
    message: "Expected more than 1 value per channel when training",
    known_by: &["Expected more than 1 value per channel when training", "running_mean must be defined in evaluation mode", "running_mean should contain", "weight should contain * elements not", "should contain * elements not", "must either both be None or neither be None", "eps must be positive, but got", "needs an input of at least 2 dimensions: batch and channels", "Given normalized_shape=*expected input with shape", "to be of same shape as normalized_shape", "Expected normalized_shape to be at least 1-dimensional", "Expected more than 1 spatial element when training", "must be divisible by num_groups", "Expected weight to be a vector of size equal to the number of channels in input", "expected 4D input (got", "expected 2D or 3D input (got", "expected 3D input (got", "expected 5D input (got"],
    meaning: "A normalization layer cannot use its input. If the message says \"more than 1 value per channel\" or \"more than 1 spatial element\", the layer cannot estimate a variance, because each channel has a single value: for BatchNorm, usually the last batch of an epoch has one sample. Any other message names a setting, a size or a number of dimensions that does not fit: BatchNorm and GroupNorm are made for a number of channels, LayerNorm for the last dimensions.",
    place: "Print the input's shape before the layer, and compare it with the size that the layer was made for. An error at the end of the first epoch points to a last batch of one sample.",
    fix: &["If the sizes differ, make the layer for the input: `BatchNorm2d(channels)`, `LayerNorm(size)`. `BatchNorm1d` takes two or three dimensions, `BatchNorm2d` four.", "Drop a last batch of one sample: `DataLoader(…, drop_last=True)`.", "Call `model.eval()` where you only predict.", "For batches of one, use GroupNorm or LayerNorm."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
