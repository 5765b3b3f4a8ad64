//! The flags that every lab has, and parsers for those that many have.

use std::ops::RangeInclusive;
use std::path::PathBuf;

pub use todevice::parse_seed as seed;
use todevice::{Device, GpuSpec, Machine};

/// The flags of every lab.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Flags of every lab")]
pub struct Common {
    /// GPUs to run on
    #[arg(long, value_name = "GPU", default_value = "auto", help = format!("GPUs to run on: {}", GpuSpec::GRAMMAR))]
    pub gpu: GpuSpec,

    /// Host to model the time of, together with the simulated GPUs
    #[arg(long, value_name = "HOST", help = format!("Host to model the time of, together with the simulated GPUs: {} [default: laptop]", GpuSpec::HOSTS))]
    pub host: Option<String>,

    /// Device to use: cpu | cuda | cuda:N [default: cuda if available, else cpu]
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Option<String>,

    /// Seed of every random number
    #[arg(long, value_name = "N", default_value = "42", value_parser = seed)]
    pub seed: u64,

    /// Show only this section or part, such as 2 or 2.1; the sections it depends on run without output
    #[arg(long, value_name = "N")]
    pub section: Option<String>,

    /// Ask for your predictions, and compare them with the results
    #[arg(long)]
    pub ask: bool,

    /// File to save your answers to --ask in; the pages of the book can import it
    #[arg(long, value_name = "FILE", requires = "ask")]
    pub progress: Option<PathBuf>,

    /// File to write a timeline of the GPU's work to; ui.perfetto.dev opens it
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,

    /// When to use colours; auto also respects NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// What a lab prints: text for people, or one JSON object an event.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// When to use colours. `Auto` is on a terminal, unless `NO_COLOR` is set.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// Parses a whole number within a range, for clap's `value_parser`.
///
/// ```
/// let batch_size = labs::cli::count(1..=65_536);
/// assert_eq!(batch_size("64"), Ok(64));
/// assert_eq!(batch_size("0"), Err("expected a whole number from 1 to 65536".to_owned()));
/// ```
pub fn count(
    allowed: RangeInclusive<usize>,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync {
    move |text| {
        let count = text.parse().ok().filter(|count| allowed.contains(count));
        count.ok_or_else(|| {
            format!(
                "expected a whole number from {} to {}",
                allowed.start(),
                allowed.end()
            )
        })
    }
}

/// Checks a device's name. The device depends on the machine, so the name is kept.
fn device(text: &str) -> Result<String, String> {
    match text.parse::<Device>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("expected cpu | cuda | cuda:N".to_owned()),
    }
}

impl Common {
    pub fn device_of(&self, machine: &Machine) -> todevice::Result<Device> {
        machine.enter(|| match &self.device {
            None => Ok(Device::cuda_if_available()),
            Some(name) => {
                let device: Device = name.parse()?;
                device.check_usable()?;
                Ok(device)
            }
        })
    }
}
