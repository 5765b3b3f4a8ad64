//! Names that come too late.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Brightens pictures that are on the device. The caller keeps its pictures.
    pub fn brighten(pictures: &Tensor) -> Result<Tensor> {
        let mut x = (pictures * 2.0)?;
        x = x.relu()?;
        x = (x + 0.5)?;
        x = x.tanh()?;
        x = (x * 3.0)?;
        Ok(x)
    }
    // END
}

type Brighten = fn(&Tensor) -> Result<Tensor>;

const FIRST: &str = "    let mut x = (pictures * 2.0)?;\n";
const RELU: &str = "    x = x.relu()?;\n";
const ADD: &str = "    x = (x + 0.5)?;\n";
const TANH: &str = "    x = x.tanh()?;\n";
const LAST: &str = "    x = (x * 3.0)?;\n";
const RETURN: &str = "    Ok(x)\n";

const SHADOWED: &[crate::Edit] = &[
    (FIRST, "    let x = (pictures * 2.0)?;\n"),
    (RELU, "    let x = x.relu()?;\n"),
    (ADD, "    let x = (&x + 0.5)?;\n"),
    (TANH, "    let x = x.tanh()?;\n"),
    (LAST, "    let x = (&x * 3.0)?;\n"),
];

/// The exercise before this one in the chapter.
pub const AFTER: &str = "04-graph";

pub static EXERCISE: Exercise = Exercise {
    id: "04-dies",
    title: "A new name frees nothing",
    kind: Kind::Fix,
    task: "`brighten` takes five steps, and each makes a tensor as large as the pictures. In Python each `x = …` would free the one \
           before. Here all five are on the GPU at the end. Fix it: never hold more than two of them at once, leave the \
           caller's pictures as they are, and give every step to the GPU.",
    hints: [
        "When does Rust drop a value that has been given a name? What does a second `let` of that name change about it?",
        "A second `let x` hides the first, and both live until the function ends. An assignment to a `mut` variable drops the old value.",
        "Begin with `let mut x = (pictures * 2.0)?;`, and go on with `x = x.relu()?;`.",
    ],
    afterwards: "`drop(x)`, a block, or a function of its own end a tensor's life as well.",
    source: include_str!("04-dies.rs"),
    functions: &[("brighten", "pub fn brighten(pictures: &Tensor) -> Result<Tensor>")],
    skeleton: SHADOWED,
    styles: &[
        Style {
            name: "dropped",
            edits: &[
                (FIRST, "    let a = (pictures * 2.0)?;\n"),
                (RELU, "    let b = a.relu()?;\n    drop(a);\n"),
                (ADD, "    let c = (&b + 0.5)?;\n    drop(b);\n"),
                (TANH, "    let d = c.tanh()?;\n    drop(c);\n"),
                (LAST, ""),
                (RETURN, "    d * 3.0\n"),
            ],
        },
        Style {
            name: "moved",
            edits: &[
                (FIRST, "    let x = (pictures * 2.0)?;\n"),
                (RELU, "    let x = { x }.relu()?;\n"),
                (ADD, "    let x = (x + 0.5)?;\n"),
                (TANH, "    let x = { x }.tanh()?;\n"),
                (LAST, "    let x = (x * 3.0)?;\n"),
            ],
        },
        Style {
            name: "in_place",
            edits: &[
                (RELU, "    x = x.relu_()?;\n"),
                (ADD, "    x = x.add_(0.5)?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "shadowed",
            what: "Each step has a `let` of its own, and no tensor dies before the function ends.",
            edits: SHADOWED,
            diagnosis: "shadowed",
        },
        Wrong {
            name: "chained",
            what: "The steps are one chain of calls. What stands in an expression lives until it ends.",
            edits: &[
                (FIRST, ""),
                (RELU, ""),
                (ADD, ""),
                (TANH, ""),
                (LAST, ""),
                (RETURN, "    pictures.mul(2.0)?.relu()?.add(0.5)?.tanh()?.mul(3.0)\n"),
            ],
            diagnosis: "chained",
        },
        Wrong {
            name: "one_kept",
            what: "A second handle of the first result keeps it alive.",
            edits: &[(RELU, "    let first = x.clone();\n    x = x.relu()?;\n"), (RETURN, "    drop(first);\n    Ok(x)\n")],
            diagnosis: "one-too-many",
        },
        Wrong {
            name: "forgotten",
            what: "Old tensors are given to `forget`, which frees nothing, ever.",
            edits: &[
                (RELU, "    let positive = x.relu()?;\n    std::mem::forget(x);\n"),
                (ADD, "    let mut x = (positive + 0.5)?;\n"),
            ],
            diagnosis: "never-freed",
        },
        Wrong {
            name: "emptied_cache",
            what: "The cache is emptied, but the tensors are not in it: they are alive.",
            edits: &[
                ("use todevice::prelude::*;\n", "use todevice::cuda;\nuse todevice::prelude::*;\n"),
                (FIRST, "    let x = (pictures * 2.0)?;\n"),
                (RELU, "    let x = x.relu()?;\n"),
                (ADD, "    let x = (&x + 0.5)?;\n    cuda::empty_cache()?;\n"),
                (TANH, "    let x = x.tanh()?;\n"),
                (LAST, "    let x = (&x * 3.0)?;\n"),
            ],
            diagnosis: "empty-cache",
        },
        Wrong {
            name: "callers_pictures",
            what: "The steps work in place, and the caller's pictures are lost.",
            edits: &[(FIRST, "    let mut x = pictures.mul_(2.0)?;\n")],
            diagnosis: "pictures-changed",
        },
        Wrong {
            name: "on_the_cpu",
            what: "The steps run on the CPU, where there is more memory.",
            edits: &[
                (FIRST, "    let device = pictures.device();\n    let mut x = (pictures.cpu()? * 2.0)?;\n"),
                (RETURN, "    x.to(device)\n"),
            ],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "parked",
            what: "A result waits on the CPU until it is needed.",
            edits: &[(TANH, "    let parked = x.cpu()?;\n    x = parked.to(pictures.device())?.tanh()?;\n")],
            diagnosis: "parked",
        },
        Wrong {
            name: "halves",
            what: "Half of the precision is given up to save memory.",
            edits: &[
                (FIRST, "    let mut x = (pictures.to(DType::F16)? * 2.0)?;\n"),
                (RETURN, "    x.to(DType::F32)\n"),
            ],
            diagnosis: "other-numbers",
        },
        Wrong {
            name: "stays_on_the_cpu",
            what: "The result is left on the CPU.",
            edits: &[(RETURN, "    x.cpu()\n")],
            diagnosis: "elsewhere",
        },
    ],
    places: &[
        (
            "The steps",
            &[
                &[],
                SHADOWED,
                &[
                    (FIRST, ""),
                    (RELU, ""),
                    (ADD, ""),
                    (TANH, ""),
                    (LAST, "    let x = pictures.mul(2.0)?.relu()?.add(0.5)?.tanh()?.mul(3.0)?;\n"),
                ],
                &[(FIRST, "    let mut x = pictures.mul_(2.0)?;\n")],
            ],
        ),
        ("What is returned", &[&[], &[(RETURN, "    x.cpu()\n")]]),
    ],
    gpus: &["sim:t4", "sim:h200"],
    sizes: &[64, 256],
    observe: |case| observe(case, solution::brighten),
    judge,
};

/// The size of a case is the number of pictures.
pub fn observe(case: &Case, brighten: Brighten) -> Seen {
    case.machine().enter(|| {
        manual_seed(case.seed);
        let pictures = given(case).expect("they are small");
        // A segment of the cache is free, so there is something to empty.
        drop(Tensor::zeros((&[1 << 21], case.device())));
        crate::observe(
            case,
            || brighten(&pictures),
            |facts| {
                let changed = numbers(&pictures)? != numbers(&given_again(case)?)?;
                facts.insert("changed".to_owned(), Value::Flag(changed));
                facts.insert("picture bytes".to_owned(), Value::Number(pictures.nbytes() as f64));
                Ok(())
            },
        )
    })
}

fn given(case: &Case) -> Result<Tensor> {
    Tensor::randn(&[case.size, 3, 16, 16])?.to(case.device())
}

fn numbers(tensor: &Tensor) -> Result<Vec<f32>> {
    tensor.cpu()?.to_vec()
}

fn given_again(case: &Case) -> Result<Tensor> {
    manual_seed(case.seed);
    given(case)
}

fn judge(_: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let result = seen.returned()?;
    let count = |seen: &Seen| {
        let one = right.fact("picture bytes").number().unwrap_or(1.0);
        (seen.peak as f64 / one).round()
    };
    if seen.fact("changed") == &Value::Flag(true) {
        return Err(Diagnosis::new("pictures-changed", "The caller's pictures are not what they were.")
            .seen("other numbers in `pictures`")
            .expected("the same as before")
            .idea("A method whose name ends in `_` writes into its tensor. Use it only on a tensor of your own."));
    }
    if !seen.computed_on_the_gpu(right) {
        return Err(Diagnosis::new("on-the-cpu", "The steps run on the CPU.")
            .seen(format!("{} kernels", seen.count(CallKind::Launch)))
            .expected(format!("{} kernels", right.count(CallKind::Launch)))
            .idea("Memory is saved by letting tensors die, and not by leaving the GPU."));
    }
    if result.device() != right.value().device() {
        return Err(Diagnosis::new("elsewhere", "The result is not where the pictures are.")
            .seen(result.device().unwrap_or("no tensor"))
            .expected(right.value().device().unwrap_or_default())
            .idea("The caller goes on with the result on the GPU."));
    }
    let copies = seen.count(CallKind::ToHost);
    if copies > 0 {
        return Err(Diagnosis::new("parked", "A tensor waits on the CPU for its turn.")
            .seen(format!("{} bytes to the host", seen.bytes(CallKind::ToHost)))
            .expected("none")
            .idea("A copy over the bus takes longer than the step. What is no longer needed can be dropped, and the rest fits.")
            .at(seen.line(CallKind::ToHost)));
    }
    if !result.is_near(right.value(), 1e-5) {
        return Err(Diagnosis::new("other-numbers", "The result has other numbers.")
            .seen("other numbers than those of the five steps in f32")
            .expected("the same numbers, with less memory")
            .idea("Only the lives of the tensors were wrong, not the steps and not their type."));
    }
    if count(seen) <= count(right) && seen.kept <= right.kept {
        return Ok(());
    }
    let told = |id: &str, says: &str, idea: &str| {
        Err(Diagnosis::new(id, says)
            .seen(format!("memory for {} tensors of the pictures' size at once", count(seen)))
            .expected(count(right).to_string())
            .idea(idea))
    };
    if seen.kept > right.kept {
        return told(
            "never-freed",
            "Some tensors are never freed, not even when the function has returned.",
            "`forget` means that nobody drops the value. `drop` is its opposite.",
        );
    }
    if seen.count(CallKind::Driver) > right.count(CallKind::Driver) {
        return told(
            "empty-cache",
            "The cache is emptied, and the tensors are not in it.",
            "`empty_cache` gives back what no tensor uses any more. These are still in use.",
        );
    }
    if count(seen) <= count(right) + 1.0 {
        return told(
            "one-too-many",
            "One tensor lives longer than it is needed.",
            "A clone of a tensor is a second handle of the same memory, which is freed with the last of them.",
        );
    }
    let mut lines: Vec<Option<u32>> = seen.of(CallKind::Launch).map(|call| call.line).collect();
    lines.dedup();
    if lines.len() == 1 {
        return told(
            "chained",
            "All results of the chain are alive until the chain ends.",
            "Rust drops what has no name at the end of the whole statement. Make several statements of it.",
        );
    }
    told(
        "shadowed",
        "No tensor dies before the function ends.",
        "A second `let` hides a name, and what had the name lives on. Assign to a `mut` variable instead.",
    )
}
