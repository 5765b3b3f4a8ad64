//! GPU0001, the golden rule: all tensors of an operation live on one device.

use std::fmt::{self, Write};
use std::panic::Location;

use crate::device::Device;

/// Two tensors of one operation are on different devices: which, since when, and what to do.
#[derive(Debug)]
pub struct DeviceMismatch {
    /// PyTorch's sentence.
    pub sentence: String,
    /// The operation.
    pub operation: &'static str,
    /// Where it stands.
    pub place: &'static Location<'static>,
    /// The first tensor, and the one that does not go with it.
    pub operands: [MismatchedTensor; 2],
    /// What to do, where that is known better than of any two tensors.
    pub fix: Option<&'static str>,
}

/// A tensor that took part.
#[derive(Debug)]
pub struct MismatchedTensor {
    /// What PyTorch calls this argument of the operation.
    pub name: String,
    /// Its sizes.
    pub sizes: Vec<usize>,
    /// Where it is.
    pub device: Device,
    /// Where it was made.
    pub made: &'static Location<'static>,
    /// Where it was moved last, if it ever was.
    pub moved: Option<&'static Location<'static>>,
    /// Whether it is a leaf that is learned: most likely a parameter of a model.
    pub learned: bool,
}

impl DeviceMismatch {
    pub(super) fn report(&self) -> String {
        let mut report = format!("error[GPU0001]: {}\n", self.sentence);
        let _ = writeln!(report, "  --> {}: {}", self.place, self.operation);
        let width = self.operands.iter().map(|operand| operand.name.len()).max().unwrap_or(0);
        for MismatchedTensor { name, sizes, device, made, moved, .. } in &self.operands {
            let _ = writeln!(report, "   = {name:width$}  {sizes:?} on {device}");
            let _ = writeln!(report, "     {:width$}  made at {made}", "");
            let _ = match moved {
                Some(place) => writeln!(report, "     {:width$}  moved at {place}", ""),
                None => writeln!(report, "     {:width$}  never moved", ""),
            };
        }
        let _ = write!(report, "   = fix: {}", self.fix());
        report
    }

    /// In general, whatever is still on the CPU is what was forgotten.
    fn fix(&self) -> String {
        let [a, b] = &self.operands;
        if let Some(fix) = self.fix {
            return format!("{} is on {}, and its parameter on {}: {fix}", b.name, b.device, a.device);
        }
        let (behind, ahead) = if b.device.is_cuda() && !a.device.is_cuda() { (a, b) } else { (b, a) };
        let (name, device) = (&behind.name, ahead.device);
        match behind.learned {
            true => {
                format!("{name} is learned: move its model to {device} before this line, `model.to(device)?`")
            }
            false => {
                format!("move {name} to {device} before this line, and keep what `.to(device)?` returns")
            }
        }
    }
}

/// PyTorch's sentence alone.
impl fmt::Display for DeviceMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
