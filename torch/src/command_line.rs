//! The command line: `torch-python FILE --gpu sim:t4 --trace FILE ARGUMENTS…`

use std::path::PathBuf;

use todevice::{GpuSpec, Machine};

use crate::run::Program;

const HELP: &str = "\
Runs a program of PyTorch on a simulated GPU: torch-python [FILE | - | -c CODE] [FLAGS] [ARGUMENTS]

Without a program there is a prompt. The flags stand before or after the program's name:
  --gpu SPEC       the machine, such as sim:t4, sim:h200x2 or none [default: sim:t4]
  --trace FILE     write the timeline of the run to a file
  --seconds N      end the program after so many seconds
  --memory GIB     end the program if it takes more memory [default: 8]
  --help           print this";

pub struct CommandLine {
    pub program: Program,
    pub arguments: Vec<String>,
    pub gpu: String,
    pub trace: Option<PathBuf>,
    pub seconds: Option<u64>,
    pub memory: u64,
    /// Whether this process runs the interpreter.
    pub is_child: bool,
}

/// The end of this process, before a program has run.
pub struct Stop {
    pub message: String,
    pub status: u8,
}

fn wrong(message: impl Into<String>) -> Stop {
    Stop { message: message.into(), status: 2 }
}

impl CommandLine {
    pub fn read(arguments: impl Iterator<Item = String>) -> Result<CommandLine, Stop> {
        let mut line = CommandLine {
            program: Program::Prompt,
            arguments: Vec::new(),
            gpu: "sim:t4".to_owned(),
            trace: None,
            seconds: None,
            memory: 8,
            is_child: false,
        };
        let mut has_program = false;
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            let (flag, mut attached) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag.to_owned(), Some(value.to_owned())),
                _ => (argument.clone(), None),
            };
            let mut value = |what: &str| {
                attached
                    .take()
                    .or_else(|| arguments.next())
                    .ok_or_else(|| wrong(format!("{flag} needs {what}")))
            };
            match flag.as_str() {
                "--help" | "-h" if !has_program => return Err(Stop { message: HELP.to_owned(), status: 0 }),
                "--child" => line.is_child = true,
                "--gpu" => line.gpu = value("a machine, such as sim:t4")?,
                "--trace" => line.trace = Some(value("a file")?.into()),
                "--seconds" => line.seconds = Some(number(&flag, &value("a number")?)?),
                "--memory" => line.memory = number(&flag, &value("a number")?)?,
                "-c" if !has_program => {
                    line.program = Program::Text(value("a program")?);
                    has_program = true;
                }
                "-" if !has_program => {
                    let mut text = String::new();
                    std::io::Read::read_to_string(&mut std::io::stdin(), &mut text)
                        .map_err(|error| wrong(format!("standard input: {error}")))?;
                    line.program = Program::Text(text);
                    has_program = true;
                }
                other if !has_program && other.starts_with('-') => {
                    return Err(wrong(format!("{other} is not a flag: torch-python --help lists them")));
                }
                _ if !has_program => {
                    line.program = Program::File(argument.into());
                    has_program = true;
                }
                _ => line.arguments.push(argument),
            }
        }
        Ok(line)
    }

    pub fn machine(&self) -> Result<Machine, String> {
        let spec: GpuSpec = self.gpu.parse().map_err(|error| format!("--gpu {}: {error}", self.gpu))?;
        spec.machine().map_err(|error| format!("--gpu {}: {error}", self.gpu))
    }
}

fn number(flag: &str, value: &str) -> Result<u64, Stop> {
    value
        .parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| wrong(format!("{flag} {value}: not a number above 0")))
}
