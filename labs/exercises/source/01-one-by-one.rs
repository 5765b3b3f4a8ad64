//! Numbers that cross the bus one at a time.

use todevice::cuda;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// The length of each vector: the square root of the sum of its squares. It is
    /// computed on the device. The result is on the CPU.
    pub fn lengths(vectors: &[Vec<f32>], device: Device) -> Result<Tensor> {
        let sizes = [vectors.len(), vectors[0].len()];
        let x = Tensor::from_slice(&vectors.concat(), &sizes)?;
        let x = x.to(device)?;
        let lengths = (&x * &x)?.sum_dims(&[1], false)?.sqrt()?;
        lengths.cpu()
    }
    // END
}

type Lengths = fn(&[Vec<f32>], Device) -> Result<Tensor>;

const SIZES: &str = "    let sizes = [vectors.len(), vectors[0].len()];\n";
const MAKE: &str = "    let x = Tensor::from_slice(&vectors.concat(), &sizes)?;\n";
const MOVE: &str = "    let x = x.to(device)?;\n";
const COMPUTE: &str = "    let lengths = (&x * &x)?.sum_dims(&[1], false)?.sqrt()?;\n";
const BACK: &str = "    lengths.cpu()\n";

pub static EXERCISE: Exercise = Exercise {
    id: "01-one-by-one",
    title: "One by one",
    kind: Kind::Fix,
    task: "`lengths` gets vectors of the same size, as plain numbers on the host, and computes the length of each on \
           the device. Its results are right, but most of its time goes into copying, because it moves the vectors one at a time. Make it move all its data to the device in one copy, and its result back in another. The \
           arithmetic has to stay on the device, and the result has to be a tensor on the CPU, as it is now.",
    hints: [
        "How many tensors are moved, and how many have to be?",
        "Put the numbers together where that costs no copy, and move the result.",
        "`vectors.concat()` is one long `Vec<f32>`, and `Tensor::from_slice(&numbers, &[rows, columns])?` makes a matrix of \
         it. Then one `.to(device)?` is enough.",
    ],
    afterwards: "A copy costs some ten microseconds, however small it is. You pay that for each call, not for \
                 each byte.",
    source: include_str!("01-one-by-one.rs"),
    functions: &[("lengths", "pub fn lengths(vectors: &[Vec<f32>], device: Device) -> Result<Tensor>")],
    skeleton: ROW_BY_ROW,
    styles: &[
        Style {
            name: "stacked_on_the_host",
            edits: &[
                (SIZES, "    let rows = vectors.iter().map(|vector| Tensor::new(&vector[..]));\n"),
                (MAKE, "    let rows = rows.collect::<Result<Vec<_>>>()?;\n"),
                (MOVE, "    let x = Tensor::stack(&rows, 0)?.to(device)?;\n"),
            ],
        },
        Style {
            name: "reshaped_there",
            edits: &[
                (SIZES, "    let numbers: Vec<f32> = vectors.iter().flatten().copied().collect();\n"),
                (MAKE, "    let x = Tensor::new(numbers)?.to(device)?;\n"),
                (MOVE, "    let x = x.reshape(&[vectors.len() as i64, -1])?;\n"),
                (COMPUTE, "    let lengths = x.pow(2.0)?.sum_dims(&[-1], false)?.sqrt()?;\n"),
                (BACK, "    lengths.to(Device::Cpu)\n"),
            ],
        },
        Style {
            name: "product_with_ones",
            edits: &[
                (MOVE, "    let x = x.to(device)?;\n    let ones = Tensor::ones((&[sizes[1]], device))?;\n"),
                (COMPUTE, "    let lengths = (&x * &x)?.matmul(&ones)?.sqrt()?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "row_by_row",
            what: "Each vector is moved on its own.",
            edits: ROW_BY_ROW,
            diagnosis: "row-by-row",
        },
        Wrong {
            name: "number_by_number",
            what: "Each number is moved on its own.",
            edits: &[
                (SIZES, "    let mut numbers = Vec::new();\n"),
                (
                    MAKE,
                    "    for &number in vectors.iter().flatten() {\n        \
                     numbers.push(Tensor::new(number)?.to(device)?);\n    }\n",
                ),
                (MOVE, "    let x = Tensor::stack(&numbers, 0)?;\n    let x = x.reshape(&[vectors.len() as i64, -1])?;\n"),
            ],
            diagnosis: "number-by-number",
        },
        Wrong {
            name: "column_by_column",
            what: "The first numbers of all vectors are moved, then the second ones, and so on.",
            edits: &[
                (SIZES, "    let mut columns = Vec::new();\n"),
                (
                    MAKE,
                    "    for i in 0..vectors[0].len() {\n        \
                     let column: Vec<f32> = vectors.iter().map(|vector| vector[i]).collect();\n        \
                     columns.push(Tensor::new(column)?.to(device)?);\n    }\n",
                ),
                (MOVE, "    let x = Tensor::stack(&columns, 1)?;\n"),
            ],
            diagnosis: "in-pieces",
        },
        Wrong {
            name: "selected",
            what: "The matrix is moved, but the length of each row is computed on its own.",
            edits: &[(
                COMPUTE,
                "    let mut lengths = Vec::new();\n    for i in 0..vectors.len() {\n        \
                 let row = x.select(0, i as i64)?;\n        lengths.push((&row * &row)?.sum()?.sqrt()?);\n    }\n    \
                 let lengths = Tensor::stack(&lengths, 0)?;\n",
            )],
            diagnosis: "kernels-row-by-row",
        },
        Wrong {
            name: "back_one_by_one",
            what: "The lengths come back one by one.",
            edits: &[(
                BACK,
                "    let mut back = Vec::new();\n    for i in 0..vectors.len() {\n        \
                 back.push(lengths.get(i as i64)?.item()?);\n    }\n    Tensor::new(back)\n",
            )],
            diagnosis: "back-one-by-one",
        },
        Wrong {
            name: "on_the_cpu",
            what: "The lengths are computed on the CPU.",
            edits: &[(MOVE, "    let _ = device;\n")],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "half_on_the_cpu",
            what: "The squares come back, and are added up on the CPU.",
            edits: &[
                (COMPUTE, "    let squares = (&x * &x)?.cpu()?;\n    let lengths = squares.sum_dims(&[1], false)?.sqrt()?;\n"),
                (BACK, "    Ok(lengths)\n"),
            ],
            diagnosis: "half-on-the-cpu",
        },
        Wrong {
            name: "squared_on_the_host",
            what: "The numbers are squared on the host, before they are moved.",
            edits: &[
                (SIZES, "    let sizes = [vectors.len(), vectors[0].len()];\n    let squares: Vec<f32> = vectors.concat().iter().map(|v| v * v).collect();\n"),
                (MAKE, "    let x = Tensor::from_slice(&squares, &sizes)?;\n"),
                (COMPUTE, "    let lengths = x.sum_dims(&[1], false)?.sqrt()?;\n"),
            ],
            diagnosis: "squared-on-the-host",
        },
        Wrong {
            name: "computed_on_the_host",
            what: "The lengths are computed on the host, and taken to the GPU for show.",
            edits: &[
                (SIZES, "    let length = |vector: &Vec<f32>| vector.iter().map(|v| v * v).sum::<f32>();\n"),
                (MAKE, "    let x = Tensor::new(vectors.iter().map(length).collect::<Vec<f32>>())?;\n"),
                (COMPUTE, "    let lengths = (x.sqrt()? * 1.0)?;\n"),
            ],
            diagnosis: "computed-on-the-host",
        },
        Wrong {
            name: "another_device",
            what: "The function chooses the GPU itself, whatever `device` says.",
            edits: &[(MOVE, "    let _ = device;\n    let x = x.to(Device::cuda_if_available())?;\n")],
            diagnosis: "another-device",
        },
        Wrong {
            name: "left_there",
            what: "The result stays on the device.",
            edits: &[(BACK, "    Ok(lengths)\n")],
            diagnosis: "left-there",
        },
        Wrong {
            name: "moved_twice",
            what: "The matrix is moved each time it is used.",
            edits: &[
                (MOVE, ""),
                (COMPUTE, "    let squares = (x.to(device)? * x.to(device)?)?;\n    let lengths = squares.sum_dims(&[1], false)?.sqrt()?;\n"),
            ],
            diagnosis: "moved-twice",
        },
        Wrong {
            name: "twice_the_bytes",
            what: "The numbers are converted to eight bytes each on the host, and then moved.",
            edits: &[
                (MOVE, "    let x = x.to((device, DType::F64))?;\n"),
                (BACK, "    lengths.to(DType::F32)?.cpu()\n"),
            ],
            diagnosis: "twice-the-bytes",
        },
        Wrong {
            name: "result_dropped",
            what: "The result of `.to` is dropped.",
            edits: &[
                (MOVE, "    x.to(device)?;\n"),
            ],
            diagnosis: "result-dropped",
        },
        Wrong {
            name: "half_moved",
            what: "Only one of the two factors is moved.",
            edits: &[
                (MOVE, "    let there = x.to(device)?;\n"),
                (COMPUTE, "    let lengths = (&there * &x)?.sum_dims(&[1], false)?.sqrt()?;\n"),
            ],
            diagnosis: "two-devices",
        },
        Wrong {
            name: "columns",
            what: "The sum is taken over the vectors instead of their numbers.",
            edits: &[(COMPUTE, "    let lengths = (&x * &x)?.sum_dims(&[0], false)?.sqrt()?;\n")],
            diagnosis: "lengths",
        },
    ],
    places: &[
        (
            "How the vectors get to the device",
            &[
                &[],
                ROW_BY_ROW,
                &[
                    (SIZES, "    let mut numbers = Vec::new();\n"),
                    (
                        MAKE,
                        "    for &number in vectors.iter().flatten() {\n        \
                         numbers.push(Tensor::new(number)?.to(device)?);\n    }\n",
                    ),
                    (MOVE, "    let x = Tensor::stack(&numbers, 0)?;\n    let x = x.reshape(&[vectors.len() as i64, -1])?;\n"),
                ],
                &[
                    (SIZES, "    let rows = vectors.iter().map(|vector| Tensor::new(&vector[..]));\n"),
                    (MAKE, "    let rows = rows.collect::<Result<Vec<_>>>()?;\n"),
                    (MOVE, "    let x = Tensor::stack(&rows, 0)?.to(device)?;\n"),
                ],
                &[(MOVE, "    x.to(device)?;\n")],
            ],
        ),
        (
            "How the lengths are computed",
            &[
                &[],
                &[(
                    COMPUTE,
                    "    let mut lengths = Vec::new();\n    for i in 0..vectors.len() {\n        \
                     let row = x.select(0, i as i64)?;\n        lengths.push((&row * &row)?.sum()?.sqrt()?);\n    }\n    \
                     let lengths = Tensor::stack(&lengths, 0)?;\n",
                )],
                &[(COMPUTE, "    let squares = (&x * &x)?.cpu()?;\n    let lengths = squares.sum_dims(&[1], false)?.sqrt()?;\n")],
            ],
        ),
        (
            "How they come back",
            &[
                &[],
                &[(
                    BACK,
                    "    let mut back = Vec::new();\n    for i in 0..vectors.len() {\n        \
                     back.push(lengths.get(i as i64)?.item()?);\n    }\n    Tensor::new(back)\n",
                )],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none", "sim:t4x2"],
    sizes: &[12, 40],
    observe: |case| observe(case, solution::lengths),
    judge,
};

const ROW_BY_ROW: &[(&str, &str)] = &[
    (SIZES, "    let mut rows = Vec::new();\n"),
    (
        MAKE,
        "    for vector in vectors {\n        rows.push(Tensor::new(&vector[..])?.to(device)?);\n    }\n",
    ),
    (MOVE, "    let x = Tensor::stack(&rows, 0)?;\n"),
];

/// The size of a case is the number of vectors. How long they are depends on the seed.
pub fn observe(case: &Case, lengths: Lengths) -> Seen {
    case.machine().enter(|| {
        let vectors = given(case).expect("they are numbers");
        // The driver is asked for memory before, so that a timeline shows what is copied.
        Tensor::zeros((&[1], device(case))).expect("the machine is new");
        crate::observe(case, || lengths(&vectors, device(case)), |facts| {
            let elsewhere = case.gpu == TWO && cuda::device(0, cuda::max_memory_allocated)? > 0;
            facts.insert("elsewhere".to_owned(), Value::Flag(elsewhere));
            Ok(())
        })
    })
}

/// A machine where `device` is the GPU that nobody takes unless told to.
const TWO: &str = "sim:t4x2";

fn device(case: &Case) -> Device {
    if case.gpu == TWO { Device::cuda(1) } else { case.device() }
}

fn numbers(case: &Case) -> usize {
    5 + case.seed as usize % 4
}

fn given(case: &Case) -> Result<Vec<Vec<f32>>> {
    manual_seed(case.seed);
    (0..case.size).map(|_| Tensor::randn(&[numbers(case)])?.to_vec()).collect()
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let (rows, all) = (case.size, case.size * numbers(case));
    if let Ended::Failed { operands, .. } = &seen.ended
        && !operands.is_empty()
    {
        return Err(Diagnosis::new("two-devices", "One tensor of an operation is on the GPU, and another is not.")
            .seen("a product of tensors on two devices")
            .expected("both factors on the GPU")
            .idea("An operation runs where its tensors are, so all of them have to be in one place.")
            .report(seen));
    }
    let lengths = seen.returned()?;
    let (there, back) = (seen.count(CallKind::ToDevice), seen.count(CallKind::ToHost));
    if seen.fact("elsewhere") == &Value::Flag(true) {
        return Err(Diagnosis::new("another-device", "The work runs on another GPU than the one that `device` names.")
            .seen("memory of cuda:0 is used")
            .expected("memory of cuda:1, which is `device` here")
            .idea("The caller decides on the device, and the function uses the one that it is given."));
    }
    // Whoever adds up on the host has fewer numbers to move: the shortest vectors have five.
    if there > 0 && 2 * seen.bytes(CallKind::ToDevice) < right.bytes(CallKind::ToDevice) {
        return Err(Diagnosis::new("computed-on-the-host", "Not all of the vectors' numbers reach the GPU.")
            .seen(format!("{} bytes copied to the GPU", seen.bytes(CallKind::ToDevice)))
            .expected(format!("{}: 4 for each number", right.bytes(CallKind::ToDevice)))
            .idea("You move less, but only because the host has done the work. The arithmetic belongs on the device.")
            .at(seen.line(CallKind::ToDevice)));
    }
    let launches = seen.count(CallKind::Launch);
    if case.gpu != "none" && launches == 0 {
        if there > 0 {
            return Err(Diagnosis::new("result-dropped", "The numbers are copied to the GPU, and nothing is done with the copy.")
                .seen(format!("{} to the GPU, and no kernel", copies(there)))
                .idea("A tensor's `.to` returns another tensor. The one it was called on stays on the CPU.")
                .at(seen.line(CallKind::ToDevice)));
        }
        return Err(Diagnosis::new("on-the-cpu", "The lengths are computed on the CPU.")
            .seen("no copy to the GPU, and no kernel on it")
            .expected("one copy, and the arithmetic on the GPU")
            .idea("That does save the copies, but `device` says where to compute."));
    }
    if lengths.device().is_some_and(|device| device != "cpu") {
        return Err(Diagnosis::new("left-there", "The result is still on the GPU.")
            .seen(format!("a tensor on {}", lengths.device().unwrap_or_default()))
            .expected("a tensor on the CPU")
            .idea("Nothing comes back by itself. `.cpu()` and `.to(Device::Cpu)` copy a whole tensor in one go."));
    }
    if case.gpu != "none" {
        let copied = |diagnosis: Diagnosis| {
            diagnosis
                .seen(format!("{} to the GPU, {} bytes in all", copies(there), seen.bytes(CallKind::ToDevice)))
                .expected(format!("1, of {} bytes", right.bytes(CallKind::ToDevice)))
                .at(seen.line(CallKind::ToDevice))
        };
        if there >= all {
            return Err(copied(Diagnosis::new("number-by-number", "Each number is moved on its own."))
                .idea("A copy takes some ten microseconds however small it is. So put the numbers into one tensor, and move that.")
                .timelines(seen, right));
        }
        if there >= rows {
            return Err(copied(Diagnosis::new("row-by-row", "Each vector is moved on its own."))
                .idea("A copy takes some ten microseconds however small it is. So put the vectors into one tensor, and move that.")
                .timelines(seen, right));
        }
        // Whoever moves the numbers again moves all of their bytes.
        let bytes = seen.bytes(CallKind::ToDevice);
        if bytes >= 2 * right.bytes(CallKind::ToDevice) && there > 1 {
            return Err(copied(Diagnosis::new("moved-twice", "The same numbers are moved more than once."))
                .idea("`.to` copies whenever the tensor it is called on is elsewhere. Keep what it returns, and use that."));
        }
        if bytes >= 2 * right.bytes(CallKind::ToDevice) {
            return Err(copied(Diagnosis::new("twice-the-bytes", "Twice the bytes go over the bus."))
                .idea("The numbers were converted to 8 bytes each on the host, and then moved. If you need F64, move first and convert there."));
        }
        // A scalar or two may go there besides the numbers. The shortest vectors have five.
        if there > 3 {
            return Err(copied(Diagnosis::new("in-pieces", "The numbers are moved in pieces."))
                .idea("A copy takes some ten microseconds however small it is. Put the numbers into one tensor, and move that.")
                .timelines(seen, right));
        }
        let returned = |diagnosis: Diagnosis| {
            diagnosis
                .seen(format!("{} to the host, {} bytes in all", copies(back), seen.bytes(CallKind::ToHost)))
                .expected(format!("1, of {} bytes", right.bytes(CallKind::ToHost)))
                .at(seen.line(CallKind::ToHost))
        };
        if back >= rows {
            return Err(returned(Diagnosis::new("back-one-by-one", "The lengths come back one by one."))
                .idea("Each `item()` is a copy, and a wait. Bring the whole result back in one copy, too.")
                .timelines(seen, right));
        }
        // The lengths in F64 are twice these bytes. The squares are more, because a vector has at least five numbers.
        if seen.bytes(CallKind::ToHost) > 2 * right.bytes(CallKind::ToHost) {
            return Err(returned(Diagnosis::new("half-on-the-cpu", "More comes back than the lengths."))
                .idea("If you finish the work on the CPU, you have to copy more numbers there. Finish it on the device: the result is smaller."));
        }
        if !seen.computed_on_the_gpu(right) {
            return Err(Diagnosis::new("half-on-the-cpu", "The GPU does little of the arithmetic.")
                .seen(format!("kernels on the GPU: {launches}"))
                .expected(format!("{}", right.count(CallKind::Launch)))
                .idea("All of the squares, sums and roots belong on the device."));
        }
        // Three or four kernels do it in any of the usual ways, however many vectors there are.
        if launches >= rows {
            return Err(Diagnosis::new("kernels-row-by-row", "The vectors are moved together, but their lengths are computed one by one.")
                .seen(format!("{launches} kernels"))
                .expected(format!("{}, whatever the number of vectors", right.count(CallKind::Launch)))
                .idea("A launch has its price, just as a copy does. One operation on the matrix does all rows: `sum_dims(&[1], false)` adds up each of them.")
                .at(seen.line(CallKind::Launch))
                .timelines(seen, right));
        }
    }
    // What is added up has been squared before, by a kernel. (A matrix product does both, and is no sum.)
    let operations: Vec<&str> = seen.of(CallKind::Launch).filter_map(|call| call.operation.as_deref()).collect();
    let sum = operations.iter().position(|operation| operation.starts_with("sum") || operation.starts_with("mean"));
    let moves = |operation: &&&str| ["_to_copy", "copy_", "clone", "cat", "stack"].contains(*operation);
    if sum.is_some_and(|at| operations[..at].iter().filter(|operation| !moves(operation)).count() == 0)
        && lengths.is_near(right.value(), 1e-5)
    {
        return Err(Diagnosis::new("squared-on-the-host", "The squares come to the GPU, and not the numbers.")
            .seen("the first kernel adds up, and none before it has squared the numbers")
            .expected("a kernel that squares them, and one that adds up")
            .idea("All of the arithmetic belongs on the device. There a product of two tensors is one line.")
            .at(seen.line(CallKind::Launch)));
    }
    // Sums of up to 8 squares in f32, in whatever order, differ by some 1e-7 of them.
    if !lengths.is_near(right.value(), 1e-5) {
        return Err(Diagnosis::new("lengths", "The result is not the lengths of these vectors.")
            .seen(shape(lengths))
            .expected(format!("{}: a length for each vector", shape(right.value())))
            .idea("Square each number, add up the squares of each vector, and take the square root."));
    }
    Ok(())
}

fn copies(count: usize) -> String {
    if count == 1 { "1 copy".to_owned() } else { format!("{count} copies") }
}

/// The sizes of a tensor, and its first number.
fn shape(value: &Value) -> String {
    match value {
        Value::Tensor { sizes, values, .. } => match values.first() {
            Some(first) => format!("a tensor of sizes {sizes:?} that begins with {first:.4}"),
            None => "an empty tensor".to_owned(),
        },
        _ => "no tensor".to_owned(),
    }
}
