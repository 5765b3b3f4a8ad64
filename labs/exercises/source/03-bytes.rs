//! Bytes for nothing.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Adds a ramp from 0 to 1 along each row, and noise of its own for each number.
    pub fn with_ramp_and_noise(x: &Tensor, noise: f64) -> Result<Tensor> {
        let columns = x.size(1)?;
        let ramp = Tensor::linspace(0.0, 1.0, (columns, (x.device(), x.dtype())))?;
        let random = x.randn_like()?;
        (x + ramp)? + (random * noise)?
    }
    // END
}

type Add = fn(&Tensor, f64) -> Result<Tensor>;

const COLUMNS: &str = "    let columns = x.size(1)?;\n";
const RAMP: &str = "    let ramp = Tensor::linspace(0.0, 1.0, (columns, (x.device(), x.dtype())))?;\n";
const RANDOM: &str = "    let random = x.randn_like()?;\n";
const RETURN: &str = "    (x + ramp)? + (random * noise)?\n";

const RAMP_MOVED: crate::Edit =
    (RAMP, "    let ramp = Tensor::linspace(0.0, 1.0, (columns, x.dtype()))?.to(x.device())?;\n");
const RANDOM_MOVED: crate::Edit =
    (RANDOM, "    let random = Tensor::randn(x.sizes())?.to(x.dtype())?.to(x.device())?;\n");

/// The exercise before this one in the chapter.
pub const AFTER: &str = "03-accuracy";

pub static EXERCISE: Exercise = Exercise {
    id: "03-bytes",
    title: "Bytes for nothing",
    kind: Kind::Write,
    task: "Write `with_ramp_and_noise`. It adds to each row of `x` a ramp from 0 to 1, and to each number normal noise times `noise`. No \
           byte may cross the bus, and nothing may wait, on whatever device and in whatever type `x` is. The ramp is one row, and the \
           noise differs in each row.",
    hints: [
        "A function that makes a tensor can be told where. What follows the sizes in PyTorch is `device=` and `dtype=`.",
        "`linspace` takes device and type in a pair with its last argument. For noise there is a method of `x` that makes a tensor like it.",
        "`Tensor::linspace(0.0, 1.0, (columns, (x.device(), x.dtype())))?`, and `x.randn_like()?`.",
    ],
    afterwards: "The GPU has a generator of its own, so the noise is other noise than on the CPU, with the same seed.",
    source: include_str!("03-bytes.rs"),
    functions: &[("with_ramp_and_noise", "pub fn with_ramp_and_noise(x: &Tensor, noise: f64) -> Result<Tensor>")],
    skeleton: &[
        (RAMP, "    // A row from 0 to 1, and noise for each number, made where `x` is.\n"),
        (RANDOM, "    let _ = (columns, noise);\n"),
        (RETURN, "    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "counted",
            edits: &[(
                RAMP,
                "    let steps = Tensor::arange(0, columns as i64, (1, x.device()))?.to(DType::F32)?;\n    \
                 let ramp = (steps / (columns - 1) as f64)?.to(x.dtype())?;\n",
            )],
        },
        Style {
            name: "filled",
            edits: &[(RANDOM, "    let random = x.empty_like()?;\n    random.normal_(0.0, 1.0, None)?;\n")],
        },
    ],
    wrong: &[
        Wrong {
            name: "both_moved",
            what: "Both are made on the CPU and moved.",
            edits: &[RAMP_MOVED, RANDOM_MOVED],
            diagnosis: "both-moved",
        },
        Wrong {
            name: "noise_moved",
            what: "The noise is made on the CPU and moved.",
            edits: &[RANDOM_MOVED],
            diagnosis: "noise-moved",
        },
        Wrong {
            name: "ramp_moved",
            what: "The ramp is made on the CPU and moved.",
            edits: &[RAMP_MOVED],
            diagnosis: "ramp-moved",
        },
        Wrong {
            name: "left_on_the_cpu",
            what: "The ramp stays on the CPU.",
            edits: &[(RAMP, "    let ramp = Tensor::linspace(0.0, 1.0, (columns, x.dtype()))?;\n")],
            diagnosis: "ramp-left",
        },
        Wrong {
            name: "current_gpu",
            what: "The ramp is made on the current GPU, whatever GPU `x` is on.",
            edits: &[(RAMP, "    let ramp = Tensor::linspace(0.0, 1.0, (columns, (Device::cuda(0), x.dtype())))?;\n")],
            diagnosis: "another-gpu",
        },
        Wrong {
            name: "computed_on_the_cpu",
            what: "`x` goes to the CPU, and the sum comes back.",
            edits: &[
                (COLUMNS, "    let (device, x) = (x.device(), x.cpu()?);\n    let columns = x.size(1)?;\n"),
                (RETURN, "    ((&x + ramp)? + (random * noise)?)?.to(device)\n"),
            ],
            diagnosis: "x-moved",
        },
        Wrong {
            name: "another_type",
            what: "The ramp is in f32, and a sum with f16 becomes f32, too.",
            edits: &[(RAMP, "    let ramp = Tensor::linspace(0.0, 1.0, (columns, x.device()))?;\n")],
            diagnosis: "another-type",
        },
        Wrong {
            name: "same_noise",
            what: "All rows get the same noise.",
            edits: &[(RANDOM, "    let random = x.narrow(0, 0, 1)?.randn_like()?;\n")],
            diagnosis: "same-noise",
        },
        Wrong {
            name: "no_noise",
            what: "The noise is left out.",
            edits: &[(RANDOM, "    let random = x.zeros_like()?;\n")],
            diagnosis: "no-noise",
        },
        Wrong {
            name: "uniform_noise",
            what: "The noise is uniform, and never negative.",
            edits: &[(RANDOM, "    let random = x.rand_like()?;\n")],
            diagnosis: "other-noise",
        },
        Wrong {
            name: "ramp_along_columns",
            what: "The ramp ends before 1.",
            edits: &[(RAMP, "    let end = 1.0 - 1.0 / columns as f64;\n    let ramp = Tensor::linspace(0.0, end, (columns, (x.device(), x.dtype())))?;\n")],
            diagnosis: "another-ramp",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:t4x2", "none"],
    sizes: &[256, 600],
    observe: |case| observe(case, solution::with_ramp_and_noise),
    judge,
};

const COLUMNS_OF_X: usize = 64;
const NOISE: f64 = 0.01;

/// With two GPUs `x` is on the one that nobody takes unless told to. With an odd seed it is in f16.
fn given(case: &Case) -> Result<Tensor> {
    let device = if case.gpu == "sim:t4x2" { Device::cuda(1) } else { case.device() };
    let dtype = if case.seed % 2 == 1 { DType::F16 } else { DType::F32 };
    Tensor::ones(&[case.size, COLUMNS_OF_X])?.to(dtype)?.to(device)
}

/// The size of a case is the number of rows.
pub fn observe(case: &Case, add: Add) -> Seen {
    case.machine().enter(|| {
        manual_seed(case.seed);
        let x = given(case).expect("it is small");
        crate::observe(
            case,
            || add(&x, NOISE),
            |_| Ok(()),
        )
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Some(operand) = seen.left_behind() {
        return Err(Diagnosis::new("ramp-left", "A tensor is made on the CPU, and `x` is not there.")
            .seen(format!("`{}` is on the CPU", operand.name))
            .idea("Without a device, a tensor is made on the CPU. Say where: `x.device()`.")
            .report(seen));
    }
    if let Ended::Failed { operands, message, .. } = &seen.ended
        && (!operands.is_empty() || message.contains("NVIDIA") || message.contains("CUDA") || message.contains("invalid device"))
    {
        return Err(Diagnosis::new("another-gpu", "A tensor is made on a GPU that was not asked for.")
            .seen(message)
            .expected("everything on the device of `x`")
            .idea("`x.device()` is the one that fits, on a machine with two GPUs and on one with none."));
    }
    let value = seen.returned()?;
    let (Value::Tensor { device, dtype, values, .. }, Value::Tensor { device: right_device, dtype: right_dtype, values: wanted, .. }) =
        (value, right.value())
    else {
        return Ok(());
    };
    let to_host = seen.count(CallKind::ToHost);
    if to_host > 0 {
        return Err(Diagnosis::new("x-moved", "`x` goes to the CPU.")
            .seen(format!("{} bytes to the host", seen.bytes(CallKind::ToHost)))
            .expected("none")
            .idea("Make the ramp and the noise where `x` is, and leave `x` there.")
            .at(seen.line(CallKind::ToHost)));
    }
    let x_bytes = (case.size * COLUMNS_OF_X * if right_dtype == "torch.float16" { 2 } else { 4 }) as u64;
    let to_device = seen.bytes(CallKind::ToDevice);
    if to_device > 0 {
        let (id, says, idea) = if to_device > x_bytes {
            ("both-moved", "Ramp and noise are made on the CPU and copied.", "Both can be made where `x` is.")
        } else if to_device == x_bytes {
            ("noise-moved", "The noise is made on the CPU and copied.", "A GPU has a generator, too: `x.randn_like()?`.")
        } else {
            (
                "ramp-moved",
                "The ramp is made on the CPU and copied.",
                "It is small, and still the host waits for the copy in each call. `linspace` takes a device in a pair with `columns`.",
            )
        };
        return Err(Diagnosis::new(id, says)
            .seen(format!("{to_device} bytes to the GPU"))
            .expected("none")
            .idea(idea)
            .at(seen.line(CallKind::ToDevice)));
    }
    if device != right_device {
        return Err(Diagnosis::new("elsewhere", "The sum is not where `x` is.").seen(device).expected(right_device));
    }
    if dtype != right_dtype {
        return Err(Diagnosis::new("another-type", "The sum has another type than `x`.")
            .seen(dtype)
            .expected(right_dtype)
            .idea("f16 and f32 give f32. Make the ramp in the type of `x`: `(x.device(), x.dtype())`."));
    }
    let columns = |values: &[f64]| {
        let mut means = vec![0.0; COLUMNS_OF_X];
        values.iter().enumerate().for_each(|(at, value)| means[at % COLUMNS_OF_X] += value / case.size as f64);
        means
    };
    let own = columns(values);
    let ramp = |column: usize| 1.0 + column as f64 / (COLUMNS_OF_X - 1) as f64;
    // Against the ramp that is asked for: how far off on average, and how far the numbers scatter.
    let rest: Vec<f64> = values.iter().enumerate().map(|(at, value)| value - ramp(at % COLUMNS_OF_X)).collect();
    let mean = rest.iter().sum::<f64>() / rest.len() as f64;
    let scatter = (rest.iter().map(|rest| (rest - mean).powi(2)).sum::<f64>() / rest.len() as f64).sqrt();
    let told = |id: &str, says: &str, seen: String, expected: String, idea: &str| {
        Err(Diagnosis::new(id, says).seen(seen).expected(expected).idea(idea))
    };
    if values.len() != wanted.len() {
        return told("sizes", "The sum has other sizes than `x`.", values.len().to_string(), wanted.len().to_string(), "Add row by row.");
    }
    if scatter < 0.2 * NOISE {
        return told(
            "no-noise",
            "There is no noise.",
            format!("numbers that scatter by {scatter:.4}"),
            NOISE.to_string(),
            "Each number gets noise of its own.",
        );
    }
    let rows_alike = values[..COLUMNS_OF_X].iter().zip(&own).all(|(first, mean)| (first - mean).abs() < 1e-3);
    if rows_alike {
        return told(
            "same-noise",
            "Each row has the same noise.",
            "rows that are alike".to_owned(),
            "noise of its own in each".to_owned(),
            "The noise has the sizes of `x`. The ramp has those of a row.",
        );
    }
    let ends = own[COLUMNS_OF_X - 1] - own[0];
    if (ends - 1.0).abs() > 0.6 * NOISE {
        return told(
            "another-ramp",
            "The ramp does not go from 0 to 1.",
            format!("{ends:.3} from the first column to the last"),
            "1".to_owned(),
            "`linspace` reaches its end: the last of its steps is `end` itself.",
        );
    }
    if mean.abs() > 0.2 * NOISE || (scatter - NOISE).abs() > 0.2 * NOISE {
        return told(
            "other-noise",
            "The noise is not normal noise around 0.",
            format!("noise with mean {mean:.4} that scatters by {scatter:.4}"),
            format!("mean 0, scattering by {NOISE}"),
            "`rand` is uniform from 0 to 1. `randn` is normal around 0.",
        );
    }
    Ok(())
}
