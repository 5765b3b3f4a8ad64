//! Same seed, other weights.

use std::cell::RefCell;

use todevice::backends::{are_deterministic_algorithms_enabled, cudnn};
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::backends::cudnn::{self, Flags};
    use todevice::prelude::*;

    /// Trains a new network on images with noise, and returns its weights.
    pub fn train(
        seed: u64,
        x: &Tensor,
        y: &Tensor,
        steps: usize,
    ) -> Result<Vec<Tensor>> {
        let exact =
            Flags { benchmark: false, deterministic: true, ..cudnn::current() };
        cudnn::flags(exact, || trained(seed, x, y, steps))
    }

    fn trained(
        seed: u64,
        x: &Tensor,
        y: &Tensor,
        steps: usize,
    ) -> Result<Vec<Tensor>> {
        manual_seed(seed);
        let net = network(x.device())?;
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        let mut sgd = optim::SGD::new(net.parameters(), options)?;
        let loss_fn = nn::CrossEntropyLoss::default();
        for _ in 0..steps {
            let noise = Tensor::randn((x.sizes(), x.device()))?;
            let loss = loss_fn.forward(&net.forward(&x.add(&noise)?)?, y)?;
            sgd.zero_grad();
            loss.backward()?;
            sgd.step()?;
        }
        Ok(net.parameters().iter().map(|parameter| parameter.tensor().detach()).collect())
    }

    fn network(device: Device) -> Result<nn::Sequential> {
        let net = nn::Sequential::new((
            nn::Conv2d::new(1, 8, 3)?,
            nn::ReLU,
            nn::MaxPool2d::new(2),
            nn::Flatten::default(),
            nn::Linear::new(8 * 7 * 7, 10)?,
        ));
        net.to(device)?;
        Ok(net)
    }
    // END
}

type Train = fn(u64, &Tensor, &Tensor, usize) -> Result<Vec<Tensor>>;

/// The exercise before this one in the chapter.
pub const AFTER: &str = "07-shapes";

pub static EXERCISE: Exercise = Exercise {
    id: "07-same",
    title: "Same seed, other weights",
    kind: Kind::Fix,
    task: "`train` takes a seed. Two training runs with the same seed must end with the same weights, to the last \
           bit, whatever the program did before and whatever flags the caller has set. The weights must not depend on \
           how long anything takes, and a different seed must give different weights. `train` must still use the GPU \
           and cuDNN, and afterwards all flags must be as the caller had set them.",
    hints: [
        "What is drawn at random here? And what can differ even if all that is drawn is the same?",
        "A seed fixes what is drawn after it, including the initial weights. It fixes neither the order of \
         additions nor the algorithm that a search finds: two flags of cuDNN decide those.",
        "`manual_seed(seed);` comes before the network, and all of it runs within `cudnn::flags(…, || …)` with \
         `benchmark: false` and `deterministic: true`.",
    ],
    afterwards: "On a real GPU, the same bits also require the same card, the same versions, and in PyTorch a setting for cuBLAS.",
    source: include_str!("07-same.rs"),
    functions: &[(
        "train",
        "pub fn train(seed: u64, x: &Tensor, y: &Tensor, steps: usize) -> Result<Vec<Tensor>>",
    )],
    skeleton: &[NO_USE, (WRAPPER, ""), (SEED, "")],
    styles: &[
        Style {
            name: "everywhere",
            edits: &[
                ("use todevice::backends::cudnn::{self, Flags};\n", "use todevice::backends::{self, cudnn};\n"),
                (
                    FLAGS,
                    "    let (benchmark, strict) =\n        (cudnn::benchmark(), backends::are_deterministic_algorithms_enabled());\n    \
                     cudnn::set_benchmark(false);\n    backends::use_deterministic_algorithms(true);\n    \
                     let weights = trained(seed, x, y, steps);\n    cudnn::set_benchmark(benchmark);\n    \
                     backends::use_deterministic_algorithms(strict);\n    weights\n",
                ),
            ],
        },
        Style {
            name: "set_and_put_back",
            edits: &[(
                FLAGS,
                "    let before: Flags = cudnn::current();\n    cudnn::set_benchmark(false);\n    cudnn::set_deterministic(true);\n    \
                 let weights = trained(seed, x, y, steps);\n    cudnn::set_benchmark(before.benchmark);\n    \
                 cudnn::set_deterministic(before.deterministic);\n    weights\n",
            )],
        },
        Style {
            name: "seed_first",
            edits: &[
                ("    manual_seed(seed);\n", ""),
                ("    let exact =\n", "    manual_seed(seed);\n    let exact =\n"),
                ("trained(seed, x, y, steps))", "trained(x, y, steps))"),
                ("fn trained(\n    seed: u64,\n", "fn trained(\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "no_seed",
            what: "The seed is not used.",
            edits: &[NO_USE, (WRAPPER, ""), (SEED, "")],
            diagnosis: "no-seed",
        },
        Wrong {
            name: "seed_only",
            what: "The seed is set, and nothing else.",
            edits: &[NO_USE, (FLAGS, "    trained(seed, x, y, steps)\n")],
            diagnosis: "order-of-sums",
        },
        Wrong {
            name: "seed_too_late",
            what: "The seed is set after the network has been made.",
            edits: &[
                ("    manual_seed(seed);\n", ""),
                ("    let options = SGDOptions", "    manual_seed(seed);\n    let options = SGDOptions"),
            ],
            diagnosis: "seed-too-late",
        },
        Wrong {
            name: "seed_in_the_loop",
            what: "The seed is set in every step, so the noise is always the same.",
            edits: &[("        let noise", "        manual_seed(seed);\n        let noise")],
            diagnosis: "other-training",
        },
        Wrong {
            name: "constant_seed",
            what: "A seed is set, but not the one that was asked for.",
            edits: &[("    manual_seed(seed);\n", "    let _ = seed;\n    manual_seed(42);\n")],
            diagnosis: "constant-seed",
        },
        Wrong {
            name: "benchmark_left",
            what: "Benchmark mode stays as the caller had it.",
            edits: &[("benchmark: false, ", "")],
            diagnosis: "benchmark-left",
        },
        Wrong {
            name: "flags_left",
            what: "The flags are set and not put back.",
            edits: &[
                USE,
                (FLAGS, "    cudnn::set_benchmark(false);\n    cudnn::set_deterministic(true);\n    trained(seed, x, y, steps)\n"),
            ],
            diagnosis: "flags-left",
        },
        Wrong {
            name: "defaults_put_back",
            what: "Afterwards the flags have their defaults, not the values that the caller had set.",
            edits: &[
                USE,
                (
                    FLAGS,
                    "    cudnn::set_benchmark(false);\n    cudnn::set_deterministic(true);\n    \
                     let weights = trained(seed, x, y, steps);\n    cudnn::set_deterministic(false);\n    weights\n",
                ),
            ],
            diagnosis: "benchmark-changed",
        },
        Wrong {
            name: "without_cudnn",
            what: "cuDNN is switched off.",
            edits: &[("benchmark: false, deterministic: true,", "enabled: false,")],
            diagnosis: "without-cudnn",
        },
        Wrong {
            name: "on_the_cpu",
            what: "It trains on the CPU, where the order is fixed.",
            edits: &[
                NO_USE,
                (FLAGS, "    trained(seed, &x.cpu()?, &y.cpu()?, steps)\n"),
            ],
            diagnosis: "on-the-cpu",
        },
    ],
    places: &[
        (
            "The flags of cuDNN",
            &[
                &[],
                &[NO_USE, (WRAPPER, "")],
                &[("benchmark: false, ", "")],
                &[("benchmark: false, deterministic: true,", "benchmark: false,")],
                &[
                    USE,
                    (FLAGS, "    cudnn::set_benchmark(false);\n    cudnn::set_deterministic(true);\n    trained(seed, x, y, steps)\n"),
                ],
            ],
        ),
        (
            "The seed",
            &[
                &[],
                &[(SEED, "")],
                &[(SEED, "    let _ = seed;\n    manual_seed(42);\n")],
                &[(SEED, ""), ("    let options = SGDOptions", "    manual_seed(seed);\n    let options = SGDOptions")],
                &[("        let noise", "        manual_seed(seed);\n        let noise")],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[4, 9],
    observe: |case| observe(case, solution::train),
    judge,
};

const USE: (&str, &str) = ("use todevice::backends::cudnn::{self, Flags};\n", "use todevice::backends::cudnn;\n");
const NO_USE: (&str, &str) = ("use todevice::backends::cudnn::{self, Flags};\n", "");
const FLAGS: &str = "    let exact =\n        Flags { benchmark: false, deterministic: true, ..cudnn::current() };\n    \
                     cudnn::flags(exact, || trained(seed, x, y, steps))\n";
/// A function around the training, which sets the flags.
const WRAPPER: &str = "    let exact =\n        Flags { benchmark: false, deterministic: true, ..cudnn::current() };\n    \
                       cudnn::flags(exact, || trained(seed, x, y, steps))\n}\n\nfn trained(\n    seed: u64,\n    x: &Tensor,\n    y: &Tensor,\n    \
                       steps: usize,\n) -> Result<Vec<Tensor>> {\n";
const SEED: &str = "    manual_seed(seed);\n";

/// The size of a case is the number of steps. What the caller had set depends on the seed.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let (x, y) = given(case, case.device()).expect("the machine is new");
        cudnn::set_benchmark(was_on(case));
        let trainings = RefCell::new(Vec::new());
        let run = || {
            let mut all = Vec::new();
            for seed in [case.seed, case.seed, case.seed + 1] {
                let weights = train(seed, &x, &y, case.size)?;
                let flags = (cudnn::current(), are_deterministic_algorithms_enabled());
                // What is drawn next tells whether there was a seed.
                all.push(Training { weights, flags, drawn: Tensor::rand(&[1])?.item()? });
            }
            *trainings.borrow_mut() = all;
            Ok(())
        };
        crate::observe(case, run, |facts| {
            let trainings = trainings.take();
            let [first, again, other] = &trainings[..] else { return Ok(()) };
            let (flags, everywhere) = first.flags;
            let mut note = |name: &str, value: Value| facts.insert(name.to_owned(), value);
            note("differ", first.differ(again)?.into_value()?);
            note("by", first.by(again)?.into_value()?);
            note("differ for another seed", first.differ(other)?.into_value()?);
            note("seeded", (first.drawn == again.drawn).into_value()?);
            note("sizes", first.sizes()?.into_value()?);
            note("on the gpu", first.weights.iter().all(Tensor::is_cuda).into_value()?);
            note("benchmark", flags.benchmark.into_value()?);
            let before = cudnn::Flags { benchmark: flags.benchmark, ..Default::default() };
            note("others as before", (flags == before && !everywhere).into_value()?);
            Ok(())
        })
    })
}

/// What a training left behind.
struct Training {
    weights: Vec<Tensor>,
    flags: (cudnn::Flags, bool),
    drawn: f64,
}

impl Training {
    fn bits(&self) -> Result<Vec<f32>> {
        let mut all = Vec::new();
        for weight in &self.weights {
            all.extend(weight.to_vec::<f32>()?);
        }
        Ok(all)
    }

    /// How many weights have other bits?
    fn differ(&self, other: &Training) -> Result<u64> {
        let (a, b) = (self.bits()?, other.bits()?);
        let differ = a.iter().zip(&b).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        Ok((differ + a.len().abs_diff(b.len())) as u64)
    }

    /// By how much at most?
    fn by(&self, other: &Training) -> Result<f64> {
        let (a, b) = (self.bits()?, other.bits()?);
        Ok(a.iter().zip(&b).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max))
    }

    /// The length of each tensor of weights, as a vector.
    fn sizes(&self) -> Result<Vec<f64>> {
        self.weights.iter().map(|weight| weight.square()?.sum()?.sqrt()?.item()).collect()
    }
}

fn was_on(case: &Case) -> bool {
    case.seed % 2 == 1
}

fn given(case: &Case, device: Device) -> Result<(Tensor, Tensor)> {
    manual_seed(1000 + case.seed);
    let classes: Vec<i64> = (0..32).map(|image| image % 10).collect();
    let x = Tensor::randn(&[32, 1, 16, 16])?.to(device)?;
    Ok((x, Tensor::from_slice(&classes, &[32])?.to(device)?))
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    seen.returned()?;
    let fact = |name: &str| seen.fact(name);
    let number = |name: &str| seen.fact(name).number().unwrap_or(0.0);
    let convolutions: Vec<&str> =
        seen.of(CallKind::Launch).map(|call| call.name.as_str()).filter(|name| name.starts_with("conv_")).collect();
    if case.gpu != "none" && convolutions.is_empty() {
        let kernels = seen.count(CallKind::Launch);
        return Err(match 2 * kernels < right.count(CallKind::Launch) {
            true => Diagnosis::new("on-the-cpu", "It does not train on the GPU any more.")
                .idea("The CPU adds in a fixed order, but a GPU can do that as well. Train on the GPU."),
            false => Diagnosis::new("without-cudnn", "It trains without cuDNN.")
                .idea("That gets rid of the algorithms that add in any order, and of all others as well. There is a flag that leaves out only the first kind."),
        }
        .seen(format!("{kernels} kernels on the GPU, and no convolution by cuDNN"))
        .expected("convolutions by cuDNN"));
    }
    if number("differ") > 0.0 {
        let seeded = fact("seeded") == &Value::Flag(true);
        // Other parts of a sum first: the last bits differ. Another start: everything does. How many do, and by how much, depends
        // on how a processor adds, too.
        let is_rounding = number("by") < 1e-3;
        let differ = |diagnosis: Diagnosis| {
            let by = if is_rounding { "in the last bits".to_owned() } else { format!("by up to {:.1}", number("by")) };
            diagnosis
                .seen(format!("with the same seed the weights of two training runs differ, {by}"))
                .expected("the same bits in all of them")
        };
        let filter = seen.of(CallKind::Launch).find(|call| call.name == "conv_backward_filter ALGO_0");
        return Err(differ(match (seeded, is_rounding) {
            (true, true) => Diagnosis::new("order-of-sums", "The two training runs draw the same numbers, and still differ in the last bits.").idea(
                match filter {
                    Some(call) => format!(
                        "`{}` adds the parts of a gradient in whatever order they are ready, and each addition rounds. A seed has no say in that; a flag of cuDNN leaves out such algorithms.",
                        call.name
                    ),
                    None => "A seed fixes what is drawn. It does not fix the order of additions.".to_owned(),
                },
            ).at(filter.and_then(|call| call.line)),
            (true, false) => Diagnosis::new("seed-too-late", "The two training runs do not start with the same weights.")
                .idea("A seed fixes what is drawn after it. The weights of the network are drawn when the network is made."),
            (false, _) => Diagnosis::new("no-seed", "Nothing fixes the random numbers.")
                .idea("The initial weights and the noise come from generators, which go on from wherever they are. Seed them."),
        }));
    }
    // A search launches several algorithms for the same pass, one after the other.
    let pass = |name: &str| name.split(' ').next().unwrap_or_default().to_owned();
    let line = seen.of(CallKind::Launch).find(|call| call.name.starts_with("conv_")).and_then(|call| call.line);
    let mut launches = seen.of(CallKind::Launch).map(|call| pass(&call.name)).peekable();
    let mut searches = 0;
    while let Some(name) = launches.next() {
        if name.starts_with("conv_") && launches.peek() == Some(&name) {
            searches += 1;
            while launches.next_if_eq(&name).is_some() {}
        }
    }
    if searches > 0 {
        return Err(Diagnosis::new("benchmark-left", "Which algorithm is taken depends on times.")
            .seen(format!("searches: {searches}; the caller has benchmark mode on"))
            .expected("none")
            .at(line)
            .idea("A search takes what was fastest this time, and times are never the same twice. Here the bits agree; on a real card the next run of the program may take another algorithm, and get other bits."));
    }
    if number("differ for another seed") == 0.0 {
        return Err(Diagnosis::new("constant-seed", "Another seed gives the same training run.")
            .seen(format!("the same weights with the seeds {} and {}", case.seed, case.seed + 1))
            .expected("other weights")
            .idea("The caller chooses the seed: to find out how much depends on luck, you train with several."));
    }
    // Whoever computes the same adds in the same order, but for the parts of a gradient: that is the last bits.
    let lengths = |seen: &Seen| seen.fact("sizes").list().iter().filter_map(Value::number).collect::<Vec<_>>();
    if !fact("sizes").is_near(right.fact("sizes"), 1e-4) {
        let listed = |seen: &Seen| lengths(seen).iter().map(|length| format!("{length:.4}")).collect::<Vec<_>>().join(", ");
        return Err(Diagnosis::new("other-training", "It is the same each time, but it is a different training run.")
            .seen(format!("weights of these lengths, tensor by tensor: {}", listed(seen)))
            .expected(listed(right))
            .idea("A seed starts the random numbers anew. Set it once, before anything is drawn: if it is set in every step, the noise is the same every time."));
    }
    if fact("others as before") != &Value::Flag(true) {
        return Err(Diagnosis::new("flags-left", "The flags are not put back.")
            .seen("after `train` only deterministic algorithms are allowed, or another flag has changed")
            .expected("all flags as they were before")
            .idea("Flags belong to the whole program: what comes after `train` is slower now, or different. `cudnn::flags` puts them back, even after an error."));
    }
    if fact("benchmark") != &Value::Flag(was_on(case)) {
        let named = |on: bool| if on { "on" } else { "off" };
        return Err(Diagnosis::new("benchmark-changed", "Afterwards benchmark mode is not as the caller had set it.")
            .seen(format!("benchmark mode is {} afterwards", named(!was_on(case))))
            .expected(format!("{}, as before", named(was_on(case))))
            .idea("The default is not always what the caller had set. Keep what was there, and put that back."));
    }
    Ok(())
}
