//! Steps too small for the type.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Takes a step of `lr` down each gradient. Weights and gradients have sixteen bits,
    /// and so have the weights that are returned.
    pub fn descend(weights: &Tensor, gradients: &[Tensor], lr: f64) -> Result<Tensor> {
        let mut exact = weights.to(DType::F32)?;
        for gradient in gradients {
            let step = (gradient.to(DType::F32)? * lr)?;
            exact = (exact - step)?;
        }
        exact.to(weights.dtype())
    }
    // END
}

type Descend = fn(&Tensor, &[Tensor], f64) -> Result<Tensor>;

const EXACT: &str = "    let mut exact = weights.to(DType::F32)?;\n";
const STEP: &str = "        let step = (gradient.to(DType::F32)? * lr)?;\n";
const TAKE: &str = "        exact = (exact - step)?;\n";
const RETURN: &str = "    exact.to(weights.dtype())\n";

const SIXTEEN: &[crate::Edit] = &[
    (EXACT, "    let mut exact = weights.clone();\n"),
    (STEP, "        let step = (gradient * lr)?;\n"),
    (RETURN, "    Ok(exact)\n"),
];

/// The exercise before this one in the chapter.
pub const AFTER: &str = "06-autocast";

pub static EXERCISE: Exercise = Exercise {
    id: "06-small",
    title: "Steps too small for the type",
    kind: Kind::Write,
    task: "Write `descend`, which takes a step of `lr` down each gradient. The weights are in sixteen bits, f16 or bf16, and a step is \
           so small that a weight of that type stays what it was, with no error and no NaN. Make hundreds of such steps add up. The \
           weights that are returned have the type that they came in, and each number is rounded to it only once.",
    hints: [
        "How far is it from 1 to the next number in bf16, and how long is a step?",
        "A sum of small numbers needs a type with more digits than its parts. PyTorch calls such a copy the *master weights*.",
        "Begin with `let mut exact = weights.to(DType::F32)?;`, take all steps there, and end with `exact.to(weights.dtype())`.",
    ],
    afterwards: "Autocast keeps the weights in f32 for the same reason, and casts them for each product.",
    source: include_str!("06-small.rs"),
    functions: &[("descend", "pub fn descend(weights: &Tensor, gradients: &[Tensor], lr: f64) -> Result<Tensor>")],
    skeleton: &[
        (EXACT, ""),
        ("    for gradient in gradients {\n", "    for _gradient in gradients {\n"),
        (STEP, "        // Steps that are too small for sixteen bits, and add up all the same.\n"),
        (TAKE, ""),
        (RETURN, "    let _ = (weights, lr);\n    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "sum_of_gradients",
            edits: &[
                (EXACT, "    let mut sum = Tensor::zeros((weights.sizes(), weights.device()))?;\n"),
                (STEP, ""),
                (TAKE, "        sum = (sum + gradient.to(DType::F32)?)?;\n"),
                (RETURN, "    (weights.to(DType::F32)? - (sum * lr)?)?.to(weights.dtype())\n"),
            ],
        },
        Style {
            name: "in_place",
            edits: &[
                ("    let mut exact =", "    let exact ="),
                (TAKE, "        exact.sub_(&step)?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "all_in_sixteen",
            what: "Each new weight is rounded to sixteen bits, and the step is lost.",
            edits: SIXTEEN,
            diagnosis: "steps-lost",
        },
        Wrong {
            name: "rounded_each_time",
            what: "The step is taken in f32, and the weights go back to sixteen bits after each.",
            edits: &[
                (EXACT, "    let mut exact = weights.clone();\n"),
                (TAKE, "        exact = (exact.to(DType::F32)? - step)?.to(weights.dtype())?;\n"),
                (RETURN, "    Ok(exact)\n"),
            ],
            diagnosis: "rounded-each-time",
        },
        Wrong {
            name: "sum_in_sixteen",
            what: "The gradients are added up in sixteen bits.",
            edits: &[
                (EXACT, "    let mut sum = (&gradients[0] * 0.0)?;\n"),
                (STEP, ""),
                (TAKE, "        sum = (sum + gradient)?;\n"),
                (RETURN, "    (weights.to(DType::F32)? - (sum.to(DType::F32)? * lr)?)?.to(weights.dtype())\n"),
            ],
            diagnosis: "sum-in-sixteen",
        },
        Wrong {
            name: "returns_f32",
            what: "The weights are returned in f32.",
            edits: &[(RETURN, "    Ok(exact)\n")],
            diagnosis: "another-type",
        },
        Wrong {
            name: "doubles",
            what: "Everything is computed in f64, which takes four times the memory of the weights.",
            edits: &[
                (EXACT, "    let mut exact = weights.to(DType::F64)?;\n"),
                (STEP, "        let step = (gradient.to(DType::F64)? * lr)?;\n"),
            ],
            diagnosis: "doubles",
        },
        Wrong {
            name: "upwards",
            what: "The steps are added.",
            edits: &[(TAKE, "        exact = (exact + step)?;\n")],
            diagnosis: "upwards",
        },
        Wrong {
            name: "last_step",
            what: "Each step begins at the first weights.",
            edits: &[(TAKE, "        exact = (weights.to(DType::F32)? - step)?;\n")],
            diagnosis: "one-step",
        },
        Wrong {
            name: "larger_steps",
            what: "Steps are enlarged until something happens.",
            edits: &[
                (EXACT, "    let lr = 8.0 * lr;\n    let mut exact = weights.to(DType::F32)?;\n"),
            ],
            diagnosis: "other-steps",
        },
        Wrong {
            name: "no_lr",
            what: "The learning rate is left out.",
            edits: &[(STEP, "        let _ = lr;\n        let step = gradient.to(DType::F32)?;\n")],
            diagnosis: "no-lr",
        },
        Wrong {
            name: "on_the_cpu",
            what: "The steps are taken on the CPU.",
            edits: &[
                (EXACT, "    let mut exact = weights.cpu()?.to(DType::F32)?;\n"),
                (STEP, "        let step = (gradient.cpu()?.to(DType::F32)? * lr)?;\n"),
                (RETURN, "    exact.to(weights.dtype())?.to(weights.device())\n"),
            ],
            diagnosis: "on-the-cpu",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200"],
    sizes: &[200, 300],
    observe: |case| observe(case, solution::descend),
    judge,
};

const LR: f64 = 1e-3;

/// On the T4 the type is f16, elsewhere it is bf16.
fn dtype(case: &Case) -> DType {
    if case.gpu == "sim:t4" { DType::F16 } else { DType::BF16 }
}

/// So many weights are large: in sixteen bits no step changes one of them. The others are so small that each step does.
const LARGE: usize = 48;

/// Gradients are of about the same size, and have the same sign.
fn given(case: &Case) -> Result<(Tensor, Vec<Tensor>)> {
    manual_seed(case.seed);
    let (device, dtype) = (case.device(), dtype(case));
    let (large, small) = ((Tensor::rand(&[LARGE])? * 0.5)?.add(2.0)?, (Tensor::rand(&[16])? * 0.01)?);
    // One has room in bf16, and not in f16.
    let giant = Tensor::full(&[1], (if dtype == DType::BF16 { 1e5 } else { 1e3 }, Device::Cpu))?;
    let weights = Tensor::cat(&[large, small, giant], 0)?.to(dtype)?.to(device)?;
    let gradient = || (Tensor::rand(&[LARGE + 17])? * 0.2)?.add(0.3)?.to(dtype)?.to(device);
    Ok((weights, (0..case.size).map(|_| gradient()).collect::<Result<_>>()?))
}

/// The size of a case is the number of steps.
pub fn observe(case: &Case, descend: Descend) -> Seen {
    case.machine().enter(|| {
        let (weights, gradients) = given(case).expect("they are small");
        let before = weights.copy().expect("they are small");
        crate::observe(
            case,
            || descend(&weights, &gradients, LR),
            |facts| {
                facts.insert("changed".to_owned(), Value::Flag(!weights.equal(&before)?));
                Ok(())
            },
        )
    })
}

/// How far the large weights have come on average, and the small ones.
fn distances(case: &Case, after: &[f64]) -> [f64; 2] {
    let before = case.machine().enter(|| given(case).and_then(|(weights, _)| weights.to(DType::F64)?.to_vec::<f64>()));
    let before = before.unwrap_or_default();
    let moved: Vec<f64> = before.iter().zip(after).map(|(before, after)| before - after).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let (large, small) = moved.split_at(LARGE.min(moved.len()));
    [mean(large), mean(small)]
}

/// The result of adding up gradients in sixteen bits.
fn sum_in_sixteen(case: &Case) -> Result<Vec<f64>> {
    case.machine().enter(|| {
        let (weights, gradients) = given(case)?;
        let mut sum = weights.zeros_like()?;
        for gradient in &gradients {
            sum = (sum + gradient)?;
        }
        let exact = (weights.to(DType::F32)? - (sum.to(DType::F32)? * LR)?)?;
        exact.to(weights.dtype())?.to(DType::F64)?.to_vec()
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let result = seen.returned()?;
    if seen.fact("changed") == &Value::Flag(true) {
        return Err(Diagnosis::new("caller-changed", "The caller's weights are not what they were.")
            .seen("other numbers in `weights`")
            .expected("the same as before")
            .idea("To sixteen bits a tensor is cast by a copy, but `clone` and `.to` of the same type are the same memory."));
    }
    let (Value::Tensor { values, dtype, .. }, Value::Tensor { values: wanted, dtype: wanted_type, .. }) = (result, right.value())
    else {
        return Ok(());
    };
    if seen.count(CallKind::ToHost) > 0 || seen.count(CallKind::Launch) == 0 {
        return Err(Diagnosis::new("on-the-cpu", "The steps are taken on the CPU.")
            .seen(format!("{} kernels, and {} bytes to the host", seen.count(CallKind::Launch), seen.bytes(CallKind::ToHost)))
            .expected(format!("{} kernels", right.count(CallKind::Launch)))
            .idea("The GPU has f32 as well. A cast there moves nothing."));
    }
    if dtype != wanted_type {
        return Err(Diagnosis::new("another-type", "The weights come back in another type.")
            .seen(dtype)
            .expected(wanted_type)
            .idea("The model keeps its weights in sixteen bits. Round once, at the end."));
    }
    if seen.of(CallKind::Launch).any(|call| call.types.iter().any(|name| name == "torch.float64")) {
        return Err(Diagnosis::new("doubles", "The steps are taken in f64.")
            .seen("kernels that compute in float64")
            .expected("float32")
            .idea("f32 has 13 bits more than f16, which is enough here. f64 takes twice the memory, and most cards are slow at it.")
            .at(seen.line(CallKind::Launch)));
    }
    let [[own, own_small], [right_way, right_small]] = [values, wanted].map(|values| distances(case, values));
    let share = own / right_way;
    let told = |id: &str, says: &str, idea: &str| {
        Err(Diagnosis::new(id, says)
            .seen(format!("weights near 2 that have moved by {own:.4} on average"))
            .expected(format!("{right_way:.4}"))
            .idea(idea))
    };
    // Rounded once, a weight is right to the last bit or the one before it.
    let one_bit = if wanted_type == "torch.float16" { 1.0 / 512.0 } else { 1.0 / 64.0 };
    if values.len() == wanted.len() && values.iter().zip(wanted).all(|(own, wanted)| (own - wanted).abs() < 1.5 * one_bit)
        && (share - 1.0).abs() < 0.02
    {
        return Ok(());
    }
    let casts = seen.of(CallKind::Launch).any(|call| call.types.iter().any(|name| name == "torch.float32"));
    match share {
        _ if share.abs() < 0.001 && !casts => told(
            "steps-lost",
            "The weights are what they were: each step is rounded away.",
            "A type of sixteen bits has 8 or 11 bits for its digits. A step that is less than half a digit is lost, however often you take it.",
        ),
        _ if share.abs() < 0.001 && own_small < 0.2 * right_small => {
            told("one-step", "The weights have taken a single step.", "Each step begins where the one before has ended.")
        }
        _ if share.abs() < 0.001 => told(
            "rounded-each-time",
            "Each step is taken in f32, and then rounded away.",
            "What is to add up has to stay in f32 between the steps.",
        ),
        _ if sum_in_sixteen(case).is_ok_and(|sum| sum == *values) => told(
            "sum-in-sixteen",
            "The gradients are added up in sixteen bits, and each sum is rounded.",
            "A sum has the problem of the weights: the larger it is, the fewer digits are left for the next gradient.",
        ),
        _ if share < 0.0 => told("upwards", "The weights move up the gradients.", "Down is minus: `weights - lr × gradient`."),
        _ if share > 100.0 => told("no-lr", "The steps are a thousand times too long.", "A step is `lr` times the gradient."),
        _ => told(
            "other-steps",
            "The weights move, but not as far as the steps say.",
            "The steps were right. Only the type in which they add up was wrong.",
        ),
    }
}
