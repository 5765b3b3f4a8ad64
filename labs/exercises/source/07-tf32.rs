//! Ten bits, if you ask for them.

use todevice::backends::cuda::matmul;
use todevice::backends::cudnn;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::backends::cuda::matmul;
    use todevice::prelude::*;

    /// Multiplies two f32 matrices, with TF32 or without it. Whatever happens, the flag
    /// is afterwards what it was.
    pub fn product(a: &Tensor, b: &Tensor, with_tf32: bool) -> Result<Tensor> {
        let before = matmul::allow_tf32();
        matmul::set_allow_tf32(with_tf32);
        let product = a.matmul(b);
        matmul::set_allow_tf32(before);
        product
    }
    // END
}

type Product = fn(&Tensor, &Tensor, bool) -> Result<Tensor>;

const BEFORE: &str = "    let before = matmul::allow_tf32();\n";
const SET: &str = "    matmul::set_allow_tf32(with_tf32);\n";
const MULTIPLY: &str = "    let product = a.matmul(b);\n";
const BACK: &str = "    matmul::set_allow_tf32(before);\n";
const RETURN: &str = "    product\n";
const USES: &str = "use todevice::backends::cuda::matmul;\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "07-same";

pub static EXERCISE: Exercise = Exercise {
    id: "07-tf32",
    title: "Ten bits, if you ask for them",
    kind: Kind::Write,
    task: "Write `product`. It multiplies two f32 matrices, and the caller says whether the card may round them to TF32. The flag for \
           matrix products belongs to the whole program, so restore its old value, even if the product fails. Touch no other flag, \
           and give the GPU one product and nothing else.",
    hints: [
        "There are two flags for TF32. Which one is for matrix products?",
        "Read the flag, set it, multiply, and set it back. What does a `?` after the product leave out?",
        "`let before = matmul::allow_tf32();`, and after `let product = a.matmul(b);` without a `?` comes `matmul::set_allow_tf32(before);`.",
    ],
    afterwards: "A T4 multiplies in f32 whatever the flag says. On an H200 the two products differ in the fourth digit.",
    source: include_str!("07-tf32.rs"),
    functions: &[("product", "pub fn product(a: &Tensor, b: &Tensor, with_tf32: bool) -> Result<Tensor>")],
    skeleton: &[
        (BEFORE, "    // Allow TF32 or forbid it, and put the flag back afterwards.\n"),
        (SET, "    let _ = (matmul::allow_tf32(), with_tf32);\n"),
        (MULTIPLY, "    let _product = a.matmul(b);\n"),
        (BACK, ""),
        (RETURN, "    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "precision",
            edits: &[
                (USES, "use todevice::{Float32MatmulPrecision, get_float32_matmul_precision, set_float32_matmul_precision};\n"),
                (BEFORE, "    let before = get_float32_matmul_precision();\n"),
                (
                    SET,
                    "    use Float32MatmulPrecision::{High, Highest};\n    \
                     set_float32_matmul_precision(if with_tf32 { High } else { Highest });\n",
                ),
                (BACK, "    set_float32_matmul_precision(before);\n"),
            ],
        },
        Style {
            name: "guard",
            edits: &[
                (
                    USES,
                    "use todevice::backends::cuda::matmul;\n\nstruct Before(bool);\n\nimpl Drop for Before {\n    fn drop(&mut self) {\n        \
                     matmul::set_allow_tf32(self.0);\n    }\n}\n",
                ),
                (BEFORE, "    let _before = Before(matmul::allow_tf32());\n"),
                (MULTIPLY, ""),
                (BACK, ""),
                (RETURN, "    a.matmul(b)\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "not_put_back",
            what: "The flag stays as the last product wanted it.",
            edits: &[(BEFORE, ""), (BACK, "")],
            diagnosis: "not-put-back",
        },
        Wrong {
            name: "put_to_false",
            what: "Afterwards TF32 is forbidden, as it is in a new program.",
            edits: &[(BEFORE, ""), (BACK, "    matmul::set_allow_tf32(false);\n")],
            diagnosis: "put-to-false",
        },
        Wrong {
            name: "question_mark",
            what: "If the product fails, the function returns before the flag is put back.",
            edits: &[(MULTIPLY, "    let product = a.matmul(b)?;\n"), (RETURN, "    Ok(product)\n")],
            diagnosis: "not-put-back-after-an-error",
        },
        Wrong {
            name: "flag_of_convolutions",
            what: "The flag for convolutions is set.",
            edits: &[
                (USES, "use todevice::backends::cudnn;\n"),
                (BEFORE, "    let before = cudnn::allow_tf32();\n"),
                (SET, "    cudnn::set_allow_tf32(with_tf32);\n"),
                (BACK, "    cudnn::set_allow_tf32(before);\n"),
            ],
            diagnosis: "not-allowed",
        },
        Wrong {
            name: "both_flags",
            what: "Convolutions lose their TF32, too.",
            edits: &[
                (USES, "use todevice::backends::cuda::matmul;\nuse todevice::backends::cudnn;\n"),
                (SET, "    matmul::set_allow_tf32(with_tf32);\n    cudnn::set_allow_tf32(with_tf32);\n"),
            ],
            diagnosis: "convolutions",
        },
        Wrong {
            name: "turned_around",
            what: "TF32 is allowed when it should not be.",
            edits: &[(SET, "    matmul::set_allow_tf32(!with_tf32);\n")],
            diagnosis: "turned-around",
        },
        Wrong {
            name: "only_allows",
            what: "TF32 is allowed if the caller wants it, and never forbidden.",
            edits: &[(SET, "    if with_tf32 {\n        matmul::set_allow_tf32(true);\n    }\n")],
            diagnosis: "never-forbidden",
        },
        Wrong {
            name: "halves",
            what: "The product is computed in f16, which has ten bits as well, and a smaller range.",
            edits: &[
                (
                    MULTIPLY,
                    "    let product = match with_tf32 {\n        true => a.to(DType::F16)?.matmul(&b.to(DType::F16)?)?.to(DType::F32),\n        \
                     false => a.matmul(b),\n    };\n",
                ),
            ],
            diagnosis: "another-type",
        },
        Wrong {
            name: "doubles",
            what: "Without TF32 the product is computed in f64.",
            edits: &[
                (
                    MULTIPLY,
                    "    let product = match with_tf32 {\n        true => a.matmul(b),\n        \
                     false => a.to(DType::F64)?.matmul(&b.to(DType::F64)?)?.to(DType::F32),\n    };\n",
                ),
            ],
            diagnosis: "doubles",
        },
        Wrong {
            name: "twice",
            what: "The product is computed twice, and one of the two is kept.",
            edits: &[
                (SET, "    let exact = a.matmul(b);\n    matmul::set_allow_tf32(true);\n"),
                (RETURN, "    if with_tf32 { product } else { exact }\n"),
            ],
            diagnosis: "twice",
        },
    ],
    places: &[],
    gpus: &["sim:h200", "sim:t4"],
    sizes: &[16, 48],
    observe: |case| observe(case, solution::product),
    judge,
};

/// The flag before each call, what the caller wants, and whether the matrices fit together.
const CALLS: [(bool, bool, bool); 6] = [
    (false, true, true),
    (true, false, true),
    (true, true, true),
    (false, false, true),
    (false, true, false),
    (true, false, false),
];

/// The size of a case is the number of rows.
pub fn observe(case: &Case, product: Product) -> Seen {
    case.machine().enter(|| {
        manual_seed(case.seed);
        let matrix = || Tensor::randn(&[case.size, case.size])?.to(case.device());
        let (a, b) = (matrix().expect("it is small"), matrix().expect("it is small"));
        let wrong = a.narrow(0, 0, case.size - 1).expect("it is smaller");
        let mut flags = Vec::new();
        let mut seen = crate::observe(
            case,
            || {
                let mut products = Vec::new();
                for (before, with_tf32, fits) in CALLS {
                    matmul::set_allow_tf32(before);
                    cudnn::set_allow_tf32(before);
                    let result = product(&a, if fits { &b } else { &wrong }, with_tf32);
                    flags.push([matmul::allow_tf32(), cudnn::allow_tf32()].into_value()?);
                    products.push(match (result, fits) {
                        (Ok(product), _) => product.into_value()?,
                        (Err(_), false) => Value::None,
                        (Err(error), true) => return Err(error),
                    });
                }
                Ok(Value::List(products))
            },
            |_| Ok(()),
        );
        seen.facts.insert("flags".to_owned(), Value::List(flags));
        seen
    })
}

fn judge(_: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let products = seen.returned()?.list();
    let wanted = right.value().list();
    let allowed = |flag: bool| if flag { "allowed" } else { "forbidden" };
    let flag = |call: usize, which: usize| seen.fact("flags").list()[call].list()[which] == Value::Flag(true);
    let types = |name: &str| seen.of(CallKind::Launch).any(|call| call.types.iter().any(|of| of == name));
    for (name, id, says, idea) in [
        (
            "torch.float16",
            "another-type",
            "The product is computed in f16.",
            "f16 has the ten bits of TF32, but only five for the exponent. TF32 is no type: tensors stay f32, and a flag decides.",
        ),
        (
            "torch.float64",
            "doubles",
            "The product is computed in f64.",
            "Without TF32 a product of f32 is exact to f32's digits. More was not asked for, and f64 is slow on most cards.",
        ),
    ] {
        if types(name) {
            return Err(Diagnosis::new(id, says)
                .seen(format!("kernels that compute in {}", &name["torch.".len()..]))
                .expected("one product of float32")
                .idea(idea)
                .at(seen.line(CallKind::Launch)));
        }
    }
    for (call, (before, with_tf32, fits)) in CALLS.into_iter().enumerate() {
        if flag(call, 1) != before {
            return Err(Diagnosis::new("convolutions", "The flag for convolutions has changed.")
                .seen(format!("TF32 for convolutions: {}", allowed(flag(call, 1))))
                .expected(allowed(before))
                .idea("`cudnn` has the flag for convolutions, and `matmul` the one for products. Leave the first alone."));
        }
        if flag(call, 0) != before {
            let (id, says, idea) = match (fits, flag(call, 0)) {
                (false, _) => (
                    "not-put-back-after-an-error",
                    "If the product fails, the flag is not put back.",
                    "`?` returns at once. Keep the `Result`, put the flag back, and return it then.",
                ),
                (true, false) if !with_tf32 || flag(0, 0) != with_tf32 => (
                    "put-to-false",
                    "Afterwards TF32 is forbidden, whatever it was before.",
                    "The caller may have allowed it. Ask first: `matmul::allow_tf32()`.",
                ),
                _ => (
                    "not-put-back",
                    "The flag is not what it was before the call.",
                    "It is a setting of the whole program. Note it before you change it, and put it back.",
                ),
            };
            return Err(Diagnosis::new(id, says)
                .seen(format!("TF32 for products: {}", allowed(flag(call, 0))))
                .expected(allowed(before))
                .idea(idea));
        }
    }
    let calls: usize = seen.of(CallKind::Launch).filter(|call| call.name == "gemm").count();
    let wanted_calls = right.of(CallKind::Launch).filter(|call| call.name == "gemm").count();
    if calls > wanted_calls {
        return Err(Diagnosis::new("twice", "There are more products than were asked for.")
            .seen(format!("{calls} products in {wanted_calls} calls"))
            .expected(wanted_calls.to_string())
            .idea("Decide first, and multiply once.")
            .at(seen.line(CallKind::Launch)));
    }
    let same: Vec<bool> = products.iter().zip(wanted).map(|(own, wanted)| own.is_near(wanted, 0.0)).collect();
    if same.iter().all(|same| *same) {
        return match seen.count(CallKind::Launch) > right.count(CallKind::Launch) {
            true => Err(Diagnosis::new("more-kernels", "The GPU does more than multiply.")
                .seen(format!("{} kernels", seen.count(CallKind::Launch)))
                .expected(right.count(CallKind::Launch).to_string())
                .idea("The card rounds on the way into its tensor cores. Nothing has to be rounded by hand.")),
            false => Ok(()),
        };
    }
    let told = |id: &str, says: &str, idea: &str| {
        let at = same.iter().position(|same| !same).unwrap_or(0);
        Err(Diagnosis::new(id, says)
            .seen(format!("with TF32 {}: another product", allowed(CALLS[at].1)))
            .expected("the digits that the caller asked for")
            .idea(idea))
    };
    // Of the calls that fit: flag off and wanted, flag on and not wanted, both, neither.
    match same[..4] {
        [false, false, false, false] => told("turned-around", "TF32 is allowed when it should be forbidden.", "`true` allows it."),
        [true, false, true, true] => told(
            "never-forbidden",
            "TF32 is used although the caller does not want it.",
            "The flag may be on already. Set it to what the caller wants, `true` or `false`.",
        ),
        [false, false, true, true] => told(
            "not-allowed",
            "The product is the same whatever the caller wants.",
            "There are two flags. `backends::cuda::matmul` has the one for products, `cudnn` the one for convolutions.",
        ),
        _ => told("other-digits", "A product has other digits than the caller asked for.", "Set the flag before the product, and put it back after it."),
    }
}
