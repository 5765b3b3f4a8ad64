//! Measures a GPU and its host, and writes profiles for simulated machines: `--gpu sim:FILE.profile --host FILE.host`.

mod card;
mod host;
mod timing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use todevice::{GpuSpec, Machine};

use crate::Stop;
use crate::files;
use crate::frame::entry::{failed, wrong};
use crate::frame::stdio::{to_stderr, to_stdout};
use crate::frame::terminal::{can_be_written, program};

pub use timing::{busy, on_device};

/// Measures a GPU and its host, and writes their profiles for --gpu sim:FILE and --host FILE
#[derive(Parser)]
#[command(name = "calibrate", version)]
pub struct Flags {
    /// GPUs to use; the first is measured
    #[arg(long, value_name = "GPU", default_value = "real", help = format!("GPUs to use; the first is measured: {}", GpuSpec::GRAMMAR))]
    pub gpu: GpuSpec,

    /// File to write the GPU's profile to; its name must end with .profile [default: standard output]
    #[arg(long, value_name = "FILE", value_parser = file(".profile", "--gpu sim:FILE"))]
    pub output: Option<PathBuf>,

    /// File to write the host's profile to; its name must end with .host [default: the host is not measured]
    #[arg(long, value_name = "FILE", value_parser = file(".host", "--host FILE"))]
    pub host_output: Option<PathBuf>,
}

/// Checks a file name's ending, which machine descriptions require.
fn file(
    ending: &'static str,
    flag: &'static str,
) -> impl Fn(&str) -> Result<PathBuf, String> + Clone + Send + Sync {
    move |name| match name.ends_with(ending) {
        true => Ok(PathBuf::from(name)),
        false => Err(format!("its name must end with {ending}, for {flag}{ending}")),
    }
}

/// Exits with 0, with 1 if the GPU failed, with 2 if a flag is wrong, a file cannot be written, or there is no such
/// GPU.
pub fn main() -> ExitCode {
    program(|flags: Flags| {
        let files =
            [("--output", &flags.output), ("--host-output", &flags.host_output)];
        for (flag, file) in files {
            if let Some(file) = file {
                can_be_written(flag, file)?;
            }
        }
        let machine = flags.gpu.machine().map_err(wrong)?;
        machine.on_warning(|warning| to_stderr(&format!("warning: {warning}\n")));
        let made =
            |flag| format!("# A profile for {flag}, made by calibrate of {machine}.\n");
        let mut use_them = String::new();
        match &flags.output {
            None => {
                to_stdout(&made("--gpu sim:FILE")); // Before measuring, so that a full disk is reported early.
                to_stdout(&machine.enter(card::card).map_err(failed)?);
            }
            Some(file) => {
                let profile = machine.enter(card::card).map_err(failed)?;
                write("--output", file, made("--gpu sim:FILE") + &profile)?;
                use_them += &format!(" --gpu sim:{}", file.display());
            }
        }
        if let Some(file) = &flags.host_output {
            let profile = machine.enter(host::host).map_err(failed)?;
            write("--host-output", file, made("--host FILE") + &profile)?;
            use_them += &format!(" --host {}", file.display());
        }
        if flags.output.is_some() {
            to_stdout(&format!("{machine}:{use_them}\n"));
        }
        Ok(())
    })
}

fn write(flag: &str, file: &Path, text: String) -> Result<(), Stop> {
    files::write(file, text.as_bytes())
        .map_err(|error| failed(format!("{flag} {}: {error}", file.display())))
}

fn how() -> &'static str {
    if Machine::current().time_is_modelled() { "modelled" } else { "measured" }
}
