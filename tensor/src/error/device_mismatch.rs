//! GPU0001, the golden rule: all operands of an operation must be on one device.

use crate::place::Place;
use std::fmt::{self, Write};

use crate::device::Device;

/// Two operands on different devices: their origins and the fix.
#[derive(Debug)]
pub struct DeviceMismatch {
    /// PyTorch's message.
    pub sentence: String,
    /// The operation.
    pub operation: &'static str,
    /// The call site of the operation.
    pub place: Place,
    /// The first tensor, and the tensor on another device.
    pub operands: [MismatchedTensor; 2],
    /// The fix, if it is better than the general advice.
    pub fix: Option<&'static str>,
    /// The modules that moved without the tensor, if it is a parameter or buffer.
    pub unlisted: Option<Unlisted>,
}

/// A parameter or buffer that did not move with its module.
#[derive(Clone, Debug)]
pub struct Unlisted {
    /// Its name in its layer, or "parameter" or "buffer".
    pub name: &'static str,
    /// The layer that made it, if any.
    pub layer: Option<&'static str>,
    /// The module method that should list it.
    pub list: &'static str,
    /// The line that created it.
    pub made: Place,
    /// The line that moved the modules.
    pub moved: Place,
    /// The modules.
    pub modules: Vec<Forgetful>,
}

/// A module with a possibly incomplete list of fields: written by hand, or derived with skipped fields.
#[derive(Clone, Debug)]
pub struct Forgetful {
    /// The name of its type.
    pub module: &'static str,
    /// The listed children, parameters and buffers.
    pub listed: Vec<String>,
    /// The fields that the derived list skips; `None` if the list is written by hand.
    pub skipped: Option<&'static [&'static str]>,
}

/// An operand of the failed operation.
#[derive(Debug)]
pub struct MismatchedTensor {
    /// PyTorch's name of the argument.
    pub name: String,
    /// Its sizes.
    pub sizes: Vec<usize>,
    /// Its device.
    pub device: Device,
    /// The line that created it.
    pub made: Place,
    /// The line of its last move, if any.
    pub moved: Option<Place>,
    /// Whether it is a leaf that requires grad, most likely a parameter.
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
        if let Some(unlisted) = &self.unlisted {
            let _ = writeln!(report, "   = not listed: {unlisted}");
        }
        let _ = write!(report, "   = fix: {}", self.fix());
        report
    }

    /// Suggests the fix. In general, the tensor on the CPU is the forgotten one.
    fn fix(&self) -> String {
        let [a, b] = &self.operands;
        if let Some(fix) = self.fix {
            return format!("{} is on {}, and its parameter on {}: {fix}", b.name, b.device, a.device);
        }
        if let Some(unlisted) = &self.unlisted {
            return unlisted.fix();
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

impl Unlisted {
    fn field(&self) -> String {
        match self.layer {
            Some(layer) => format!("the {layer} made at {}", self.made),
            None => format!("the {} made at {}", self.name, self.made),
        }
    }

    fn fix(&self) -> String {
        let mut ways = Vec::new();
        let by_hand: Vec<&str> = self
            .modules
            .iter()
            .filter(|module| module.skipped.is_none())
            .map(|module| module.module)
            .collect();
        if !by_hand.is_empty() {
            let of_layer = if self.layer.is_some() { "the field that holds " } else { "" };
            ways.push(format!(
                "in {}, add {of_layer}{} to `{}`, or derive Module",
                by_hand.join(" or "),
                self.field(),
                self.list
            ));
        }
        for Forgetful { module, skipped, .. } in &self.modules {
            if let Some(fields) = skipped {
                ways.push(format!("in {module}, take #[module(skip)] off {}", fields.join(", ")));
            }
        }
        format!("{}; if it belongs to another model, move that one", ways.join("; or "))
    }
}

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.layer.is_some() {
            write!(f, "{} of ", self.name)?;
        }
        write!(f, "{} did not move with ", self.field())?;
        for (i, Forgetful { module, listed, skipped }) in self.modules.iter().enumerate() {
            let and = if i == 0 { "" } else { " and " };
            match skipped {
                Some(fields) => write!(f, "{and}{module}, which skips {}", fields.join(", "))?,
                None if listed.is_empty() => write!(f, "{and}{module}, which lists nothing")?,
                None => write!(f, "{and}{module}, which lists {} only", listed.join(", "))?,
            }
        }
        write!(f, ", at {}", self.moved)
    }
}

impl fmt::Display for DeviceMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
