//! Two versions of CUDA.

use todevice::monitor::Versions;
use todevice::prelude::*;

use crate::{Case, Diagnosis, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::monitor::Versions;
    use todevice::prelude::*;

    /// Whether a computer's driver runs a program whose libraries come from this CUDA,
    /// for example "12.9". `found` is what a monitor reads from the computer: `driver`
    /// is the driver's own version, `cuda` the newest CUDA that it can run.
    pub fn runs(found: &Versions, libraries: &str) -> Result<bool> {
        let Some(newest) = &found.cuda else {
            return Ok(false);
        };
        Ok(major(newest)? >= major(libraries)?)
    }

    /// The number before the first dot.
    fn major(version: &str) -> Result<u32> {
        let number = version.split('.').next().unwrap_or(version);
        number.parse().map_err(|_| Error::custom(format!("{version} is no version")))
    }
    // END
}

type Runs = fn(&Versions, &str) -> Result<bool>;

const NONE: &str = "    let Some(newest) = &found.cuda else {\n        return Ok(false);\n    };\n";
const COMPARE: &str = "    Ok(major(newest)? >= major(libraries)?)\n";
const MAJOR: &str = "    let number = version.split('.').next().unwrap_or(version);\n";
const PARSE: &str = "    number.parse().map_err(|_| Error::custom(format!(\"{version} is no version\")))\n";
const SIGNATURE: &str = "fn major(version: &str) -> Result<u32> {\n";

pub static EXERCISE: Exercise = Exercise {
    id: "00-versions",
    title: "Two versions of CUDA",
    kind: Kind::Write,
    task: "Write `runs`, which decides whether a computer can run a program that was compiled for its card. `found` has the two \
           versions that `nvidia-smi` prints. `libraries` is the version of the CUDA libraries that the program brings along. Follow \
           the table of this chapter: an older CUDA always works, and so does every CUDA of the same row. On a computer without a \
           driver nothing runs. `major` is there already.",
    hints: [
        "Which of the two versions of `found` can you compare with a version of CUDA?",
        "A row of the table is a major version, so the number after the dot does not matter.",
        "If `found.cuda` is `None`, return `Ok(false)`. Otherwise compare two calls of `major` with `>=`.",
    ],
    afterwards: "The number after the dot matters for PTX: a driver compiles PTX only from its own CUDA or an older one.",
    source: include_str!("00-versions.rs"),
    functions: &[("runs", "pub fn runs(found: &Versions, libraries: &str) -> Result<bool>")],
    skeleton: &[
        (NONE, ""),
        (COMPARE, "    // Compare two versions of CUDA. There may be no driver.\n    let _ = (found, major(libraries)?);\n    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "matched",
            edits: &[
                (NONE, ""),
                (
                    COMPARE,
                    "    match found.cuda.as_deref() {\n        Some(newest) => Ok(major(libraries)? <= major(newest)?),\n        \
                     None => Ok(false),\n    }\n",
                ),
            ],
        },
        Style {
            name: "compared_as_options",
            edits: &[
                (NONE, "    let newest = found.cuda.as_deref().map(major).transpose()?;\n"),
                (COMPARE, "    Ok(newest >= Some(major(libraries)?))\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "minor_counts",
            what: "Both numbers of the versions are compared.",
            edits: &[
                (SIGNATURE, "fn major(version: &str) -> Result<(u32, u32)> {\n"),
                (MAJOR, "    let (number, minor) = version.split_once('.').unwrap_or((version, \"0\"));\n"),
                (
                    PARSE,
                    "    let parsed = |text: &str| text.parse().map_err(|_| Error::custom(format!(\"{version} is no version\")));\n    \
                     Ok((parsed(number)?, parsed(minor)?))\n",
                ),
            ],
            diagnosis: "minor-counts",
        },
        Wrong {
            name: "as_numbers",
            what: "A version is read as a decimal number, so 12.10 is less than 12.9.",
            edits: &[
                (SIGNATURE, "fn major(version: &str) -> Result<f64> {\n"),
                (MAJOR, "    let number = version;\n"),
            ],
            diagnosis: "as-decimal",
        },
        Wrong {
            name: "as_text",
            what: "The numbers are compared as text, where 9 comes after 12.",
            edits: &[
                (SIGNATURE, "fn major(version: &str) -> Result<String> {\n"),
                (PARSE, "    Ok(number.to_owned())\n"),
            ],
            diagnosis: "as-text",
        },
        Wrong {
            name: "turned_around",
            what: "The comparison is the wrong way round.",
            edits: &[(COMPARE, "    Ok(major(newest)? <= major(libraries)?)\n")],
            diagnosis: "turned-around",
        },
        Wrong {
            name: "only_the_same",
            what: "Only libraries of the driver's own row are accepted.",
            edits: &[(COMPARE, "    Ok(major(newest)? == major(libraries)?)\n")],
            diagnosis: "only-the-same",
        },
        Wrong {
            name: "only_older",
            what: "Libraries of the driver's own row are refused.",
            edits: &[(COMPARE, "    Ok(major(newest)? > major(libraries)?)\n")],
            diagnosis: "only-older",
        },
        Wrong {
            name: "driver_number",
            what: "The driver's own version is compared. It counts drivers, and is far above every CUDA.",
            edits: &[(NONE, "    let Some(newest) = &found.driver else {\n        return Ok(false);\n    };\n")],
            diagnosis: "driver-number",
        },
        Wrong {
            name: "no_driver_runs",
            what: "Without a driver everything runs.",
            edits: &[(NONE, "    let Some(newest) = &found.cuda else {\n        return Ok(true);\n    };\n")],
            diagnosis: "no-driver",
        },
        Wrong {
            name: "no_driver_fails",
            what: "Without a driver there is an error instead of an answer.",
            edits: &[(
                NONE,
                "    let Some(newest) = &found.cuda else {\n        return Err(Error::custom(\"no driver\"));\n    };\n",
            )],
            diagnosis: "error",
        },
        Wrong {
            name: "everything_runs",
            what: "Whatever there is, the answer is yes.",
            edits: &[(NONE, ""), (COMPARE, "    let _ = (found, major(libraries)?);\n    Ok(true)\n")],
            diagnosis: "always-the-same",
        },
    ],
    places: &[],
    gpus: &["none", "sim:t4"],
    sizes: &[4, 8],
    observe: |case| observe(case, solution::runs),
    judge,
};

/// A driver's version, the newest CUDA that it can run, and the version of the libraries.
struct Row {
    driver: Option<(&'static str, String)>,
    libraries: String,
}

/// The size of a case is the number of random rows after the ones that each mistake needs.
fn rows(case: &Case) -> Vec<Row> {
    let row = |driver: &'static str, cuda: &str, libraries: &str| Row {
        driver: Some((driver, cuda.to_owned())),
        libraries: libraries.to_owned(),
    };
    let mut rows = vec![
        row("550.54", "12.4", "11.8"),
        row("550.54", "12.4", "12.4"),
        row("550.54", "12.4", "12.9"),
        row("550.54", "12.4", "13.0"),
        row("450.80", "11.0", "9.2"),
        row("535.10", "12.10", "12.9"),
        Row { driver: None, libraries: "12.4".to_owned() },
    ];
    let mut random = case.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |count: u64| {
        random ^= random >> 29;
        random = random.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(1);
        (random >> 33) % count
    };
    for _ in 0..case.size {
        let versions = [(); 2].map(|()| format!("{}.{}", 9 + below(5), below(13)));
        rows.push(row("580.65", &versions[0], &versions[1]));
    }
    rows
}

pub fn observe(case: &Case, runs: Runs) -> Seen {
    case.machine().enter(|| {
        let rows = rows(case);
        crate::observe(
            case,
            || {
                let mut answers = Vec::new();
                for row in &rows {
                    let mut found = Versions::default();
                    if let Some((driver, cuda)) = &row.driver {
                        (found.driver, found.cuda) = (Some((*driver).to_owned()), Some(cuda.clone()));
                    }
                    answers.push(runs(&found, &row.libraries)?);
                }
                Ok(answers)
            },
            |_| Ok(()),
        )
    })
}

/// Both numbers of a version.
fn parts(version: &str) -> (u32, u32) {
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

/// A mistake: what a row is told by it, and how to say so.
type Mistake = (&'static str, fn(&str, &str, &str) -> bool, &'static str, &'static str);

/// Of a driver's version, its CUDA, and the libraries.
const MISTAKES: [Mistake; 7] = [
    (
        "turned-around",
        |_, cuda, libraries| parts(cuda).0 <= parts(libraries).0,
        "It is the wrong way round.",
        "A driver runs what is older than itself. It cannot know what came after it.",
    ),
    (
        "only-the-same",
        |_, cuda, libraries| parts(cuda).0 == parts(libraries).0,
        "Libraries of an older row are refused.",
        "A driver runs what was made for its own CUDA or an older one.",
    ),
    (
        "only-older",
        |_, cuda, libraries| parts(cuda).0 > parts(libraries).0,
        "Libraries of the driver's own row are refused.",
        "Within a row everything works. Compare with `>=`.",
    ),
    (
        "minor-counts",
        |_, cuda, libraries| parts(cuda) >= parts(libraries),
        "Libraries of the same row are refused because of the number after the dot.",
        "A row of the table is a major version: libraries from CUDA 12.9 work with a driver for CUDA 12.4.",
    ),
    (
        "as-decimal",
        |_, cuda, libraries| cuda.parse::<f64>().unwrap_or(0.0) >= libraries.parse().unwrap_or(0.0),
        "A version is compared as if it were a decimal number.",
        "12.10 comes after 12.9. A version is a list of numbers, and here only the first matters.",
    ),
    (
        "as-text",
        |_, cuda, libraries| cuda.split('.').next() >= libraries.split('.').next(),
        "Versions are compared as text.",
        "As text, 9 comes after 12. Compare numbers.",
    ),
    (
        "driver-number",
        |driver, _, libraries| parts(driver).0 >= parts(libraries).0,
        "The driver's own version is compared with a version of CUDA.",
        "`driver` counts drivers: 550.54. The newest CUDA that the driver can run is `cuda`.",
    ),
];

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let answers = seen.returned()?.list();
    let wanted = right.value().list();
    let rows = rows(case);
    let Some(at) = (0..rows.len()).find(|&at| answers.get(at) != wanted.get(at)) else { return Ok(()) };
    let word = |answer: Option<&Value>| if answer == Some(&Value::Flag(true)) { "it runs" } else { "it does not run" };
    let machine = match &rows[at].driver {
        Some((driver, cuda)) => format!("driver {driver} for CUDA {cuda}"),
        None => "no driver".to_owned(),
    };
    let told = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("{machine}, libraries from CUDA {}: {}", rows[at].libraries, word(answers.get(at))))
            .expected(word(wanted.get(at)))
    };
    if answers.iter().all(|answer| *answer == answers[0]) {
        return Err(told(Diagnosis::new("always-the-same", "Every computer gets the same answer."))
            .idea("The answer depends on both versions."));
    }
    if rows[at].driver.is_none() {
        return Err(told(Diagnosis::new("no-driver", "A computer without a driver cannot run the program."))
            .idea("Where the monitor finds no driver, `cuda` is `None`."));
    }
    let is = |mistake: fn(&str, &str, &str) -> bool| {
        rows.iter().zip(answers).all(|(row, answer)| match &row.driver {
            Some((driver, cuda)) => *answer == Value::Flag(mistake(driver, cuda, &row.libraries)),
            None => true,
        })
    };
    if let Some((id, _, says, idea)) = MISTAKES.iter().find(|(_, mistake, ..)| is(*mistake)) {
        return Err(told(Diagnosis::new(id, *says)).idea(*idea));
    }
    Err(told(Diagnosis::new("a-row", "Some computers get the wrong answer."))
        .idea("Compare the major version of `cuda` with that of the libraries."))
}
