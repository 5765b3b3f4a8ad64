//! The connections between the GPUs of a machine, as in `nvidia-smi topo -m`.

use std::fmt;
use std::str::FromStr;

use crate::base::error::GpuError;

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
const WITHOUT_NVLINK: [Link; 6] = [Link::X, Link::Pix, Link::Pxb, Link::Phb, Link::Node, Link::Sys];

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
    type Err = GpuError;

    fn from_str(text: &str) -> Result<Link, GpuError> {
        let nvlinks = text.strip_prefix("NV").and_then(|count| count.parse().ok());
        let nvlinks = nvlinks.filter(|count| *count > 0).map(Link::Nv);
        let other = || WITHOUT_NVLINK[1..].iter().find(|link| link.to_string() == text).copied();
        nvlinks.or_else(other).ok_or_else(|| GpuError::custom("PIX, PXB, PHB, NODE, SYS, or NV and a number"))
    }
}

/// The connections between all GPUs of a machine.
///
/// It prints as the first columns of `nvidia-smi topo -m`; with `{:#}` the legend follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    links: Vec<Vec<Link>>,
}

impl Topology {
    /// Builds the topology of `gpus` GPUs from the connection between each two.
    pub fn new(gpus: usize, between: impl Fn(usize, usize) -> Link) -> Topology {
        let link = |from, to| if from == to { Link::X } else { between(from, to) };
        let row = |from| (0..gpus).map(|to| link(from, to)).collect();
        Topology { links: (0..gpus).map(row).collect() }
    }

    /// The number of GPUs.
    pub fn gpu_count(&self) -> usize {
        self.links.len()
    }

    /// The connection between two GPUs; `None` if one of them does not exist.
    pub fn between(&self, from: usize, to: usize) -> Option<Link> {
        self.links.get(from)?.get(to).copied()
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = (0..self.links.len()).map(|gpu| format!("GPU{gpu}")).collect();
        let line = |first: &str, columns: &[String]| {
            let line = columns.iter().fold(format!("{first:8}"), |line, column| format!("{line}{column:8}"));
            line.trim_end().to_owned()
        };
        f.write_str(&line("", &names))?;
        for (name, links) in names.iter().zip(&self.links) {
            // The X is centered in its column.
            let letters = |link: &Link| if *link == Link::X { " X".to_owned() } else { link.to_string() };
            let columns: Vec<String> = links.iter().map(letters).collect();
            write!(f, "\n{}", line(name, &columns))?;
        }
        if f.alternate() {
            f.write_str("\n\nLegend:\n")?;
            let [x, rest @ ..] = WITHOUT_NVLINK;
            for link in [x].into_iter().chain(rest.into_iter().rev()) {
                write!(f, "\n  {link:4} = {}", link.meaning())?;
            }
            write!(f, "\n  NV#  = {}", Link::Nv(1).meaning())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_prints_as_nvidia_smi_does() {
        let links = [[Link::X, Link::Nv(2), Link::Sys], [Link::Nv(2), Link::X, Link::Sys], [Link::Sys; 3]];
        let topology = Topology::new(3, |from, to| links[from][to]);
        assert_eq!(
            topology.to_string(),
            "        GPU0    GPU1    GPU2\nGPU0     X      NV2     SYS\nGPU1    NV2      X      SYS\nGPU2    SYS     SYS      X"
        );
        let whole = format!("{topology:#}");
        let legend: Vec<&str> = whole.lines().skip(5).collect();
        assert_eq!(
            legend,
            [
                "Legend:",
                "",
                "  X    = Self",
                "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)",
                "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node",
                "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
                "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)",
                "  PIX  = Connection traversing at most a single PCIe bridge",
                "  NV#  = Connection traversing a bonded set of # NVLinks",
            ]
        );
        assert_eq!((topology.between(0, 1), topology.between(3, 0)), (Some(Link::Nv(2)), None));
        assert_eq!(Topology::new(0, |_, _| Link::Sys).to_string(), "");
    }

    #[test]
    fn a_link_is_read_as_it_is_written() {
        for link in WITHOUT_NVLINK[1..].iter().copied().chain([Link::Nv(18)]) {
            assert_eq!(link.to_string().parse::<Link>().unwrap(), link);
        }
        for wrong in ["", "X", "NV", "NV0", "NV-1", "nvlink", "pix"] {
            assert!(wrong.parse::<Link>().is_err(), "{wrong}");
        }
    }
}
