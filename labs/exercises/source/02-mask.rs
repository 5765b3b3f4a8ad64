//! A module that makes a tensor of its own.

use todevice::{HostMemory, Machine, cuda};
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Each row of a sequence becomes a mean of itself and of the rows before it.
    #[derive(Module)]
    pub struct Attention {
        query: nn::Linear,
    }

    /// For sequences of up to 64 rows of that width.
    pub fn attention(width: usize) -> Result<Attention> {
        let query = nn::Linear::new(width, width)?;
        Ok(Attention { query })
    }

    impl Attention {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            let scores = self.query.forward(x)?.bmm(&x.transpose(1, 2)?)?;
            self.hide_later(&scores)?.softmax(-1)?.bmm(x)
        }

        /// Lowers the scores of later rows so far that softmax makes them 0.
        fn hide_later(&self, scores: &Tensor) -> Result<Tensor> {
            let rows = scores.size(1)?;
            let place = Tensor::arange(0.0, rows as f64, (1.0, scores))?;
            // How many rows later the other one is, and 0 if it is not.
            let later = (place.unsqueeze(0)? - place.unsqueeze(1)?)?.clamp(0.0, None)?;
            scores - (later * 1000.0)?
        }
    }
    // END
}

/// The exercise before this one in the chapter.
pub const AFTER: &str = "02-batch";

pub static EXERCISE: Exercise = Exercise {
    id: "02-mask",
    title: "A stranger in the forward pass",
    kind: Kind::Fix,
    task: "`forward` makes a tensor of its own, the mask that hides later rows, and so it fails on a GPU. Fix \
           the module: `forward` has to run without a copy between devices, wherever the module has been moved (to a \
           GPU, to a second one, or back to the CPU), and in float32 as well as in float16. The module must not gain \
           learned parameters.",
    hints: [
        "Read the report of GPU0001: it names the tensor that is elsewhere, and the line that made it. What was it made from? \
         And what in that function knows where the others are?",
        "You can make a tensor where another one is, and with its type. Then nothing need be moved.",
        "The last argument of `arange` can stand in a pair: `(1.0, options)`. Options are a device, a type, both as a \
         pair, or another tensor whose device and type `arange` copies.",
    ],
    afterwards: "A mask that never changes may as well be a buffer: it is made once, and moves with the module.",
    source: include_str!("02-mask.rs"),
    functions: &[("attention", "pub fn attention(width: usize) -> Result<impl Module>")],
    skeleton: &[(ARANGE, "rows as f64, (1.0, scores.dtype()))?;")],
    styles: &[
        Style {
            name: "device_and_type",
            edits: &[(ARANGE, "rows as f64, (1.0, (scores.device(), scores.dtype())))?;")],
        },
        Style {
            name: "counted_up",
            edits: &[(
                "Tensor::arange(0.0, rows as f64, (1.0, scores))?",
                "Tensor::ones((&[rows], scores))?.cumsum(0)?",
            )],
        },
        Style {
            name: "chosen",
            edits: &[
                (PLACE, "        let place = Tensor::arange(0, rows as i64, (1, (scores.device(), DType::I64)))?;\n"),
                (LATER, "        let later = place.unsqueeze(0)?.gt(&place.unsqueeze(1)?)?;\n"),
                ("        scores - (later * 1000.0)?", "        later.where_cond(-60000.0, scores)"),
            ],
        },
        Style {
            name: "filled",
            edits: &[
                (PLACE, "        let place = Tensor::arange(0, rows as i64, (1, (scores.device(), DType::I64)))?;\n"),
                (LATER, "        let later = place.unsqueeze(0)?.gt(&place.unsqueeze(1)?)?;\n"),
                ("        scores - (later * 1000.0)?", "        scores.masked_fill(&later, f64::NEG_INFINITY)"),
            ],
        },
        Style {
            name: "buffer",
            edits: &[
                ("    query: nn::Linear,\n", "    query: nn::Linear,\n    place: nn::Buffer,\n"),
                (
                    "    Ok(Attention { query })",
                    "    let place = nn::Buffer::new(&Tensor::arange(0.0, 64.0, (1.0, DType::F32))?);\n    Ok(Attention { query, place })",
                ),
                (PLACE, "        let place = self.place.tensor().narrow(0, 0, rows)?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "made_on_the_cpu",
            what: "The mask is made on the CPU.",
            edits: &[(ARANGE, "rows as f64, (1.0, scores.dtype()))?;")],
            diagnosis: "made-on-the-cpu",
        },
        Wrong {
            name: "copied_every_call",
            what: "The mask is made on the CPU and moved, in every call.",
            edits: &[(ARANGE, "rows as f64, (1.0, scores.dtype()))?.to(scores.device())?;")],
            diagnosis: "copied-every-call",
        },
        Wrong {
            name: "scores_fetched",
            what: "The scores are moved to the CPU, where the mask is, and back.",
            edits: &[
                (ARANGE, "rows as f64, (1.0, scores.dtype()))?;"),
                ("        scores - (later * 1000.0)?", "        (scores.cpu()? - (later * 1000.0)?)?.to(scores.device())"),
            ],
            diagnosis: "scores-fetched",
        },
        Wrong {
            name: "hard_coded",
            what: "The mask is made on `cuda:0`, whatever the module is on.",
            edits: &[(ARANGE, "rows as f64, (1.0, (Device::cuda(0), scores.dtype())))?;")],
            diagnosis: "hard-coded",
        },
        Wrong {
            name: "device_guessed",
            what: "The mask is made on a GPU if there is one.",
            edits: &[(ARANGE, "rows as f64, (1.0, (Device::cuda_if_available(), scores.dtype())))?;")],
            diagnosis: "device-guessed",
        },
        Wrong {
            name: "plain_field",
            what: "The mask is made with the module and kept in a field, which does not move.",
            edits: &[
                ("    query: nn::Linear,\n", "    query: nn::Linear,\n    #[module(skip)]\n    place: Tensor,\n"),
                (
                    "    Ok(Attention { query })",
                    "    let place = Tensor::arange(0.0, 64.0, (1.0, DType::F32))?;\n    Ok(Attention { query, place })",
                ),
                (PLACE, "        let place = self.place.narrow(0, 0, rows)?;\n"),
            ],
            diagnosis: "plain-field",
        },
        Wrong {
            name: "learned",
            what: "The mask is made a parameter, since parameters move.",
            edits: &[
                ("    query: nn::Linear,\n", "    query: nn::Linear,\n    place: nn::Parameter,\n"),
                (
                    "    Ok(Attention { query })",
                    "    let place = nn::Parameter::new(&Tensor::arange(0.0, 64.0, (1.0, DType::F32))?)?;\n    Ok(Attention { query, place })",
                ),
                (PLACE, "        let place = self.place.tensor().narrow(0, 0, rows)?;\n"),
            ],
            diagnosis: "learned",
        },
        Wrong {
            name: "one_length",
            what: "The mask is made once, for sequences of one length.",
            edits: &[
                ("    query: nn::Linear,\n", "    query: nn::Linear,\n    place: nn::Buffer,\n"),
                (
                    "    Ok(Attention { query })",
                    "    let place = nn::Buffer::new(&Tensor::arange(0.0, 64.0, (1.0, DType::F32))?);\n    Ok(Attention { query, place })",
                ),
                ("        let rows = scores.size(1)?;\n", ""),
                (PLACE, "        let place = self.place.tensor();\n"),
            ],
            diagnosis: "one-length",
        },
        Wrong {
            name: "wrong_type",
            what: "The mask is made in the right place, but always in float32.",
            edits: &[(ARANGE, "rows as f64, (1.0, scores.device()))?;")],
            diagnosis: "wrong-type",
        },
        Wrong {
            name: "one_by_one",
            what: "The mask is made in the right place, but number by number.",
            edits: &[(
                PLACE,
                "        let mut places = Vec::new();\n        for row in 0..rows {\n            \
                 places.push(Tensor::full(&[], (row as f64, scores))?);\n        }\n        \
                 let place = Tensor::stack(&places, 0)?;\n",
            )],
            diagnosis: "one-by-one",
        },
        Wrong {
            name: "earlier_hidden",
            what: "The mask hides the earlier rows instead of the later ones.",
            edits: &[("(place.unsqueeze(0)? - place.unsqueeze(1)?)?", "(place.unsqueeze(1)? - place.unsqueeze(0)?)?")],
            diagnosis: "result",
        },
    ],
    places: &[
        (
            "Where the numbers of the rows are made, and as what",
            &[
                &[],
                &[(ARANGE, "rows as f64, (1.0, scores.dtype()))?;")],
                &[(ARANGE, "rows as f64, (1.0, scores.dtype()))?.to(scores.device())?;")],
                &[(ARANGE, "rows as f64, (1.0, (Device::cuda(0), scores.dtype())))?;")],
                &[(ARANGE, "rows as f64, (1.0, (Device::cuda_if_available(), scores.dtype())))?;")],
                &[(ARANGE, "rows as f64, (1.0, scores.device()))?;")],
                &[
                    (ARANGE, "rows as f64, (1.0, scores.dtype()))?;"),
                    ("        scores - (later * 1000.0)?", "        (scores.cpu()? - (later * 1000.0)?)?.to(scores.device())"),
                ],
            ],
        ),
    ],
    gpus: &["none", "sim:t4", "sim:t4x2"],
    sizes: &[8, 24],
    observe: |case| observe(case, solution::attention),
    judge,
};

const ARANGE: &str = "rows as f64, (1.0, scores))?;";
const PLACE: &str = "        let place = Tensor::arange(0.0, rows as f64, (1.0, scores))?;\n";
const LATER: &str = "        let later = (place.unsqueeze(0)? - place.unsqueeze(1)?)?.clamp(0.0, None)?;\n";

const WIDTH: usize = 16;
const SEQUENCES: usize = 4;

/// Lengths of sequences, in rows: the largest is below 32, so 31 times 1000 is less than float16 can hold.
fn lengths(case: &Case) -> [usize; 3] {
    let seed = case.seed as usize;
    [case.size, case.size + 1 + seed % 5, case.size - 1 - seed % 3]
}

/// The size of a case is about the number of rows of a sequence. The module is called on the machine's first device; all its
/// other devices follow, and float16.
pub fn observe<M: Module + 'static>(case: &Case, attention: fn(usize) -> Result<M>) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        manual_seed(case.seed);
        let machine = Machine::current();
        let memory: &HostMemory = machine.host_memory();
        let before = memory.allocated();
        let built = attention(WIDTH).and_then(|module| {
            let module = nn::Sequential::new((module,));
            let weights: usize = module.parameters().iter().map(|weight| weight.numel() * 4).sum();
            let constants = (memory.allocated() - before).saturating_sub(weights);
            let sequences: Result<Vec<Tensor>> =
                lengths(case).iter().map(|&rows| Tensor::randn(&[SEQUENCES, rows, WIDTH])).collect();
            Ok((module, constants, sequences?))
        });
        let (module, constants, on_cpu) = match built {
            Ok(built) => built,
            Err(error) => return crate::observe(case, || Err::<(), Error>(error), |_| Ok(())),
        };
        let all = |options: todevice::ToOptions| -> Result<Vec<Tensor>> {
            module.to(options)?;
            let moved: Result<Vec<Tensor>> = on_cpu.iter().map(|x| x.to(options)).collect();
            moved?.iter().map(|x| no_grad(|| module.forward(x))).collect()
        };
        module.to(device).expect("all fits");
        let given: Vec<Tensor> = on_cpu.iter().map(|x| x.to(device).expect("all fits")).collect();
        let mut seen = crate::observe(
            case,
            || given.iter().map(|x| no_grad(|| module.forward(x))).collect::<Result<Vec<_>>>(),
            |facts| {
                let gpus = (1..cuda::device_count()).map(Device::cuda);
                for device in gpus.chain([Device::Cpu]) {
                    facts.insert("where".into(), device.into_value()?);
                    facts.insert(device.to_string(), all(device.into())?.into_value()?);
                }
                facts.insert("where".into(), Value::Text("float16".into()));
                facts.insert("float16".into(), all((device, DType::F16).into())?.into_value()?);
                facts.insert("where".into(), Value::None);
                Ok(())
            },
        );
        seen.facts.insert("constants".into(), Value::Number(constants as f64));
        seen.facts.insert("parameters".into(), Value::Number(module.parameters().len() as f64));
        seen
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    // A buffer is held from the start, too. What is wrong with a field is that it stays behind.
    let constants = seen.fact("constants").number() > right.fact("constants").number();
    if let Ended::Failed { message, operands, .. } = &seen.ended
        && let Some(diagnosis) = failed(seen.fact("where"), constants, message, !operands.is_empty())
    {
        return Err(if operands.is_empty() { diagnosis } else { diagnosis.report(seen) });
    }
    let outputs = seen.returned()?;

    let parameters = |seen: &Seen| seen.fact("parameters").number().unwrap_or(0.0);
    if parameters(seen) > parameters(right) {
        return Err(Diagnosis::new("learned", "An optimizer would train the mask.")
            .seen(format!("{} parameters", parameters(seen)))
            .expected(format!("{}: the weight and the bias of a layer", parameters(right)))
            .idea("Parameters move with their module, and are trained with it. A buffer moves and is not trained."));
    }
    let calls = lengths(case).len();
    let fetched = seen.count(CallKind::ToHost);
    if fetched > 0 {
        return Err(Diagnosis::new("scores-fetched", "Each call fetches the GPU's results to the CPU.")
            .seen(format!(
                "{fetched} copies to the CPU in {calls} calls, {} bytes, and the host waits for each",
                seen.bytes(CallKind::ToHost)
            ))
            .expected("none")
            .idea("The data is large, and the mask is small. Make the small one where the large one is.")
            .at(seen.line(CallKind::ToHost)));
    }
    let copies = seen.count(CallKind::ToDevice);
    if copies > 0 {
        return Err(Diagnosis::new("copied-every-call", "Each call copies its mask to the GPU.")
            .seen(format!("{copies} copies in {calls} calls"))
            .expected("none: a kernel can count as well as the host can")
            .idea("It runs, but each call pays for a copy, and the host waits for it. Make the tensor where it is needed.")
            .at(seen.line(CallKind::ToDevice)));
    }
    let launches = |seen: &Seen| seen.count(CallKind::Launch);
    let rows: usize = lengths(case).iter().sum();
    if launches(seen) >= launches(right) + rows {
        return Err(Diagnosis::new("one-by-one", "The mask is made number by number.")
            .seen(format!("{} kernels for {rows} rows in {calls} calls", launches(seen)))
            .expected(format!("about {}, however many rows there are", launches(right)))
            .idea("A kernel for one number costs the host as much time as one for a million. Ask for all of them at once.")
            .at(seen.line(CallKind::Launch)));
    }

    let of_result = |says: &str| {
        Diagnosis::new("result", says)
            .expected("means of each row and the rows before it")
            .idea("The mask should still hide the same rows wherever it is made: look at its sign, and at its diagonal.")
    };
    let everywhere = right.facts.iter().filter(|(name, _)| name.starts_with("c")); // cpu, cuda:1
    let pairs = everywhere.map(|(name, value)| (name.as_str(), seen.fact(name), value));
    for (name, outputs, right) in pairs.chain([("the first device", outputs, right.value())]) {
        if matches!(right, Value::List(_)) && !are_near(outputs, right) {
            return Err(of_result("The module computes something else.").seen(match name {
                "cpu" => "other results on the CPU".to_owned(),
                _ => format!("other results on {name}"),
            }));
        }
    }
    let types = |value: &Value| -> Vec<String> {
        let dtype = |value: &Value| match value {
            Value::Tensor { dtype, .. } => dtype.clone(),
            _ => String::new(),
        };
        value.list().iter().map(dtype).collect()
    };
    if types(seen.fact("float16")) != types(right.fact("float16")) {
        return Err(wrong_type().seen(format!("results of type {}", types(seen.fact("float16")).join(", "))));
    }
    if !seen.fact("float16").list().iter().flat_map(numbers).all(|x| x.is_finite()) {
        return Err(of_result("In float16 the results are not numbers.").seen("NaN, or infinity"));
    }
    Ok(())
}

/// What an error means, which came on one of the machine's other devices if `place` says so.
fn failed(place: &Value, constants: bool, message: &str, mismatch: bool) -> Option<Diagnosis> {
    let of_type = message.contains("scalar type") || message.contains("dtype");
    let on = match place {
        Value::Text(place) if place == "cpu" => "the CPU",
        Value::Text(place) => place.as_str(),
        _ => "",
    };
    if message.contains("NVIDIA driver") {
        return Some(Diagnosis::new("hard-coded", "It fails on a machine that has no GPU.")
            .seen(message)
            .expected("a mask on the CPU, where the input is")
            .idea("A module does not decide where it computes: its input does, and a tensor can be asked where it is."));
    }
    if message.contains("must match the size") {
        return Some(Diagnosis::new("one-length", "The mask fits sequences of one length only.")
            .seen(message)
            .expected("a mask as long as the sequence")
            .idea("The next sequence may be shorter. Take as much of a prepared tensor as there are rows, or make it anew."));
    }
    if constants && (mismatch || of_type) {
        return Some(Diagnosis::new("plain-field", "The module was moved or converted, and a tensor in one of its fields was not.")
            .seen(message)
            .expected("a tensor that goes where the module goes, or that is made there")
            .idea("Moving a module moves its parameters and its buffers. It does not know of other fields."));
    }
    if mismatch && !on.is_empty() {
        return Some(Diagnosis::new("device-guessed", format!("The module and its input are on {on}, but the mask is not."))
            .seen(format!("an error on {on} of a machine that has a GPU"))
            .expected("a mask on the same device, whichever that is")
            .idea("A GPU that is there need not be in use. The input knows its device; `cuda_if_available` guesses."));
    }
    if mismatch {
        return Some(Diagnosis::new("made-on-the-cpu", "The mask is on the CPU, and the scores are on the GPU.")
            .seen("a tensor of the forward pass that no `.to` could move, because it did not exist yet")
            .expected("a mask where the scores are")
            .idea("A new tensor is on the CPU unless you say otherwise, even in a forward pass. Moving the module moves only what it has."));
    }
    if of_type {
        return Some(wrong_type().seen(message));
    }
    None
}

fn wrong_type() -> Diagnosis {
    Diagnosis::new("wrong-type", "In float16 the module fails, or is no longer float16.")
        .expected("a mask of the type of the scores")
        .idea(
            "A new tensor is float32 unless you say otherwise. With scores in float16 their difference is float32, and the \
             next product has two types.",
        )
}

/// Whether tensors are as near as 0.1 %, as a whole: other arithmetic in float32 is off by some 2^-24 a step.
fn are_near(a: &Value, b: &Value) -> bool {
    let near = |a: &Value, b: &Value| {
        let (a, b) = (numbers(a), numbers(b));
        let square = |x: f64| x * x;
        let off: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
        a.len() == b.len() && off < square(1e-3) * b.iter().copied().map(square).sum::<f64>()
    };
    a.list().len() == b.list().len() && a.list().iter().zip(b.list()).all(|(a, b)| near(a, b))
}

fn numbers(value: &Value) -> &[f64] {
    match value {
        Value::Tensor { values, .. } => values,
        _ => &[],
    }
}
