//! An exercise of a teacher's own: the means of columns, of which only the result has to leave the GPU.

use exercises::{CallKind, Case, Diagnosis, Exercise, Kind, Seen, Style, Wrong};
use todevice::prelude::*;

/// The student's file when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// The mean of each column of a matrix, as a tensor on the CPU.
    pub fn column_means(x: &Tensor) -> Result<Tensor> {
        let means = x.mean_dims(&[0], false)?;
        means.cpu()
    }
    // END
}

type ColumnMeans = fn(&Tensor) -> Result<Tensor>;

pub static EXERCISE: Exercise = Exercise {
    id: "02-column-means",
    title: "The means of columns",
    kind: Kind::Fix,
    task: "`column_means` gives the right numbers, but it copies the whole matrix to the CPU first. Change it so that only the \
           means are copied.",
    hints: [
        "An operation runs where its tensors are. Where is `x` when the mean is computed?",
        "Look at the order of the two calls.",
        "Compute the mean first, with `x.mean_dims(&[0], false)?`, and call `.cpu()` on the result.",
    ],
    afterwards: "A reduction makes much into little: reduce first, and copy the little.",
    source: include_str!("02-column-means.rs"),
    functions: &[("column_means", "pub fn column_means(x: &Tensor) -> Result<Tensor>")],
    skeleton: COPIED_FIRST,
    styles: &[Style {
        name: "in_one_line",
        edits: &[(
            "    let means = x.mean_dims(&[0], false)?;\n    means.cpu()\n",
            "    x.mean_dims(&[0], false)?.to(Device::Cpu)\n",
        )],
    }],
    wrong: &[
        Wrong {
            name: "copied_first",
            what: "The matrix is copied, and the CPU computes.",
            edits: COPIED_FIRST,
            diagnosis: "copied-first",
        },
        Wrong {
            name: "left_there",
            what: "The means stay on the GPU.",
            edits: &[("means.cpu()", "Ok(means)")],
            diagnosis: "left-there",
        },
        Wrong {
            name: "of_rows",
            what: "The means are those of the rows.",
            edits: &[("&[0]", "&[1]")],
            diagnosis: "means",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200"],
    sizes: &[16, 100],
    observe: |case| observe(case, solution::column_means),
    judge,
};

const COPIED_FIRST: &[(&str, &str)] =
    &[("x.mean_dims", "x.cpu()?.mean_dims"), ("    means.cpu()\n", "    Ok(means)\n")];

/// Runs the student's code, on a machine of its own. What it is given depends on the case and on nothing else.
pub fn observe(case: &Case, column_means: ColumnMeans) -> Seen {
    case.machine().enter(|| {
        manual_seed(case.seed);
        let x = Tensor::randn(&[case.size, 8]).and_then(|x| x.to(case.device())).expect("it fits");
        exercises::observe(case, || column_means(&x), |_| Ok(()))
    })
}

/// Compares what the student's code did with what the solution did.
fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let means = seen.returned()?;
    if means.device() != Some("cpu") {
        return Err(Diagnosis::new("left-there", "The means are still on the GPU.")
            .expected("a tensor on the CPU")
            .idea("`.cpu()` returns a copy on the CPU."));
    }
    let (bytes, expected) = (seen.bytes(CallKind::ToHost), right.bytes(CallKind::ToHost));
    if bytes > 2 * expected {
        return Err(Diagnosis::new("copied-first", "More than the means is copied to the CPU.")
            .seen(format!("{bytes} bytes for a matrix of {} × 8", case.size))
            .expected(format!("{expected} bytes"))
            .idea("Compute where the data is, and copy the result.")
            .at(seen.line(CallKind::ToHost)));
    }
    if !means.is_near(right.value(), 1e-5) {
        return Err(Diagnosis::new("means", "These are not the means of the columns.")
            .idea("The first dimension is that of the rows: to average over it leaves a number for each column."));
    }
    Ok(())
}
