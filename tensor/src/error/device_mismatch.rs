//! GPU0001, the golden rule: all tensors of an operation must be on one device.

use std::fmt::{self, Write};
use std::panic::Location;

use crate::device::Device;

/// Two tensors of one operation are on different devices: which tensors, where each was made or moved, and the fix.
#[derive(Debug)]
pub struct DeviceMismatch {
    /// PyTorch's message.
    pub sentence: String,
    /// The operation.
    pub operation: &'static str,
    /// The call site of the operation.
    pub place: &'static Location<'static>,
    /// The first tensor, and the one that is on another device.
    pub operands: [MismatchedTensor; 2],
    /// The fix, where a better one is known than the general advice for two tensors.
    pub fix: Option<&'static str>,
    /// The modules that were moved without the tensor that stayed behind, if it is a parameter or buffer.
    pub unlisted: Option<Unlisted>,
}

/// A parameter or buffer that stayed behind when modules that could have listed it were moved.
#[derive(Clone, Debug)]
pub struct Unlisted {
    /// Its name in its layer, or "parameter" or "buffer".
    pub name: &'static str,
    /// The layer that made it, if any.
    pub layer: Option<&'static str>,
    /// The module method that should have listed it.
    pub list: &'static str,
    /// The line that created it.
    pub made: &'static Location<'static>,
    /// The line that moved the modules.
    pub moved: &'static Location<'static>,
    /// The modules.
    pub modules: Vec<Forgetful>,
}

/// A module that may not list all its fields: the list is written by hand, or the derived one skips some.
#[derive(Clone, Debug)]
pub struct Forgetful {
    /// The name of its type.
    pub module: &'static str,
    /// The children, parameters and buffers that it lists.
    pub listed: Vec<String>,
    /// The fields that its derived list skips; `None` if the list is written by hand.
    pub skipped: Option<&'static [&'static str]>,
}

/// A tensor that took part in the operation.
#[derive(Debug)]
pub struct MismatchedTensor {
    /// PyTorch's name for this argument of the operation.
    pub name: String,
    /// Its sizes.
    pub sizes: Vec<usize>,
    /// Its device.
    pub device: Device,
    /// The line that created it.
    pub made: &'static Location<'static>,
    /// The line that last moved it, if any.
    pub moved: Option<&'static Location<'static>>,
    /// Whether it is a leaf that requires grad: most likely a parameter of a model.
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

    /// Suggests the fix. In general, the tensor still on the CPU is the one that was forgotten.
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
    /// The field that holds the tensor: the layer that made it, or the tensor itself.
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

/// Names the tensor that did not move, and the modules that did.
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

/// Writes PyTorch's message alone.
impl fmt::Display for DeviceMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
