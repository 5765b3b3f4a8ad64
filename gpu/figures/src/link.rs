//! The kind of connection between two GPUs.

use std::fmt;
use std::str::FromStr;

/// The connection between two GPUs, under the name that `nvidia-smi` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `X`: the same GPU.
    X,
    /// `NV18`: that many NVLinks.
    Nv(u32),
    /// `PIX`: PCI Express, across at most one bridge.
    Pix,
    /// `PXB`: PCI Express, across several bridges, but not the host bridge.
    Pxb,
    /// `PHB`: PCI Express, across the host bridge.
    Phb,
    /// `NODE`: PCI Express, and between host bridges within a NUMA node.
    Node,
    /// `SYS`: PCI Express, and between processors of the host.
    Sys,
}

/// The connections without NVLink, from the shortest to the longest.
pub const WITHOUT_NVLINK: [Link; 6] = [Link::X, Link::Pix, Link::Pxb, Link::Phb, Link::Node, Link::Sys];

impl Link {
    /// Its description in `nvidia-smi`'s legend.
    pub fn meaning(self) -> &'static str {
        match self {
            Link::X => "Self",
            Link::Sys => {
                "Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)"
            }
            Link::Node => {
                "Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node"
            }
            Link::Phb => "Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
            Link::Pxb => {
                "Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)"
            }
            Link::Pix => "Connection traversing at most a single PCIe bridge",
            Link::Nv(_) => "Connection traversing a bonded set of # NVLinks",
        }
    }
}

/// Prints its name in `nvidia-smi`: `NV18`.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Link::X => f.pad("X"),
            Link::Nv(count) => f.pad(&format!("NV{count}")),
            Link::Pix => f.pad("PIX"),
            Link::Pxb => f.pad("PXB"),
            Link::Phb => f.pad("PHB"),
            Link::Node => f.pad("NODE"),
            Link::Sys => f.pad("SYS"),
        }
    }
}

impl FromStr for Link {
    type Err = UnknownLink;

    fn from_str(text: &str) -> Result<Link, UnknownLink> {
        let nvlinks = text.strip_prefix("NV").and_then(|count| count.parse().ok());
        let nvlinks = nvlinks.filter(|count| *count > 0).map(Link::Nv);
        let other = || WITHOUT_NVLINK[1..].iter().find(|link| link.to_string() == text).copied();
        nvlinks.or_else(other).ok_or(UnknownLink)
    }
}

/// The error of a name that no connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLink;

/// Prints the possible names.
impl fmt::Display for UnknownLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PIX, PXB, PHB, NODE, SYS, or NV and a number")
    }
}
