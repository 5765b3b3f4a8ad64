//! The search that never ends.

use todevice::backends::cudnn;
use todevice::cuda;
use todevice::prelude::*;
use todevice::time::Instant;

use crate::{Call, CallKind, Case, Diagnosis, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::backends::cudnn::{self, Flags};
    use todevice::prelude::*;

    /// Scores of batches of images. All thumbnails have one size, and there are
    /// thousands; nearly every photo has a size of its own.
    pub fn scores(
        conv: &nn::Conv2d,
        thumbnails: &[Tensor],
        photos: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let search = Flags { benchmark: true, ..cudnn::current() };
        let by_rule = Flags { benchmark: false, ..cudnn::current() };
        let mut scores = Vec::new();
        cudnn::flags(search, || add_scores(conv, thumbnails, &mut scores))?;
        cudnn::flags(by_rule, || add_scores(conv, photos, &mut scores))?;
        Ok(scores)
    }

    fn add_scores(
        conv: &nn::Conv2d,
        batches: &[Tensor],
        scores: &mut Vec<Tensor>,
    ) -> Result<()> {
        for x in batches {
            scores.push(no_grad(|| conv.forward(x)?.relu()?.mean())?);
        }
        Ok(())
    }
    // END
}

type Scores = fn(&nn::Conv2d, &[Tensor], &[Tensor]) -> Result<Vec<Tensor>>;

pub static EXERCISE: Exercise = Exercise {
    id: "07-shapes",
    title: "The search that never ends",
    kind: Kind::Fix,
    task: "Benchmark mode has made `scores` faster on the thumbnails, of which there are thousands (the check uses only a \
           few). It has made `scores` slower on the photos, because nearly every photo starts a search. Keep the gain and get \
           rid of the loss: search once for the thumbnails, and hardly ever for the photos. Each score must be that of the \
           whole image and nothing else. Afterwards all flags must be as the caller had set them.",
    hints: [
        "What does the result of a search depend on? For which of the two lists is that the same in each call?",
        "Either leave benchmark mode off for the photos, or bring them to a few sizes before the convolution. The \
         first takes two lines. Set the flag for each list, since you do not know what the caller had set.",
        "`cudnn::flags(flags, || …)` runs a part of the program with other flags, and then puts the old ones back. You need it twice: \
         with `Flags { benchmark: true, ..cudnn::current() }` for the thumbnails, and with `false` for the photos.",
    ],
    afterwards: "A training run searches three times for each size: once forward, and once for each of two gradients.",
    source: include_str!("07-shapes.rs"),
    functions: &[(
        "scores",
        "pub fn scores(conv: &nn::Conv2d, thumbnails: &[Tensor], photos: &[Tensor]) -> Result<Vec<Tensor>>",
    )],
    skeleton: &[
        USE,
        (SEARCH, ""),
        (BY_RULE, "    cudnn::set_benchmark(true);\n"),
        (THUMBNAILS, "    add_scores(conv, thumbnails, &mut scores)?;\n"),
        (PHOTOS, "    add_scores(conv, photos, &mut scores)?;\n"),
    ],
    styles: &[
        Style {
            name: "set_and_put_back",
            edits: &[
                USE,
                (SEARCH, "    let before = cudnn::benchmark();\n"),
                (BY_RULE, ""),
                (THUMBNAILS, "    cudnn::set_benchmark(true);\n    add_scores(conv, thumbnails, &mut scores)?;\n"),
                (
                    PHOTOS,
                    "    cudnn::set_benchmark(false);\n    add_scores(conv, photos, &mut scores)?;\n    \
                     cudnn::set_benchmark(before);\n",
                ),
            ],
        },
        Style {
            name: "few_sizes",
            edits: &[
                (BY_RULE, ""),
                (
                    PHOTOS,
                    "    cudnn::flags(search, || -> Result<()> {\n        for x in photos {\n            \
                     let (h, w) = (x.size(2)?, x.size(3)?);\n            \
                     let y = no_grad(|| conv.forward(&padded(x, 16)?)?.narrow(2, 0, h)?.narrow(3, 0, w))?;\n            \
                     scores.push(no_grad(|| y.relu()?.mean())?);\n        }\n        Ok(())\n    })?;\n",
                ),
                PADDED,
            ],
        },
        Style {
            name: "photos_first",
            edits: &[
                (THUMBNAILS, "    let mut last = Vec::new();\n    cudnn::flags(by_rule, || add_scores(conv, photos, &mut last))?;\n"),
                (PHOTOS, "    cudnn::flags(search, || add_scores(conv, thumbnails, &mut scores))?;\n    scores.extend(last);\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "searches_each",
            what: "Benchmark mode is on for all images.",
            edits: &[
                USE,
                (SEARCH, ""),
                (BY_RULE, "    cudnn::set_benchmark(true);\n"),
                (THUMBNAILS, "    add_scores(conv, thumbnails, &mut scores)?;\n"),
                (PHOTOS, "    add_scores(conv, photos, &mut scores)?;\n"),
            ],
            diagnosis: "searches-each",
        },
        Wrong {
            name: "never_searches",
            what: "Benchmark mode is off for all images.",
            edits: &[(SEARCH, ""), ("cudnn::flags(search,", "cudnn::flags(by_rule,")],
            diagnosis: "never-searches",
        },
        Wrong {
            name: "first_only",
            what: "Benchmark mode is on for the first thumbnails only.",
            edits: &[(
                THUMBNAILS,
                "    let (first, others) = thumbnails.split_at(1);\n    \
                 cudnn::flags(search, || add_scores(conv, first, &mut scores))?;\n    \
                 cudnn::flags(by_rule, || add_scores(conv, others, &mut scores))?;\n",
            )],
            diagnosis: "search-forgotten",
        },
        Wrong {
            name: "joined",
            what: "All thumbnails are joined into one batch.",
            edits: &[(
                THUMBNAILS,
                "    let all = cudnn::flags(search, || {\n        \
                 no_grad(|| conv.forward(&Tensor::cat(thumbnails, 0)?)?.relu())\n    })?;\n    \
                 for y in all.split(thumbnails[0].size(0)?, 0)? {\n        scores.push(y.mean()?);\n    }\n",
            )],
            diagnosis: "joined",
        },
        Wrong {
            name: "wrong_way_round",
            what: "Benchmark mode is on for the photos, and off for the thumbnails.",
            edits: &[
                ("let search = Flags { benchmark: true", "let search = Flags { benchmark: false"),
                ("let by_rule = Flags { benchmark: false", "let by_rule = Flags { benchmark: true"),
            ],
            diagnosis: "wrong-way-round",
        },
        Wrong {
            name: "limit_of_one",
            what: "The searches are made cheap: each tries only one algorithm.",
            edits: &[
                (SEARCH, "    let search = Flags { benchmark: true, benchmark_limit: 1, ..cudnn::current() };\n"),
                (BY_RULE, "    let by_rule = search;\n"),
            ],
            diagnosis: "limit-of-one",
        },
        Wrong {
            name: "left_off",
            what: "Benchmark mode is off afterwards, whatever it was before.",
            edits: &[
                USE,
                (SEARCH, ""),
                (BY_RULE, ""),
                (THUMBNAILS, "    cudnn::set_benchmark(true);\n    add_scores(conv, thumbnails, &mut scores)?;\n"),
                (PHOTOS, "    cudnn::set_benchmark(false);\n    add_scores(conv, photos, &mut scores)?;\n"),
            ],
            diagnosis: "flags-left",
        },
        Wrong {
            name: "default_trusted",
            what: "The photos are left to whatever the caller had set.",
            edits: &[(BY_RULE, ""), (PHOTOS, "    add_scores(conv, photos, &mut scores)?;\n")],
            diagnosis: "caller-trusted",
        },
        Wrong {
            name: "without_cudnn",
            what: "cuDNN is switched off for the photos.",
            edits: &[("Flags { benchmark: false,", "Flags { enabled: false,")],
            diagnosis: "without-cudnn",
        },
        Wrong {
            name: "padded",
            what: "The photos are made larger, and the score is that of the larger image.",
            edits: &[
                (BY_RULE, ""),
                (
                    PHOTOS,
                    "    let mut larger = Vec::new();\n    for x in photos {\n        larger.push(padded(x, 16)?);\n    }\n    \
                     cudnn::flags(search, || add_scores(conv, &larger, &mut scores))?;\n",
                ),
                PADDED,
            ],
            diagnosis: "scores",
        },
        Wrong {
            name: "padded_a_little",
            what: "The photos are made larger, to a multiple of four, but there are still many sizes.",
            edits: &[
                (BY_RULE, ""),
                (
                    PHOTOS,
                    "    cudnn::flags(search, || -> Result<()> {\n        for x in photos {\n            \
                     let (h, w) = (x.size(2)?, x.size(3)?);\n            \
                     let y = no_grad(|| conv.forward(&padded(x, 4)?)?.narrow(2, 0, h)?.narrow(3, 0, w))?;\n            \
                     scores.push(no_grad(|| y.relu()?.mean())?);\n        }\n        Ok(())\n    })?;\n",
                ),
                PADDED,
            ],
            diagnosis: "many-sizes",
        },
        Wrong {
            name: "no_photos",
            what: "The photos are left out.",
            edits: &[(BY_RULE, ""), (PHOTOS, "    let _ = photos;\n")],
            diagnosis: "other-count",
        },
        Wrong {
            name: "photos_on_the_cpu",
            what: "The photos are scored on the CPU.",
            edits: &[(
                PHOTOS,
                "    let _ = by_rule;\n    conv.to(Device::Cpu)?;\n    for x in photos {\n        \
                 scores.push(no_grad(|| conv.forward(&x.cpu()?)?.relu()?.mean()?.to(x.device()))?);\n    }\n    \
                 conv.to(thumbnails[0].device())?;\n",
            )],
            diagnosis: "photos-on-the-cpu",
        },
    ],
    places: &[
        (
            "The thumbnails",
            &[
                &[],
                &[
                    USE,
                    (SEARCH, ""),
                    (BY_RULE, "    cudnn::set_benchmark(true);\n"),
                    (THUMBNAILS, "    add_scores(conv, thumbnails, &mut scores)?;\n"),
                ],
                &[(THUMBNAILS, "    cudnn::flags(by_rule, || add_scores(conv, thumbnails, &mut scores))?;\n")],
                &[(
                    THUMBNAILS,
                    "    let (first, others) = thumbnails.split_at(1);\n    \
                     cudnn::flags(search, || add_scores(conv, first, &mut scores))?;\n    \
                     cudnn::flags(by_rule, || add_scores(conv, others, &mut scores))?;\n",
                )],
            ],
        ),
        (
            "The photos",
            &[
                &[],
                &[
                    USE,
                    (SEARCH, ""),
                    (BY_RULE, "    cudnn::set_benchmark(true);\n"),
                    (PHOTOS, "    add_scores(conv, photos, &mut scores)?;\n"),
                ],
                &[
                    USE,
                    (SEARCH, ""),
                    (BY_RULE, "    cudnn::set_benchmark(true);\n"),
                    (PHOTOS, "    cudnn::set_benchmark(false);\n    add_scores(conv, photos, &mut scores)?;\n"),
                ],
                &[(PHOTOS, "    cudnn::flags(search, || add_scores(conv, photos, &mut scores))?;\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:rtx4090", "sim:h200"],
    sizes: &[16, 12],
    observe: |case| observe(case, solution::scores),
    judge,
};

const USE: (&str, &str) = ("use todevice::backends::cudnn::{self, Flags};\n", "use todevice::backends::cudnn;\n");
const SEARCH: &str = "    let search = Flags { benchmark: true, ..cudnn::current() };\n";
const BY_RULE: &str = "    let by_rule = Flags { benchmark: false, ..cudnn::current() };\n";
const THUMBNAILS: &str = "    cudnn::flags(search, || add_scores(conv, thumbnails, &mut scores))?;\n";
const PHOTOS: &str = "    cudnn::flags(by_rule, || add_scores(conv, photos, &mut scores))?;\n";
/// Another function, before the last.
const PADDED: (&str, &str) = (
    "fn add_scores(\n",
    "fn padded(x: &Tensor, step: usize) -> Result<Tensor> {\n    let [n, c, h, w] = x.sizes()[..] else { return Ok(x.clone()) };\n    \
     let (tall, wide) = (h.next_multiple_of(step), w.next_multiple_of(step));\n    \
     let y = Tensor::zeros((&[n, c, tall, wide], x.device()))?;\n    \
     y.narrow(2, 0, h)?.narrow(3, 0, w)?.copy_(x)?;\n    Ok(y)\n}\n\nfn add_scores(\n",
);

/// The size of a case is that of a thumbnail, in pixels. How many images there are depends on the seed, and so does what the
/// caller had set.
pub fn observe(case: &Case, scores: Scores) -> Seen {
    case.machine().enter(|| {
        let (conv, thumbnails, photos) = given(case, case.device()).expect("the machine is new");
        cudnn::set_benchmark(was_on(case));
        crate::observe(
            case,
            || scores(&conv, &thumbnails, &photos),
            |facts| {
                let flags = cudnn::Flags { benchmark: was_on(case), ..Default::default() };
                facts.insert("benchmark".to_owned(), cudnn::benchmark().into_value()?);
                facts.insert("restored".to_owned(), (cudnn::current() == flags).into_value()?);
                for (name, benchmark) in [("by the rule", false), ("after a search", true)] {
                    let time = cudnn::flags(cudnn::Flags { benchmark, ..Default::default() }, || time_of(&conv, &thumbnails[0]));
                    facts.insert(name.to_owned(), time?.into_value()?);
                }
                Ok(())
            },
        )
    })
}

/// The time of a convolution, in microseconds, other than the first.
fn time_of(conv: &nn::Conv2d, x: &Tensor) -> Result<f64> {
    no_grad(|| conv.forward(x))?;
    cuda::synchronize()?;
    let start = Instant::now();
    no_grad(|| conv.forward(x))?;
    cuda::synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

const CHANNELS: usize = 32;

fn was_on(case: &Case) -> bool {
    case.seed.is_multiple_of(2)
}

fn photos(case: &Case) -> usize {
    6 + case.seed as usize % 3
}

fn thumbnails(case: &Case) -> usize {
    4 + case.seed as usize % 3
}

fn given(case: &Case, device: Device) -> Result<(nn::Conv2d, Vec<Tensor>, Vec<Tensor>)> {
    manual_seed(case.seed);
    let options = nn::Conv2dOptions { padding: 1.into(), bias: false, ..Default::default() };
    let conv = nn::Conv2d::new(CHANNELS, CHANNELS, (3, options))?;
    conv.to(device)?;
    let images = |count: usize, size: usize| Tensor::randn((&[count, CHANNELS, size, size], device));
    let thumbnails = (0..thumbnails(case)).map(|_| images(8, case.size)).collect::<Result<_>>()?;
    // 7, 9, 11 … pixels: two sizes if they are rounded up to 16, more than half as many as photos if rounded up to 4.
    let photos = (0..photos(case)).map(|k| images(1, 7 + 2 * k)).collect::<Result<_>>()?;
    Ok((conv, thumbnails, photos))
}

/// A call of cuDNN.
struct Convolution<'a> {
    /// More than one if it was a search.
    kernels: usize,
    /// With this algorithm the result was computed.
    last: &'a str,
}

/// Which calls of cuDNN were there?
fn calls(seen: &Seen) -> Vec<Convolution<'_>> {
    let mut calls: Vec<Convolution<'_>> = Vec::new();
    let mut before = false;
    for launch in seen.of(CallKind::Launch) {
        let is_convolution = launch.name.starts_with("conv_forward");
        match calls.last_mut() {
            Some(call) if is_convolution && before => {
                *call = Convolution { kernels: call.kernels + 1, last: &launch.name };
            }
            _ if is_convolution => calls.push(Convolution { kernels: 1, last: &launch.name }),
            _ => {}
        }
        before = is_convolution;
    }
    calls
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let scores = seen.returned()?;
    let (count, expected) = (scores.list().len(), right.value().list().len());
    if count != expected {
        return Err(Diagnosis::new("other-count", "There is not one score for each batch.")
            .seen(format!("{count} scores"))
            .expected(format!("{expected}: the thumbnails', then the photos'"))
            .idea("Each batch has a score of its own, the photos too. Leave none out, and do not join any."));
    }
    // TF32 rounds to 11 bits where an algorithm may use it, and each algorithm adds in its own order: a mean of thousands of
    // numbers is off by less than the two thousandths of one of them.
    if !scores.is_near(right.value(), 2e-3) {
        let off = scores.list().iter().zip(right.value().list()).position(|(a, b)| !a.is_near(b, 2e-3));
        let number = |value: &Value| match off.and_then(|k| value.list().get(k)) {
            Some(Value::Tensor { values, .. }) => format!("{:.4}", values.first().unwrap_or(&f64::NAN)),
            _ => "none".to_owned(),
        };
        return Err(Diagnosis::new("scores", "The scores are not those of the images.")
            .seen(match off {
                Some(k) => format!("score {} of {} is {}", k + 1, scores.list().len(), number(scores)),
                None => format!("{} scores", scores.list().len()),
            })
            .expected(match off {
                Some(_) => number(right.value()),
                None => format!("{}: the thumbnails', then the photos'", right.value().list().len()),
            })
            .idea(
                "An image that is made larger has more pixels, and the mean is that of all of them. Cut the result of the \
                 convolution back to the size of the image before you go on.",
            ));
    }
    let (images, photos) = (thumbnails(case) + photos(case), photos(case));
    let (calls, expected) = (calls(seen), self::calls(right));
    let took = |seen: &Seen| format!("{} µs (modelled)", seen.time / 1000);
    if calls.len() < images {
        let without_cudnn = Diagnosis::new("without-cudnn", "Some of the convolutions are computed without cuDNN.").idea(
            "`enabled: false` takes away the library, not only the search. With `benchmark: false` cuDNN goes by a rule of \
             thumb, which takes no time and is mostly right.",
        );
        let is_other = |call: &Call| call.name.starts_with("im2col");
        let diagnosis = match seen.count(CallKind::ToHost) > 0 {
            _ if seen.of(CallKind::Launch).any(is_other) => without_cudnn,
            true => Diagnosis::new("photos-on-the-cpu", "Not all images are scored on the GPU.").idea(
                "The CPU searches nothing, but it computes slowly, and copies come on top. Without benchmark mode the GPU does \
                 not search either.",
            ),
            false => Diagnosis::new("joined", "There are fewer convolutions than batches.").idea(
                "If you join batches of one size, they become one convolution. But joining copies them all, and thousands of \
                 them would have to be in memory at the same time. Take one batch after the other.",
            ),
        };
        return Err(diagnosis
            .seen(format!("{} convolutions by cuDNN, {}", calls.len(), took(seen)))
            .expected(format!("{images}, and {}", took(right))));
    }

    let searches = calls.iter().filter(|call| call.kernels > 1).count();
    let counted = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("searches: {searches}, for {images} batches, {photos} of them photos; {}", took(seen)))
            .expected(format!("1, for the thumbnails; {}", took(right)))
    };
    // A search tries several algorithms, and then computes the result.
    let tried = |calls: &[Convolution<'_>]| calls.iter().map(|call| call.kernels - 1).max().unwrap_or(0);
    if searches > 0 && tried(&calls) < tried(&expected) {
        return Err(Diagnosis::new("limit-of-one", "The searches try too little to find anything.")
            .seen(format!("trial runs in a search: {}", tried(&calls)))
            .expected(format!("{}", tried(&expected)))
            .idea("With `benchmark_limit: 1` only the choice of the rule of thumb is tried, so each search ends with it. Have fewer searches, not worse ones."));
    }
    // The thumbnails come first.
    if calls.iter().take(thumbnails(case)).all(|call| call.kernels == 1) && searches == photos {
        return Err(counted(Diagnosis::new("wrong-way-round", "The photos are searched, and the thumbnails are not."))
            .idea("A search pays where its result is used again and again. Which of the two lists has many images of the same size?"));
    }
    if searches > photos && was_on(case) {
        return Err(counted(Diagnosis::new("caller-trusted", "If the caller has benchmark mode on, each photo is searched."))
            .idea("A flag that you do not set is as the caller left it. If the photos need benchmark mode off, say so."));
    }
    if searches > photos {
        return Err(counted(Diagnosis::new("searches-each", "Each photo is searched."))
            .idea("What a search finds is kept for images of that size, and of no other. If a size comes only once, its search is wasted."));
    }
    // Whoever rounds up to a multiple of 16 has two sizes of photos.
    if searches > 1 + photos / 2 {
        return Err(counted(Diagnosis::new("many-sizes", "There are still too many sizes of photos."))
            .idea("Bringing images to a few sizes helps if there are far fewer sizes than images. Round more coarsely, or leave benchmark mode off for them."));
    }
    // On a card where the rule is right a search is for nothing. On the T4 it is wrong.
    let time = |name: &str| right.fact(name).number().unwrap_or(0.0);
    let (by_rule, found) = (time("by the rule"), time("after a search"));
    if searches == 0 && by_rule > 1.05 * found {
        return Err(Diagnosis::new("never-searches", "The thumbnails are no longer searched.")
            .seen(format!("no search: a batch of thumbnails takes {by_rule:.0} µs (modelled)"))
            .expected(format!("one search, and {found:.0} µs a batch ever after"))
            .idea("For the thumbnails the rule of thumb is wrong on this card. There are many of them, and one search is enough for all. It is the photos that should not be searched."));
    }
    // Thumbnails and photos may come in any order, so it is counted how often the algorithm is used that the solution's search
    // finds.
    let used = |calls: &[Convolution<'_>], name: &str| calls.iter().filter(|call| call.last == name).count();
    let best = expected.iter().find(|call| call.kernels > 1).map_or("", |call| call.last);
    if by_rule > 1.05 * found && used(&calls, best) < thumbnails(case) {
        return Err(Diagnosis::new("search-forgotten", "There is a search, but not all thumbnails use what it has found.")
            .seen(format!("convolutions with the algorithm that was found: {}", used(&calls, best)))
            .expected(format!("{}: all batches of thumbnails", thumbnails(case)))
            .idea("What a search has found is used as long as benchmark mode is on. Without it, cuDNN goes by its rule of thumb again, for the same sizes too. Leave it on for all thumbnails."));
    }
    if seen.fact("restored") != &Value::Flag(true) {
        let named = |on: bool| if on { "on" } else { "off" };
        return Err(Diagnosis::new("flags-left", "Afterwards the flags are not as the caller had set them.")
            .seen(format!(
                "benchmark mode is {} afterwards",
                named(seen.fact("benchmark") == &Value::Flag(true))
            ))
            .expected(format!("{}, as before, and all other flags as before", named(was_on(case))))
            .idea("The flags belong to the whole program. Keep what was there and put it back, or let `cudnn::flags` do that: it does so even after an error."));
    }
    Ok(())
}
