//! The order of images in memory: row-major, or channels last.

use drawing::memory_formats;
use todevice::MemoryFormat;
use todevice::prelude::*;

use crate::{Cell, Lab, Table, exact, row};

pub(super) fn channels_last(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.section(8, "Channels last");
    // ANCHOR: formats
    // 2 images of 3 channels, with 4 rows of 5 pixels.
    let images = Tensor::ones((&[2, 3, 4, 5], device))?;
    let last = images.to(MemoryFormat::ChannelsLast)?;
    let doubled = (&last * 2.0)?;

    let conv = nn::Conv2d::new(3, 8, 3)?;
    conv.to(device)?;
    conv.to(MemoryFormat::ChannelsLast)?; // reorders its weight
    let result = conv.forward(&last)?;
    // ANCHOR_END: formats
    lab.table(
        Table::new(["tensor", "sizes", "strides"])
            .row(layout("images", &images))
            .row(layout("last", &last))
            .row(layout("doubled", &doubled))
            .row(layout("result", &result)),
    );
    let image = Tensor::zeros(&[1, 2, 2, 3])?;
    let last = image.to(MemoryFormat::ChannelsLast)?;
    let caption = format!(
        "An image of two channels, a and b, with two rows of three pixels, and its numbers in memory. The numbers of the \
         first pixel have a thick border. In a row-major tensor all of channel a comes before channel b, so the two lie {} \
         numbers apart. With channels last they lie side by side, and so do those of every other pixel.",
        image.strides()[1],
    );
    let picture =
        memory_formats::picture(&[("row-major", &image), ("channels last", &last)]);
    lab.picture(picture, &caption);
    lab.prose(
        "A memory format changes the strides of a tensor, and leaves its sizes alone. Elementwise operations keep the \
         format; the result of a convolution is row-major in this crate, and keeps channels last in PyTorch.",
    );
    Ok(())
}

fn layout(name: &'static str, tensor: &Tensor) -> Vec<Cell> {
    let listed = |figure, numbers: &[usize]| {
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        exact(figure, format!("({})", numbers.join(", ")))
    };
    row![name, listed("sizes", tensor.sizes()), listed("strides", tensor.strides())]
}
