//! Parses the assembler's messages about each kernel.

use std::collections::BTreeMap;

/// The resources of a kernel's thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub registers: u32,
    /// Bytes in memory that do not fit into registers.
    pub spilled: u32,
}

/// Parses the resources of each kernel from the assembler's messages (`--ptxas-options=-v`). Any other message of the
/// compiler is a mistake in the source, or should be silenced in it.
pub fn read(log: &str) -> Result<BTreeMap<String, Needs>, String> {
    let mut found: BTreeMap<String, Needs> = BTreeMap::new();
    let mut kernel = None;
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split([' ', '\'', ',']).filter(|word| !word.is_empty()).collect();
        match &words[..] {
            ["ptxas", "info", ":", "Compiling", "entry", "function", name, ..] => {
                kernel = Some(found.entry((*name).to_owned()).or_default());
            }
            // Of the kernel, or of a function that it calls.
            ["ptxas", ".", .., stores, "bytes", "spill", "stores", loads, "bytes", "spill", "loads"] => {
                let bytes = |word: &str| word.parse::<u32>().map_err(|_| format!("no bytes: {line}"));
                if let Some(kernel) = &mut kernel {
                    kernel.spilled += bytes(stores)? + bytes(loads)?;
                }
            }
            ["ptxas", "info", ":", "Used", registers, "registers", ..] => {
                if let Some(kernel) = &mut kernel {
                    kernel.registers = registers.parse().map_err(|_| format!("no registers: {line}"))?;
                }
            }
            ["ptxas", "info", ":", ..] => {}
            _ => return Err(log.to_owned()),
        }
    }
    Ok(found)
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
    let (sum, neg) = (Needs { registers: 24, spilled: 12 }, Needs { registers: 8, spilled: 0 });
    assert_eq!(read(log), Ok(BTreeMap::from([("sum_f32".to_owned(), sum), ("neg_f32".to_owned(), neg)])));
    let warning = "test.cu(1): warning #177-D: variable \"unused\" was declared but never referenced\n";
    assert_eq!(read(warning), Err(warning.to_owned()));
    assert!(read("ptxas warning : it is slow").is_err());
}
