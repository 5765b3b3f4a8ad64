//! Names as in Python: paths with dots, called modules, keyword arguments, and attributes.

use std::ops::Range;

use super::arguments::python_value;
use super::owners::is_owned;
use super::results::between;
use super::tensors::device_named;
use super::types::{DEPTH, Type, is_whole, type_of};
use super::{Mistake, Source};
use crate::compile_error::{CompileError, Edit};

/// The constructor of each type, and whether it can fail.
const CONSTRUCTORS: [(&str, &str, bool); 33] = [
    ("Adam", "new", true),
    ("AdamW", "new", true),
    ("AvgPool2d", "new", false),
    ("Arc", "new", false),
    ("BatchNorm1d", "new", true),
    ("BatchNorm2d", "new", true),
    ("ClipGradNormOptions", "default", false),
    ("Conv2d", "new", true),
    ("CrossEntropyLoss", "default", false),
    ("DataLoader", "new", true),
    ("DataParallel", "new", true),
    ("DistributedDataParallel", "new", true),
    ("DistributedSampler", "new", true),
    ("DistributedSamplerOptions", "default", false),
    ("Dropout", "new", true),
    ("Embedding", "new", true),
    ("Event", "new", false),
    ("EventOptions", "default", false),
    ("Flatten", "default", false),
    ("GradScaler", "new", true),
    ("L1Loss", "default", false),
    ("LayerNorm", "new", true),
    ("HashMap", "new", false),
    ("Linear", "new", true),
    ("MSELoss", "default", false),
    ("MaxPool2d", "new", false),
    ("NLLLoss", "default", false),
    ("SGD", "new", true),
    ("Sequential", "new", false),
    ("StateDict", "default", false),
    ("StepLR", "new", true),
    ("TensorDataset", "new", true),
    ("Vec", "new", false),
];

/// `?` for a call that ends here, unless it already has one or its result is returned.
pub fn then_question_mark(source: &Source, last: usize) -> &'static str {
    let is_returned = source.word(last + 1) == "}";
    let first = source.value_start(last);
    let before = first.checked_sub(1).map_or("", |before| source.word(before));
    // The body of a closure, which returns it.
    let is_body = before == "|" && source.word(last + 1) == ")";
    if source.word(last + 1) == "?" || is_returned || is_body { "" } else { "?" }
}

/// Python's dots, or `torch`, in a path.
pub fn path(error: &CompileError, source: &Source) -> Option<Mistake> {
    let first = source.at(error.place().start);
    let at = source.start(first);
    let name = source.word(first);
    let is_unknown = ["E0423", "E0425", "E0432", "E0433"].contains(&error.code());
    if is_unknown && name == "torch" && source.word(first.wrapping_sub(1)) == "use" {
        let is_all = source.word(first + 1) == ";";
        let line = source.line_range(at);
        return Some(match is_all {
            true => Mistake::at(at).replace(line, "use todevice::prelude::*;"),
            false => Mistake::at(at).replace(error.place(), "todevice"),
        });
    }
    if is_unknown && ["torch", "np", "numpy"].contains(&name) {
        return Some(torch(source, first).unwrap_or(Mistake::at(at)));
    }
    let is_path = ["module", "struct", "enum", "type alias", "trait"];
    if error.code().is_empty() {
        return dotted(source, at);
    }
    let mut dot = source.before(error.place().end)? + 1;
    let is_it = error.code() == "E0423" && source.word(dot) == ".";
    let of_what = between(&error.message, "expected value, found ", " `")?;
    (is_it && is_path.contains(&of_what)).then(|| {
        let mut mistake = Mistake::at(at);
        // `nn.Linear.new`: everything before the last name is a path.
        while source.word(dot) == "." {
            let name = source.word(dot + 1);
            mistake = mistake.replace(source.start(dot)..source.end(dot), "::");
            let is_type = name.starts_with(char::is_uppercase) || ["utils", "lr_scheduler"].contains(&name);
            if source.word(dot + 2) == "(" {
                return mistake.all(constructed(source, dot + 1));
            }
            if !is_type {
                break;
            }
            dot += 2;
        }
        mistake
    })
}

/// Modules that can begin a path.
const MODULES: [&str; 16] = [
    "todevice",
    "std",
    "nn",
    "optim",
    "cuda",
    "amp",
    "cudnn",
    "backends",
    "dist",
    "distributed",
    "serialize",
    "data",
    "utils",
    "prelude",
    "time",
    "sync",
];

/// Dots in a line with a syntax error: in `use nn.Linear;`, or in a type.
fn dotted(source: &Source, byte: usize) -> Option<Mistake> {
    let line = source.line_range(byte);
    let tokens = source.at(line.start)..source.at(line.end);
    let is_use = source.word(tokens.start) == "use";
    let is_dot = |dot: &usize| {
        let before = source.word(dot.saturating_sub(1));
        let is_segment = MODULES.contains(&before) || before.starts_with(char::is_uppercase);
        let is_next = source.is_name(dot + 1) || is_use;
        source.word(*dot) == "."
            && is_next
            && (is_use || is_segment && source.binding(before, *dot).is_none())
    };
    let dots: Vec<usize> = tokens.filter(is_dot).collect();
    let at = source.start(*dots.first()?);
    let edits = dots.into_iter().map(|dot| (source.start(dot)..source.end(dot), "::".to_owned()));
    Some(Mistake::at(at).all(edits.collect()))
}

/// Replaces Python's call of a type by a call of its constructor.
pub fn constructed(source: &Source, of_type: usize) -> Vec<(Range<usize>, String)> {
    let Some((_, constructor, fails)) = CONSTRUCTORS.iter().find(|(name, ..)| *name == source.word(of_type))
    else {
        return Vec::new();
    };
    let end = source.end(of_type);
    let close = source.close(of_type + 1);
    let mut edits = vec![(end..end, format!("::{constructor}"))];
    let question_mark = then_question_mark(source, close);
    if *fails && !question_mark.is_empty() {
        edits.push((source.end(close)..source.end(close), question_mark.to_owned()));
    }
    edits
}

/// dtypes, which PyTorch has in `torch`.
const TYPES: [(&str, &str); 10] = [
    ("float32", "DType::F32"),
    ("float", "DType::F32"),
    ("float16", "DType::F16"),
    ("half", "DType::F16"),
    ("bfloat16", "DType::BF16"),
    ("float64", "DType::F64"),
    ("double", "DType::F64"),
    ("int64", "DType::I64"),
    ("long", "DType::I64"),
    ("bool", "DType::Bool"),
];

/// `torch` functions that create tensors, with the number of their arguments here; 0 means that they take only sizes.
const MAKERS: [(&str, usize); 10] = [
    ("randn", 0),
    ("rand", 0),
    ("zeros", 0),
    ("ones", 0),
    ("tensor", 1),
    ("stack", 2),
    ("cat", 2),
    ("eye", 1),
    ("full", 2),
    ("arange", 3),
];

/// Sizes as a borrowed list: `(3, 4)`, `((3, 4))` and `([3, 4])` become `(&[3, 4])`.
fn listed(source: &Source, open: usize) -> Option<Vec<Edit>> {
    let close = source.close(open);
    let arguments = source.arguments(open);
    let only = (arguments.len() == 1).then(|| arguments[0].clone());
    let (first, last) = (open + 1, close.checked_sub(1)?);
    let insert = |byte: usize, text: &str| (byte..byte, text.to_owned());
    let replace = |token: usize, text: &str| (source.start(token)..source.end(token), text.to_owned());
    match source.word(first) {
        "&" => return Some(Vec::new()),
        "[" if only.is_some() => return Some(vec![insert(source.start(first), "&")]),
        "(" if only.is_some() && source.close(first) == last => {
            return Some(vec![replace(first, "&["), replace(last, "]")]);
        }
        _ => {}
    }
    // A single name may be a list.
    let is_size = |size: &Range<usize>| {
        let is_named = (size.clone()).any(|token| source.word(token) == "=");
        let is_sure = only.is_none()
            || is_whole(source.tokens(size.clone()))
            || type_of(source, size.clone(), DEPTH) == Some(Type::Integer);
        !is_named && is_sure
    };
    let is_sizes = !arguments.is_empty() && arguments.iter().all(is_size);
    is_sizes.then(|| vec![insert(source.start(first), "&["), insert(source.end(last), "]")])
}

fn torch(source: &Source, first: usize) -> Option<Mistake> {
    let at = source.start(first);
    let step = |token: usize| match source.word(token) {
        "." => Some(token + 1),
        ":" if source.word(token + 1) == ":" => Some(token + 2),
        _ => None,
    };
    let next = step(first + 1)?;
    let name = source.word(next);
    let whole = at..source.end(next);
    if let Some((_, of_type)) = TYPES.iter().find(|(known, _)| *known == name) {
        return Some(Mistake::at(at).replace(whole, *of_type));
    }
    let is_call = source.word(next + 1) == "(";
    let question_mark = |last: usize| then_question_mark(source, last);
    if is_call && name == "device" {
        let close = source.close(next + 1);
        let name = source.start(next + 2)..source.start(close);
        return Some(Mistake::at(at).replace(at..source.end(close), device_named(source, name)?));
    }
    if is_call && let Some(arguments) = MAKERS.iter().find(|(known, _)| *known == name).map(|found| found.1) {
        let made = if name == "tensor" { "Tensor::new".to_owned() } else { format!("Tensor::{name}") };
        let close = source.close(next + 1);
        let sizes = if arguments == 0 { Some(listed(source, next + 1)?) } else { None };
        if sizes.is_none() && source.arguments(next + 1).len() != arguments {
            return None;
        }
        let mistake = Mistake::at(at).replace(whole, made).edit(source.end(close), question_mark(close));
        return Some(mistake.all(sizes.unwrap_or_default()));
    }
    if is_call && ["no_grad", "manual_seed", "inference_mode"].contains(&name) {
        return Some(Mistake::at(at).replace(at..source.start(next), ""));
    }
    // `torch.relu(x)` is a method here.
    let last = step(next + 1);
    if is_call && source.arguments(next + 1).len() == 1 {
        let close = source.close(next + 1);
        let argument = source.slice(source.start(next + 2)..source.start(close));
        let text = format!("{argument}.{name}(){}", question_mark(close));
        return Some(Mistake::at(at).replace(at..source.end(close), text));
    }
    // A module of the crate, and one of its functions or types.
    let last = last?;
    let is_module = ["cuda", "nn", "optim", "amp", "distributed", "backends"].contains(&name);
    let mut path = format!("{name}::{}", source.word(last));
    if !["nn", "optim"].contains(&name) {
        path = format!("todevice::{path}");
    }
    let mistake = Mistake::at(at).replace(at..source.end(last), path);
    is_module.then(|| {
        mistake.all(if source.word(last + 1) == "(" { constructed(source, last) } else { Vec::new() })
    })
}

/// A module or a type that is called like a function.
pub fn called(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let last = source.before(place.end)?;
    match error.code() {
        "E0618" => {
            let of_type = between(&error.message, "found `", "`")?.trim_start_matches('&');
            let is_module =
                of_type.starts_with(char::is_uppercase) && !["Tensor", "String"].contains(&of_type);
            (is_module && !of_type.starts_with("Vec<")).then(|| forward(source, last))
        }
        "E0599" if error.label() == "field, not a method" => Some(forward(source, last)),
        "E0423"
            if error.message.starts_with("expected function") || error.message.contains("tuple struct") =>
        {
            let open = source.next(source.at(place.start), &["("])?;
            let of_type = open.checked_sub(1)?;
            let edits = constructed(source, of_type);
            let keyword = source.word(open + 2) == "=";
            (!edits.is_empty() && !keyword).then(|| Mistake::at(place.start).all(edits))
        }
        _ => None,
    }
}

/// `model(x)` becomes `model.forward(&x)?`.
fn forward(source: &Source, called: usize) -> Mistake {
    let (open, end) = (called + 1, source.end(called));
    let mut mistake = Mistake::at(source.start(source.value_start(called))).edit(end, ".forward");
    for argument in source.arguments(open) {
        let last = argument.end - 1;
        let start = source.start(argument.start);
        let is_made = [")", "?"].contains(&source.word(last));
        let is_lent = source.word(argument.start) == "&";
        if !is_lent && (is_made || (argument.len() == 1 && is_owned(source, argument.start))) {
            mistake = mistake.edit(start, "&");
        }
    }
    let close = source.close(open);
    mistake.edit(source.end(close), then_question_mark(source, close))
}

/// Tensor methods that cannot fail.
const CERTAIN: [&str; 16] = [
    "shape",
    "sizes",
    "device",
    "dtype",
    "numel",
    "ndim",
    "is_cuda",
    "detach",
    "grad",
    "requires_grad",
    "clone",
    "strides",
    "is_contiguous",
    "is_pinned",
    "nbytes",
    "element_size",
];

/// A method without parentheses.
pub fn uncalled(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let last = source.before(place.end)?;
    if let Some(edits) = error.suggestion("use parentheses to call this function") {
        let at = edits.first()?.0.start;
        let name = source.before(at)?;
        // The place where the uncalled function was bound to a name.
        let bound = source.binding(source.word(name), name).filter(|_| source.value_start(name) == name);
        let at = bound.map_or(at, |value| source.end(value.end - 1));
        return Some(Mistake::at(at).edit(at, "()"));
    }
    if let Some(edits) = error.suggestion("call it with parentheses") {
        return Some(Mistake::of(edits));
    }
    let start = source.start(last);
    let value = source.start(source.value_start(last));
    match (error.code(), source.word(last)) {
        ("E0609", "T") => Some(
            Mistake::at(start).replace(start..place.end, format!("t(){}", then_question_mark(source, last))),
        ),
        ("E0615", "requires_grad") if source.word(last + 1) == "=" => {
            let end = source.next(last, &[";"])?;
            let new = python_value(source.tokens(last + 2..end));
            let range = start..source.end(end - 1);
            Some(Mistake::at(value).replace(range, format!("requires_grad_({new})?")))
        }
        ("E0061", "size") if source.reads(last + 1, &["(", ")"]) => {
            Some(Mistake::at(start).replace(start..place.end, "sizes"))
        }
        ("E0615", "size") => Some(Mistake::at(start).replace(start..place.end, "sizes()")),
        ("E0615", name) => {
            let of_tensor = error.message.contains("todevice::Tensor`") && !CERTAIN.contains(&name);
            let fails = of_tensor || ["step", "backward", "update"].contains(&name);
            let question_mark = if fails { then_question_mark(source, last) } else { "" };
            Some(Mistake::at(start).edit(place.end, format!("(){question_mark}")))
        }
        _ => None,
    }
}
