use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "device-assert",
    message: "CUDA error: device-side assert triggered",
    known_by: &["device-side assert triggered", "cudaErrorAssert", "Assertion `srcIndex < srcSelectDimSize` failed", "Assertion `t >= 0 && t < n_classes` failed", "Assertion `index >= -sizes[i] && index < sizes[i]", "Assertion `-sizes[i] <= index && index < sizes[i]", "Assertion `input_val >= zero && input_val <= one` failed", "Assertion `idx_dim >= 0 && idx_dim < index_size"],
    meaning: "A kernel checked its data and found something impossible, most often a label that is not below the number of classes, or an index that is out of range. After that the GPU does nothing more for this process.",
    place: "The line in the traceback is where the host noticed, often much later. Run it on the CPU, where the right line fails and says which index it was, or with `CUDA_LAUNCH_BLOCKING=1`.",
    fix: &["Check the labels before the loss: `assert 0 <= y.min() and y.max() < num_classes`. Labels that begin with 1, and 255 for `ignore`, are the usual culprits.", "Check token numbers against the size of the embedding.", "For `BCELoss`, put the predictions through a sigmoid, or use `BCEWithLogitsLoss`.", "Restart the program or the notebook's kernel: this process cannot use the GPU again."],
    chapters: &["08-asynchronous-execution.md"],
    run: Some(Run::Lab { number: "08", section: "7", run: "t4", flags: "--gpu sim:t4" }),
    read: Some(assertion),
    ..Kind::NEW
};

fn assertion(pasted: &Pasted) -> Vec<String> {
    let says = |words: &str| pasted.says(words);
    let what = if says("t >= 0 && t < n_classes") {
        "The assertion is that of a loss: a label is negative, or not below the number of classes."
    } else if says("srcIndex < srcSelectDimSize") {
        "The assertion is that of an embedding or of `index_select`: an index is not below the number of rows."
    } else if says("index >= -sizes[i]") || says("-sizes[i] <= index") {
        "The assertion is that of `x[index]`: an index is out of range."
    } else if says("idx_dim >= 0 && idx_dim < index_size") {
        "The assertion is that of `gather` or `scatter`: an index is out of range."
    } else if says("input_val >= zero && input_val <= one") {
        "The assertion is that of `BCELoss`: a prediction is not between 0 and 1, or is not a number."
    } else if says("index out of range in self") {
        "The kernel found an index that is not below the number of rows."
    } else {
        return Vec::new();
    };
    vec![what.to_owned()]
}
