use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "conv-input",
    message: "Given groups=1, expected input to have a different number of channels",
    known_by: &["Given groups=* weight of size * expected input* channels", "Expected 3D (unbatched) or 4D (batched) input to conv", "Expected 3-dimensional input for 3-dimensional weight", "Expected 4-dimensional input for 4-dimensional weight", "Kernel size can't be greater than actual input size", "Output size is too small", "Expected 3D or 4D (batch mode) tensor", "non-empty 3D or 4D (batch mode) tensor expected", "Only zero batch or zero channel inputs are supported", "expected weight to be at least * at dimension 0", "expected bias to be 1-dimensional with", "adaptive_avg_pool2d(): Expected", "to have non-zero size for non-batch dimensions", "pad should be at most half of effective kernel size", "kernel size should be greater than zero, but got", "stride should not be zero", "dilation should be greater than zero, but got", "padding='same' is not supported for strided convolutions", "pad should be smaller than or equal to half of kernel size", "divisor must be not zero", "weight should have at least three dimensions", "expected stride to be a single integer value", "expected weight to be divisible by", "Given transposed=* weight of size * expected input* channels", "Expected 2D (unbatched) or 3D (batched) input to conv", "Expected 4D (unbatched) or 5D (batched) input to conv", "non-positive stride is not supported", "in_channels must be divisible by groups", "out_channels must be divisible by groups"],
    meaning: "A convolution or a pooling layer takes `(batch, channels, height, width)`, with the number of channels it was made for, and pictures that are large enough for its kernel. Its settings must fit too: kernel size, stride and dilation are positive, and the padding of a pooling layer is at most half its kernel.",
    place: "Print the shape before the layer in the traceback. A colour picture has three channels, a grey one has one; pictures from PIL, OpenCV and matplotlib have their channels last.",
    fix: &["Bring channels to the front: `x.permute(0, 3, 1, 2)`.", "Add a missing batch or channel: `x.unsqueeze(0)`.", "Make the layer for the channels that you have, or convert the pictures.", "If the message names a setting, such as `stride` or `padding`, correct it where the layer is made.", "If a picture has become too small, use fewer pooling layers or larger pictures."],
    chapters: &[],
    run: Some(Run::Here),
    read: Some(channels),
    ..Kind::NEW
};

fn channels(pasted: &Pasted) -> Vec<String> {
    match (pasted.number("] to have "), pasted.number(" channels, but got ")) {
        (Some(wanted), Some(got)) => vec![format!("The layer was made for {wanted} channels, and the input has {got} in dimension 1.")],
        _ => Vec::new(),
    }
}
