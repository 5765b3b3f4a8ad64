//! The roles of memory, and their style in every picture of memory.

use crate::colour::{CURRENT, GRADIENT, OPTIMIZER, PARAMETER, SAMPLES, TEMPORARY};
use crate::svg::Element;

/// A role of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Data,
    Parameter,
    Gradient,
    Optimizer,
    Activation,
    /// Freed before the part of the step that allocated it is over.
    Temporary,
    /// The workspace of a library.
    Workspace,
}

impl Role {
    pub const ALL: [Role; 7] = [
        Role::Data,
        Role::Parameter,
        Role::Gradient,
        Role::Optimizer,
        Role::Activation,
        Role::Temporary,
        Role::Workspace,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Role::Data => "data",
            Role::Parameter => "parameters",
            Role::Gradient => "gradients",
            Role::Optimizer => "optimizer state",
            Role::Activation => "activations",
            Role::Temporary => "temporary tensors",
            Role::Workspace => "workspace",
        }
    }

    /// Draws a shape in the role's style: its colour, and a distinct border for readers who cannot tell colours
    /// apart. A role's second item is paler.
    pub(crate) fn look(self, shape: Element, second: bool) -> String {
        let (colour, full, dashes) = match self {
            Role::Data => (SAMPLES, 0.7, ""),
            Role::Parameter => (PARAMETER, 0.45, ""),
            Role::Gradient => (GRADIENT, 0.3, "2 2"),
            Role::Optimizer => (OPTIMIZER, 0.45, "8 3"),
            Role::Activation => (SAMPLES, 0.2, "4 4"),
            Role::Temporary => (TEMPORARY, 0.35, "1 2"),
            Role::Workspace => (CURRENT, 0.05, "1 3"),
        };
        let full = if second { 0.1 } else { full };
        shape.pale(colour, full).with("stroke-width", 1.5).with("stroke-dasharray", dashes).empty()
    }
}
