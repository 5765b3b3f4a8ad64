//! What each kernel takes of a multiprocessor, which decides how many blocks run on it at a time.
//!
//! `kernels/resources.json` has it on record, so that a change that costs registers is seen in review, and so that
//! occupancy can be told without a compiler.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

/// What a kernel needs on one architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Bytes that a thread keeps in memory since they do not fit into registers.
    pub spilled: u32,
}

/// Reads the messages of the assembler, `--ptxas-options=-v`. Any other message of the compiler is a mistake in
/// the source, or should be silenced in it.
pub fn read(log: &str) -> Result<BTreeMap<String, Resources>, String> {
    let mut found: BTreeMap<String, Resources> = BTreeMap::new();
    let mut kernel = None;
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split([' ', '\'', ',']).filter(|word| !word.is_empty()).collect();
        // `24 registers`: the number before a word.
        let number = |unit: &[&str]| {
            let at = words.windows(unit.len()).position(|window| window == unit)?;
            words[..at].last().and_then(|word| word.parse::<u32>().ok())
        };
        match &words[..] {
            ["ptxas", "info", ":", "Compiling", "entry", "function", name, ..] => {
                kernel = Some(found.entry((*name).to_owned()).or_default());
            }
            ["ptxas", "info", ":", "Used", ..] => {
                let kernel = kernel.as_mut().ok_or_else(|| format!("registers of no kernel: {line}"))?;
                kernel.registers = number(&["registers"]).ok_or_else(|| format!("no registers: {line}"))?;
                kernel.shared = number(&["bytes", "smem"]).unwrap_or(0);
            }
            // Of the kernel, or of a function that it calls.
            ["ptxas", ".", .., "spill", "loads"] => {
                let spilled = |what| number(&["bytes", "spill", what]).unwrap_or(0);
                if let Some(kernel) = &mut kernel {
                    kernel.spilled += spilled("stores") + spilled("loads");
                }
            }
            ["ptxas", "info", ":", ..] => {}
            _ => return Err(log.to_owned()),
        }
    }
    Ok(found)
}

/// Compares with what is on record, or writes it down.
pub fn check(found: &BTreeMap<&str, BTreeMap<&str, Resources>>, version: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/resources.json");
    let text = render(found, version);
    if env::var_os("RENEW_RESOURCES").is_some() {
        return fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let changed = text.lines().find(|line| !recorded.lines().any(|recorded| recorded == *line));
    let gone = recorded.lines().find(|line| !text.lines().any(|now| now == *line));
    match (changed, gone) {
        (None, None) => Ok(()),
        (changed, gone) => Err(format!(
            "kernels/resources.json is not current: it has `{}` where NVRTC {version} finds `{}`; renew it with \
             RENEW_RESOURCES=1 cargo test -p course-tests --test suite on_record",
            gone.unwrap_or_default().trim(),
            changed.unwrap_or_default().trim()
        )),
    }
}

/// A line for each kernel.
fn render(found: &BTreeMap<&str, BTreeMap<&str, Resources>>, version: &str) -> String {
    let needs = |(architecture, needs): (&&str, &Resources)| {
        format!(r#""{architecture}": {{"registers": {}, "shared": {}}}"#, needs.registers, needs.shared)
    };
    let kernel = |(kernel, by_architecture): (&&str, &BTreeMap<&str, Resources>)| {
        let needs: Vec<String> = by_architecture.iter().map(needs).collect();
        format!(r#"    "{kernel}": {{{}}}"#, needs.join(", "))
    };
    let kernels: Vec<String> = found.iter().map(kernel).collect();
    format!("{{\n  \"nvrtc\": \"{version}\",\n  \"kernels\": {{\n{}\n  }}\n}}\n", kernels.join(",\n"))
}

#[test]
fn the_assemblers_messages_are_understood() {
    let log = "ptxas info    : 0 bytes gmem\n\
        ptxas info    : Compiling entry function 'sum_f32' for 'sm_80'\n\
        ptxas info    : Function properties for sum_f32\n\
        ptxas         .     0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n\
        ptxas info    : Used 24 registers, used 1 barriers, 8708 bytes smem, 640 bytes cmem[0]\n\
        ptxas info    : Compile time = 1.620 ms\n\
        ptxas info    : Compiling entry function 'neg_f32' for 'sm_80'\n\
        ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]\n";
    let sum = Resources { registers: 24, shared: 8708, spilled: 12 };
    let neg = Resources { registers: 8, shared: 0, spilled: 0 };
    assert_eq!(read(log), Ok(BTreeMap::from([("sum_f32".to_owned(), sum), ("neg_f32".to_owned(), neg)])));
    let warning = "test.cu(1): warning #177-D: variable \"unused\" was declared but never referenced\n";
    assert_eq!(read(warning), Err(warning.to_owned()));
    assert!(read("ptxas warning : it is slow").is_err());
}
