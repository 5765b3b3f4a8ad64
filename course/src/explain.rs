//! The story of an error: by its code, or by its words.

use labs::Stop;
use labs::stdio::to_stdout;

use crate::show::text;
use crate::workplace::wrong;

/// The codes, with the page of each, and with words that its message has.
const CODES: [(&str, &str, &[&str]); 3] = [
    (
        "GPU0001",
        include_str!("../../book/chapters/errors/gpu0001.md"),
        &["on the same device", "Input type (torch.FloatTensor) and weight type"],
    ),
    (
        "GPU0002",
        include_str!("../../book/chapters/errors/gpu0002.md"),
        &["out of memory", "CUBLAS_STATUS_ALLOC_FAILED"],
    ),
    ("GPU0003", include_str!("../../book/chapters/errors/gpu0003.md"), &["data race"]),
];

/// Messages without a code: words of each, what is wrong, and where to read on.
const OTHERS: [(&str, &str, &str); 12] = [
    (
        "shapes cannot be multiplied",
        "A layer gets rows of another length than it was made for. Print the sizes of its input: often a batch was not \
         flattened, or a layer before it puts out another number of features.",
        "03",
    ),
    (
        "expected scalar type",
        "Two tensors of one operation have different types. Numbers from files and from NumPy are often float64, a half \
         precision model needs half precision input, and classes are int64.",
        "06",
    ),
    (
        "modified by an inplace operation",
        "The backward pass needs a value as it was, and it has been overwritten since. Use the operation without the underscore \
         at its end, or do it under `no_grad` after `backward()`.",
        "03",
    ),
    (
        "Found no NVIDIA driver",
        "The program asked for a GPU, and there is no driver. Ask `torch.cuda.is_available()` first, and let one variable \
         hold the device.",
        "00, 01",
    ),
    (
        "Torch not compiled with CUDA enabled",
        "This PyTorch was built for the CPU alone. Install the build for CUDA, or say `device = \"cpu\"`.",
        "00",
    ),
    (
        "does not require grad and does not have a grad_fn",
        "`backward()` was called on something that no graph leads to: it was computed under `no_grad`, or detached, or read \
         with `item()` and made a tensor again.",
        "04",
    ),
    (
        "Trying to backward through the graph a second time",
        "The first `backward()` freed the graph. Often a loss, or a state, of an earlier step is part of this one: \
         `detach()` it.",
        "04",
    ),
    (
        "unscale_() has already been called",
        "`scaler.unscale_(optimizer)` comes once between two calls of `scaler.update()`.",
        "06",
    ),
    (
        "No inf checks were recorded",
        "`scaler.step(optimizer)` found no gradient of this optimizer: `scaler.scale(loss).backward()` comes first.",
        "06",
    ),
    (
        "device-side assert triggered",
        "A kernel found bad data, most often an index that is out of range. The line that is named comes later: run it again \
         with CUDA_LAUNCH_BLOCKING=1, or on the CPU.",
        "08",
    ),
    ("cannot pin", "Only memory of the host can be pinned. This tensor is on a GPU already.", "09"),
    (
        "invalid device ordinal",
        "The program names a GPU that this computer does not have, or that CUDA_VISIBLE_DEVICES hides.",
        "01",
    ),
];

/// Tells the story of a code, or of a message that was pasted.
pub fn explain(said: &str) -> Result<(), Stop> {
    let lower = said.to_lowercase();
    let has = |words: &str| lower.contains(&words.to_lowercase());
    if let Some((_, page, _)) =
        CODES.iter().find(|(code, _, words)| has(code) || words.iter().any(|words| has(words)))
    {
        to_stdout(&page_text(page));
        return Ok(());
    }
    match OTHERS.iter().find(|(words, _, _)| has(words)) {
        Some((_, story, chapters)) => {
            to_stdout(&format!("{}\nChapter {chapters} tells more.\n", text(story, "")));
            Ok(())
        }
        None => {
            let codes: Vec<&str> = CODES.iter().map(|(code, _, _)| *code).collect();
            Err(wrong(format!(
                "this message is not known here; known are {} and {} messages of PyTorch, such as `{}`",
                codes.join(", "),
                OTHERS.len(),
                OTHERS[0].0
            )))
        }
    }
}

/// A page of the book as a terminal shows it: without the lines that only its builder reads.
fn page_text(page: &str) -> String {
    let mut told = String::new();
    let mut paragraph = String::new();
    let mut is_code = false;
    let flush = |paragraph: &mut String, told: &mut String| {
        if !paragraph.is_empty() {
            *told += &text(&labs::render_text::without_ticks(&without_links(paragraph)).replace('*', ""), "");
            paragraph.clear();
        }
    };
    for line in page.lines() {
        if line.starts_with("```") {
            flush(&mut paragraph, &mut told);
            is_code = !is_code;
        } else if is_code {
            if line != "#" && !line.starts_with("# ") {
                told += &format!("    {line}\n");
            }
        } else if line.starts_with("{{#") {
            flush(&mut paragraph, &mut told);
        } else if line.is_empty() || line.starts_with("- ") || line.starts_with('#') || is_numbered(line) {
            flush(&mut paragraph, &mut told);
            match line {
                "" if !told.ends_with("\n\n") => told.push('\n'),
                "" => {}
                _ => paragraph = line.trim_start_matches('#').trim_start().to_owned(),
            }
        } else {
            paragraph = format!("{paragraph} {}", line.trim());
        }
    }
    flush(&mut paragraph, &mut told);
    told
}

/// `1. One of several.`
fn is_numbered(line: &str) -> bool {
    line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

/// Links are their words, figures nothing.
fn without_links(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once('[') {
        text += before;
        match after.split_once("](").and_then(|(words, target)| Some((words, target.split_once(')')?.1))) {
            Some((words, after)) => {
                text += words;
                rest = after;
            }
            None => {
                text.push('[');
                rest = after;
            }
        }
    }
    text + rest
}
